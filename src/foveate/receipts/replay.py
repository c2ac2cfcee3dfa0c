"""Replay: a past context computed again from its receipt, through the same pure stages.

Comes in: a receipt, a reader of the state, and what no store holds: given texts, pieces of code, memories of others. Goes
out: a `Replay`, which knows whether its bytes are those that the model received, and what is missing where they are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.code.model import CODE_ID_PREFIXES
from foveate.memory.relations import load_relation
from foveate.pipeline.assembly import joined
from foveate.pipeline.fill import compose
from foveate.pipeline.run import text_hash
from foveate.pipeline.sources.calibration import note_record
from foveate.pipeline.sources.parts import part, stored_id
from foveate.pipeline.sources.standing import profile_records
from foveate.receipts import receipt as receipts
from foveate.receipts.prompt import Prompt, remains, whole
from foveate.receipts.receipt import FORGOTTEN, Receipt
from foveate.records import fence
from foveate.store.protocol import Reader
from foveate.text import tokens
from foveate.types import Candidate, Record, Section

UNSTORED = ("given", "frame", "text")
"""Sources whose records are in no store: they are handed in again, or made from the receipt's profile."""

Given = Mapping[str, Sequence[Record]]
"""What was handed in, by slot."""

Elsewhere = Mapping[tuple[str, str], Record]
"""Pieces of code and memories of others as they are now, by source and id; what reads otherwise than it did is missing."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A past context, computed again."""

    receipt: Receipt
    candidates: tuple[Candidate, ...]
    missing: tuple[str, ...]
    sections: tuple[Section, ...]
    text: str
    tokens: int
    tag: str
    """Of its fences."""

    @property
    def identical(self) -> bool:
        return bool(text_hash(self.text) == self.receipt.document["text_hash"])

    def document(self) -> dict[str, Any]:
        return {
            "id": self.receipt.id,
            "text": self.text,
            "tokens": self.tokens,
            "identical": self.identical,
            "missing": list(self.missing),
        }

    def prompt(self) -> Prompt:
        """The text piece by piece; where it is not the same, what can still be read of its items."""
        return whole(self.sections, self.tag) if self.identical else remains(self.receipt, self.candidates, self.tag)


def replay(receipt: Receipt, reader: Reader, given: Given, elsewhere: Elsewhere, *, counter: str | None) -> Replay:
    """The recorded candidates through the pure stages. `counter` is what the store counts by now."""
    document, asked = receipt.document, receipt.document["request"]
    profile, scope = receipts.profile_from_json(document["profile"]), receipts.scope_from_json(asked["scope"])
    handed = {record.id: record for group in (*given.values(), profile_records(profile, scope)) for record in group}
    candidates, missing = _recalled(receipt, reader, handed, elsewhere)
    if counter != document["measured_by"]:  # counted by another since
        candidates = [replace(each, record=replace(each.record, tokens=None)) for each in candidates]
    tag = fence.tag_of(reader.secret, scope.session)
    filters = receipts.filters_from_json(asked["filters"])
    composed = compose(candidates, profile, filters, asked["counter"], document["measured_by"], asked["now"], tag)
    text, used = joined(composed.sections), composed.budget.used
    return Replay(receipt, tuple(candidates), tuple(missing), composed.sections, text, used, tag)


def changes(one: Replay, other: Replay, *, texts: bool = False) -> dict[str, Any]:
    """What changed between two contexts and, where both replays give the same bytes, how much of their beginning they share.

    `unread` are those that do not. `texts`: the two prompts as well.
    """
    unread = [each.receipt.id for each in (one, other) if not each.identical]
    out = {**receipts.diff(one.receipt, other.receipt), "unread": unread}
    if unread:
        return out
    shared = _shared_prefix(one.text, other.text, one.receipt.document["request"]["counter"])
    return {**out, "shared_prefix": shared, **({"texts": [one.text, other.text]} if texts else {})}


def _shared_prefix(first: str, second: str, counter: str) -> dict[str, Any]:
    """How much of the second text is how the first one begins, too."""
    shared, end = 0, min(len(first), len(second))
    while shared < end:  # halves of what is left are compared whole: letter by letter takes long
        half = (shared + end + 1) // 2
        shared, end = (half, end) if first[shared:half] == second[shared:half] else (shared, half - 1)
    same, whole = (tokens.count(text, counter) for text in (second[:shared], second))
    return {"chars": shared, "tokens": same, "share": round(same / whole, 4) if whole else 1.0}


def _recalled(
    receipt: Receipt, reader: Reader, handed: Mapping[str, Record], elsewhere: Elsewhere
) -> tuple[list[Candidate], list[str]]:
    """The candidates of a receipt, each at the version that it had, and what is no longer there."""
    candidates, missing = [], []
    current = reader.get([stored_id(entry["id"]) for entry in receipt.candidates if entry["source"] not in UNSTORED])
    for entry in receipt.candidates:
        record = handed.get(entry["id"]) if entry["source"] in UNSTORED else _at_version(reader, entry, current)
        if entry["source"] == "calibration":
            record = note_record(entry["text"], reader.scope, 0)
        elif entry["id"].startswith(CODE_ID_PREFIXES) or (entry["source"], entry["id"]) in elsewhere:
            shown = elsewhere.get((entry["source"], entry["id"]))
            record = shown if shown is not None and shown.hash == entry["hash"] else None
        via, conflict = (_beside(reader, entry, name) for name in ("via", "conflict"))
        if record is None or any(entry.get(name) and not there for name, there in (("via", via), ("conflict", conflict))):
            missing.append(entry["id"])
            continue
        candidates.append(
            Candidate(
                record=record,
                slot=entry["slot"],
                source=entry["source"],
                overruled_by=entry["overruled_by"],
                via=via,
                stale=bool(entry.get("stale")),
                conflict=conflict,
                features=entry["features"],
                score=entry["score"],
            )
        )
    return candidates, missing + [FORGOTTEN] * int(receipt.document.get("forgotten", 0))


def _beside(reader: Reader, entry: Mapping[str, Any], name: str) -> Record | None:
    """The record that an entry names beside its own, at the version that it had."""
    return reader.version(entry[name], entry[f"{name}_version"]) if entry.get(name) else None


def _at_version(reader: Reader, entry: Mapping[str, Any], current: Mapping[str, Record]) -> Record | None:
    """The record of an entry as it was; a relation is made again from its link and its two entities."""
    if "versions" in entry:
        return load_relation(reader, entry["id"], entry["versions"])
    id = stored_id(entry["id"])
    found = current.get(id)
    if found is not None and found.version != entry["version"]:
        earlier = reader.version(id, entry["version"])
        found = earlier and replace(earlier, tokens=None)  # counted again: its counts may be another counter's
    return found if found is None or id == entry["id"] else part(found, entry["id"])
