"""What the repository says of itself: instructions, architecture, stack, commands, conventions.

It is the same for every question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.code import derived
from foveate.code.docs import DocSection
from foveate.code.show import Lengths
from foveate.sources.gather import Around
from foveate.types import Ask, Candidate


class Docs:
    name = "docs"
    reads_code = True

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        look = around.look
        if look is None:
            return
        sections = look.codebase.sections
        if not sections:
            look.note("No codebase docs: neither documents nor manifests were found.")
        for ask in asks:
            for place, section in enumerate(sections[: ask.limit]):
                lengths = _titled(section)
                record = derived.record("docs", f"docs:{section.name}", lengths, around.request.scope, *section.source_paths)
                features = {"relevance": round(1.0 - 0.05 * place, 4)}
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features=features)


class Project:
    """Name, language, framework and test framework of the project (001's project configuration)."""

    name = "project"
    reads_code = True

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        look = around.look
        if look is None:
            return
        project = look.codebase.project
        known = (
            ("Name", project.name),
            ("Language", project.language),
            ("Framework", project.framework),
            ("Test framework", project.test_framework),
        )
        said = "; ".join(f"{title}: {value}" for title, value in known if value)
        if said:
            for ask in asks:
                record = derived.record("docs", "docs:project", Lengths(said, said, said), around.request.scope)
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": 1.0})


def _titled(section: DocSection) -> Lengths:
    full, summary = (f"**{section.title}**\n{text}" for text in (section.text, section.summary))
    return Lengths(full, summary, f"**{section.title}**: {section.micro}")
