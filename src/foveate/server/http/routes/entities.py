"""`/v1/entities`: the things that records are about, and how they hang together."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from foveate.errors import InputError, near
from foveate.memory.entities import propose_entities
from foveate.operations import json
from foveate.records.make import to_json
from foveate.server.http import models
from foveate.server.http.access import Reads, Writes
from foveate.server.http.responses import Document
from foveate.types import NO_FILTERS

router = APIRouter(prefix="/v1/entities", tags=["entities"])


@router.get("")
def list_entities(caller: Reads, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Response:
    """The known entities, those that matter most first."""
    with caller.engine.store.data.reader() as reader:
        found = reader.most_salient(["entity"], limit, NO_FILTERS)
    return Document({"entities": [to_json(record) for record in found]})


@router.post("/relations", status_code=201)
def relate(body: models.Relation, caller: Writes) -> Response:
    """Say how two entities hang together."""
    link = caller.engine.link(body.source, body.name, body.target, weight=body.weight, create=body.create)
    return Document(json.relation(link), 201)


@router.post("/proposals")
def propose(body: models.Propose, caller: Writes) -> Response:
    """Names in a text that could be entities; kept only where that is asked for."""
    engine = caller.engine
    found = propose_entities(engine.store.data, body.text)
    names = [one.name for one in found]
    wrong = [f"{name!r} is not among the proposals.{near(name, names)}" for name in body.only if name not in names]
    if wrong:
        raise InputError(wrong)
    chosen = [one for one in found if not body.only or one.name in body.only]
    new = [one for one in chosen if body.add and one.known is None]
    return Document(
        json.proposals(chosen, {one.name: engine.add("entity", one.name, data={"type": one.type}).record.id for one in new})
    )
