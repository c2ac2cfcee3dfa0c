"""The frame of the inspector: who gets in, and what a browser may do with its pages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from inspector_kit import document, page
from service_kit import BASE, Guarded, problem, until
from starlette.testclient import TestClient

import foveate
from foveate.engine import Engine
from foveate.integrations.hooks import service_file
from foveate.project.project import locate_project
from foveate.server.http import create_app
from foveate.server.inspector.routes import PAGES

HOSTILE = "<script>alert(1)</script> **Redis** [x](javascript:alert(1)) {{7*7}}"

NAME = "foveate_web"
"""The cookie of a service without a port in its name."""

NAVIGATION = [each.name for each in PAGES if each.in_navigation]


def test_the_navigation_has_six_pages(shared_client: TestClient) -> None:
    assert NAVIGATION == ["contexts", "memory", "inbox", "tasks", "code", "health"]


@pytest.fixture
def hostile(engine: Engine) -> None:
    engine.add("fact", HOSTILE)
    engine.context(HOSTILE, session=HOSTILE)


@pytest.mark.usefixtures("hostile")
def test_no_page_holds_scripts_or_styles_of_its_own(client: TestClient) -> None:
    for name in NAVIGATION:
        shown = client.get(f"/ui/{name}")
        assert shown.headers["content-type"].startswith("text/html")
        assert "<script>alert" not in shown.text
        assert not re.search(r"\bhref=.?javascript:", shown.text)
        assert "style=" not in shown.text
        assert not re.search(r"<script(?! src=)", shown.text), "no script but our file"


def test_an_empty_project_has_pages_that_say_what_would_be_there() -> None:
    with foveate.open(":memory:") as engine, TestClient(create_app(engine), base_url=BASE) as client:
        for name in NAVIGATION:
            assert "foveate" in client.get(f"/ui/{name}").text.partition("<main")[2], name
        assert 'class="empty"' in client.get("/ui/inbox").text


def test_a_context_shows_its_prompt_its_budget_and_its_items(client: TestClient, engine: Engine) -> None:
    hostile = engine.add("fact", HOSTILE).record
    context = engine.context("On which port does Redis run?", budget=1000)
    shown = document(client, f"/ui/context?id={context.id}")
    assert shown["prompt"]["text"] == context.text
    assert "".join(span["text"] for span in shown["prompt"]["parts"][0]["spans"]) in context.text
    numbers = {item.id: item.number for item in shown["items"]}
    assert set(numbers) == {item.id for item in context.items}
    row = next(item for item in shown["items"] if item.id == hostile.id)
    assert (row.entry.kind, row.trust) == ("fact", "user")
    assert sum(row.score_parts.values()) == pytest.approx(row.entry.score, abs=1e-4)
    budget = shown["context"].budget
    assert budget.used + budget.free + budget.reserve == budget.total == 1000
    html = client.get("/ui/context", params={"id": "last"}).text
    assert f'id="text-{numbers[hostile.id]}"' in html
    assert f'href="#item-{numbers[hostile.id]}"' in html
    assert "&lt;script&gt;alert(1)" in html


def test_what_a_browser_may_do_with_a_page_is_said_with_it(shared_client: TestClient) -> None:
    headers = shared_client.get("/ui/contexts").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["cache-control"] == "no-store"
    assert "content-security-policy" not in shared_client.get("/healthz").headers


def test_static_files_are_kept_for_good_under_an_address_of_their_content(shared_client: TestClient) -> None:
    html = shared_client.get("/ui/contexts").text
    for address in re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', html):
        answer = shared_client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert shared_client.get("/ui/static/..%2Froutes.py").status_code == 404


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/ui/context?id=ctx_none", 404, "No receipt"),
        ("/ui/nothing", 404, "No endpoint"),
        ("/ui/contexts?limit=0", 422, "limit must be a number from 1"),
        ("/ui/contexts?limit=%F0%9F%98%80", 422, "limit must be a number"),
        ("/ui/contexts?limit=000000000001000000", 422, "limit must be a number"),
        (f"/ui/contexts?limit={'9' * 5000}", 422, "limit must be a number"),
        ("/ui/contexts?" + "&".join(f"x{n}=1" for n in range(1001)), 422, "at most 1,000 values"),
        ("/ui/contexts?after=x", 422, "not a cursor"),
        ("/ui/contexts?q=a%00b", 422, "NUL"),
        ("/ui/context?id=a%00b&id=c", 422, "NUL"),
    ],
)
def test_what_goes_wrong_is_a_page(shared_client: TestClient, address: str, status: int, words: str) -> None:
    answer = shared_client.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert words in answer.text
    assert "content-security-policy" in answer.headers


def test_the_first_address_leads_to_the_contexts(shared_client: TestClient) -> None:
    client = shared_client
    for address in ("/ui", "/ui/"):
        answer = client.get(address, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/ui/contexts")
    assert client.head("/ui/contexts").status_code == 200


# --- who gets in -----------------------------------------------------------------------------------------------------


def sign_in(guarded: Guarded, *scopes: str, to: str = "", **options: str) -> TestClient:
    secret = guarded.headers(*scopes, **options)["Authorization"].removeprefix("Bearer ")
    guarded.client.cookies.clear()
    answer = guarded.client.post("/ui/sign-in", data={"token": secret, "to": to}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/ui" in cookie
    guarded.client.cookies.set(NAME, secret)
    return guarded.client


def test_whoever_is_not_signed_in_is_asked_to_and_comes_back(guarded: Guarded) -> None:
    answer = guarded.client.get("/ui/context?id=last", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui/sign-in?to=%2Fui%2Fcontext%3Fid%3Dlast"
    assert 'value="/ui/context?id=last"' in guarded.client.get(answer.headers["location"]).text
    wrong = guarded.client.post("/ui/sign-in", data={"token": "fov_wrong"}, follow_redirects=False)
    assert wrong.status_code == 401
    assert "unknown, expired or revoked" in wrong.text
    assert "set-cookie" not in wrong.headers
    assert sign_in(guarded).get("/ui/contexts").status_code == 200


@pytest.mark.parametrize("to", ["//evil.example/", "https://evil.example", "/\\evil.example", "/v1/export", "/ui/\nx", ""])
def test_signing_in_leads_to_a_page_of_ours_only(guarded: Guarded, to: str) -> None:
    secret = guarded.headers()["Authorization"].removeprefix("Bearer ")
    answer = guarded.client.post("/ui/sign-in", data={"token": secret, "to": to}, follow_redirects=False)
    assert answer.headers["location"] == "/ui/"


def test_the_cookie_opens_the_pages_and_nothing_else(guarded: Guarded) -> None:
    client = sign_in(guarded)
    assert client.get("/ui/contexts").status_code == 200
    assert problem(client.get("/v1/stats"))["status"] == 401


def test_a_token_sees_its_own_project_and_may_do_what_it_allows(guarded: Guarded) -> None:
    guarded.engine.context("What is known about Redis?")
    assert document(sign_in(guarded, project="other"), "/ui/contexts")["groups"] == []
    refused = sign_in(guarded, "memory:read").get("/ui/contexts")
    assert refused.status_code == 403
    assert "context:read" in refused.text


def test_a_revoked_token_is_out_at_once(guarded: Guarded) -> None:
    client = sign_in(guarded)
    for token in guarded.tokens.list():
        guarded.tokens.revoke(token.id)
    assert client.get("/ui/contexts", follow_redirects=False).status_code == 303


def test_a_form_that_is_not_ours_changes_nothing(guarded: Guarded) -> None:
    client, id = sign_in(guarded), guarded.engine.add("note", "Pin me").record.id

    def pin(key: str, **headers: str) -> int:
        return client.post("/ui/record-pin", data={"form": key, "id": id, "pinned": "1"}, headers=headers).status_code

    key = re.search(r'name="form" value="([0-9a-f]{64})"', client.get("/ui/record", params={"id": id}).text)
    assert key
    assert pin("") == pin("0" * 64) == 403
    foreign = {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}
    for headers in (*foreign, {"Origin": f"{BASE}:8431"}, {"Origin": "null"}):
        assert pin(key[1], **headers) == 403
        token = guarded.headers()["Authorization"].removeprefix("Bearer ")
        assert client.post("/ui/sign-in", data={"token": token}, headers=headers).status_code == 403, "nor sign others in"
    assert not guarded.engine.get(id).pinned
    assert pin(key[1], Origin=BASE) == 200
    assert guarded.engine.get(id).pinned


def test_signing_out_works_also_with_a_token_that_is_gone(guarded: Guarded) -> None:
    client = sign_in(guarded)
    for token in guarded.tokens.list():
        guarded.tokens.revoke(token.id)
    done = client.post("/ui/sign-out", follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, "/ui/sign-in")
    assert f'{NAME}=""' in done.headers["set-cookie"]


def test_an_old_cookie_locks_nobody_out_where_no_token_is_asked_for(client: TestClient) -> None:
    client.cookies.set(NAME, "of-another-service")
    assert client.get("/ui/contexts").status_code == 200


def test_signing_in_is_not_a_place_to_guess(guarded: Guarded) -> None:
    tries = [guarded.client.post("/ui/sign-in", data={"token": f"fov_{n}"}).status_code for n in range(31)]
    assert (tries[0], tries[-1]) == (401, 429)


def test_whoever_may_only_see_records_lands_there(guarded: Guarded) -> None:
    client = sign_in(guarded, "memory:read")
    landed = client.get("/ui/")
    assert (landed.status_code, landed.url.path) == (200, "/ui/memory")
    assert "/ui/contexts" not in re.findall(r'<a href="([^"?]+)', landed.text)
    assert "/ui/sign-out" in client.get("/ui/contexts").text, "and can leave from where they may not be"


@pytest.mark.parametrize("address", ["/ui/contexts?done=Call+us&seal=00", "/ui/sign-in?wrong=Call+us"])
def test_an_address_does_not_speak_in_our_name(guarded: Guarded, address: str) -> None:
    assert "Call us" not in sign_in(guarded).get(address).text


def test_pages_of_other_sites_may_link_here_and_no_more(client: TestClient) -> None:
    afar = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}
    assert client.get("/ui/health?full_check=1", headers=afar).status_code == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/ui/contexts", headers=link).status_code == 200


def test_whoever_speaks_for_one_user_learns_nothing_of_the_others(guarded: Guarded) -> None:
    guarded.engine.add("fact", "Hers alone", user="alice")
    hers = document(sign_in(guarded, user="alice"), "/ui/health")["stats"].records
    client = sign_in(guarded, user="mallory")
    before = document(client, "/ui/health")["stats"].records
    guarded.engine.add("fact", "Hers as well", user="alice")
    assert document(client, "/ui/health")["stats"].records == before != hers
    assert document(client, "/ui/health")["facts"] == {}
    assert "Hers" not in [row.text for row in document(client, "/ui/memory?q=Hers")["records"]]


# --- the command -------------------------------------------------------------------------------------------------------


def test_ui_serves_the_pages_until_it_is_ended_and_finds_a_service_that_runs(tmp_path: Path, engine: Engine) -> None:
    command = [sys.executable, "-m", "foveate", "ui", "--no-browser"]
    first = subprocess.Popen(
        [*command, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout is not None
        address = first.stdout.readline().strip()
        assert address.startswith(BASE)
        with urllib.request.urlopen(f"{address}contexts") as page:
            assert b"<h1>" in page.read()
        second = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert json.loads(second.stdout)["url"] == address
    finally:
        first.terminate()
        first.communicate()
    until(lambda: service_file.find_service(locate_project(tmp_path).service_file) is None)


def test_contexts_of_agents_are_a_click_away(guarded: Guarded) -> None:
    of_agent = guarded.engine.context("What is known about Redis?", agent="coder")
    owner = sign_in(guarded)
    assert document(owner, "/ui/contexts")["agents"] == ["coder"]
    assert of_agent.id not in owner.get("/ui/contexts").text
    html = page(owner, "/ui/contexts?agent=coder")[1]
    assert f"id={of_agent.id}&amp;agent=coder" in html, "links carry on whose state is looked at"
    assert owner.get(f"/ui/context?id={of_agent.id}&agent=coder").status_code == 200
    other = sign_in(guarded, agent="tester")
    assert document(other, "/ui/contexts")["agents"] == []
    assert other.get("/ui/contexts?agent=coder").status_code == 403


def test_a_method_that_there_is_not_is_told_those_that_there_are(shared_client: TestClient) -> None:
    assert shared_client.put("/ui/contexts").headers["allow"] == "GET, HEAD"
    assert shared_client.put("/v1/stats").headers["allow"] == "GET"
