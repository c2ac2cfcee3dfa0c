"""`/v1/code` and `/v1/profiles`: the files of the project, and how contexts are composed."""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from foveate.engine.code import Code
from foveate.errors import NotFound, SourceError, near
from foveate.operations import documents
from foveate.pipeline import profiles
from foveate.pipeline.profiles.codec import profile_to_json
from foveate.receipts.codec import context_to_json
from foveate.server.http.access import Caller, Computes, Reads, Writes
from foveate.server.http.bodies import Arguments
from foveate.server.http.responses import Document, Include, parse_include
from foveate.server.http.routes.router import new_router

router = new_router("code")

IndexOptions = Annotated[dict[str, Any] | None, Arguments(Code.index, name="IndexOptions")]


@router.get("/code")
def show_index(caller: Reads, include: Include = "") -> Response:
    """Show what is indexed. `include=skipped` adds the excluded files with the reasons."""
    parts = parse_include(include, ["skipped"])
    workspace = caller.engine.code.workspace
    document = _without_root(caller, documents.code_index(workspace))
    if "skipped" in parts:
        with workspace.index.open_reader() as reader:
            document["skipped"] = [{"path": each.path, "reason": each.reason} for each in reader.exclusions()]
    return Document(document)


@router.post("/code/index")
def update_index(caller: Writes, body: IndexOptions = None) -> Response:
    """Update the index, or with `full` build it from scratch. Contexts update it by themselves."""
    began = perf_counter()
    code = caller.engine.code
    update = code.index(**(body or {}))
    return Document(_without_root(caller, documents.code_index(code.workspace, update, perf_counter() - began)))


def _without_root(caller: Caller, index: dict[str, Any]) -> dict[str, Any]:
    """Return the document without the folder on the server, unless the owner asks."""
    return index if caller.principal.is_owner else {name: value for name, value in index.items() if name != "root"}


@router.get("/code/map")
def show_map(
    caller: Computes,
    query: Annotated[str, Query(max_length=10_000)] = "",
    budget: Annotated[int | None, Query(ge=1, le=10_000_000)] = None,
) -> Response:
    """Show the files and definitions that matter most, for a query or overall."""
    context = caller.engine.code.map(query, budget=budget)
    if not context.items and context.warnings:
        raise SourceError(context.warnings[0])
    return Document(context_to_json(context))


@router.get("/code/docs")
def show_docs(caller: Reads, section: Annotated[str | None, Query(max_length=100)] = None) -> Response:
    """Show the documentation and metadata that the repository contains."""
    code = caller.engine.code
    return Document(documents.codebase(code.docs(), code.workspace, section))


@router.get("/profiles", tags=["profiles"])
def list_profiles(caller: Computes) -> Response:
    """List the profiles: built-in ones, the project's, and the user's."""
    return Document({"profiles": profiles.list_profiles(caller.engine.store.profile_dirs)})


@router.get("/profiles/{name}", tags=["profiles"])
def show_profile(name: str, caller: Computes) -> Response:
    """Show a profile as it is resolved, with the layer that set each value, as TOML as well, and its problems."""
    dirs = caller.engine.store.profile_dirs
    known = profiles.names(dirs)
    if name not in known:  # by name only: a path would make the service read files
        raise NotFound(f"No profile {name!r}.{near(name, known)}")
    problems = profiles.check(name, dirs)
    if problems:
        return Document({"profile": None, "toml": "", "problems": problems})
    profile = profiles.resolve(name, dirs)
    return Document({"profile": profile_to_json(profile), "toml": profiles.to_toml(profile), "problems": []})
