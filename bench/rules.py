"""Standing rules: do they reach the prompt where no word of the question leads to them?

100 instructions, prohibitions, preferences and pinned facts, for everyone, for one user and for one agent, among 2,000 other
records; 300 questions that share no term with any of them. A rule counts as present where it is an item of the rendered
prompt, and as leaked where it is in a prompt of somebody it is not for. Run at several budgets: below what the rules need,
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

OTHERS, QUESTIONS = 2000, 300
BUDGETS = (4000, 1000, 500, 250)
ASKED = 4000
"""The budget at which 95 % must be there."""
TARGET = 95.0
WHO = ((None, None), ("ana", None), (None, "writer"), ("ana", "writer"))
"""Who asks: (user, agent)."""

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
"""The last one is pinned: a fact that somebody wants to be there whatever is asked."""


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    user: str | None
    agent: str | None

    def applies(self, user: str | None, agent: str | None) -> bool:
        return self.user in (None, user) and self.agent in (None, agent)


def keep(folder: str, others: Sequence[str]) -> list[Rule]:
    """The rules, each for one of four kinds of owner, and what else there is."""
    kept = []
    engines = {who: foveate.open(folder, user=who[0], agent=who[1], personal=False) for who in WHO}
    for n, topic in enumerate(TOPICS):
        user, agent = WHO[n % len(WHO)]
        for kind, words in RULES:
            added = engines[user, agent].add(kind, words.format(topic=topic), pinned=kind == "fact")
            kept.append(Rule(added.record.id, user, agent))
    engines[None, None].store.add_many(("note", text, {}) for text in others)
    for engine in engines.values():
        engine.close()
    return kept


def _others() -> Iterator[str]:
    """Real texts: dialogue where LoCoMo is there, docstrings where it is not."""
    seen: set[str] = set()
    for text in chain((said.partition(": ")[2] for said in turns()), docs()):
        if text not in seen:
            seen.add(text)
            yield text


def unrelated(corpus: Sequence[str]) -> list[str]:
    """Questions without a term of any rule."""
    told = {term for topic in TOPICS for _, words in RULES for term in analysis.terms(words.format(topic=topic))}
    asked = [query for query in queries(list(corpus), QUESTIONS * 4) if not told & set(analysis.terms(query))]
    return asked[:QUESTIONS]


def measure(folder: str, rules: Sequence[Rule], asked: Sequence[str], budget: int) -> dict:
    """How many of the rules that apply are there, and how many that do not, over all questions and all who ask."""
    due = there = leaked = refused = full = 0
    reason = ""
    engines = [(foveate.open(folder, user=user, agent=agent, personal=False), user, agent) for user, agent in WHO]
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
        shown = {item.candidate.record.id for item in items}
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
        others = list(islice(_others(), OTHERS))
        rules = keep(folder, others)
        asked = unrelated(others)
        out: dict = {"rules": len(rules), "others": OTHERS, "questions": len(asked), "budgets": {}, "missed": []}
        with foveate.open(folder, user="ana", agent="writer", personal=False) as engine:
            out["warnings of the one with the most rules"] = engine.store.oversized_rules()
        for budget in BUDGETS:
            out["budgets"][budget] = row = measure(folder, rules, asked, budget)
            print(budget, row, flush=True)
    found = out["budgets"][ASKED]
    if found["present %"] < TARGET or found["leaked"] or len(asked) < QUESTIONS:
        out["missed"].append(f"at {ASKED} tokens {found['present %']} % are there, {found['leaked']} leaked.")
    return out
