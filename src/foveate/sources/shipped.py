"""The sources that come with foveate, by the name that a slot uses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from foveate.sources.always import Always
from foveate.sources.calibration import Calibration
from foveate.sources.censors import Censors
from foveate.sources.context_map import ContextMap
from foveate.sources.dependencies import Dependencies, Transitive
from foveate.sources.domains import Domains
from foveate.sources.entities import Entities
from foveate.sources.frame import CurrentFrame
from foveate.sources.gather import Around, Source
from foveate.sources.given import Given
from foveate.sources.highlights import Highlights
from foveate.sources.named import Named
from foveate.sources.procedures import Procedures
from foveate.sources.recent import Recent
from foveate.sources.relations import Relations
from foveate.sources.search import Search
from foveate.sources.stack import Stack
from foveate.sources.task import CurrentTask
from foveate.sources.text import Text
from foveate.sources.working import Working
from foveate.types import Ask, Candidate


class OfCode:
    """A source that reads code, loaded when it is first asked: the parser and the index cost a store of memories nothing."""

    reads_code = True

    def __init__(self, name: str, module: str, source: str) -> None:
        self.name = name
        self._from = (f"foveate.sources.{module}", source)

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
    Named(),
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
