"""Handoff -> records: what a task found out becomes patterns, gotchas, decisions, questions and entries of the context map.

Comes in: a task and its handoff, in any form that `foveate.tasks.handoff` reads. Goes out: records of the project, each
linked to the task that taught it, and the task completed; in one transaction, so that all of it is kept or nothing. What is
already known is confirmed. The handoff's own text is kept whole, whatever could be read of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from foveate.errors import Conflict, InputError
from foveate.memory.memory import Memory
from foveate.records import make
from foveate.records.kinds import HANDOFF_OF, LEARNED_FROM
from foveate.store.protocol import Writer
from foveate.store.retry import retried
from foveate.tasks.task import changed, find, shared, state_of
from foveate.text.format import component_of
from foveate.types import TRUST, Link, Record, Scope

if TYPE_CHECKING:
    from foveate.tasks.handoff import Parsed

STATE_OF = {"completed": "completed", "partial": "completed", "failed": "failed", "blocked": "blocked"}
OUTCOME_OF = {"completed": "success", "partial": "partial", "failed": "failure", "blocked": "pending"}
"""What a handoff's status means for its task."""

MAX_PATH = 1000
"""Characters of a path: no file system takes more, and what an agent wrote may be no path at all."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What became of a handoff. `counts` says how many records were added, confirmed and updated, by kind."""

    task: str
    handoff: str
    action: str
    """`learned`, or `unchanged` where this very handoff was read before."""
    rung: str
    """How it could be read: `yaml`, `repaired yaml`, ..., `raw`."""
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


@retried
def ingest(memory: Memory, ref: str, source: Any, *, again: bool = False) -> Learned:
    """Keep a handoff and what it teaches, and complete its task."""
    from foveate.tasks.handoff import parse  # a dozen modules that few commands need

    parsed = parse(source)
    with memory.store.read(memory.scope) as reader:
        task = find(reader, ref)
    problems = [*parsed.problems, *_another_task(parsed, task)]
    made = list(_records(memory, parsed.handoff, shared(memory.scope), problems))
    handoff = _handoff(memory, parsed, task, problems)
    vectors = memory.embedded([record.text for record in made])
    with memory.store.write(memory.scope) as writer:
        task = find(writer, task.id)
        known = writer.by_key(str(handoff.key))
        if known is not None and _is_done(task, known, parsed):
            return Learned(task.id, known.id, "unchanged", parsed.rung, problems=tuple(problems))
        _refuse(task, again)
        counts: dict[str, Counter[str]] = {}
        with writer.undo_group():
            kept = _revived(memory, writer, known) if known else writer.add(handoff).record
            writer.link(Link(kept.id, HANDOFF_OF, task.id))
            for record, vector in zip(made, vectors, strict=True):
                id, action = _keep(memory, writer, record, vector)
                counts.setdefault(record.kind, Counter())[action] += 1
                writer.link(Link(id, LEARNED_FROM, task.id))
            _complete(memory, writer, task, parsed, kept.id)
    return Learned(task.id, kept.id, "learned", parsed.rung, {kind: dict(c) for kind, c in counts.items()}, tuple(problems))


# --- steps ---------------------------------------------------------------------------------------------------------


def _another_task(parsed: Parsed, task: Record) -> list[str]:
    """An agent may have copied another task's id: the caller's word counts, and somebody should look."""
    named = parsed.handoff.get("task_id")
    if not named or named in (task.id, task.key):
        return []
    return [f"It names task {named!r}, and was taken as the handoff of {task.id!r}."]


def _is_done(task: Record, known: Record, parsed: Parsed) -> bool:
    """Whether this very handoff is the one that the task stands by; after an undo or a new start it counts again."""
    return task.data.get("handoff") == known.id and state_of(task) == STATE_OF[parsed.handoff["status"]]


def _refuse(task: Record, again: bool) -> None:
    if task.status != "active":
        raise Conflict(f"Task {task.id!r} is {task.status}. `foveate undo {task.id}` takes that back.")
    if state_of(task) == "completed" and not again:
        raise Conflict(
            f"Task {task.id!r} is completed already; nothing was changed. With `--again` this handoff counts as well."
        )


