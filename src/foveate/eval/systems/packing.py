"""How every baseline fills a budget: best first, each piece if it still fits, without headings or framing."""

from __future__ import annotations

from collections.abc import Iterable

from foveate import tokens
from foveate.eval.model import Rendered

TRIED = 1000
"""So many pieces are tried, at most."""


def packed(pieces: Iterable[str], budget: int) -> Rendered:
    out, used = [], 0
    for _, piece in zip(range(TRIED), pieces, strict=False):
        text = f"{piece.rstrip()}\n"
        cost = tokens.count(text)
        if used + cost <= budget:
            out.append(text)
            used += cost
    return Rendered("".join(out))
