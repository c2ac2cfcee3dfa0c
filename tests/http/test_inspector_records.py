"""The pages of records, as a browser without scripts sees them, and the forms on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from inspector_kit import ESCAPED, HOSTILE, document, form_key, page, post, refused
from service_kit import BASE, Guarded
from starlette.testclient import TestClient

import foveate
from foveate.engine import Engine
from foveate.receipts.codec import to_json
from foveate.records.render import display_name
from foveate.server.http import create_app
from foveate.server.inspector.record_history import FieldChange
from foveate.store.sqlite.store import SQLiteStore
from foveate.types import Scope
from records import add_record


@pytest.fixture
def hostile(engine: Engine) -> str:
    """A record of a web page, with everything that could pass for something else."""
    values = {
        "tags": ["<b>", "a,b"],
        "entities": ["<i>Redis</i>"],
        "origin": HOSTILE,
        "data": {"<u>": HOSTILE, "nothing": None, "none": 0, "so": False, "deep": {"<u>": [{}]}, "rows": [{"<u>": 1}]},
    }
    return add_record(engine, "note", HOSTILE, trust="web", key='"><script>', **values).record.id


def test_the_list_shows_the_newest_first_in_pages(engine: Engine, client: TestClient) -> None:
    engine.store.add_many([("note", f"Note number {n}", {"tags": ["odd"] if n % 2 else []}) for n in range(7)])
    first = document(client, "/ui/memory?limit=5")
    assert [display_name(row) for row in first["records"]] == [f"Note number {n}" for n in (6, 5, 4, 3, 2)]
    second = document(client, f"/ui/memory?limit=5&after={first['next']}")
    assert [display_name(row) for row in second["records"]][:2] == ["Note number 1", "Note number 0"]
    assert second["next"] is None
    assert len(document(client, "/ui/memory?tag=odd")["records"]) == 3
    assert {row.kind for row in document(client, "/ui/memory?kind=censor")["records"]} == {"censor"}
    assert "Older" in client.get("/ui/memory?limit=5").text


def test_records_of_the_engine_are_listed_only_by_their_kind(engine: Engine, client: TestClient) -> None:
    engine.tasks.push("Ship it")
    shown = document(client, "/ui/memory")
    assert "stack" not in shown["kinds"]
    assert "stack" not in {row.kind for row in shown["records"]}
    assert document(client, "/ui/memory?kind=stack")["records"]


def test_the_list_is_searched_by_words_ids_and_keys(engine: Engine, client: TestClient, hostile: str) -> None:
    fact = engine.search("redis")[0].record.id
    keyed = engine.add("note", "Bread rises overnight", key="bread/1").record.id
    engine.edit(fact, pinned=True)
    engine.edit(hostile, status="retired")
    for words in ("which port has redis", fact):
        assert document(client, "/ui/memory", params={"q": words})["records"][0].id == fact
    assert document(client, "/ui/memory", params={"q": "bread/1"})["records"][0].id == keyed
    assert [row.id for row in document(client, "/ui/memory?status=retired")["records"]] == [hostile]
    html = client.get("/ui/memory").text
    assert ">pinned</span>" in html
    assert ">retired</span>" in html
    assert ESCAPED in html
    assert "<script>alert" not in html


@pytest.mark.parametrize("words", ["!!!", "\u202e", "zzzz qqqq", "x" * 20_000, "100%_'\"\\"])
def test_any_words_are_answered(shared_client: TestClient, words: str) -> None:
    shown, html = page(shared_client, "/ui/memory", params={"q": words})
    assert shown["records"] == []
    assert "No record matches" in html


def test_an_empty_list_says_how_to_fill_it(tmp_path_factory: pytest.TempPathFactory, client: TestClient) -> None:
    assert "No record matches" in client.get("/ui/memory?tag=none").text
    with (
        foveate.open(tmp_path_factory.mktemp("new"), personal=False) as engine,
        TestClient(create_app(engine), base_url=BASE) as empty,
    ):
        assert "foveate add fact" in empty.get("/ui/memory").text


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/ui/memory?kind=fcat", 422, "Did you mean &#39;fact&#39;?"),
        ("/ui/memory?status=actve", 422, "Did you mean &#39;active&#39;?"),
        ("/ui/memory?after=!!", 422, "is not a cursor"),
        ("/ui/memory?limit=0", 422, "limit must be a number from 1"),
        ("/ui/record", 422, "needs the id of a record"),
        ("/ui/record?id=x&tab=graph", 422, "tab must be one of text, history, links, used"),
        ("/ui/record?id=fact_none", 404, "No record &#39;fact_none&#39;"),
        ("/ui/record?id=%3Cscript%3E", 404, "&lt;script&gt;"),
        ("/ui/record?id=code:a.py::f", 404, "No record"),
        ("/ui/forget?id=fact_none", 404, "No record"),
    ],
)
def test_bad_input_is_answered_by_a_page_that_says_what_to_do(
    shared_client: TestClient, address: str, status: int, said: str
) -> None:
    answer = shared_client.get(address)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert said in answer.text


def test_a_record_is_shown_at_three_levels_with_its_tokens_fields_and_links(engine: Engine, client: TestClient) -> None:
    redis = engine.add("entity", "Redis", data={"name": "Redis"}).record.id
    text = "Chose Redis for sessions. " + "It is quick, small and known to all of us here. " * 20
    values = {"rationale": "It is quick.", "alternatives": ["Memcached"], "confidence": 0.7}
    id = add_record(
        engine, "decision", text, entities=["Redis"], paths=["src/session.py"], tags=["cache"], **values
    ).record.id
    engine.link(id, "about", redis, weight=0.9)
    found = document(client, f"/ui/record?id={id}")
    assert [level.level for level in found["levels"]] == ["full", "summary", "micro"]
    sizes = [level.tokens for level in found["levels"]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < sizes[0]
    assert found["levels"][0].text.rstrip().endswith("Instead of: Memcached")
    assert found["record"].stage == "recorded"
    html = client.get(f"/ui/record?id={id}").text
    assert 'href="/ui/memory?q=Redis&amp;kind=entity"' in html
    assert 'href="/ui/code?q=src%2Fsession.py"' in html
    links = document(client, f"/ui/record?id={id}&tab=links")["links"]
    assert [(link.name, link.is_incoming, link.record.id) for link in links] == [("about", False, redis)]
    back, html = page(client, f"/ui/record?id={redis}&tab=links")
    assert [(link.is_incoming, link.record.id) for link in back["links"]] == [(True, id)]
    assert "← about" in html


def test_a_chain_of_values_stands_in_order_and_disputes_are_links(engine: Engine, client: TestClient) -> None:
    first = engine.search("redis")[0].record
    keyed = {"subject": "redis", "attribute": "port"}
    second, third = (
        add_record(engine, "fact", f"Redis runs on port {port}", valid_from=year, **keyed).record.id
        for port, year in ((7000, "2027-01-01"), (8000, "2028-01-01"))
    )
    claim = add_record(engine, "fact", "Redis runs on port 1", trust="web", valid_from="2029-01-01", **keyed).record.id
    for id in (first.id, second, third):
        shown, html = page(client, f"/ui/record?id={id}&tab=history")
        assert [row.id for row in shown["chain"]] == [first.id, second, third]
        assert html.count("this record") == 1
    assert document(client, f"/ui/record?id={first.id}")["record"].stage == "superseded"
    links = document(client, f"/ui/record?id={third}&tab=links")["links"]
    assert ("disputed_by", True, claim) in [(link.name, link.is_incoming, link.record.id) for link in links]


def test_a_record_tells_where_it_was_used_and_what_became_of_it(engine: Engine, client: TestClient) -> None:
    fact = engine.search("redis")[0].record.id
    context = engine.context("Which port has redis?", budget=2000)
    engine.feedback(context, answer=f"It is 6379, says {fact}.")
    engine.feedback(context, useful=[fact])
    found, html = page(client, f"/ui/record?id={fact}&tab=used")
    (use,) = found["uses"]
    assert use.receipt.id == context.id
    assert (use.is_used, use.mark) == (True, "useful")
    assert use.entry.tokens > 0
    assert f'href="/ui/context?id={context.id}"' in html


def test_contexts_are_not_told_to_a_token_that_may_not_read_them(guarded: Guarded) -> None:
    fact = guarded.engine.search("redis")[0].record.id
    guarded.engine.context("A confidential question on redis", budget=2000)
    address = f"/ui/record?id={fact}&tab=used"
    html = guarded.client.get(address, headers=guarded.headers("memory:read")).text
    assert "confidential" not in html
    assert "does not allow reading contexts" in html
    assert "confidential" in guarded.client.get(address, headers=guarded.headers()).text


def test_the_history_says_what_each_change_changed(engine: Engine, client: TestClient) -> None:
    fact = engine.search("redis")[0].record.id
    engine.edit(fact, text="Redis runs on port 7000", tags=["cache"])
    engine.edit(fact, pinned=True)
    engine._memory.count_uses([fact])
    history = document(client, f"/ui/record?id={fact}&tab=history")["versions"]
    assert [(step.number, step.verb) for step in history] == [(3, "pin"), (2, "edit"), (1, "add")]
    assert history[0].changes == (FieldChange("pinned", "false", "true"),)
    fields = {change.field: (change.before, change.after) for change in history[1].changes}
    assert fields == {"text": ("Redis runs on port 6379", "Redis runs on port 7000"), "tags": ("", "cache")}
    engine.edit(fact, text="a" * 5000 + "old" + "b" * 5000)
    engine.edit(fact, text="a" * 5000 + "new" + "b" * 5000)
    change = document(client, f"/ui/record?id={fact}&tab=history")["versions"][0].changes[0]
    assert "old" in change.before
    assert "new" in change.after
    assert len(change.after) < 400


def test_hostile_words_are_shown_as_words_and_quoted_as_the_model_gets_them(client: TestClient, hostile: str) -> None:
    found = document(client, f"/ui/record?id={hostile}")
    assert found["record"].text == HOSTILE
    assert all(level.text.startswith("<data-") for level in found["levels"])
    for address in (f"/ui/record?id={hostile}", f"/ui/record?id={hostile}&tab=history", f"/ui/forget?id={hostile}"):
        html = client.get(address).text
        assert ESCAPED in html
        assert "{{7*7}}" in html
        for raw in ("<script>alert", "<img", "<u>", "<i>Redis", '""><script'):
            assert raw not in html


def test_an_edit_writes_what_was_changed_and_nothing_else(engine: Engine, client: TestClient, hostile: str) -> None:
    address = f"/ui/record?id={hostile}"
    before = engine.get(hostile)
    answer = post(client, address, "record-edit", id=hostile, expect=1, text="Two\r\nlines", tags="x, <y>", title="A title")
    assert answer.status_code == 303
    target = urlsplit(answer.headers["location"])
    assert (target.path, parse_qs(target.query)["id"]) == ("/ui/record", [hostile])
    assert "Saved as version 2." in client.get(answer.headers["location"]).text
    after = engine.get(hostile)
    assert (after.text, after.tags, after.data["title"]) == ("Two\nlines", ("x", "<y>"), "A title")
    assert (after.trust, after.origin, after.key, after.data["<u>"]) == (
        "web",
        before.origin,
        before.key,
        before.data["<u>"],
    )
    engine.edit(hostile, tags=["a,b", "c"])
    same = post(client, address, "record-edit", id=hostile, expect=3, text="Two\r\nlines", tags="a,b, c", title="A title")
    assert "Nothing+was+changed" in same.headers["location"]
    assert (engine.get(hostile).version, engine.get(hostile).tags) == (3, ("a,b", "c"))


def test_somebody_elses_change_is_never_overwritten(engine: Engine, client: TestClient) -> None:
    fact = engine.search("redis")[0].record.id
    address = f"/ui/record?id={fact}"
    key = form_key(client.get(address).text)
    engine.edit(fact, text="Somebody else's words")
    for action, fields in (("record-edit", {"text": "Mine"}), ("record-undo", {})):
        answer = client.post(f"/ui/{action}", data={"form": key, "id": fact, "expect": "1", **fields})
        assert answer.status_code == 409
        assert "somebody changed it since. Nothing was written." in answer.text
    assert engine.get(fact).text == "Somebody else's words"
    lacking = post(client, address, "record-edit", id=fact, text="Mine")
    assert (lacking.status_code, engine.get(fact).version) == (422, 2)


@pytest.mark.parametrize(
    ("action", "fields", "said", "holds"),
    [
        ("record-pin", {"pinned": 1}, "Pinned", lambda r: r.pinned),
        ("record-pin", {"pinned": 0}, "No longer pinned", lambda r: not r.pinned),
        ("record-confirm", {}, "Confirmed; 1 confirmation so far", lambda r: r.data["confirmations"] == 1),
        ("record-retire", {}, "Retired", lambda r: r.status == "retired"),
        ("record-outcome", {"outcome": "failure"}, "outcome is failure", lambda r: r.outcome == "failure"),
    ],
)
def test_each_button_does_what_it_says(
    engine: Engine, client: TestClient, action: str, fields: dict[str, Any], said: str, holds: Any
) -> None:
    fact = engine.search("redis")[0].record.id
    if fields == {"pinned": 0}:  # an edit that changes nothing makes no version that could be undone
        engine.edit(fact, pinned=True)
    version = engine.get(fact).version
    answer = post(client, f"/ui/record?id={fact}", action, id=fact, **fields)
    assert answer.status_code == 303
    assert said in client.get(answer.headers["location"]).text
    assert holds(engine.get(fact))
    post(client, f"/ui/record?id={fact}", "record-undo", id=fact, expect=version + 1)
    assert engine.history(fact)[-1].verb == "undo"


def test_a_censor_counts_false_alarms_and_bad_values_change_nothing(engine: Engine, client: TestClient) -> None:
    censor, fact = engine.search("production")[0].record.id, engine.search("redis")[0].record.id
    post(client, f"/ui/record?id={censor}", "record-false-alarm", id=censor)
    assert engine.get(censor).data["false_alarms"] == 1
    for action, fields, said in (
        ("record-outcome", {"id": fact, "outcome": "great"}, "is not a value of outcome"),
        ("record-pin", {"id": "fact_none", "pinned": 1}, "No record"),
        ("record-confirm", {}, "needs the id of a record"),
    ):
        answer = post(client, f"/ui/record?id={fact}", action, **fields)
        assert answer.status_code in (404, 422)
        assert said in answer.text
    assert engine.get(fact).version == 1


def test_a_person_vouches_for_what_a_page_said(engine: Engine, client: TestClient, hostile: str) -> None:
    refused_pin = post(client, f"/ui/record?id={hostile}", "record-pin", id=hostile, pinned=1)
    assert refused_pin.status_code == 422
    answer = post(client, f"/ui/record?id={hostile}", "record-promote", id=hostile, kind="instruction")
    (made,) = parse_qs(urlsplit(answer.headers["location"]).query)["id"]
    assert (engine.get(made).kind, engine.get(made).trust) == ("instruction", "user")
    assert engine.get(hostile).status == "retired"


def test_forgetting_says_what_goes_wants_a_word_and_leaves_nothing(engine: Engine, client: TestClient) -> None:
    fact = engine.search("redis")[0].record.id
    engine.edit(fact, text="Redis runs on port 7000")
    context = engine.context("Which port has redis?", budget=2000)
    address = f"/ui/forget?id={fact}"
    shown = document(client, address)
    assert (shown["versions"], shown["links"], shown["contexts"], shown["has_more_contexts"]) == (1, 0, 1, False)
    wrong = post(client, address, "record-forget", id=fact, word="yes")
    assert wrong.status_code == 422
    assert "Nothing was deleted" in wrong.text
    assert engine.get(fact)
    answer = post(client, address, "record-forget", id=fact, word=fact)
    assert answer.headers["location"].startswith("/ui/memory?done=Deleted")
    assert "for good: 1 record, 1 earlier version, 1 receipt." in client.get(answer.headers["location"]).text
    assert client.get(f"/ui/record?id={fact}").status_code == 404
    assert fact not in str(to_json(engine.receipts.get(context.id)))
    assert "7000" not in client.get(answer.headers["location"]).text


def test_kept_answers_of_the_service_go_with_a_forgotten_record(engine: Engine, client: TestClient) -> None:
    asked = {"json": {"kind": "note", "text": "A confidential note"}, "headers": {"Idempotency-Key": "once"}}
    id = client.post("/v1/records", **asked).json()["id"]
    post(client, f"/ui/forget?id={id}", "record-forget", id=id, word="forget")
    assert client.post("/v1/records", **asked).json()["id"] != id


@pytest.mark.parametrize(
    ("action", "needs", "fields"),
    [
        ("record-edit", "memory:write", {"text": "Mine", "expect": "1"}),
        ("record-pin", "memory:write", {"pinned": "1"}),
        ("record-confirm", "memory:write", {}),
        ("record-retire", "memory:write", {}),
        ("record-outcome", "memory:write", {"outcome": "success"}),
        ("record-false-alarm", "memory:write", {}),
        ("record-undo", "memory:write", {"expect": "1"}),
        ("record-promote", "admin", {}),
        ("record-forget", "admin", {"word": "forget"}),
    ],
)
def test_every_form_is_ours_and_needs_its_scope(guarded: Guarded, action: str, needs: str, fields: dict[str, str]) -> None:
    fact = guarded.engine.search("redis")[0].record.id
    refused(guarded, f"/ui/record?id={fact}", action, needs, id=fact, **fields)
    assert guarded.engine.get(fact).version == 1


def test_the_page_before_forgetting_is_for_whoever_may(guarded: Guarded) -> None:
    fact = guarded.engine.search("redis")[0].record.id
    writer = guarded.headers("memory:read", "memory:write")
    assert guarded.client.get(f"/ui/forget?id={fact}", headers=writer).status_code == 403
    assert "Forget…" not in guarded.client.get(f"/ui/record?id={fact}", headers=writer).text
    assert "Forget…" in guarded.client.get(f"/ui/record?id={fact}", headers=guarded.headers()).text


def test_a_users_record_is_changed_for_that_user_and_hidden_from_others(engine: Engine, client: TestClient) -> None:
    ann = engine.scoped(user="ann")
    note = ann.add("note", "Ann's note").record.id
    assert client.get(f"/ui/record?id={note}").status_code == 404
    address = f"/ui/record?id={note}&user=ann"
    assert 'action="/ui/record-pin?user=ann"' in client.get(address).text
    key = form_key(client.get(address).text)
    body = {"form": key, "id": note, "pinned": "1", "user": "ann"}
    answer = client.post("/ui/record-pin?user=ann", data=body, follow_redirects=False)
    assert parse_qs(urlsplit(answer.headers["location"]).query)["user"] == ["ann"]
    assert ann.get(note).pinned


def test_a_record_of_the_personal_store_says_so_and_is_changed_there(
    tmp_path: Path, engine: Engine, client: TestClient
) -> None:
    object.__setattr__(engine.store.data, "personal", SQLiteStore(tmp_path / "own.db"))
    mine = engine.add("instruction", "Always answer in Celsius", personal=True).record.id
    found, html = page(client, "/ui/memory?q=celsius")
    assert found["records"][0].id == mine
    assert "In your personal store" in html
    address = f"/ui/record?id={mine}"
    assert "personal store" in client.get(address).text
    post(client, address, "record-edit", id=mine, expect=1, text="Always answer in Kelvin", tags="")
    with engine.store.data.personal.read(Scope("~")) as reader:
        assert reader.get([mine])[mine].text == "Always answer in Kelvin"
    post(client, f"/ui/forget?id={mine}", "record-forget", id=mine, word="forget")
    assert client.get(address).status_code == 404
