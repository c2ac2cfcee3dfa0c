"""Export and import stores as lines of JSON, and add many records at once.

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
"""Records in one transaction. Their postings are sorted and written together, which takes half the time of 1,000 each."""

NewRecord = tuple[str, str, Mapping[str, Any]]
"""Kind, text and fields of a record to add."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The result of an import: records that were added, records that existed already, and links."""

    added: int = 0
    known: int = 0
    links: int = 0


def add_many(data: ScopedStore, rows: Iterable[NewRecord], scope: Scope | None = None) -> list[str]:
    """Add records in large transactions and return their ids."""
    return [id for batch in split_batches(rows, BATCH_SIZE) for id in _add_batch(data, batch, scope or data.scope)]


@retry_interrupted
def _add_batch(data: ScopedStore, batch: Sequence[NewRecord], scope: Scope) -> list[str]:
    # Making a record removes its secrets, so with an embedder all are made before their texts are sent to it. Without one,
    # each is made just before it is written, while its analysis is still cached.
    made = (data.make(kind, text, values, scope) for kind, text, values in batch)
    ready = made if data.embedder is None else list(made)
    vectors = data.vectors([record.text for record in ready]) if isinstance(ready, list) else repeat(None)
    with data.store.write(scope) as writer:
        return [writer.add(record, vector).record.id for record, vector in zip(ready, vectors, strict=False)]


def export_lines(data: ScopedStore) -> Iterator[str]:
    """Yield the scope's records, their history and links as lines of JSON."""
    with data.project_reader() as reader:
        for record in reader.records():
            yield records.dumps(record)
        for change in reader.all_history():
            yield json.dumps({"history": _change_json(change)}, ensure_ascii=False)
        for link in reader.all_links():
            yield json.dumps({"link": [link.src, link.name, link.dst, link.weight]}, ensure_ascii=False)


def import_lines(data: ScopedStore, lines: Iterable[str]) -> ImportResult:
    """Import lines of `export_lines`. Records that exist already are not changed. A bad line raises and stops its batch."""
    added = known = links = 0
    for batch in split_batches(enumerate(lines, 1), BATCH_SIZE):
        parsed = [_parse(data, number, line) for number, line in batch if line.strip()]
        done = _import_batch(data, parsed)
        added, known, links = added + done.added, known + done.known, links + done.links
    return ImportResult(added, known, links)


@retry_interrupted
def _import_batch(data: ScopedStore, parsed: Sequence[Record | Link | Change]) -> ImportResult:
    restored = [value for value in parsed if isinstance(value, Record)]
    links = [value for value in parsed if isinstance(value, Link)]
    vectors = data.vectors([record.text for record in restored])
    with data.store.write(data.scope) as writer:
        added = sum(writer.restore(record, vector) for record, vector in zip(restored, vectors, strict=True))
        for change in (value for value in parsed if isinstance(value, Change)):
            writer.restore_history(change)
        # The records may belong to other users, so a link is created even if this scope does not see both of its ends.
        for link in links:
            writer.link(link, any_owner=True)
    return ImportResult(added, len(restored) - added, len(links))


def _parse(data: ScopedStore, number: int, line: str) -> Record | Link | Change:
    try:
        value = json.loads(line)
        if not isinstance(value, dict):
            raise InputError("not a JSON object")
        if "link" in value:
            return Link(*value["link"])
        if "history" in value:
            fields = dict(value["history"])
            before = fields.pop("before")
            previous = None if before is None else records.from_json(before, data.scope, data.rules)
            return Change(**fields, before=previous)
        record = records.from_json(value, data.scope, data.rules)
        if data.scope.user is not None and record.scope.user not in (None, data.scope.user):
            raise InputError(f"it belongs to user {record.scope.user!r}, not {data.scope.user!r}")
        return record
    except (ValueError, TypeError, KeyError, RecursionError, InputError) as error:
        raise InputError(
            f"Line {number} cannot be imported: {str(error).rstrip('.')}. Its batch was not written. "
            "`foveate remember FILE` reads files of other programs."
        ) from None


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "id": change.id,
        "version": change.version,
        "change": change.change,
        "at": change.at,
        "verb": change.verb,
        "before": None if change.before is None else records.to_json(change.before),
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
