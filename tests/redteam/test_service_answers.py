"""Answers of the HTTP service that a browser, or a caller with odd values, cannot turn against it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

from foveate.server.http import middleware, serving
from foveate.server.http.app import create_app
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


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A service on a real socket that waits only briefly for its clients."""
    monkeypatch.setattr(serving, "HEADER_TIMEOUT_S", 2.0)
    monkeypatch.setattr(middleware, "BODY_TIMEOUT_S", 2.0)
    with engine() as memory, serving._bind("127.0.0.1", 0) as listener:
        app = create_app(memory)
        config = uvicorn.Config(app, log_config=None, access_log=False, http=serving.PromptH11Protocol, lifespan="on")
        server = serving.Server(config, app.state.stopping)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname()[1]
        server.handle_exit(2, None)
        thread.join()


@pytest.mark.slow
def test_half_a_header_holds_no_connection(port: int) -> None:
    clients = [socket.create_connection(("127.0.0.1", port), timeout=120) for _ in range(300)]
    try:
        for client in clients:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).status_code == 200
        for client in clients:
            assert client.recv(100) == b"", "the service must close it"
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
        client.sendall(b"POST /v1/contexts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n")
        client.sendall(b'Content-Length: 50\r\n\r\n{"query": ')
        assert client.recv(4096).startswith(b"HTTP/1.1 408")


@pytest.mark.slow
def test_an_open_connection_is_used_again(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for _ in range(3):
            assert client.post("/v1/contexts", json={"query": "tea"}).status_code == 200
