"""Reads a handoff from Markdown: headings name the fields, bullets and table rows are their items.

A bold label (`**Status:** done`) counts as a heading. Also reads the short forms in which people write an item, such as
`src/a.py (lines 1-9): why` or `**high**: issue`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from foveate.tasks.handoff.schema import Field, find
from foveate.text.markdown import fenced_blocks

MAX_SUMMARY_CHARS = 500
"""The length of a summary that is taken from a text without one."""

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
    """Return the fields that headings name, and `extra` for the other sections; empty if no heading names a field."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    lead = ""
    for section in _sections(strip_comments(text)):
        known = find(section.title)
        if known and known.kind != "object":
            value = _items(section.lines, known) if known.is_list else _prose(section, known)
            if value not in (None, "", []) or known.is_list:
                fields[known.name] = _append_value(fields.get(known.name), value)
        elif section.text:
            if section.level <= 1 and not lead:
                lead = section.text
            elif section.title:
                extra[section.title] = _append_value(extra.get(section.title), section.text)
    if fields and lead:
        fields.setdefault("summary", first_paragraph(lead))
    if fields and extra:
        fields["extra"] = extra
    return fields


def first_paragraph(text: str) -> str:
    """Return the first paragraph that is no heading, fence or comment, cut at a word."""
    lines = strip_comments(text).split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), 0)
    for fence in fenced_blocks(lines):
        if fence.start > first:  # a text that is all code is read as it is
            lines[fence.start : fence.stop] = [""] * len(lines[fence.start : fence.stop])
    paragraph: list[str] = []
    for line in lines:
        bare = line.strip()
        if bare and not _HEADING.match(line) and not set(bare) <= set("-=*_`~ "):
            paragraph.append(bare)
        elif paragraph:
            break
    summary = strip_bold(" ".join(paragraph)) or " ".join(text.split())
    if len(summary) <= MAX_SUMMARY_CHARS:
        return summary
    return summary[: MAX_SUMMARY_CHARS - 1].rsplit(" ", 1)[0].rstrip() + "…"


def strip_comments(text: str) -> str:
    """Return the text without HTML comments; one that is never closed is text."""
    parts: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        parts.append(text[at:start])
        at = end + 3
    return "".join([*parts, text[at:]])


# --- sections ------------------------------------------------------------------------------------------------------


def _sections(text: str) -> Iterator[_Section]:
    lines = text.split("\n")
    fenced = {n for fence in fenced_blocks(lines) for n in range(fence.start, fence.stop)}
    section = _Section("", 0)
    for n, line in enumerate(lines):
        title = None if n in fenced else _title(line, lines[n + 1] if n + 1 < len(lines) else "")
        if title:
            yield section
            section = _Section(title[0], title[1], [title[2]] if title[2] else [])
        elif not (_UNDERLINE.match(line) and not section.lines):
            section.lines.append(line)
    yield section


def _title(line: str, next_line: str) -> tuple[str, int, str] | None:
    """Return the title, level and further text of a line that begins a section."""
    if match := _HEADING.match(line):
        whole = strip_bold(match[2].rstrip("# \t"))
        title, _, rest = whole.partition(":")
        if rest.strip() and find(title):
            return title, len(match[1]), rest.strip()
        return whole.rstrip(":"), len(match[1]), ""
    for label in (_LABEL, _PLAIN_LABEL):
        if (match := label.match(line)) and find(match[1]):
            return match[1], 6, match[2].strip()
    if line.strip() and len(line) <= 80 and (match := _UNDERLINE.match(next_line)) and (match[1][0] == "=" or find(line)):
        return strip_bold(line), 1 if match[1][0] == "=" else 2, ""
    return None


def _prose(section: _Section, known: Field) -> str:
    lines = [_QUOTE_MARK.sub("", line).rstrip() for line in section.lines]
    while lines and not lines[-1].strip("-*_ "):
        lines.pop()
    text = "\n".join(lines).strip()
    return strip_bold(text if known.name == "summary" else text.split("\n")[0]).strip("`")


