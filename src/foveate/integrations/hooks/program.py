"""`foveate-hook HOST`: the program that coding agents call on every prompt.

It reads an event from stdin and prints the host's JSON, or nothing. It always exits with 0 and writes errors to
`.foveate/hook.log`, so that it never interrupts a prompt. The project's running service handles the event; if none answers,
this process does. Until then it imports only a little of the standard library, because it must start quickly.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

from foveate.project.locate import (
    DIR_NAME,
    INDEX_FILE,
    SERVICE_FILE,
    STORE_ENV_VAR,
    database_from_environment,
    find_project,
    folder_from_environment,
    store_source,
)
from foveate.project.tracked_by_git import read_private
from foveate.project.trusted_files import refusal

LOG_FILE = "hook.log"

HOSTS = ("claude", "codex", "cursor", "gemini")

MAX_EVENT_BYTES = 4_000_000
"""Limit for an event, which may contain the long output of a tool. A longer one is an error."""

MAX_RESPONSE_BYTES = 200_000

MAX_LOG_BYTES = 100_000
"""When the log is full, its older half is deleted."""

CONNECT_TIMEOUT_S, RESPONSE_TIMEOUT_S = 0.3, 8.0
"""Seconds that the service has to accept a connection, and to answer."""

TOTAL_TIMEOUT_S = 20
"""Seconds after which the hook gives up, because a person waits."""

LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""Hosts on which a service may run. A file in a repository must not send prompts elsewhere."""


class NoService(Exception):
    """No service answered; the event is handled here."""


def main() -> None:
    """Run the hook. It never raises, and exits with 0."""
    folder = ""
    try:
        _install_signal_handlers()
        host = sys.argv[1] if len(sys.argv) > 1 else ""
        if host not in HOSTS or os.isatty(0):
            sys.stderr.write(f"foveate-hook reads an event from stdin: foveate-hook {'|'.join(HOSTS)} < event.json\n")
        else:
            raw, event = _read_event()
            root = root_of(event)
            folder = os.path.join(root, DIR_NAME) if root else ""
            if reason := root and _refusal(root):
                _write_log(folder, f"{reason}, so someone else may have written it. `foveate doctor` says what to do.")
            elif root:
                _write_response(_handle_event(folder, host, raw, event))
    except BaseException as error:
        _write_log(folder, error)
    finally:
        os._exit(0)  # not even a closed stdout may change it


def _install_signal_handlers() -> None:
    """Exit with 0 on SIGTERM and after a time limit: the host must not report an error."""
    import signal

    def end(*_: object) -> None:
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, end)
        signal.alarm(TOTAL_TIMEOUT_S)


def _read_event() -> tuple[bytes, dict[str, Any]]:
    raw = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
    if len(raw) > MAX_EVENT_BYTES:
        raise ValueError(f"the event must have at most {MAX_EVENT_BYTES:,} bytes")
    event = json.loads(raw)
    if not isinstance(event, dict):
        raise ValueError("the event must be a JSON object")
    return raw, event


def _write_response(answer: Any) -> None:
    if isinstance(answer, dict) and answer:
        text = json.dumps(answer)  # ASCII, which every terminal encoding contains
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


# --- the project -----------------------------------------------------------------------------------------------------


def root_of(event: dict[str, Any]) -> str:
    """Return the root of the project that an event belongs to; empty if the project has no store.

    That is FOVEATE_STORE if it names a folder, else the project of the event's working directory.
    """
    roots = event.get("workspace_roots")
    folders = [event.get("cwd"), *(roots if isinstance(roots, list) else ())]
    start = next((folder for folder in folders if isinstance(folder, str) and os.path.isabs(folder)), os.getcwd())
    root, _ = find_project(folder_from_environment() or start)
    return root if store_source(root) else ""


def _refusal(root: str) -> str:
    """Return why the file that names the store is not the user's own and not accepted, or an empty string.

    Its rules, or the address to which prompts are sent, would then be someone else's.
    """
    name = store_source(root)
    reason = refusal(os.path.join(root, DIR_NAME, name)) if name != STORE_ENV_VAR else ""
    return f"{DIR_NAME}/{name} is not used: {reason}" if reason else ""


# --- the answer ------------------------------------------------------------------------------------------------------


def _handle_event(folder: str, host: str, raw: bytes, event: dict[str, Any]) -> Any:
    try:
        return _ask_service(folder, host, raw)
    except NoService as error:
        if str(error):
            _write_log(folder, error)
    return _handle_locally(folder, host, event)


