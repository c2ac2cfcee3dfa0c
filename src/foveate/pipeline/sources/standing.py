"""Sources that do not search: rules and pinned records, texts of the caller and of the profile, frame and open threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b

from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext
from foveate.tasks.task import current
from foveate.types import Candidate, Frame, Profile, Record, Scope, Slot

THREAD_TAG = "thread"
"""Tag of a note or question that stays in focus until it is retired."""


class AlwaysOn(Source):
    """Identity, censors, instructions and pinned records, chosen by scope.

    Similarity cannot find rules: "always answer in Celsius" shares no words with the question that it is for.
    """

    name = "always"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        for request in requests:
            for record in context.reader.always_on(request.slot.kinds, pinned=request.slot.pinned_only):
                if applies_always(record, context.profile):
                    yield self.candidate(request, record)


class Censors(Source):
    """Censors of the domains of the question.

    A censor without a domain is in a stable slot. One with a domain depends on the question and has a volatile slot of its
    own: in a stable slot it would change the beginning of the prompt, and no cache would hold it.
    """

    name = "censors"
    unrelated = "the request does not concern its domain"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        for request in requests:
            for record in context.reader.always_on(request.slot.kinds):
                if record.data.get("domain") in context.signals.domains:
                    yield self.candidate(request, record)


def applies_always(record: Record, profile: Profile) -> bool:
    """Return whether a rule applies to every question: it has no domain, is pinned, or the profile has no slot for domains.

    The answer depends on scope and profile alone, and no rule is lost because a profile has no slot for domains.
    """
    has_domain = record.kind == "censor" and record.data.get("domain") and not record.pinned
    return not has_domain or not any(Censors.name in slot.sources for slot in profile.slots)


class ExtraTexts(Source):
    """Texts that the caller passes with the request. They count as relevant, because the caller chose them."""

    name = "given"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        for request in requests:
            for record in context.request.extra.get(request.slot.name, ()):
                yield self.candidate(request, record, relevance=1.0)


class SlotText(Source):
    """The text of a slot itself, such as an agent's system prompt."""

    name = "text"
    unrelated = "the slot shows only the text of its profile"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        for request in requests:
            if request.slot.text.strip():
                yield self.candidate(request, text_record(request.slot, context.request.scope), relevance=1.0)


class CurrentFrame(Source):
    """The frame that was chosen for the question."""

    name = "frame"
    unrelated = "it is not the frame that was chosen"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        if context.profile.frame is not None:
            record = frame_record(context.profile.frame, context.request.scope)
            yield from (self.candidate(request, record, relevance=1.0) for request in requests)


def profile_records(profile: Profile, scope: Scope) -> list[Record]:
    """Return the records that are made from a profile: the texts of its slots and its frame. A replay makes them again."""
    texts = [text_record(slot, scope) for slot in profile.slots if slot.text.strip()]
    return [*texts, frame_record(profile.frame, scope)] if profile.frame is not None else texts


def text_record(slot: Slot, scope: Scope) -> Record:
    """Return a slot's text as a record that is the same at every level."""
    text = slot.text.strip()
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    return Record(id=f"text_{digest[:16]}", kind="section", scope=scope, text=text, summary=text, micro=text, hash=digest)


def frame_record(frame: Frame, scope: Scope) -> Record:
    """Return a frame as the model reads it."""
    about = frame.description or frame.title
    questions = "".join(f"\n- {question}" for question in frame.questions)
    text = f"{about}\nConsider:{questions}" if questions else about
    digest = blake2b(text.encode(), digest_size=16).hexdigest()
    return Record(id=f"frame_{digest[:16]}", kind="frame", scope=scope, text=text, summary=text, micro=about, hash=digest)


class WorkingMemory(Source):
    """The current task, then open threads, newest first.

    An open thread is a question of this session without an answer, or a note or question with the tag `thread`.
    """

    name = "working"
    unrelated = "it is neither the current task nor an open thread"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        task = context.request.task or current(context.reader)
        for request in requests:
            records = [*([task] if task else []), *_open_threads(request, context)]
            for n, record in enumerate(records[: request.limit]):
                yield self.candidate(request, record, relevance=1.0 - n / (request.limit + 1))


def _open_threads(request: SlotRequest, context: SourceContext) -> list[Record]:
    reader, filters, session = context.reader, context.request.filters, context.request.scope.session
    tagged = reader.recent(("note", "question"), request.limit, replace(filters, tags=(THREAD_TAG,)))
    questions = reader.recent(("question",), request.limit, filters) if session else []
    found = {record.id: record for record in (*tagged, *(q for q in questions if q.scope.session == session))}
    return sorted(found.values(), key=lambda record: (record.created, record.id), reverse=True)
