"""A source for PrecisionMemBench: it returns only the entities that the query names, and what is linked to them.

Similarity plays no part: a query about something without an entry returns nothing. A name matches whatever its case and
separators, by any alias, and with one typing mistake. Entities that a person linked to a named one are returned too.

foveate's own profiles have no such source: in normal use an unasked fact does little harm, and here it fails the case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.memory.entities import candidate_names, name_of
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, excluding_filter
from foveate.records.kinds import STRUCTURAL_LINKS
from foveate.text import analysis
from foveate.types import Candidate, Record

MIN_MISSPELT_LETTERS = 5
"""Shorter names must be spelt right: with one letter changed, another word is as likely."""

MIN_REPLACED_LETTERS = 8
"""Shorter names may not differ in a replaced letter: `mango` is not `mongo`, and `reach` is not `react`."""

EXACT_PREFIX_LETTERS = 2
"""These first letters must be right: people seldom mistype the beginning of a word."""

EXACT_SCORE, MISSPELT_SCORE, LINKED_SCORE = 1.0, 0.9, 0.8

MAX_ENTITIES = 10_000
"""All entities are compared with the query, which is fine for a benchmark with a hundred of them."""


class NameMatch(Source):
    name = "named"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        scored = _scored_records(context)
        for request in requests:
            fitting = [pair for pair in scored if not request.slot.kinds or pair[0].kind in request.slot.kinds]
            for record, score in fitting[: request.limit]:
                yield Candidate(record=record, slot=request.slot.name, source=self.name, features={"relevance": score})


def _scored_records(context: SourceContext) -> list[tuple[Record, float]]:
    """Return each record once with its score, best first."""
    reader, filters = context.reader, context.request.filters
    written = candidate_names(context.request.query)
    scores: dict[str, float] = {}
    records: dict[str, Record] = {}
    for entity in reader.most_salient(("entity",), MAX_ENTITIES, filters):
        score = max((_name_score(written, name) for name in _names_of(entity)), default=0.0)
        if score:
            records[entity.id] = entity
            scores[entity.id] = score
    links = [link for link in reader.links(list(scores)) if link.name not in STRUCTURAL_LINKS]
    linked = [link.dst for link in links if link.dst not in scores]
    for record in reader.get(linked).values():
        if record.status == "active" and not excluding_filter(record, filters):
            records[record.id] = record
            scores[record.id] = LINKED_SCORE
    return [(records[id], scores[id]) for id in sorted(scores, key=lambda id: (-scores[id], -records[id].salience, id))]


def _names_of(entity: Record) -> set[str]:
    return {analysis.normalize_name(str(name)) for name in (name_of(entity), *(entity.data.get("aliases") or ()))} - {""}


def _name_score(written: Sequence[str], name: str) -> float:
    if name in written:
        return EXACT_SCORE
    return MISSPELT_SCORE if any(is_misspelt(word, name) for word in written) else 0.0


def is_misspelt(written: str, name: str) -> bool:
    """Return whether a word is a name with one mistake: a letter lost, doubled, swapped or (in a long name) replaced.

    Digits are never mistakes: `chapter 7` is neither `chapter` nor `chapter 8`.
    """
    if _digits(written) != _digits(name):
        return False
    if min(len(written), len(name)) < MIN_MISSPELT_LETTERS or written[:EXACT_PREFIX_LETTERS] != name[:EXACT_PREFIX_LETTERS]:
        return False
    shorter, longer = sorted((written, name), key=len)
    if len(longer) - len(shorter) == 1:
        return any(longer[:n] + longer[n + 1 :] == shorter for n in range(EXACT_PREFIX_LETTERS, len(longer)))
    if len(longer) != len(shorter):
        return False
    wrong = [n for n, (a, b) in enumerate(zip(written, name, strict=True)) if a != b]
    if len(wrong) == 1:
        return len(name) >= MIN_REPLACED_LETTERS
    is_swap = len(wrong) == 2 and wrong[1] == wrong[0] + 1
    return is_swap and written[wrong[0]] == name[wrong[1]] and written[wrong[1]] == name[wrong[0]]


def _digits(word: str) -> list[str]:
    return [c for c in word if c.isdigit()]
