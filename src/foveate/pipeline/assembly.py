"""Items -> sections -> messages and text: what the model receives. Pure.

Layout is a contract. Stable slots come first and are byte-identical until their content changes; volatile ones follow; no
clock is in the text. Every heading and every item is a block that owns its trailing newline, so that token counts add up;
a blank line between sections is counted once and may cost less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, get_args

from foveate.clock import iso
from foveate.errors import InputError, near
from foveate.pipeline.sources.highlights import Highlights
from foveate.pipeline.task_view import computed
from foveate.records import fence
from foveate.records.kinds import kind_of
from foveate.records.render import title_of
from foveate.text import tokens
from foveate.text.format import one_line
from foveate.text.sanitize import sanitize
from foveate.types import LEVELS, Budget, Candidate, Item, Level, Omission, Record, Section, Shape, Signals, Slot

LONG_NAME = 24
"""Characters of a session's name that are shown whole; of a longer one, such as a UUID, the beginning tells it apart."""

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
    return overhead(slot, counter, empty=True) + tokens.count(_note(slot), counter) if slot.empty.strip() else 0


def _note(slot: Slot) -> str:
    return slot.empty.strip() + "\n"


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
    from_task = [f"from {title_of(candidate.via) or candidate.via.micro}"] if candidate.via else []
    return _of_session(candidate) + from_task + (["stale: the file is gone"] if candidate.stale else []) + _dated(candidate)


def _of_session(candidate: Candidate) -> list[str]:
    """In which other session it happened."""
    session = candidate.record.scope.session
    if candidate.source != Highlights.name or not session:
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
    """A slot filled. What nobody vouches for is quoted, and a section that quotes is never part of a system message."""
    if items and all(kind_of(item.candidate.record.kind).sort_by_path for item in items):
        items = sorted(items, key=lambda item: item.candidate.record.paths)
    body = _rendered(items, tag) or _note(slot)
    above = head(slot, empty=not items)
    quotes = any(fence.is_quoted(item.candidate.record) for item in items)
    return Section(
        name=slot.name,
        content=above + body,
        source=slot.source,
        role="user" if quotes else slot.role,
        stable=slot.stable and not quotes,
        items=tuple(items),
    )


def _rendered(items: Iterable[Item], tag: str, level: Level | None = None) -> str:
    """Items as the model reads them, each at its own level unless one is given; what is quoted stands in a fence."""
    return fence.fenced(_lines(items, level), tag)


def _lines(items: Iterable[Item], level: Level | None = None) -> Iterator[tuple[Record, str]]:
    return ((item.candidate.record, line(item.candidate, level or item.level)) for item in items)


def spans(section: Section, tag: str) -> list[tuple[str, Record | None]]:
    """A section's content piece by piece, each with the record that it shows; headings, notes and fences show none."""
    body = list(fence.pieces(_lines(section.items), tag))
    above = section.content[: len(section.content) - sum(len(text) for text, _ in body)]
    return [(above, None), *body] if above else body


def joined(sections: Iterable[Section]) -> str:
    """Sections as one text: a blank line between them."""
    return "\n".join(section.content for section in sections)


def messages(sections: Sequence[Section]) -> list[dict[str, str]]:
    """One system and one user message, each where it has something to say."""
    out = []
    for role in ("system", "user"):
        text = joined(section for section in sections if section.role == role)
        if text:
            out.append({"role": role, "content": text})
    return out


@dataclass(frozen=True, slots=True)
class Prefix:
    """The part of the prompt that a provider's cache can keep: the stable sections, in characters and by hash."""

    hash: str
    chars: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Delta:
    """What a context adds to, changes in and withdraws from an earlier one."""

    added: tuple[Item, ...]
    changed: tuple[Item, ...]
    withdrawn: tuple[Item, ...]
    tag: str = fence.NO_TAG
    """That of the fences around what is quoted."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.withdrawn)

    @property
    def text(self) -> str:
        """The change as a block to append where an earlier context cannot be taken back."""
        groups = (("New", self.added), ("Changed", self.changed), ("No longer shown", self.withdrawn))
        return "\n".join(
            f"## {title}\n{_rendered(items, self.tag, 'micro' if items is self.withdrawn else None)}"
            for title, items in groups
            if items
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The result: what the model receives, what it cost, and what was left out and why."""

    id: str
    sections: tuple[Section, ...]
    left_out: tuple[Omission, ...]
    budget: Budget
    profile: str
    counter: str
    signals: Signals
    prefix: Prefix
    considered: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    tag: str = fence.NO_TAG
    """That of the fences around what is quoted: the same throughout a session."""
    run: Any = field(default=None, repr=False, compare=False)
    """The run that computed it, from which a receipt is written."""

    @property
    def text(self) -> str:
        """Everything that the model sees, in order."""
        return joined(self.sections)

    @property
    def stable(self) -> str:
        """The part that goes first and stays the same, byte for byte, until its content changes."""
        return joined(section for section in self.sections if section.stable)

    @property
    def volatile(self) -> str:
        """The part that is computed for this call; it goes last, where no cached prefix follows it."""
        return joined(section for section in self.sections if not section.stable)

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(item for section in self.sections for item in section.items)

    @property
    def tokens(self) -> int:
        """Tokens of the messages as sent, framing included."""
        return self.budget.used

    @property
    def truncated(self) -> bool:
        """Whether more budget would have shown more."""
        return any(omission.reason == "budget" for omission in self.left_out)

    def messages(self, shape: Shape = "openai") -> Any:
        """The context as messages: a list for OpenAI; `system` blocks and `messages` for Anthropic.

        Append your own turn: the question itself is not repeated. For Anthropic the end of the stable part carries a
        `cache_control` mark.
        """
        plain = messages(self.sections)
        if shape == "openai":
            return plain
        if shape != "anthropic":
            raise InputError(f"There is no message shape {shape!r}.{near(shape, get_args(Shape))}")
        blocks: list[dict[str, Any]] = []
        system = [section for section in self.sections if section.role == "system"]
        stable = joined(section for section in system if section.stable)
        volatile = joined(section for section in system if not section.stable)
        if stable:
            blocks.append({"type": "text", "text": stable, "cache_control": {"type": "ephemeral"}})
        if volatile:
            blocks.append({"type": "text", "text": volatile})
        return {"system": blocks, "messages": [message for message in plain if message["role"] == "user"]}

    def computed(self) -> dict[str, Any]:
        """The same, under the names of a task's computed result: `patterns_to_follow`, `prior_work`, `_computed`, ..."""
        return computed(self.items, self.left_out, self.signals)

    def delta(self, previous: Context) -> Delta:
        """What is new, changed and withdrawn since an earlier context."""
        before = {item.candidate.record.id: item for item in previous.items}
        now = {item.candidate.record.id: item for item in self.items}
        both = [(now[id], before[id]) for id in now if id in before]
        return Delta(
            added=tuple(item for id, item in now.items() if id not in before),
            changed=tuple(new for new, old in both if line(new.candidate, new.level) != line(old.candidate, old.level)),
            withdrawn=tuple(item for id, item in before.items() if id not in now),
            tag=self.tag,
        )

    def shared_prefix(self, other: Context) -> int:
        """How many characters two contexts have in common from the start."""
        mine, theirs = self.text, other.text
        if mine == theirs:
            return len(mine)
        return next(n for n in range(len(mine) + 1) if mine[n : n + 1] != theirs[n : n + 1])
