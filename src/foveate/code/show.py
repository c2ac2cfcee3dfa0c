"""A definition or a file as a model reads it, at three lengths: the lines themselves, its head, one line.

Comes in: what the index knows and the lines of the file as they are now. Goes out: Markdown blocks. Definitions are whole or
not there; where lines of a file are left out, a mark says which.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from foveate.code.derived import IN_PARTS
from foveate.code.graph import Symbol
from foveate.code.languages import fence
from foveate.code.model import MODULE, Lengths

PART_CHARS = 24_000
"""Characters of the definitions that are shown of a larger file: some six thousand tokens."""
BEST_CHARS = 2_400
"""The same at the summary's length."""

HEAD_LINES = 12
"""Lines at the top of a file that are shown with its parts: what it says of itself and imports first."""
HEAD_CHARS = 1_500
"""The same in characters: some files are one endless line."""

NAMES = 8
"""Names that a mark lists of what it leaves out."""

_IMPORT = re.compile(r"(?:import|from|using|use|require|include|package|#\s*include|@import)\b.*")
"""A line that only brings names in: a definition that is shown says itself what it uses."""

_PROSE = frozenset(("section", "block"))
_LEFT_OUT = "⋮ lines "

_TICKS = re.compile(r"`{3,}")


def definition(symbol: Symbol, lines: Sequence[str], inner: Sequence[Symbol], language: str) -> Lengths:
    """A definition: all of its lines; of a class whose members stand for themselves, its head and theirs."""
    place = f"{symbol.path}:{symbol.line}" + (f"-{symbol.end}" if symbol.end > symbol.line else "")
    name = symbol.qualified or "top level"
    micro = line(symbol)
    if symbol.kind == MODULE:
        shown = [line for line in _outside(symbol, lines, inner) if not _IMPORT.match(line)]
    elif inner:
        shown = _outside(symbol, lines, inner, members=True)
    else:
        shown = list(lines[symbol.line - 1 : symbol.end])
    full = f"{place} {name}\n{fenced(_trimmed(shown), language)}"
    doc = first_sentence(symbol.doc)
    summary = f"{place} {_head(symbol)}" + (f"\n{doc}" if doc else "")
    return Lengths(full, summary, micro)


def line(symbol: Symbol) -> str:
    """A definition in one line: where it stands and its head."""
    return f"{symbol.path}:{symbol.line} {_head(symbol)}"


def inside(symbol: Symbol, every: Sequence[Symbol]) -> list[Symbol]:
    """The definitions whose lines are within those of another, and of none between; of a file's rest, the outermost."""
    if symbol.kind != MODULE:
        return [other for other in every if other.parent == symbol.id and symbol.line <= other.line <= symbol.end]
    found: list[Symbol] = []
    for other in sorted((one for one in every if one.kind != MODULE), key=lambda one: (one.line, -one.end)):
        if not found or other.line > found[-1].end:
            found.append(other)
    return found


def _head(symbol: Symbol) -> str:
    """The signature, with the class that it belongs to."""
    if symbol.kind == MODULE:
        return "top level"
    outer = symbol.qualified.rpartition(".")[0]
    signature = symbol.signature or symbol.qualified
    return f"({outer}) {signature}" if outer and outer not in signature else signature


def first_sentence(doc: str) -> str:
    """What a docstring says first, on one line."""
    said = " ".join(doc.split("\n\n")[0].split())
    end = re.search(r"[.!?](?:\s|$)", said)
    return (said[: end.end()].strip() if end else said)[:240]


def _outside(symbol: Symbol, lines: Sequence[str], inner: Sequence[Symbol], members: bool = False) -> list[str]:
    """The lines of a definition that are not those of others inside it; of members, their heads."""
    shown: list[str] = []
    at = symbol.line
    for one in sorted(inner, key=lambda other: other.line):
        if one.line < at or (members and one.line == symbol.line):  # on the line with the head of what holds it
            continue
        shown += lines[at - 1 : one.line - 1]
        if members:
            shown.append(_indent(lines, one) + one.signature + " ...")
        at = one.end + 1
    return shown + list(lines[at - 1 : symbol.end])


def _indent(lines: Sequence[str], symbol: Symbol) -> str:
    line = lines[symbol.line - 1] if symbol.line <= len(lines) else ""
    return line[: len(line) - len(line.lstrip())]


def _trimmed(lines: Sequence[str]) -> list[str]:
    """Without blank lines at both ends, and with no more than one in a row."""
    out: list[str] = []
    for line in lines:
        if line.strip() or (out and out[-1].strip()):
            out.append(line.rstrip())
    while out and not out[-1]:
        out.pop()
    return out


