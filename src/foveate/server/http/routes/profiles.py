"""`/v1/profiles`: which slots and weights there are."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from foveate.errors import NotFound, near
from foveate.operations import json
from foveate.pipeline import profiles
from foveate.receipts.receipt import profile_json
from foveate.server.http.access import Caller, Computes
from foveate.server.http.responses import Document

router = APIRouter(prefix="/v1/profiles", tags=["profiles"])


@router.get("")
def list_profiles(caller: Computes) -> Response:
    """Shipped, the project's, and your own."""
    return Document(json.profiles(profiles.known(caller.engine.store.profile_dirs)))


@router.get("/{name}")
def show(name: str, caller: Computes) -> Response:
    """A profile as it is resolved, with the layer that set each value; `toml` is for people."""
    found = profiles.resolve(_known(name, caller), caller.engine.store.profile_dirs)
    return Document({"profile": profile_json(found), "toml": profiles.to_toml(found)})


@router.get("/{name}/check")
def check(name: str, caller: Computes) -> Response:
    """What is wrong with a profile."""
    problems = profiles.check(_known(name, caller), caller.engine.store.profile_dirs)
    return Document({"name": name, "ok": not problems, "problems": problems})


def _known(name: str, caller: Caller) -> str:
    """By name alone: a path would have the service read files."""
    known = profiles.names(caller.engine.store.profile_dirs)
    if name not in known:
        raise NotFound(f"There is no profile {name!r}.{near(name, known)}")
    return name
