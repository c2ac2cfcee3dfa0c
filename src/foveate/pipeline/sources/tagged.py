"""Records that share no word with the question: by tags of its domains, and procedures by their conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.pipeline.scoring import met_conditions
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.store.protocol import Query, SearchGroup
from foveate.text import analysis
from foveate.types import Candidate

_TAGS_ONLY = {"text": 0.0, "summary": 0.0, "tags": 1.0, "subject": 0.0, "entities": 0.0, "paths": 0.0}

MAX_PROCEDURES = 300
"""Newest records whose conditions are checked: more than 004's 200 procedures."""


class Domains(Source):
    """Records with the tag of a domain of the question, or of the type of its task.

    A second, wider net under the search by words. Its feature is `domain` and not `relevance`: a record of the same domain
    need not answer the question.
    """

    name = "domains"
    unrelated = "it has no tag of a domain or task type of the request"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        signals = context.signals
        tags = [*signals.domains, *([signals.task_type] if signals.task_type else [])]
        terms = {term: 1.0 for tag in tags for term in analysis.terms(tag)}
        if not terms:
            return
        query = Query(terms, _TAGS_ONLY, None, context.request.filters)
        found = context.reader.search(query, [SearchGroup(request.slot.kinds, request.limit) for request in requests])
        task = context.request.task.id if context.request.task else ""
        for request, hits in zip(requests, found, strict=True):
            for hit in hits:
                if hit.record.status == "active" and hit.record.id != task:
                    yield self.candidate(request, hit.record, domain=hit.lexical)


class Procedures(Source):
    """Procedures and patterns whose conditions all hold, one of them on the type of an entity.

    An intent alone would bring a procedure to every third question.
    """

    name = "procedures"
    unrelated = "the request does not meet all of its conditions"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        if not context.signals.entity_types:
            return
        for request in requests:
            known = context.reader.recent(request.slot.kinds, MAX_PROCEDURES, context.request.filters)
            found = [record for record in known if record.status == "active" and record.data.get("entity_types")]
            meant = [record for record in found if all(met_conditions(record, context.signals))]
            yield from (self.candidate(request, record) for record in meant[: request.limit])
