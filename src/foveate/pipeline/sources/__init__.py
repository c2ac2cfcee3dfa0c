"""Sources: each finds candidates for the slots that use it, and decides nothing.

To add one, write a class in this folder and list it in `BUILTIN_SOURCES`; nothing else names it. Sources that read code are
listed by module and class and loaded on first use, because a store of memories must not load the parser and the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import cast

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.pipeline.sources.calibration import CalibrationNote
from foveate.pipeline.sources.context_map import ContextMap
from foveate.pipeline.sources.entities import Entities, Relations
from foveate.pipeline.sources.gather import GatherResult, SourceReport, gather
from foveate.pipeline.sources.recent import Highlights, Recent
from foveate.pipeline.sources.search import Search
from foveate.pipeline.sources.standing import AlwaysOn, Censors, CurrentFrame, ExtraTexts, SlotText, WorkingMemory
from foveate.pipeline.sources.tagged import Domains, Procedures
from foveate.pipeline.sources.tasks import CurrentTask, Dependencies, LatestRecords, Stack, TransitiveDependencies
from foveate.types import Candidate


class LazySource(Source):
    """A source that reads code, loaded when it is first asked and there is code or a folder."""

    reads_code = True
    unrelated = "the slot shows only code and documents of the repository"

    def __init__(self, name: str, module: str, source: str) -> None:
        self.name = name
        self._module, self._source = f"foveate.pipeline.sources.{module}", source

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterable[Candidate]:
        if context.code is None and context.folder is None:
            return ()
        return cast("Iterable[Candidate]", self._load().find(requests, context))

    def pool_size(self, context: SourceContext) -> int | None:
        return self._load().pool_size(context) if context.code is not None else None

    def _load(self) -> Source:
        return cast("Source", getattr(import_module(self._module), self._source)())


BUILTIN_SOURCES: tuple[Source, ...] = (
    AlwaysOn(),
    Censors(),
    ExtraTexts(),
    CalibrationNote(),
    CurrentTask(),
    LatestRecords(),
    CurrentFrame(),
    SlotText(),
    WorkingMemory(),
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
    TransitiveDependencies(),
    ContextMap(),
    LazySource("project", "docs", "Project"),
    LazySource("docs", "docs", "Docs"),
    LazySource("repo_map", "docs", "RepoMap"),
    LazySource("files", "files", "Files"),
    LazySource("found_files", "files", "FoundFiles"),
    LazySource("code", "code", "Code"),
    LazySource("neighbours", "code", "Neighbours"),
)

__all__ = ["BUILTIN_SOURCES", "GatherResult", "SlotRequest", "Source", "SourceContext", "SourceReport", "gather"]
