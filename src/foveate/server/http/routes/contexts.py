"""`/v1/contexts`: compute them, and ask why they are so."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from foveate.agents import compared, made_again
from foveate.operations import json
from foveate.pipeline.context import Context
from foveate.pipeline.run import text_hash
from foveate.receipts.feedback import MARKS
from foveate.receipts.receipt import Receipt, context_json
from foveate.server.http import models
from foveate.server.http.access import Computes, Writes, WritesAndComputes
from foveate.server.http.responses import Cursor, Document, Limit, cursor, is_known, position, tag

router = APIRouter(prefix="/v1/contexts", tags=["contexts"])


@router.post("")
def compute(request: Request, body: models.NewContext, caller: Computes) -> Response:
    """Compute a context. The answer holds what the model should see, and why it is so."""
    engine = caller.narrowed(agent=body.agent, session=body.session, task=body.task, code=body.code)
    began = perf_counter()
    context = engine.context(body.query, agent=engine.scope.agent, **body.options())
    metrics = request.app.state.metrics
    metrics.computes.observe(perf_counter() - began)
    metrics.tokens.inc(context.tokens)
    document: dict[str, Any] = context_json(context)
    if body.messages:
        document["messages"] = context.anthropic() if body.messages == "anthropic" else context.messages()
    if body.computed:
        document["computed"] = context.computed()
    return _context(document, context)


def _context(document: dict[str, Any], context: Context) -> Response:
    headers = {"ETag": tag(text_hash(context.text)), "Content-Location": f"/v1/contexts/{context.id}"}
    return Document(document, headers=headers)


@router.get("")
def list_contexts(caller: Computes, limit: Limit = 50, after: Cursor = None) -> Response:
    """The contexts that were computed, newest first."""
    found = caller.engine.receipts.list(limit=limit + 1, after=position(after, int, str))
    page = found[:limit]
    more = cursor(page[-1]["now"], page[-1]["id"]) if len(found) > limit else None
    return Document({"contexts": [json.listed(line) for line in page], "next": more})


@router.get("/diff")
def diff(
    caller: Computes,
    before: Annotated[str, Query(alias="from", max_length=100)],
    after: Annotated[str, Query(alias="to", max_length=100)],
) -> Response:
    """What changed between two contexts."""
    return Document(compared(caller.engine, before, after))


@router.get("/{id}")
def show(id: str, caller: Computes, if_none_match: Annotated[str | None, Header()] = None) -> Response:
    """The receipt of a context."""
    receipt = caller.engine.receipts.get(id)
    headers = {"ETag": tag(receipt.document["text_hash"])}
    if is_known(headers["ETag"], if_none_match):
        return Response(status_code=304, headers=headers)
    return Document(receipt.document, headers=headers)


@router.get("/{id}/explain")
def explain(id: str, caller: Computes) -> Response:
    """Why each candidate is in a context or not; `markdown` says it for people."""
    return Document(json.explained(caller.engine.receipts.get(id)))


@router.get("/{id}/why/{item:path}")
def why(id: str, item: str, caller: Computes) -> Response:
    """Why a record is in a context, its score taken apart."""
    return Document(caller.engine.why(item, id))


@router.get("/{id}/why-not/{item:path}")
def why_not(id: str, item: str, caller: Computes) -> Response:
    """Why a record is not in a context, even where it was no candidate."""
    return Document(caller.engine.why(item, id))


@router.get("/{id}/validate")
def validate(id: str, caller: Computes) -> Response:
    """Is it within its budget, where did the tokens go, what could be better."""
    return Document(caller.engine.receipts.validate(id))


@router.post("/{id}/replay")
def replay(id: str, caller: Computes, body: models.Replay | None = None) -> Response:
    """Compute a past context again; `reason` says why its bytes are not the same, where they are not."""
    engine = caller.engine
    receipt: Receipt = engine.receipts.get(id)
    return Document(
        json.replayed(engine.receipts.replay(id, extra=(body.given if body else ()) or made_again(engine, receipt)), receipt)
    )


@router.post("/{id}/refresh")
def refresh(id: str, body: models.Turn, caller: Computes) -> Response:
    """A new context where this one no longer serves what is said now, and why."""
    options = body.model_dump(exclude={"query", "decision", "spent"})
    options |= {"acting": body.decision, "conversation_tokens": body.spent}
    done = caller.engine.refresh(id, body.query, **options)
    context = context_json(done.context) if done.context else None
    return Document({"reason": done.reason, "detail": done.detail, "match": done.match, "context": context})


@router.post("/{id}/update")
def update(id: str, body: models.Event, caller: WritesAndComputes) -> Response:
    """Keep a new event and compute the context again."""
    done = caller.engine.refresh(id, event=body.text)
    assert done.context is not None  # an event always leads to a new context
    return _context(context_json(done.context), done.context)


@router.post("/{id}/feedback")
def feedback(id: str, body: models.Answer, caller: Writes) -> Response:
    """Which items an answer used; the receipt keeps their ids, not the answer."""
    return Document(json.feedback(id, caller.engine.feedback(id, answer=body.answer), {}))


@router.post("/{id}/marks")
def mark(id: str, body: models.Marks, caller: Writes) -> Response:
    """Say that items were useful, wrong or outdated; `advice` says what to do next."""
    engine = caller.engine
    useful, wrong, outdated = ([item for item, said in body.marks.items() if said == mark] for mark in MARKS)
    advice = engine.feedback(id, useful=useful, wrong=wrong, outdated=outdated).advice
    return Document({**json.feedback(id, None, body.marks), "advice": advice})
