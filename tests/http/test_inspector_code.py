"""The inspector's page on code: the map for a question, what a search finds, and what was set aside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from service_kit import BASE, Guarded
from starlette.testclient import TestClient

import foveate
from foveate.engine import Engine
from foveate.server.http import create_app
from foveate.server.inspector.pages.code import PATHS

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
    with foveate.open(repository, own=False) as engine:
        engine.code.refresh()
        yield engine


@pytest.fixture
def client_of_code(coding: Engine) -> Iterator[TestClient]:
    with TestClient(create_app(coding), base_url=BASE) as client:
        yield client


def test_without_code_the_page_says_how_to_index_it(client: TestClient) -> None:
    assert client.get("/ui/code.json").json()["state"] == "no code"
    assert "foveate index" in client.get("/ui/code?q=x&path=y").text


def test_what_is_not_indexed_yet_is_not_indexed_by_looking(repository: Path) -> None:
    with foveate.open(repository, own=False) as engine, TestClient(create_app(engine), base_url=BASE) as client:
        assert client.get("/ui/code.json").json()["state"] == "not indexed"
        assert "not indexed yet" in client.get("/ui/code").text
        assert not engine.code.is_indexed


def test_map_is_ranked_for_the_question_and_nothing_is_kept(coding: Engine, client_of_code: TestClient) -> None:
    before = coding.stats()["revision"], len(coding.receipts())
    document = client_of_code.get("/ui/code.json", params={"q": "Where is the bulk_discount computed?"}).json()
    assert document["map"]["ranked"][0]["path"] == "shop/prices.py"
    assert document["map"]["text"] == coding.map("Where is the bulk_discount computed?").text
    assert document["hits"]["definitions"][0]["name"] == "bulk_discount"
    assert set(document["hits"]["definitions"][0]["features"]) == {"lexical", "named"}
    assert (coding.stats()["revision"], len(coding.receipts()) - 1) == before, "only our own map"
    shown = client_of_code.get("/ui/code", params={"q": "Where is the bulk_discount computed?"}).text
    assert "relevance 1.000: lexical 1.000, named 1.000" in shown
    assert 'data-live="#found"' in shown


def test_budget_is_the_room_of_the_map(client_of_code: TestClient) -> None:
    asked = {"q": "the total price with its discount, and evil", "budget": "20"}
    small = client_of_code.get("/ui/code.json", params=asked).json()["map"]
    assert small["tokens"] <= small["total"] == 20
    lost = [entry for entry in small["ranked"] if not entry["kept"]]
    assert lost
    assert all(entry["needs_tokens"] > 0 for entry in lost)
    assert f"left out, +{lost[0]['needs_tokens']} tokens" in client_of_code.get("/ui/code", params=asked).text


def test_what_was_set_aside_is_listed_by_reason(coding: Engine, client_of_code: TestClient, repository: Path) -> None:
    document = client_of_code.get("/ui/code.json").json()
    assert document["aside"]["reasons"] == {"binary": 1, "lock file": 1}
    assert document["read_as_lines"] == {"languages": {"lua": 1}, "paths": ["build.lua"], "more": 0}
    assert "package-lock.json" in client_of_code.get("/ui/code").text
    for n in range(PATHS):
        (repository / f"{n}.png").write_bytes(b"\0")
    coding.code.refresh()
    locks = client_of_code.get("/ui/code.json?aside=lock+file").json()["aside"]
    assert [one["path"] for one in locks["paths"]] == ["package-lock.json"]
    first = client_of_code.get("/ui/code.json?aside=binary").json()["aside"]
    second = client_of_code.get("/ui/code.json", params={"aside": "binary", "after": first["next"]}).json()["aside"]
    assert first["number"] == PATHS + 1 == len({one["path"] for one in first["paths"] + second["paths"]})
    assert second["next"] is None


def test_one_file_is_outlined(client_of_code: TestClient) -> None:
    one = client_of_code.get("/ui/code.json?path=prices.py").json()["outline"]
    assert (one["path"], one["language"], one["imports"]) == ("shop/prices.py", "python", ["decimal"])
    assert [(each["name"], each["depth"]) for each in one["definitions"]] == [
        ("Price", 0), ("Price.with_discount", 1), ("bulk_discount", 0),
    ]  # fmt: skip
    assert one["definitions"][0]["doc"] == "What it costs."
    shown = client_of_code.get("/ui/code", params={"path": HOSTILE}).text
    assert "&lt;img src=x" in shown
    assert "<img" not in shown
    assert "<script>" not in shown


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"path": "prices.rs"}, 404, "There is no file"),
        ({"path": "package-lock.json"}, 404, "is set aside: lock file"),
        ({"aside": "boring"}, 422, "aside is one of binary, lock file"),
        ({"budget": "0"}, 422, "budget is a number from 1 to"),
    ],
)
def test_bad_input_gets_a_page_that_says_what_is_wrong(
    client_of_code: TestClient, query: dict[str, str], status: int, said: str
) -> None:
    shown = client_of_code.get("/ui/code", params=query)
    assert shown.status_code == status
    assert said in shown.text


def test_code_needs_a_token_that_may_read_contexts(guarded: Guarded) -> None:
    assert guarded.client.get("/ui/code", headers=guarded.headers("memory:read")).status_code == 403
    assert guarded.client.get("/ui/code", headers=guarded.headers("context:read")).status_code == 200
