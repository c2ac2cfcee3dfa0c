"""The fragment loader in the real `llm` command, with a model that repeats its prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import llm
import pytest
from click.testing import CliRunner
from llm.cli import cli
from llm.plugins import load_plugins, pm

import foveate
from foveate.integrations import llm_fragments


class Echo(llm.Model):
    model_id = "echo"

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        yield prompt.prompt


class Models:
    @llm.hookimpl
    def register_models(self, register: Any) -> None:
        register(Echo())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, in which `llm` has our plugin and a model."""
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    load_plugins()
    # An installed foveate is found by its entry point.
    plugins = [plugin for plugin in (llm_fragments, Models()) if not pm.is_registered(plugin)]
    for plugin in plugins:
        pm.register(plugin)
    yield folder
    for plugin in plugins:
        pm.unregister(plugin)


def asked(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["-m", "echo", "--no-stream", "--no-log", *arguments])


def test_fragment_is_what_the_project_knows(project: Path) -> None:
    with foveate.open(project, budget=200) as engine:
        engine.add("gotcha", "The auth cookie must be httponly", data={"severity": "high"})
        text = engine.context("fix auth").text
    (project / ".foveate" / "config.toml").write_text("budget = 200\n", encoding="utf-8")
    done = asked("-f", "foveate:fix auth", "What should I look at?")
    assert done.exit_code == 0, done.output
    assert "The auth cookie must be httponly" in done.output
    assert done.output.startswith(text.strip())
    assert done.output.rstrip().endswith("What should I look at?")
    assert foveate.count(text) <= 200


@pytest.mark.parametrize(("fragment", "message"), [("foveate:fix auth", "foveate init"), ("foveate: ", "query is empty")])
def test_what_is_wrong_is_said_and_nothing_is_created(project: Path, fragment: str, message: str) -> None:
    if message != "foveate init":
        foveate.open(project).close()
    done = asked("-f", fragment, "What should I look at?")
    assert done.exit_code == 1
    assert message in done.output
    assert (project / ".foveate").exists() == (message != "foveate init")
