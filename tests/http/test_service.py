"""What the service answers, endpoint by endpoint where it matters: contexts, records, pages, keys, tags, figures."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest.mock import Mock

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from service_kit import BASE, Guarded, problem
from starlette.testclient import TestClient

from foveate.engine import Engine
from foveate.engine.store_tools import StoreTools
from foveate.errors import Busy, Denied, Interrupted, StoreError
from foveate.server.http import Settings, create_app

QUERY = {"query": "What did we choose for storage?", "budget": 2000}


def computed(client: TestClient, **more: object) -> dict:
    response = client.post("/v1/contexts", json={**QUERY, **more})
    assert response.status_code == 200, response.text
    return response.json()


# --- contexts ------------------------------------------------------------------------------------------------------


def test_a_context_over_http_is_the_engines_own(client: TestClient, engine: Engine) -> None:
    found = computed(client)
    assert found["schema_version"] == 1
    assert found["text"] == engine.context(**QUERY).text
    assert "Chose Postgres" in found["text"]


def test_questions_about_a_context_are_answered_from_its_receipt(client: TestClient, engine: Engine) -> None:
    found = computed(client)
    item = found["items"][0]["id"]
    at = f"/v1/contexts/{found['id']}"
    assert client.get(at).json()["id"] == found["id"]
    assert client.get(f"{at}/why/{item}").json()["kept"] is True
    assert client.get(f"{at}/why/{engine.store.page(1)[0][0].id}").status_code == 200
    parts = client.get(at, params={"include": "candidates,text,validation"}).json()
    assert {part["id"] for part in parts["candidates"] if part["kept"]} == {part["id"] for part in found["items"]}
    assert parts["text"] == found["text"]
    assert parts["validation"]["valid"] is True
    assert "candidates" not in client.get("/v1/contexts/last").json()
    replayed = client.post(f"{at}/replay").json()
    assert (replayed["same"], replayed["reason"], replayed["text"]) == (True, "", found["text"])


def test_what_changed_between_two_contexts(client: TestClient) -> None:
    one = computed(client)
    client.post("/v1/records", json={"kind": "decision", "text": "The storage is backed up every night"})
    other = computed(client)
    found = client.get(f"/v1/contexts/{one['id']}/diff/{other['id']}").json()
    assert [entry["slot"] for entry in found["added"]] == ["decisions"]


def test_feedback_and_marks_reach_the_receipt(client: TestClient) -> None:
    found = computed(client)
    item, at = found["items"][-1]["id"], f"/v1/contexts/{found['id']}"
    answer = {"context": found["id"], "answer": "We chose Postgres over ChromaDB.", "useful": [item]}
    used = client.post("/v1/feedback", json=answer).json()
    assert any(id.startswith("decision_") for id in used["used"])
    assert client.get(at).json()["notes"]["marks"] == {item: "useful"}


def test_the_same_bytes_have_the_same_tag_and_are_not_sent_again(client: TestClient) -> None:
    first, second = (client.post("/v1/contexts", json=QUERY) for _ in range(2))
    assert first.headers["etag"] == second.headers["etag"]
    at = first.headers["content-location"]
    again = client.get(at, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    client.post("/v1/records", json={"kind": "decision", "text": "The storage is backed up every night"})
    assert client.post("/v1/contexts", json=QUERY).headers["etag"] != first.headers["etag"]


def test_a_budget_that_is_too_small_says_by_how_much(client: TestClient) -> None:
    found = problem(client.post("/v1/contexts", json={**QUERY, "budget": 5}))
    assert found["status"] == 409
    assert found["type"].endswith("BudgetError")
    assert found["short"] > 0


def test_records_of_web_pages_are_found_and_shown_as_in_python(client: TestClient, engine: Engine) -> None:
    added = client.post("/v1/records", json={"kind": "fact", "text": "Postgres 18 has async IO", "trust": "web"}).json()
    question = {"query": "What does Postgres 18 have?", "budget": 2000}
    assert client.post("/v1/contexts", json=question).json()["text"] == engine.context(**question).text
    assert "async IO" in engine.context(**question).text
    hits = client.post("/v1/search", json={"query": "async IO"}).json()["hits"]
    assert [hit["record"]["id"] for hit in hits] == [added["id"]]
    trusted = {**question, "filters": {"min_trust": "tool"}}
    assert "async IO" not in client.post("/v1/contexts", json=trusted).json()["text"]


@pytest.mark.parametrize("since", ["7d", "2020-01-01", "2020-01-01T12:00Z"])
def test_times_are_read_alike_everywhere(client: TestClient, since: str) -> None:
    filters = {"filters": {"since": since}}
    assert client.post("/v1/search", json={"query": "postgres", **filters}).json()["hits"]
    assert "Postgres" in client.post("/v1/contexts", json={**QUERY, **filters}).json()["text"]
    (record,) = client.get("/v1/records", params={"since": since, "kind": "decision"}).json()["records"]
    note = {"kind": "note", "text": "Valid from then on", "valid_from": since}
    assert client.post("/v1/records", json=note).status_code == 201
    as_of = client.get(f"/v1/records/{record['id']}", params={"as_of": since})
    assert "did not exist at that time" in problem(as_of)["detail"]


def test_times_that_are_none_are_refused_everywhere(client: TestClient) -> None:
    wrong = {"filters": {"since": "yesterday"}}
    for answer in (
        client.post("/v1/search", json={"query": "x", **wrong}),
        client.post("/v1/contexts", json={"query": "x", **wrong}),
        client.get("/v1/records", params={"since": "yesterday"}),
        client.get("/v1/records/fact_x", params={"as_of": "yesterday"}),
        client.post("/v1/records", json={"kind": "note", "text": "x", "valid_to": "yesterday"}),
    ):
        found = problem(answer)
        assert found["status"] == 422
        assert "2026-11-15" in found["detail"]


def test_last_is_the_latest_context_everywhere(client: TestClient) -> None:
    first, second = computed(client), computed(client, query="Which port has redis?")
    assert client.get("/v1/contexts/last").json()["id"] == second["id"]
    assert client.get(f"/v1/contexts/last/why/{first['items'][0]['id']}").status_code == 200
    assert client.get(f"/v1/contexts/{first['id']}/diff/last").status_code == 200
    assert client.post("/v1/contexts/last/replay").json()["same"] is True
    assert client.post("/v1/feedback", json={"context": "last", "answer": "6379"}).json()["context"] == second["id"]
    assert client.post("/v1/contexts", json={"query": "Which port has redis?", "previous": "last"}).json()["context"] is None


def test_two_marks_of_one_item_are_refused(client: TestClient) -> None:
    id = computed(client)["items"][0]["id"]
    found = problem(client.post("/v1/feedback", json={"context": "last", "useful": [id], "wrong": [id]}))
    assert found["status"] == 422
    assert f"{id!r} is marked as useful and as wrong" in found["detail"]


def test_a_context_is_computed_again_only_if_it_no_longer_fits(client: TestClient) -> None:
    first = computed(client)
    again = client.post("/v1/contexts", json={**QUERY, "previous": first["id"]}).json()
    assert (again["reason"], again["context"]) == ("", None)
    event = client.post("/v1/contexts", json={"previous": first["id"], "event": "The database moved to a new host"}).json()
    assert event["reason"] == "event"
    assert event["context"]["id"] != first["id"]
    refused = problem(client.post("/v1/contexts", json={"previous": first["id"], "dry_run": True}))
    assert refused["detail"].startswith("dry_run does not apply to a refresh")


def test_a_dry_run_leaves_no_receipt(client: TestClient) -> None:
    response = client.post("/v1/contexts", json={**QUERY, "dry_run": True, "include": ["anthropic", "computed"]})
    assert {"anthropic", "computed", "items"} <= response.json().keys()
    assert "content-location" not in response.headers
    assert client.get("/v1/contexts").json()["contexts"] == []


def test_sessions_are_listed_with_their_contexts(client: TestClient) -> None:
    for _ in range(2):
        computed(client, session="monday")
    (session,) = client.get("/v1/contexts", params={"group": "session"}).json()["sessions"]
    assert (session["name"], session["contexts"]) == ("monday", 2)


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v1/contexts", {"query": "x", "budgt": 5}, "body.budgt: No such field. Did you mean 'budget'?"),
        (
            "/v1/search",
            {"query": "x", "filters": {"sinse": "7d"}},
            "body.filters.sinse: No such field. Did you mean 'since'?",
        ),
    ],
)
def test_an_unknown_field_is_refused_with_the_nearest_known_one(
    shared_client: TestClient, path: str, body: dict, says: str
) -> None:
    assert problem(shared_client.post(path, json=body))["detail"] == says


def test_records_of_internal_kinds_are_in_no_list(client: TestClient) -> None:
    client.post("/v1/tasks", params={"session": "s"}, json={"name": "Ship it", "push": True})
    client.post("/v1/tasks", json={"name": "Add login", "key": "login"})
    client.post("/v1/claims", json={"agent": "coder", "task": "login"})
    kinds = {record["kind"] for record in client.get("/v1/records", params={"limit": 500}).json()["records"]}
    assert kinds == {"decision", "fact", "censor", "task"}
    assert client.get("/v1/stats").json()["records"].keys() == kinds
    assert "lease" not in problem(client.post("/v1/records", json={"kind": "rule", "text": "x"}))["detail"]


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (Busy("Others are writing."), 503, "1"),
        (Interrupted("It went away."), 503, "1"),
        (Denied("Not this role."), 403, None),
    ],
)
def test_errors_of_the_database_are_problems(
    client: TestClient, engine: Engine, monkeypatch: pytest.MonkeyPatch, error: StoreError, status: int, retry_after: str
) -> None:
    monkeypatch.setattr(StoreTools, "stats", Mock(side_effect=error))
    answer = client.get("/v1/stats")
    assert problem(answer)["type"] == f"urn:foveate:error:{type(error).__name__}"
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, retry_after)


# --- records -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/v1/contexts/last/diff/last?include=text", "'include': this endpoint has agent, session, task, user."),
        ("/v1/contexts?sesion=monday", "'sesion': this endpoint has after, agent, group, limit, session, task, user."),
        ("/healthz?full=1", "'full': this endpoint takes none."),
    ],
)
def test_an_unknown_parameter_is_refused_with_the_known_ones(shared_client: TestClient, path: str, detail: str) -> None:
    refused = problem(shared_client.get(path))
    assert refused["status"] == 422
    assert refused["problems"] == [f"No parameter {detail}"]


@pytest.mark.parametrize(
    ("method", "path", "body", "remedy"),
    [
        ("GET", "/v1/records/fact_x", None, "`POST /v1/search` finds records by their words."),
        ("GET", "/v1/contexts/ctx_x", None, "`GET /v1/contexts` lists those that are stored."),
        ("GET", "/v1/tasks/nope", None, "`GET /v1/tasks` shows them."),
        ("POST", "/v1/contexts", {}, '`POST /v1/tasks {"push": true}`'),
        ("POST", "/v1/links", {"source": "Mira", "name": "owns", "target": "It"}, "`GET /v1/records?kind=entity`"),
        ("PATCH", "/v1/records/{fact}", {"trust": "tool", "pinned": True}, '`POST /v1/inbox/{id} {"action": "accept"}`'),
    ],
)
def test_an_error_names_a_request_as_the_remedy(
    client: TestClient, engine: Engine, method: str, path: str, body: dict | None, remedy: str
) -> None:
    path = path.replace("{fact}", engine.search("redis")[0].record.id)
    found = problem(client.request(method, path, json=body))
    assert remedy in found["detail"]
    assert "foveate" not in found["detail"]
    assert all("`foveate" not in text for text in found.get("problems", ()))


def test_advice_after_feedback_names_requests(client: TestClient, engine: Engine) -> None:
    fact = engine.search("redis")[0].record.id
    client.post("/v1/contexts", json={"query": "Which port has redis?"})
    advice = client.post("/v1/feedback", json={"context": "last", "outdated": [fact]}).json()["advice"][fact]
    retire, edit = f'`PATCH /v1/records/{fact} {{"status": "retired"}}`', f"`PATCH /v1/records/{fact}`"
    assert advice == f"Retire it with {retire}, or give it its new text with {edit}."


def test_a_record_is_kept_changed_taken_back_and_forgotten(client: TestClient) -> None:
    added = client.post("/v1/records", json={"kind": "note", "text": "Deploys are on Fridays", "tags": ["deploy"]})
    assert added.status_code == 201
    at = added.headers["location"]
    assert client.get(at).headers["etag"] == '"1"'
    assert client.patch(at, json={"text": "Deploys are on Mondays"}, headers={"If-Match": '"1"'}).json()["version"] == 2
    assert problem(client.patch(at, json={"text": "Never"}, headers={"If-Match": '"1"'}))["status"] == 412
    weak = problem(client.patch(at, json={"text": "Never"}, headers={"If-Match": 'W/"2"'}))
    assert (weak["status"], "without W/" in weak["detail"]) == (412, True)
    assert client.get(at).json()["record"]["text"] == "Deploys are on Mondays"
    assert problem(client.patch(at, json={"text": "Never", "expect_version": 1}))["status"] == 409
    assert client.patch(at, json={"pinned": True}).json()["record"]["pinned"] is True
    assert client.patch(at, json={"status": "retired"}).json()["record"]["status"] == "retired"
    assert client.post(f"{at}/undo").json()["undone"][0]["status"] == "active"
    assert client.delete(at).json()["counts"]["records"] == 1
    assert problem(client.get(at))["status"] == 404


def test_many_records_are_kept_or_none(client: TestClient, engine: Engine) -> None:
    rows = [{"kind": "note", "text": f"Note number {n} of the release"} for n in range(3)]
    assert len(client.post("/v1/records", json=rows).json()["ids"]) == 3
    wrong = [*rows, {"kind": "nonsense", "text": "x"}, {"kind": "note", "text": ""}]
    found = problem(client.post("/v1/records", json=wrong))
    assert [part.partition(":")[0] for part in found["problems"]] == ["body.3", "body.4"]
    assert engine.store.stats().records["note"] == {"active": 3}


def test_pages_are_stable_while_records_are_added(client: TestClient) -> None:
    for n in range(5):
        client.post("/v1/records", json={"kind": "note", "text": f"Note number {n}"})
    first = client.get("/v1/records", params={"kind": "note", "limit": 2}).json()
    client.post("/v1/records", json={"kind": "note", "text": "A late note"})
    texts, after = [record["text"] for record in first["records"]], first["next"]
    while after:
        page = client.get("/v1/records", params={"kind": "note", "limit": 2, "after": after}).json()
        texts += [record["text"] for record in page["records"]]
        after = page["next"]
    assert texts == [f"Note number {n}" for n in reversed(range(5))]


def test_contexts_are_listed_in_pages_newest_first(client: TestClient) -> None:
    ids = [computed(client, query=f"Question number {n}")["id"] for n in range(5)]
    found, after = [], None
    while True:
        page = client.get("/v1/contexts", params={"limit": 2, **({"after": after} if after else {})}).json()
        found += page["contexts"]
        after = page["next"]
        if not after:
            break
    assert sorted(context["id"] for context in found) == sorted(ids)
    assert len(found) == 5
    receipt = client.get(f"/v1/contexts/{found[0]['id']}?include=candidates").json()
    assert found[0]["query"] == receipt["request"]["query"]
    assert (found[0]["tokens"], found[0]["scope"]) == (receipt["budget"]["used"], receipt["request"]["scope"])
    assert found[0]["items"] + found[0]["left_out"] == len(receipt["candidates"])


@pytest.mark.parametrize("path", ["/v1/records", "/v1/contexts"])
@pytest.mark.parametrize("cursor", ["x", "W10", "bnVsbA", "WzEsMiwzXQ", "é", "WyJhIiwxXQ"])
def test_a_cursor_that_is_none_is_refused(client: TestClient, path: str, cursor: str) -> None:
    assert "cursor" in problem(client.get(path, params={"after": cursor}))["detail"]


def test_search_and_checks(client: TestClient) -> None:
    hits = client.post("/v1/search", json={"query": "postgres", "kinds": ["decision"]}).json()["hits"]
    assert hits[0]["record"]["kind"] == "decision"
    assert client.post("/v1/check", json={"action": "drop database prod"}).json()["blocked"] is True


def test_search_tells_a_token_of_no_other_project(guarded: Guarded) -> None:
    guarded.engine.add("note", "Redis has port 6380")
    search = {"json": {"query": "redis"}}
    found = guarded.client.post("/v1/search", headers=guarded.headers(project="mian"), **search).json()
    assert (found["hits"], found["warnings"]) == ([], ["The store has no project 'mian'."])
    assert guarded.engine.scoped(project="mian").store.unknown_project() == "The store has no project 'mian'."
    assert "warnings" not in guarded.client.post("/v1/search", headers=guarded.headers(), **search).json()


def test_messages_are_stored_once(client: TestClient) -> None:
    messages = [
        {"role": "user", "content": "Is the build green?", "id": "m1"},
        {"role": "assistant", "content": "It is.", "id": "m2"},
    ]
    body = {"messages": messages, "session": "s1"}
    assert client.post("/v1/remember", json={**body, "dry_run": True}).json()["stored"] == 2
    assert client.post("/v1/remember", json=body).json()["stored"] == 2
    again = client.post("/v1/remember", json=body).json()
    assert (again["stored"], again["known"]) == (0, 2)
    assert client.post("/v1/remember", json={"messages": {"role": "user", "content": "One"}}).json()["stored"] == 1
    assert client.post("/v1/remember", json={"messages": "Another"}).json()["stored"] == 1
    wrong = problem(client.post("/v1/remember", json={"messages": [{"role": "usr", "content": "x"}, 5]}))
    assert [each.partition(": ")[0] for each in wrong["problems"]] == ["body.messages.0.role", "body.messages.1"]


def test_messages_belong_to_a_user_and_a_session(guarded: Guarded) -> None:
    client, engine = guarded.client, guarded.engine
    body = {"messages": "The staging database is called larkspur", "user": "ada", "session": "s1"}
    assert client.post("/v1/remember", json=body, headers=guarded.headers()).json()["stored"] == 1
    (record,) = engine.scoped(user="ada").records(kinds=["event"])
    assert (record.scope.user, record.scope.session) == ("ada", "s1")
    question = {"query": "What is the staging database called?", "session": "s1"}
    for user, is_shown in (("ada", True), ("bob", False)):
        found = client.post("/v1/contexts", json={**question, "user": user}, headers=guarded.headers()).json()
        assert ("larkspur" in found["text"]) is is_shown
    refused = client.post("/v1/remember", json=body, headers=guarded.headers(user="bob"))
    assert refused.status_code == 403


def test_many_sessions_without_a_user_are_warned_of_once(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(30):
        client.post("/v1/remember", json={"messages": "Hello", "session": f"s{number}"})
    (warning,) = [record.message for record in caplog.records if record.name == "foveate.sessions"]
    assert "More than 20 sessions without a user share one memory" in warning


# --- tasks ---------------------------------------------------------------------------------------------------------


def test_a_task_is_claimed_worked_on_and_learned_from(client: TestClient) -> None:
    task = client.post("/v1/tasks", json={"name": "Add login", "key": "login"}).json()["id"]
    claimed = client.post("/v1/claims", json={"agent": "coder", "budget": 4000}).json()
    assert (claimed["task"]["status"], claimed["claim"]["agent"]) == ("active", "coder")
    assert "Add login" in claimed["context"]["text"]
    assert [claim["task"] for claim in client.get("/v1/claims").json()["claims"]] == [task]
    assert problem(client.post("/v1/claims", json={"agent": "tester", "task": "login"}))["status"] == 409
    handoff = {"summary": "Login works", "gotchas": [{"issue": "Tokens expire after an hour", "severity": "high"}]}
    at = f"/v1/tasks/{task}/handoff"
    assert client.post(at, json={"handoff": handoff, "dry_run": True}).json()["counts"]["gotcha"]["added"] == 1
    assert client.get("/v1/tasks/login").json()["task"]["status"] == "active"
    client.post(at, json={"handoff": handoff, "agent": "coder"})
    found = client.get(f"/v1/tasks/{task}").json()
    assert found["task"]["status"] == "completed"
    assert [record["kind"] for record in found["learned"]] == ["gotcha"]
    assert client.get("/v1/claims").json()["claims"] == []
    assert client.get("/v1/tasks/login/handoff").json()["task"] == task
    assert client.post("/v1/claims", json={"agent": "coder"}).json()["claim"] is None


def test_a_claim_is_released_by_its_id(client: TestClient) -> None:
    client.post("/v1/tasks", json={"name": "Add login", "key": "login"})
    claim = client.post("/v1/claims", json={"agent": "coder"}).json()["claim"]
    assert client.delete(f"/v1/claims/{claim['id']}").json()["released"] == 1
    assert client.get("/v1/tasks/login").json()["task"]["status"] == "open"
    assert problem(client.delete(f"/v1/claims/{claim['id']}"))["status"] == 404


def test_the_example_of_a_task_in_document_001_can_be_added(client: TestClient) -> None:
    task = {
        "name": "Implement token refresh",
        "objective": "Add automatic token refresh mechanism",
        "estimated_time": 4,
        "files": [{"path": "src/auth/refresh.ts", "operation": "create"}],
        "steps": [{"text": "Create the refresh endpoint", "code": "refresh()"}, "Test it"],
        "acceptance_criteria": ["Tokens refresh automatically"],
    }
    added = client.post("/v1/tasks", json=task)
    assert added.status_code == 201, added.text
    found = client.get(added.headers["location"]).json()["record"]
    assert found["data"]["files"][0]["path"] == "src/auth/refresh.ts"
    assert "4" in str(found["data"]["estimated_time"])


def test_a_task_is_edited_blocked_failed_and_completed(client: TestClient) -> None:
    at = client.post("/v1/tasks", json={"name": "Add login"}).headers["location"]
    assert client.patch(at, json={"name": "Add sign-in"}).json()["task"]["name"] == "Add sign-in"
    blocked = client.patch(at, json={"status": "blocked", "reason": "No test account"}).json()["task"]
    assert (blocked["status"], blocked["reason"]) == ("blocked", "No test account")
    assert client.patch(at, json={"status": "failed", "reason": "Given up"}).json()["task"]["status"] == "failed"
    wrong = problem(client.patch(at, json={"status": "completed", "name": "x"}))
    assert wrong["detail"] == "name does not apply to status 'completed'."
    done = client.patch(at, json={"status": "completed", "result": "It works", "outcome": "partial"}).json()["task"]
    assert (done["status"], done["result"]) == ("completed", "It works")


@pytest.mark.parametrize("report", ["summary: &a Done\ngotchas: [*a]", "Done, and that is all I say."])
def test_a_handoff_that_cannot_be_read_is_stored_with_its_problems(client: TestClient, report: str) -> None:
    client.post("/v1/tasks", json={"name": "Add login", "key": "login"})
    learned = client.post("/v1/tasks/login/handoff", json={"handoff": report}).json()
    stored = client.get("/v1/tasks/login/handoff").json()["handoff"]
    assert stored["text"] == report
    assert stored["data"]["problems"] == learned["problems"] != []


def test_each_session_has_a_stack_of_its_own(client: TestClient) -> None:
    today = {"session": "today"}
    for goal in ("Ship the release", "Fix the build"):
        client.post("/v1/tasks", params=today, json={"name": goal, "push": True})
    path = client.get("/v1/tasks/current", params=today).json()["path"]
    assert [frame["objective"] for frame in path] == ["Ship the release", "Fix the build"]
    assert problem(client.get("/v1/tasks/current", params={"session": "another"}))["status"] == 404
    client.patch("/v1/tasks/current", params=today, json={"status": "completed", "result": "Green again"})
    assert client.get("/v1/tasks/current", params=today).json()["task"]["objective"] == "Ship the release"


# --- the inbox, exports --------------------------------------------------------------------------------------------


def test_a_proposal_is_accepted_with_other_words(client: TestClient, engine: Engine) -> None:
    id = engine.inbox.propose("instruction", "Run make test").record.id
    (review,) = client.get("/v1/inbox").json()["reviews"]
    assert (review["id"], review["reason"], review["proposed_kind"]) == (id, "proposed", "instruction")
    wrong = problem(client.post(f"/v1/inbox/{id}", json={"action": "reject", "text": "x"}))
    assert wrong["detail"] == "text does not apply to 'reject'."
    accepted = client.post(f"/v1/inbox/{id}", json={"action": "accept", "text": "Run make test before a commit"}).json()
    assert (accepted["record"]["kind"], accepted["record"]["trust"]) == ("instruction", "user")
    assert client.get("/v1/inbox").json()["reviews"] == []


def test_an_export_can_be_imported_elsewhere(client: TestClient, tmp_path_factory: pytest.TempPathFactory) -> None:
    lines = client.get("/v1/export").content
    with TestClient(create_app(tmp_path_factory.mktemp("other")), base_url=BASE) as other:
        done = other.post("/v1/import", content=lines, headers={"Content-Type": "application/x-ndjson"}).json()
        assert done["added"] == 3
        assert other.get("/v1/export").content.count(b"\n") == lines.count(b"\n")


def test_a_backup_is_a_store(client: TestClient) -> None:
    assert client.get("/v1/export?format=sqlite").content.startswith(b"SQLite format 3")


# --- keys ----------------------------------------------------------------------------------------------------------


def test_the_same_request_with_the_same_key_is_done_once(client: TestClient, engine: Engine) -> None:
    headers, body = {"Idempotency-Key": "k1"}, {"kind": "event", "text": "The build failed"}
    first, second = (client.post("/v1/records", json=body, headers=headers) for _ in range(2))
    assert first.json() == second.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert engine.store.stats().records["event"] == {"active": 1}
    other = client.post("/v1/records", json={**body, "text": "Another"}, headers=headers)
    assert problem(other)["status"] == 422


def test_a_key_holds_after_a_restart(client: TestClient, engine: Engine) -> None:
    headers, body = {"Idempotency-Key": "k1"}, {"kind": "event", "text": "The build failed"}
    first = client.post("/v1/records", json=body, headers=headers).json()
    with TestClient(create_app(engine), base_url=BASE) as again:
        assert again.post("/v1/records", json=body, headers=headers).json()["id"] == first["id"]


def test_what_failed_may_be_tried_again_with_its_key(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    active = {"status": "active"}
    assert client.patch("/v1/tasks/later", json=active, headers=headers).status_code == 404
    client.post("/v1/tasks", json={"name": "Later", "key": "later"})
    assert client.patch("/v1/tasks/later", json=active, headers=headers).status_code == 200


def test_an_old_answer_does_not_hold_what_was_forgotten(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    body = {"kind": "note", "text": "A secret of the house", "key": "mine"}
    at = client.post("/v1/records", json=body, headers=headers).headers["location"]
    client.delete(at)
    again = client.post("/v1/records", json=body, headers=headers)
    assert again.headers.get("idempotency-replayed") is None
    assert again.headers["location"] != at


# --- around every request ------------------------------------------------------------------------------------------


def test_every_answer_has_a_request_id_and_keeps_the_callers(client: TestClient) -> None:
    assert len(client.get("/healthz").headers["x-request-id"]) == 32
    assert client.get("/healthz", headers={"X-Request-Id": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert client.get("/nowhere", headers={"X-Request-Id": "a b\tc"}).headers["x-request-id"] != "a b\tc"


def test_a_request_is_one_line_of_json_without_what_was_asked(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "foveate.http"):
        client.post("/v1/contexts?session=hidden", json={"query": "hidden words"})
    (line,) = [record.message for record in caplog.records if record.name == "foveate.http"]
    assert "hidden" not in line
    told = json.loads(line)
    assert (told["method"], told["route"], told["status"], told["token"]) == ("POST", "/v1/contexts", 200, "")
    assert told["ms"] > 0


def test_large_answers_are_compressed_where_that_is_wanted(client: TestClient) -> None:
    assert client.get("/openapi.json", headers={"Accept-Encoding": "gzip"}).headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get("/openapi.json", headers={"Accept-Encoding": "identity"}).headers


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_not_read(engine: Engine, announced: bool) -> None:
    settings = Settings(max_body=2000)
    body = json.dumps({"kind": "note", "text": "x" * 3000}).encode()
    with TestClient(create_app(engine, settings=settings), base_url=BASE) as client:
        content = body if announced else iter([body[:1500], body[1500:]])
        answer = client.post("/v1/records", content=content, headers={"Content-Type": "application/json"})
    assert problem(answer)["status"] == 413
    assert "note" not in engine.store.stats().records


def test_a_caller_that_asks_too_often_is_told_when_to_come_back(engine: Engine) -> None:
    with TestClient(create_app(engine, settings=Settings(rate="3/minute")), base_url=BASE) as client:
        answers = [client.get("/v1/stats") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert client.get("/healthz").status_code == 200


def test_figures_for_prometheus(client: TestClient) -> None:
    computed(client)
    client.get("/v1/records/nothing")
    text = client.get("/metrics").text
    assert 'foveate_http_requests_total{method="POST",route="/v1/contexts",status="200"} 1.0' in text
    assert "foveate_compute_seconds_count 1.0" in text
    assert 'foveate_errors_total{type="NotFound"} 1.0' in text


def test_a_request_is_a_span_of_its_callers_trace(client: TestClient) -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    client.get("/v1/records/nothing", headers={"traceparent": parent})
    (span,) = [span for span in spans.get_finished_spans() if span.name == "GET /v1/records/{id}"]
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert span.attributes["http.response.status_code"] == 404


def test_ready_only_while_the_store_answers(client: TestClient, engine: Engine) -> None:
    assert client.get("/readyz").json()["ok"] is True
    engine.store.data.store.close()
    assert problem(client.get("/readyz"))["status"] == 503
    assert client.get("/healthz").status_code == 200


def test_what_nobody_foresaw_is_a_problem_without_details(client: TestClient, engine: Engine) -> None:
    engine.store.data.store.read = None  # a defect
    found = problem(client.get("/v1/stats"))
    assert found["status"] == 500
    assert "NoneType" not in json.dumps(found)


def test_one_engine_serves_many_threads_at_once(client: TestClient, engine: Engine) -> None:
    start = threading.Barrier(8)

    def work(n: int) -> bool:
        start.wait()
        client.post("/v1/records", json={"kind": "note", "text": f"Thread {n} wrote this"})
        found = computed(client, query=f"What did thread {n} write?")
        return client.get(f"/v1/contexts/{found['id']}").json()["id"] == found["id"]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert engine.store.stats().records["note"] == {"active": 8}
    assert len(client.get("/v1/contexts").json()["contexts"]) == 8


def test_half_a_body_is_no_request(engine: Engine) -> None:
    app = create_app(engine)
    said = [
        {"type": "http.request", "body": b'{"kind":"note","text":"half"}\n', "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list = []

    async def receive() -> dict:
        return said.pop(0)

    async def send(message: dict) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/x-ndjson"), (b"content-length", b"999")]
    scope = {"type": "http", "method": "POST", "path": "/v1/import", "raw_path": b"/v1/import", "query_string": b""}
    asyncio.run(app({**scope, "headers": headers, "http_version": "1.1", "scheme": "http"}, receive, send))
    assert (sent, [hit for hit in engine.search("half") if hit.record.text == "half"]) == ([], [])


# --- events --------------------------------------------------------------------------------------------------------


def test_after_a_store_could_not_answer_old_contexts_are_not_sent_as_new(engine: Engine) -> None:
    old, streamed = engine.context("Before").id, []
    engine.receipts.flush()
    with TestClient(create_app(engine, settings=Settings(poll_seconds=0.05)), base_url=BASE) as client:
        stream = threading.Thread(target=lambda: streamed.append(client.get("/v1/events?limit=1").text))
        with renamed(engine, "receipts"):
            stream.start()
            stream.join(0.3)
        while stream.is_alive():
            engine.context(f"New {time.monotonic()}")
            engine.receipts.flush()
            stream.join(0.1)
    assert "event: context" in streamed[0]
    assert old not in streamed[0]


@contextmanager
def renamed(engine: Engine, table: str) -> Iterator[None]:
    """A store that cannot answer questions about a table."""
    for one, other in ((table, "elsewhere"), ("elsewhere", table)):
        with engine.store.data.store.write(engine.scope) as writer:
            writer._db.connection.execute(f"alter table {one} rename to {other}")  # type: ignore[attr-defined]
        if one == table:
            yield
