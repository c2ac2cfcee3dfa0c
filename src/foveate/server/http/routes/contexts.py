"""`/v1/contexts`: compute contexts and explain them; `/v1/feedback`: report how useful they were."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Any, Literal, NotRequired

from fastapi import Header, Request
from starlette.responses import Response

from foveate.engine import Engine
from foveate.errors import InputError
from foveate.operations import documents
from foveate.pipeline.run import text_hash
from foveate.receipts.codec import context_to_json
from foveate.server.http.access import Caller, Computes, Writes
from foveate.server.http.bodies import Arguments, parameters
from foveate.server.http.remedies import name_requests
from foveate.server.http.responses import (
    Cursor,
    Document,
    Include,
    Limit,
    decode_cursor,
    encode_cursor,
    etag,
    matches_etag,
    parse_include,
)
from foveate.server.http.routes.router import new_router

router = new_router("contexts")

REFRESH = frozenset(parameters(Engine.refresh)) - frozenset(parameters(Engine.context))
"""Arguments that only a refresh has, such as `previous`."""

NewContext = Annotated[
    dict[str, Any],
    Arguments(
        Engine.context,
        Engine.refresh,
        name="NewContext",
        optional=True,
        include=NotRequired[list[Literal["anthropic", "computed"]]],
    ),
]
ReplayOptions = Annotated[dict[str, Any] | None, Arguments(Engine.context, name="ReplayOptions", only=["extra"])]
NewFeedback = Annotated[dict[str, Any], Arguments(Engine.feedback, name="NewFeedback")]


@router.post("/contexts")
def compute(request: Request, body: NewContext, caller: Computes) -> Response:
    """Compute a context.

    With `previous`, a new context is computed only if the previous one no longer fits: the answer holds the `reason`, and
    `context` is null if it still fits. With `event`, the event is stored first, which also needs the scope `memory:write`.
    """
    engine = caller.engine_for(body)
    if REFRESH & body.keys():
        return _refresh(body, caller, engine)
    include = body.pop("include", ())
    began = perf_counter()
    context = engine.context(agent=engine.scope.agent, **body)
    metrics = request.app.state.metrics
    metrics.computes.observe(perf_counter() - began)
    metrics.tokens.inc(context.tokens)
    document: dict[str, Any] = context_to_json(context)
    if "anthropic" in include:
        document["anthropic"] = context.anthropic()
    if "computed" in include:
        document["computed"] = context.computed()
    headers = {"ETag": etag(text_hash(context.text))}
    if not body.get("dry_run"):
        headers["Content-Location"] = f"/v1/contexts/{context.id}"
    return Document(document, headers=headers)


def _refresh(body: dict[str, Any], caller: Caller, engine: Engine) -> Response:
    wrong = [name for name in ("dry_run", "include") if name in body]
    if wrong:
        raise InputError([f"{name} does not apply to a refresh; leave it out, or leave out `previous`." for name in wrong])
    if body.get("event") is not None:
        caller.require("memory:write")
    result = engine.refresh(body.pop("previous", None), **body)
    context = context_to_json(result.context) if result.context else None
    return Document({"reason": result.reason, "detail": result.detail, "match": result.match, "context": context})


@router.get("/contexts")
def list_contexts(
    caller: Computes, group: Literal["session"] | None = None, limit: Limit = 50, after: Cursor = None
) -> Response:
    """List past contexts, newest first, or with `group=session` the sessions that they belong to."""
    receipts = caller.engine.receipts
    if group == "session":
        return Document({"sessions": receipts.sessions(limit=limit)})
    rows = receipts.list(session=caller.scope.session, limit=limit + 1, after=decode_cursor(after, int, str))
    page = rows[:limit]
    more = encode_cursor(page[-1].created, page[-1].id) if len(rows) > limit else None
    return Document({"contexts": [documents.context_summary(row) for row in page], "next": more})


@router.get("/contexts/{id}")
def show(
    id: str, caller: Computes, include: Include = "", if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """Show the receipt of a context; `last` is the latest. `include` adds `text`, `candidates`, `validation`, `markdown`."""
    parts = parse_include(include, documents.RECEIPT_PARTS)
    receipt = caller.engine.receipts.get(id)
    headers = {"ETag": etag(receipt.text_hash)}
    if matches_etag(headers["ETag"], if_none_match):
        return Response(status_code=304, headers=headers)
    return Document(documents.receipt(caller.engine, receipt, parts), headers=headers)


@router.get("/contexts/{id}/why/{item:path}")
def why(id: str, item: str, caller: Computes) -> Response:
    """Explain why an item is in a context or not."""
    return Document(documents.why(caller.engine.why(item, id)))


@router.get("/contexts/{id}/diff/{other}")
def diff(id: str, other: str, caller: Computes) -> Response:
    """Compare a context with a later one."""
    return Document(documents.diff(caller.engine.receipts.diff(id, other)))


@router.post("/contexts/{id}/replay")
def replay(id: str, caller: Computes, body: ReplayOptions = None) -> Response:
    """Compute a past context again. `reason` says why the text is not the same. Pass its extra texts again as `extra`."""
    engine = caller.engine
    receipt = engine.receipts.get(id)
    extra = (body or {}).get("extra") or ()
    return Document(documents.replay(engine.receipts.replay(receipt, extra=extra)))


@router.post("/feedback")
def feedback(body: NewFeedback, caller: Writes) -> Response:
    """Report which items an answer used, or which records were useful, wrong, outdated or confirmed. Only ids are stored."""
    found = documents.feedback(caller.engine.feedback(**body))
    return Document({**found, "advice": {id: name_requests(advice) for id, advice in found["advice"].items()}})
