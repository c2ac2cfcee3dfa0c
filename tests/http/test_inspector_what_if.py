"""The inspector's what-if: another question, budget, profile or weighing, seen at once; kept as a profile or as a case."""

from __future__ import annotations

import hmac
import json
import re
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from service_kit import BASE, Guarded
from starlette.testclient import TestClient

import foveate
from foveate.engine import Engine
from foveate.eval.datasets import own
from foveate.pipeline import profiles
from foveate.server.http import create_app
from foveate.types import Filters

HOSTILE = '<script>alert("redis")</script> runs [here](javascript:alert(1)) | **redis**'
QUERY = "Which port does redis run on?"


@pytest.fixture(autouse=True)
def known(engine: Engine) -> None:
    engine.add("note", HOSTILE)
    for n in range(12):
        engine.add("note", f"Redis note {n}: the port of cache number {n} answers after {n * 7} ms")


def tried(client: TestClient, **fields: Any) -> dict[str, Any]:
    answer = client.get("/ui/what-if.json", params=fields)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def form(client: TestClient, **fields: Any) -> dict[str, Any]:
    """Fields of a form as the page has them, with its key."""
    key = re.search(r'name="form" value="(\w+)"', client.get("/ui/what-if", params={"query": QUERY}).text)
    assert key
    return {"form": key[1], "typed": "1", "query": QUERY, **fields}


def post(client: TestClient, action: str, fields: dict[str, Any], **options: Any) -> Any:
    return client.post(f"/ui/{action}", data=fields, follow_redirects=False, **options)


def files(engine: Engine) -> set[str]:
    assert engine.root is not None
    folder = engine.root / ".foveate"
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".toml", ".jsonl", ".part")}


# --- trying ----------------------------------------------------------------------------------------------------------


def test_it_starts_from_a_context_as_it_was_asked_and_keeps_nothing(client: TestClient, engine: Engine) -> None:
    overrides = {"weights": {"recency": 0.4}, "slots": {"episodes": {"remove": True}, "facts": {"max_items": 7}}}
    filters = Filters(kinds=("note", "fact"), min_trust="agent")
    context = engine.compute(QUERY, budget=600, session="morning", overrides=overrides, filters=filters)
    found = tried(client, context=context.id)
    assert found["result"]["prompt"]["text"] == context.text
    assert (found["against"]["added"], found["against"]["withdrawn"], found["against"]["tokens"]) == ([], [], 0)
    form = found["form"]
    assert (form["budget"], form["session"], form["kinds"], form["min_trust"]) == ("600", "morning", "note, fact", "agent")
    assert [each["name"] for each in found["settings"]["weights"] if each["changed"]] == ["recency"]
    assert [each["name"] for each in found["settings"]["slots"] if each["left_out"]] == ["episodes"]
    assert tomllib.loads(found["settings"]["carried"]) == {"slots": {"facts": {"max_items": 7}}}
    assert len(engine.receipts(10)) == 1


def test_what_is_typed_counts_and_what_is_emptied_is_gone(client: TestClient, engine: Engine) -> None:
    context = engine.compute(QUERY, budget=200, session="morning")
    found = tried(client, context=context.id, typed=1, query=QUERY, budget=1000)
    assert found["result"]["budget"]["total"] == 1000
    assert found["result"]["context"]["scope"] == {"project": "main"}
    assert len(found["against"]["added"]) > 3
    assert tried(client, context=context.id, typed=1)["result"]["context"]["query"] == QUERY  # an empty question is its own


def test_changes_of_weights_slots_and_floor_reach_the_profile(client: TestClient) -> None:
    changed = {
        "weight.relevance": "0.2",
        "weight.recency": "0.1",
        "half_life": "24",
        "min_score": "0.5",
        "without": "patterns",
    }
    found = tried(client, query=QUERY, **changed)
    assert found["problem"] == ""
    layer = tomllib.loads(found["keep"]["profile"])
    assert layer["weights"] == {"relevance": 0.2}  # recency stands where base has it
    assert layer["half_life"] == 24
    assert layer["slots"]["patterns"] == {"remove": True}
    assert layer["slots"]["facts"] == {"min_score": 0.5}
    assert "rules" not in layer["slots"]
    assert all(item["score"] >= 0.5 for item in found["result"]["items"] if item["slot"] == "facts")


