"""Answers of the HTTP service that a browser, or a caller with odd values, cannot turn against it."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import httpx
import pytest
from redteam_kit import until
from starlette.testclient import TestClient

import foveate
from foveate import Engine
from foveate.server.http import Settings, middleware, serving
from foveate.server.http.app import create_app
from foveate.server.http.routes import events
from foveate.server.tokens import SCOPES, Tokens
from foveate.testing import engine


@pytest.fixture
def client() -> Iterator[TestClient]:
    with engine() as memory, TestClient(create_app(memory), base_url="http://127.0.0.1") as made:
        yield made


@pytest.mark.parametrize(
    "path", ["/healthz", "/readyz", "/v1/records", "/v1/nothing", "/openapi.json", "/metrics", "/nothing"]
)
def test_no_answer_is_taken_for_another_type(client: TestClient, path: str) -> None:
    assert client.get(path).headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "extra", [{"x": 1}, {"x": {"y": 1}}, {"x": [1]}, 1, [1], {"": ""}, {"text": 1}, [{"text": None}], [[]]]
)
def test_texts_of_a_wrong_type_are_refused(client: TestClient, extra: object) -> None:
    answer = client.post("/v1/contexts", json={"query": "tea", "extra": extra})
    assert answer.status_code == 422, answer.text


@contextmanager
def serving_on(memory: Engine, **options: Any) -> Iterator[int]:
    """Serve on a real socket and yield its port."""
    with serving._bind("127.0.0.1", 0) as listener:
        app = create_app(memory, settings=Settings(**options))
        server = serving.Server(serving.make_config(app), app.state.stopping)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.handle_exit(2, None)
            thread.join()


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A service that waits only briefly for its clients."""
    for name in ("HEADER_TIMEOUT_S", "READ_TIMEOUT_S"):
        monkeypatch.setattr(serving, name, 2.0)
    monkeypatch.setattr(middleware, "BODY_TIMEOUT_S", 2.0)
    with engine() as memory, serving_on(memory) as port:
        yield port


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The port of a service that waits for its clients all day, and a token."""
    for name in ("HEADER_TIMEOUT_S", "READ_TIMEOUT_S"):
        monkeypatch.setattr(serving, name, 86_400.0)
    monkeypatch.setattr(middleware, "BODY_TIMEOUT_S", 86_400.0)
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(4096, limits[0]), limits[1]))
    except ValueError:
        pytest.skip("needs 4,096 file descriptors")
    tokens = Tokens(tmp_path / "tokens.json")
    _, secret = tokens.create("test", SCOPES, "main")
    with engine() as memory, serving_on(memory, require_token=True, tokens=tmp_path / "tokens.json") as port:
        yield port, secret
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


HALF_HEADER = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_BODY = b"POST /v1/contexts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{"


def is_open(client: socket.socket) -> bool:
    """Read what the service has sent and return whether it has not closed the connection."""
    client.setblocking(False)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


@pytest.mark.slow
@pytest.mark.parametrize("half", [HALF_HEADER, HALF_BODY])
@pytest.mark.parametrize("signed_in", [False, True])
def test_a_thousand_slow_clients_leave_room_for_a_request(patient: tuple[int, str], half: bytes, signed_in: bool) -> None:
    port, token = patient
    signed = half.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1) if signed_in else half
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(1000)]
        for client in clients:
            with suppress(OSError):  # closed already
                client.sendall(signed)
        answer = httpx.post(
            f"http://127.0.0.1:{port}/v1/contexts",
            json={"query": "tea"},
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
        )
        assert answer.status_code == 200
        until(lambda: sum(map(is_open, clients)) <= serving.CROWDED_SHARE * serving.MAX_CONNECTIONS)
        assert is_open(clients[-1]), "the newest may still send its request"


@pytest.mark.slow
def test_many_clients_that_come_at_once_are_answered(patient: tuple[int, str]) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", patient[0]))) for _ in range(600)]
        for client in clients:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for client in clients:
            client.settimeout(120)
            assert client.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
def test_a_body_that_nobody_waits_for_holds_no_connection(patient: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "HEADER_TIMEOUT_S", 1.0)
    with closing(socket.create_connection(("127.0.0.1", patient[0]), timeout=120)) as client:
        client.sendall(HALF_BODY.replace(b"50", b"500000"))
        assert client.recv(4096).startswith(b"HTTP/1.1 401")

        def still_open() -> bool:
            with suppress(OSError):
                client.sendall(b"x")
            return is_open(client)

        until(lambda: not still_open())


@pytest.mark.slow
def test_an_answer_that_nobody_reads_holds_no_connection(port: int) -> None:
    with closing(socket.socket()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 200)
        client.setblocking(False)

        def is_reset() -> bool:  # without reading
            try:
                client.send(b"G")
            except BlockingIOError:
                return False
            except OSError:
                return True
            return False

        until(is_reset)


@pytest.mark.slow
def test_above_the_limit_requests_are_refused(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_CONNECTIONS", 8)
    with engine() as memory, serving_on(memory) as port, httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        with ExitStack() as stack:
            for _ in range(7):
                stream = stack.enter_context(client.stream("GET", "/v1/events", timeout=120))
                assert stream.status_code == 200
            assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=120).status_code == 503
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=120).status_code == 200)


@pytest.mark.slow
def test_half_a_header_holds_no_connection(port: int) -> None:
    clients = [socket.create_connection(("127.0.0.1", port), timeout=120) for _ in range(300)]
    try:
        for client in clients:
            client.sendall(HALF_HEADER)
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).status_code == 200
        until(lambda: not any(map(is_open, clients)))
    finally:
        for client in clients:
            client.close()


@pytest.mark.slow
def test_half_a_header_after_a_request_holds_no_connection(port: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=120)) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /healthz HTTP/1.1\r\n")
        with suppress(ConnectionResetError):
            while client.recv(4096):
                pass


@pytest.mark.slow
def test_half_a_body_is_refused(port: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=120)) as client:
        client.sendall(HALF_BODY)
        assert client.recv(4096).startswith(b"HTTP/1.1 408")


@pytest.mark.slow
def test_an_open_connection_is_used_again(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for _ in range(3):
            assert client.post("/v1/contexts", json={"query": "tea"}).status_code == 200


@pytest.mark.slow
def test_a_small_read_does_not_wait_for_large_notes(tmp_path: Path) -> None:
    letters = random.Random(7)
    words = [["".join(letters.choices(ascii_lowercase, k=9)) for _ in range(20_000)] for _ in range(4)]
    notes = [{"kind": "note", "text": " ".join(note)} for note in words]
    with foveate.open(tmp_path, personal=False, code=False) as memory:
        app = create_app(memory, settings=Settings(workers=2))
        with TestClient(app, base_url="http://127.0.0.1") as client, ThreadPoolExecutor(4) as pool:
            client.post("/v1/records", json={"kind": "fact", "text": "Tea is green"})
            writes = [pool.submit(client.post, "/v1/records", json=note) for note in notes]
            until(lambda: b"foveate_http_requests_active 4.0" in app.state.metrics.text())
            assert len(client.post("/v1/search", json={"query": "tea"}).json()["hits"]) == 1
            assert sum(write.done() for write in writes) == 0, "the writes take turns"
            assert {write.result().status_code for write in writes} == {201}


@pytest.mark.slow
def test_idle_event_streams_share_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, polls = [], []
    read_latest, updates = events._read_latest, events._updates
    monkeypatch.setattr(events, "_read_latest", lambda *given: (queries.append(given), read_latest(*given))[1])
    monkeypatch.setattr(events, "_updates", lambda *given: (polls.append(given), updates(*given))[1])
    with engine() as memory, serving_on(memory, poll_seconds=0.05) as port, ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
            client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            while b"listening" not in client.recv(4096):
                pass
        queries.clear()
        polls.clear()
        until(lambda: len(polls) >= 10)
        assert len(queries) <= len(polls) + 1
