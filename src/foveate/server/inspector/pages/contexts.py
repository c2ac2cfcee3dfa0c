"""Contexts: the latest ones, and one of them as the model received it, beside its budget and its items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from foveate.agents import made_again
from foveate.operations import json
from foveate.operations.inputs import LAST
from foveate.pipeline.assembly import Context
from foveate.receipts.prompt import Prompt, whole
from foveate.receipts.receipt import Receipt
from foveate.server.http.responses import cursor
from foveate.server.inspector.candidate_rows import features, rows
from foveate.server.inspector.page import Action, Asked, Page, picked
from foveate.types import Record


def latest(asked: Asked) -> dict[str, Any]:
    """The contexts that were computed, newest first."""
    limit = asked.limit()
    found = asked.engine.lines(limit + 1, asked.after(int, str))
    page = found[:limit]
    more = cursor(page[-1]["now"], page[-1]["id"]) if len(found) > limit else None
    mine = asked.engine.scope.agent
    agents = [] if asked.caller.who.scope.agent and not asked.caller.who.is_owner else asked.engine.agents()
    return {"contexts": [json.listed(line) for line in page], "next": more, "agents": agents, "agent": mine}


def one(asked: Asked) -> dict[str, Any]:
    """A context: the prompt, the budget, and the items that it shows."""
    receipt = receipt_of(asked)
    return described(asked, receipt, asked.engine.prompt(receipt, made_again(asked.engine, receipt)))


def receipt_of(asked: Asked, name: str = "id") -> Receipt:
    id = asked.text(name, LAST)
    if id != LAST:
        return asked.engine.receipt(id)
    latest = asked.engine.lines(1)  # as the list has it
    return asked.engine.receipt(latest[0]["id"] if latest else None)


def tried(asked: Asked, context: Context, receipt: Receipt) -> dict[str, Any]:
    """A context that was not kept, described as one that was."""
    handed = {item.candidate.record.id: item.candidate.record for item in context.items}
    return described(asked, receipt, whole(context.sections, context.tag), handed)


def described(asked: Asked, receipt: Receipt, prompt: Prompt, known: Mapping[str, Record] | None = None) -> dict[str, Any]:
    document = receipt.document
    kept = [entry for entry in receipt.candidates if entry["kept"]]
    order = {slot["name"]: n for n, slot in enumerate(document["budget"]["slots"])}
    kept.sort(key=lambda entry: (order[entry["slot"]], entry["rank"]))
    items = _as_shown(rows(asked.engine, receipt, kept, known), prompt)
    return {
        "subject": f"Context: {document['request']['query'][:60]}",
        "context": head(receipt),
        "budget": ledger(document["budget"]),
        "prompt": _prompt(prompt, items),
        "items": items,
        "features": features(items),
        "left_out": dict(Counter(entry["reason"] for entry in receipt.candidates if not entry["kept"]).most_common()),
        "sources": document["sources"],
        "signals": {name: value for name, value in document["signals"].items() if value},
        "notes": document.get("notes", {}),
    }


def head(receipt: Receipt) -> dict[str, Any]:
    """What a context was asked, and of what it was computed."""
    document = receipt.document
    asked = document["request"]
    return {
        "id": receipt.id,
        "created": document["created"],
        "query": asked["query"],
        "profile": document["profile"]["name"],
        "counter": asked["counter"],
        "scope": {level: name for level, name in asked["scope"].items() if name},
        "task": asked.get("task"),
        "filters": {name: value for name, value in asked["filters"].items() if value not in (None, [], "web")},
        "ms": document["ms"],
        "revision": document["revision"],
        "prefix": document["prefix"],
        "text_hash": document["text_hash"],
        "warnings": document["warnings"],
        "forgotten": document.get("forgotten", 0),
    }


def ledger(budget: Mapping[str, Any]) -> dict[str, Any]:
    """The budget with what is free, and without slots that had no room and asked for none. `joined`: what the whole takes
    less than its parts, as a tokenizer joins what stands side by side."""
    free = budget["total"] - budget["reserve"] - budget["used"]
    slots = [slot for slot in budget["slots"] if slot["own"] or slot["granted"] or slot["used"]]
    joined = sum(slot["used"] for slot in slots) + budget["framing"] - budget["used"]
    return {**budget, "free": free, "joined": joined, "slots": slots}


def _as_shown(items: list[dict[str, Any]], prompt: Prompt) -> list[dict[str, Any]]:
    """The items in the order in which the prompt shows them, numbered; what it no longer shows stands last."""
    place = {id: n for n, id in enumerate(span.id for part in prompt.parts for span in part.spans if span.id)}
    ordered = sorted(items, key=lambda item: place.get(item["id"], len(place)))
    return [{"n": n, **item, "missing": item["id"] not in place} for n, item in enumerate(ordered, 1)]


def _prompt(prompt: Prompt, items: list[dict[str, Any]]) -> dict[str, Any]:
    numbers = {item["id"]: item["n"] for item in items}
    return {
        "identical": prompt.identical,
        "missing": list(prompt.missing),
        "text": prompt.text,
        "parts": [
            {
                "name": part.name,
                "role": part.role,
                "stable": part.stable,
                "spans": [{"text": span.text, "item": numbers.get(span.id)} for span in part.spans],
            }
            for part in prompt.parts
        ],
    }


def _told(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"contexts": picked(document["contexts"], "id", "created", "query", "profile", "tokens", "total", "left_out")}


def told(document: Mapping[str, Any]) -> dict[str, Any]:
    """A context for people to read."""
    budget = document["budget"]
    return {
        "context": {name: document["context"][name] for name in ("id", "created", "query", "profile", "counter", "scope")},
        "budget": {name: budget[name] for name in ("total", "used", "framing", "free", "reserve")},
        "slots": picked(budget["slots"], "name", "own", "granted", "used", "items"),
        "prompt": document["prompt"]["text"],
        "items": picked(
            document["items"], "n", "title", "kind", "slot", "level", "tokens", "score", "source", "trust", "id"
        ),
        "left out, by reason": document["left_out"],
        "warnings": document["context"]["warnings"],
    }


PAGES: tuple[Page, ...] = (
    Page("contexts", "Contexts", latest, "context:read", "What the models were shown, newest first.", _told),
    Page("context", "Context", one, "context:read", told=told),
)
ACTIONS: tuple[Action, ...] = ()
