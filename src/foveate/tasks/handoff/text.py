"""The text of a handoff before anybody reads it: decoded, within limits, and without what cannot be seen.

Comes in: what the caller gave. Goes out: `raw`, which is kept, and the text that the ladder reads. Every string that a
reader unescapes passes through `visible` again, so that no escape can bring back what was taken out.
"""

from __future__ import annotations

import re

from foveate.errors import InputError
from foveate.tasks.handoff.notes import Notes

MAX_BYTES = 262_144
"""About 60,000 tokens. A handoff has a few hundred; what is longer is a log or a transcript."""

_INVISIBLE = re.compile(
    "[\u200b\u2060\ufeff\ufffe\uffff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]"  # zero width, no character, control
)
_WIDE_INDENT = re.compile("^[ \t]*\u00a0[ \t\u00a0]*", re.MULTILINE)
_RARE_BREAK = re.compile("[\x85\u2028\u2029]")  # line breaks to some readers and none to others
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def decoded(source: str | bytes, notes: Notes) -> str:
    """The source as text, without NUL and with U+FFFD for what is no text; refused where it is too long or blank."""
    size = len(source) if isinstance(source, bytes) else len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise InputError(
            f"The handoff has {size:,} bytes; {MAX_BYTES:,} are allowed. "
            "Write what the next task needs to know, and leave logs and code in files."
        )
    text = source if isinstance(source, str) else _from_bytes(source, notes)
    if _SURROGATE.search(text):
        text = _SURROGATE.sub("\ufffd", text)
        notes.say("Half characters (lone surrogates) were replaced by U+FFFD.")
    if "\0" in text:
        text = text.replace("\0", "")
        notes.say("NUL characters were removed.")
    if not _INVISIBLE.sub("", text).strip():
        raise InputError("The handoff is empty. Write a summary at least; `foveate handoff template` gives a form.")
    return text


def _from_bytes(source: bytes, notes: Notes) -> str:
    utf16 = source[:2] in (b"\xff\xfe", b"\xfe\xff")  # what some Windows tools write
    encoding = "utf-16" if utf16 else "utf-8"
    try:
        return source.decode(encoding)
    except UnicodeDecodeError:
        notes.say(f"Bytes that are not {encoding.upper()} were replaced by U+FFFD.")
        return source.decode(encoding, "replace")


def readable(raw: str, notes: Notes) -> str:
    """The text that is read: one kind of line ending, no byte order mark, nothing invisible."""
    text = raw.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\u00a0" in text and _WIDE_INDENT.search(text):
        text = _WIDE_INDENT.sub(lambda match: match[0].replace("\u00a0", " "), text)
        notes.say("No-break spaces in the indentation were read as spaces.")
    return visible(text, notes)


def visible(text: str, notes: Notes) -> str:
    """The text without control and zero-width characters; joiners that emoji and scripts need stay."""
    clean = _INVISIBLE.sub("", _ANSI.sub("", text)) if _INVISIBLE.search(text) else text
    clean = _SURROGATE.sub("\ufffd", _RARE_BREAK.sub(" ", clean))
    if clean != text:
        notes.say("Control or invisible characters were removed.")
    return clean
