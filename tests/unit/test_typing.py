"""A type checker accepts correct programs and refuses misspelt options."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from foveate import factory

ROOT = Path(__file__).parents[2]

GOOD = """
import foveate
from foveate import Message


def model(messages: list[Message]) -> str:
    return messages[-1]["content"]


engine = foveate.open(":memory:", project="support", llm="none", budget=4000)


def reply(user: str, session: str, text: str) -> str:
    me = engine.scoped(user=user, session=session)
    context = me.context(text, budget=2000, profile="chat", filters=foveate.Filters(since="7d"), now="2026-11-15")
    answer = model([*context.messages(), {"role": "user", "content": text}])
    me.remember([{"role": "user", "content": text}, {"role": "assistant", "content": answer, "at": "2026-11-15T12:00Z"}])
    me.feedback(context, answer=answer)
    return answer


added = engine.add("decision", "Use Postgres", tags=["db"], outcome="success", user="ada", data={"rationale": "one backup"})
engine.edit(added.id, status="retired", confidence=0.5, valid_to="2027-01-01")
for review in engine.inbox.list():
    print(review.id, review.reason, review.record.text)
print(engine.why(added.id).sentence, str(engine.context("Which database?")))
for hit in engine.search("database", kinds=["decision"], user="ada"):
    print(hit.relevance, hit.record.stage)
for item in engine.context("Which database?", without=["repo_map"], extra={"open_file": ["text"]}).items:
    print(item.id, item.kind, item.section, item.level, item.tokens, item.score, item.relevance)

plan = engine.tasks
plan.add("Read settings", key="settings", objective="Load settings", complexity="easy", estimated_time=4)
plan.add("Store sessions", depends_on=["settings"], files=["src/session.py:create", {"path": "a.py", "operation": "modify"}])
while claim := plan.claim(agent="coder", budget=4000):
    learned = plan.handoff(claim.task, {"summary": claim.context.text}, agent="coder")
    print(claim.task.name, claim.expires, claim.others, learned.counts)
    engine.context(task=claim.task, profile="reviewer", budget=8000)
stats = engine.store.stats(days=30)
print(stats.contexts.tokens.max, stats.claims.active, stats.metrics["refresh_rate"].holds, stats.days[0].contexts)
print(foveate.count("text", "o200k"), foveate.compress("text", max_tokens=10, query="t"), engine.context("x").receipt.ms)
"""

BAD = {
    'engine.context("x", budgte=100)': 'Unexpected keyword argument "budgte"',
    'engine.context("x", budget="100")': 'Argument "budget"',
    'engine.context("x", complexity="hard")': 'Argument "complexity"',
    'engine.add("fact", "x", confidance=0.5)': 'Unexpected keyword argument "confidance"',
    'engine.add("fact", "x", trust="nobody")': 'Argument "trust"',
    'engine.search("x", usr="ada")': 'Unexpected keyword argument "usr"',
    'engine.edit("fact_1", status="done")': 'Argument "status"',
    'engine.scoped(users="ada")': 'Unexpected keyword argument "users"',
    'engine.remember([{"role": "human", "content": "x"}])': '"role"',
    'engine.tasks.add("x", criteria=["y"])': 'Unexpected keyword argument "criteria"',
    'engine.tasks.claim(agent="a", budgett=1)': 'Unexpected keyword argument "budgett"',
    'engine.tasks.complete("x", outcome="great")': 'Argument "outcome"',
    'engine.store.stats()["records"]': "not indexable",
    "foveate.open(budgets=1)": 'Unexpected keyword argument "budgets"',
    "engine.forget([\"fact_1\"])": 'Argument 1 to "forget"',
    "engine.compute()": 'has no attribute "compute"',
}  # fmt: skip


def errors_of(program: str, tmp_path: Path) -> dict[int, str]:
    """Return what mypy --strict says about each line of a program."""
    file = tmp_path / "program.py"
    file.write_text(program, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(file)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: dict[int, str] = {}
    for line in done.stdout.splitlines():
        match = re.match(r".*program\.py:(\d+): (.*)", line)
        assert match, done.stdout + done.stderr
        found[int(match[1])] = found.get(int(match[1]), "") + match[2]
    assert not done.stderr, done.stderr
    return found


@pytest.mark.slow
def test_programs_of_users_pass_the_type_checker(tmp_path: Path) -> None:
    assert errors_of(GOOD, tmp_path) == {}


@pytest.mark.slow
def test_a_misspelt_option_is_an_error_of_the_type_checker(tmp_path: Path) -> None:
    program = ["import foveate", 'engine = foveate.open(":memory:")', *BAD]
    found = errors_of("\n".join(program) + "\n", tmp_path)
    for number, (line, message) in enumerate(BAD.items(), 3):
        assert message in found.get(number, ""), (line, found.get(number))


def test_the_options_of_open_are_declared_once_more_for_those_who_pass_them_on() -> None:
    parameters = inspect.signature(factory.open).parameters
    written = {name: each.annotation for name, each in parameters.items() if name not in ("path", "_environment")}
    assert {name: each.__forward_arg__ for name, each in factory.OpenOptions.__annotations__.items()} == written
