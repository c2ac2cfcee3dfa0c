"""A reader over named queries: what every SQL store answers, whatever the database beneath.

A database brings a few calls (`Database`) and a dialect's `queries.sql`; how state is searched and read is here, once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from foveate.errors import NotFound
from foveate.state import index, vectors
from foveate.state.kinds import KINDS
from foveate.state.links import STRUCTURAL
from foveate.state.records import Rules
from foveate.state.rows import filter_params, from_row, thaw
from foveate.state.store import Beside, Change, Hit, Query, StoredReceipt, Want
from foveate.types import Filters, Link, Record, Scope

BEATEN = 10
"""Superseded and disputed hits shown beside those that hold, so that a receipt can say what overruled them. They come on
top of the limit: what no longer holds must never crowd out what does."""

OVERFETCH = 50
"""Hits fetched beyond twice the limit, so that a filter seldom needs a second query."""


class Database(Protocol):
    """The seam to a database driver, inside one open transaction."""

    def rows(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> list[tuple[Any, ...]]: ...
    def sql(self, text: str, params: Mapping[str, Any]) -> list[tuple[Any, ...]]: ...
    def run(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> int: ...
    def many(self, query: str, rows: Sequence[Sequence[Any]]) -> None: ...
    def insert(self, query: str, params: Sequence[Any]) -> int: ...
    @property
    def queries(self) -> Mapping[str, str]: ...


class ReadTransaction:
    """One snapshot of one scope."""

    def __init__(self, database: Database, scope: Scope, segments: vectors.Segments, space: str | None = None) -> None:
        self.scope = scope
        self._db = database
        self._segments = segments
        self._space = space
        self._dirty = False
        found = database.rows("project", {"name": scope.project})
        self._project, self._revision = found[0] if found else (0, 0)
        self._who = {"user": scope.user, "agent": scope.agent, "session": scope.session, "task": scope.task}

    @property
    def revision(self) -> str:
        return str(self._revision)

    @property
    def secret(self) -> str:
        return str(dict(self._db.rows("meta"))["secret"])

    def get(self, ids: Sequence[str]) -> dict[str, Record]:
        return {record.id: record for record in self._records("by_ids", ids=json.dumps(list(ids)))}

    def by_key(self, key: str) -> Record | None:
        """The record that its owner keeps under this key; of several that can be seen, the nearest owner's."""
        found = self._records("by_key_visible", key=key)
        return found[0] if found else None

    def number(self, kind: str) -> int:
        """How many records of a kind are in use."""
        return int(self._db.rows("number", {"project": self._project, "kind": kind, **self._who})[0][0])

    def beginning(self, words: Sequence[str]) -> list[str]:
        """The terms of the knowledge index that begin with one of the words, a few for each."""
        at = {"project": self._project, "shelf": index.SHELVES["knowledge"]}
        found: dict[str, None] = {}
        for word in words:
            rows = self._db.rows("beginning", {**at, "word": word, "end": word + chr(0x10FFFF)})
            found |= dict.fromkeys(row[0] for row in rows)
        return list(found)

    def rarity(self, terms: Sequence[str]) -> dict[str, float]:
        """How rare each term is; one that no record holds is not there. Knowledge decides, and events where it has none."""
        found: dict[str, float] = {}
        for shelf in index.SHELVES.values():
            at = {"project": self._project, "shelf": shelf}
            size = self._db.rows("shelf", at)
            asked = [term for term in dict.fromkeys(terms) if term not in found]
            if not size or not asked:
                continue
            counts: dict[str, int] = {}
            for term, _, count in self._db.rows("frequencies", {**at, "terms": json.dumps(asked)}):
                counts[term] = max(count, counts.get(term, 0))
            found |= index.rarity(counts, size[0][0])
        return found

    def standing(self, kinds: Sequence[str], *, pinned: bool = False) -> list[Record]:
        if pinned:
            return self._records("pinned", kinds=json.dumps(kinds) if kinds else None)
        return self._records("standing", kinds=json.dumps(kinds or [name for name, kind in KINDS.items() if kind.rule]))

    def recent(
        self, kinds: Sequence[str], limit: int, filters: Filters, *, archived: bool = False, session: str | None = None
    ) -> list[Record]:
        """The newest records of these kinds; with a session, of what was written in it."""
        params: dict[str, Any] = {"limit": limit, **filter_params(filters)}
        query = "recent_archived" if archived else "recent"
        if session is not None:
            query, params["of"] = "recent_of_session", session
        found = [record for kind in kinds for record in self._records(query, kind=kind, **params)]
        return sorted(found, key=lambda record: (-record.created, record.id))[:limit]

    def sessions(self, limit: int, filters: Filters) -> dict[str, int]:
        """The sessions with the newest events, and when the last of each happened."""
        params = {"project": self._project, "kind": "event", "limit": limit, **self._who, **filter_params(filters)}
        return dict(self._db.rows("sessions", params))

    def salient(self, kinds: Sequence[str], limit: int, filters: Filters) -> list[Record]:
        """The records of these kinds that matter most, of equals the newest."""
        params = filter_params(filters)
        found = [record for kind in kinds for record in self._records("salient", kind=kind, limit=limit, **params)]
        return sorted(found, key=lambda record: (-record.salience, -record.created))[:limit]

    def named(self, names: Sequence[str]) -> dict[str, Record]:
        pairs = self._db.rows("named", {"project": self._project, "names": json.dumps(list(names))})
        if not pairs:
            return {}
        by_doc = self._by_docs([doc for _, doc in pairs], Filters())
        found: dict[str, Record] = {}
        for name, doc in pairs:
            if doc in by_doc and (name not in found or _weight(by_doc[doc]) > _weight(found[name])):
                found[name] = by_doc[doc]
        return found

    def called(self, names: Sequence[str], beginnings: Sequence[str], filters: Filters) -> list[tuple[str, Record]]:
        """(name, record) for every record in use that goes by one of the names, or by one that begins so."""
        at = {"project": self._project, "names": json.dumps(list(names)), "beginnings": json.dumps(list(beginnings))}
        pairs = self._db.rows("called", at)
        if not pairs:
            return []
        by_doc = self._by_docs(sorted({doc for _, doc in pairs}), filters)
        return [(name, by_doc[doc]) for name, doc in pairs if doc in by_doc and by_doc[doc].status == "active"]

    def beside(self, ids: Sequence[str], kinds: Sequence[str], reach: int, filters: Filters) -> list[Beside]:
        """What was kept in the same session up to `reach` places before and after each of some records."""
        wanted = {"ids": json.dumps(list(ids)), "kinds": json.dumps(list(kinds or KINDS)), "reach": reach}
        places = [
            (id, sign * (n + 1), doc)
            for id, *sides in self._db.rows("beside", {"project": self._project, **self._who, **wanted})
            for sign, side in zip((1, -1), sides, strict=True)
            for n, doc in enumerate(json.loads(side))
        ]
        found = self._by_docs(sorted({doc for _, _, doc in places}), filters) if places else {}
        return [Beside(id, step, found[doc]) for id, step, doc in places if doc in found]

    def links(self, ids: Sequence[str], names: Sequence[str] = (), *, back: bool = False) -> list[Link]:
        wanted: dict[str, Any] = {"project": self._project, **self._who}
        wanted |= {"ids": json.dumps(list(ids)), "names": json.dumps(names) if names else None}
        return [Link(*row) for row in self._db.rows("links_to" if back else "links_from", wanted)]

    def relations(self, ids: Sequence[str], limit: int) -> list[Link]:
        """Links between entities in use that begin or end at one of these, the heaviest first; none that foveate drew."""
        wanted = {"ids": json.dumps(list(ids)), "structural": json.dumps(sorted(STRUCTURAL)), "limit": limit}
        return [Link(*row) for row in self._db.rows("relations", {"project": self._project, **self._who, **wanted})]

    def records(self) -> Iterator[Record]:
        after = 0
        while page := self._db.rows("all_records", {"project": self._project, "after": after, **self._who}):
            for row in page:
                yield self._record(row)
            after = page[-1][0]

    def page(self, limit: int, filters: Filters, *, status: str | None = None, after: int = 0) -> tuple[list[Record], int]:
        """Records of any status, the last kept first, and where the next page begins; 0 where there is none."""
        params = {"limit": limit + 1, "status": status, "after": after, **filter_params(filters)}
        rows = self._db.rows("records_page", {"project": self._project, **self._who, **params})
        return [self._record(row) for row in rows[:limit]], rows[limit - 1][0] if len(rows) > limit else 0

    def all_links(self) -> Iterator[Link]:
        for row in self._db.rows("all_links", {"project": self._project, **self._who}):
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
        found = self._db.rows("receipt", {"project": self._project, "id": id, **self._who})
        return found[0][0] if found else None

    def receipts(self, limit: int, record: str | None = None) -> list[StoredReceipt]:
        params: dict[str, Any] = {"project": self._project, "limit": limit, **self._who}
        if record is None:
            return [StoredReceipt(*row) for row in self._db.rows("receipts", params)]
        return [StoredReceipt(*row) for row in self._db.rows("receipts_of", {**params, "record": record})]

    def receipts_page(self, limit: int, after: tuple[int, str] | None = None) -> list[StoredReceipt]:
        """Receipts, newest first, below (created, id) of the last one of another page."""
        created, id = after or (None, "")
        params = {"project": self._project, "limit": limit, "created": created, "id": id, **self._who}
        return [StoredReceipt(*row) for row in self._db.rows("receipts_page", params)]

    def counts(self) -> dict[str, Any]:
        kinds: dict[str, dict[str, int]] = defaultdict(dict)
        for kind, status, number in self._db.rows("count_records", {"project": self._project}):
            kinds[kind][status] = number
        names = ("links", "history", "receipts", "receipt_bytes", "indexed", "vectors")
        rest = dict(zip(names, self._db.rows("count_rest", {"project": self._project})[0], strict=True))
        return {"records": {kind: dict(sorted(kinds[kind].items())) for kind in sorted(kinds)}, **rest}

    def growth(self, since: int) -> dict[str, int]:
        """When the first record was written, how many were since a time, facts in use, and how many of those confirmed."""
        found = self._db.rows("growth", {"project": self._project, "since": since, **self._who})[0]
        return dict(zip(("first", "added", "facts", "confirmed"), found, strict=True))

    # --- search ------------------------------------------------------------------------------------------------

    def search(self, query: Query, wants: Sequence[Want]) -> list[list[Hit]]:
        """For each want its best `limit` records by words and, where the query has a vector, as many of the nearest."""
        codes = dict(self._db.rows("kinds"))
        found: list[dict[int, Hit]] = [{} for _ in wants]
        for shelf in index.SHELVES:
            kinds = {name for name, kind in KINDS.items() if kind.shelf == shelf and name in codes}
            groups = {n: kinds & set(want.kinds or kinds) for n, want in enumerate(wants)}
            asked = {n: ([codes[kind] for kind in sorted(group)], wants[n].limit) for n, group in groups.items() if group}
            if asked:
                for n, hits in self._search_shelf(query, index.SHELVES[shelf], asked).items():
                    found[n] = _best(found[n] | hits, wants[n].limit)
        if query.vector is not None:
            self._add_vector_hits(query, wants, found)
        return [list(_best(hits).values()) for hits in found]

    def _search_shelf(
        self, query: Query, shelf: int, asked: Mapping[int, tuple[list[int], int]]
    ) -> dict[int, dict[int, Hit]]:
        at = {"project": self._project, "shelf": shelf}
        size = self._db.rows("shelf", at)
        if not size or not size[0][0]:
            return {}
        docs, tokens = size[0]
        frequencies: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for term, number, count in self._db.rows("frequencies", {**at, "terms": json.dumps([*query.terms, *query.related])}):
            frequencies[term].append((number, count))
        plan = index.plan(query.terms, query.fields, frequencies, docs, query.related, query.related_weight)
        if not plan.scan:
            return {}
        params = {**at, "average": max(tokens / docs, 1.0), "plan": json.dumps(plan.scan)}
        wide = {n: (kinds, 2 * limit + OVERFETCH) for n, (kinds, limit) in asked.items()}
        ranked = self._ranked("scored", wide, params, plan)
        # Most hits hold and pass the filters: fetch as many as are wanted first, and the spare ones only where some do not.
        first = {doc for n, (_, limit) in asked.items() for doc, _ in ranked.get(n, [])[:limit]}
        found = self._by_docs(sorted(first), query.filters)
        if sum(record.status == "active" for record in found.values()) < len(first):
            spare = {doc for pairs in ranked.values() for doc, _ in pairs} - first
            found |= self._by_docs(sorted(spare), query.filters)
        out = {}
        for n, (kinds, limit) in asked.items():
            pairs = ranked.get(n, [])
            holding = [pair for pair in pairs if pair[0] in found and found[pair[0]].status == "active"][:limit]
            beaten = [pair for pair in pairs if pair[0] in found and found[pair[0]].status != "active"][:BEATEN]
            if len(holding) < limit and len(pairs) == wide[n][1]:
                holding, more = self._search_within(query, n, (kinds, limit), params, plan)
                found |= more
            out[n] = {doc: Hit(found[doc], plan.relevance(score)) for doc, score in (*holding, *beaten)}
        return out

    def _ranked(
        self, scored: str, asked: Mapping[int, tuple[list[int], int]], params: Mapping[str, Any], plan: index.Plan
    ) -> dict[int, list[tuple[int, float]]]:
        """(doc, score) for each want, best first."""
        text = self._db.queries
        parts = [
            f"select {n}, doc, score from ({text['best'].format(codes=','.join(map(str, kinds)), limit=limit)})"
            for n, (kinds, limit) in asked.items()
        ]
        every = ",".join(map(str, sorted({code for kinds, _ in asked.values() for code in kinds})))
        scores = text[scored].replace("{codes}", every)
        ranked: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for n, doc, score in self._db.sql(f"with {text['plan']}, {scores} {' union all '.join(parts)}", params):
            ranked[n].append((doc, score))
        if plan.rerank and ranked:
            docs = {doc for pairs in ranked.values() for doc, _ in pairs}
            again = {**params, "plan": json.dumps(plan.rerank), "docs": json.dumps(sorted(docs))}
            extra = dict(self._db.sql(f"with {text['plan']} {text['rescored']}", again))
            for n, pairs in ranked.items():
                ranked[n] = sorted(((doc, round(score + extra.get(doc, 0.0), 9)) for doc, score in pairs), key=_best_first)
        return ranked

    def _search_within(
        self, query: Query, n: int, asked: tuple[list[int], int], params: Mapping[str, Any], plan: index.Plan
    ) -> tuple[list[tuple[int, float]], dict[int, Record]]:
        """The same, with the filter inside: for a filter that lets so little through that the first best were not enough."""
        within = {**params, **self._who, **filter_params(query.filters)}
        pairs = self._ranked("scored_within", {n: asked}, within, plan).get(n, [])
        found = self._by_docs([doc for doc, _ in pairs], query.filters)
        return [(doc, score) for doc, score in pairs if doc in found], found

    def _add_vector_hits(self, query: Query, wants: Sequence[Want], found: list[dict[int, Hit]]) -> None:
        known = self._db.rows("space", {"fingerprint": self._space})
        if not known or query.vector is None:
            return
        nearness = dict(self._segment((self._project, known[0][0])).nearest(query.vector))
        docs = [doc for doc, near in nearness.items() if near > 0]
        lacking = [want.limit for want in wants]
        start, width = 0, max(lacking, default=0) * 2 + OVERFETCH
        while start < len(docs) and any(lack > 0 for lack in lacking):
            page = docs[start : start + width]
            near = self._by_docs(page, query.filters)
            for n, want in enumerate(wants):
                fitting = [doc for doc in page if doc in near and (not want.kinds or near[doc].kind in want.kinds)]
                for doc in fitting[: lacking[n]]:
                    found[n].setdefault(doc, Hit(near[doc], 0.0))
                lacking[n] -= min(len(fitting), lacking[n])
            start, width = start + width, width * 2  # a filter that lets little through is met by wider pages
        for hits in found:
            for doc, hit in hits.items():
                hits[doc] = replace(hit, vector=nearness.get(doc))

    def _segment(self, key: tuple[int, int]) -> vectors.Segment:
        """The project's vectors as this transaction sees them."""
        segments = vectors.Segments() if self._dirty else self._segments
        held = segments.held(key, self.revision)
        return held or segments.load(key, self.revision, self._db.rows("vectors", {"project": key[0], "space": key[1]}))

    # --- helpers -----------------------------------------------------------------------------------------------

    def _seen(self, id: str) -> Record:
        record = self.get([id]).get(id)
        if record is None:
            raise NotFound(f"There is no record {id!r} in this scope.")
        return record

    def _by_docs(self, docs: Sequence[int], filters: Filters) -> dict[int, Record]:
        params = {"project": self._project, "docs": json.dumps(list(docs)), **self._who, **filter_params(filters)}
        return {row[0]: self._record(row) for row in self._db.rows("by_docs", params)}

    def _records(self, query: str, **params: Any) -> list[Record]:
        rows = self._db.rows(query, {"project": self._project, **self._who, **params})
        return [self._record(row) for row in rows]

    def _record(self, row: Sequence[Any]) -> Record:
        return from_row(row, self.scope.project)

    def _changes(self, query: str, **params: Any) -> list[Change]:
        rules = Rules(counter=dict(self._db.rows("meta")).get("counter", "o200k"))
        return [
            Change(id, version, change, at, verb, None if before is None else thaw(before, self.scope, rules))
            for id, version, change, at, verb, before in self._db.rows(query, {"project": self._project, **params})
        ]


def _weight(record: Record) -> tuple[bool, float]:
    """Which of several of one name is meant: one that holds, then the one that matters most."""
    return (record.status == "active", record.salience)


def _best(hits: Mapping[int, Hit], limit: int | None = None) -> dict[int, Hit]:
    """The best hits. The sort is stable: relevance ends at 1, and hits beyond it keep the order of their scores."""
    ranked = sorted(hits.items(), key=lambda pair: -max(pair[1].lexical, pair[1].vector or 0.0))
    holding = [pair for pair in ranked if pair[1].record.status == "active"]
    beaten = [pair for pair in ranked if pair[1].record.status != "active"]
    return dict((*holding[:limit], *beaten[:BEATEN])) if limit is not None else dict(ranked)


def _best_first(pair: tuple[int, float]) -> tuple[float, int]:
    return (-pair[1], -pair[0])
