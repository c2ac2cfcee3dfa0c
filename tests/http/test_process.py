"""A server process of its own, on a real socket: how it begins, how it is found, how it streams, how it ends."""

from __future__ import annotations

import http.client
import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from service_kit import Process, Serve, until

import foveate
from foveate.cli import cli
from foveate.integrations.hooks import service_file
from foveate.memory.backfill import embed_missing
from foveate.project.project import locate_project


def asked(port: int, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    sent = None if body is None else json.dumps(body)
    connection.request(method, path, sent, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command in this process, which is another one than the service's."""

    def run(*arguments: str, folder: Path) -> Result:
        monkeypatch.chdir(folder)
        return CliRunner().invoke(cli, arguments, catch_exceptions=False)

    return run


def ended(server: Process) -> int:
    server.process.send_signal(signal.SIGTERM)
    return server.process.wait()


def test_the_service_is_found_while_it_runs_and_leaves_nothing_behind(
    serve: Serve, tmp_path: Path, command: Callable[..., Result]
) -> None:
    file = locate_project(tmp_path).service_file
    with serve() as server:
        found = service_file.find_service(file)
        assert found is not None
        assert (found.url, found.pid, found.version) == (server.url, server.process.pid, foveate.__version__)
        assert file.stat().st_mode & 0o777 == 0o600
        status, context = asked(server.port, "POST", "/v1/contexts", {"query": "What is known?"})
        assert status == 200
        second = command("serve", "--port", "0", folder=tmp_path)
        assert second.exit_code == 2
        assert server.url in second.stderr
        assert ended(server) == 0
    assert not file.exists()
    with foveate.open(tmp_path, personal=False) as engine:
        assert engine.receipts.get(context["id"]).id == context["id"]  # what was waiting was written


def test_what_a_killed_service_left_is_replaced(serve: Serve, tmp_path: Path) -> None:
    file = locate_project(tmp_path).service_file
    with serve() as server:
        server.process.kill()
        server.process.wait()
        assert file.exists()
        assert service_file.find_service(file) is None
    with serve() as server:
        found = service_file.find_service(file)
        assert found is not None
        assert found.pid == server.process.pid


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--host", "0.0.0.0"), "foveate token create"),
        (("--name", "foveate.example"), "foveate token create"),
        (("--require-token",), "foveate token create"),
        (("--rate", "often"), "600/minute"),
        (("--host", "203.0.113.7", "--port", "0"), "token"),
    ],
)
def test_a_service_that_would_be_unsafe_does_not_start(
    tmp_path: Path, command: Callable[..., Result], options: tuple[str, ...], says: str
) -> None:
    foveate.open(tmp_path, personal=False).close()
    done = command("serve", "--port", "0", *options, folder=tmp_path)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not locate_project(tmp_path).service_file.exists()