def _ask_service(folder: str, host: str, raw: bytes) -> Any:
    """Return the answer of the project's service. Raises NoService if there is none or it cannot answer."""
    try:
        service = json.loads(read_private(os.path.join(folder, SERVICE_FILE)))
        address, token = address_of(str(service["url"])), str(service.get("token") or "")
    except FileNotFoundError:
        raise NoService from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NoService(f"{SERVICE_FILE} cannot be used ({type(error).__name__})") from None
    if not token.replace("-", "").replace("_", "").isalnum() and token:
        raise NoService(f"the token in {SERVICE_FILE} has unexpected characters")
    head = (
        f"POST /v1/hooks/{host} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n"
        + (f"Authorization: Bearer {token}\r\n" if token else "")
        + f"Content-Length: {len(raw)}\r\n\r\n"
    )
    status, body = _post(address, head.encode() + raw)
    if status != 200:
        raise NoService(f"the service answered {status}")
    return _filter_response(json.loads(body))


def _filter_response(answer: Any) -> dict[str, Any]:
    """Return only the fields that carry context: a host could act on others, such as a changed command."""
    known = ("continue", "additional_context", "hookSpecificOutput")
    filtered = {name: answer[name] for name in known if name in answer} if isinstance(answer, dict) else {}
    output = filtered.pop("hookSpecificOutput", None)
    if isinstance(output, dict):
        inner = {name: output[name] for name in ("hookEventName", "additionalContext") if name in output}
        filtered["hookSpecificOutput"] = inner
    return filtered


def address_of(url: str) -> str:
    """Return the address in the URL of a service on this machine. Raises NoService for any other URL."""
    scheme, _, address = url.rstrip("/").partition("://")
    name, _, port = address.rpartition(":")
    if scheme != "http" or name not in LOCAL_HOSTS or not (port.isascii() and port.isdecimal() and len(port) <= 5):
        raise NoService(f"the URL in {SERVICE_FILE} must be one of this machine")
    return address


def _post(address: str, request: bytes) -> tuple[int, bytes]:
    from time import monotonic

    name, _, port = address.rpartition(":")
    end = monotonic() + RESPONSE_TIMEOUT_S
    try:
        connection = socket.create_connection((name.strip("[]"), int(port)), CONNECT_TIMEOUT_S)
    except (OSError, OverflowError):  # it has crashed and left its file
        raise NoService from None
    with connection:
        got = b""
        try:
            connection.settimeout(RESPONSE_TIMEOUT_S)
            connection.sendall(request)
            while len(got) <= MAX_RESPONSE_BYTES and (part := connection.recv(65536)):
                got += part
                connection.settimeout(max(0.01, end - monotonic()))
        except TimeoutError:
            raise NoService("the service took too long") from None
    head, _, body = got.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit() or len(got) > MAX_RESPONSE_BYTES:
        raise NoService("the service sent no valid HTTP response")
    return int(words[1]), body


def _handle_locally(folder: str, host: str, event: dict[str, Any]) -> Any:
    """Handle the event without a service, which takes some hundred milliseconds. Code is used only if already indexed."""
    import logging

    import foveate
    from foveate.integrations.hooks.hosts import handle

    class LogFileHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _write_log(folder, record.getMessage())

    logging.getLogger("foveate").addHandler(LogFileHandler())
    root = os.path.dirname(folder)
    code = None if os.path.exists(os.path.join(folder, INDEX_FILE)) else False
    with foveate.open(root, store=database_from_environment() or None, code=code, create=False) as engine:
        return handle(engine, host, event)


# --- the log ---------------------------------------------------------------------------------------------------------


def _write_log(folder: str, error: BaseException | str) -> None:
    """Append a line to the project's log if there is a project. Never raises, and never writes through a link."""
    if not folder or os.path.islink(folder):
        return
    try:
        from time import gmtime, strftime

        message = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        line = f"{strftime('%Y-%m-%dT%H:%M:%SZ', gmtime())} {' '.join(message[:2000].split())}\n"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        opened = os.open(os.path.join(folder, LOG_FILE), flags, 0o600)
        with os.fdopen(opened, "r+b") as file:
            status = os.fstat(opened)
            if status.st_mode & 0o170000 != 0o100000 or status.st_nlink != 1:
                return
            if status.st_size > MAX_LOG_BYTES:
                kept = os.pread(opened, MAX_LOG_BYTES // 2, status.st_size - MAX_LOG_BYTES // 2).partition(b"\n")[2]
                file.truncate(0)
                file.write(kept)
            file.write(line.encode("utf-8", "replace"))
    except Exception:
        return


if __name__ == "__main__":
    main()
