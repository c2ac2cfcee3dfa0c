"""Retention deletes receipts and events by age and number, in batches and from every table, and keeps those in use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foveate
from foveate import testing
from foveate.cli import cli
from foveate.clock import new_id
from foveate.errors import InputError
from foveate.store.retention import BATCH_SIZE, WRITES_BETWEEN_CLEANUPS, Retention, retention_problems
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import FixedClock
from records import add_record
from worlds import DAY, NOW, ago


@pytest.fixture
def engine(tmp_path: Path) -> foveate.Engine:
    return testing.engine(tmp_path, personal=False, code=False, clock=FixedClock(NOW), embedder="hash:16", ids=new_id)


def keep(engine: foveate.Engine, **limits: float) -> None:
    engine.store.data.store.retention = Retention(**limits)  # type: ignore[arg-type]


def events(engine: foveate.Engine) -> list[str]:
    with engine.store.data.reader() as reader:
        return [record.text for record in reader.records() if record.kind == "event"]


def tables(engine: foveate.Engine, id: str) -> dict[str, int]:
    """Return the number of rows in each table that have a record's id or number."""
    store = engine.store.data.store
    assert isinstance(store, SQLiteStore)
    run = store._connections.current().execute
    found = run("select doc from records where id = ?", (id,)).fetchone()
    by_id = {"history": "id", "links": "src", "receipt_items": "record"}
    counts = {
        table: run(f"select count(*) from {table} where {column} = ?", (id,)).fetchone()[0]
        for table, column in by_id.items()
    }
    counts |= {
        table: run(f"select count(*) from {table} where doc = ?", (found[0],)).fetchone()[0] if found else 0
        for table in ("records", "vectors")
    }
    with store.read(engine.scope) as reader:
        counts["postings"] = (
            sum(found[0] in docs for *_, docs, _ in reader.index.all_postings())
            if found
            else len([*reader.index.all_postings()])
        )
    return counts


def old(engine: foveate.Engine, text: str, days: float = 100, **values: object) -> str:
    """Add an event that was stored when it happened, and return its id."""
    clock: Any = engine.store.data.clock
    now, clock.now = clock.now, NOW - round(days * DAY)
    try:
        return add_record(engine, "event", text, **values).record.id
    finally:
        clock.now = now


def test_an_expired_event_is_deleted_from_every_table_and_receipts_keep_its_id(engine: foveate.Engine) -> None:
    id = old(engine, "Ran the zebra suite")
    engine.edit(id, pinned=True)
    engine.edit(id, pinned=False)
    context = engine.context("zebra suite")
    assert [item.id for item in context.items] == [id]
    engine.receipts.flush()
    assert all(tables(engine, id)[name] for name in ("records", "postings", "vectors", "history", "receipt_items"))
    engine.store.data.clock.now = NOW + 200 * DAY  # type: ignore[attr-defined]  # the edits count: it was changed today
    keep(engine, event_days=90, receipt_days=1000)
    assert [(step.kind, step.number, step.why) for step in engine.store.maintain(dry_run=True)] == [
        ("event", 1, "older than 90 days")
    ]
    assert events(engine) == ["Ran the zebra suite"], "a dry run changes nothing"
    engine.store.maintain()
    assert events(engine) == []
    assert set(tables(engine, id).values()) == {0}
    assert engine.store.health().ok
    assert engine.store.maintain(dry_run=True) == []
    assert engine.why(id, context).id == id
    assert engine.receipts.replay(context).missing == (id,)


def test_events_that_are_pinned_linked_or_of_an_open_task_are_kept(engine: foveate.Engine) -> None:
    open_task, done = engine.tasks.add("Build it"), engine.tasks.add("Ship it")
    engine.tasks.edit(done.id, status="active")
    engine.tasks.complete(done.id, result="It is out.")
    keep(engine, event_days=90)
    old(engine, "nobody needs it")
    engine.edit(old(engine, "pinned"), pinned=True)
    engine.link(engine.add("fact", "The cache is cold").record.id, "learned_from", old(engine, "taught"))
    for task, text in ((open_task.id, "of an open task"), (done.id, "of a task that is done")):
        old(engine, text, task=task)
    engine.add("event", "imported today", created=ago(400))
    old(engine, "recent", days=80)
    engine.store.maintain()
    assert events(engine) == ["pinned", "taught", "of an open task", "imported today", "recent"]


