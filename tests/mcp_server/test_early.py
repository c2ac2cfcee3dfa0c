"""On stdio the first questions are answered before the server is there, with the words that it would use itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mcp_client import ERAS, Command, call, text, within

from foveate.server.mcp.catalog import HANDSHAKE_VERSIONS, STATELESS_VERSION, load, server_results

GREETING = {"protocolVersion": HANDSHAKE_VERSIONS[0], "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, STATELESS_VERSION])
def test_the_catalogue_is_what_the_server_says(version: str) -> None:
    assert load()[version] == server_results(version), "write it again: python -m foveate.server.mcp.catalog"


def conversation(command: Command, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Everything that comes back, where all questions are asked at once."""
    process = command.started()
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines)
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for message in messages if "id" in message]
    rest, said = process.communicate()
    assert (rest, said, process.returncode) == ("", "", 0)
    return answers


def test_each_question_gets_one_answer_and_ids_keep_their_type(command: Command) -> None:
    called = {"name": "search", "arguments": {"query": "unified storage"}}
    answers = conversation(
        command,
        {"id": 1, "method": "initialize", "params": GREETING},
        {"method": "notifications/initialized"},
        {"id": "1", "method": "tools/list", "params": {}},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": called},
        {"id": 4, "method": "nobody/knows", "params": {}},
        {"id": 5, "method": "prompts/list", "params": {"cursor": "x"}},
    )
    found = {json.dumps(answer["id"]): answer for answer in answers}
    assert set(found) == {"1", '"1"', "2", "3", "4", "5"}
    assert found["1"]["result"]["protocolVersion"] == HANDSHAKE_VERSIONS[0]
    assert found['"1"']["result"] == found["2"]["result"] == load()[HANDSHAKE_VERSIONS[0]]["tools/list"]
    assert "Postgres" in json.dumps(found["3"]["result"])
    assert "error" in found["4"]


def test_a_version_that_is_not_in_the_catalogue_is_left_to_the_server(command: Command) -> None:
    (answer,) = conversation(command, {"id": 1, "method": "initialize", "params": {**GREETING, "protocolVersion": "1999"}})
    assert answer["result"]["protocolVersion"] in HANDSHAKE_VERSIONS


@pytest.mark.parametrize("line", ["no json", "[1]", '{"method": 3}', '{"id": 1, "method": "tools/list", "params": [1]}'])
def test_what_is_no_question_is_left_to_the_server(command: Command, line: str) -> None:
    process = command.started()
    greeting = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": GREETING})
    answers, _ = process.communicate(f"{line}\n{greeting}\n")
    assert any(json.loads(answer).get("id") == 7 for answer in answers.splitlines())
    assert process.returncode == 0


def test_the_tools_are_listed_where_loading_the_server_never_ends(command: Command, tmp_path: Any) -> None:
    """As on a busy machine, only more so: a host that asks is told at once."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("import time\ntime.sleep(600)\n", "utf-8")
    slow = {**command.environment, "PYTHONPATH": f"{tmp_path}:{command.environment['PYTHONPATH']}"}
    process = Command(command.folder, slow).started()
    assert process.stdin is not None
    assert process.stdout is not None
    for number, (method, params) in enumerate((("initialize", GREETING), ("tools/list", {}))):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
    assert len(answer["result"]["tools"]) == 8
    process.terminate()
    process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize("mode", ERAS)
def test_a_client_lists_and_calls(command: Command, mode: str) -> None:
    parameters = command.parameters()
    assert len(within(parameters, lambda client: client.list_tools(), mode).tools) == 8
    assert "Postgres" in text(call(parameters, "get_context", mode, query="Which storage?"))
