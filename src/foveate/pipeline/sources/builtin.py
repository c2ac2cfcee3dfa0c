"""The sources that come with foveate, by the name that a slot uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from foveate.pipeline.sources.always_on import Always
from foveate.pipeline.sources.calibration import Calibration
from foveate.pipeline.sources.censors import Censors
from foveate.pipeline.sources.context_map import ContextMap
from foveate.pipeline.sources.dependencies import Dependencies, Transitive
from foveate.pipeline.sources.domains import Domains
from foveate.pipeline.sources.entities import Entities
from foveate.pipeline.sources.extra import Given
from foveate.pipeline.sources.frame import CurrentFrame
from foveate.pipeline.sources.gather import Around, Source
from foveate.pipeline.sources.highlights import Highlights
from foveate.pipeline.sources.procedures import Procedures
from foveate.pipeline.sources.recent import Recent
from foveate.pipeline.sources.relations import Relations
from foveate.pipeline.sources.search import Search
from foveate.pipeline.sources.stack import Stack
from foveate.pipeline.sources.task import CurrentTask
from foveate.pipeline.sources.text import Text
from foveate.pipeline.sources.working_memory import Working
from foveate.types import Ask, Candidate


class OfCode:
    """A source that reads code, loaded when it is first asked: the parser and the index cost a store of memories nothing."""

    reads_code = True

    def __init__(self, name: str, module: str, source: str) -> None:
        self.name = name
        self._from = (f"foveate.pipeline.sources.{module}", source)

    def find(self, asks: Sequence[Ask], around: Around) -> Iterable[Candidate]:
        return self._source().find(asks, around) if around.look is not None else ()

    def among(self, around: Around) -> int:
        among = getattr(self._source(), "among", None)
        return int(among(around)) if among and around.look is not None else 0

    def _source(self) -> Any:
        module, source = self._from
        return getattr(import_module(module), source)()


SHIPPED: tuple[Source, ...] = (
    Always(),
    Censors(),
    Given(),
    Calibration(),
    CurrentTask(),
    CurrentFrame(),
    Text(),
    Working(),
    Stack("root"),
    Stack("path"),
    Stack("siblings"),
    Recent(),
    Highlights(),
    Search(),
    Procedures(),
    Domains(),
    Entities(),
    Relations(),
    Dependencies(),
    Transitive(),
    ContextMap(),
    OfCode("project", "docs", "Project"),
    OfCode("docs", "docs", "Docs"),
    OfCode("repo_map", "repo_map", "RepoMap"),
    OfCode("files", "files", "Files"),
    OfCode("found_files", "files", "FoundFiles"),
    OfCode("code", "code", "Code"),
    OfCode("neighbours", "code", "Neighbours"),
)
