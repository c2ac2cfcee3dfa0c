"""The engine as its users meet it: requests, warnings, rules that outgrow their room, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import foveate
from foveate import BudgetError, Context, Filters, InputError
from foveate.errors import ProfileError
from foveate.receipts.codec import to_json
from worlds import NOW, WORLDS, World, ago, open_engine

RULE = "Rule number {0}: never promise a date for area {0}, name the ticket instead, and say who decided it, briefly."


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        yield engine


# --- the request ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", "   \n", None])
def test_an_empty_question_is_refused(engine: foveate.Engine, query: str) -> None:
    with pytest.raises(InputError, match="The query is empty"):
        engine.context(query)


WRONG_VALUES: list[tuple[Callable[[Any], object], str]] = [
    (lambda e: e.context(5), "query must be a text, got 5"),
    (lambda e: e.context("x", code_query=5), "code_query must be a text, got 5"),
    (lambda e: e.context("x", extra=5), "extra must hold texts, or mappings with a `text`, got 5"),
    (lambda e: e.context("x", extra=[5]), "extra must hold texts, or mappings with a `text`, got 5"),
    (lambda e: e.context("x", extra={"given": [5]}), "extra must hold texts, or mappings with a `text`, got 5"),
    (lambda e: e.search(5), "query must be a text, got 5"),
    (lambda e: e.search("x", limit="5"), "limit must be a whole number of at least 1, got '5'"),
    (lambda e: e.search("x", limit=-1), "limit must be a whole number of at least 1, got -1"),
    (lambda e: e.records(limit=0), "limit must be a whole number of at least 1, got 0"),
    (lambda e: e.receipts.list(limit=-1), "limit must be a whole number of at least 1, got -1"),
    (lambda e: e.receipts.sessions(limit=True), "limit must be a whole number of at least 1, got True"),
    (lambda e: e.receipts.timeline("s", limit=None), "limit must be a whole number of at least 1, got None"),
    (lambda e: e.inbox.list(limit=1.5), "limit must be a whole number of at least 1, got 1.5"),
    (lambda e: e.code.search("x", limit=0), "limit must be a whole number of at least 1, got 0"),
    (lambda e: e.receipts.get(5), "A context is named by its id, by 'last' or by itself, got 5"),
    (lambda e: e.why(5), "item must be the id of an item, or an item of a context, got 5"),
    (lambda e: e.remember(None), "messages must be a text, a message or a list of messages, got None"),
    (lambda e: e.add("gotcha", "x", data="high"), "data must be a mapping of field names to values, got 'high'. Write"),
    (lambda e: e.edit(e.add("note", "x").record.id, data="high"), "data must be a mapping of field names to values"),
    (lambda e: foveate.open(None), "path must be a folder, the URL of a database or ':memory:', got None"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG_VALUES, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_values_are_refused_with_the_rule(engine: foveate.Engine, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        call(engine)


def test_an_item_of_a_context_stands_for_its_id(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    item = engine.context("How long does a deploy take?").items[0]
    assert engine.why(item) == engine.why(item.id)


@pytest.mark.parametrize("budget", [0, -5, 1.5, "many"])
def test_a_budget_is_a_number_of_tokens(engine: foveate.Engine, budget: int) -> None:
    with pytest.raises(InputError, match="budget must be a positive number of tokens"):
        engine.context("deploy", budget=budget)


def test_unknown_names_get_near_matches(engine: foveate.Engine) -> None:
    with pytest.raises(ProfileError, match=r"'codng'.* Did you mean 'coding'"):
        engine.context("deploy", profile="codng")
    with pytest.raises(InputError, match=r"Unknown counter 'o20k'\. Did you mean 'o200k'"):
        engine.context("deploy", counter="o20k")
    with pytest.raises(ProfileError, match=r"Complexity 'hard' does not exist\. Known: complex, easy, normal"):
        engine.context("deploy", complexity="hard")
    with pytest.raises(ProfileError, match="has no slot 'fles' for extra texts. Did you mean 'files'"):  # noqa: RUF043
        engine.context("deploy", profile="task-files", extra={"fles": ["x"]})


def test_a_question_with_odd_characters_is_taken_as_it_can_be(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    context = engine.context("deploy\x00 \ud800 \u200b?")
    assert "four minutes" in context.text


def test_a_call_can_override_a_profile(engine: foveate.Engine) -> None:
    for n in range(5):
        engine.add("fact", f"The deploy of {'abcde'[n]} takes long")
    context = engine.context("deploy", overrides={"slots": {"facts": {"max_items": 2, "heading": "Facts"}}})
    assert context.text.startswith("## Facts\n")
    assert len(context.items) == 2
    layers = engine.receipts.get(context).profile.layers
    assert (layers["slots.facts.max_items"], layers["slots.facts.share"]) == ("call", "default")


def test_the_engine_has_defaults_of_its_own() -> None:
    with open_engine(profile="coding", budget=700) as engine:
        context = engine.context("deploy")
        assert (context.profile, context.budget.total) == ("coding", 700)
        assert engine.context("deploy", profile="default", budget=800).budget.total == 800


def test_the_same_request_on_the_same_state_has_the_same_id(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    one, same, other = engine.context("deploy"), engine.context("deploy"), engine.context("deploys")
    assert one.id == same.id != other.id
    assert one == same


def test_now_can_be_any_form_of_time(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes", created=ago(30))
    features = engine.context("deploy", now=NOW).items[0].candidate.features
    assert features["recency"] == 0.5
    assert engine.context("deploy", now="2026-09-21T14:13:20Z").id == engine.context("deploy", now=NOW).id


def test_filters_hold_for_what_is_searched_and_not_for_rules(engine: foveate.Engine) -> None:
    engine.add("instruction", "Be brief", tags=["style"])
    engine.add("fact", "The deploy takes four minutes", tags=["ops"])
    engine.add("decision", "Deploy on every merge", tags=["process"])
    context = engine.context("deploy", filters=Filters(tags=("ops",)))
    assert [item.kind for item in context.items] == ["instruction", "fact"]


def test_what_is_given_stands_under_its_heading(engine: foveate.Engine) -> None:
    context = engine.context("deploy", extra={"text": "Deploys are frozen", "kind": "gotcha", "severity": "high"})
    assert context.text == "## Additional Context\n- ⚠️ **high**: Deploys are frozen\n"
    assert engine.context("deploy", extra="Frozen").text == "## Additional Context\n- Frozen\n"


def test_one_text_for_a_slot_need_not_be_a_list(engine: foveate.Engine) -> None:
    context = engine.context("deploy", profile="assistant", extra={"frame": "Decision"})
    assert context.text == "## Current Approach\n- Decision\n"


def test_secrets_in_a_question_do_not_reach_the_receipt(engine: foveate.Engine) -> None:
    context = engine.context("Why does ghp_0123456789abcdefghijklmnopqrstuvwxyzAB fail?")
    assert "ghp_0123456789" not in str(to_json(engine.receipts.get(context)))


# --- state -> context ----------------------------------------------------------------------------------------------


def test_compute_changes_no_record(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    before = list(engine.store.export_lines())
    revision = engine.store.stats().revision
    engine.context("deploy")
    assert (list(engine.store.export_lines()), engine.store.stats().revision) == (before, revision)


def test_a_context_carries_nothing_over_from_the_one_before(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    engine.add("fact", "Lunch is at noon")
    engine.context("deploy")
    assert engine.context("lunch").text == "## Known Information\n- Lunch is at noon\n"


def test_nothing_relevant_gives_nothing(engine: foveate.Engine) -> None:
    engine.add("fact", "Lunch is at noon", created=ago(400))
    assert engine.context("How do I rotate a certificate?").text == ""


def test_sessions_are_no_walls_for_what_was_learned(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes", session="one")
    engine.add("scratch", "The deploy log is in /tmp", session="one")
    context = engine.context("deploy", session="two", overrides={"slots": {"facts": {"kinds": ["fact", "scratch"]}}})
    assert context.text == "## Known Information\n- The deploy takes four minutes\n"


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_every_world_validates(world: World) -> None:
    with world.open() as engine:
        context = world.context(engine)
        found = engine.receipts.validate(context)
    assert found.valid is True
    assert context.tokens <= context.budget.ceiling


def test_an_embedder_that_fails_costs_the_vectors_and_not_the_answer() -> None:
    class Down:
        fingerprint = "down:3"
        dim = 3

        def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
            raise OSError("connection refused")

    with open_engine(embedder=Down()) as engine:
        engine.add("fact", "The deploy takes four minutes")
        context = engine.context("deploy")
    assert "four minutes" in context.text
    assert context.warnings[0].startswith("No vector for the query (")


# --- rules that outgrow their room -----------------------------------------------------------------------------------


def rules(engine: foveate.Engine, number: int) -> list[foveate.Engine]:
    return [engine.add("instruction", RULE.format(n)) for n in range(number)]  # type: ignore[misc]


def test_a_few_rules_warn_nobody(engine: foveate.Engine) -> None:
    assert [added.warnings for added in rules(engine, 3)] == [(), (), ()]  # type: ignore[attr-defined]
    assert engine.store.oversized_rules() == []


def test_adding_the_rule_that_no_longer_fits_warns(engine: foveate.Engine) -> None:
    warned = [bool(added.warnings) for added in rules(engine, 40)]  # type: ignore[attr-defined]
    assert warned == sorted(warned)
    assert warned[-1]
    (warning,) = engine.store.oversized_rules()
    assert warning.startswith("Slot 'rules' has 600 tokens and its records need ")
    assert warning.endswith("Retire or shorten some, or raise slots.rules.tokens.")
    assert engine.store.health().facts["warnings"] == [warning]


def test_other_records_are_added_without_a_look_at_the_rules(engine: foveate.Engine) -> None:
    rules(engine, 40)
    assert engine.add("fact", "The deploy takes four minutes").warnings == ()


def test_rules_are_shown_in_full_take_room_from_others_and_say_so(engine: foveate.Engine) -> None:
    rules(engine, 60)
    context = engine.context("anything", budget=4000)
    assert [item.level for item in context.items] == ["full"] * 60
    slot = next(slot for slot in context.budget.slots if slot.name == "rules")
    assert slot.borrowed > 0
    assert context.warnings == (
        f"Slot 'rules' needs more than its {slot.base} tokens and took {slot.borrowed} from other slots.",
    )


def test_a_slot_that_asks_for_less_does_not_shorten_a_rule(engine: foveate.Engine) -> None:
    rule = f"Never restart the database. {'Customers lose their open carts when it goes down. ' * 30}".strip()
    engine.add("censor", rule, data={"action": "block"})
    engine.add("fact", f"The database holds carts. {'Carts are kept for thirty days and then deleted. ' * 30}")
    micro = {name: {"level": "micro", "max_level": "micro"} for name in ("rules", "facts")}
    context = engine.context("database", overrides={"slots": micro})
    assert {item.section: item.level for item in context.items} == {"rules": "full", "facts": "micro"}
    assert rule in context.text
    more = {"slots": {"more_rules": {"source": "given", "share": 1}}}
    extra = {"more_rules": {"kind": "censor", "text": f"{rule} Nor the queue."}}
    context = engine.context("database", extra=extra, budget=450, overrides=more)
    lost = next(lost for lost in context.left_out if lost.section == "more_rules")
    assert (lost.kind, lost.reason) == ("censor", "budget")


def test_and_when_even_that_does_not_fit_the_error_says_by_how_much(engine: foveate.Engine) -> None:
    rules(engine, 60)
    with pytest.raises(BudgetError, match=r"The slots that must be kept \(rules\) need") as raised:
        engine.context("anything", budget=300)
    assert len(engine.context("anything", budget=300 + raised.value.short).items) == 60
    with pytest.raises(BudgetError):
        engine.context("anything", budget=300 + raised.value.short - 1)


def test_a_pinned_rule_stays_among_the_rules(engine: foveate.Engine) -> None:
    engine.add("censor", "Deploying on Fridays", pinned=True)
    engine.add("fact", "Ana is allergic to peanuts", pinned=True)
    assert engine.context("anything").text == (
        "## Active Constraints\n- **WARN:** Deploying on Fridays\n\n## Pinned\n- Ana is allergic to peanuts\n"
    )


# --- small budgets ---------------------------------------------------------------------------------------------------


def ids(context: Context) -> set[str]:
    return {item.id for item in context.items}


def test_a_small_budget_shows_the_best_of_several_sorts(engine: foveate.Engine) -> None:
    for n in range(12):
        engine.add("decision", f"Deploy decision {'abcdefghijkl'[n]}: the deploy runs on host{n}")
        engine.add("fact", f"Deploy fact {'abcdefghijkl'[n]}: the deploy needs token{n}")
    answers = {
        engine.add("procedure", "Call deploy rollback and wait", data={"name": "Roll back a deploy"}).record.id,
        engine.add("decision", "Roll back a deploy after two failed checks").record.id,
        engine.add("fact", "You can roll back a deploy for an hour").record.id,
    }
    context = engine.context("How do I roll back a deploy?", budget=160)
    assert answers <= ids(context)
    assert {item.section for item in context.items} == {"decisions", "facts", "procedures"}
    shown = ids(engine.context("How do I roll back a deploy?", budget=70))
    assert answers <= shown, "those that share one word with the question are not shown instead"
    assert not any(id.startswith("decision") for id in shown - answers)


@pytest.mark.slow
def test_a_larger_budget_shows_at_least_as_much_of_each_best(engine: foveate.Engine) -> None:
    for n in range(12):
        engine.add("decision", f"Deploy decision {'abcdefghijkl'[n]}: the deploy runs on host{n}")
        engine.add("fact", f"Deploy fact {'abcdefghijkl'[n]}: the deploy needs token{n}")
    before: set[str] = set()
    for budget in range(20, 600, 7):
        context = engine.context("deploy", budget=budget)
        best = {item.id for item in context.items if item.rank == 1}
        assert before <= best
        before = best


def test_a_budget_of_one_token_gives_nothing(engine: foveate.Engine) -> None:
    engine.add("fact", "The deploy takes four minutes")
    context = engine.context("deploy", budget=1)
    assert (context.text, context.tokens, context.truncated) == ("", 0, True)


# --- known faults ----------------------------------------------------------------------------------------------------


def test_forgetting_reaches_receipts_that_are_not_yet_written(engine: foveate.Engine) -> None:
    id = engine.add("fact", "The deploy takes four minutes").record.id
    context = engine.context("deploy")
    engine.forget(id)
    assert id not in str(to_json(engine.receipts.get(context)))


def test_a_confirmed_fact_can_be_edited(engine: foveate.Engine) -> None:
    id = engine.add("fact", "The deploy takes four minutes").record.id
    engine.feedback(confirmed=[id])
    assert engine.edit(id, text="The deploy takes five minutes").text == "The deploy takes five minutes"
