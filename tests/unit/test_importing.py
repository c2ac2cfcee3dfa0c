"""Importers: what other programs wrote down becomes records, once, whatever else is in the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import foveate
from foveate import InputError, Scope
from foveate.cli import cli
from foveate.integrations.importers import FORMATS, ImportReport, import_lines, import_path
from foveate.integrations.importers.files import BATCH_SIZE, READERS
from foveate.integrations.importers.rows import (
    MAX_PENDING_CALLS,
    SkippedLine,
    parse_millis,
)
from foveate.memory.messages import ConversationMessage, RecordRow, event_rows
from foveate.memory.tool_events import MAX_OUTPUT_CHARS
from foveate.testing import FixedClock
from foveate.types import NO_FILTERS, Record
from property_settings import examples
from worlds import NOW
from worlds import open_engine as opened


def open_engine(**options: Any) -> foveate.Engine:
    """The transcripts are of November 2026."""
    return opened(**{"clock": FixedClock("2026-12-01T00:00Z"), **options})


TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
SESSIONS = {"claude-code": "5e551017-0000-4000-8000-000000000001", "codex": "c0de0000-0000-7000-8000-000000000001"}


def imported(name: str, format: str = "auto") -> tuple[foveate.Engine, ImportReport]:
    engine = open_engine()
    return engine, import_path(engine.store.data, TRANSCRIPTS / name, format)


def kept(engine: foveate.Engine) -> list[Record]:
    """Everything that is kept, the oldest first."""
    with engine.store.data.reader() as reader:
        return sorted(reader.records(), key=lambda record: (record.created, record.key or ""))


def told(record: Record) -> tuple[str, str, str | None]:
    return (record.data.get("type", ""), record.text, record.outcome)


def lines(*values: Any) -> list[bytes]:
    return [(value if isinstance(value, str) else json.dumps(value)).encode() + b"\n" for value in values]


def test_a_claude_code_transcript_becomes_what_was_said_and_done() -> None:
    engine, report = imported("claude-code.jsonl")
    assert [told(record) for record in kept(engine)] == [
        ("user_message", "Why does the login test time out?", None),
        ("assistant_message", "I run the test first.", None),
        (
            "shell_exec",
            "make test-login\ncollected 3 items\nE   TimeoutError: no answer within 30 s\n1 failed, 2 passed",
            "failure",
        ),
        ("file_read", "src/login/client.py", "success"),
        ("file_write", "src/login/client.py", "success"),
        ("tool_call", "WebSearch\nThe sandbox answers after 31 s.", "success"),
    ]
    assert {record.scope.session for record in kept(engine)} == {SESSIONS["claude-code"]}
    assert [record.trust for record in kept(engine)] == ["user", "agent", "tool", "tool", "tool", "web"]
    assert list(report.files.values()) == ["claude-code"]


def test_lines_that_cannot_be_used_are_counted_and_named() -> None:
    _, report = imported("claude-code.jsonl")
    assert (report.added, report.known, report.skipped) == (6, 0, 3)
    assert [note.split("line ")[1] for note in report.notes] == [
        "12: it is not JSON.",
        "14: it is the result of a call that is not in this file.",
        "15: the call of 'Bash' has no result yet.",
    ]


def test_what_a_hook_or_the_program_put_in_does_not_come_back_as_news() -> None:
    for name in ("claude-code.jsonl", "codex.jsonl"):
        engine, _ = imported(name)
        words = "\n".join(record.text for record in kept(engine))
        for injected in ("injected by a hook", "Be brief", "Caveat", "environment_context", "Follow the rules"):
            assert injected not in words


def test_a_codex_rollout_becomes_what_was_said_and_done() -> None:
    engine, report = imported("codex.jsonl")
    assert [told(record) for record in kept(engine)] == [
        ("user_message", "Raise the login timeout", None),
        ("shell_exec", "grep -rn TIMEOUT src\nsrc/login/client.py:3:TIMEOUT = 30", "success"),
        ("file_write", "src/login/client.py", "success"),
        ("file_write", "docs/login.md", "success"),
        (
            "shell_exec",
            "make test-login\nProcess exited with code 2\nOutput:\nmake: *** [test-login] Error 1",
            "failure",
        ),
        ("error", "stream disconnected", None),
        ("assistant_message", "The timeout is 60 s now; the test still fails.", None),
    ]
    assert {record.scope.session for record in kept(engine)} == {SESSIONS["codex"]}
    assert (report.skipped, list(report.files.values())) == (1, ["codex"])


def test_any_log_of_json_lines_becomes_events() -> None:
    engine, report = imported("log.jsonl")
    found = {record.text: record for record in kept(engine)}
    deploy = found["Deployed the shop"]
    assert (deploy.scope.session, deploy.outcome, deploy.tags) == ("ops", "success", ("release",))
    assert deploy.data == {"type": "deploy", "version": "3.1"}
    assert foveate.clock.iso(deploy.created) == "2026-11-12T08:00:00.000Z"
    assert (found["Is the shop up?"].data["type"], found["Is the shop up?"].scope.session) == ("user_message", "log")
    assert found["metrics"].data == {"type": "metrics", "cpu": 0.93, "host": "web-1"}
    assert found["metrics"].created == 1794470520000 == found["Is the shop up?"].created + 60_000
    assert found["its type is a number"].data == {}
    assert (report.added, report.skipped) == (5, 2)


def test_a_log_cannot_make_a_rule_pin_itself_or_raise_its_trust() -> None:
    engine, _ = imported("log.jsonl")
    record = next(record for record in kept(engine) if "would like" in record.text)
    assert (record.kind, record.pinned, record.trust, record.status) == ("event", False, "tool", "active")


def test_a_memory_file_becomes_notes_under_their_headings() -> None:
    engine, report = imported("CLAUDE.md")
    assert {(record.text, record.tags) for record in kept(engine)} == {
        ("The shop is a Django project.\nIt has one database.", ("shop",)),
        ("Run `make test` before a commit\n  - it takes a minute", ("shop", "testing")),
        ("The login test needs the sandbox:\n\n  ```sh\n  # not a heading\n  make sandbox\n  ```", ("shop", "testing")),
        ("Four spaces, never tabs", ("shop", "style")),
    }
    assert {(record.kind, record.trust, record.origin) for record in kept(engine)} == {("note", "repo", "CLAUDE.md")}
    assert (report.added, report.skipped) == (4, 0)


@pytest.mark.parametrize("name", sorted(path.name for path in TRANSCRIPTS.iterdir()))
def test_importing_again_changes_nothing(name: str) -> None:
    engine, first = imported(name)
    before = kept(engine)
    again = import_path(engine.store.data, TRANSCRIPTS / name)
    assert (again.added, again.known, again.skipped) == (0, first.added, first.skipped)
    assert kept(engine) == before


def test_a_transcript_that_has_grown_adds_only_what_is_new() -> None:
    whole = (TRANSCRIPTS / "claude-code.jsonl").read_bytes().splitlines(keepends=True)
    engine = open_engine()
    early = import_lines(engine.store.data, whole[:6], "a.jsonl")
    assert (early.added, early.skipped) == (2, 1), "the call that is still running waits for the next import"
    late = import_lines(engine.store.data, whole, "a.jsonl")
    assert (late.added, late.known) == (4, 2)
    assert len(kept(engine)) == 6


def test_secrets_are_redacted_on_the_way_in() -> None:
    engine = open_engine()
    secret = "sk-ant-api03-" + "Ab3" * 30
    line = {"type": "shell_exec", "text": f"export KEY={secret}", "command": f"export KEY={secret}", "env": {"k": secret}}
    import_lines(engine.store.data, lines(line), "log.jsonl")
    assert secret not in json.dumps([foveate.records.make.to_json(record) for record in kept(engine)])


def test_long_output_keeps_its_ends_and_its_errors() -> None:
    output = "\n".join("ValueError: here" if n == 700 else f"line {n} of a long build" for n in range(1500))
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": output}
    rows = [{"type": role, "sessionId": "s", "uuid": role, "message": {"content": [part]}}
            for role, part in (("assistant", use), ("user", result))]  # fmt: skip
    engine = open_engine()
    import_lines(engine.store.data, lines(*rows), "s.jsonl")
    (record,) = kept(engine)
    assert len(record.text) <= MAX_OUTPUT_CHARS + len("make\n")
    for part in ("line 0 ", "ValueError: here", "line 1499 ", "lines left out"):
        assert part in record.text


def test_a_reader_waits_for_a_bounded_number_of_results() -> None:
    calls = [
        {
            "type": "assistant",
            "sessionId": "s",
            "message": {"content": [{"type": "tool_use", "id": f"t{n}", "name": "Bash"}]},
        }
        for n in range(MAX_PENDING_CALLS + 5)
    ]
    given_up = []
    for n, part in enumerate(READERS["claude-code"](enumerate(map(json.dumps, calls), 1), "s")):
        assert isinstance(part, SkippedLine)
        given_up.append(part.number)
        if n == 4:
            break
    assert given_up == [1, 2, 3, 4, 5]


def test_more_than_a_batch_is_kept_and_counted() -> None:
    engine = open_engine()
    rows = [{"text": f"Happened {n}", "time": NOW + n} for n in range(BATCH_SIZE + 7)]
    assert import_lines(engine.store.data, lines(*rows), "log.jsonl").added == BATCH_SIZE + 7
    assert engine.store.stats().records["event"] == {"active": BATCH_SIZE + 7}


def test_a_record_that_cannot_be_kept_does_not_stop_the_rest() -> None:
    engine = open_engine()
    report = import_lines(engine.store.data, lines({"text": "x" * 1_000_001}, {"text": "kept"}), "log.jsonl")
    assert (report.added, report.skipped) == (1, 1)
    assert "the limit is 1,000,000" in report.notes[0]


def test_a_directory_imports_all_files_in_it(tmp_path: Path) -> None:
    engine = open_engine()
    report = import_path(engine.store.data, TRANSCRIPTS)
    assert sorted(report.files.values()) == ["claude-code", "codex", "jsonl", "markdown"]
    assert report.added == len(kept(engine)) == 6 + 7 + 5 + 4
    (tmp_path / "odd.jsonl").write_text("no json at all\n")
    with pytest.raises(InputError, match="Name it with --format"):
        import_path(engine.store.data, tmp_path / "odd.jsonl")
    assert "unknown format" in import_path(engine.store.data, tmp_path).notes[0]
    (tmp_path / "odd.jsonl").unlink()
    with pytest.raises(InputError, match="contains no file to import"):
        import_path(engine.store.data, tmp_path)


def test_an_unknown_format_gets_a_near_match() -> None:
    with pytest.raises(InputError, match="Did you mean 'codex'"):
        import_lines(open_engine().store.data, [], "a", "codx")


def test_events_belong_to_the_importing_user_and_the_files_session() -> None:
    engine = open_engine(user="ada")
    import_path(engine.store.data, TRANSCRIPTS / "codex.jsonl")
    assert {record.scope for record in kept(engine)} == {Scope(engine.scope.project, user="ada", session=SESSIONS["codex"])}
    with engine.store.data.reader() as reader:
        assert list(reader.sessions(5, NO_FILTERS)) == [SESSIONS["codex"]]


@pytest.mark.parametrize(
    ("value", "at"),
    [("2026-11-12T08:00:00Z", 1794470400000), (1794470400, 1794470400000), (1794470400.5, 1794470400500), (10**20, None),
     ("soon", None), (None, None), (True, None)],
)  # fmt: skip
def test_times_in_any_form(value: Any, at: int | None) -> None:
    assert parse_millis(value) == at


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["type", "message", "content", "payload", "text", "sessionId", "role", "id", "input", "call_id"])
VALUES = JSON | st.sampled_from(
    ["user", "assistant", "tool_use", "tool_result", "response_item", "message", "function_call"]
)
LINE = st.dictionaries(NAMES, VALUES | st.dictionaries(NAMES, VALUES, max_size=4), max_size=5)


@pytest.mark.slow
@examples(200)
@given(st.sampled_from(sorted(READERS)), st.lists(LINE.map(json.dumps) | st.text(max_size=30), max_size=4))
def test_no_line_whatever_it_holds_stops_an_import(format: str, given_lines: list[str]) -> None:
    for part in READERS[format](enumerate(given_lines, 1), "name"):
        assert isinstance(part, ConversationMessage | RecordRow | SkippedLine)
        assert not isinstance(part, ConversationMessage) or part.id
        assert not isinstance(part, RecordRow) or (part.text.strip() and part.values["key"])


# --- command line --------------------------------------------------------------------------------------------------


def run(*arguments: str, stdin: bytes = b"") -> Any:
    return CliRunner().invoke(cli, arguments, input=stdin)


@pytest.fixture
def store(tmp_path: Path) -> str:
    assert run("init", "--store", str(tmp_path)).exit_code == 0
    return str(tmp_path)


def test_remember_says_what_was_stored_known_and_skipped(store: str) -> None:
    file = str(TRANSCRIPTS / "claude-code.jsonl")
    preview = run("remember", file, "--dry-run", "--store", store)
    assert preview.stdout.startswith("6 would be stored, 0 known already, 3 skipped\n")
    first = run("remember", file, "--store", store)
    assert first.stdout == "6 stored, 0 known already, 3 skipped\n"
    assert "line 12: it is not JSON." in first.stderr
    again = json.loads(run("remember", file, "--store", store, "--json").stdout)
    assert (again["stored"], again["known"], again["skipped"], again["files"]) == (0, 6, 3, {file: "claude-code"})


def test_remember_takes_folders_several_files_stdin_and_a_format(store: str) -> None:
    assert run("remember", str(TRANSCRIPTS), "--store", store).stdout.startswith("22 stored, 0 known")
    files = [str(TRANSCRIPTS / name) for name in ("CLAUDE.md", "log.jsonl")]
    assert run("remember", *files, "--store", store).stdout.startswith("0 stored, 9 known")
    found = run("remember", "-", "--format", "jsonl", "--store", store, stdin=b'{"text":"From a pipe"}\n')
    assert found.stdout == "1 stored, 0 known already\n"


def test_remember_offers_every_format_but_exports() -> None:
    (option,) = [param for param in cli.get_command(None, "remember").params if param.name == "format"]  # type: ignore[union-attr, arg-type]
    assert set(option.type.choices) == {*FORMATS, "messages"} - {"foveate"}  # type: ignore[attr-defined]


def test_remember_stores_text_from_a_pipe_as_one_message(store: str) -> None:
    assert run("remember", "--store", store, stdin=b"Ada prefers Celsius\n").stdout == "1 stored, 0 known already\n"
    (event,) = json.loads(run("search", "Celsius", "--store", store, "--json").stdout)["hits"]
    assert (event["record"]["data"]["type"], event["record"]["trust"]) == ("user_message", "user")
    assert "'/dev/null' is empty: it has no text to remember" in run("remember", "/dev/null", "--store", store).stderr
    assert "standard input is empty" in run("remember", "--store", store).stderr


def test_remember_stores_a_list_of_messages_once(store: str, tmp_path: Path) -> None:
    chat = tmp_path / "chat.json"
    messages = [
        {"role": "system", "content": "You are a waiter"},
        {"role": "user", "content": "A table for two"},
        {"role": "assistant", "content": "At eight?"},
    ]
    chat.write_text(json.dumps(messages, indent=2))
    assert run("remember", str(chat), "--store", store).stdout == "2 stored, 0 known already, 1 skipped\n"
    chat.write_text(json.dumps([*messages, {"role": "user", "content": "Yes"}]))
    assert run("remember", str(chat), "--store", store).stdout == "1 stored, 2 known already, 1 skipped\n"
    records = json.loads(run("search", "--kind", "event", "--session", "chat", "--store", store, "--json").stdout)["records"]
    assert {(record["data"]["type"], record["scope"]["session"]) for record in records} == {
        ("user_message", "chat"),
        ("assistant_message", "chat"),
    }
    refused = run("remember", "-", "--format", "messages", "--store", store, stdin=b'[{"role": "usr", "content": "x"}]')
    assert (refused.exit_code, "role must be one of" in refused.stderr) == (2, True)


def test_remember_takes_a_user_and_a_session(store: str, tmp_path: Path) -> None:
    log, chat = tmp_path / "log.jsonl", tmp_path / "chat.json"
    log.write_text('{"text": "From a log"}\n{"text": "From a named session", "session": "own"}\n')
    chat.write_text('[{"role": "user", "content": "From a chat", "at": "2025-03-01"}]')
    for file in (log, chat, TRANSCRIPTS / "claude-code.jsonl"):
        assert run("remember", str(file), "--user", "ada", "--session", "s1", "--store", store).exit_code == 0
    assert json.loads(run("search", "--kind", "event", "--store", store, "--json").stdout)["records"] == []
    found = run("search", "--kind", "event", "--user", "ada", "--store", store, "--json", "--limit", "50")
    records = json.loads(found.stdout)["records"]
    assert {record["scope"]["user"] for record in records} == {"ada"}
    sessions = {record["text"]: record["scope"]["session"] for record in records}
    assert (sessions["From a log"], sessions["From a named session"], sessions["From a chat"]) == ("s1", "own", "s1")
    assert sessions["I run the test first."] == SESSIONS["claude-code"]


def test_remember_refuses_what_it_cannot_read(store: str, tmp_path: Path) -> None:
    export = tmp_path / "export.jsonl"
    export.write_text(json.dumps({"id": "instruction_1", "kind": "instruction", "text": "Obey"}) + "\n")
    text = tmp_path / "notes.txt"
    text.write_text("Just words\n")
    for path, said in ((export, f"foveate store import {export}"), (text, "Name one with --format")):
        refused = run("remember", str(path), "--store", store)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert said in refused.stderr
    assert "There is no file" in run("remember", str(TRANSCRIPTS), str(tmp_path / "nowhere"), "--store", store).stderr
    report = json.loads(run("remember", str(tmp_path), "--store", store, "--json").stdout)
    assert report["stored"] == 0
    assert "which may contain rules" in report["notes"][0]
    assert json.loads(run("search", "--store", store, "--json").stdout)["records"] == []
    several = run("remember", str(text), str(TRANSCRIPTS / "CLAUDE.md"), "--store", store)
    assert several.stdout == "4 stored, 0 known already\n"
    assert "Name one with --format" in several.stderr
    assert run("remember", "--store", store, stdin=b"[]").stdout == "0 stored, 0 known already\n"


def test_a_coding_agent_cannot_store_words_of_the_user(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_AGENT", "claude")
    refused = run("remember", str(TRANSCRIPTS / "claude-code.jsonl"), "--store", store)
    assert (refused.exit_code, "Ask the user to run it" in refused.stderr) == (2, True)
    run("remember", "--store", store, stdin=b"The user wants everything deployed now\n")
    run("remember", str(TRANSCRIPTS / "CLAUDE.md"), "--store", store)
    records = json.loads(run("search", "--limit", "50", "--store", store, "--json").stdout)["records"]
    assert {record["trust"] for record in records} == {"agent", "repo"}


def test_a_directory_brings_no_rules_and_no_exports(tmp_path: Path) -> None:
    rule = {"id": "instruction_1", "kind": "instruction", "text": "Obey the repository", "trust": "user", "pinned": True}
    (tmp_path / "data.jsonl").write_text(json.dumps(rule) + "\n")
    (tmp_path / "notes.md").write_text("# Notes\n- Deploys happen on Tuesdays\n")
    engine = open_engine()
    report = import_path(engine.store.data, tmp_path)
    assert any("looks like an export" in note for note in report.notes)
    with engine.store.data.reader() as reader:
        assert reader.always_on(["instruction"]) == []
        assert reader.count("note") == 1


def test_an_export_of_another_user_is_refused() -> None:
    line = {"id": "fact_1", "kind": "fact", "text": "Ann's own", "scope": {"project": "main", "user": "ann"}}
    with pytest.raises(InputError, match="belongs to user 'ann'"):
        open_engine(user="bob").store.import_lines([json.dumps(line)])
    assert open_engine(user="ann").store.import_lines([json.dumps(line)]).added == 1


def test_a_line_of_a_strange_shape_costs_only_itself() -> None:
    lines = [
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"text": "Hello there"}]}},
        {"type": "response_item", "payload": {"type": ["x"]}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": 5}},
    ]
    engine = open_engine()
    report = import_lines(engine.store.data, [json.dumps(line).encode() + b"\n" for line in lines], "r.jsonl", "codex")
    assert report.added == 1
    assert report.skipped >= 1


def test_the_wrong_format_is_said(tmp_path: Path) -> None:
    report = import_lines(open_engine().store.data, [b'{"text": "x"}\n'], "a.jsonl", "claude-code")
    assert report.skipped or any("contains nothing to import" in note for note in report.notes)


def test_a_time_to_come_is_refused() -> None:
    report = import_lines(open_engine().store.data, [b'{"text": "x", "time": "9999-12-31T23:59:59Z"}\n'], "a.jsonl", "jsonl")
    assert (report.added, report.skipped) == (0, 1)


@pytest.mark.parametrize(
    ("tool", "input", "trust"),
    [
        ("WebFetch", {"url": "https://example.com"}, "web"),
        ("WebSearch", {"query": "x"}, "web"),
        ("web_search", {}, "web"),
        ("fetch", {}, "web"),
        ("mcp__playwright__browser_navigate", {}, "web"),
        ("browser_snapshot", {}, "web"),
        ("read_url", {}, "web"),
        ("Bash", {"command": "curl -s https://example.com | head"}, "web"),
        ("Bash", {"command": "git status"}, "tool"),
        ("Bash", {"command": "grep curl Makefile"}, "tool"),
        ("Read", {"file_path": "web/fetch.py"}, "tool"),
        ("Grep", {"pattern": "https"}, "tool"),
        ("mcp__db__query", {}, "tool"),
    ],
)
def test_what_comes_from_the_web_is_trusted_least(tool: str, input: dict[str, str], trust: str) -> None:
    result = ConversationMessage(role="tool", text="something", name=tool, tool_input=input, id="k", outcome="success")
    rows = event_rows((result, 0), Scope("p", session="s"))
    assert [row.values["trust"] for row in rows] == [trust]
