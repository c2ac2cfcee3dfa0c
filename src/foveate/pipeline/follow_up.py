"""Give a follow-up such as "ok, do it" or "and the second one?" the topic of the messages before it.

By itself it names nothing to search for. Terms of the latest messages of its session are added to its own at reduced weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from foveate.store.protocol import Reader
from foveate.text import analysis
from foveate.text.query_terms import weighted_query_terms
from foveate.types import Filters, Record, Request, Signals

TOPIC_WEIGHT = 0.3
"""Weight of a term that comes from an earlier message."""

MAX_RECENT_EVENTS = 12
"""Latest events of the session among which messages with a topic are looked for."""

MAX_TOPIC_MESSAGES = 2
"""A question and its answer."""

MAX_MESSAGE_CHARS = 1_000
"""Characters of a message that are read. A long answer begins with its topic."""

MAX_TERMS_PER_MESSAGE = 12

MESSAGE_TYPES = ("", "message", "user_message", "assistant_message")

_FILLER_WORDS = """add agree ahead another anything apply awesome bit bye change cheers clear confirm confirmed continue cool
    correct course describe done elaborate else everything exactly excellent explain fine fix fixed fun get glad
    go going good got great happy hello help helpful helps hey hi idea instead interesting keep kind last lets
    lgtm like looks lot love makes mind morning much neat never new nice no nothing now ok okay one other part
    perfect please point proceed quick read ready really remaining repeat rest retry right run same say second
    sense show something sounds start still stop super sure sweet tell thank thanks thing things third thx todo
    true try understood undo use wait welcome well went win wonderful work works wow wrong yeah yes yet yours""".split()  # noqa: SIM905
"""Words of short replies, which name no topic if there is nothing else."""

_REFERS_BACK = re.compile(
    r"\b(?:it|its|them|their|they|he|him|his|she|her|ones?|there)\b|\b(?:this|that|these|those)\b(?=\s*(?:$|[.,!?;]))"
    r"|^(?:and|or|but|so|also|what about|how about)\b",
    re.IGNORECASE,
)
"""Pronouns, and beginnings that continue what was said."""


@lru_cache(maxsize=1)
def _filler_terms() -> frozenset[str]:
    return frozenset(analysis.stems(_FILLER_WORDS))


def is_follow_up(query: str) -> bool:
    """Return whether a query names no topic of its own, or at most one word beside a pronoun: "deploy it", "why?"."""
    content = content_terms(query)
    return not content or (len(content) == 1 and _REFERS_BACK.search(query.strip()) is not None)


def content_terms(query: str) -> list[str]:
    """Return the terms of a query that name a topic."""
    terms = weighted_query_terms(query, 0)
    return [
        term
        for term, weight in terms.items()
        if weight == 1.0 and term not in _filler_terms() and not term.startswith(("@", "="))
    ]


def with_topic_of_session(signals: Signals, request: Request, reader: Reader) -> Signals:
    """Return the signals of a follow-up with the terms of the latest messages of its session; others as they are."""
    session = request.scope.session
    if session is None or request.task is not None or signals.paths or signals.entities or not is_follow_up(request.query):
        return signals
    events = reader.recent(["event"], MAX_RECENT_EVENTS, Filters(min_trust="agent"), session=session)
    messages = [event for event in events if _has_topic(event) and event.created <= request.now][:MAX_TOPIC_MESSAGES]
    terms = [content_terms(message.text[:MAX_MESSAGE_CHARS])[:MAX_TERMS_PER_MESSAGE] for message in messages]
    return with_topic(signals, [term for group in terms for term in group], [message.id for message in messages])


def with_topic(signals: Signals, terms: Iterable[str], sources: Iterable[str]) -> Signals:
    """Return signals with the terms of a topic at reduced weight, and where they come from."""
    topic: Mapping[str, float] = dict.fromkeys(terms, TOPIC_WEIGHT)
    return replace(signals, terms={**topic, **signals.terms}, follows=tuple(sources)) if topic else signals


def _has_topic(event: Record) -> bool:
    return event.data.get("type", "") in MESSAGE_TYPES and not is_follow_up(event.text[:MAX_MESSAGE_CHARS])
