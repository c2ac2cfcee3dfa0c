"""The sources that come with foveate, by the name that a slot uses."""

from __future__ import annotations

from foveate.sources.always import Always
from foveate.sources.context_map import ContextMap
from foveate.sources.dependencies import Dependencies, Transitive
from foveate.sources.domains import Domains
from foveate.sources.gather import Source
from foveate.sources.given import Given
from foveate.sources.recent import Recent
from foveate.sources.search import Search
from foveate.sources.stack import Stack
from foveate.sources.task import CurrentTask

SHIPPED: tuple[Source, ...] = (
    Always(),
    Given(),
    CurrentTask(),
    Stack("root"),
    Stack("path"),
    Stack("siblings"),
    Recent(),
    Search(),
    Domains(),
    Dependencies(),
    Transitive(),
    ContextMap(),
)
