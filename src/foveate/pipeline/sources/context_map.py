"""The part of the context map that the request touches: components with their files and notes.

000's points are features: 2 for each keyword in a component's name, 1 for each in its location, 1 for each domain in its
notes, 3 for each file that the request names; the profile weighs them so. Entries are looked up by the words of the index
and by how they begin: no call reads the whole map. A file that is no longer there is marked.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.store.protocol import Query, SearchGroup
from foveate.text import analysis
from foveate.types import Candidate, Record, Signals

MAX_ENTRIES = 100
"""Entries whose points are counted: many times what any slot shows."""

MAX_WORDS = 40
"""Words of a request that are looked up by how they begin."""

MIN_WORD_CHARS = 3
"""Letters of a word that may stand for the beginning of a longer one."""

FULL_COUNT = 10
"""Matches that make a feature 1; with the profile's weights a score is the points over this."""

_FIELDS = {"text": 0.5, "summary": 0.0, "tags": 0.5, "subject": 2.0, "entities": 0.0, "paths": 1.0}


class ContextMap(Source):
    """Components of the context map that the request touches."""

    name = "context_map"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        terms = _looked_up(context)
        if not terms:
            return
        query = Query(terms, _FIELDS, None, context.request.filters)
        found = context.reader.search(query, [SearchGroup(request.slot.kinds, MAX_ENTRIES) for request in requests])
        for request, hits in zip(requests, found, strict=True):
            pointed = [(points(hit.record, context.signals), hit.record) for hit in hits if hit.record.status == "active"]
            ranked = sorted(pointed, key=lambda pair: (-total(pair[0]), pair[1].id))
            for counts, record in [pair for pair in ranked if total(pair[0])][: request.limit]:
                yield Candidate(
                    record=record,
                    slot=request.slot.name,
                    source=self.name,
                    stale=_is_gone(record, context.root),
                    features={name: min(count, FULL_COUNT) / FULL_COUNT for name, count in counts.items()},
                )

    def pool_size(self, context: SourceContext) -> int:
        """Return the number of entries of the whole map."""
        return context.reader.count("component")


POINTS = {"map_component": 2, "map_location": 1, "map_domain": 1, "map_file": 3}
"""000's points for each match; profiles weigh the features by them."""


def points(record: Record, signals: Signals) -> dict[str, int]:
    """How often each thing that gives points is the case."""
    component, location = (str(record.data.get(name, "")) for name in ("component", "location"))
    notes = "" if record.text == component else record.text.lower()
    return {
        "map_component": _number_in(component.lower(), signals.keywords),
        "map_location": _number_in(location.lower(), signals.keywords),
        "map_domain": sum(domain.lower() in notes for domain in signals.domains),
        "map_file": sum(_names(location, path.removeprefix("./")) for path in signals.paths),
    }


def _names(location: str, path: str) -> bool:
    """Whether a location names a file: `a.py` is not in `data.py`."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}", location) is not None


def _number_in(text: str, words: Sequence[str]) -> int:
    """How many of the words a text contains; a very short one only as a word of its own: `ui` is not in `build`."""
    short = [word for word in words if len(word) < MIN_WORD_CHARS]
    whole = frozenset(analysis.words(text)) if short else frozenset()
    return sum(word in text for word in words if len(word) >= MIN_WORD_CHARS) + sum(word in whole for word in short)


def total(counts: Mapping[str, float]) -> float:
    return sum(POINTS[name] * counts.get(name, 0) for name in POINTS)


def _looked_up(context: SourceContext) -> dict[str, float]:
    """The terms of the request, those that begin with one of its words, its domains and the parts of its paths."""
    signals = context.signals
    words = [word for word in signals.keywords if len(word) >= MIN_WORD_CHARS and word.isalnum()][:MAX_WORDS]
    terms = {**dict.fromkeys(context.reader.terms_with_prefix([*words, *signals.domains]), 0.5), **signals.terms}
    beside = " ".join((*signals.domains, *signals.paths))
    return {**dict.fromkeys(analysis.terms(beside), 1.0), **terms}


def _is_gone(record: Record, root: Path | None) -> bool:
    """Whether the file it points to is not there. Without a project's folder nobody can tell."""
    if root is None or not record.paths:
        return False
    path = Path(record.paths[0])
    return not path.is_absolute() and not os.path.exists(root / path)  # answers for any name, however odd
