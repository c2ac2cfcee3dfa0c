"""Helpers for tests of the inspector: the values that a page shows, and forms sent with the key that their page carries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from service_kit import Guarded
from starlette.testclient import TestClient

from foveate.server.inspector import routes

HOSTILE = "<script>alert(1)</script></textarea><img src=x onerror=alert(2)> {{7*7}} [x](javascript:alert(3))"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


def page(client: TestClient, address: str, **options: Any) -> tuple[dict[str, Any], str]:
    """The document that a page shows, and its HTML."""
    documents: list[dict[str, Any]] = []
    render = routes.render_template

    def recording(name: str, variables: Mapping[str, Any]) -> str:
        documents.append(variables.get("doc", {}))
        return render(name, variables)

    with patch.object(routes, "render_template", recording):
        answer = client.get(address, **options)
    assert answer.status_code == 200, answer.text
    return documents[-1], answer.text


def document(client: TestClient, address: str, **options: Any) -> dict[str, Any]:
    return page(client, address, **options)[0]


def form_key(page: str) -> str:
    found = re.search(r'name="form" value="([0-9a-f]+)"', page)
    assert found, "the page has no form"
    return found[1]


def post(client: TestClient, page: str, action: str, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    """Send a form of a page, as a browser does, and stay where it leads."""
    key = form_key(client.get(page, headers=headers).text)
    body = {"form": key, **{name: str(value) for name, value in fields.items()}}
    return client.post(f"/ui/{action}", data=body, headers=headers, follow_redirects=False)


def refused(guarded: Guarded, page: str, action: str, needs: str, **fields: Any) -> None:
    """A form without its key is turned away, and so is one whose sender may only read."""
    reader = guarded.headers("memory:read", "context:read")
    writer = guarded.headers(*{"memory:read", "memory:write", needs})
    assert f"/ui/{action}" not in guarded.client.get(page, headers=reader).text
    for headers, said in ((writer, "not from this service"), (reader, f"lacks the scope &#39;{needs}&#39;")):
        answer = guarded.client.post(f"/ui/{action}", data={"form": "0" * 64, **fields}, headers=headers)
        assert answer.status_code == 403
        assert said in answer.text
