"""Slow connections against `foveate serve`: does a request with a token still get its answer, and how fast?

The service runs as its own process and asks everybody for a token. The attackers have none.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

import foveate
from bench.attack.tally import Tally, require

FULL_COUNT, QUICK_COUNT = 1_000, 60
MAX_OPEN_FILES = 1024
"""Of the service: the limit that most Linux systems set for a process."""
MAX_ANSWER_S = 10.0
START_TIMEOUT_S = 60.0
FEED_ROUNDS = 5
"""How often an attacker sends one more byte, so that its connection is never idle."""

BODY_HEADER = (
    "POST /v1/contexts HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n"
)
STARTS = {
    "idle connections": b"",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "a request line without an end": b"GET /",
    "half a body": f'{BODY_HEADER}{{"query": "'.encode(),
    "event streams without a token": b"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a request after the other": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /healthz HTTP/1.1\r\n",
}


@contextmanager
def service(folder: Path) -> Iterator[tuple[str, str]]:
    """Start the service, and yield its URL and a token."""
    environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(Path(foveate.__file__).parents[1])}
    command = [sys.executable, "-m", "foveate"]
    foveate.open(folder, personal=False).close()
    made = subprocess.run(
        [*command, "token", "create", "attack"], cwd=folder, env=environment, capture_output=True, text=True
    )
    arguments = [*command, "serve", "--port", "0", "--require-token"]
    with open(folder / "log", "w") as log, subprocess.Popen(arguments, cwd=folder, env=environment, stderr=log) as process:
        try:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (MAX_OPEN_FILES, MAX_OPEN_FILES))
            yield _url(folder / ".foveate" / "service.json", process), made.stdout.strip()
        finally:
            process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


def _url(file: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + START_TIMEOUT_S
    while not file.exists():
        require(process.poll() is None and time.monotonic() < end, "the service did not start")
        time.sleep(0.05)
    return str(json.loads(file.read_text())["url"])


def ask(url: str, token: str) -> float:
    """Return the seconds of a request with a token, on a new connection."""
    began = time.perf_counter()
    answer = httpx.post(
        f"{url}/v1/contexts",
        json={"query": "Which pump?"},
        headers={"Authorization": f"Bearer {token}"},
        timeout=MAX_ANSWER_S,
    )
    require(answer.status_code == 200, f"status {answer.status_code}")
    return time.perf_counter() - began


@contextmanager
def slow_connections(url: str, count: int, start: bytes) -> Iterator[list[socket.socket]]:
    port = int(url.rpartition(":")[2])
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            # The service may refuse some of them, or close them early: that is a defence.
            with suppress(OSError):
                opened.append(socket.create_connection(("127.0.0.1", port), timeout=5))
                opened[-1].sendall(start)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def feed(connections: list[socket.socket]) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.sendall(b"x")


def attack(tally: Tally, quick: bool) -> None:
    count = QUICK_COUNT if quick else FULL_COUNT
    with tempfile.TemporaryDirectory() as name, service(Path(name)) as (url, token):
        for sort, start in STARTS.items():
            slowest, answered = 0.0, 0
            with tally.case(f"{count} times {sort}"), slow_connections(url, count, start) as connections:
                for _ in range(1 if quick else FEED_ROUNDS):
                    slowest = max(slowest, ask(url, token))
                    answered += 1
                    feed(connections)
            tally.notes.append(f"{count} times {sort}: {answered} answers, the slowest after {slowest:.2f} s")
        with tally.case("an answer after the attack"):
            ask(url, token)
