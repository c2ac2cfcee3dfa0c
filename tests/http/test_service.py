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

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from service_kit import BASE, Guarded, problem
from starlette.testclient import TestClient

from foveate.engine import Engine
from foveate.server.http import Settings, create_app

QUERY = {"query": "Which database do we use?", "budget": 2000}


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
    assert (replayed["identical"], replayed["reason"], replayed["text"]) == (True, "", found["text"])


def test_what_changed_between_two_contexts(client: TestClient) -> None:
    one = computed(client)
    client.post("/v1/records", json={"kind": "decision", "text": "The database is backed up every night"})
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
    client.post("/v1/records", json={"kind": "decision", "text": "The database is backed up every night"})
    assert client.post("/v1/contexts", json=QUERY).headers["etag"] != first.headers["etag"]


def test_a_budget_that_is_too_small_says_by_how_much(client: TestClient) -> None:
    found = problem(client.post("/v1/contexts", json={**QUERY, "budget": 5}))
    assert found["status"] == 409
    assert found["type"].endswith("BudgetError")
    assert found["short"] > 0


# --- records -------------------------------------------------------------------------------------------------------


def test_a_record_is_kept_changed_taken_back_and_forgotten(client: TestClient) -> None:
    added = client.post("/v1/records", json={"kind": "note", "text": "Deploys are on Fridays", "tags": ["deploy"]})
    assert added.status_code == 201
    at = added.headers["location"]
    assert client.get(at).headers["etag"] == '"1"'
    assert client.patch(at, json={"text": "Deploys are on Mondays"}, headers={"If-Match": '"1"'}).json()["version"] == 2
    assert problem(client.patch(at, json={"text": "Never"}, headers={"If-Match": '"1"'}))["status"] == 412
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
    assert engine.store.stats()["records"]["note"] == {"active": 3}


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


# --- tasks ---------------------------------------------------------------------------------------------------------


def test_a_task_is_prepared_for_an_agent_and_learned_from(client: TestClient) -> None:
    task = client.post("/v1/tasks", json={"name": "Add login", "key": "login"}).json()["id"]
    ready = client.post("/v1/agents/coder/prepare", json={"task": "login"}).json()
    assert (ready["task"]["status"], ready["claim"]["agent"]) == ("active", "coder")
    assert [claim["task"] for claim in client.get("/v1/agents").json()["claims"]] == [task]
    handoff = {"summary": "Login works", "gotchas": [{"issue": "Tokens expire after an hour", "severity": "high"}]}
    done = client.post("/v1/agents/coder/complete", json={"task": "login", "handoff": handoff}).json()
    assert done["task"]["status"] == "completed"
    assert [record["kind"] for record in client.get(f"/v1/tasks/{task}").json()["learned"]] == ["gotcha"]
    assert client.get("/v1/handoffs/login").json()["task"] == task


@pytest.mark.parametrize("report", ["summary: &a Done\ngotchas: [*a]", "Done, and that is all I say."])
def test_a_handoff_that_cannot_be_read_is_kept_and_said(client: TestClient, report: str) -> None:
    client.post("/v1/tasks", json={"name": "Add login", "key": "login"})
    learned = client.post("/v1/handoffs", json={"task": "login", "handoff": report}).json()
    kept = client.get("/v1/handoffs/login").json()["handoff"]
    assert kept["text"] == report
    assert kept["data"]["problems"] == learned["problems"] != []


def test_each_session_has_a_stack_of_its_own(client: TestClient) -> None:
    for goal in ("Ship the release", "Fix the build"):
        client.post("/v1/stack", params={"session": "today"}, json={"goal": goal})
    path = client.get("/v1/stack", params={"session": "today"}).json()["path"]
    assert [frame["objective"] for frame in path] == ["Ship the release", "Fix the build"]
    assert client.get("/v1/stack", params={"session": "another"}).json()["path"] == []
    assert client.post("/v1/stack/pop", params={"session": "today"}).json()["task"]["status"] == "completed"


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
    assert engine.store.stats()["records"]["event"] == {"active": 1}
    other = client.post("/v1/records", json={**body, "text": "Another"}, headers=headers)
    assert problem(other)["status"] == 422


def test_a_key_holds_after_a_restart(client: TestClient, engine: Engine) -> None:
    headers, body = {"Idempotency-Key": "k1"}, {"kind": "event", "text": "The build failed"}
    first = client.post("/v1/records", json=body, headers=headers).json()
    with TestClient(create_app(engine), base_url=BASE) as again:
        assert again.post("/v1/records", json=body, headers=headers).json()["id"] == first["id"]


def test_what_failed_may_be_tried_again_with_its_key(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    assert client.post("/v1/tasks/later/start", headers=headers).status_code == 404
    client.post("/v1/tasks", json={"name": "Later", "key": "later"})
    assert client.post("/v1/tasks/later/start", headers=headers).status_code == 200


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
    assert "note" not in engine.store.stats()["records"]


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
    assert engine.store.stats()["records"]["note"] == {"active": 8}
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
