"""Every method of the engine has an endpoint, or there is a reason why it has none."""

from __future__ import annotations

import pytest

import foveate
from foveate.engine import Engine
from foveate.engine.code import Code
from foveate.engine.inbox import Inbox
from foveate.engine.store_tools import StoreTools
from foveate.engine.tasks import Tasks
from foveate.receipts.history import Receipts
from foveate.server.http import create_app

NAMESPACES = {"": Engine, "code.": Code, "inbox.": Inbox, "receipts.": Receipts, "store.": StoreTools, "tasks.": Tasks}

ENDPOINTS = {
    "context": "POST /v1/contexts",
    "refresh": "POST /v1/contexts",
    "why": "GET /v1/contexts/{id}/why/{item}",
    "feedback": "POST /v1/feedback",
    "add": "POST /v1/records",
    "remember": "POST /v1/remember",
    "records": "GET /v1/records",
    "get": "GET /v1/records/{id}",
    "history": "GET /v1/records/{id}",
    "edit": "PATCH /v1/records/{id}",
    "forget": "DELETE /v1/records/{id}",
    "undo": "POST /v1/records/{id}/undo",
    "link": "POST /v1/links",
    "search": "POST /v1/search",
    "expand": "POST /v1/expand",
    "check": "POST /v1/check",
    "code.search": "POST /v1/search",
    "code.map": "GET /v1/code/map",
    "code.docs": "GET /v1/code/docs",
    "code.index": "POST /v1/code/index",
    "inbox.list": "GET /v1/inbox",
    "inbox.accept": "POST /v1/inbox/{id}",
    "inbox.reject": "POST /v1/inbox/{id}",
    "inbox.answer": "POST /v1/inbox/{id}",
    "receipts.get": "GET /v1/contexts/{id}",
    "receipts.list": "GET /v1/contexts",
    "receipts.sessions": "GET /v1/contexts",
    "receipts.diff": "GET /v1/contexts/{id}/diff/{other}",
    "receipts.replay": "POST /v1/contexts/{id}/replay",
    "receipts.validate": "GET /v1/contexts/{id}",
    "tasks.add": "POST /v1/tasks",
    "tasks.push": "POST /v1/tasks",
    "tasks.get": "GET /v1/tasks/{id}",
    "tasks.current": "GET /v1/tasks/{id}",
    "tasks.path": "GET /v1/tasks/{id}",
    "tasks.list": "GET /v1/tasks",
    "tasks.edit": "PATCH /v1/tasks/{id}",
    "tasks.complete": "PATCH /v1/tasks/{id}",
    "tasks.pop": "PATCH /v1/tasks/{id}",
    "tasks.fail": "PATCH /v1/tasks/{id}",
    "tasks.handoff": "POST /v1/tasks/{id}/handoff",
    "tasks.claim": "POST /v1/claims",
    "tasks.claims": "GET /v1/claims",
    "tasks.release": "DELETE /v1/claims/{id}",
    "store.stats": "GET /v1/stats",
    "store.health": "GET /readyz",
    "store.add_many": "POST /v1/records",
    "store.export_lines": "GET /v1/export",
    "store.backup": "GET /v1/export",
    "store.import_lines": "POST /v1/import",
}

NO_ENDPOINT = {
    "acontext": "it is `context` for async callers in Python",
    "scoped": "each request names its scope",
    "close": "the service closes its engine when it ends",
    "inbox.propose": "only agents propose, over MCP",
    "receipts.timeline": "the inspector shows it",
    "store.maintain": "the service does it by itself",
}


def endpoints() -> set[str]:
    with foveate.open(":memory:") as engine:
        paths = create_app(engine).openapi()["paths"]
    return {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


@pytest.mark.parametrize("name", [*ENDPOINTS, *NO_ENDPOINT])
def test_each_row_of_the_tables_names_a_method(name: str) -> None:
    namespace, _, method = name.rpartition(".")
    assert callable(getattr(NAMESPACES[f"{namespace}." if namespace else ""], method))


def test_every_method_of_the_engine_has_an_endpoint_or_a_reason() -> None:
    found = {name for name, member in vars(Engine).items() if callable(member) and not name.startswith("_")}
    assert found - ENDPOINTS.keys() - NO_ENDPOINT.keys() == set()


def test_these_are_the_endpoints_and_there_are_no_others() -> None:
    about_the_service = {"GET /v1/events", "POST /v1/hooks/{host}", "GET /healthz", "GET /metrics"}
    others = {"GET /v1/code", "GET /v1/profiles", "GET /v1/profiles/{name}", "GET /v1/tasks/{id}/handoff"}
    assert endpoints() == {*ENDPOINTS.values(), *about_the_service, *others}
