"""Results of tools: Markdown for the model to read, and metadata for the program around it.

The metadata are in the `_meta` of a result. `server` repeats them as structured content for every client except those that
would then hide the text from their model (docs/decisions/022-mcp.md).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp.types import CallToolResult, TextContent

from foveate.clock import iso
from foveate.engine import Engine
from foveate.memory.messages import RememberResult
from foveate.operations import documents
from foveate.receipts.context import Context
from foveate.receipts.feedback import Feedback
from foveate.receipts.parts import never_candidates
from foveate.receipts.receipt import Receipt
from foveate.receipts.why import Why
from foveate.records.kinds import kind_of
from foveate.records.triggers import CensorMatch
from foveate.store.protocol import AddResult
from foveate.tasks.learn import Learned
from foveate.tasks.task import Task
from foveate.text import tokens
from foveate.text.format import one_line
from foveate.text.sanitize import sanitize
from foveate.types import Item, Record

META_KEY = "foveate/figures"
"""Where the metadata are in a result's `_meta`."""

MAX_EXPANDABLE_IDS = 8
"""Ids that follow a context. An id takes a dozen tokens, and the best items come first."""

CLOSING_TOKENS = 48
"""Tokens of a budget that a context leaves for the line that names it."""

MAX_OMISSIONS = 10
"""Items that an explanation names of those that were left out."""

MAX_PROBLEMS = 10
"""Problems of a handoff that are listed."""

_CLOSING_TAG = re.compile(r"</data-\d{9}>\n?\Z")
"""The end of a quoted text."""

UNSTORED_SOURCES = ("given", "frame", "calibration")
"""Sources whose items cannot be expanded, because no store holds them."""

CODE_KINDS = ("code", "file")
"""Kinds that are made from files and can be expanded by their id."""


def tool_result(metadata: Mapping[str, Any], *texts: str) -> CallToolResult:
    content: Any = [TextContent(type="text", text=text.strip()) for text in texts if text.strip()]
    return CallToolResult(content=content, _meta={META_KEY: dict(metadata)})


# --- contexts ------------------------------------------------------------------------------------------------------


def context_result(context: Context, budget: int, extra: Mapping[str, Any] | None = None, note: str = "") -> CallToolResult:
    """Return a context, followed by a line with its id and the ids of items that were shortened, within a budget."""
    shortened = [_id(item.id) for item in context.items if _is_shortened(item)][:MAX_EXPANDABLE_IDS]
    metadata = {
        "context": context.id,
        "tokens": context.tokens,
        "budget": budget,
        "items": len(context.items),
        "left_out": len(context.left_out),
        "truncated": context.truncated,
        "profile": context.profile,
        "shortened": shortened,
        **(extra or {}),
    }
    text = context.text or "Nothing is known about this yet."
    free = budget - tokens.count(text, context.counter)
    # Warnings matter more than ids, which a search finds as well.
    choices = [(context.warnings, shortened[:number]) for number in range(len(shortened), -1, -1)]
    endings = [_closing_lines(context, budget, ids, note, warnings) for warnings, ids in [*choices, ((), [])]]
    return tool_result(metadata, text, next((end for end in endings if tokens.count(end, context.counter) <= free), ""))


def _closing_lines(context: Context, budget: int, ids: Sequence[str], note: str, warnings: Iterable[str]) -> str:
    more = f" Shortened, `expand` has more: {', '.join(ids)}." if ids else ""
    size = f"(Context {context.id}: {context.tokens:,} of {budget:,} tokens.{more})"
    return "\n".join([size, *filter(None, [note]), *(f"Warning: {warning}" for warning in warnings)])


def _is_shortened(item: Item) -> bool:
    candidate, kind = item.candidate, kind_of(item.kind)
    can_be_expanded = candidate.source not in UNSTORED_SOURCES and (kind.name in CODE_KINDS or not kind.is_derived)
    return can_be_expanded and candidate.tokens.get("full", 0) > candidate.tokens.get(item.level, 0)


def context_explanation(receipt: Receipt, not_considered: int) -> str:
    """Return the budget of a context and what was left out, as Markdown."""
    budget, omissions = receipt.budget, list(receipt.left_out)
    lines = [f"{receipt.id}: {budget.used:,} of {budget.total:,} tokens."]
    lines += [f"- {slot.name}: {slot.used:,} tokens, {slot.items} items" for slot in budget.slots if slot.used]
    if omissions:
        reasons = Counter(entry.reason for entry in omissions).most_common()
        lines.append(f"Left out: {', '.join(f'{number} ({reason})' for reason, number in reasons)}.")
    lines += [f"- {_id(entry.id)}: {entry}" for entry in omissions[:MAX_OMISSIONS]]
    lines += [never_candidates(not_considered)] if not_considered else []
    lines += [f"Warning: {warning}" for warning in receipt.warnings]
    return "\n".join(lines)


def item_explanation(why: Why) -> str:
    """Return why an item is in a context or not, and the parts of its score, as Markdown."""
    parts = sorted(why.score_parts.items(), key=lambda pair: -pair[1])
    lines = [f"{why.id} in {why.context}: {why}"]
    lines += [f"Score {why.candidate.score:.3f}:"] if why.candidate else []
    lines += [f"- {part:.3f} {name}" for name, part in parts if part]
    return "\n".join(lines)


# --- records -------------------------------------------------------------------------------------------------------


def search_result(engine: Engine, hits: Iterable[tuple[Record, float]], empty_text: str) -> CallToolResult:
    """Return a line for each record with its id and status."""
    rows = [(record, round(relevance, 3)) for record, relevance in hits]
    metadata = [{"id": record.id, "kind": record.kind, "relevance": relevance} for record, relevance in rows]
    lines = [f"`{_id(record.id)}`{_status(record)}\n{engine.store.data.render(record, 'micro')}" for record, _ in rows]
    return tool_result({"hits": metadata}, "".join(lines) or empty_text)


