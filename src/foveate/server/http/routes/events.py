"""`/v1/events`: the contexts that are computed, as they are; also those of other processes on the same store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from foveate.engine import Engine
from foveate.errors import StoreError
from foveate.operations import json
from foveate.server.http.access import Computes

router = APIRouter(prefix="/v1", tags=["events"])

LATEST = 64
"""Receipts that are looked at each time: more do not come between two looks."""

REMEMBERED = 1024
"""Ids that were sent or are old: a receipt of another process may arrive late."""


@router.get("/events", response_class=EventSourceResponse)
async def events(
    request: Request,
    caller: Computes,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
    most: Annotated[int | None, Query(ge=1, description="End after this many.")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Each new context as an event; `Last-Event-ID` goes on where another stream ended."""
    state = request.app.state

    async def look() -> Sequence[dict[str, Any]] | None:
        return await anyio.to_thread.run_sync(_latest, caller.engine, limiter=state.beside)

    while (known := await look()) is None and not state.stopping.is_set():  # what is old must be known before what is new
        await anyio.sleep(state.settings.poll_seconds)
    seen: deque[str] = deque(_before(known or [], last_event_id), maxlen=REMEMBERED)
    sent = 0
    yield ServerSentEvent(comment="listening")
    while not state.stopping.is_set():
        for line in [line for line in await look() or () if line["id"] not in seen]:
            seen.append(line["id"])
            yield ServerSentEvent(data=json.listed(line), event="context", id=line["id"])
            sent += 1
            if sent == most:
                return
        await anyio.sleep(state.settings.poll_seconds)


def _latest(engine: Engine) -> Sequence[dict[str, Any]] | None:
    """The newest, oldest first; None where the store cannot answer just now."""
    try:
        return engine.receipts.list(limit=LATEST)[::-1]
    except StoreError:
        return None


def _before(latest: Sequence[dict[str, Any]], last: str | None) -> list[str]:
    """What the caller has already: all of it, unless an earlier stream ended at one of them, or before them all."""
    ids = [line["id"] for line in latest]
    if last is None:
        return ids
    return ids[: ids.index(last) + 1] if last in ids else []
