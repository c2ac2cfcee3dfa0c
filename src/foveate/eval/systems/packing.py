"""How every baseline fills a budget: best first, each piece if it still fits, without headings or framing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from foveate.eval.model import Rendered
from foveate.text import tokens

TRIED = 1000
"""So many pieces are tried, at most."""


def packed(pieces: Iterable[str], budget: int) -> Rendered:
    return Rendered("".join(fitting(pieces, budget)))


def fitting(pieces: Iterable[str], budget: int) -> list[str]:
    """Those that are taken, in the order given, as they are rendered."""
    out, used = [], 0
    for _, piece in zip(range(TRIED), pieces, strict=False):
        text = f"{piece.rstrip()}\n"
        cost = _cost(text)
        if used + cost <= budget:
            out.append(text)
            used += cost
    return out


@lru_cache(maxsize=100_000)
def _cost(text: str) -> int:
    """The same pieces are tried for many questions and budgets."""
    return tokens.count(text)


def under_path(path: str, source: str) -> str:
    """A piece of code as baselines show it."""
    return f"# {path}\n{source.rstrip()}"
