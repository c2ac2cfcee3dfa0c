"""Write receipts to the store in batches, and find them before and after they are written.

A receipt waits until several can be written in one transaction, so that a call does not wait for the store. Notes on a
context wait in the same way; they are added to the receipt when it is read or written.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from typing import NamedTuple

from foveate.errors import NotFound, StoreError
from foveate.pipeline.run import Run
from foveate.receipts.codec import pack, summary_from_json, unpack
from foveate.receipts.parts import NO_NOTES, Notes
from foveate.receipts.receipt import Receipt, build_receipt
from foveate.receipts.summary import ReceiptSummary
from foveate.store.protocol import ProjectReader, Store
from foveate.types import Scope

BATCH_SIZE = 4
"""Receipts per transaction. The call that writes them must not wait for more than a few."""

MAX_PENDING = 64
"""Receipts that wait while the store cannot be written. After that the oldest are dropped."""

MAX_SCANNED = 1000
"""Receipts, newest first, among which the caller's latest one is searched. Most can be those of other agents."""

OpenReader = Callable[[Scope | None], AbstractContextManager[ProjectReader]]


class _PendingNotes(NamedTuple):
    """Notes that wait to be written, and the scope that they came from: it sees their receipt, and others may not."""

    notes: Notes
    scope: Scope


