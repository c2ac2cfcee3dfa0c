"""A SQLite store under kill -9, many processes, damage, a full disk and other versions of foveate."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import apsw
import pytest
from bench.writers import measure

import foveate
from conformance.base import HERE, add, change, found, get, made
from foveate.errors import NotFound, SchemaTooNew, StoreError
from foveate.store.protocol import Store
from foveate.store.sqlite import connections, lock
from foveate.store.sqlite import store as sqlite
from foveate.store.sqlite.connections import Connections
from foveate.store.sqlite.store import SQLiteStore
from foveate.text import analysis
from foveate.types import Link, Scope

WRITER = """
import itertools, sys
from foveate.clock import new_id, now
from foveate.records.make import Rules
from foveate.engine import Engine
from foveate.store.sqlite.store import SQLiteStore
from foveate.types import Scope

name, rounds = sys.argv[2], int(sys.argv[3])
memory = Engine(SQLiteStore(sys.argv[1]), scope=Scope("alpha"), rules=Rules(), clock=now, ids=new_id)
for n in itertools.count() if rounds < 0 else range(rounds):
    words = f"Writer {name} says {n} w{name}x{n} " + "and then some more " * (n % 40)
    if n % 3 == 0:
        rows = [("note", f"{words} part {part}", {}) for part in range(4)]
        ids = memory.store.add_many(rows)
    else:
        ids = [memory.add("fact", words, subject=name, attribute="turn").record.id]
    if n % 4 == 1:
        memory.edit(ids[0], tags=["edited"])
    if n % 5 == 2:
        memory.search("writer says", limit=3)
    for id in ids:
        print(id, flush=True)
    if n % 11 == 10:
        print("-" + ids[0], flush=True)
        memory.forget(ids[0])
