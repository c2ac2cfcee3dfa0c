"""The inspector on choices: what was left out of a context and by how much, and what changed between two."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from service_kit import BASE
from starlette.testclient import TestClient

import foveate
from foveate.agents import compared, strategy_of
from foveate.engine import Engine
from foveate.server.http import create_app
from foveate.server.inspector.pages.comparison import PICKED
from foveate.server.inspector.text_diff import MOST_SHOWN, differing

HOSTILE = '<script>alert("redis")</script> | **bold** [link](javascript:alert(1)) that nobody wants before the others do'
ESCAPED = "&lt;script&gt;alert(&#34;redis&#34;)"


@pytest.fixture
def asked(engine: Engine) -> str:
    """A context with too little room for what is known of Redis, after a fact was superseded."""
    engine.add("fact", "Redis runs on port 6380", subject="redis", attribute="port")
    engine.add("note", HOSTILE)
    for n in range(14):
        engine.add(
            "note",
            f"Redis note {n}: the port of cache number {n} answers after {n * 7} ms{' or so' * n}",
            confidence=0.5 + n / 40,
        )
    return engine.compute("Which port does redis run on?", budget=200, session="morning").id


# --- left out --------------------------------------------------------------------------------------------------------


def test_left_out_says_of_every_candidate_why_and_what_it_lacked(client: TestClient, engine: Engine, asked: str) -> None:
    lost = [entry for entry in engine.receipt(asked).candidates if not entry["kept"]]
    document = client.get(f"/ui/left-out.json?id={asked}").json()
    assert document["reasons"] == Counter(entry["reason"] for entry in lost)
    assert {row["id"] for row in document["left_out"]} == {entry["id"] for entry in lost}
    room = [entry["needs_tokens"] for entry in lost if entry["reason"] == "budget"]
    number = len(engine.receipt(asked).candidates)
    assert (
        f"{len(room)} of {number} candidates lacked room; the nearest needed {min(room)} tokens more" in document["summary"]
    )
    superseded = next(row for row in document["left_out"] if row["reason"] == "superseded")
    assert superseded["other"]["title"] == "Redis runs on port 6380"


def test_left_out_reads_as_a_page_whatever_a_record_says(client: TestClient, asked: str) -> None:
    page = client.get(f"/ui/left-out?id={asked}&limit=500").text
    assert ESCAPED in page
    assert "<script>alert" not in page
    assert page.count("<tr data-row>") == len(client.get(f"/ui/left-out.json?id={asked}&limit=500").json()["left_out"])


@pytest.mark.parametrize(
    ("sort", "values"),
    [
        ("score", lambda rows: [-row["score"] for row in rows]),
        ("needs_tokens", lambda rows: [(not row["needs_tokens"], row["needs_tokens"]) for row in rows]),
        ("needs_tokens&order=desc", lambda rows: [-row["needs_tokens"] for row in rows]),
        ("title", lambda rows: [row["title"].lower() for row in rows]),
    ],
)
def test_left_out_is_sorted_as_asked(client: TestClient, asked: str, sort: str, values: object) -> None:
    rows = client.get(f"/ui/left-out.json?id={asked}&sort={sort}").json()["left_out"]
    assert len(rows) > 4
    assert values(rows) == sorted(values(rows))  # type: ignore[operator]
    assert f'<a href="/ui/left-out?id={asked}&amp;sort=' in client.get(f"/ui/left-out?id={asked}&sort={sort}").text
    assert "aria-sort" in client.get(f"/ui/left-out?id={asked}&sort={sort}").text


@pytest.mark.parametrize(
    ("filters", "fits"),
    [
        ("reason=superseded", lambda row: row["reason"] == "superseded"),
        ("kind=note", lambda row: row["kind"] == "note"),
        ("q=CACHE+number", lambda row: "cache number" in row["title"]),
        ("slot=nowhere", lambda row: False),
    ],
)
def test_left_out_is_filtered_as_asked(client: TestClient, asked: str, filters: str, fits: object) -> None:
    every = client.get(f"/ui/left-out.json?id={asked}").json()["left_out"]
    found = client.get(f"/ui/left-out.json?id={asked}&{filters}").json()["left_out"]
    assert [row["id"] for row in found] == [row["id"] for row in every if fits(row)]  # type: ignore[operator]
    assert ("fits these filters" in client.get(f"/ui/left-out?id={asked}&{filters}").text) == (not found)


def test_left_out_comes_in_pages(client: TestClient, asked: str) -> None:
    every = [row["id"] for row in client.get(f"/ui/left-out.json?id={asked}").json()["left_out"]]
    pages = client.get(f"/ui/left-out.json?id={asked}&limit=2").json()["pages"]
    found = [client.get(f"/ui/left-out.json?id={asked}&limit=2&page={n}").json() for n in range(1, pages + 1)]
    assert [row["id"] for page in found for row in page["left_out"]] == every
    assert 'rel="next"' in client.get(f"/ui/left-out?id={asked}&limit=2").text


def test_why_not_answers_for_any_record(client: TestClient, engine: Engine, asked: str) -> None:
    other = engine.add("note", "Bread rises overnight", created=1).record.id
    kept = next(entry["id"] for entry in engine.receipt(asked).candidates if entry["kept"])
    for id, words in ((other, "shares no word"), (kept, "kept in"), ("note_<b>none</b>", "There is no record")):
        said = client.get("/ui/left-out.json", params={"id": asked, "why_not": id}).json()["why_not"]
        assert words in said["sentence"]
        page = client.get("/ui/left-out", params={"id": asked, "why_not": id})
        assert page.status_code == 200
        assert words in page.text
        assert "<b>none</b>" not in page.text


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("id=ctx_none", 404, "There is no receipt"),
        ("sort=scor", 422, "Did you mean &#39;score&#39;"),
        ("order=up", 422, "order is one of asc, desc"),
        ("reason=badget", 422, "Did you mean &#39;budget&#39;"),
        ("page=0", 422, "page is a number"),
    ],
)
def test_a_wrong_question_about_left_out_is_a_page(
    client: TestClient, asked: str, query: str, status: int, words: str
) -> None:
    answer = client.get(f"/ui/left-out?{query}")
    assert answer.status_code == status
    assert words in answer.text


# --- diff ------------------------------------------------------------------------------------------------------------


def test_diff_is_the_engines_with_titles_and_the_lines_that_differ(client: TestClient, engine: Engine, asked: str) -> None:
    later = engine.compute("Which port does redis run on?", budget=900, session="morning").id
    said, found = engine.diff(asked, later), client.get(f"/ui/diff.json?from={asked}&to={later}").json()["compared"]
    for name in ("added", "withdrawn", "moved", "re_detailed", "changed"):
        assert [row["id"] for row in found[name]] == [entry["id"] for entry in said[name]]
    assert found["tokens"] == said["tokens"] > 0
    assert {name: found["shared_prefix"][name] for name in said["shared_prefix"]} == said["shared_prefix"]
    texts = [engine.replay(id)["text"].split("\n") for id in (asked, later)]
    added = ["".join(part["text"] for part in line["parts"]) for line in found["text"]["lines"] if line["op"] == "added"]
    assert added == [line for line in texts[1] if line not in texts[0]]
    page = client.get(f"/ui/diff?from={asked}&to={later}").text
    assert ESCAPED in page
    assert "<script>alert" not in page
    assert "<ins>" in page


def test_diff_chooses_what_to_compare_with(client: TestClient, engine: Engine, asked: str) -> None:
    other = engine.compute("Which database?", session="noon").id
    again = engine.compute("Which port does redis run on?", budget=500, session="morning").id
    last = engine.compute("Which database do we use?").id
    for query, before, after in (
        (f"to={again}", asked, again),  # of the same session
        (f"to={last}", again, last),  # it has none: the one before
        ("", again, last),
        (f"from={other}&to=last", other, last),
        (f"from={other}", other, last),
    ):
        found = client.get(f"/ui/diff.json?{query}").json()
        assert (found["from"], found["to"]) == (before, after), query
    assert [each["id"] for each in found["contexts"]] == [last, again, other, asked]


def test_diff_finds_the_turn_before_however_long_ago_it_was(client: TestClient, engine: Engine) -> None:
    first = engine.compute("Which database?", session="mine").id
    for n in range(PICKED + 10):
        engine.compute(f"Which port has number {n}?", session="other", budget=60)
    second = engine.compute("Which database do we use?", session="mine").id
    found = client.get(f"/ui/diff.json?to={second}").json()
    assert (found["from"], found["to"]) == (first, second)
    found = client.get(f"/ui/diff.json?to={first}").json()
    assert (found["from"], found["to"]) == (None, first)


def test_diff_hands_in_again_what_a_strategy_made(engine: Engine) -> None:
    engine.stack().push("Sweep the yard")
    developer = engine.within(replace(engine.scope, agent="developer"))
    one, other = (strategy_of("developer").compile(engine, budget=budget).context.id for budget in (500, 900))
    assert developer.diff(one, other)["unread"] == [one, other]
    said = compared(developer, one, other)
    with TestClient(create_app(developer), base_url=BASE) as client:
        found = client.get(f"/ui/diff.json?from={one}&to={other}").json()["compared"]
    assert found["unread"] == said["unread"] == []
    assert {name: found["shared_prefix"][name] for name in said["shared_prefix"]} == said["shared_prefix"]


def test_diff_of_prompts_that_cannot_be_had_again_says_so(client: TestClient, engine: Engine, asked: str) -> None:
    later = engine.compute("Which port does redis run on?", given="Handed in", budget=500).id
    found = client.get(f"/ui/diff.json?from={asked}&to={later}").json()["compared"]
    assert (found["unread"], found["text"], found["shared_prefix"]) == ([later], None, None)
    assert "can no longer be put together" in client.get(f"/ui/diff?from={asked}&to={later}").text


def test_pages_without_contexts_say_what_would_make_some() -> None:
    with foveate.open(":memory:") as engine, TestClient(create_app(engine), base_url=BASE) as client:
        for page in ("left-out", "diff"):
            assert "foveate context" in client.get(f"/ui/{page}").text
        first = engine.compute("Anything?").id
        assert "nothing before this context" in client.get("/ui/diff").text
        assert "No source brought a candidate" in client.get(f"/ui/left-out?id={first}").text
        assert client.get("/ui/diff?from=ctx_a&to=ctx_b").status_code == 404


# --- the lines that differ -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("a\nb\nc", "a\nb\nc"),
        ("one two three\nsame", "one 2 three\nsame\nnew"),
        ("x\n" * 40, "y\n" + "x\n" * 39),
        ("\n".join(map(str, range(4000))), "\n".join(map(str, range(1, 4001)))),
    ],
)
def test_differing_lines_are_those_that_one_text_has_and_the_other_not(before: str, after: str) -> None:
    found = differing(before, after)
    for op, text, other in (("withdrawn", before, after), ("added", after, before)):
        lines = ["".join(part["text"] for part in line["parts"]) for line in found["lines"] if line["op"] == op]
        assert all(line in text.split("\n") for line in lines)
        assert (found[op] == 0) == (Counter(text.split("\n")) <= Counter(other.split("\n"))) or len(text) > 10_000
    shown = sum(line.get("lines", 1) for line in found["lines"] if line["op"] != "withdrawn") + found["not_shown"]
    assert shown >= len(after.split("\n")) or found["not_shown"]
    assert len(found["lines"]) <= MOST_SHOWN


def test_a_changed_line_marks_its_words() -> None:
    lines = differing("Redis runs on port 6379 here", "Redis runs on port 6380 here")["lines"]
    assert [part["text"].strip() for line in lines for part in line["parts"] if part["differs"]] == ["6379", "6380"]
