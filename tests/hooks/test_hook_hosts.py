"""The events of coding agents: what is kept of them, what is answered, and what does nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import process_time
from typing import Any

import pytest

import foveate
from foveate import InputError
from foveate.integrations.hooks import program
from foveate.integrations.hooks.delivery import delivery_stats
from foveate.integrations.hooks.hosts import EVENTS, HOSTS, handle
from foveate.integrations.importers import import_lines
from foveate.testing import FixedClock
from foveate.types import NO_FILTERS, Record
from worlds import open_engine

S = "11111111-2222"
SESSION = {"session_id": S, "cwd": "/project"}
CHAT = {"conversation_id": S, "generation_id": "g-1", "workspace_roots": ["/project"]}

START = {
    "claude": {**SESSION, "hook_event_name": "SessionStart", "source": "startup"},
    "codex": {**SESSION, "hook_event_name": "SessionStart", "source": "startup", "model": "m", "transcript_path": None},
    "cursor": {**CHAT, "hook_event_name": "sessionStart"},
    "gemini": {**SESSION, "hook_event_name": "SessionStart", "source": "startup", "timestamp": "2026-11-15T00:00:00Z"},
}
ASK = {
    "claude": {**SESSION, "hook_event_name": "UserPromptSubmit", "source": "user"},
    "codex": {**SESSION, "hook_event_name": "UserPromptSubmit", "turn_id": "t-1"},
    "cursor": {**CHAT, "hook_event_name": "beforeSubmitPrompt", "attachments": []},
    "gemini": {**SESSION, "hook_event_name": "BeforeAgent"},
}
SHELL = {
    "claude": {
        **SESSION,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "toolu_1",
        "tool_input": {"command": "make test"},
        "tool_response": {"stdout": "3 passed", "stderr": "", "interrupted": False},
    },
    "codex": {
        **SESSION,
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": "call_1",
        "tool_input": {"command": "make test"},
        "tool_response": "Exit code: 0\n3 passed",
    },
    "cursor": {
        **CHAT,
        "hook_event_name": "afterShellExecution",
        "command": "make test",
        "output": "3 passed",
        "duration": 1,
    },
    "gemini": {
        **SESSION,
        "hook_event_name": "AfterTool",
        "tool_name": "run_shell_command",
        "tool_input": {"command": "make test"},
        "tool_response": {"llmContent": "3 passed", "returnDisplay": "3 passed"},
        "timestamp": "2026-11-15T00:00:00Z",
    },
}
SAID = {
    "claude": {**SESSION, "hook_event_name": "Stop", "stop_hook_active": False},
    "codex": {**SESSION, "hook_event_name": "Stop"},
    "cursor": {**CHAT, "hook_event_name": "afterAgentResponse"},
    "gemini": {**SESSION, "hook_event_name": "AfterAgent", "prompt": "?", "stop_hook_active": False},
}
ANSWER = {
    "claude": "last_assistant_message",
    "codex": "last_assistant_message",
    "cursor": "text",
    "gemini": "prompt_response",
}
COMPACT = {"claude": "PostCompact", "codex": "PostCompact", "cursor": "preCompact", "gemini": "PreCompress"}
END = {"cursor": "sessionEnd", "gemini": "SessionEnd"}


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        engine.add("instruction", "Run make test before a commit")
        engine.add("fact", "Redis runs on port 6380", subject="redis", attribute="port")
        yield engine


def ask(engine: foveate.Engine, host: str, prompt: Any, **more: Any) -> dict[str, Any]:
    return handle(engine, host, {**ASK[host], "prompt": prompt, **more})


def told(answer: dict[str, Any]) -> str:
    return str(answer.get("hookSpecificOutput", answer).get("additionalContext") or answer.get("additional_context") or "")


def events(engine: foveate.Engine, kind: str = "event") -> list[Record]:
    with engine.store.data.store.read(engine.scope) as reader:
        return reader.recent([kind], 100, NO_FILTERS)[::-1]


@pytest.mark.parametrize("host", HOSTS)
def test_start_and_prompt_are_answered_in_the_form_of_the_host(engine: foveate.Engine, host: str) -> None:
    start = handle(engine, host, START[host])
    asked = ask(engine, host, "Which port has Redis?")
    assert "make test" in told(start)
    assert "6380" in told(asked)
    assert "make test" not in told(asked)
    if host == "cursor":
        assert (start.keys(), asked.keys()) == ({"additional_context"}, {"continue", "additional_context"})
        assert asked["continue"] is True
    else:
        for answer, event in ((start, START[host]), (asked, ASK[host])):
            assert answer.keys() == {"hookSpecificOutput"}
            assert answer["hookSpecificOutput"].keys() == {"hookEventName", "additionalContext"}
            assert answer["hookSpecificOutput"]["hookEventName"] == event["hook_event_name"]
    assert ask(engine, host, "Which port was that?") == {}
    assert json.loads(json.dumps(asked)) == asked


@pytest.mark.parametrize("host", HOSTS)
def test_what_is_asked_done_and_said_becomes_events_of_the_session(engine: foveate.Engine, host: str) -> None:
    for _ in range(2):  # the same again adds nothing
        ask(engine, host, "Why is the test red?")
        assert handle(engine, host, SHELL[host]) == {}
        assert handle(engine, host, {**SAID[host], ANSWER[host]: "It was the clock."}) == {}
    found = {record.data["type"]: record for record in events(engine)}
    assert len(events(engine)) == 3
    assert found["user_message"].text == "Why is the test red?"
    assert (found["user_message"].trust, found["assistant_message"].trust) == ("user", "agent")
    assert found["assistant_message"].text == "It was the clock."
    assert (found["shell_exec"].data["command"], found["shell_exec"].outcome) == ("make test", "success")
    assert "3 passed" in found["shell_exec"].text
    assert {record.scope.session for record in found.values()} == {S}


@pytest.mark.parametrize(
    ("host", "change"),
    [
        ("claude", {"hook_event_name": "PostToolUseFailure", "error": "exit 2", "tool_response": None}),
        ("claude", {"tool_response": {"stdout": "", "stderr": "killed", "interrupted": True}}),
        ("codex", {"tool_response": "Exit code: 2\n1 failed"}),
        ("codex", {"tool_response": {"output": "1 failed", "metadata": {"exit_code": 2}}}),
        ("gemini", {"tool_response": {"llmContent": "1 failed", "error": {"message": "exit 2"}}}),
    ],
)
def test_a_failed_call_is_kept_as_a_failure(engine: foveate.Engine, host: str, change: dict[str, Any]) -> None:
    handle(engine, host, {**SHELL[host], **change})
    assert [record.outcome for record in events(engine)] == ["failure"]


def test_importing_the_transcript_later_adds_nothing_twice(engine: foveate.Engine) -> None:
    ask(engine, "claude", "Why is  the\ntest red? <private>my password is hunter2</private>")
    handle(engine, "claude", SHELL["claude"])
    handle(engine, "claude", {**SAID["claude"], ANSWER["claude"]: "It was the clock."})
    tool = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make test"}}
    prompt = "Why is  the\ntest red? <private>my password is hunter2</private>"
    parts = [
        ("user", prompt),
        ("assistant", [tool]),
        ("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "3 passed"}]),
        ("assistant", [{"type": "text", "text": "It was the clock."}]),
        ("user", "One more thing"),
    ]
    lines = [
        json.dumps({"type": role, "uuid": f"u-{n}", "sessionId": S, "message": {"role": role, "content": content}}).encode()
        for n, (role, content) in enumerate(parts)
    ]
    done = import_lines(engine.store.data, lines, f"{S}.jsonl")
    assert (done.added, done.known) == (1, 3)
    assert not any("hunter2" in record.text for record in events(engine))


def test_importing_a_rollout_later_adds_no_call_twice(engine: foveate.Engine) -> None:
    ask(engine, "codex", "Why is the test red?")
    handle(engine, "codex", SHELL["codex"])
    call = {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": '{"command": "make test"}'}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why is the test red?"}]}
    payloads = [said, call, {"type": "function_call_output", "call_id": "call_1", "output": "3 passed"}]
    lines = [json.dumps({"type": "session_meta", "payload": {"id": S}}).encode()]
    lines += [json.dumps({"type": "response_item", "payload": payload}).encode() for payload in payloads]
    done = import_lines(engine.store.data, lines, "rollout-1.jsonl")
    assert (done.added, done.known) == (0, 2)


@pytest.mark.parametrize(
    ("prompt", "kept"),
    [
        ("Use <private>my own key</private> for it", "Use  for it"),
        ("See <PRIVATE>secret\nlines", "See"),
        ("<private>all of it</private>", None),
        ("<foveate-context>\n## Known\n- old\n</foveate-context>\nGo on", "Go on"),
        ("<system-reminder>wake up</system-reminder>", None),
        ("The key is AKIAIOSFODNN7EXAMPLE", "[REDACTED"),
    ],
)
def test_what_is_private_injected_or_secret_is_not_kept(engine: foveate.Engine, prompt: str, kept: str | None) -> None:
    ask(engine, "claude", prompt)
    found = events(engine)
    assert len(found) == (kept is not None)
    for record in found:
        assert kept in record.text if kept == "[REDACTED" else record.text == kept
        assert "AKIA" not in record.text


@pytest.mark.parametrize("source", ["system", "loop_wakeup"])
def test_a_prompt_of_a_program_is_neither_kept_nor_answered(engine: foveate.Engine, source: str) -> None:
    assert ask(engine, "claude", "Which port has Redis?", source=source) == {}
    assert events(engine) == []
    assert ask(engine, "claude", "Which port has Redis?", source="sdk") != {}


def test_what_foveate_told_through_its_tools_is_no_news(engine: foveate.Engine) -> None:
    handle(engine, "claude", {**SHELL["claude"], "tool_name": "mcp__foveate__search"})
    assert events(engine) == []


@pytest.mark.parametrize("host", HOSTS)
def test_after_a_compaction_the_next_answer_is_whole(engine: foveate.Engine, host: str) -> None:
    handle(engine, host, START[host])
    ask(engine, host, "Which port has Redis?")
    base = CHAT if host == "cursor" else SESSION
    handle(engine, host, {**base, "hook_event_name": COMPACT[host], "compact_summary": "We moved Redis to port 6380."})
    assert delivery_stats(engine)["windows"] == 0
    again = told(ask(engine, host, "Which port has Redis?"))
    assert "make test" in again
    assert "6380" in again
    assert "We moved" not in again  # it is in the window already
    kept = events(engine, "episode")
    assert [record.text for record in kept] == ["We moved Redis to port 6380."]
    assert "We moved" in told(ask(engine, host, "Which port did we move Redis to?", session_id="s-2", conversation_id="s-2"))
    handle(engine, host, {**base, "hook_event_name": END.get(host, "SessionEnd")})
    assert delivery_stats(engine)["windows"] == (
        1 if host in END else 2
    )  # the others' sessions can be resumed, with all they hold


@pytest.mark.parametrize("host", HOSTS)
def test_compactions_are_on_the_timeline_of_the_session(host: str) -> None:
    clock, base = FixedClock(), CHAT if host == "cursor" else SESSION
    with open_engine(clock=clock) as engine:
        ask(engine, host, "Which port has Redis?")
        for _ in range(2):
            handle(engine, host, {**base, "hook_event_name": COMPACT[host]})
            clock.tick(1000)
        found = engine.receipts.timeline(S)
    assert len(found.turns) == 1
    assert [one.at for one in found.compactions] == [clock.now - 2000, clock.now - 1000]


@pytest.mark.parametrize("session", [S, None, "another"])
def test_no_prompt_shows_that_a_conversation_was_compacted(session: str | None) -> None:
    with open_engine() as engine:
        handle(engine, "claude", {**SESSION, "hook_event_name": COMPACT["claude"]})
        for profile in ("default", "chat", "coding"):
            found = engine.context("When was the conversation compacted?", session=session, profile=profile)
            assert "compacted" not in found.text
        assert engine.search("conversation compacted") == []
        assert len(engine.receipts.timeline(S).compactions) == 1


def test_a_session_that_goes_on_starts_with_what_it_asked_last(engine: foveate.Engine) -> None:
    handle(engine, "claude", START["claude"])
    ask(engine, "claude", "Which port has Redis?")
    again = told(handle(engine, "claude", {**START["claude"], "source": "compact"}))
    assert "make test" in again
    assert "6380" in again


@pytest.mark.parametrize(("host", "again"), [("claude", False), ("codex", False), ("gemini", True)])
def test_a_resumed_session_is_told_again_only_where_the_host_forgets(engine: foveate.Engine, host: str, again: bool) -> None:
    handle(engine, host, START[host])
    ask(engine, host, "Which port has Redis?")
    assert ("6380" in told(handle(engine, host, {**START[host], "source": "resume"}))) == again
    engine.add("fact", "Redis moved to port 6381", subject="redis", attribute="port")
    asked = told(ask(engine, host, "Which port has Redis?"))
    assert "6381" in asked
    assert "make test" not in asked


def test_an_agent_within_the_session_has_a_window_of_its_own(engine: foveate.Engine) -> None:
    handle(engine, "claude", START["claude"])
    other = {**SESSION, "agent_id": "a-1", "agent_type": "Explore"}
    assert "make test" in told(handle(engine, "claude", {**other, "hook_event_name": "SubagentStart"}))
    assert delivery_stats(engine)["windows"] == 2
    handle(engine, "claude", {**other, "hook_event_name": "SubagentStop", "last_assistant_message": "Found it."})
    assert delivery_stats(engine)["windows"] == 1
    assert [record.text for record in events(engine)] == ["Found it."]


HANDOFF = """All done.

