"""The lexical index, as arithmetic: a record's postings, a query's plan, and what a score is worth.

BM25 with separate weighted fields, over rows that any SQL database can hold, so that two databases give the same order.
This module knows the formula and the fields; the rows live in `sql/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foveate.records.kinds import Kind
from foveate.text import analysis, dates, quantities
from foveate.types import Record

FIELDS = ("text", "summary", "tags", "subject", "entities", "paths", "dates")
"""A field's place here is its number in the postings: add at the end only."""

MAX_NAMED = 120
"""Characters of a name by which an entity can be found: a longer one is a text, which nobody says again as it is."""

SHELVES = {"knowledge": 0, "events": 1}


def postings(record: Record, kind: Kind) -> tuple[list[tuple[str, int, int]], int]:
    """(term, field, frequency) rows of a record, and the length of its text in terms."""
    text = analysis.terms(record.text)
    seen = _counted(text)
    rows = [(term, 0, count) for term, count in seen.items()]
    for number, words in _beside_text(record, kind):
        found = _counted(analysis.terms(words))
        rows += [(term, number, count) for term, count in found.items() if number != 1 or term not in seen]
    rows += [(term, 6, 1) for term in named(record.text, record.valid_from)]
    return rows, len(text)


def named(text: str, at: int) -> tuple[str, ...]:
    """The dates and quantities that a text names, each once; `at`: when it was said."""
    return tuple(dict.fromkeys((*dates.record_terms(text, at), *quantities.terms(text))))


def _counted(terms: Sequence[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    return counts


def _beside_text(record: Record, kind: Kind) -> Iterator[tuple[int, str]]:
    """The other fields. `summary` holds only what the text does not say: an extract adds nothing."""
    data = record.data
    said = [text for text in dict.fromkeys((record.summary, record.micro)) if text.rstrip("…") not in record.text]
    if data and kind.partition == "knowledge":
        said += _strings(data)
    if said:
        yield 1, " \n".join(said)
    if record.tags:
        yield 2, " \n".join(record.tags)
    title = data.get("name") or data.get("title")
    if record.subject or title:
        yield 3, f"{record.subject or ''} {record.attribute or ''} {title or ''}"
    if record.entities or "aliases" in data:
        yield 4, " \n".join((*record.entities, *(data.get("aliases") or ())))
    if record.paths or "location" in data:
        yield 5, " \n".join((*record.paths, str(data.get("location", ""))))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _strings(part)]
    return []


def names_of(record: Record) -> set[str]:
    """Under which names an entity can be found."""
    if record.kind != "entity":
        return set()
    spoken = (record.data.get("name", record.text), *(record.data.get("aliases") or ()))
    return {name for text in spoken if (name := analysis.normalize_name(str(text))) and len(name) <= MAX_NAMED}
