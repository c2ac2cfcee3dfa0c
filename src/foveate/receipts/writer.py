"""The writer: receipts on their way to the store and back, with the notes on them.

Receipts wait until several can be written in one transaction, never before an answer. They are found here, whether they are
still waiting or already in the store.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace

from foveate.errors import NotFound, StoreError
from foveate.pipeline.run import Run
from foveate.receipts.codec import pack, summary_from_json, unpack
from foveate.receipts.context import Context
from foveate.receipts.parts import NO_NOTES, Notes
from foveate.receipts.receipt import Receipt, build_receipt
from foveate.receipts.summary import ReceiptSummary
from foveate.store.protocol import ProjectReader, Store
from foveate.types import Scope

PENDING = 4
"""Receipts that are written together: a fourth of the transactions, and no answer waits for more than a few."""

LATEST = 1000
"""How far back the latest receipt of a user is looked for, among those of others."""

MOST_PENDING = 64
"""Receipts that may wait for a store that cannot be written; then the oldest go."""

Readers = Callable[[Scope | None], AbstractContextManager[ProjectReader]]


class ReceiptWriter:
    """The receipts of one engine."""

    def __init__(self, store: Store, readers: Readers) -> None:
        self._store = store
        self._readers = readers
        self._pending: list[Run] = []
        self._notes: dict[str, Notes] = {}
        self._noted_by: dict[str, Scope] = {}  # who noted: whoever saves for all cannot see the receipts of others
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._at_exit = _save_at_exit(self)

    def seen_by(self, readers: Readers) -> ReceiptWriter:
        """The same receipts for whoever reads with another scope."""
        other = copy(self)
        other._readers = readers
        return other

    def remember(self, facts: Run) -> None:
        """Keep what a receipt is made from; write the earlier ones when enough are waiting.

        Of several threads one writes, and the others go on: two writers would only wait for each other.
        """
        if len(self._pending) >= PENDING and self._saving.acquire(blocking=False):
            try:
                self._save()
            finally:
                self._saving.release()
        with self._lock:
            self._pending.append(facts)
            del self._pending[:-MOST_PENDING]

    def add_notes(self, context: str, notes: Notes) -> None:
        """Add to a context's receipt what became of it; written with the next receipts."""
        if len(self._notes) >= PENDING and context not in self._notes:
            self.save()
        with self._readers(None) as reader:
            here = reader.scope
        with self._lock:
            self._noted_by.pop(context, None)
            self._noted_by[context] = here
            self._notes[context] = self._notes.get(context, NO_NOTES).merge(notes)
            for oldest in list(self._notes)[:-MOST_PENDING]:
                del self._notes[oldest]
            for oldest in list(self._noted_by)[: -2 * MOST_PENDING]:  # in place: views of other callers share it
                del self._noted_by[oldest]

    def save(self) -> None:
        """Write what is waiting. A store that cannot be written just now keeps them waiting, never the answer."""
        with self._saving:
            self._save()

    def _save(self) -> None:
        with self._lock:
            pending = list(self._pending)
        by_owner: dict[Scope, list[Run]] = {}
        for facts in pending:
            by_owner.setdefault(_owner(facts.request.scope), []).append(facts)
        for owner, group in by_owner.items():
            if self._write(owner, [build_receipt(facts) for facts in group]):
                written = set(map(id, group))  # until now they are found here: a question may come at any moment
                with self._lock:
                    self._pending[:] = [facts for facts in self._pending if id(facts) not in written]
        self._save_notes()

    def _save_notes(self) -> None:
        """Notes on receipts that are written already; those of one that was dropped go with it."""
        with self._lock:
            waiting = {facts.id for facts in self._pending}
            written = [id for id in self._notes if id not in waiting]
        if not written:
            return
        try:
            bodies = {id: self._body(id) for id in written}
        except StoreError:
            return
        for id, body in bodies.items():
            if body is None:
                with self._lock:
                    self._notes.pop(id, None)
                continue
            receipt = unpack(body)
            self._write(_owner(receipt.request.scope), [receipt])

    def _body(self, id: str) -> bytes | None:
        noted_by = self._noted_by.get(id)
        if noted_by is None:
            return None
        with self._store.read(noted_by) as reader:
            return reader.receipt(id)

    def _write(self, owner: Scope, group: Sequence[Receipt]) -> bool:
        """Keep receipts with the notes on them, and with those that a receipt of the same context has already."""
        with self._lock:
            notes = {receipt.id: self._notes.pop(receipt.id, NO_NOTES) for receipt in group}
        try:
            with self._store.read(owner) as reader:
                bodies = [reader.receipt(receipt.id) for receipt in group]
            known = [unpack(body).notes if body else NO_NOTES for body in bodies]
            whole = [
                replace(receipt, notes=held.merge(notes[receipt.id])) for receipt, held in zip(group, known, strict=True)
            ]
            self._store.save_receipts(owner, [pack(each) for each in whole])
        except StoreError:
            with self._lock:
                for id, held in notes.items():
                    if held != NO_NOTES:
                        self._notes[id] = held.merge(self._notes.get(id, NO_NOTES))
            return False
        return True

    def close(self) -> None:
        self.save()
        atexit.unregister(self._at_exit)

    def has(self, id: str) -> bool:
        """Return whether there is a receipt of a context that this reader may see."""
        if any(run.id == id for run in self._waiting(held=True)):
            return True
        with self._readers(None) as reader:
            return reader.receipt(id) is not None

    def receipt(self, context: str | Context | None = None) -> Receipt:
        """The receipt of a context; without one, of the latest."""
        id = context.id if isinstance(context, Context) else context
        for facts in reversed(self._waiting(held=isinstance(context, Context))):
            if id == facts.id or (id is None and self._is_mine(facts.request.scope)):
                return self._noted(build_receipt(facts))
        with self._readers(None) as reader:
            if id is None:
                return self._noted(_latest(reader))
            body = reader.receipt(id)
        if body is None:
            raise NotFound(f"There is no receipt {id!r}: it was dropped by age, or never made.")
        return self._noted(unpack(body))

    def summaries(
        self, limit: int, after: tuple[int, str] | None = None, session: str | None = None
    ) -> list[ReceiptSummary]:
        """Return summaries, newest first, also of one session. `after` is (created, id) of the last of another page."""
        self.save()
        with self._readers(None) as reader:
            found = reader.receipt_summaries(limit, after, session)
        return [summary_from_json(line) for line in found]

    def summaries_since(self, since: int, limit: int) -> tuple[Iterator[ReceiptSummary], bool]:
        """Return the summaries of receipts since a time, newest first, and whether there are more than `limit`."""
        self.save()
        with self._readers(None) as reader:
            found, more = reader.receipt_summaries_since(since, limit)
        return map(summary_from_json, found), more

    def _waiting(self, *, held: bool) -> list[Run]:
        """What is not written yet, of those that the reader may see; whoever holds the context itself may see its own."""
        with self._lock:
            pending = list(self._pending)
        if held or not pending:
            return pending
        with self._readers(None) as reader:
            here = reader.scope
        return [facts for facts in pending if _is_seen(facts.request.scope, here)]

    def _is_mine(self, asked: Scope) -> bool:
        with self._readers(None) as reader:
            return _is_own(asked, reader.scope)

    def _noted(self, receipt: Receipt) -> Receipt:
        return receipt.with_notes(self._notes.get(receipt.id, NO_NOTES))


