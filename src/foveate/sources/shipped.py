"""The sources that come with foveate, by the name that a slot uses."""

from __future__ import annotations

from foveate.sources.always import Always
from foveate.sources.calibration import Calibration
from foveate.sources.censors import Censors
from foveate.sources.code import Code, Neighbours
from foveate.sources.context_map import ContextMap
from foveate.sources.dependencies import Dependencies, Transitive
from foveate.sources.docs import Docs, Project
from foveate.sources.domains import Domains
from foveate.sources.entities import Entities
from foveate.sources.files import Files, FoundFiles
from foveate.sources.frame import CurrentFrame
from foveate.sources.gather import Source
from foveate.sources.given import Given
from foveate.sources.highlights import Highlights
from foveate.sources.named import Named
from foveate.sources.procedures import Procedures
from foveate.sources.recent import Recent
from foveate.sources.relations import Relations
from foveate.sources.repo_map import RepoMap
from foveate.sources.search import Search
from foveate.sources.stack import Stack
from foveate.sources.task import CurrentTask
from foveate.sources.working import Working

SHIPPED: tuple[Source, ...] = (
    Always(),
    Censors(),
    Given(),
    Calibration(),
    CurrentTask(),
    CurrentFrame(),
    Working(),
    Stack("root"),
    Stack("path"),
    Stack("siblings"),
    Recent(),
    Highlights(),
    Search(),
    Procedures(),
    Named(),
    Domains(),
    Entities(),
    Relations(),
    Dependencies(),
    Transitive(),
    ContextMap(),
    Project(),
    Docs(),
    RepoMap(),
    Files(),
    FoundFiles(),
    Code(),
    Neighbours(),
)
