"""The project that the pages are shown with has something for each of them, and is the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

import inspector_store
from foveate import NotFound
from foveate.engine import Engine
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import KINDS
from foveate.types import Reason
from inspector_store import SESSIONS, Seeded


@pytest.fixture(scope="module")
def engine(seeded: Seeded) -> Iterator[Engine]:
    with inspector_store.open_seeded(seeded) as engine:
        yield engine


@pytest.fixture(scope="module")
def receipts(engine: Engine) -> list[Receipt]:
    return [engine.receipts.get(row.id) for row in engine.receipts.list(limit=1000)]


def test_it_holds_records_of_every_kind_and_status(engine: Engine) -> None:
    counts = engine.store.stats().records
    assert set(counts) == {kind.name for kind in KINDS.values() if not (kind.is_derived or kind.is_internal)}
    assert sum(sum(by_status.values()) for by_status in counts.values()) > 200
    assert {status for by_status in counts.values() for status in by_status} == {
        "active", "superseded", "disputed", "retired", "archived",
    }  # fmt: skip


def test_something_is_left_out_for_every_reason(receipts: list[Receipt]) -> None:
    reasons = {entry.reason for receipt in receipts for entry in receipt.left_out}
    assert reasons == set(get_args(Reason))


def test_three_sessions_have_several_contexts_each_refreshed_for_several_reasons(receipts: list[Receipt]) -> None:
    sessions = [receipt.request.scope.session for receipt in receipts]
    assert all(sessions.count(session) >= 3 for session in SESSIONS)
    notes = [receipt.notes for receipt in receipts]
    assert {note.refresh.reason for note in notes if note.refresh} == {"new information", "decision", "pressure"}
    assert any(note.used is not None and len(note.marks or ()) == 2 for note in notes)


def test_contexts_can_be_replayed_but_for_those_with_given_or_forgotten_texts(engine: Engine, seeded: Seeded) -> None:
    names = ("context", "tight", "map", "given", "forgotten")
    assert [engine.receipts.replay(seeded.names[name]).same for name in names] == [True, True, True, False, False]
    with pytest.raises(NotFound):
        engine.get(seeded.names["gone"])


def test_one_handoff_is_good_one_repaired_and_one_could_not_be_read(engine: Engine, seeded: Seeded) -> None:
    methods = [engine.get(seeded.names[f"handoff_{key}"]).data["rung"] for key in ("schema", "key", "store")]
    assert methods == ["yaml", "repaired yaml", "raw"]


def test_files_are_set_aside_for_several_reasons(engine: Engine) -> None:
    reasons = {aside.reason.partition(",")[0] for aside in engine.code.workspace.index.open_reader().exclusions()}
    assert reasons >= {"lock file", "minified", "generated", "vendored", "binary"}


def test_it_is_the_same_every_time(seeded: Seeded, tmp_path: Path) -> None:
    again = inspector_store.make(tmp_path / seeded.root.name)
    assert (again.names, again.now) == (seeded.names, seeded.now)
