"""Finding by words: what the search field and the palette get."""

from __future__ import annotations

import pytest
from inspector_kit import ESCAPED, HOSTILE
from service_kit import Guarded
from starlette.testclient import TestClient

from foveate.engine import Engine


def found(client: TestClient, words: str, **options: str) -> list[dict[str, str]]:
    answer = client.get("/ui/find.json", params={"q": words, **options})
    assert answer.status_code == 200, answer.text
    assert answer.json()["q"] == words.strip()
    return answer.json()["found"]


@pytest.fixture
def busy(engine: Engine) -> Engine:
    engine.add("entity", "Redis Cluster", name="Redis Cluster", type="service")
    engine.tasks.add("Move sessions to Redis", key="move/1")
    engine.compute("Which port has redis?", budget=2000, session="redis morning")
    return engine


def test_ids_keys_and_names_come_before_what_says_the_words(busy: Engine, client: TestClient) -> None:
    fact = busy.search("port")[0].record
    context = busy.receipt().id
    assert found(client, fact.id)[0] == {
        "title": fact.text,
        "what": "fact",
        "href": f"/ui/record?id={fact.id}",
        "kind": "fact",
    }
    assert found(client, context)[0]["href"] == f"/ui/context?id={context}"
    assert found(client, context[:12])[0]["href"] == f"/ui/context?id={context}"
    assert found(client, "move/1")[0]["href"].startswith("/ui/task?id=task_")
    assert found(client, " redis clus ")[0]["title"] == "Redis Cluster"
    hits = found(client, "redis")
    assert [hit["kind"] for hit in hits[:2]] == ["entity", "session"]
    assert hits[1]["href"] == "/ui/session?name=redis+morning"
    assert {"fact", "task", "context"} <= {hit["kind"] for hit in hits}
    assert len({hit["href"] for hit in hits}) == len(hits)


def test_what_no_longer_holds_is_marked_and_links_keep_whose_state_it_is(busy: Engine, client: TestClient) -> None:
    fact = busy.search("port")[0].record.id
    busy.add("fact", "Redis runs on port 7000", subject="redis", attribute="port", valid_from="2099-01-01")
    hit = next(hit for hit in found(client, "6379", user="ann") if hit["kind"] == "fact")
    assert (hit["what"], hit["href"]) == ("fact, superseded", f"/ui/record?id={fact}&user=ann")


@pytest.mark.parametrize("words", ["", "   ", "!!!", "\u202e", "zzzz qqqq", "x" * 20_000, "100%_'\"\\"])
def test_any_words_are_answered_and_an_empty_page_says_what_can_be_found(client: TestClient, words: str) -> None:
    assert found(client, words) == []
    page = client.get("/ui/find", params={"q": words})
    assert page.status_code == 200
    assert ("Say what to find" if not words.strip() else "Nothing goes by these words") in page.text


def test_hostile_titles_are_words(engine: Engine, client: TestClient) -> None:
    engine.add("note", HOSTILE)
    page = client.get("/ui/find?q=alert+script").text
    assert ESCAPED in page
    assert "<script>alert" not in page
    assert "<img" not in page


def test_contexts_and_sessions_are_found_by_whoever_may_read_them(guarded: Guarded) -> None:
    guarded.engine.compute("A confidential question on redis", session="redis morning", budget=2000)
    client = guarded.client
    for scopes, kinds in ((("memory:read",), {"fact"}), (("memory:read", "context:read"), {"fact", "context", "session"})):
        answer = client.get("/ui/find.json?q=redis", headers=guarded.headers(*scopes))
        assert {hit["kind"] for hit in answer.json()["found"]} == kinds
