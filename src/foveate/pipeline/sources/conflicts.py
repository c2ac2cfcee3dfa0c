"""Show newer and older statements about the same thing together, and say which is which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from foveate.records.corrections import MAX_STATEMENT_CHARS, corrects, says_change
from foveate.records.kinds import CONFLICTS_WITH, kind_of
from foveate.store.protocol import Reader
from foveate.types import Candidate, Record

OLDER_SHARE = 0.5
"""Share of the relevance of a newer statement that the older one gets at most. The newer one comes first, even if longer."""

DAY_MS = 86_400_000

MAX_MESSAGES = 50
"""Most relevant messages of the user that are compared with each other."""

Pair = tuple[str, str]
"""The ids of a newer and of an older statement."""


def with_conflicts(candidates: list[Candidate], reader: Reader) -> list[Candidate]:
    """Mark newer and older statements about the same thing. If one of two facts is a candidate, both are.

    Each gets the other one as `conflict`, and the feature `newer`, which is 1 or 0.
    """
    records = {c.record.id: c.record for c in candidates if c.record.status == "active"}
    pairs = [*_linked_pairs(records, reader), *_message_pairs(candidates)]
    if not pairs:
        return candidates
    missing = reader.get([id for pair in pairs for id in pair if id not in records])
    records |= {id: record for id, record in missing.items() if record.status == "active"}
    pairs = [  # compared again, because one of them may have been edited since
        (newer, older)
        for newer, older in pairs
        if newer in records and older in records and corrects(records[newer].text, records[older].text)
    ]
    newest_of, older_of = _opponents(pairs, records)
    return list(_marked(candidates, newest_of, older_of))


def _linked_pairs(records: Mapping[str, Record], reader: Reader) -> list[Pair]:
    """Return the pairs that were found when the facts were written. The link goes from the newer to the older one."""
    facts = [id for id, record in records.items() if kind_of(record.kind).is_keyed]
    links = [*reader.links(facts, [CONFLICTS_WITH]), *reader.links(facts, [CONFLICTS_WITH], incoming=True)]
    return list(dict.fromkeys((link.src, link.dst) for link in links))


def _message_pairs(candidates: Sequence[Candidate]) -> Iterator[Pair]:
    """Yield the messages of the user that say something has changed, each with older messages of other days."""
    messages = {c.record.id: c for c in candidates if _is_statement_of_user(c.record)}
    best = sorted(messages.values(), key=lambda c: (-c.features.get("relevance", 0.0), c.record.id))[:MAX_MESSAGES]
    for newer in (c.record for c in best if says_change(c.record.text)):
        for older in (c.record for c in best):
            if older.created // DAY_MS < newer.created // DAY_MS:
                yield newer.id, older.id


def _is_statement_of_user(record: Record) -> bool:
    is_message = record.kind == "event" and record.data.get("type") == "user_message" and record.trust == "user"
    return is_message and len(record.text) <= MAX_STATEMENT_CHARS and "?" not in record.text


def _opponents(pairs: Sequence[Pair], records: Mapping[str, Record]) -> tuple[dict[str, Record], dict[str, Record]]:
    """Return the latest newer statement for each older one, and the latest older one for each newer one."""
    newest_of: dict[str, Record] = {}
    older_of: dict[str, Record] = {}
    for newer, older in sorted(pairs, key=lambda pair: (records[pair[0]].valid_from, records[pair[1]].valid_from, pair)):
        newest_of[older] = records[newer]
        older_of[newer] = records[older]
    return newest_of, older_of


def _marked(
    candidates: Sequence[Candidate], newest_of: Mapping[str, Record], older_of: Mapping[str, Record]
) -> Iterator[Candidate]:
    relevance = {(c.slot, c.record.id): c.features.get("relevance", 0.0) for c in candidates}
    present = set(relevance)
    for candidate in candidates:
        id, slot = candidate.record.id, candidate.slot
        newer, older = newest_of.get(id), older_of.get(id)
        other = newer or older
        if other is None or candidate.record.status != "active":
            yield candidate
            continue
        best = max(relevance[slot, id], relevance.get((slot, other.id), 0.0))
        yield _mark(candidate, other, best, is_newer=newer is None)
        if kind_of(other.kind).is_keyed and (slot, other.id) not in present:
            present.add((slot, other.id))
            yield _mark(replace(candidate, record=other), candidate.record, best, is_newer=newer is not None)


def _mark(candidate: Candidate, other: Record, relevance: float, *, is_newer: bool) -> Candidate:
    features = {**candidate.features, "newer": float(is_newer)}
    if "relevance" in features:
        own = features["relevance"]
        features["relevance"] = relevance if is_newer else min(own, relevance * OLDER_SHARE)
    return replace(candidate, conflict=other, features=features)
