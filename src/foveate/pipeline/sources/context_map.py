"""The part of the context map that belongs to the request: components with their files and notes.

The points of spec 000 are features: 2 for each keyword in a component's name, 1 for each in its location, 1 for each domain
in its notes, 3 for each file that the request names. Entries are looked up by terms and prefixes in the index, so that no
call reads the whole map. An entry whose file no longer exists is marked as stale.
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
"""Entries whose points are counted. This is many times what a slot shows."""

MAX_PREFIX_WORDS = 40
"""Words of a request that are looked up as prefixes."""

MIN_PREFIX_CHARS = 3
"""Shorter words match only whole words: `ui` is not in `build`."""

FULL_COUNT = 10
"""Number of matches for which a feature is 1. With the weights of the profile, a score is the points divided by this."""

_FIELD_WEIGHTS = {"text": 0.5, "summary": 0.0, "tags": 0.5, "subject": 2.0, "entities": 0.0, "paths": 1.0}


class ContextMap(Source):
    """Components of the context map that match the request."""

    name = "context_map"
    unrelated = "no word, domain or file of the request is in its name, location or notes"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        terms = _lookup_terms(context)
        if not terms:
            return
        query = Query(terms, _FIELD_WEIGHTS, None, context.request.filters)
        found = context.reader.search(query, [SearchGroup(request.slot.kinds, MAX_ENTRIES) for request in requests])
        for request, hits in zip(requests, found, strict=True):
            active = [hit.record for hit in hits if hit.record.status == "active"]
            counted = [(match_counts(record, context.signals), record) for record in active]
            ranked = sorted(counted, key=lambda pair: (-total_points(pair[0]), pair[1].id))
            for counts, record in [pair for pair in ranked if total_points(pair[0])][: request.limit]:
                yield Candidate(
                    record=record,
                    slot=request.slot.name,
                    source=self.name,
                    stale=_is_file_missing(record, context.root),
                    features={name: min(count, FULL_COUNT) / FULL_COUNT for name, count in counts.items()},
                )

    def pool_size(self, context: SourceContext) -> int:
        """Return the number of entries of the whole map."""
        return context.reader.count("component")


POINTS = {"map_component": 2, "map_location": 1, "map_domain": 1, "map_file": 3}
"""Points of spec 000 for each match. Profiles weigh the features by them."""


def match_counts(record: Record, signals: Signals) -> dict[str, int]:
    """Return how many keywords, domains and files of the request match each part of an entry."""
    component, location = (str(record.data.get(name, "")) for name in ("component", "location"))
    notes = "" if record.text == component else record.text.lower()
    return {
        "map_component": _count_words_in(component.lower(), signals.keywords),
        "map_location": _count_words_in(location.lower(), signals.keywords),
        "map_domain": sum(domain.lower() in notes for domain in signals.domains),
        "map_file": sum(_contains_path(location, path.removeprefix("./")) for path in signals.paths),
    }


def _contains_path(location: str, path: str) -> bool:
    """Return whether a location names a file. `a.py` is not in `data.py`."""
    return re.search(rf"(?<![\w.-]){re.escape(path)}", location) is not None


def _count_words_in(text: str, words: Sequence[str]) -> int:
    """Return how many of the words a text contains. Short ones must be words of their own."""
    short = [word for word in words if len(word) < MIN_PREFIX_CHARS]
    whole = frozenset(analysis.words(text)) if short else frozenset()
    return sum(word in text for word in words if len(word) >= MIN_PREFIX_CHARS) + sum(word in whole for word in short)


def total_points(counts: Mapping[str, float]) -> float:
    return sum(POINTS[name] * counts.get(name, 0) for name in POINTS)


def _lookup_terms(context: SourceContext) -> dict[str, float]:
    """Return the terms of the request, terms with one of its words as a prefix, its domains and the parts of its paths."""
    signals = context.signals
    words = [word for word in signals.keywords if len(word) >= MIN_PREFIX_CHARS and word.isalnum()][:MAX_PREFIX_WORDS]
    terms = {**dict.fromkeys(context.reader.terms_with_prefix([*words, *signals.domains]), 0.5), **signals.terms}
    names = " ".join((*signals.domains, *signals.paths))
    return {**dict.fromkeys(analysis.terms(names), 1.0), **terms}


def _is_file_missing(record: Record, root: Path | None) -> bool:
    """Return whether the file of an entry is known not to exist."""
    if root is None or not record.paths:
        return False
    path = Path(record.paths[0])
    return not path.is_absolute() and not os.path.exists(root / path)  # unlike Path.exists, never raises
