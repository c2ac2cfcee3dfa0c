"""Short forms of text that is made of lines and not of sentences: code, data, logs, diffs and stack traces."""

from __future__ import annotations

import re
from collections.abc import Sequence

from foveate.text.format import ELLIPSIS, fits_width, plain_line, text_width, truncate_to_width
from foveate.text.markdown import split_code

SAMPLE_CHARS, SAMPLE_LINES = 400, 60
"""How much of a text decides whether it is structured."""

MAX_SCANNED_CHARS = 24_000
"""In this much of a text, fences are looked for."""

MIN_CODE_SHARE, MIN_CODE_LINES = 0.5, 2
"""From this share and number of code-like lines on, a text is treated as lines."""

MIN_SYMBOL_SHARE = 0.03
"""Plain prose has one symbol in a hundred characters, a log one in twenty."""

MAX_KEPT_ERRORS = 2
MAX_LINE_SHARE = 3
"""One line may take a third of a summary, so that a long one leaves room for others."""

SHORT_WIDTH = 20
"""A line this narrow (five tokens) says too little alone."""

_SYMBOL = re.compile(r"[][{}()<>;=\":/\\_@#$|]")
_CODE_LINE = re.compile(
    r"\s*(?:[}\])]|[\[{(]\s*$|#!|//|/\*|@@ |</?\w[^>]*>|\"[^\"]*\"\s*:"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d|\[?\d\d:\d\d:\d\d|\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b"
    r"|Traceback \(|File \"|at [\w$.<>]+ ?\(|Caused by: |[\w.]+(?:Error|Exception)\b(?::|$)"
    r"|(?:import|from|package|using|use|#include) [\w.:<\"/{*]+(?: import .*)?;?\s*$"
    r"|(?:async |pub |export |public |private |static )*(?:def|class|func|fn|function|struct|enum|interface) \w"
    r"|(?:return|raise|yield|assert|const|let|var)\b|[\w.\[\]\"']+ (?:=|:=|\+=|-=) \S|[\w.]+\(.*\)\s*$)"
    r"|.*[{};]\s*$|(?: {4}|\t)\s*[^\s*\d-]"
)
_ERROR_LINE = re.compile(
    r"[\w.]*(?:Error|Exception|Interrupt|Exit)\b(?::\s|$)|Caused by: |Exception in thread"
    r"|.*\b(?:ERROR|FATAL|CRITICAL|FAILED|panic:|error:|fatal:)"
)
_TRACE_LINE = re.compile(r"Traceback \(|\s+at [\w$.<>]+ ?\(")
_BOILERPLATE_LINE = re.compile(r"\s*(?:```|#!|import |from \S+ import|package |using |#include|[\"'/*]*$|(?:\W|\d)*$)")
_CLASS_LINE = re.compile(r"(?:@\w+\s+)?(?:(?:export|public|abstract|final|pub) )*(?:class|struct|interface|enum|trait) \w+")
_METHOD = re.compile(r"\s+(?:async )?(?:def|fn|func|pub fn) ([A-Za-z]\w*)")
_YAML_LINE = re.compile(r"\s*(?:- )?[\w./-]+:(?:\s+\S.{0,60})?$|\s*- \S+$|\s*#|---$")
_YAML_NESTING = re.compile(r"^\s*[\w.-]+:\n(?: +[\w.-]+:|\s*- )", re.MULTILINE)
_YAML_KEY_LINE = re.compile(r"\s*(?:kind|name|title|image|description): *\S")
_JSON_KEYS = ("message", "error", "detail", "title", "name", "summary", "description")
"""Keys whose values say what a document is about, the most informative first."""
_JSON_VALUE = re.compile(rf'"({"|".join(_JSON_KEYS)})"\s*:\s*"([^"\\]{{3,}})')


def is_structured(text: str) -> bool:
    """Return whether most lines of a text are code, data, a log or a stack trace."""
    if _is_json(text) or _is_diff(text):
        return True
    if "\n" not in text:
        return False
    if _is_yaml(text):
        return True
    text = text[:MAX_SCANNED_CHARS]
    if "```" in text:
        text = "".join(part for part, block in split_code(text) if not block).strip()
        if fits_width(text, SHORT_WIDTH):
            return True
    sample = text[:SAMPLE_CHARS]
    if len(_SYMBOL.findall(sample)) < MIN_SYMBOL_SHARE * len(sample):
        return False
    lines = _sample_lines(text)
    code = sum(1 for line in lines if _SYMBOL.search(line) and _CODE_LINE.match(line))
    return code >= MIN_CODE_LINES and code >= MIN_CODE_SHARE * len(lines)


def key_line(lines: Sequence[str]) -> str:
    """Return the line that says most about the others, or a line made of the most informative parts."""
    first, last = lines[0].lstrip(), lines[-1].rstrip()
    if _is_diff(first):
        return _describe_diff(lines)
    if _is_json(first + last):
        return _describe_json("\n".join(lines))
    errors = [line for line in lines if _ERROR_LINE.match(line)]
    if any(_TRACE_LINE.match(line) for line in lines):
        return errors[-1] if errors else lines[-1]
    if errors:
        return errors[0]
    start = next((n for n, line in enumerate(lines) if not _BOILERPLATE_LINE.match(line)), 0)
    line, following = lines[start].strip(), lines[start + 1 :]
    if declaration := _CLASS_LINE.match(line):
        members = _describe_class(following)
        return f"{declaration[0]}: {members}" if members else line
    if all(map(_YAML_LINE.match, lines[:SAMPLE_LINES])):
        return _describe_yaml(lines)
    if fits_width(line, SHORT_WIDTH):
        return "; ".join(plain_line(part) for part in (line, _first_informative(following)) if part)
    return line


def summarize_lines(lines: Sequence[str], max_width: int) -> str:
    """Return the first and last lines and the last errors, with `…` where lines are left out."""
    if len(lines) == 1:
        return truncate_to_width(lines[0].strip(), max_width)
    errors = [n for n, line in enumerate(lines) if _ERROR_LINE.match(line)][-MAX_KEPT_ERRORS:]
    room = max_width - (text_width(ELLIPSIS) + 1) * (len(errors) + 1)
    outside_in = [n // 2 if n % 2 == 0 else len(lines) - 1 - n // 2 for n in range(len(lines))]
    kept: dict[int, str] = {}
    for n in (*errors, *outside_in):
        line = truncate_to_width(lines[n], max_width // MAX_LINE_SHARE)
        room -= 0 if n in kept else text_width(line) + 1
        if room < 0:
            break
        kept[n] = line
    parts: list[str] = []
    for previous, n in zip([-1, *sorted(kept)], sorted(kept), strict=False):
        parts += [ELLIPSIS, kept[n]] if n > previous + 1 else [kept[n]]
    return "\n".join(parts).strip()


# --- formats ---------------------------------------------------------------------------------------------------------


def _sample_lines(text: str) -> list[str]:
    return [line for line in text.splitlines()[:SAMPLE_LINES] if line and not line.isspace()]


def _is_json(text: str) -> bool:
    return text[0] in "{[" and text[-1] in "}]"


def _is_diff(text: str) -> bool:
    return text.startswith(("diff --git ", "--- a/"))


def _is_yaml(text: str) -> bool:
    if not _YAML_NESTING.search(text, 0, 4 * SAMPLE_CHARS):
        return False
    lines = _sample_lines(text)
    return len(lines) > 2 and all(map(_YAML_LINE.match, lines))


def _describe_diff(lines: Sequence[str]) -> str:
    names = [line[4:].strip() for line in lines if line.startswith(("--- ", "+++ "))][:2]
    name = next((name for name in names if name != "/dev/null"), "")
    changes = [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---")) and line[1:].strip()]
    change = next((line for line in changes if line[0] == "+"), changes[0] if changes else "")
    return f"diff {name}: {change[0]}{change[1:].strip()}" if name and change and len(names) > 1 else lines[0]


def _describe_json(text: str) -> str:
    values: dict[str, str] = {}
    for match in _JSON_VALUE.finditer(text):
        values.setdefault(match[1], match[2])
    return next((f"{key}: {values[key]}" for key in _JSON_KEYS if values.get(key, "").strip()), text)


def _describe_class(body: Sequence[str]) -> str:
    """Return a docstring's first line, else the names of the methods, else the next line."""
    if body and body[0].lstrip().startswith(('"""', "'''")) and (docstring := body[0].strip().strip("\"'").strip()):
        return docstring
    methods = [match[1] for line in body if (match := _METHOD.match(line))]
    return ", ".join(methods) or _first_informative(body)


def _describe_yaml(lines: Sequence[str]) -> str:
    named = [line for line in lines if _YAML_KEY_LINE.match(line)]
    return "; ".join(dict.fromkeys(map(plain_line, (named if len(named) > 1 else lines)[:2])))


def _first_informative(lines: Sequence[str]) -> str:
    return next((line.strip() for line in lines if not _BOILERPLATE_LINE.match(line)), "")
