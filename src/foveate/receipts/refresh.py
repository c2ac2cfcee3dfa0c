"""Decide whether the previous context is still good for a new question.

Nothing is carried over from the previous context: its receipt says what was shown, and a new one is computed from state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from foveate.errors import InputError
from foveate.pipeline.run import Plan
from foveate.receipts.context import Context
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import kind_of
from foveate.store.protocol import Reader
from foveate.text import analysis
from foveate.types import Record

MIN_MATCH = 0.5
"""004: an input that matches the context by less than this is about something else."""

DEFAULT_PRESSURE = 0.9
"""The share of the room that conversation and context may take before the least relevant items go."""

RefreshReason = Literal["", "first", "frame", "decision", "new information", "pressure", "event"]

_DECIDES = re.compile(
    r"\b(?:decid(?:e|es|ed|ing)|decisions?|choos(?:e|es|ing)|approve|go ahead|commit to|settle on|sign off|trade-?offs?"
    r"|(?:should|shall|do) (?:we|i) (?:use|pick|take|adopt|switch|choose|drop|go))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The answer to "is the previous context still good?". False if it is."""

    context: Context | None
    reason: RefreshReason
    detail: str
    match: float = 1.0
    """How much of the new question the previous context covers, 0..1."""

    def __bool__(self) -> bool:
        return self.context is not None


def judge(before: Receipt, plan: Plan, match: float, *, acting: bool) -> tuple[RefreshReason, str]:
    """Return the first of 004's reasons to refresh, and its explanation; no reason if the context is still good.

    `acting` says that the agent is about to act.
    """
    old, new = before.signals.frame, plan.signals.frame
    if old != new:
        return "frame", f"the frame changes from {old or 'none'!r} to {new or 'none'!r}"
    if before.profile.name != plan.profile.name:
        return "frame", f"the profile changes from {before.profile.name!r} to {plan.profile.name!r}"
    # A series of steps is one decision: only the turn from talking to acting refreshes, or a caller who says so.
    decided = is_decision(before.request.query, before.signals.intent)
    if acting or (is_decision(plan.request.query, plan.signals.intent) and not decided):
        return "decision", "a decision or an action is next"
    if match < MIN_MATCH:
        return "new information", f"the context covers {match:.0%} of the question, less than {MIN_MATCH:.0%}"
    return "", f"the context covers {match:.0%} of the question"


def is_decision(text: str, intent: str) -> bool:
    """Return whether someone is about to act or to decide, by the intent or by the words."""
    return intent == "action" or _DECIDES.search(text) is not None


def term_coverage(said: Iterable[str], held: Iterable[str], rarity: Mapping[str, float]) -> float:
    """The share of the informative terms of what is said, weighted by rarity, that occur in what is held; 0..1.

    Informative are terms that some record holds, and a rare one tells more than a common one. A term that no record
    holds counts for nothing: looking for it again could bring nothing. Nothing informative said is nothing new: 1.
    """
    wanted = {term: rarity[term] for term in said if rarity.get(term)}
    shown = frozenset(held)
    whole = sum(wanted.values())
    return sum(weight for term, weight in wanted.items() if term in shown) / whole if whole else 1.0


def match_of(
    before: Receipt, plan: Plan, previous: str | Context | Receipt, reader: Reader, similarity: Callable[[str, str], float]
) -> float:
    """Return how much of the new question the previous context covers.

    Shared words decide; if they say too little, the similarity of the two questions counts.
    """
    query = plan.request.query
    terms = analysis.terms(query)
    held = [*before.signals.terms, *_terms(shown_records(before, reader, previous))]
    by_words = term_coverage(terms, held, reader.idf(terms))
    if by_words >= MIN_MATCH or plan.signals.embedding is None or before.request.is_forgotten:
        return by_words
    return max(by_words, similarity(before.request.query, query))


def shown_records(receipt: Receipt, state: Reader, context: str | Context | Receipt) -> dict[str, tuple[Record, str]]:
    """The records that a context showed, each with the line that it showed; given texts where the context is at hand."""
    kept = {entry.id: entry.level for entry in receipt.items}
    found = state.get(list(kept))
    if isinstance(context, Context):
        found |= {item.id: item.record for item in context.items}
    return {id: (found[id], kind_of(found[id].kind).render(found[id], level)) for id, level in kept.items() if id in found}


def _terms(lines: Mapping[str, tuple[Record, str]]) -> list[str]:
    return [
        term
        for record, line in lines.values()
        for term in analysis.terms(" ".join((line, *record.tags, *record.entities, *record.paths, record.subject or "")))
    ]


def budget_left(before: Receipt, conversation_tokens: int, window: int | None, pressure: float) -> int | None:
    """Return the budget that is left beside the conversation; None if the previous context still fits.

    `window` is the size of both together and defaults to the previous budget.
    """
    if not 0 < pressure <= 1:
        raise InputError(f"pressure must be above 0 and at most 1, got {pressure!r}.")
    if not conversation_tokens and window is None:
        return None
    whole = window if window is not None else before.budget.total
    left = int(pressure * whole) - conversation_tokens
    return None if before.budget.used <= left else max(1, left)
