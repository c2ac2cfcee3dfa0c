"""Output for people: lines of styled text, tables, and the progress of long work.

The layout is the same with and without colour. Colour needs a terminal (or FORCE_COLOR) and no NO_COLOR.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any

import click

PIPED_WIDTH = 80

Piece = tuple[str, str]
"""Text and its style: the name of a colour, `bold`, `dim`, or nothing."""
Line = list[Piece]


def text_line(text: str) -> Line:
    return [(text, "")]


def title(text: str) -> Line:
    return [(text, "bold")]


def supports_utf8() -> bool:
    """Return whether stdout can print every character."""
    return (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "") in ("utf8", "utf8sig")


def wants_color() -> bool:
    """Return whether output has colours: NO_COLOR wins over FORCE_COLOR, and both over the kind of stdout."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Return the columns of the terminal. A pipe has 80, so that a file does not depend on the window."""
    return shutil.get_terminal_size((PIPED_WIDTH, 24)).columns if sys.stdout.isatty() else PIPED_WIDTH


def print_lines(lines: Iterable[Line]) -> None:
    """Print lines on stdout, in colour if it is wanted."""
    colored = wants_color()
    for line in map(_trim, lines):
        click.echo("".join(_styled(*piece) if colored else piece[0] for piece in line), color=colored)


def _styled(text: str, style: str) -> str:
    if style in ("bold", "dim"):
        return click.style(text, bold=style == "bold" or None, dim=style == "dim" or None)
    return click.style(text, fg=style) if style else text


def _trim(line: Line) -> Line:
    """Return a line without blanks at its end."""
    kept = list(line)
    while kept and not kept[-1][0].rstrip():
        kept.pop()
    return [*kept[:-1], (kept[-1][0].rstrip(), kept[-1][1])] if kept else []


def print_text(*texts: str) -> None:
    """Print plain lines on stdout."""
    print_lines(text_line(text) for text in texts)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, style: str = "") -> list[Line]:
    """Return aligned columns: the first `left` to the left, and the others, which hold numbers, to the right.

    `style` colours the first cell of each row.
    """
    sizes = [max(len(row[n]) for row in (heads, *rows)) for n in range(len(heads))]

    def cells(row: Sequence[str]) -> list[str]:
        return [
            cell.ljust(size) if n < left else cell.rjust(size) for n, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]

    out: list[Line] = [[("  ".join(cells(heads)), "dim")]]
    for row in rows:
        first, *rest = cells(row)
        out.append([(first, style), ("  " + "  ".join(rest) if rest else "", "")])
    return out


def pairs(rows: Iterable[tuple[str, Any]]) -> list[Line]:
    """Return `name  value` lines with aligned values, without the empty ones."""
    kept = [(name, str(value)) for name, value in rows if value not in (None, "", (), [], {})]
    size = max((len(name) for name, _ in kept), default=0)
    return [[(name.ljust(size) + "  ", "dim"), (value, "")] for name, value in kept]


def ellipsis() -> str:
    return "…" if supports_utf8() else "..."


def cut(text: str, size: int) -> str:
    """Return a text as one line of at most `size` characters."""
    flat = " ".join(text.split())
    mark = ellipsis()
    return flat if len(flat) <= size else flat[: max(0, size - len(mark))].rstrip() + mark


def value_text(value: Any) -> str:
    """Return a value of a record as text."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else str(value)


# --- progress --------------------------------------------------------------------------------------------------------

DRAW_AFTER_S = 0.3
"""Seconds of work before anything is drawn."""

DRAW_INTERVAL_S = 0.1
"""Seconds between two drawings."""


class Bar:
    """The progress of long work: a line on stderr, which is cleared at the end.

    Call it with `(done, total)`; `doing` and `unit` may change between two calls. Or draw a text of your own.
    """

    def __init__(self, doing: str = "", unit: str = "") -> None:
        self.doing, self.unit = doing, unit
        self._began = self._drawn = 0.0

    def __call__(self, done: int, total: int) -> None:
        self._began = self._began or monotonic()
        if done >= total:
            self.close()
        elif monotonic() - self._began > DRAW_AFTER_S:
            self.draw(f"{self.doing} {done:,} of {total:,} {self.unit}")

    def draw(self, text: str) -> None:
        """Draw the line, unless it was just drawn."""
        if monotonic() - self._drawn > DRAW_INTERVAL_S and os.environ.get("TERM") != "dumb":
            self._drawn = monotonic()
            print(f"\rfoveate: {text}\033[K", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Clear the line."""
        if self._drawn:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        self._began = self._drawn = 0.0


def progress_bar(doing: str, unit: str) -> Bar | None:
    """Return a bar that is cleared when the command ends; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        return None
    bar = Bar(doing, unit)
    click.get_current_context().call_on_close(bar.close)
    return bar