```handoff
schema: handoff/v1
status: completed
summary: The login works.
gotchas:
  - issue: The cookie is not renewed
    severity: high
```
"""


def test_a_handoff_in_the_last_answer_is_learned_for_the_current_task(engine: foveate.Engine) -> None:
    task = engine.scoped(session=S).tasks.push("Fix the login").id
    handle(engine, "claude", {**SAID["claude"], ANSWER["claude"]: HANDOFF})
    assert engine.tasks.get(task).status == "completed"
    assert [record.text for record in events(engine, "gotcha")] == ["The cookie is not renewed"]


@pytest.mark.parametrize("named", ["task_id: login", "task_id: gone"])
def test_a_handoff_names_its_task_or_is_of_the_only_one_at_work(engine: foveate.Engine, named: str) -> None:
    engine.tasks.add("Login", key="login")
    engine.tasks.edit("login", status="active")
    handle(engine, "codex", {**SAID["codex"], ANSWER["codex"]: HANDOFF.replace("status:", f"{named}\nstatus:")})
    assert engine.tasks.get("login").status == "completed"


def test_a_handoff_of_nobody_and_an_answer_with_headings_teach_nothing(engine: foveate.Engine) -> None:
    handle(engine, "claude", {**SAID["claude"], ANSWER["claude"]: HANDOFF})
    engine.tasks.add("Login", key="login")
    engine.tasks.edit("login", status="active")
    handle(engine, "claude", {**SAID["claude"], ANSWER["claude"]: "## Summary\nDone.\n\n## Gotchas\n- The cookie"})
    assert engine.tasks.get("login").status == "active"
    assert events(engine, "gotcha") == []
    assert HANDOFF.strip() in [record.text for record in events(engine)], "its text is kept with the session"
    assert len(events(engine)) == 2


def test_a_handoff_that_nobody_should_parse_is_kept_for_the_current_task(engine: foveate.Engine) -> None:
    task = engine.scoped(session=S).tasks.push("Fix the login").id
    unparsed = HANDOFF.replace("The login works.", "&a Works\nextra: *a")
    handle(engine, "claude", {**SAID["claude"], ANSWER["claude"]: unparsed})
    assert engine.tasks.get(task).status == "completed"
    assert [("*a" in record.text, record.data["rung"]) for record in events(engine, "handoff")] == [(True, "raw")]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(
    "event",
    [
        None, [], "text", 7, {}, {"hook_event_name": 3}, {"hook_event_name": "Nothing", "session_id": S},
        {"hook_event_name": ["UserPromptSubmit"], "session_id": S},
    ],
)  # fmt: skip
def test_what_is_no_event_of_ours_does_nothing(engine: foveate.Engine, host: str, event: Any) -> None:
    assert handle(engine, host, event) == {}
    assert events(engine) == []


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("value", [None, 3, [], {"a": [1]}, "", " ", "\ud800", "nul\x00"])
def test_fields_of_a_wrong_form_are_no_error(engine: foveate.Engine, host: str, value: Any) -> None:
    wrong = "prompt tool_name tool_input tool_response tool_use_id command file_path last_assistant_message compact_summary"
    fields = dict.fromkeys([*wrong.split(), "source", "agent_id", "text", "cwd"], value)
    for name in EVENTS[host]:
        event = {"hook_event_name": name, "session_id": S, **fields}
        assert isinstance(handle(engine, host, event), dict)
        assert handle(engine, host, {**event, "session_id": value}) == {} or isinstance(value, str)


def test_an_unknown_host_is_named_with_its_neighbours(engine: foveate.Engine) -> None:
    with pytest.raises(InputError, match="Did you mean 'claude'"):
        handle(engine, "claud", {})


def test_the_same_prompt_in_another_turn_is_another_event() -> None:
    with open_engine() as engine:
        for turn, prompt in enumerate(("run the tests", "what is the parser", "run the tests")):
            handle(engine, "claude", {**ASK["claude"], "prompt": prompt, "prompt_id": f"p-{turn}"})
        with engine.store.data.reader() as reader:
            kept = [record.text for record in reader.recent(["event"], 10, NO_FILTERS, session=S)]
    assert sorted(kept) == ["run the tests", "run the tests", "what is the parser"]


@pytest.mark.parametrize("prompt", ["<system-reminder>" * 11_000 + " m", "\n \n" * 33_000, "schema" + " " * 100_000])
def test_hostile_words_take_no_more_than_a_moment(prompt: str) -> None:
    with open_engine() as engine:
        began = process_time()
        handle(engine, "claude", {**SAID["claude"], "last_assistant_message": prompt})
        handle(engine, "claude", {**ASK["claude"], "prompt": prompt[:20_000]})
    assert process_time() - began < 5


def test_what_programs_put_into_a_prompt_is_not_kept() -> None:
    said = "<system-reminder>be good</system-reminder>run <system-reminder> the tests"
    with open_engine() as engine:
        handle(engine, "claude", {**ASK["claude"], "prompt": said})
        with engine.store.data.reader() as reader:
            (kept,) = reader.recent(["event"], 10, NO_FILTERS, session=S)
    assert kept.text == "run <system-reminder> the tests"


def test_the_hook_program_knows_the_same_hosts() -> None:
    assert program.HOSTS == HOSTS
