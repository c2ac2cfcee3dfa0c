"""why, why_not, diff, validate, scrub: the questions that a receipt answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path

import pytest

import foveate
from foveate import Candidate, Filters, InputError, NotFound, testing
from foveate.clock import iso
from foveate.options import Who
from foveate.pipeline.request_summary import FORGOTTEN
from foveate.pipeline.sources import SlotRequest, SourceContext
from foveate.receipts.codec import context_to_json, from_json, pack, scrub, summary_to_json, to_json, unpack
from foveate.receipts.diff import ItemChange
from foveate.receipts.parts import Notes, RefreshNote
from worlds import NOW, ago, clock, counting_ids, open_engine


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        yield engine


# --- who may read a receipt ------------------------------------------------------------------------------------------


SCOPES: list[Who] = [{}, {"agent": "a"}, {"agent": "b"}, {"user": "ada"}, {"user": "ada", "agent": "a"}]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("owner", SCOPES, ids=str)
def test_only_its_own_user_and_agent_can_read_a_receipt(engine: foveate.Engine, owner: Who, written: bool) -> None:
    """The same before and after the receipt is written: what a caller sees must not depend on the process that asks."""
    context = engine.scoped(**owner).context("How long does a deploy take?")
    if written:
        engine.receipts.flush()
    for scope in SCOPES:
        reader = engine.scoped(**scope)
        if owner.items() <= scope.items():
            assert reader.receipts.get(context.id).id == context.id
        else:
            with pytest.raises(NotFound, match="No receipt"):
                reader.receipts.get(context.id)
            with pytest.raises(NotFound, match="No context was computed yet"):
                reader.receipts.get()
    assert engine.scoped(**owner).receipts.get().id == context.id


# --- records that were never candidates ------------------------------------------------------------------------------


def test_the_records_in_scope_that_were_never_candidates_are_counted() -> None:
    clock = testing.FixedClock(NOW)
    with open_engine(clock=clock) as engine:
        engine.add("instruction", "Answer in English")
        engine.add("fact", "The deploy takes four minutes")
        for n in range(7):
            engine.add("fact", f"Lunch on day {n} is soup number {n}")
        retired = engine.add("fact", "Lunch was at eleven").record.id
        engine.edit(retired, status="retired")
        engine.add("fact", "Lunch of another user", user="ada")
        engine.add("scratch", "Lunch of another task", task="t1")
        context = engine.context("How long does a deploy take?")
        assert len(context.receipt.candidates) == 2
        assert engine.receipts.count_not_considered(context) == 7
        clock.tick()
        engine.add("fact", "Lunch was moved afterwards")
        assert engine.receipts.count_not_considered(context.id) == 7
        assert engine.receipts.validate(context).not_considered == 7
        for_ada = engine.context("How long does a deploy take?", user="ada")
        assert engine.scoped(user="ada").receipts.count_not_considered(for_ada) == 9


# --- lines ---------------------------------------------------------------------------------------------------------


def test_a_line_says_what_the_receipt_says(engine: foveate.Engine) -> None:
    engine.add("instruction", "Answer in English")
    used, marked = (engine.add("fact", f"The deploy takes {n} minutes").record.id for n in ("four", "some"))
    context = engine.context("How long does a deploy take?", session="s1", budget=500)
    engine.receipts.add_notes(
        context.id, Notes(turns=2, refresh=RefreshNote("topic", "ctx_0"), used=(used,), marks={marked: "wrong"})
    )
    (line,) = engine.receipts.list()
    receipt = engine.receipts.get(context.id)
    found = [entry.features["relevance"] for entry in receipt.candidates if entry.source == "search" and entry.is_kept]
    assert summary_to_json(line) == {
        "id": context.id,
        "created": iso(NOW),
        "now": NOW,
        "query": "How long does a deploy take?",
        "profile": "default",
        "scope": {"project": "main", "user": None, "agent": None, "session": "s1", "task": None},
        "tokens": context.tokens,
        "total": 500,
        "reserve": context.budget.reserve,
        "framing": context.budget.framing,
        "slots": {slot.name: slot.used for slot in context.budget.slots if slot.used},
        "items": len(context.items),
        "left_out": len(context.left_out),
        "ms": receipt.ms,
        "text_hash": receipt.text_hash,
        "prefix": {"hash": context.prefix.hash, "tokens": context.prefix.tokens},
        "relevance": pytest.approx(1 - prod(1 - relevance for relevance in found), abs=1e-6),
        "precision": 0.5,
        "notes": {"turns": 2, "refresh": "topic", "used": 1, "marks": {"wrong": 1}},
        "warnings": 0,
    }


def test_a_line_shows_the_beginning_of_a_long_question(engine: foveate.Engine) -> None:
    engine.context("deploy " * 1000)
    assert len(engine.receipts.list()[0].query) == 1001


def test_lines_come_in_pages_and_by_session(engine: foveate.Engine) -> None:
    ids = [engine.context(f"deploy {n}", session=f"s{n % 2}", now=NOW + n).id for n in range(5)]
    first = engine.receipts.list(limit=2)
    assert [line.id for line in first] == [ids[4], ids[3]]
    assert [line.id for line in engine.receipts.list(limit=9, after=(first[-1].created, first[-1].id))] == [
        ids[2],
        ids[1],
        ids[0],
    ]
    assert [line.id for line in engine.receipts.list(session="s1")] == [ids[3], ids[1]]
    named = [(found.name, found.contexts) for found in engine.receipts.sessions()]
    assert named == [("s0", 3), ("s1", 2)]


def test_forgetting_a_record_empties_it_out_of_the_lines(engine: foveate.Engine) -> None:
    id = engine.add("fact", "The password of Mallory is xyzzy").record.id
    engine.context("What is the xyzzy of Mallory?")
    assert "xyzzy" in engine.receipts.list()[0].query
    engine.forget(id)
    (line,) = engine.receipts.list()
    assert (line.query, line.forgotten, line.items, line.relevance) == (FORGOTTEN, 1, 0, None)


@pytest.mark.parametrize(("session", "said"), [("s" * 501, "500 bytes"), ("a\0b", "NUL")])
def test_a_session_is_a_name(engine: foveate.Engine, session: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        engine.context("deploy", session=session)


# --- why -----------------------------------------------------------------------------------------------------------


def test_why_takes_a_score_apart(engine: foveate.Engine) -> None:
    id = engine.add("fact", "The deploy takes four minutes").record.id
    engine.context("How long does a deploy take?")
    why = engine.why(id)
    assert (why.included, why.reason, why.needs_tokens) == (True, "", 0)
    assert str(why).startswith("kept in 'facts' at level summary, ")
    assert sum(why.score_parts.values()) == pytest.approx(why.candidate.score, abs=1e-5)
    assert set(why.score_parts) == set(engine.receipts.get().profile.weights)


def test_why_says_what_was_missing(engine: foveate.Engine) -> None:
    for n in range(40):
        engine.add("fact", f"The deploy of service{chr(97 + n % 26)}{n} takes long, and nobody has measured it properly yet")
    context = engine.context("How long does a deploy take?", budget=120)
    lost = next(omission for omission in context.left_out if omission.reason == "budget")
    why = engine.why(lost.id, context)
    assert str(why).startswith("left out: budget, in 'facts'; needs +")
    assert why.needs_tokens == lost.needs_tokens > 0
    assert context.truncated


def test_why_prefers_the_slot_in_which_a_record_is_shown(engine: foveate.Engine) -> None:
    id = engine.add("fact", "The deploy takes four minutes", pinned=True).record.id
    context = engine.context("How long does a deploy take?")
    assert len([entry for entry in engine.receipts.get(context).candidates if entry.id == id]) == 2
    assert engine.why(id, context).candidate.slot == "pinned"


def test_every_reason_has_a_sentence(engine: foveate.Engine) -> None:
    old = engine.add("fact", "The deploy region is eu-west-1", subject="deploy", attribute="region").record.id
    new = engine.add("fact", "The deploy region is eu-central-1", subject="deploy", attribute="region").record.id
    twin = engine.add("note", "The deploy region is eu-central-1!").record.id
    out = engine.add("fact", "Deploy freeze starts on Friday").record.id
    bad = engine.add("decision", "Deploy by hand in the holiday season", created=ago(4000), confidence=0.0).record.id
    many = [engine.add("gotcha", f"A deploy fails on host {n}").record.id for n in range(2)]
    context = engine.context(
        "Which deploy region holds?",
        filters=Filters(exclude=(out,)),
        overrides={"slots": {"warnings": {"max_items": 1, "min_relevance": 0}, "decisions": {"min_relevance": 0.9}}},
    )
    why = {id: str(engine.why(id, context)) for id in (old, new, twin, out, bad, *many)}
    assert why[old] == f"left out: superseded by {new}, in 'facts'"
    assert why[new].startswith("kept in 'facts'")
    assert why[twin] == f"left out: duplicate of {new}, in 'facts'"
    assert why[out] == "left out: excluded by the request, in 'facts'"
    assert why[bad].startswith("left out: below min_relevance (floor 0.9), in 'decisions'; needs +0.")
    assert sum(why[id].startswith("left out: max_items (rank 2 of 1)") for id in many) == 1


# --- why not -------------------------------------------------------------------------------------------------------


def not_in(engine: foveate.Engine, id: str, context: foveate.Context) -> tuple[str, str]:
    found = engine.why(id, context)
    assert not found.included
    return found.reason, str(found)


def test_no_slot_asks_for_it(engine: foveate.Engine) -> None:
    id = engine.add("issue", "The deploy is slow").record.id
    reason, sentence = not_in(engine, id, engine.context("Why is the deploy slow?"))
    assert reason == "no slot"
    assert sentence == "not considered: no slot of profile 'default' asks for records of kind 'issue'"


@pytest.mark.parametrize(
    ("filters", "which"),
    [
        (Filters(since=NOW + 1), "since"),
        (Filters(until=NOW), "until"),
        (Filters(kinds=("decision",)), "kinds"),
        (Filters(tags=("ops",)), "tags"),
        (Filters(min_trust="user"), "min_trust"),
    ],
)
def test_it_was_filtered(engine: foveate.Engine, filters: Filters, which: str) -> None:
    id = engine.add("fact", "The deploy is slow", trust="agent").record.id
    context = engine.context("Why is the deploy slow?", filters=filters)
    assert not_in(engine, id, context) == ("filtered", f"not considered: the request's filter on {which}")


def test_it_is_retired(engine: foveate.Engine) -> None:
    id = engine.add("fact", "The deploy is slow").record.id
    engine.edit(id, status="retired")
    assert not_in(engine, id, engine.context("Why is the deploy slow?")) == ("retired", "not considered: it is retired")


def test_it_shares_no_word(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy is slow")
    id = engine.add("fact", "Lunch is at noon").record.id
    reason, sentence = not_in(engine, id, engine.context("Why is the deploy slow?"))
    assert (reason, sentence) == ("no shared term", "not considered: it shares no word with the query (lunch, noon)")


def test_its_rank_is_beyond_the_limit(engine: foveate.Engine) -> None:
    for n in range(4):
        engine.add("fact", f"deploy deploy deploy {'abcd'[n]}host")
    id = engine.add("fact", "Someone once saw a very long line that also has a deploy somewhere in it").record.id
    context = engine.context("deploy", overrides={"slots": {"facts": {"max_candidates": 2}}})
    reason, sentence = not_in(engine, id, context)
    assert reason == "limit"
    assert sentence == "not considered: rank 5, beyond the 2 that slot 'facts' asks for; shares deploy"


def test_a_recent_record_is_beyond_the_limit(engine: foveate.Engine) -> None:
    ids = [engine.add("event", f"step {n}", created=ago(n + 1)).record.id for n in range(4)]
    slots = {"recent": {"max_candidates": 2, "kinds": ["event"]}, "messages": {"remove": True}}
    context = engine.context("anything", overrides={"slots": slots})
    assert not_in(engine, ids[3], context)[0] == "limit"


@pytest.mark.parametrize(("found", "explanation"), [
    (1, ("not found", "not considered: source 'urgent' did not return it")),
    (2, ("limit", "not considered: it is beyond the 2 that slot 'urgent' asks 'urgent' for")),
])  # fmt: skip
def test_a_source_of_the_user_reached_its_limit_or_did_not_return_it(found: int, explanation: tuple[str, str]) -> None:
    class Urgent(foveate.Source):
        name = "urgent"

        def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> list[Candidate]:
            issues = context.reader.recent(["issue"], found, context.request.filters)
            return [self.candidate(request, issue) for request in requests for issue in issues]

    with open_engine(sources=[Urgent()]) as engine:
        ids = [engine.add("issue", f"Issue {n}", created=ago(n + 1)).record.id for n in range(3)]
        slots = {"urgent": {"source": "urgent", "kinds": ["issue"], "share": 5, "max_candidates": 2}}
        context = engine.context("anything", overrides={"slots": slots})
        assert not_in(engine, ids[2], context) == explanation


@pytest.mark.parametrize(("source", "clause"), [
    ("domains", "it has no tag of a domain or task type of the request"),
    ("latest", "it is not the newest record of its kind"),
    ("highlights", "it is not among the most important records of the latest other sessions"),
    ("transitive", "no dependency leads to it"),
])  # fmt: skip
def test_a_source_that_selects_by_a_relation_says_which_one_is_missing(
    engine: foveate.Engine, source: str, clause: str
) -> None:
    id = engine.add("issue", "The deploy is slow", created=ago(2)).record.id
    engine.add("issue", "The login is slow", created=ago(1))
    slots = {"issues": {"source": source, "kinds": ["issue"], "share": 5}}
    context = engine.context("anything", overrides={"slots": slots})
    assert not_in(engine, id, context) == ("unrelated", f"not considered: {clause}")


def test_a_full_source_cannot_tell_an_unrelated_record_from_one_beyond_the_limit(engine: foveate.Engine) -> None:
    ids = [engine.add("issue", f"Cover the login with a test {n}", tags=["testing"]).record.id for n in range(3)]
    slots = {"issues": {"source": "domains", "kinds": ["issue"], "share": 5, "max_candidates": 2}}
    context = engine.context("Which tests are missing?", overrides={"slots": slots})
    shown = {item.id for item in context.items}
    sentences = [not_in(engine, id, context)[1] for id in ids if id not in shown]
    assert len(sentences) == 1
    assert sentences[0].endswith(", or it is beyond the 2 that slot 'issues' asks 'domains' for")


def test_it_was_written_later(engine: foveate.Engine) -> None:
    context = engine.context("Why is the deploy slow?", now=ago(1))
    id = engine.add("fact", "The deploy is slow").record.id
    assert not_in(engine, id, context)[0] == "later"


def test_it_was_written_later_with_an_earlier_date(engine: foveate.Engine) -> None:
    context = engine.context("Why is the deploy slow?")
    id = engine.add("fact", "The deploy is slow", created=ago(9)).record.id
    reason, sentence = not_in(engine, id, context)
    assert (reason, sentence) == ("later", "not considered: it was written or changed after this context was computed")


def test_its_source_failed() -> None:
    class Broken(foveate.Source):
        name = "broken"

        def find(self, asks: object, around: object) -> list[object]:
            raise RuntimeError("no connection")

    with open_engine(sources=[Broken()]) as engine:
        id = engine.add("issue", "The deploy is slow").record.id
        slots = {"issues": {"source": "broken", "kinds": ["issue"], "share": 5}}
        context = engine.context("deploy", overrides={"slots": slots})
        reason, sentence = not_in(engine, id, context)
        assert reason == "source failed"
        assert "RuntimeError: no connection" in sentence


def test_an_unknown_id_is_not_found(engine: foveate.Engine) -> None:
    context = engine.context("anything")
    with pytest.raises(NotFound, match="No record 'fact_99' in this scope"):
        engine.why("fact_99", context)


def test_why_answers_for_every_record_and_points_to_no_command(engine: foveate.Engine) -> None:
    """One call, with the item first: for what is shown, for what no source returned, and NotFound only for an unknown id."""
    shown = engine.add("fact", "The deploy is slow").record.id
    other = engine.add("fact", "The office is in Oslo").record.id
    context = engine.context("Why is the deploy slow?")
    assert (engine.why(shown).included, engine.why(shown).reason) == (True, "")
    assert engine.why(shown, context) == engine.why(shown, "last") == engine.why(shown)
    assert (engine.why(other).included, engine.why(other).reason) == (False, "no shared term")
    with pytest.raises(NotFound) as error:
        engine.why("fact_99")
    assert "`" not in str(error.value)


# --- diff ----------------------------------------------------------------------------------------------------------


def test_diff_lists_what_changed(engine: foveate.Engine) -> None:
    engine.add("identity", "Brief.")
    gone = engine.add("fact", "The deploy takes four minutes").record.id
    stays = engine.add("decision", "Deploy on every merge").record.id
    one = engine.context("Tell me about the deploy")
    engine.edit(gone, status="retired")
    engine.edit(stays, outcome="success")
    new = engine.add("fact", "The deploy needs a token").record.id
    other = engine.context("Tell me about the deploy")
    diff = engine.receipts.diff(one, other)
    assert [entry.id for entry in diff.added] == [new]
    assert [entry.id for entry in diff.withdrawn] == [gone]
    assert diff.version_changes == (ItemChange(stays, 1, 2),)
    assert diff.tokens == other.tokens - one.tokens
    assert diff.same_prefix is True
    assert diff.shared_prefix.chars >= one.prefix.chars
    assert diff.texts == (one.text, other.text)
    assert (diff.before, diff.after) == (one.id, other.id)


def test_diff_lists_what_moved_and_what_has_another_level(engine: foveate.Engine) -> None:
    long = " ".join(f"The deploy of host{n} takes {n} minutes and then some." for n in range(40))
    id = engine.add("fact", long).record.id
    one, other = (engine.context("deploy", budget=budget, profile="coding") for budget in (3000, 300))
    assert engine.receipts.diff(one, other).level_changes == (ItemChange(id, "full", "passage"),)
    engine.edit(id, pinned=True)
    moved = engine.receipts.diff(one, engine.context("deploy", budget=3000)).place_changes
    assert moved == (ItemChange(id, "facts 1", "pinned 1"),)


def test_a_context_differs_from_itself_in_nothing(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    context = engine.context("deploy")
    diff = engine.receipts.diff(context, context)
    assert not any((diff.added, diff.withdrawn, diff.place_changes, diff.level_changes, diff.version_changes, diff.tokens))
    assert diff.shared_prefix.chars == len(context.text)


# --- validate ------------------------------------------------------------------------------------------------------


def test_validate_gives_001s_answer(engine: foveate.Engine) -> None:
    engine.add("identity", "You implement one task at a time.")
    context = engine.context("Add retries", profile="task-files", extra={"files": ["def f(): ..."]})
    found = engine.receipts.validate(context)
    assert found.valid is True
    assert (found.token_count, found.max_tokens) == (context.tokens, 134_000)
    breakdown = found.breakdown
    slots = ("system_prompt", "repo_map", "codebase_docs", "task_spec", "files", "code", "memories")
    assert set(breakdown) == {*slots, "reserved", "total"}
    assert breakdown["reserved"] == 16_000
    assert breakdown["total"] == context.tokens + 16_000
    assert [warning.partition("Left empty: ")[2] for warning in found.warnings] == ["codebase_docs, repo_map, code."]
    assert found.suggestions == (
        "Nothing was found for 'memories'.",
        f"{context.tokens} of 134,000 tokens are used; a budget of 18,000 would do.",
    )


def test_validate_suggests_more_room_where_something_did_not_fit(engine: foveate.Engine) -> None:
    for n in range(30):
        engine.add("fact", f"The deploy of host{'abcdefghij'[n % 10]}{n} takes long and nobody knows why it does")
    context = engine.context("deploy", budget=150)
    (suggestion,) = engine.receipts.validate(context).suggestions
    lost = sum(omission.reason == "budget" for omission in context.left_out)
    assert suggestion.startswith(f"{lost} in 'facts' did not fit")
    got = next(slot.granted for slot in context.budget.slots if slot.name == "facts")
    assert suggestion.endswith(f"raise the budget (150 now), or slots.facts.share; 'facts' got {got} tokens.")


# --- keeping and forgetting ----------------------------------------------------------------------------------------


def test_a_receipt_holds_no_text_of_a_record(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes fourteen wonderful minutes")
    context = engine.context("deploy")
    assert "wonderful" not in json.dumps(to_json(engine.receipts.get(context)))


def test_a_receipt_survives_packing(engine: foveate.Engine) -> None:
    engine.add("fact", "Ein Café in 東京")
    receipt = engine.receipts.get(engine.context("café"))
    assert unpack(pack(receipt).body) == receipt
    assert pack(receipt).shown_ids == ("fact_1",)


def test_a_receipt_of_version_0_1_is_read_under_the_old_names_of_settings(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    receipt = engine.receipts.get(engine.context("deploy"))
    document = to_json(receipt)
    profile = document["profile"]
    names = ("half_life_hours", "half_life"), ("expansion_weight", "related_weight"), ("flexible_share", "flexible")
    for new, old in (*names, ("choose_frame", "frames")):
        profile[old] = profile.pop(new)
    names = ("extra_sources", "also"), ("empty_text", "empty"), ("max_candidates", "limit")
    for slot in profile["slots"]:
        for new, old in (*names, ("max_level", "deepest"), ("pinned_only", "pinned"), ("min_relevance", "min_score")):
            slot[old] = slot.pop(new)
    assert from_json(document) == receipt


def test_a_receipt_of_version_0_1_is_read_under_the_old_names_of_reasons(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    strict = {"slots": {"facts": {"min_relevance": 1, "fill": "none"}}}
    receipt = engine.receipts.get(engine.context("deploy", overrides=strict))
    document = to_json(receipt)
    (entry,) = document["candidates"]
    assert (entry["reason"], entry["needs_relevance"] > 0) == ("min_relevance", True)
    entry |= {"reason": "min_score", "needs_score": entry.pop("needs_relevance")}
    assert from_json(document) == receipt


def test_a_validation_names_the_best_relevance_of_an_empty_slot(engine: foveate.Engine) -> None:
    for n in range(2):
        engine.add("fact", f"The deploy takes four minutes on host {'ab'[n]}")
    strict = {"slots": {"facts": {"min_relevance": 0.99, "fill": "none"}}}
    context = engine.context("How long does the deploy take?", overrides=strict)
    best = max(omission.candidate.features["relevance"] for omission in context.left_out)
    expected = f"the best of 2 for 'facts' has {best:.2g}, and slots.facts.min_relevance is 0.99"
    assert f"Nothing was relevant enough: {expected}." in engine.receipts.validate(context).suggestions


def test_receipts_are_kept_in_the_store(tmp_path: Path) -> None:
    with testing.engine(tmp_path, clock=clock, ids=counting_ids()) as engine:
        engine.add("fact", "The deploy takes four minutes")
        context = engine.context("deploy")
    with testing.engine(tmp_path, clock=clock, ids=counting_ids()) as engine:
        assert engine.receipts.get().id == context.id
        assert engine.receipts.replay(context.id).text == context.text
        with pytest.raises(NotFound, match="No receipt 'ctx_0'"):
            engine.receipts.get("ctx_0")


def test_many_receipts_are_written_together_and_all_found(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    contexts = [engine.context(f"deploy {n}") for n in range(40)]
    assert all(engine.receipts.get(context).id == context.id for context in contexts)
    assert engine.receipts.get().id == contexts[-1].id


def test_no_receipt_before_the_first_context(engine: foveate.Engine) -> None:
    with pytest.raises(NotFound, match="No context was computed yet"):
        engine.receipts.get()


def test_scrub_takes_out_a_record_its_twins_and_the_question(engine: foveate.Engine) -> None:
    old = engine.add("fact", "The deploy region is eu-west-1", subject="deploy", attribute="region").record.id
    new = engine.add("fact", "The deploy region is eu-central-1", subject="deploy", attribute="region").record.id
    body = pack(engine.receipts.get(engine.context("Which deploy region?", filters=Filters(exclude=(old,))))).body
    cleaned = scrub(body, frozenset([new]))
    assert cleaned is not None
    document, short = to_json(unpack(cleaned[0])), json.loads(cleaned[1])
    assert new not in json.dumps(document)
    assert (short["query"], short["forgotten"], short["items"]) == (FORGOTTEN, 2, 0)
    assert document["request"]["query"] == FORGOTTEN
    assert document["forgotten"] == 2
    assert scrub(body, frozenset(["fact_99"])) is None


def test_why_not_owns_up_when_the_question_was_forgotten(engine: foveate.Engine) -> None:
    gone = engine.add("fact", "The deploy takes four minutes").record.id
    other = engine.add("fact", "Lunch is at noon").record.id
    context = engine.context("deploy")
    engine.receipts.flush()
    engine.forget(gone)
    assert engine.why(other, context.id).reason == "forgotten"


def test_the_same_text_given_twice_is_kept_once_in_the_receipt_too(engine: foveate.Engine) -> None:
    context = engine.context("deploy", extra=["The deploy failed", "The deploy failed"])
    kept = [entry.is_kept or entry.reason for entry in engine.receipts.get(context).candidates]
    assert kept == [True, "duplicate"]


def test_the_document_of_a_context_has_the_promised_fields(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    document = context_to_json(engine.context("deploy"))
    assert list(document) == [
        "schema_version", "id", "text", "messages", "tokens", "budget", "sections", "items", "left_out", "truncated",
        "considered", "profile", "prefix", "warnings",
    ]  # fmt: skip
    assert {"id", "kind", "slot", "level", "tokens", "score", "features", "source"} == set(document["items"][0])
    assert {"name", "content", "source"} == set(document["sections"][0])
    assert {"name", "granted", "used", "items"} <= set(document["budget"]["slots"][0])
    assert document == json.loads(json.dumps(document))


def test_notes_on_ones_receipt_survive_anothers_save() -> None:
    with open_engine() as engine:
        alice, bob = (engine.scoped(user=name) for name in ("alice", "bob"))
        fact = alice.add("fact", "Deploys happen on Tuesdays").record
        context = alice.context("When do deploys happen?")
        alice.receipts.flush()
        alice.feedback(context.id, useful=[fact.id])
        bob.receipts.list(limit=1)
        alice.feedback(context.id, useful=[fact.id])
        assert alice.receipts.get(context.id).notes.marks == {fact.id: "useful"}
        assert alice.get(fact.id).wins == 1
        later = alice.context("On which day do deploys happen?")
        alice.receipts.flush()
        alice.feedback(later.id, useful=[fact.id])
        bob.receipts.list(limit=1)
        assert alice.receipts.get(later.id).notes.marks == {fact.id: "useful"}


@pytest.mark.parametrize("written", [False, True])
def test_the_latest_receipt_of_a_session_is_its_own(written: bool) -> None:
    with open_engine() as engine:
        one, other = (engine.scoped(session=name) for name in ("s1", "s2"))
        one.context("What is known?")
        if written:
            one.receipts.flush()
        with pytest.raises(NotFound):
            other.receipts.get()


# --- what was asked ------------------------------------------------------------------------------------------------


def test_why_reports_the_slot_that_shows_the_record_and_else_the_first(tmp_path: Path) -> None:
    strict = {"source": "search", "kinds": ["fact"], "share": 10, "min_relevance": 0.999}
    with foveate.open(tmp_path, personal=False, code=False) as engine:
        id = engine.add("fact", "The walrus sleeps on the harbour wall").record.id
        for order in (1, 999):  # before and after the slot that shows it
            overrides = {"slots": {"strict": {**strict, "order": order}}}
            context = engine.context("Where does the walrus sleep?", overrides=overrides)
            entries = [entry for entry in engine.receipts.get(context).candidates if entry.id == id]
            shown = [("strict", False), ("facts", True)]
            assert [(entry.slot, entry.is_kept) for entry in entries] == (shown if order == 1 else shown[::-1])
            assert engine.why(id, context).candidate.slot == "facts"
            assert str(engine.why(id, context)).startswith("kept in 'facts'")
        both = {"slots": {"strict": strict, "facts": {"min_relevance": 0.999, "fill": "none"}}}
        assert engine.why(id, engine.context("Where does the walrus sleep?", overrides=both)).reason == "min_relevance"
