"""What the request calls by its name, and nothing else: for prompts where an unasked fact does harm.

Comes in: the question. Goes out: every entity that goes by a name or alias that stands in it (all of them, where several
share a name), and what those hang together with by one link that a user drew. A slip of the pen is forgiven. Similarity
has no say: a question about something that has no entry finds nothing. Its feature is `named`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.memory.mentions import names_in
from foveate.pipeline.sources.gather import Around, filtered
from foveate.records.links import STRUCTURAL
from foveate.types import Ask, Candidate, Record

SHORTEST_MISSPELT = 5
"""Letters from which a name may be misspelt: below, another word is as likely."""

SHORTEST_REPLACED = 8
"""Letters from which one may stand for another: `mango` is not `mongo`, and `reach` is not `react`."""

SURE = 2
"""Letters at the beginning that must be right: people seldom get a word's beginning wrong."""

EXACT, MISSPELT, LINKED = 1.0, 0.9, 0.8
"""What it is worth to be named, to be named with a slip, and to hang together with what is named."""


class Named:
    name = "named"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        found = _found(around)
        for ask in asks:
            fitting = [pair for pair in found if not ask.slot.kinds or pair[0].kind in ask.slot.kinds]
            for record, worth in fitting[: ask.limit]:
                features = {"named": worth, "relevance": worth}
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features=features)


def _found(around: Around) -> list[tuple[Record, float]]:
    """Each record once, the surest first."""
    reader, filters = around.reader, around.request.filters
    said = names_in(around.request.query)
    long = [name for name in said if len(name) >= SHORTEST_MISSPELT]
    worth: dict[str, float] = {}
    records: dict[str, Record] = {}
    known = frozenset(said)
    for name, record in reader.called(said, sorted({name[:SURE] for name in long}), filters):
        sure = EXACT if name in known else MISSPELT if any(misspelt(word, name) for word in long) else 0.0
        if sure:
            records[record.id] = record
            worth[record.id] = max(sure, worth.get(record.id, 0.0))
    joined = [link.dst for link in reader.links(list(worth)) if link.name not in STRUCTURAL and link.dst not in worth]
    for record in reader.get(joined).values():
        if record.status == "active" and not filtered(record, filters):
            records[record.id] = record
            worth[record.id] = LINKED
    return [(records[id], worth[id]) for id in sorted(worth, key=lambda id: (-worth[id], -records[id].salience, id))]


def misspelt(written: str, name: str) -> bool:
    """Whether a word is a name with one slip: a letter lost or doubled, two swapped or, in a long one, a wrong one.

    Figures are no slips: `chapter 7` is neither `chapter` nor `chapter 8`.
    """
    if _figures(written) != _figures(name):
        return False
    if min(len(written), len(name)) < SHORTEST_MISSPELT or written[:SURE] != name[:SURE]:
        return False
    shorter, longer = sorted((written, name), key=len)
    if len(longer) - len(shorter) == 1:
        return any(longer[:n] + longer[n + 1 :] == shorter for n in range(SURE, len(longer)))
    if len(longer) != len(shorter):
        return False
    wrong = [n for n, (a, b) in enumerate(zip(written, name, strict=True)) if a != b]
    if len(wrong) == 1:
        return len(name) >= SHORTEST_REPLACED
    swapped = len(wrong) == 2 and wrong[1] == wrong[0] + 1
    return swapped and written[wrong[0]] == name[wrong[1]] and written[wrong[1]] == name[wrong[0]]


def _figures(word: str) -> list[str]:
    return [c for c in word if c.isdigit()]
