"""Applies lifecycle changes that are due, and deletes what is beyond its retention.

Each lifecycle change is a new version of its record together with an event (type `lifecycle`) that says what was done and
why. `undo` reverts both as one step. The events are archived from the start: they are for people, not for prompts. Deletion
runs in small batches, for all users of the project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from foveate.records import lifecycle, make
from foveate.records.lifecycle import Step, Thresholds
from foveate.store.protocol import Reader, Store, Writer
from foveate.store.retention import ExpiredCounts
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import PERSONAL_PROJECT, ScopedStore
from foveate.types import NO_FILTERS, Record, Scope

BATCH_SIZE = 500
"""Changes in one transaction, so that no other writer waits long and an interruption keeps what is done."""

RUN_INTERVAL_MS = 3_600_000
"""Time between two rounds in the background. The rules count days, so an hour is precise enough."""

LAST_RUN_KEY = "foveate:lifecycle"
"""Key of the record that holds the time of the last round."""

MAX_RECORDS = 2**31


def gc(
    data: ScopedStore, thresholds: Thresholds, *, dry_run: bool = True, moves: bool = True, drops: bool = True
) -> list[Step]:
    """Run the maintenance that is due and return its steps. `moves` are lifecycle changes, `drops` are deletions."""
    steps: list[Step] = []
    for store, scope in _targets(data):
        changes = _find_due_changes(store, scope, data.clock(), thresholds) if moves else []
        if not dry_run:
            ids = [change.id for change in changes]
            batches = (ids[n : n + BATCH_SIZE] for n in range(0, len(ids), BATCH_SIZE))
            changes = [change for batch in batches for change in _apply(data, store, scope, batch, thresholds)]
        steps += changes
        if drops:
            steps += delete_expired(store, scope, data.clock(), dry_run=dry_run)
        if not dry_run:
            store.reclaim_space()
    return steps


def delete_expired(
    store: Store, scope: Scope, now: int, *, dry_run: bool = False, should_stop: Callable[[], bool] = lambda: False
) -> list[Step]:
    """Delete the receipts and events of a project that are beyond their retention, and return the counts as steps.

    `should_stop` is called between two batches and can end the round.
    """
    retention = store.retention
    if dry_run:
        with store.read(scope) as reader:
            expired = reader.count_expired(retention, now)
    else:
        expired = ExpiredCounts()
        for batch in _delete_batches(store, scope, now):
            expired += batch
            if should_stop():
                break
    numbers = {"receipt": expired.receipts, "event": expired.events}
    return [
        Step("", kind, "drop", "kept", "gone", retention.reason(kind), number) for kind, number in numbers.items() if number
    ]


def _delete_batches(store: Store, scope: Scope, now: int) -> Iterator[ExpiredCounts]:
    number = 1
    while number:
        with store.write(scope) as writer:
            number = writer.drop_receipts(store.retention, now)
        yield ExpiredCounts(receipts=number)
    after: tuple[int, int] | None = (0, 0) if store.retention.drops_events else None
    while after is not None:
        with store.write(scope) as writer:
            number, after = writer.drop_events(store.retention, now, after)
        yield ExpiredCounts(events=number)


def run_if_due(data: ScopedStore, thresholds: Thresholds) -> list[Step]:
    """Run `gc`, unless the same user and agent had a round on this store within the last hour."""
    return gc(data, thresholds, dry_run=False) if _claim_run(data) else []


@retry_interrupted
def _claim_run(data: ScopedStore) -> bool:
    """Record the time of this round and return True, or return False if the last one is less than an hour ago."""
    now = data.clock()
    owner = Scope(data.scope.project, data.scope.user, data.scope.agent)
    with data.project_reader(owner) as reader:
        if _ran_recently(reader.by_key(LAST_RUN_KEY), now):
            return False
    with data.writer(owner) as writer:
        last_run = writer.by_key(LAST_RUN_KEY)  # again, inside the transaction: of two processes only one continues
        if _ran_recently(last_run, now):
            return False
        if last_run is None:
            values = {"key": LAST_RUN_KEY, "type": "lifecycle", "status": "archived"}
            writer.add(data.make("event", "Last round of upkeep", values, owner))
        else:
            writer.change(replace(last_run, updated=now), "tick")
    return True


def _ran_recently(last_run: Record | None, now: int) -> bool:
    return last_run is not None and now - last_run.updated < RUN_INTERVAL_MS


def _targets(data: ScopedStore) -> Iterator[tuple[Store, Scope]]:
    yield data.store, data.scope
    if data.personal is not None:
        yield data.personal, replace(data.scope, project=PERSONAL_PROJECT)


@retry_interrupted
def _find_due_changes(store: Store, scope: Scope, now: int, thresholds: Thresholds) -> list[Step]:
    with store.read(scope) as reader:
        return _due_changes(reader, now, thresholds)


def _due_changes(reader: Reader, now: int, thresholds: Thresholds) -> list[Step]:
    old = replace(NO_FILTERS, until=now - round(thresholds.archive_after * lifecycle.DAY_MS))
    others = [kind for kind in lifecycle.DUE_KINDS if kind != "episode"]
    records = [*reader.recent(("episode",), MAX_RECORDS, old), *reader.recent(others, MAX_RECORDS, NO_FILTERS)]
    changes = [change for record in reversed(records) if (change := lifecycle.due_change(record, now, thresholds))]
    return [change for change in changes if not lifecycle.was_undone(reader.history(change.id), change)]


@retry_interrupted
def _apply(data: ScopedStore, store: Store, scope: Scope, ids: Sequence[str], thresholds: Thresholds) -> list[Step]:
    applied = []
    now = data.clock()
    with store.write(scope) as writer:
        for record in writer.get(ids).values():
            change = lifecycle.due_change(record, now, thresholds)
            if change is not None:
                _apply_change(data, writer, record, change, now)
                applied.append(change)
    return applied


def _apply_change(data: ScopedStore, writer: Writer, record: Record, change: Step, now: int) -> None:
    text = f"{change.verb} {change.id}: {change.was} -> {change.to}, {change.why}"
    values = {"type": "lifecycle", "status": "archived", "record": change.id, "was": change.was, "to": change.to}
    after = make.finish(lifecycle.apply_change(record, change, now), data.rules)
    with writer.undo_group():
        writer.change(after, change.verb, expect_version=record.version)
        writer.add(data.make("event", text, values, record.scope))
