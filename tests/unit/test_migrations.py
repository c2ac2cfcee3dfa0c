"""Stores of every earlier version are migrated, while old and new programs run and if the process is killed."""

from __future__ import annotations

import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import pytest

import stores
from conformance.base import HERE, add, get, made
from dying import ran, steps_of
from foveate.engine import Engine
from foveate.errors import SchemaTooNew, StoreError
from foveate.records.make import Rules
from foveate.store.sql import queries
from foveate.store.sqlite.connections import copy_database
from foveate.store.sqlite.files import read_schema_status
from foveate.store.sqlite.store import SQLiteStore
from foveate.testing import FixedClock, counting_ids, embedder

VERSIONS = [number for number, _ in queries.migrations("sqlite")]
NEXT = VERSIONS[-1] + 1

LISTS_RECEIPTS = 4
"""The first version that stores a summary of each receipt for lists."""

STEP = f"""-- A made-up step: a column, a table made anew from its rows, an index.
alter table records add column colour text not null default 'none';
create table links_{NEXT} (project integer not null, src text not null, name text not null, dst text not null,
  weight real not null, primary key (project, src, name, dst)) without rowid, strict;
insert into links_{NEXT} select project, src, name, dst, weight from links;
drop table links;
alter table links_{NEXT} rename to links;
create index links_back on links (project, dst, name, src);
create index records_colour on records (project, colour);
"""


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Provide the scripts of a foveate with one more migration."""
    folder = tmp_path / "newer"
    shutil.copytree(str(files("foveate.store")), folder)
    (folder / "sqlite" / "migrations" / f"{NEXT:03d}_made_up.sql").write_text(STEP, "utf-8")
    monkeypatch.setattr(queries, "SQL_DIR", folder)
    yield from cleared(folder)


def cleared(folder: Path) -> Iterator[Path]:
    queries.migrations.cache_clear()
    queries.load.cache_clear()
    yield folder
    queries.migrations.cache_clear()
    queries.load.cache_clear()


def shape(path: Path) -> list[Any]:
    """Return every table and index with its columns in order."""
    with closing(apsw.Connection(str(path))) as connection:
        names = connection.execute("select type, name, tbl_name from sqlite_schema order by type, name").fetchall()
        return [
            (*name, connection.execute(f"select * from pragma_{name[0]}_xinfo(?)", (name[1],)).fetchall())
            for name in names
            if name[0] in ("table", "index")
        ]


def version_of(path: Path) -> int:
    with closing(apsw.Connection(str(path))) as connection:
        return int(connection.pragma("user_version"))


def test_every_schema_version_has_a_dump() -> None:
    missing = [number for number in VERSIONS if not (stores.ROWS / f"{number:03d}.sql").exists()]
    assert missing == [], "run `python tests/migrations/make.py`"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migrated_store_equals_a_fresh_one_with_the_same_contents(tmp_path: Path, version: int) -> None:
    space = embedder(8).fingerprint
    old, new = stores.old_file(tmp_path / "old.db", version), tmp_path / "new.db"
    with (
        closing(SQLiteStore(old, embedding_namespace=space)) as migrated,
        closing(SQLiteStore(new, embedding_namespace=space)) as fresh,
    ):
        assert migrated.health().ok
        for project in stores.PROJECTS:
            scope = stores.Scope(project, user="ada")
            here, there = (
                Engine(store, scope=scope, rules=Rules(), clock=FixedClock(), ids=counting_ids())
                for store in (migrated, fresh)
            )
            there.store.import_lines(list(here.store.export_lines()))
            listed = here.receipts.list()
            assert bool(listed) == (version >= LISTS_RECEIPTS)
            assert [here.receipts.get(one.id).request.query for one in listed] == [one.query for one in listed]
        answers = stores.answers(migrated)
        assert len(answers) > 30
        assert answers == stores.answers(fresh)
        with migrated.read(HERE) as reader:
            assert reader.secret == "for tests"
        add(migrated, "Life goes on")
    assert shape(old) == shape(new)


def test_a_made_up_migration_gives_the_schema_that_a_fresh_store_has(tmp_path: Path, newer: Path) -> None:
    old, new = stores.old_file(tmp_path / "old.db", VERSIONS[-1]), tmp_path / "new.db"
    assert read_schema_status(old).pending_migrations == (f"{NEXT:03d}_made_up",)
    with closing(SQLiteStore(old)) as migrated, closing(SQLiteStore(new)):
        assert migrated.health().ok
    assert shape(old) == shape(new)
    assert version_of(old) == NEXT
    assert read_schema_status(old).is_current


def test_a_program_of_an_older_version_raises_before_it_reads_or_writes(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "state.db"
    old = SQLiteStore(path)
    kept = add(old, "Kept before")
    with old.read(HERE) as reader:  # a snapshot from before the migration is still whole
        request.getfixturevalue("newer")
        new = SQLiteStore(path)
        added = add(new, "Kept by the newer one")
        assert set(reader.get([kept.id, added.id])) == {kept.id}
    with pytest.raises(SchemaTooNew, match=r"Upgrade foveate.*restart every program"):
        add(old, "Must not be kept")
    with pytest.raises(SchemaTooNew):
        get(old, kept.id)
    old.close()
    with new.read(HERE) as reader:
        assert {record.id for record in reader.records()} == {kept.id, added.id}
    new.close()


@pytest.mark.slow
def test_a_migration_waits_for_an_open_transaction(tmp_path: Path, newer: Path) -> None:
    path = stores.old_file(tmp_path / "state.db", VERSIONS[-1])
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "wal")
        connection.execute("begin immediate")
        done: list[int | None] = []
        thread = threading.Thread(target=lambda: done.append(ran(MIGRATE, 10**12, newer, path)))
        thread.start()
        thread.join(1)
        assert done == []
        connection.execute("update records set salience = 0.125; commit")
    thread.join()
    assert done[0]
    with closing(SQLiteStore(path)) as store, store.read(stores.Scope("main")) as reader:
        assert {record.salience for record in reader.records()} == {0.125}


def test_a_file_replaced_by_an_older_schema_is_not_written_to(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path, kept = tmp_path / "state.db", tmp_path / "kept.db"
    SQLiteStore(path).close()
    shutil.copy(path, kept)
    request.getfixturevalue("newer")
    with closing(SQLiteStore(path)) as store:
        with closing(apsw.Connection(str(path))) as live, closing(apsw.Connection(str(kept))) as earlier:
            copy_database(earlier, live)
        with pytest.raises(StoreError, match="Open it again"):
            add(store, "Not into an older schema")


MIGRATE = """
from pathlib import Path
from foveate.store.sql import queries
from foveate.store.sqlite.store import SQLiteStore