def test_a_slider_that_nobody_moved_is_no_change_to_another_profile(client: TestClient) -> None:
    drawn = {"weight.relevance": "0.6", "own.relevance": "0.6", "weight.usage": "0.3", "own.usage": "0.04"}
    found = tried(client, query=QUERY, profile="chat", **drawn)
    assert tomllib.loads(found["keep"]["profile"])["weights"] == {"usage": 0.3}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"budget": "3"}, "too small. Raise it"),
        ({"budget": "many"}, "budget is a number"),
        ({"profile": "chatt"}, "Did you mean 'chat'?"),
        ({"complexity": "hard"}, "There is no complexity"),
        ({"kinds": "facts"}, "Did you mean 'fact'?"),
        ({"since": "yesterday"}, "is no time"),
        ({"min_trust": "me"}, "min_trust is one of"),
        ({"weight.relevence": "0.5"}, "Did you mean 'relevance'?"),
        ({"half_life": "0"}, "half_life must be a number above 0"),
        ({"task": "task_none"}, "There is no task"),
        ({"frame": "<b>x</b>"}, "There is no frame"),
    ],
)
def test_what_does_not_go_is_said_in_the_page(client: TestClient, fields: dict[str, str], words: str) -> None:
    found = tried(client, typed=1, query=QUERY, **fields)
    assert words in found["problem"]
    assert found["result"] is None
    page = client.get("/ui/what-if", params={"typed": "1", "query": QUERY, **fields})
    assert page.status_code == 200
    assert 'role="alert"' in page.text
    assert "<b>x</b>" not in page.text


def test_without_a_question_it_says_what_to_do(client: TestClient) -> None:
    assert tried(client)["settings"]["weights"]
    assert "Ask something" in client.get("/ui/what-if").text
    assert client.get("/ui/what-if?context=ctx_none").status_code == 404


def test_the_page_shows_the_prompt_its_budget_and_what_is_nearest_escaped(client: TestClient) -> None:
    fields = {"query": f"{QUERY} <i>", "budget": 200}
    page, found = client.get("/ui/what-if", params=fields).text, tried(client, **fields)
    assert "<script>alert" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;alert(" in page
    lacked = [row["needs_tokens"] for row in found["result"]["nearest"]]
    assert lacked
    assert lacked == sorted(lacked)
    assert f"+{lacked[0]} tokens" in page


def test_a_very_long_question_stays_the_contexts(client: TestClient, engine: Engine) -> None:
    context = engine.compute(f"{QUERY} " * 200, budget=3000)
    found = tried(client, context=context.id, typed=1, budget=2000)
    assert found["result"]["context"]["query"] == engine.receipt(context).document["request"]["query"]
    assert 'name="query"' not in client.get(f"/ui/what-if?context={context.id}").text


# --- keeping ---------------------------------------------------------------------------------------------------------


def test_changes_are_kept_as_a_profile_that_does_the_same(client: TestClient, engine: Engine) -> None:
    changed = {"budget": "2000", "weight.relevance": "0.2", "without": "patterns", "kinds": "note"}
    said = 'Says "quoted" \\ and\tmore\x7f é'
    fields = form(client, **changed, profile_name="mine", description=said, with_budget="1")
    answer = post(client, "keep-profile", fields)
    assert answer.status_code == 303, answer.text
    profile = profiles.resolve("mine", engine.places)
    assert (profile.total, profile.weights["relevance"], profile.layers["slots.facts.share"]) == (2000, 0.2, "base")
    assert "patterns" not in {slot.name for slot in profile.slots}
    assert profiles.load("mine", engine.places)["description"] == said
    assert files(engine) == {"profiles/mine.toml"}
    after = client.get(answer.headers["location"].replace("/what-if?", "/what-if.json?")).json()
    before = tried(client, typed=1, query=QUERY, **changed)
    assert after["result"]["prompt"]["text"] == before["result"]["prompt"]["text"]
    assert after["form"]["profile"] == "mine"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"profile_name": "../mine"}, "no name for a profile"),
        ({"profile_name": "a/b"}, "no name for a profile"),
        ({"profile_name": ".hidden"}, "no name for a profile"),
        ({"profile_name": "x" * 65}, "no name for a profile"),
        ({"profile_name": ""}, "Say which name"),
        ({"profile_name": "chat", "replace": "1"}, "comes with foveate"),
        ({"profile_name": "nul.x"}, "is no name for a profile"),
        ({"profile_name": "mine", "weight.relevance": ""}, "Nothing was changed"),
        ({"profile_name": "mine", "budget": "900", "with_budget": "1"}, "exceed the total of 900"),
        ({"profile_name": "mine", "profile": "none"}, "There is no profile"),
    ],
)
def test_a_profile_that_does_not_hold_is_not_written(
    client: TestClient, engine: Engine, fields: dict[str, str], words: str
) -> None:
    answer = post(client, "keep-profile", form(client, **{"weight.relevance": "0.2", **fields}))
    assert answer.status_code == 422
    assert words in answer.text
    assert files(engine) == set()


