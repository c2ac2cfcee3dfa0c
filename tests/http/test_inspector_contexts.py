"""The inspector's pages on contexts: the list by session, what was left out, comparing two, and trying changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from inspector_kit import document, page
from service_kit import BASE
from starlette.testclient import TestClient

import foveate
from foveate.agents import strategy_of
from foveate.engine import Engine
from foveate.server.http import create_app
from foveate.server.inspector.comparison import MAX_CONTEXT_CHOICES, MAX_SHOWN_LINES, diff_lines

HOSTILE = '<script>alert("redis")</script> | **bold** [link](javascript:alert(1)) that nobody wants before the others do'
ESCAPED = "&lt;script&gt;alert(&#34;redis&#34;)"


@pytest.fixture
def asked(engine: Engine) -> str:
    """A context with too few tokens for what is known of Redis, after a fact was superseded."""
    engine.add("fact", "Redis runs on port 6380", subject="redis", attribute="port")
    engine.add("note", HOSTILE)
    for n in range(14):
        engine.add(
            "note",
            f"Redis note {n}: the port of cache number {n} answers after {n * 7} ms{' or so' * n}",
            confidence=0.5 + n / 40,
        )
    return engine.context("Which port does redis run on?", budget=200, session="morning").id


# --- the list --------------------------------------------------------------------------------------------------------


def test_contexts_are_listed_by_session_newest_first(client: TestClient, engine: Engine, asked: str) -> None:
    noon = engine.context("Which database?", session="noon").id
    again = engine.context("Which port?", session="morning").id
    alone = engine.context("Which database?").id
    shown, html = page(client, "/ui/contexts")
    groups = {group["session"]: [row.id for row in group["contexts"]] for group in shown["groups"]}
    assert list(groups) == [None, "morning", "noon"]
    assert groups == {None: [alone], "morning": [again, asked], "noon": [noon]}
    assert 'href="/ui/session?name=morning"' in html
    assert "data-poll-seconds" in html, "the first page is polled"
    first = document(client, "/ui/contexts?limit=1")
    later, html = page(client, f"/ui/contexts?limit=2&after={first['next']}")
    assert [row.id for group in later["groups"] for row in group["contexts"]] == [again, noon]
    assert "data-poll-seconds" not in html


def test_a_session_is_a_timeline_of_its_turns(client: TestClient, engine: Engine, asked: str) -> None:
    later = engine.context("Which port does redis run on?", budget=900, session="morning").id
    shown, html = page(client, "/ui/session?name=morning")
    assert [turn.summary.id for turn in shown["turns"]] == [asked, later]
    assert shown["turns"][1].added > 0
    assert f"/ui/compare?id={later}&amp;from={asked}" in html
    assert client.get("/ui/session?name=evening").status_code == 404


# --- left out --------------------------------------------------------------------------------------------------------


def test_left_out_says_of_every_candidate_why_and_what_it_lacked(client: TestClient, engine: Engine, asked: str) -> None:
    lost = list(engine.receipts.get(asked).left_out)
    shown = document(client, f"/ui/left-out?id={asked}")
    assert shown["reasons"] == Counter(entry.reason for entry in lost)
    assert {row.id for row in shown["left_out"]} == {entry.id for entry in lost}
    room = [entry.needs_tokens for entry in lost if entry.reason == "budget"]
    number = len(engine.receipts.get(asked).candidates)
    summary = f"{len(room)} of {number} candidates did not fit; the smallest shortfall was {min(room)} tokens"
    assert summary in shown["summary"]
    engine.add("fact", "Nothing about the question")
    later = engine.context("Which port does redis run on?", budget=900).id
    others = engine.receipts.count_not_considered(later)
    assert others > 0
    assert f"{others} further record" in document(client, f"/ui/left-out?id={later}")["summary"]
    superseded = next(row for row in shown["left_out"] if row.entry.reason == "superseded")
    assert shown["others"][superseded.entry.detail].title == "Redis runs on port 6380"


def test_left_out_reads_as_a_page_whatever_a_record_says(client: TestClient, asked: str) -> None:
    shown, html = page(client, f"/ui/left-out?id={asked}&limit=500")
    assert ESCAPED in html
    assert "<script>alert" not in html
    assert html.count("<tr data-row>") == len(shown["left_out"])


@pytest.mark.parametrize(
    ("sort", "key"),
    [
        ("score", lambda row: -row.entry.score),
        ("needs_tokens", lambda row: (not row.entry.needs_tokens, row.entry.needs_tokens)),
        ("needs_relevance", lambda row: (not row.entry.needs_relevance, row.entry.needs_relevance)),
        ("title", lambda row: row.title.lower()),
    ],
)
def test_left_out_is_sorted_by_a_column(client: TestClient, asked: str, sort: str, key: Callable[[Any], Any]) -> None:
    shown, html = page(client, f"/ui/left-out?id={asked}&sort={sort}")
    keys = [key(row) for row in shown["left_out"]]
    assert len(keys) > 4
    assert keys == sorted(keys)
    assert f'<a href="/ui/left-out?id={asked}&amp;sort=' in html
    assert "aria-sort" in html


@pytest.mark.parametrize(
    ("filters", "fits"),
    [
        ("reason=superseded", lambda row: row.entry.reason == "superseded"),
        ("q=note", lambda row: row.entry.kind == "note"),
        ("q=CACHE+number", lambda row: "cache number" in row.title),
        ("q=nowhere", lambda row: False),
    ],
)
def test_left_out_is_filtered(client: TestClient, asked: str, filters: str, fits: Callable[[Any], bool]) -> None:
    every = document(client, f"/ui/left-out?id={asked}")["left_out"]
    shown, html = page(client, f"/ui/left-out?id={asked}&{filters}")
    assert [row.id for row in shown["left_out"]] == [row.id for row in every if fits(row)]
    assert ("matches these filters" in html) == (not shown["left_out"])


def test_left_out_comes_in_pages(client: TestClient, asked: str) -> None:
    every = [row.id for row in document(client, f"/ui/left-out?id={asked}")["left_out"]]
    pages = document(client, f"/ui/left-out?id={asked}&limit=2")["pages"]
    found = [document(client, f"/ui/left-out?id={asked}&limit=2&page={n}") for n in range(1, pages + 1)]
    assert [row.id for each in found for row in each["left_out"]] == every
    assert 'rel="next"' in client.get(f"/ui/left-out?id={asked}&limit=2").text


def test_why_answers_for_any_record(client: TestClient, engine: Engine, asked: str) -> None:
    other = engine.add("note", "Bread rises overnight", created=1).record.id
    kept = next(entry.id for entry in engine.receipts.get(asked).items)
    for id, words in ((other, "shares no word"), (kept, "kept in"), ("note_<b>none</b>", "No record")):
        shown, html = page(client, "/ui/left-out", params={"id": asked, "why": id})
        assert words in shown["why"]["sentence"]
        assert words in html
        assert "<b>none</b>" not in html


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("id=ctx_none", 404, "No receipt"),
        ("sort=scor", 422, "Did you mean &#39;score&#39;"),
        ("reason=badget", 422, "Did you mean &#39;budget&#39;"),
        ("page=0", 422, "page must be a number"),
    ],
)
def test_a_wrong_question_about_left_out_is_a_page(
    client: TestClient, asked: str, query: str, status: int, words: str
) -> None:
    answer = client.get(f"/ui/left-out?{query}")
    assert answer.status_code == status
    assert words in answer.text


# --- compare ---------------------------------------------------------------------------------------------------------


def test_compare_shows_the_engines_diff_with_titles_and_lines(client: TestClient, engine: Engine, asked: str) -> None:
    later = engine.context("Which port does redis run on?", budget=900, session="morning").id
    diff = engine.receipts.diff(asked, later)
    shown, html = page(client, f"/ui/compare?id={later}&from={asked}")
    rows = shown["items"]
    for change, entries in (
        ("added", diff.added),
        ("withdrawn", diff.withdrawn),
        ("moved", diff.place_changes),
        ("re-detailed", diff.level_changes),
        ("changed", diff.version_changes),
    ):
        assert [item.row.id for item in rows if item.change == change] == [entry.id for entry in entries]
    assert shown["diff"] == diff
    assert diff.tokens > 0
    texts = [engine.receipts.replay(id).text.split("\n") for id in (asked, later)]
    added = [line["text"] for line in shown["text"]["lines"] if line["op"] == "added"]
    assert added == [line for line in texts[1] if line not in texts[0]]
    assert ESCAPED in html
    assert "<script>alert" not in html
    assert "<ins>" in html


def test_compare_chooses_the_context_before_unless_another_is_named(client: TestClient, engine: Engine, asked: str) -> None:
    other = engine.context("Which database?", session="noon").id
    again = engine.context("Which port does redis run on?", budget=500, session="morning").id
    last = engine.context("Which database do we use?").id
    for query, before, after in (
        (f"id={again}", asked, again),  # of the same session
        (f"id={last}", again, last),  # it has no session: the one before
        ("", again, last),
        (f"from={other}&id=last", other, last),
    ):
        shown = document(client, f"/ui/compare?{query}")
        assert (shown["before"].id, shown["context"].id) == (before, after), query
    assert [each.id for each in shown["choices"]] == [again, other, asked]


def test_compare_finds_the_turn_before_however_long_ago_it_was(client: TestClient, engine: Engine) -> None:
    first = engine.context("Which database?", session="mine").id
    for n in range(MAX_CONTEXT_CHOICES + 10):
        engine.context(f"Which port has number {n}?", session="other", budget=60)
    second = engine.context("Which database do we use?", session="mine").id
    shown = document(client, f"/ui/compare?id={second}")
    assert shown["before"].id == first
    assert first in [each.id for each in shown["choices"]]
    shown, html = page(client, f"/ui/compare?id={first}")
    assert shown["before"] is None
    assert "no context before this one" in html


def test_compare_renders_the_contexts_of_a_strategy_again(engine: Engine) -> None:
    engine.tasks.push("Sweep the yard")
    developer = engine.scoped(agent="developer")
    one, other = (strategy_of("developer").compile(engine, budget=budget).context.id for budget in (500, 900))
    expected = developer.receipts.diff(one, other)
    with TestClient(create_app(developer), base_url=BASE) as client:
        diff = document(client, f"/ui/compare?id={other}&from={one}")["diff"]
    assert diff == expected
    assert expected.unread == ()


def test_prompts_that_cannot_be_rendered_again_are_named(client: TestClient, engine: Engine, asked: str) -> None:
    later = engine.context("Which port does redis run on?", extra="Handed in", budget=500).id
    shown, html = page(client, f"/ui/compare?id={later}&from={asked}")
    diff = shown["diff"]
    assert (diff.unread, shown["text"], diff.shared_prefix) == ((later,), None, None)
    assert "can no longer be rendered as sent" in html


def test_tabs_of_an_empty_project_say_that_there_is_no_context() -> None:
    with foveate.open(":memory:") as engine, TestClient(create_app(engine), base_url=BASE) as client:
        for name in ("context", "left-out", "compare", "try"):
            assert client.get(f"/ui/{name}").status_code == 404
        first = engine.context("Anything?").id
        assert "No source returned a candidate" in client.get(f"/ui/left-out?id={first}").text
        assert client.get("/ui/compare?from=ctx_a&id=ctx_b").status_code == 404


# --- try changes -----------------------------------------------------------------------------------------------------


def test_a_context_is_tried_with_other_settings_and_nothing_is_stored(
    client: TestClient, engine: Engine, asked: str
) -> None:
    same = document(client, f"/ui/try?id={asked}")["result"]
    assert same["items_changed"] == []
    shown, html = page(client, f"/ui/try?id={asked}&budget=900")
    result = shown["result"]
    assert (
        result["prompt"]["text"]
        == engine.context("Which port does redis run on?", budget=900, session="morning", dry_run=True).text
    )
    assert result["context"].budget.total == 900
    assert {item.change for item in result["items_changed"]} >= {"added"}
    assert ESCAPED in html
    assert "<script>alert" not in html
    other = document(client, f"/ui/try?id={asked}&query=Which+database%3F&profile=task")["result"]
    assert (other["context"].request.query, other["context"].profile.name) == ("Which database?", "task")
    assert [receipt.id for receipt in engine.receipts.list()] == [asked]


@pytest.mark.parametrize(("query", "words"), [("budget=20", "short"), ("profile=defalt", "Did you mean &#39;default&#39;?")])
def test_settings_that_do_not_work_are_explained_beside_the_form(
    client: TestClient, asked: str, query: str, words: str
) -> None:
    shown, html = page(client, f"/ui/try?id={asked}&{query}")
    assert shown["result"] is None
    assert 'role="alert"' in html
    assert words in html


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
def test_lines_that_differ_are_those_that_only_one_text_has(before: str, after: str) -> None:
    found = diff_lines(before, after)
    for op, text, other in (("withdrawn", before, after), ("added", after, before)):
        lines = [line["text"] for line in found["lines"] if line["op"] == op]
        assert all(line in text.split("\n") for line in lines)
        assert (found[op] == 0) == (Counter(text.split("\n")) <= Counter(other.split("\n"))) or len(text) > 10_000
    assert len(found["lines"]) <= MAX_SHOWN_LINES


def test_equal_lines_far_from_a_change_are_counted_and_not_shown() -> None:
    lines = [str(n) for n in range(20)]
    changed = [*lines[:10], "new", *lines[10:]]
    found = diff_lines("\n".join(lines), "\n".join(changed))["lines"]
    assert [line["text"] for line in found] == ["8 equal lines", "8", "9", "new", "10", "11", "8 equal lines"]
