"""What a slot says by itself: a text of the profile, such as an agent's system prompt.

The record is made from the profile and is not in the store, so that a replay can make it again from the profile that
its receipt holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate, Record, Scope, Slot


class Text:
    name = "text"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        for ask in asks:
            if ask.slot.text.strip():
                record = record_of(ask.slot, around.request.scope)
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": 1.0})


def record_of(slot: Slot, scope: Scope) -> Record:
    """A slot's own text as a record, the same at every length: it is as long as somebody wrote it."""
    text = slot.text.strip()
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    return Record(id=f"text_{digest[:16]}", kind="section", scope=scope, text=text, summary=text, micro=text, hash=digest)
