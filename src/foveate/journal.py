"""The journal: receipts on their way to the store and back, and the questions that they answer.

Receipts wait until several can be written in one transaction, never before an answer. A question about a context is
answered from here, whether its receipt is still waiting or already in the store.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from foveate import receipts, tokens
from foveate.assembly import Context, joined
from foveate.compose import compose
from foveate.errors import NotFound, StoreError
from foveate.explain import why_not_considered
from foveate.receipts import FORGOTTEN, Facts, Receipt
from foveate.state.store import Reader, Store
from foveate.types import Candidate, Record, Scope

PENDING = 4
"""Receipts that are written together: a fourth of the transactions, and no answer waits for more than a few."""

LATEST = 1000
"""How far back the latest receipt of a user is looked for, among those of others."""

MOST_PENDING = 64
"""Receipts that may wait for a store that cannot be written; then the oldest go."""

Readers = Callable[[Scope | None], AbstractContextManager[Reader]]


class Journal:
    """The receipts of one engine."""

    def __init__(self, store: Store, readers: Readers) -> None:
        self._store = store
        self._readers = readers
        self._pending: list[Facts] = []
        self._lock = threading.Lock()
        self._at_exit = _save_at_exit(self)

    def remember(self, facts: Facts) -> None:
        """Keep what a receipt is made from; write the earlier ones when enough are waiting."""
        if len(self._pending) >= PENDING:
            self.save()
        with self._lock:
            self._pending.append(facts)
            del self._pending[:-MOST_PENDING]

    def save(self) -> None:
        """Write what is waiting. A store that cannot be written just now keeps them waiting, never the answer."""
        with self._lock:
            pending, self._pending = self._pending, []
        by_owner: dict[Scope, list[Facts]] = {}
        for facts in pending:
            scope = facts.request.scope
            by_owner.setdefault(Scope(scope.project, scope.user, scope.agent), []).append(facts)
        for owner, group in by_owner.items():
            packed = [receipts.pack(receipts.write(facts), facts.request.now) for facts in group]
            try:
                self._store.save_receipts(owner, packed)
            except StoreError:
                with self._lock:
                    self._pending[:0] = group

    def close(self) -> None:
        self.save()
        atexit.unregister(self._at_exit)

    def receipt(self, context: str | Context | None = None) -> Receipt:
        """The receipt of a context; without one, of the latest."""
        if context is None and self._pending:
            return receipts.write(self._pending[-1])
        id = context.id if isinstance(context, Context) else context
        for facts in self._pending:
            if facts.context.id == id:
                return receipts.write(facts)
        with self._readers(None) as reader:
            if id is None:
                return _latest(reader)
            body = reader.receipt(id)
        if body is None:
            raise NotFound(f"There is no receipt {id!r}: it was dropped by age, or never made.")
        return receipts.unpack(body)

    def why_not(self, id: str, context: str | Context | None = None) -> dict[str, Any]:
        """Why a record is not in a context, even where it was not a candidate at all."""
        receipt = self.receipt(context)
        if receipt.of(id) is not None:
            return receipts.why(receipt, id)
        with self._readers(self._scope(receipt)) as reader:
            return why_not_considered(receipt, id, reader)

    def diff(self, one: str | Context, other: str | Context) -> dict[str, Any]:
        """What changed between two contexts, and how much of their beginning they share."""
        before = self.receipt(one)
        out = receipts.diff(before, self.receipt(other))
        replays = [self.replay(one, {}), self.replay(other, {})]
        if all(replay["identical"] for replay in replays):
            first, second = (replay["text"] for replay in replays)
            pairs = zip(first, second, strict=False)
            shared = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
            counter = before.document["request"]["counter"]
            out["shared_prefix"] = {"chars": shared, "tokens": tokens.count(first[:shared], counter)}
        return out

    def replay(self, context: str | Context, given: Mapping[str, Sequence[Record]]) -> dict[str, Any]:
        """A past context from its receipt: the recorded candidates through the same pure stages."""
        receipt = self.receipt(context)
        document = receipt.document
        asked = document["request"]
        handed = {record.id: record for group in given.values() for record in group}
        with self._readers(self._scope(receipt)) as reader:
            candidates, missing = _recalled(receipt, reader, handed)
        profile = receipts.profile_from_json(document["profile"])
        filters = receipts.filters_from_json(asked["filters"])
        composed = compose(candidates, profile, filters, asked["counter"], document["measured_by"], asked["now"])
        text = joined(composed.sections)
        return {
            "id": receipt.id,
            "text": text,
            "tokens": composed.budget.used,
            "identical": receipts.text_hash(text) == document["text_hash"],
            "missing": missing,
        }

    def _scope(self, receipt: Receipt) -> Scope:
        """The receipt's scope, within the caller's own session and task: a receipt opens no wall."""
        asked = receipts.scope_from_json(receipt.document["request"]["scope"])
        with self._readers(None) as reader:
            mine = reader.scope
        return replace(asked, session=mine.session or asked.session, task=mine.task or asked.task)


def _latest(reader: Reader) -> Receipt:
    """The newest receipt that the reader's own user and agent may see: those of others are theirs."""
    for stored in reader.receipts(LATEST):
        receipt = receipts.unpack(stored.body)
        asked = receipts.scope_from_json(receipt.document["request"]["scope"])
        here = reader.scope
        owned = asked.user in (None, here.user) and here.agent in (None, asked.agent)
        if owned and here.session in (None, asked.session) and here.task in (None, asked.task):
            return receipt
    raise NotFound("No context was computed yet.")


def _recalled(receipt: Receipt, reader: Reader, handed: Mapping[str, Record]) -> tuple[list[Candidate], list[str]]:
    """The candidates of a receipt, each at the version that it had, and what is no longer there."""
    candidates, missing = [], []
    for entry in receipt.candidates:
        given = entry["source"] == "given"
        record = handed.get(entry["id"]) if given else reader.version(entry["id"], entry["version"])
        via = reader.version(entry["via"], entry["via_version"]) if entry.get("via") else None
        if record is None or (entry.get("via") and via is None):
            missing.append(entry["id"])
            continue
        candidates.append(
            Candidate(
                record=replace(record, tokens=None),  # counted again: an earlier version may have another counter's counts
                slot=entry["slot"],
                source=entry["source"],
                overruled_by=entry["overruled_by"],
                via=via,
                stale=bool(entry.get("stale")),
                features=entry["features"],
                score=entry["score"],
            )
        )
    return candidates, missing + [FORGOTTEN] * int(receipt.document.get("forgotten", 0))


def _save_at_exit(journal: Journal) -> Callable[[], None]:
    """Write what is waiting when the process ends, without keeping an engine alive that nobody uses."""
    held = weakref.ref(journal)

    def save() -> None:
        journal = held()
        if journal is not None:
            journal.save()

    atexit.register(save)
    return save
