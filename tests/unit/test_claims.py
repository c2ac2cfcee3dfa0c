"""Claims: an agent claims a task with a context, and the claim ends with the task, when it is released or expires."""

from __future__ import annotations

from pathlib import Path

import pytest

import foveate
from foveate import Conflict, InputError, NotFound, testing
from foveate.clock import new_id
from foveate.tasks.claims import ClaimStats
from foveate.testing import FixedClock
from records import add_record
from worlds import open_engine

HOUR = 3_600_000


def test_a_claim_starts_the_task_and_completing_it_ends_the_claim() -> None:
    with open_engine() as engine:
        engine.add("gotcha", "The login cookie is not httponly", data={"severity": "high"})
        task = engine.tasks.add("Login", objective="Fix the login cookie", key="login").id
        claim = engine.tasks.claim("login", agent="coder")
        assert claim is not None
        assert claim.success
        assert claim.task.status == "active"
        assert "httponly" in claim.context.text
        (active,) = engine.tasks.claims()
        assert (active.agent, active.task.id, active.context_id, active.tokens) == (
            "coder", task, claim.context.id, claim.context.tokens,
        )  # fmt: skip
        done = engine.tasks.complete("login", "The cookie is httponly now", agent="coder")
        assert (done.status, done.result) == ("completed", "The cookie is httponly now")
        assert engine.tasks.claims() == []
        with pytest.raises(Conflict, match="already completed"):
            engine.tasks.complete("login", agent="coder")


def test_the_next_ready_task_is_claimed_until_none_is_left() -> None:
    with open_engine() as engine:
        engine.tasks.add("Settings", key="settings")
        engine.tasks.add("Sessions", key="sessions", depends_on=["settings"])
        names = []
        while claim := engine.tasks.claim(agent="coder", budget=2000):
            names.append(claim.task.name)
            assert engine.tasks.claim(agent="other") is None
            engine.tasks.handoff(claim.task, f"summary: {claim.task.name} work", agent="coder")
            assert engine.tasks.claims() == []
        assert names == ["Settings", "Sessions"]


def test_the_contexts_of_claims_keep_their_receipts_and_are_counted() -> None:
    with open_engine() as engine:
        engine.add("fact", "The login cookie is not httponly")
        claims = [engine.tasks.claim(engine.tasks.add(f"Login {n}"), agent=f"coder{n % 2}") for n in range(8)]
        renewed = engine.tasks.claim(claims[0].task, agent="coder0")
        engine.tasks.complete(claims[1].task, "done")
        private = engine.scoped(agent="coder0").context("Which cookie is not httponly?")
        engine.receipts.flush()
        for claim in (*claims, renewed):
            receipt = engine.receipts.get(claim.context_id)
            assert (receipt.id, receipt.request.scope.agent) == (claim.context.id, claim.agent)
            assert engine.receipts.replay(claim.context_id).text == claim.context.text
        engine.feedback(claims[2].context.id, useful=["fact_1"])
        engine.receipts.flush()
        assert engine.receipts.get(claims[2].context.id).notes.marks == {"fact_1": "useful"}
        metrics = engine.receipts.metrics()
        assert metrics["cold_start_ms"].measured == len({claim.context_id for claim in (*claims, renewed)}) + 1
        (day,), cut = engine.receipts.metrics_by_day(1)
        assert (day.contexts, cut) == (metrics["cold_start_ms"].measured, False)
        with pytest.raises(NotFound):  # what an agent asked by itself is its own
            engine.receipts.get(private.id)
        with pytest.raises(NotFound):
            engine.scoped(agent="coder1").receipts.get(claims[0].context_id)


@pytest.mark.parametrize("how", ["complete", "fail", "handoff", "blocked handoff", "block", "reopen", "edit record"])
def test_no_claim_outlives_the_work_on_its_task(how: str) -> None:
    with open_engine() as engine:
        task = engine.tasks.add("Login", key="login").id
        engine.tasks.claim("login", agent="coder")
        ends = {
            "complete": lambda: engine.tasks.complete("login"),
            "fail": lambda: engine.tasks.fail("login", "no database"),
            "handoff": lambda: engine.tasks.handoff("login", {"summary": "Done"}),
            "blocked handoff": lambda: engine.tasks.handoff("login", {"status": "blocked", "summary": "No database"}),
            "block": lambda: engine.tasks.edit("login", status="blocked", reason="no database"),
            "reopen": lambda: engine.tasks.edit("login", status="open"),
            "edit record": lambda: engine.edit(task, data={"state": "failed"}),
        }
        ends[how]()
        assert engine.tasks.claims() == []
        assert engine.store.stats().claims.active == 0


def test_an_exclusive_claim_keeps_others_out() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        engine.tasks.claim("login", agent="one")
        for exclusive in (True, False):
            with pytest.raises(Conflict, match="is claimed by 'one' until"):
                engine.tasks.claim("login", agent="two", exclusive=exclusive)
        assert engine.tasks.claim("login", agent="one") is not None, "claiming again renews"
        with pytest.raises(Conflict, match="is claimed by 'one', not by 'two'"):
            engine.tasks.complete("login", agent="two")
        with pytest.raises(Conflict, match="is claimed by 'one', not by 'two'"):
            engine.tasks.handoff("login", "summary: Mine", agent="two")
        assert engine.tasks.get("login").status == "active"
        assert engine.tasks.complete("login").status == "completed", "a caller that names no agent decides for all"