@pytest.mark.parametrize("number", [3, BATCH_SIZE, 2 * BATCH_SIZE + 7])
def test_only_the_newest_events_are_kept_regardless_of_the_number_of_batches(engine: foveate.Engine, number: int) -> None:
    engine.store.add_many(("event", f"Step {n}", {"created": NOW - n}) for n in range(number))
    engine.add("note", "A note of old", created=ago(1000))
    keep(engine, events=2)
    steps = engine.store.maintain()
    assert [(step.kind, step.number, step.why) for step in steps] == [("event", number - 2, "beyond the newest 2")]
    assert events(engine) == ["Step 0", "Step 1"]
    assert engine.store.stats().records["note"] == {"active": 1}


def test_protected_events_at_the_beginning_do_not_hide_the_others(engine: foveate.Engine) -> None:
    ids = engine.store.add_many(("event", f"Step {n}", {"created": NOW + n}) for n in range(2 * BATCH_SIZE))
    for id in ids[:BATCH_SIZE]:
        engine.edit(id, pinned=True)
    keep(engine, events=10)
    engine.store.maintain()
    assert len(events(engine)) == BATCH_SIZE + 10


def test_every_few_writes_delete_a_batch_of_old_events(engine: foveate.Engine) -> None:
    keep(engine, events=5)
    for n in range(2 * WRITES_BETWEEN_CLEANUPS + 1):
        engine.add("event", f"Step {n}", created=NOW + n)
    assert 5 <= len(events(engine)) <= WRITES_BETWEEN_CLEANUPS + 5
    assert engine.store.health().ok


def test_without_a_limit_events_are_kept_for_ever(engine: foveate.Engine) -> None:
    old(engine, "long ago", days=4000)
    assert engine.store.maintain() == []
    assert events(engine) == ["long ago"]


def test_receipts_expire_by_age_and_gc_reports_them(engine: foveate.Engine) -> None:
    engine.add("fact", "Caches are cold")
    engine.context("caches")
    engine.receipts.flush()
    engine.store.data.clock.now = NOW + 31 * DAY  # type: ignore[attr-defined]
    assert [(step.kind, step.number) for step in engine.store.maintain(dry_run=True)] == [("receipt", 1)]
    (step,) = engine.store.maintain()
    assert step.why == "older than 30 days or beyond the newest 64 MB"
    assert (engine.store.stats().receipts, engine.store.maintain(dry_run=True)) == (0, [])


def test_a_lifecycle_change_can_be_undone_after_its_event_expired(engine: foveate.Engine) -> None:
    id = engine.add("episode", "Moved the crawler. " * 20, created=ago(100)).record.id
    engine.store.maintain()
    engine.store.data.clock.now = NOW + 200 * DAY  # type: ignore[attr-defined]
    keep(engine, event_days=90)
    engine.store.maintain()
    assert events(engine) == []
    engine.undo(id)
    assert not engine.get(id).data.get("archived")


def test_limits_come_from_the_settings_and_the_command_deletes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with foveate.open(tmp_path, personal=False, code=False) as engine:
        engine.store.add_many(("event", f"Step {n}", {"created": NOW + n}) for n in range(9))
    (tmp_path / ".foveate" / "config.toml").write_text("[retention]\nevents = 4\n")
    for words, expected in ((["--dry-run"], "5 events  drop"), ([], "5 events  drop"), (["--dry-run"], "")):
        done = CliRunner().invoke(cli, ["store", "maintain", *words])
        assert done.exit_code == 0
        assert done.stdout.startswith(expected)


def test_errors_name_invalid_limits(tmp_path: Path) -> None:
    assert retention_problems({"receipt_days": 1.5, "events": 10}) == []
    assert [problem.split()[0] for problem in retention_problems({"events": 1.5, "event_days": 0, "receipt_mb": True})] == [
        "events",
        "event_days",
        "receipt_mb",
    ]
    folder = tmp_path / ".foveate"
    folder.mkdir()
    (folder / "config.toml").write_text("[retention]\nevent_dayz = 3\n")
    with pytest.raises(InputError, match=r"\[retention\].*Did you mean 'event_days'"):
        foveate.open(tmp_path)
