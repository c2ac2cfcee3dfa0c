"""The inspector's pages on tasks: the tree, what waits for what, claims, and how handoffs were read."""

from __future__ import annotations

import html

import pytest
from inspector_kit import page
from service_kit import Guarded
from starlette.testclient import TestClient

from foveate.engine import Engine

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
    tasks.handoff("store", WRITTEN)
    tasks.edit("evil", status="blocked", reason=HOSTILE)
    return engine


def test_without_a_task_the_page_says_how_to_plan_one(client: TestClient) -> None:
    document, shown = page(client, "/ui/tasks")
    assert document["tasks"] == []
    assert "foveate task add" in shown


def test_tasks_are_listed_with_what_they_wait_for(plan: Engine, client: TestClient) -> None:
    document, shown = page(client, "/ui/tasks")
    rows = {row["task"].key: row for row in document["tasks"]}
    assert list(rows) == ["evil", "ship", "rotate", "store"], "newest first"
    assert [other.name for other in rows["ship"]["waits_for"]] == ["Rotate"]
    rotate = rows["rotate"]["task"]
    assert (rotate.status, rotate.ready, rows["store"]["handoff"]["parsed"]) == ("open", True, "as written")
    assert "○</span> open, ready" in shown
    assert HOSTILE not in shown
    assert html.escape(HOSTILE[:20], quote=True).replace("&#x27;", "&#39;") in shown


def test_tasks_are_a_tree_of_parts_with_claims(plan: Engine, client: TestClient) -> None:
    parts = [plan.tasks.add(f"Part {n}", key=f"part{n}", parent="ship").id for n in (1, 2)]
    plan.tasks.add("Part of a part", key="detail", parent=parts[0])
    plan.tasks.push("Ship version 2")
    plan.tasks.claim("rotate", agent="developer")
    document, shown = page(client, "/ui/tasks")
    rows = {row["task"].key or row["task"].name: row for row in document["tasks"]}
    assert {name: row["depth"] for name, row in rows.items() if row["depth"]} == {"part1": 1, "detail": 2, "part2": 1}
    order = list(rows)
    assert order.index("detail") == order.index("part1") + 1
    assert set(order[order.index("ship") + 1 :][:3]) == {"part1", "part2", "detail"}
    assert [name for name, row in rows.items() if row["is_current"]] == ["Ship version 2"]
    assert rows["rotate"]["agents"] == ["developer"]
    (claim,) = document["claims"]
    assert (claim.agent, claim.task.name) == ("developer", "Rotate")
    assert f"/ui/context?id={claim.context_id}&amp;agent=developer" in shown
    assert shown.count("current goal") == 1


@pytest.mark.parametrize(("status", "keys"), [("completed", ["store"]), ("ready", ["rotate"]), ("failed", [])])
def test_tasks_of_one_status(plan: Engine, client: TestClient, status: str, keys: list[str]) -> None:
    document, shown = page(client, f"/ui/tasks?status={status}")
    assert [row["task"].key for row in document["tasks"]] == keys
    assert document["counts"] == {
        "all": 4, "open": 2, "active": 0, "blocked": 1, "completed": 1, "failed": 0, "ready": 1,
    }  # fmt: skip
    assert ("No task is failed." in shown) == (not keys)


def test_long_plans_are_paged(plan: Engine, client: TestClient) -> None:
    for n in range(30):
        plan.tasks.add(f"Step {n}", key=f"s{n}", depends_on=[f"s{n - 1}"] if n else [])
    first, shown = page(client, "/ui/tasks?limit=10")
    second, _ = page(client, f"/ui/tasks?limit=10&after={first['next']}")
    keys = {row["task"].key for row in first["tasks"] + second["tasks"]}
    assert len(keys) == 20, "no task is on both pages"
    assert 'rel="next"' in shown


def test_handoffs_that_were_not_read_as_written_are_marked_with_what_was_wrong(plan: Engine, client: TestClient) -> None:
    plan.tasks.handoff("rotate", BROKEN)
    plan.tasks.handoff("ship", HOSTILE)
    found = {one["task"].name: one for one in page(client, "/ui/tasks")[0]["problem_handoffs"]}
    assert {name: one["parsed"] for name, one in found.items()} == {"Rotate": "repaired", "Ship": "unreadable"}
    document, shown = page(client, "/ui/task?id=rotate")
    (handoff,) = document["handoffs"]
    assert (handoff["method"], handoff["raw"]) == ("repaired yaml", BROKEN.strip())
    assert all(html.escape(problem, quote=False) in html.unescape(shown) for problem in handoff["problems"])
    document, shown = page(client, "/ui/task?id=ship")
    assert document["handoffs"][0]["raw"] == HOSTILE
    assert "foveate task handoff ship FILE --again" in shown
    assert "<script>alert" not in shown


def test_a_task_shows_what_is_around_it_and_what_came_of_it(plan: Engine, client: TestClient) -> None:
    context = plan.context(task="store")
    plan.tasks.claim("rotate", agent="developer")
    document, shown = page(client, "/ui/task?id=store")
    assert document["task"]["result"] == "Redis it is"
    assert [one.name for one in document["waits_for_it"]] == ["Rotate"]
    assert [one.text for one in document["learned"]] == ["One Redis for all"]
    assert [one.id for one in document["contexts"]] == [context.id]
    for part in ("a decision is kept", "One Redis for all", f"/ui/context?id={context.id}", "tab=history"):
        assert part in shown
    document, shown = page(client, f"/ui/task?id={plan.tasks.get('rotate').id}")
    assert [claim.agent for claim in document["claims"]] == ["developer"]
    assert [one["name"] for one in document["dependencies"]] == ["Choose a store"]
    assert "src/tokens.py: modify" in shown


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("task", 422, "needs the id of a task"),
        ("task?id=nobody", 404, "No task &#39;nobody&#39;"),
        ("tasks?status=compleated", 422, "completed"),
        ("tasks?after=zzz", 422, "is not a cursor"),
        ("tasks?limit=0", 422, "limit must be a number"),
    ],
)
def test_bad_input_gets_a_page_that_says_what_to_do(
    plan: Engine, client: TestClient, address: str, status: int, said: str
) -> None:
    shown = client.get(f"/ui/{address}")
    assert shown.status_code == status
    assert said in shown.text
    assert shown.headers["content-type"].startswith("text/html")


def test_tasks_need_a_token_that_may_read_memory(shared_guarded: Guarded) -> None:
    for name in ("tasks", "task?id=x"):
        assert shared_guarded.client.get(f"/ui/{name}", headers=shared_guarded.headers("context:read")).status_code == 403
    assert shared_guarded.client.get("/ui/tasks", headers=shared_guarded.headers("memory:read")).status_code == 200
