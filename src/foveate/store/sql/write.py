"""A writer over named queries: one transaction in which record, index, history and vectors change together or not at all.

The rules of state are here, once for every database: idempotence, confirmation, supersession, versions, undo, forgetting.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from foveate.clock import now
from foveate.errors import Conflict, InputError, NotFound, StoreError
from foveate.records import merge
from foveate.records.kinds import ACYCLIC_LINKS, DISPUTED_BY, SUPERSEDED_BY, find_cycle, kind_of
from foveate.records.make import measure
from foveate.records.render import title_of
from foveate.store import vectors
from foveate.store.protocol import AddResult, Hit, Query, Scrub, SearchGroup, StoredReceipt
from foveate.store.retention import BATCH_SIZE, OVERRUN_SHARE, WRITES_BETWEEN_CLEANUPS, Retention
from foveate.store.sql import posting_blocks, postings
from foveate.store.sql.read import Database, ReadTransaction, by_field
from foveate.store.sql.rows import freeze, to_row
from foveate.types import Change, Link, Record, Scope

FLUSH = 5000
"""Records whose postings are sorted and written together: twice as fast as a thousand, and still a few megabytes."""


class WriteTransaction(ReadTransaction):
    """One transaction on one scope: record, index, history and vectors change together or not at all."""

    def __init__(
        self,
        database: Database,
        scope: Scope,
        segments: vectors.VectorSearch,
        embedding_namespace: str | None,
        change: str,
        multi_valued: frozenset[str] = frozenset(),
    ) -> None:
        if not scope.project:
            raise InputError("A scope needs a project.")
        if not database.fetch_all("project", {"name": scope.project}):
            database.execute("add_project", {"name": scope.project})
        super().__init__(database, scope, segments, embedding_namespace)
        self._change = change
        self._steps = 0
        self._together = False
        self._multi_valued = multi_valued
        self._postings: dict[tuple[str, int, int], list[posting_blocks.Posting]] = defaultdict(list)
        self._growth: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        self._unflushed = 0
        self._vectors: dict[int, tuple[int, bytes]] = {}
        self._place: tuple[int, int] | None = None

    def add(self, record: Record, vector: Sequence[float] | None = None) -> AddResult:
        """Keep a new record, unless it is known: the same caller's key changes nothing, the same content confirms."""
        self._check_owner(record)
        self._next_step()
        kind = kind_of(record.kind)
        if known := self._by_key(record):
            return AddResult(known, "unchanged")
        known = None if kind.is_append_only or kind.allow_duplicates else self._by_hash(record)
        keyed = self._is_keyed(record)
        if known is not None and not (keyed and known.status == "disputed"):
            return self._confirm(known, record)
        if not keyed:
            self._insert(record, vector)
            if self._together:
                self._note_created(record)
            return AddResult(record, "added")
        return self._add_keyed(record, vector, known)

    def restore(self, record: Record, vector: Sequence[float] | None = None) -> bool:
        """Keep a record exactly as it was exported: id, version and state. False: it is here already."""
        self._check_owner(record, any_owner=True)
        if self._db.fetch_all("doc_of", {"project": self._project, "id": record.id}) or self._by_key(record):
            return False
        if self._is_keyed(record) and record.status == "active" and self._current(record):
            self._add_keyed(record, vector, None)  # another value holds here: weigh them as if it were said now
        else:
            self._insert(record, vector)
        return True

    def restore_history(self, change: Change) -> None:
        """Keep a step of an imported record's history, unless it is here already."""
        before = None if change.before is None else freeze(change.before)
        row = (self._project, change.id, change.version, change.change, change.at, change.verb, before)
        self._db.execute("restore_history", row)

    def change(
        self, record: Record, verb: str, *, expect_version: int | None = None, vector: Sequence[float] | None = None
    ) -> Record:
        """Write a new version of a record; `expect_version` is the version that the caller had read."""
        self._next_step()
        return self._put(record, verb, expect_version=expect_version, vector=vector)

    def _put(
        self, record: Record, verb: str, *, expect_version: int | None = None, vector: Sequence[float] | None = None
    ) -> Record:
        """A new version, as a part of the step that is under way."""
        before = self._seen(record.id)
        if expect_version is not None and before.version != expect_version:
            raise Conflict(
                f"{record.id!r} is at version {before.version}, not {expect_version}: somebody changed it. Read it again."
            )
        if kind_of(before.kind).is_append_only and record.text != before.text:
            raise InputError(f"Records of kind {before.kind!r} are append-only; add a new one.")
        after = replace(record, kind=before.kind, version=before.version + 1)
        self._note(before, after.version, verb, after.updated)
        doc = self._doc(before.id)
        if after.text != before.text:  # a vector of other words, of any embedder, is worse than none
            self._drop_vectors(doc, replaced=vector is not None)
        if not self._db.execute("update_record", self._row(doc, after)):
            raise Conflict(f"{record.id!r} was changed by somebody else; read it again, then write.")
        self._reindex(doc, before, after, vector)
        place = (before.status, before.subject, before.attribute)
        if verb != "undo" and place != (after.status, after.subject, after.attribute):
            self._check_place(after)
        return after

    def count_uses(self, ids: Sequence[str], *, success: bool = False) -> None:
        """Count one use of each record. It is no change of what they say: no version, no history, nothing to undo."""
        for id in ids:
            self._seen(id)
            self._db.execute("count_use", {"project": self._project, "id": id, "uses": 1, "wins": int(success)})
            self._dirty = True  # usage counts towards a score

    @contextmanager
    def undo_group(self) -> Iterator[None]:
        """Everything that is written inside is one step: what is undone, is undone together."""
        self._next_step()
        self._together = True
        try:
            yield
        finally:
            self._together = False

    def link(self, link: Link, *, any_owner: bool = False) -> None:
        """Join two records that the scope can see; an import (`any_owner`) any two that are here."""
        here = self.get([link.src, link.dst])
        for id in (link.src, link.dst):
            if id not in here and not (any_owner and self._db.fetch_all("doc_of", {"project": self._project, "id": id})):
                raise NotFound(f"No record {id!r} in this scope to link.")
        if link.name in ACYCLIC_LINKS and not any_owner:
            self._refuse_circle(link)
        self._db.execute(
            "add_link",
            {"project": self._project, "src": link.src, "name": link.name, "dst": link.dst, "weight": link.weight},
        )
        self._dirty = True

    def unlink(self, link: Link) -> bool:
        self._dirty = True
        which = {"project": self._project, "src": link.src, "name": link.name, "dst": link.dst}
        return bool(self._db.execute("delete_link", which))

    def undo(self, id: str, now: int) -> list[Record]:
        """Take back the last change of a record, and whatever that change did to others."""
        record = self._seen(id)
        self._steps += 1
        steps = self._changes("history", id=id)
        last = [step for step in steps if step.version == record.version]
        if not last:
            if record.version > 1:
                raise Conflict(f"The history of {id!r} does not reach back; there is nothing to undo.")
            return [self._put(replace(record, status="retired", updated=now), "undo")]
        together: dict[str, list[Change]] = defaultdict(list)
        for step in self._changes("history_of_change", change=last[0].change):
            together[step.id].append(step)
        undone = []
        for other, changes in together.items():
            current = self._seen(other)
            if current.version != changes[-1].version:
                raise Conflict(f"{other!r} was changed again since; undo that change first.")
            back = changes[0].before or replace(current, status="retired")
            undone.append(self._put(replace(back, updated=now), "undo"))
        for back in undone:
            self._check_place(back)
        self._relink(undone)
        return undone

    def forget(self, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()) -> dict[str, int]:
        """Remove records from every table; counts say what went. Ids that are not here are an error.

        `other_store_ids` are records of another store: here they are only in receipts.
        """
        self.flush()
        found = self.get(ids)
        missing = [id for id in ids if id not in found]
        if missing:
            raise NotFound(f"No record {missing[0]!r} in this scope; nothing was forgotten.")
        counts: dict[str, int] = defaultdict(int)
        at = {"project": self._project}
        words = self._only_in(found.values()) if scrub is not None else frozenset()
        for record in found.values():
            for table, number in self._remove(self._doc(record.id), record).items():
                counts[table] += number
        gone = frozenset(found) | frozenset(other_store_ids)
        for id in sorted(gone):
            counts["receipt_items"] += self._db.execute("delete_items_of_record", {**at, "record": id})
        if scrub is not None:
            counts["receipts"] += self._scrub_receipts(scrub, gone, words)
        self._dirty = True
        return dict(counts)

    def save_receipt(self, receipt: StoredReceipt) -> None:
        row: dict[str, Any] = {"id": receipt.id, "session": receipt.session, "created": receipt.created}
        row |= {"line": receipt.summary, "body": receipt.body}
        self._db.execute("add_receipt", {**self._who, "project": self._project, **row})
        self._db.execute_many("add_receipt_item", [(self._project, record, receipt.id) for record in receipt.shown_ids])

    def drop_receipts(self, retention: Retention, now: int, *, only_if_overdue: bool = False) -> int:
        """Drop receipts beyond their age or size, in at most a few batches, and return how many.

        `only_if_overdue`: drop none if only a few are beyond it.
        """
        at = {"project": self._project}
        if only_if_overdue:
            oldest, before = self._db.fetch_all("oldest_receipt", at), retention.receipts_cutoff(now)
            too_old = bool(oldest) and oldest[0][0] < before - round((now - before) * OVERRUN_SHARE)
            most = retention.receipt_bytes
            if not too_old and (most is None or self._db.fetch_all("receipt_bytes", at)[0][0] <= most):
                return 0
        which = {**at, "ids": json.dumps(self._outlived_receipts(retention, now)[: 10 * BATCH_SIZE])}
        self._db.execute("delete_items_of_receipts", which)
        return self._db.execute("delete_receipts", which)

    def drop_events(
        self, retention: Retention, now: int, after: tuple[int, int] = (0, 0)
    ) -> tuple[int, tuple[int, int] | None]:
        """Drop those of a batch of old events that nothing needs; how many went, and after which to go on, if any.

        They are gone from every table and index, whoever they belonged to. Receipts that name one keep its id, so that a
        replay can say that it is missing: this is about room and not, as `forget` is, about words.
        """
        at, limits = {"project": self._project}, self._event_limits(retention, now)
        page = {"created": after[0], "doc": after[1], "until": max(limits.values()), "limit": BATCH_SIZE}
        old = self._db.fetch_all("old_events", {**at, **page})
        rows = self._db.fetch_all("expired_events", {**at, **limits, "docs": json.dumps([doc for _, doc in old])})
        for row in rows:
            record = self._record(row)
            self._remove(row[0], record)
            self._db.execute("delete_items_of_record", {**at, "record": record.id})
        self._dirty = self._dirty or bool(rows)
        return len(rows), old[-1] if len(old) == BATCH_SIZE else None

    def add_missing_vectors(self, record_vectors: Sequence[tuple[Record, Sequence[float]]]) -> int:
        """Keep vectors that were made outside of the transaction; how many.

        A record that has another text by now, or is gone, or that somebody else was quicker with, is left as it is.
        """
        self.flush()
        space = self._known_space() or 0
        at = {"project": self._project, "space": space, "ids": json.dumps([record.id for record, _ in record_vectors])}
        waiting = {id: (doc, text) for doc, id, text in self._db.fetch_all("texts_without_vector", at)}
        done = 0
        for record, vector in record_vectors:
            doc, text = waiting.get(record.id, (0, None))
            if text == record.text:
                self._put_vector(doc, record.kind, vector)
                done += 1
        self._dirty = self._dirty or done > 0
        return done

    def drop_vectors(self, fingerprint: str, limit: int) -> int:
        """Drop up to so many vectors of another embedder; how many went."""
        if fingerprint == self._space:
            raise InputError(f"{fingerprint!r} is the embedder that is set; its vectors are in use.")
        known = self._db.fetch_all("namespace_of_project", {"project": self._project, "fingerprint": fingerprint})
        if not known:
            return 0
        at = {"project": self._project, "space": known[0][0]}
        gone = self._db.execute("drop_vectors", {**at, "limit": limit})
        if gone:
            self._db.execute("shrink_segment", {**at, "count": gone})
        return gone

    def put_vector(self, id: str, vector: Sequence[float]) -> None:
        """Keep the vector of a record that is here already."""
        self._put_vector(self._doc(id), self._seen(id).kind, vector)
        self._dirty = True

    def set_flag(self, name: str) -> None:
        """Leave a mark with the transaction, for whoever finds it interrupted."""
        self._db.execute("set_meta", {"name": name, "value": self._change})

    def flush(self) -> None:
        """Write the postings that are waiting, in key order: neighbours in the tree are written together."""
        lists = sorted(self._postings)
        held = self._blocks_at([(*key, self._postings[key][0][0]) for key in lists])
        rows = []
        for key in lists:
            new = self._postings[key]
            first, docs, codes = held.get(key, (new[0][0], b"", b""))
            pairs = posting_blocks.merge_postings(docs, codes, new)
            cut = posting_blocks.split_blocks(pairs, appended=pairs[-1] == new[-1])
            rows += [self._block(key, part[0][0] if n else first, part) for n, part in enumerate(cut)]
        self._db.execute_many("put_block", rows)
        self._postings.clear()
        for kind, (more, tokens) in self._growth.items():
            self._db.execute("grow_index_size", {"project": self._project, "kind": kind, "docs": more, "tokens": tokens})
        self._growth.clear()
        self._unflushed = 0
        self._flush_vectors()

    def _flush_vectors(self) -> None:
        """Write the vectors that are waiting, each with the next number: readers take in those above theirs."""
        if not self._vectors or self._place is None:
            return
        at = {"project": self._project, "space": self._place[0]}
        state = self._db.fetch_all("segment", at)
        latest = state[0][0] if state else 0
        known = self._db.fetch_all("docs_with_vector", {**at, "docs": json.dumps(list(self._vectors))})
        rows = [
            (self._project, self._place[0], doc, kind, seq, blob)
            for seq, (doc, (kind, blob)) in enumerate(self._vectors.items(), latest + 1)
        ]
        self._db.execute_many("add_vector", rows)
        self._db.execute("grow_segment", {**at, "latest": latest + len(rows), "count": len(rows) - len(known)})
        self._vectors = {}

    def _drop_vectors(self, doc: int, *, replaced: bool = False) -> int:
        """Delete a record's vectors, of every embedder; how many. `replaced`: but the one in whose place another comes."""
        self._flush_vectors()
        keep = (self._known_space() or 0) if replaced else 0
        gone = self._db.fetch_all("delete_vectors", {"project": self._project, "doc": doc, "keep_space": keep})
        for (space,) in gone:
            self._db.execute("shrink_segment", {"project": self._project, "space": space, "count": 1})
        return len(gone)

    def _blocks_at(
        self, places: Sequence[tuple[str, int, int, int]]
    ) -> dict[tuple[str, int, int], tuple[int, bytes, bytes]]:
        """(first, numbers, codes) of the block of each list, by (term, kind, field), that a record's number belongs to."""
        if not places:
            return {}
        rows = self._db.fetch_all("blocks_for_docs", {"project": self._project, "lists": json.dumps(places)})
        return {(term, kind, field): (first, docs, codes) for term, kind, field, first, docs, codes in rows}

    def _block(self, key: tuple[str, int, int], first: int, pairs: Sequence[posting_blocks.Posting]) -> tuple[Any, ...]:
        return (self._project, *key, first, len(pairs), *posting_blocks.pack(pairs))

    def rebuild(self, counter: str) -> int:
        """Make the project's index anew from its records, and count their tokens again; how many were indexed."""
        at = {"project": self._project}
        for table in ("postings", "volumes", "names"):
            self._db.execute(f"clear_{table}", at)
        done = after = 0
        while page := self._db.fetch_all("every_record", {**at, "after": after}):
            sizes = []
            for row in page:
                record = self._record(row)
                sizes.append((self._project, row[0], *measure(record, counter).values()))
                self._index(row[0], record, None)
            self._db.execute_many("update_tokens", sizes)
            done, after = done + len(page), page[-1][0]
        self.flush()
        return done

    def finish(self, retention: Retention | None = None, places: dict[str, tuple[int, int]] | None = None) -> None:
        """What belongs to the end of every transaction; now and then, a batch of old events is dropped with it.

        `places`: where that goes on, by project. The oldest may all be needed, and must not hold up the rest for ever.
        """
        now_and_then = self._dirty and self._revision % WRITES_BETWEEN_CLEANUPS == WRITES_BETWEEN_CLEANUPS - 1
        if now_and_then and retention is not None and retention.drops_events:
            newest = self._db.fetch_all("newest_event", {"project": self._project})
            # By the newest event's clock where that is behind: a store that nobody adds to loses nothing.
            held = {} if places is None else places
            after = held.get(self.scope.project, (0, 0))
            _, further = self.drop_events(retention, min(now(), newest[0][0]) if newest else 0, after)
            held[self.scope.project] = further or (0, 0)
        self.flush()
        if self._dirty:
            self._db.execute("bump_revision", {"project": self._project, "docs": self._docs})

    # --- steps -------------------------------------------------------------------------------------------------

    def _next_step(self) -> None:
        if not self._together:
            self._steps += 1

    def _check_owner(self, record: Record, *, any_owner: bool = False) -> None:
        """A write stays within its scope; an import (`any_owner`) within its project."""
        for level in ("project",) if any_owner else ("project", "user", "agent"):
            whose, here = getattr(record.scope, level), getattr(self.scope, level)
            if whose is not None and whose != here:
                raise InputError(f"Record {record.id!r} belongs to {level} {whose!r}, not {here!r}.")

    def _by_key(self, record: Record) -> Record | None:
        """The record that its owner has kept under the same key."""
        scope = record.scope
        owner = {"user": scope.user, "agent": scope.agent, "session": scope.session, "task": scope.task}
        return None if record.key is None else self._one("by_key", key=record.key, **owner)

    def _refuse_circle(self, link: Link) -> None:
        if link.src != link.dst and not self.links([link.src], [link.name], incoming=True):
            return  # nothing leads to its source, so nothing can lead back
        found = find_cycle(link, lambda ids: self.links(ids, [link.name])) if link.src != link.dst else [link.src] * 2
        if found:
            names = {id: title_of(record) for id, record in self.get(found).items()}
            way = " -> ".join(f"{id} ({names[id]})" if names.get(id) else id for id in found)
            raise InputError(f"{link.name} would run in a circle: {way}. Nothing was linked.")

    def _is_keyed(self, record: Record) -> bool:
        """May one value only hold of what it says?"""
        many = {record.attribute, f"{record.subject}.{record.attribute}"}
        return kind_of(record.kind).is_keyed and record.attribute is not None and self._multi_valued.isdisjoint(many)

    def _current(self, record: Record) -> list[Record]:
        """The values of the same attribute and owner that hold or are disputed."""
        owner = {"user": record.scope.user, "agent": record.scope.agent}
        return self._records("attribute_values", subject=record.subject, attribute=record.attribute, **owner)

    def _check_place(self, record: Record) -> None:
        """A value that is made to hold again must not hold beside another."""
        if record.status != "active" or not self._is_keyed(record):
            return
        beside = [other.id for other in self._current(record) if other.status == "active" and other.id != record.id]
        if beside:
            raise Conflict(f"{record.id!r} cannot hold while {beside[0]!r} does: retire or undo that one first.")

    def _by_hash(self, record: Record) -> Record | None:
        """A record that says the same: one that holds, else one that was known to have held at that time."""
        found = self._db.fetch_all("by_hash", {"project": self._project, "hash": record.hash})
        if not found:
            return None
        found.sort()  # the earliest first; asked of SQLite, an order costs three times the look-up
        holding = [id for _, id, status, _ in found if status in ("active", "disputed")]
        past = [id for _, id, status, valid_from in found if status == "superseded" and valid_from == record.valid_from]
        return self._seen((holding or past)[0]) if holding or past else None

    def _confirm(self, known: Record, again: Record) -> AddResult:
        """The same thing said again: counted; what it says beyond the first time is taken over."""
        count = int(known.data.get("confirmations", 0)) + 1
        told = merge.merge_confirmation(known, again)
        counted = replace(told, data={**told.data, "confirmations": count}, updated=again.updated)
        if told == known and count > 1:
            return AddResult(self._count_confirmation(counted), "confirmed")
        counter = dict(self._db.fetch_all("meta")).get("counter", "o200k")
        return AddResult(self._put(replace(counted, tokens=measure(counted, counter)), "confirm"), "confirmed")

    def _count_confirmation(self, told: Record) -> Record:
        """The first confirmation is a version, the rest are a count: agents say the same thing a thousand times."""
        data = json.dumps(told.data, ensure_ascii=False)
        params = {"project": self._project, "id": told.id, "data": data, "updated": told.updated}
        self._db.execute("count_confirmation", params)
        self._dirty = True
        return told

    def _add_keyed(self, record: Record, vector: Sequence[float] | None, known: Record | None) -> AddResult:
        """Weigh a value against the ones that hold. `known`: it was said before and disputed, and may prevail now."""
        verdict = merge.resolve_value(record, self._current(record), known)
        if verdict.disputes and known is not None:
            return self._confirm(known, record)
        self._insert(verdict.new, vector)
        if verdict.links:
            self._note_created(verdict.new)
        for older in verdict.older_records:
            self._put(replace(older, updated=record.updated), "supersede")
        for src, dst in verdict.links:
            self.link(Link(src, SUPERSEDED_BY, dst))
        action = "superseded older" if verdict.older_records else "older" if verdict.links else "added"
        for holder in verdict.disputes:
            self.link(Link(verdict.new.id, DISPUTED_BY, holder))
        if verdict.disputes:
            return AddResult(verdict.new, "disputed", verdict.disputes)
        return AddResult(verdict.new, action, tuple(older.id for older in verdict.older_records))  # type: ignore[arg-type]

    def _insert(self, record: Record, vector: Sequence[float] | None) -> None:
        if kind_of(record.kind).is_derived:
            raise InputError(_DERIVED.get(record.kind, _FROM_FILES).format(kind=record.kind))
        self._docs += 1
        if self._docs > posting_blocks.MAX_DOC:
            raise StoreError(
                f"Project {self.scope.project!r} has had {posting_blocks.MAX_DOC:,} records, which is as many as it can."
            )
        self._db.execute("insert_record", self._row(self._docs, record))
        self._index(self._docs, record, vector)

    def _index(self, doc: int, record: Record, vector: Sequence[float] | None) -> None:
        code = self._code(record.kind)
        rows, length = postings.record_postings(record, kind_of(record.kind))
        for term, number, times in rows:
            self._postings[term, code, number].append((doc, posting_blocks.encode(times, length)))
        self._grow(code, 1, length)
        if record.kind == "entity":
            self._db.execute_many("add_name", [(self._project, name, doc) for name in sorted(postings.entity_names(record))])
        if vector is not None:
            self._put_vector(doc, record.kind, vector)
        self._dirty = True
        self._unflushed += 1
        if self._unflushed >= FLUSH:
            self.flush()

    def _remove(self, doc: int, record: Record) -> dict[str, int]:
        """Take a record out of every table but the receipts, and how many rows that were, table by table."""
        at = {"project": self._project, "doc": doc}
        which = {"project": self._project, "id": record.id}
        return {
            "names": self._db.execute("delete_names", at),
            "postings": self._unindex(doc, record),
            "vectors": self._drop_vectors(doc),
            "links": self._db.execute("delete_links_of", which),
            "history": self._db.execute("delete_history", which),
            "records": self._db.execute("delete_record", at),
        }

    def _unindex(self, doc: int, record: Record) -> int:
        self.flush()
        code = self._code(record.kind)
        rows, length = postings.record_postings(record, kind_of(record.kind))
        held = self._blocks_at([(term, code, number, doc) for term, number, _ in rows])
        left = {key: (first, posting_blocks.remove_doc(docs, codes, doc)) for key, (first, docs, codes) in held.items()}
        self._db.execute_many("put_block", [self._block(key, first, pairs) for key, (first, pairs) in left.items() if pairs])
        emptied = [(self._project, *key, first) for key, (first, pairs) in left.items() if pairs == []]
        self._db.execute_many("delete_block", emptied)
        self._db.execute("delete_names", {"project": self._project, "doc": doc})
        self._grow(code, -1, -length)
        return sum(pairs is not None for _, pairs in left.values())

    def _reindex(self, doc: int, before: Record, after: Record, vector: Sequence[float] | None) -> None:
        """Have the index say what a record says now. Most changes (a status, a count) leave its words as they are."""
        kind = kind_of(before.kind)
        if postings.record_postings(before, kind) == postings.record_postings(after, kind) and postings.entity_names(
            before
        ) == postings.entity_names(after):
            if vector is not None:
                self._put_vector(doc, after.kind, vector)
            self._dirty = True
            return
        self._unindex(doc, before)
        self._index(doc, after, vector)
        self.flush()  # what waits together is of new records only: it all goes to the end of the lists

    def _grow(self, code: int, docs: int, tokens: int) -> None:
        growth = self._growth[code]
        growth[0] += docs
        growth[1] += tokens

    def _put_vector(self, doc: int, kind: str, vector: Sequence[float]) -> None:
        if self._place is None:
            self._place = self._used_space() or self._new_space(len(vector))
        if self._place[1] != len(vector):
            raise InputError(
                f"The embedder gave {len(vector)} dimensions where {self._place[1]} are stored for {self._space!r}."
            )
        self._vectors[doc] = (self._code(kind), self._packed(vector))

    def _new_space(self, dim: int) -> tuple[int, int]:
        """The space of this embedder and so many dimensions, for a project that has no vectors of the embedder yet."""
        named = {"fingerprint": self._space, "dim": dim}
        self._db.execute("add_namespace", named)
        ((space, dim),) = self._db.fetch_all("namespace_id", named)
        return space, dim

    def _add_vector_hits(self, query: Query, wants: Sequence[SearchGroup], found: list[dict[int, Hit]]) -> None:
        self._flush_vectors()
        super()._add_vector_hits(query, wants, found)

    @staticmethod
    def _packed(vector: Sequence[float]) -> Any:
        """A vector as the database takes it."""
        return vectors.pack(vector)

    def _note(self, before: Record, version: int, verb: str, at: int) -> None:
        self._db.execute("add_history", (self._project, before.id, version, self._step, at, verb, freeze(before)))

    def _note_created(self, record: Record) -> None:
        created = (self._project, record.id, record.version, self._step, record.updated, "add", None)
        self._db.execute("add_history", created)

    @property
    def _step(self) -> str:
        """What is undone together: all that one `add` or `undo` did, however many share its transaction."""
        return f"{self._change}.{self._steps}" if self._steps else self._change

    def _relink(self, undone: Sequence[Record]) -> None:
        """Have the links between records that were undone together say what their states say again."""
        for older in undone:
            for newer in undone:
                link = Link(older.id, SUPERSEDED_BY, newer.id)
                if merge.was_replaced(older, newer):
                    self.link(link)
                elif older.id != newer.id:
                    self.unlink(link)

    def _only_in(self, records: Iterable[Record]) -> frozenset[str]:
        """Terms that no record but these holds."""
        mine: dict[str, int] = defaultdict(int)
        for record in records:
            for term in {term for term, _, _ in postings.record_postings(record, kind_of(record.kind))[0]}:
                mine[term] += 1
        held: dict[str, int] = defaultdict(int)
        for shelf in postings.PARTITIONS:
            found = by_field(self._sizes(list(mine)), set(self._shelf(shelf).values()))
            for term, counted in found.items():
                held[term] = max(held[term], *counted.values())
        return frozenset(term for term, count in mine.items() if held[term] <= count)

    def _scrub_receipts(self, scrub: Scrub, ids: frozenset[str], words: frozenset[str]) -> int:
        """In every receipt of the project, whoever asked."""
        touched, after = 0, ""
        while page := self._db.fetch_all("every_receipt", {"project": self._project, "after": after}):
            for id, body in page:
                clean = scrub(body, ids, words)
                if clean is not None:
                    row = {"project": self._project, "id": id, "body": clean[0], "line": clean[1]}
                    touched += self._db.execute("update_receipt", row)
            after = page[-1][0]
        return touched

    def _one(self, query: str, **params: Any) -> Record | None:
        found = self._db.fetch_all(query, {"project": self._project, **params})
        return self._record(found[0]) if found else None

    def _doc(self, id: str) -> int:
        found = self._db.fetch_all("doc_of", {"project": self._project, "id": id})
        if not found:
            raise NotFound(f"No record {id!r} in this scope.")
        return int(found[0][0])

    def _code(self, kind: str) -> int:
        if self._codes is None or kind not in self._codes:
            self._db.execute("add_kind", {"name": kind})
            self._codes = dict(self._db.fetch_all("kinds"))
        return self._codes[kind]

    def _row(self, doc: int, record: Record) -> tuple[Any, ...]:
        return to_row(self._project, doc, record)


_FROM_FILES = (
    "Records of kind {kind!r} are made from files when needed and never stored. `foveate init --code` indexes a folder."
)
_DERIVED = {
    "relation": "A relation is made from a link and never stored. Link two entities with `foveate link A NAME B`.",
    "section": "A section is written for one context and never stored. Add a note, or pass it as an extra text.",
}
