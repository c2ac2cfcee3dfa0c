"""The built-in profiles as data. What the documents ask of them is tested in tests/specs."""

from __future__ import annotations

import pytest

from foveate import BudgetError
from foveate.pipeline.profiles import list_profiles, resolve
from foveate.types import Profile, Slot
from worlds import open_engine

PROMPTS = [info.name for info in list_profiles() if info.name != "map"]  # a map is no prompt


def slots(profile: Profile) -> dict[str, Slot]:
    return {slot.name: slot for slot in profile.slots}


def shares(profile: Profile) -> dict[str, float]:
    return {slot.name: slot.share for slot in profile.slots if slot.share is not None}


def test_coding_takes_as_many_of_each_kind_as_a_task() -> None:
    known = slots(resolve("coding"))
    takes = [known[name].max_items for name in ("patterns", "warnings", "decisions", "related_tasks", "code_references")]
    assert takes == [5, 3, 3, 5, 10]


def test_coding_asks_for_20_by_keyword_and_10_by_domain() -> None:
    known = slots(resolve("coding"))
    for knowledge in ("patterns", "warnings", "decisions", "related_tasks"):
        assert (known[knowledge].source, known[knowledge].max_candidates) == ("search", 20)
        assert dict(known[knowledge].extra_sources)["domains"] == 10


@pytest.mark.parametrize("profile", ["default", "chat", "assistant", "task-files", "subtask"])
def test_a_complexity_can_be_laid_over_any_profile(profile: str) -> None:
    assert slots(resolve([profile, "complexity.complex"])).keys() == slots(resolve(profile)).keys()


def test_the_weights_of_the_default_profile_sum_to_1() -> None:
    on_top = ("stage", "success", "applies")
    weights = {name: weight for name, weight in resolve("default").weights.items() if name not in on_top}
    assert sum(weights.values()) == pytest.approx(1)
    assert sum(weights.values()) - weights["relevance"] == pytest.approx(0.4)


@pytest.mark.parametrize("name", PROMPTS)
def test_every_profile_says_what_it_is_for_and_keeps_the_rules(name: str) -> None:
    assert next(info.description for info in list_profiles() if info.name == name)
    profile = resolve(name)
    always = {kind for slot in profile.slots if slot.source == "always" and slot.keep for kind in slot.kinds}
    assert {"identity", "censor", "instruction"} <= always
    assert profile.fields == resolve("default").fields


IDENTITY = "You are the release engineer. " + "You answer for every deployment, its date and the people who were told. " * 11
CENSOR = "Never deploy on a Friday. " + "Nobody is there to repair it, and customers wait until Monday. " * 8
INSTRUCTION = (
    "Answer in British English. " + "Readers are customers, and they expect the spelling of the printed manual. " * 5
)


@pytest.mark.parametrize("name", PROMPTS)
def test_every_profile_shows_rules_in_full_or_raises_by_how_much(name: str) -> None:
    with open_engine() as engine:
        engine.add("issue", "Customers cannot pay by card", data={"title": "Card payments fail"})
        engine.add("change", "The diff of the change", data={"title": "Diff"})
        rules = {"identity": IDENTITY.strip(), "censor": CENSOR.strip(), "instruction": INSTRUCTION.strip()}
        for kind, text in rules.items():
            engine.add(kind, text, data={"action": "block"} if kind == "censor" else {})
        task = engine.tasks.add("Repair card payments")
        context = engine.context("Repair card payments", profile=name, task=task.id)
        assert all(text in context.text for text in rules.values())
        needed = sum(item.tokens for item in context.items if item.kind in rules)
        with pytest.raises(BudgetError) as raised:
            engine.context("Repair card payments", profile=name, task=task.id, budget=needed)
        enough = engine.context("Repair card payments", profile=name, task=task.id, budget=needed + raised.value.short)
        assert all(text in enough.text for text in rules.values())


def test_chat_gives_what_was_said_nearly_half_of_the_flexible_room_and_fills_it() -> None:
    chat, default = resolve("chat"), resolve("default")
    messages = slots(chat)["messages"]
    assert (messages.level, messages.max_level, messages.fill) == ("full", "full", "all")
    assert messages.kinds == ("event", "note")
    assert 0.45 < shares(chat)["messages"] / sum(shares(chat).values()) < 0.5
    assert slots(chat)["facts"].fill == "all"
    assert {slots(default)[name].fill for name in ("messages", "facts")} == {"related"}
    assert "all" not in {slot.fill for slot in default.slots}
