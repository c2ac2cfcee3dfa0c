"""Rules that an agent proposes. A proposal is a note until a person accepts it; then it becomes a record of its kind.

An agent must not write rules itself: a model may have read the text on a web page, and a rule enters every later prompt.
"""

from __future__ import annotations

from foveate.engine import Engine
from foveate.store.protocol import Added
from foveate.types import Filters, Record

RULE_KINDS = ("identity", "censor", "instruction", "procedure")
"""Kinds that tell every later prompt what to do."""

TAG = "proposal"
KIND_FIELD = "proposed_kind"


def propose(engine: Engine, kind: str, text: str, tags: tuple[str, ...] = ()) -> Added:
    """Store a rule that an agent proposes as a note with the agent's trust."""
    return engine.add("note", text, trust="agent", tags=(TAG, *tags), data={KIND_FIELD: kind})


def proposed_kind(record: Record) -> str:
    """Return the kind that a note is proposed as, or an empty string."""
    kind = record.data.get(KIND_FIELD)
    return kind if kind in RULE_KINDS and TAG in record.tags else ""


def proposals(engine: Engine, limit: int) -> list[Record]:
    """Return the proposals that nobody decided yet, newest first."""
    found, _ = engine.page(limit, filters=Filters(kinds=("note",), tags=(TAG,)), status="active")
    return [record for record in found if proposed_kind(record)]


def accept(engine: Engine, id: str) -> Record:
    """Turn a proposal into the rule that it proposes, with a person's trust."""
    record = engine.get(id)
    rule = engine.promote(id, kind=proposed_kind(record) or None)
    return engine.edit(rule.id, tags=tuple(tag for tag in rule.tags if tag != TAG))
