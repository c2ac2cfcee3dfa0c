"""What the repository says about itself: instructions, architecture, stack, commands, directories.

It is the same for every question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.code.docs import DocSection, ProjectConfig
from foveate.code.graph import rank
from foveate.code.model import RenderedLevels, code_record
from foveate.code.outline import MAX_FILES, Outline, directory_outlines, outlines
from foveate.code.snapshot import CodeSnapshot
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, room_of
from foveate.pipeline.sources.files import asked_for
from foveate.types import Candidate, Record, Scope

SEEDS = 20
"""Definitions that the walk over the graph starts from."""

TOKENS_A_FILE, FEWEST = 6, 12
"""How many files are drawn: at half the tokens of a line each, as many as the room and what may flow to it could hold."""

NAMED = 0.5
"""The weight of a file that the question points to, against the heaviest definition."""


class Docs(Source):
    """Instructions, architecture, stack, commands and directories."""

    name = "docs"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code
        if code is None:
            return
        sections = code.codebase_docs.sections
        if not sections:
            code.add_note("No codebase docs: neither documents nor manifests were found.")
        for request in requests:
            for place, section in enumerate(sections[: request.limit]):
                record = section_record(section, context.request.scope)
                features = {"relevance": round(1.0 - 0.05 * place, 4)}
                yield self.candidate(request, record, **features)


class Project(Source):
    """Name, language, framework and test framework of the project (001's project configuration)."""

    name = "project"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code
        if code is None:
            return
        record = project_record(code.codebase_docs.project, context.request.scope)
        if record is not None:
            for request in requests:
                yield self.candidate(request, record, relevance=1.0)


def docs_records(code: CodeSnapshot, scope: Scope) -> list[Record]:
    """All that the repository says of itself."""
    project = project_record(code.codebase_docs.project, scope)
    return [*([project] if project else ()), *(section_record(section, scope) for section in code.codebase_docs.sections)]


def section_record(section: DocSection, scope: Scope) -> Record:
    return code_record("docs", f"docs:{section.name}", _titled(section), scope, *section.source_paths)


def project_record(project: ProjectConfig, scope: Scope) -> Record | None:
    """None where nothing is known."""
    known = (
        ("Name", project.name),
        ("Language", project.language),
        ("Framework", project.framework),
        ("Test framework", project.test_framework),
    )
    said = "; ".join(f"{title}: {value}" for title, value in known if value)
    return code_record("docs", "docs:project", RenderedLevels(said, said, said), scope) if said else None


def _titled(section: DocSection) -> RenderedLevels:
    full, summary = (f"**{section.title}**\n{text}" for text in (section.text, section.summary))
    return RenderedLevels(full, summary, f"**{section.title}**: {section.micro}")


class RepoMap(Source):
    """The map of the repository for this question: each file is an item, so that the map fits any room."""

    name = "repo_map"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code
        if code is None:
            return
        for request in requests:
            number = min(request.limit, max(FEWEST, room_of(request.slot, context.profile) // TOKENS_A_FILE))
            for outline in drawn(code, asked_for(context), number):
                record = code_record(
                    "outline",
                    f"map:{outline.path}",
                    RenderedLevels(outline.full, outline.summary, outline.micro),
                    context.request.scope,
                    outline.path,
                )
                features = {"relevance": round(outline.rank, 4)}
                yield self.candidate(request, record, **features)


def drawn(code: CodeSnapshot, text: str, limit: int = MAX_FILES) -> list[Outline]:
    """The parts of the map for a question; an empty one gives the map of the whole."""
    hits = code.search(text) if text.strip() else None
    seeds: dict[int, float] = {}
    for hit in hits.definitions[:SEEDS] if hits else ():
        seeds[hit.symbol.id] = hit.relevance**2  # sharper: a flat start gives a flat map
    files = {hit.file.path: NAMED * hit.relevance for hit in hits.files[:SEEDS] if "named" in hit.features} if hits else {}
    found = outlines(code.index, rank(code.index, seeds), files=files, max_files=limit)
    if found:
        return found
    paths = list(code.index.file_table().by_path)
    return directory_outlines(paths)[:limit] if paths else []
