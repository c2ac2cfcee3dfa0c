"""Answers as JSON documents: the same words on the command line, over HTTP and over MCP.

Comes in: values of the engine. Goes out: what `json.dumps` takes. A context's document is the receipts' (`context_json`), a
record's own is the state's (`to_json`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foveate.agents import CompiledContext, ContextStrategy, Lease
    from foveate.engine import Engine
    from foveate.state.learn import Learned
    from foveate.state.store import Added, Change, Hit
    from foveate.state.task import Task
    from foveate.state.triggers import Trip
    from foveate.types import Link, Record


def record(engine: Engine, id: str, *, as_of: int | None = None) -> dict[str, Any]:
    """A record with its links and its history."""
    found, history = engine.get(id, as_of=as_of), engine.history(id)
    with engine.reader() as reader:
        links = [*reader.links([id]), *reader.links([id], back=True)]
    return whole_record(found, links, history)


def whole_record(record: Record, links: Sequence[Link], history: Sequence[Change]) -> dict[str, Any]:
    from foveate.ids import iso
    from foveate.state.records import to_json

    return {
        "record": {**to_json(record), "tokens": dict(record.tokens or {})},
        "links": [asdict(link) for link in links],
        "history": [
            {
                "version": step.version,
                "verb": step.verb,
                "at": iso(step.at),
                "before": to_json(step.before) if step.before else None,
            }
            for step in history
        ],
    }


def added(done: Added) -> dict[str, Any]:
    from foveate.state.records import to_json

    return {
        "id": done.record.id,
        "action": done.action,
        "affected": list(done.affected),
        "warnings": list(done.warnings),
        "record": to_json(done.record),
    }


def hits(query: str, found: Iterable[Hit]) -> dict[str, Any]:
    from foveate.state.records import to_json

    rows = [{"lexical": hit.lexical, "vector": hit.vector, "record": to_json(hit.record)} for hit in found]
    return {"query": query, "hits": rows}


def task(found: Task) -> dict[str, Any]:
    """A task and its links, without its further fields."""
    return {
        "id": found.id,
        "key": found.record.key,
        "name": found.name,
        "objective": found.objective,
        "status": found.status,
        "ready": found.ready,
        "depends_on": list(found.depends_on),
        "waiting_for": list(found.waiting_for),
        "parent": found.parent,
        "children": list(found.children),
        "result": found.result,
        "reason": str(found.record.data.get("reason", "")),
    }


def lease(held: Lease) -> dict[str, Any]:
    from foveate.ids import iso

    return {**asdict(held), "since": iso(held.since), "expires": iso(held.expires)}


def compiled(strategy: ContextStrategy, done: CompiledContext) -> dict[str, Any]:
    """What an agent's strategy compiled: the context's document, and 002's view of it."""
    from foveate.receipts import context_json

    return {
        "agent": strategy.name,
        "system_prompt": done.system_prompt or None,
        "sections": [{"name": each.name, "content": each.content, "source": each.source} for each in done.sections],
        "messages": strategy.to_messages(done),
        "context": context_json(done.context),
        "warnings": list(done.warnings),
    }


def learned(done: Learned) -> dict[str, Any]:
    """What was learned from a handoff."""
    return {
        "task": done.task,
        "handoff": done.handoff,
        "action": done.action,
        "rung": done.rung,
        "counts": {kind: dict(counts) for kind, counts in done.counts.items()},
        "problems": list(done.problems),
    }


def trips(found: Sequence[Trip]) -> dict[str, Any]:
    """The censors that a planned action trips."""
    rows = [
        {
            "id": trip.censor.id,
            "action": trip.action,
            "text": trip.censor.text,
            "reason": trip.reason,
            "matched": trip.matched,
        }
        for trip in found
    ]
    return {"blocked": any(trip.action == "block" for trip in found), "trips": rows}
