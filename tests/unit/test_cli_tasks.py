"""Tasks, handoffs, the stack and agents on the command line: arguments in; stdout, stderr, exit code and a store out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foveate.cli import cli

HANDOFF = """---
schema: handoff/v1
status: completed
summary: POST /login answers with a token.
files_created:
  - {path: src/auth/login.py, lines: 1-40, purpose: The login endpoint}
patterns_discovered:
  - {pattern: Handlers return a Result, applies_to: [auth]}
gotchas:
  - {issue: bcrypt cuts passwords at 72 bytes, severity: high}
open_questions:
  - {question: Do tokens expire after a day?, blocking: true}
decisions:
  - {decision: Tokens are JWT, rationale: No session store}
---

# Login
"""


def run(*args: str, stdin: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli, list(args), input=stdin, env=env, catch_exceptions=False)


def ok(*args: str, stdin: str | bytes | None = None) -> str:
    result = run(*args, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def document(*args: str, code: int = 0, stdin: str | bytes | None = None) -> Any:
    result = run(*args, "--json", stdin=stdin)
    assert result.exit_code == code, result.stderr
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout)
    assert found["schema_version"] == 1
    return found


def refused(result: Result, code: int) -> str:
    """The one line that says why; nothing is on stdout."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("foveate: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store in the current directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    ok("init")
    return folder


@pytest.fixture
def tasks() -> dict[str, str]:
    """Two tasks: login waits for the user model."""
    model = ok("task", "add", "User model", "--key", "model", "--objective", "Have a users table")
    return {"model": model, "login": ok("task", "add", "Login", "--key", "login", "--depends-on", "model")}


@pytest.fixture
def file(project: Path) -> str:
    (project / "handoff.md").write_text(HANDOFF, "utf-8")
    return "handoff.md"


# --- add, list, show -----------------------------------------------------------------------------------------------


def test_add_prints_the_id_alone_and_keeps_every_field(tasks: dict[str, str]) -> None:
    result = run(
        "task", "add", "Sessions", "--objective", "-", "--description", "As the old site had them",
        "--criterion", "Log-out ends a session", "--criterion", "Two devices work", "--test", "pytest tests/sessions",
        "--type", "feature", "--complexity", "complex", "--time", "2h", "--file", "src/sessions.py:create",
        "--file", "src/app.py", "--step", "Write the table", "--step", "Wire it in", "--depends-on", "login",
        "--depends-on", "docs/auth.md", "--parent", "model", "--key", "sessions", "--tag", "auth",
        stdin="Keep people logged in",
    )  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout.startswith("task_")
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""
    found = document("task", "show", "sessions")
    data = found["record"]["data"]
    assert found["task"]["objective"] == "Keep people logged in"
    assert data["acceptance_criteria"] == ["Log-out ends a session", "Two devices work"]
    assert data["test_criteria"] == ["pytest tests/sessions"]
    assert (data["type"], data["complexity"], data["estimated_time"]) == ("feature", "complex", "2h")
    assert data["files"] == [
        {"path": "src/sessions.py", "operation": "create"},
        {"path": "src/app.py", "operation": "modify"},
    ]
    assert [step["text"] for step in data["steps"]] == ["Write the table", "Wire it in"]
    assert data["reads"] == ["docs/auth.md"]
    assert found["dependencies"] == [{"id": tasks["login"], "key": "login", "name": "Login", "status": "open"}]
    assert found["parent"]["id"] == tasks["model"]
    assert found["record"]["tags"] == ["auth"]
    shown = ok("task", "show", "sessions")
    for text in (
        "As the old site had them",
        "Two devices work",
        "`src/sessions.py`: create",
        "2. Wire it in",
        "docs/auth.md",
    ):
        assert text in shown


def test_known_key_changes_nothing_and_says_so(tasks: dict[str, str]) -> None:
    result = run("task", "add", "Another login", "--key", "login")
    assert result.stdout.strip() == tasks["login"]
    assert "nothing was changed" in result.stderr
    assert document("task", "add", "Another login", "--key", "login")["action"] == "unchanged"
    assert document("task", "show", "login")["task"]["name"] == "Login"