def _handoff(memory: Memory, parsed: Parsed, task: Record, problems: Sequence[str]) -> Record:
    """The handoff's own record: its text whole, and how it could be read."""
    digest = blake2b(parsed.raw.encode(), digest_size=12).hexdigest()
    data = {"rung": parsed.rung, "form": parsed.form, "problems": list(problems), "status": parsed.handoff["status"]}
    if parsed.handoff.get("extra"):
        data["extra"] = parsed.handoff["extra"]
    values = {"key": f"handoff:{task.id}:{digest}", "trust": "agent", "summary": parsed.handoff.get("summary"), "data": data}
    return memory.make("handoff", parsed.raw, shared(memory.scope), _given(values))


def _records(memory: Memory, handoff: Mapping[str, Any], scope: Scope, problems: list[str]) -> Iterator[Record]:
    """A record for each thing that the handoff teaches; what cannot be one is named among the problems."""
    for kind, text, values in _taught(handoff):
        try:
            yield memory.make(kind, text, scope, {"trust": "agent", **values})
        except InputError as error:
            problems.append(f"A {kind} was left out: {error}")


def _taught(handoff: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for found in handoff["patterns_discovered"]:
        applies_to = found.get("applies_to") or []
        values = {"tags": applies_to, "applies_to": applies_to, "location": found.get("location")}
        yield "pattern", found["pattern"], _given(values)
    for found in handoff["gotchas"]:
        yield "gotcha", found["issue"], _given({name: found.get(name) for name in ("severity", "workaround")})
    for found in handoff["decisions"]:
        values = {"rationale": found.get("rationale"), "alternatives": found.get("alternatives")}
        yield "decision", found["decision"], _given(values)
    for found in handoff["open_questions"]:
        yield "question", found["question"], _given({n: found.get(n) for n in ("context", "recommendation", "blocking")})
    for found in (*handoff["files_created"], *handoff["files_modified"]):
        yield "component", *_component(found)


def _component(file: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    path, lines = file["path"][:MAX_PATH], file.get("lines")
    component = component_of(path)
    values = {
        "component": component,
        "location": f"{path}:{lines}" if lines else path,
        "subject": component,
        "paths": [path],
        "key": f"component:{path}",
    }
    return file.get("purpose") or component, values


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [])}


def _revived(memory: Memory, writer: Writer, record: Record) -> Record:
    """A record in use again, where it was only out of use because what made it was undone."""
    if record.status != "retired" or writer.history(record.id)[-1].verb != "undo":
        return record
    return writer.change(replace(record, status="active", updated=memory.clock()), "learn")


def _keep(memory: Memory, writer: Writer, record: Record, vector: Sequence[float] | None) -> tuple[str, str]:
    """Keep a record, or bring the map's entry for the same file up to date; its id, and what was done."""
    known = writer.by_key(record.key) if record.key else None
    if known is None or known.kind != record.kind:
        added = writer.add(record if known is None else replace(record, key=None), vector)
        return added.record.id, added.action
    known = _revived(memory, writer, known)
    after = _updated(known, record)
    if after == known:
        return known.id, "unchanged"
    finished = make.finish(replace(after, updated=memory.clock()), memory.rules)
    writer.change(finished, "learn", vector=vector if finished.text == record.text else None)
    return known.id, "updated"


def _updated(known: Record, record: Record) -> Record:
    """An entry of the map with the file's new place and purpose. A more trusted word stays; what was put away stays so."""
    moved = replace(known, data={**known.data, "location": record.data["location"]})
    says_nothing = record.text in (record.data["component"], known.text)
    if says_nothing or TRUST.index(known.trust) > TRUST.index(record.trust):
        return moved
    return replace(moved, text=record.text, trust=record.trust, summary="", micro="")


def _complete(memory: Memory, writer: Writer, task: Record, parsed: Parsed, id: str) -> None:
    handoff, rung = parsed.handoff, parsed.rung
    status, summary = handoff["status"], str(handoff.get("summary", ""))
    state = STATE_OF[status]
    data: dict[str, Any] = {"state": state, "handoff": id, "files_to_read": list(handoff["dependencies_for_next"])}
    data |= {"result": summary} if state == "completed" else {"reason": summary or f"The handoff says {status}."}
    outcome = "partial" if rung == "raw" and status == "completed" else OUTCOME_OF[status]  # nobody could read how it went
    writer.change(changed(memory, task, data, outcome), "handoff", expect=task.version)
