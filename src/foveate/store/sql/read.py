"""A reader over named queries: what every SQL store answers, whatever the database beneath.

A database brings a few calls (`Database`) and a dialect's `queries.sql`; how state is searched and read is here, once.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any, Protocol

from foveate.clock import iso
from foveate.errors import NotFound
from foveate.records.kinds import KINDS, STRUCTURAL_LINKS, internal_kinds, kind_of
from foveate.records.make import Rules
from foveate.store.protocol import EmbeddingNamespace, Hit, Query, SearchGroup, SessionNeighbor, StoreCounts, StoredReceipt
from foveate.store.retention import DAY_MS, OVERRUN_SHARE, ExpiredCounts, Retention
from foveate.store.sql import posting_blocks, query_plan, ranking
from foveate.store.sql import postings as index
from foveate.store.sql.rows import filter_params, from_row, thaw
from foveate.store.vectors import MAX_SUPERSEDED_HITS, VectorGroup, VectorSearch, VectorView
from foveate.types import NO_FILTERS, Change, Filters, Link, Record, Scope

OVERFETCH = 50
"""Hits fetched beyond twice the limit, so that a filter seldom needs a second query."""

UNSEEN = os.urandom(16).hex()
"""The secret of a project that a member of others may not see: this process's own."""


class Database(Protocol):
    """The seam to a database driver, inside one open transaction."""

    def fetch_all(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> list[tuple[Any, ...]]: ...
    def execute(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> int: ...
    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None: ...


class ReadTransaction:
    """One snapshot of one scope."""

    def __init__(
        self, database: Database, scope: Scope, segments: VectorSearch, embedding_namespace: str | None = None
    ) -> None:
        self.scope = scope
        self._db = database
        self._segments = segments
        self._space = embedding_namespace
        self._dirty = False
        self._codes: dict[str, int] | None = None
        found = database.fetch_all("project", {"name": scope.project})
        self._project, self._revision, self._docs = found[0] if found else (0, 0, 0)
        self._who = {"user": scope.user, "agent": scope.agent, "session": scope.session, "task": scope.task}

    @property
    def revision(self) -> str:
        return str(self._revision)

    @property
    def secret(self) -> str:
        found = self._db.fetch_all("secret", {"name": self.scope.project})
        return str(found[0][0]) if found else UNSEEN

    def get(self, ids: Sequence[str]) -> dict[str, Record]:
        return {record.id: record for record in self._records("by_ids", ids=json.dumps(list(ids)))}

    def by_key(self, key: str) -> Record | None:
        """The record that its owner keeps under this key; of several that can be seen, the nearest owner's."""
        # Chosen here: SQLite would make a table to sort in, 35 microseconds even where there is nothing to sort.
        return min(self._records("by_key_visible", key=key), key=_nearness, default=None)

    def count(self, kind: str) -> int:
        """How many records of a kind are in use."""
        return int(self._db.fetch_all("count_kind", {"project": self._project, "kind": kind, **self._who})[0][0])

    def terms_with_prefix(self, words: Sequence[str]) -> list[str]:
        """The terms of the knowledge index that begin with one of the words, a few for each."""
        at = {"project": self._project, "kinds": json.dumps(sorted(self._shelf("knowledge").values()))}
        found: dict[str, None] = {}
        for word in words:
            rows = self._db.fetch_all("terms_with_prefix", {**at, "prefix": word, "end": word + chr(0x10FFFF)})
            found |= dict.fromkeys(row[0] for row in rows)
        return list(found)

    def idf(self, terms: Sequence[str]) -> dict[str, float]:
        """How rare each term is; one that no record holds is not there. Knowledge decides, and events where it has none."""
        found: dict[str, float] = {}
        volumes, sizes = self._volumes(), self._sizes(terms)
        for shelf in index.PARTITIONS:
            codes = set(self._shelf(shelf).values())
            counts = {term: max(counted.values()) for term, counted in by_field(sizes, codes).items() if term not in found}
            found |= query_plan.idf(counts, sum(volumes[code][0] for code in codes & volumes.keys()))
        return found

    def always_on(self, kinds: Sequence[str], *, pinned: bool = False) -> list[Record]:
        if pinned:
            return self._records("pinned", kinds=json.dumps(kinds) if kinds else None)
        return self._records("always_on", kinds=json.dumps(kinds or [name for name, kind in KINDS.items() if kind.is_rule]))

    def recent(
        self, kinds: Sequence[str], limit: int, filters: Filters, *, archived: bool = False, session: str | None = None
    ) -> list[Record]:
        """The newest records of these kinds; with a session, of what was written in it."""
        params: dict[str, Any] = {"limit": limit, **filter_params(filters)}
        query = "recent_archived" if archived else "recent"
        if session is not None:
            query, params["in_session"] = f"{query}_of_session", session
        found = [record for kind in kinds for record in self._records(query, kind=kind, **params)]
        return sorted(found, key=lambda record: (-record.created, record.id))[:limit]

    def sessions(self, limit: int, filters: Filters) -> dict[str, int]:
        """The sessions with the newest events, and when the last of each happened."""
        params = {"project": self._project, "kind": "event", "limit": limit, **self._who, **filter_params(filters)}
        return dict(self._db.fetch_all("sessions", params))

    def most_salient(self, kinds: Sequence[str], limit: int, filters: Filters) -> list[Record]:
        """The records of these kinds that matter most, of equals the newest."""
        params = filter_params(filters)
        found = [record for kind in kinds for record in self._records("most_salient", kind=kind, limit=limit, **params)]
        return sorted(found, key=lambda record: (-record.salience, -record.created))[:limit]

    def entities_by_name(self, names: Sequence[str]) -> dict[str, Record]:
        pairs = self._db.fetch_all("entities_by_name", {"project": self._project, "names": json.dumps(list(names))})
        if not pairs:
            return {}
        by_doc = self._by_docs([doc for _, doc in pairs], NO_FILTERS)
        found: dict[str, Record] = {}
        for name, doc in pairs:
            if doc in by_doc and (name not in found or _weight(by_doc[doc]) > _weight(found[name])):
                found[name] = by_doc[doc]
        return found

    def session_neighbors(
        self, ids: Sequence[str], kinds: Sequence[str], max_distance: int, filters: Filters
    ) -> list[SessionNeighbor]:
        """What was kept in the same session up to `max_distance` places before and after each of some records."""
        wanted = {"ids": json.dumps(list(ids)), "kinds": json.dumps(list(kinds or KINDS)), "max_distance": max_distance}
        places = [
            (id, sign * (n + 1), doc)
            for id, *sides in self._db.fetch_all("session_neighbors", {"project": self._project, **self._who, **wanted})
            for sign, side in zip((1, -1), sides, strict=True)
            for n, doc in enumerate(json.loads(side))
        ]
        found = self._by_docs(sorted({doc for _, _, doc in places}), filters) if places else {}
        return [SessionNeighbor(id, step, found[doc]) for id, step, doc in places if doc in found]

    def links(self, ids: Sequence[str], names: Sequence[str] = (), *, incoming: bool = False) -> list[Link]:
        wanted: dict[str, Any] = {"project": self._project, **self._who}
        wanted |= {"ids": json.dumps(list(ids)), "names": json.dumps(names) if names else None}
        return [Link(*row) for row in self._db.fetch_all("links_to" if incoming else "links_from", wanted)]

    def relations(self, ids: Sequence[str], limit: int) -> list[Link]:
        """Links between entities in use that begin or end at one of these, the heaviest first; none that foveate drew."""
        wanted = {"ids": json.dumps(list(ids)), "structural_links": json.dumps(sorted(STRUCTURAL_LINKS)), "limit": limit}
        return [Link(*row) for row in self._db.fetch_all("relations", {"project": self._project, **self._who, **wanted})]

    def records(self) -> Iterator[Record]:
        after = 0
        while page := self._db.fetch_all("all_records", {"project": self._project, "after": after, **self._who}):
            for row in page:
                yield self._record(row)
            after = page[-1][0]

    def page(self, limit: int, filters: Filters, *, status: str | None = None, after: int = 0) -> tuple[list[Record], int]:
        """Return records of any status, newest first, and where the next page begins, or 0 after the last page.

        Internal kinds are listed only if the filters name them.
        """
        params = {"limit": limit + 1, "status": status, "after": after, **_internal(), **filter_params(filters)}
        rows = self._db.fetch_all("records_page", {"project": self._project, **self._who, **params})
        return [self._record(row) for row in rows[:limit]], rows[limit - 1][0] if len(rows) > limit else 0

    def all_links(self) -> Iterator[Link]:
        for row in self._db.fetch_all("all_links", {"project": self._project, **self._who}):
            yield Link(*row)

    def all_history(self) -> Iterator[Change]:
        yield from self._changes("all_history", **self._who)

    def history(self, id: str) -> list[Change]:
        self._seen(id)
        return self._changes("history", id=id)

    def version(self, id: str, version: int) -> Record | None:
        current = self.get([id]).get(id)
        if current is None or version > current.version:
            return None
        if current.version == version:
            return current
        for step in self._changes("history", id=id):
            if step.before is not None and step.before.version == version:
                return step.before
        return None

    def receipt(self, id: str) -> bytes | None:
        found = self._db.fetch_all("receipt", {"project": self._project, "id": id, **self._who})
        return found[0][0] if found else None

    def receipts(self, limit: int, record: str | None = None) -> list[StoredReceipt]:
        params: dict[str, Any] = {"project": self._project, "limit": limit, **self._who}
        if record is None:
            return list(starmap(_stored, self._db.fetch_all("receipts", params)))
        return list(starmap(_stored, self._db.fetch_all("receipts_with_record", {**params, "record": record})))

    def receipt_summaries(self, limit: int, after: tuple[int, str] | None = None, session: str | None = None) -> list[str]:
        """Return the summaries of receipts, newest first: those after (created, id) of the last one of another page."""
        created, id = after or (None, "")
        params = {"project": self._project, "limit": limit, "created": created, "id": id, **self._who}
        if session is None:
            return [line for (line,) in self._db.fetch_all("receipt_summaries", params)]
        return [line for (line,) in self._db.fetch_all("receipt_summaries_of_session", {**params, "in_session": session})]

    def receipt_summaries_since(self, since: int, limit: int) -> tuple[list[str], bool]:
        """The lines of receipts that were created at this time or later, newest first, and whether there are more."""
        params = {"project": self._project, "since": since, "limit": limit + 1, **self._who}
        found = [line for (line,) in self._db.fetch_all("receipt_summaries_since", params)]
        return found[:limit], len(found) > limit

    def receipt_agents(self) -> list[str]:
        """The agents that contexts were computed for. Names alone cross the wall between them: their receipts do not."""
        return [
            name for (name,) in self._db.fetch_all("receipt_agents", {"project": self._project, "user": self._who["user"]})
        ]

    def receipt_sessions(self, limit: int) -> list[tuple[str, int, int]]:
        """Sessions that contexts were computed in, how many, and when the last one was; the newest first."""
        params = {"project": self._project, "limit": limit, **self._who}
        return [(name, number, last) for name, number, last in self._db.fetch_all("receipt_sessions", params)]

    def items_shown_by(self, receipts: Sequence[str]) -> dict[str, list[str]]:
        """The ids of what each of these contexts showed; one that showed nothing, or is not ours, is not there."""
        found: dict[str, list[str]] = defaultdict(list)
        params = {"project": self._project, "ids": json.dumps(list(receipts)), **self._who}
        for receipt, record in self._db.fetch_all("items_shown_by", params):
            found[receipt].append(record)
        return dict(found)

    def counts(self) -> StoreCounts:
        """Return how much the project holds of the scope's user and agent, and of what all of them share.

        A scope that names nobody counts everybody's records: these are only numbers. Internal kinds are not counted.
        """
        at = {"project": self._project, "user": self.scope.user, "agent": self.scope.agent}
        kinds: dict[str, dict[str, int]] = defaultdict(dict)
        for kind, status, number in self._db.fetch_all("count_records", at):
            if kind not in internal_kinds():
                kinds[kind][status] = number
        by_kind = {kind: dict(sorted(kinds[kind].items())) for kind in sorted(kinds)}
        return StoreCounts(by_kind, *self._db.fetch_all("count_rest", at)[0])

    def growth(self, since: int) -> dict[str, int]:
        """When the first record was written, how many were since a time, facts in use, and how many of those confirmed."""
        found = self._db.fetch_all("growth", {"project": self._project, "since": since, **_internal(), **self._who})[0]
        return dict(zip(("first", "added", "facts", "confirmed"), found, strict=True))

    def growth_by_day(self, since: int) -> dict[str, int]:
        """How many records were written on each day since a time (UTC); a day without any is not there."""
        rows = self._db.fetch_all("growth_by_day", {"project": self._project, "since": since, **_internal(), **self._who})
        return {iso(day * DAY_MS)[:10]: number for day, number in rows}

    def postings(self) -> Iterator[tuple[str, int, int, Sequence[int], Sequence[int]]]:
        """(term, kind code, field, numbers, codes) of every block of the project's index."""
        last: tuple[Any, ...] = ("", -1, -1, -1)
        while page := self._db.fetch_all(
            "every_block", dict(zip(("term", "kind", "field", "first"), last, strict=True)) | {"project": self._project}
        ):
            for term, kind, field, _, docs, codes in page:
                yield term, kind, field, *posting_blocks.concat([docs], [codes])
            last = page[-1][:4]

    def index_mismatch(self) -> str:
        """In which way index and records differ, nothing when they agree: by their counts, then by what has no postings."""
        total, indexed = self._db.fetch_all("count_indexed", {"project": self._project})[0]
        if total != indexed:
            return f"{total} records, {indexed} indexed"
        posted: set[int] = set()
        for _, _, _, docs, _ in self.postings():
            posted.update(docs)
        lost = extra = after = 0
        while page := self._db.fetch_all("every_record", {"project": self._project, "after": after}):
            # One of emoji alone has no terms.
            unposted = [self._record(row) for row in page if row[0] not in posted]
            lost += sum(bool(index.record_postings(record, kind_of(record.kind))[0]) for record in unposted)
            extra += len(page) - len(unposted)
            after = page[-1][0]
        if lost:
            return f"{lost} records have no postings"
        return f"{len(posted) - extra} postings of no record" if extra < len(posted) else ""

    # --- vectors -----------------------------------------------------------------------------------------------

    def count_missing_vectors(self) -> int:
        """How many records have no vector by the store's embedder yet; 0 where it has none. It costs no look at them."""
        if self._space is None:
            return 0
        space = self._known_space() or 0
        return max(0, int(self._db.fetch_all("count_missing_vectors", {"project": self._project, "space": space})[0][0]))

    def records_without_vector(self, after: int, limit: int) -> tuple[list[Record], int]:
        """Records of the whole project that have no vector by the store's embedder, and where to go on; 0: no further."""
        at = {"project": self._project, "space": self._known_space() or 0, "after": after, "limit": limit}
        rows = self._db.fetch_all("records_without_vector", at)
        return [self._record(row) for row in rows], rows[-1][0] if len(rows) == limit else 0

    def max_doc(self) -> int:
        """A number that no record's place is above."""
        return int(self._db.fetch_all("max_doc", {"project": self._project})[0][0])

    def embedding_namespaces(self) -> list[EmbeddingNamespace]:
        """Whose vectors the project holds, and how many bytes they take."""
        rows = self._db.fetch_all("embedding_namespaces", {"project": self._project})
        return [EmbeddingNamespace(name, number, number * 2 * dim, name == self._space) for name, dim, number in rows]

    def count_expired(self, retention: Retention, now: int) -> ExpiredCounts:
        """How many receipts and events of the project are beyond what is kept, whoever they belong to."""
        limits = {"project": self._project, **self._event_limits(retention, now)}
        events = self._db.fetch_all("count_expired_events", limits)[0][0] if retention.drops_events else 0
        return ExpiredCounts(len(self._outlived_receipts(retention, now)), events)

    def _event_limits(self, retention: Retention, now: int) -> dict[str, int]:
        """Times before which an event goes: by age, and whatever its age, because there are enough newer ones."""
        kept = retention.events
        found = self._db.fetch_all("oldest_event_to_keep", {"project": self._project, "max_events": kept}) if kept else []
        return {"before": retention.events_cutoff(now), "surplus_before": found[0][0] if found else 0}

    def _outlived_receipts(self, retention: Retention, now: int) -> list[str]:
        at = {"project": self._project}
        doomed = {row[0] for row in self._db.fetch_all("old_receipts", {**at, "before": retention.receipts_cutoff(now)})}
        most = retention.receipt_bytes
        if most is not None and self._db.fetch_all("receipt_bytes", at)[0][0] > most:
            size = 0
            for id, length in self._db.fetch_all("receipt_sizes", at):
                size += length
                if size > most * (1 - OVERRUN_SHARE):
                    doomed.add(id)
        return sorted(doomed)

    # --- search ------------------------------------------------------------------------------------------------

    def search(self, query: Query, wants: Sequence[SearchGroup]) -> list[list[Hit]]:
        """For each want its best `limit` records by words and, where the query has a vector, as many of the nearest."""
        found: list[dict[int, Hit]] = [{} for _ in wants]
        volumes, sizes = self._volumes(), self._sizes((*query.terms, *query.expansions))
        for shelf in index.PARTITIONS:
            codes = {kind: code for kind, code in self._shelf(shelf).items() if code in volumes}
            groups = {n: codes.keys() & set(want.kinds or codes) for n, want in enumerate(wants)}
            asked = {n: (sorted(codes[kind] for kind in group), wants[n].limit) for n, group in groups.items() if group}
            if asked:
                inside = _Shelf(
                    sum(volumes[code][0] for code in codes.values()),
                    sum(volumes[code][1] for code in codes.values()),
                    {key: size for key, size in sizes.items() if key[1] in codes.values()},
                )
                for n, hits in self._search_shelf(query, inside, asked).items():
                    found[n] = _best(found[n] | hits, wants[n].limit)
        if query.vector is not None:
            self._add_vector_hits(query, wants, found)
        return [list(_best(hits).values()) for hits in found]

    def _search_shelf(
        self, query: Query, shelf: _Shelf, asked: Mapping[int, tuple[list[int], int]]
    ) -> dict[int, dict[int, Hit]]:
        frequencies = by_field(shelf.sizes)
        plan = query_plan.plan_query(
            query.terms, query.field_weights, frequencies, shelf.docs, query.expansions, query.expansion_weight
        )
        if not plan.field_terms:
            return {}
        lists = _Lists(self._blocks, plan, shelf, {code for kinds, _ in asked.values() for code in kinds})
        ranked = {n: lists.best(kinds, limit) for n, (kinds, limit) in asked.items()}
        found = self._by_docs(sorted({doc for pairs in ranked.values() for doc, _ in pairs}), query.filters)
        inside: dict[int, set[int]] | None = None
        out = {}
        for n, (kinds, limit) in asked.items():
            # Most hits hold and pass the filters; more are ranked only where some do not.
            if any(doc not in found or found[doc].status != "active" for doc, _ in ranked[n]):
                ranked[n] = lists.best(kinds, 2 * limit + OVERFETCH)
                found |= self._by_docs([doc for doc, _ in ranked[n] if doc not in found], query.filters)
            holding = [pair for pair in ranked[n] if pair[0] in found and found[pair[0]].status == "active"][:limit]
            beaten = [pair for pair in ranked[n] if pair[0] in found and found[pair[0]].status != "active"][
                :MAX_SUPERSEDED_HITS
            ]
            if len(holding) < limit and len(ranked[n]) == 2 * limit + OVERFETCH:
                # A filter lets so little through that the first best were not enough: it is asked first then.
                inside = self._within(lists.kinds, query.filters) if inside is None else inside
                holding = lists.best(kinds, limit, {doc for kind in kinds for doc in inside.get(kind, ())})
                found |= self._by_docs([doc for doc, _ in holding], query.filters)
            out[n] = {doc: Hit(found[doc], plan.relevance(score)) for doc, score in (*holding, *beaten)}
        return out

    def _shelf(self, shelf: str) -> dict[str, int]:
        """The kinds of a shelf that the store has met, and their codes."""
        if self._codes is None:
            self._codes = dict(self._db.fetch_all("kinds"))
        return {kind: code for kind, code in self._codes.items() if kind in KINDS and KINDS[kind].partition == shelf}

    def _volumes(self) -> dict[int, tuple[int, int]]:
        """How many records of each kind (by its code) are in the index, and the terms of their texts; none that is empty."""
        rows = self._db.fetch_all("index_sizes", {"project": self._project})
        return {kind: (docs, tokens) for kind, docs, tokens in rows if docs}

    def _sizes(self, terms: Sequence[str]) -> dict[tuple[str, int, int], int]:
        """How many records have each of the terms, by (term, kind, field)."""
        if not terms:
            return {}
        rows = self._db.fetch_all("document_frequencies", {"project": self._project, "terms": json.dumps(list(terms))})
        return {(term, kind, field): int(size) for term, kind, field, size in rows}

    def _blocks(self, keys: Sequence[tuple[str, int]], kinds: Sequence[int]) -> list[tuple[int, str, int, bytes, bytes]]:
        """(kind, term, field, numbers, codes) of every block of these lists."""
        params = {"project": self._project, "lists": json.dumps(list(keys)), "kinds": json.dumps(list(kinds))}
        return self._db.fetch_all("blocks", params)

    def _within(self, kinds: Sequence[int], filters: Filters) -> dict[int, set[int]]:
        """The records that hold and pass the filters, by their kind. It looks at every record of these kinds."""
        codes = {name: code for name, code in (self._codes or {}).items() if code in kinds}
        params = {"project": self._project, "kinds": json.dumps(list(codes)), **self._who, **filter_params(filters)}
        found: dict[int, set[int]] = defaultdict(set)
        for doc, kind in self._db.fetch_all("docs_matching", params):
            found[codes[kind]].add(doc)
        return found

    def _add_vector_hits(self, query: Query, wants: Sequence[SearchGroup], found: list[dict[int, Hit]]) -> None:
        space = self._known_space()
        if space is None or query.vector is None:
            return
        codes = dict(self._db.fetch_all("kinds"))
        within = {**self._who, **filter_params(query.filters)}
        view = VectorView(self._db.fetch_all, self._project, space, within, self._dirty)
        asked = [VectorGroup(_codes_of(want.kinds, codes), want.limit) for want in wants]
        near = self._segments.nearest(view, query.vector, asked)
        new = {one.doc for hits, group in zip(found, near, strict=True) for one in group if one.doc not in hits}
        fresh = self._by_docs(sorted(new), query.filters) if new else {}
        for hits, group in zip(found, near, strict=True):
            hits |= {one.doc: Hit(fresh[one.doc], 0.0) for one in group if one.doc not in hits}
        nearness = {one.doc: one.similarity for group in near for one in group}
        others = {doc for hits in found for doc in hits if doc not in nearness}
        nearness |= self._segments.similarities(view, query.vector, sorted(others))
        for hits in found:
            for doc, hit in hits.items():
                hits[doc] = replace(hit, vector=nearness.get(doc))

    def _known_space(self) -> int | None:
        """The number of the space that the store was opened for, once the project holds a vector of it."""
        used = self._used_space()
        return used[0] if used else None

    def _used_space(self) -> tuple[int, int] | None:
        """The same, with its dimensions."""
        known = (
            self._db.fetch_all("namespace_of_project", {"project": self._project, "fingerprint": self._space})
            if self._space
            else []
        )
        return known[0] if known else None

    # --- helpers -----------------------------------------------------------------------------------------------

    def _seen(self, id: str) -> Record:
        record = self.get([id]).get(id)
        if record is None:
            raise NotFound(f"No record {id!r} in this scope.")
        return record

    def _by_docs(self, docs: Sequence[int], filters: Filters) -> dict[int, Record]:
        params = {"project": self._project, "docs": json.dumps(list(docs)), **self._who, **filter_params(filters)}
        return {row[0]: self._record(row) for row in self._db.fetch_all("by_docs", params)}

    def _records(self, query: str, **params: Any) -> list[Record]:
        rows = self._db.fetch_all(query, {"project": self._project, **self._who, **params})
        return [self._record(row) for row in rows]

    def _record(self, row: Sequence[Any]) -> Record:
        return from_row(row, self.scope.project)

    def _changes(self, query: str, **params: Any) -> list[Change]:
        rules = Rules(counter=dict(self._db.fetch_all("meta")).get("counter", "o200k"))
        return [
            Change(id, version, change, at, verb, None if before is None else thaw(before, self.scope, rules))
            for id, version, change, at, verb, before in self._db.fetch_all(query, {"project": self._project, **params})
        ]


def _nearness(record: Record) -> tuple[int, int, str]:
    """The place of a record among those under one key: the nearest owner's comes first, and of two as near the older."""
    kind = KINDS.get(record.kind)  # one that another program registered is unknown here
    named = (record.scope.agent, record.scope.user, record.scope.session if kind and kind.is_private else None)
    return -sum(level is not None for level in named), record.created, record.id


@dataclass(frozen=True, slots=True)
class _Shelf:
    """What is known of a shelf before a search: its records and their terms, and the sizes of the lists that were asked."""

    docs: int
    tokens: int
    sizes: Mapping[tuple[str, int, int], int]


class _Lists:
    """The lists of one search, each read once however many wants need it."""

    def __init__(
        self,
        read: Callable[[Sequence[tuple[str, int]], Sequence[int]], Sequence[tuple[int, str, int, bytes, bytes]]],
        plan: query_plan.QueryPlan,
        shelf: _Shelf,
        kinds: set[int],
    ) -> None:
        self._read = read
        self._plan = plan
        self._sizes = shelf.sizes
        self._average = max(shelf.tokens / shelf.docs, 1.0)
        self.kinds = sorted(kinds)
        self._held: dict[tuple[str, int], dict[int, tuple[list[bytes], list[bytes]]]] = {}

    def best(self, kinds: Sequence[int], limit: int, within: set[int] | None = None) -> list[tuple[int, float]]:
        """(number, score) of the best records of some kinds."""
        lists = [
            replace(listed, doc_frequency=size)
            for listed in self._plan.field_terms
            if (size := sum(self._sizes.get((listed.term, kind, listed.field), 0) for kind in kinds))
        ]
        return ranking.top_k(lists, lambda batch: self._load(batch, kinds), self._average, limit, within)

    def _load(self, batch: Sequence[ranking.FieldTerm], kinds: Sequence[int]) -> dict[tuple[str, int], ranking.Postings]:
        missing = [listed.key for listed in batch if listed.key not in self._held]
        self._held |= {key: {} for key in missing}
        for kind, term, field, docs, codes in self._read(missing, self.kinds) if missing else ():
            parts = self._held[term, field].setdefault(kind, ([], []))
            parts[0].append(docs)
            parts[1].append(codes)
        found = {}
        for listed in batch:
            held = [parts for kind, parts in self._held[listed.key].items() if kind in kinds]
            numbers = [block for docs, _ in held for block in docs]
            found[listed.key] = posting_blocks.concat(numbers, [block for _, codes in held for block in codes])
        return found


def by_field(sizes: Mapping[tuple[str, int, int], int], kinds: Container[int] | None = None) -> dict[str, dict[int, int]]:
    """How many records have each term in each field, of all kinds or some."""
    found: dict[str, dict[int, int]] = {}
    for (term, kind, field), size in sizes.items():
        if kinds is None or kind in kinds:
            counted = found.setdefault(term, {})
            counted[field] = counted.get(field, 0) + size
    return found


def _codes_of(kinds: Sequence[str], codes: Mapping[str, int]) -> dict[str, int] | None:
    """Return the codes of the kinds that the store has met, or None if every kind is searched."""
    return {kind: codes[kind] for kind in kinds if kind in codes} if kinds else None


def _internal() -> dict[str, str]:
    return {"internal_kinds": json.dumps(sorted(internal_kinds()))}


def _stored(id: str, created: int, body: bytes, session: str | None, line: str | None) -> StoredReceipt:
    return StoredReceipt(id, created, body, session=session, summary=line)


def _weight(record: Record) -> tuple[bool, float]:
    """Which of several of one name is meant: one that holds, then the one that matters most."""
    return (record.status == "active", record.salience)


def _best(hits: Mapping[int, Hit], limit: int | None = None) -> dict[int, Hit]:
    """The best hits. The sort is stable: relevance ends at 1, and hits beyond it keep the order of their scores."""
    ranked = sorted(hits.items(), key=lambda pair: -pair[1].relevance)
    holding = [pair for pair in ranked if pair[1].record.status == "active"]
    beaten = [pair for pair in ranked if pair[1].record.status != "active"]
    return dict((*holding[:limit], *beaten[:MAX_SUPERSEDED_HITS])) if limit is not None else dict(ranked)
