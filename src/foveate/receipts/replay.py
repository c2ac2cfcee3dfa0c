"""Replay: compute a past context again from its receipt, through the same pure stages.

The recorded candidates are read at the versions that they had. What no store holds (extra texts, code, records of other
memories) is passed in. A replay knows whether its bytes are those that the model received, and what is missing if not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from foveate.code.model import CODE_ID_PREFIXES
from foveate.memory.relations import load_relation
from foveate.pipeline.assembly import joined, section, spans
from foveate.pipeline.fill import compose
from foveate.pipeline.request_summary import FORGOTTEN
from foveate.pipeline.run import text_hash
from foveate.pipeline.sources.calibration import note_record
from foveate.pipeline.sources.parts import part, stored_id
from foveate.pipeline.sources.standing import profile_records
from foveate.receipts.parts import CandidateEntry, RecordRef
from foveate.receipts.receipt import Receipt
from foveate.records import fence
from foveate.records.kinds import RENDERER_VERSION
from foveate.store.protocol import Reader
from foveate.types import Candidate, Item, Record, Section

UNSTORED_SOURCES = ("given", "frame", "text")
"""Sources whose records are in no store: the caller passes them again, or the receipt's profile contains them."""

Given = Mapping[str, Sequence[Record]]
"""Extra texts by slot."""

External = Mapping[tuple[str, str], Record]
"""Code and records of other memories as they are now, by source and id. One that has changed is missing."""


# --- prompt --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a prompt. `id` is that of the record it shows; a heading or a fence shows none."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A section of a prompt in pieces."""

    name: str
    role: str
    stable: bool
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in pieces. If something can no longer be read, `missing` has its ids and the prompt has only the rest."""

    parts: tuple[Part, ...]
    identical: bool = True
    missing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)


def prompt_of(sections: Sequence[Section], tag: str) -> Prompt:
    """Return assembled sections in pieces."""
    return Prompt(tuple(_part(section, tag) for section in sections))


def _part(section: Section, tag: str) -> Part:
    pieces = tuple(Piece(text, record.id if record else "") for text, record in spans(section, tag))
    return Part(section.name, section.role, section.stable, pieces)


# --- replay --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replay:
    """A past context, computed again."""

    receipt: Receipt
    candidates: tuple[Candidate, ...]
    missing: tuple[str, ...]
    """Ids of what can no longer be read."""
    sections: tuple[Section, ...]
    text: str
    tokens: int
    tag: str
    """Tag of the fences around quoted text."""

    @property
    def id(self) -> str:
        return self.receipt.id

    @property
    def same(self) -> bool:
        """Return whether the text has the bytes that the model received."""
        return text_hash(self.text) == self.receipt.text_hash

    @property
    def reason(self) -> str:
        """Return why the text is not the same; empty if it is."""
        if self.same:
            return ""
        reasons = []
        given = [id for id in self.missing if id.startswith("given_")]
        forgotten = self.missing.count(FORGOTTEN)
        gone = [id for id in self.missing if id not in given and id != FORGOTTEN]
        if given:
            reasons.append(f"{len(given)} extra texts are not stored; pass them again")
        if forgotten:
            reasons.append(f"{forgotten} of its records were forgotten")
        if gone:
            reasons.append(f"{', '.join(gone)} can no longer be read at the version it had")
        if self.receipt.renderer != RENDERER_VERSION:
            reasons.append("records are rendered differently since")
        return "; ".join(reasons) or "the stages that computed it have changed since"

    @property
    def prompt(self) -> Prompt:
        """Return the text in pieces; if it is not the same, only the items that can still be read."""
        return prompt_of(self.sections, self.tag) if self.same else self._readable()

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Return the pieces of the prompt, each with the id of its item."""
        return tuple(piece for part in self.prompt.parts for piece in part.pieces)

    def _readable(self) -> Prompt:
        """Return the items that the context kept and that can still be read, each at its level."""
        kept = sorted(self.receipt.items, key=lambda entry: entry.rank)
        readable = {(candidate.record.id, candidate.slot): candidate for candidate in self.candidates}
        items: dict[str, list[Item]] = {}
        for entry in kept:
            candidate = readable.get((entry.id, entry.slot))
            if candidate is not None:
                items.setdefault(entry.slot, []).append(Item(candidate, entry.level, entry.tokens, entry.rank))
        filled = {slot.name for slot in self.receipt.budget.slots if slot.used}
        slots = [slot for slot in self.receipt.profile.slots if slot.name in filled]
        sections = [section(slot, items.get(slot.name, []), self.tag) for slot in slots]
        lost = tuple(entry.id for entry in self.receipt.items if (entry.id, entry.slot) not in readable)
        return Prompt(tuple(_part(each, self.tag) for each in sections), identical=False, missing=lost)


