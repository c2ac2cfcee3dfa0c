"""What callers hand in, as a request holds it: questions, times, filters and given texts.

Comes in: whatever a caller wrote. Goes out: values that the line can trust, or an `InputError` that says what is wrong.
Nothing is read from a store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foveate.clock import iso, millis
from foveate.errors import InputError, near
from foveate.pipeline.signals import task_text
from foveate.records import make
from foveate.records.kinds import kind_of
from foveate.records.make import Rules
from foveate.text.summarize import Extractive
from foveate.types import TRUST, Filters, Record, Scope

MAX_QUERY = 100_000
"""Characters of a question: more is a document."""

Text = str | Mapping[str, Any]
"""A text that is handed in: itself, or with the other fields of a record."""

Given = Text | Sequence[Text] | Mapping[str, Sequence[Text]]
"""Texts that are handed in: one, several, or several for each slot."""


def question(query: Any) -> str:
    """A question as it is used: what cannot be encoded replaced, no secrets."""
    if not isinstance(query, str) or not query.strip():
        raise InputError("The query is empty; say what the context is for.")
    if len(query) > MAX_QUERY:
        raise InputError(f"The query has {len(query):,} characters, more than {MAX_QUERY:,}; hand long texts in as `given`.")
    return make.clean(readable(query))


def readable(text: str) -> str:
    """A question with what cannot be encoded replaced: it is not kept, so it need not be refused."""
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")


def code_question(asked: str, task: Record | None, code_query: str | None) -> str | None:
    """What the code is searched for: what the call says, else for a task what it is about and its description."""
    if code_query:
        return question(code_query)
    described = str(task.data.get("description") or "") if task else ""
    if code_query is not None or task is None or not described:
        return code_query
    return "\n".join(dict.fromkeys((asked or task_text(task), described)))[:MAX_QUERY]


def time_of(when: Any, name: str) -> int:
    """A time in milliseconds, whatever it was written as."""
    try:
        at = millis(when)
        iso(at)
    except (ValueError, TypeError, AttributeError, OverflowError, OSError):
        raise InputError(f"{name} must be a time such as 2026-05-14T09:30Z, not {when!r}.") from None
    return at


def checked(filters: Filters) -> Filters:
    """Filters with their times in milliseconds; a wrong one must not silently find nothing."""
    if filters.min_trust not in TRUST:
        raise InputError(f"There is no trust {filters.min_trust!r}.{near(str(filters.min_trust), TRUST)}")
    for kind in filters.kinds:
        kind_of(kind)
    for name in ("event_types", "entity_types"):
        types = getattr(filters, name)
        if not isinstance(types, tuple | list) or not all(isinstance(part, str) and part for part in types):
            raise InputError(f"{name} must be a tuple of names such as ('error', 'shell_exec'), not {types!r}.")
    since = None if filters.since is None else time_of(filters.since, "since")
    until = None if filters.until is None else time_of(filters.until, "until")
    events, entities = tuple(filters.event_types), tuple(filters.entity_types)
    return replace(filters, since=since, until=until, event_types=events, entity_types=entities)


def given_records(given: Any, scope: Scope, at: int, rules: Rules) -> dict[str, tuple[Record, ...]]:
    """Given texts as records of a scope, by the slot that they are for."""
    if not given:
        return {}
    if _is_one(given):
        given = [given]
    groups = given if isinstance(given, Mapping) else {"given": given}
    return {
        slot: tuple(_record(text, scope, at, rules) for text in ([texts] if _is_one(texts) else texts))
        for slot, texts in groups.items()
    }


def _record(text: Text, scope: Scope, at: int, rules: Rules) -> Record:
    values = {"text": text} if isinstance(text, str) else dict(text)
    kind, said = values.pop("kind", "note"), values.pop("text", "")
    offline = replace(rules, summarizer=Extractive())  # a model may shorten what is kept, never during compute
    record = make.make(kind, said, scope=scope, id="given", now=at, rules=offline, **values)
    return replace(record, id=f"given_{record.hash[:16]}")


def _is_one(given: Any) -> bool:
    """Whether it is one text, and not several."""
    return isinstance(given, str) or (isinstance(given, Mapping) and isinstance(given.get("text"), str))
