"""Every budget figure that the documents give, as profile data. What is granted from them is tested with the budget."""

from __future__ import annotations

import pytest

from foveate.pipeline.profiles import list_profiles, resolve
from foveate.types import Profile, Slot


def slots(profile: Profile) -> dict[str, Slot]:
    return {slot.name: slot for slot in profile.slots}


def tokens(profile: Profile) -> dict[str, int]:
    return {slot.name: slot.tokens for slot in profile.slots if slot.tokens is not None}


def shares(profile: Profile) -> dict[str, float]:
    return {slot.name: slot.share for slot in profile.slots if slot.share is not None}


# --- 000: limits by complexity -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("complexity", "patterns", "gotchas", "code_references", "prior_tasks"),
    [("easy", 3, 2, 5, 2), ("normal", 5, 3, 10, 4), ("complex", 10, 5, 20, 8)],
)
def test_000_limits_by_complexity(
    complexity: str, patterns: int, gotchas: int, code_references: int, prior_tasks: int
) -> None:
    task = slots(resolve(["task", f"complexity.{complexity}"]))
    assert task["patterns"].max_items == patterns
    assert task["warnings"].max_items == gotchas
    assert task["code_references"].max_items == code_references
    assert task["prior_work"].max_items == prior_tasks


@pytest.mark.parametrize("name", ["coding", "task"])
def test_000_takes_without_a_complexity(name: str) -> None:
    known = slots(resolve(name))
    takes = [known[name].max_items for name in ("patterns", "warnings", "decisions", "related_tasks", "code_references")]
    assert takes == [5, 3, 3, 5, 10]


@pytest.mark.parametrize("name", ["coding", "task"])
def test_000_asks_for_20_by_keyword_and_10_by_domain(name: str) -> None:
    known = slots(resolve(name))
    for knowledge in ("patterns", "warnings", "decisions", "related_tasks"):
        assert (known[knowledge].source, known[knowledge].max_candidates) == ("search", 20)
        assert dict(known[knowledge].extra_sources)["domains"] == 10


def test_000_points_are_weights() -> None:
    weights = resolve("task").weights
    assert [weights[f"map_{of}"] for of in ("component", "location", "domain", "file")] == [2, 1, 1, 3]


def test_000_says_so_where_nothing_was_found() -> None:
    task = slots(resolve("task"))
    assert task["patterns"].empty_text == "No specific patterns identified for this task."
    assert task["warnings"].empty_text == "No known gotchas for this task area."
    assert task["code_references"].empty_text == ("Explore the codebase as needed. No specific references pre-identified.")


@pytest.mark.parametrize("profile", ["default", "chat", "assistant", "task-files", "subtask"])
def test_000_complexity_can_be_laid_over_any_profile(profile: str) -> None:
    assert slots(resolve([profile, "complexity.complex"])).keys() == slots(resolve(profile)).keys()


# --- 001: fixed parts, a reserve, and 60 / 25 / 15 -----------------------------------------------------------------


def test_001_fixed_allocations() -> None:
    fresh = resolve("task-files")
    assert (fresh.total, fresh.reserve) == (150_000, 16_000)
    assert tokens(fresh) == {"system_prompt": 2000, "repo_map": 2000, "codebase_docs": 3000, "task_spec": 1000}
    assert sum(tokens(fresh).values()) + fresh.reserve == 24_000


def test_001_dynamic_allocations() -> None:
    fresh = resolve("task-files")
    assert shares(fresh) == {"files": 60, "code": 25, "memories": 15}
    room = fresh.total - fresh.reserve - sum(tokens(fresh).values())
    whole = sum(shares(fresh).values())
    assert room == 126_000
    assert [room * share / whole for share in shares(fresh).values()] == [75_600, 31_500, 18_900]


def test_001_counts_and_floors() -> None:
    fresh = slots(resolve("task-files"))
    assert [fresh[name].max_items for name in ("files", "code", "memories")] == [10, 5, 5]
    assert (fresh["code"].min_score, fresh["memories"].min_score) == (0.5, 0.4)
    assert resolve("task-files").weights == {"relevance": 1.0}


def test_001_custom_budget_is_a_call() -> None:
    call = {
        "reserve": 20_000,
        "slots": {
            "system_prompt": {"tokens": 3000},
            "repo_map": {"tokens": 5000},
            "codebase_docs": {"tokens": 4000},
            "task_spec": {"tokens": 2000},
        },
    }
    custom = resolve("task-files", call=call)
    assert custom.reserve == 20_000
    assert tokens(custom) == {"system_prompt": 3000, "repo_map": 5000, "codebase_docs": 4000, "task_spec": 2000}


