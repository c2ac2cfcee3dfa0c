"""LoCoMo: how much of the needed evidence is in the rendered text, by token budget, beside SQLite FTS5 with porter stemming.

A turn counts as present only if its text is in the context as the model receives it; ours pays for headings and framing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import apsw

import foveate
from bench.corpus import Conversation, Question, locomo
from foveate import tokens

BUDGETS = (250, 500, 1000, 2000, 4000, 8000)
Render = Callable[[Question, int], str]


def ours(talk: Conversation) -> Render:
    engine = foveate.open(":memory:", profile="chat")
    for session, turns in groupby(talk.turns, key=lambda turn: turn.session):
        rows = [("note", line(turn), {"key": turn.id, "created": turn.when, "valid_from": turn.when}) for turn in turns]
        engine.add_many(rows, scope=replace(engine.scope, session=session))

    def render(question: Question, budget: int) -> str:
        return engine.compute(question.text, budget=budget, now=talk.turns[-1].when).text

    return render


def fts5(talk: Conversation) -> Render:
    """The same turns in FTS5, OR of the question's words, best first until the budget is full. No headings, no framing."""
    db = apsw.Connection(":memory:")
    db.execute("create virtual table t using fts5(text, tokenize = 'porter unicode61')")
    db.executemany("insert into t(rowid, text) values (?, ?)", [(n, line(turn)) for n, turn in enumerate(talk.turns)])

    def render(question: Question, budget: int) -> str:
        words = ["".join(c if c.isalnum() else " " for c in word) for word in question.text.split()]
        match = " OR ".join(f'"{part}"' for word in words for part in word.split())
        out, used = [], 0
        for (n,) in db.execute("select rowid from t where t match ? order by bm25(t), rowid", (match,)):
            text = f"- {line(talk.turns[n])}\n"
            cost = tokens.count(text)
            if used + cost <= budget:
                out.append(text)
                used += cost
        return "".join(out)

    return render


def line(turn) -> str:
    return f"{turn.speaker}: {turn.text}"


def present(talk: Conversation, question: Question, text: str) -> list[bool]:
    said = {turn.id: line(turn) for turn in talk.turns}
    flat = " ".join(text.split())
    return [" ".join(said[id].split()) in flat for id in question.evidence]


def run() -> dict:
    talks = locomo()
    if not talks:
        print("LoCoMo is not there; set FOVEATE_BENCH_DATA to a folder that holds locomo/.", file=sys.stderr)
        return {}
    rows: dict[str, dict[int, dict[str, float]]] = {}
    for name, system in (("foveate chat", ours), ("FTS5 porter", fts5)):
        sums = {budget: [0.0, 0.0, 0.0] for budget in BUDGETS}
        asked = 0
        for talk in talks:
            render = system(talk)
            for question in talk.questions:
                asked += 1
                for budget in BUDGETS:
                    hits = present(talk, question, render(question, budget))
                    sums[budget][0] += any(hits)
                    sums[budget][1] += all(hits)
                    sums[budget][2] += sum(hits) / len(hits)
        rows[name] = {
            budget: dict(zip(("any", "all", "fraction"), (round(100 * s / asked, 1) for s in parts), strict=True))
            for budget, parts in sums.items()
        }
        print(f"{name:14}", *(f"{b}: {v['any']:.1f}/{v['all']:.1f}/{v['fraction']:.1f}" for b, v in rows[name].items()))
    return {"questions": asked, "evidence any/all/fraction in % by token budget": rows}
