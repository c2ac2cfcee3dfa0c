"""A service on a small store, in this process and as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from service_kit import BASE, Guarded, Process, Serve
from starlette.testclient import TestClient

import foveate
from foveate.engine import Engine
from foveate.server.http import Settings, create_app
from foveate.server.tokens import SCOPES, Tokens

ROOT = Path(__file__).parents[2]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A store with one record of each of three kinds, in a folder without code."""
    with foveate.open(tmp_path, own=False) as engine:
        engine.add("decision", "Chose Postgres over ChromaDB for unified storage", outcome="success")
        engine.add("fact", "Redis runs on port 6379", subject="redis", attribute="port")
        engine.add("censor", "Never delete the production database", pattern="drop database", action="block")
        yield engine


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with TestClient(create_app(engine), base_url=BASE) as client:
        yield client


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "tokens.json")


@pytest.fixture
def guarded(engine: Engine, tokens: Tokens, tmp_path: Path) -> Iterator[Guarded]:
    tokens.create("first", SCOPES, "main")
    settings = Settings(require_token=True, tokens=tmp_path / "tokens.json")
    with TestClient(create_app(engine, settings=settings), base_url=BASE) as client:
        yield Guarded(client, tokens, engine)


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Starts a server process on a free port; it is ended in any case."""

    @contextmanager
    def started(*options: str, folder: Path = tmp_path) -> Iterator[Process]:
        foveate.open(folder, own=False).close()
        command = [sys.executable, "-m", "foveate", "serve", "--port", "0", *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r'"url": "([^"]+)"', line)
            assert found, line + process.stderr.read()
            yield Process(process, found[1], folder)
        finally:
            process.kill()
            process.communicate()

    return started
