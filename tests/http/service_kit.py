"""What the tests of the service share."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from foveate.engine import Engine
from foveate.server.tokens import SCOPES, Tokens

BASE = "http://127.0.0.1"


@dataclass
class Guarded:
    """A service that needs tokens."""

    client: TestClient
    tokens: Tokens
    engine: Engine

    def headers(self, *scopes: str, project: str = "main", **options: str) -> dict[str, str]:
        """The header of a new token."""
        _, secret = self.tokens.create("test", scopes or SCOPES, project, **options)
        return {"Authorization": f"Bearer {secret}"}


@dataclass
class Process:
    """A `foveate serve` of its own."""

    process: subprocess.Popen[str]
    url: str
    folder: Path

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


Serve = Callable[..., AbstractContextManager[Process]]


def until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def problem(response: Any) -> dict:
    """The body of a problem, with its form checked."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    document = json.loads(response.text)
    assert document["status"] == response.status_code
    assert document["title"]
    assert document["detail"]
    return document
