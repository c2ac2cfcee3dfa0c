"""Is the last context still good for what is said now? And contexts that need not be computed twice.

Comes in: what is said, the receipt of the previous context, and how much of the room the conversation takes. Goes out: a
`Refresh`, with a new context and the reason for it where one is needed. Nothing is carried over from the previous context:
its receipt says what was shown, and a new one is computed from state. `Cache` holds contexts for some seconds.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal, Protocol

from foveate.errors import BudgetError, InputError
from foveate.pipeline.assembly import Context
from foveate.receipts.receipt import FORGOTTEN, Receipt, filters_from_json, scope_within
from foveate.records.kinds import kind_of
from foveate.store.protocol import Reader
from foveate.text import analysis
from foveate.types import Profile, Record, Request, Scope, Signals

MATCH = 0.5
"""004: an input that matches the context by less than this is about something else."""

PRESSURE = 0.9
"""The share of the room that conversation and context may take before the least relevant items go."""

CACHE_SECONDS = 30.0
"""003's time to live."""

CACHED = 128
"""Contexts held at once; then the oldest goes."""

Why = Literal["", "first", "frame", "decision", "new information", "pressure"]

_DECIDES = re.compile(
    r"\b(?:decid(?:e|es|ed|ing)|decisions?|choos(?:e|es|ing)|approve|go ahead|commit to|settle on|sign off|trade-?offs?"
    r"|(?:should|shall|do) (?:we|i) (?:use|pick|take|adopt|switch|choose|drop|go))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refresh:
    """What became of the question whether to refresh. False where the previous context is still good."""

    context: Context | None
    reason: Why
    detail: str
    match: float = 1.0
    """How much of what is said now the previous context holds."""

    def __bool__(self) -> bool:
        return self.context is not None


class Computes(Protocol):
    """What refreshing needs of an engine."""

    scope: Scope

    def compute(self, query: str | None = None, **options: Any) -> Context: ...
    def receipt(self, context: str | Context | None = None) -> Receipt: ...
    def reader(self, scope: Scope | None = None) -> AbstractContextManager[Reader]: ...
    def looked_at(self, query: str | None = None, **options: Any) -> tuple[Request, Signals, Profile]: ...
    def nearness(self, one: str, other: str) -> float: ...
    def note(self, context: str, **notes: Any) -> None: ...


def refresh(
    engine: Computes,
    said: str,
    previous: str | Context | None,
    *,
    decision: bool = False,
    spent: int = 0,
    window: int | None = None,
    pressure: float = PRESSURE,
    **options: Any,
) -> Refresh:
    """A new context where what is said needs one. `options` are those of the request; the rest is the previous one's.

    `spent` are the tokens that the conversation takes besides the context, `window` what both may take together: the
    budget, unless it is given. `decision` says that the agent is about to act.
    """
    if not 0 < pressure <= 1:
        raise InputError(f"A pressure is a share of the room above 0 and up to 1, not {pressure!r}.")
    if previous is None:
        context = engine.compute(said, **options)
        engine.note(context.id, turns=1)
        return Refresh(context, "first", "there is no previous context", 0.0)
    before = engine.receipt(previous)
    asked = {**asked_again(before, engine.scope), **options}
    asked.pop("query", None)
    _, signals, profile = engine.looked_at(said, **asked)
    match = _match(engine, said, signals, before, previous)
    room = _room(before, spent, window, pressure)
    reason, detail = judged(before, signals, profile, match, decides=decision or is_decision(said, signals), marked=decision)
    if not reason and room is not None:
        reason, detail = "pressure", f"conversation and context take more than {pressure:.0%} of their room"
    if not reason:
        engine.note(before.id, turns=1)
        return Refresh(None, "", detail, match)
    if room is not None:
        asked["budget"] = room
    context = _fitting(engine, said, asked)
    engine.note(context.id, turns=1, refresh={"reason": reason, "previous": before.id})
    return Refresh(context, reason, detail, match)


def judged(
    before: Receipt, signals: Signals, profile: Profile, match: float, *, decides: bool, marked: bool
) -> tuple[Why, str]:
    """The first of 004's reasons that holds, in words; no reason where the context is still good."""
    old, new = before.document["signals"].get("frame") or "", getattr(signals, "frame", "")
    if old != new:
        return "frame", f"the frame switches from {old or 'none'!r} to {new or 'none'!r}"
    if before.document["profile"]["name"] != profile.name:
        return "frame", f"the profile switches from {before.document['profile']['name']!r} to {profile.name!r}"
    # A series of steps is one decision: only the turn from talking to acting reloads, or a caller who says so.
    asked = before.document["request"]["query"]
    if marked or (decides and not is_decision(asked, before.document["signals"].get("intent", ""))):
        return "decision", "a decision or an action is next"
    if match < MATCH:
        return "new information", f"the context holds {match:.0%} of what is said, less than {MATCH:.0%}"
    return "", f"the context holds {match:.0%} of what is said"


def is_decision(said: str, signals: Signals | str) -> bool:
    """Whether somebody is about to act or to decide: the intent says so, or the words do."""
    intent = signals if isinstance(signals, str) else signals.intent
    return intent == "action" or _DECIDES.search(said) is not None


def share_held(said: Iterable[str], held: Iterable[str], rarity: Mapping[str, float]) -> float:
    """The share of the informative terms of what is said, weighted by rarity, that occur in what is held; 0..1.

    Informative are terms that some record holds, and a rare one tells more than a common one. A term that no record
    holds counts for nothing: looking for it again could bring nothing. Nothing informative said is nothing new: 1.
    """
    wanted = {term: rarity[term] for term in said if rarity.get(term)}
    shown = frozenset(held)
    whole = sum(wanted.values())
    return sum(weight for term, weight in wanted.items() if term in shown) / whole if whole else 1.0


def _match(engine: Computes, said: str, signals: Signals, before: Receipt, previous: str | Context) -> float:
    """How much of what is said the previous context holds: by words or, where that says more, by the two questions."""
    asked = before.document["request"]
    terms = analysis.terms(said)
    with engine.reader(scope_within(before, engine.scope)) as state:
        held = [*before.document["signals"].get("terms", ()), *_terms(shown(before, state, previous))]
        by_words = share_held(terms, held, state.rarity(terms))
    if by_words >= MATCH or signals.embedding is None or asked["query"] == FORGOTTEN:
        return by_words
    return max(by_words, engine.nearness(asked["query"], said))


def shown(receipt: Receipt, state: Reader, context: str | Context) -> dict[str, tuple[Record, str]]:
    """The records that a context showed, each with the line that it showed; given texts where the context is at hand."""
    kept = {entry["id"]: entry["level"] for entry in receipt.candidates if entry["kept"]}
    found = state.get(list(kept))
    if isinstance(context, Context):
        found |= {item.candidate.record.id: item.candidate.record for item in context.items}
    return {id: (found[id], kind_of(found[id].kind).line(found[id], level)) for id, level in kept.items() if id in found}


def _terms(lines: Mapping[str, tuple[Record, str]]) -> list[str]:
    return [
        term
        for record, line in lines.values()
        for term in analysis.terms(" ".join((line, *record.tags, *record.entities, *record.paths, record.subject or "")))
    ]


def _room(before: Receipt, spent: int, window: int | None, pressure: float) -> int | None:
    """The budget that is left under token pressure; None where there is none, or nobody said what else takes room."""
    if not spent and window is None:
        return None
    budget = before.document["budget"]
    whole = window if window is not None else int(budget["total"])
    left = int(pressure * whole) - spent
    return None if budget["used"] <= left else max(1, left)


def _fitting(engine: Computes, said: str, asked: dict[str, Any]) -> Context:
    """The context within its budget; 004: censors and frame stay, so what must be kept is the least that it shrinks to."""
    try:
        return engine.compute(said, **asked)
    except BudgetError as error:
        if asked.get("budget") is None:
            raise
        return engine.compute(said, **{**asked, "budget": asked["budget"] + error.short})


def asked_again(receipt: Receipt, mine: Scope) -> dict[str, Any]:
    """A past request as options for a new one, its clock aside. Given texts are not kept: the caller has them."""
    asked = receipt.document["request"]
    names = ("query", "budget", "profile", "agent", "complexity", "counter", "overrides", "frame", "code_query")
    return {name: asked[name] for name in names if asked.get(name) not in (None, FORGOTTEN)} | {
        "scope": scope_within(receipt, mine),
        "filters": filters_from_json(asked["filters"]),
    }


# --- contexts that need not be computed twice -----------------------------------------------------------------------


class Cache:
    """Contexts of the last seconds. A hit has the bytes of a recompute at the rounded clock."""

    def __init__(self, seconds: float = CACHE_SECONDS, size: int = CACHED) -> None:
        if seconds <= 0:
            raise InputError(f"cache_seconds is a time above 0, not {seconds!r}.")
        self._ttl = max(1, round(seconds * 1000))
        self._size = size
        self._held: OrderedDict[str, tuple[int, Context]] = OrderedDict()
        self._lock = threading.Lock()

    def rounded(self, now: int) -> int:
        """The clock of every request of one stretch. Up, so that what was written a moment ago is valid already."""
        return -(-now // self._ttl) * self._ttl

    def get(self, key: str) -> Context | None:
        with self._lock:
            held = self._held.get(key)
        return held[1] if held else None

    def put(self, key: str, now: int, context: Context) -> None:
        """Hold a context for the rest of its stretch; those of earlier ones are dropped."""
        with self._lock:
            for old in [name for name, (at, _) in self._held.items() if at < now]:
                del self._held[old]
            self._held[key] = (now, context)
            while len(self._held) > self._size:
                self._held.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()

    def __len__(self) -> int:
        return len(self._held)


def cache_key(request: Request, profile: Profile, revision: str, code: str = "") -> str:
    """What a context depends on: the request with its scope and clock, the profile as resolved, the state of the store
    and the generation of the code index."""
    parts = "\x1f".join((repr(request), repr(profile), revision, code))
    return blake2b(parts.encode("utf-8", "replace"), digest_size=16).hexdigest()
