"""What tools give: Markdown for the model to read and, beside it, figures for the program around it.

Comes in: values of the engine. Goes out: a tool's result. The figures are in its `_meta`, and `offering` repeats them as
structured content for every client but those that would then show their model nothing else (docs/decisions/022).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp.types import CallToolResult, TextContent

from foveate.engine import Engine
from foveate.operations import json
from foveate.pipeline.assembly import Context
from foveate.receipts.feedback import Feedback
from foveate.receipts.receipt import Receipt, sentence
from foveate.records.kinds import kind_of
from foveate.records.triggers import Trip
from foveate.store.protocol import Added
from foveate.tasks.learn import Learned
from foveate.text import tokens
from foveate.text.format import one_line
from foveate.text.sanitize import sanitize
from foveate.types import Item, Level, Record

FIGURES = "foveate/figures"
"""Where a result's `_meta` holds them."""

MOST_SHORTENED = 8
"""Ids that follow a context: an id costs a dozen tokens, and the best items come first."""

MOST_LEFT_OUT = 10
"""What `explain` names of what was left out; the receipt has all."""

MOST_SAID = 10
"""Problems of a handoff that are told."""

_CLOSING = re.compile(r"</data-\d{9}>\n?\Z")
"""How a fenced text ends."""

NOWHERE = ("given", "frame", "calibration")
"""Sources whose items no id opens: they are in no store."""

CODE = ("code", "file")
"""What is made from files and can be opened by its id."""


def answer(figures: Mapping[str, Any], *texts: str) -> CallToolResult:
    content: Any = [TextContent(type="text", text=text.strip()) for text in texts if text.strip()]
    return CallToolResult(content=content, _meta={FIGURES: dict(figures)})


# --- contexts ------------------------------------------------------------------------------------------------------


def computed(context: Context) -> CallToolResult:
    """A context, and a line with its id and of what there is more."""
    shortened = [_id(item.candidate.record.id) for item in context.items if _is_shortened(item)][:MOST_SHORTENED]
    figures = {
        "context": context.id,
        "tokens": context.tokens,
        "budget": context.budget.total,
        "items": len(context.items),
        "left_out": len(context.left_out),
        "truncated": context.truncated,
        "profile": context.profile,
        "shortened": shortened,
    }
    more = f" Shortened, `expand` has more: {', '.join(shortened)}." if shortened else ""
    ledger = f"(Context {context.id}: {context.tokens:,} of {context.budget.total:,} tokens.{more})"
    warnings = [f"Warning: {warning}" for warning in context.warnings]
    return answer(figures, context.text or "Nothing is known about this yet.", "\n".join([ledger, *warnings]))


def _is_shortened(item: Item) -> bool:
    candidate, kind = item.candidate, kind_of(item.candidate.record.kind)
    can_be_opened = candidate.source not in NOWHERE and (kind.name in CODE or not kind.derived)
    return can_be_opened and candidate.tokens.get("full", 0) > candidate.tokens.get(item.level, 0)


def explained(receipt: Receipt) -> CallToolResult:
    """The budget of a context, and what was left out."""
    budget = receipt.document["budget"]
    used = [slot for slot in budget["slots"] if slot["used"]]
    lost = [entry for entry in receipt.candidates if not entry["kept"]]
    lines = [f"{receipt.id}: {budget['used']:,} of {budget['total']:,} tokens."]
    lines += [f"- {slot['name']}: {slot['used']:,} tokens, {slot['items']} items" for slot in used]
    lines += [f"Left out, {len(lost)} in all:"] if lost else []
    lines += [f"- {_id(entry['id'])}: {sentence(entry)}" for entry in lost[:MOST_LEFT_OUT]]
    lines += [f"Warning: {warning}" for warning in receipt.document["warnings"]]
    figures = {
        "context": receipt.id,
        "tokens": budget["used"],
        "budget": budget["total"],
        "slots": {slot["name"]: slot["used"] for slot in used},
        "left_out": dict(Counter(entry["reason"] for entry in lost)),
    }
    return answer(figures, "\n".join(lines))


def fared(found: Mapping[str, Any]) -> CallToolResult:
    """How one item fared in a context, with its score taken apart."""
    parts = sorted(found.get("score_parts", {}).items(), key=lambda pair: -pair[1])
    lines = [f"{found['id']} in {found['context']}: {found['sentence']}"]
    lines += [f"Score {found['score']:.3f}:"] if "score" in found else []
    lines += [f"- {part:.3f} {name}" for name, part in parts if part]
    figures = {name: found[name] for name in ("context", "id", "sentence", "score", "score_parts") if name in found}
    return answer(figures, "\n".join(lines))


