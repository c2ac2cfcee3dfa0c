"""Words that stand for one another: who asks for kids also means children, and who asks for pets also means a dog.

Comes in: the terms of a question. Goes out: other terms to look for, each with the one that it stands for. The table is
`related.txt`, readable and in general English; a store's own names and aliases are the work of `signals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.resources import files

from foveate import lexical

MOST_ASKED = 24
"""A question with more terms than this describes itself: it is a task or a report, and needs no other words."""


def related(terms: Iterable[str]) -> dict[str, str]:
    """Terms beside those asked for, each with the asked one that it stands for."""
    asked = dict.fromkeys(terms)
    if len(asked) > MOST_ASKED:
        return {}
    table = _table()
    return {other: term for term in reversed(asked) for other in table.get(term, ()) if other not in asked}


@lru_cache(maxsize=1)
def _table() -> dict[str, list[str]]:
    """The words that stand for each word; a first use pays for it, so it is built in bulk."""
    table: dict[str, list[str]] = {}
    for word, others in _pairs():
        table.setdefault(word, []).extend(other for other in others if other != word)
    return table


def _pairs() -> Iterator[tuple[str, list[str]]]:
    """`a b c`: each stands for each. `a > b c`: who asks for a also means b and c, and not the other way round."""
    text = (files("foveate") / "related.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    stems = iter(lexical.stems([word for line in lines for word in line]))
    for line in lines:
        group = [next(stems) for _ in line]
        if line[1] == ">":
            yield group[0], group[2:]
        else:
            yield from ((word, group) for word in group)
