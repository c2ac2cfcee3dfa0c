"""Which of two values of one attribute holds. Pure: values in, verdict out.

Facts supersede by valid time, not by when they were written; lower trust never supersedes higher. Similarity plays no
part: a correction often looks less like the question than the mistake did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from foveate.types import TRUST, Record

SUPERSEDED_BY = "superseded_by"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The new record as it should be kept, the older ones as they should become, and who superseded whom."""

    new: Record
    older: tuple[Record, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    disputes: tuple[str, ...] = ()


def settle(new: Record, current: Sequence[Record]) -> Verdict:
    """Weigh a new value against the active ones of the same (subject, attribute) and owner."""
    active = [record for record in current if record.status == "active"]
    above = [record.id for record in active if TRUST.index(record.trust) > TRUST.index(new.trust)]
    if above:
        return Verdict(replace(new, status="disputed"), disputes=tuple(above))
    later = [record for record in active if record.valid_from > new.valid_from]
    if later:
        first = min(later, key=lambda record: (record.valid_from, record.id))
        past = replace(new, status="superseded", valid_to=first.valid_from)
        return Verdict(past, links=((new.id, first.id),))
    older = tuple(replace(record, status="superseded", valid_to=new.valid_from) for record in active)
    return Verdict(new, older, tuple((record.id, new.id) for record in older))
