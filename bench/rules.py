"""Measures whether standing rules reach the prompt when no word of the query leads to them.

100 instructions, prohibitions, preferences and pinned facts, for everyone, for one user and for one agent, among 2,000 other
records; 300 queries share no term with any of them. A rule is present if it is an item of the rendered prompt, and leaked if
it is in the prompt of another user or agent. Run at several budgets: below what the rules need,
they step down to micro lines and take room from others; below that, `compute` refuses and says what it needs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import foveate
from bench.corpus import docs, queries, turns
from foveate.errors import FoveateError
from foveate.text import analysis

OTHER_RECORDS, QUERY_COUNT = 2000, 300
BUDGETS = (4000, 1000, 500, 250)
TARGET_BUDGET = 4000
TARGET_PERCENT = 95.0
"""The share of rules that must be present at this budget."""
OWNERS = ((None, None), ("ana", None), (None, "writer"), ("ana", "writer"))
"""Pairs of user and agent."""

TOPICS = ("answers", "commits", "invoices", "recipes", "emails", "charts", "citations", "greetings", "timestamps",
          "temperatures", "passwords", "migrations", "holidays", "translations", "footnotes", "screenshots", "changelogs",
          "acronyms", "apologies", "spreadsheets")  # fmt: skip
RULES = (
    ("instruction", "Always keep {topic} under sixty characters."),
    ("censor", "Never publish {topic} before somebody reviewed them."),
    ("instruction", "Prefers {topic} in British spelling."),
    ("identity", "You are the colleague who looks after {topic}."),
    ("fact", "The owner of {topic} is the Lisbon office."),
)
"""The last one is pinned: a fact that belongs into every prompt."""


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    user: str | None
    agent: str | None

    def applies(self, user: str | None, agent: str | None) -> bool:
        return self.user in (None, user) and self.agent in (None, agent)


def store_rules(folder: str, others: Sequence[str]) -> list[Rule]:
    """Store the rules, each for one of four owners, and the other texts."""
    stored = []
    engines = {who: foveate.open(folder, user=who[0], agent=who[1], personal=False) for who in OWNERS}
    for n, topic in enumerate(TOPICS):
        user, agent = OWNERS[n % len(OWNERS)]
        for kind, words in RULES:
            added = engines[user, agent].add(kind, words.format(topic=topic), pinned=kind == "fact")
            stored.append(Rule(added.record.id, user, agent))
    engines[None, None].store.add_many(("note", text, {}) for text in others)
    for engine in engines.values():
        engine.close()
    return stored


def _other_texts() -> Iterator[str]:
    """Yield real texts: dialogue if LoCoMo is available, else docstrings."""
    seen: set[str] = set()
    for text in chain((turn.partition(": ")[2] for turn in turns()), docs()):
        if text not in seen:
            seen.add(text)
            yield text


def unrelated_queries(corpus: Sequence[str]) -> list[str]:
    """Return queries without a term of any rule."""
    rule_terms = {term for topic in TOPICS for _, words in RULES for term in analysis.terms(words.format(topic=topic))}
    candidates = queries(list(corpus), QUERY_COUNT * 4)
    return [query for query in candidates if not rule_terms & set(analysis.terms(query))][:QUERY_COUNT]


def measure(folder: str, rules: Sequence[Rule], asked: Sequence[str], budget: int) -> dict:
    """Count the rules that apply and are present, and those that do not apply and leaked, over all queries and owners."""
    due = there = leaked = refused = full = 0
    reason = ""
    engines = [(foveate.open(folder, user=user, agent=agent, personal=False), user, agent) for user, agent in OWNERS]
    for n, query in enumerate(asked):
        engine, user, agent = engines[n % len(engines)]
        wanted = {rule.id for rule in rules if rule.applies(user, agent)}
        due += len(wanted)
        try:
            context = engine.context(query, budget=budget)
        except FoveateError as error:
            refused, reason = refused + 1, str(error)
            continue
        items = [item for section in context.sections if section.stable for item in section.items]
        shown = {item.id for item in items}
        there += len(wanted & shown)
        leaked += len({rule.id for rule in rules} & shown - wanted)
        full += sum(item.level == "full" for item in items)
    for engine, _, _ in engines:
        engine.close()
    return {
        "present %": round(100 * there / due, 1),
        "leaked": leaked,
        "in full %": round(100 * full / there, 1) if there else 0.0,
        "refused questions": refused,
        **({"refusal": reason} if reason else {}),
    }


def run() -> dict:
    with tempfile.TemporaryDirectory() as folder:
        others = list(islice(_other_texts(), OTHER_RECORDS))
        rules = store_rules(folder, others)
        asked = unrelated_queries(others)
        out: dict = {"rules": len(rules), "others": OTHER_RECORDS, "questions": len(asked), "budgets": {}, "missed": []}
        with foveate.open(folder, user="ana", agent="writer", personal=False) as engine:
            out["warnings of the one with the most rules"] = engine.store.oversized_rules()
        for budget in BUDGETS:
            out["budgets"][budget] = row = measure(folder, rules, asked, budget)
            print(budget, row, flush=True)
    result = out["budgets"][TARGET_BUDGET]
    if result["present %"] < TARGET_PERCENT or result["leaked"] or len(asked) < QUERY_COUNT:
        out["missed"].append(f"at {TARGET_BUDGET} tokens {result['present %']} % are there, {result['leaked']} leaked.")
    return out
