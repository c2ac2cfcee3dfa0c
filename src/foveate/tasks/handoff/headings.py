"""Reads Markdown without any block: headings name the fields, bullets and tables are their items.

Comes in: Markdown. Goes out: a mapping in the names of the schema, for the normaliser; sections with other names stand
under `extra`. A bold label (`**Status:** done`) counts as a heading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from foveate.tasks.handoff.blocks import fences
from foveate.tasks.handoff.schema import FIELDS, Field, find
from foveate.tasks.handoff.shorthand import from_text, unmarked

MAX_SUMMARY_CHARS = 500
"""How much of a text without a summary stands for one."""

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+([^\n]{1,200})$")
_LABEL = re.compile(r"[ \t]{0,3}(?:[-*][ \t]+)?(?:\*\*|__)([^*_:\n]{1,60}):?(?:\*\*|__)[ \t]*:?[ \t]*(.*)$")
_PLAIN_LABEL = re.compile(r"([A-Za-z][A-Za-z _-]{1,40}):[ \t]*(.*)$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{3,})[ \t]*$")
_BULLET = re.compile(r"([ \t]*)(?:[-*•+–]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(\S.*)$")
_SUB_KEY = re.compile(r"(?:\*\*|__|_)?([A-Za-z][\w -]{0,30}?)(?:\*\*|__|_)?:(?:\*\*|__|_)?\s+(\S.*)$")
_ROW = re.compile(r"[ \t]*\|(.*)\|[ \t]*$")
_RULE = re.compile(r"[\s|:-]+$")
_QUOTE_MARK = re.compile(r"^[ \t]{0,3}>[ \t]?")


@dataclass(slots=True)
class _Section:
    title: str
    level: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


def read_headings(text: str) -> dict[str, Any]:
    """The fields that the headings of a text name, and `extra` for the other sections; empty where none is known."""
    found: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    lead = ""
    for section in _sections(uncommented(text)):
        known = find(section.title)
        if known and known.kind != "object":
            value = _items(section.lines, known) if known.is_list else _prose(section, known)
            if value not in (None, "", []) or known.is_list:
                found[known.name] = _added(found.get(known.name), value)
        elif section.text:
            if section.level <= 1 and not lead:
                lead = section.text
            elif section.title:
                extra[section.title] = _added(extra.get(section.title), section.text)
    if found and lead:
        found.setdefault("summary", first_paragraph(lead))
    if found and extra:
        found["extra"] = extra
    return found


def first_paragraph(text: str) -> str:
    """The first paragraph that is no heading, fence or comment, cut at a word."""
    lines = uncommented(text).split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    for fence in fences(lines):
        if fence.start > first:  # a text that is all code is read as it is
            lines[fence.start : fence.end + 1] = [""] * len(lines[fence.start : fence.end + 1])
    kept: list[str] = []
    for line in lines:
        bare = line.strip()
        if bare and not _HEADING.match(line) and not set(bare) <= set("-=*_`~ "):
            kept.append(bare)
        elif kept:
            break
    paragraph = unmarked(" ".join(kept)) or " ".join(text.split())
    if len(paragraph) <= MAX_SUMMARY_CHARS:
        return paragraph
    return paragraph[: MAX_SUMMARY_CHARS - 1].rsplit(" ", 1)[0].rstrip() + "…"


def uncommented(text: str) -> str:
    """The text without HTML comments; one that is never closed is text."""
    parts: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        parts.append(text[at:start])
        at = end + 3
    return "".join([*parts, text[at:]])


# --- sections ------------------------------------------------------------------------------------------------------


def _sections(text: str) -> Iterator[_Section]:
    lines = text.split("\n")
    fenced = {n for fence in fences(lines) for n in range(fence.start, fence.end + 1)}
    section = _Section("", 0)
    for n, line in enumerate(lines):
        title = None if n in fenced else _title(line, lines[n + 1] if n + 1 < len(lines) else "")
        if title:
            yield section
            section = _Section(title[0], title[1], [title[2]] if title[2] else [])
        elif not (_UNDERLINE.match(line) and not section.lines):
            section.lines.append(line)
    yield section


def _title(line: str, after: str) -> tuple[str, int, str] | None:
    """The title, level and further text of a line that begins a section."""
    if match := _HEADING.match(line):
        title, _, rest = unmarked(match[2].rstrip("# \t")).partition(":")
        if rest.strip() and find(title):
            return title, len(match[1]), rest.strip()
        return unmarked(match[2].rstrip("# \t")).rstrip(":"), len(match[1]), ""
    if (match := _LABEL.match(line)) and find(match[1]):
        return match[1], 6, match[2].strip()
    if (match := _PLAIN_LABEL.match(line)) and find(match[1]):
        return match[1], 6, match[2].strip()
    if line.strip() and _UNDERLINE.match(after) and (after.lstrip()[0] == "=" or find(line)) and len(line) <= 80:
        return unmarked(line), 1 if after.lstrip()[0] == "=" else 2, ""
    return None


def _prose(section: _Section, known: Field) -> str:
    lines = [_QUOTE_MARK.sub("", line).rstrip() for line in section.lines]
    while lines and not lines[-1].strip("-*_ "):
        lines.pop()
    text = "\n".join(lines).strip()
    return unmarked(text if known.name == "summary" else text.split("\n")[0]).strip("`")


def _added(before: Any, value: Any) -> Any:
    if before is None:
        return value
    if isinstance(before, list):
        return [*before, *value]
    return f"{before}\n\n{value}"


# --- items ---------------------------------------------------------------------------------------------------------


def _items(lines: Sequence[str], known: Field) -> list[Any]:
    """The items of a section: table rows, bullets with what is indented below them, or paragraphs."""
    rows = [match[1] for line in lines if (match := _ROW.match(line))]
    if len(rows) > 2 and _RULE.match(rows[1]):
        return _table(rows)
    items: list[_Item] = []
    base: int | None = None
    gap = True
    for line in lines:
        text = _QUOTE_MARK.sub("", line)
        match = _BULLET.match(text)
        if match and (base is None or len(match[1]) <= base):
            base = len(match[1])
            items.append(_Item([match[2].strip()]))
        elif text.strip(" \t-*_="):
            if not items or (gap and base is None):
                items.append(_Item([text.strip()]))
            else:
                items[-1].add(match[2].strip() if match else text.strip(), known, is_sub=bool(match))
        gap = not text.strip()
    return [item.value(known) for item in items]


@dataclass(slots=True)
class _Item:
    parts: list[str]
    named: dict[str, Any] = field(default_factory=dict)

    def add(self, text: str, known: Field, *, is_sub: bool) -> None:
        """A line below a bullet: `Rationale: ...` is a field of its own, the rest goes on with the text."""
        match = _SUB_KEY.match(text)
        if match and known.fields and find(match[1], known.fields):
            self.named[match[1]] = match[2].strip()
        else:
            self.parts.append(f"({text})" if is_sub else text)

    def value(self, known: Field) -> Any:
        text = " ".join(self.parts)
        if known.kind == "texts":
            return unmarked(text)
        main = known.fields[0].name
        match = _SUB_KEY.match(text)
        if match and (own := find(match[1], known.fields)) and own.name == main:
            text = match[2]
        return {**from_text(text, known), **self.named} if self.named else text


def _table(rows: Sequence[str]) -> list[dict[str, Any]]:
    head, *body = [[unmarked(cell).strip("` ") for cell in row.split("|")] for row in rows if not _RULE.match(row)]
    return [{name: cell for name, cell in zip(head, row, strict=False) if name and cell} for row in body]


def list_fields() -> Iterator[Field]:
    """The fields that a Markdown body may fill."""
    return (each for each in FIELDS if each.is_list)
