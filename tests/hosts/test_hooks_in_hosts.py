"""Hooks in the hosts themselves: what the model is told, what is kept of a session, and that no turn is disturbed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fake_api import FakeAPI, Use, messages_in, texts_in
from host_cli import Host, codex_hooks, codex_settings, foveate_says

import foveate
from foveate.integrations.importers.rows import CONTEXT_BEGIN
from foveate.types import NO_FILTERS, Record

RULE, FACT, LATER = "Run make test before a commit", "Redis runs on port 6380", "The redis port is open to the office only"
QUESTION = "Which port does redis use?"
WITHOUT_TRUST = "--dangerously-bypass-hook-trust"
SHELL = {"claude": Use("Bash", {"command": "echo pong"}), "codex": Use("exec_command", {"cmd": "echo pong"})}
UNHEARD = {
    "claude": Use("Read", {"file_path": "README.md"}),
    "codex": Use("update_plan", {"plan": [{"step": "Look", "status": "completed"}]}),
}
"""Calls that change nothing: no hook is asked for them, and only a transcript has them."""

HANDOFF = """Done, and handed over.

```handoff
schema: handoff/v1
status: completed
summary: The login works.
gotchas:
  - issue: The cookie is not renewed
    severity: high
```"""


@pytest.fixture(params=["claude", "codex"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def host(request: pytest.FixtureRequest, name: str, project: Path, fake_api: FakeAPI) -> Host:
    """A host in a project that knows a rule and a fact; nothing is installed yet."""
    with foveate.open(project) as engine:
        engine.add("instruction", RULE)
        engine.add("fact", FACT, subject="redis", attribute="port")
    found: Host = request.getfixturevalue(name)
    found.write(".codex/config.toml", codex_settings(fake_api, trusted=project))
    # A resumed session would take another model than a new one, and say so in its prompt.
    found.options += ["--allowedTools=Bash", "--model=claude-opus-4-8"] if name == "claude" else [WITHOUT_TRUST]
    return found


@pytest.fixture
def hooked(host: Host, name: str) -> Host:
    """The same with the hooks in the project's settings."""
    foveate_says(host, "install", name, "--yes")
    return host


def asked(host: Host, api: FakeAPI, prompt: str = QUESTION) -> str:
    """A turn of the session; all that the model has read of it at its end."""
    host(prompt)
    return texts_in(api.turns[-1])


def events(engine: foveate.Engine) -> list[Record]:
    with engine.store.data.store.read(engine.scope) as reader:
        return reader.recent(["event"], 100, NO_FILTERS)[::-1]


def test_each_thing_is_said_once_and_a_turn_brings_only_what_is_new(hooked: Host, fake_api: FakeAPI) -> None:
    first = asked(hooked, fake_api)
    assert first.index(RULE) < first.index(FACT)
    with foveate.open(hooked.folder) as engine:
        later = engine.add("fact", LATER).record
    second = asked(hooked, fake_api, "Who may use that redis port?")
    assert [second.count(text) for text in (RULE, FACT, LATER)] == [1, 1, 1]
    with foveate.open(hooked.folder) as engine:
        engine.edit(later.id, status="retired")
    third = asked(hooked, fake_api, "Which redis port again?")
    assert f"{CONTEXT_BEGIN}## No longer holds\n- {LATER}\n" in third
    fourth = asked(hooked, fake_api, "And the redis port at midnight?")
    assert fourth.count(CONTEXT_BEGIN) == third.count(CONTEXT_BEGIN) == 4  # at the start, then with three prompts
    assert [fourth.count(text) for text in (RULE, FACT, LATER)] == [1, 1, 2]


def test_what_was_sent_before_keeps_its_place_for_the_cache(hooked: Host, fake_api: FakeAPI, name: str) -> None:
    fake_api.script = [SHELL[name], "Redis listens on 6380."]
    for prompt in (QUESTION, "Which redis port again?", "And at midnight?"):
        with foveate.open(hooked.folder) as engine:
            engine.add("fact", f"The redis port was asked for: {prompt}")
        hooked(prompt)
    assert len(fake_api.turns) == 4
    for before, after in pairwise(fake_api.turns):
        assert [before.get(part) for part in ("system", "tools")] == [after.get(part) for part in ("system", "tools")]
        old, new = messages_in(before), messages_in(after)
        assert new[: len(old)] == old


def test_a_session_is_kept_once_with_whose_word_it_is_and_a_handoff_ends_the_task(
    hooked: Host, fake_api: FakeAPI, name: str
) -> None:
    with foveate.open(hooked.folder) as engine:
        engine.tasks.add("Fix the login", key="login")
        engine.tasks.edit("login", status="active")
    fake_api.script = [SHELL[name], UNHEARD[name], HANDOFF]
    hooked(QUESTION)
    (transcript,) = hooked.home.glob(".claude/projects/*/*.jsonl" if name == "claude" else ".codex/sessions/**/*.jsonl")
    with foveate.open(hooked.folder) as engine:
        heard = events(engine)
        assert sorted((each.data["type"], each.trust, each.text) for each in heard) == [
            ("assistant_message", "agent", HANDOFF),
            ("shell_exec", "tool", "echo pong\npong"),
            ("user_message", "user", QUESTION),
        ]
        assert {each.scope.session for each in heard} == {transcript.stem[-36:]}  # its name ends with the session's
        assert engine.tasks.get("login").status == "completed"
        assert "The cookie is not renewed" in engine.context("renew the cookie").text
    assert foveate_says(hooked, "remember", str(transcript)).startswith("1 stored, 3 known already")
    assert foveate_says(hooked, "remember", str(transcript)).startswith("0 stored, 4 known already")
    with foveate.open(hooked.folder) as engine:
        known = {each.id for each in heard}
        (added,) = (each for each in events(engine) if each.id not in known)
        assert added.text.startswith("README.md" if name == "claude" else "update_plan")


