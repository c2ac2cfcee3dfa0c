"""`/v1/code`: what the files of the project say."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from foveate.errors import SourceError
from foveate.operations import json
from foveate.receipts.receipt import context_json
from foveate.server.http import models
from foveate.server.http.access import Caller, Computes, Reads, Writes
from foveate.server.http.responses import Document

router = APIRouter(prefix="/v1/code", tags=["code"])


@router.get("")
def index(caller: Reads, aside: bool = False) -> Response:
    """What is indexed; with `aside`, what is not, and why."""
    code = caller.engine.code.workspace
    with code.index.open_reader() as reader:
        listed = [{"path": one.path, "reason": one.reason} for one in reader.exclusions()] if aside else None
    return Document({**_seen(caller, json.code_index(code)), **({"aside_paths": listed} if aside else {})})


@router.post("/index")
def refresh(caller: Writes, body: models.Refresh | None = None) -> Response:
    """Take in what changed; contexts do that by themselves."""
    code = caller.engine.code.workspace
    began = perf_counter()
    if body is not None and body.full:
        code.index.clear()
    done = code.refresh()
    return Document(_seen(caller, json.code_index(code, done, perf_counter() - began)))


def _seen(caller: Caller, index: dict[str, Any]) -> dict[str, Any]:
    """Where the files are on that machine is nobody's business but its owner's."""
    return index if caller.who.is_owner else {name: value for name, value in index.items() if name != "root"}


@router.post("/map")
def show_map(caller: Computes, body: models.CodeMap | None = None) -> Response:
    """The files and definitions that matter most, for a question or of the whole."""
    asked = body or models.CodeMap()
    found = caller.engine.code.map(asked.query or "", budget=asked.budget)
    if not found.items and found.warnings:
        raise SourceError(found.warnings[0])
    return Document(context_json(found))


@router.post("/search")
def search(body: models.CodeSearch, caller: Reads) -> Response:
    """Definitions and files, best first."""
    with caller.engine.code.workspace.snapshot() as snapshot:
        hits = snapshot.search(body.query, body.limit, body.limit)
        return Document({**json.code_hits(body.query, hits), "notes": snapshot.notes})


@router.get("/docs")
def docs(caller: Reads, section: Annotated[str | None, Query(max_length=100)] = None) -> Response:
    """What the repository says of itself."""
    code = caller.engine.code.workspace
    with code.snapshot() as snapshot:
        return Document(json.codebase(snapshot.codebase_docs, code, section))
