"""Renders definitions and files as Markdown at three levels of detail: the code, its head, one line.

A definition is shown whole or not at all. If lines of a file are left out, a mark names them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from foveate.code.languages import fence_tag
from foveate.code.model import MODULE, RenderedLevels, Symbol
from foveate.code.records import IN_PARTS_SUFFIX
from foveate.text.markdown import code_block

MAX_PARTS_CHARS = 24_000
"""Maximum size of the definitions that are shown of a large file: about six thousand tokens."""
MAX_SUMMARY_CHARS = 2_400
"""The same at the summary level."""

HEAD_LINES = 12
"""Lines at the top of a file that are shown with its parts: docstring and first imports."""
HEAD_CHARS = 1_500
"""The same in characters, because some files are one very long line."""

MAX_OMITTED_NAMES = 8
"""Names of omitted definitions that a mark lists."""

_IMPORT = re.compile(r"(?:import|from|using|use|require|include|package|#\s*include|@import)\b.*")
"""Import lines are not shown: the definitions show what they use."""

_PROSE = frozenset(("section", "block"))
_OMITTED_LINES_MARKER = "⋮ lines "


def definition(symbol: Symbol, lines: Sequence[str], children: Sequence[Symbol], language: str) -> RenderedLevels:
    """Render a definition with all of its lines. A class with separate members shows its head and theirs."""
    place = f"{symbol.path}:{symbol.start_line}" + (f"-{symbol.end_line}" if symbol.end_line > symbol.start_line else "")
    name = symbol.qualified_name or "top level"
    micro = line(symbol)
    if symbol.kind == MODULE:
        shown = [line for line in _own_lines(symbol, lines, children) if not _IMPORT.match(line)]
    elif children:
        shown = _own_lines(symbol, lines, children, members=True)
    else:
        shown = list(lines[symbol.start_line - 1 : symbol.end_line])
    full = f"{place} {name}\n{_code_block(_collapse_blank_lines(shown), language)}"
    doc = first_sentence(symbol.doc)
    summary = f"{place} {_head(symbol)}" + (f"\n{doc}" if doc else "")
    return RenderedLevels(full, summary, micro)


def line(symbol: Symbol) -> str:
    """Render a definition as one line: its place and its head."""
    return f"{symbol.path}:{symbol.start_line} {_head(symbol)}"


def direct_children(symbol: Symbol, symbols: Sequence[Symbol]) -> list[Symbol]:
    """Return the definitions directly inside another one; for the rest of a file, its outermost definitions."""
    if symbol.kind != MODULE:
        return [
            other
            for other in symbols
            if other.parent == symbol.id and symbol.start_line <= other.start_line <= symbol.end_line
        ]
    found: list[Symbol] = []
    for other in sorted((one for one in symbols if one.kind != MODULE), key=lambda one: (one.start_line, -one.end_line)):
        if not found or other.start_line > found[-1].end_line:
            found.append(other)
    return found


def _head(symbol: Symbol) -> str:
    """Return the signature with the name of its class."""
    if symbol.kind == MODULE:
        return "top level"
    outer = symbol.qualified_name.rpartition(".")[0]
    signature = symbol.signature or symbol.qualified_name
    return f"({outer}) {signature}" if outer and outer not in signature else signature


def first_sentence(doc: str) -> str:
    """Return the first sentence of a docstring on one line."""
    said = " ".join(doc.split("\n\n")[0].split())
    end = re.search(r"[.!?](?:\s|$)", said)
    return (said[: end.end()].strip() if end else said)[:240]


def _own_lines(symbol: Symbol, lines: Sequence[str], children: Sequence[Symbol], members: bool = False) -> list[str]:
    """Return the lines of a definition without those of its children. With `members`, their heads take their places."""
    shown: list[str] = []
    at = symbol.start_line
    for one in sorted(children, key=lambda other: other.start_line):
        if one.start_line < at or (
            members and one.start_line == symbol.start_line
        ):  # it begins on the line of the enclosing head
            continue
        shown += lines[at - 1 : one.start_line - 1]
        if members:
            shown.append(_indent(lines, one) + one.signature + " ...")
        at = one.end_line + 1
    return shown + list(lines[at - 1 : symbol.end_line])


def _indent(lines: Sequence[str], symbol: Symbol) -> str:
    line = lines[symbol.start_line - 1] if symbol.start_line <= len(lines) else ""
    return line[: len(line) - len(line.lstrip())]


def _collapse_blank_lines(lines: Sequence[str]) -> list[str]:
    """Remove blank lines at both ends, and all but one of several in a row."""
    out: list[str] = []
    for line in lines:
        if line.strip() or (out and out[-1].strip()):
            out.append(line.rstrip())
    while out and not out[-1]:
        out.pop()
    return out


def _code_block(lines: Sequence[str], language: str) -> str:
    return code_block("\n".join(lines), fence_tag(language))


# --- files ---------------------------------------------------------------------------------------------------------


def file(
    path: str,
    lines: Sequence[str],
    symbols: Sequence[Symbol],
    relevance: Mapping[int, float],
    language: str,
    max_chars: int,
    part_chars: int = MAX_PARTS_CHARS,
) -> RenderedLevels:
    """Render a file: whole up to `max_chars`, else its most relevant definitions with marks for the omitted lines.

    At the summary level a whole file is shown in parts, and a file in parts with its best ones only.
    """
    named = [symbol for symbol in symbols if symbol.kind != MODULE]
    micro = file_line(path, len(lines), named)
    room = min(max_chars, max(MAX_SUMMARY_CHARS, min(MAX_PARTS_CHARS, part_chars)))

    def parts(chars: int, head: int) -> str:
        above = _header_line_count(lines, named, head, min(HEAD_CHARS, chars // 4))
        chosen = _select_definitions(named, relevance, lines, chars - _size(lines[:above]))
        return _parts(path, lines, named, chosen, language, above)

    if fits(lines, max_chars):
        full, summary = f"{path}\n{_code_block(_strip_blank_ends(lines), language)}", parts(room, HEAD_LINES)
    else:
        full, summary = parts(room, HEAD_LINES), parts(min(room, MAX_SUMMARY_CHARS), HEAD_LINES // 2)
    if not any(relevance.get(symbol.id) for symbol in named):
        summary = micro
    return RenderedLevels(full, full if len(summary) >= len(full) else summary, micro)


def fits(lines: Sequence[str], chars: int) -> bool:
    """Return whether lines fit in this many characters."""
    return _size(lines) <= chars


def file_line(path: str, number: int, symbols: Sequence[Symbol]) -> str:
    """Render a file as one line: its length and its first definitions."""
    tops = [symbol.name for symbol in symbols if symbol.parent is None or symbol.kind == "class"]
    names = list(dict.fromkeys(name for name in tops if name))
    listed = f": {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}" if names else ""
    return f"{path} ({number:,} lines){listed}"


def _strip_blank_ends(lines: Sequence[str]) -> list[str]:
    out = [line.rstrip() for line in lines]
    while out and not out[-1]:
        out.pop()
    return out


def _select_definitions(
    symbols: Sequence[Symbol], relevance: Mapping[int, float], lines: Sequence[str], max_chars: int
) -> list[Symbol]:
    """Return the most relevant definitions that fit, without those that overlap a better one."""
    chosen: list[Symbol] = []
    for symbol in sorted(
        (one for one in symbols if relevance.get(one.id)), key=lambda one: (-relevance[one.id], one.start_line)
    ):
        if any(_overlap(symbol, other) for other in chosen):
            continue
        size = _size(lines[symbol.start_line - 1 : symbol.end_line])
        if size <= max_chars:
            chosen.append(symbol)
            max_chars -= size
    return sorted(chosen, key=lambda symbol: symbol.start_line)


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _header_line_count(lines: Sequence[str], symbols: Sequence[Symbol], max_lines: int, max_chars: int) -> int:
    """Return the number of lines at the top to show. They cut no definition, unless it has members or is prose."""
    holders = {symbol.parent for symbol in symbols}
    cut = (
        one
        for one in symbols
        if one.start_line <= max_lines < one.end_line and one.id not in holders and one.kind not in _PROSE
    )
    last = min((len(lines), max_lines, *(symbol.start_line - 1 for symbol in cut)))
    while _size(lines[:last]) > max_chars:
        last -= 1
    return last


def _overlap(a: Symbol, b: Symbol) -> bool:
    return a.start_line <= b.end_line and b.start_line <= a.end_line


def _parts(
    path: str, lines: Sequence[str], symbols: Sequence[Symbol], chosen: Sequence[Symbol], language: str, head: int
) -> str:
    """Render the chosen definitions, the heads of enclosing ones, and marks for the omitted lines."""
    by_id = {symbol.id: symbol for symbol in symbols}
    kept: set[int] = set(range(1, head + 1))
    for symbol in chosen:
        kept.update(range(symbol.start_line, symbol.end_line + 1))
        outer = by_id.get(symbol.parent) if symbol.parent is not None else None
        while outer is not None:
            kept.add(_first_code_line(lines, outer))
            outer = by_id.get(outer.parent) if outer.parent is not None else None
    shown = list(_with_marks(lines, kept, symbols))
    parts = IN_PARTS_SUFFIX if any(line.startswith(_OMITTED_LINES_MARKER) for line in shown) else ""
    return f"{path} ({len(lines):,} lines{parts})\n{_code_block(shown, language)}"


def _first_code_line(lines: Sequence[str], symbol: Symbol) -> int:
    """Return the line with the head of a class, which is below its decorators and comments."""
    start = symbol.signature.split("(")[0].split("{")[0].strip()[:40]
    for number in range(symbol.start_line, min(symbol.end_line, symbol.start_line + 30, len(lines)) + 1):
        if start and start in " ".join(lines[number - 1].split()):
            return number
    return symbol.start_line


def _with_marks(lines: Sequence[str], kept_lines: Collection[int], symbols: Sequence[Symbol]) -> Iterator[str]:
    at = 1
    while at <= len(lines):
        if at in kept_lines:
            yield lines[at - 1].rstrip()
            at += 1
            continue
        end = at
        while end < len(lines) and end + 1 not in kept_lines:
            end += 1
        if any(line.strip() for line in lines[at - 1 : end]):
            yield _mark(at, end, symbols)
        elif end < len(lines):
            yield ""
        at = end + 1


def _mark(first: int, last: int, symbols: Sequence[Symbol]) -> str:
    inside = [symbol.qualified_name for symbol in symbols if first <= symbol.start_line and symbol.end_line <= last]
    names = ", ".join(inside[:MAX_OMITTED_NAMES]) + (", ..." if len(inside) > MAX_OMITTED_NAMES else "")
    return f"{_OMITTED_LINES_MARKER}{first}-{last} left out" + (f": {names}" if names else "")