# --- records -------------------------------------------------------------------------------------------------------


def line(engine: Engine, record: Record, level: Level) -> str:
    """A record as it would stand in a context of this engine."""
    return engine.receipts.render(record, level)


def found(engine: Engine, rows: Iterable[tuple[Record, float]], nothing: str) -> CallToolResult:
    """Records as one line each, under their ids."""
    hits = [(record, round(relevance, 3)) for record, relevance in rows]
    figures = [{"id": record.id, "kind": record.kind, "relevance": relevance} for record, relevance in hits]
    lines = [f"`{_id(record.id)}`{_status(record)}\n{line(engine, record, 'micro')}" for record, _ in hits]
    return answer({"hits": figures}, "".join(lines) or nothing)


def _id(id: str) -> str:
    """An id on one line: that of code holds the name of a file, which anybody may have given."""
    return sanitize(one_line(id), "web").replace("`", "'")


def _status(record: Record) -> str:
    return "" if record.status == "active" else f" ({record.status})"


def expanded(id: str, text: str, most: int, counter: str) -> CallToolResult:
    """A record in full, or as much of it as was asked for."""
    size = tokens.count(text, counter)
    shown = _cut(text, most, counter)
    note = "" if shown == text else f"(Cut: {most:,} of {size:,} tokens. Ask again with a larger max_tokens.)"
    return answer({"id": id, "tokens": size, "whole": shown == text}, shown, note)


def _cut(text: str, most: int, counter: str) -> str:
    """The beginning of a text, in whole lines where that keeps most of it; a fence that it opens is closed."""
    if tokens.count(text, counter) <= most:
        return text
    close = _CLOSING.search(text)
    end = f"\n{close[0]}" if close else ""
    body = text[: close.start()] if close else text
    while body and (size := tokens.count(body + end, counter)) > most:
        body = body[: min(len(body) * most // size, len(body) - 1)]
    lines = body[: body.rfind("\n") + 1]
    return (lines if 2 * len(lines) > len(body) else body) + end


def kept(added: Added) -> CallToolResult:
    """What became of something that was to be remembered."""
    id, affected = added.record.id, f" ({', '.join(added.affected)})" if added.affected else ""
    words = {
        "added": f"Kept as {id}.",
        "unchanged": f"Known already, as {id}; nothing was changed.",
        "confirmed": f"Known already, as {id}; confirmed.",
        "superseded older": f"Kept as {id}; it replaces the older value{affected}.",
        "older": f"Kept as {id}, as a past value: a newer one holds{affected}.",
        "disputed": f"Kept as {id}, but a more trusted word says otherwise{affected}. Ask the user.",
    }[added.action]
    figures = {"id": id, "action": added.action, "affected": list(added.affected)}
    return answer(figures, "\n".join([words, *added.warnings]))


# --- work ----------------------------------------------------------------------------------------------------------


def taught(done: Learned) -> CallToolResult:
    """What was learned from a handoff."""
    if done.action == "unchanged":
        head = f"This handoff of {done.task} was read before; nothing was changed."
    else:
        kinds = (f"{kind}: {', '.join(f'{n} {verb}' for verb, n in each.items())}" for kind, each in done.counts.items())
        head = f"{done.task} is closed, and its handoff kept. Learned: {'; '.join(kinds) or 'its text'}."
    return answer(json.learned(done), "\n".join([head, *(f"- {said}" for said in done.problems[:MOST_SAID])]))


def noted(context: str, used: Feedback | None, marks: Mapping[str, str], advice: Iterable[str]) -> CallToolResult:
    """What an answer used of its context, and what was said of its items."""
    figures: dict[str, Any] = {"context": context, "marks": dict(marks)}
    lines = [f"{id}: {mark}." for id, mark in marks.items()]
    if used is not None:
        figures |= {"used": dict(used.used), "unused": list(used.unused), "precision": used.precision}
        lines.insert(0, f"{len(used.used)} of {len(used.used) + len(used.unused)} items were used.")
    return answer(figures, "\n".join([*lines, *filter(None, advice)]))


def checked(engine: Engine, trips: Sequence[Trip]) -> CallToolResult:
    """The constraints that a planned action meets."""
    blocked = any(trip.action == "block" for trip in trips)
    head = "Go on with care:" if trips else "Nothing is against it."
    head = "Blocked. Do not do this, and tell the user why:" if blocked else head
    rules = [line(engine, trip.censor, "full").strip() for trip in trips]
    figures = {"blocked": blocked, "trips": [trip.censor.id for trip in trips]}
    return answer(figures, "\n".join([head, *rules]))
