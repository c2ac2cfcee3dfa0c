"""The inspector's pages on tasks: the stack, what waits for what, and how handoffs were read."""

from __future__ import annotations

import html
from typing import Any

import pytest
from service_kit import Guarded
from starlette.testclient import TestClient

from foveate.agents import Agents
from foveate.engine import Engine
from foveate.server.inspector.pages.tasks import DRAWN

HOSTILE = "<script>alert('x')</script> & [link](javascript:alert(1))"
WRITTEN = "schema: handoff/v1\nstatus: completed\nsummary: Redis it is\ndecisions:\n- decision: One Redis for all\n"
BROKEN = 'schema: handoff/v1\nstatus: completed\nsummary: Moved: "all" of it\ngotchas:\n  - issue: Redis: keys expire\n'


@pytest.fixture
def plan(engine: Engine) -> Engine:
    """store <- rotate <- ship; store and rotate are done, and a hostile one is blocked."""
    tasks = engine.tasks
    tasks.add("Choose a store", key="store", objective="Redis or Postgres?", acceptance_criteria=["a decision is kept"])
    tasks.add("Rotate", key="rotate", depends_on=["store"], files=["src/tokens.py:modify"])
    tasks.add("Ship", key="ship", depends_on=["rotate"])
    tasks.add(HOSTILE, key="evil", depends_on=["ship"])
    tasks.ingest("store", WRITTEN)
    tasks.block("evil", HOSTILE)
    return engine


def page(client: TestClient, address: str) -> tuple[dict[str, Any], str]:
    """A page's document, and its HTML."""
    name, _, query = address.partition("?")
    shown = client.get(f"/ui/{address}")
    assert shown.status_code == 200, shown.text
    return client.get(f"/ui/{name}.json?{query}").json(), shown.text


def test_without_a_task_the_page_says_how_to_plan_one(client: TestClient) -> None:
    document, shown = page(client, "tasks")
    assert document["tasks"] == []
    assert "foveate task add" in shown


def test_tasks_are_drawn_and_listed_with_what_they_wait_for(plan: Engine, client: TestClient) -> None:
    document, shown = page(client, "tasks")
    ids = {task["key"]: task["id"] for task in document["tasks"]}
    rows = {task["key"]: task for task in document["tasks"]}
    assert list(ids) == ["evil", "ship", "rotate", "store"], "newest first"
    assert [other["name"] for other in rows["ship"]["waits_for"]] == ["Rotate"]
    assert (rows["rotate"]["status"], rows["rotate"]["ready"], rows["store"]["handoff"]["read"]) == (
        "open",
        True,
        "as written",
    )
    edges = [(edge["first"], edge["then"]) for edge in document["graph"]["edges"]]
    assert edges == [(ids["store"], ids["rotate"]), (ids["rotate"], ids["ship"]), (ids["ship"], ids["evil"])]
    assert shown.count('<rect class="box') == 4
    assert shown.count('<path class="met"') == 1, "of the three, one is completed"
    assert "○ open, ready" in shown
    assert HOSTILE not in shown
    assert html.escape(HOSTILE[:20], quote=True).replace("&#x27;", "&#39;") in shown


@pytest.mark.parametrize(("status", "keys"), [("completed", ["store"]), ("ready", ["rotate"]), ("failed", [])])
def test_tasks_of_one_status(plan: Engine, client: TestClient, status: str, keys: list[str]) -> None:
    document, shown = page(client, f"tasks?status={status}")
    assert [task["key"] for task in document["tasks"]] == keys
    assert document["counts"] == {
        "all": 4, "open": 2, "active": 0, "blocked": 1, "completed": 1, "failed": 0, "ready": 1,
    }  # fmt: skip
    assert ("None is failed." in shown) == (not keys)


def test_long_plans_are_paged_and_drawn_near_to_the_work(plan: Engine, client: TestClient) -> None:
    for n in range(DRAWN):
        plan.tasks.add(f"Step {n}", key=f"s{n}", depends_on=[f"s{n - 1}"] if n else [])
    plan.tasks.start("rotate")
    first, shown = page(client, "tasks?limit=10")
    second, _ = page(client, f"tasks?limit=10&after={first['next']}")
    assert [task["key"] for task in first["tasks"] + second["tasks"]] == [f"s{n}" for n in range(59, 39, -1)]
    drawn = {node["name"] for node in first["graph"]["nodes"]}
    assert len(drawn) == DRAWN
    assert {"Rotate", "Choose a store", "Ship", "Step 0"} <= drawn
    assert first["graph"]["not_drawn"] == 4
    assert 'rel="next"' in shown


