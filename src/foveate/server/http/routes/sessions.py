"""`/v1/sessions`: conversations, as events of a session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from foveate.clock import iso
from foveate.integrations.conversation import Conversation, ConversationMessage
from foveate.operations import json
from foveate.server.http import models
from foveate.server.http.access import Reads, Writes
from foveate.server.http.responses import Document
from foveate.types import NO_FILTERS

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


@router.get("")
def list_sessions(caller: Reads, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Response:
    """The sessions with the newest events."""
    with caller.engine.store.data.reader() as reader:
        found = reader.sessions(limit, NO_FILTERS)
    return Document({"sessions": [{"name": name, "last": iso(at)} for name, at in found.items()]})


@router.post("/{name}/said")
def keep(name: Annotated[str, Path(min_length=1, max_length=500)], body: models.Conversation, caller: Writes) -> Response:
    """Keep what was said in a session; the same again adds nothing."""
    engine = caller.narrowed(session=name)
    parts = [part.model_dump() for part in body.said]
    messages = [ConversationMessage(tool_input=part.pop("input"), **part) for part in parts]
    done = Conversation(engine, session=name).remember(messages)
    return Document(json.imported(done))
