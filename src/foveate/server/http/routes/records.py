"""`/v1/records`, `/v1/search`, `/v1/check`: what is known, and the verbs on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from foveate.clock import parse_time
from foveate.errors import Conflict, InputError
from foveate.operations import json
from foveate.records.make import to_json
from foveate.server.http import models
from foveate.server.http.access import Administers, Caller, Reads, Writes
from foveate.server.http.problems import Refused
from foveate.server.http.responses import Cursor, Document, Limit, created, cursor, position
from foveate.text.compress import compress as compress_text
from foveate.types import Filters, Record

router = APIRouter(prefix="/v1", tags=["records"])

Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
Time = Annotated[str | None, Query(max_length=40, description="2026-11-15, 2026-11-15T12:00Z, or how long ago: 12h, 7d.")]
Several = Annotated[list[models.Name], Query(max_length=100)]


@router.get("/records")
def list_records(
    caller: Reads,
    kind: Several = [],  # noqa: B006
    tag: Several = [],  # noqa: B006
    status: Annotated[str | None, Query(max_length=40)] = None,
    since: Time = None,
    until: Time = None,
    limit: Limit = 50,
    after: Cursor = None,
) -> Response:
    """Records of any status, the last kept first."""
    filters = Filters(since=since, until=until, kinds=kind, tags=tag)
    (start,) = position(after, int) or (0,)
    found, more = caller.engine.store.page(limit, filters=filters, status=status, after=start)
    return Document({"records": [to_json(record) for record in found], "next": cursor(more) if more else None})


@router.post("/records", status_code=201)
def add(body: models.NewRecord, caller: Writes, key: Key = None) -> Response:
    """Keep something. Known content is confirmed, and a keyed fact supersedes the older value.

    An Idempotency-Key becomes the record's key where the body names none, so that it holds after a restart, too.
    """
    values = body.values()
    if key and "key" not in values:
        values["key"] = key
    done = caller.engine.add(body.kind, body.text, personal=body.own, **values)
    return created(json.added(done), f"/v1/records/{done.record.id}")


@router.post("/records/many", status_code=201)
def add_many(body: models.NewRecords, caller: Writes) -> Response:
    """Keep many; the ids under which they are kept, in order. Either all are sound, or none is kept."""
    if any(row.own for row in body.records):
        raise InputError("Records of the own store are added one by one.")
    rows = [(row.kind, row.text, row.values()) for row in body.records]
    engine = caller.engine
    problems = [problem for n, row in enumerate(rows) for problem in _problems(engine, n, row)]
    if problems:
        raise InputError(problems)
    return Document({"ids": engine.store.add_many(rows)}, 201)


def _problems(engine: Any, number: int, row: tuple[str, str, dict[str, Any]]) -> list[str]:
    kind, text, values = row
    try:
        engine.store.data.make(kind, text, dict(values), engine.scope)
    except InputError as error:
        return [f"records.{number}: {problem}" for problem in error.problems]
    return []


@router.post("/records/forget")
def forget_many(request: Request, body: models.Ids, caller: Administers) -> Response:
    """Remove records for good, down to the bytes of the file."""
    return _forget(request, caller, body.ids)


@router.get("/records/{id}")
def show(id: str, caller: Reads, as_of: Time = None) -> Response:
    """A record with its links and its history."""
    document = json.record(caller.engine, id, as_of=parse_time(as_of, "as_of") if as_of else None)
    return Document(document, headers={"ETag": f'"{document["record"]["version"]}"'})


@router.patch("/records/{id}")
def edit(
    id: str, body: models.Edit, caller: Writes, if_match: Annotated[str | None, Header(max_length=40)] = None
) -> Response:
    """Change what is named. `If-Match` or `expect` with a version: only where nobody changed it since."""
    values = body.values() | ({} if body.text is None else {"text": body.text})
    if not values:
        raise InputError("There is nothing to change. Name a new text, or fields to set.")
    expect = body.expect if if_match in (None, "*") else _version(str(if_match))
    engine = caller.engine
    try:
        return _changed(engine.edit(id, expect_version=expect, **values))
    except Conflict as error:
        if if_match is None:
            raise
        raise Refused(412, str(error)) from None


def _version(if_match: str) -> int:
    version = if_match.removeprefix("W/").strip('"')
    if not version.isdecimal() or len(version) > 15:
        raise InputError(f"If-Match takes the ETag of a record, not {if_match!r}.")
    return int(version)


@router.delete("/records/{id}")
def forget(request: Request, id: str, caller: Administers) -> Response:
    """Remove a record for good, down to the bytes of the file."""
    return _forget(request, caller, [id])


def _forget(request: Request, caller: Caller, ids: list[str]) -> Response:
    wanted = tuple(dict.fromkeys(ids))
    done = caller.engine.forget(*wanted)
    request.app.state.answers.forget()
    return Document(json.forgotten(wanted, done))


@router.post("/records/{id}/outcome")
def outcome(id: str, body: models.Outcome, caller: Writes) -> Response:
    """Say how a record turned out."""
    return _changed(caller.engine.edit(id, outcome=body.outcome, result=body.result))


@router.post("/records/{id}/confirm")
def confirm(id: str, caller: Writes) -> Response:
    """Say that a record still holds."""
    caller.engine.feedback(confirmed=[id])
    return _changed(caller.engine.get(id))


@router.post("/records/{id}/pin")
def pin(id: str, caller: Writes, body: models.Pin | None = None) -> Response:
    """Have a record in every context, or no longer."""
    return _changed(caller.engine.edit(id, pinned=body is None or body.pinned))


@router.post("/records/{id}/promote")
def promote(id: str, caller: Administers, body: models.Promote | None = None) -> Response:
    """A person vouches for what a tool, a page or a repository said: its trust becomes `user`."""
    return _changed(caller.engine.inbox.accept(id, kind=body.kind if body else None)[0])


@router.post("/records/{id}/retire")
def retire(id: str, caller: Writes) -> Response:
    """Take a record out of use; it stays on record."""
    return _changed(caller.engine.edit(id, status="retired"))


@router.post("/records/{id}/undo")
def undo(id: str, caller: Writes) -> Response:
    """Take back the last change of a record, and what that change did to others."""
    return Document(json.undone(caller.engine.undo(id)))


@router.post("/records/{id}/false-alarm")
def false_alarm(id: str, caller: Writes) -> Response:
    """Say that a censor tripped for nothing."""
    caller.engine.feedback(wrong=[id])
    return _changed(caller.engine.get(id))


@router.get("/records/{id}/stage")
def stage(id: str, caller: Reads) -> Response:
    """At which stage of its life a record is."""
    return Document({"id": id, "stage": caller.engine.store.stage_of(caller.engine.get(id))})


@router.post("/expand/{id:path}")
def expand(id: str, caller: Reads) -> Response:
    """A record or a piece of code in full, as a user message; it counts as a use."""
    return Document({"id": id, "message": caller.engine.expand(id)})


@router.post("/links", status_code=201)
def link(body: models.NewLink, caller: Writes) -> Response:
    """Join two records by a named edge."""
    return Document(json.relation(caller.engine.link(body.src, body.name, body.dst, weight=body.weight)), 201)


@router.post("/search")
def search(body: models.Search, caller: Reads) -> Response:
    """Records by their words, best first; with a warning where the store knows no such project."""
    filters = replace(body.filters.filters(), kinds=())
    kinds = tuple(dict.fromkeys((*body.kinds, *body.filters.kinds)))
    found = caller.engine.search(body.query, kinds=kinds, limit=body.limit, filters=filters)
    return Document(json.hits(body.query, found, "" if found else caller.engine.store.unknown_project()))


@router.post("/check")
def check(body: models.Check, caller: Writes) -> Response:
    """The censors that a planned action trips; each trip is counted, unless it is a dry run."""
    return Document(json.trips(caller.engine.check(body.text, dry_run=body.dry_run)))


@router.post("/compress")
def compress(body: models.Compress, caller: Reads) -> Response:
    """A text in fewer tokens, word for word."""
    return Document({"text": compress_text(body.text, body.max_tokens, body.query)})


def _changed(record: Record) -> Response:
    return Document(json.changed(record), headers={"ETag": f'"{record.version}"'})
