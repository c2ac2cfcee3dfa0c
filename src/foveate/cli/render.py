"""Lines for people: pieces of text with a style, laid out here and coloured at the very end.

The layout is the same with and without colour. Colour needs a terminal (or FORCE_COLOR), no NO_COLOR, and rich; without
any of them the same lines come out plain.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from foveate.cli.call import supports_utf8

PIPED_WIDTH = 80

Piece = tuple[str, str]
"""Text and its style: a colour's name, `bold`, `dim`, or nothing."""
Line = list[Piece]


def text_line(text: str) -> Line:
    return [(text, "")]


def title(text: str) -> Line:
    return [(text, "bold")]


def wants_color() -> bool:
    """NO_COLOR beats FORCE_COLOR beats what stdout is."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns of the terminal; a pipe has 80, so that what is written to a file does not depend on the window."""
    return shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if sys.stdout.isatty() else PIPED_WIDTH


def print_lines(lines: Iterable[Line]) -> None:
    """The lines on stdout, in colour where that is wanted and possible."""
    console = _console() if wants_color() else None
    for line in map(_trimmed, lines):
        if console is None:
            click.echo("".join(text for text, _ in line))
        else:
            _print_styled(console, line)


def _trimmed(line: Line) -> Line:
    """The line without blanks at its end."""
    kept = list(line)
    while kept and not kept[-1][0].rstrip():
        kept.pop()
    return [*kept[:-1], (kept[-1][0].rstrip(), kept[-1][1])] if kept else []


def print_text(*texts: str) -> None:
    """Plain lines on stdout."""
    print_lines(text_line(text) for text in texts)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, styles: Sequence[str] = ()) -> list[Line]:
    """Aligned columns: the first `left` to the left, the others, which hold numbers, to the right.

    `styles` colours the first cell of each row.
    """
    sizes = [max(len(row[n]) for row in (heads, *rows)) for n in range(len(heads))]

    def cells(row: Sequence[str]) -> list[str]:
        return [
            cell.ljust(size) if n < left else cell.rjust(size) for n, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]

    out: list[Line] = [[("  ".join(cells(heads)), "dim")]]
    for n, row in enumerate(rows):
        first, *rest = cells(row)
        out.append([(first, styles[n] if styles else ""), ("  " + "  ".join(rest) if rest else "", "")])
    return out


def pairs(rows: Iterable[tuple[str, Any]]) -> list[Line]:
    """`name  value` lines, the values aligned; what is empty is left out."""
    kept = [(name, str(value)) for name, value in rows if value not in (None, "", (), [], {})]
    size = max((len(name) for name, _ in kept), default=0)
    return [[(name.ljust(size) + "  ", "dim"), (value, "")] for name, value in kept]


def ellipsis() -> str:
    return "…" if supports_utf8() else "..."


def cut(text: str, size: int) -> str:
    """One line of at most `size` characters."""
    flat = " ".join(text.split())
    mark = ellipsis()
    return flat if len(flat) <= size else flat[: max(0, size - len(mark))].rstrip() + mark


def _console() -> Any:
    """rich's console, or None where the extra is not installed."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(
        file=sys.stdout,
        force_terminal=True,
        color_system="standard",
        highlight=False,
        markup=False,
        emoji=False,
        width=width(),
    )


def _print_styled(console: Any, line: Line) -> None:
    from rich.text import Text

    console.print(Text.assemble(*line), soft_wrap=True)


def value_text(value: Any) -> str:
    """A value of a record as people read it."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else str(value)
