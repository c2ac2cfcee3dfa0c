"""Deletes from a SQL store: records that are forgotten, expired receipts and events, and vectors of other embedders.

A deletion reaches the records, the index, the history, the vectors and the receipts in one transaction.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from foveate.clock import now
from foveate.errors import InputError, NotFound
from foveate.records.kinds import kind_of
from foveate.store import vectors
from foveate.store.protocol import Hit, Query, Scrub, SearchGroup, StoredReceipt
from foveate.store.retention import BATCH_SIZE, OVERRUN_SHARE, Retention
from foveate.store.sql.index_reader import frequencies_by_field
from foveate.store.sql.index_writer import IndexWriter
from foveate.store.sql.postings import PARTITIONS, record_postings
from foveate.store.sql.queries import Database
from foveate.store.sql.read import ReadTransaction
from foveate.store.sql.vectors import VectorWriter
from foveate.types import Record, Scope

EventPosition = tuple[int, int]
"""The creation time and the doc of an event. Old events are examined in this order."""


class DeleteTransaction(ReadTransaction):
    """The part of a writing transaction that deletes, with the index and the vectors that every write changes."""

    index: IndexWriter

    def __init__(
        self,
        database: Database,
        scope: Scope,
        open_vector_search: vectors.OpenVectorSearch,
        embedding_namespace: str | None,
    ) -> None:
        if not scope.project:
            raise InputError("A scope needs a project, got an empty name.")
        if not database.fetch_all("project", {"name": scope.project}):
            database.execute("add_project", {"name": scope.project})
        super().__init__(database, scope, open_vector_search, embedding_namespace)
        # Replaces the reader's, so that reads in this transaction know the kinds that it adds.
        self.index = IndexWriter(database, self._project)
        self._vectors = VectorWriter(database, self._project, embedding_namespace, self._pack_vector)

    def search(self, query: Query, groups: Sequence[SearchGroup]) -> list[list[Hit]]:
        if query.vector is not None:
            self._vectors.flush()
        return super().search(query, groups)

    def flush(self) -> None:
        """Write the postings and vectors that were collected."""
        self.index.flush()
        self._vectors.flush()

    # --- records and events -------------------------------------------------------------------------------------

    def forget(self, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()) -> dict[str, int]:
        """Delete records from every table, and return how many rows of each table were deleted.

        `other_store_ids` are records of another store, which only receipts mention here.
        """
        self.flush()
        records = self.get(ids)
        missing = [id for id in ids if id not in records]
        if missing:
            raise NotFound(f"No record {missing[0]!r} in this scope; nothing was forgotten.")
        counts: dict[str, int] = defaultdict(int)
        # Determined before the deletions, which remove these records from the document frequencies.
        terms = self._exclusive_terms(records.values()) if scrub is not None else frozenset()
        for record in records.values():
            for table, count in self._delete(self._doc_of(record.id), record).items():
                counts[table] += count
        forgotten = frozenset(records) | frozenset(other_store_ids)
        for id in sorted(forgotten):
            counts["receipt_items"] += self._execute("delete_items_of_record", record=id)
        if scrub is not None:
            counts["receipts"] += self._scrub_receipts(scrub, forgotten, terms)
        self._has_writes = True
        return dict(counts)

    def _delete(self, doc: int, record: Record) -> dict[str, int]:
        """Delete a record from every table but the receipts, and return how many rows of each table were deleted."""
        return {
            "names": self.index.remove_names(doc, record),
            "postings": self.index.remove(doc, record),
            "vectors": self._vectors.delete_all(doc),
            "links": self._execute("delete_links_of", id=record.id),
            "history": self._execute("delete_history", id=record.id),
            "records": self._execute("delete_record", doc=doc),
        }

    def _exclusive_terms(self, records: Iterable[Record]) -> frozenset[str]:
        """Return the terms of these records that no other record has. Receipts must not repeat them after a forget."""
        own: dict[str, int] = defaultdict(int)
        for record in records:
            for term in {term for term, _, _ in record_postings(record, kind_of(record.kind))[0]}:
                own[term] += 1
        total: dict[str, int] = defaultdict(int)
        frequencies = self.index.document_frequencies(list(own))
        for partition in PARTITIONS:
            codes = set(self.index.partition_codes(partition).values())
            for term, by_field in frequencies_by_field(frequencies, codes).items():
                total[term] = max(total[term], *by_field.values())
        return frozenset(term for term, count in own.items() if total[term] <= count)

    def _scrub_receipts(self, scrub: Scrub, ids: frozenset[str], terms: frozenset[str]) -> int:
        """Scrub every receipt of the project, of every owner, and return how many changed."""
        changed, after = 0, ""
        while page := self._fetch("every_receipt", after=after):
            for id, body in page:
                scrubbed = scrub(body, ids, terms)
                if scrubbed is not None:
                    changed += self._execute("update_receipt", id=id, body=scrubbed[0], line=scrubbed[1])
            after = page[-1][0]
        return changed

    def drop_events(self, retention: Retention, now: int, after: EventPosition = (0, 0)) -> tuple[int, EventPosition | None]:
        """Delete the expired events among the next batch of old events, of every owner.

        Return how many were deleted, and the position after which the next batch begins, or None after the last one.
        Receipts keep the ids of deleted events, so that a replay can report them as missing: the purpose is to save space.
        `forget` removes the words from receipts, too.
        """
        cutoffs = self._event_cutoffs(retention, now)
        created, doc = after
        old = self._fetch("old_events", created=created, doc=doc, until=max(cutoffs.values()), limit=BATCH_SIZE)
        rows = self._fetch("expired_events", docs=json.dumps([doc for _, doc in old]), **cutoffs)
        for row in rows:
            record = self._record(row)
            self._delete(row[0], record)
            self._execute("delete_items_of_record", record=record.id)
        self._has_writes = self._has_writes or bool(rows)
        return len(rows), old[-1] if len(old) == BATCH_SIZE else None

    # --- receipts and vectors -----------------------------------------------------------------------------------

    def save_receipts(self, receipts: Iterable[StoredReceipt], retention: Retention) -> None:
        """Store receipts. If others are overdue, delete them."""
        latest = 0
        for receipt in receipts:
            params = {"id": receipt.id, "session": receipt.session, "created": receipt.created}
            self._execute("add_receipt", line=receipt.summary, body=receipt.body, **params)
            self._db.execute_many("add_receipt_item", [(self._project, record, receipt.id) for record in receipt.shown_ids])
            latest = max(latest, receipt.created)
        # A request may have a time in the future. That must not make the other receipts too old.
        self.drop_receipts(retention, min(latest, now()), only_if_overdue=True)

    def drop_receipts(self, retention: Retention, now: int, *, only_if_overdue: bool = False) -> int:
        """Delete expired receipts, at most a few batches, and return how many.

        With `only_if_overdue`, delete none until the oldest is clearly too old or their size is above the limit, so that
        most writes delete nothing.
        """
        if only_if_overdue:
            oldest, cutoff = self._fetch("oldest_receipt"), retention.receipts_cutoff(now)
            is_too_old = bool(oldest) and oldest[0][0] < cutoff - round((now - cutoff) * OVERRUN_SHARE)
            max_bytes = retention.receipt_bytes
            if not is_too_old and (max_bytes is None or self._fetch("receipt_bytes")[0][0] <= max_bytes):
                return 0
        ids = json.dumps(self._expired_receipts(retention, now)[: 10 * BATCH_SIZE])
        self._execute("delete_items_of_receipts", ids=ids)
        return self._execute("delete_receipts", ids=ids)

    def drop_vectors(self, fingerprint: str, limit: int) -> int:
        return self._vectors.drop(fingerprint, limit)

    # --- helpers -----------------------------------------------------------------------------------------------

    @staticmethod
    def _pack_vector(vector: Sequence[float]) -> Any:
        """Return a vector as the database stores it."""
        return vectors.pack(vector)

    def _doc_of(self, id: str) -> int:
        rows = self._fetch("doc_of", id=id)
        if not rows:
            raise NotFound(f"No record {id!r} in this scope.")
        return int(rows[0][0])

    def _execute(self, query: str, **params: object) -> int:
        """Run a query with the project and the scope as further parameters, and return how many rows changed."""
        return self._db.execute(query, {"project": self._project, **self._scope_params, **params})
