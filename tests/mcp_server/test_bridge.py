"""`foveate mcp` on stdio where a warm service runs: it carries lines there and back, whatever happens to the service."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp_client import ERAS, Command, Service, call, text, within

from foveate.server.mcp.bridge import live_service

GREETING = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


class Lines:
    """A host that writes lines by hand."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._number = 0

    def write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def send(self, method: str, params: dict[str, Any]) -> int:
        self._number += 1
        self.write(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}))
        return self._number

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = self.send(method, params)
        answer = self.read()
        assert answer["id"] == number
        return answer


@contextmanager
def bridged(command: Command) -> Iterator[Lines]:
    process = command.started()
    lines = Lines(process)
    try:
        lines.ask(**GREETING)  # type: ignore[arg-type]
        lines.write('{"jsonrpc":"2.0","method":"notifications/initialized"}')
        yield lines
    finally:
        _, said = process.communicate(timeout=30)
    assert said == ""
    assert process.returncode == 0


SEARCH = {"name": "search", "arguments": {"query": "unified storage"}}


@pytest.mark.parametrize("mode", ERAS)
def test_a_warm_service_answers_through_the_bridge(service: Service, mode: str) -> None:
    parameters = service.command.parameters()
    assert len(within(parameters, lambda client: client.list_tools(), mode).tools) == 8
    assert "Postgres" in text(call(parameters, "compute_context", mode, query="Which storage? Straße 本"))
    assert "no record 'größe'" in text(call(parameters, "expand", mode, id="größe"))
    prompt = within(parameters, lambda client: client.get_prompt("start_task", {"objective": "Move the storage"}), mode)
    assert "Postgres" in prompt.messages[0].content.text
    schema = within(parameters, lambda client: client.read_resource("foveate://schema/handoff"), mode)
    assert "handoff" in schema.contents[0].text


def test_several_requests_at_once_each_get_their_answer(service: Service) -> None:
    with bridged(service.command) as lines:
        sent = {lines.send("tools/call", SEARCH) for _ in range(8)}
        answers = [lines.read() for _ in range(8)]
    assert {answer["id"] for answer in answers} == sent
    assert all("Postgres" in json.dumps(answer["result"]) for answer in answers)


@pytest.mark.parametrize(
    "line", ["no json", "[]", "3", '{"jsonrpc": "2.0", "id": 7, "method": "nobody/knows"}', '{"id": 7}']
)
def test_a_line_that_is_no_request_is_refused_and_the_next_is_answered(service: Service, line: str) -> None:
    with bridged(service.command) as lines:
        lines.write(line)
        assert "error" in lines.read()
        assert "Postgres" in json.dumps(lines.ask("tools/call", SEARCH))


def test_a_service_that_goes_away_is_an_error_that_says_what_to_do_until_it_is_back(service: Service) -> None:
    with bridged(service.command) as lines:
        assert "result" in lines.ask("tools/call", SEARCH)
        service.stop()
        error = lines.ask("tools/call", SEARCH)["error"]
        assert "foveate serve" in error["message"]
        lines.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')  # nobody to tell
        service.start()  # on another port, with no memory of the session
        assert "Postgres" in json.dumps(lines.ask("tools/call", SEARCH)["result"])


@pytest.mark.parametrize(
    "said",
    [
        "",
        "[]",
        '{"url": 3, "pid": 1}',
        '{"url": "http://127.0.0.1:9", "pid": "x"}',
        '{"url": "http://127.0.0.1:9", "pid": 999999999}',
        '{"url": "http://127.0.0.1:9", "pid": 1}',
        '{"url": "nonsense", "pid": 1}',
    ],
)
def test_what_names_no_live_service_is_no_service(tmp_path: Path, said: str) -> None:
    assert live_service(tmp_path) is None
    (tmp_path / "service.json").write_text(said, "utf-8")
    (tmp_path / "service.json").chmod(0o600)
    assert live_service(tmp_path) is None


def test_after_a_crash_of_the_service_the_command_answers_itself(service: Service) -> None:
    assert service.process is not None
    service.process.kill()
    service.process.communicate()
    assert "Postgres" in text(call(service.command.parameters(), "compute_context", query="Which storage?"))