def fenced(lines: Sequence[str], language: str) -> str:
    """Lines as a block of code; its marks are longer than any that the lines hold."""
    text = "\n".join(lines)
    longest = max((len(run) for run in _TICKS.findall(text)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}{fence(language)}\n{text}\n{ticks}"


# --- files ---------------------------------------------------------------------------------------------------------


def file(
    path: str,
    lines: Sequence[str],
    symbols: Sequence[Symbol],
    relevance: Mapping[int, float],
    language: str,
    max_chars: int,
    part_chars: int = PART_CHARS,
) -> Lengths:
    """A file: whole up to `max_chars`, else the definitions that matter, each whole, with marks for the rest.

    One step down, a whole file comes in parts, and one in parts with its best ones only.
    """
    named = [symbol for symbol in symbols if symbol.kind != MODULE]
    micro = file_line(path, len(lines), named)
    room = min(max_chars, max(BEST_CHARS, min(PART_CHARS, part_chars)))

    def parts(chars: int, head: int) -> str:
        above = _head_of_file(lines, named, head, min(HEAD_CHARS, chars // 4))
        chosen = _chosen(named, relevance, lines, chars - _size(lines[:above]))
        return _parts(path, lines, named, chosen, language, above)

    if fits(lines, max_chars):
        full, summary = f"{path}\n{fenced(_ends_trimmed(lines), language)}", parts(room, HEAD_LINES)
    else:
        full, summary = parts(room, HEAD_LINES), parts(min(room, BEST_CHARS), HEAD_LINES // 2)
    if not any(relevance.get(symbol.id) for symbol in named):
        summary = micro
    return Lengths(full, full if len(summary) >= len(full) else summary, micro)


def fits(lines: Sequence[str], chars: int) -> bool:
    """Whether lines can be shown whole in so many characters."""
    return _size(lines) <= chars


def file_line(path: str, number: int, symbols: Sequence[Symbol]) -> str:
    """A file in one line: how many lines it has, and what it defines first."""
    tops = [symbol.name for symbol in symbols if symbol.parent is None or symbol.kind == "class"]
    names = list(dict.fromkeys(name for name in tops if name))
    listed = f": {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}" if names else ""
    return f"{path} ({number:,} lines){listed}"


def _ends_trimmed(lines: Sequence[str]) -> list[str]:
    out = [line.rstrip() for line in lines]
    while out and not out[-1]:
        out.pop()
    return out


def _chosen(named: Sequence[Symbol], relevance: Mapping[int, float], lines: Sequence[str], room: int) -> list[Symbol]:
    """The most relevant definitions that fit; one that holds others only where none of them is chosen."""
    chosen: list[Symbol] = []
    for symbol in sorted((one for one in named if relevance.get(one.id)), key=lambda one: (-relevance[one.id], one.line)):
        if any(_overlap(symbol, other) for other in chosen):
            continue
        size = _size(lines[symbol.line - 1 : symbol.end])
        if size <= room:
            chosen.append(symbol)
            room -= size
    return sorted(chosen, key=lambda symbol: symbol.line)


def _size(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines)


def _head_of_file(lines: Sequence[str], named: Sequence[Symbol], most: int, room: int) -> int:
    """How many lines at the top are shown: they cut no definition in two, unless it holds others or is prose."""
    holders = {symbol.parent for symbol in named}
    cut = (one for one in named if one.line <= most < one.end and one.id not in holders and one.kind not in _PROSE)
    last = min((len(lines), most, *(symbol.line - 1 for symbol in cut)))
    while _size(lines[:last]) > room:
        last -= 1
    return last


def _overlap(one: Symbol, other: Symbol) -> bool:
    return one.line <= other.end and other.line <= one.end


def _parts(
    path: str, lines: Sequence[str], named: Sequence[Symbol], chosen: Sequence[Symbol], language: str, head: int
) -> str:
    """The chosen definitions in place, the heads of what encloses them, and marks for what is left out."""
    by_id = {symbol.id: symbol for symbol in named}
    kept: set[int] = set(range(1, head + 1))
    for symbol in chosen:
        kept.update(range(symbol.line, symbol.end + 1))
        outer = by_id.get(symbol.parent) if symbol.parent is not None else None
        while outer is not None:
            kept.add(_first_code_line(lines, outer))
            outer = by_id.get(outer.parent) if outer.parent is not None else None
    shown = list(_with_marks(lines, kept, named))
    parts = IN_PARTS if any(line.startswith(_LEFT_OUT) for line in shown) else ""
    return f"{path} ({len(lines):,} lines{parts})\n{fenced(shown, language)}"


def _first_code_line(lines: Sequence[str], symbol: Symbol) -> int:
    """The line with the head of a class: below its decorators and comments."""
    start = symbol.signature.split("(")[0].split("{")[0].strip()[:40]
    for number in range(symbol.line, min(symbol.end, symbol.line + 30, len(lines)) + 1):
        if start and start in " ".join(lines[number - 1].split()):
            return number
    return symbol.line


def _with_marks(lines: Sequence[str], kept: Collection[int], named: Sequence[Symbol]) -> Iterator[str]:
    at = 1
    while at <= len(lines):
        if at in kept:
            yield lines[at - 1].rstrip()
            at += 1
            continue
        end = at
        while end < len(lines) and end + 1 not in kept:
            end += 1
        if any(line.strip() for line in lines[at - 1 : end]):
            yield _mark(at, end, named)
        elif end < len(lines):
            yield ""
        at = end + 1


def _mark(first: int, last: int, named: Sequence[Symbol]) -> str:
    inside = [symbol.qualified for symbol in named if first <= symbol.line and symbol.end <= last]
    names = ", ".join(inside[:NAMES]) + (", ..." if len(inside) > NAMES else "")
    return f"{_LEFT_OUT}{first}-{last} left out" + (f": {names}" if names else "")