def test_agents_can_share_a_task() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        one = engine.tasks.claim("login", agent="one", exclusive=False)
        two = engine.tasks.claim("login", agent="two", exclusive=False)
        assert one is not None
        assert two is not None
        assert (one.others, two.others) == ((), ("one",))
        with pytest.raises(Conflict, match="exclusive=False"):
            engine.tasks.claim("login", agent="three")
        engine.tasks.complete("login", "Done by one", agent="one")
        assert engine.tasks.claims() == []
        with pytest.raises(Conflict, match="already completed"):
            engine.tasks.complete("login", "Done by two", agent="two")
        assert engine.tasks.get("login").result == "Done by one"


def test_a_failed_task_can_be_claimed_again_and_stats_count_how_claims_ended() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        engine.tasks.claim("login", agent="coder")
        assert engine.tasks.fail("login", "no database", agent="coder").status == "failed"
        again = engine.tasks.claim("login", agent="reviewer")
        assert again is not None
        assert again.task.status == "active"
        stats = engine.store.stats().claims
        assert stats.average_tokens > 0
        assert stats == ClaimStats(
            claimed=2, active=1, completed=0, failed=1, blocked=0, released=0, expired=0,
            by_agent={"reviewer": 1}, tokens=again.tokens, average_tokens=stats.average_tokens,
        )  # fmt: skip


def test_the_claim_of_a_crashed_agent_expires(tmp_path: Path) -> None:
    clock = FixedClock()
    with testing.engine(tmp_path, personal=False, clock=clock, ids=new_id) as engine:
        engine.tasks.add("Login", key="login")
        engine.tasks.claim("login", agent="coder")
    clock.tick(HOUR // 2)
    with testing.engine(tmp_path, personal=False, clock=clock, ids=new_id) as engine:
        engine.tasks.claim("login", agent="coder")
        clock.tick(HOUR - 1)
        assert len(engine.tasks.claims()) == 1
        assert engine.tasks.list()[0].status == "active"
        clock.tick(1)
        assert engine.tasks.claims() == []
        assert engine.store.stats().claims.expired == 1
        assert engine.tasks.list(ready=True)[0].status == "open"
        other = engine.tasks.claim(agent="reviewer", seconds=1)
        assert other is not None
        assert other.expires == clock.now + 1000


def test_claims_are_listed_and_released_by_agent_or_task() -> None:
    with open_engine() as engine:
        for key in ("a", "b"):
            engine.tasks.add(f"Task {key}", key=key)
        for agent, key in (("one", "a"), ("two", "a"), ("two", "b")):
            engine.tasks.claim(key, agent=agent, exclusive=False)
        assert [claim.agent for claim in engine.tasks.claims(task="a")] == ["one", "two"]
        assert len(engine.tasks.claims(agent="two")) == 2
        assert engine.tasks.release(agent="two") == 2
        assert engine.tasks.get("a").status == "active", "one is still at work on it"
        assert engine.tasks.get("b").status == "open"
        assert engine.tasks.release(task="a") == 1
        assert engine.tasks.claims() == []
        assert engine.tasks.release(task="a") == 0
        assert engine.store.stats().claims.released == 3
        with pytest.raises(InputError, match="Name an agent or a task"):
            engine.tasks.release()


def test_agents_on_one_task_never_share_private_notes() -> None:
    with open_engine() as engine:
        for key in ("a", "b"):
            engine.tasks.add(f"Migrate the {key} table", key=key)
        scopes = {(agent, key): engine.scoped(task=key, agent=agent).scope for agent in ("one", "two") for key in ("a", "b")}
        for (agent, key), scope in scopes.items():
            add_record(engine, "scratch", f"Private note of {agent} on {key}: the table is locked", scope=scope)
        for agent, key in scopes:
            claim = engine.tasks.claim(key, agent=agent, profile="subtask", exclusive=False)
            assert claim is not None
            notes = [line for line in claim.context.text.splitlines() if "Private note" in line]
            assert [f"Private note of {agent} on {key}: the table is locked" in note for note in notes] == [True]


def test_the_prompt_of_an_agent_holds_the_computed_section() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        claim = engine.tasks.claim("login", agent="coder")
        assert claim is not None
        assert "## Context (Computed)\n\n### Patterns to Follow\n" in claim.context.text


def test_the_agent_of_the_engine_claims() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        claim = engine.scoped(agent="coder", task="login").tasks.claim("current")
        assert claim is not None
        assert claim.agent == "coder"
        with pytest.raises(InputError, match="pass agent="):
            engine.tasks.claim("login")


def test_nothing_starts_if_the_claim_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    from foveate.tasks import claims

    def broken(*_: object) -> None:
        raise RuntimeError("killed")

    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        monkeypatch.setattr(claims, "claim_views", broken)
        with pytest.raises(RuntimeError):
            engine.tasks.claim("login", agent="coder")
        assert engine.tasks.get("login").status == "open"


def test_a_task_that_cannot_be_claimed_gets_no_claim() -> None:
    with open_engine() as engine:
        engine.tasks.add("Login", key="login")
        with pytest.raises(NotFound):
            engine.tasks.claim("nothing", agent="coder")
        with pytest.raises(InputError):
            engine.tasks.claim("login", agent=" ")
        with pytest.raises(foveate.BudgetError):
            engine.tasks.claim("login", agent="coder", budget=5)
        for wrong in (0, -1, float("nan"), float("inf"), "x"):
            with pytest.raises(InputError, match="seconds must be positive"):
                engine.tasks.claim("login", agent="coder", seconds=wrong)  # type: ignore[arg-type]
        engine.tasks.complete("login")
        with pytest.raises(Conflict):
            engine.tasks.claim("login", agent="coder")
        assert engine.store.stats().claims.claimed == 0
