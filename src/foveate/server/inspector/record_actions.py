"""The forms of a record's page. Each calls one method of the engine and returns to the record.

Edit and undo carry the version that the page showed, so that a change made meanwhile by another user is not overwritten.
"""

from __future__ import annotations

from typing import Any

from foveate.engine import Engine
from foveate.errors import Conflict, InputError
from foveate.records.kinds import kind_of
from foveate.server.inspector.page import Action, ActionResult, PageRequest
from foveate.text.format import pluralize
from foveate.types import Record

CONFIRM_WORD = "forget"
"""The word to type before a record is deleted. Its id is accepted, too."""

TABLE_NOUNS = {"records": "record", "history": "earlier version", "links": "link", "receipts": "receipt"}

VERSION_CONFLICT_MESSAGE = (
    "{id!r} is at version {version}, but this form was made for version {expected}: somebody changed it since. Nothing was "
    "written. Go back, copy your text, open the record again and repeat your change."
)


def title_field(record: Record) -> str:
    """Return the field that holds a record's title, or an empty string for kinds without one."""
    kind = kind_of(record.kind)
    used = [name for name in ("name", "title") if record.data.get(name)]
    fields = used or [name for name in ("name", "title") if name in kind.fields]
    if fields:
        return fields[0]
    return "title" if kind.allow_extra and not kind.is_append_only else ""


def tags_text(record: Record) -> str:
    return ", ".join(record.tags)


def edit(request: PageRequest) -> ActionResult:
    """Change the fields that differ from the stored ones."""
    record, expected = request.engine.get(_id(request)), _version(request)
    text, tags, title = request.text("text"), request.text("tags"), request.text("title").strip()
    field = title_field(record)
    values: dict[str, Any] = {}
    if not kind_of(record.kind).is_append_only and text != _normalize_line_ends(record.text):
        values["text"] = text
    if tags != tags_text(record):  # compared as text, because a tag may contain a comma
        values["tags"] = tuple(dict.fromkeys(tag for part in tags.split(",") if (tag := " ".join(part.split()))))
    if field and title != _normalize_line_ends(str(record.data.get(field, ""))):
        others = {name: value for name, value in record.data.items() if name != field}
        values["data"] = {**others, field: title} if title else others
    if not values:
        return _back_to_record(request, "Nothing was changed.")
    _check_version(request.engine, record.id, expected)
    try:
        edited = request.engine.edit(record.id, expect_version=expected, **values)
    except Conflict:  # changed since the check above
        _check_version(request.engine, record.id, expected)
        raise
    return _back_to_record(request, f"Saved as version {edited.version}.")


def pin(request: PageRequest) -> ActionResult:
    pinned = request.flag("pinned")
    request.engine.edit(_id(request), pinned=pinned)
    return _back_to_record(request, "Pinned: every context of its scope shows it." if pinned else "No longer pinned.")


def confirm(request: PageRequest) -> ActionResult:
    request.engine.feedback(confirmed=[_id(request)])
    record = request.engine.get(_id(request))
    return _back_to_record(request, f"Confirmed; {pluralize(record.data['confirmations'], 'confirmation')} so far.")


def retire(request: PageRequest) -> ActionResult:
    request.engine.edit(_id(request), status="retired")
    return _back_to_record(request, "Retired: contexts no longer show it. Undo reverses this.")


def outcome(request: PageRequest) -> ActionResult:
    outcome = request.text("outcome")
    request.engine.edit(_id(request), outcome=outcome, result=request.text("result"))
    return _back_to_record(request, f"Its outcome is {outcome}.")


def false_alarm(request: PageRequest) -> ActionResult:
    request.engine.feedback(wrong=[_id(request)])
    return _back_to_record(request, "Counted as a false alarm.")


def promote(request: PageRequest) -> ActionResult:
    record = request.engine.inbox.accept(_id(request), kind=request.text("kind") or None)[0]
    retired = "" if record.id == _id(request) else f" It is a {record.kind} now, and the old record is retired."
    return "record", {"id": record.id}, f"Promoted: its trust is user.{retired}"


def undo(request: PageRequest) -> ActionResult:
    """Undo the change that the page showed as the last one, and no later one."""
    _check_version(request.engine, _id(request), _version(request))
    undone = request.engine.undo(_id(request))
    others = f", and {pluralize(len(undone) - 1, 'other record')} with it" if len(undone) > 1 else ""
    return _back_to_record(request, f"Undone: it is as it was before{others}.")


def forget(request: PageRequest) -> ActionResult:
    id = _id(request)
    if request.text("word").strip() not in (CONFIRM_WORD, id):
        raise InputError(f"Nothing was deleted. To delete {id!r} for good, type {CONFIRM_WORD} or its id.")
    forgotten = request.engine.forget(id)
    request.http.app.state.idempotency.clear()  # cached responses may contain its text
    parts = [pluralize(number, noun) for table, noun in TABLE_NOUNS.items() if (number := forgotten.counts.get(table))]
    return "memory", {}, " ".join([f"Deleted {id} for good: {', '.join(parts)}.", *forgotten.warnings])


def _id(request: PageRequest) -> str:
    return request.require("id", "record")


def _back_to_record(request: PageRequest, message: str) -> ActionResult:
    return "record", {"id": _id(request)}, message


def _version(request: PageRequest) -> int:
    version = request.integer("expect")
    if version is None:
        raise InputError("The form does not name the version that it was made for. Open the record again.")
    return version


def _check_version(engine: Engine, id: str, expected: int) -> None:
    version = engine.get(id).version
    if version != expected:
        raise Conflict(VERSION_CONFLICT_MESSAGE.format(id=id, version=version, expected=expected))


def _normalize_line_ends(text: str) -> str:
    """Return a text as a browser sends it back unchanged."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


ACTIONS: tuple[Action, ...] = (
    Action("record-edit", "memory:write", edit),
    Action("record-pin", "memory:write", pin),
    Action("record-confirm", "memory:write", confirm),
    Action("record-retire", "memory:write", retire),
    Action("record-outcome", "memory:write", outcome),
    Action("record-false-alarm", "memory:write", false_alarm),
    Action("record-undo", "memory:write", undo),
    Action("record-promote", "admin", promote),
    Action("record-forget", "admin", forget),
)
