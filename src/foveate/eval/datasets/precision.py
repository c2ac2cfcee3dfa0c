"""PrecisionMemBench: does what is asked for come, and nothing else? 77 questions, and 12 turns of two sessions.

The folder holds `beliefs.seed.json`, `retrieval.cases.json` and `session-retrieval.cases.json`. How beliefs are kept: a
domain is an agent's scope and a user a user's; what holds everywhere is a standing instruction of the user; an open
question is a `question`; everything else is an `entity` with its name and aliases. What was replaced or settled is retired.
A question about two domains asks both.

A belief counts in the section in which its words stand, and a case passes where all that it wants stands and nothing else
that it forbids. (A system without sections is judged as if all that it gives were in each of them: it cannot pass.) All
questions ask one store. Each turn of a session asks a store of its own: what the turns before it taught is told.

`-o perturb=SEED` asks a copy with other names and wording: see `perturbed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from foveate.errors import InputError, NotFound
from foveate.eval.datasets.perturbed import perturbed
from foveate.eval.evidence import Said
from foveate.eval.model import Case, Entry, Evidence, Rendered, Scene, Suite, World
from foveate.eval.reading import parsed

FILES = ("beliefs.seed.json", "retrieval.cases.json", "session-retrieval.cases.json")
FORM = "beliefs, cases with query, scope and expect, and sessions with turns"
USER, UNIVERSAL = "test-user", "user:universal"
BUDGET = 8000
KNOWN = "known"
SECTIONS = {"relevantBeliefs": KNOWN, "pinnedFacts": "pinned", "openQuestions": "questions"}
PRELUDE = ("identity", "rules")
NOTHING = "?"
"""Stands for an empty question: foveate wants to be asked something."""

Belief = Mapping[str, Any]
WORD_FOR_WORD = {"level": "full", "deepest": "full"}
PROFILE: dict[str, Any] = {
    "weights": {"named": 0.5, "relevance": 0.5},
    "slots": {
        "pinned": {"kinds": ["entity"], **WORD_FOR_WORD},
        "questions": {
            "source": "always",
            "kinds": ["question"],
            "pinned": True,
            "heading": "Open Questions",
            "tokens": 300,
            "order": 35,
            **WORD_FOR_WORD,
        },
        KNOWN: {
            "source": "named",
            "kinds": ["entity"],
            "heading": "Known Information",
            "share": 20,
            "order": 70,
            **WORD_FOR_WORD,
        },
        **{name: {"remove": True} for name in ("decisions", "facts", "warnings", "patterns", "procedures", "episodes")},
    },
}
"""Rules and pins as always; beyond them, only what the question calls by its name."""


@dataclass(frozen=True, slots=True)
class Prelude:
    """What stands in front of everything: a word in it, whatever its case, or that there is something at all."""

    id: str
    word: str = ""
    what: str = "prelude"

    def stands(self, rendered: Rendered) -> bool:
        said = " ".join(rendered.within(slot) for slot in PRELUDE).strip().lower()
        return self.word.lower() in said if self.word else bool(said)


def files(path: Path) -> list[Path]:
    folder = path if (path / FILES[0]).exists() else path / "precisionmembench"
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise NotFound(f"{str(path)!r} holds no data of 'precision': {missing[0]} is looked for.")
    return [folder / name for name in FILES]


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    beliefs, single, several = map(parsed, files(path))
    if "perturb" in options:
        beliefs, single, several = perturbed(beliefs, single, several, _seed(options["perturb"]))
    yield World("retrieval", partial(_retrieval, beliefs, single))
    yield from _turns(beliefs, several)


def _seed(given: str) -> int:
    try:
        return int(given)
    except ValueError:
        raise InputError(f"perturb is a whole number, the seed of the changes, not {given!r}.") from None


def _retrieval(beliefs: Sequence[Belief], cases: Sequence[Mapping[str, Any]]) -> Scene:
    asked = [
        _case(
            case["caseId"],
            case["query"],
            case,
            beliefs,
            type=case.get("category", ""),
            user=case.get("userId", USER),
            most=case.get("budget", {}).get("maxBeliefs"),
        )
        for case in cases
    ]
    return Scene(asked, _entries(beliefs))


def _turns(beliefs: Sequence[Belief], cases: Sequence[Mapping[str, Any]]) -> Iterator[World]:
    """Each turn with the beliefs that there are by then; what one session taught, the next one knows."""
    for case in cases:
        for turn in case["turns"]:
            id = f"{case['caseId']}:{turn['turnIndex']}"
            yield World(id, partial(_turn, id, turn, beliefs))
            beliefs = _taught(beliefs, turn)


def _turn(id: str, turn: Mapping[str, Any], beliefs: Sequence[Belief]) -> Scene:
    return Scene([_case(id, turn["userMessage"], turn, beliefs, type="session", user=USER)], _entries(beliefs))


def _taught(beliefs: Sequence[Belief], turn: Mapping[str, Any]) -> Sequence[Belief]:
    created = [turn["createBeliefAtTurn"]] if "createBeliefAtTurn" in turn else []
    learned = turn.get("updateBeliefAtTurn", {})
    known = [
        {**belief, "aliases": [*belief["aliases"], *learned["addAliases"]]}
        if belief["_id"] == learned.get("beliefId")
        else belief
        for belief in beliefs
    ]
    return [*known, *created]


# --- told ----------------------------------------------------------------------------------------------------------


def _entries(beliefs: Sequence[Belief]) -> list[Entry]:
    return [_entry(belief) for belief in beliefs]


def _entry(belief: Belief) -> Entry:
    universal = UNIVERSAL in belief["scope"]
    kind = "instruction" if universal else "question" if belief["type"] == "open_question" else "entity"
    values: dict[str, Any] = {"confidence": belief["confidence"], "pinned": belief["pinned"] and not universal}
    if kind == "entity":
        values |= {"name": belief["canonical_name"], "type": belief["type"], "aliases": belief["aliases"]}
    return Entry(
        id=belief["_id"],
        text=belief["content"],
        kind=kind,
        user=belief["user_id"],
        agent=_agent(belief["scope"][0]),
        values=values,
        retired=_gone(belief),
        links=tuple(("involves", other) for other in belief.get("participants", ())),
    )


def _agent(domain: str) -> str | None:
    return None if domain == UNIVERSAL else domain


def _gone(belief: Belief) -> bool:
    return bool(belief["superseded_by"] or belief["resolved_at"])


# --- asked ---------------------------------------------------------------------------------------------------------


def _case(
    id: str,
    query: str,
    case: Mapping[str, Any],
    beliefs: Sequence[Belief],
    *,
    type: str,
    user: str,
    most: int | None = None,
) -> Case:
    wanted, unwanted = _evidence(case["expect"], {belief["_id"]: belief["content"] for belief in beliefs})
    profile = PROFILE
    if most is not None:  # pins count too: what they leave is for what the question names
        left = max(0, most - sum(_pinned(belief, user, case["scope"]) for belief in beliefs))
        profile = {**PROFILE, "slots": {**PROFILE["slots"], KNOWN: {**PROFILE["slots"][KNOWN], "max_items": left}}}
    return Case(
        id,
        query.strip() or NOTHING,
        wanted,
        unwanted,
        type=type,
        user=user,
        agents=tuple(map(_agent, case["scope"])),
        options={"overrides": profile},
    )


def _pinned(belief: Belief, user: str, domains: Sequence[str]) -> bool:
    entry = _entry(belief)
    here = entry.user == user and belief["scope"][0] in domains
    return here and entry.kind == "entity" and entry.values["pinned"] and not entry.retired


def _evidence(expect: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[tuple[Evidence, ...], tuple[Evidence, ...]]:
    wanted: list[Evidence] = []
    unwanted: list[Evidence] = []
    for tier, slot in SECTIONS.items():
        asked = expect.get(tier, {})
        only = asked.get("shouldOnlyInclude")
        there = [*asked.get("mustInclude", ()), *(only or ())]
        forbidden = [*asked.get("mustExclude", ()), *((id for id in texts if id not in only) if only is not None else ())]
        if slot == KNOWN:
            forbidden += expect.get("noiseCheck", {}).get("mustNotSurface", ())
        wanted += [_piece(id, texts[id], slot) for id in dict.fromkeys(there)]
        unwanted += [_piece(id, texts[id], slot) for id in dict.fromkeys(forbidden) if id in texts]
    prelude = expect.get("personaPrelude", {})
    wanted += [Prelude(word, word) for word in prelude.get("contains", ())]
    unwanted += [Prelude(word, word) for word in prelude.get("mustNotContain", ())]
    anything = Prelude("anything")
    return (
        (*wanted, *([anything] if prelude.get("nonEmpty") else [])),
        (*unwanted, *([anything] if prelude.get("isNull") else [])),
    )


def _piece(id: str, text: str, slot: str) -> Said:
    return Said(id, text, "belief", slot)


SUITE = Suite(
    name="precision",
    about="PrecisionMemBench: what is asked for, and nothing else; a case passes or fails",
    worlds=worlds,
    files=files,
    form=FORM,
    budgets=(BUDGET,),
    options={"perturb": "a whole number: ask a copy with other names and wording, made from this seed"},
)
