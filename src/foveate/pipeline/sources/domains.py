"""Records that are tagged with what the request is about: a domain that its words speak of, or the type of its task.

A second, wider net under the search by words: it finds the gotcha of `auth` that shares no word with the question. Its
feature is `domain`, not `relevance`: to be of the same field is less than to answer the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.sources.gather import Around
from foveate.store.protocol import Query, SearchGroup
from foveate.text import analysis
from foveate.types import Ask, Candidate

_TAGS = {"text": 0.0, "summary": 0.0, "tags": 1.0, "subject": 0.0, "entities": 0.0, "paths": 0.0}


class Domains:
    name = "domains"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        signals = around.signals
        fields = [*signals.domains, *([signals.task_type] if signals.task_type else [])]
        terms = {term: 1.0 for name in fields for term in analysis.terms(name)}
        if not terms:
            return
        query = Query(terms, _TAGS, None, around.request.filters)
        found = around.reader.search(query, [SearchGroup(ask.slot.kinds, ask.limit) for ask in asks])
        task = around.request.task.id if around.request.task else ""
        for ask, hits in zip(asks, found, strict=True):
            for hit in hits:
                if hit.record.status == "active" and hit.record.id != task:
                    yield Candidate(
                        record=hit.record, slot=ask.slot.name, source=self.name, features={"domain": hit.lexical}
                    )
