"""Decide whether the previous context still fits a new query.

Nothing is copied from the previous context. Its receipt names what it showed, and a new context is computed from the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from foveate.errors import InputError
from foveate.pipeline.follow_up import content_terms, is_follow_up, with_topic
from foveate.pipeline.run import Plan
from foveate.receipts.context import Context
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import kind_of
from foveate.store.protocol import Reader
from foveate.text import analysis
from foveate.types import Record

MIN_MATCH = 0.5
"""004: if the context covers less than this of the new query, the query is about something else."""

DEFAULT_PRESSURE = 0.9
"""Share of the window that conversation and context may take together. Above it, a smaller context is computed."""

RefreshReason = Literal["", "first", "frame", "decision", "new information", "pressure", "event"]

_DECISION_WORDS = re.compile(
    r"\b(?:decid(?:e|es|ed|ing)|decisions?|choos(?:e|es|ing)|approve|go ahead|commit to|settle on|sign off|trade-?offs?"
    r"|(?:should|shall|do) (?:we|i) (?:use|pick|take|adopt|switch|choose|drop|go))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Refresh:
    """The result of `Engine.refresh`: a new context and its reason. It is falsy if the previous context still fits."""

    context: Context | None
    reason: RefreshReason
    detail: str
    match: float = 1.0
    """Share of the new query that the previous context covers, 0..1."""

    def __bool__(self) -> bool:
        return self.context is not None


def judge(before: Receipt, plan: Plan, match: float, *, acting: bool) -> tuple[RefreshReason, str]:
    """Return the first of 004's reasons to refresh that applies, and an explanation. The reason is empty if none applies.

    `acting` says that the agent is about to act.
    """
    # In the order of 004. The reason is stored with the context, so only one is given.
    old, new = before.signals.frame, plan.signals.frame
    goes_on = plan.request.frame is None and is_follow_up(plan.request.query)  # "thanks" changes no frame
    if old != new and not goes_on:
        return "frame", f"the frame changes from {old or 'none'!r} to {new or 'none'!r}"
    if before.profile.name != plan.profile.name and not goes_on:
        return "frame", f"the profile changes from {before.profile.name!r} to {plan.profile.name!r}"
    # A series of actions is one decision, so only the first of them refreshes, unless the caller passes `acting`.
    decided = is_decision(before.request.query, before.signals.intent)
    if acting or (is_decision(plan.request.query, plan.signals.intent) and not decided):
        return "decision", "a decision or an action is next"
    if match < MIN_MATCH:
        return "new information", f"the context covers {match:.0%} of the query, less than {MIN_MATCH:.0%}"
    return "", f"the context covers {match:.0%} of the query"


def is_decision(text: str, intent: str) -> bool:
    """Return whether a query announces an action or a decision, by its intent or its words."""
    return intent == "action" or _DECISION_WORDS.search(text) is not None


def term_coverage(query_terms: Iterable[str], context_terms: Iterable[str], idf: Mapping[str, float]) -> float:
    """Return the share of the query's terms, weighted by idf, that the context contains; 0..1.

    Terms that occur in no record are ignored, because another search could not find them either. If no term is left, the
    query asks for nothing new, and the result is 1.
    """
    weights = {term: idf[term] for term in query_terms if idf.get(term)}
    covered = frozenset(context_terms)
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in covered) / total if total else 1.0


def match_of(
    before: Receipt, plan: Plan, previous: str | Context | Receipt, reader: Reader, similarity: Callable[[str, str], float]
) -> float:
    """Return the share of the new query that the previous context covers, 0..1.

    Shared terms decide. If they cover too little, the similarity of the two queries counts as well.
    """
    query = plan.request.query
    terms = content_terms(query) if is_follow_up(query) else analysis.terms(query)
    context_terms = [*before.signals.terms, *_terms(shown_records(before, reader, previous))]
    by_words = term_coverage(terms, context_terms, reader.idf(terms))
    if by_words >= MIN_MATCH or plan.signals.embedding is None or before.request.is_forgotten:
        return by_words
    return max(by_words, similarity(before.request.query, query))


def with_previous_topic(plan: Plan, before: Receipt) -> Plan:
    """Return the plan of a follow-up that found no topic in its session with the terms of the previous query."""
    if plan.signals.follows or plan.request.task is not None or not is_follow_up(plan.request.query):
        return plan
    return replace(plan, signals=with_topic(plan.signals, before.signals.terms, [before.id]))


def shown_records(receipt: Receipt, reader: Reader, context: str | Context | Receipt) -> dict[str, tuple[Record, str]]:
    """Return the records that a context showed, by id, each with its line. Extra texts need the context itself."""
    shown = {entry.id: entry for entry in receipt.items}
    records = reader.get(list(shown))
    if isinstance(context, Context):
        records |= {item.id: item.record for item in context.items}
    return {
        id: (records[id], kind_of(records[id].kind).render(records[id], entry.level, entry.passage))
        for id, entry in shown.items()
        if id in records
    }


def _terms(lines: Mapping[str, tuple[Record, str]]) -> list[str]:
    return [
        term
        for record, line in lines.values()
        for term in analysis.terms(" ".join((line, *record.tags, *record.entities, *record.paths, record.subject or "")))
    ]


def budget_left(before: Receipt, conversation_tokens: int, window: int | None, pressure: float) -> int | None:
    """Return the tokens that the conversation leaves for a context; None if the previous context still fits.

    `window` is the size of conversation and context together, and defaults to the previous budget.
    """
    if not 0 < pressure <= 1:
        raise InputError(f"pressure must be above 0 and at most 1, got {pressure!r}.")
    if not conversation_tokens and window is None:
        return None
    size = window if window is not None else before.budget.total
    left = int(pressure * size) - conversation_tokens
    return None if before.budget.used <= left else max(1, left)
