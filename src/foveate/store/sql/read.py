"""Reads a SQL store: records, links, history, receipts and statistics of one scope.

The queries are in `queries.sql`, and what differs in a dialect in its own; everything else about reading is here.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from foveate.clock import iso
from foveate.errors import NotFound
from foveate.records.kinds import KINDS, STRUCTURAL_LINKS, internal_kinds, kind_of
from foveate.records.make import Rules
from foveate.store.protocol import EmbeddingNamespace, Hit, Query, SearchGroup, SessionNeighbor, StoreCounts, StoredReceipt
from foveate.store.retention import DAY_MS, OVERRUN_SHARE, ExpiredCounts, Retention
from foveate.store.sql.index_reader import IndexReader
from foveate.store.sql.postings import record_postings
from foveate.store.sql.queries import Database
from foveate.store.sql.rows import deserialize_record, filter_params, from_row
from foveate.store.sql.search import LexicalSearch, add_vector_hits, best_first
from foveate.store.sql.vectors import find_namespace
from foveate.store.vectors import OpenVectorSearch, VectorView
from foveate.types import NO_FILTERS, Change, Filters, Link, Record, Scope

FALLBACK_SECRET = os.urandom(16).hex()
"""Secret of a project that this role may not see, so that its quotes still cannot be guessed. It is not stored."""

END_OF_TIME = 2**63 - 1
"""Later than every stored time."""

BYTES_PER_DIMENSION = 2
"""Vectors are stored as half floats."""


class ReadTransaction:
    """One snapshot of one scope."""

    def __init__(
        self, database: Database, scope: Scope, open_vector_search: OpenVectorSearch, embedding_namespace: str | None = None
    ) -> None:
        self.scope = scope
        self._db = database
        self._open_vector_search = open_vector_search
        self._embedding_namespace = embedding_namespace
        self._has_writes = False
        rows = database.fetch_all("project", {"name": scope.project})
        # A project without any write has no row yet. Number 0 belongs to no project, so every query finds nothing.
        self._project, self._revision, self._docs = rows[0] if rows else (0, 0, 0)
        self._scope_params = {"user": scope.user, "agent": scope.agent, "session": scope.session, "task": scope.task}
        self.index = IndexReader(database, self._project)

    @property
    def revision(self) -> str:
        return str(self._revision)

    @property
    def secret(self) -> str:
        rows = self._fetch("secret", name=self.scope.project)
        return str(rows[0][0]) if rows else FALLBACK_SECRET

    # --- records -----------------------------------------------------------------------------------------------

    def get(self, ids: Sequence[str]) -> dict[str, Record]:
        return {record.id: record for record in self._records("by_ids", ids=json.dumps(list(ids)))}

    def by_key(self, key: str) -> Record | None:
        """Return the record with a key. If several owners used the same key, the most specific owner wins."""
        # Sorted here, because SQLite builds a table to sort even a single row: 35 microseconds.
        return min(self._records("by_key_visible", key=key), key=_by_owner, default=None)

    def count(self, kind: str) -> int:
        """Return the number of records of a kind that are neither retired nor archived."""
        return int(self._fetch("count_kind", kind=kind)[0][0])

    def count_created(self, until: int) -> int:
        """Return how many records were created up to a time and are neither retired nor archived."""
        return int(self._fetch("count_created", until=until, **_internal_kinds())[0][0])

    def always_on(self, kinds: Sequence[str], *, pinned: bool = False) -> list[Record]:
        """Return the active rules of these kinds, or of all kinds; with `pinned`, the pinned records instead."""
        if pinned:
            return self._records("pinned", kinds=json.dumps(kinds) if kinds else None)
        return self._records("always_on", kinds=json.dumps(kinds or [name for name, kind in KINDS.items() if kind.is_rule]))

    def recent(
        self, kinds: Sequence[str], limit: int, filters: Filters, *, archived: bool = False, session: str | None = None
    ) -> list[Record]:
        """Return the newest records of these kinds, of one session if it is given."""
        params: dict[str, Any] = {"limit": limit, "archived": archived, **filter_params(filters)}
        query = "recent"
        if session is not None:
            query, params["in_session"] = "recent_of_session", session
        # One query for each kind: each reads its own range of an index and stops at the limit.
        records = [record for kind in kinds for record in self._records(query, kind=kind, **params)]
        return sorted(records, key=lambda record: (record.created, record.id), reverse=True)[:limit]

    def most_salient(self, kinds: Sequence[str], limit: int, filters: Filters) -> list[Record]:
        """Return the active records of these kinds with the highest salience, newer ones first among equals."""
        params = filter_params(filters)
        records = [record for kind in kinds for record in self._records("most_salient", kind=kind, limit=limit, **params)]
        return sorted(records, key=lambda record: (-record.salience, -record.created))[:limit]

    def sessions(self, limit: int, filters: Filters) -> dict[str, int]:
        """Return the sessions with the newest events, and the time of the last event of each."""
        return dict(self._fetch("sessions", kind="event", limit=limit, **filter_params(filters)))

    def session_neighbors(
        self, ids: Sequence[str], kinds: Sequence[str], max_distance: int, filters: Filters
    ) -> list[SessionNeighbor]:
        """Return the records that were stored up to `max_distance` places before and after these in their sessions."""
        rows = self._fetch(
            "session_neighbors",
            ids=json.dumps(list(ids)),
            kinds=json.dumps(list(kinds or KINDS)),
            max_distance=max_distance,
        )
        neighbors = [
            (id, sign * distance, doc)
            for id, *sides in rows
            for sign, docs in zip((1, -1), sides, strict=True)
            for distance, doc in enumerate(json.loads(docs), 1)
        ]
        records = self._by_docs(sorted({doc for _, _, doc in neighbors}), filters) if neighbors else {}
        return [SessionNeighbor(id, offset, records[doc]) for id, offset, doc in neighbors if doc in records]

    def entities_by_name(self, names: Sequence[str]) -> dict[str, Record]:
        """Return the entity of each normalized name. If several have it, an active one wins, then the most salient."""
        rows = self._fetch("entities_by_name", names=json.dumps(list(names)))
        if not rows:
            return {}
        by_doc = self._by_docs([doc for _, doc in rows], NO_FILTERS)
        entities: dict[str, Record] = {}
        for name, doc in rows:
            if doc in by_doc and (name not in entities or _priority(by_doc[doc]) > _priority(entities[name])):
                entities[name] = by_doc[doc]
        return entities

    def records(self) -> Iterator[Record]:
        after = 0
        while page := self._fetch("all_records", after=after):
            for row in page:
                yield self._record(row)
            after = page[-1][0]

    def page(self, limit: int, filters: Filters, *, status: str | None = None, after: int = 0) -> tuple[list[Record], int]:
        """Return records of any status, newest first, and where the next page begins, or 0 after the last page.

        Internal kinds are listed only if the filters name them.
        """
        params = {"limit": limit + 1, "status": status, "after": after, **_internal_kinds(), **filter_params(filters)}
        rows = self._fetch("records_page", **params)
        return [self._record(row) for row in rows[:limit]], rows[limit - 1][0] if len(rows) > limit else 0

    # --- links and history -------------------------------------------------------------------------------------

    def links(self, ids: Sequence[str], names: Sequence[str] = (), *, incoming: bool = False) -> list[Link]:
        """Return the links that begin at these records, or with `incoming` those that end there."""
        query = "links_to" if incoming else "links_from"
        return self._links(query, ids=json.dumps(list(ids)), names=json.dumps(names) if names else None)

    def relations(self, ids: Sequence[str], limit: int) -> list[Link]:
        """Return the links between active entities that touch one of these, by weight, without foveate's own links."""
        params = {"ids": json.dumps(list(ids)), "structural_links": json.dumps(sorted(STRUCTURAL_LINKS))}
        return self._links("relations", limit=limit, **params)

    def all_links(self) -> Iterator[Link]:
        yield from self._links("all_links")

    def history(self, id: str) -> list[Change]:
        self._require(id)
        return self._changes("history", id=id)

    def all_history(self) -> Iterator[Change]:
        yield from self._changes("all_history")

    def version(self, id: str, version: int) -> Record | None:
        """Return a record as it was at a version, or None if there is no such version."""
        current = self.get([id]).get(id)
        if current is None or version > current.version:
            return None
        if current.version == version:
            return current
        for change in self._changes("history", id=id):
            if change.before is not None and change.before.version == version:
                return change.before
        return None

    # --- receipts ----------------------------------------------------------------------------------------------

    def receipt(self, id: str) -> bytes | None:
        rows = self._fetch("receipt", id=id)
        return rows[0][0] if rows else None

    def receipts(self, limit: int, record: str | None = None) -> list[StoredReceipt]:
        """Return the newest receipts, of the contexts that showed a record if it is given."""
        shown_in = {} if record is None else {"record": record}
        rows = self._fetch("receipts_with_record" if shown_in else "receipts", limit=limit, **shown_in)
        return [StoredReceipt(*row) for row in rows]

    def receipt_summaries(
        self, limit: int, after: tuple[int, str] | None = None, session: str | None = None, *, since: int = 0
    ) -> list[str]:
        """Return the summaries of receipts, newest first. `after` is (created, id) of the last one of another page."""
        created, id = after or (END_OF_TIME, "")
        params: dict[str, Any] = {"limit": limit, "since": since, "created": created, "id": id}
        query = "receipt_summaries"
        if session is not None:
            query, params["in_session"] = "receipt_summaries_of_session", session
        return [summary for (summary,) in self._fetch(query, **params)]

    def receipt_agents(self) -> list[str]:
        """Return the agents that contexts were computed for, of other scopes too. Only their names cross the scopes."""
        return [name for (name,) in self._fetch("receipt_agents")]

    def receipt_sessions(self, limit: int) -> list[tuple[str, int, int]]:
        """Return (session, number of contexts, time of the last one), newest first."""
        return [(session, count, last) for session, count, last in self._fetch("receipt_sessions", limit=limit)]

    def items_shown_by(self, receipts: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of the records that each of these contexts showed. Contexts of other scopes are left out."""
        ids: dict[str, list[str]] = defaultdict(list)
        for receipt, record in self._fetch("items_shown_by", ids=json.dumps(list(receipts))):
            ids[receipt].append(record)
        return dict(ids)

    # --- statistics --------------------------------------------------------------------------------------------

    def counts(self) -> StoreCounts:
        """Return the number of rows of the scope's user and agent, and of those that all users and agents share.

        A scope without user and agent counts every owner's rows: these are only numbers. Internal kinds are not counted.
        """
        by_kind: dict[str, dict[str, int]] = defaultdict(dict)
        for kind, status, count in self._fetch("count_records"):
            if kind not in internal_kinds():
                by_kind[kind][status] = count
        records = {kind: dict(sorted(by_kind[kind].items())) for kind in sorted(by_kind)}
        return StoreCounts(records, *self._fetch("count_rest")[0])

    def growth(self, since: int) -> dict[str, int]:
        """Return the time of the first record, and counts: records added since a time, live facts, confirmed facts."""
        counts = self._fetch("growth", since=since, **_internal_kinds())[0]
        return dict(zip(("first", "added", "facts", "confirmed"), counts, strict=True))

    def growth_by_day(self, since: int) -> dict[str, int]:
        """Return the number of records written on each day (UTC) since a time. Days without records are left out."""
        rows = self._fetch("growth_by_day", since=since, **_internal_kinds())
        return {iso(day * DAY_MS)[:10]: count for day, count in rows}

    def max_doc(self) -> int:
        """Return the highest number of a record in the project."""
        return int(self._fetch("max_doc")[0][0])

    def count_expired(self, retention: Retention, now: int) -> ExpiredCounts:
        """Return how many receipts and events of the whole project are expired, for every owner."""
        limits = self._event_cutoffs(retention, now)
        events = self._fetch("count_expired_events", **limits)[0][0] if retention.drops_events else 0
        return ExpiredCounts(len(self._expired_receipts(retention, now)), events)

    def _event_cutoffs(self, retention: Retention, now: int) -> dict[str, int]:
        """Return two times: events before the first are too old, events before the second are beyond the number to keep."""
        max_events = retention.events
        rows = self._fetch("oldest_event_to_keep", newer_events=max_events - 1) if max_events else []
        return {"before": retention.events_cutoff(now), "surplus_before": rows[0][0] if rows else 0}

    def _expired_receipts(self, retention: Retention, now: int) -> list[str]:
        expired = {id for (id,) in self._fetch("old_receipts", before=retention.receipts_cutoff(now))}
        max_bytes = retention.receipt_bytes
        if max_bytes is not None and self._fetch("receipt_bytes")[0][0] > max_bytes:
            total = 0
            for id, size in self._fetch("receipt_sizes"):
                total += size
                # Somewhat below the limit, so that the next receipts do not each exceed it again.
                if total > max_bytes * (1 - OVERRUN_SHARE):
                    expired.add(id)
        return sorted(expired)

    def index_mismatch(self) -> str:
        """Describe how the index differs from the records, or return an empty string if it does not."""
        total, indexed = self._fetch("count_indexed")[0]
        if total != indexed:
            return f"{total} records, {indexed} indexed"
        with_postings: set[int] = set()
        for _, _, _, docs, _ in self.index.all_postings():
            with_postings.update(docs)
        missing = records_with_postings = after = 0
        while page := self._fetch("every_record", after=after):
            others = [self._record(row) for row in page if row[0] not in with_postings]
            # A record of emoji alone has no terms, and so no postings.
            missing += sum(bool(record_postings(record, kind_of(record.kind))[0]) for record in others)
            records_with_postings += len(page) - len(others)
            after = page[-1][0]
        if missing:
            return f"{missing} records have no postings"
        removed = len(with_postings) - records_with_postings
        return f"{removed} postings of no record" if removed else ""

    # --- search and vectors ------------------------------------------------------------------------------------

    def idf(self, terms: Sequence[str]) -> dict[str, float]:
        return self.index.idf(terms)

    def terms_with_prefix(self, prefixes: Sequence[str]) -> list[str]:
        return self.index.terms_with_prefix(prefixes)

    def search(self, query: Query, groups: Sequence[SearchGroup]) -> list[list[Hit]]:
        """Return for each group its best `limit` records by words, and as many by vector if the query has one."""
        hits = LexicalSearch(self.index, self._by_docs, self._list_docs, query).hits(groups)
        namespace = self._namespace() if query.vector is not None else None
        if query.vector is not None and namespace is not None:
            params = {**self._scope_params, **filter_params(query.filters)}
            codes = self.index.kind_codes()
            view = VectorView(self._db.fetch_all, self._project, namespace[0], codes, params, self._has_writes)

            def load(docs: Sequence[int]) -> dict[int, Record]:
                return self._by_docs(docs, query.filters)

            add_vector_hits(self._open_vector_search(), view, query.vector, groups, hits, load)
        return [list(best_first(found).values()) for found in hits]

    def count_missing_vectors(self) -> int:
        """Return how many records have no vector of the store's embedder; 0 without an embedder.

        This subtracts two counters and reads no record, so it can run with every context.
        """
        if self._embedding_namespace is None:
            return 0
        return max(0, int(self._fetch("count_missing_vectors", space=self._namespace_id())[0][0]))

    def records_without_vector(self, after: int, limit: int) -> tuple[list[Record], int]:
        """Return records of every owner without a vector of the store's embedder, and where the next page begins, or 0."""
        rows = self._fetch("records_without_vector", space=self._namespace_id(), after=after, limit=limit)
        return [self._record(row) for row in rows], rows[-1][0] if len(rows) == limit else 0

    def embedding_namespaces(self) -> list[EmbeddingNamespace]:
        """Return each embedder that the project has vectors of, with their number and size."""
        return [
            EmbeddingNamespace(
                fingerprint, count, count * BYTES_PER_DIMENSION * dim, fingerprint == self._embedding_namespace
            )
            for fingerprint, dim, count in self._fetch("embedding_namespaces")
        ]

    def _namespace(self) -> tuple[int, int] | None:
        """Return (id, dimensions) of the store's embedding namespace, or None if the project has no vector of it."""
        if self._embedding_namespace is None:
            return None
        return find_namespace(self._db, self._project, self._embedding_namespace)

    def _namespace_id(self) -> int:
        """Return the id of the store's embedding namespace, or 0, which no vector has."""
        namespace = self._namespace()
        return namespace[0] if namespace else 0

    # --- helpers -----------------------------------------------------------------------------------------------

    def _fetch(self, query: str, **params: object) -> list[tuple[Any, ...]]:
        """Run a query with the project and the scope as further parameters."""
        return self._db.fetch_all(query, {"project": self._project, **self._scope_params, **params})

    def _records(self, query: str, **params: object) -> list[Record]:
        return [self._record(row) for row in self._fetch(query, **params)]

    def _record(self, row: Sequence[Any]) -> Record:
        return from_row(row, self.scope.project)

    def _links(self, query: str, **params: object) -> list[Link]:
        return [Link(*row) for row in self._fetch(query, **params)]

    def _changes(self, query: str, **params: object) -> list[Change]:
        rules = Rules(counter=self._counter())
        return [
            Change(id, version, change, at, verb, None if before is None else deserialize_record(before, self.scope, rules))
            for id, version, change, at, verb, before in self._fetch(query, **params)
        ]

    def _counter(self) -> str:
        """Return the name of the counter that the tokens of the records were counted with."""
        return str(dict(self._db.fetch_all("meta")).get("counter", "o200k"))

    def _by_docs(self, docs: Sequence[int], filters: Filters) -> dict[int, Record]:
        rows = self._fetch("by_docs", docs=json.dumps(list(docs)), **filter_params(filters))
        return {row[0]: self._record(row) for row in rows}

    def _list_docs(self, kinds: Sequence[str], filters: Filters) -> list[tuple[Any, ...]]:
        return self._fetch("docs_matching", kinds=json.dumps(list(kinds)), **filter_params(filters))

    def _require(self, id: str) -> Record:
        """Return a record, or raise `NotFound` if it is not in the scope."""
        record = self.get([id]).get(id)
        if record is None:
            raise NotFound(f"No record {id!r} in this scope.")
        return record


def _by_owner(record: Record) -> tuple[int, int, str]:
    """Sort records with the same key: first the one that names most levels of its owner, then the oldest."""
    kind = KINDS.get(record.kind)  # None for a kind that only another program registered
    levels = (record.scope.agent, record.scope.user, record.scope.session if kind and kind.is_private else None)
    return -sum(level is not None for level in levels), record.created, record.id


def _priority(record: Record) -> tuple[bool, float]:
    return (record.status == "active", record.salience)


def _internal_kinds() -> dict[str, str]:
    return {"internal_kinds": json.dumps(sorted(internal_kinds()))}
