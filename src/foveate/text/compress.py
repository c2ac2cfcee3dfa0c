"""A long text in fewer tokens: the parts of it that say the most, or the most about a question, word for word.

Comes in: a text, how many tokens it may take (a third of its own, where nobody says) and a question. Goes out: some of its
sentences, lines and code blocks, in their order, with a mark where something was left out and how much. A part is kept
whole or left out whole: nothing is cut inside a code block, a number or a negation. It is deterministic and asks no model.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from math import log

from foveate.errors import InputError
from foveate.text import analysis, tokens
from foveate.text.analysis import NEGATIONS
from foveate.text.summarize import is_structured, split, weights

SHARE = 3
"""003: an item is shortened to a third of its tokens."""

ASKED = 2.0
"""A part that holds every rare word of the question outweighs anything that its own form can say for it."""

HANGING = NEGATIONS | {"don't", "can't", "a", "an", "the", "of", "to", "and", "or"}
"""Words with which nothing may end: what they turn around or announce would be gone."""

GAP = "[…]"
_BLOCK = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?(?:^(?P=fence)[^\n]*(?:\n|\Z)|\Z)", re.DOTALL | re.MULTILINE)


def compress(text: str, max_tokens: int | None = None, query: str = "", counter: str = "o200k") -> str:
    """The text in at most so many tokens; one that fits already comes back as it is."""
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens <= 0):
        raise InputError(f"max_tokens is a number of tokens above 0, not {max_tokens!r}.")
    count = tokens.counter(counter).count
    whole = count(text)
    room = max(1, whole // SHARE) if max_tokens is None else max_tokens
    if whole <= room:
        return text
    units = parts(text)
    scores = _scores(units, query)
    sizes = [count(unit) for unit in units]
    ranked = sorted(range(len(units)), key=lambda n: (-scores[n], n))
    kept: list[int] = []
    used = count(_note(len(units), len(units)))
    for n in ranked:
        if used + sizes[n] <= room:
            kept.append(n)
            used += sizes[n]
    while kept and count(_joined(units, kept)) > room:  # the marks cost, too: the least telling part makes room for them
        kept.pop()
    shorter = _joined(units, kept)
    if kept and count(shorter) <= room:
        return shorter
    return _begun([units[n] for n in ranked], room, count) or (shorter if count(shorter) <= room else "")


def _begun(units: Sequence[str], room: int, count: Callable[[str], int]) -> str:
    """The beginning of the best part that is no code, where not one part fits whole: up to a word that ends no thought
    half-way, and never more than fits."""
    best = next((unit.split() for unit in units if unit.strip() and not _BLOCK.match(unit)), [])
    low, high = 0, len(best)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(" ".join(best[:middle]) + " …") <= room else (low, middle - 1)
    while low and best[low - 1].lower().strip(",;:") in HANGING:
        low -= 1
    return " ".join(best[:low]) + " …" if low else ""


def parts(text: str) -> list[str]:
    """The text in pieces that are kept or left out whole; put together they are the text again."""
    found: list[str] = []
    end = 0
    for block in _BLOCK.finditer(text):
        found += _prose(text[end : block.start()])
        found.append(block[0])
        end = block.end()
    return found + _prose(text[end:])


def _prose(text: str) -> list[str]:
    if not text.strip():
        return [text] if text else []
    if is_structured(text.strip()):
        return text.splitlines(keepends=True)
    found = split(text)
    rest = text[sum(map(len, found)) :]
    return [*found[:-1], found[-1] + rest] if rest else found


def _scores(units: Sequence[str], query: str) -> list[float]:
    """What speaks for each part: the rare words of the question, its place and form, and what the text keeps saying."""
    plain = [unit if unit.strip() else "-" for unit in units]
    own = weights(plain)
    wanted = frozenset(analysis.terms(query))
    if not wanted:
        return own
    held = [wanted.intersection(analysis.terms(unit)) for unit in units]
    counts = Counter(term for terms in held for term in terms)
    rarity = {term: log(1 + len(units) / number) for term, number in counts.items()}
    most = sum(rarity.values()) or 1.0
    return [score + ASKED * sum(map(rarity.__getitem__, terms)) / most for score, terms in zip(own, held, strict=True)]


def _joined(units: Sequence[str], kept: Sequence[int]) -> str:
    """The kept parts in their order, a mark for each gap, and how much is missing."""
    out: list[str] = []
    previous = -1
    for n in sorted(kept):
        if n == previous + 1:
            out.append(units[n])
        elif units[n - 1].endswith("\n") or units[n].startswith("\n"):
            out.append(_spaced(out) + GAP + "\n" + units[n].lstrip("\n"))
        else:
            out.append(_spaced(out) + GAP + " " + units[n].lstrip())
        previous = n
    return "".join(out).rstrip() + _note(len(units) - len(kept), len(units), bool(out))


def _spaced(out: Sequence[str]) -> str:
    return "" if not out or out[-1][-1].isspace() else " "


def _note(left_out: int, whole: int, after: bool = True) -> str:
    return ("\n" if after else "") + f"[{left_out} of {whole} parts left out]"
