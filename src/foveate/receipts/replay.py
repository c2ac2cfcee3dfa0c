"""Compute a past context again from its receipt, through the same pure stages.

The candidates are read at the versions that they had. Records that are not stored (extra texts, code, records of other
memories) are passed in. The result says whether its bytes are those that the model received, and if not, what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from foveate.code.records import CODE_ID_PREFIXES
from foveate.memory.relations import load_relation
from foveate.pipeline.assembly import build_section, join_sections, section_pieces
from foveate.pipeline.fill import fill_slots
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
"""Sources whose records are not stored: the caller passes them again, or they are in the receipt's profile."""

ExtraRecords = Mapping[str, Sequence[Record]]
"""Extra texts by slot."""

ExternalRecords = Mapping[tuple[str, str], Record]
"""Code and records of other memories as they are now, by source and id. A replay ignores those that have changed."""


# --- prompt --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a prompt. `id` is that of the record that it shows; headings and fences have none."""

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
    """A prompt in pieces. `missing` has the ids of items that can no longer be read and are not in it."""

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
    pieces = tuple(Piece(text, record.id if record else "") for text, record in section_pieces(section, tag))
    return Part(section.name, section.role, section.stable, pieces)


# --- replay --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Replay:
    """A past context that was computed again."""

    receipt: Receipt
    candidates: tuple[Candidate, ...]
    missing: tuple[str, ...]
    """Ids of records that can no longer be read at the version that they had."""
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
        """Return whether the text is the one that the model received, byte for byte."""
        return text_hash(self.text) == self.receipt.text_hash

    @property
    def reason(self) -> str:
        """Return why the text is not the same; empty if it is."""
        if self.same:
            return ""
        reasons = []
        extra = [id for id in self.missing if id.startswith("given_")]
        forgotten = self.missing.count(FORGOTTEN)
        unreadable = [id for id in self.missing if id not in extra and id != FORGOTTEN]
        if extra:
            reasons.append(f"{len(extra)} extra texts are not stored; pass them again")
        if forgotten:
            reasons.append(f"{forgotten} of its records were forgotten")
        if unreadable:
            reasons.append(f"{', '.join(unreadable)} can no longer be read at the version it had")
        if self.receipt.renderer != RENDERER_VERSION:
            reasons.append("this version of foveate renders records differently")
        return "; ".join(reasons) or "the stages that computed it have changed since"

    @property
    def prompt(self) -> Prompt:
        """Return the prompt in pieces. If the text is not the same, it has only the items that can still be read."""
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
        sections = [build_section(slot, items.get(slot.name, []), self.tag) for slot in slots]
        missing = tuple(entry.id for entry in self.receipt.items if (entry.id, entry.slot) not in readable)
        return Prompt(tuple(_part(each, self.tag) for each in sections), identical=False, missing=missing)


def replay(receipt: Receipt, reader: Reader, extra: ExtraRecords, external: ExternalRecords, *, counter: str) -> Replay:
    """Compute a past context again. `counter` is the present token counter of the store."""
    request, profile, scope = receipt.request, receipt.profile, receipt.request.scope
    passed = {record.id: record for group in (*extra.values(), profile_records(profile, scope)) for record in group}
    candidates, missing = _read_candidates(receipt, reader, passed, external)
    if counter != receipt.measured_by:  # the stored token counts are those of another counter
        candidates = [replace(each, record=replace(each.record, tokens=None)) for each in candidates]
    tag = fence.tag_of(reader.secret, scope.session)
    # The receipt's choices are not copied: the same stages choose again, and the hash of the text shows if they agree.
    filled = fill_slots(candidates, profile, request.filters, request.counter, receipt.measured_by, request.now, tag)
    text, used = join_sections(filled.sections), filled.budget.used
    return Replay(receipt, tuple(candidates), tuple(missing), filled.sections, text, used, tag)


def _read_candidates(
    receipt: Receipt, reader: Reader, passed: Mapping[str, Record], external: ExternalRecords
) -> tuple[list[Candidate], list[str]]:
    """Return the candidates at the versions that they had, and the ids of those that can no longer be read."""
    candidates, missing = [], []
    current = reader.get([stored_id(entry.id) for entry in receipt.candidates if entry.source not in UNSTORED_SOURCES])
    for entry in receipt.candidates:
        if entry.source == "calibration":
            record: Record | None = note_record(entry.text or "", reader.scope, 0)
        elif entry.id.startswith(CODE_ID_PREFIXES) or (entry.source, entry.id) in external:
            # Code and other memories keep no versions, so the hash tells whether this is still the same text.
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
                passage=entry.passage,
            )
        )
    # The receipt has only the number of forgotten candidates, not their ids.
    # A record can be shown in one slot and be a candidate of another.
    return candidates, [*dict.fromkeys(missing), *[FORGOTTEN] * receipt.forgotten]


def _version(reader: Reader, ref: RecordRef | None) -> Record | None:
    return None if ref is None else reader.version(ref.id, ref.version)


def _at_version(reader: Reader, entry: CandidateEntry, current: Mapping[str, Record]) -> Record | None:
    """Return the record of an entry at its version. A relation is made from its link and its two entities."""
    if entry.versions is not None:
        return load_relation(reader, entry.id, entry.versions)
    id = stored_id(entry.id)
    found = current.get(id)
    if found is not None and found.version != entry.version:
        earlier = reader.version(id, entry.version)
        found = earlier and replace(earlier, tokens=None)  # its token counts can be those of another counter
    return found if found is None or id == entry.id else part(found, entry.id)
