"""Tasks: what is to be done, what it waits for, and what came of it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import foveate
from foveate import Conflict, InputError, NotFound
from foveate.records.kinds import DEPENDS_ON
from records import add_record
from worlds import open_engine


def test_a_task_keeps_everything_it_was_given() -> None:
    with open_engine() as engine:
        engine.tasks.add("Design", key="design")
        plan = engine.tasks.add("Plan")
        task = engine.tasks.add(
            "Build the parser",
            objective="Read handoffs from YAML",
            description="One room, no state.",
            type="feature",
            complexity="complex",
            estimated_time="4h",
            acceptance_criteria=["Broken YAML is mended", " "],
            test_criteria="60 samples pass",
            files=["src/parser.py:create", {"path": "docs/a.md", "operation": "modify"}, "src/x.py"],
            steps=["Write it", {"text": "Run it", "command": "pytest -q"}],
            depends_on=["design", "src/errors.py"],
            parent=plan.id,
            key="parser",
            tags=["yaml"],
        )
        assert (task.name, task.objective, task.status) == ("Build the parser", "Read handoffs from YAML", "open")
        data = task.record.data
        assert data["acceptance_criteria"] == ["Broken YAML is mended"]
        assert data["test_criteria"] == ["60 samples pass"]
        assert data["files"] == [
            {"path": "src/parser.py", "operation": "create"},
            {"path": "docs/a.md", "operation": "modify"},
            {"path": "src/x.py", "operation": "modify"},
        ]
        assert data["steps"] == [{"text": "Write it"}, {"text": "Run it", "command": "pytest -q"}]
        assert data["reads"] == ["src/errors.py"]
        assert (data["type"], data["complexity"], data["estimated_time"]) == ("feature", "complex", "4h")
        assert task.depends_on == task.waiting_for == ("task_1",)
        assert task.parent == plan.id
        assert engine.tasks.get(plan.id).children == (task.id,)
        assert engine.tasks.get("parser") == task
        assert set(task.record.paths) == {"src/parser.py", "docs/a.md", "src/x.py", "src/errors.py"}


def test_the_same_key_adds_nothing_and_the_same_words_are_two_tasks() -> None:
    with open_engine() as engine:
        first = engine.tasks.add("Fix the bug", key="a")
        assert engine.tasks.add("Something else", key="a").id == first.id
        assert engine.tasks.add("Fix the bug").id != first.id
        assert len(engine.tasks.list()) == 2


KEYS = [f"step-{n}" for n in range(20)]
ADD_IN_STEP = """
import sys, foveate
with foveate.open(sys.argv[1], personal=False) as engine:
    print("ready", flush=True)
    for key in map(str.strip, sys.stdin):
        task = engine.tasks.add(key, key=key, depends_on=["plan"])
        print(task.action, task.id, flush=True)
