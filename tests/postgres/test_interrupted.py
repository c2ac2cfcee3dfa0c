"""Lost connections, servers and answers: no write is lost, and none happens twice."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from foveate.clock import new_id, now
from foveate.engine import Engine
from foveate.errors import Interrupted, StoreError
from foveate.memory.memory import Memory
from foveate.records.make import Rules
from foveate.store.postgres.connections import MAX_COMMIT_MARKS, ConnectionSettings
from foveate.store.postgres.store import PostgresStore
from foveate.store.scoped import ScopedStore
from foveate.types import NO_FILTERS, Scope
from postgres_server import LocalServer, server

HERE = Scope("alpha")


class Fragile(PostgresStore):
    """A store whose next transactions have an accident, as many of them as `accidents` says."""

    accidents = 0
    writes = False
    at_end = False

    def happen(self, connection: psycopg.Connection[Any]) -> None:
        raise NotImplementedError

    @contextmanager
    def _transaction(self, begin: str, project: str = "", **options: Any) -> Iterator[Any]:
        with super()._transaction(begin, project, **options) as database:
            due = self.accidents > 0 and self.writes == ("read only" not in begin)
            self.accidents -= due
            if due and not self.at_end:
                self.happen(database.connection)
            yield database
            if due and self.at_end:
                self.happen(database.connection)


class Killed(Fragile):
    """Has its backend process terminated."""

    def happen(self, connection: psycopg.Connection[Any]) -> None:
        pid = connection.info.backend_pid
        with psycopg.connect(connection.info.dsn, autocommit=True) as other:
            assert other.execute("select pg_terminate_backend(%s, 5000)", (pid,)).fetchone() == (True,)


class Unserializable(Fragile):
    """Has a serialization failure."""

    def happen(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("do $$ begin raise exception 'could not serialize' using errcode = '40001'; end $$")


class Crashed(Fragile):
    """Has another server process killed (-9). The server recovers, and gives the transaction id to another transaction."""

    again = False

    def happen(self, connection: psycopg.Connection[Any]) -> None:
        dsn, ((number,),) = connection.info.dsn, connection.execute("select pg_current_xact_id()::text").fetchall()
        with closing(psycopg.connect(dsn)) as other:
            os.kill(other.info.backend_pid, signal.SIGKILL)
            with suppress(psycopg.OperationalError):
                connection.execute("select pg_sleep(600)")
        wait_for(dsn)
        with closing(PostgresStore(dsn)) as store, engine_on(store) as engine:
            for n in range(9):
                engine.add("event", f"other {n}", data={"type": "message"})
        with psycopg.connect(dsn) as other:
            self.again = other.execute("select pg_xact_status(%s::text::xid8)", (number,)).fetchone() == ("committed",)


class Unanswered(Killed):
    """Is committed without an answer, and another store then commits `other_writes` times."""

    other_writes = 0
    where = HERE

    def happen(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute("commit")
        super().happen(connection)
        with closing(PostgresStore(connection.info.dsn)) as store:
            engine = engine_on(store, self.where)
            for n in range(self.other_writes):
                engine.add("event", f"other {n}", data={"type": "message"})


def wait_for(url: str) -> None:
    """Wait until a recovering server answers again."""
    until = time.monotonic() + 300
    while True:
        try:
            return psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert time.monotonic() < until
            time.sleep(0.05)


def engine_on(store: PostgresStore, scope: Scope = HERE) -> Engine:
    return Engine(store, scope=scope, rules=Rules(), clock=now, ids=new_id)


def texts(store: PostgresStore) -> list[str]:
    with store.read(HERE) as reader:
        return [record.text for record in reader.records()]


WRITES: dict[str, Callable[[Engine, str], object]] = {
    "add": lambda engine, id: engine.add("event", "It rained", data={"type": "message"}),
    "add_many": lambda engine, id: engine.store.add_many([("event", f"Drop {n}", {"type": "message"}) for n in range(30)]),
    "edit": lambda engine, id: engine.edit(id, text="Another text"),
    "link": lambda engine, id: engine.link(id, "near", id),
    "undo": lambda engine, id: engine.undo(id),
    "task": lambda engine, id: engine.tasks.add("Sweep the yard", depends_on=(path for path in ["src/yard.py"])),
    "push": lambda engine, id: engine.tasks.push("Find the leak"),
    "expand": lambda engine, id: engine.expand(id),
    "import": lambda engine, id: engine.store.import_lines(['{"kind": "note", "text": "Imported", "id": "note_x"}']),
    "forget": lambda engine, id: engine.forget(id),
}


@pytest.mark.parametrize("at_end", [False, True], ids=["at first", "at last"])
@pytest.mark.parametrize("accident", [Killed, Unserializable])
@pytest.mark.parametrize("verb", WRITES)
def test_interrupted_write_happens_once(url: str, verb: str, accident: type[Fragile], at_end: bool) -> None:
    counts = []
    for accidents in (0, 2):
        store = accident(url)
        with engine_on(store, Scope(f"project {accidents}")) as engine:
            id = engine.add("note", "Something to start from").record.id
            store.writes, store.at_end, store.accidents = True, at_end, accidents
            WRITES[verb](engine, id)
            assert store.accidents == 0
            with store.read(engine.scope) as reader:
                uses = [record.uses for record in reader.records()]
                counts.append((reader.counts(), reader.revision, uses, len(list(reader.all_links()))))
            assert store.health().ok
    assert counts[0] == counts[1]


@pytest.mark.parametrize("accident", [Killed, Unserializable])
@pytest.mark.parametrize("dry_run", [False, True])
def test_interrupted_context_is_computed_again(url: str, accident: type[Fragile], dry_run: bool) -> None:
    store = accident(url)
    with engine_on(store) as engine:
        engine.add("decision", "We chose Redis for caching")
        store.accidents = 3
        context = engine.context("Which cache did we choose?", budget=1000, dry_run=dry_run)
        assert "Redis" in context.text
        assert store.accidents == 0
        assert not [report for report in engine.receipts.get(context).sources if report.error]


def test_error_is_raised_after_the_last_retry(url: str) -> None:
    store = Killed(url)
    with engine_on(store) as engine:
        engine.add("note", "Before")
        store.writes, store.accidents = True, 4
        with pytest.raises(Interrupted, match="nothing was written"):
            engine.add("event", "It rained", data={"type": "message"})
        assert texts(store) == ["Before"]


def test_killed_backends_lose_no_write_and_repeat_none(url: str) -> None:
    store, stop, failures = PostgresStore(url), threading.Event(), []
    memory = Memory(ScopedStore(store=store, scope=HERE, rules=Rules(), clock=now, ids=new_id))

    def work(name: str) -> None:
        try:
            for n in range(8):
                while True:
                    try:
                        memory.add("event", f"{name} {n}", data={"type": "message"})
                        break
                    except Interrupted:  # on a busy machine each of its tries may be hit; it says that nothing was written
                        continue
        except BaseException as failure:
            failures.append(failure)

    def kill() -> None:
        draw = Random(5)
        with psycopg.connect(url, autocommit=True) as other:
            kills = 0
            while kills < 100 and not stop.wait(draw.uniform(0.01, 0.06)):
                pids = other.execute(
                    "select pid from pg_stat_activity where application_name = 'foveate' and pid <> pg_backend_pid() "
                    "and datname = current_database() order by pid"
                ).fetchall()
                if pids:
                    kills += 1
                    other.execute("select pg_terminate_backend(%s)", draw.choice(pids))

    memory.add("event", "first", data={"type": "message"})
    threads = [threading.Thread(target=work, args=(name,)) for name in ("ash", "birch", "cedar")]
    killer = threading.Thread(target=kill)
    for thread in (killer, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    killer.join()
    assert failures == []
    assert sorted(texts(store)) == sorted(
        ["first", *(f"{name} {n}" for name in ("ash", "birch", "cedar") for n in range(8))]
    )
    assert store.health().ok
    store.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[LocalServer]:
    """Start a server that tests of this module may stop."""
    with server() as running:
        yield running


@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "killed"])
def test_transaction_waits_for_a_restarting_server(own_server: LocalServer, crash: bool) -> None:
    store = PostgresStore(own_server.database(), settings=ConnectionSettings(connect_timeout_s=300))
    with engine_on(store) as engine:
        engine.add("note", "Before")
        own_server.kill() if crash else own_server.stop()
        back = threading.Timer(0.7, own_server.start)
        back.start()
        engine.add("event", "Meanwhile", data={"type": "message"})
        back.join()
        assert texts(store) == ["Before", "Meanwhile"]


def test_server_that_stays_away_is_reported(own_server: LocalServer) -> None:
    store = PostgresStore(own_server.database(), settings=ConnectionSettings(connect_timeout_s=0.5))
    own_server.stop()
    try:
        with pytest.raises(StoreError, match=r"cannot be reached|connection was lost"):
            texts(store)
    finally:
        store.close()
        own_server.start()


class Proxy:
    """Stands before a server's socket and loses the answer to the next commit, or the commit itself, or all there is."""

    def __init__(self, folder: Path, target: str) -> None:
        self.lose = ""
        self.lost = 0
        self._target = target
        self._path = folder / ".s.PGSQL.5432"
        self._ends = [socket.socket(socket.AF_UNIX)]
        self._ends[0].bind(str(self._path))
        self._ends[0].listen()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, target: Callable[..., None], *sockets: socket.socket) -> None:
        self._threads.append(threading.Thread(target=target, args=sockets))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._ends[0].accept()
                behind = socket.socket(socket.AF_UNIX)
                self._ends += [client, behind]
                behind.connect(self._target)
                self._start(self._forward, client, behind)
                self._start(self._answer, behind, client)

    def _forward(self, client: socket.socket, behind: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(65536):
                if self.lose == "all" and not data.startswith(b"X"):  # a farewell waits for no answer
                    self.lost += 1
                    client.shutdown(socket.SHUT_RDWR)
                    return
                if self.lose and data.startswith(b"Q") and b"commit\0" in data:
                    how, self.lose = self.lose, ""
                    self.lost += 1
                    client.shutdown(socket.SHUT_RDWR)  # first, so that the answer has no receiver
                    if how == "answer":
                        behind.sendall(data)
                    return  # the server's end stays open: it does not know
                behind.sendall(data)
            behind.shutdown(socket.SHUT_RDWR)

    def _answer(self, behind: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := behind.recv(65536):
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def vanish(self) -> None:
        """Stop answering, and accept no new connection."""
        self.lose = "all"
        self._path.unlink()

    def close(self) -> None:
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("lost", ["answer", "commit"])
def test_outcome_of_an_unanswered_commit_is_found(own_server: LocalServer, tmp_path: Path, lost: str) -> None:
    url = own_server.database()
    PostgresStore(url).close()
    proxy = Proxy(tmp_path, str(own_server.folder / ".s.PGSQL.5432"))
    store = PostgresStore(re.sub(r"host=[^&]*", f"host={quote(str(tmp_path), safe='')}", url))
    with engine_on(store) as engine:
        engine.add("note", "Before")
        proxy.lose = lost
        engine.add("event", "Only once", data={"type": "message"})
        assert proxy.lost == 1
        assert texts(store) == ["Before", "Only once"]
    proxy.close()


def test_reused_transaction_id_after_a_crash_is_not_taken_for_the_same_commit() -> None:
    unwritten = {
        "wal_writer_delay": "10s",
        "autovacuum": "off",
    }  # so that the transaction id is not on disk before the crash
    with (
        server(settings=unwritten) as crashing,
        closing(Crashed(crashing.database())) as store,
        engine_on(store) as engine,
    ):
        engine.add("note", "Before")
        crashing.execute("checkpoint")
        store.writes, store.at_end, store.accidents = True, True, 1
        engine.add("event", "Only once", data={"type": "message"})
        assert store.again
        assert [text for text in texts(store) if not text.startswith("other")] == ["Before", "Only once"]
        assert store.health().ok


@pytest.mark.parametrize(
    ("others", "where"), [(MAX_COMMIT_MARKS - 1, HERE), (2 * MAX_COMMIT_MARKS, Scope("beta"))], ids=["same", "other"]
)
def test_commit_mark_is_found_after_later_commits(url: str, others: int, where: Scope) -> None:
    with closing(Unanswered(url)) as store, engine_on(store) as engine:
        engine.add("note", "Before")
        store.other_writes, store.where = others, where
        store.writes, store.at_end, store.accidents = True, True, 1
        engine.add("event", "Only once", data={"type": "message"})
        assert [text for text in texts(store) if not text.startswith("other")] == ["Before", "Only once"]


def test_commit_whose_mark_was_replaced_is_reported_as_uncertain_at_once(url: str) -> None:
    with closing(Unanswered(url, settings=ConnectionSettings(connect_timeout_s=300))) as store, engine_on(store) as engine:
        engine.add("note", "Before")
        store.other_writes, store.writes, store.at_end, store.accidents = MAX_COMMIT_MARKS, True, True, 1
        began = time.monotonic()
        with pytest.raises(StoreError, match=r"cannot be told any more\. Look before you write it again") as caught:
            engine.add("event", "Perhaps", data={"type": "message"})
        assert not isinstance(caught.value, Interrupted)
        assert time.monotonic() - began < 100
        assert "Perhaps" in texts(store)


def test_unanswered_grant_is_repeated(own_server: LocalServer) -> None:
    own_server.execute("create role ada login")
    with closing(Unanswered(url := own_server.database())) as store:
        engine_on(store).add("note", "Before")
        for verb, rows in ((store.grant, [("ada",)]), (store.revoke, [])):
            store.writes, store.at_end, store.accidents = True, True, 1
            verb("ada", "alpha")
            with psycopg.connect(url) as connection:
                assert connection.execute("select role from foveate.members").fetchall() == rows


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a transaction"])
def test_only_one_connection_to_a_vanished_server_is_tried(own_server: LocalServer, tmp_path: Path, busy: bool) -> None:
    url = own_server.database()
    PostgresStore(url).close()
    proxy = Proxy(tmp_path, str(own_server.folder / ".s.PGSQL.5432"))
    hosts = ",".join(quote(str(folder), safe="") for folder in (tmp_path, own_server.folder))
    with closing(PostgresStore(re.sub(r"host=[^&]*", f"host={hosts}", url))) as store:
        engine_on(store).add("note", "Before")
        with ExitStack() as readings:  # each takes a connection, and leaves it to the pool
            for _ in range(5):
                readings.enter_context(store.read(HERE))
        with suppress(Interrupted), store.read(HERE) if busy else nullcontext() as reader:
            proxy.vanish()
            reader.counts() if reader else None
        assert texts(store) == ["Before"]
        assert proxy.lost == 1
    proxy.close()


@pytest.mark.parametrize("name", ['it\'s \\ %s $1 {project} "odd"', "-- ; select 1", "größe 🐘"])
def test_outcome_of_a_commit_is_found_for_any_project_name(url: str, name: str) -> None:
    with closing(Unanswered(url)) as store:
        memory = Memory(ScopedStore(store=store, scope=Scope(name), rules=Rules(), clock=now, ids=new_id))
        store.writes, store.at_end, store.accidents = True, True, 1
        memory.add("event", "Only once", data={"type": "message"})
        with store.read(Scope(name)) as reader:
            assert [record.text for record in reader.records()] == ["Only once"]


def test_writers_wait_for_others_of_the_same_project_only(url: str) -> None:
    store = PostgresStore(url, settings=ConnectionSettings(lock_timeout_s=0.2))
    outcome: dict[str, Any] = {}
    with store.write(HERE):
        pass

    def other(project: str) -> None:
        try:
            with store.write(Scope(project)) as writer:
                outcome[project] = writer.scope
        except StoreError as error:
            outcome[project] = error

    with store.write(HERE):
        for project in ("alpha", "beta"):
            thread = threading.Thread(target=other, args=(project,))
            thread.start()
            thread.join()
        store.save_receipts(HERE, [])  # an answer does not wait for its explanation
    assert "busy" in str(outcome["alpha"])
    assert outcome["beta"] == Scope("beta")
    store.close()


def test_nested_read_in_a_full_pool_does_not_deadlock(url: str) -> None:
    store = PostgresStore(url, settings=ConnectionSettings(max_connections=1, connect_timeout_s=30.0))
    with store.read(HERE) as outer, store.read(HERE) as inner, store.write(HERE) as writer:
        assert outer.recent(["note"], 1, NO_FILTERS) == inner.recent(["note"], 1, NO_FILTERS) == []
        assert writer.revision == "0"
    store.close()


def test_long_statement_is_cancelled(url: str) -> None:
    store = PostgresStore(url, settings=ConnectionSettings(statement_timeout_s=1.0))
    began = time.monotonic()
    with pytest.raises(StoreError, match="took too long"), store.read(HERE) as reader:
        reader._db.connection.execute("select pg_sleep(600)")  # type: ignore[attr-defined]
    assert time.monotonic() - began < 300
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:s3cret@localhost:1/shop",
        "postgresql://ada@localhost:1/shop?password=s3cret",
        "host=localhost port=1 user=ada password=s3cret",
        "postgresql://ada:s3cret@localhost:1/shop?nonsense=1",
        "postgresql://ada:s3cret@[localhost/shop",
    ],
)
def test_password_is_in_no_message(url: str) -> None:
    with pytest.raises((StoreError, Exception)) as caught:
        PostgresStore(url)
    error: BaseException | None = caught.value
    while error is not None:
        assert "s3cret" not in str(error)
        assert "s3cret" not in repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_idle_store_holds_no_connection(url: str) -> None:
    """A thousand processes may have the same store open."""
    store = PostgresStore(url)
    until, held = time.monotonic() + 300, True
    with psycopg.connect(url, autocommit=True) as other:
        while held and time.monotonic() < until:  # a server takes a moment to notice a closed connection
            (held,) = other.execute(
                "select count(*) > 0 from pg_stat_activity "
                "where application_name = 'foveate' and datname = current_database()"
            ).fetchall()[0]
    assert not held
    store.close()