def test_list_shows_what_each_waits_for_by_key(tasks: dict[str, str]) -> None:
    head, model, login = ok("task", "list").splitlines()
    assert head.split() == ["id", "status", "name", "depends", "on", "waiting", "for"]
    assert model.split() == [tasks["model"], "open", "User", "model"]
    assert login.split() == [tasks["login"], "open", "Login", "model", "model"]


def test_list_by_status_readiness_and_parent(tasks: dict[str, str]) -> None:
    def ids(*args: str) -> list[str]:
        return [task["id"] for task in document("task", "list", *args)["tasks"]]

    assert ids() == [tasks["model"], tasks["login"]]
    assert ids("--ready") == [tasks["model"]]
    ok("task", "complete", "model", "There is a users table")
    assert ids("--ready") == [tasks["login"]]
    assert ids("--status", "completed") == [tasks["model"]]
    part = ok("task", "add", "A part", "--parent", "login")
    assert ids("--parent", tasks["login"]) == ids("--parent", "login") == [part]


def test_empty_list_says_so_beside_the_data() -> None:
    result = run("task", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no tasks" in result.stderr
    assert document("task", "list")["tasks"] == []


def test_show_takes_the_id_and_the_key(tasks: dict[str, str]) -> None:
    assert ok("task", "show", "login") == ok("task", "show", tasks["login"])
    assert document("task", "show", "login") == document("task", "show", tasks["login"])


# --- moving --------------------------------------------------------------------------------------------------------


def test_start_warns_where_a_dependency_is_not_completed(tasks: dict[str, str]) -> None:
    result = run("task", "start", "login")
    assert result.exit_code == 0
    assert result.stdout == f"{tasks['login']}  active\n"
    assert "not completed: model." in result.stderr
    ok("task", "complete", "model")
    assert run("task", "start", "login").stderr == ""


def test_block_and_fail_keep_the_reason(tasks: dict[str, str]) -> None:
    assert ok("task", "block", "model", "No database yet").endswith("blocked")
    assert "No database yet" in ok("task", "show", "model")
    blocked = document("task", "fail", tasks["login"], "-", stdin="The provider is gone")["task"]
    assert (blocked["status"], blocked["reason"]) == ("failed", "The provider is gone")


def test_complete_keeps_result_and_outcome(tasks: dict[str, str]) -> None:
    done = document("task", "complete", "model", "There is a users table", "--outcome", "partial")["task"]
    assert (done["status"], done["result"]) == ("completed", "There is a users table")
    assert document("task", "show", "model")["record"]["outcome"] == "partial"
    assert "already completed" in refused(run("task", "complete", "model", "Again"), 1)


def test_depend_adds_tasks_and_files(tasks: dict[str, str]) -> None:
    other = ok("task", "add", "Mail")
    assert document("task", "depend", "login", other, "docs/mail.md")["task"]["depends_on"] == [tasks["model"], other]
    assert document("task", "show", "login")["record"]["data"]["reads"] == ["docs/mail.md"]


# --- handoffs ------------------------------------------------------------------------------------------------------


def test_template_needs_no_store_without_a_task(tmp_path: Path) -> None:
    elsewhere = ("--store", str(tmp_path / "nowhere"))
    text = ok(*elsewhere, "handoff", "template")
    assert text.startswith("---\nschema: handoff/v1")
    assert document(*elsewhere, "handoff", "template")["template"].strip() == text
    assert "there is no store" in refused(run(*elsewhere, "handoff", "template", "login"), 2)


def test_template_of_a_task_names_it_and_can_be_read(tasks: dict[str, str]) -> None:
    text = run("handoff", "template", "login").stdout
    assert f'task_id: "{tasks["login"]}"' in text
    assert "# Login" in text
    assert document("handoff", "validate", "-", stdin=text)["handoff"]["task_id"] == tasks["login"]


def test_schema_is_printed_without_a_store(tmp_path: Path) -> None:
    schema = json.loads(ok("--store", str(tmp_path / "nowhere"), "schema", "handoff"))
    assert schema["title"] == "Handoff"
    assert document("schema", "handoff")["schema"] == schema
    assert "Did you mean 'handoff'?" in refused(run("schema", "handof"), 2)


def test_validate_tells_how_it_was_read_and_needs_no_store(file: str, tmp_path: Path) -> None:
    result = run("--store", str(tmp_path / "nowhere"), "handoff", "validate", file)
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert (rows["rung"], rows["form"], rows["gotchas"]) == ("yaml", "front matter", "1")
    found = document("handoff", "validate", file, "--strict")
    assert found["ok"] is True
    assert found["problems"] == []
    assert found["counts"]["decisions"] == 1
    assert found["handoff"]["summary"] == "POST /login answers with a token."


def test_validate_says_what_was_repaired_and_strict_refuses_it() -> None:
    loose = "status: done\nsummary: All is well\nwarnings: [Mind the gap]\n"
    result = run("handoff", "validate", "-", stdin=loose)
    assert result.exit_code == 0
    assert "problem: " in result.stdout
    assert "repaired" in result.stderr
    assert document("handoff", "validate", "-", stdin=loose)["handoff"]["status"] == "completed"
    assert run("handoff", "validate", "-", "--strict", stdin=loose).exit_code == 2
    assert document("handoff", "validate", "-", "--strict", code=2, stdin=loose)["ok"] is False


def test_validate_of_prose_is_an_error_with_a_document() -> None:
    result = run("handoff", "validate", "-", stdin="It went well, more or less.")
    assert result.exit_code == 2
    assert "raw" in result.stdout
    assert "no field of a handoff" in result.stderr
    assert document("handoff", "validate", "-", code=2, stdin="It went well, more or less.")["rung"] == "raw"


def test_ingest_learns_and_completes(tasks: dict[str, str], file: str) -> None:
    result = run("handoff", "ingest", "login", file)
    assert result.exit_code == 0
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert rows["handoff"].startswith("handoff_")
    assert [rows[kind] for kind in ("pattern", "gotcha", "decision", "question", "component")] == ["1 added"] * 5
    assert "read as yaml, without a problem" in result.stderr
    shown = document("task", "show", "login")
    assert (shown["task"]["status"], shown["task"]["result"]) == ("completed", "POST /login answers with a token.")
    assert (shown["handoff"]["id"], shown["handoff"]["rung"]) == (rows["handoff"], "yaml")
    assert {record["kind"] for record in shown["learned"]} == {"pattern", "gotcha", "decision", "question", "component"}
    lines = ok("task", "show", "login")
    assert f"{rows['handoff']}  read as yaml, no problem" in lines
    assert "bcrypt cuts passwords" in lines


@pytest.mark.parametrize("report", ["summary: &a Done\ngotchas: [*a]", "Done, and that is all I say."])
def test_a_handoff_that_cannot_be_read_is_kept_and_said(tasks: dict[str, str], report: str) -> None:
    learned = document("handoff", "ingest", "login", "-", stdin=report)
    kept = document("handoff", "show", "login")["handoff"]
    assert kept["text"] == report
    assert kept["data"]["problems"] == learned["problems"] != []


def test_ingest_of_the_same_handoff_changes_nothing_and_of_another_needs_again(tasks: dict[str, str], file: str) -> None:
    first = document("handoff", "ingest", "login", file)
    assert (first["task"], first["action"], first["rung"]) == (tasks["login"], "learned", "yaml")
    assert first["counts"]["gotcha"] == {"added": 1}
    result = run("handoff", "ingest", tasks["login"], file)
    assert result.exit_code == 0
    assert "read before" in result.stderr
    other = "summary: It also answers HEAD"
    assert "--again" in refused(run("handoff", "ingest", "login", "-", stdin=other), 1)
    assert ok("handoff", "show", "login") == HANDOFF.strip()
    assert document("handoff", "ingest", "login", "-", "--again", stdin=other)["action"] == "learned"
    assert ok("handoff", "show", "login") == other


def test_problems_of_a_handoff_go_to_stderr(tasks: dict[str, str]) -> None:
    result = run("handoff", "ingest", "login", "-", stdin="status: done\nsummary: All is well")
    assert result.exit_code == 0
    assert "problem" not in result.stdout
    assert "problem: status 'done' was read as 'completed'." in result.stderr


def test_handoff_show_gives_the_text_as_it_was_written(tasks: dict[str, str], file: str) -> None:
    assert "has no handoff" in refused(run("handoff", "show", "login"), 3)
    ok("handoff", "ingest", "login", file)
    assert run("handoff", "show", "login").stdout == HANDOFF
    found = document("handoff", "show", "login")
    assert (found["task"], found["handoff"]["text"]) == (tasks["login"], HANDOFF.strip())


def test_complete_with_a_handoff_learns_from_it(tasks: dict[str, str], file: str) -> None:
    result = run("task", "complete", "login", "--handoff", file)
    assert result.stdout == f"{tasks['login']}  completed\n"
    assert "read as yaml" in result.stderr
    found = document("task", "complete", "model", "--handoff", "-", stdin="status: partial\nsummary: Half of it")
    assert (found["task"]["result"], found["handoff"]["rung"]) == ("Half of it", "yaml")


def test_handoff_and_result_together_are_refused(tasks: dict[str, str], file: str) -> None:
    assert "either" in refused(run("task", "complete", "login", "Done", "--handoff", file), 2)
    assert "either" in refused(run("task", "complete", "login", "--outcome", "partial", "--handoff", file), 2)
    assert document("task", "show", "login")["task"]["status"] == "open"


def test_answer_turns_a_question_into_a_decision(tasks: dict[str, str], file: str) -> None:
    ok("handoff", "ingest", "login", file)
    learned = document("task", "show", "login")["learned"]
    question = next(record["id"] for record in learned if record["kind"] == "question")
    decision = ok("task", "answer", question, "After an hour")
    assert decision.startswith("decision_")
    assert "After an hour" in ok("show", decision)
    assert f"{question}  retired" in ok("task", "show", "login")
    assert "already retired" in refused(run("task", "answer", question, "After a week"), 1)
    assert "not a question" in refused(run("task", "answer", decision, "What?"), 2)
    assert "No record" in refused(run("task", "answer", "question_none", "What?"), 3)


# --- the stack -----------------------------------------------------------------------------------------------------


def test_stack_goes_down_and_up_again() -> None:
    outer = ok("stack", "push", "Make the build fast")
    inner = document("stack", "push", "-", "--name", "Profile it", stdin="Find out where the time goes")["id"]
    assert [line.split()[0] for line in ok("stack", "path").splitlines()] == [outer, inner]
    assert [frame["id"] for frame in document("stack", "path")["path"]] == [outer, inner]
    assert "Find out where the time goes" in ok("stack", "peek")
    assert document("stack", "peek")["task"]["parent"] == outer
    popped = document("stack", "pop", "The linker takes it all", "--outcome", "partial")["task"]
    assert (popped["id"], popped["status"], popped["result"]) == (inner, "completed", "The linker takes it all")
    assert document("stack", "peek")["task"]["id"] == outer
    assert ok("stack", "pop") == f"{outer}  completed"


def test_empty_stack_has_nothing_to_show_and_nothing_to_pop() -> None:
    for verb in ("peek", "path"):
        result = run("stack", verb)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "foveate: the task stack is empty.\n"
    assert document("stack", "peek")["task"] is None
    assert document("stack", "path")["path"] == []
    assert "stack is empty" in refused(run("stack", "pop", "Done"), 2)


def test_each_agent_and_session_has_its_own_stack() -> None:
    mine = ok("stack", "push", "Mine", "--agent", "coder", "--session", "one")
    theirs = ok("stack", "push", "Theirs", "--agent", "coder", "--session", "two")
    assert document("stack", "peek", "--agent", "coder", "--session", "one")["task"]["id"] == mine
    assert document("stack", "path", "--agent", "coder", "--session", "two")["path"][0]["id"] == theirs
    assert document("stack", "peek")["task"] is None
    assert ok("stack", "pop", "--agent", "coder", "--session", "one").startswith(mine)


def test_outcome_that_does_not_exist_pops_nothing() -> None:
    ok("stack", "push", "A goal")
    assert "Did you mean 'success'?" in refused(run("stack", "pop", "--outcome", "sucess"), 2)
    assert document("stack", "peek")["task"] is not None


# --- agents --------------------------------------------------------------------------------------------------------


def test_prepare_prints_the_context_and_starts_the_task(tasks: dict[str, str]) -> None:
    result = run("agent", "prepare", "coder", "model", "--budget", "900")
    assert result.exit_code == 0
    assert "Have a users table" in result.stdout
    assert document("task", "show", "model")["task"]["status"] == "active"
    found = document("agent", "prepare", "coder", tasks["model"], "--profile", "task")
    assert found["context"]["profile"].startswith("task")
    assert found["task"]["id"] == found["claim"]["task"] == tasks["model"]
    assert found["claim"]["since"].endswith("Z")


def test_agents_at_work_are_listed_counted_and_cleared(tasks: dict[str, str]) -> None:
    assert "nobody is at work" in run("agent", "list").stderr
    ok("agent", "prepare", "coder", "model")
    ok("agent", "prepare", "critic", "login")
    assert [line.split()[:2] for line in ok("agent", "list").splitlines()[1:]] == [
        ["coder", tasks["model"]],
        ["critic", tasks["login"]],
    ]
    assert [lease["agent"] for lease in document("agent", "list", "--task", "login")["claims"]] == ["critic"]
    assert [lease["agent"] for lease in document("agent", "list", "--agent", "coder")["claims"]] == ["coder"]
    assert document("agent", "stats")["by_agent"] == {"coder": 1, "critic": 1}
    assert ok("agent", "clear", "--task", "login") == "1 released"
    assert document("agent", "clear", "--agent", "coder")["released"] == 1
    assert document("task", "show", "login")["task"]["status"] == "open"
    assert "released" in ok("agent", "stats")
    assert "Name an agent or a task" in refused(run("agent", "clear"), 2)


def test_agent_completes_or_fails_what_it_holds(tasks: dict[str, str], file: str) -> None:
    ok("agent", "prepare", "coder", "model")
    assert ok("agent", "complete", "coder", "model", "There is a table", "--outcome", "partial").endswith("completed")
    ok("agent", "prepare", "coder", "login")
    failed = document("agent", "fail", "coder", "login", "The tests hang")["task"]
    assert (failed["status"], failed["reason"]) == ("failed", "The tests hang")
    assert document("agent", "stats")["failed"] == 1
    ok("agent", "prepare", "coder", "login")
    done = document("agent", "complete", "coder", "login", "--handoff", file)
    assert (done["task"]["status"], done["handoff"]["rung"]) == ("completed", "yaml")


def test_preparing_a_completed_task_is_refused(tasks: dict[str, str]) -> None:
    ok("task", "complete", "model")
    assert "already completed" in refused(run("agent", "prepare", "coder", "model"), 1)
    assert document("agent", "list")["claims"] == []


# --- contexts for tasks --------------------------------------------------------------------------------------------


def test_context_of_a_task_needs_no_query(tasks: dict[str, str]) -> None:
    by_key = run("context", "--task", "model")
    assert by_key.exit_code == 0
    assert by_key.stderr == ""
    assert "Have a users table" in by_key.stdout
    assert run("context", "--task", tasks["model"]).stdout == by_key.stdout
    assert "Have a users table" in document("context", "--task", "model")["text"]


def test_context_without_a_query_is_for_the_top_of_the_stack() -> None:
    message = refused(run("context", "--session", "one"), 2)
    assert "Pass a query or a task" in message
    ok("stack", "push", "Make the build fast", "--session", "one")
    assert "Make the build fast" in ok("context", "--session", "one")
    assert run("context").exit_code == 2


def test_context_for_an_unknown_task_is_not_found() -> None:
    assert "No task 'nothing'" in refused(run("context", "--task", "nothing"), 3)


def test_debug_explains_on_stderr_and_leaves_stdout_alone(tasks: dict[str, str]) -> None:
    plain, debug = run("context", "--task", "model"), run("context", "--task", "model", "--debug")
    assert debug.stdout == plain.stdout
    assert "## Context Debug" in debug.stderr
    assert document("context", "--task", "model", "--debug")["text"] == plain.stdout


def test_debug_by_variable_and_by_setting(project: Path, tasks: dict[str, str]) -> None:
    assert "## Context Debug" in run("context", "--task", "model", env={"FOVEATE_DEBUG_CONTEXT": "true"}).stderr
    (project / ".foveate" / "config.toml").write_text("debug_context = true\n", "utf-8")
    assert "## Context Debug" in run("context", "--task", "model").stderr


def test_computed_is_the_task_view_as_json(tasks: dict[str, str], file: str) -> None:
    ok("handoff", "ingest", "model", file)
    found = json.loads(ok("context", "--task", "login", "--computed"))
    assert found["prior_work"][0]["task"] == "User model"
    assert "_computed" in found
    both = document("context", "--task", "login", "--computed")
    assert both["computed"]["prior_work"] == found["prior_work"]
    assert "computed" not in document("context", "--task", "login")
    assert "ask for one" in refused(run("context", "--task", "login", "--computed", "--messages", "openai"), 2)


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("task", "show", "nope"),
        ("task", "start", "nope"),
        ("task", "block", "nope", "Why"),
        ("task", "fail", "nope", "Why"),
        ("task", "complete", "nope"),
        ("task", "depend", "nope", "model"),
        ("task", "depend", "model", "nope"),
        ("task", "add", "New", "--depends-on", "nope"),
        ("task", "add", "New", "--parent", "nope"),
        ("task", "list", "--parent", "nope"),
        ("handoff", "template", "nope"),
        ("handoff", "show", "nope"),
        ("handoff", "ingest", "nope", "handoff.md"),
        ("agent", "prepare", "coder", "nope"),
        ("agent", "complete", "coder", "nope"),
        ("agent", "fail", "coder", "nope", "Why"),
        ("agent", "list", "--task", "nope"),
        ("agent", "clear", "--task", "nope"),
    ],
    ids=" ".join,
)
def test_unknown_task_is_not_found(args: tuple[str, ...], tasks: dict[str, str], file: str) -> None:
    assert "No task 'nope'" in refused(run(*args), 3)
    assert document(*args, code=3)["error"]["type"] == "NotFound"
    assert len(document("task", "list")["tasks"]) == 2


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("task", "list", "--status", "opne"), "Did you mean 'open'?"),
        (("task", "add", "X", "--complexity", "eazy"), "Did you mean 'easy'?"),
        (("task", "add", "   "), "empty"),
        (("task", "block", "model", " "), "The reason is empty"),
        (("task", "complete", "model", "--outcome", "sucess"), "Did you mean 'success'?"),
        (("task", "depend", "model", "model"), "circle"),
        (("task", "depend", "model", "login"), "circle"),
        (("task", "depend", "model"), "Missing argument"),
        (("task", "lst"), "list"),
        (("stack", "push", ""), "empty"),
        (("agent", "prepare", " ", "model"), "needs the name of an agent"),
        (("agent", "prepare", "coder", "model", "--budget", "0"), "positive"),
        (("agent", "prepare", "coder", "model", "--profile", "tusk"), "Did you mean 'task'?"),
        (("handoff", "validate", "missing.md"), "'missing.md' does not exist"),
        (("handoff", "validate", "."), "is a directory"),
        (("handoff", "ingest", "model", "missing.md"), "'missing.md' does not exist"),
        (("task", "complete", "model", "--handoff", "missing.md"), "'missing.md' does not exist"),
        (("task", "block", "model", "\udcff"), "not UTF-8"),
        (("task", "add", "a\0b"), "NUL"),
    ],
    ids=lambda value: " ".join(value).encode("ascii", "backslashreplace").decode() if isinstance(value, tuple) else "",
)
def test_bad_values_are_refused_in_one_line(args: tuple[str, ...], says: str, tasks: dict[str, str]) -> None:
    assert says in refused(run(*args), 2)
    found = {task["id"]: (task["status"], task["depends_on"]) for task in document("task", "list")["tasks"]}
    assert found == {tasks["model"]: ("open", []), tasks["login"]: ("open", [tasks["model"]])}