memory.close()
"""


def writer(path: Path, name: str, rounds: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(path), name, str(rounds)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def word(n: int) -> str:
    """Return a word that occurs in one record only. It has no digits, because the analyzer would split it there."""
    return "zq" + "".join(chr(ord("b") + int(digit)) for digit in str(n)) + "k"


def filled(path: Path, number: int = 600) -> SQLiteStore:
    """Return a store with many pages."""
    store = SQLiteStore(path)
    with store.write(HERE) as writer:
        for n in range(number):
            writer.add(made(f"Record number {n} speaks of {word(n)} " + f"filler{n % 50} " * 30, "note"))
    return store


def ids_of(store: Store, scope: Scope = HERE) -> list[str]:
    with store.read(scope) as reader:
        return [record.id for record in reader.records()]


def pages_of(path: Path, table: str) -> list[int]:
    """Return the leaf pages of a table or index."""
    connection = apsw.Connection(str(path))
    query = "select pageno from dbstat where name = ? and pagetype = 'leaf' order by path"
    pages = [row[0] for row in connection.execute(query, (table,))]
    connection.close()
    return pages


def overwrite(path: Path, page: int, size: int = 4096) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(random.Random(page).randbytes(size))


# --- processes -----------------------------------------------------------------------------------------------------


def test_kill_9_loses_no_acknowledged_record(tmp_path: Path) -> None:
    path, rng = tmp_path / "state.db", random.Random(9)
    kept: set[str] = set()
    for round in range(10):
        process = writer(path, f"r{round}", -1)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(rng.randint(1, 50))]
        time.sleep(rng.random() * 0.02)  # to die at any moment of a transaction, not only at a line
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines()
        process.communicate()
        said = [line.strip() for line in lines]
        kept |= {line for line in said if not line.startswith("-")}
        kept -= {line[1:] for line in said if line.startswith("-")}
        store = SQLiteStore(path)
        assert kept <= set(ids_of(store)), f"round {round}"
        assert store.health().ok
        kept.add(add(store, f"Written after crash {round}").id)
        store.close()
    assert len(kept) > 50


def test_four_processes_write_and_read_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    processes = [writer(path, name, 40) for name in ("ash", "birch", "cedar", "dogwood")]
    said: set[str] = set()
    for process in processes:
        out, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        lines = out.split()
        said |= {line for line in lines if not line.startswith("-")} - {line[1:] for line in lines}
    store = SQLiteStore(path)
    assert set(ids_of(store)) == said
    assert store.health().ok
    active = [record for name in ("ash", "birch") for record in current(store, name)]
    assert len(active) == 2
    store.close()


def current(store: Store, subject: str) -> list[foveate.Record]:
    with store.read(HERE) as reader:
        return [record for record in reader.records() if record.subject == subject and record.status == "active"]


def test_a_long_reader_does_not_block_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_WAL_PAGES", 12)
    monkeypatch.setattr(connections, "SHORT_TIMEOUT_MS", 1)
    store = filled(tmp_path / "state.db", 20)
    with store.read(HERE) as reader:
        done = threading.Thread(target=lambda: [add(store, f"Meanwhile {n}") for n in range(10)])
        done.start()
        done.join()
        assert len(list(reader.records())) == 20
    assert len(ids_of(store)) == 30
    store.close()


def test_a_connection_is_closed_when_its_thread_ends(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "state.db")
    for n in range(30):
        thread = threading.Thread(target=add, args=(store, f"From thread {n}"))
        thread.start()
        thread.join()
    assert len(store._connections._open) <= 3
    assert len(ids_of(store)) == 30
    store.close()


# --- files that are not ours, or not from now ----------------------------------------------------------------------


def test_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    filled(path, 3).close()
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(SchemaTooNew, match=r"schema 99.*Upgrade foveate"):
        SQLiteStore(path)


def test_a_file_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "places.db"
    connection = apsw.Connection(str(path))
    connection.execute("create table places (name text); insert into places values ('here')")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        SQLiteStore(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["places.db"]


@pytest.mark.parametrize("content", [b"This is not a database, whatever its name says. " * 200, b"\x00" * 5000])
def test_a_file_that_is_not_a_database_is_refused_and_not_changed(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a foveate store"):
        SQLiteStore(path)
    assert path.read_bytes() == content


def test_a_missing_store_is_not_created_without_create(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="foveate init"):
        SQLiteStore(tmp_path / "state.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_the_error_names_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a regular file")
    with pytest.raises(StoreError, match=r"cannot be opened. Check that its directory exists"):
        SQLiteStore(tmp_path / "file" / "state.db")
    with pytest.raises(StoreError, match="cannot be created"):
        foveate.open(tmp_path / "file" / "project")


def test_a_new_analyzer_rebuilds_the_index_on_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.db"
    store = filled(path, 30)
    before = found(store, word(7))
    store.close()
    monkeypatch.setattr(analysis, "VERSION", analysis.VERSION + 1)
    monkeypatch.setattr(analysis, "terms", lambda text: tuple(f"z{word}" for word in text.lower().split()))
    store = SQLiteStore(path)
    terms = {row[0] for row in store._connections.current().execute("select distinct term from postings")}
    assert f"z{word(7)}" in terms
    assert all(term.startswith(("z", "@")) for term in terms)  # @: dates, which are no words
    assert found(store, word(7)) == before
    assert store.health().ok
    assert store.health().facts["analyser"] == str(analysis.VERSION)
    store.close()


def test_another_counter_or_renderer_counts_all_tokens_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.db"
    store = SQLiteStore(path)
    record = add(store, "Antidisestablishmentarianism, 東京都, and naïve café owners")
    store.close()
    store = SQLiteStore(path, counter="chars4")
    counted = get(store, record.id)
    assert counted is not None
    assert counted.tokens != record.tokens
    edited = change(store, counted, "Something else")
    with store.read(HERE) as reader:
        assert reader.version(record.id, 1) == counted
    assert edited.version == 2
    store.close()
    monkeypatch.setattr(sqlite, "RENDERER_VERSION", sqlite.RENDERER_VERSION + 1)
    store = SQLiteStore(path)
    assert store.health().ok
    assert store._meta()["renderer"] == str(sqlite.RENDERER_VERSION)
    store.close()


# --- damage --------------------------------------------------------------------------------------------------------


def test_damaged_page_is_reported_and_the_rest_is_salvaged(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = filled(path)
    ids = ids_of(store)
    with store.write(HERE) as writer:
        for left, right in pairwise(ids):
            writer.link(Link(left, "next", right))
    change(store, get_or_fail(store, ids[3]), "An early record, changed")
    store.close()
    leaves = pages_of(path, "records")
    overwrite(path, leaves[len(leaves) // 2])
    overwrite(path, leaves[len(leaves) // 3])

    store = SQLiteStore(path)
    with pytest.raises(StoreError, match=r"damaged.*foveate doctor --fix.*restore a backup"):
        ids_of(store)
    health = store.health()
    assert not health.ok
    assert "foveate doctor --fix" in health.problems[0]
    kept = store.salvage()
    here = ids_of(store)
    assert kept == len(here)
    assert 0 < len(ids) - kept < 60
    assert (ids[0] in here, ids[-1] in here) == (True, True)
    assert store.health().ok
    assert found(store, word(599)) == [ids[-1]]
    with store.read(HERE) as reader:
        ends = {end for link in reader.all_links() for end in (link.src, link.dst)}
        assert ends <= set(here)
        assert [step.verb for step in reader.history(ids[3])] == ["edit"]
    assert (tmp_path / "state.db.damaged").exists()
    add(store, "Life goes on")
    store.close()


def test_damaged_index_pages_lose_no_record(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = filled(path)
    ids = ids_of(store)
    store.close()
    for table in ("postings", "records_hash"):
        leaves = pages_of(path, table)
        overwrite(path, leaves[len(leaves) // 2])
    store = SQLiteStore(path)
    assert not store.health().ok
    assert store.salvage() == len(ids)
    assert store.health().ok
    assert found(store, word(300)) == [ids[300]]
    store.close()


def test_a_truncated_file_is_salvaged(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    filled(path).close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size * 2 // 3 // 4096 * 4096)
    with pytest.raises(StoreError, match="foveate doctor --fix"):
        SQLiteStore(path)
    kept = SQLiteStore.salvage_file(str(path))
    assert kept > 0
    store = SQLiteStore(path)
    assert store.health().ok
    assert len(ids_of(store)) == kept
    store.close()


@pytest.mark.parametrize("table", ["postings", "volumes"])
def test_an_emptied_index_is_detected_and_rebuilt(tmp_path: Path, table: str) -> None:
    store = filled(tmp_path / "state.db", 50)
    store._connections.current().execute(f"delete from {table}")
    health = store.health()
    assert not health.ok
    assert "index disagrees" in health.problems[0]
    assert store.rebuild() == 50
    assert store.health().ok
    assert len(found(store, word(7))) == 1
    store.close()


def test_full_disk_changes_nothing(tmp_path: Path) -> None:
    store = filled(tmp_path / "state.db", 50)
    ids = ids_of(store)
    connection = store._connections.current()
    connection.pragma("max_page_count", connection.pragma("page_count") + 5)
    large = [made(f"Too much {n} " + " ".join(f"word{n}x{m}" for m in range(300))) for n in range(200)]
    with pytest.raises(StoreError, match=r"full. Nothing was changed"), store.write(HERE) as writer:
        [writer.add(record) for record in (made("Small and early"), *large)]
    assert ids_of(store) == ids
    assert found(store, "small early") == []
    assert store.health().ok
    connection.pragma("max_page_count", 1_000_000)
    assert found(store, "grows") == []
    record = add(store, "It grows again")
    assert get(store, record.id) == record
    store.close()


def test_forget_on_a_full_disk_only_misses_the_rewrite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path / "state.db", 50)
    id = ids_of(store)[0]

    def full(self: Connections) -> apsw.Connection:
        raise apsw.FullError("database or disk is full")

    real = Connections.checkpoint
    monkeypatch.setattr(Connections, "checkpoint", lambda self, mode: full(self))
    done = store.forget(HERE, [id])
    monkeypatch.setattr(Connections, "checkpoint", real)
    assert done.counts["records"] == 1
    assert "disk is full" in done.warnings[0]
    assert get(store, id) is None
    store.close()


def test_a_read_only_store_can_be_read_and_is_not_changed(tmp_path: Path) -> None:
    store = filled(tmp_path / "state.db", 3)
    store._connections.current().pragma("query_only", True)
    assert len(ids_of(store)) == 3
    with pytest.raises(StoreError, match="read-only"):
        add(store, "Not to be written")
    store.close()


def get_or_fail(store: Store, id: str) -> foveate.Record:
    record = get(store, id)
    if record is None:
        raise NotFound(id)
    return record


def test_an_interrupted_forget_is_finished_when_the_store_is_next_opened(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = filled(path, 50)
    id = ids_of(store)[7]
    with store.write(HERE) as writer:  # what is in the file when the process dies before it is written anew
        writer.forget([id])
        writer.set_flag(sqlite.META_RESIDUE)
    assert "forgotten records" in store.health().problems[0]
    store.close()
    store = SQLiteStore(path)
    assert store.health().ok
    store.close()
    assert word(7).encode() not in path.read_bytes()


# --- many writers, long readers, free room ---------------------------------------------------------------------------


def test_four_writers_take_turns_without_lock_errors(tmp_path: Path) -> None:
    figures = measure(tmp_path, seconds=6, writers=4, readers=1)
    assert figures["missed"] == []
    assert figures["records"] > 100


def test_a_stopped_process_at_the_head_of_the_queue_does_not_block_writers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "MAX_QUEUE_MS", 50)
    store = SQLiteStore(tmp_path / "state.db")
    with lock.wait_in_queue(store.path, 50):  # and it never comes to write
        assert add(store, "Past the line").text == "Past the line"
    store.close()


def test_writers_go_on_if_the_queue_file_cannot_be_created(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "state.db")
    (tmp_path / "state.db-line").unlink(missing_ok=True)
    (tmp_path / "state.db-line").mkdir()
    assert add(store, "Without manners").text == "Without manners"
    store.close()


def test_the_wal_shrinks_after_a_long_reader_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_WAL_PAGES", 24)
    monkeypatch.setattr(connections, "SHORT_TIMEOUT_MS", 1)
    monkeypatch.setattr(connections, "RESTART_INTERVAL_S", 3600.0)
    path = tmp_path / "state.db"
    store, other = filled(path, 20), SQLiteStore(path)
    store._connections.checkpoint("truncate")
    checkpoint, modes = store._connections.checkpoint, []
    monkeypatch.setattr(store._connections, "checkpoint", lambda mode: (modes.append(mode), checkpoint(mode))[1])
    with other.read(HERE) as reader:
        assert len(list(reader.records())) == 20
        for n in range(200):
            add(store, f"Meanwhile {n} " + "and more " * 50)
        assert modes.count("restart") <= 1, "not every write waits for the reader"
    grown = path.with_name("state.db-wal").stat().st_size
    assert grown > 200_000
    monkeypatch.setattr(connections, "RESTART_INTERVAL_S", 0.0)  # the second is over
    add(store, "The first after it"), add(store, "The second")
    assert path.with_name("state.db-wal").stat().st_size <= 100_000
    store.close()
    other.close()


@pytest.mark.parametrize("before_this_version", [False, True])
def test_free_space_beyond_a_quarter_of_the_file_is_reclaimed(tmp_path: Path, before_this_version: bool) -> None:
    path = tmp_path / "state.db"
    store = filled(path, 600)
    if before_this_version:
        store._connections.current().pragma("auto_vacuum", "none")
        store._connections.current().execute("vacuum")
        store.close()
        store = SQLiteStore(path)
    ids = ids_of(store)
    with store.write(HERE) as writer:
        writer.forget(ids[:500])
    assert store._free_share() > 0.5
    store._connections.checkpoint("truncate")
    full = path.stat().st_size
    assert store.reclaim_space() > full / 3
    assert path.stat().st_size < full * 2 / 3
    assert store._free_share() <= 0.25
    assert (ids_of(store), store.health().ok) == (ids[500:], True)
    assert found(store, word(599)) == [ids[-1]]
    assert store.reclaim_space() == 0
    store.close()


def test_forget_in_a_file_too_large_to_rewrite_is_finished_by_gc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MAX_VACUUM_BYTES", 1000)
    path = tmp_path / "state.db"
    store = filled(path, 50)
    (warning,) = store.forget(HERE, [ids_of(store)[7]]).warnings
    assert "foveate store maintain" in warning
    store.close()
    store = SQLiteStore(path)
    assert not store.health().ok
    store.reclaim_space()
    assert store.health().ok
    store.close()
    assert word(7).encode() not in path.read_bytes()
