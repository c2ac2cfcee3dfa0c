"""The frame that was chosen for the question, as text: what it is, and what to consider.

The record is made from the profile and is not in the store, so that a replay can make it again from the profile that
its receipt holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate, Frame, Record, Scope


class CurrentFrame:
    name = "frame"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        if around.profile.frame is None:
            return
        record = record_of(around.profile.frame, around.request.scope)
        for ask in asks:
            yield Candidate(record=record, slot=ask.slot.name, source=self.name, features={"relevance": 1.0})


def record_of(frame: Frame, scope: Scope) -> Record:
    """A frame as the model reads it: the same frame gives the same record."""
    about = frame.description or frame.title
    consider = "".join(f"\n- {question}" for question in frame.questions)
    text = f"{about}\nConsider:{consider}" if consider else about
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    return Record(id=f"frame_{digest[:16]}", kind="frame", scope=scope, text=text, summary=text, micro=about, hash=digest)
