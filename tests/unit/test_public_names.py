"""The public names of the library: the root, the engine and its tasks, as users and type checkers see them."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import pytest

import foveate
from foveate import errors
from foveate.engine.code import Code
from foveate.engine.inbox import Inbox
from foveate.engine.store_tools import StoreTools
from foveate.engine.tasks import Tasks
from foveate.receipts.history import Receipts
from foveate.records.kinds import KINDS
from worlds import open_engine

ROOT = [
    "BudgetError", "Candidate", "Conflict", "Context", "Counter", "Embedder", "Engine", "Filters", "FoveateError",
    "InputError", "Kind", "LLM", "Message", "NotFound", "Receipt", "Record", "Scope", "Source", "StoreError", "Task",
    "compress", "count", "open",
]  # fmt: skip

ENGINE = [
    "acontext", "add", "check", "close", "code", "context", "edit", "expand", "feedback", "forget", "get", "history",
    "inbox", "link", "receipts", "records", "refresh", "remember", "scope", "scoped", "search", "store", "tasks",
    "undo", "why",
]  # fmt: skip

TASKS = [
    "add", "claim", "claims", "complete", "current", "edit", "fail", "get", "handoff", "list", "path", "pop", "push",
    "release",
]  # fmt: skip

OPEN = [
    "path", "project", "user", "agent", "session", "task", "store", "create", "personal", "code", "profile", "budget",
    "counter", "embedder", "llm", "sources", "kinds", "cache_seconds",
]  # fmt: skip


def test_the_root_exports_what_users_need() -> None:
    assert sorted([*foveate.__all__, "open"]) == sorted(ROOT)
    assert all(getattr(foveate, name) is not None for name in ROOT)
    assert dir(foveate) == sorted(ROOT)


def test_a_star_import_keeps_the_builtin_open() -> None:
    names: dict[str, object] = {}
    exec("from foveate import *", names)
    assert names["Engine"] is foveate.Engine
    assert "open" not in names


@pytest.mark.slow
def test_importing_the_package_imports_nothing_else() -> None:
    """Python starts in about 10 ms, and importing `typing` alone would add as much."""
    program = "import sys; before = set(sys.modules); import foveate; print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['__future__', 'foveate']"


def test_the_engine_has_one_name_for_each_use() -> None:
    with open_engine() as engine:
        assert sorted(name for name in dir(engine) if not name.startswith("_")) == sorted(ENGINE)


PARTS = (foveate.Engine, Tasks, Code, Receipts, Inbox, StoreTools)


def test_every_public_method_says_what_it_does() -> None:
    for part in PARTS:
        for name, method in inspect.getmembers(part, inspect.isfunction):
            assert name.startswith("_") or inspect.getdoc(method), name


def test_no_public_method_takes_any_options_or_returns_a_dictionary() -> None:
    """A type checker knows every option and every field of a result."""
    for part in PARTS:
        for name, method in inspect.getmembers(part, inspect.isfunction):
            if not name.startswith("_"):
                signature = inspect.signature(method)
                assert "Any" not in str(signature.return_annotation), name
                for parameter in signature.parameters.values():
                    assert parameter.kind is not parameter.VAR_KEYWORD or "Unpack[" in str(parameter.annotation), name


def test_a_context_prints_as_its_text_and_its_items_have_kind_and_text() -> None:
    with open_engine() as engine:
        added = engine.add("fact", "Deploys happen on Tuesdays")
        assert added.id == added.record.id
        context = engine.context("When do deploys happen?")
        assert str(context) == context.text
        assert "\n" not in repr(context)
        (item,) = context.items
        assert (item.id, item.kind, item.record.text) == (added.id, "fact", "Deploys happen on Tuesdays")


def test_tasks_and_open_take_the_documented_names() -> None:
    assert sorted(name for name in dir(Tasks) if not name.startswith("_")) == TASKS
    parameters = [name for name in inspect.signature(foveate.open).parameters if not name.startswith("_")]
    assert parameters == OPEN


def test_a_kind_and_a_counter_of_ones_own_are_passed_to_open() -> None:
    class Letters:
        name = "letters"
        per_message = per_request = 0

        def count(self, text: str, /) -> int:
            return len(text)

    runbook = foveate.Kind("runbook", "Runbooks", lambda record, level: f"- {record.text}")
    try:
        for _ in range(2):  # the same kind may be passed each time an engine is opened
            with foveate.open(":memory:", kinds=[runbook], counter=Letters()) as engine:
                engine.add("fact", "The queue stalls on Mondays")
                engine.add("runbook", "Restart the worker when the queue stalls")
                assert engine.context("The queue stalls", budget=5000).tokens > len("The queue stalls on Mondays")
                assert engine.search("queue", kinds=["runbook"])
    finally:
        KINDS.pop("runbook")


def test_lists_and_tasks_in_the_wrong_place_are_refused_with_the_way_out() -> None:
    with open_engine() as engine:
        id = engine.add("fact", "Deploys happen on Tuesdays").record.id
        calls = {
            "forget(*ids)": lambda: engine.forget([id]),  # type: ignore[list-item]
            "accept(*ids)": lambda: engine.inbox.accept([id]),  # type: ignore[list-item]
            "reject(*ids)": lambda: engine.inbox.reject([id]),  # type: ignore[list-item]
            "['fact']": lambda: engine.search("deploys", kinds="fact"),
            "['vectors']": lambda: engine.store.maintain(only="vectors"),  # type: ignore[arg-type]
            "Did you mean 'vectors'": lambda: engine.store.maintain(only=["vector"]),  # type: ignore[list-item]
            "engine.tasks.add": lambda: engine.add("task", "Log in"),
        }
        for advice, call in calls.items():
            with pytest.raises(foveate.InputError, match=re.escape(advice)):
                call()


def test_closing_a_scoped_engine_leaves_the_store_open() -> None:
    with open_engine() as engine:
        with engine.scoped(user="ada") as ada:
            ada.add("fact", "Deploys happen on Tuesdays")
            ada.context("When do deploys happen?")
        assert engine.search("deploys") == []
        assert engine.scoped(user="ada").search("deploys")


def test_user_agent_session_and_task_are_options_of_every_call_that_works_by_words() -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Log in", key="login")
        who = foveate.Scope("main", user="ada", agent="coder", session="s1", task=task.id)
        added = engine.add("fact", "Ada deploys on Tuesdays", user="ada", agent="coder", session="s1", task=task)
        assert added.record.scope == who
        engine.remember("We deploy on Tuesdays", user="ada", session="s1")
        assert engine.context("deploys", user="ada", agent="coder", session="s1", task="login").receipt.request.scope == who
        assert [hit.record.id for hit in engine.search("deploys", kinds=["fact"], user="ada", agent="coder")] == [added.id]
        assert {record.kind for record in engine.records(user="ada", agent="coder")} == {"fact", "event", "task"}
        assert engine.search("deploys") == []


def test_a_misspelt_option_is_refused_with_the_nearest_one() -> None:
    with open_engine() as engine:
        calls: dict[str, Callable[..., object]] = {
            "context": partial(engine.context, "x"),
            "add": partial(engine.add, "fact", "x"),
            "search": partial(engine.search, "x"),
            "records": engine.records,
            "remember": partial(engine.remember, "x"),
            "scoped": engine.scoped,
        }
        for name, call in calls.items():
            with pytest.raises(foveate.InputError, match=f"{name} has no option 'usr'. Did you mean 'user'"):
                call(usr="ada")


def test_an_outcome_counts_once_whichever_call_reports_it() -> None:
    with open_engine() as engine:
        edited, marked = (engine.add("episode", f"Tried the cache of {name}").id for name in ("shop", "bank"))
        assert engine.edit(edited, outcome="failure").uses == 1
        engine.feedback(wrong=[marked])
        assert (engine.get(marked).outcome, engine.get(marked).uses) == ("failure", 1)


def test_the_tree_of_errors_names_each_error_with_its_codes() -> None:
    rows = {match[1]: match for match in re.finditer(r"(\w+) +exit (\d) +HTTP (\d+)", errors.__doc__ or "")}
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, foveate.FoveateError)]
    assert rows.keys() == {each.__name__ for each in classes}
    for each in classes:
        assert (int(rows[each.__name__][2]), int(rows[each.__name__][3])) == (each.exit_code, each.status)
