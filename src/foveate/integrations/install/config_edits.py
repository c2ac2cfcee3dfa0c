"""Change the settings of other programs: JSON files as a whole, other files by a block between two marker lines."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from foveate.errors import InputError

Settings = Mapping[str, Any]
Container = TypeVar("Container", dict[str, Any], list[Any])

FIX_FILE = "Fix the file and run the command again; nothing was written."


def parse_json(text: str, name: str) -> dict[str, Any]:
    """Return the JSON object in a settings file; an empty file has no settings.

    Raises InputError for a file that could not be written back without loss: invalid JSON, comments or repeated keys.
    """
    if not text.strip():
        return {}
    try:
        settings = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        # Gemini CLI and Cursor accept comments. Rewriting the file would delete them.
        comments = "Comments and trailing commas would be lost: remove them. " if _has_comments(text) else ""
        reason = "too many levels" if isinstance(error, RecursionError) else error
        raise InputError(f"{name!r} is not plain JSON ({reason}). {comments}{FIX_FILE}") from None
    if not isinstance(settings, dict):
        raise InputError(f"{name!r} must be a JSON object. {FIX_FILE}")
    return settings


def format_json(settings: Settings, before: str) -> str:
    """Return the settings as JSON with the indentation, line ends and end of file of the text `before`."""
    indent = re.search(r"^([ \t]{1,8})\S", before, re.MULTILINE)
    # An ASCII file may need to stay one, and its `\u` escapes are kept that way.
    text = json.dumps(settings, indent=indent[1] if indent else "  ", ensure_ascii=before.isascii())
    text += before[len(before.rstrip()) :] if before.strip() else "\n"
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in before else text


def merge(settings: Settings, parts: Settings, name: str) -> dict[str, Any]:
    """Return the settings with the parts added: objects are merged, lists are extended, and other values are kept."""
    merged = dict(settings)
    for key, part in parts.items():
        if isinstance(part, dict):
            merged[key] = merge(_expect(dict, merged.get(key, {}), key, name), part, name)
        elif isinstance(part, list):
            merged[key] = [*_expect(list, merged.get(key, []), key, name), *part]
        else:
            merged.setdefault(key, part)
    return merged


def _expect(kind: type[Container], value: Any, key: str, name: str) -> Container:
    if not isinstance(value, kind):
        raise InputError(f"{name!r}: {key!r} must be {'an object' if kind is dict else 'a list'}. {FIX_FILE}")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _has_comments(text: str) -> bool:
    without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    return bool(re.search(r"//|/\*|,\s*[}\]]", without_strings))


def insert_block(text: str, lines: Sequence[str], markers: tuple[str, str], name: str) -> str:
    """Return the text with the lines between two marker lines: in place of the previous block, else at the end."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    block = line_end.join((markers[0], *lines, markers[1])) + line_end
    span = block_span(text, markers, name)
    if span:
        return text[: span[0]] + block + text[span[1] :]
    gap = "" if not text else line_end if text.endswith("\n") else line_end * 2
    return text + gap + block


def remove_block(text: str, markers: tuple[str, str], name: str) -> str:
    span = block_span(text, markers, name)
    if not span:
        return text
    before, after = text[: span[0]], text[span[1] :]
    if not after.strip():
        before = re.sub(r"(\r?\n)(?:\r?\n)\Z", r"\1", before)
    return before + after


def block_span(text: str, markers: tuple[str, str], name: str) -> tuple[int, int] | None:
    """Return the start and end of a block with its last line end; None without one. Raises InputError for half a block."""
    begin, end = (re.search(rf"^{re.escape(marker)}[ \t]*(?:\r?\n|\Z)", text, re.MULTILINE) for marker in markers)
    if begin is None and end is None:
        return None
    if begin is None or end is None or end.start() < begin.start():
        raise InputError(f"{name!r} needs the lines {markers[0]!r} and {markers[1]!r} in this order, or neither. {FIX_FILE}")
    return begin.start(), end.end()
