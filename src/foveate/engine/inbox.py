"""`engine.inbox`: what waits for a person's decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.errors import Conflict, InputError
from foveate.memory.memory import Memory
from foveate.options import check_limit, refuse_lists
from foveate.records.kinds import CONFLICTS_WITH, LEARNED_FROM, REJECTION, RULE_KINDS
from foveate.store.protocol import AddResult, ProjectReader, Reader
from foveate.store.retry import retry_interrupted
from foveate.text.format import one_line
from foveate.types import NO_FILTERS, Filters, Link, Record, Trust

MAX_REVIEWS = 1000
"""Records of one kind that a list of the inbox looks at."""

PROPOSAL_TAG, PROPOSED_KIND = "proposal", "proposed_kind"
"""A proposal is a note with this tag; the field of its data names the kind that it becomes."""


@dataclass(frozen=True, slots=True)
class Review:
    """A record that needs a decision, and why."""

    id: str
    reason: str
    """`proposed`, `disputed`, `conflict`, `flagged` or `question`."""
    record: Record
    proposed_kind: str = ""
    """The kind that a proposal becomes when it is accepted."""


class Inbox:
    """Open questions, conflicting facts, procedures that mostly fail, disputed values, and rules that an agent proposed."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @retry_interrupted
    def list(self, *, limit: int = 50) -> Sequence[Review]:
        """List what needs a decision, newest first."""
        check_limit(limit)
        with self._memory.data.project_reader() as project:
            disputed, _ = project.page(MAX_REVIEWS, NO_FILTERS, status="disputed", after=0)
            proposed = _proposed_rules(project)
        with self._memory.data.reader() as reader:
            reviews = [*proposed, *(Review(record.id, "disputed", record) for record in disputed)]
            reviews += [*_conflicts(reader), *_flagged_procedures(reader), *_questions(reader)]
        unique = {review.id: review for review in reviews}
        return sorted(unique.values(), key=lambda review: -review.record.created)[:limit]

    def propose(self, kind: str, text: str, *, tags: Sequence[str] = (), data: Mapping[str, Any] | None = None) -> AddResult:
        """Store a rule that an agent proposes. It is a note with the agent's trust until a person accepts it.

        An agent must not write rules itself: its model may have read the text on a web page, and a rule enters every prompt.
        `data` holds fields of the kind, such as the action of a censor; the accepted rule gets them.
        """
        if kind not in RULE_KINDS:
            raise InputError(f"A proposal is for a rule ({', '.join(RULE_KINDS)}), got {kind!r}.")
        return self._memory.add(
            "note", text, trust="agent", tags=(PROPOSAL_TAG, *tags), data={**(data or {}), PROPOSED_KIND: kind}
        )

    def accept(self, *ids: str, text: str | None = None, kind: str | None = None) -> Sequence[Record]:
        """Accept records as they are, or with a new text or kind. Their trust becomes the person's."""
        refuse_lists(ids, "accept")
        if text is not None and len(ids) != 1:
            raise InputError("text can be given for one record at a time.")
        accepted = []
        for id in ids:
            waiting = self._memory.get(id)
            record = self._memory.promote(id, kind=kind or proposed_kind(waiting) or None)
            changes: dict[str, Any] = {} if text is None else {"text": text}
            if PROPOSAL_TAG in record.tags:
                changes["tags"] = tuple(tag for tag in record.tags if tag != PROPOSAL_TAG)
            accepted.append(self._memory.edit(record.id, **changes) if changes else record)
        return accepted

    def reject(self, *ids: str, reason: str = "") -> Sequence[Record]:
        """Reject records: they are retired and stay in the history, with the reason."""
        refuse_lists(ids, "reject")
        fields: dict[str, Any] = {"data": {REJECTION: reason}} if reason else {}
        return [self._memory.edit(id, status="retired", **fields) for id in ids]

    @retry_interrupted
    def answer(self, question: str, answer: str, *, trust: Trust = "user") -> Record:
        """Answer an open question: it becomes a decision of the same tasks, and the question is retired."""
        data = self._memory.data
        asked = self._memory.get(question)
        if asked.kind != "question":
            raise InputError(f"{question!r} is a {asked.kind}, not a question.")
        if asked.status != "active":
            raise Conflict(f"{question!r} is already {asked.status}.")
        if not answer.strip():
            raise InputError("The answer is empty; say what was decided.")
        record = data.make(
            "decision", f"{one_line(asked.text)} {answer.strip()}", {"tags": asked.tags, "trust": trust}, asked.scope
        )
        (vector,) = data.vectors([record.text])
        with data.store.write(data.scope) as writer:
            added = writer.add(record, vector).record
            for link in writer.links([asked.id], [LEARNED_FROM]):
                writer.link(Link(added.id, LEARNED_FROM, link.dst))
            retired = replace(asked, status="retired", updated=data.clock())
            writer.change(retired, "answer", expect_version=asked.version)
            return added


def _questions(reader: Reader) -> list[Review]:
    questions = reader.recent(("question",), MAX_REVIEWS, NO_FILTERS)
    return [Review(record.id, "question", record) for record in questions if record.status == "active"]


def _flagged_procedures(reader: Reader) -> list[Review]:
    procedures = reader.recent(("procedure",), MAX_REVIEWS, NO_FILTERS)
    return [Review(r.id, "flagged", r) for r in procedures if r.status == "active" and r.data.get("review")]


def _proposed_rules(reader: ProjectReader) -> list[Review]:
    filters = Filters(kinds=("note",), tags=(PROPOSAL_TAG,))
    notes, _ = reader.page(MAX_REVIEWS, filters, status="active", after=0)
    return [Review(note.id, "proposed", note, proposed_kind(note)) for note in notes if proposed_kind(note)]


def proposed_kind(record: Record) -> str:
    """Return the kind that a note is proposed as, or an empty string."""
    kind = str(record.data.get(PROPOSED_KIND, ""))
    return kind if kind in RULE_KINDS and PROPOSAL_TAG in record.tags else ""


def _conflicts(reader: Reader) -> list[Review]:
    facts = {record.id: record for record in reader.recent(("fact",), MAX_REVIEWS, NO_FILTERS) if record.status == "active"}
    links = reader.links(list(facts), [CONFLICTS_WITH])
    return [Review(link.src, "conflict", facts[link.src]) for link in links if link.dst in facts]
