"""Which of two values of one attribute holds. Pure: values in, verdict out.

Facts supersede by valid time, not by when they were written; lower trust never supersedes higher. Similarity plays no
part: a correction often looks less like the question than the mistake did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foveate.types import TRUST, Record

SUPERSEDED_BY = "superseded_by"
DISPUTED_BY = "disputed_by"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The new record as it should be kept, the older ones as they should become, and who superseded whom."""

    new: Record
    older: tuple[Record, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    disputes: tuple[str, ...] = ()


def replaced(older: Record, newer: Record) -> bool:
    """Does one of these two values hold now because the other no longer does?"""
    same = (older.subject, older.attribute) == (newer.subject, newer.attribute)
    return same and older.status == "superseded" and newer.status == "active" and older.valid_to == newer.valid_from


def settle(new: Record, current: Sequence[Record], known: Record | None = None) -> Verdict:
    """Weigh a new value against the active ones of the same (subject, attribute) and owner.

    `known` is a disputed record of the same words: where the new one holds, it takes that one's place too.
    """
    active = [record for record in current if record.status == "active"]
    above = [record.id for record in active if TRUST.index(record.trust) > TRUST.index(new.trust)]
    if above:
        return Verdict(replace(new, status="disputed"), disputes=tuple(above))
    later = [record for record in active if record.valid_from > new.valid_from]
    if later:
        first = min(later, key=lambda record: (record.valid_from, record.id))
        past = replace(new, status="superseded", valid_to=first.valid_from)
        return Verdict(past, links=((new.id, first.id),))
    past_values = [*active, *([known] if known else [])]
    older = tuple(replace(record, status="superseded", valid_to=new.valid_from) for record in past_values)
    return Verdict(new, older, tuple((record.id, new.id) for record in older))
