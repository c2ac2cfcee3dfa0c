"""A service on a small store, in this process and in a process of its own.

`client` and `guarded` belong to one test and have a copy of the store, so that the test may write. Tests that only read use
`shared_client` and `shared_guarded`, which exist once for each module: to build an app takes far longer than a request.
"""

from __future__ import annotations

import os
import re
import shutil
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
from foveate.server.http.serving import freeze_gc
from foveate.server.tokens import SCOPES, Tokens

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session", autouse=True)
def _imported_objects_are_not_collected() -> None:
    """Freeze what is there, as the service does: a full collection of all modules takes longer than most tests."""
    freeze_gc()


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose store holds one record of each of three kinds, without code. It is only copied."""
    folder = tmp_path_factory.mktemp("seeded")
    with foveate.open(folder, personal=False) as engine:
        engine.add("decision", "Chose Postgres over ChromaDB for unified storage", outcome="success")
        engine.add("fact", "Redis runs on port 6379", subject="redis", attribute="port")
        engine.add("censor", "Never delete the production database", data={"pattern": "drop database", "action": "block"})
    return folder


@contextmanager
def copied(seeded: Path, folder: Path) -> Iterator[Engine]:
    shutil.copytree(seeded, folder, dirs_exist_ok=True)
    with foveate.open(folder, personal=False) as engine:
        yield engine


@contextmanager
def guarding(engine: Engine, file: Path) -> Iterator[Guarded]:
    """A service that asks everybody for a token."""
    tokens = Tokens(file)
    tokens.create("first", SCOPES, "main")
    with TestClient(create_app(engine, settings=Settings(require_token=True, tokens=file)), base_url=BASE) as client:
        yield Guarded(client, tokens, engine)


# --- for one test, which may write -------------------------------------------------------------------------------------


@pytest.fixture
def engine(seeded: Path, tmp_path: Path) -> Iterator[Engine]:
    with copied(seeded, tmp_path) as engine:
        yield engine


@pytest.fixture
def client(engine: Engine) -> Iterator[TestClient]:
    with TestClient(create_app(engine), base_url=BASE) as client:
        yield client


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "tokens.json")


@pytest.fixture
def guarded(engine: Engine, tmp_path: Path) -> Iterator[Guarded]:
    with guarding(engine, tmp_path / "tokens.json") as guarded:
        yield guarded


# --- for all tests of a module that only read --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared_engine(seeded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with copied(seeded, tmp_path_factory.mktemp("shared")) as engine:
        yield engine


@pytest.fixture(scope="module")
def shared_client(shared_engine: Engine) -> Iterator[TestClient]:
    with TestClient(create_app(shared_engine), base_url=BASE) as client:
        yield client


@pytest.fixture(scope="module")
def shared_guarded(shared_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarding(shared_engine, tmp_path_factory.mktemp("tokens") / "tokens.json") as guarded:
        yield guarded


# --- in a process of its own -------------------------------------------------------------------------------------------


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Starts a server process on a free port; it is ended in any case."""

    @contextmanager
    def started(*options: str, folder: Path = tmp_path) -> Iterator[Process]:
        foveate.open(folder, personal=False).close()
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
