"""Recent activity: the session's own events and what was telling in others; and filters by type, in every source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import foveate
from foveate import Filters, InputError, Scope
from foveate.cli import cli
from foveate.pipeline.profiles import resolve
from foveate.pipeline.sources.recent import MAX_HIGHLIGHTS
from records import add_record
from worlds import NOW, open_engine

MINUTE = 60_000
WITH_HIGHLIGHTS: dict[str, Any] = {"overrides": {"slots": {"recent": {"extra_sources": {"highlights": 5}}}}}


def happened(engine: foveate.Engine, session: str | None, minute: int, text: str, **values: Any) -> str:
    scope = Scope(engine.scope.project, session=session)
    kind = values.pop("kind", "event")
    return add_record(engine, kind, text, scope=scope, created=NOW - minute * MINUTE, **values).record.id


def brought(engine: foveate.Engine, source: str, **options: Any) -> list[str]:
    """Ids of what a source brought for a request, in its order."""
    context = engine.context("Anything at all?", **options)
    return [entry.id for entry in engine.receipts.get(context).candidates if entry.source == source]


def test_the_figures_are_profile_data() -> None:
    for name, extra_sources in (("default", ()), ("subtask", (("highlights", 5),))):
        (slot,) = [slot for slot in resolve(name).slots if slot.name == "recent"]
        assert (slot.max_candidates, slot.extra_sources) == (50, extra_sources)


def test_a_session_gets_its_latest_fifty_events_and_no_others() -> None:
    engine = open_engine()
    mine = [happened(engine, "mine", n, f"Step number {n} of mine") for n in range(60)]
    theirs = happened(engine, "theirs", 0, "Something in another session")
    found = brought(engine, "recent", session="mine")
    assert found == mine[:50]
    assert theirs not in found


def test_what_belongs_to_no_session_is_everybodys() -> None:
    engine = open_engine()
    mine = happened(engine, "mine", 2, "My own step")
    shared = happened(engine, None, 1, "The release was tagged")
    assert brought(engine, "recent", session="mine") == [shared, mine]
    episode = happened(engine, "theirs", 3, "Paired on the parser", kind="episode")
    every_kind = {"slots": {"recent": {"kinds": []}}}
    assert brought(engine, "recent", session="mine", overrides=every_kind) == [shared, mine, episode]


def test_without_a_session_what_belongs_to_none_is_recent() -> None:
    engine = open_engine()
    for n in range(7):
        happened(engine, f"s{n}", n, f"Event {n} of its session")
    shared = [happened(engine, None, n, f"Event {n} of no session") for n in range(3)]
    assert brought(engine, "recent") == shared
    assert brought(engine, "highlights", **WITH_HIGHLIGHTS) == []


def test_an_older_event_that_the_question_is_about_comes_before_newer_ones() -> None:
    engine = open_engine()
    about = happened(engine, "mine", 40, "The parser broke on nested lists")
    for n in range(40):
        happened(engine, "mine", n, f"Step {n} of something else")
    context = engine.context("Why did the parser break?", session="mine", overrides={"slots": {"recent": {"max_items": 5}}})
    shown = [item for item in context.items if item.section == "recent"]
    assert shown[0].id == about, "it is among the five, and the oldest of them"
    assert len(shown) == 5


def test_the_relevance_of_a_recent_event_is_at_most_one() -> None:
    engine = open_engine()
    id = happened(engine, "mine", 0, "The parser broke", type="error")
    context = engine.context("Fix the parser, it broke", session="mine")
    (entry,) = [each for each in engine.receipts.get(context).candidates if each.source == "recent"]
    assert (entry.id, 0.9 < entry.features["relevance"] <= 1.0) == (id, True)


def test_by_default_nothing_of_other_sessions_is_recent() -> None:
    engine = open_engine()
    happened(engine, "mine", 0, "My own step")
    happened(engine, "other", 1, "Disk full on the build host", type="error")
    assert brought(engine, "highlights", session="mine") == []


def test_the_five_latest_other_sessions_bring_their_highlights() -> None:
    engine = open_engine()
    happened(engine, "mine", 0, "My own step")
    last = [happened(engine, f"other {n}", 10 * n, f"Failed in {n}", type="error") for n in range(1, 8)]
    assert brought(engine, "highlights", session="mine", **WITH_HIGHLIGHTS) == last[:5]


def test_a_session_without_anything_telling_has_no_highlight() -> None:
    engine = open_engine()
    happened(engine, "mine", 0, "My own step")
    happened(engine, "other", 1, "Nothing much")
    assert brought(engine, "highlights", session="mine", **WITH_HIGHLIGHTS) == []


def test_the_most_telling_of_a_session_goes_first() -> None:
    engine = open_engine()
    happened(engine, "mine", 0, "My own step")
    error = happened(engine, "other", 50, "Disk full on the build host", type="error")
    failed = happened(engine, "other", 40, "make deploy", type="shell_exec", command="make deploy", outcome="failure")
    decided = happened(engine, "other", 30, "Builds move to the larger host", kind="decision")
    happened(engine, "other", 20, "make lint", type="shell_exec", command="make lint", outcome="success")
    happened(engine, "other", 10, "src/a.py", type="file_read", path="src/a.py")
    assert MAX_HIGHLIGHTS == 3
    assert brought(engine, "highlights", session="mine", **WITH_HIGHLIGHTS) == [decided, failed, error]


def test_a_highlight_says_its_session_and_is_replayed_as_it_was() -> None:
    engine = open_engine()
    happened(engine, "mine", 0, "My own step")
    happened(engine, "blue-green", 9, "make x", type="shell_exec", command="make x", stdout="no room", outcome="failure")
    happened(engine, "0192f3a2-1234-7abc-8def-1234567890ab", 8, "Smoke test", type="check", outcome="success")
    context = engine.context("What is going on?", session="mine", **WITH_HIGHLIGHTS)
    assert "Executed: `make x` [failure] (session blue-green)\n  ```\n  no room\n" in context.text
    assert "Smoke test (session 0192f3a2…)\n" in context.text
    assert context.text.count("session") == 2
    assert engine.receipts.replay(context).same
    assert context.budget.used <= context.budget.ceiling


def test_an_event_is_shown_once() -> None:
    engine = open_engine()
    ids = [happened(engine, "mine", 3, "make a", type="shell_exec", outcome="failure")]
    ids += [happened(engine, "other", n, f"Broke {n}", type="error") for n in range(3)]
    context = engine.context("Broke make", session="mine")
    kept = [item.id for section in context.sections for item in section.items]
    assert sorted(kept) == sorted(ids)


def test_no_wall_is_crossed_by_a_highlight() -> None:
    engine = open_engine(user="ada")
    happened(engine, "mine", 0, "My own step")
    bob = Scope(engine.scope.project, user="bob", session="bobs")
    with engine.store.data.store.write(bob) as writer:
        writer.add(engine.store.data.make("event", "Bob's private failure", {"type": "error"}, bob))
    assert brought(engine, "highlights", session="mine", **WITH_HIGHLIGHTS) == []
    alices = happened(engine, "other", 1, "A failure of the project", type="error")
    assert brought(engine, "highlights", session="mine", **WITH_HIGHLIGHTS) == [alices]


def test_why_not_says_that_an_event_is_of_another_session() -> None:
    engine = open_engine()
    happened(engine, "mine", 0, "My own step")
    happened(engine, "other", 1, "Newest of the other session")
    hidden = happened(engine, "other", 2, "An older event of the other session")
    by_time_only = {"slots": {"messages": {"remove": True}}}
    context = engine.context("Tell me about bananas", session="mine", overrides=by_time_only)
    assert engine.why(hidden, context).reason == "other session"
    searched = engine.context("Tell me about bananas", session="mine")
    assert engine.why(hidden, searched).reason == "no shared term"


# --- filters by type -----------------------------------------------------------------------------------------------


def world() -> foveate.Engine:
    engine = open_engine()
    for session in ("mine", "other"):
        for sort in ("error", "file_read", "deploy"):
            happened(engine, session, 1, f"parser {sort} in {session}", type=sort, outcome="failure")
    happened(engine, "mine", 1, "parser without a type")
    for sort in ("service", "person"):
        engine.add("entity", f"The parser {sort}", data={"name": f"Parser {sort}", "type": sort})
    engine.add("fact", "The parser is recursive")
    return engine


EVERY_SLOT = {
    "slots": {
        "facts": {"kinds": ["fact", "entity"]},
        "past": {"source": "search", "kinds": ["event"], "share": 10, "order": 200, "heading": "Past"},
        "tagged": {"source": "domains", "kinds": ["event", "entity"], "share": 10, "order": 210, "heading": "Tagged"},
    }
}


@pytest.mark.parametrize("session", [None, "mine"])
def test_only_events_of_the_wanted_types_are_considered_by_any_source(session: str | None) -> None:
    engine = world()
    filters = Filters(event_types=("error", "deploy"))
    context = engine.context("the parser", session=session, filters=filters, overrides=EVERY_SLOT)
    found = [engine.get(entry.id) for entry in engine.receipts.get(context).candidates]
    assert {record.data.get("type") for record in found if record.kind == "event"} == {"error", "deploy"}
    assert {record.data.get("type") for record in found if record.kind == "entity"} == {"service", "person"}
    assert any(record.kind == "fact" for record in found)


def test_only_entities_of_the_wanted_types_are_considered() -> None:
    engine = world()
    context = engine.context("the parser", filters=Filters(entity_types=("person",)), overrides=EVERY_SLOT)
    found = [engine.get(entry.id) for entry in engine.receipts.get(context).candidates]
    assert {record.data.get("type") for record in found if record.kind == "entity"} == {"person"}
    assert {record.data.get("type") for record in found if record.kind == "event"} == {"error", "deploy", "file_read", None}


def test_why_not_names_the_filter_and_a_receipt_keeps_it() -> None:
    engine = world()
    filters = Filters(event_types=("error",), entity_types=("person",))
    context = engine.context("the parser", filters=filters)
    assert engine.receipts.get(context).request.filters == filters
    assert engine.receipts.replay(context).same
    (service,) = [
        hit.record for hit in engine.search("parser service", kinds=["entity"]) if hit.record.data["type"] == "service"
    ]
    assert str(engine.why(service.id, context)) == "not considered: the request's filter on entity_types"


@pytest.mark.parametrize("wrong", ["error", ("error", 7), (None,), ("",), 3])
def test_types_that_are_no_names_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="event_types must be a list of names"):
        open_engine().context("Anything?", filters=Filters(event_types=wrong))


def test_the_command_takes_types(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(cli, [*arguments, "--store", str(tmp_path)])
        assert done.exit_code == 0, done.output
        return done.stdout

    run("init")
    with foveate.open(tmp_path) as engine:
        for sort in ("error", "deploy"):
            engine.add("event", f"parser {sort}", data={"type": sort})
        for sort in ("service", "person"):
            engine.add("entity", f"parser {sort}", data={"type": sort})
    found = json.loads(run("context", "parser", "--event-type", "error", "--entity-type", "person", "--json"))
    shown = {item["id"].split("_")[0] for item in found["items"]}
    assert shown == {"event", "entity"}
    assert ("error" in found["text"], "person" in found["text"]) == (True, True)
    assert ("deploy" in found["text"], "service" in found["text"]) == (False, False)
