"""Who may do what: addresses, tokens, scopes and walls, at every endpoint that the OpenAPI document names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from service_kit import BASE, Guarded, problem
from starlette.testclient import TestClient

import foveate
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.server.http import Settings, create_app
from foveate.server.tokens import SCOPES, Tokens

OPEN = {"/healthz", "/readyz"}


def endpoints() -> list[tuple[str, str]]:
    """(method, path) of everything, so that a new endpoint is tried by itself."""
    with foveate.open(":memory:") as engine:
        document = create_app(engine).openapi()
    return [(method, path) for path, methods in document["paths"].items() for method in methods if path not in OPEN]


ENDPOINTS = endpoints()
every_endpoint = pytest.mark.parametrize(("method", "path"), ENDPOINTS, ids=lambda part: str(part))


def filled(path: str, id: str = "nothing_01") -> str:
    return re.sub(r"\{[^}]+\}", id, path)


# --- the door ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8377", "127.0.0.1.evil.example", "", "[::1", "10.0.0.1"])
def test_another_name_is_not_ours(shared_client: TestClient, host: str) -> None:
    assert problem(shared_client.get("/v1/stats", headers={"Host": host}))["status"] == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8377", "[::1]:8377"])
def test_this_machines_own_names_are(shared_client: TestClient, host: str) -> None:
    assert shared_client.get("/v1/stats", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "file://", "http://localhost.evil.example"])
def test_pages_of_other_sites_are_refused(shared_client: TestClient, origin: str) -> None:
    answer = shared_client.post("/v1/records", json={"kind": "note", "text": "x"}, headers={"Origin": origin})
    assert problem(answer)["status"] == 403
    assert "access-control-allow-origin" not in answer.headers
    assert shared_client.get("/v1/stats", headers={"Origin": "http://localhost:8377"}).status_code == 200


@pytest.mark.parametrize("settings", [{"host": "0.0.0.0"}, {"host": "10.1.2.3"}, {"names": ("foveate.example",)}])
def test_a_way_in_for_others_needs_a_token(engine: Engine, tokens: Tokens, tmp_path: Path, settings: dict) -> None:
    file = tmp_path / "tokens.json"
    with pytest.raises(InputError, match="foveate token create"):
        create_app(engine, settings=Settings(tokens=file, **settings))
    tokens.create("one", ["context:read"], "main")
    app = create_app(engine, settings=Settings(tokens=file, **settings))
    with TestClient(app, base_url=BASE) as client:
        assert client.get("/v1/stats").status_code == 401


# --- tokens at every endpoint --------------------------------------------------------------------------------------


@every_endpoint
def test_without_a_token_nothing_is_told(shared_guarded: Guarded, method: str, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer fov_wrong"}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}):
        answer = shared_guarded.client.request(method, filled(path), headers=headers)
        assert problem(answer)["status"] == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("scheme", ["Basic ", "Token ", "bearer2 ", ""])
def test_a_valid_token_needs_the_bearer_scheme(shared_guarded: Guarded, scheme: str) -> None:
    secret = shared_guarded.headers()["Authorization"].removeprefix("Bearer ")
    answer = shared_guarded.client.get("/v1/stats", headers={"Authorization": f"{scheme}{secret}"})
    assert problem(answer)["status"] == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    for bearer in ("Bearer", "bearer", "BEARER"):  # names of schemes have no case
        assert shared_guarded.client.get("/v1/stats", headers={"Authorization": f"{bearer} {secret}"}).status_code == 200


def test_the_services_own_token_needs_the_bearer_scheme(engine: Engine, tokens: Tokens, tmp_path: Path) -> None:
    tokens.create("one", ["context:read"], "main")
    settings = Settings(require_token=True, tokens=tmp_path / "tokens.json", own_token="own-secret")
    with TestClient(create_app(engine, settings=settings), base_url=BASE) as client:
        for authorization, status in (("Bearer own-secret", 200), ("Basic own-secret", 401), ("Bearer own-secre", 401)):
            assert client.get("/v1/stats", headers={"Authorization": authorization}).status_code == status


@every_endpoint
def test_a_malformed_or_huge_request_is_a_problem_of_the_caller(shared_client: TestClient, method: str, path: str) -> None:
    if path == "/v1/events":
        pytest.skip("a stream has no end")
    for body in (b"{", b"[]", b'"\xff"', b"[" * 100_000, b'{"text": 1e999}', b'{"query": "\\ud800"}', b"x" * 20_000_000):
        answer = shared_client.request(method, filled(path), content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code < 500 or answer.status_code == 501, (body[:20], answer.text)
        if len(body) > 2**24 and method != "get":
            assert answer.status_code == 413


@pytest.fixture(scope="module")
def hidden_ids(shared_engine: Engine) -> list[str]:
    """The id of everything in the project, and the key of a task."""
    task = shared_engine.tasks.add("Hidden task", key="hidden")
    context = shared_engine.context("Which database?")
    return [task.id, "hidden", context.id, *(record.id for record in shared_engine.store.page(10)[0])]


@every_endpoint
def test_another_project_sees_nothing(shared_guarded: Guarded, hidden_ids: list[str], method: str, path: str) -> None:
    """Every id of this project, at every endpoint: not found, and not a word of it in any answer."""
    if path == "/v1/events":
        pytest.skip("tried on its own")
    headers = shared_guarded.headers(project="other")
    for id in hidden_ids if "{" in path else hidden_ids[:1]:
        body = {} if method != "get" else None
        answer = shared_guarded.client.request(method, filled(path, id), headers=headers, json=body)
        assert answer.status_code < 500 or answer.status_code == 501
        for word in ("Postgres", "Redis runs", "production", "Hidden"):
            assert word not in answer.text, (id, answer.text)
        if "{id}" in path and method == "get":
            assert answer.status_code == 404


def test_a_stream_shows_only_what_its_caller_may_see(guarded: Guarded) -> None:
    ids = {}
    for project in ("main", "other"):
        headers = guarded.headers(project=project)
        ids[project] = guarded.client.post("/v1/contexts", json={"query": "x"}, headers=headers).json()["id"]
    text = guarded.client.get(
        "/v1/events?limit=1", headers={**guarded.headers(project="other"), "Last-Event-ID": "none"}
    ).text
    assert ids["other"] in text
    assert ids["main"] not in text


def test_writes_of_another_project_change_nothing_here(guarded: Guarded) -> None:
    record = guarded.engine.store.page(1)[0][0]
    headers = guarded.headers(project="other")
    at = f"/v1/records/{record.id}"
    assert guarded.client.post(f"{at}/undo", headers=headers).status_code == 404
    assert guarded.client.patch(at, json={"pinned": True}, headers=headers).status_code == 404
    assert guarded.client.post("/v1/feedback", json={"confirmed": [record.id]}, headers=headers).status_code == 404
    assert guarded.client.post(f"/v1/inbox/{record.id}", json={"action": "accept"}, headers=headers).status_code == 404
    assert guarded.client.delete(at, headers=headers).status_code == 404
    assert guarded.engine.get(record.id) == record
    body = {"kind": "note", "text": "Theirs", "data": {}}
    assert guarded.client.post("/v1/records", json=body, headers=headers).json()["record"]["scope"]["project"] == "other"
    assert (
        guarded.client.post("/v1/records", json={**body, "scope": {"project": "main"}}, headers=headers).status_code == 422
    )


@pytest.mark.parametrize(
    ("scope", "method", "path", "body"),
    [
        ("context:read", "post", "/v1/contexts", {"query": "Which database?"}),
        ("memory:read", "get", "/v1/records", None),
        ("memory:write", "post", "/v1/records", {"kind": "note", "text": "x"}),
        ("admin", "get", "/v1/export", None),
        ("admin", "delete", "/v1/records/nothing_01", None),
    ],
)
def test_a_token_allows_what_its_scopes_say(
    shared_guarded: Guarded, scope: str, method: str, path: str, body: dict | None
) -> None:
    request, headers = shared_guarded.client.request, shared_guarded.headers
    refused = request(method, path, json=body, headers=headers(*(other for other in SCOPES if other != scope)))
    assert problem(refused)["status"] == 403
    assert f'scope="{scope}"' in refused.headers["www-authenticate"]
    assert request(method, path, json=body, headers=headers(scope)).status_code in (200, 201, 404)


def test_user_and_agent_are_walls(guarded: Guarded) -> None:
    anna, ben = (guarded.headers(user=name) for name in ("anna", "ben"))
    at = guarded.client.post("/v1/records", json={"kind": "note", "text": "Anna likes tea"}, headers=anna).headers[
        "location"
    ]
    assert guarded.client.get(at, headers=anna).status_code == 200
    assert guarded.client.get(at, headers=ben).status_code == 404
    assert problem(guarded.client.get(at, params={"user": "anna"}, headers=ben))["status"] == 403
    assert guarded.client.get(at, params={"user": "anna"}, headers=guarded.headers()).status_code == 200
    assert "tea" not in guarded.client.post("/v1/contexts", json={"query": "tea"}, headers=ben).text.replace('"tea"', "")


def test_the_latest_context_is_never_that_of_another_agent(guarded: Guarded) -> None:
    owner, headers = guarded.client, guarded.headers()
    shared = owner.post("/v1/contexts", json={"query": "tea"}, headers=headers).json()["id"]
    of_agent = owner.post("/v1/contexts", json={"query": "coffee", "agent": "a9"}, headers=headers).json()["id"]
    for params, latest in (({}, shared), ({"user": "ada"}, shared), ({"agent": "a9"}, of_agent)):
        assert owner.get("/v1/contexts/last", params=params, headers=headers).json()["id"] == latest
    assert problem(owner.get(f"/v1/contexts/{of_agent}", headers=headers))["status"] == 404


def test_no_body_can_name_another_user_or_agent(shared_guarded: Guarded) -> None:
    """Every body that has these fields, so that a new endpoint is tried too."""
    headers, tried = shared_guarded.headers(user="anna", agent="coder"), set()
    samples = {"query": "x", "kind": "note", "text": "x", "name": "x"}
    schemas = shared_guarded.client.get("/openapi.json").json()["components"]["schemas"]
    for method, path in ENDPOINTS:
        for schema in body_schemas(shared_guarded.client, method, path, schemas):
            for level in {"user", "agent"} & schema.get("properties", {}).keys():
                required = {name: samples.get(name, "x") for name in schema.get("required", ())}
                if schema["title"] == "NewHandoff":
                    required = {"handoff": "Done"}
                at = filled(path, "hidden") if path.startswith("/v1/tasks") else filled(path)
                answer = shared_guarded.client.request(method, at, json={**required, level: "ben"}, headers=headers)
                assert answer.status_code == 403, (method, path, level, answer.text)
                tried.add(path)
    assert tried >= {"/v1/contexts", "/v1/records", "/v1/search", "/v1/claims"}


def body_schemas(client: TestClient, method: str, path: str, schemas: dict) -> list[dict]:
    operation = client.get("/openapi.json").json()["paths"][path][method]
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    each = [content, *content.get("anyOf", ()), *content.get("oneOf", ())]
    return [schemas[one["$ref"].rpartition("/")[2]] for one in each if "$ref" in one]


def test_figures_tell_nothing_of_other_users(guarded: Guarded) -> None:
    anna, ben, backend = guarded.headers(user="anna"), guarded.headers(user="ben"), guarded.headers()
    before = {name: guarded.client.get("/v1/stats", headers=ben).json()[name] for name in ("records", "history", "vectors")}
    at = guarded.client.post("/v1/records", json={"kind": "gotcha", "text": "Anna leaves in May"}, headers=anna)
    assert at.status_code == 201
    for headers, named, seen in ((anna, {}, True), (ben, {}, False), (backend, {}, True), (backend, {"user": "ben"}, False)):
        found = guarded.client.get("/v1/stats", params=named, headers=headers).json()
        assert ("gotcha" in found["records"]) is seen
        assert seen or {name: found[name] for name in before} == before


def test_a_receipt_that_still_waits_is_not_anybodys(guarded: Guarded) -> None:
    anna, ben, other = guarded.headers(user="anna"), guarded.headers(user="ben"), guarded.headers(project="other")
    id = guarded.client.post("/v1/contexts", json={"query": "Which database?"}, headers=anna).json()["id"]
    for headers, status in ((anna, 200), (ben, 404), (other, 404)):
        assert guarded.client.get(f"/v1/contexts/{id}", headers=headers).status_code == status


def test_an_agents_token_acts_for_no_other(guarded: Guarded) -> None:
    guarded.engine.tasks.add("Add login", key="login")
    guarded.engine.tasks.add("Test login", key="test")
    other = guarded.engine.tasks.claim("test", agent="tester")
    headers = guarded.headers(agent="coder")
    body = {"task": "login"}
    assert problem(guarded.client.post("/v1/claims", json={**body, "agent": "tester"}, headers=headers))["status"] == 403
    assert guarded.client.post("/v1/claims", json=body, headers=headers).json()["claim"]["agent"] == "coder"
    done = {"status": "completed", "agent": "tester"}
    assert problem(guarded.client.patch("/v1/tasks/test", json=done, headers=headers))["status"] == 403
    assert problem(guarded.client.delete(f"/v1/claims/{other.id}", headers=headers))["status"] == 403
    asked = {"query": "x", "agent": "tester"}
    assert problem(guarded.client.post("/v1/contexts", json=asked, headers=headers))["status"] == 403
    assert problem(guarded.client.post("/v1/import", content=b"", headers=headers))["status"] == 403


def test_a_token_does_not_show_the_personal_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_PERSONAL_STORE", str(tmp_path / "own.db"))
    from foveate.store.sqlite.store import SQLiteStore

    SQLiteStore(tmp_path / "own.db").close()
    with foveate.open(tmp_path) as engine:
        engine.add("identity", "Likes short answers", personal=True)
        tokens = Tokens(tmp_path / "tokens.json")
        _, secret = tokens.create("x", SCOPES, "main")
        with TestClient(create_app(engine, settings=Settings(tokens=tmp_path / "tokens.json")), base_url=BASE) as client:
            asked = {"query": "How should I answer?"}
            assert "short answers" in client.post("/v1/contexts", json=asked).text
            theirs = client.post("/v1/contexts", json=asked, headers={"Authorization": f"Bearer {secret}"})
            assert "short answers" not in theirs.text


def test_a_backup_of_every_project_is_for_no_token(shared_guarded: Guarded) -> None:
    assert problem(shared_guarded.client.get("/v1/export?format=sqlite", headers=shared_guarded.headers()))["status"] == 403


def test_expired_and_revoked_tokens_end_at_once(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    made, secret = guarded.tokens.create("short", SCOPES, "main", expires=foveate.clock.now() + 3_600_000)
    headers = {"Authorization": f"Bearer {secret}"}
    assert guarded.client.get("/v1/stats", headers=headers).status_code == 200
    monkeypatch.setattr("foveate.server.http.access.now", lambda: foveate.clock.now() + 3_600_001)
    assert guarded.client.get("/v1/stats", headers=headers).status_code == 401
    monkeypatch.undo()
    guarded.tokens.revoke(made.id)
    assert guarded.client.get("/v1/stats", headers=headers).status_code == 401


def test_the_file_of_tokens_holds_no_token(tokens: Tokens, tmp_path: Path) -> None:
    made, secret = tokens.create("one", ["admin", "context:read"], "main", user="anna")
    file = tmp_path / "tokens.json"
    assert secret not in file.read_text()
    assert secret.split("_", 2)[2] not in file.read_text()  # what is random may hold one too
    assert file.stat().st_mode & 0o777 == 0o600
    assert made.scopes == ("context:read", "admin")
    assert Tokens(file).find(secret, 0) == made
    assert Tokens(file).find(secret + "x", 0) is None


@pytest.mark.parametrize(
    ("name", "scopes", "expires"), [("", ["admin"], None), ("x", [], None), ("x", ["everything"], None), ("x", ["admin"], 1)]
)
def test_a_token_that_makes_no_sense_is_refused(tokens: Tokens, name: str, scopes: list[str], expires: int | None) -> None:
    with pytest.raises(InputError):
        tokens.create(name, scopes, "main", expires=expires)


def test_mcp_is_mounted_for_those_who_may_use_it(shared_guarded: Guarded) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"Accept": "application/json, text/event-stream"}
    post = shared_guarded.client.post
    assert post("/mcp", json=ping, headers=headers).status_code == 401
    assert post("/mcp", json=ping, headers=headers | shared_guarded.headers("context:read")).status_code == 403
    assert post("/mcp", json=ping, headers=headers | shared_guarded.headers(project="other")).status_code == 403
    assert post("/mcp", json=ping, headers=headers | shared_guarded.headers()).status_code not in (401, 403, 404, 421, 500)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/hooks/claude", {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "Which database?"}),
        ("/v1/claims", {"agent": "coder", "task": "x"}),
        ("/v1/contexts", {"event": "x"}),
    ],
)
def test_who_may_only_write_is_told_nothing(shared_guarded: Guarded, path: str, body: dict) -> None:
    _, secret = shared_guarded.tokens.create("writer", ("memory:write",), "main")
    answer = shared_guarded.client.post(path, json=body, headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 403


@pytest.mark.parametrize("origin", ["http://[bad", "http://evil.com@127.0.0.1", "null", "x"])
def test_an_origin_that_is_none_of_ours_is_refused(shared_client: TestClient, origin: str) -> None:
    assert shared_client.get("/v1/stats", headers={"Origin": origin}).status_code == 403


def test_overrides_that_are_no_table_are_refused(shared_client: TestClient) -> None:
    body = {"query": "q", "overrides": {"slots": 5}, "without": ["decisions"]}
    assert shared_client.post("/v1/contexts", json=body).status_code == 422
