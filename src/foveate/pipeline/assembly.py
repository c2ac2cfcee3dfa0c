"""Items -> sections -> messages and text: what the model receives. Pure.

Layout is a contract. Stable slots come first and are byte-identical until their content changes; volatile ones follow; no
clock is in the text. Every heading and every item is a block that owns its trailing newline, so that token counts add up;
a blank line between sections is counted once and may cost less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Literal

from foveate.clock import iso
from foveate.records import fence
from foveate.records.kinds import kind_of
from foveate.records.render import title_of
from foveate.text import tokens
from foveate.text.format import one_line
from foveate.text.sanitize import sanitize
from foveate.types import LEVELS, Candidate, Item, Level, Message, Record, Section, Slot

LONG_NAME = 24
"""Characters of a session's name that are shown whole; of a longer one, such as a UUID, the beginning tells it apart."""

HIGHLIGHTS = "highlights"
"""The source whose records come from other sessions."""

BLANK_LINE = 1
"""Tokens of the blank line that ends a section."""


@lru_cache(maxsize=512)
def head(slot: Slot, *, empty: bool = False) -> str:
    """What stands above a slot's items, or above its note where it has none."""
    heading = slot.heading.strip()
    marked = heading if heading.startswith("#") or not heading else f"## {heading}"
    parts = (marked, "" if empty else slot.intro.strip())
    return "".join(f"{part}\n" for part in parts if part)


@lru_cache(maxsize=512)
def overhead(slot: Slot, counter: str, *, empty: bool = False) -> int:
    """Tokens that a slot costs before its first item."""
    above = head(slot, empty=empty)
    return BLANK_LINE + (tokens.count(above, counter) if above else 0)


@lru_cache(maxsize=512)
def empty_cost(slot: Slot, counter: str) -> int:
    """Tokens of a slot that has nothing to show but its note; 0 where it is then not shown at all."""
    return overhead(slot, counter, empty=True) + tokens.count(_note(slot), counter) if slot.empty_text.strip() else 0


def _note(slot: Slot) -> str:
    return slot.empty_text.strip() + "\n"


def line(candidate: Candidate, level: Level) -> str:
    """A candidate as the model reads it."""
    text = kind_of(candidate.record.kind).render(candidate.record, level)
    remarks = [sanitize(remark, "web") for remark in remarks_on(candidate)]  # names that anybody may have given
    if not remarks:
        return text
    lines = text.split("\n")
    end = _end_of_lead(lines)
    last_cell = " |" if lines[end].endswith(" |") else ""
    lines[end] = f"{lines[end].removesuffix(last_cell)} ({'; '.join(remarks)}){last_cell}"
    return "\n".join(lines)


def _end_of_lead(lines: Sequence[str]) -> int:
    """The line with which the first sentence of an item ends: before its sub-items, or its title itself."""
    end = 0
    if not lines[0].startswith("#"):
        while lines[end + 1].strip() and not lines[end + 1].lstrip().startswith(("- ", "```")):
            end += 1
    return end


def remarks_on(candidate: Candidate) -> list[str]:
    """What the line must say beyond the record: who handed it on, that its file is gone."""
    task = candidate.inherited_from
    from_task = [f"from {title_of(task) or task.micro}"] if task else []
    return _of_session(candidate) + from_task + (["stale: the file is gone"] if candidate.stale else []) + _dated(candidate)


def _of_session(candidate: Candidate) -> list[str]:
    """In which other session it happened."""
    session = candidate.record.scope.session
    if candidate.source != HIGHLIGHTS or not session:
        return []
    name = one_line(session)
    return [f"session {name if len(name) <= LONG_NAME else name[:8] + '…'}"]


def _dated(candidate: Candidate) -> list[str]:
    """When it was said, and when something else was."""
    if candidate.conflict is None:
        return []
    here, there = candidate.record.valid_from, candidate.conflict.valid_from
    day, other = iso(here)[:10], iso(there)[:10]
    if day == other:
        return [f"{day}; something else was said the same day"]
    return [f"{day}; {other} {'said' if there < here else 'says'} otherwise"]


def measured(candidate: Candidate, counter: str) -> dict[Level, int]:
    """Tokens of a candidate's line at each level."""
    return {level: tokens.count(line(candidate, level), counter) for level in LEVELS}


def section(slot: Slot, items: Sequence[Item], tag: str = fence.NO_TAG) -> Section:
    """Return a filled slot. Untrusted text is fenced, and a section that has any is never part of a system message."""
    if items and all(kind_of(item.kind).sort_by_path for item in items):
        items = sorted(items, key=lambda item: item.record.paths)
    shown = tuple(replace(item, text=line(item.candidate, item.level)) for item in items)
    body = fence.render_fenced(_lines(shown), tag) or _note(slot)
    above = head(slot, empty=not items)
    quotes = any(fence.is_quoted(item.record) for item in items)
    return Section(
        name=slot.name,
        content=above + body,
        source=slot.source,
        role="user" if quotes else slot.role,
        stable=slot.stable and not quotes,
        items=shown,
    )


def _lines(items: Iterable[Item]) -> Iterator[tuple[Record, str]]:
    return ((item.record, item.text) for item in items)


def spans(section: Section, tag: str) -> list[tuple[str, Record | None]]:
    """Return a section's content piece by piece, each with the record that it shows. Headings and fences show none."""
    body = list(fence.pieces(_lines(section.items), tag))
    above = section.content[: len(section.content) - sum(len(text) for text, _ in body)]
    return [(above, None), *body] if above else body


def joined(sections: Iterable[Section]) -> str:
    """Sections as one text: a blank line between them."""
    return "\n".join(section.content for section in sections)


def messages(sections: Sequence[Section]) -> list[Message]:
    """Return one system and one user message, as far as there is text for them."""
    out: list[Message] = []
    roles: tuple[Literal["system", "user"], ...] = ("system", "user")
    for role in roles:
        text = joined(section for section in sections if section.role == role)
        if text:
            out.append({"role": role, "content": text})
    return out
