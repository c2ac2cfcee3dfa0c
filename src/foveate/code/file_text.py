"""The text of a file as it may be shown: root and path in, text out, or the reason why there is none.

Opened so that no pipe, device or link can hang or lead it out of the root; decoded; line ends made one; characters that hide
removed; secrets replaced. Lines keep their numbers: line 40 here is line 40 in an editor, and `splitlines()` and
`split("\\n")` agree on it.
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
    exclusion_by_text,
    is_binary,
)
from foveate.code.model import Exclusion
from foveate.text.redact import RULES, Allow, Redacted, redact
from foveate.text.sanitize import strip_invisible


@dataclass(frozen=True, slots=True)
class FileText:
    """What a file says, ready to be indexed and shown."""

    text: str
    hash: str
    """Of the bytes on disk."""
    encoding: str
    redacted_kinds: tuple[str, ...] = ()
    """The kinds of secrets that were replaced."""


def read_text(
    root: Path,
    path: str,
    allow: Allow | None = None,
    is_included: bool = False,
    previous: FileText | None = None,
    clean: str = "",
) -> FileText | Exclusion:
    """The text of a file; `is_included` keeps what is generated or minified, because somebody asked for it.

    `previous`: what it said the last time, which holds as long as its bytes are the same. `clean`: the hash of a content of
    this file that was found to be worth showing and without secrets, by the same rules.
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
    if hash == clean:
        return FileText(text, hash, encoding)
    reason = exclusion_by_text(path, text)
    if reason and (reason in MANDATORY_REASONS or not is_included):
        return Exclusion(path, reason)
    redacted = _redact_lines(text, allow)
    return FileText(redacted.text, hash, encoding, redacted.found)


# --- opening -----------------------------------------------------------------------------------------------------------

# Not to hang on a pipe, not to follow a link that a walk has set aside. Not every system has all of them.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOCTTY")
)


def _bytes(root: str, path: str) -> bytes | str:
    """The bytes of a file, or why they are not read."""
    parts = path.split("/")
    if not path or path.startswith("/") or ".." in parts or "\0" in path:
        return "outside of the root"
    if any(os.path.islink(f"{root}/{'/'.join(parts[:upto])}") for upto in range(1, len(parts))):
        return "behind a symbolic link"
    try:
        handle = os.open(f"{root}/{path}", _FLAGS)
    except OSError as error:
        return "symbolic link" if os.path.islink(f"{root}/{path}") else _error_reason(error)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return "not a regular file"
        with open(handle, "rb", buffering=0, closefd=False) as file:
            raw = file.read(MAX_BYTES + 1) or b""
            while 0 < len(raw) <= MAX_BYTES and (more := file.read(MAX_BYTES + 1 - len(raw))):
                raw += more
    except OSError as error:
        return _error_reason(error)
    finally:
        os.close(handle)
    return REASON_TOO_LARGE if len(raw) > MAX_BYTES else raw


def _error_reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


# --- decoding ----------------------------------------------------------------------------------------------------------

_BOMS = (  # the longer first: the mark of UTF-32 begins like that of UTF-16
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
    """The text and its encoding: by its mark, as UTF-8, as the file declares, else as Western text, which never fails."""
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
    """What the first two lines name: `# -*- coding: euc-jp -*-`."""
    found = _ENCODING_DECLARATION.search(b"\n".join(raw[:400].split(b"\n")[:2]))
    try:
        name = codecs.lookup(found[1].decode("ascii")).name if found else ""
    except (LookupError, UnicodeDecodeError):
        name = ""
    return name if name in _LEGACY_ENCODINGS else "utf-8"


# --- what must not be shown --------------------------------------------------------------------------------------------

_LONG_SECRETS = tuple(rule for rule in RULES if rule.kind in ("private_key", "gcp_key"))
"""The rules that reach over several lines."""

_PRIVATE_BLOCK = re.compile(r"<private>([^<]*+(?:<(?!/?private>)[^<]*+)*+)</private>", re.IGNORECASE)
_PRIVATE_TAG_MENTION = re.compile(r"<(?=/?private>)", re.IGNORECASE)


def _redact_lines(text: str, allow: Allow | None) -> Redacted:
    """The text without its secrets, every line where it was."""
    marked = text
    if "private>" in text.lower():
        # In code, a mark that nothing closes is talked about, and does not hide the rest of the file.
        marked = _PRIVATE_TAG_MENTION.sub(
            "<\0", _PRIVATE_BLOCK.sub(lambda found: f"[PRIVATE]{_line_breaks(found[0])}", text)
        )
    clean = redact(marked, allow)
    if clean.text is text:
        return clean
    if clean.text.count("\n") != text.count("\n"):
        for rule in _LONG_SECRETS:
            marked = rule.pattern.sub(lambda found: f"{redact(found[0], allow).text}{_line_breaks(found[0])}", marked)
        clean = Redacted(redact(marked, allow).text, clean.found)
    if clean.text.count("\n") != text.count("\n"):
        clean = Redacted("\n".join(redact(line, allow).text for line in marked.split("\n")), clean.found)
    found = clean.found if marked is text or "[PRIVATE]" not in marked else ("private", *clean.found)
    return Redacted(clean.text.replace("<\0", "<"), found)


def _line_breaks(text: str) -> str:
    return "\n" * text.count("\n")
