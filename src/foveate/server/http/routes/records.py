"""Records: `/v1/records`, `/v1/links`, `/v1/remember`, `/v1/search`, `/v1/expand`, `/v1/check`, `/v1/inbox`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from fastapi import Header, Query, Request
from pydantic import Field
from starlette.responses import Response

from foveate.engine import Engine
from foveate.engine.inbox import Inbox
from foveate.errors import Conflict, InputError
from foveate.operations import documents
from foveate.options import WHO
from foveate.server.http.access import Administers, Reads, Writes
from foveate.server.http.bodies import Arguments, OneOrMany, refuse_fields
from foveate.server.http.responses import (
    Cursor,
    Document,
    Include,
    Limit,
    RequestRefused,
    decode_cursor,
    encode_cursor,
    parse_include,
)
from foveate.server.http.routes.router import new_router
from foveate.types import Filters, Record

router = new_router("records")

MAX_HITS = 1000

Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=500)]], Query(max_length=100)]
Time = Annotated[str | None, Query(max_length=40, description="2026-11-15, 2026-11-15T12:00Z, or an age: 12h, 7d.")]

NewRecords = Annotated[
    dict[str, Any] | list[dict[str, Any]],
    OneOrMany(
        Arguments(Engine.add, name="NewRecord"),
        Arguments(Engine.add, name="NewRecordOfList", omit=["personal", *WHO]),
    ),
]
RecordEdit = Annotated[dict[str, Any], Arguments(Engine.edit, name="RecordEdit", omit=["id"])]
NewLink = Annotated[dict[str, Any], Arguments(Engine.link, name="NewLink")]
Search = Annotated[
    dict[str, Any],
    Arguments(
        Engine.search,
        name="Search",
        where=NotRequired[Literal["memory", "code"]],
        limit=NotRequired[Annotated[int, Field(ge=1, le=MAX_HITS)]],
    ),
]
Expansion = Annotated[dict[str, Any], Arguments(Engine.expand, name="Expansion")]
Messages = Annotated[dict[str, Any], Arguments(Engine.remember, name="Messages")]
PlannedAction = Annotated[dict[str, Any], Arguments(Engine.check, name="PlannedAction")]
Verdict = Annotated[
    dict[str, Any],
    Arguments(
        Inbox.accept,
        name="Verdict",
        only=["text", "kind"],
        action=Literal["accept", "reject", "answer"],
        reason=NotRequired[str],
    ),
]


@router.get("/records")
def list_records(
    caller: Reads,
    kind: Names = [],  # noqa: B006 - the default of a parameter in the OpenAPI document, which is never changed
    tag: Names = [],  # noqa: B006
    status: Annotated[str | None, Query(max_length=40)] = None,
    since: Time = None,
    until: Time = None,
    limit: Limit = 50,
    after: Cursor = None,
) -> Response:
    """List records of any status, newest first."""
    filters = Filters(since=since, until=until, kinds=kind, tags=tag)
    (start,) = decode_cursor(after, int) or (0,)
    page, more = caller.engine.store.page(limit, filters=filters, status=status, after=start)
    return Document({"records": page, "next": encode_cursor(more) if more else None})


@router.post("/records", status_code=201)
def add(
    body: NewRecords, caller: Writes, key: Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)] = None
) -> Response:
    """Store one record, or a list of records in one transaction.

    Known content is confirmed, and a fact with a subject and an attribute supersedes the older value. Either all
    records of a list are stored or none. For one record an Idempotency-Key becomes its key and holds after a restart too.
    """
    if isinstance(body, list):
        return _add_many(caller.engine, body)
    if key:
        body.setdefault("key", key)
    added = caller.engine_for(body).add(**body)
    return Document(documents.added(added), 201, {"Location": f"/v1/records/{added.id}"})


def _add_many(engine: Engine, bodies: list[dict[str, Any]]) -> Response:
    # Each record is made before one is stored, so that one answer lists the problems of all.
    rows = [(body.pop("kind"), body.pop("text"), body) for body in bodies]
    problems = []
    for number, (kind, text, fields) in enumerate(rows):
        try:
            engine.store.data.make(kind, text, dict(fields), engine.scope)
        except InputError as error:
            problems += [f"body.{number}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    return Document({"ids": engine.store.add_many(rows)}, 201)


@router.post("/remember")
def remember(body: Messages, caller: Writes) -> Response:
    """Store messages of a conversation as events of its session. A message with an `id` or a time is stored once."""
    return Document(documents.plain(caller.engine_for(body).remember(**body)))


@router.get("/records/{id}")
def show(id: str, caller: Reads, as_of: Time = None, include: Include = "") -> Response:
    """Show a record as it is, or as it was at a time. `include` adds `history` and `links`."""
    document = documents.record(caller.engine, id, parse_include(include, documents.RECORD_PARTS), as_of=as_of)
    return Document(document, headers={"ETag": f'"{document["record"]["version"]}"'})


@router.patch("/records/{id}")
def edit(
    id: str, body: RecordEdit, caller: Writes, if_match: Annotated[str | None, Header(max_length=40)] = None
) -> Response:
    """Change the fields that are named. With `If-Match` or `expect_version`, only if the record has that version."""
    if if_match not in (None, "*"):
        body["expect_version"] = _version(str(if_match))
    try:
        record = caller.engine.edit(id, **body)
    except Conflict as error:
        if if_match is None:
            raise
        raise RequestRefused(412, str(error)) from None
    return _changed(record)


def _version(if_match: str) -> int:
    """Return the version that a header names. A weak tag never matches: RFC 9110 compares `If-Match` strongly."""
    if if_match.startswith("W/"):
        raise RequestRefused(412, f"If-Match needs the ETag of the record as it was sent, without W/, got {if_match!r}.")
    version = if_match.strip('"')
    if not version.isdecimal() or len(version) > 15:
        raise InputError(f"If-Match must be the ETag of a record, got {if_match!r}.")
    return int(version)


@router.delete("/records/{id}")
def forget(request: Request, id: str, caller: Administers) -> Response:
    """Delete a record permanently, down to the bytes of the file."""
    forgotten = caller.engine.forget(id)
    # Stored responses may contain its text.
    request.app.state.idempotency.clear()
    return Document(documents.forgotten([id], forgotten))


@router.post("/records/{id}/undo")
def undo(id: str, caller: Writes) -> Response:
    """Undo the last change to a record and its effects on other records."""
    return Document({"undone": caller.engine.undo(id)})


@router.post("/links", status_code=201)
def link(body: NewLink, caller: Writes) -> Response:
    """Link two records by id, or two entities by name."""
    return Document(documents.plain(caller.engine.link(**body)), 201)


@router.post("/search")
def search(body: Search, caller: Reads) -> Response:
    """Find records or, with `where=code`, files and definitions, best first."""
    engine, where = caller.engine_for(body), body.pop("where", "memory")
    if where == "code":
        return _search_code(engine, **body)
    hits = engine.search(**body)
    return Document(documents.hits(body["query"], hits, "" if hits else engine.store.unknown_project()))


def _search_code(engine: Engine, query: str, limit: int = 10, **others: object) -> Response:
    if others:
        raise InputError([f"{name} applies to records; leave it out with where='code'." for name in sorted(others)])
    return Document(documents.code_hits(query, engine.code.search(query, limit=limit)))


@router.post("/expand")
def expand(body: Expansion, caller: Reads) -> Response:
    """Return a record or a piece of code in full, as a user message. It counts as a use."""
    return Document({"id": body["id"], "message": caller.engine.expand(**body)})


@router.post("/check")
def check(body: PlannedAction, caller: Writes) -> Response:
    """Return the censors and instructions that a planned action violates. A dry run does not count the censors."""
    return Document(documents.check(caller.engine.check(**body)))


@router.get("/inbox")
def list_inbox(caller: Reads, limit: Limit = 50) -> Response:
    """List what needs a person's decision: proposals, conflicts, failing procedures, open questions."""
    return Document({"reviews": caller.engine.inbox.list(limit=limit)})


@router.post("/inbox/{id}")
def decide(id: str, body: Verdict, caller: Writes) -> Response:
    """Accept a record, as it is or with another text or kind; reject it; or answer an open question.

    An accepted record gets a person's trust, so accepting needs the scope `admin`.
    """
    inbox, action = caller.engine.inbox, body.pop("action")
    if action == "accept":
        caller.require("admin")
        refuse_fields(body, ("text", "kind"), repr(action))
        return _changed(inbox.accept(id, **body)[0])
    if action == "reject":
        refuse_fields(body, ("reason",), repr(action))
        return _changed(inbox.reject(id, **body)[0])
    refuse_fields(body, ("text",), repr(action))
    return _changed(inbox.answer(id, body.get("text") or ""))


def _changed(record: Record) -> Response:
    return Document(documents.changed(record), headers={"ETag": f'"{record.version}"'})
