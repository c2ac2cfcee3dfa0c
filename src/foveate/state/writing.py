"""A writer over named queries: one transaction in which record, index, history and vectors change together or not at all.

The rules of state are here, once for every database: idempotence, confirmation, supersession, versions, undo, forgetting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from foveate.errors import Conflict, InputError, NotFound
from foveate.state import index, supersede, vectors
from foveate.state.kinds import kind_of
from foveate.state.reading import Database, ReadTransaction
from foveate.state.rows import freeze, to_row
from foveate.state.store import Added, Scrub, StoredReceipt
from foveate.types import TRUST, Link, Record, Scope

FLUSH = 5000
"""Records whose postings are sorted and written together: twice as fast as a thousand, and still a few megabytes."""


class WriteTransaction(ReadTransaction):
    """One transaction on one scope: record, index, history and vectors change together or not at all."""

    def __init__(
        self,
        database: Database,
        scope: Scope,
        segments: vectors.Segments,
        space: str | None,
        change: str,
        multi_valued: frozenset[str] = frozenset(),
    ) -> None:
        if not scope.project:
            raise InputError("A scope needs a project.")
        if not database.rows("project", {"name": scope.project}):
            database.run("add_project", {"name": scope.project})
        super().__init__(database, scope, segments, space)
        self._codes = dict(database.rows("kinds"))
        self._change = change
        self._multi_valued = multi_valued
        self._postings: list[tuple[Any, ...]] = []
        self._growth: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        self._unflushed = 0
        self._dirty = False

    def add(self, record: Record, vector: Sequence[float] | None = None) -> Added:
        """Keep a new record, unless it is known: the same caller's key changes nothing, the same content confirms."""
        self._check_owner(record)
        kind = kind_of(record.kind)
        if record.key is not None and (known := self._one("by_key", key=record.key)):
            return Added(known, "unchanged")
        if not kind.append_only and (known := self._one("by_hash", hash=record.hash)):
            return self._confirm(known, record)
        if not (kind.keyed and record.attribute) or self._holds_many(record):
            self._insert(record, vector)
            return Added(record, "added")
        return self._add_keyed(record, vector)

    def restore(self, record: Record, vector: Sequence[float] | None = None) -> bool:
        """Keep a record exactly as it was exported: id, version and state. False: it is here already."""
        if self._db.rows("doc_of", {"project": self._project, "id": record.id}):
            return False
        if record.key is not None and self._one("by_key", key=record.key):
            return False
        self._insert(record, vector)
        return True

    def change(
        self, record: Record, verb: str, *, expect: int | None = None, vector: Sequence[float] | None = None
    ) -> Record:
        """Write a new version of a record; `expect` is the version that the caller had read."""
        before = self._seen(record.id)
        if expect is not None and before.version != expect:
            raise Conflict(
                f"{record.id!r} is at version {before.version}, not {expect}: somebody changed it. Read it again."
            )
        if kind_of(before.kind).append_only and record.text != before.text:
            raise InputError(f"Records of kind {before.kind!r} are append-only; add a new one.")
        after = replace(record, kind=before.kind, version=before.version + 1)
        self._note(before, after.version, verb, after.updated)
        doc = self._doc(before.id)
        self._unindex(doc, before)
        if not self._db.run("update_record", self._row(after)):
            raise Conflict(f"{record.id!r} was changed by somebody else; read it again, then write.")
        self._index(doc, after, vector)
        return after

    def link(self, link: Link) -> None:
        here = self.get([link.src, link.dst])
        missing = [id for id in (link.src, link.dst) if id not in here]
        if missing:
            raise NotFound(f"There is no record {missing[0]!r} in this scope to link.")
        self._db.run(
            "add_link",
            {"project": self._project, "src": link.src, "name": link.name, "dst": link.dst, "weight": link.weight},
        )
        self._dirty = True

    def unlink(self, link: Link) -> bool:
        self._dirty = True
        which = {"project": self._project, "src": link.src, "name": link.name, "dst": link.dst}
        return bool(self._db.run("delete_link", which))

    def undo(self, id: str, now: int) -> list[Record]:
        """Take back the last change of a record, and whatever that change did to others."""
        record = self._seen(id)
        steps = self._changes("history", id=id)
        last = [step for step in steps if step.version == record.version]
        if not last:
            if record.version > 1:
                raise Conflict(f"The history of {id!r} does not reach back; there is nothing to undo.")
            return [self.change(replace(record, status="retired", updated=now), "undo")]
        undone = []
        for step in self._changes("history_of_change", change=last[0].change):
            current = self._seen(step.id)
            if current.version != step.version:
                raise Conflict(f"{step.id!r} was changed again since; undo that change first.")
            back = step.before or replace(current, status="retired")
            undone.append(self.change(replace(back, updated=now), "undo"))
        for older, newer in self._pairs(undone):
            self.unlink(Link(older, supersede.SUPERSEDED_BY, newer))
        return undone

    def forget(self, ids: Sequence[str], scrub: Scrub | None = None) -> dict[str, int]:
        """Remove records from every table; counts say what went. Ids that are not here are an error."""
        self.flush()
        found = self.get(ids)
        missing = [id for id in ids if id not in found]
        if missing:
            raise NotFound(f"There is no record {missing[0]!r} in this scope; nothing was forgotten.")
        counts: dict[str, int] = defaultdict(int)
        at = {"project": self._project}
        for record in found.values():
            doc = self._doc(record.id)
            counts["postings"] += self._unindex(doc, record)
            counts["names"] += self._db.run("delete_names", {**at, "doc": doc})
            counts["vectors"] += self._db.run("delete_vectors", {**at, "doc": doc})
            counts["links"] += self._db.run("delete_links_of", {**at, "id": record.id})
            counts["history"] += self._db.run("delete_history", {**at, "id": record.id})
            counts["receipt_items"] += self._db.run("delete_items_of_record", {**at, "record": record.id})
            counts["records"] += self._db.run("delete_record", {**at, "doc": doc})
        if scrub is not None:
            counts["receipts"] += self._scrub_receipts(scrub, frozenset(found))
        self._dirty = True
        return dict(counts)

    def save_receipt(self, receipt: StoredReceipt) -> None:
        self._db.run(
            "add_receipt",
            {"project": self._project, "id": receipt.id, "created": receipt.created, "body": receipt.body},
        )
        self._db.many("add_receipt_item", [(self._project, record, receipt.id) for record in receipt.kept])

    def trim_receipts(self, before: int, max_bytes: int) -> int:
        """Drop receipts older than a time, then the oldest beyond a size; how many went."""
        doomed = [row[0] for row in self._db.rows("old_receipts", {"project": self._project, "before": before})]
        size = 0
        for id, length in self._db.rows("receipt_sizes", {"project": self._project}):
            size += length
            if size > max_bytes:
                doomed.append(id)
        for id in set(doomed):
            self._db.run("delete_receipt", {"project": self._project, "id": id})
            self._db.run("delete_receipt_items", {"project": self._project, "id": id})
        return len(set(doomed))

    def put_vector(self, id: str, vector: Sequence[float]) -> None:
        """Keep the vector of a record that is here already."""
        self._put_vector(self._doc(id), vector)
        self._dirty = True

    def flush(self) -> None:
        """Write the postings that are waiting, in key order: neighbours in the tree are written together."""
        self._postings.sort()
        self._db.many("add_posting", self._postings)
        self._postings = []
        for shelf, (docs, tokens) in self._growth.items():
            self._db.run("grow_shelf", {"project": self._project, "shelf": shelf, "docs": docs, "tokens": tokens})
        self._growth.clear()
        self._unflushed = 0

    def finish(self) -> None:
        """What belongs to the end of every transaction."""
        self.flush()
        if self._dirty:
            self._db.run("bump", {"project": self._project})

    # --- steps -------------------------------------------------------------------------------------------------

    def _check_owner(self, record: Record) -> None:
        if record.scope.project != self.scope.project:
            raise InputError(
                f"Record {record.id!r} belongs to project {record.scope.project!r}, not {self.scope.project!r}."
            )

    def _holds_many(self, record: Record) -> bool:
        return not self._multi_valued.isdisjoint({record.attribute, f"{record.subject}.{record.attribute}"})

    def _confirm(self, known: Record, again: Record) -> Added:
        """The same thing said again: counted, and trusted as much as the more trusted of the two."""
        data = {**known.data, "confirmations": int(known.data.get("confirmations", 0)) + 1}
        trust = max(known.trust, again.trust, key=TRUST.index)
        kept = self.change(replace(known, data=data, trust=trust, updated=again.updated), "confirm")
        return Added(kept, "confirmed")

    def _add_keyed(self, record: Record, vector: Sequence[float] | None) -> Added:
        owner = {"user": record.scope.user, "agent": record.scope.agent}
        current = self._records("keyed", subject=record.subject, attribute=record.attribute, **owner)
        verdict = supersede.settle(record, current)
        self._insert(verdict.new, vector)
        if verdict.links:
            self._note_created(verdict.new)
        for older in verdict.older:
            self.change(replace(older, updated=record.updated), "supersede")
        for src, dst in verdict.links:
            self.link(Link(src, supersede.SUPERSEDED_BY, dst))
        action = "superseded older" if verdict.older else "older" if verdict.links else "added"
        if verdict.disputes:
            return Added(verdict.new, "disputed", verdict.disputes)
        return Added(verdict.new, action, tuple(older.id for older in verdict.older))  # type: ignore[arg-type]

    def _insert(self, record: Record, vector: Sequence[float] | None) -> None:
        doc = self._db.insert("insert_record", self._row(record))
        self._index(doc, record, vector)

    def _index(self, doc: int, record: Record, vector: Sequence[float] | None) -> None:
        kind = kind_of(record.kind)
        shelf, code = index.SHELVES[kind.shelf], self._code(record.kind)
        rows, length = index.postings(record, kind)
        project = self._project
        self._postings += [(project, shelf, term, number, doc, code, tf, length) for term, number, tf in rows]
        growth = self._growth[shelf]
        growth[0] += 1
        growth[1] += length
        if record.kind == "entity":
            self._db.many("add_name", [(project, name, doc) for name in sorted(index.names_of(record))])
        if vector is not None:
            self._put_vector(doc, vector)
        self._dirty = True
        self._unflushed += 1
        if self._unflushed >= FLUSH:
            self.flush()

    def _unindex(self, doc: int, record: Record) -> int:
        self.flush()
        kind = kind_of(record.kind)
        shelf = index.SHELVES[kind.shelf]
        rows, length = index.postings(record, kind)
        self._db.many("delete_posting", [(self._project, shelf, term, number, doc) for term, number, _ in rows])
        self._db.run("delete_names", {"project": self._project, "doc": doc})
        growth = self._growth[shelf]
        growth[0] -= 1
        growth[1] -= length
        return len(rows)

    def _put_vector(self, doc: int, vector: Sequence[float]) -> None:
        self._db.run("add_space", {"fingerprint": self._space, "dim": len(vector)})
        ((space, dim),) = self._db.rows("space", {"fingerprint": self._space})
        if dim != len(vector):
            raise InputError(f"The embedder gave {len(vector)} dimensions where {dim} are stored for {self._space!r}.")
        params = {"project": self._project, "space": space, "doc": doc, "vector": vectors.pack(vector)}
        self._db.run("add_vector", params)

    def _note(self, before: Record, version: int, verb: str, at: int) -> None:
        self._db.run("add_history", (self._project, before.id, version, self._change, at, verb, freeze(before)))

    def _note_created(self, record: Record) -> None:
        created = (self._project, record.id, record.version, self._change, record.updated, "add", None)
        self._db.run("add_history", created)

    def _pairs(self, undone: Sequence[Record]) -> list[tuple[str, str]]:
        ids = [record.id for record in undone]
        found = self.links(ids, [supersede.SUPERSEDED_BY])
        return [(link.src, link.dst) for link in found if link.dst in ids]

    def _scrub_receipts(self, scrub: Scrub, ids: frozenset[str]) -> int:
        touched = 0
        for receipt in self.receipts(1_000_000):
            body = scrub(receipt.body, ids)
            if body is not None:
                touched += 1
                self._db.run(
                    "add_receipt",
                    {"project": self._project, "id": receipt.id, "created": receipt.created, "body": body},
                )
        return touched

    def _one(self, query: str, **params: Any) -> Record | None:
        found = self._db.rows(query, {"project": self._project, **params})
        return self._record(found[0]) if found else None

    def _doc(self, id: str) -> int:
        found = self._db.rows("doc_of", {"project": self._project, "id": id})
        if not found:
            raise NotFound(f"There is no record {id!r} in this scope.")
        return int(found[0][0])

    def _code(self, kind: str) -> int:
        if kind not in self._codes:
            self._db.run("add_kind", {"name": kind})
            self._codes = dict(self._db.rows("kinds"))
        return int(self._codes[kind])

    def _row(self, record: Record) -> tuple[Any, ...]:
        return to_row(self._project, record)
