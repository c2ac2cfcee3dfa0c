"""The same thing said again: what becomes of the record that is known. Pure.

Who said it first is believed; the second time adds what the first left out. Only a person's word raises what a record is
trusted: an agent that repeats what a tool said has not checked it. Nothing becomes less serious by being said again: of two
severities the higher one stays, and a question blocks as soon as one of those who ask it is blocked. Where only one of the
two is a person or an agent, the words are theirs alone: what a tool said beside it must not pass for their word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foveate.records.kinds import SEVERITIES
from foveate.types import Record

VOUCHED = ("agent", "user")
"""Who answers for what they say."""


def confirmed(known: Record, again: Record) -> Record:
    """The known record with what the other adds. The count of confirmations is the store's."""
    worse = _worse(known.data, again.data)
    known, again = _by_whom(known, again)
    data = {**again.data, **known.data, **worse}
    for name, value in again.data.items():
        if isinstance(value, list) and isinstance(known.data.get(name), list):
            data[name] = [*known.data[name], *(part for part in value if part not in known.data[name])]
    return replace(
        known,
        tags=_both(known.tags, again.tags),
        entities=_both(known.entities, again.entities),
        paths=_both(known.paths, again.paths),
        outcome=again.outcome or known.outcome,
        confidence=again.confidence if again.confidence != 1.0 else known.confidence,
        salience=max(known.salience, SEVERITIES.get(str(data.get("severity")), 0.0)),
        pinned=known.pinned or again.pinned,
        origin=known.origin or again.origin,
        trust="user" if again.trust == "user" else known.trust,
        data=data,
    )


def _by_whom(known: Record, again: Record) -> tuple[Record, Record]:
    """The two, where one of them is vouched for and the other is not, without the words of the other."""
    if (known.trust in VOUCHED) == (again.trust in VOUCHED):
        return known, again
    if known.trust in VOUCHED:
        return known, replace(again, tags=(), entities=(), paths=(), data={}, origin=None)
    counted = {"confirmations": known.data["confirmations"]} if "confirmations" in known.data else {}
    wordless = replace(known, tags=(), entities=(), paths=(), data=counted, origin=None)
    return replace(wordless, summary=again.summary, micro=again.micro), again


def _worse(known: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    """Of severities the higher, of flags whichever is set."""
    worse: dict[str, Any] = {}
    said = [data["severity"] for data in (known, again) if data.get("severity") in SEVERITIES]
    if said:
        worse["severity"] = max(said, key=SEVERITIES.__getitem__)
    if known.get("blocking") or again.get("blocking"):
        worse["blocking"] = True
    return worse


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))
