"""Reads the short forms in which people write an item: `src/a.py (lines 1-9): why`, `**high**: issue`, `- [ ] text`.

Comes in: one text, and the field that it is an item of. Goes out: an object with that field's names. A text that has no
short form is the item's main field.
"""

from __future__ import annotations

import re
from typing import Any

from foveate.tasks.handoff.schema import Field

_BULLET = re.compile(r"\s*(?:[-*•+–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(\S.*)")
_BOLD = re.compile(r"\*\*([^*\n]+)\*\*")  # and not __x__, which is a name in Python
_LEAD = re.compile(r"\s*(?:\*\*|__)([^*\n]{1,80}?):?(?:\*\*|__)\s*(?::|—|–|-)?\s*(\S.*)", re.DOTALL)
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
_PROSE_LEVELS = {"note", "error", "important", "info", "warning"}
"""`Note: ...` opens a sentence; it does not grade it."""

_NAMED_FILES = ("Makefile", "Dockerfile", "README", "LICENSE", "Justfile", "Procfile")
TAIL_CHARS = 40
"""Where a mark such as `(high)` or `(blocking)` is looked for at the end of a text."""


def bullets(text: str) -> list[str]:
    """The items of a text in which every line is a bullet or goes on with one; nothing where it is prose."""
    found: list[list[str]] = []
    for line in text.split("\n"):
        if match := _BULLET.match(line):
            found.append([match[1].strip()])
        elif line.strip():
            if not found or not line.startswith(" "):
                return []
            found[-1].append(line.strip())
    return [" ".join(parts) for parts in found]


def unmarked(text: str) -> str:
    """A text without bold marks."""
    return _BOLD.sub(lambda match: match[1], text).strip()


def from_text(text: str, field: Field) -> dict[str, Any]:
    """The object that a plain text stands for."""
    main = field.fields[0].name
    if main in ("path", "file"):
        return _file(text, field)
    if main == "issue":
        return _gotcha(text, field)
    if main == "question":
        return _question(text)
    lead = _LEAD.fullmatch(text)
    if main == "decision" and lead:
        return {"decision": lead[1].strip(), "rationale": unmarked(lead[2])}
    return {main: unmarked(text)}


def from_pair(value: dict[str, Any], field: Field) -> dict[str, Any] | None:
    """The object that a single unknown key with a text stands for: YAML's reading of `- src/a.py: why`."""
    if len(value) != 1:
        return None
    key, entry = next(iter(value.items()))
    if isinstance(entry, list) or (isinstance(entry, dict) and len(entry) > 6):
        return None
    if isinstance(entry, dict):
        return {field.fields[0].name: key, **entry}
    return from_text(key if entry is None else f"{key}: {entry}", field)


def _file(text: str, field: Field) -> dict[str, Any]:
    plain = unmarked(text)
    names = [part.name for part in field.fields]
    match = _PATH.match(plain)
    if not match or not _is_path(match):
        return {names[0]: plain.strip("`")}
    out: dict[str, Any] = {names[0]: (match[1] or match[2]).strip()}
    lines = match[3] or match[4]
    rest = plain[match.end() :].strip()
    if lines and "lines" in names:
        out["lines"] = re.sub(r"\s*[–-]\s*", "-", lines.replace("L", "").strip())
    if rest:
        out[names[-1]] = rest
    return out


def _is_path(match: re.Match[str]) -> bool:
    path = match[1] or match[2]
    return bool(match[1]) or any(mark in path for mark in "./\\") or path in _NAMED_FILES


def _gotcha(text: str, field: Field) -> dict[str, Any]:
    choices = field.fields[1].choices
    levels = {word for choice, variants in choices.items() for word in (choice, *variants)} - _PROSE_LEVELS
    plain = unmarked(text)
    if (match := _LEVEL.fullmatch(plain)) and match[1].lower() in levels:
        return {"issue": match[2].strip(), "severity": match[1].lower()}
    if (match := _LAST_LEVEL.search(plain, max(0, len(plain) - TAIL_CHARS))) and match[1].lower() in levels:
        return {"issue": plain[: match.start()].strip() or plain, "severity": match[1].lower()}
    return {"issue": plain}


def _question(text: str) -> dict[str, Any]:
    plain = unmarked(text)
    match = _BLOCKING_FIRST.match(plain) or _BLOCKING_LAST.search(plain, max(0, len(plain) - TAIL_CHARS))
    question = (plain[: match.start()] + plain[match.end() :]).strip() if match else ""
    if not match or not question:
        return {"question": plain}
    return {"question": question, "blocking": match[1].lower() == "blocking"}
