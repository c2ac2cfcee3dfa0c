"""`/v1/events`: the contexts that are computed, as they are; also those of other processes on the same store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from foveate.engine import Engine
from foveate.errors import StoreError
from foveate.front import documents
from foveate.front.http.access import Computes
from foveate.receipts import Receipt

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

    async def look(known: tuple[str, ...]) -> list[Receipt]:
        return await anyio.to_thread.run_sync(_latest, caller.engine, known, limiter=state.beside)

    seen: deque[str] = deque(maxlen=REMEMBERED)
    seen.extend(_before(await look(()), last_event_id))
    sent = 0
    yield ServerSentEvent(comment="listening")
    while not state.stopping.is_set():
        for receipt in await look(tuple(seen)):
            seen.append(receipt.id)
            yield ServerSentEvent(data=documents.listed(receipt), event="context", id=receipt.id)
            sent += 1
            if sent == most:
                return
        await anyio.sleep(state.settings.poll_seconds)


def _latest(engine: Engine, known: tuple[str, ...]) -> list[Receipt]:
    """What is new, oldest first; a store that cannot answer just now has nothing new."""
    try:
        return engine.receipts(LATEST, known=frozenset(known))[::-1]
    except StoreError:
        return []


def _before(latest: list[Receipt], last: str | None) -> list[str]:
    """What the caller has already: all of it, unless an earlier stream ended at one of them, or before them all."""
    ids = [receipt.id for receipt in latest]
    if last is None:
        return ids
    return ids[: ids.index(last) + 1] if last in ids else []