def test_record_that_is_no_task_is_refused() -> None:
    note = ok("add", "note", "Not a task")
    assert "is a note, not a task" in refused(run("task", "start", note), 2)


@pytest.mark.parametrize(
    ("raw", "says"),
    [(b"word " * 2_000_000, "262,144 bytes"), (b"", "empty"), (b"\0\0\0", "empty"), (b" \n\t", "empty")],
    ids=["ten megabytes", "empty", "only NUL", "blank"],
)
def test_handoff_that_cannot_be_read_is_refused_from_file_and_stdin(
    raw: bytes, says: str, project: Path, tasks: dict[str, str]
) -> None:
    (project / "bad.md").write_bytes(raw)
    for verb in (("handoff", "validate"), ("handoff", "ingest", "login"), ("task", "complete", "login", "--handoff")):
        assert says in refused(run(*verb, "bad.md"), 2)
        assert says in refused(run(*verb, "-", stdin=raw), 2)
    assert document("task", "show", "login")["task"]["status"] == "open"


def test_nul_and_bytes_that_are_no_text_are_repaired_and_named(tasks: dict[str, str]) -> None:
    raw = b"status: completed\nsummary: All\0 is \xff well\n"
    found = document("handoff", "ingest", "login", "-", stdin=raw)
    assert any("NUL" in problem for problem in found["problems"])
    assert any("UTF-8" in problem for problem in found["problems"])
    assert document("task", "show", "login")["task"]["result"] == "All is � well"