def _id(id: str) -> str:
    """Return an id that is safe in a line of text: the id of code contains a file name, which can be hostile."""
    return sanitize(one_line(id), "web").replace("`", "'")


def _status(record: Record) -> str:
    return "" if record.status == "active" else f" ({record.status})"


def expand_result(id: str, text: str, max_tokens: int, counter: str) -> CallToolResult:
    """Return the text of an item, cut to a number of tokens."""
    size = tokens.count(text, counter)
    if size <= max_tokens:
        return tool_result({"id": id, "tokens": size, "whole": True}, text)
    note = f"(Cut: {max_tokens:,} of {size:,} tokens. Call again with a larger max_tokens.)"
    shown = _truncate(text, max_tokens - tokens.count(note, counter), counter)
    return tool_result({"id": id, "tokens": size, "whole": False}, shown, note)


def _truncate(text: str, max_tokens: int, counter: str) -> str:
    """Return the beginning of a text, in whole lines if that keeps most of it. A quotation in it is closed."""
    if tokens.count(text, counter) <= max_tokens:
        return text
    closing = _CLOSING_TAG.search(text)
    end = f"\n{closing[0]}" if closing else ""
    body = text[: closing.start()] if closing else text
    while body and (size := tokens.count(body + end, counter)) > max_tokens:
        # Characters per token vary within a text, so one cut in proportion rarely fits.
        body = body[: min(len(body) * max_tokens // size, len(body) - 1)]
    # Half a line misleads more than one line less, unless the text is one long line.
    lines = body[: body.rfind("\n") + 1]
    return (lines if 2 * len(lines) > len(body) else body) + end


def remember_result(added: AddResult) -> CallToolResult:
    """Return what became of a text to remember."""
    id, affected = added.record.id, f" ({', '.join(added.affected)})" if added.affected else ""
    text = {
        "added": f"Stored as {id}.",
        "unchanged": f"Already known as {id}; nothing was changed.",
        "confirmed": f"Already known as {id}; confirmed.",
        "superseded older": f"Stored as {id}; it replaces the older value{affected}.",
        "older": f"Stored as {id}, as a past value: a newer one is valid{affected}.",
        "disputed": f"Stored as {id}, but a more trusted record says otherwise{affected}. Ask the user.",
    }[added.action]
    metadata = {"id": id, "action": added.action, "affected": list(added.affected)}
    return tool_result(metadata, "\n".join([text, *added.warnings]))


def messages_result(done: RememberResult) -> CallToolResult:
    """Return how many messages were stored."""
    counts = {"stored": done.stored, "known": done.known, "skipped": done.skipped}
    return tool_result(counts, ", ".join(f"{count} {name}" for name, count in counts.items() if count) + ".")


def proposal_result(added: AddResult, kind: str) -> CallToolResult:
    """Return that a rule was proposed."""
    id = added.record.id
    text = f"Proposed as {id}. It becomes a rule ({kind}) when the user accepts it in the inbox: tell the user."
    return tool_result({"id": id, "action": "proposed", "kind": kind}, text)


def feedback_result(context: str, feedback: Feedback, marks: Mapping[str, str], *, has_answer: bool) -> CallToolResult:
    """Return the items of a context that an answer used, and how items were marked."""
    metadata: dict[str, Any] = {"context": context, "marks": dict(marks)}
    lines = [f"{id}: {mark}." for id, mark in marks.items()]
    if has_answer:
        metadata |= {"used": dict(feedback.used), "unused": list(feedback.unused), "precision": feedback.precision}
        lines.insert(0, f"{len(feedback.used)} of {len(feedback.used) + len(feedback.unused)} items were used.")
    return tool_result(metadata, "\n".join([*lines, *feedback.advice.values()]))


def check_result(engine: Engine, matches: Sequence[CensorMatch]) -> CallToolResult:
    """Return the constraints that a planned action violates."""
    blocked = any(match.action == "block" for match in matches)
    head = "Proceed with care:" if matches else "No constraint forbids it."
    head = "Blocked. Do not do this, and tell the user why:" if blocked else head
    rules = [engine.store.data.render(match.censor, "full").strip() for match in matches]
    return tool_result({"blocked": blocked, "matches": [match.censor.id for match in matches]}, "\n".join([head, *rules]))


# --- tasks ---------------------------------------------------------------------------------------------------------


def claim_result(task: Task, context: Context, budget: int, expires: int, others: Sequence[str]) -> CallToolResult:
    """Return the context of a claimed task and until when the claim is valid."""
    also = f" Also claimed by {', '.join(others)}." if others else ""
    note = f"(Task {task.id} is yours until {iso(expires)}.{also} End it with `finish_task`.)"
    extra = {"task": task.id, "expires": iso(expires), "others": list(others)}
    return context_result(context, budget, extra, note)


def no_task_result() -> CallToolResult:
    return tool_result({"task": None}, "No task is ready: each is done, claimed, blocked or waits for another one.")


def finish_result(learned: Learned) -> CallToolResult:
    """Return what was learned from a handoff."""
    if learned.action == "unchanged":
        head = f"This handoff of {learned.task} was read before; nothing was changed."
    else:
        counts = (f"{kind}: {', '.join(f'{n} {verb}' for verb, n in each.items())}" for kind, each in learned.counts.items())
        head = f"{learned.task} is closed, and its handoff is stored. Learned: {'; '.join(counts) or 'its text'}."
    return tool_result(
        documents.plain(learned), "\n".join([head, *(f"- {text}" for text in learned.problems[:MAX_PROBLEMS])])
    )
