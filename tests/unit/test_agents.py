"""The life of an agent with a task: prepared, at work, released; a lease runs out when nobody is heard of."""

from __future__ import annotations

from pathlib import Path

import pytest

import foveate
from foveate import Conflict, InputError, NotFound
from foveate.agents import Agents
from foveate.testing import FixedClock
from records import add_record
from worlds import open_engine

HOUR = 3_600_000


def test_prepare_starts_the_task_and_complete_releases_the_context() -> None:
    with open_engine() as engine:
        engine.add("gotcha", "The login cookie is not httponly", data={"severity": "high"})
        task = engine.tasks.add("Login", objective="Fix the login cookie", key="login").id
        agents = Agents(engine)
        prepared = agents.prepare("coder", "login")
        assert prepared.success
        assert prepared.task.status == "active"
        assert "httponly" in prepared.context.text
        assert engine.receipts.get(prepared.context).document["request"]["agent"] == "coder"
        (held,) = agents.active()
        assert (held.agent, held.task, held.context, held.tokens) == (
            "coder", task, prepared.context.id, prepared.context.tokens,
        )  # fmt: skip
        done = agents.complete("coder", "login", "The cookie is httponly now")
        assert (done.status, done.result) == ("completed", "The cookie is httponly now")
        assert agents.active() == []
        with pytest.raises(NotFound, match="its lease is completed"):
            agents.complete("coder", "login")


def test_failing_releases_too_and_the_task_can_be_taken_up_again() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        agents = Agents(engine)
        agents.prepare("coder", "login")
        assert agents.fail("coder", "login", "no database").status == "failed"
        assert agents.active() == []
        assert agents.prepare("reviewer", "login").task.status == "active"
        tokens = agents.active()[0].tokens
        stats = agents.stats()
        assert stats.pop("average_tokens") > 0
        assert stats == {
            "prepared": 2, "active": 1, "completed": 0, "failed": 1, "cleared": 0, "expired": 0,
            "by_agent": {"reviewer": 1}, "tokens": tokens,
        }  # fmt: skip


def test_the_lease_of_a_crashed_agent_expires(tmp_path: Path) -> None:
    clock = FixedClock()
    with foveate.open(tmp_path, personal=False, clock=clock) as engine:
        engine.tasks.add("Login", key="login")
        Agents(engine).prepare("coder", "login")
    clock.tick(HOUR // 2)
    with foveate.open(
        tmp_path, personal=False, clock=clock
    ) as engine:  # another process: the agent is gone, its lease is not
        agents = Agents(engine)
        agents.renew("coder", "login")
        clock.tick(HOUR - 1)
        assert len(agents.active()) == 1
        clock.tick(1)
        assert agents.active() == []
        assert agents.stats()["expired"] == 1
        assert agents.expire() == 1
        assert engine.tasks.get("login").status == "open"
        assert agents.expire() == 0
        with pytest.raises(NotFound, match="expired"):
            agents.renew("coder", "login")
        assert agents.prepare("reviewer", "login").task.status == "active"


def test_contexts_are_listed_and_cleared_by_agent_or_task() -> None:
    with open_engine() as engine:
        for key in ("a", "b"):
            engine.tasks.add(f"Task {key}", key=key)
        agents = Agents(engine)
        agents.prepare("one", "a")
        agents.prepare("two", "a")
        agents.prepare("two", "b")
        assert [lease.agent for lease in agents.active(task="a")] == ["one", "two"]
        assert len(agents.active(agent="two")) == 2
        assert agents.clear(agent="two") == 2
        assert engine.tasks.get("a").status == "active"  # one is still at it
        assert engine.tasks.get("b").status == "open"
        assert agents.clear(task="a") == 1
        assert agents.active() == []
        with pytest.raises(InputError, match="Name an agent or a task"):
            agents.clear()


def test_two_agents_on_one_task_never_share_private_notes() -> None:
    with open_engine() as engine:
        for key in ("a", "b"):
            engine.tasks.add(f"Migrate the {key} table", key=key)
        agents = Agents(engine)
        scopes = {}
        for agent in ("one", "two"):
            for key in ("a", "b"):
                scope = engine.scoped(task=key, agent=agent).scope
                scopes[agent, key] = scope
                add_record(engine, "scratch", f"Private note of {agent} on {key}: the table is locked", scope=scope)
        for agent, key in scopes:
            context = agents.prepare(agent, key, profile="stack").context
            notes = [item.record.text for item in context.items if item.kind == "scratch"]
            assert notes == [f"Private note of {agent} on {key}: the table is locked"]


def test_a_lease_ends_as_its_task_does() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        agents = Agents(engine)
        agents.prepare("coder", "login")
        agents.complete("coder", "login", handoff={"status": "failed", "summary": "No database"})
        stats = agents.stats()
        assert (stats["completed"], stats["failed"]) == (0, 1)


def test_the_prompt_of_an_agent_holds_the_computed_section() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        prepared = Agents(engine).prepare("coder", "login")
        assert "## Context (Computed)\n\n### Patterns to Follow\n" in prepared.context.text


def test_others_at_work_on_the_same_task_are_named() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        agents = Agents(engine)
        assert agents.prepare("one", "login").beside == ()
        assert agents.prepare("two", "login").beside == ("one",)


def test_nothing_is_begun_where_the_lease_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    from foveate.agents import leases

    def broken(*_: object) -> None:
        raise RuntimeError("killed")

    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        monkeypatch.setattr(leases, "_lease", broken)
        with pytest.raises(RuntimeError):
            Agents(engine).prepare("coder", "login")
        assert engine.tasks.get("login").status == "open"


def test_whoever_finishes_second_is_told_and_released() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        agents = Agents(engine)
        for agent in ("one", "two"):
            agents.prepare(agent, "login")
        agents.complete("one", "login", "Done by one")
        with pytest.raises(Conflict, match="completed already"):
            agents.complete("two", "login", "Done by two")
        assert agents.active() == []
        assert engine.tasks.get("login").result == "Done by one"


def test_what_cannot_be_prepared_leaves_no_lease() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        agents = Agents(engine)
        with pytest.raises(NotFound):
            agents.prepare("coder", "nothing")
        with pytest.raises(InputError):
            agents.prepare(" ", "login")
        with pytest.raises(foveate.BudgetError):
            agents.prepare("coder", "login", budget=5)
        engine.tasks.complete("login")
        with pytest.raises(Conflict):
            agents.prepare("coder", "login")
        assert agents.stats()["prepared"] == 0
        for wrong in (0, -1, float("nan"), float("inf"), "x"):
            with pytest.raises(InputError):
                Agents(engine, lease_seconds=wrong)  # type: ignore[arg-type]
