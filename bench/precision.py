"""PrecisionMemBench: does what is asked for come, and nothing else? 77 questions, and 12 turns of two sessions.

How its beliefs are kept: a domain is an agent's scope and a user a user's; what holds everywhere is a standing instruction
of the user; an open question is a `question`; everything else is an `entity` with its name and aliases. What was replaced
or settled is retired. A question about two domains asks both. Only `add`, `get`, `edit`, `link`, `retire` and
`compute` are used.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import foveate
from bench.corpus import DATA
from foveate.types import Item

USER, UNIVERSAL = "test-user", "user:universal"
TARGETS = {"retrieval": 72, "session": 11}
TIERS = {"relevantBeliefs": ("known",), "pinnedFacts": ("pinned",), "openQuestions": ("questions",)}
PERSONA = ("identity", "rules")

PROFILE: dict = {
    "weights": {"named": 0.5, "relevance": 0.5},
    "slots": {
        "pinned": {"kinds": ["entity"]},
        "questions": {
            "source": "always",
            "kinds": ["question"],
            "pinned": True,
            "heading": "Open Questions",
            "tokens": 300,
            "order": 35,
        },
        "known": {"source": "named", "kinds": ["entity"], "heading": "Known Information", "share": 20, "order": 70},
        **{name: {"remove": True} for name in ("decisions", "facts", "warnings", "patterns", "procedures", "episodes")},
    },
}
"""Rules and pins as always; beyond them, only what the question calls by its name."""

NOTHING = "?"
"""Stands for an empty question: foveate wants to be asked something."""


@dataclass(slots=True)
class World:
    """One store that holds the beliefs: an engine for each user and domain, and which record each belief is."""

    folder: str
    engines: dict[tuple[str, str | None], foveate.Engine] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def engine(self, user: str, domain: str) -> foveate.Engine:
        who = (user, None if domain == UNIVERSAL else domain)
        if who not in self.engines:
            self.engines[who] = foveate.open(self.folder, user=who[0], agent=who[1], own=False)
        return self.engines[who]

    def add(self, belief: Mapping) -> None:
        engine = self.engine(belief["user_id"], belief["scope"][0])
        universal = UNIVERSAL in belief["scope"]
        values: dict = {"confidence": belief["confidence"], "pinned": belief["pinned"] and not universal}
        kind = "instruction" if universal else "question" if belief["type"] == "open_question" else "entity"
        if kind == "entity":
            values |= {"name": belief["canonical_name"], "type": belief["type"], "aliases": belief["aliases"]}
        id = self.ids[belief["_id"]] = engine.add(kind, belief["content"], **values).record.id
        if belief["superseded_by"] or belief["resolved_at"]:
            engine.retire(id)

    def ask(self, query: str, domains: Sequence[str], user: str = USER, most: int | None = None) -> dict[str, list[str]]:
        """The beliefs of each section, and the texts of the persona, for a question in these domains."""
        found: dict[str, list[str]] = {"persona": []}
        known = {id: belief for belief, id in self.ids.items()}
        for domain in domains:
            sections = self.sections(query, user, domain)
            if most is not None:  # pins count too: what they leave is for what the question names
                sections = self.sections(query, user, domain, max(0, most - len(sections.get("pinned", ()))))
            for name, items in sections.items():
                found.setdefault(name, []).extend(known[item.candidate.record.id] for item in items)
                if name in PERSONA:
                    found["persona"] += [item.candidate.record.text for item in items]
        return {name: list(dict.fromkeys(beliefs)) for name, beliefs in found.items()}

    def sections(self, query: str, user: str, domain: str, most: int = 100) -> dict[str, Sequence[Item]]:
        slots = {**PROFILE["slots"], "known": {**PROFILE["slots"]["known"], "max_items": most}}
        context = self.engine(user, domain).compute(query.strip() or NOTHING, overrides={**PROFILE, "slots": slots})
        return {section.name: section.items for section in context.sections}


def world(folder: str, beliefs: Sequence[Mapping]) -> World:
    made = World(folder)
    for belief in beliefs:
        made.add(belief)
    for belief in beliefs:
        for participant in belief.get("participants", ()):
            engine = made.engine(belief["user_id"], belief["scope"][0])
            engine.link(made.ids[belief["_id"]], "involves", made.ids[participant])
    return made


def failures(expect: Mapping, found: Mapping[str, Sequence[str]]) -> list[str]:
    """What a case asks for and did not get."""
    out: list[str] = []
    for tier, sections in TIERS.items():
        wanted = expect.get(tier, {})
        got = {belief for name in sections for belief in found.get(name, ())}
        out += [f"{tier} lacks {belief}" for belief in wanted.get("mustInclude", ()) if belief not in got]
        out += [f"{tier} has {belief}" for belief in wanted.get("mustExclude", ()) if belief in got]
        if "shouldOnlyInclude" in wanted:
            out += [f"{tier} lacks {belief}" for belief in wanted["shouldOnlyInclude"] if belief not in got]
            out += [f"{tier} has {belief}" for belief in sorted(got - set(wanted["shouldOnlyInclude"]))]
    noise = set(expect.get("noiseCheck", {}).get("mustNotSurface", ())) & set(found.get("known", ()))
    return (
        out + [f"noise {belief}" for belief in sorted(noise)] + _persona(expect.get("personaPrelude", {}), found["persona"])
    )


def _persona(wanted: Mapping, texts: Sequence[str]) -> list[str]:
    said = " ".join(texts).lower()
    out = [f"persona lacks {word!r}" for word in wanted.get("contains", ()) if word.lower() not in said]
    out += [f"persona has {word!r}" for word in wanted.get("mustNotContain", ()) if word.lower() in said]
    if wanted.get("nonEmpty") and not said:
        out.append("persona is empty")
    if wanted.get("isNull") and said:
        out.append("persona is not empty")
    return out


def retrieval(made: World, cases: Sequence[Mapping]) -> tuple[dict[str, list[str]], list[float]]:
    """What failed, case by case, and how long each took in milliseconds."""
    failed, took = {}, []
    for case in cases:
        began = time.perf_counter()
        most = case.get("budget", {}).get("maxBeliefs")
        found = made.ask(case["query"], case["scope"], case.get("userId", USER), most)
        took.append((time.perf_counter() - began) * 1000)
        failed[case["caseId"]] = failures(case["expect"], found)
    return failed, took


def sessions(made: World, cases: Sequence[Mapping]) -> dict[str, list[str]]:
    """The turns in order; what a turn teaches is kept after it was answered."""
    failed = {}
    for case in cases:
        for turn in case["turns"]:
            found = made.ask(turn["userMessage"], turn["scope"])
            failed[f"{case['caseId']}:{turn['turnIndex']}"] = failures(turn["expect"], found)
            if "createBeliefAtTurn" in turn:
                made.add(turn["createBeliefAtTurn"])
            if "updateBeliefAtTurn" in turn:
                learned = turn["updateBeliefAtTurn"]
                engine = made.engine(USER, turn["scope"][0])
                record = engine.get(made.ids[learned["beliefId"]])
                engine.edit(record.id, aliases=[*record.data["aliases"], *learned["addAliases"]])
    return failed


def run() -> dict:
    folder = DATA / "precisionmembench"
    if not folder.is_dir():
        print("PrecisionMemBench is not there; set FOVEATE_BENCH_DATA to a folder that holds it.", file=sys.stderr)
        return {}
    beliefs, single, several = (
        json.loads((folder / f"{name}.json").read_text("utf-8"))
        for name in ("beliefs.seed", "retrieval.cases", "session-retrieval.cases")
    )
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        failed, took = retrieval(world(one, beliefs), single)
        groups = {"retrieval": failed, "session": sessions(world(other, beliefs), several)}
    out: dict = {"median ms": round(statistics.median(took), 2), "missed": []}
    for name, cases in groups.items():
        passed = sum(not reasons for reasons in cases.values())
        out[name] = {"passed": passed, "of": len(cases), "failed": {id: why for id, why in cases.items() if why}}
        print(f"{name}: {passed} of {len(cases)}")
        for id, reasons in out[name]["failed"].items():
            print(f"  {id}: {'; '.join(reasons)}")
        if passed < TARGETS[name]:
            out["missed"].append(f"{name}: {passed} of {len(cases)} passed, {TARGETS[name]} are wanted.")
    return out
