"""The prompt of a context, piece by piece: which words show which item.

Comes in: sections as assembled, or the receipt of a past context with what can still be read of its candidates. Goes out: a
`Prompt`. Its spans joined are the text that the model received, wherever `identical` holds. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foveate.pipeline.assembly import section, spans
from foveate.receipts.receipt import Receipt, profile_from_json
from foveate.types import Candidate, Item, Section


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the text. `id` is that of the record it shows; a heading or a fence shows none."""

    text: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A section with its spans."""

    name: str
    role: str
    stable: bool
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model received. Where something can no longer be read, `missing` has the ids and only the rest is here."""

    parts: tuple[Part, ...]
    identical: bool = True
    missing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts)


def whole(sections: Sequence[Section], tag: str) -> Prompt:
    """The prompt as it was sent."""
    return Prompt(tuple(_part(section, tag) for section in sections))


def remains(receipt: Receipt, candidates: Sequence[Candidate], tag: str) -> Prompt:
    """The items that a past context kept and that can still be read, each at the level that it had."""
    kept = [entry for entry in receipt.candidates if entry["kept"]]
    readable = {(candidate.record.id, candidate.slot): candidate for candidate in candidates}
    items: dict[str, list[Item]] = {}
    for entry in sorted(kept, key=lambda entry: entry["rank"]):
        candidate = readable.get((entry["id"], entry["slot"]))
        if candidate is not None:
            items.setdefault(entry["slot"], []).append(_item(candidate, entry))
    filled = {slot["name"] for slot in receipt.document["budget"]["slots"] if slot["used"]}
    slots = [slot for slot in profile_from_json(receipt.document["profile"]).slots if slot.name in filled]
    sections = [section(slot, items.get(slot.name, []), tag) for slot in slots]
    lost = tuple(entry["id"] for entry in kept if (entry["id"], entry["slot"]) not in readable)
    return Prompt(tuple(_part(each, tag) for each in sections), identical=False, missing=lost)


def _item(candidate: Candidate, entry: Mapping[str, Any]) -> Item:
    return Item(candidate, entry["level"], entry["shown_tokens"], entry["rank"])


def _part(section: Section, tag: str) -> Part:
    pieces = tuple(Span(text, record.id if record else "") for text, record in spans(section, tag))
    return Part(section.name, section.role, section.stable, pieces)
