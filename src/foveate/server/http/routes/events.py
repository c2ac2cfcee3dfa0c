"""`/v1/events`: new contexts as server-sent events, also those that other processes compute on the same store."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Annotated

import anyio
import anyio.to_thread
from fastapi import Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from foveate.engine import Engine
from foveate.errors import StoreError
from foveate.operations import documents
from foveate.receipts.summary import ReceiptSummary
from foveate.server.http.access import Computes
from foveate.server.http.routes.router import new_router
from foveate.types import Scope

router = new_router("events")

MAX_ROWS = 64
"""Contexts that are read after a change: fewer than that are computed between two polls."""

MAX_SENT_IDS = 1024
"""Ids of sent contexts that a stream remembers: a receipt of another process may be stored late."""

Rows = Sequence[ReceiptSummary]


@dataclass(slots=True)
class Channel:
    """The latest contexts of one scope, for all streams that show it."""

    engine: Engine
    rows: Rows = ()
    newest: str | None = None
    streams: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)


class ContextFeed:
    """Looks for new contexts on behalf of all streams. An idle stream costs nothing, a scope one query a poll."""

    def __init__(self, poll_seconds: float, limiter: anyio.CapacityLimiter, stopping: Event) -> None:
        self._poll_seconds = poll_seconds
        self._limiter = limiter
        self._stopping = stopping
        self._channels: dict[Scope, Channel] = {}

    @contextmanager
    def channel(self, engine: Engine) -> Iterator[Channel]:
        """Give the channel of an engine's scope while the block runs."""
        channel = self._channels.setdefault(engine.scope, Channel(engine))
        channel.streams += 1
        try:
            yield channel
        finally:
            channel.streams -= 1
            if not channel.streams:
                self._channels.pop(engine.scope, None)

    async def run(self) -> None:
        """Poll until the service stops, then wake all streams so that they end."""
        while not self._stopping.is_set():
            await anyio.sleep(self._poll_seconds)
            channels = list(self._channels.values())
            updates = await anyio.to_thread.run_sync(_updates, channels, limiter=self._limiter) if channels else []
            for channel, rows in updates:
                channel.rows, channel.newest = rows, rows[-1].id
                _wake(channel)
        for channel in self._channels.values():
            _wake(channel)

    async def latest_rows(self, engine: Engine) -> Rows:
        """Return the latest contexts, oldest first. Waits until the store can answer."""
        while not self._stopping.is_set():
            rows = await anyio.to_thread.run_sync(_read_latest, engine, MAX_ROWS, limiter=self._limiter)
            if rows is not None:
                return rows
            await anyio.sleep(self._poll_seconds)
        return ()


def _updates(channels: Sequence[Channel]) -> list[tuple[Channel, Rows]]:
    """Return the channels with a new context, and their latest rows."""
    found = []
    for channel in channels:
        newest = _read_latest(channel.engine, 1)
        if newest and newest[0].id != channel.newest and (rows := _read_latest(channel.engine, MAX_ROWS)):
            found.append((channel, rows))
    return found


def _read_latest(engine: Engine, limit: int) -> Rows | None:
    """Return the latest contexts, oldest first, or None if the store cannot answer now."""
    try:
        return engine.receipts.list(limit=limit)[::-1]
    except StoreError:
        return None


def _wake(channel: Channel) -> None:
    channel.changed.set()
    channel.changed = anyio.Event()  # for the next change, because an event cannot be cleared


@router.get("/events", response_class=EventSourceResponse)
async def events(
    request: Request,
    caller: Computes,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
    limit: Annotated[int | None, Query(ge=1, description="End after this many contexts.")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Stream each new context. `Last-Event-ID` continues where another stream ended."""
    feed, stopping = request.app.state.feed, request.app.state.stopping
    sent = 0
    with feed.channel(caller.engine) as channel:
        known = await feed.latest_rows(caller.engine)  # read first, so that older contexts are not sent as new
        seen = deque(_already_sent(known, last_event_id), maxlen=MAX_SENT_IDS)
        rows = known
        yield ServerSentEvent(comment="listening")
        while not stopping.is_set():
            changed = channel.changed
            for row in [row for row in rows if row.id not in seen]:
                seen.append(row.id)
                yield ServerSentEvent(data=documents.context_summary(row), event="context", id=row.id)
                sent += 1
                if sent == limit:
                    return
            await changed.wait()
            rows = channel.rows


def _already_sent(rows: Rows, last_event_id: str | None) -> list[str]:
    """Return the ids that the client has: all of them, or those up to the last event of an earlier stream."""
    ids = [row.id for row in rows]
    if last_event_id is None:
        return ids
    return ids[: ids.index(last_event_id) + 1] if last_event_id in ids else []
