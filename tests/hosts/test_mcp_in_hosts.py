"""Hosts offer our tools to the model, and what a tool answers is what the model reads."""

from __future__ import annotations

from typing import Any

import pytest
from fake_api import FakeAPI, Use, results_in, tools_in
from host_cli import Host, codex_settings

TOOLS = {"get_context", "search", "expand", "remember", "check", "feedback", "claim_task", "finish_task"}
QUESTION = "Which database do we use for storage?"


@pytest.fixture(params=["claude", "codex"])
def host(request: pytest.FixtureRequest, reached: dict[str, Any], fake_api: FakeAPI) -> Host:
    """A host whose configuration names our server."""
    found: Host = request.getfixturevalue(request.param)
    found.write("mcp.json", {"mcpServers": {"foveate": reached}})
    found.write(".codex/config.toml", codex_settings(fake_api, reached))
    return found


def test_the_model_is_offered_our_tools_and_reads_the_context_that_it_asked_for(host: Host, fake_api: FakeAPI) -> None:
    fake_api.script = [Use("get_context", {"query": QUESTION}), "Postgres."]
    host(QUESTION)
    first, second = fake_api.turns
    assert {f"mcp__foveate__{name}" for name in TOOLS} <= set(tools_in(first))
    (read,) = results_in(second)
    assert "## Relevant Past Decisions\n- Chose Postgres over ChromaDB for unified storage" in read  # Markdown, not JSON
    assert "(Context ctx_" in read


def test_what_the_model_remembers_in_one_turn_it_finds_in_the_next(host: Host, fake_api: FakeAPI) -> None:
    fake_api.script = [Use("remember", {"text": "Deploys happen on Tuesdays", "kind": "fact"}), "Kept."]
    host("Remember when we deploy.")
    fake_api.script = [Use("search", {"query": "deploys Tuesdays"}), "On Tuesdays."]
    host("When do we deploy?")
    assert "Deploys happen on Tuesdays" in results_in(fake_api.turns[-1])[-1]


def test_an_error_reaches_the_model_as_what_to_do(host: Host, fake_api: FakeAPI) -> None:
    fake_api.script = [Use("remember", {"text": "The port is 80", "kind": "fcat"}), "I will try again."]
    host("Remember the port.")
    (read,) = results_in(fake_api.turns[-1])
    assert "Did you mean 'fact'?" in read
