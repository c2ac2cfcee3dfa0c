"""rank() and fit(): who is eligible, who says the same, who fits, and what the others lacked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foveate.pipeline.duplicates import are_near_duplicates
from foveate.pipeline.selection import MIN_ANSWERABLE, SHARE_OF_BEST, fit, levels_of, min_tokens, rank, value_per_token
from foveate.records.fence import SharedCosts
from foveate.records.make import sketch
from foveate.types import NO_FILTERS, Candidate, Filters, LeftOut, Profile, Record, Scope, Slot


def slot(name: str = "a", **settings: object) -> Slot:
    return Slot(name=name, source="search", share=1, **settings)  # type: ignore[arg-type]


def profile(*slots: Slot) -> Profile:
    return Profile(name="p", total=1000, written_for=1000, slots=slots or (slot(),), weights={"relevance": 1.0})


def candidate(
    id: str,
    score: float = 0.5,
    sizes: tuple[int, int, int] = (30, 20, 10),
    *,
    text: str = "",
    slot: str = "a",
    kind: str = "note",
    answerable: float = 0.0,
    **values: object,
) -> Candidate:
    """A record of a relevance; without other features, its score is the same."""
    text = text or f"{id} stands alone{id}"
    record = Record(
        id=id, kind=kind, scope=Scope("main"), text=text, summary=text, micro=text, sketch=sketch(text),
        tokens=dict(zip(("full", "summary", "micro"), sizes, strict=True)), **values,  # type: ignore[arg-type]
    )  # fmt: skip
    features = {"relevance": score, "answerable": answerable}
    return Candidate(record=record, slot=slot, source="search", score=score, features=features)


def with_passage(of: Candidate, tokens: int) -> Candidate:
    """The candidate with a passage of so many tokens."""
    return replace(of, passage=((0, 1),), token_counts={**of.tokens, "passage": tokens})


def ids(found: tuple[Candidate, ...]) -> list[str]:
    return [c.record.id for c in found]


def reasons(omitted: tuple[LeftOut, ...]) -> dict[str, tuple[str, str]]:
    return {omission.id: (omission.reason, omission.detail) for omission in omitted}


# --- sift ----------------------------------------------------------------------------------------------------------


def test_best_first_and_of_equals_the_one_that_the_source_brought_first() -> None:
    found = [candidate("z", 0.5), candidate("b", 0.9), candidate("a", 0.5)]
    assert ids(rank(found, profile(), NO_FILTERS).by_slot["a"]) == ["b", "z", "a"]


@pytest.mark.parametrize(("now", "valid"), [(99, False), (100, True), (199, True), (200, False), (201, False)])
def test_a_record_is_valid_from_its_first_millisecond_up_to_but_not_at_its_end(now: int, valid: bool) -> None:
    record = candidate("r", valid_from=100, valid_to=200)
    omitted = reasons(rank([record], profile(), NO_FILTERS, now).left_out)
    assert ("r" not in omitted) is valid
    assert valid or omitted["r"][0] == "not valid"


def test_a_stable_slot_keeps_the_order_of_its_source() -> None:
    found = [candidate("low", 0.1), candidate("high", 0.9)]
    assert ids(rank(found, profile(slot(stable=True)), NO_FILTERS).by_slot["a"]) == ["low", "high"]


def test_below_the_floor_says_how_far_below() -> None:
    ranking = rank([candidate("x", 0.21)], profile(slot(min_relevance=0.3)), NO_FILTERS)
    assert ranking.by_slot["a"] == ()
    assert reasons(ranking.left_out) == {"x": ("min_relevance", "floor 0.3")}
    assert ranking.left_out[0].needs_relevance == pytest.approx(0.09)


def test_a_relevance_on_the_floor_is_in() -> None:
    assert ids(rank([candidate("x", 0.3)], profile(slot(min_relevance=0.3)), NO_FILTERS).by_slot["a"]) == ["x"]


def test_below_the_floor_is_a_matter_of_relevance_and_not_of_the_score() -> None:
    likely, unlikely = replace(candidate("x", 0.4), score=0.01), replace(candidate("y", 0.05), score=0.99)
    ranking = rank([likely, unlikely], profile(slot(min_relevance=0.3)), NO_FILTERS)
    assert (ids(ranking.by_slot["a"]), reasons(ranking.left_out)) == (["x"], {"y": ("min_relevance", "floor 0.08")})


def test_a_fifth_of_the_best_relevance_is_enough_where_the_best_record_is_above_the_floor() -> None:
    assert SHARE_OF_BEST == 0.2
    found = [candidate("best", 0.5), candidate("fifth", 0.1), candidate("less", 0.09)]
    ranking = rank(found, profile(slot(min_relevance=0.3)), NO_FILTERS)
    assert ids(ranking.by_slot["a"]) == ["best", "fifth"]
    assert reasons(ranking.left_out) == {"less": ("min_relevance", "floor 0.1")}
    assert ranking.left_out[0].needs_relevance == pytest.approx(0.01)


def test_a_fifth_of_the_best_relevance_is_not_enough_below_the_floor_or_in_another_slot() -> None:
    found = [candidate("near", 0.29), candidate("nearer", 0.28), candidate("elsewhere", 0.9, slot="b")]
    slots = profile(slot(min_relevance=0.3), slot("b", min_relevance=0.3))
    ranking = rank(found, slots, NO_FILTERS)
    assert (ids(ranking.by_slot["a"]), ids(ranking.by_slot["b"])) == ([], ["elsewhere"])
    assert reasons(ranking.left_out) == {"near": ("min_relevance", "floor 0.3"), "nearer": ("min_relevance", "floor 0.3")}


def test_the_share_of_the_best_relevance_never_raises_a_floor() -> None:
    found = [candidate("best", 0.9), candidate("low", 0.1)]
    assert ids(rank(found, profile(slot(min_relevance=0.1)), NO_FILTERS).by_slot["a"]) == ["best", "low"]


# --- what fills the room -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fill", "answerable", "shown"),
    [
        ("none", 0.9, ["good"]),
        ("related", 0.9, ["good", "weak", "none"]),
        ("related", MIN_ANSWERABLE, ["good", "weak", "none"]),
        ("related", MIN_ANSWERABLE - 0.001, ["good"]),
        ("all", 0.0, ["good", "weak", "none"]),
    ],
)
def test_what_a_slot_shows_below_its_floor(fill: str, answerable: float, shown: list[str]) -> None:
    found = [
        candidate(name, relevance, answerable=answerable)
        for name, relevance in (("none", 0.0), ("weak", 0.05), ("good", 0.5))
    ]
    ranking = rank(found, profile(slot(min_relevance=0.1, fill=fill)), NO_FILTERS)
    assert ids(ranking.by_slot["a"]) == shown
    assert {omission.reason for omission in ranking.left_out} <= {"min_relevance"}


def test_a_slot_with_a_high_floor_is_filled_only_if_the_store_answers_as_surely() -> None:
    for answerable, shown in ((0.29, ["good"]), (0.3, ["good", "weak"])):
        found = [candidate(name, relevance, answerable=answerable) for name, relevance in (("weak", 0.05), ("good", 0.5))]
        ranking = rank(found, profile(slot(min_relevance=0.3, fill="related")), NO_FILTERS)
        assert ids(ranking.by_slot["a"]) == shown


def test_what_fills_the_room_is_in_the_order_of_its_source() -> None:
    found = [candidate("good", 0.5), *(candidate(name, 0.0) for name in ("newest", "older", "oldest"))]
    ranking = rank(found, profile(slot(fill="all")), NO_FILTERS)
    assert ids(ranking.by_slot["a"]) == ["good", "newest", "older", "oldest"]


def test_filling_brings_nothing_in_that_is_excluded_superseded_or_not_valid() -> None:
    found = [candidate("out"), candidate("old", status="superseded"), candidate("late", valid_from=100)]
    ranking = rank(found, profile(slot(fill="all")), Filters(exclude=("out",)), 99)
    assert ranking.by_slot["a"] == ()
    assert [omission.reason for omission in ranking.left_out] == ["excluded", "superseded", "not valid"]


# --- value per token -----------------------------------------------------------------------------------------------


def test_of_equal_relevance_the_shorter_record_comes_first() -> None:
    found = [candidate("long", 0.5, (400, 300, 200)), candidate("short", 0.5, (30, 20, 10))]
    assert ids(rank(found, profile(), NO_FILTERS).by_slot["a"]) == ["short", "long"]


def test_a_long_record_does_not_crowd_out_short_ones() -> None:
    long = candidate("long", 0.5, (400, 400, 400))
    short = [candidate(f"s{n}", 0.4, (40, 40, 40)) for n in range(10)]
    ranked = rank([long, *short], profile(), NO_FILTERS).by_slot["a"]
    fitted = fit(slot(), ranked, 405, 5, relevance_weight=1.0)
    assert {item.id for item in fitted.items} == {each.record.id for each in short}
    assert [omission.id for omission in fitted.left_out] == ["long"]


def test_a_short_record_that_is_irrelevant_does_not_come_before_a_long_relevant_one() -> None:
    found = [candidate("ok", 0.005, (3, 3, 3)), candidate("long", 0.5, (300, 300, 300))]
    assert ids(rank(found, profile(), NO_FILTERS).by_slot["a"]) == ["long", "ok"]


def test_the_other_features_decide_between_records_of_like_relevance_and_lift_no_irrelevant_one() -> None:
    plain, boosted = candidate("plain", 0.5), replace(candidate("boosted", 0.5), score=0.9)
    irrelevant = replace(candidate("no", 0.0), score=1.0)
    assert ids(rank([irrelevant, plain, boosted], profile(), NO_FILTERS).by_slot["a"]) == ["boosted", "plain", "no"]
    assert value_per_token(irrelevant, slot(), 1.0) == 0.0


def test_the_price_of_a_long_record_is_that_of_its_passage() -> None:
    long = candidate("long", 0.5, (900, 30, 10))
    other = candidate("other", 0.5, (200, 200, 200))
    at_full = slot(level="full")
    assert ids(rank([long, other], profile(at_full), NO_FILTERS).by_slot["a"]) == ["other", "long"]
    assert ids(rank([with_passage(long, 100), other], profile(at_full), NO_FILTERS).by_slot["a"]) == ["long", "other"]


def test_what_a_source_ranks_itself_is_in_the_order_of_its_score() -> None:
    found = [replace(candidate("low", 0.2, (3, 3, 3)), source="task"), replace(candidate("high", 0.3), source="task")]
    assert ids(rank(found, profile(), NO_FILTERS).by_slot["a"]) == ["high", "low"]


# --- limits --------------------------------------------------------------------------------------------------------


def test_beyond_max_items_says_its_rank_and_what_it_lacked() -> None:
    found = [candidate(name, score) for name, score in (("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.1))]
    ranking = rank(found, profile(slot(max_items=2)), NO_FILTERS)
    assert ids(ranking.by_slot["a"]) == ["a", "b"]
    assert reasons(ranking.left_out) == {"c": ("max_items", "rank 3 of 2"), "d": ("max_items", "rank 4 of 2")}
    assert [omission.needs_relevance for omission in ranking.left_out] == pytest.approx([0.1, 0.7])


def test_what_a_task_handed_on_comes_first_and_is_not_counted_by_max_items() -> None:
    task = candidate("t", kind="task").record
    handed = [replace(candidate(f"h{n}", 0.1 * n), inherited_from=task) for n in range(1, 4)]
    found = [candidate("b", 0.9), candidate("c", 0.05), *handed]
    ranking = rank(found, profile(slot(max_items=1)), NO_FILTERS)
    assert ids(ranking.by_slot["a"]) == ["h3", "h2", "h1", "b"]
    assert reasons(ranking.left_out) == {"c": ("max_items", "rank 2 of 1")}


def test_what_is_stale_comes_last_whatever_its_score() -> None:
    found = [replace(candidate("gone", 0.9), stale=True), candidate("here", 0.1)]
    assert ids(rank(found, profile(), NO_FILTERS).by_slot["a"]) == ["here", "gone"]
    assert ids(rank(found, profile(slot(max_items=1)), NO_FILTERS).by_slot["a"]) == ["here"]


def test_two_tasks_in_the_same_words_are_two() -> None:
    found = [candidate(id, kind="task", text="Add the missing tests") for id in ("x", "y")]
    assert ids(rank(found, profile(), NO_FILTERS).by_slot["a"]) == ["x", "y"]


def test_max_items_of_zero_lets_nobody_in() -> None:
    ranking = rank([candidate("a", 0.9)], profile(slot(max_items=0)), NO_FILTERS)
    assert (ranking.by_slot["a"], ranking.left_out[0].reason) == ((), "max_items")


def test_what_the_request_excludes_is_out_but_rules_are_not() -> None:
    found = [candidate("x"), candidate("c", kind="censor")]
    ranking = rank(found, profile(), Filters(exclude=("x", "c")))
    assert reasons(ranking.left_out) == {"x": ("excluded", "by the request")}
    assert ids(ranking.by_slot["a"]) == ["c"]


def test_a_superseded_record_names_what_replaced_it() -> None:
    old = Candidate(record=candidate("x", status="superseded").record, slot="a", source="search", overruled_by="y")
    assert reasons(rank([old], profile(), NO_FILTERS).left_out) == {"x": ("superseded", "y")}


# --- the same thing said twice -------------------------------------------------------------------------------------

LONG = "The nightly archive upload fails when the disk of the build host is full"


def test_a_near_duplicate_is_left_out_for_the_better_one() -> None:
    found = [candidate("x", 0.4, text=LONG), candidate("y", 0.6, text=f"{LONG}!")]
    ranking = rank(found, profile(), NO_FILTERS)
    assert ids(ranking.by_slot["a"]) == ["y"]
    assert reasons(ranking.left_out) == {"x": ("duplicate", "y")}


def test_what_must_be_kept_is_kept_even_where_it_repeats_another() -> None:
    found = [candidate("x", text=LONG), candidate("y", text=LONG), candidate("z", 0.99, text=LONG, slot="b")]
    ranking = rank(found, profile(slot(keep=True), slot("b")), NO_FILTERS)
    assert ids(ranking.by_slot["a"]) == ["x", "y"]
    assert reasons(ranking.left_out) == {"z": ("duplicate", "x")}


def test_one_record_in_two_slots_is_shown_in_the_one_that_keeps_it() -> None:
    found = [candidate("x", 0.1), candidate("x", 0.9, slot="b")]
    assert ids(rank(found, profile(slot(keep=True), slot("b")), NO_FILTERS).by_slot["a"]) == ["x"]


def test_of_two_stable_slots_the_earlier_one_shows_a_record() -> None:
    rules, pinned = slot("rules", stable=True, keep=True, order=20), slot("a", stable=True, keep=True, order=30)
    found = [candidate("x", slot="rules"), candidate("x", slot="a")]
    ranking = rank(found, profile(rules, pinned), NO_FILTERS)
    assert (ids(ranking.by_slot["rules"]), ids(ranking.by_slot["a"])) == (["x"], [])


def test_what_max_items_cuts_off_does_not_silence_its_duplicate_elsewhere() -> None:
    found = [candidate("top", 0.9), candidate("x", 0.8, text=LONG), candidate("y", 0.5, text=LONG, slot="b")]
    ranking = rank(found, profile(slot(max_items=1), slot("b")), NO_FILTERS)
    assert ids(ranking.by_slot["b"]) == ["y"]
    assert reasons(ranking.left_out) == {"x": ("max_items", "rank 2 of 1")}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LONG, LONG.upper()),
        (LONG, LONG.replace("The nightly", "A nightly")),
        (LONG, LONG + ", again"),
        ("getUserName fails", "get_user_name failed"),
    ],
)
def test_alike(one: str, other: str) -> None:
    assert are_near_duplicates(one, other)
    assert are_near_duplicates(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The timeout of the upload client is 30 s", "The timeout of the upload client is 60 s"),
        ("Push to main after a review of the change", "Never push to main after a review of the change"),
        ("Deploy with a review of two people", "Deploy without a review of two people"),
        ("Retries are on for the payments worker", "Retries are off for the payments worker"),
        ("Run the migration before the deploy", "Run the migration after the deploy"),
        ("Chose Postgres over Chroma", "Chose Chroma over Postgres"),
        ("Service alpha calls service beta", "Service beta calls service alpha"),
        ("Scale the workers up at night", "Scale the workers down at night"),
        ("Logs are kept in Frankfurt", "Sessions are signed in one place"),
        ("", ""),
        ("🎉", "🎉"),
    ],
)
def test_not_alike(one: str, other: str) -> None:
    assert not are_near_duplicates(one, other)
    assert not are_near_duplicates(other, one)


# --- down the ladder -----------------------------------------------------------------------------------------------


def levels(fitted: object) -> dict[str, str]:
    return {item.id: item.level for item in fitted.items}  # type: ignore[attr-defined]


def test_the_ladder_goes_down() -> None:
    plain, long = candidate("a"), with_passage(candidate("b"), 25)
    assert levels_of(plain, "full") == ["full", "summary", "micro"]
    assert levels_of(plain, "passage") == ["summary", "micro"]
    assert levels_of(long, "full") == ["full", "passage", "summary", "micro"]
    assert levels_of(long, "micro") == ["micro"]


def test_an_item_starts_at_its_slots_level_and_steps_down_until_it_fits() -> None:
    found = [candidate("a"), candidate("b"), candidate("c")]
    fitted = fit(slot(level="summary", max_level="summary"), found, 55, heading_tokens=5)
    assert levels(fitted) == {"a": "summary", "b": "summary", "c": "micro"}
    assert fitted.used == 55


def test_room_left_over_takes_the_best_up_to_the_deepest_level() -> None:
    found = [candidate("a"), candidate("b")]
    assert levels(fit(slot(level="micro", max_level="full"), found, 45, 5)) == {"a": "full", "b": "micro"}
    assert levels(fit(slot(level="micro", max_level="summary"), found, 100, 5)) == {"a": "summary", "b": "summary"}
    assert levels(fit(slot(level="micro", max_level="full", stable=True), found, 100, 5)) == {"a": "micro", "b": "micro"}


def test_a_misfit_is_passed_over_and_a_later_smaller_item_is_kept() -> None:
    found = [candidate("a"), candidate("big", sizes=(900, 800, 700)), candidate("c")]
    fitted = fit(slot(level="summary", max_level="summary"), found, 60, 5)
    assert levels(fitted) == {"a": "summary", "c": "summary"}
    assert [item.rank for item in fitted.items] == [1, 3]
    assert fitted.left_out[0].id == "big"


def test_needs_tokens_says_what_was_missing() -> None:
    shown = fit(slot(level="summary", max_level="summary"), [candidate("a"), candidate("b", sizes=(50, 40, 30))], 30, 5)
    assert (levels(shown), shown.left_out[0].needs_tokens) == ({"a": "summary"}, 25)
    nothing = fit(slot(level="summary", max_level="summary"), [candidate("a")], 12, 5)
    assert (nothing.items, nothing.used, nothing.left_out[0].needs_tokens) == ((), 0, 3)
    no_grant = fit(slot(level="summary", max_level="summary"), [candidate("a")], 0, 5)
    assert no_grant.left_out[0].needs_tokens == 15


def test_with_what_it_needed_it_is_in() -> None:
    found = [candidate("a")]
    lacking = fit(slot(), found, 12, 5)
    assert levels(fit(slot(), found, 12 + lacking.left_out[0].needs_tokens, 5)) == {"a": "micro"}


def test_what_must_be_kept_starts_at_its_smallest_and_the_first_are_raised() -> None:
    found = [candidate("a"), candidate("b"), candidate("c")]
    fitted = fit(slot(level="full", max_level="full", keep=True), found, 65, 5)
    assert levels(fitted) == {"a": "full", "b": "summary", "c": "micro"}


def test_a_short_text_may_cost_less_whole_than_shortened() -> None:
    odd = candidate("a", sizes=(5, 7, 8))
    assert min_tokens(odd, slot(level="full")) == 5
    assert levels(fit(slot(level="full", max_level="full", keep=True), [odd], 10, 5)) == {"a": "full"}


def test_an_empty_slot_costs_nothing() -> None:
    assert fit(slot(), [], 100, 5).used == 0


# --- passages ------------------------------------------------------------------------------------------------------


def test_a_passage_is_shown_first_and_the_full_text_where_there_is_room() -> None:
    found = [with_passage(candidate("a", 0.9, (200, 20, 10)), 40), candidate("b", 0.8, (30, 20, 10))]
    whole = slot(level="full")
    assert levels(fit(whole, found, 75, 5, relevance_weight=1.0)) == {"a": "passage", "b": "full"}
    assert levels(fit(whole, found, 234, 5, relevance_weight=1.0)) == {"a": "passage", "b": "full"}
    assert levels(fit(whole, found, 235, 5, relevance_weight=1.0)) == {"a": "full", "b": "full"}


def test_the_full_text_of_a_good_record_comes_before_a_bad_record() -> None:
    found = [with_passage(candidate("a", 0.9, (60, 20, 10)), 40), candidate("b", 0.01, (30, 30, 30))]
    assert levels(fit(slot(level="full"), found, 65, 5, relevance_weight=1.0)) == {"a": "full"}


def test_a_good_record_comes_before_the_full_text_of_another() -> None:
    found = [with_passage(candidate("a", 0.9, (60, 20, 10)), 40), candidate("b", 0.8, (20, 20, 20))]
    assert levels(fit(slot(level="full"), found, 65, 5, relevance_weight=1.0)) == {"a": "passage", "b": "full"}


def test_a_passage_is_the_longest_level_of_a_slot_that_says_so() -> None:
    found = [with_passage(candidate("a", 0.9, (200, 20, 10)), 40)]
    short = slot(level="passage", max_level="passage")
    assert levels(fit(short, found, 1000, 5)) == {"a": "passage"}
    assert levels(fit(short, found, 44, 5)) == {"a": "summary"}
    assert levels(fit(short, [candidate("b")], 1000, 5)) == {"b": "summary"}


def test_the_tokens_of_items_are_those_of_their_levels_and_never_more_than_there_are() -> None:
    found = [with_passage(candidate(f"r{n}", 0.9 - n / 20, (90 + n, 20, 10)), 30 + n) for n in range(15)]
    for available in range(0, 1500, 7):
        fitted = fit(slot(level="full"), found, available, 5, relevance_weight=1.0)
        assert fitted.used <= available
        assert fitted.used == sum(item.candidate.tokens[item.level] for item in fitted.items) + 5 * bool(fitted.items)
        assert not fitted.items or fitted.items[0].id == "r0"


# --- lines that several items share --------------------------------------------------------------------------------

DAY_MS = 86_400_000


def event(id: str, day: int, trust: str = "user", relevance: float = 0.5) -> Candidate:
    return candidate(id, relevance, (20, 20, 20), kind="event", created=day * DAY_MS, trust=trust)


def test_the_first_of_a_day_pays_for_its_line_and_the_first_quoted_one_for_the_fence() -> None:
    shared = SharedCosts(fence=11, day=7)
    found = [event("a", 1), event("b", 1), event("c", 2), event("d", 1, "web"), event("e", 1, "tool"), candidate("f")]
    fitted = fit(slot(level="full"), found, 1000, 5, shared)
    added = {item.id: item.tokens - item.candidate.tokens[item.level] for item in fitted.items}
    assert added == {"a": 7, "b": 0, "c": 7, "d": 18, "e": 0, "f": 0}
    assert fitted.used == 5 + 5 * 20 + 30 + 32


def test_an_event_whose_day_line_does_not_fit_is_left_out_and_one_of_a_shown_day_is_in() -> None:
    shared = SharedCosts(day=7)
    found = [event("a", 1), event("other day", 2), event("b", 1)]
    fitted = fit(slot(level="full"), found, 5 + 27 + 20, 5, shared)
    assert [item.id for item in fitted.items] == ["a", "b"]
    (lost,) = fitted.left_out
    assert fit(slot(level="full"), found, 52 + lost.needs_tokens, 5, shared).left_out == ()
