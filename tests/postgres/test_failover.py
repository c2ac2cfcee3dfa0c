"""Failover between two servers: when the first is gone, its standby takes over, and writers continue."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import psycopg
import pytest
from click.testing import CliRunner

from foveate.cli import cli
from foveate.clock import new_id, now
from foveate.engine import Engine
from foveate.errors import Denied, StoreError
from foveate.records.make import Rules
from foveate.store import open
from foveate.store.postgres.connections import ConnectionSettings
from foveate.store.postgres.store import PostgresStore
from foveate.types import Scope
from postgres_server import LocalServer, server, standby

HERE = Scope("alpha")
PATIENT = ConnectionSettings(failover_timeout_s=600)
"""So long that only the event itself ends the wait, even on a busy machine."""
FAILOVER_DELAY_S = 1.5
"""Seconds between the end of the first server and the promotion of the second."""


@pytest.fixture
def pair() -> Iterator[tuple[LocalServer, LocalServer]]:
    with server() as first, standby(first) as second:
        yield first, second


def both(database: str, *folders: Path, more: str = "") -> str:
    """Return the URL of a database that names several servers."""
    hosts = ",".join(quote(str(folder), safe="") for folder in folders)
    return f"postgresql://postgres@/{unquote(urlsplit(database).path[1:])}?host={hosts}{more}"


def engine_on(store: PostgresStore) -> Engine:
    return Engine(store, scope=HERE, rules=Rules(), clock=now, ids=new_id)


def texts(store: PostgresStore) -> list[str]:
    with store.read(HERE) as reader:
        return [record.text for record in reader.records()]


def wait(until: Callable[[], bool]) -> None:
    last = time.monotonic() + 300
    while not until():
        assert time.monotonic() < last
        time.sleep(0.01)


def caught_up(first: LocalServer, second: LocalServer) -> None:
    """Wait until the standby has applied everything. A commit waits only until the standby has received it."""
    ((at,),) = first.execute("select pg_current_wal_lsn()::text")
    wait(lambda: second.execute(f"select pg_last_wal_replay_lsn() >= '{at}'::pg_lsn") == [(True,)])


class Worker(threading.Thread):
    """Does something again and again until it is told to stop; how long the slowest took, and what went wrong."""

    def __init__(self, name: str, engine: Engine, stop: threading.Event) -> None:
        super().__init__(name=name)
        self.engine, self.stop = engine, stop
        self.done: list[str] = []
        self.slowest = 0.0
        self.failure: BaseException | None = None

    def work(self, n: int) -> str:
        return self.engine.add("event", f"{self.name} {n}", data={"type": "message"}).record.text

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                began = time.monotonic()
                self.done.append(self.work(len(self.done)))
                self.slowest = max(self.slowest, time.monotonic() - began)
        except BaseException as failure:
            self.failure = failure


class Reading(Worker):
    def work(self, n: int) -> str:
        return self.engine.context("Which cache did we choose?", budget=1000).text


def test_writers_and_readers_continue_after_a_failover(
    pair: tuple[LocalServer, LocalServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    url = both(first.database(), first.folder, second.folder)
    stop = threading.Event()
    with closing(PostgresStore(url, settings=PATIENT)) as store, engine_on(store) as engine:
        engine.add("decision", "We chose Redis for caching")
        workers = [Worker(f"writer {n}", engine, stop) for n in range(3)]
        readers = [Reading(f"reader {n}", engine, stop) for n in range(2)]
        for worker in (*workers, *readers):
            worker.start()
        wait(lambda: all(each.failure or each.done for each in (*workers, *readers)))
        first.kill()
        before = {worker.name: len(worker.done) for worker in (*workers, *readers)}
        time.sleep(FAILOVER_DELAY_S)
        second.promote()
        wait(lambda: all(each.failure or len(each.done) >= before[each.name] + 5 for each in (*workers, *readers)))
        stop.set()
        for worker in (*workers, *readers):
            worker.join()
        assert [worker.failure for worker in (*workers, *readers)] == [None] * 5
        assert all("Redis" in text for reader in readers for text in reader.done)
        written = [text for worker in workers for text in worker.done]
        assert sorted(texts(store)) == sorted(["We chose Redis for caching", *written])
        assert all(
            FAILOVER_DELAY_S < max(worker.slowest for worker in group) < PATIENT.failover_timeout_s / 2
            for group in (workers, readers)
        )
        assert store.health().ok
    monkeypatch.chdir(tmp_path)
    for verb in (("doctor",), ("store", "backup", "copy.db")):  # one server is gone for good
        result = CliRunner().invoke(cli, [*verb, "--store", url, "--project", "alpha"], catch_exceptions=False)
        assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("reached", ["before", "after"])
def test_reused_transaction_id_after_a_failover_is_not_taken_for_the_lost_commit(
    pair: tuple[LocalServer, LocalServer], tmp_path: Path, reached: str
) -> None:
    """The server that takes over never received the commit, and gives its transaction id to another transaction."""
    first, second = pair
    database, alias = first.database(), tmp_path / "second"
    with closing(PostgresStore(both(database, first.folder, alias))) as store, engine_on(store) as engine:
        engine.add("note", "Before")
        caught_up(first, second)
        second.execute("alter system set primary_conninfo = ''")  # it hears no more of the other
        second.execute("select pg_reload_conf()")
        wait(lambda: not first.execute("select 1 from pg_stat_replication"))
        writer = Worker("writer", engine, stop := threading.Event())
        writer.start()
        wait(lambda: bool(first.execute("select 1 from pg_stat_activity where wait_event = 'SyncRep'")))
        stop.set()
        first.kill()
        second.promote()
        with closing(PostgresStore(both(database, second.folder))) as other:
            for n in range(9 if reached == "after" else 0):
                engine_on(other).add("event", f"other {n}", data={"type": "message"})
            alias.symlink_to(second.folder)  # from here on the writer can ask
            writer.join()
            assert writer.failure is None
            assert writer.done == ["writer 0"]
            assert sorted(text for text in texts(other) if not text.startswith("other")) == ["Before", "writer 0"]


def test_standby_can_be_read_and_refuses_writes_with_advice(pair: tuple[LocalServer, LocalServer]) -> None:
    first, second = pair
    database = first.database()
    with closing(PostgresStore(database)) as store:
        kept = engine_on(store).add("decision", "We chose Redis for caching").record
    caught_up(first, second)
    url = both(database, second.folder)
    with closing(PostgresStore(url)) as store, engine_on(store) as engine:
        assert "Redis" in engine.context("Which cache did we choose?", budget=1000).text
        assert [hit.record.id for hit in engine.search("redis")] == [kept.id]
        with pytest.raises(Denied, match=r"standby.*postgresql://USER@ONE,OTHER/DATABASE"):
            engine.add("note", "Not here")
        assert store.health().ok
        assert open.read_schema_status(url).is_current
    with psycopg.connect(database, autocommit=True) as connection:  # as an older foveate would have left it
        connection.execute("update foveate.projects set made_by = '0/0/o200k'")
    caught_up(first, second)
    with closing(PostgresStore(url)) as store:
        memory = Engine(store, scope=HERE, rules=Rules(), clock=now, ids=new_id)
        assert [hit.record.id for hit in memory.search("redis")] == [kept.id]


def test_opening_waits_until_one_server_takes_writes(pair: tuple[LocalServer, LocalServer]) -> None:
    first, second = pair
    url = both(first.database(), second.folder, first.folder)
    with closing(PostgresStore(url)) as store:  # the standby comes first in the URL
        engine_on(store).add("note", "Before")
    first.kill()
    began = time.monotonic()
    with pytest.raises(StoreError, match="none of its servers takes writes"):
        PostgresStore(url, settings=ConnectionSettings(failover_timeout_s=0.3))
    with closing(PostgresStore(f"{url}&target_session_attrs=any")) as store:
        assert texts(store) == ["Before"]
    taking_over = threading.Timer(0.5, second.promote)
    taking_over.start()
    with closing(PostgresStore(url, settings=PATIENT)) as store:
        engine_on(store).add("note", "After")
        assert texts(store) == ["Before", "After"]
    taking_over.join()
    assert time.monotonic() - began < PATIENT.failover_timeout_s / 2
