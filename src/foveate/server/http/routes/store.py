"""The store as a whole: figures, exports, imports, upkeep."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response

from foveate.integrations.importers import import_lines
from foveate.operations import json
from foveate.server.http import models
from foveate.server.http.access import Administers, Reads
from foveate.server.http.problems import Refused
from foveate.server.http.responses import Document

router = APIRouter(prefix="/v1", tags=["store"])


class Lines(FileResponse):
    """JSON, one document a line."""

    media_type = "application/x-ndjson"


class Database(FileResponse):
    media_type = "application/vnd.sqlite3"


LINES: dict[str, Any] = {"requestBody": {"content": {Lines.media_type: {"schema": {}}}}}


@router.get("/stats")
def stats(caller: Reads) -> Response:
    """What the store holds of the user and the agent that the token or the request names; else of the whole project."""
    return Document(caller.engine.store.stats())


@router.get("/stats/contexts")
def context_stats(caller: Reads) -> Response:
    """How large and how full the latest contexts are."""
    return Document(caller.engine.store.context_stats())


@router.get("/metrics")
def figures(caller: Reads) -> Response:
    """How well contexts serve, each figure with its target."""
    return Document({"metrics": caller.engine.store.metrics()})


@router.get("/export", response_class=Lines)
def export(caller: Administers) -> Response:
    """Everything that the caller may see, as lines of JSON."""
    engine = caller.engine

    # Into a file first: a slow reader would hold the snapshot, and with it the store's log.
    with tempfile.NamedTemporaryFile("wb", suffix=".jsonl", delete=False) as file:
        file.writelines(line.encode() + b"\n" for line in engine.store.export_lines())
    return Lines(file.name, media_type=Lines.media_type, background=BackgroundTask(os.unlink, file.name))


@router.post("/import", openapi_extra=LINES)
def import_(
    request: Request,
    caller: Administers,
    format: Annotated[Literal["auto", "foveate", "claude-code", "codex", "jsonl", "markdown"], Query()] = "auto",
) -> Response:
    """Read an export, or what other programs have written; what is here already is left as it is."""
    if caller.who.scope.agent is not None:
        raise Refused(403, "Lines name their agents themselves: a token that speaks for one agent cannot import.")
    lines = request.scope["body"].splitlines(keepends=True)
    return Document(json.imported(import_lines(caller.engine.store.data, lines, "the body", format, strict=True)))


@router.post("/gc")
def gc(caller: Administers, body: models.Apply | None = None) -> Response:
    """What the rules of the lifecycles would change; done where that is asked for."""
    apply = body is not None and body.apply
    return Document({"applied": apply, "steps": [asdict(step) for step in caller.engine.store.maintain(dry_run=not apply)]})


@router.get("/health")
def health(caller: Administers) -> Response:
    """Whether the store is sound and the index says what the records say. Of a whole store, a token is told only whether."""
    found = caller.engine.store.health()
    whole = {"facts": dict(found.facts), "problems": list(found.problems)} if caller.who.is_owner else {}
    return Document({"ok": found.ok, "facts": {}, "problems": [], **whole})


@router.get("/backup", response_class=Database)
def backup(caller: Administers) -> Response:
    """A consistent copy of the whole store as an SQLite file. It holds every project, so no token of one will do."""
    if not caller.who.is_owner:
        raise Refused(403, "A backup holds every project of the store; take it where the service runs: `foveate backup`.")
    folder = tempfile.mkdtemp(prefix="foveate-")
    target = Path(folder) / "state.db"
    caller.engine.store.backup(target)

    def remove() -> None:
        target.unlink(missing_ok=True)
        os.rmdir(folder)

    return Database(target, media_type=Database.media_type, filename="state.db", background=BackgroundTask(remove))
