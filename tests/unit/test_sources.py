"""Sources: asked once, in their turn or in a thread; one that fails does not take the prompt down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import pytest

import foveate
from foveate import Candidate, Kind, Record, Scope
from foveate.errors import ProfileError, SourceError
from foveate.pipeline.profiles import resolve
from foveate.pipeline.sources.base import MAX_LIMIT, MIN_LIMIT, SlotRequest, Source, SourceContext, limit_of
from foveate.records import kinds, render
from foveate.types import Profile, Slot
from worlds import ago, open_engine

TICKETS = {"slots": {"tickets": {"source": "tickets", "heading": "Tickets", "share": 20, "order": 200}}}


def note(id: str, text: str) -> Record:
    return Record(id=id, kind="note", scope=Scope("main"), text=text, summary=text, micro=text)


class Tickets(Source):
    """A user's own source."""

    name = "tickets"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        for request in requests:
            text = f"T-1 asks for {context.signals.keywords[0]}"
            yield Candidate(record=note("t1", text), slot=request.slot.name, source=self.name, features={"relevance": 0.9})


class Broken(Tickets):
    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        raise RuntimeError("no connection")


class Strange(Tickets):
    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Any:
        return ["just text"]


class Async(Tickets):
    async def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> list[Candidate]:  # type: ignore[override]
        await asyncio.sleep(0)
        return list(super().find(requests, context))


class Slow(Tickets):
    slow = True
    deadline = 300.0


class TooSlow(Tickets):
    slow = True
    deadline = 0.02

    def __init__(self) -> None:
        self.release = Event()

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Any:
        self.release.wait(300)
        return []


def compute(source: Any, **options: Any) -> tuple[foveate.Context, dict[str, Any]]:
    with open_engine(sources=[source]) as engine:
        engine.add("fact", "The deploy takes four minutes")
        context = engine.context("deploy", overrides=TICKETS, **options)
        report = next(r for r in engine.receipts.get(context).sources if r.source == "tickets")
    return context, report


@pytest.mark.parametrize("source", [Tickets(), Async(), Slow()], ids=["plain", "async", "slow"])
def test_a_users_own_source_fills_a_slot(source: Any) -> None:
    context, report = compute(source)
    assert "## Tickets\n- T-1 asks for deploy\n" in context.text
    assert context.considered["tickets"] == report.found == 1
    assert (report.slots, report.error) == (("tickets",), "")


def test_an_async_source_works_inside_a_running_loop_too() -> None:
    async def main() -> str:
        return compute(Async())[0].text

    assert "T-1 asks for deploy" in asyncio.run(main())


def test_acompute_is_compute_in_a_thread() -> None:
    async def main() -> str:
        with open_engine(sources=[Async()]) as engine:
            return (await engine.acontext("deploy", overrides=TICKETS)).text

    assert "T-1 asks for deploy" in asyncio.run(main())


def test_a_source_that_fails_is_reported_and_the_rest_goes_on() -> None:
    context, report = compute(Broken())
    assert "four minutes" in context.text
    assert report.error == "RuntimeError: no connection"
    assert context.warnings == ("Source 'tickets' failed: RuntimeError: no connection",)


def test_a_source_that_brings_something_else_is_reported() -> None:
    context, report = compute(Strange())
    assert "four minutes" in context.text
    assert report.error == "TypeError: find() must return candidates, got str"


def test_a_slow_source_has_a_deadline() -> None:
    source = TooSlow()
    try:
        context, report = compute(source)
    finally:
        source.release.set()
    assert "four minutes" in context.text
    assert report.error == "no answer within 0.02 s"


@pytest.mark.parametrize("source", [Broken(), TooSlow()], ids=["broken", "slow"])
def test_a_failing_source_that_a_keep_slot_needs_stops_everything(source: Any) -> None:
    keep = {"slots": {"tickets": {**TICKETS["slots"]["tickets"], "keep": True}}}
    with open_engine(sources=[source]) as engine, pytest.raises(SourceError, match="slot 'tickets' must be kept"):
        engine.context("deploy", overrides=keep)
    if hasattr(source, "release"):
        source.release.set()


def test_an_unknown_source_gets_a_near_match() -> None:
    with open_engine() as engine, pytest.raises(ProfileError) as raised:
        engine.context("deploy", overrides={"slots": {"facts": {"source": "serch"}}})
    assert str(raised.value) == "Slot 'facts' asks source 'serch', which does not exist. Did you mean 'search'?"


def test_a_source_is_asked_once_for_all_its_slots() -> None:
    asked: list[list[str]] = []

    class Counting(Tickets):
        def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
            asked.append([request.slot.name for request in requests])
            return iter(())

    two = {"slots": {**TICKETS["slots"], "more": {"source": "tickets", "share": 1, "order": 201}}}
    with open_engine(sources=[Counting()]) as engine:
        engine.context("deploy", overrides=two)
    assert asked == [["tickets", "more"]]


def test_a_source_may_take_the_place_of_a_shipped_one() -> None:
    class Search(Tickets):
        name = "search"

    with open_engine(sources=[Search()]) as engine:
        engine.add("fact", "The deploy takes four minutes")
        assert "four minutes" not in engine.context("deploy").text