def _append_value(existing: Any, value: Any) -> Any:
    if existing is None:
        return value
    return [*existing, *value] if isinstance(existing, list) else f"{existing}\n\n{value}"


# --- items of a section --------------------------------------------------------------------------------------------


def _items(lines: Sequence[str], known: Field) -> list[Any]:
    """Return the items of a section: table rows, bullets with the lines indented below them, or paragraphs."""
    rows = [match[1] for line in lines if (match := _ROW.match(line))]
    if len(rows) > 2 and _RULE.match(rows[1]):
        return _table(rows)
    items: list[_Item] = []
    base: int | None = None
    after_gap = True
    for line in lines:
        text = _QUOTE_MARK.sub("", line)
        match = _BULLET.match(text)
        if match and (base is None or len(match[1]) <= base):
            base = len(match[1])
            items.append(_Item([match[2].strip()]))
        elif text.strip(" \t-*_="):
            if not items or (after_gap and base is None):
                items.append(_Item([text.strip()]))
            else:
                items[-1].add(match[2].strip() if match else text.strip(), known, is_bullet=bool(match))
        after_gap = not text.strip()
    return [item.value(known) for item in items]


@dataclass(slots=True)
class _Item:
    parts: list[str]
    fields: dict[str, Any] = field(default_factory=dict)

    def add(self, text: str, known: Field, *, is_bullet: bool) -> None:
        """Add a line below the item: `Rationale: ...` is a field of its own, other lines continue the text."""
        match = _SUB_KEY.match(text)
        if match and known.fields and find(match[1], known.fields):
            self.fields[match[1]] = match[2].strip()
        else:
            self.parts.append(f"({text})" if is_bullet else text)

    def value(self, known: Field) -> Any:
        text = " ".join(self.parts)
        if known.kind == "texts":
            return strip_bold(text)
        match = _SUB_KEY.match(text)
        if match and find(match[1], known.fields) is known.fields[0]:
            text = match[2]
        return {**from_text(text, known), **self.fields} if self.fields else text


def _table(rows: Sequence[str]) -> list[dict[str, Any]]:
    head, *body = [[strip_bold(cell).strip("` ") for cell in row.split("|")] for row in rows if not _RULE.match(row)]
    return [{name: cell for name, cell in zip(head, row, strict=False) if name and cell} for row in body]


# --- short forms of an item ----------------------------------------------------------------------------------------

SUFFIX_CHARS = 40
"""A mark such as `(high)` or `(blocking)` counts only this near to the end of a text."""

_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")  # not __x__, which is a name in Python
_BOLD_LABEL = re.compile(r"\s*(?:\*\*|__)([^*\n]{1,80}?):?(?:\*\*|__)\s*(?::|—|–|-)?\s*(\S.*)", re.DOTALL)
_LEVEL = re.compile(
    r"\s*[\[(]?\s*(?:severity\s*[:=]\s*)?([A-Za-z]{3,12})(?:\s+severity)?\s*(?:[\])]\s*:?|:|\s[—–-]\s)\s*(\S.*)", re.DOTALL
)
_LAST_LEVEL = re.compile(r"[\[(]\s?(?:severity\s?[:=]\s?)?([A-Za-z]{3,12})(?:\sseverity)?\s?[\])]\.?$")
_BLOCKING_FIRST = re.compile(r"[\[(]?\s?((?:non-|not )?blocking)\s?(?:[\])]\s?:?|:|\s[—–-]\s)\s?(?=\S)", re.IGNORECASE)
_BLOCKING_LAST = re.compile(r"\s?[\[(]\s?((?:non-|not )?blocking)\s?[\])]\.?$", re.IGNORECASE)
_PATH = re.compile(
    r"(?:`([^`\n]+)`|([^\s`:(),]++))"  # the path
    r"(?::(\d{1,9}(?:-\d{1,9})?))?"  # src/a.py:10-20
    r"(?:\s?[(\[]\s?(?:lines?|L)?\s?([\d][\d ,–L-]{0,40}?)\s?[)\]])?"  # (lines 10-20)
    r"(?:\s?\((?:new|created|modified|updated|added)\))?"
    r"\s{0,4}(?::|—|–|->|→|-\s|$)\s{0,4}"
)
_PROSE_LEVELS = {"note", "error", "important", "info", "warning"}  # `Note: ...` opens a sentence and grades nothing
_EXTENSIONLESS_FILES = ("Makefile", "Dockerfile", "README", "LICENSE", "Justfile", "Procfile")


