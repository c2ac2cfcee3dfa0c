"""The inspector's page on code: the map for a question, what a search finds, and what is not indexed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from inspector_kit import document, page
from service_kit import BASE, Guarded
from starlette.testclient import TestClient

import foveate
from foveate.engine import Engine
from foveate.server.http import create_app
from foveate.server.inspector.code import PATHS_PER_PAGE

HOSTILE = "<img src=x onerror=alert(1)>.py"

FILES = {
    "shop/prices.py": (
        '"""Prices."""\nimport decimal\n\n\nclass Price:\n    """What it costs. Not more."""\n\n'
        "    def with_discount(self, share: float) -> float:\n        return self.value * (1 - share)\n\n\n"
        "def bulk_discount(number: int) -> float:\n    return 0.1 if number >= 10 else 0.0\n"
    ),
    "shop/cart.py": "from shop.prices import bulk_discount\n\n\ndef total(n: int) -> float:\n    return bulk_discount(n)\n",
    "package-lock.json": "{}",
    "logo.png": "\0\0\0",
    "build.lua": "function build() end\n",
    HOSTILE: "def evil() -> None:\n    '<script>alert(1)</script>'\n",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    (tmp_path / ".git").mkdir()
    return tmp_path


@pytest.fixture
def coding(repository: Path) -> Iterator[Engine]:
    with foveate.open(repository, personal=False) as engine:
        engine.code.workspace.refresh()
        yield engine


@pytest.fixture
def code_client(coding: Engine) -> Iterator[TestClient]:
    with TestClient(create_app(coding), base_url=BASE) as client:
        yield client


def test_without_code_the_page_says_how_to_index_it(shared_client: TestClient) -> None:
    shown, html = page(shared_client, "/ui/code?q=x")
    assert shown["state"] == "no code"
    assert "foveate init --code" in html


def test_the_page_does_not_index_what_is_not_indexed_yet(repository: Path) -> None:
    with foveate.open(repository, personal=False) as engine, TestClient(create_app(engine), base_url=BASE) as client:
        shown, html = page(client, "/ui/code")
        assert shown["state"] == "not indexed"
        assert "not indexed yet" in html
        assert not engine.code.workspace.is_indexed


def test_the_map_is_ranked_for_the_query_and_nothing_is_stored(coding: Engine, code_client: TestClient) -> None:
    before = coding.store.stats().revision, len(coding.receipts.list())
    query = "Where is the bulk_discount computed?"
    shown, html = page(code_client, "/ui/code", params={"q": query})
    assert shown["map"]["ranked"][0].id == "map:shop/prices.py"
    assert shown["hits"]["definitions"][0]["qualified_name"] == "bulk_discount"
    assert (coding.store.stats().revision, len(coding.receipts.list())) == before
    assert shown["map"]["text"] == coding.code.map(query).text
    assert "1.000: lexical 1.000, named 1.000" in html
    assert 'data-live="#found"' in html


def test_names_of_files_and_their_text_are_shown_as_text(code_client: TestClient) -> None:
    html = code_client.get("/ui/code?q=evil").text
    assert "&lt;img src=x" in html
    assert "<img" not in html
    assert "<script>alert" not in html


def test_the_budget_is_that_of_the_map(code_client: TestClient) -> None:
    shown, html = page(code_client, "/ui/code", params={"q": "the total price with its discount, and evil", "budget": "20"})
    assert shown["map"]["tokens"] <= shown["map"]["total"] == 20
    lost = [entry for entry in shown["map"]["ranked"] if not entry.is_kept]
    assert lost
    assert all(entry.needs_tokens > 0 for entry in lost)
    assert f"left out, +{lost[0].needs_tokens} tokens" in html


def test_what_is_not_indexed_is_listed_by_reason(coding: Engine, code_client: TestClient, repository: Path) -> None:
    shown, html = page(code_client, "/ui/code")
    assert shown["skipped"]["reasons"] == {"binary": 1, "lock file": 1}
    assert "package-lock.json" in html
    assert "lua 1 (no grammar)" in html
    for n in range(PATHS_PER_PAGE):
        (repository / f"{n}.png").write_bytes(b"\0")
    coding.code.workspace.refresh()
    locks = document(code_client, "/ui/code?reason=lock+file")["skipped"]
    assert [one.path for one in locks["paths"]] == ["package-lock.json"]
    first = document(code_client, "/ui/code?reason=binary")["skipped"]
    second = document(code_client, "/ui/code", params={"reason": "binary", "after": first["next"]})["skipped"]
    assert first["number"] == PATHS_PER_PAGE + 1 == len({one.path for one in first["paths"] + second["paths"]})
    assert second["next"] is None


@pytest.mark.parametrize(
    ("query", "said"),
    [({"reason": "boring"}, "reason must be one of binary, lock file"), ({"budget": "0"}, "budget must be a number from 1")],
)
def test_bad_input_gets_a_page_that_says_what_is_wrong(code_client: TestClient, query: dict[str, str], said: str) -> None:
    shown = code_client.get("/ui/code", params=query)
    assert shown.status_code == 422
    assert said in shown.text


def test_code_needs_a_token_that_may_read_contexts(shared_guarded: Guarded) -> None:
    get, headers = shared_guarded.client.get, shared_guarded.headers
    assert get("/ui/code", headers=headers("memory:read")).status_code == 403
    assert get("/ui/code", headers=headers("context:read")).status_code == 200
