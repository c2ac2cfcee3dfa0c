"""Learn from handoffs: turn what a task found out into records, and set the task's status, in one transaction.

A handoff becomes patterns, gotchas, decisions, questions and entries of the context map, each linked to the task. Known
records are confirmed. The handoff's own text is always kept, however little of it could be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from foveate.errors import InputError
from foveate.records import make
from foveate.records.kinds import HANDOFF_OF, LEARNED_FROM
from foveate.store.protocol import Writer
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.tasks.claims import end_claims
from foveate.tasks.task import find, refuse_ended, shared_scope, state_of, with_fields
from foveate.text.format import component_of
from foveate.types import TRUST, Link, Record, Scope

if TYPE_CHECKING:
    from foveate.tasks.handoff import ParsedHandoff

STATE_OF = {"completed": "completed", "partial": "completed", "failed": "failed", "blocked": "blocked"}
OUTCOME_OF = {"completed": "success", "partial": "partial", "failed": "failure", "blocked": "pending"}
"""The task's status and outcome for each status of a handoff."""

ANOTHER_HANDOFF_ADVICE = "Nothing was changed. Pass `again` (`--again`) to learn from this handoff too."

MAX_PATH_CHARS = 1000
"""No file system takes longer paths, and what an agent wrote may be no path at all."""


@dataclass(frozen=True, slots=True)
class Learned:
    """The result of a handoff. `counts` holds the numbers of added, confirmed and updated records, by kind."""

    task: str
    handoff: str
    """Id of the record that keeps the handoff's text; empty after a dry run."""
    action: str
    """`learned`, `unchanged` if this very handoff was read before, or `dry run`."""
    method: str
    """How the text was parsed: `yaml`, `repaired yaml`, ..., `raw`."""
    status: str
    """The status that the task has now, or would have."""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


class _DryRun(Exception):
    """Rolls back a transaction after the result is known."""


@retry_interrupted
def learn(
    data: ScopedStore, task_id: str, source: Any, *, again: bool = False, strict: bool = False, dry_run: bool = False
) -> Learned:
    """Store a handoff and what it teaches, set the task's status and end the claims on it."""
    from foveate.tasks.handoff import parse  # a dozen modules that few commands need

    parsed = parse(source, data.rules.allow)
    with data.project_reader() as reader:
        task = find(reader, task_id)
    problems = [*parsed.problems, *_task_problems(parsed, task)]
    records = list(_records(data, parsed.handoff, shared_scope(data.scope), problems))
    if strict and problems:
        raise InputError(problems)
    handoff = _handoff_record(data, parsed, task, problems)
    vectors = data.vectors([record.text for record in records])
    state = STATE_OF[parsed.handoff["status"]]
    with suppress(_DryRun), data.writer() as writer:
        task = find(writer, task.id)
        known = writer.by_key(str(handoff.key))
        if known is not None and task.data.get("handoff") == known.id and state_of(task) == state:
            return Learned(task.id, known.id, "unchanged", parsed.method, state, problems=tuple(problems))
        refuse_ended(task, ANOTHER_HANDOFF_ADVICE, allow_completed=again)
        counts: dict[str, Counter[str]] = {}
        with writer.undo_group():
            kept = _reactivate(data, writer, known) if known else writer.add(handoff).record
            writer.link(Link(kept.id, HANDOFF_OF, task.id))
            for record, vector in zip(records, vectors, strict=True):
                id, action = _store(data, writer, record, vector)
                counts.setdefault(record.kind, Counter())[action] += 1
                writer.link(Link(id, LEARNED_FROM, task.id))
            _set_status(data, writer, task, parsed, kept.id)
        end_claims(data, writer, task.id, state)
        if dry_run:
            raise _DryRun
    return Learned(
        task.id,
        "" if dry_run else kept.id,
        "dry run" if dry_run else "learned",
        parsed.method,
        state,
        {kind: dict(c) for kind, c in counts.items()},
        tuple(problems),
    )


# --- steps ---------------------------------------------------------------------------------------------------------


def _task_problems(parsed: ParsedHandoff, task: Record) -> list[str]:
    """Return a problem if the handoff names another task: an agent may have copied a wrong id."""
    named = parsed.handoff.get("task_id")
    if not named or named in (task.id, task.key):
        return []
    return [f"It names task {named!r}, and was taken as the handoff of {task.id!r}."]