"""


def test_two_threads_that_add_the_same_key_at_once_add_one_task(tmp_path: Path) -> None:
    start = Barrier(2)
    with foveate.open(tmp_path, personal=False) as engine:
        engine.tasks.add("Plan", key="plan")

        def add(key: str) -> tuple[str, str]:
            start.wait()
            task = engine.tasks.add(key, key=key, depends_on=["plan"])
            return task.action, task.id

        with ThreadPoolExecutor(2) as threads:
            results = list(threads.map(add, [key for key in KEYS for _ in range(2)]))
        check_each_was_added_once(engine, [results[::2], results[1::2]])


@pytest.mark.slow
def test_two_processes_that_add_the_same_key_at_once_add_one_task(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False) as engine:
        engine.tasks.add("Plan", key="plan")
        command = [sys.executable, "-c", ADD_IN_STEP, str(tmp_path)]
        adders = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(2)
        ]
        assert [adder.stdout.readline() for adder in adders if adder.stdout] == ["ready\n"] * 2
        results: list[list[tuple[str, str]]] = [[], []]
        for key in KEYS:
            for adder in adders:
                assert adder.stdin is not None
                adder.stdin.write(f"{key}\n")
            for adder, seen in zip(adders, results, strict=True):
                assert adder.stdout is not None
                action, _, id = adder.stdout.readline().strip().partition(" ")
                seen.append((action, id))
        for adder in adders:
            adder.communicate()
        assert [adder.returncode for adder in adders] == [0, 0]
        check_each_was_added_once(engine, results)


def check_each_was_added_once(engine: foveate.Engine, results: list[list[tuple[str, str]]]) -> None:
    """Both callers have the same tasks; for each, one caller has added it and the other has found it."""
    for (action, id), (other_action, other_id) in zip(*results, strict=True):
        assert {action, other_action} == {"added", "unchanged"}
        assert id == other_id
    plan, *tasks = engine.tasks.list()
    assert [task.key for task in tasks] == KEYS
    assert all(task.depends_on == (plan.id,) for task in tasks)


def test_a_task_goes_from_open_to_completed_and_no_further() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Build").id
        assert engine.tasks.edit(task, status="active").status == "active"
        blocked = engine.tasks.edit(task, status="blocked", reason="waits for a key")
        assert (blocked.status, blocked.record.data["reason"]) == ("blocked", "waits for a key")
        assert "reason" not in engine.tasks.edit(task, status="active").record.data
        assert engine.tasks.fail(task, "no luck").record.outcome == "failure"
        engine.tasks.edit(task, status="active")
        done = engine.tasks.complete(task, "It reads YAML and JSON.")
        assert (done.status, done.result, done.record.outcome) == ("completed", "It reads YAML and JSON.", "success")
        with pytest.raises(Conflict, match="already completed"):
            engine.tasks.edit(task, status="active")
        with pytest.raises(Conflict, match="already completed"):
            engine.tasks.complete(task)
        engine.undo(task)
        assert engine.tasks.get(task).status == "active"


@pytest.mark.parametrize("call", ["complete", "pop"])
def test_a_task_completed_without_a_result_keeps_the_one_that_it_has(call: str) -> None:
    with open_engine() as engine:
        task = engine.tasks.push("Write the parser").id
        engine.tasks.handoff(task, {"summary": "It reads YAML."})
        engine.tasks.handoff(task, {"status": "failed", "summary": "A test fails"}, again=True)
        done = engine.tasks.complete(task, " ") if call == "complete" else engine.tasks.pop(" ")
        assert (done.status, done.result, done.record.summary) == ("completed", "It reads YAML.", "It reads YAML.")


def test_a_completed_task_is_shortened_to_its_result() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Build", objective="Write a long parser. " * 60).id
        before = engine.get(task)
        after = engine.tasks.complete(task, "Call parse().").record
        assert after.summary == after.micro == "Call parse()."
        assert after.text == before.text
        assert after.tokens is not None
        assert before.tokens is not None
        assert after.tokens["full"] < before.tokens["summary"]


def test_ready_tasks_are_open_and_wait_for_nothing() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.add("B", key="b", depends_on=["a"])
        engine.tasks.add("C", key="c", depends_on=["a", "b"])

        def ready() -> list[str]:
            return [task.name for task in engine.tasks.list(ready=True)]

        assert ready() == ["A"]
        engine.tasks.complete("a")
        assert ready() == ["B"]
        assert engine.tasks.get("c").waiting_for == (engine.tasks.get("b").id,)
        engine.tasks.fail("b", "broken")
        assert ready() == []
        assert [task.name for task in engine.tasks.list(status="failed")] == ["B"]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_cycle_of_dependencies_is_refused_and_named(length: int) -> None:
    with open_engine() as engine:
        for n in range(length):
            engine.tasks.add(f"Task {n}", key=f"t{n}", depends_on=[f"t{n - 1}"] if n else [])
        ids = [engine.tasks.get(f"t{n}").id for n in range(length)]
        with pytest.raises(InputError, match="must not form a cycle") as refused:
            engine.tasks.edit("t0", depends_on=[f"t{length - 1}"])
        assert all(f"{id} (Task {n})" in str(refused.value) for n, id in enumerate(ids))
        assert engine.tasks.get("t0").depends_on == ()
        with pytest.raises(InputError, match="must not form a cycle"):
            engine.link(ids[0], DEPENDS_ON, ids[-1])


def test_a_long_chain_of_dependencies_is_allowed() -> None:
    with open_engine() as engine:
        for n in range(120):
            engine.tasks.add(f"Task {n}", key=f"t{n}", depends_on=[f"t{n - 1}"] if n else [])
        engine.tasks.edit("t119", depends_on=["t3"])
        with pytest.raises(InputError, match="must not form a cycle"):
            engine.tasks.edit("t3", depends_on=["t119"])


def test_dependencies_are_tasks_or_paths_and_nothing_else() -> None:
    with open_engine() as engine:
        note = engine.add("note", "A note").record.id
        with pytest.raises(NotFound, match="No task 'task_0099' to depend on"):
            engine.tasks.add("A", depends_on=["task_0099"])
        with pytest.raises(NotFound, match="does not look like a path"):
            engine.tasks.add("A", depends_on=["the other thing"])
        with pytest.raises(InputError, match="is a note"):
            engine.tasks.add("A", depends_on=[note])
        assert engine.tasks.list() == []
        with pytest.raises(NotFound, match=r"\./Makefile"):
            engine.tasks.add("A", depends_on=["Makefile"])
        assert engine.tasks.list() == []
        assert engine.tasks.add("A", depends_on=["./Makefile", "src/x"]).record.data["reads"] == ["./Makefile", "src/x"]


def test_unknown_names_say_what_to_do() -> None:
    with open_engine() as engine:
        engine.add("fact", "A fact")
        for call in (engine.tasks.get, engine.tasks.complete, lambda ref: engine.context(task=ref)):
            with pytest.raises(NotFound, match="`foveate task list`"):
                call("task_0042")
        with pytest.raises(InputError, match="is a fact, not a task"):
            engine.tasks.get("fact_1")
        with pytest.raises(InputError, match="Unknown task status 'don'"):
            engine.tasks.list(status="don")
        for wrong in ({"complexity": "hard"}, {"files": [{"operation": "create"}]}, {"steps": [""]}):
            with pytest.raises(InputError):
                engine.tasks.add("A", **wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="empty"):
            engine.tasks.add("  ")
        task = engine.tasks.add("A").id
        with pytest.raises(InputError, match="reason is empty"):
            engine.tasks.fail(task, " ")
        with pytest.raises(InputError, match="outcome"):
            engine.tasks.complete(task, outcome="splendid")
        assert engine.tasks.get(task).status == "open"


def test_an_answer_settles_a_question_for_every_task_that_asked() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("A").id
        question = engine.add("question", "Which timeout?", data={"blocking": True}).record.id
        engine.link(question, "learned_from", task)
        decision = engine.inbox.answer(question, "30 seconds")
        assert (decision.kind, decision.text) == ("decision", "Which timeout? 30 seconds")
        assert engine.get(question).status == "retired"
        with engine.store.data.reader() as reader:
            assert [link.src for link in reader.links([task], ["learned_from"], incoming=True) if link.src != question] == [
                decision.id
            ]
        with pytest.raises(Conflict):
            engine.inbox.answer(question, "60 seconds")
        with pytest.raises(InputError, match="not a question"):
            engine.inbox.answer(task, "yes")


def test_a_query_beside_a_task_is_what_is_asked() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Login", objective="Store session tokens in Redis").id
        context = engine.context("Which timeout applies?", task=task)
        assert context.signals.terms["timeout"] == 1.0
        assert context.signals.terms["redi"] == 0.5
        assert engine.receipts.get(context).request.task == task
        assert context.profile == "task"


def test_notes_on_a_task_are_found_under_its_key_and_its_id() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Login", key="login").id
        add_record(engine, "scratch", "Tried the cookie store", scope=engine.scoped(task="login").scope)
        shown = engine.context("cookie store", task=task, profile="subtask").text
        assert "Tried the cookie store" in shown
        assert "Tried" not in engine.context("cookie store", profile="subtask").text


def test_adding_a_task_tells_whether_its_key_was_in_use() -> None:
    with open_engine() as engine:
        first, again = engine.tasks.add("A", key="a"), engine.tasks.add("Other words", key="a")
        assert (first.action, again.action) == ("added", "unchanged")
        assert first == again == engine.tasks.get("a")
        assert engine.tasks.get("a").action == ""
        assert [engine.tasks.add("A").action, engine.tasks.push("A").action] == ["added", "added"]


def test_a_key_of_something_else_makes_no_task() -> None:
    with open_engine() as engine:
        engine.add("note", "A note", key="k")
        with pytest.raises(Conflict, match="belongs to the note"):
            engine.tasks.add("A", key="k")


def test_a_retired_task_holds_nobody_up() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.add("B", key="b", depends_on=["a"])
        engine.edit(engine.tasks.get("a").id, status="retired")
        assert engine.tasks.get("b").ready
        with pytest.raises(Conflict, match="already retired"):
            engine.tasks.edit("a", status="active")


def test_an_operation_that_is_none_is_refused() -> None:
    with open_engine() as engine:
        with pytest.raises(InputError, match="Did you mean 'create'"):
            engine.tasks.add("A", files=["src/x.py:crate"])
        with pytest.raises(InputError, match="needs a name"):
            engine.tasks.add("", objective="Do it")


def test_one_file_or_step_is_one_and_what_is_no_list_is_refused() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("A", files="src/a.py", steps="Run it").record  # type: ignore[arg-type]
        assert (task.data["files"], task.data["steps"]) == (
            [{"path": "src/a.py", "operation": "modify"}],
            [{"text": "Run it"}],
        )
        with pytest.raises(InputError, match="got 5"):
            engine.tasks.add("A", depends_on=5)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="has no option 'state'"):
            engine.tasks.add("A", state="completed")  # type: ignore[call-arg]


def test_a_summary_of_ones_own_stays_until_there_is_a_result() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("A", objective="Do it " * 100, key="a")
        engine.edit(task.id, summary="My own words")
        assert engine.tasks.edit("a", status="active").record.summary == "My own words"


def test_a_context_warns_of_dependencies_that_are_not_completed() -> None:
    with open_engine() as engine:
        engine.tasks.add("Parser", key="a")
        engine.tasks.add("B", key="b", depends_on=["a"])
        engine.tasks.fail("a", "no luck")
        assert engine.context(task="b").warnings == ("Parser, on which the task depends, is failed.",)


def test_a_warning_and_a_question_in_the_same_words_are_two_things() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.add("B", key="b", depends_on=["a"])
        words = "Redis is shared with the job queue and evicts session keys under memory pressure"
        question = {"question": f"{words}?", "blocking": True}
        engine.tasks.handoff("a", {"summary": "s", "gotchas": [words], "open_questions": [question]})
        assert engine.context(task="b").text.count(words) == 2


def test_more_than_a_few_hundred_warnings_are_all_weighed() -> None:
    with open_engine() as engine:
        engine.tasks.add("A", key="a")
        engine.tasks.add("B", key="b", depends_on=["a"])
        engine.tasks.handoff("a", {"summary": "s", "gotchas": [f"Trap number {n} in module {n * 7}" for n in range(300)]})
        context = engine.context(task="b")
        considered = {item.id for item in (*context.items, *context.left_out)}
        assert sum(id.startswith("gotcha") for id in considered) == 300


@pytest.mark.slow
def test_a_task_of_any_length_is_read_in_time() -> None:
    from time import process_time

    with open_engine() as engine:
        engine.tasks.add("A", objective=" ".join(f"src/some/path{n}.py" for n in range(12_000)), key="a")
        began = process_time()
        engine.context(task="a", budget=200_000)
        assert process_time() - began < 5


def test_an_edit_replaces_fields_and_links() -> None:
    with open_engine() as engine:
        for key in ("a", "b", "c"):
            engine.tasks.add(f"Task {key}", key=key)
        task = engine.tasks.add("Login", key="login", depends_on=["a", "docs/auth.md"], tags=["auth"], parent="c")
        edited = engine.tasks.edit(
            task,
            name="Log in",
            objective="Let users log in",
            depends_on=["b"],
            parent="a",
            complexity="easy",
            files=["src/login.py"],
        )
        assert (edited.name, edited.objective, edited.status) == ("Log in", "Let users log in", "open")
        assert (edited.depends_on, edited.parent) == ((engine.tasks.get("b").id,), engine.tasks.get("a").id)
        assert edited.record.paths == ("src/login.py",)
        assert edited.record.tags == ("auth",)
        assert "Let users log in" in edited.record.summary
        assert engine.tasks.edit("login", tags=["ui"]).record.tags == ("ui",)
        with pytest.raises(InputError, match="complexity"):
            engine.tasks.edit("login", complexity="hard")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="Did you mean 'objective'"):
            engine.tasks.edit("login", objektive="x")  # type: ignore[call-arg]
        with pytest.raises(InputError, match="Nothing to change"):
            engine.tasks.edit("login")
        with pytest.raises(InputError, match=r"Use tasks\.complete"):
            engine.tasks.edit("login", status="completed")  # type: ignore[arg-type]
        with pytest.raises(InputError, match="cycle"):
            engine.tasks.edit("b", depends_on=["login"])
        assert engine.tasks.get("b").depends_on == ()


def test_current_names_the_task_of_the_scope_or_the_top_of_the_stack() -> None:
    with open_engine() as engine:
        login = engine.tasks.add("Login", key="login")
        assert engine.tasks.current() is None
        with pytest.raises(NotFound, match="No task is current"):
            engine.tasks.complete()
        with pytest.raises(NotFound, match="No task is current"):
            engine.context("Anything", task="current")
        goal = engine.tasks.push("Ship it")
        assert engine.tasks.get("current") == goal
        assert engine.receipts.get(engine.context(task="current")).request.task == goal.id
        here = engine.scoped(task=login)
        assert here.tasks.current() == login
        assert here.tasks.complete(result="It works").id == login.id
        assert engine.tasks.complete().id == goal.id
        with pytest.raises(InputError, match="reserved"):
            engine.tasks.add("Now", key="current")


def test_notes_of_a_task_are_found_under_its_id_and_its_key() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Login", key="login")
        engine.add("scratch", "The cookie is not set", task="login")
        for ref in ("login", task.id, task):
            assert [hit.record.text for hit in engine.search("cookie", task=ref)] == ["The cookie is not set"]