def _owner(scope: Scope) -> Scope:
    """Whose receipt it is."""
    return Scope(scope.project, scope.user, scope.agent)


def _is_seen(asked: Scope, here: Scope) -> bool:
    """Whether a receipt that waits may be read: project and user are walls, and an agent's is its own."""
    mine = asked.project == here.project and asked.user in (None, here.user)
    return mine and (here.agent is None or asked.agent in (None, here.agent))


def _is_own(asked: Scope, here: Scope) -> bool:
    """Whether a receipt counts among whoever reads' own: of their user, agent, session and task."""
    owned = asked.user in (None, here.user) and here.agent in (None, asked.agent)
    return owned and here.session in (None, asked.session) and here.task in (None, asked.task)


def _latest(reader: ProjectReader) -> Receipt:
    """The newest receipt that the reader's own user and agent may see: those of others are theirs."""
    for stored in reader.receipts(LATEST):
        receipt = unpack(stored.body)
        if _is_own(receipt.request.scope, reader.scope):
            return receipt
    raise NotFound("No context was computed yet.")


def _save_at_exit(writer: ReceiptWriter) -> Callable[[], None]:
    """Write what is waiting when the process ends, without keeping an engine alive that nobody uses."""
    held = weakref.ref(writer)

    def save() -> None:
        writer = held()
        if writer is not None:
            writer.save()

    atexit.register(save)
    return save