def _handoff_record(data: ScopedStore, parsed: ParsedHandoff, task: Record, problems: Sequence[str]) -> Record:
    """Return the record that keeps the whole text of a handoff, and how it was parsed."""
    digest = blake2b(parsed.raw.encode(), digest_size=12).hexdigest()
    fields = {"rung": parsed.method, "form": parsed.form, "problems": list(problems), "status": parsed.handoff["status"]}
    if parsed.handoff.get("extra"):
        fields["extra"] = parsed.handoff["extra"]
    values = {"key": f"handoff:{task.id}:{digest}", "trust": "agent", "summary": parsed.handoff.get("summary")}
    return data.make("handoff", parsed.raw, _nonempty({**values, "data": fields}), shared_scope(data.scope))


def _records(data: ScopedStore, handoff: Mapping[str, Any], scope: Scope, problems: list[str]) -> Iterator[Record]:
    """Yield a record for each thing that the handoff teaches; name among the problems what cannot be one."""
    for kind, text, values in _lessons(handoff):
        try:
            yield data.make(kind, text, {"trust": "agent", **values}, scope)
        except InputError as error:
            problems.append(f"A {kind} was left out: {error}")


LESSONS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "patterns_discovered": ("pattern", "pattern", ("applies_to", "location")),
    "gotchas": ("gotcha", "issue", ("severity", "workaround")),
    "decisions": ("decision", "decision", ("rationale", "alternatives")),
    "open_questions": ("question", "question", ("context", "recommendation", "blocking")),
}
"""By list of a handoff: the kind of its records, and the names of their text and their fields."""


def _lessons(handoff: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield kind, text and fields of each thing that the handoff teaches."""
    for name, (kind, text, fields) in LESSONS.items():
        for entry in handoff[name]:
            values = {field: entry.get(field) for field in fields}
            yield kind, entry[text], _nonempty({**values, "tags": entry.get("applies_to")})
    for file in (*handoff["files_created"], *handoff["files_modified"]):
        yield "component", *_component(file)


def _component(file: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    path, lines = file["path"][:MAX_PATH_CHARS], file.get("lines")
    component = component_of(path)
    values = {
        "component": component,
        "location": f"{path}:{lines}" if lines else path,
        "subject": component,
        "paths": [path],
        "key": f"component:{path}",
    }
    return file.get("purpose") or component, values


def _nonempty(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def _reactivate(data: ScopedStore, writer: Writer, record: Record) -> Record:
    """Return a record, active again if it was only retired by an undo."""
    if record.status != "retired" or writer.history(record.id)[-1].verb != "undo":
        return record
    return writer.change(replace(record, status="active", updated=data.clock()), "learn")


def _store(data: ScopedStore, writer: Writer, record: Record, vector: Sequence[float] | None) -> tuple[str, str]:
    """Store a record, or update the map's entry for the same file; return its id and what was done."""
    known = writer.by_key(record.key) if record.key else None
    if known is None or known.kind != record.kind:
        added = writer.add(record if known is None else replace(record, key=None), vector)
        return added.record.id, added.action
    known = _reactivate(data, writer, known)
    after = _updated(known, record)
    if after == known:
        return known.id, "unchanged"
    finished = make.finish(replace(after, updated=data.clock()), data.rules)
    writer.change(finished, "learn", vector=vector if finished.text == record.text else None)
    return known.id, "updated"


def _updated(known: Record, record: Record) -> Record:
    """Return the map's entry with the file's new place and purpose. The words of someone more trusted stay."""
    moved = replace(known, data={**known.data, "location": record.data["location"]})
    says_nothing_new = record.text in (record.data["component"], known.text)
    if says_nothing_new or TRUST.index(known.trust) > TRUST.index(record.trust):
        return moved
    return replace(moved, text=record.text, trust=record.trust, summary="", micro="")


def _set_status(data: ScopedStore, writer: Writer, task: Record, parsed: ParsedHandoff, handoff_id: str) -> None:
    handoff = parsed.handoff
    status, summary = handoff["status"], str(handoff.get("summary", ""))
    state = STATE_OF[status]
    fields: dict[str, Any] = {"state": state, "handoff": handoff_id}
    fields["files_to_read"] = list(handoff["dependencies_for_next"])
    fields |= {"result": summary} if state == "completed" else {"reason": summary or f"The handoff says {status}."}
    # A raw handoff does not tell how the task went, so it is at most a partial success.
    outcome = "partial" if parsed.method == "raw" and status == "completed" else OUTCOME_OF[status]
    writer.change(with_fields(data, task, fields, outcome), "handoff", expect_version=task.version)