def test_001_options_are_a_call_too() -> None:
    call = {"slots": {"repo_map": {"remove": True}, "files": {"max_items": 3}}}
    options = resolve("task-files", call=call, total=100_000)
    assert options.total == 100_000
    assert "repo_map" not in slots(options)
    assert slots(options)["files"].max_items == 3


# --- 003: a stack of tasks -----------------------------------------------------------------------------------------


def test_003_root_goal_path_and_siblings_are_5_15_and_10_percent() -> None:
    stack = resolve("subtask")
    assert (stack.reserve, tokens(stack), sum(shares(stack).values())) == (0, {"field_rules": 0}, 100)
    assert [shares(stack)[name] for name in ("root_goal", "path", "siblings")] == [5, 15, 10]
    assert slots(stack)["root_goal"].keep


def test_003_the_rest_goes_to_the_five_kinds_of_component() -> None:
    assert {"recent", "semantic", "entities", "relations", "patterns"} < shares(resolve("subtask")).keys()


def test_003_a_score_halves_every_24_hours() -> None:
    assert resolve("subtask").half_life_hours == 24


# --- 004: eight layers ---------------------------------------------------------------------------------------------


def test_004_layers_in_order_with_their_headings() -> None:
    assert [slot.heading for slot in resolve("assistant").slots] == [
        "Identity",
        "Active Constraints",
        "Constraints Here",  # those of a domain: beside 004's layer, which no question may change
        "Current Approach",
        "Current Focus",
        "Relevant Past Decisions",
        "Known Information",
        "Procedures",
        "Past Experience",
        "Note",
    ]


def test_004_layer_sizes() -> None:
    layers = resolve("assistant")
    assert layers.total == 8000
    sizes = {"identity": 500, "censors": 300, "frame": 500, "working": 700, "calibration": 100}
    assert tokens(layers) == {**sizes, "field_censors": 0}
    assert shares(layers) == {"decisions": 2000, "facts": 1500, "procedures": 1500, "episodes": 1000}


def test_004_the_first_four_layers_are_always_present() -> None:
    kept = [slot.name for slot in resolve("assistant").slots if slot.keep]
    assert kept == ["identity", "censors", "field_censors", "frame", "working"]


def test_004_search_limits() -> None:
    layers = slots(resolve("assistant"))
    assert [layers[name].max_candidates for name in ("decisions", "facts", "procedures", "episodes")] == [20, 30, 10, 10]


def test_004_the_window_sees_micro_and_summary_only() -> None:
    assert {(slot.level, slot.max_level) for slot in resolve("assistant").slots} == {("summary", "summary")}


def test_004_the_context_is_the_system_prompt() -> None:
    assert {slot.role for slot in resolve("assistant").slots} == {"system"}


def test_004_recency_halves_in_30_days() -> None:
    assert resolve("assistant").half_life_hours == 30 * 24


def test_004_a_frames_priorities_are_a_layer() -> None:
    priorities = {"decisions": 1.0, "procedures": 0.8, "facts": 0.6, "episodes": 0.4}
    frame = slots(resolve("assistant", call={"slots": {name: {"priority": p} for name, p in priorities.items()}}))
    assert {name: frame[name].priority for name in priorities} == priorities
    assert frame["calibration"].priority == 0.5


# --- all of them ---------------------------------------------------------------------------------------------------


def test_the_weights_of_base_sum_to_1() -> None:
    on_top = ("stage", "success", "applies")
    weights = {name: weight for name, weight in resolve("default").weights.items() if name not in on_top}
    assert sum(weights.values()) == pytest.approx(1)
    assert sum(weights.values()) - weights["relevance"] == pytest.approx(0.4)


@pytest.mark.parametrize("name", [info.name for info in list_profiles() if info.name != "map"])  # a map is no prompt
def test_every_profile_says_what_it_is_for_and_keeps_the_rules(name: str) -> None:
    assert next(info.description for info in list_profiles() if info.name == name)
    profile = resolve(name)
    always = {kind for slot in profile.slots if slot.source == "always" and slot.keep for kind in slot.kinds}
    assert {"identity", "censor", "instruction"} <= always
    assert profile.fields == resolve("default").fields


def test_chat_gives_memories_half_of_the_flexible_room_in_full() -> None:
    chat = resolve("chat")
    memories = slots(chat)["memories"]
    assert (memories.level, memories.max_level, memories.min_score) == ("full", "full", 0.0)
    assert shares(chat)["memories"] == sum(shares(chat).values()) / 2
    assert shares(chat)["recent"] > shares(resolve("default"))["recent"]
