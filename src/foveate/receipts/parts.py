"""The parts of a receipt: candidates with the decisions on them, and notes on the context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from foveate.memory.relations import ends_of
from foveate.pipeline.sources.parts import stored_id
from foveate.text.format import pluralize
from foveate.types import Level, Passage, Reason

# --- candidates ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordRef:
    """A record at the version that was read for a context."""

    id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateEntry:
    """A candidate of a past context: the record, its features and its score."""

    is_kept: ClassVar[bool]

    id: str
    version: int
    hash: str
    kind: str
    slot: str
    source: str
    features: Mapping[str, float]
    score: float
    overruled_by: str | None = None
    """Id of the record that superseded this one or disputes it."""
    inherited_from: RecordRef | None = None
    """The task that handed it on."""
    stale: bool = False
    """The record is about a file that no longer exists."""
    text: str | None = None
    """Text of a record that was made for the call and is not stored, so that a replay can show it."""
    passage: Passage = ()
    """Positions of its passage in the text."""
    versions: tuple[int, ...] | None = None
    """Versions of the two entities of a relation, which has no version of its own."""
    conflict: RecordRef | None = None
    """A record that contradicts this one."""

    def score_parts(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return the share of each feature in the score, in the order of the profile's weights."""
        return {name: round(weight * self.features.get(name, 0.0), 6) for name, weight in weights.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCandidate(CandidateEntry):
    """A candidate that the context shows."""

    is_kept: ClassVar[Literal[True]] = True

    level: Level
    tokens: int
    rank: int
    in_parts: bool = False
    """It is a file that is shown without some of its lines."""

    def __str__(self) -> str:
        return f"kept in {self.slot!r} at level {self.level}, {self.tokens} tokens, rank {self.rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutCandidate(CandidateEntry):
    """A candidate that the context does not show, with the reason and the missing tokens or relevance."""

    is_kept: ClassVar[Literal[False]] = False

    reason: Reason
    detail: str = ""
    needs_tokens: int = 0
    needs_relevance: float = 0.0

    def __str__(self) -> str:
        detail = self.detail
        reason = {
            "budget": "budget",
            "max_items": f"max_items ({detail})",
            "min_relevance": f"below min_relevance ({detail})",
            "duplicate": f"duplicate of {detail}",
            "superseded": f"superseded by {detail}" if detail else "superseded",
            "disputed": f"disputed by {detail}, which is more trusted" if detail else "disputed",
            "not valid": f"not valid at that time ({detail})",
            "excluded": f"excluded {detail}",
            "untrusted": f"untrusted ({detail}); a person can promote it",
        }[self.reason]
        needs = [f"+{self.needs_tokens} tokens"] if self.needs_tokens else []
        needs += [f"+{self.needs_relevance:.3f} relevance"] if self.needs_relevance else []
        return f"left out: {reason}, in {self.slot!r}" + (f"; needs {', '.join(needs)}" if needs else "")


AnyCandidate = KeptCandidate | LeftOutCandidate


# --- notes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RefreshNote:
    """The reason for which a context replaced an earlier one."""

    reason: str
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """The use of a context, as reported after it was computed. None means that nothing was reported."""

    turns: int = 0
    """Number of turns of the conversation that used the context."""
    refresh: RefreshNote | None = None
    used: tuple[str, ...] | None = None
    """Ids of the items that an answer used."""
    marks: Mapping[str, str] | None = None
    """A person's verdict on an item, by its id."""

    def merge(self, later: Notes) -> Notes:
        """Return both notes. Turns are added, used items and marks are joined, and the later refresh wins."""
        used = None if self.used is None and later.used is None else (*(self.used or ()), *(later.used or ()))
        marks = None if self.marks is None and later.marks is None else {**(self.marks or {}), **(later.marks or {})}
        return Notes(
            turns=self.turns + later.turns,
            refresh=later.refresh or self.refresh,
            used=None if used is None else tuple(dict.fromkeys(used)),
            marks=marks,
        )

    def without_records(self, ids: frozenset[str]) -> Notes:
        """Return the notes without some records."""
        return replace(
            self,
            used=None if self.used is None else tuple(id for id in self.used if not names_one_of(ids, id)),
            marks=None if self.marks is None else {id: mark for id, mark in self.marks.items() if not names_one_of(ids, id)},
        )


NO_NOTES = Notes()


def names_one_of(ids: frozenset[str], *candidates: str | None) -> bool:
    """Return whether a candidate id is in `ids`, is a part of such a record, or is a relation of one."""
    return any(part in ids for id in candidates if id for part in (stored_id(id), *ends_of(id)))


def never_candidates(number: int) -> str:
    """Return the sentence that says how many records in scope no source returned."""
    verb = "was never a candidate" if number == 1 else "were never candidates"
    return f"{pluralize(number, 'further record')} in scope {verb}."