class ReceiptWriter:
    """The receipts of one engine: those that wait to be written, and those in the store."""

    def __init__(self, store: Store, open_reader: OpenReader) -> None:
        self._store = store
        self._open_reader = open_reader
        self._pending: list[Run] = []
        self._notes: dict[str, _PendingNotes] = {}
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._at_exit = _flush_at_exit(self)

    def for_reader(self, open_reader: OpenReader) -> ReceiptWriter:
        """Return the same receipts as another scope sees them."""
        other = copy(self)
        other._open_reader = open_reader
        return other

    # --- writing -----------------------------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        """Add the run of a context; its receipt is made and written later. A full batch is written first."""
        # Only one thread writes. A second one would wait for the first and then find nothing to write.
        if len(self._pending) >= BATCH_SIZE and self._write_lock.acquire(blocking=False):
            try:
                self._flush()
            finally:
                self._write_lock.release()
        with self._lock:
            self._pending.append(run)
            del self._pending[:-MAX_PENDING]

    def add_notes(self, context: str, notes: Notes) -> None:
        """Add notes to the receipt of a context. They are written with the next batch."""
        if len(self._notes) >= BATCH_SIZE and context not in self._notes:
            self.flush()
        with self._open_reader(None) as reader:
            scope = reader.scope
        with self._lock:
            self._notes[context] = _PendingNotes(self._waiting_notes(context).merge(notes), scope)
            # Changed in place, because the views of other scopes share the dictionary.
            for oldest in list(self._notes)[:-MAX_PENDING]:
                del self._notes[oldest]

    def flush(self) -> None:
        """Write everything that waits. If the store cannot be written now, it waits on."""
        with self._write_lock:
            self._flush()

    def _flush(self) -> None:
        with self._lock:
            pending = list(self._pending)
        runs_by_owner: dict[Scope, list[Run]] = {}
        for run in pending:
            runs_by_owner.setdefault(_owner_of(run.request.scope), []).append(run)
        for owner, runs in runs_by_owner.items():
            if self._write(owner, [build_receipt(run) for run in runs]):
                written = set(map(id, runs))
                # Runs are removed only after they are written: another thread may look for them at any moment.
                with self._lock:
                    self._pending[:] = [run for run in self._pending if id(run) not in written]
        self._flush_notes()

    def _flush_notes(self) -> None:
        """Write the notes on receipts that are in the store already. Notes on a dropped receipt are dropped."""
        with self._lock:
            waiting = {run.id for run in self._pending}
            notes = {id: pending for id, pending in self._notes.items() if id not in waiting}
        try:
            receipts = {id: self._stored(id, pending.scope) for id, pending in notes.items()}
        except StoreError:
            return
        for id, receipt in receipts.items():
            if receipt is None:
                with self._lock:
                    self._notes.pop(id, None)
                continue
            self._write(_owner_of(receipt.request.scope), [receipt])

    def _stored(self, id: str, scope: Scope) -> Receipt | None:
        with self._store.read(scope) as reader:
            body = reader.receipt(id)
            return None if body is None else unpack(body)

    def _write(self, owner: Scope, receipts: Sequence[Receipt]) -> bool:
        """Write receipts with their notes. Return False if the store cannot be written; the notes then wait on."""
        with self._lock:
            new_notes = {receipt.id: self._notes.pop(receipt.id) for receipt in receipts if receipt.id in self._notes}
        try:
            with self._store.read(owner) as reader:
                bodies = [reader.receipt(receipt.id) for receipt in receipts]
                # The same context can be computed twice. Notes on its first receipt must not be lost.
                stored_notes = [unpack(body).notes if body else NO_NOTES for body in bodies]
            packed = []
            for receipt, notes in zip(receipts, stored_notes, strict=True):
                if receipt.id in new_notes:
                    notes = notes.merge(new_notes[receipt.id].notes)
                packed.append(pack(replace(receipt, notes=notes)))
            self._store.save_receipts(owner, packed)
        except StoreError:
            with self._lock:
                for id, pending in new_notes.items():
                    self._notes[id] = _PendingNotes(pending.notes.merge(self._waiting_notes(id)), pending.scope)
            return False
        return True

    def close(self) -> None:
        """Write everything that waits, and no longer do so when the process ends."""
        self.flush()
        atexit.unregister(self._at_exit)

    # --- reading -----------------------------------------------------------------------------------------------

    def find(self, id: str, *, any_scope: bool = False) -> Receipt | None:
        """Return a receipt that the reader may see. With `any_scope`, find any that is not written yet."""
        for run in reversed(self._pending_runs(any_scope=any_scope)):
            if run.id == id:
                return self._with_notes(build_receipt(run))
        with self._open_reader(None) as reader:
            body = reader.receipt(id)
            # Read while the store is open: it then reports damage as an error of its own.
            return None if body is None else self._with_notes(unpack(body))

    def latest(self) -> Receipt:
        """Return the latest receipt of the reader's own user, agent, session and task."""
        pending = self._pending_runs()
        with self._open_reader(None) as reader:
            for run in reversed(pending):
                if _belongs_to(run.request.scope, reader.scope):
                    return self._with_notes(build_receipt(run))
            for summary in map(summary_from_json, reader.receipt_summaries(MAX_SCANNED)):
                body = reader.receipt(summary.id) if _belongs_to(summary.scope, reader.scope) else None
                if body is not None:
                    return self._with_notes(unpack(body))
        raise NotFound("No context was computed yet.")

    def summaries(
        self, limit: int, after: tuple[int, str] | None = None, session: str | None = None
    ) -> list[ReceiptSummary]:
        """Return summaries, newest first, also of one session. `after` is (created, id) of the last of another page."""
        self.flush()
        with self._open_reader(None) as reader:
            return [summary_from_json(row) for row in reader.receipt_summaries(limit, after, session)]

    def summaries_since(self, since: int, limit: int) -> tuple[Iterator[ReceiptSummary], bool]:
        """Return the summaries of receipts since a time, newest first, and whether there are more than `limit`."""
        self.flush()
        with self._open_reader(None) as reader:
            rows = reader.receipt_summaries(limit + 1, since=since)
            return iter([summary_from_json(row) for row in rows[:limit]]), len(rows) > limit

    def _pending_runs(self, *, any_scope: bool = False) -> list[Run]:
        """Return the runs that wait to be written, oldest first: those that the reader may see, or all."""
        with self._lock:
            pending = list(self._pending)
        if any_scope or not pending:
            return pending
        with self._open_reader(None) as reader:
            reader_scope = reader.scope
        return [run for run in pending if _is_visible(run.request.scope, reader_scope)]

    def _with_notes(self, receipt: Receipt) -> Receipt:
        return receipt.with_notes(self._waiting_notes(receipt.id))

    def _waiting_notes(self, id: str) -> Notes:
        pending = self._notes.get(id)
        return NO_NOTES if pending is None else pending.notes


def _owner_of(scope: Scope) -> Scope:
    """Return the scope that a receipt is stored in. Sessions and tasks of one owner share their receipts."""
    return Scope(scope.project, scope.user, scope.agent)


def _is_visible(scope: Scope, reader_scope: Scope) -> bool:
    """Return whether a reader may see a pending receipt, by the rules that the store has for written ones."""
    same_user = scope.project == reader_scope.project and scope.user in (None, reader_scope.user)
    return same_user and scope.agent in (None, reader_scope.agent)


def _belongs_to(scope: Scope, reader_scope: Scope) -> bool:
    """Return whether a receipt is of the reader's user, agent, session and task, as far as the reader names them."""
    same_owner = scope.user in (None, reader_scope.user) and reader_scope.agent in (None, scope.agent)
    return same_owner and reader_scope.session in (None, scope.session) and reader_scope.task in (None, scope.task)


def _flush_at_exit(writer: ReceiptWriter) -> Callable[[], None]:
    """Write what waits when the process ends. The weak reference does not keep an unused engine alive."""
    reference = weakref.ref(writer)

    def flush() -> None:
        writer = reference()
        if writer is not None:
            writer.flush()

    atexit.register(flush)
    return flush
