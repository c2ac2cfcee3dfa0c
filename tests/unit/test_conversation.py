"""A conversation in a framework's loop: its query, the turns that stay, and the events that are stored."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from foveate import BudgetError, Engine, Filters, InputError, Record
from foveate.integrations.conversation import (
    CONVERTED,
    Conversation,
    MessageFormat,
    current_query,
    is_context_block,
    last_turns,
    wrap_context_block,
)
from foveate.memory.messages import ConversationMessage
from foveate.testing import FixedClock, engine
from foveate.text.tokens import count
from foveate.types import NO_FILTERS


@pytest.fixture
def memory() -> Iterator[Engine]:
    with engine(clock=FixedClock(step=5)) as opened:
        opened.add("instruction", "Always answer in Celsius")
        opened.add("fact", "Deploys of the shop happen on Tuesdays")
        yield opened


def events(memory: Engine, session: str | None = None) -> list[Record]:
    with memory.store.data.reader() as reader:
        found = reader.recent(["event"], 100, NO_FILTERS, session=session)
    return sorted(found, key=lambda record: (record.created, record.id))


def user(text: str, **values: Any) -> ConversationMessage:
    return ConversationMessage(role="user", text=text, **values)


def model(text: str) -> ConversationMessage:
    return ConversationMessage(role="assistant", text=text)


def test_the_query_is_the_last_user_message_with_words() -> None:
    said = [user("first"), model("answer"), user("second"), user("  "), ConversationMessage(role="tool", text="42")]
    assert current_query(said) == "second"
    assert current_query([model("answer")]) == ""


@pytest.mark.parametrize(("turns", "stay"), [(None, "abcde"), (1, "e"), (2, "cde"), (9, "abcde"), (0, "")])
def test_turns_stay_whole(turns: int | None, stay: str) -> None:
    assert "".join(last_turns("abcde", turns, lambda letter: letter in "ace")) == stay


def test_the_current_turn_always_stays(memory: Engine) -> None:
    letters: MessageFormat[str] = MessageFormat(
        lambda letters: [user(letter) for letter in letters], lambda letter: letter in "ac"
    )
    for turns, stay in ((0, "c"), (None, "abc")):
        prompt = Conversation(memory, letters, turns=turns).prompt("abc")
        assert prompt is not None
        assert "".join(prompt.messages) == stay


def test_a_history_is_stored_once_and_a_repeated_text_is_another_message(memory: Engine) -> None:
    conversation = Conversation(memory, CONVERTED, session="s1")
    said = [ConversationMessage(role="system", text="Be brief"), user("go on"), model("yes"), user("go on")]
    assert (conversation.remember(said).stored, conversation.remember(said).stored) == (3, 0)
    assert conversation.remember([*said, model("yes"), user("go on")]).stored == 2
    assert conversation.remember(said[-1:]).stored == 0  # a part of it is known, too
    assert [event.text for event in events(memory, "s1")] == ["go on", "yes", "go on", "yes", "go on"]
    assert Conversation(memory, CONVERTED, session="s2").remember([user("go on")]).stored == 1
    assert conversation.remember([user("go on")], session="s2").stored == 0, "the session of the options counts"
    assert Conversation(memory, CONVERTED).remember([user("go on")], session="s3").stored == 1


def test_new_messages_are_stored_although_their_text_is_known(memory: Engine) -> None:
    conversation = Conversation(memory, CONVERTED, session="s1")
    for _ in range(3):
        assert conversation.remember([user("go on"), user("go on")], is_new=True).stored == 2
    with_id = [user("go on", id="m1")]
    assert (conversation.remember(with_id).stored, conversation.remember(with_id).stored) == (1, 0)
    assert len(events(memory, "s1")) == 7


def test_the_role_of_a_message_decides_its_trust(memory: Engine) -> None:
    tool = ConversationMessage(role="tool", text="14 degrees", name="look", tool_input={"city": "Oslo"}, outcome="failure")
    Conversation(memory, CONVERTED).remember([user("weather?"), tool, model("14"), user("thanks", data={"order": "7"})])
    kept = events(memory, "main")
    assert [event.trust for event in kept] == ["user", "tool", "agent", "user"]
    assert (kept[1].text, kept[1].outcome, kept[1].data["input"]) == ("look\n14 degrees", "failure", '{"city": "Oslo"}')
    assert kept[3].data["order"] == "7"


def test_shown_messages_are_not_repeated_and_dropped_ones_are_stored_first(memory: Engine) -> None:
    said = [user("The tea is green"), model("Noted"), user("The tea is black"), user("Which tea?")]
    prompt = Conversation(memory, CONVERTED, session="s1", turns=2).prompt(said)
    assert prompt is not None
    assert prompt.messages == said[2:]
    assert "The tea is green" in prompt.volatile
    assert "The tea is black" not in prompt.volatile
    own = Conversation(memory, CONVERTED, session="s1", filters=Filters(exclude=("fact_0001",)))
    asked = own.context([user("When do deploys happen?")], said)
    assert asked is not None
    assert "Tuesdays" not in asked.text


def test_a_conversation_that_stores_nothing_has_a_context(memory: Engine) -> None:
    prompt = Conversation(memory, CONVERTED, remember=False).prompt([user("When do deploys happen?")])
    assert prompt is not None
    assert "Tuesdays" in prompt.volatile
    assert events(memory) == []


def test_marker_lines_are_recognised_and_within_the_budget(memory: Engine) -> None:
    for number in range(40):
        memory.add("fact", f"Deploy number {number} of the shop took {number} minutes")
    conversation = Conversation(memory, CONVERTED, budget=150)
    prompt = conversation.prompt([user("How long did deploys take?")], with_markers=True)
    assert prompt is not None
    assert is_context_block(prompt.stable)
    assert is_context_block(prompt.volatile)
    assert count(prompt.stable) + count(prompt.volatile) <= 150
    assert wrap_context_block("") == ""
    assert not any(
        map(is_context_block, (None, [], "<foveate-context>", "I wrote <foveate-context>\nx</foveate-context>\n"))
    )


def test_a_failing_store_is_logged_and_a_wrong_request_raised(memory: Engine, caplog: pytest.LogCaptureFixture) -> None:
    conversation = Conversation(memory, CONVERTED)
    with pytest.raises(InputError):
        Conversation(memory, CONVERTED, budget=-1).context([user("Which tea?")])
    assert conversation.context([model("nobody asked")]) is None
    memory.close()
    assert conversation.prompt([user("Which tea?")], with_markers=True) is None
    assert conversation.remember([user("Which tea?")], is_new=True).skipped == 1
    assert {record.message.split(":")[0] for record in caplog.records} == {"no context", "messages were not stored"}


def test_async_callers_are_not_blocked(memory: Engine) -> None:
    """The event loop runs while another thread holds the store."""
    conversation, held, free = Conversation(memory, CONVERTED), threading.Event(), threading.Event()

    def hold() -> None:
        with memory.store.data.reader():
            held.set()
            free.wait()

    async def run() -> None:
        holding = threading.Thread(target=hold)
        holding.start()
        held.wait()
        kept = asyncio.create_task(conversation.aremember([user("The tea is green")]))
        await asyncio.sleep(0)
        assert not kept.done()
        free.set()
        assert (await kept).stored == 1
        holding.join()
        said = [user("Which tea?")]
        assert await conversation.aprompt(said) is not None

    asyncio.run(run())


def test_new_messages_before_a_repeated_text_are_stored(memory: Engine) -> None:
    conversation = Conversation(memory, CONVERTED, session="s")
    conversation.remember([user("go on"), model("step one done")])
    new = [user("rename the widget"), model("renamed")]
    assert conversation.remember([*new, user("go on")]).stored == 2


def test_sessions_and_ids_with_colons_are_kept_apart(memory: Engine) -> None:
    for session, id in (("a", "b:1"), ("a:b", "1")):
        assert Conversation(memory, CONVERTED, session=session).remember([user("x", id=id)]).stored == 1


def test_a_budget_without_room_for_the_marker_lines_is_an_error(memory: Engine) -> None:
    with pytest.raises(BudgetError, match="20 tokens"):
        Conversation(memory, CONVERTED, budget=20).prompt([user("Which port?")], with_markers=True)


def test_many_sessions_without_a_user_are_warned_of_once(memory: Engine, caplog: pytest.LogCaptureFixture) -> None:
    def talk(sessions: range, **options: Any) -> list[str]:
        caplog.clear()
        for number in sessions:
            Conversation(memory, CONVERTED, session=f"s{number}", **options).prompt([user("Which tea?")])
        return [record.message for record in caplog.records if record.name == "foveate.sessions"]

    assert talk(range(40), user="ada") == []
    assert talk(range(20)) == talk(range(20)) == []
    (warning,) = talk(range(20, 60))
    assert "More than 20 sessions without a user share one memory" in warning
    assert "user=" in warning
    assert talk(range(60, 90)) == []
