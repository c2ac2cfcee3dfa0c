"""Fixtures of every test: no network, an empty home directory, and property tests without deadlines."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.register_assert_rewrite("conformance")  # before anything imports it

from postgres_server import postgres as postgres  # noqa: E402
from property_settings import register_profiles  # noqa: E402

register_profiles()


class NetworkBlocked(RuntimeError):
    """A test tried to reach the network. Not an OSError: code that survives a broken network must not hide the attempt."""


def only_loopback(replace: Callable[[Any, str, Any], None]) -> None:
    """Make every connection beyond this machine fail."""

    def is_local(host: object) -> bool:
        if host in (None, "", b"", "localhost", b"localhost"):
            return True
        try:
            return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
        except ValueError:
            return False

    def blocked(target: object) -> NetworkBlocked:
        return NetworkBlocked(f"Tests reach no network: {target!r} is beyond loopback. Use a local server or a fake.")

    def guarded(original: Any) -> Any:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family != getattr(socket, "AF_UNIX", None) and not is_local(address[0]):
                raise blocked(address)
            return original(self, address)

        return connect

    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_local(host):
            raise blocked(host)
        return resolve(host, *args, **kwargs)

    replace(socket.socket, "connect", guarded(socket.socket.connect))
    replace(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
    replace(socket, "getaddrinfo", getaddrinfo)


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    """Allow Unix sockets, 127.0.0.0/8 and ::1. Every other connection raises."""
    with pytest.MonkeyPatch.context() as patch:
        only_loopback(patch.setattr)
        yield


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a person run the commands of a test that calls them in its own process. A process that a test starts has none."""
    monkeypatch.setattr("foveate.cli.call.has_terminal", lambda: True)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty home directory, outside `tmp_path`, so that a project at `tmp_path` does not contain it."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(folder))
    for variable, below in (
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
    ):
        monkeypatch.setenv(variable, str(folder / below))
    # One cache for all tests: the tables of the tokenizer take a process 0.4 s to make.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp().parent / "cache"))
    # A coding agent may run the tests: it sets the last four.
    unwanted = ("NO_COLOR", "FORCE_COLOR", "CLAUDECODE", "CODEX_THREAD_ID", "CURSOR_AGENT", "GEMINI_CLI")
    for variable in [name for name in os.environ if name in unwanted or name.startswith("FOVEATE_")]:
        monkeypatch.delenv(variable)
    return folder
