"""Shortens a text to a number of tokens by leaving out the sentences, lines and code blocks that say the least.

The rest stays unchanged and in order, with a mark at every gap and a note of how much is missing. Sentences and code blocks
are kept or left out as a whole, so that no number or negation loses its sentence. No model is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from math import log

from foveate.errors import InputError
from foveate.text import analysis, tokens
from foveate.text.analysis import NEGATIONS
from foveate.text.markdown import parse_fence, split_code
from foveate.text.structured import is_structured
from foveate.text.summarize import sentence_scores, split_sentences

DEFAULT_RATIO = 3
"""003: an item is shortened to a third of its tokens."""

QUERY_WEIGHT = 2.0
"""A part with every rare word of the query outweighs anything that its own form can add."""

NON_FINAL_WORDS = NEGATIONS | {"don't", "can't", "a", "an", "the", "of", "to", "and", "or"}
"""A cut text may not end with these: the words that they negate or announce would be missing."""

GAP = "[…]"


def compress(text: str, max_tokens: int | None = None, query: str = "", counter: str = "o200k") -> str:
    """Return the text in at most `max_tokens` tokens, or in a third of its own. A text that fits is returned as it is."""
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens <= 0):
        raise InputError(f"max_tokens must be a positive whole number, got {max_tokens!r}.")
    count = tokens.counter(counter).count
    size = count(text)
    limit = max(1, size // DEFAULT_RATIO) if max_tokens is None else max_tokens
    if size <= limit:
        return text
    parts = split_parts(text)
    scores = _scores(parts, query)
    sizes = [count(part) for part in parts]
    ranked = sorted(range(len(parts)), key=lambda n: (-scores[n], n))
    selected: list[int] = []
    used = count("\n" + _note(len(parts), len(parts)))
    for n in ranked:
        if used + sizes[n] <= limit:
            selected.append(n)
            used += sizes[n]
    selected = selected[: _most_that_fit(parts, selected, limit, count)]
    if selected:
        return _join_with_gaps(parts, selected)
    note = _note(len(parts), len(parts))
    return _truncate_best_part([parts[n] for n in ranked], limit, count) or (note if count(note) <= limit else "")


def split_parts(text: str) -> list[str]:
    """Split a text into the pieces that are kept or left out whole. Joined together, they are the text."""
    parts: list[str] = []
    for part, block in split_code(text):
        parts += [part] if block else _split_prose(part)
    return parts


def _split_prose(text: str) -> list[str]:
    if not text.strip():
        return [text]
    if is_structured(text.strip()):
        return text.splitlines(keepends=True)
    sentences = split_sentences(text)
    blanks = text[sum(map(len, sentences)) :]
    return [*sentences[:-1], sentences[-1] + blanks]


def _scores(parts: Sequence[str], query: str) -> list[float]:
    """Score each part by its form and place and, if there is a query, by the query's rare words in it."""
    scores = sentence_scores([part if part.strip() else "-" for part in parts])
    query_terms = frozenset(analysis.terms(query))
    if not query_terms:
        return scores
    shared = [query_terms.intersection(analysis.terms(part)) for part in parts]
    counts = Counter(term for terms in shared for term in terms)
    idf = {term: log(1 + len(parts) / number) for term, number in counts.items()}
    total = sum(idf.values()) or 1.0
    shares = [sum(idf[term] for term in terms) / total for terms in shared]
    return [score + QUERY_WEIGHT * share for score, share in zip(scores, shares, strict=True)]


def _most_that_fit(parts: Sequence[str], selected: Sequence[int], limit: int, count: Callable[[str], int]) -> int:
    """Return how many of the selected parts fit together with the gap marks between them, which cost tokens, too."""

    def is_too_long(number: int) -> bool:
        return count(_join_with_gaps(parts, selected[:number])) > limit

    if not selected or not is_too_long(len(selected)):
        return len(selected)
    # Not one after the other: of a text of short parts, thousands must go, and each attempt counts the whole text.
    return bisect_left(range(len(selected)), True, lo=1, key=is_too_long) - 1


def _truncate_best_part(ranked: Sequence[str], limit: int, count: Callable[[str], int]) -> str:
    """Return the beginning of the best part that is not code, for a limit in which no part fits whole."""
    words = next((part.split() for part in ranked if part.strip() and not parse_fence(part.split("\n", 1)[0])), [])
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(" ".join(words[:middle]) + " …") <= limit else (low, middle - 1)
    while low and words[low - 1].lower().strip(",;:") in NON_FINAL_WORDS:
        low -= 1
    return " ".join(words[:low]) + " …" if low else ""


def _join_with_gaps(parts: Sequence[str], selected: Sequence[int]) -> str:
    """Join the selected parts in order, with a mark at each gap and a note at the end."""
    text = ""
    previous = -1
    for n in sorted(selected):
        part = parts[n]
        if n > previous + 1:
            text += "" if not text or text[-1].isspace() else " "
            starts_line = parts[n - 1].endswith("\n") or part.startswith("\n")
            part = f"{GAP}\n{part.lstrip(chr(10))}" if starts_line else f"{GAP} {part.lstrip()}"
        text += part
        previous = n
    note = _note(len(parts) - len(selected), len(parts))
    return f"{text.rstrip()}\n{note}" if text else note


def _note(left_out: int, total: int) -> str:
    return f"[{left_out} of {total} parts left out]"
