"""The same server in a process of its own: over stdio, over HTTP, and where there is no store yet."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from mcp_client import ERAS, Command, call, figures, text, within
from starlette.applications import Starlette
from starlette.routing import Mount

import foveate
from foveate.server.mcp import create_server

QUESTION = "Which database do we use for storage?"


@pytest.fixture
def mounted(project: Path) -> Iterator[str]:
    """The server as a service mounts it, beside what else there is, under uvicorn on the loopback."""
    with foveate.open(project) as engine:
        offered = create_server(engine)
        inner = offered.streamable_http_app(streamable_http_path="/")
        app = Starlette(routes=[Mount("/mcp", app=inner)], lifespan=lambda _: offered.session_manager.run())
        running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        thread = threading.Thread(target=running.run)
        thread.start()
        while not running.started:
            thread.join(0.01)
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
        running.should_exit = True
        thread.join()


@pytest.mark.parametrize("mode", ERAS)
def test_over_http(mounted: str, mode: str) -> None:
    assert "Postgres" in text(call(f"{mounted}/mcp", "get_context", mode, query=QUESTION))
    assert call(f"{mounted}/mcp", "search", mode, query="x" * 2_000_000).is_error


@pytest.mark.parametrize("mode", ERAS)
def test_over_stdio_what_was_computed_can_be_asked_about_afterwards(command: Command, mode: str) -> None:
    found = call(command.parameters(), "get_context", mode, query=QUESTION)
    assert "Postgres" in text(found)
    with foveate.open(command.folder) as engine:  # the receipt was written when the host closed stdin
        assert engine.receipts.get().id == figures(found)["context"]


def test_without_a_store_the_server_starts_and_says_how_to_create_one(tmp_path: Path, environment: dict[str, str]) -> None:
    parameters = Command(tmp_path, environment).parameters()
    assert within(parameters, lambda client: client.list_tools()).tools
    found = call(parameters, "get_context", query=QUESTION)
    assert found.is_error
    assert "foveate init" in text(found)
    assert not (tmp_path / ".foveate").exists()


def test_a_store_that_came_with_the_repository_is_not_opened(command: Command) -> None:
    for words in (["init", "-q"], ["add", "-f", ".foveate/state.db"]):
        subprocess.run(["git", *words], cwd=command.folder, check=True)
    found = call(command.parameters(), "search", query="Postgres")
    assert found.is_error
    assert "rm --cached .foveate/state.db" in text(found)


def test_a_project_of_code_gets_a_store_with_the_first_call(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\n', "utf-8")
    (tmp_path / "cart.py").write_text("def add_to_cart(item):\n    return item\n", "utf-8")
    found = call(Command(tmp_path, environment).parameters(), "get_context", query="add_to_cart")
    assert "add_to_cart" in text(found)
    assert (tmp_path / ".foveate" / "state.db").exists()


def test_without_its_package_the_command_names_the_extra(command: Command, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['mcp'] = None\n", "utf-8")
    paths = f"{tmp_path}:{command.environment['PYTHONPATH']}"
    started = Command(command.folder, {**command.environment, "PYTHONPATH": paths}).started()
    _, said = started.communicate()
    assert started.returncode == 2
    assert "pip install foveate[mcp]" in said


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_host_may_end_it_with_a_signal(command: Command, sent: int) -> None:
    process = command.started()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(GREETING)
    process.stdin.flush()
    assert '"serverInfo"' in process.stdout.readline()
    process.send_signal(sent)
    process.wait()
    _, said = process.communicate()
    assert "Traceback" not in said


GREETING = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"test","version":"1"}}}\n'
)


def test_answering_early_loads_no_package_and_no_engine() -> None:
    program = (
        "import sys, foveate.server.mcp.early, foveate.cli.mcp\n"
        "print([name for name in ('mcp', 'pydantic', 'apsw', 'foveate.engine', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
