"""Between a host's stdio and a warm service's HTTP: lines of JSON-RPC one way, POSTs and their answers the other.

Comes in: lines on stdin. Goes out: lines on stdout. Standard library only, so that the first answer comes early; it
understands no message beyond its envelope. A service that is gone is an error for each request; one that was started again,
on whatever port, is greeted anew, and the host does not notice.
"""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from foveate.integrations.hooks import service_file as service

SERVICE = "service.json"
"""Where a running service says how it is reached, in the project's `.foveate/`."""

SECONDS = 600
"""How long an answer may take: the first look at a large repository takes minutes."""

UNREACHABLE, PARSE_ERROR = -32000, -32700
VERSION = "io.modelcontextprotocol/protocolVersion"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""What a request says in its headers too, since 2026-07-28."""

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Service:
    """A running service: its address, and the token where it wants one."""

    url: str
    token: str = ""


class Gone(Exception):
    """The service does not answer, or no longer knows us."""


def live_service(folder: Path) -> Service | None:
    """The service that a project's folder names, where it is alive."""
    found = service.find(folder / SERVICE)
    return Service(found.url.rstrip("/") + "/mcp", found.token) if found else None


class Bridge:
    """One host's connection. `find` looks for the service again when it is gone."""

    def __init__(self, service: Service, find: Callable[[], Service | None]) -> None:
        self._service, self._find = service, find
        self._session = self._version = ""
        self._greeting: Message | None = None
        self._greeted = threading.Lock()
        self._writing = threading.Lock()

    def run(self, lines: BinaryIO, out: BinaryIO) -> None:
        """Until the host closes stdin. Requests run side by side; notifications keep their place in line."""
        self._out = out
        running: list[threading.Thread] = []
        for line in lines:
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self._fail(None, "This line is no JSON.", PARSE_ERROR)
                continue
            if not isinstance(message, dict):
                self._fail(None, "A message is one JSON object.", PARSE_ERROR)
            elif message.get("method") == "initialize" or "id" not in message:
                self._carry(message)
            else:
                thread = threading.Thread(target=self._carry, args=(message,), daemon=True)
                thread.start()
                running = [each for each in running if each.is_alive()] + [thread]
        for thread in running:
            thread.join()
        self._leave()

    def _carry(self, message: Message) -> None:
        """Hand a message over and its answers back; once more where the service was started again."""
        try:
            try:
                self._post(message)
            except Gone:
                self._meet_again(message)
                self._post(message)
        except (Gone, OSError, HTTPException, ValueError) as error:
            if "id" in message and "method" in message:
                self._fail(
                    message["id"],
                    f"The foveate service at {self._service.url} does not answer ({error}). Start it again with `foveate "
                    f"serve` and try again, or restart this MCP server to go on without it.",
                )

    def _post(self, message: Message, *, quiet: bool = False) -> None:
        greets = message.get("method") == "initialize"
        if greets:
            self._greeting, self._session, self._version = message, "", ""
        try:
            connection, response = self._sent("POST", json.dumps(message).encode(), self._headers(message))
        except (OSError, HTTPException) as error:
            raise Gone(str(error) or type(error).__name__) from error
        try:
            if response.status == 404 and self._session:
                raise Gone("it was started again")
            self._session = response.getheader("mcp-session-id") or self._session
            for answer in _answers(response):
                if greets:
                    self._version = str(_under(answer, "result").get("protocolVersion", ""))
                if "method" not in answer and "id" in message:
                    answer["id"] = message["id"]  # of a message that it refuses, a server may not say which one
                if not quiet:
                    self._write(answer)
        finally:
            connection.close()

    def _sent(self, verb: str, body: bytes, headers: Mapping[str, str]) -> tuple[HTTPConnection, HTTPResponse]:
        place = urlsplit(self._service.url)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=SECONDS)
        connection.request(verb, place.path, body, dict(headers))
        response = connection.getresponse()
        moved = response.getheader("location") if response.status in (307, 308) else None
        if moved and urlsplit(moved).netloc in ("", place.netloc) and urlsplit(moved).path != place.path:
            connection.close()
            url = f"{place.scheme}://{place.netloc}{urlsplit(moved).path}"
            self._service = Service(url, self._service.token)  # `/mcp` to `/mcp/`, where it is mounted so
            return self._sent(verb, body, headers)
        return connection, response

    def _headers(self, message: Message) -> dict[str, str]:
        params, method = _under(message, "params"), str(message.get("method", ""))
        version = str(_under(params, "_meta").get(VERSION, ""))
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            "mcp-session-id": "" if version else self._session,
            "mcp-protocol-version": version or self._version,
            "authorization": f"Bearer {self._service.token}" if self._service.token else "",
        }
        if version:
            headers |= {"mcp-method": _header(method), "mcp-name": _header(str(params.get(NAMED.get(method, ""), "")))}
        return {name: value for name, value in headers.items() if value}

    def _meet_again(self, message: Message) -> None:
        """Find the service where it is now, and greet it as the host greeted it first."""
        with self._greeted:
            self._service = self._find() or self._service
            greeting = self._greeting
            if greeting is not None and message.get("method") != "initialize":
                self._post(greeting, quiet=True)
                self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, quiet=True)

    def _leave(self) -> None:
        """Say goodbye, where the service keeps a session for us."""
        if self._session:
            with suppress(OSError, HTTPException):
                self._sent("DELETE", b"", self._headers({}))[0].close()

    def _fail(self, id: Any, text: str, code: int = UNREACHABLE) -> None:
        self._write({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})

    def _write(self, message: Message) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        with self._writing:
            self._out.write(line + b"\n")
            self._out.flush()


def _answers(response: HTTPResponse) -> Iterator[Message]:
    """The messages of a response, as JSON or as a stream of events."""
    sort = (response.getheader("content-type") or "").partition(";")[0].strip().lower()
    if sort == "text/event-stream":
        texts = _events(response)
    else:
        body = response.read().decode("utf-8", "replace")
        if body.strip() and sort != "application/json":
            raise Gone(f"HTTP {response.status}, which is no answer")
        texts = iter([body] if body.strip() else [])
    for text in texts:
        message = json.loads(text)
        if not isinstance(message, dict) or "jsonrpc" not in message:
            raise Gone(f"HTTP {response.status}: {text[:200]}")
        yield message


def _events(response: HTTPResponse) -> Iterator[str]:
    """The data of each event that has any."""
    data: list[str] = []
    for raw in response:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line:
            if any(data):
                yield "\n".join(data)
            data = []
    if any(data):
        yield "\n".join(data)


def _under(message: Any, name: str) -> Message:
    found = message.get(name) if isinstance(message, dict) else None
    return found if isinstance(found, dict) else {}


def _header(value: str) -> str:
    """A value as a header takes it; what is not plain ASCII is wrapped."""
    if value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{b64encode(value.encode('utf-8', 'replace')).decode()}?="
