"""Reads the text of a file as it may be shown, or the reason why it may not.

The file is opened so that no pipe or device can hang the process and no link leads out of the root. Then it is decoded, line
ends are unified, invisible characters are removed and secrets are replaced. Line numbers do not change: line 40 here is line
40 in an editor, and `splitlines()` and `split("\\n")` agree on it.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from foveate.code.exclusions import (
    MANDATORY_REASONS,
    MAX_BYTES,
    REASON_BINARY,
    REASON_TOO_LARGE,
    error_reason,
    exclusion_by_text,
    is_binary,
)
from foveate.code.model import Exclusion
from foveate.text.redact import AllowList, RedactionResult, load_rules, redact
from foveate.text.sanitize import strip_invisible

_PLACE = re.compile(r"(?::\d+){1,2}$")
"""`cart.py:40:3`: a place in a file."""


def path_spellings(path: str) -> tuple[str, str]:
    """Return a path as it may be written in an index: as it is, and without the place in the file that it ends with."""
    bare = path.removeprefix("./")
    return bare, _PLACE.sub("", bare)


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, ready to be indexed and shown."""

    text: str
    hash: str
    """Hash of the bytes on disk."""
    encoding: str
    redacted_kinds: tuple[str, ...] = ()
    """The kinds of secrets that were replaced."""


def read_text(
    root: Path,
    path: str,
    allow: AllowList | None = None,
    is_included: bool = False,
    previous: FileText | None = None,
    clean_hash: str = "",
) -> FileText | Exclusion:
    """Return the text of a file. With `is_included` it is returned even if it is generated or minified.

    `previous`: the text of the last time, which is returned if the bytes are the same. `clean_hash`: the hash of a content
    of this file that was not excluded and contained no secrets, by the same rules, so that it needs no check.
    """
    raw = _bytes(os.fspath(root), path)
    if isinstance(raw, str):
        return Exclusion(path, raw)
    hash = blake2b(raw, digest_size=16).hexdigest()
    if previous is not None and previous.hash == hash:
        return previous
    if is_binary(raw):
        return Exclusion(path, REASON_BINARY)
    text, encoding = _decode(raw)
    text = strip_invisible(text, rare_line_end=" ")  # line numbers must not depend on the program that counts
    if hash == clean_hash:
        return FileText(text, hash, encoding)
    reason = exclusion_by_text(path, text)
    if reason and (reason in MANDATORY_REASONS or not is_included):
        return Exclusion(path, reason)
    redacted = _redact_lines(text, allow)
    return FileText(redacted.text, hash, encoding, redacted.kinds)


# --- opening -----------------------------------------------------------------------------------------------------------

# Never wait for a pipe, and never follow a link: the walk has excluded it. Some systems lack some of these flags.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOCTTY")
)


def _bytes(root: str, path: str) -> bytes | str:
    """Return the bytes of a file, or the reason why they are not read."""
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or "\0" in path:
        return "outside of the root"
    if any(os.path.islink(f"{root}/{'/'.join(parts[:depth])}") for depth in range(1, len(parts))):
        return "behind a symbolic link"
    try:
        descriptor = os.open(f"{root}/{path}", _FLAGS)
    except OSError as error:
        return "symbolic link" if os.path.islink(f"{root}/{path}") else error_reason(error)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return "not a regular file"
        with open(descriptor, "rb", buffering=0, closefd=False) as file:
            raw = file.read(MAX_BYTES + 1) or b""
            while 0 < len(raw) <= MAX_BYTES and (rest := file.read(MAX_BYTES + 1 - len(raw))):
                raw += rest
    except OSError as error:
        return error_reason(error)
    finally:
        os.close(descriptor)
    return REASON_TOO_LARGE if len(raw) > MAX_BYTES else raw


# --- decoding ----------------------------------------------------------------------------------------------------------

_BOMS = (  # the longer ones first, because the mark of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ENCODING_DECLARATION = re.compile(rb"coding[:=][ \t]*([-\w.]+)")
_LEGACY_ENCODINGS = frozenset(
    """gb2312 gbk gb18030 big5 big5hkscs shift_jis cp932 euc_jp iso2022_jp euc_kr cp949 koi8-r koi8-u cp1250 cp1251 cp1253
    cp1254 cp1255 cp1256 iso8859-2 iso8859-5 iso8859-7 iso8859-9 iso8859-15""".split()  # noqa: SIM905
)


def _decode(raw: bytes) -> tuple[str, str]:
    """Return the text and its encoding: by byte order mark, as UTF-8, as declared, else as Latin-1, which never fails."""
    for mark, encoding in _BOMS:
        if raw.startswith(mark):
            return raw.decode(encoding, "replace"), encoding
    for encoding in ("utf-8", _declared_encoding(raw), "cp1252"):
        try:
            return raw.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1"), "latin-1"


def _declared_encoding(raw: bytes) -> str:
    """Return the encoding that the first two lines declare (`# -*- coding: euc-jp -*-`), or UTF-8."""
    declaration = _ENCODING_DECLARATION.search(b"\n".join(raw[:400].split(b"\n")[:2]))
    try:
        name = codecs.lookup(declaration[1].decode("ascii")).name if declaration else ""
    except (LookupError, UnicodeDecodeError):
        name = ""
    return name if name in _LEGACY_ENCODINGS else "utf-8"


# --- redaction ---------------------------------------------------------------------------------------------------------

_PRIVATE_BLOCK = re.compile(r"<private>([^<]*+(?:<(?!/?private>)[^<]*+)*+)</private>", re.IGNORECASE)
_PRIVATE_TAG_MENTION = re.compile(r"<(?=/?private>)", re.IGNORECASE)


def _redact_lines(text: str, allow: AllowList | None) -> RedactionResult:
    """Replace the secrets of a text. Every line keeps its number."""
    tagged = text
    if "private>" in text.lower():
        # In code, an unclosed tag is only mentioned. It does not hide the rest of the file.
        tagged = _PRIVATE_TAG_MENTION.sub(
            "<\0", _PRIVATE_BLOCK.sub(lambda kinds: f"[PRIVATE]{_line_breaks(kinds[0])}", text)
        )
    redacted = redact(tagged, allow)
    if redacted.text is text:
        return redacted
    if redacted.text.count("\n") != text.count("\n"):
        for rule in (rule for rule in load_rules().rules if rule.multiline):
            tagged = rule.pattern.sub(lambda kinds: f"{redact(kinds[0], allow).text}{_line_breaks(kinds[0])}", tagged)
        redacted = RedactionResult(redact(tagged, allow).text, redacted.kinds)
    if redacted.text.count("\n") != text.count("\n"):
        redacted = RedactionResult("\n".join(redact(line, allow).text for line in tagged.split("\n")), redacted.kinds)
    kinds = redacted.kinds if tagged is text or "[PRIVATE]" not in tagged else ("private", *redacted.kinds)
    return RedactionResult(redacted.text.replace("<\0", "<"), kinds)


def _line_breaks(text: str) -> str:
    return "\n" * text.count("\n")
