"""The page that draws a neighbourhood: whom it shows, how it is drawn, and the table that says the same."""

from __future__ import annotations

import re

import pytest
from inspector_kit import ESCAPED, HOSTILE
from starlette.testclient import TestClient

from foveate.engine import Engine


@pytest.fixture
def hub(engine: Engine) -> str:
    """An entity with fifty relations, of which three lead on, and one of those to ten further ones."""
    for n in range(50):
        engine.relate("Redis", "serves", f"Client {n}", weight=1 - n / 100, create=True)
    for n in range(3):
        engine.relate(f"Client {n}", "calls", f"Client {n + 1}", weight=0.5)
    for n in range(10):
        engine.relate("Client 1", "owns", f"Table {n}", weight=0.4, create=True)
    return engine.relate("Client 2", "is", HOSTILE, weight=0.9, create=True).dst


def graph(client: TestClient, query: str) -> dict:
    return client.get(f"/ui/graph.json?{query}").json()


def test_the_heaviest_links_come_first_and_the_rest_is_counted(client: TestClient, hub: str) -> None:
    found = graph(client, "id=redis")
    titles = [node["title"] for node in found["nodes"]]
    assert titles[0] == "Redis"
    assert titles[1:] == [f"Client {n}" for n in range(39)]
    assert found["left_out"] == 11
    edges = [(edge["from"], edge["name"], edge["to"]) for edge in found["edges"]]
    assert ("Client 0", "calls", "Client 1") in edges
    assert len(edges) == 39 + 3
    page = client.get("/ui/graph?id=redis").text
    assert "And 11 more records" in page
    assert page.count("<tr data-row>") == len(edges)


def test_two_hops_show_what_is_beyond_the_nearest_and_no_hub_crowds_out_the_others(client: TestClient, hub: str) -> None:
    found = graph(client, "id=redis&hops=2")
    assert len(found["nodes"]) <= 40
    beyond = {node["title"]: node["parent"] for node in found["nodes"] if node["hop"] == 2}
    ids = {node["title"]: node["id"] for node in found["nodes"]}
    assert beyond[HOSTILE] == ids["Client 2"]
    assert sum(title.startswith("Table") for title in beyond) == 8
    assert graph(client, "id=redis&hops=2") == found


def test_every_node_is_drawn_as_a_link_and_named_in_full_and_nothing_hostile_is_markup(client: TestClient, hub: str) -> None:
    page = client.get(f"/ui/graph?id={hub}").text
    assert ESCAPED in page
    assert "<script>alert" not in page
    assert "<img" not in page
    assert " style=" not in page
    client_2 = graph(client, f"id={hub}")["nodes"][1]
    assert client_2["title"] == "Client 2"
    wide, narrow = re.findall(r"<svg class=\"graph.*?</svg>", page, re.DOTALL)
    for drawing in (wide, narrow):
        assert f'href="/ui/graph?id={client_2["id"]}&amp;hops=1"' in drawing
        assert "<title>Client 2 (entity)</title>" in drawing


def test_any_record_has_a_neighbourhood_by_its_id_or_its_key(engine: Engine, client: TestClient) -> None:
    first = engine.tasks.add("Move sessions", key="move")
    second = engine.tasks.add("Cut over", depends_on=["move"])
    found = graph(client, "id=move")
    assert found["centre"]["id"] == first.id
    assert [(edge["src"], edge["name"], edge["dst"]) for edge in found["edges"]] == [(second.id, "depends_on", first.id)]


def test_without_a_subject_it_offers_entities_and_open_tasks(engine: Engine, client: TestClient) -> None:
    assert "There is no entity and no open task yet" in client.get("/ui/graph").text
    assert "Nothing is joined to it" in client.get(f"/ui/graph?id={engine.search('redis')[0].record.id}").text
    engine.add("entity", "Checkout", name="Checkout", type="service")
    task, done = engine.tasks.add("Cut over"), engine.tasks.add("Move")
    engine.tasks.start(done.id)
    engine.tasks.complete(done.id, "Moved.")
    start = graph(client, "")["start"]
    assert [(row["title"], row["type"]) for row in start["entities"]] == [("Checkout", "service")]
    assert [row["id"] for row in start["tasks"]] == [task.id]


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [("id=nobody", 404, "no entity &#39;nobody&#39;"), ("id=redis&hops=3", 422, "hops is a number from 1 to 2")],
)
def test_bad_input_is_answered_by_a_page(client: TestClient, query: str, status: int, said: str) -> None:
    answer = client.get(f"/ui/graph?{query}")
    assert answer.status_code == status
    assert said in answer.text