def bullets(text: str) -> list[str]:
    """Return the items of a text in which every line is a bullet or continues one; nothing if it is prose."""
    items: list[list[str]] = []
    for line in text.split("\n"):
        if match := _BULLET.match(line):
            items.append([match[2].strip()])
        elif line.strip():
            if not items or not line.startswith(" "):
                return []
            items[-1].append(line.strip())
    return [" ".join(parts) for parts in items]


def strip_bold(text: str) -> str:
    return _BOLD.sub(lambda match: match[1], text).strip()


def from_text(text: str, known: Field) -> dict[str, Any]:
    """Return the object that a plain text stands for; without a short form, the text is the item's main field."""
    main, plain = known.fields[0].name, strip_bold(text)
    if main in ("path", "file"):
        return _file(plain, known)
    if main == "issue":
        return _gotcha(plain, known)
    if main == "question":
        return _question(plain)
    label = _BOLD_LABEL.fullmatch(text)
    if main == "decision" and label:
        return {"decision": label[1].strip(), "rationale": strip_bold(label[2])}
    return {main: plain}


def from_pair(value: dict[str, Any], known: Field) -> dict[str, Any] | None:
    """Return the object that one unknown key with a value stands for: YAML reads `- src/a.py: why` as such a pair."""
    if len(value) != 1:
        return None
    key, entry = next(iter(value.items()))
    if isinstance(entry, list) or (isinstance(entry, dict) and len(entry) > 6):
        return None
    if isinstance(entry, dict):
        return {known.fields[0].name: key, **entry}
    return from_text(key if entry is None else f"{key}: {entry}", known)


def _file(text: str, known: Field) -> dict[str, Any]:
    names = [part.name for part in known.fields]
    match = _PATH.match(text)
    path = (match[1] or match[2]) if match else ""
    if not match or not (match[1] or any(mark in path for mark in "./\\") or path in _EXTENSIONLESS_FILES):
        return {names[0]: text.strip("`")}
    out: dict[str, Any] = {names[0]: path.strip()}
    lines = match[3] or match[4]
    if lines and "lines" in names:
        out["lines"] = re.sub(r"\s*[–-]\s*", "-", lines.replace("L", "").strip())
    if rest := text[match.end() :].strip():
        out[names[-1]] = rest
    return out


def _gotcha(text: str, known: Field) -> dict[str, Any]:
    choices = known.fields[1].choices
    levels = {word for choice, variants in choices.items() for word in (choice, *variants)} - _PROSE_LEVELS
    if (match := _LEVEL.fullmatch(text)) and match[1].lower() in levels:
        return {"issue": match[2].strip(), "severity": match[1].lower()}
    if (match := _LAST_LEVEL.search(text, max(0, len(text) - SUFFIX_CHARS))) and match[1].lower() in levels:
        return {"issue": text[: match.start()].strip() or text, "severity": match[1].lower()}
    return {"issue": text}


def _question(text: str) -> dict[str, Any]:
    match = _BLOCKING_FIRST.match(text) or _BLOCKING_LAST.search(text, max(0, len(text) - SUFFIX_CHARS))
    question = (text[: match.start()] + text[match.end() :]).strip() if match else ""
    if not match or not question:
        return {"question": text}
    return {"question": question, "blocking": match[1].lower() == "blocking"}
