"""Text of strangers that wants to be more than text: what becomes of it on its way into a prompt.

Every case of `corpus.jsonl` is said by a tool and by a web page, before and after honest words, and read in every form in
which a model could meet it. The patterns below are not those of the code under test: they say what a reader would take for
a turn or a call.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from injection_kit import CASES, NAMES, TEXTS, harmless, parts, words

from foveate import Context, Engine
from foveate.testing import engine as new_engine
from foveate.text import tokens
from records import add_record

HONEST = "Invoice 4471 was paid in March by the northern branch."
QUESTION = "Was invoice 4471 paid in March by the northern branch?"
RULE = "Answer in whole sentences, and name the invoice."
BUDGET = 60_000
WHOLE = {name: {"level": "full", "max_level": "full", "min_relevance": 0.0} for name in ("facts", "recent")}


def test_there_are_at_least_a_hundred_cases_in_every_family() -> None:
    families = Counter(case["family"] for case in CASES)
    assert len(set(TEXTS)) == len(TEXTS) >= 100
    assert len(families) >= 12
    assert min(families.values()) >= 6


def opened(said: str, trust: str, kind: str = "event") -> Engine:
    engine = new_engine(session="one")
    engine.add("instruction", RULE)
    values = {"type": "tool_call", "tool": "fetch"} if kind == "event" else {"title": said[:200]}
    add_record(engine, kind, said, trust=trust, **values)
    return engine


def computed(engine: Engine, **options: Any) -> Context:
    return engine.context(QUESTION, budget=BUDGET, overrides={"slots": WHOLE}, **options)


def quoted(content: str, tag: str) -> None:
    """The case is wholly in a fence, harmless, and its honest words can still be read there."""
    outside, inside = parts(content, tag)
    assert words(HONEST) in words(inside)
    assert "4471" not in outside.replace(RULE, "")
    assert len(outside.strip().split("\n")) <= 8, outside  # our own headings and rules
    harmless(inside, tag)
    assert "```" in inside or "~~~" in inside or not re.search(r"^\s*#{1,3}\s", inside, re.MULTILINE)


def said(text: str) -> Iterator[tuple[str, str, str]]:
    """The case before and after honest words, as what a tool and what a page said."""
    for n, trust in enumerate(("tool", "web")):
        for whole in (f"{text}\n{HONEST}", f"{HONEST}\n{text}"):
            yield whole, trust, ("event", "note")[n]


@pytest.mark.parametrize("text", TEXTS, ids=NAMES)
def test_a_case_stands_in_a_fence_and_never_in_the_system_part(text: str) -> None:
    for whole, trust, kind in said(text):
        if len(whole) > 3000 or text.count("\n") > 30:  # an event shows the ends of long output, a note all of it
            kind = "note"
        with opened(whole, trust, kind) as engine:
            context = computed(engine)
            system, user = context.messages()
            assert (system["role"], user["role"]) == ("system", "user")
            quoted(user["content"], context.tag)
            blocks = context.anthropic()
            assert blocks["messages"] == [user]
            for rules in (system["content"], context.stable, *(block["text"] for block in blocks["system"])):
                assert "4471" not in rules
                assert context.tag not in rules
            assert context.tokens == tokens.count_messages(context.messages(), context.counter) <= BUDGET
            assert engine.receipts.replay(context).same


@pytest.mark.parametrize("text", TEXTS, ids=NAMES)
def test_a_case_is_quoted_in_a_delta_and_when_it_is_expanded(text: str) -> None:
    with new_engine(session="one") as engine:
        before = computed(engine)
        note = engine.add("note", f"{text}\n{HONEST}", trust="web").record
        after = computed(engine)
        quoted(after.delta(before).text, after.tag)
        quoted(engine.expand(note.id)["content"], after.tag)
        withdrawn = before.delta(after).text
        harmless(parts(withdrawn, after.tag)[1], after.tag)


@pytest.mark.parametrize("budget", [120, 300])
@pytest.mark.parametrize("text", TEXTS[::10], ids=NAMES[::10])
def test_a_case_does_not_break_a_small_budget(text: str, budget: int) -> None:
    with new_engine(session="one") as engine:
        for n in range(6):
            engine.add(
                "event",
                f"{HONEST} {n}\n{text}",
                trust=("web", "user", "tool")[n % 3],
                data={"type": "tool_call", "tool": "x"},
            )
        context = engine.context(QUESTION, budget=budget)
        assert context.tokens == tokens.count_messages(context.messages(), context.counter) <= budget
        parts(context.text, context.tag)


@pytest.mark.parametrize("text", TEXTS, ids=NAMES)
def test_what_an_agent_passes_on_is_harmless_too(text: str) -> None:
    """A handoff is an agent's word: it is not quoted, and may be a stranger's word all the same."""
    with new_engine() as engine:
        engine.tasks.add("Fetch the invoices", key="first")
        engine.tasks.add("Pay the invoices", key="second", depends_on=["first"])
        poisoned = f"{text}\n{HONEST}"
        handoff = {
            "summary": poisoned,
            "gotchas": [{"issue": poisoned, "severity": "high"}],
            "patterns_discovered": [{"pattern": f"{HONEST} {text}", "location": "a.py"}],
            "open_questions": [{"question": f"{text} {HONEST}?", "context": text, "blocking": True}],
        }
        engine.tasks.handoff("first", json.dumps(handoff))
        context = engine.context(task="second", budget=4000)
        assert "4471" not in context.stable
        assert "4471" in context.text
        harmless(context.volatile, context.tag)
        assert context.tokens <= 4000
