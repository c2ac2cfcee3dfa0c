"""Exports and imports whole stores as lines of JSON, and adds many records at once.

An interrupted import keeps the batches that are complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from foveate.errors import InputError
from foveate.records import make as records
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.types import Change, Link, Record, Scope

BATCH_SIZE = 5000
"""Records in one transaction. Sorted together, postings cost half of what they do by the thousand."""

NewRecord = tuple[str, str, Mapping[str, Any]]
"""Kind, text and fields of a record to add."""


@dataclass(frozen=True, slots=True)
class Imported:
    """Counts of an import: records added, records that were here already, and links."""

    added: int = 0
    known: int = 0
    links: int = 0


def add_many(data: ScopedStore, rows: Iterable[NewRecord], scope: Scope | None = None) -> list[str]:
    """Add records in large transactions and return their ids."""
    where = scope or data.scope
    return [id for batch in split_batches(rows, BATCH_SIZE) for id in _add_batch(data, batch, where)]


@retry_interrupted
def _add_batch(data: ScopedStore, batch: Sequence[NewRecord], scope: Scope) -> list[str]:
    # With an embedder the records are made first and embedded without their secrets. Without one, each is made just before
    # it is written, so that its analysis is still cached.
    made = (data.make(kind, text, values, scope) for kind, text, values in batch)
    ready = made if data.embedder is None else list(made)
    vectors = data.vectors([record.text for record in ready]) if isinstance(ready, list) else repeat(None)
    with data.store.write(scope) as writer:
        return [writer.add(record, vector).record.id for record, vector in zip(ready, vectors, strict=False)]


def export_lines(data: ScopedStore) -> Iterator[str]:
    """Yield the scope's records, their history and links as lines of JSON, without loss."""
    with data.project_reader() as reader:
        for record in reader.records():
            yield records.dumps(record)
        for step in reader.all_history():
            yield json.dumps({"history": _change_json(step)}, ensure_ascii=False)
        for link in reader.all_links():
            yield json.dumps({"link": [link.src, link.name, link.dst, link.weight]}, ensure_ascii=False)


def import_lines(data: ScopedStore, lines: Iterable[str]) -> Imported:
    """Read what `export_lines` wrote. Records that exist already stay as they are; a bad line stops its batch."""
    added = known = links = 0
    for batch in split_batches(enumerate(lines, 1), BATCH_SIZE):
        parsed = [_parse(data, number, line) for number, line in batch if line.strip()]
        done = _import_batch(data, parsed)
        added, known, links = added + done.added, known + done.known, links + done.links
    return Imported(added, known, links)


@retry_interrupted
def _import_batch(data: ScopedStore, parsed: Sequence[Record | Link | Change]) -> Imported:
    found = [value for value in parsed if isinstance(value, Record)]
    links = [value for value in parsed if isinstance(value, Link)]
    vectors = data.vectors([record.text for record in found])
    with data.store.write(data.scope) as writer:
        added = sum(writer.restore(record, vector) for record, vector in zip(found, vectors, strict=True))
        for step in (value for value in parsed if isinstance(value, Change)):
            writer.restore_history(step)
        for link in links:
            writer.link(link, any_owner=True)
    return Imported(added, len(found) - added, len(links))


def _parse(data: ScopedStore, number: int, line: str) -> Record | Link | Change:
    try:
        value = json.loads(line)
        if not isinstance(value, dict):
            raise InputError("not a JSON object")
        if "link" in value:
            return Link(*value["link"])
        if "history" in value:
            step = dict(value["history"])
            before = step.pop("before")
            previous = None if before is None else records.from_json(before, data.scope, data.rules)
            return Change(**step, before=previous)
        record = records.from_json(value, data.scope, data.rules)
        if data.scope.user is not None and record.scope.user not in (None, data.scope.user):
            raise InputError(f"it belongs to user {record.scope.user!r}, not {data.scope.user!r}")
        return record
    except (ValueError, TypeError, KeyError, RecursionError, InputError) as error:
        raise InputError(f"Line {number} cannot be imported: {str(error).rstrip('.')}. Its batch was not written.") from None


def _change_json(step: Change) -> dict[str, Any]:
    return {
        "id": step.id,
        "version": step.version,
        "change": step.change,
        "at": step.at,
        "verb": step.verb,
        "before": None if step.before is None else records.to_json(step.before),
    }


def split_batches(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of up to `size` rows. `itertools.batched` needs Python 3.12."""
    batch: list[Any] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