def test_a_port_that_is_taken_is_named(
    serve: Serve, command: Callable[..., Result], tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    foveate.open(other, personal=False).close()
    with serve() as server:
        done = command("serve", "--port", str(server.port), folder=other)
    assert done.exit_code == 2
    assert str(server.port) in done.stderr


def test_tokens_are_made_listed_and_revoked_on_the_command_line(
    serve: Serve, tmp_path: Path, command: Callable[..., Result]
) -> None:
    foveate.open(tmp_path, personal=False).close()
    secret = command("token", "create", "ci", "--allow", "memory:read", "--expires", "30d", folder=tmp_path).stdout.strip()
    (listed,) = json.loads(command("token", "--json", folder=tmp_path).stdout)["tokens"]
    assert "hash" not in listed
    with serve("--require-token") as server:
        bearer = {"Authorization": f"Bearer {secret}"}
        assert asked(server.port, "GET", "/v1/stats")[0] == 401
        assert asked(server.port, "GET", "/v1/stats", **bearer)[0] == 200
        assert asked(server.port, "GET", "/v1/export", **bearer)[0] == 403
        own = json.loads(locate_project(tmp_path).service_file.read_text())["token"]
        assert asked(server.port, "GET", "/v1/stats", Authorization=f"Bearer {own}")[0] == 200
        assert command("token", "revoke", listed["id"], folder=tmp_path).exit_code == 0
        assert asked(server.port, "GET", "/v1/stats", **bearer)[0] == 401
    assert command("token", "revoke", listed["id"], folder=tmp_path).exit_code == 3


# --- streams -------------------------------------------------------------------------------------------------------


class Stream:
    """The events of a service, as they come."""

    def __init__(self, port: int, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._connection.request("GET", "/v1/events", headers=headers)
        self._answer = self._connection.getresponse()
        assert self._answer.headers["content-type"].startswith("text/event-stream")
        assert self._answer.readline().startswith(b":")  # it listens

    def ids(self) -> Iterator[str]:
        while line := self._answer.readline():
            if line.startswith(b"id: "):
                yield line[4:].decode().strip()

    def close(self) -> None:
        self._answer.close()
        self._connection.close()


def test_contexts_are_streamed_also_those_of_other_processes(
    serve: Serve, tmp_path: Path, command: Callable[..., Result]
) -> None:
    with serve() as server:
        stream = Stream(server.port)
        ids = stream.ids()
        first = asked(server.port, "POST", "/v1/contexts", {"query": "One"})[1]["id"]
        assert next(ids) == first
        other = json.loads(command("context", "Two", "--json", folder=tmp_path).stdout)["id"]
        assert next(ids) == other
        stream.close()
        third = asked(server.port, "POST", "/v1/contexts", {"query": "Three"})[1]["id"]
        again = Stream(server.port, **{"Last-Event-ID": first})
        following = again.ids()
        assert [next(following), next(following)] == [other, third]
        assert ended(server) == 0
        assert server.process.stderr is not None
        assert "shutdown exceeded" not in server.process.stderr.read()  # an open stream does not hold it up
        again.close()


# --- load ----------------------------------------------------------------------------------------------------------


def test_64_clients_at_once_are_all_answered(serve: Serve, tmp_path: Path) -> None:
    with serve() as server:

        def work(n: int) -> int:
            question = {"query": f"Question number {n}", "session": f"s{n}"}
            status, context = asked(server.port, "POST", "/v1/contexts", question)
            return status if context["schema_version"] == 1 else 0

        with ThreadPoolExecutor(64) as pool:
            assert set(pool.map(work, range(128))) == {200}
        assert asked(server.port, "GET", "/healthz")[0] == 200
        assert ended(server) == 0
    with foveate.open(tmp_path, personal=False) as engine:
        assert len(engine.receipts.list(limit=500)) == 128  # none was lost


def test_requests_at_work_are_finished_before_it_ends(serve: Serve, tmp_path: Path) -> None:
    with serve() as server:
        with ThreadPoolExecutor(4) as pool:
            records = [{"kind": "note", "text": f"Note {n} " * 200} for n in range(40)]
            work = [pool.submit(asked, server.port, "POST", "/v1/records", records) for _ in range(4)]
            wait(work, return_when=FIRST_COMPLETED)  # the others are at work or wait their turn
            assert ended(server) == 0
            statuses = [job.result()[0] for job in work if job.exception() is None]
        assert set(statuses) <= {201}
        assert statuses


def lacking(server: Process) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return next(float(line.split()[1]) for line in lines if line.startswith("foveate_vectors_lacking "))


def test_records_without_a_vector_are_given_one_in_the_background(serve: Serve, tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        engine.store.add_many(("note", f"Host {n} restarts at night", {}) for n in range(1500))
        engine.scoped(project="aside").add("note", "Of another project")
    (tmp_path / ".foveate" / "config.toml").write_text('embedder = "hash:32"\n', "utf-8")
    with serve() as server:
        until(lambda: 0 < lacking(server) < 1500)  # it is at work, and more is to come
        assert ended(server) == 0
    with foveate.open(tmp_path, personal=False) as engine:
        assert 0 < engine.store.vectors().missing < 1500
        assert engine.scoped(project="aside").store.vectors().missing == 0
        assert embed_missing(engine.store.data).remaining == 0


def test_answers_on_an_open_connection_are_sent_at_once(serve: Serve) -> None:
    with serve() as server, closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
        times = []
        for _ in range(30):
            began = time.monotonic()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            times.append(time.monotonic() - began)
        # Without TCP_NODELAY each takes the 40 ms of a delayed acknowledgement, however fast the machine is.
        assert min(sorted(times)[5:]) < 0.02