def test_every_session_has_its_stack_with_the_current_goal_on_top(plan: Engine, client: TestClient) -> None:
    plan.stack().push("Ship version 2")
    morning = plan.stack(session="morning")
    morning.push("Make it fast")
    morning.push(HOSTILE)
    document, shown = page(client, "tasks")
    stacks = {stack["session"]: [frame["name"] for frame in stack["path"]] for stack in document["stacks"]}
    assert stacks == {None: ["Ship version 2"], "morning": ["Make it fast", HOSTILE]}
    assert shown.count("current goal") == 2
    assert "/ui/session?name=morning" in shown
    assert "<script>alert" not in shown


def test_handoffs_that_were_not_read_as_written_are_marked_with_what_was_wrong(plan: Engine, client: TestClient) -> None:
    plan.tasks.ingest("rotate", BROKEN)
    plan.tasks.ingest("ship", HOSTILE)
    inbox = {one["task"]["name"]: one for one in page(client, "tasks")[0]["inbox"]}
    assert {name: one["read"] for name, one in inbox.items()} == {"Rotate": "repaired", "Ship": "unreadable"}
    document, shown = page(client, "task?id=rotate")
    (handoff,) = document["handoffs"]
    assert (handoff["rung"], handoff["raw"]) == ("repaired yaml", BROKEN.strip())
    assert all(html.escape(problem, quote=False) in html.unescape(shown) for problem in handoff["problems"])
    document, shown = page(client, "task?id=ship")
    assert document["handoffs"][0]["raw"] == HOSTILE
    assert "foveate handoff ingest ship FILE --again" in shown
    assert "<script>alert" not in shown


def test_a_task_shows_what_is_around_it_and_what_came_of_it(plan: Engine, client: TestClient) -> None:
    context = plan.compute(task="store")
    prepared = Agents(plan).prepare("developer", "rotate")
    document, shown = page(client, "task?id=store")
    assert document["task"]["result"] == "Redis it is"
    assert [one["name"] for one in document["waits_for_it"]] == ["Rotate"]
    assert [one["text"] for one in document["learned"]] == ["One Redis for all"]
    assert [one["id"] for one in document["contexts"]] == [context.id]
    for part in ("a decision is kept", "One Redis for all", f"/ui/context?id={context.id}", "/ui/graph?id=task_"):
        assert part in shown
    document, shown = page(client, f"task?id={prepared.task.id}")
    assert [lease["agent"] for lease in document["leases"]] == ["developer"]
    assert [one["name"] for one in document["dependencies"]] == ["Choose a store"]
    assert "src/tokens.py: modify" in shown


def test_markdown_twin_holds_the_same(plan: Engine, client: TestClient) -> None:
    shown = client.get("/ui/task.md?id=store")
    assert shown.headers["content-type"].startswith("text/markdown")
    assert "One Redis for all" in shown.text


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("task", 422, "Say which task"),
        ("task?id=nobody", 404, "There is no task &#39;nobody&#39;"),
        ("tasks?status=compleated", 422, "completed"),
        ("tasks?after=zzz", 422, "is no cursor"),
        ("tasks?limit=0", 422, "limit is a number"),
    ],
)
def test_bad_input_gets_a_page_that_says_what_to_do(
    plan: Engine, client: TestClient, address: str, status: int, said: str
) -> None:
    shown = client.get(f"/ui/{address}")
    assert shown.status_code == status
    assert said in shown.text
    assert shown.headers["content-type"].startswith("text/html")


def test_tasks_need_a_token_that_may_read_memory(guarded: Guarded) -> None:
    for name in ("tasks", "task?id=x"):
        assert guarded.client.get(f"/ui/{name}", headers=guarded.headers("context:read")).status_code == 403
    assert guarded.client.get("/ui/tasks", headers=guarded.headers("memory:read")).status_code == 200
