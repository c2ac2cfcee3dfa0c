"""What the repository says about itself: instructions, architecture, stack, commands, directories.

It is the same for every question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.code.docs import DocSection, ProjectConfig
from foveate.code.model import RenderedLevels, code_record
from foveate.code.snapshot import CodeSnapshot
from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate, Record, Scope


class Docs:
    name = "docs"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        look = around.look
        if look is None:
            return
        sections = look.codebase_docs.sections
        if not sections:
            look.add_note("No codebase docs: neither documents nor manifests were found.")
        for ask in asks:
            for place, section in enumerate(sections[: ask.limit]):
                record = section_record(section, around.request.scope)
                features = {"relevance": round(1.0 - 0.05 * place, 4)}
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features=features)


class Project:
    """Name, language, framework and test framework of the project (001's project configuration)."""

    name = "project"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        look = around.look
        if look is None:
            return
        record = project_record(look.codebase_docs.project, around.request.scope)
        if record is not None:
            for ask in asks:
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": 1.0})


def docs_records(look: CodeSnapshot, scope: Scope) -> list[Record]:
    """All that the repository says of itself."""
    project = project_record(look.codebase_docs.project, scope)
    return [*([project] if project else ()), *(section_record(section, scope) for section in look.codebase_docs.sections)]


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
