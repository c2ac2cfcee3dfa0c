"""Sources for the repository as a whole: codebase docs, project configuration and the repository map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.code.docs import DocSection, ProjectConfig
from foveate.code.graph import rank
from foveate.code.model import RenderedLevels
from foveate.code.outline import MAX_FILES, Outline, directory_outlines, outlines
from foveate.code.records import code_record
from foveate.code.snapshot import CodeSnapshot
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, base_tokens
from foveate.pipeline.sources.files import code_query_of
from foveate.types import Candidate, Record, Scope

MAX_SEEDS = 20
"""Definitions and files from which the ranking of the graph starts."""

TOKENS_PER_FILE, MIN_FILES = 6, 12
"""Files to outline: half the tokens of a line for each, because the slot may get tokens that others do not use."""

NAMED_FILE_WEIGHT = 0.5
"""Weight of a file that the question names, relative to the heaviest definition."""


class Docs(Source):
    """Instructions, architecture, stack, commands and directories. They do not depend on the question."""

    name = "docs"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code or context.folder
        if code is None:
            return
        sections = code.codebase_docs.sections
        if not sections and context.code is not None:
            context.code.add_note("No codebase docs: neither documents nor manifests were found.")
        for request in requests:
            for place, section in enumerate(sections[: request.limit]):
                record = section_record(section, context.request.scope)
                features = {"relevance": round(1.0 - 0.05 * place, 4)}
                yield self.candidate(request, record, **features)


class Project(Source):
    """Name, language, framework and test framework of the project (001's project configuration)."""

    name = "project"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code or context.folder
        if code is None:
            return
        record = project_record(code.codebase_docs.project, context.request.scope)
        if record is not None:
            for request in requests:
                yield self.candidate(request, record, relevance=1.0)


def docs_records(code: CodeSnapshot, scope: Scope) -> list[Record]:
    """Return the project configuration and all codebase docs as records."""
    project = project_record(code.codebase_docs.project, scope)
    return [*([project] if project else ()), *(section_record(section, scope) for section in code.codebase_docs.sections)]


def section_record(section: DocSection, scope: Scope) -> Record:
    full, summary = (f"**{section.title}**\n{text}" for text in (section.text, section.summary))
    levels = RenderedLevels(full, summary, f"**{section.title}**: {section.micro}")
    return code_record("docs", f"docs:{section.name}", levels, scope, *section.source_paths)


def project_record(project: ProjectConfig, scope: Scope) -> Record | None:
    """Return the project configuration as a record, or None if nothing is known."""
    values = (
        ("Name", project.name),
        ("Language", project.language),
        ("Framework", project.framework),
        ("Test framework", project.test_framework),
    )
    text = "; ".join(f"{title}: {value}" for title, value in values if value)
    return code_record("docs", "docs:project", RenderedLevels(text, text, text), scope) if text else None


class RepoMap(Source):
    """The map of the repository for this question. Each file is an item, so that the map fits any number of tokens."""

    name = "repo_map"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code, folder = context.code, context.folder
        for request in requests:
            number = min(request.limit, max(MIN_FILES, base_tokens(request.slot, context.profile) // TOKENS_PER_FILE))
            if code is not None:
                shown = build_outlines(code, code_query_of(context), number)
            else:
                shown = directory_outlines(folder.paths)[:number] if folder is not None and folder.paths else []
            for outline in shown:
                record = code_record(
                    "outline",
                    f"map:{outline.path}",
                    RenderedLevels(outline.full, outline.summary, outline.micro),
                    context.request.scope,
                    outline.path,
                )
                features = {"relevance": round(outline.rank, 4)}
                yield self.candidate(request, record, **features)


def build_outlines(code: CodeSnapshot, text: str, limit: int = MAX_FILES) -> list[Outline]:
    """Return the map for a question, one outline for each file. An empty text gives the map of the whole repository."""
    hits = code.search(text) if text.strip() else None
    seeds: dict[int, float] = {}
    for hit in hits.definitions[:MAX_SEEDS] if hits else ():
        # Squared, because nearly equal seeds give a map that shows a little of everything.
        seeds[hit.symbol.id] = hit.relevance**2
    named = [hit for hit in hits.files[:MAX_SEEDS] if "named" in hit.features] if hits else []
    files = {hit.file.path: NAMED_FILE_WEIGHT * hit.relevance for hit in named}
    if found := outlines(code.index, rank(code.index, seeds), files=files, max_files=limit):
        return found
    paths = list(code.index.file_table().by_path)
    return directory_outlines(paths)[:limit] if paths else []
