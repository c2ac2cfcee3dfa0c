"""What ships for users' own tests keeps its word."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from foveate.clock import iso, millis
from foveate.testing import START, FixedClock, counting_ids, embedder, engine


def test_clock_stands_still_until_it_is_told() -> None:
    clock = FixedClock()
    assert (clock(), clock()) == (millis(START), millis(START))
    assert clock.tick() == millis(START) + 1
    assert clock.tick(timedelta(days=1, microseconds=500)) == millis(START) + 86_400_001
    assert clock() == clock.now


@pytest.mark.parametrize("start", ["2030-01-01T00:00:00Z", 1_893_456_000_000, datetime(2030, 1, 1, tzinfo=UTC)])
def test_clock_starts_at_any_form_of_a_time(start: int | str | datetime) -> None:
    assert iso(FixedClock(start)()) == "2030-01-01T00:00:00.000Z"


def test_clock_can_step_by_itself() -> None:
    clock = FixedClock(0, step=5)
    assert [clock(), clock(), clock()] == [0, 5, 10]


def test_ids_count_by_kind() -> None:
    ids = counting_ids()
    assert [ids(kind, 0) for kind in ("fact", "note", "fact")] == ["fact_0001", "note_0001", "fact_0002"]
    assert counting_ids()("fact", 0) == "fact_0001"


def test_engine_is_the_same_every_time() -> None:
    def run() -> tuple[str, str, list[str]]:
        with engine(budget=500) as memory:
            memory.add("decision", "Chose Postgres over ChromaDB", outcome="success")
            memory.add("fact", "Deploys happen on Tuesdays")
            context = memory.context("When do we deploy?")
            return context.id, context.text, [item.id for item in context.items]

    first = run()
    assert first == run()
    assert "fact_0001" in first[2]


def test_engines_share_nothing_and_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with engine() as one, engine() as two:
        one.add("fact", "Only here")
        assert two.search("only here") == []
    assert list(tmp_path.iterdir()) == []


def test_engine_takes_the_options_of_open() -> None:
    clock = FixedClock(1000)
    with engine(clock=clock, user="ada", embedder="hash:16") as memory:
        record = memory.add("fact", "Hers").record
        assert (record.created, record.scope.user) == (1000, "ada")
        memory.context("Whose?")


def test_embedder_needs_no_model() -> None:
    model = embedder(8)
    assert model.dim == len(model.query("anything")) == 8
    assert list(model.embed(["a b"])[0]) == list(embedder(8).embed(["a b"])[0])


@pytest.mark.slow
def test_importing_the_helpers_does_not_import_pytest() -> None:
    code = "import sys, foveate.testing; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
