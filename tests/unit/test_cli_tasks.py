"""`foveate task` as people and programs call it: arguments in; stdout, stderr, exit code and a store out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_kit import document, ok, refused, run

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
        "--acceptance-criteria", "Log-out ends a session", "--acceptance-criteria", "Two devices work",
        "--test-criteria", "pytest tests/sessions",
        "--type", "feature", "--complexity", "complex", "--estimated-time", "2h", "--file", "src/sessions.py:create",
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


def test_list_shows_keys_and_what_each_task_waits_for(tasks: dict[str, str]) -> None:
    head, model, login = ok("task", "list").splitlines()
    assert head.split() == ["id", "key", "status", "name", "depends", "on", "waiting", "for"]
    assert model.split() == [tasks["model"], "model", "open", "User", "model"]
    assert login.split() == [tasks["login"], "login", "open", "Login", "model", "model"]


def test_commands_on_records_accept_the_key_of_a_task(tasks: dict[str, str]) -> None:
    ok("task", "done", "model", "There is a users table")
    assert ok("show", "model") == ok("show", tasks["model"])
    assert ok("show", "model", "--full") == ok("show", tasks["model"], "--full")
    assert [record["id"] for record in document("undo", "model")["undone"]] == [tasks["model"]]
    ok("context", "--task", "login")
    assert ok("why", "login") == ok("why", tasks["login"])
    assert document("edit", "login", "--tag", "web")["record"]["id"] == tasks["login"]
    assert document("forget", "login", "model", "--yes")["forgotten"] == [tasks["login"], tasks["model"]]
    assert "No record 'login'" in refused(run("show", "login"), 3)


def test_list_by_status_readiness_and_parent(tasks: dict[str, str]) -> None:
    def ids(*args: str) -> list[str]:
        return [task["id"] for task in document("task", "list", *args)["tasks"]]

    assert ids() == [tasks["model"], tasks["login"]]
    assert ids("--ready") == [tasks["model"]]
    ok("task", "done", "model", "There is a users table")
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


def test_starting_a_task_warns_if_a_dependency_is_not_completed(tasks: dict[str, str]) -> None:
    result = run("task", "edit", "login", "--status", "active")
    assert result.exit_code == 0
    assert result.stdout == f"{tasks['login']}  active\n"
    assert "not completed: model." in result.stderr
    ok("task", "done", "model")
    assert run("task", "edit", "login", "--status", "active").stderr == ""


def test_block_and_fail_keep_the_reason(tasks: dict[str, str]) -> None:
    assert ok("task", "edit", "model", "--status", "blocked", "--reason", "No database yet").endswith("blocked")
    assert "No database yet" in ok("task", "show", "model")
    blocked = document("task", "fail", tasks["login"], "-", stdin="The provider is gone")["task"]
    assert (blocked["status"], blocked["reason"]) == ("failed", "The provider is gone")


def test_done_keeps_result_and_outcome(tasks: dict[str, str]) -> None:
    done = document("task", "done", "model", "There is a users table", "--outcome", "partial")["task"]
    assert (done["status"], done["result"]) == ("completed", "There is a users table")
    assert document("task", "show", "model")["record"]["outcome"] == "partial"
    assert "already completed" in refused(run("task", "done", "model", "Again"), 1)


def test_edit_replaces_a_list_and_clears_it(tasks: dict[str, str]) -> None:
    other = ok("task", "add", "Mail")
    depends_on = ("--depends-on", "model", "--depends-on", other, "--depends-on", "docs/mail.md")
    assert document("task", "edit", "login", *depends_on)["task"]["depends_on"] == [tasks["model"], other]
    assert document("task", "show", "login")["record"]["data"]["reads"] == ["docs/mail.md"]
    assert document("task", "edit", "login", "--depends-on", other)["task"]["depends_on"] == [other]
    assert document("task", "edit", "login", "--depends-on", "")["task"]["depends_on"] == []
    assert document("task", "show", "login")["record"]["data"]["reads"] == []


def test_edit_changes_the_fields_that_it_names(tasks: dict[str, str]) -> None:
    ok("task", "edit", "login", "--name", "Log in", "--objective", "-", "--tag", "auth", "--parent", "model", stdin="A form")
    found = document("task", "show", "login")
    assert (found["task"]["name"], found["task"]["objective"]) == ("Log in", "A form")
    assert (found["record"]["tags"], found["task"]["parent"]) == (["auth"], tasks["model"])
    assert found["task"]["depends_on"] == [tasks["model"]]
    assert document("task", "edit", "login", "--parent", "")["task"]["parent"] is None
    assert document("task", "show", "login")["record"]["tags"] == ["auth"]


# --- handoffs ------------------------------------------------------------------------------------------------------


def test_template_needs_no_store_without_a_task(tmp_path: Path) -> None:
    elsewhere = ("--store", str(tmp_path / "nowhere"))
    text = ok(*elsewhere, "task", "handoff", "--template")
    assert text.startswith("---\nschema: handoff/v1")
    assert document(*elsewhere, "task", "handoff", "--template")["template"].strip() == text
    assert "there is no store" in refused(run(*elsewhere, "task", "handoff", "login", "--template"), 2)


def test_template_of_a_task_names_it_and_can_be_read(tasks: dict[str, str]) -> None:
    text = run("task", "handoff", "login", "--template").stdout
    assert f'task_id: "{tasks["login"]}"' in text
    assert "# Login" in text
    assert document("task", "handoff", "-", "--dry-run", stdin=text)["handoff"]["task_id"] == tasks["login"]


def test_schema_is_printed_without_a_store(tmp_path: Path) -> None:
    schema = json.loads(ok("--store", str(tmp_path / "nowhere"), "task", "handoff", "--schema"))
    assert schema["title"] == "Handoff"
    assert document("task", "handoff", "--schema")["schema"] == schema
    for others in (("login",), ("login", "handoff.md"), ("--template",)):
        assert "--schema takes no argument" in refused(run("task", "handoff", "--schema", *others), 2)


def test_dry_run_without_a_task_tells_how_a_handoff_is_read_and_needs_no_store(file: str, tmp_path: Path) -> None:
    result = run("--store", str(tmp_path / "nowhere"), "task", "handoff", file, "--dry-run")
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert (rows["method"], rows["form"], rows["gotchas"]) == ("yaml", "front matter", "1")
    found = document("task", "handoff", file, "--dry-run", "--strict")
    assert found["ok"] is True
    assert found["problems"] == []
    assert found["counts"]["decisions"] == 1
    assert found["handoff"]["summary"] == "POST /login answers with a token."


def test_dry_run_says_what_would_be_repaired_and_strict_refuses_it() -> None:
    loose = "status: done\nsummary: All is well\nwarnings: [Mind the gap]\n"
    result = run("task", "handoff", "-", "--dry-run", stdin=loose)
    assert result.exit_code == 0
    assert "problem: " in result.stdout
    assert "repaired" in result.stderr
    assert document("task", "handoff", "-", "--dry-run", stdin=loose)["handoff"]["status"] == "completed"
    assert run("task", "handoff", "-", "--dry-run", "--strict", stdin=loose).exit_code == 2
    assert document("task", "handoff", "-", "--dry-run", "--strict", code=2, stdin=loose)["ok"] is False


def test_dry_run_of_prose_is_an_error_with_a_document() -> None:
    result = run("task", "handoff", "-", "--dry-run", stdin="It went well, more or less.")
    assert result.exit_code == 2
    assert "raw" in result.stdout
    assert "no field of a handoff" in result.stderr
    assert document("task", "handoff", "-", "--dry-run", code=2, stdin="It went well, more or less.")["method"] == "raw"


def test_handoff_is_learned_from_and_completes_its_task(tasks: dict[str, str], file: str) -> None:
    result = run("task", "handoff", "login", file)
    assert result.exit_code == 0
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert rows["handoff"].startswith("handoff_")
    assert [rows[kind] for kind in ("pattern", "gotcha", "decision", "question", "component")] == ["1 added"] * 5
    assert "read as yaml, without a problem" in result.stderr
    shown = document("task", "show", "login")
    assert (shown["task"]["status"], shown["task"]["result"]) == ("completed", "POST /login answers with a token.")
    assert (shown["handoff"]["id"], shown["handoff"]["method"]) == (rows["handoff"], "yaml")
    assert {record["kind"] for record in shown["learned"]} == {"pattern", "gotcha", "decision", "question", "component"}
    lines = ok("task", "show", "login")
    assert f"{rows['handoff']}  read as yaml, no problem" in lines
    assert "bcrypt cuts passwords" in lines


@pytest.mark.parametrize("report", ["summary: &a Done\ngotchas: [*a]", "Done, and that is all I say."])
def test_a_handoff_that_cannot_be_read_is_kept_and_said(tasks: dict[str, str], report: str) -> None:
    learned = document("task", "handoff", "login", "-", stdin=report)
    kept = document("task", "show", "login", "--handoff")["handoff"]
    assert kept["text"] == report
    assert kept["data"]["problems"] == learned["problems"] != []


def test_the_same_handoff_changes_nothing_and_another_one_needs_again(tasks: dict[str, str], file: str) -> None:
    first = document("task", "handoff", "login", file)
    assert (first["task"], first["action"], first["method"]) == (tasks["login"], "learned", "yaml")
    assert first["counts"]["gotcha"] == {"added": 1}
    result = run("task", "handoff", tasks["login"], file)
    assert result.exit_code == 0
    assert "read before" in result.stderr
    other = "summary: It also answers HEAD"
    assert "--again" in refused(run("task", "handoff", "login", "-", stdin=other), 1)
    assert ok("task", "show", "login", "--handoff") == HANDOFF.strip()
    assert document("task", "handoff", "login", "-", "--again", stdin=other)["action"] == "learned"
    assert ok("task", "show", "login", "--handoff") == other


def test_problems_of_a_handoff_go_to_stderr(tasks: dict[str, str]) -> None:
    result = run("task", "handoff", "login", "-", stdin="status: done\nsummary: All is well")
    assert result.exit_code == 0
    assert "problem" not in result.stdout
    assert "problem: status 'done' was read as 'completed'." in result.stderr


def test_show_prints_a_handoff_as_it_was_written(tasks: dict[str, str], file: str) -> None:
    assert "has no handoff" in refused(run("task", "show", "login", "--handoff"), 3)
    ok("task", "handoff", "login", file)
    assert run("task", "show", "login", "--handoff").stdout == HANDOFF
    found = document("task", "show", "login", "--handoff")
    assert (found["task"], found["handoff"]["text"]) == (tasks["login"], HANDOFF.strip())


def test_handoff_without_a_task_is_of_the_current_one(tasks: dict[str, str], file: str) -> None:
    assert "No task is current" in refused(run("task", "handoff", file), 3)
    assert document("task", "handoff", file, "--task", "login")["task"] == tasks["login"]
    goal = ok("task", "add", "Make the build fast", "--push")
    assert document("task", "handoff", "-", stdin="status: partial\nsummary: Half of it")["task"] == goal
    assert document("task", "show", goal)["task"]["result"] == "Half of it"


def test_dry_run_with_a_task_tells_what_would_be_learned_and_changes_nothing(tasks: dict[str, str], file: str) -> None:
    before = document("task", "show", "login")
    result = run("task", "handoff", "login", file, "--dry-run")
    assert result.exit_code == 0
    rows = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert rows["task"] == f"{tasks['login']}  completed"
    assert rows["gotcha"] == "1 added"
    assert "nothing was changed" in result.stderr
    found = document("task", "handoff", "login", file, "--dry-run")
    assert (found["ok"], found["action"], found["status"]) == (True, "dry run", "completed")
    assert document("task", "handoff", "login", "-", "--dry-run", code=2, stdin="Well, it is done.")["ok"] is False
    assert document("task", "show", "login") == before


def test_strict_handoff_with_a_problem_is_refused_and_nothing_learned(tasks: dict[str, str], file: str) -> None:
    loose = "status: done\nsummary: All is well\n"
    assert "status 'done'" in refused(run("task", "handoff", "login", "-", "--strict", stdin=loose), 2)
    assert document("task", "show", "login")["task"]["status"] == "open"
    assert document("task", "handoff", "login", file, "--strict")["action"] == "learned"


def test_answer_turns_a_question_into_a_decision(tasks: dict[str, str], file: str) -> None:
    ok("task", "handoff", "login", file)
    learned = document("task", "show", "login")["learned"]
    question = next(record["id"] for record in learned if record["kind"] == "question")
    decision = ok("inbox", "answer", question, "After an hour")
    assert decision.startswith("decision_")
    assert "After an hour" in ok("show", decision)
    assert f"{question}  retired" in ok("task", "show", "login")
    assert "already retired" in refused(run("inbox", "answer", question, "After a week"), 1)
    assert "not a question" in refused(run("inbox", "answer", decision, "What?"), 2)
    assert "No record" in refused(run("inbox", "answer", "question_none", "What?"), 3)


# --- the stack -----------------------------------------------------------------------------------------------------


def test_stack_goes_down_and_up_again() -> None:
    outer = ok("task", "add", "Make the build fast", "--push")
    inner = document("task", "add", "Profile it", "--push", "--objective", "-", stdin="Find out where the time goes")["id"]
    assert [line.split()[0] for line in ok("task", "show").splitlines()] == [outer, inner]
    assert [frame["id"] for frame in document("task", "show")["path"]] == [outer, inner]
    assert "Find out where the time goes" in ok("task", "show", "current")
    assert document("task", "show", "current")["task"]["parent"] == outer
    popped = document("task", "done", "current", "The linker takes it all", "--outcome", "partial")["task"]
    assert (popped["id"], popped["status"], popped["result"]) == (inner, "completed", "The linker takes it all")
    assert document("task", "show", "current")["task"]["id"] == outer
    assert ok("task", "done") == f"{outer}  completed"


def test_without_a_current_task_there_is_nothing_to_show_and_nothing_to_complete() -> None:
    result = run("task", "show")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no task is current" in result.stderr
    assert document("task", "show")["path"] == []
    assert "No task is current" in refused(run("task", "show", "current"), 3)
    assert "No task is current" in refused(run("task", "show", "--handoff"), 3)
    for ref in ((), ("current", "Done")):
        assert "stack is empty" in refused(run("task", "done", *ref), 2)


def test_each_agent_and_session_has_its_own_stack() -> None:
    one, two = (("--agent", "coder", "--session", name) for name in ("one", "two"))
    first = ok("task", "add", "First", "--push", *one)
    second = ok("task", "add", "Second", "--push", *two)
    assert document("task", "show", "current", *one)["task"]["id"] == first
    assert document("task", "show", *two)["path"][0]["id"] == second
    assert document("task", "show")["path"] == []
    assert ok("task", "done", *one).startswith(first)


def test_outcome_that_does_not_exist_completes_nothing() -> None:
    ok("task", "add", "A goal", "--push")
    assert "Did you mean 'success'?" in refused(run("task", "done", "--outcome", "sucess"), 2)
    assert document("task", "show")["path"][0]["status"] == "active"


def test_current_task_of_the_scope_goes_before_the_stack(tasks: dict[str, str]) -> None:
    goal = ok("task", "add", "A goal", "--push")
    assert ok("task", "done", "--task", "model") == f"{tasks['model']}  completed"
    assert [each["id"] for each in document("task", "show")["path"]] == [goal]


def test_goal_that_is_pushed_takes_no_other_fields() -> None:
    result = run("task", "add", "A goal", "--push", "--tag", "build", "--key", "goal")
    assert "Leave out --tag, --key" in refused(result, 2)
    assert document("task", "list")["tasks"] == []


# --- claims --------------------------------------------------------------------------------------------------------


def test_claim_prints_the_context_and_starts_the_task(tasks: dict[str, str]) -> None:
    result = run("task", "claim", "model", "--agent", "coder", "--budget", "900")
    assert result.exit_code == 0
    assert "Have a users table" in result.stdout
    assert f"coder has claimed {tasks['model']} until 20" in result.stderr
    assert document("task", "show", "model")["task"]["status"] == "active"
    found = document("task", "claim", tasks["model"], "--agent", "coder", "--profile", "task")
    assert found["context"]["profile"].startswith("task")
    assert found["task"]["id"] == found["claim"]["task"] == tasks["model"]
    assert found["claim"]["since"].endswith("Z")


def test_claim_without_a_task_takes_the_next_ready_one_until_none_is_left(tasks: dict[str, str]) -> None:
    assert document("task", "claim", "--agent", "coder")["task"]["id"] == tasks["model"]
    result = run("task", "claim", "--agent", "critic")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no task is ready" in result.stderr
    assert document("task", "claim", "--agent", "critic", code=3)["claim"] is None
    ok("task", "done", "model")
    assert document("task", "claim", "--agent", "critic")["task"]["id"] == tasks["login"]


def test_task_is_claimed_by_one_agent_unless_both_share_it(tasks: dict[str, str]) -> None:
    ok("task", "claim", "model", "--agent", "coder")
    assert "is claimed by 'coder'" in refused(run("task", "claim", "model", "--agent", "critic", "--no-exclusive"), 1)
    ok("task", "claim", "model", "--agent", "coder", "--no-exclusive", "--seconds", "60")
    result = run("task", "claim", "model", "--agent", "critic", "--no-exclusive")
    assert result.exit_code == 0
    assert "also at work on this task: coder." in result.stderr
    assert "is claimed by 'coder', not by 'tester'" in refused(run("task", "done", "model", "--agent", "tester"), 1)


def test_claims_are_listed_counted_and_released(tasks: dict[str, str]) -> None:
    assert "no task is claimed" in run("task", "list", "--claimed").stderr
    ok("task", "claim", "model", "--agent", "coder")
    ok("task", "claim", "login", "--agent", "critic")
    assert [line.split()[:2] for line in ok("task", "list", "--claimed").splitlines()[1:]] == [
        ["coder", tasks["model"]],
        ["critic", tasks["login"]],
    ]
    assert [claim["agent"] for claim in document("task", "list", "--claimed", "--task", "login")["claims"]] == ["critic"]
    assert [claim["agent"] for claim in document("task", "list", "--claimed", "--agent", "coder")["claims"]] == ["coder"]
    assert document("stats")["claims"]["by_agent"] == {"coder": 1, "critic": 1}
    assert ok("task", "release", "login") == "1 released"
    assert document("task", "release", "--agent", "coder")["released"] == 1
    assert document("task", "show", "login")["task"]["status"] == "open"
    assert document("stats")["claims"]["released"] == 2
    assert "Name an agent or a task" in refused(run("task", "release"), 2)


def test_agent_completes_or_fails_the_task_that_it_has_claimed(tasks: dict[str, str], file: str) -> None:
    coder = ("--agent", "coder")
    ok("task", "claim", "model", *coder)
    assert ok("task", "done", "model", "There is a table", "--outcome", "partial", *coder).endswith("completed")
    ok("task", "claim", "login", *coder)
    failed = document("task", "fail", "login", "The tests hang", *coder)["task"]
    assert (failed["status"], failed["reason"]) == ("failed", "The tests hang")
    assert document("stats")["claims"]["failed"] == 1
    ok("task", "claim", "login", *coder)
    learned = document("task", "handoff", "login", file, *coder)
    assert (learned["status"], learned["method"]) == ("completed", "yaml")
    assert document("task", "list", "--claimed")["claims"] == []


def test_claiming_a_completed_task_is_refused(tasks: dict[str, str]) -> None:
    ok("task", "done", "model")
    assert "already completed" in refused(run("task", "claim", "model", "--agent", "coder"), 1)
    assert document("task", "list", "--claimed")["claims"] == []


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
    ok("task", "add", "Make the build fast", "--push", "--session", "one")
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
    ok("task", "handoff", "model", file)
    found = json.loads(ok("context", "--task", "login", "--computed"))
    assert found["prior_work"][0]["task"] == "User model"
    assert "_computed" in found
    both = document("context", "--task", "login", "--computed")
    assert both["computed"]["prior_work"] == found["prior_work"]
    assert "computed" not in document("context", "--task", "login")
    assert "Pass one of them" in refused(run("context", "--task", "login", "--computed", "--messages", "openai"), 2)


# --- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("task", "show", "nope"),
        ("task", "show", "nope", "--handoff"),
        ("task", "edit", "nope", "--status", "active"),
        ("task", "edit", "nope", "--status", "blocked", "--reason", "Why"),
        ("task", "edit", "nope", "--depends-on", "model"),
        ("task", "edit", "model", "--depends-on", "nope"),
        ("task", "edit", "model", "--parent", "nope"),
        ("task", "fail", "nope", "Why"),
        ("task", "fail", "nope", "Why", "--agent", "coder"),
        ("task", "done", "nope"),
        ("task", "done", "nope", "--agent", "coder"),
        ("task", "add", "New", "--depends-on", "nope"),
        ("task", "add", "New", "--parent", "nope"),
        ("task", "list", "--parent", "nope"),
        ("task", "list", "--claimed", "--task", "nope"),
        ("task", "handoff", "nope", "--template"),
        ("task", "handoff", "nope", "handoff.md"),
        ("task", "handoff", "nope", "handoff.md", "--dry-run"),
        ("task", "claim", "nope", "--agent", "coder"),
        ("task", "release", "nope"),
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
        (("task", "edit", "model", "--status", "blocked", "--reason", " "), "The reason is empty"),
        (("task", "done", "model", "--outcome", "sucess"), "Did you mean 'success'?"),
        (("task", "edit", "model", "--depends-on", "model"), "cycle"),
        (("task", "edit", "model", "--depends-on", "login"), "cycle"),
        (("task", "edit", "model"), "Nothing to change"),
        (("task", "lst"), "list"),
        (("task", "add", "", "--push"), "empty"),
        (("task", "claim", "model", "--agent", " "), "needs the name of an agent"),
        (("task", "claim", "model"), "--agent NAME"),
        (("task", "claim", "model", "--agent", "coder", "--seconds", "-1"), "positive"),
        (("task", "claim", "model", "--agent", "coder", "--budget", "0"), "positive"),
        (("task", "claim", "model", "--agent", "coder", "--profile", "tusk"), "Did you mean 'task'?"),
        (("task", "handoff", "missing.md", "--dry-run"), "'missing.md' does not exist"),
        (("task", "handoff", ".", "--dry-run"), "is a directory"),
        (("task", "handoff", "model", "missing.md"), "'missing.md' does not exist"),
        (("task", "handoff"), "Missing argument 'FILE'"),
        (("task", "list", "--claimed", "--ready"), "takes none of"),
        (("task", "edit", "model", "--status", "completed"), "must be open, active or blocked"),
        (("task", "fail", "model", "\udcff"), "not valid UTF-8"),
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
    assert "is a note, not a task" in refused(run("task", "edit", note, "--status", "active"), 2)


@pytest.mark.parametrize(
    ("raw", "says"),
    [(b"word " * 2_000_000, "262,144 bytes"), (b"", "empty"), (b"\0\0\0", "empty"), (b" \n\t", "empty")],
    ids=["ten megabytes", "empty", "only NUL", "blank"],
)
def test_handoff_that_cannot_be_read_is_refused_from_file_and_stdin(
    raw: bytes, says: str, project: Path, tasks: dict[str, str]
) -> None:
    (project / "bad.md").write_bytes(raw)
    for verb in (("task", "handoff", "--dry-run"), ("task", "handoff", "login")):
        assert says in refused(run(*verb, "bad.md"), 2)
        assert says in refused(run(*verb, "-", stdin=raw), 2)
    assert document("task", "show", "login")["task"]["status"] == "open"


def test_nul_and_bytes_that_are_no_text_are_repaired_and_named(tasks: dict[str, str]) -> None:
    raw = b"status: completed\nsummary: All\0 is \xff well\n"
    found = document("task", "handoff", "login", "-", stdin=raw)
    assert any("NUL" in problem for problem in found["problems"])
    assert any("UTF-8" in problem for problem in found["problems"])
    assert document("task", "show", "login")["task"]["result"] == "All is � well"


def test_endless_file_is_not_read_to_its_end() -> None:
    assert "262,144 bytes" in refused(run("task", "handoff", "/dev/zero", "--dry-run"), 2)


def test_without_a_store_each_verb_says_how_to_create_one(tmp_path: Path) -> None:
    for args in (("task", "list"), ("task", "show"), ("task", "show", "x", "--handoff"), ("stats",), ("context",)):
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
    assert f"plain,{tasks['login']}" in complete("foveate task show task_")
    assert "plain,model" in complete("foveate task add X --depends-on mo")
    monkeypatch.chdir(tmp_path)
    assert complete("foveate task show lo").strip() == ""