queries.SQL_DIR = Path(sys.argv[2])
SQLiteStore(sys.argv[3]).close()
print(ticks - left)
"""


@pytest.mark.slow
def test_a_migration_killed_at_any_moment_leaves_the_old_or_the_new_schema(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    old, path, rng = tmp_path / "old.db", tmp_path / "state.db", random.Random(7)
    with closing(SQLiteStore(old)) as store, store.write(HERE) as writer:
        for n in range(400):
            writer.add(made(f"Record {n} with some words in it, so that a migration has work to do {n * 7}"))
    newer = request.getfixturevalue("newer")
    shapes = {VERSIONS[-1]: shape(old)}
    shutil.copy(old, path)
    steps = steps_of(MIGRATE, newer, path)
    shapes[NEXT] = shape(path)
    seen = set()
    for round in range(12):
        shutil.copy(old, path)
        ran(MIGRATE, rng.randint(1, steps) if round else steps + 1, newer, path)
        version = version_of(path)
        seen.add(version)
        assert shapes[version] == shape(path), f"round {round}"
        with closing(SQLiteStore(path)) as store:
            assert store.health().ok
            assert sum(store_counts(store)) == 400
    assert seen == {VERSIONS[-1], NEXT}


def store_counts(store: SQLiteStore) -> list[int]:
    with store.read(HERE) as reader:
        return [number for kinds in reader.counts().records.values() for number in kinds.values()]
