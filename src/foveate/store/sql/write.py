"""Writes a SQL store. In one transaction, records, index, history and vectors change together or not at all.

The rules of writing are here, once for every database: adding the same content again, confirming, superseding, versions,
and undo. `records/merge.py` decides which value is active; this module stores the decision. `delete.py` deletes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from foveate.clock import now
from foveate.errors import Conflict, InputError, NotFound, StoreError
from foveate.records import merge
from foveate.records.kinds import ACYCLIC_LINKS, DISPUTED_BY, SUPERSEDED_BY, find_cycle, kind_of
from foveate.records.make import measure
from foveate.records.render import title_of
from foveate.store import vectors
from foveate.store.protocol import AddResult
from foveate.store.retention import WRITES_BETWEEN_CLEANUPS, Retention
from foveate.store.sql.delete import DeleteTransaction, EventPosition
from foveate.store.sql.posting_blocks import MAX_DOC
from foveate.store.sql.queries import Database
from foveate.store.sql.rows import serialize_record, to_row
from foveate.types import Change, Link, Record, Scope


class WriteTransaction(DeleteTransaction):
    """One transaction on one scope. `change` identifies it in the history of the records that it changes."""

    def __init__(
        self,
        database: Database,
        scope: Scope,
        open_vector_search: vectors.OpenVectorSearch,
        embedding_namespace: str | None,
        change: str,
        multi_valued: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(database, scope, open_vector_search, embedding_namespace)
        self._change = change
        self._undo_steps = 0
        self._in_undo_group = False
        self._multi_valued = multi_valued

    # --- adding ------------------------------------------------------------------------------------------------

    def add(self, record: Record, vector: Sequence[float] | None = None) -> AddResult:
        """Store a new record.

        If its owner has stored a record with the same key, nothing changes. If a record has the same content, that record
        is confirmed instead.
        """
        self._check_owner(record)
        self._begin_undo_step()
        kind = kind_of(record.kind)
        if existing := self._find_by_key(record):
            return AddResult(existing, "unchanged")
        existing = None if kind.is_append_only or kind.allow_duplicates else self._find_by_hash(record)
        is_single_value = self._is_single_value(record)
        if existing is not None and not (is_single_value and existing.status == "disputed"):
            return self._confirm(existing, record)
        if is_single_value:
            return self._add_value(record, vector, existing)
        self._insert(record, vector)
        if self._in_undo_group:
            self._add_creation_history(record)
        return AddResult(record, "added")

    def restore(self, record: Record, vector: Sequence[float] | None = None) -> bool:
        """Store a record exactly as it was exported, with its id, version and status. Return False if it exists already."""
        self._check_owner(record, any_owner=True)
        if self._fetch("doc_of", id=record.id) or self._find_by_key(record):
            return False
        if self._is_single_value(record) and record.status == "active" and self._values(record):
            # Another value is active here. Both cannot be, so they are weighed as if this one were stated now.
            self._add_value(record, vector, None)
        else:
            self._insert(record, vector)
        return True

    def restore_history(self, change: Change) -> None:
        """Store a change of an imported record, unless it exists already."""
        before = None if change.before is None else serialize_record(change.before)
        row = (self._project, change.id, change.version, change.change, change.at, change.verb, before)
        self._db.execute("restore_history", row)

    def _add_value(self, record: Record, vector: Sequence[float] | None, disputed: Record | None) -> AddResult:
        """Add a value of an attribute that may have only one active value.

        `disputed` is a record with the same content that lost against a more trusted value before, and may win now.
        """
        result = merge.resolve_value(record, self._values(record), disputed)
        if result.disputes and disputed is not None:
            return self._confirm(disputed, record)
        self._insert(result.new, vector)
        if result.links:
            self._add_creation_history(result.new)
        for older in result.older_records:
            self._write_version(replace(older, updated=record.updated), "supersede")
        for src, dst in result.links:
            self.link(Link(src, SUPERSEDED_BY, dst))
        for more_trusted in result.disputes:
            self.link(Link(result.new.id, DISPUTED_BY, more_trusted))
        if result.disputes:
            return AddResult(result.new, "disputed", result.disputes)
        if result.older_records:
            return AddResult(result.new, "superseded older", tuple(older.id for older in result.older_records))
        return AddResult(result.new, "older" if result.links else "added")

    def _confirm(self, existing: Record, incoming: Record) -> AddResult:
        """Count that the same content was added again, and merge what the new record says beyond the first one.

        Only the first confirmation, and one that adds something, is a version in the history: agents repeat the same
        statement a thousand times.
        """
        count = int(existing.data.get("confirmations", 0)) + 1
        merged = merge.merge_confirmation(existing, incoming)
        counted = replace(merged, data={**merged.data, "confirmations": count}, updated=incoming.updated)
        if merged == existing and count > 1:
            data = json.dumps(counted.data, ensure_ascii=False)
            self._execute("count_confirmation", id=counted.id, data=data, updated=counted.updated)
            self._has_writes = True
            return AddResult(counted, "confirmed")
        counted = replace(counted, tokens=measure(counted, self._counter()))
        return AddResult(self._write_version(counted, "confirm"), "confirmed")

    def _insert(self, record: Record, vector: Sequence[float] | None) -> None:
        if kind_of(record.kind).is_derived:
            raise InputError(_DERIVED_KIND_MESSAGES.get(record.kind, _FROM_FILES_MESSAGE).format(kind=record.kind))
        self._docs += 1
        if self._docs > MAX_DOC:
            raise StoreError(
                f"Project {self.scope.project!r} has had {MAX_DOC:,} records, and a project cannot have more. "
                "Use another project."
            )
        self._db.execute("insert_record", to_row(self._project, self._docs, record))
        self._index(self._docs, record, vector)

    def _index(self, doc: int, record: Record, vector: Sequence[float] | None) -> None:
        self.index.add(doc, record)
        if vector is not None:
            self._vectors.put(doc, self.index.kind_code(record.kind), vector)
        self._has_writes = True

    # --- changing ----------------------------------------------------------------------------------------------

    def change(
        self, record: Record, verb: str, *, expect_version: int | None = None, vector: Sequence[float] | None = None
    ) -> Record:
        """Store a new version of a record. `expect_version` is the version that the caller has read."""
        self._begin_undo_step()
        return self._write_version(record, verb, expect_version=expect_version, vector=vector)

    def _write_version(
        self, record: Record, verb: str, *, expect_version: int | None = None, vector: Sequence[float] | None = None
    ) -> Record:
        """Store a new version as a part of the current undo step."""
        before = self._require(record.id)
        if expect_version is not None and before.version != expect_version:
            raise Conflict(
                f"{record.id!r} is at version {before.version}, not {expect_version}: it was changed since you read it. "
                "Read it again."
            )
        if kind_of(before.kind).is_append_only and record.text != before.text:
            raise InputError(f"Records of kind {before.kind!r} are append-only; add a new one.")
        after = replace(record, kind=before.kind, version=before.version + 1)
        self._add_history(before, after.version, verb, after.updated)
        doc = self._doc_of(before.id)
        if after.text != before.text:  # no vector is better than the vector of another text
            self._vectors.delete_all(doc, keep_current=vector is not None)
        # The query updates version - 1 only, so that a write between our read and this one is not lost.
        if not self._db.execute("update_record", to_row(self._project, doc, after)):
            raise Conflict(f"{record.id!r} was changed while this transaction ran. Read it again, then write.")
        self.index.update(doc, before, after)
        if vector is not None:
            self._vectors.put(doc, self.index.kind_code(after.kind), vector)
        self._has_writes = True
        identity = (before.status, before.subject, before.attribute)
        if verb != "undo" and identity != (after.status, after.subject, after.attribute):
            self._check_single_value(after)
        return after

    def count_uses(self, ids: Sequence[str], *, success: bool = False) -> None:
        """Count one use of each record. This makes no new version, no history and nothing to undo."""
        for id in ids:
            self._require(id)
            self._execute("count_use", id=id, uses=1, wins=int(success))
            self._has_writes = True  # a context is cached by revision, and uses count towards a score

    def link(self, link: Link, *, any_owner: bool = False) -> None:
        """Link two records that the scope can see. With `any_owner`, for an import, they may belong to any owner."""
        visible = self.get([link.src, link.dst])
        for id in (link.src, link.dst):
            if id not in visible and not (any_owner and self._fetch("doc_of", id=id)):
                raise NotFound(f"No record {id!r} in this scope to link.")
        if link.name in ACYCLIC_LINKS and not any_owner:
            self._refuse_cycle(link)
        self._execute("add_link", src=link.src, name=link.name, dst=link.dst, weight=link.weight)
        self._has_writes = True

    def unlink(self, link: Link) -> bool:
        self._has_writes = True
        return bool(self._execute("delete_link", src=link.src, name=link.name, dst=link.dst))

    def _refuse_cycle(self, link: Link) -> None:
        if link.src != link.dst and not self.links([link.src], [link.name], incoming=True):
            return  # no link leads to the source, so none can lead back to it
        cycle = find_cycle(link, lambda ids: self.links(ids, [link.name])) if link.src != link.dst else [link.src] * 2
        if cycle:
            titles = {id: title_of(record) for id, record in self.get(cycle).items()}
            path = " -> ".join(f"{id} ({titles[id]})" if titles.get(id) else id for id in cycle)
            raise InputError(f"{link.name} must not form a cycle: {path}. Nothing was linked.")

    # --- undo --------------------------------------------------------------------------------------------------

    @contextmanager
    def undo_group(self) -> Iterator[None]:
        """Make everything that is written inside one undo step."""
        self._begin_undo_step()
        self._in_undo_group = True
        try:
            yield
        finally:
            self._in_undo_group = False

    def undo(self, id: str, now: int) -> list[Record]:
        """Undo the last change of a record, with all that the same undo step did to other records."""
        record = self._require(id)
        self._undo_steps += 1
        last = [change for change in self._changes("history", id=id) if change.version == record.version]
        if not last:
            if record.version > 1:
                raise Conflict(f"{id!r} cannot be undone: the store does not have its earlier versions.")
            return [self._write_version(replace(record, status="retired", updated=now), "undo")]
        changes_by_id: dict[str, list[Change]] = defaultdict(list)
        for change in self._changes("history_of_change", change=last[0].change):
            changes_by_id[change.id].append(change)
        undone = []
        for other, changes in changes_by_id.items():
            current = self._require(other)
            if not self._is_unchanged_since(current, changes[-1].version):
                raise Conflict(f"{other!r} was changed again since; undo that change first.")
            previous = changes[0].before or replace(current, status="retired")
            undone.append(self._write_version(replace(previous, updated=now), "undo"))
        # Checked at the end: while records of one step are restored one by one, two values may be active for a moment.
        for record in undone:
            self._check_single_value(record)
        self._relink(undone)
        return undone

    def _is_unchanged_since(self, current: Record, version: int) -> bool:
        """Return whether a record is as it was at a version: not changed since, or changed and undone again."""
        if current.version == version:
            return True
        changes = self._changes("history", id=current.id)
        then = next((change.before for change in changes if change.version == version + 1), None)
        return then is not None and replace(then, version=current.version, updated=current.updated) == current

    def _relink(self, undone: Sequence[Record]) -> None:
        """Make the supersede links between records that were undone together match their states."""
        for older in undone:
            for newer in undone:
                link = Link(older.id, SUPERSEDED_BY, newer.id)
                if merge.was_replaced(older, newer):
                    self.link(link)
                elif older.id != newer.id:
                    self.unlink(link)

    def _begin_undo_step(self) -> None:
        if not self._in_undo_group:
            self._undo_steps += 1

    @property
    def _undo_step(self) -> str:
        """Return what identifies the current undo step. One transaction can hold several: each `add` is one, for example."""
        return f"{self._change}.{self._undo_steps}" if self._undo_steps else self._change

    def _add_history(self, before: Record, version: int, verb: str, at: int) -> None:
        row = (self._project, before.id, version, self._undo_step, at, verb, serialize_record(before))
        self._db.execute("add_history", row)

    def _add_creation_history(self, record: Record) -> None:
        """Record that this undo step created a record. Only steps that changed other records need it."""
        row = (self._project, record.id, record.version, self._undo_step, record.updated, "add", None)
        self._db.execute("add_history", row)

    # --- vectors -----------------------------------------------------------------------------------------------

    def put_vector(self, id: str, vector: Sequence[float]) -> None:
        """Store the vector of a record that is stored already."""
        self._vectors.put(self._doc_of(id), self.index.kind_code(self._require(id).kind), vector)
        self._has_writes = True

    def add_missing_vectors(self, record_vectors: Sequence[tuple[Record, Sequence[float]]]) -> int:
        """Store vectors that were computed before the transaction began, and return how many.

        A record whose text has changed, that was deleted, or that has a vector by now is skipped.
        """
        self.flush()
        ids = json.dumps([record.id for record, _ in record_vectors])
        rows = self._fetch("texts_without_vector", space=self._namespace_id(), ids=ids)
        waiting = {id: (doc, text) for doc, id, text in rows}
        added = 0
        for record, vector in record_vectors:
            doc, text = waiting.get(record.id, (0, None))
            if text == record.text:
                self._vectors.put(doc, self.index.kind_code(record.kind), vector)
                added += 1
        self._has_writes = self._has_writes or added > 0
        return added

    # --- the end of a transaction ------------------------------------------------------------------------------

    def set_flag(self, name: str) -> None:
        """Set a flag in `meta` together with this transaction. It shows work that must follow, even after a crash."""
        self._execute("set_meta", name=name, value=self._change)

    def finish(self, retention: Retention | None = None, resume_points: dict[str, EventPosition] | None = None) -> None:
        """Flush and count the revision. Every `WRITES_BETWEEN_CLEANUPS` writes, also delete a batch of expired events.

        `resume_points` holds for each project where the next batch begins. It is kept between transactions: if the oldest
        events are all still needed, the cleanup must get past them.
        """
        is_cleanup_due = self._has_writes and self._revision % WRITES_BETWEEN_CLEANUPS == WRITES_BETWEEN_CLEANUPS - 1
        if is_cleanup_due and retention is not None and retention.drops_events:
            newest = self._fetch("newest_event")
            points = {} if resume_points is None else resume_points
            # Age counts from the newest event if that is earlier than now, so that a project at rest loses nothing.
            time = min(now(), newest[0][0]) if newest else 0
            _, next_point = self.drop_events(retention, time, points.get(self.scope.project, (0, 0)))
            points[self.scope.project] = next_point or (0, 0)
        self.flush()
        if self._has_writes:
            self._execute("bump_revision", docs=self._docs)

    def rebuild(self, counter: str) -> int:
        """Index every record of the project again, count its tokens, and return how many records there are."""
        self.index.clear()
        count = after = 0
        while page := self._fetch("every_record", after=after):
            sizes = []
            for row in page:
                record = self._record(row)
                sizes.append((self._project, row[0], *measure(record, counter).values()))
                self._index(row[0], record, None)
            self._db.execute_many("update_tokens", sizes)
            count, after = count + len(page), page[-1][0]
        self.flush()
        return count

    # --- helpers -----------------------------------------------------------------------------------------------

    def _check_owner(self, record: Record, *, any_owner: bool = False) -> None:
        """Refuse a record outside of the scope; with `any_owner`, for an import, outside of the project."""
        for level in ("project",) if any_owner else ("project", "user", "agent"):
            owner, expected = getattr(record.scope, level), getattr(self.scope, level)
            if owner is not None and owner != expected:
                raise InputError(f"Record {record.id!r} belongs to {level} {owner!r}, not {expected!r}.")

    def _find_by_key(self, record: Record) -> Record | None:
        """Return the record that its owner has stored under the same key."""
        if record.key is None:
            return None
        scope = record.scope
        owner = {"user": scope.user, "agent": scope.agent, "session": scope.session, "task": scope.task}
        records = self._records("by_key", key=record.key, **owner)
        return records[0] if records else None

    def _find_by_hash(self, record: Record) -> Record | None:
        """Return a record with the same content: one that counts now, or else one that counted from the same time on."""
        rows = self._fetch("by_hash", hash=record.hash)
        rows.sort()  # by doc, the earliest first. Sorting in SQLite costs three times as much as the look-up itself.
        current = [id for _, id, status, _ in rows if status in ("active", "disputed")]
        past = [id for _, id, status, valid_from in rows if status == "superseded" and valid_from == record.valid_from]
        return self._require((current or past)[0]) if current or past else None

    def _is_single_value(self, record: Record) -> bool:
        """Return whether the record is a value of an attribute that has one value at a time."""
        names = {record.attribute, f"{record.subject}.{record.attribute}"}
        return kind_of(record.kind).is_keyed and record.attribute is not None and self._multi_valued.isdisjoint(names)

    def _values(self, record: Record) -> list[Record]:
        """Return the active and the disputed values of the same attribute and owner."""
        owner = {"user": record.scope.user, "agent": record.scope.agent}
        return self._records("attribute_values", subject=record.subject, attribute=record.attribute, **owner)

    def _check_single_value(self, record: Record) -> None:
        """Refuse a record that became active while another value of its attribute is."""
        if record.status != "active" or not self._is_single_value(record):
            return
        others = [other.id for other in self._values(record) if other.status == "active" and other.id != record.id]
        if others:
            raise Conflict(
                f"{record.id!r} cannot be active while {others[0]!r} is: {record.attribute!r} has one value at a time. "
                "Retire or undo that one first."
            )


_FROM_FILES_MESSAGE = (
    "Records of kind {kind!r} are made from files when needed and never stored. `foveate init --code` indexes a folder."
)
_DERIVED_KIND_MESSAGES = {
    "relation": "A relation is made from a link and never stored. Link two entities with `foveate link A NAME B`.",
    "section": "A section is written for one context and never stored. Add a note, or pass it as an extra text.",
}
"""Messages for kinds that cannot be added, because foveate derives their records."""
