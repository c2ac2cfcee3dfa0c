"""Upkeep: finds what `lifecycle` and `retention` say is due in the stores of a memory, and does it.

Each change of a lifecycle is a version of its record together with an event (type `lifecycle`) that says what was done and
why: one step, which `undo` takes back as one. The events are archived from the start: they are for people who look, not for
prompts. What is beyond its retention is dropped for good, in small batches, whoever it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from foveate.records import lifecycle, make
from foveate.records.lifecycle import Step, Thresholds
from foveate.store.protocol import Reader, Store, Writer
from foveate.store.retention import Gone
from foveate.store.retry import retried
from foveate.store.scoped import PERSONAL_PROJECT, ScopedStore
from foveate.types import NO_FILTERS, Record, Scope

BATCH = 500
"""Changes in one transaction: nobody waits long, and what is done stays done."""

EVERY = 3_600_000
"""Milliseconds between two rounds in the background: an hour is nothing against rules that count days."""

TICK = "foveate:lifecycle"
"""The key under which the time of the last round is kept."""

_ALL = 2**31


def gc(
    data: ScopedStore, thresholds: Thresholds, *, dry_run: bool = True, moves: bool = True, drops: bool = True
) -> list[Step]:
    """Run what is due and return its steps. `moves` are lifecycle changes, `drops` are records beyond their retention."""
    found = []
    for store, scope in _places(data):
        steps = _found(store, scope, data.clock(), thresholds) if moves else []
        if not dry_run:
            ids = [step.id for step in steps]
            batches = (ids[n : n + BATCH] for n in range(0, len(ids), BATCH))
            steps = [step for batch in batches for step in _apply(data, store, scope, batch, thresholds)]
        found += steps
        if drops:
            found += dropped(store, scope, data.clock(), dry_run=dry_run)
        if not dry_run:
            store.reclaim_space()
    return found


def dropped(
    store: Store, scope: Scope, now: int, *, dry_run: bool = False, rest: Callable[[], bool] | None = None
) -> list[Step]:
    """Drop the receipts and events of a project that are beyond their retention, batch by batch; what went, or would.

    `rest` is called between two batches, and ends the round where it says so.
    """
    kept = store.retention
    if dry_run:
        with store.read(scope) as reader:
            gone = reader.count_expired(kept, now)
    else:
        gone = Gone()
        for batch in _batches(store, scope, now):
            gone += batch
            if rest is not None and rest():
                break
    numbers = {"receipt": gone.receipts, "event": gone.events}
    return [Step("", kind, "drop", "kept", "gone", kept.why(kind), number) for kind, number in numbers.items() if number]


def _batches(store: Store, scope: Scope, now: int) -> Iterator[Gone]:
    number = 1
    while number:
        with store.write(scope) as writer:
            number = writer.drop_receipts(store.retention, now)
        yield Gone(receipts=number)
    after: tuple[int, int] | None = (0, 0) if store.retention.drops_events else None
    while after is not None:
        with store.write(scope) as writer:
            number, after = writer.drop_events(store.retention, now, after)
        yield Gone(events=number)


def tick(data: ScopedStore, thresholds: Thresholds) -> list[Step]:
    """`gc`, unless the same user and agent had a round on this store within the hour: then nothing."""
    return gc(data, thresholds, dry_run=False) if _is_turn(data) else []


@retried
def _is_turn(data: ScopedStore) -> bool:
    """Whether the last round is an hour ago; then this one is on record."""
    now = data.clock()
    owner = Scope(data.scope.project, data.scope.user, data.scope.agent)
    with data.store.read(owner) as reader:
        if _is_fresh(reader.by_key(TICK), now):
            return False
    with data.store.write(owner) as writer:
        last = writer.by_key(TICK)  # again, inside the transaction: of two at once, one goes on
        if _is_fresh(last, now):
            return False
        if last is None:
            values = {"key": TICK, "type": "lifecycle", "status": "archived"}
            writer.add(data.make("event", "Last round of upkeep", values, owner))
        else:
            writer.change(replace(last, updated=now), "tick")
    return True


def _is_fresh(last: Record | None, now: int) -> bool:
    return last is not None and now - last.updated < EVERY


def _places(data: ScopedStore) -> Iterator[tuple[Store, Scope]]:
    yield data.store, data.scope
    if data.personal is not None:
        yield data.personal, replace(data.scope, project=PERSONAL_PROJECT)


@retried
def _found(store: Store, scope: Scope, now: int, thresholds: Thresholds) -> list[Step]:
    with store.read(scope) as reader:
        return _due(reader, now, thresholds)


def _due(reader: Reader, now: int, thresholds: Thresholds) -> list[Step]:
    old = replace(NO_FILTERS, until=now - round(thresholds.archive_after * lifecycle.DAY))
    others = [kind for kind in lifecycle.DUE_KINDS if kind != "episode"]
    kept = [*reader.recent(("episode",), _ALL, old), *reader.recent(others, _ALL, NO_FILTERS)]
    steps = [step for record in reversed(kept) if (step := lifecycle.due(record, now, thresholds))]
    return [step for step in steps if not lifecycle.taken_back(reader.history(step.id), step)]


@retried
def _apply(data: ScopedStore, store: Store, scope: Scope, ids: Sequence[str], thresholds: Thresholds) -> list[Step]:
    applied = []
    now = data.clock()
    with store.write(scope) as writer:
        for record in writer.get(ids).values():
            step = lifecycle.due(record, now, thresholds)
            if step is not None:
                _do(data, writer, record, step, now)
                applied.append(step)
    return applied


def _do(data: ScopedStore, writer: Writer, record: Record, step: Step, now: int) -> None:
    text = f"{step.verb} {step.id}: {step.was} -> {step.to}, {step.why}"
    values = {"type": "lifecycle", "status": "archived", "record": step.id, "was": step.was, "to": step.to}
    with writer.undo_group():
        writer.change(make.finish(lifecycle.done(record, step, now), data.rules), step.verb, expect=record.version)
        writer.add(data.make("event", text, values, record.scope))
