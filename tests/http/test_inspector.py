"""The frame of the inspector: who gets in, what a browser may do with its pages, and that every page is also data."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from service_kit import BASE, Guarded, problem, until
from starlette.testclient import TestClient

from foveate.engine import Engine
from foveate.integrations.hooks import service_file
from foveate.project.project import find
from foveate.server.inspector.pages import PAGES, records

HOSTILE = "<script>alert(1)</script> **Redis** [x](javascript:alert(1)) {{7*7}}"

NAME = "foveate_web"
"""The cookie of a service without a port in its name."""

ALONE = [page.name for page in PAGES if page.hint or page.name == "help"]
"""Pages that need not be told what they are about."""


@pytest.mark.parametrize("name", ALONE)
def test_a_page_is_a_document_and_its_twins_hold_the_same(client: TestClient, engine: Engine, name: str) -> None:
    engine.add("fact", HOSTILE)
    engine.compute(HOSTILE, session=HOSTILE)
    page, data, text = (client.get(f"/ui/{name}{form}") for form in ("", ".json", ".md"))
    assert (page.status_code, data.status_code, text.status_code) == (200, 200, 200), page.text
    assert page.headers["content-type"].startswith("text/html")
    assert data.json()["schema_version"] == 1
    assert text.text.startswith("# ")
    assert text.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "<script>alert" not in page.text
    assert not re.search(r"\bhref=.?javascript:", page.text)
    assert "style=" not in page.text
    assert not re.search(r"<script(?! src=)", page.text), "no script but our file"


@pytest.mark.parametrize("name", ALONE)
def test_an_empty_project_has_pages_that_say_what_would_be_there(client: TestClient, name: str) -> None:
    answer = client.get(f"/ui/{name}")
    assert answer.status_code == 200, answer.text


def test_a_context_shows_its_prompt_its_budget_and_its_items(client: TestClient, engine: Engine) -> None:
    hostile = engine.add("fact", HOSTILE).record
    context = engine.compute("On which port does Redis run?", budget=1000)
    document = client.get("/ui/context.json", params={"id": context.id}).json()
    assert document["prompt"]["text"] == context.text
    assert "".join(span["text"] for span in document["prompt"]["parts"][0]["spans"]) in context.text
    numbers = {item["id"]: item["n"] for item in document["items"]}
    assert set(numbers) == {item.candidate.record.id for item in context.items}
    row = next(item for item in document["items"] if item["id"] == hostile.id)
    assert (row["kind"], row["trust"]) == ("fact", "user")
    assert sum(row["parts"].values()) == pytest.approx(row["score"], abs=1e-4)
    budget = document["budget"]
    assert budget["used"] + budget["free"] + budget["reserve"] == budget["total"] == 1000
    page = client.get("/ui/context", params={"id": "last"}).text
    assert f'id="text-{numbers[hostile.id]}"' in page
    assert f'href="#item-{numbers[hostile.id]}"' in page
    assert "&lt;script&gt;alert(1)" in page


def test_what_a_browser_may_do_with_a_page_is_said_with_it(client: TestClient) -> None:
    headers = client.get("/ui/contexts").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["cache-control"] == "no-store"
    assert "content-security-policy" not in client.get("/healthz").headers


def test_static_files_are_kept_for_good_under_an_address_of_their_content(client: TestClient) -> None:
    page = client.get("/ui/contexts").text
    for address in re.findall(r'(?:src|href)="(/ui/static/[^"]+)"', page):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert client.get("/ui/static/..%2Froutes.py").status_code == 404


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/ui/context?id=ctx_none", 404, "no receipt"),
        ("/ui/nothing", 404, "nothing at"),
        ("/ui/contexts?limit=0", 422, "limit is a number from 1"),
        ("/ui/contexts?limit=%F0%9F%98%80", 422, "limit is a number"),
        ("/ui/contexts?limit=000000000001000000", 422, "limit is a number"),
        (f"/ui/contexts?limit={'9' * 5000}", 422, "limit is a number"),
        ("/ui/contexts?" + "&".join(f"x{n}=1" for n in range(1001)), 422, "too much for one page"),
        ("/ui/contexts?after=x", 422, "no cursor"),
        ("/ui/contexts?q=a%00b", 422, "NUL"),
        ("/ui/context?id=a%00b&id=c", 422, "NUL"),
    ],
)
def test_what_goes_wrong_is_a_page_for_people_and_a_problem_for_programs(
    client: TestClient, address: str, status: int, words: str
) -> None:
    page = client.get(address)
    assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert words in page.text
    assert "content-security-policy" in page.headers
    path, _, query = address.partition("?")
    assert problem(client.get(f"{path}.json?{query}"))["status"] == status


def test_the_first_address_leads_to_the_contexts(client: TestClient) -> None:
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
    assert problem(guarded.client.get("/ui/contexts.json"))["status"] == 401
    wrong = guarded.client.post("/ui/sign-in", data={"token": "fov_wrong"}, follow_redirects=False)
    assert wrong.status_code == 401
    assert "not valid" in wrong.text
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
    guarded.engine.compute("What is known about Redis?")
    elsewhere = sign_in(guarded, project="other").get("/ui/contexts.json").json()
    assert elsewhere["contexts"] == []
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
    assert (landed.status_code, landed.url.path) == (200, "/ui/records")
    assert "/ui/contexts" not in re.findall(r'<a href="([^"?]+)', landed.text)
    assert client.get("/ui/help").status_code == 200
    assert "/ui/sign-out" in client.get("/ui/contexts").text, "and can leave from where they may not be"


@pytest.mark.parametrize("address", ["/ui/contexts?done=Call+us&seal=00", "/ui/sign-in?wrong=Call+us"])
def test_an_address_does_not_speak_in_our_name(guarded: Guarded, address: str) -> None:
    assert "Call us" not in sign_in(guarded).get(address).text


def test_pages_of_other_sites_may_link_here_and_no_more(client: TestClient) -> None:
    afar = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}
    assert client.get("/ui/health?thorough=1", headers=afar).status_code == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/ui/contexts", headers=link).status_code == 200


def test_counts_of_ever_new_users_do_not_pile_up(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MOST_COUNTED", 3)
    client = sign_in(guarded)
    for number in range(8):
        assert client.get(f"/ui/records.json?user=user{number}").status_code == 200
    assert len(records._COUNTED[guarded.engine.store]) <= 3


def test_whoever_speaks_for_one_user_learns_nothing_of_the_others(guarded: Guarded) -> None:
    guarded.engine.add("fact", "Hers alone", scope=replace(guarded.engine.scope, user="alice"))
    hers = sign_in(guarded, user="alice").get("/ui/records.json").json()["kinds"]
    client = sign_in(guarded, user="mallory")
    before = client.get("/ui/records.json").json()["kinds"], client.get("/ui/health.json").json()["holds"]["records"]
    guarded.engine.add("fact", "Hers as well", scope=replace(guarded.engine.scope, user="alice"))
    after = client.get("/ui/records.json").json()["kinds"], client.get("/ui/health.json").json()["holds"]["records"]
    assert after == before
    assert hers != before[0], "what was counted for one is not shown to another"
    assert client.get("/ui/health.json").json()["vectors"] is None
    assert client.get("/ui/find.json?q=Hers").json()["found"] == []


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
        with urllib.request.urlopen(f"{address}contexts", timeout=30) as page:
            assert b"<h1>" in page.read()
        second = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        assert json.loads(second.stdout)["url"] == address
    finally:
        first.terminate()
        first.communicate(timeout=30)
    until(lambda: service_file.find(find(tmp_path).service) is None)


def test_contexts_of_agents_are_a_click_away(guarded: Guarded) -> None:
    of_agent = guarded.engine.compute("What is known about Redis?", agent="coder")
    owner = sign_in(guarded)
    assert owner.get("/ui/contexts.json").json()["agents"] == ["coder"]
    assert of_agent.id not in owner.get("/ui/contexts").text
    page = owner.get("/ui/contexts?agent=coder").text
    assert f"id={of_agent.id}&amp;agent=coder" in page, "links carry on whose state is looked at"
    assert owner.get(f"/ui/context?id={of_agent.id}&agent=coder").status_code == 200
    other = sign_in(guarded, agent="tester")
    assert other.get("/ui/contexts.json").json()["agents"] == []
    assert other.get("/ui/contexts?agent=coder").status_code == 403


def test_a_method_that_there_is_not_is_told_those_that_there_are(client: TestClient) -> None:
    assert client.put("/ui/contexts").headers["allow"] == "GET, HEAD"
    assert client.put("/v1/stats").headers["allow"] == "GET"
