"""The terms that a record adds to the lexical index, by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from foveate.records.kinds import Kind, kind_of
from foveate.text import analysis, dates, quantities
from foveate.types import Record

FIELDS = ("text", "summary", "tags", "subject", "entities", "paths", "dates")
"""The position of a field is its number in stored postings, so new fields are added at the end only."""

TEXT, SUMMARY, TAGS, SUBJECT, ENTITIES, PATHS, DATES = range(len(FIELDS))

PARTITIONS = ("knowledge", "events")
"""Kinds with statistics of their own: a million shell events must not make a word of ten decisions look common."""

MAX_READ_CHARS = 1_500
"""Characters of a text that are read to see what it is about. The subject shows at the beginning."""

MAX_ENTITY_NAME_CHARS = 120
"""Longer names are not indexed: they are whole texts, and no question repeats one word for word."""


def record_postings(record: Record, kind: Kind) -> tuple[list[tuple[str, int, int]], int]:
    """Return a row (term, field, frequency) for each posting of a record, and the length of its text in terms."""
    text = analysis.terms(record.text)
    text_counts = Counter(text)
    rows = [(term, TEXT, count) for term, count in text_counts.items()]
    for field, words in _other_fields(record, kind):
        counts = Counter(analysis.terms(words))
        rows += [(term, field, count) for term, count in counts.items() if field != SUMMARY or term not in text_counts]
    rows += [(term, DATES, 1) for term in date_and_quantity_terms(record.text, record.valid_from)]
    return rows, len(text)


def record_terms(record: Record, *, with_dates: bool) -> frozenset[str]:
    """Return the terms of a record in all fields; of a long text, those of its beginning."""
    text = record.text[:MAX_READ_CHARS]
    others = (words for _, words in _other_fields(record, kind_of(record.kind)))
    found = {term for words in (text, *others) for term in analysis.terms(words)}
    # Reading dates and quantities costs more than everything else here, and few queries contain any.
    return frozenset((*found, *(date_and_quantity_terms(text, record.valid_from) if with_dates else ())))


def date_and_quantity_terms(text: str, time: int) -> tuple[str, ...]:
    """Return a term for each date and quantity in a text. Relative dates, such as "last May", count from `time`."""
    return tuple(dict.fromkeys((*dates.record_terms(text, time), *quantities.terms(text))))


def _other_fields(record: Record, kind: Kind) -> Iterator[tuple[int, str]]:
    """Yield the number and the words of each field that the record has besides its text and dates."""
    data = record.data
    # A summary that was cut from the text adds no word, and indexing it would count the same words twice.
    summary = [text for text in dict.fromkeys((record.summary, record.micro)) if text.rstrip("…") not in record.text]
    if data and kind.partition == "knowledge":
        summary += _strings(data)
    if summary:
        yield SUMMARY, " \n".join(summary)
    if record.tags:
        yield TAGS, " \n".join(record.tags)
    title = data.get("name") or data.get("title")
    if record.subject or title:
        yield SUBJECT, f"{record.subject or ''} {record.attribute or ''} {title or ''}"
    if record.entities or "aliases" in data:
        yield ENTITIES, " \n".join((*record.entities, *(data.get("aliases") or ())))
    if record.paths or "location" in data:
        yield PATHS, " \n".join((*record.paths, str(data.get("location", ""))))


def _strings(value: Any) -> list[str]:
    """Return every string in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _strings(part)]
    return []


def entity_names(record: Record) -> set[str]:
    """Return the normalized names and aliases of an entity; an empty set for other kinds."""
    if record.kind != "entity":
        return set()
    names = (record.data.get("name", record.text), *(record.data.get("aliases") or ()))
    normalized = {analysis.normalize_name(str(name)) for name in names}
    return {name for name in normalized if name and len(name) <= MAX_ENTITY_NAME_CHARS}