def test_a_profile_is_replaced_only_where_that_is_ticked_and_never_under_its_own_feet(
    client: TestClient, engine: Engine
) -> None:
    keep = {"profile_name": "mine", "weight.relevance": "0.2"}
    assert post(client, "keep-profile", form(client, **keep)).status_code == 303
    assert post(client, "keep-profile", form(client, **{**keep, "weight.relevance": "0.3"})).status_code == 422
    assert profiles.resolve("mine", engine.places).weights["relevance"] == 0.2
    assert (
        post(client, "keep-profile", form(client, **{**keep, "weight.relevance": "0.3", "replace": "1"})).status_code == 303
    )
    assert profiles.resolve("mine", engine.places).weights["relevance"] == 0.3
    over = form(client, **{**keep, "profile": "mine", "weight.relevance": "0.9", "replace": "1"})
    assert "stands on the file" in post(client, "keep-profile", over).text


def test_the_outcome_is_kept_as_a_case_of_the_own_suite(client: TestClient, engine: Engine, tmp_path: Path) -> None:
    found = tried(client, query=QUERY, budget=200)
    marks = found["keep"]["can_be_wanted"]
    wanted, lost = marks[0]["id"], next(row["id"] for row in marks if not row["kept"])
    for n, file in enumerate(("", "mine.jsonl")):
        fields = form(client, budget="200", wanted=wanted, unwanted=lost, file=file)
        answer = post(client, "keep-case", fields)
        assert answer.status_code == 303, answer.text
        assert "1+wanted%2C+1+unwanted" in answer.headers["location"]
        assert client.get(answer.headers["location"]).status_code == 200
        path = tmp_path / ".foveate" / (file or "cases.jsonl")
        case = json.loads(path.read_text())
        assert (case["question"], case["budget"], case["wanted"], case["unwanted"]) == (QUERY, 200, [wanted], [lost])
        assert [case.query for world in own.worlds(path, {}) for case in world.load().cases] == [QUERY]
        assert len(engine.receipts(10)) == n + 1  # it was computed for good


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"file": "../cases.jsonl"}, "no name for a file"),
        ({"file": "/tmp/cases.jsonl"}, "no name for a file"),
        ({"file": "config.toml"}, "Cases are kept in a file such as"),
        ({"file": "records.jsonl"}, "Cases are kept in a file such as"),
        ({"wanted": ""}, "Tick at least one"),
    ],
)
def test_a_case_goes_nowhere_else(client: TestClient, engine: Engine, fields: dict[str, str], words: str) -> None:
    wanted = tried(client, query=QUERY)["keep"]["can_be_wanted"][0]["id"]
    answer = post(client, "keep-case", form(client, **{"wanted": wanted, **fields}))
    assert answer.status_code == 422
    assert words in answer.text
    assert files(engine) == set()
    assert engine.receipts(10) == []


@pytest.mark.parametrize("action", ["keep-profile", "keep-case"])
def test_keeping_needs_a_form_of_ours_and_the_scope(guarded: Guarded, action: str) -> None:
    wanted = next(iter(guarded.engine.search("redis"))).record.id
    fields = {"typed": "1", "query": QUERY, "budget": "3000", "with_budget": "1", "profile_name": "mine", "wanted": wanted}
    assert post(guarded.client, action, fields, headers=guarded.headers()).status_code == 403
    admin, writes = guarded.headers("context:read", "admin"), guarded.headers("context:read", "memory:write")
    page = guarded.client.get("/ui/what-if", params={"query": QUERY}, headers=writes).text
    assert "Keeping writes a file of the project" in page
    key = re.search(
        r'name="form" value="(\w+)"', guarded.client.get("/ui/what-if", params={"query": QUERY}, headers=admin).text
    )
    assert key
    for headers in (writes, guarded.headers("admin", "memory:read")):
        assert post(guarded.client, action, {**fields, "form": key[1]}, headers=headers).status_code == 403
    assert files(guarded.engine) == set()
    assert post(guarded.client, action, {**fields, "form": key[1]}, headers=admin).status_code == 303
    assert len(files(guarded.engine)) == 1


def test_another_project_writes_nothing_into_this_ones_folder(guarded: Guarded) -> None:
    headers = guarded.headers(project="other")
    page = guarded.client.get("/ui/what-if", params={"query": QUERY}, headers=headers).text
    assert "There is no project&#39;s folder" in page
    app: Any = guarded.client.app
    key = hmac.new(app.state.form_secret, f"{guarded.tokens.list()[-1].id}\n".encode(), sha256).hexdigest()
    fields = {"form": key, "typed": "1", "query": QUERY, "weight.relevance": "0.2", "profile_name": "mine"}
    answer = post(guarded.client, "keep-profile", fields, headers=headers)
    assert answer.status_code == 422
    assert "There is no project&#39;s folder" in answer.text
    assert files(guarded.engine) == set()


def test_a_store_without_a_folder_says_so_instead_of_the_forms() -> None:
    with foveate.open(":memory:") as engine, TestClient(create_app(engine), base_url=BASE) as client:
        engine.add("note", HOSTILE)
        page = client.get("/ui/what-if", params={"query": QUERY, "budget": 900}).text
        assert "There is no project&#39;s folder" in page
        assert "/ui/keep-profile" not in page
