"""PrecisionMemBench: is exactly what is asked for in the prompt? 77 questions, and 12 turns of two sessions.

The folder contains `beliefs.seed.json`, `retrieval.cases.json` and `session-retrieval.cases.json`. A domain becomes an
agent's scope and a user a user's scope. Universal beliefs are stored as instructions of the user, open questions as
`question` and everything else as `entity` with its name and aliases. Replaced and resolved beliefs are retired. A question
about two domains is asked in both.

A belief counts in the section that contains its text. A case passes if all expected beliefs are there and no forbidden one.
(For a system without sections, its whole text counts as each of them, so it cannot pass.) All questions use one store. Each
turn of a session uses a store of its own, with what the earlier turns taught.

`-o perturb=SEED` runs a copy with other names and wording; see `perturbed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.datasets.name_match import NameMatch
from bench.datasets.perturbed import perturb
from foveate.errors import InputError, NotFound
from foveate.eval.evidence import EvidenceText
from foveate.eval.model import Case, Dataset, Document, Evidence, RenderedPrompt, Subset, Suite
from foveate.eval.reading import load_json

FILES = ("beliefs.seed.json", "retrieval.cases.json", "session-retrieval.cases.json")
DATA_FORMAT = "beliefs, cases with query, scope and expect, and sessions with turns"
USER, UNIVERSAL_SCOPE = "test-user", "user:universal"
BUDGET = 8000
KNOWN_SLOT = "known"
SECTIONS = {"relevantBeliefs": KNOWN_SLOT, "pinnedFacts": "pinned", "openQuestions": "questions"}
PRELUDE_SLOTS = ("identity", "rules")
EMPTY_QUERY = "?"
"""Replaces an empty query, which foveate refuses."""

Belief = Mapping[str, Any]
FULL_LEVEL = {"level": "full", "max_level": "full"}
PROFILE: dict[str, Any] = {
    "weights": {"relevance": 1.0},
    "slots": {
        "pinned": {"kinds": ["entity"], **FULL_LEVEL},
        "questions": {
            "source": "always",
            "kinds": ["question"],
            "pinned_only": True,
            "heading": "Open Questions",
            "tokens": 300,
            "order": 35,
            **FULL_LEVEL,
        },
        KNOWN_SLOT: {
            "source": NameMatch.name,
            "kinds": ["entity"],
            "heading": "Known Information",
            "share": 20,
            "order": 70,
            **FULL_LEVEL,
        },
        **{name: {"remove": True} for name in ("decisions", "facts", "warnings", "patterns", "procedures", "episodes")},
    },
}
"""Rules and pinned records as usual; in addition, only what the query names."""


@dataclass(frozen=True, slots=True)
class PreludeEvidence:
    """A word in the first slots, whatever its case; without a word, any text there."""

    id: str
    word: str = ""
    evidence_type: str = "prelude"

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        text = " ".join(prompt.slot_text(slot) for slot in PRELUDE_SLOTS).strip().lower()
        return self.word.lower() in text if self.word else bool(text)


def files(path: Path) -> list[Path]:
    folder = path if (path / FILES[0]).exists() else path / "precisionmembench"
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise NotFound(f"{str(path)!r} contains no data of 'precision': {missing[0]} is missing.")
    return [folder / name for name in FILES]


def subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    beliefs, single, several = map(load_json, files(path))
    if "perturb" in options:
        beliefs, single, several = perturb(beliefs, single, several, _seed(options["perturb"]))
    yield Subset("retrieval", partial(_retrieval_dataset, beliefs, single))
    yield from _turn_subsets(beliefs, several)


def _seed(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise InputError(f"The option 'perturb' must be a whole number, the seed of the changes, got {value!r}.") from None


def _retrieval_dataset(beliefs: Sequence[Belief], cases: Sequence[Mapping[str, Any]]) -> Dataset:
    loaded = [
        _case(
            case["caseId"],
            case["query"],
            case,
            beliefs,
            question_type=case.get("category", ""),
            user=case.get("userId", USER),
            max_items=case.get("budget", {}).get("maxBeliefs"),
        )
        for case in cases
    ]
    return Dataset(loaded, _documents(beliefs))


def _turn_subsets(beliefs: Sequence[Belief], cases: Sequence[Mapping[str, Any]]) -> Iterator[Subset]:
    """Yield each turn with the beliefs that exist by then. What one session teaches, the next one knows."""
    for case in cases:
        for turn in case["turns"]:
            id = f"{case['caseId']}:{turn['turnIndex']}"
            yield Subset(id, partial(_turn_dataset, id, turn, beliefs))
            beliefs = _beliefs_after_turn(beliefs, turn)


def _turn_dataset(id: str, turn: Mapping[str, Any], beliefs: Sequence[Belief]) -> Dataset:
    case = _case(id, turn["userMessage"], turn, beliefs, question_type="session", user=USER)
    return Dataset([case], _documents(beliefs))


def _beliefs_after_turn(beliefs: Sequence[Belief], turn: Mapping[str, Any]) -> Sequence[Belief]:
    created = [turn["createBeliefAtTurn"]] if "createBeliefAtTurn" in turn else []
    learned = turn.get("updateBeliefAtTurn", {})
    known = [
        {**belief, "aliases": [*belief["aliases"], *learned["addAliases"]]}
        if belief["_id"] == learned.get("beliefId")
        else belief
        for belief in beliefs
    ]
    return [*known, *created]


# --- documents -----------------------------------------------------------------------------------------------------


def _documents(beliefs: Sequence[Belief]) -> list[Document]:
    return [_document(belief) for belief in beliefs]


def _document(belief: Belief) -> Document:
    universal = UNIVERSAL_SCOPE in belief["scope"]
    kind = "instruction" if universal else "question" if belief["type"] == "open_question" else "entity"
    values: dict[str, Any] = {"confidence": belief["confidence"], "pinned": belief["pinned"] and not universal}
    if kind == "entity":
        values |= {"name": belief["canonical_name"], "type": belief["type"], "aliases": belief["aliases"]}
    return Document(
        id=belief["_id"],
        text=belief["content"],
        kind=kind,
        user=belief["user_id"],
        agent=_agent(belief["scope"][0]),
        values=values,
        is_retired=bool(belief["superseded_by"] or belief["resolved_at"]),
        links=tuple(("involves", other) for other in belief.get("participants", ())),
    )


def _agent(domain: str) -> str | None:
    return None if domain == UNIVERSAL_SCOPE else domain


# --- cases ---------------------------------------------------------------------------------------------------------


def _case(
    id: str,
    query: str,
    case: Mapping[str, Any],
    beliefs: Sequence[Belief],
    *,
    question_type: str,
    user: str,
    max_items: int | None = None,
) -> Case:
    expected, forbidden = _evidence(case["expect"], {belief["_id"]: belief["content"] for belief in beliefs})
    profile = PROFILE
    if max_items is not None:  # pinned records count, too
        left = max(0, max_items - sum(_is_pinned(belief, user, case["scope"]) for belief in beliefs))
        known = {**PROFILE["slots"][KNOWN_SLOT], "max_items": left}
        profile = {**PROFILE, "slots": {**PROFILE["slots"], KNOWN_SLOT: known}}
    return Case(
        id,
        query.strip() or EMPTY_QUERY,
        expected,
        forbidden,
        question_type=question_type,
        user=user,
        agents=tuple(map(_agent, case["scope"])),
        options={"overrides": profile},
    )


def _is_pinned(belief: Belief, user: str, domains: Sequence[str]) -> bool:
    document = _document(belief)
    applies = document.user == user and belief["scope"][0] in domains
    return applies and document.kind == "entity" and document.values["pinned"] and not document.is_retired


def _evidence(expect: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[tuple[Evidence, ...], tuple[Evidence, ...]]:
    expected: list[Evidence] = []
    forbidden: list[Evidence] = []
    for tier, slot in SECTIONS.items():
        tier_expect = expect.get(tier, {})
        only = tier_expect.get("shouldOnlyInclude")
        required = [*tier_expect.get("mustInclude", ()), *(only or ())]
        others = [id for id in texts if id not in only] if only is not None else []
        excluded = [*tier_expect.get("mustExclude", ()), *others]
        if slot == KNOWN_SLOT:
            excluded += expect.get("noiseCheck", {}).get("mustNotSurface", ())
        expected += [EvidenceText(id, texts[id], "belief", slot) for id in dict.fromkeys(required)]
        forbidden += [EvidenceText(id, texts[id], "belief", slot) for id in dict.fromkeys(excluded) if id in texts]
    prelude = expect.get("personaPrelude", {})
    expected += [PreludeEvidence(word, word) for word in prelude.get("contains", ())]
    forbidden += [PreludeEvidence(word, word) for word in prelude.get("mustNotContain", ())]
    anything = PreludeEvidence("anything")
    return (
        (*expected, *([anything] if prelude.get("nonEmpty") else [])),
        (*forbidden, *([anything] if prelude.get("isNull") else [])),
    )


PRECISION = Suite(
    name="precision",
    description="PrecisionMemBench: exactly what is asked for; a case passes or fails",
    subsets=subsets,
    files=files,
    data_format=DATA_FORMAT,
    budgets=(BUDGET,),
    options={"perturb": "a whole number: run a copy with other names and wording, made from this seed"},
    sources=(NameMatch(),),
)