def replay(receipt: Receipt, reader: Reader, given: Given, external: External, *, counter: str | None) -> Replay:
    """Compute a past context again. `counter` is the store's token counter of today."""
    request, profile, scope = receipt.request, receipt.profile, receipt.request.scope
    passed = {record.id: record for group in (*given.values(), profile_records(profile, scope)) for record in group}
    candidates, missing = _read_candidates(receipt, reader, passed, external)
    if counter != receipt.measured_by:  # the stored counts are another counter's
        candidates = [replace(each, record=replace(each.record, tokens=None)) for each in candidates]
    tag = fence.tag_of(reader.secret, scope.session)
    composed = compose(candidates, profile, request.filters, request.counter, receipt.measured_by, request.now, tag)
    text, used = joined(composed.sections), composed.budget.used
    return Replay(receipt, tuple(candidates), tuple(missing), composed.sections, text, used, tag)


def _read_candidates(
    receipt: Receipt, reader: Reader, passed: Mapping[str, Record], external: External
) -> tuple[list[Candidate], list[str]]:
    """Return the candidates at the versions that they had, and the ids of what is no longer there."""
    candidates, missing = [], []
    current = reader.get([stored_id(entry.id) for entry in receipt.candidates if entry.source not in UNSTORED_SOURCES])
    for entry in receipt.candidates:
        if entry.source == "calibration":
            record: Record | None = note_record(entry.text or "", reader.scope, 0)
        elif entry.id.startswith(CODE_ID_PREFIXES) or (entry.source, entry.id) in external:
            now = external.get((entry.source, entry.id))
            record = now if now is not None and now.hash == entry.hash else None
        elif entry.source in UNSTORED_SOURCES:
            record = passed.get(entry.id)
        else:
            record = _at_version(reader, entry, current)
        inherited_from, conflict = (_version(reader, ref) for ref in (entry.inherited_from, entry.conflict))
        if record is None or (entry.inherited_from and not inherited_from) or (entry.conflict and not conflict):
            missing.append(entry.id)
            continue
        candidates.append(
            Candidate(
                record=record,
                slot=entry.slot,
                source=entry.source,
                overruled_by=entry.overruled_by,
                inherited_from=inherited_from,
                stale=entry.stale,
                conflict=conflict,
                features=entry.features,
                score=entry.score,
            )
        )
    return candidates, missing + [FORGOTTEN] * receipt.forgotten


def _version(reader: Reader, ref: RecordRef | None) -> Record | None:
    return None if ref is None else reader.version(ref.id, ref.version)


def _at_version(reader: Reader, entry: CandidateEntry, current: Mapping[str, Record]) -> Record | None:
    """Return the record of an entry as it was. A relation is made again from its link and its two entities."""
    if entry.versions is not None:
        return load_relation(reader, entry.id, entry.versions)
    id = stored_id(entry.id)
    found = current.get(id)
    if found is not None and found.version != entry.version:
        earlier = reader.version(id, entry.version)
        found = earlier and replace(earlier, tokens=None)  # its counts may be another counter's
    return found if found is None or id == entry.id else part(found, entry.id)
