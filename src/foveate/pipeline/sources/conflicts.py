"""Add the other side of each conflict to the candidates."""

from __future__ import annotations

from dataclasses import replace

from foveate.records.kinds import CONFLICTS_WITH, kind_of
from foveate.records.merge import is_conflict
from foveate.store.protocol import Reader
from foveate.types import Candidate


def with_conflicts(candidates: list[Candidate], reader: Reader) -> list[Candidate]:
    """Add the other side of each conflict: statements that seem to contradict each other are candidates together."""
    stated = {c.record.id: c.record for c in candidates if kind_of(c.record.kind).is_keyed and c.record.status == "active"}
    links = [*reader.links(list(stated), [CONFLICTS_WITH]), *reader.links(list(stated), [CONFLICTS_WITH], incoming=True)]
    if not links:
        return candidates
    both = reader.get([id for link in links for id in (link.src, link.dst)])
    active = {id: record for id, record in both.items() if record.status == "active"}
    pairs = [(link.src, link.dst) for link in links] + [(link.dst, link.src) for link in links]
    opponent_of = {  # compared again, because one of them may have been edited since
        one: active[other]
        for one, other in pairs
        if one in active and other in active and is_conflict(active[one].text, active[other].text)
    }
    present = {(candidate.slot, candidate.record.id) for candidate in candidates}
    out: list[Candidate] = []
    for candidate in candidates:
        other = opponent_of.get(candidate.record.id) if candidate.record.status == "active" else None
        out.append(replace(candidate, conflict=other) if other else candidate)
        if other and (candidate.slot, other.id) not in present:
            present.add((candidate.slot, other.id))
            out.append(replace(candidate, record=other, conflict=candidate.record))
    return out
