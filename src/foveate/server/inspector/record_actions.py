"""The forms of a record's page: each is one verb of the engine, and goes back to the record.

An edit carries the version that its author had before them, so that nobody's change is overwritten unseen.
"""

from __future__ import annotations

from typing import Any

from fastapi import Request

from foveate.engine import Engine
from foveate.errors import Conflict, InputError
from foveate.records.kinds import kind_of
from foveate.server.inspector.page import Action, Asked, Went
from foveate.text.format import pluralize
from foveate.types import Record

WORD = "forget"
"""What must be typed to forget a record; its id will do, too."""

GONE = {"records": "record", "history": "earlier version", "links": "link", "receipts": "receipt"}
"""What is told of what went, by table."""

CHANGED = (
    "{id!r} is at version {now}, and you had version {seen} before you: somebody changed it since. Nothing was written. "
    "Go back and copy your words, open the record again, and make your change there."
)


def title_field(record: Record) -> str:
    """The field that a record's title is kept in; nothing where its kind has none."""
    kind = kind_of(record.kind)
    named = [name for name in ("name", "title") if record.data.get(name)] or [
        n for n in ("name", "title") if n in kind.fields
    ]
    return named[0] if named else "title" if kind.open and not kind.append_only else ""


def shown_tags(record: Record) -> str:
    return ", ".join(record.tags)


def edit(asked: Asked, request: Request) -> Went:
    """Change what differs from what is kept."""
    record, seen = asked.engine.get(_id(asked)), _version(asked)
    text, tags, title = asked.text("text"), asked.text("tags"), asked.text("title").strip()
    field = title_field(record)
    values: dict[str, Any] = {}
    if not kind_of(record.kind).append_only and text != _as_typed(record.text):
        values["text"] = text
    if tags != shown_tags(record):  # as words: a tag may hold a comma
        values["tags"] = _tags(tags)
    if field and title != _as_typed(str(record.data.get(field, ""))):
        kept = {name: value for name, value in record.data.items() if name != field}
        values["data"] = {**kept, field: title} if title else kept
    if not values:
        return "record", {"id": record.id}, "Nothing was changed: it says that already."
    _refuse_changed(asked.engine, record.id, seen)
    try:
        done = asked.engine.edit(record.id, expect=seen, **values)
    except Conflict:  # in the moment between
        _refuse_changed(asked.engine, record.id, seen)
        raise
    return "record", {"id": record.id}, f"Saved as version {done.version}."


def pin(asked: Asked, request: Request) -> Went:
    pinned = asked.flag("pinned")
    asked.engine.pin(_id(asked), pinned=pinned)
    return _back(asked, "Pinned: every context of its scope shows it." if pinned else "No longer pinned.")


def confirm(asked: Asked, request: Request) -> Went:
    record = asked.engine.confirm(_id(asked))
    return _back(asked, f"Confirmed: that makes {record.data['confirmations']}.")


def retire(asked: Asked, request: Request) -> Went:
    asked.engine.retire(_id(asked))
    return _back(asked, "Retired: it is out of use, and stays on record. Undo takes it back.")


def outcome(asked: Asked, request: Request) -> Went:
    said = asked.text("outcome")
    asked.engine.outcome(_id(asked), said, asked.text("result"))
    return _back(asked, f"Its outcome is {said}.")


def false_alarm(asked: Asked, request: Request) -> Went:
    asked.engine.false_alarm(_id(asked))
    return _back(asked, "Counted as a false alarm.")


def promote(asked: Asked, request: Request) -> Went:
    kind = asked.text("kind") or None
    record = asked.engine.promote(_id(asked), kind=kind)
    made = "" if record.id == _id(asked) else f" It is a {record.kind} now, and the old record is retired."
    return "record", {"id": record.id}, f"Promoted: its trust is user.{made}"


def undo(asked: Asked, request: Request) -> Went:
    """Take back the change that whoever asks had before them, and no later one."""
    _refuse_changed(asked.engine, _id(asked), _version(asked))
    undone = asked.engine.undo(_id(asked))
    others = f", and {len(undone) - 1} others with it" if len(undone) > 1 else ""
    return _back(asked, f"Undone: it is as it was before{others}.")


def forget(asked: Asked, request: Request) -> Went:
    id = _id(asked)
    if asked.text("word").strip() not in (WORD, id):
        raise InputError(f"Nothing was forgotten. To forget {id!r} for good, type the word {WORD}, or its id.")
    done = asked.engine.forget([id])
    request.app.state.answers.forget()  # kept answers may hold its words
    gone = [pluralize(number, what) for table, what in GONE.items() if (number := done.counts.get(table))]
    return "records", {}, " ".join([f"Forgot {id} for good: {', '.join(gone)}.", *done.warnings])


def _id(asked: Asked) -> str:
    return asked.needed("id", "record")


def _back(asked: Asked, done: str) -> Went:
    return "record", {"id": _id(asked)}, done


def _version(asked: Asked) -> int:
    seen = asked.number("expect")
    if seen is None:
        raise InputError("The form does not say which version it was made for. Open the record again.")
    return seen


def _refuse_changed(engine: Engine, id: str, seen: int) -> None:
    now = engine.get(id).version
    if now != seen:
        raise Conflict(CHANGED.format(id=id, now=now, seen=seen))


def _tags(given: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for part in given.split(",") if (tag := " ".join(part.split()))))


def _as_typed(text: str) -> str:
    """A text as a browser sends it back, where nobody touched it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


ACTIONS: tuple[Action, ...] = (
    Action("record-edit", ("memory:write",), edit),
    Action("record-pin", ("memory:write",), pin),
    Action("record-confirm", ("memory:write",), confirm),
    Action("record-retire", ("memory:write",), retire),
    Action("record-outcome", ("memory:write",), outcome),
    Action("record-false-alarm", ("memory:write",), false_alarm),
    Action("record-undo", ("memory:write",), undo),
    Action("record-promote", ("admin",), promote),
    Action("record-forget", ("admin",), forget),
)