@pytest.mark.parametrize("name", ["codex"], indirect=True)
def test_codex_does_nothing_with_hooks_that_nobody_trusts_and_doctor_says_so(hooked: Host, fake_api: FakeAPI) -> None:
    hooked.options.remove(WITHOUT_TRUST)
    assert CONTEXT_BEGIN not in asked(hooked, fake_api)
    assert "Codex does not trust the hooks" in foveate_says(hooked, "doctor")
    settings = codex_settings(fake_api, trusted=hooked.folder)
    for hook in codex_hooks(hooked):
        assert hook["trustStatus"] == "untrusted"
        settings += f'[hooks.state."{hook["key"]}"]\ntrusted_hash = "{hook["currentHash"]}"\n'
    hooked.write(".codex/config.toml", settings)
    assert "Codex does not trust the hooks" not in foveate_says(hooked, "doctor")
    told = asked(hooked, fake_api, "Which redis port again?")
    assert [told.count(text) for text in (RULE, FACT)] == [1, 1]  # a session from before the hooks is told all of it


def test_after_uninstalling_files_are_as_before_and_nothing_is_said(host: Host, fake_api: FakeAPI, name: str) -> None:
    def files() -> dict[str, bytes]:
        found = (path for path in host.folder.rglob("*") if path.is_file() and ".foveate" not in path.parts)
        return {str(path): path.read_bytes() for path in found}

    theirs = {"claude": (".claude/settings.local.json", '{"env" :{}}'), "codex": (".codex/config.toml", "# ours\n")}
    path, text = theirs[name]
    (host.folder / path).parent.mkdir()
    (host.folder / path).write_text(text, "utf-8")
    before = files()
    foveate_says(host, "install", name, "--yes")
    assert files() != before
    assert RULE in asked(host, fake_api)
    foveate_says(host, "uninstall", name, "--yes")
    assert files() == before
    host.turns = 0  # a session of its own
    host(QUESTION)
    assert "foveate" not in json.dumps(fake_api.turns[-1])


def damaged(folder: Path) -> None:
    for path in (folder / ".foveate").glob("state.db*"):
        path.write_bytes(b"no database " * 500)


def dead(folder: Path) -> None:
    (folder / ".foveate" / "service.json").write_text('{"url": "http://127.0.0.1:1", "pid": 1}', "utf-8")


@pytest.mark.parametrize(("broken", "blocks"), [(damaged, 0), (dead, 2)])
def test_hooks_that_cannot_answer_disturb_no_turn(
    hooked: Host, fake_api: FakeAPI, name: str, broken: Callable[[Path], None], blocks: int
) -> None:
    broken(hooked.folder)
    fake_api.script = [SHELL[name], "Redis listens on 6380."]
    told = json.dumps(hooked(QUESTION))
    assert "Redis listens on 6380." in told
    assert texts_in(fake_api.turns[-1]).count(CONTEXT_BEGIN) == blocks
    log = hooked.folder / ".foveate" / "hook.log"
    assert (log.exists() and "Damaged" in log.read_text("utf-8")) == (blocks == 0)


def test_the_plugin_is_sound_for_its_host_and_its_hooks_speak(host: Host, fake_api: FakeAPI, name: str) -> None:
    folder = Path(foveate_says(host, "install", "--plugin-dir").strip())
    host.environment["PATH"] += f":{Path(sys.executable).parent}"

    def run(*arguments: str) -> None:
        command = [str(host.program), "plugin", *arguments]
        subprocess.run(command, env=host.environment, cwd=host.folder, check=True, timeout=60, stdout=subprocess.DEVNULL)

    if name == "claude":
        run("validate", str(folder))
        host.options.append(f"--plugin-dir={folder}")
    else:
        run("marketplace", "add", str(market(host.home / "market", folder)))
        run("add", "foveate@local")
        assert {hook["pluginId"] for hook in codex_hooks(host)} == {"foveate@local"}
    told = asked(host, fake_api)
    assert [told.count(text) for text in (RULE, FACT)] == [1, 1]


def market(place: Path, plugin: Path) -> Path:
    """A marketplace of one's own, as the guide has it."""
    listed: dict[str, Any] = {"name": "foveate", "source": {"source": "local", "path": "./foveate"}}
    (place / ".agents" / "plugins").mkdir(parents=True)
    (place / ".agents" / "plugins" / "marketplace.json").write_text(json.dumps({"name": "local", "plugins": [listed]}))
    (place / "foveate").symlink_to(plugin)
    return place