def test_a_users_own_kind_is_a_row() -> None:
    runbook = Kind(
        "runbook", "Runbooks", lambda record, level: render.block(f"{record.data['service']}: {render.body(record, level)}"),
        {"service": kinds.Field(str, required=True)},
    )  # fmt: skip
    kinds.register(runbook)
    try:
        slots = {"runbooks": {"source": "search", "kinds": ["runbook"], "heading": "Runbooks", "share": 10}}
        with open_engine() as engine:
            engine.add("runbook", "Restart the queue, then the workers", data={"service": "billing"})
            context = engine.context("How do I restart the queue?", overrides={"slots": slots})
            assert "## Runbooks\n- billing: Restart the queue, then the workers\n" in context.text
            with pytest.raises(foveate.InputError, match="Kind 'runbook' needs the field 'service'"):
                engine.add("runbook", "Something")
    finally:
        del kinds.KINDS["runbook"]


def test_a_slot_may_be_filled_by_several_sources() -> None:
    slots = {"facts": {"extra_sources": {"tickets": 5}}}
    with open_engine(sources=[Tickets()]) as engine:
        engine.add("fact", "The deploy takes four minutes")
        context = engine.context("deploy", overrides={"slots": slots})
    facts = next(section for section in context.sections if section.name == "facts")
    assert {item.candidate.source for item in facts.items} == {"search", "tickets"}


def test_what_two_sources_bring_for_a_slot_stands_once_with_what_each_knows() -> None:
    class Twice(Tickets):
        def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
            (record,) = context.reader.get(["fact_1"]).values()
            yield Candidate(record=record, slot=requests[0].slot.name, source=self.name, features={"domain": 0.7})

    with open_engine(sources=[Twice()]) as engine:
        engine.add("fact", "The deploy takes four minutes")
        context = engine.context("deploy", overrides={"slots": {"facts": {"extra_sources": {"tickets": 5}}}})
        entries = [entry for entry in engine.receipts.get(context).candidates if entry.id == "fact_1"]
    assert len(entries) == 1
    assert entries[0].source == "search"
    assert entries[0].features["relevance"] > 0
    assert entries[0].features["domain"] == 0.7


def test_a_further_source_that_is_not_there_is_named() -> None:
    slots = {"facts": {"extra_sources": {"serach": 5}}}
    with (
        open_engine() as engine,
        pytest.raises(
            ProfileError, match=r"Slot 'facts' asks source 'serach', which does not exist\. Did you mean 'search'\?"
        ),
    ):
        engine.context("deploy", overrides={"slots": slots})


# --- the shipped ones ----------------------------------------------------------------------------------------------


def test_always_brings_rules_that_share_no_word_with_the_question() -> None:
    with open_engine() as engine:
        engine.add("instruction", "Answer in Celsius")
        assert "Answer in Celsius" in engine.context("Will it be warm in Lisbon?").text


def test_recent_brings_the_newest_and_shows_them_in_order_of_time_under_their_days() -> None:
    with open_engine() as engine:
        for n in range(5):
            engine.add("event", f"step {'abcde'[n]}", created=ago(n))
        context = engine.context("anything", overrides={"slots": {"recent": {"max_candidates": 3}}})
    assert context.text == ("## Recent Activity\n[2026-09-19]\n- step c\n[2026-09-20]\n- step b\n[2026-09-21]\n- step a\n")


def test_recent_without_kinds_means_any_but_rules() -> None:
    with open_engine() as engine:
        engine.add("fact", "The deploy takes four minutes")
        engine.add("instruction", "Be brief")
        context = engine.context("zzz", overrides={"slots": {"recent": {"kinds": []}}})
    assert [item.kind for item in context.items if item.section == "recent"] == ["fact"]


def test_given_texts_keep_the_callers_order() -> None:
    with open_engine() as engine:
        context = engine.context("zzz", extra=["First the parser", "Then the linker", "Last the loader"])
    assert context.text == "## Additional Context\n- First the parser\n- Then the linker\n- Last the loader\n"


def test_search_brings_what_shares_words_and_nothing_else() -> None:
    with open_engine() as engine:
        engine.add("fact", "The deploy takes four minutes")
        engine.add("fact", "Lunch is at noon")
        context = engine.context("How long does a deploy take?")
    assert (context.considered["search"], context.text) == (1, "## Known Information\n- The deploy takes four minutes\n")


def test_search_joins_vectors_with_a_small_weight() -> None:
    from foveate.text.embed import open_embedder

    with open_engine(embedder=open_embedder("hash:64")) as engine:
        engine.add("fact", "The deploy takes four minutes")
        context = engine.context("How long does a deploy take?")
    features = context.items[0].candidate.features
    assert features["match"] == pytest.approx(0.8 * features["lexical"] + 0.2 * features["vector"], abs=1e-5)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"tokens": 3000}, 200),
        ({"tokens": 10}, MIN_LIMIT),
        ({"tokens": 10**6}, MAX_LIMIT),
        ({"tokens": 3000, "max_candidates": 7}, 7),
        ({"share": 50}, 8000 // 15),
    ],
)
def test_a_slot_asks_for_as_many_as_its_room_could_hold(settings: dict[str, Any], limit: int) -> None:
    slot = Slot(name="a", source="search", **settings)
    profile = Profile(name="p", total=8000, written_for=8000, slots=(slot,))
    assert limit_of(slot, profile) == min(limit, MAX_LIMIT)


def test_004s_limits_reach_the_source() -> None:
    layers = resolve("assistant")
    limits = {slot.name: limit_of(slot, layers) for slot in layers.slots if slot.source == "search"}
    assert limits == {"decisions": 20, "facts": 30, "messages": 300, "procedures": 10, "episodes": 10}