def test_endless_file_is_not_read_to_its_end() -> None:
    assert "262,144 bytes" in refused(run("handoff", "validate", "/dev/zero"), 2)


def test_without_a_store_each_verb_says_how_to_create_one(tmp_path: Path) -> None:
    for args in (("task", "list"), ("stack", "peek"), ("agent", "stats"), ("handoff", "show", "x"), ("context",)):
        assert "Create one with `foveate init" in refused(run("--store", str(tmp_path), *args), 2)


def test_what_one_user_plans_another_does_not_see() -> None:
    ok("task", "add", "Mine", "--key", "mine", "--user", "ann")
    assert document("task", "list", "--user", "ben")["tasks"] == []
    assert run("task", "show", "mine", "--user", "ben").exit_code == 3
    assert document("task", "show", "mine", "--user", "ann")["task"]["name"] == "Mine"


# --- completion ----------------------------------------------------------------------------------------------------


def test_completion_offers_keys_and_ids_of_tasks(
    tasks: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complete(words: str) -> str:
        env = {"_FOVEATE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        return run(env=env).stdout

    assert complete("foveate task show lo") == "plain,login\n"
    assert f"plain,{tasks['login']}" in complete("foveate handoff show task_")
    assert "plain,model" in complete("foveate task add X --depends-on mo")
    monkeypatch.chdir(tmp_path)
    assert complete("foveate task show lo").strip() == ""
