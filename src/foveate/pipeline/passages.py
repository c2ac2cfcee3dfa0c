"""Cut the passage of a long record that answers the request: its best sentences, word for word. Pure.

A passage is a level of detail between the summary and the full text. It is given by positions in the text, so that a receipt
can hold it and a replay gives the same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from foveate.pipeline.relevance import is_estimated
from foveate.text import analysis
from foveate.types import LEVELS, Candidate, Passage, Profile, Signals

MAX_PASSAGE_CHARS = 420
"""About a hundred tokens: three or four sentences."""

MAX_READ_CHARS = 40_000
"""Characters of a text in which the passage is looked for."""

NEIGHBOUR_SHARE = 0.3
"""Share of its value that a sentence lends to those before and after it: an answer is often next to the words."""

EXPANSION_WEIGHT = 0.4
"""Weight of an expansion term, as in search."""

MAX_PASSAGES = 40
"""Passages of one request. Cutting one takes a third of a millisecond for two pages of text."""

CHARS_PER_TOKEN = 4

MAX_GAP_CHARS = 8
"""Space between two sentences up to which they are shown as one part."""

# A sentence ends at a line break, or at a full stop with a space behind it. Chinese and Japanese have no space there.
_SENTENCE = re.compile(r"[^\n]+?(?:[.!?…][\"')\]]*(?=\s)|[。！？]+[」』）]*|(?=\n)|\Z)")


def with_passages(candidates: Sequence[Candidate], profile: Profile, signals: Signals) -> list[Candidate]:
    """Return the candidates, the best long ones among them with a passage."""
    slots = {slot.name: slot for slot in profile.slots}
    weights = _term_weights(signals)
    out = list(candidates)
    available_chars, cuts = CHARS_PER_TOKEN * profile.total, 0
    ranked = [n for n, each in enumerate(candidates) if is_estimated(each) and each.features["relevance"]]
    # The best ones that could fill the budget: no other is shown, whatever its level.
    for n in sorted(ranked, key=lambda n: (-candidates[n].features["relevance"], n)):
        if available_chars <= 0 or cuts == MAX_PASSAGES:
            break
        record, slot = candidates[n].record, slots[candidates[n].slot]
        available_chars -= min(len(record.text), MAX_PASSAGE_CHARS)
        if len(record.text) > len(record.summary) and LEVELS.index(slot.max_level) <= LEVELS.index("passage"):
            out[n] = replace(candidates[n], passage=cut(record.text, weights))
            cuts += 1
    return out


def cut(text: str, weights: Mapping[str, float]) -> Passage:
    """Return the positions of the sentences that have the most weight, in their order, up to MAX_PASSAGE_CHARS."""
    if len(text) <= MAX_PASSAGE_CHARS:
        return ((0, len(text)),)
    sentences = [_trimmed(text, *match.span()) for match in _SENTENCE.finditer(text, 0, MAX_READ_CHARS)]
    sentences = [span for span in sentences if span[0] < span[1]]
    values = _with_neighbours(_values(text, sentences, weights))
    chosen: list[tuple[int, int]] = []
    available = MAX_PASSAGE_CHARS
    for n in sorted(range(len(sentences)), key=lambda n: (-values[n], n)):
        start, end = sentences[n]
        if end - start > MAX_PASSAGE_CHARS and not chosen:
            return (_window(text, start, end, weights),)
        size = end - start + _gap(sentences, n)
        if size <= available or not chosen:
            chosen.append((start, end))
            available -= size
    return _joined(text, sorted(chosen))


def _term_weights(signals: Signals) -> dict[str, float]:
    expanded = {
        term: EXPANSION_WEIGHT * how.weight * signals.terms.get(how.query_term, 0.0)
        for term, how in signals.expansions.items()
    }
    return expanded | dict(signals.terms)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - (len(part) - len(part.rstrip()))


def _gap(sentences: Sequence[tuple[int, int]], n: int) -> int:
    """Return the characters between a sentence and the next one, which count if both are shown."""
    gap = sentences[n + 1][0] - sentences[n][1] if n + 1 < len(sentences) else 0
    return gap if gap <= MAX_GAP_CHARS else 0


def _values(text: str, sentences: Sequence[tuple[int, int]], weights: Mapping[str, float]) -> list[float]:
    """Return the weight of each sentence. A term that most sentences have says little about where to look."""
    found = [set(analysis.terms(text[start:end])) & weights.keys() for start, end in sentences]
    counts = Counter(term for terms in found for term in terms)
    return [sum(sorted(weights[term] / counts[term] ** 0.5 for term in terms)) for terms in found]


def _with_neighbours(values: Sequence[float]) -> list[float]:
    padded = [0.0, *values, 0.0]
    return [value + NEIGHBOUR_SHARE * (padded[n] + padded[n + 2]) for n, value in enumerate(values)]


def _window(text: str, start: int, end: int, weights: Mapping[str, float]) -> tuple[int, int]:
    """Return a part of a sentence that is too long: from shortly before its first word of the request."""
    words = (match for match in re.finditer(r"\w+", text[start:end]) if set(analysis.terms(match[0])) & weights.keys())
    first = next(words, None)
    word = start if first is None else start + first.start()
    begin = max(start, word - MAX_PASSAGE_CHARS // 4)
    stop = min(end, begin + MAX_PASSAGE_CHARS)
    if begin > start:
        begin = text.find(" ", begin, word) + 1 or begin
    if stop < end:
        stop = max(text.rfind(" ", begin, stop), begin + MAX_PASSAGE_CHARS // 2)
    return begin, stop


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> Passage:
    """Return spans, those with nothing but space between them as one."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start - joined[-1][1] <= MAX_GAP_CHARS and not text[joined[-1][1] : start].strip():
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(joined)
