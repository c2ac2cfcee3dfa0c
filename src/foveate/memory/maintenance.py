"""Apply lifecycle changes that are due, and delete receipts and events that have expired.

Each lifecycle change is a new version of its record together with an event (type `lifecycle`) that names the change and its
reason. `undo` reverts both as one step. The events are archived from the start: they are for people, not for prompts.
Deletion runs in small batches, for all users of the project.
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
"""Changes in one transaction. Other writers do not wait long, and an interrupted run keeps the batches that are complete."""

RUN_INTERVAL_MS = 3_600_000
"""Time between two runs in the background. The rules count days, so an hour is precise enough."""

LAST_RUN_KEY = "foveate:lifecycle"
"""Key of the record that holds the time of the last run."""

MAX_RECORDS = 2**31
"""Limit for queries that shall return every record. It fits the integers of both databases."""


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
    """Delete the expired receipts and events of a project, and return their numbers as steps.

    `should_stop` is called between two batches and can end the run.
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
    """Run `gc`, unless the same user and agent ran it on this store within the last hour."""
    return gc(data, thresholds, dry_run=False) if _claim_run(data) else []


@retry_interrupted
def _claim_run(data: ScopedStore) -> bool:
    """Record the time of this run and return True, or return False if the last run is less than an hour ago."""
    now = data.clock()
    owner = Scope(data.scope.project, data.scope.user, data.scope.agent)
    with data.project_reader(owner) as reader:
        if _ran_recently(reader.by_key(LAST_RUN_KEY), now):
            return False
    with data.writer(owner) as writer:
        # Read again inside the transaction: if two processes get here, only one continues.
        last_run = writer.by_key(LAST_RUN_KEY)
        if _ran_recently(last_run, now):
            return False
        if last_run is None:
            # Archived, so that no prompt shows it.
            values = {"key": LAST_RUN_KEY, "type": "lifecycle", "status": "archived"}
            writer.add(data.make("event", "Last run of maintenance", values, owner))
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
    """Return the changes that are due, oldest record first. A change that a user has undone is not made again."""
    old = replace(NO_FILTERS, until=now - round(thresholds.archive_after * lifecycle.DAY_MS))
    others = [kind for kind in lifecycle.DUE_KINDS if kind != "episode"]
    records = [*reader.recent(("episode",), MAX_RECORDS, old), *reader.recent(others, MAX_RECORDS, NO_FILTERS)]
    changes = [change for record in reversed(records) if (change := lifecycle.due_change(record, now, thresholds))]
    return [change for change in changes if not lifecycle.was_undone(reader.history(change.id), change)]


@retry_interrupted
def _apply(data: ScopedStore, store: Store, scope: Scope, ids: Sequence[str], thresholds: Thresholds) -> list[Step]:
    """Apply the changes of one batch. Each is decided again, because the records may have changed since they were listed."""
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
