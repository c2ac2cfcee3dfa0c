"""Censors of the fields that the request speaks of.

A censor without a domain always stands, in a stable slot. One with a domain depends on the question, so that it has a
volatile slot of its own: in a stable one it would change the beginning of the prompt, and no cache would hold it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around
from foveate.types import Ask, Candidate, Profile, Record


class Censors:
    name = "censors"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        domains = frozenset(around.signals.domains)
        for ask in asks:
            for record in around.reader.always_on(ask.slot.kinds):
                if record.data.get("domain") in domains:
                    yield Candidate(record=record, slot=ask.slot.name, source=self.name)


def stands_here(record: Record, profile: Profile) -> bool:
    """Whether it stands whatever the question: it has no domain, is pinned, or the profile has no slot for domains.

    It goes by scope and profile alone; and no rule is lost because a profile forgot about domains.
    """
    bound = record.kind == "censor" and record.data.get("domain") and not record.pinned
    return not bound or not any("censors" in slot.sources for slot in profile.slots)
