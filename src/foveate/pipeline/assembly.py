"""Assemble what the model reads: items into sections, sections into messages and text. Pure.

The layout is a contract: stable sections come first and stay byte-identical until their content changes, volatile ones
follow, and the text contains no time of the call. Each heading and each item is a block that ends with its own newline, so
that token counts of blocks add up. A blank line between sections is counted as one token and may cost less.
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
from foveate.types import STORED_LEVELS, Candidate, Item, Level, Message, Record, Section, Slot

MAX_SESSION_NAME_CHARS = 24
"""A longer name, such as a UUID, is cut: its first characters distinguish it."""

HIGHLIGHTS = "highlights"
"""The source of records of other sessions."""

BLANK_LINE_TOKENS = 1
"""Tokens of the blank line after a section."""


# --- headings ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def heading_of(slot: Slot, *, is_empty: bool = False) -> str:
    """Return the heading and, if the slot shows items, the introduction above them."""
    heading = slot.heading.strip()
    marked = heading if heading.startswith("#") or not heading else f"## {heading}"
    parts = (marked, "" if is_empty else slot.intro.strip())
    return "".join(f"{part}\n" for part in parts if part)


@lru_cache(maxsize=512)
def heading_tokens(slot: Slot, counter: str, *, is_empty: bool = False) -> int:
    """Count the tokens of a slot's heading and of the blank line after its section."""
    heading = heading_of(slot, is_empty=is_empty)
    return BLANK_LINE_TOKENS + (tokens.count(heading, counter) if heading else 0)


@lru_cache(maxsize=512)
def empty_note_tokens(slot: Slot, counter: str) -> int:
    """Count the tokens of a slot without items: its heading and its note, or 0 if it has no note and is not shown."""
    if not slot.empty_text.strip():
        return 0
    return heading_tokens(slot, counter, is_empty=True) + tokens.count(_empty_note(slot), counter)


def _empty_note(slot: Slot) -> str:
    return slot.empty_text.strip() + "\n"


# --- lines ---------------------------------------------------------------------------------------------------------


def render_line(candidate: Candidate, level: Level) -> str:
    """Return a candidate as the model reads it, at a level."""
    text = kind_of(candidate.record.kind).render(candidate.record, level, candidate.passage)
    # The notes contain names of tasks and sessions, which any tool could have chosen.
    notes = [sanitize(note, "web") for note in line_notes(candidate)]
    if not notes:
        return text
    lines = text.split("\n")
    end = _end_of_first_sentence(lines)
    last_cell = " |" if lines[end].endswith(" |") else ""
    lines[end] = f"{lines[end].removesuffix(last_cell)} ({'; '.join(notes)}){last_cell}"
    return "\n".join(lines)


def _end_of_first_sentence(lines: Sequence[str]) -> int:
    """Return the index of the line before the sub-items or the code of an item; of a titled item, that of its title."""
    end = 0
    if not lines[0].startswith("#"):
        while lines[end + 1].strip() and not lines[end + 1].lstrip().startswith(("- ", "```")):
            end += 1
    return end


def line_notes(candidate: Candidate) -> list[str]:
    """Return what the line says about a candidate beyond its record: its session, its task, a missing file, a conflict."""
    notes = []
    session, task = candidate.record.scope.session, candidate.inherited_from
    if session and candidate.source == HIGHLIGHTS:
        name = one_line(session)
        notes.append(f"session {name if len(name) <= MAX_SESSION_NAME_CHARS else name[:8] + '…'}")
    if task is not None:
        notes.append(f"from {title_of(task) or task.micro}")
    if candidate.stale:
        notes.append("stale: the file is gone")
    if candidate.conflict is not None:
        age = (
            "newer"
            if candidate.features.get("newer", candidate.record.valid_from >= candidate.conflict.valid_from)
            else "older"
        )
        is_dated = kind_of(candidate.record.kind).is_append_only  # the line of an event begins with its time
        notes.append(age if is_dated else f"{age}: {iso(candidate.record.valid_from)[:10]}")
    return notes


def count_line(candidate: Candidate, counter: str) -> dict[Level, int]:
    """Count the tokens of a candidate's line at each level."""
    levels = (*STORED_LEVELS, "passage") if candidate.passage else STORED_LEVELS
    return {level: tokens.count(render_line(candidate, level), counter) for level in levels}


# --- sections and messages -----------------------------------------------------------------------------------------


def build_section(slot: Slot, items: Sequence[Item], tag: str = fence.NO_TAG) -> Section:
    """Return a filled slot. Untrusted text is fenced. Words of strangers are never part of a system message."""
    if items and all(kind_of(item.kind).sort_by_path for item in items):
        items = sorted(items, key=lambda item: item.record.paths)
    else:
        items = sorted(items, key=lambda item: fence.reading_order(item.record))
    shown = tuple(replace(item, text=render_line(item.candidate, item.level)) for item in items)
    body = fence.render_fenced(_lines(shown), tag) or _empty_note(slot)
    quotes = any(fence.is_quoted(item.record) for item in items)
    is_foreign = any(fence.is_foreign(item.record) for item in items)
    return Section(
        name=slot.name,
        content=heading_of(slot, is_empty=not items) + body,
        source=slot.source,
        role="user" if is_foreign else slot.role,
        stable=slot.stable and not quotes,
        items=shown,
    )


def _lines(items: Iterable[Item]) -> Iterator[tuple[Record, str]]:
    return ((item.record, item.text) for item in items)


def section_pieces(section: Section, tag: str) -> list[tuple[str, Record | None]]:
    """Return the content of a section in pieces, each with the record that it shows; None for headings and fences."""
    body = list(fence.pieces(_lines(section.items), tag))
    heading = section.content[: len(section.content) - sum(len(text) for text, _ in body)]
    return [(heading, None), *body] if heading else body


def join_sections(sections: Iterable[Section]) -> str:
    """Return sections as one text, with a blank line between them."""
    return "\n".join(section.content for section in sections)


def build_messages(sections: Sequence[Section]) -> list[Message]:
    """Return a system and a user message, each only if there is text for it."""
    messages: list[Message] = []
    roles: tuple[Literal["system", "user"], ...] = ("system", "user")
    for role in roles:
        text = join_sections(section for section in sections if section.role == role)
        if text:
            messages.append({"role": role, "content": text})
    return messages
