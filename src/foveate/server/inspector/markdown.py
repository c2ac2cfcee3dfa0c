"""A document as Markdown, to paste into a report or a prompt. Any page's: what it holds decides how it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DEEPEST = 4
"""Headings go no deeper."""


NOTHING = "Nothing yet."


def markdown(title: str, document: Mapping[str, Any]) -> str:
    return "\n".join([f"# {one_line(title)}", "", *(_parts(document, 2) or [NOTHING])]).rstrip() + "\n"


def _parts(document: Mapping[str, Any], depth: int) -> list[str]:
    """Plain values first, as a list; then what has parts of its own, under a heading each."""
    short = {name: value for name, value in document.items() if _is_plain(value) and not _is_text(value)}
    lines = [f"- {_name(name)}: {cell(value)}" for name, value in short.items() if value not in (None, "")]
    out = [*lines, ""] if lines else []
    for name, value in document.items():
        if name not in short and value not in (None, "", [], {}, ()):
            out += [f"{'#' * min(depth, DEEPEST)} {_name(name)}", "", *_block(value, depth + 1), ""]
    return out


def _block(value: Any, depth: int) -> list[str]:
    if _is_text(value):
        return fenced(str(value))
    if isinstance(value, Mapping):
        return _parts(value, depth)
    if all(isinstance(row, Mapping) for row in value):
        return table(value)
    return [f"- {cell(part)}" for part in value]


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows of the same sort, with a column for everything that any of them says."""
    heads = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(map(_name, heads))} |", "|" + "---|" * len(heads)]
    return [*lines, *(f"| {' | '.join(cell(row.get(name)) for name in heads)} |" for row in rows)]


def fenced(text: str) -> list[str]:
    """A text as it is, whatever fences it holds."""
    mark = "```"
    while mark in text:
        mark += "`"
    return [mark, *text.rstrip("\n").split("\n"), mark]


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{_name(name)} {cell(part)}" for name, part in value.items() if part not in (None, ""))
    if isinstance(value, list | tuple):
        return "; ".join(map(cell, value))
    return one_line(str(value)).replace("|", "\\|")


def one_line(text: str) -> str:
    return " ".join(text.split())


def _name(name: str) -> str:
    return one_line(str(name)).replace("_", " ").replace("|", "\\|")


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Mapping | list | tuple)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and ("\n" in value.strip() or len(value) > 200)
