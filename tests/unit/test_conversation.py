"""A conversation in somebody else's loop: what is asked, which turns stay, what becomes state."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from foveate import BudgetError, Engine, Filters, InputError, Record
from foveate.integrations.conversation import Said, Seat, is_marked, latest, marked, question
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


def user(text: str, **values: str) -> Said:
    return Said(role="user", text=text, **values)


def model(text: str) -> Said:
    return Said(role="assistant", text=text)


def test_question_is_the_last_that_a_person_said_in_words() -> None:
    said = [user("first"), model("answer"), user("second"), user("  "), Said(role="tool", text="42")]
    assert question(said) == "second"
    assert question([model("answer")]) == ""


@pytest.mark.parametrize(("turns", "stay"), [(None, "abcde"), (1, "e"), (2, "cde"), (9, "abcde"), (0, "")])
def test_turns_stay_whole(turns: int | None, stay: str) -> None:
    assert "".join(latest("abcde", turns, lambda letter: letter in "ace")) == stay


def test_turn_under_way_always_stays(memory: Engine) -> None:
    assert Seat(engine=memory, turns=0).latest("abc", lambda letter: letter in "ac") == ["c"]
    assert Seat(engine=memory, turns=None).latest("abc", lambda letter: letter in "ac") == ["a", "b", "c"]


def test_same_history_again_adds_nothing_and_the_same_words_again_are_others(memory: Engine) -> None:
    seat = Seat(engine=memory, session="s1")
    said = [Said(role="system", text="Be brief"), user("go on"), model("yes"), user("go on")]
    assert (seat.keep(said).added, seat.keep(said).added) == (3, 0)
    assert seat.keep([*said, model("yes"), user("go on")]).added == 2
    assert seat.keep(said[-1:]).added == 0  # a part of it is known, too
    assert [event.text for event in events(memory, "s1")] == ["go on", "yes", "go on", "yes", "go on"]
    assert seat.keep([user("go on")], session="s2").added == 1


def test_what_is_new_is_kept_though_the_words_are_known(memory: Engine) -> None:
    seat = Seat(engine=memory, session="s1")
    for _ in range(3):
        assert seat.keep([user("go on"), user("go on")], new=True).added == 2
    with_id = [user("go on", id="m1")]
    assert (seat.keep(with_id).added, seat.keep(with_id).added) == (1, 0)
    assert len(events(memory, "s1")) == 7


def test_who_said_it_decides_how_far_it_is_trusted(memory: Engine) -> None:
    tool = Said(role="tool", text="14 degrees", tool="look", input={"city": "Oslo"}, failed=True)
    Seat(engine=memory).keep([user("weather?"), tool, model("14"), user("thanks", order="7")])
    kept = events(memory, "main")
    assert [event.trust for event in kept] == ["user", "tool", "agent", "user"]
    assert (kept[1].text, kept[1].outcome, kept[1].data["input"]) == ("look\n14 degrees", "failure", '{"city": "Oslo"}')
    assert kept[3].data["order"] == "7"


def test_what_is_shown_is_not_shown_twice_and_what_is_dropped_is_kept_first(memory: Engine) -> None:
    said = [user("The tea is green"), model("Noted"), user("The tea is black"), user("Which tea?")]
    context = Seat(engine=memory, session="s1").ready(said, said[2:])
    assert context is not None
    assert "The tea is green" in context.volatile
    assert "The tea is black" not in context.volatile
    own = Seat(engine=memory, session="s1", options={"filters": Filters(exclude=("fact_0001",))})
    asked = own.context([user("When do deploys happen?")], said)
    assert asked is not None
    assert "Tuesdays" not in asked.text


def test_seat_that_keeps_nothing_computes_all_the_same(memory: Engine) -> None:
    context = Seat(engine=memory, keeps=False).ready([user("When do deploys happen?")], [])
    assert context is not None
    assert "Tuesdays" in context.text
    assert events(memory) == []


def test_marks_are_recognised_and_fit_into_the_budget(memory: Engine) -> None:
    for number in range(40):
        memory.add("fact", f"Deploy number {number} of the shop took {number} minutes")
    stable, volatile = Seat(engine=memory, budget=150).blocks([user("How long did deploys take?")], [])
    assert is_marked(stable)
    assert is_marked(volatile)
    assert count(stable) + count(volatile) <= 150
    assert marked("") == ""
    assert not any(map(is_marked, (None, [], "<foveate-context>", "I wrote <foveate-context>\nx</foveate-context>\n")))


def test_failing_store_is_logged_and_a_wrong_request_raised(memory: Engine, caplog: pytest.LogCaptureFixture) -> None:
    seat = Seat(engine=memory)
    with pytest.raises(InputError):
        Seat(engine=memory, budget=-1).context([user("Which tea?")])
    assert seat.context([model("nobody asked")]) is None
    memory.close()
    assert seat.blocks([user("Which tea?")], [user("Which tea?")]) is None
    assert seat.keep([user("Which tea?")], new=True).skipped == 1
    assert {record.message.split(":")[0] for record in caplog.records} == {"no context", "nothing kept"}


def test_async_callers_are_not_blocked(memory: Engine) -> None:
    """While the store is held by somebody else, the loop goes on."""
    seat, held, free = Seat(engine=memory), threading.Event(), threading.Event()

    def hold() -> None:
        with memory.store.data.reader():
            held.set()
            free.wait(10)

    async def run() -> None:
        holding = threading.Thread(target=hold)
        holding.start()
        held.wait(10)
        kept = asyncio.create_task(seat.akeep([user("The tea is green")]))
        await asyncio.sleep(0)
        assert not kept.done()
        free.set()
        assert (await kept).added == 1
        holding.join()
        said = [user("Which tea?")]
        assert await seat.acontext(said, said) is not None
        assert await seat.aready(said, said) is not None

    asyncio.run(run())


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("openai_agents", "agents", "openai-agents"),
        ("anthropic_memory", "anthropic", "anthropic"),
        ("llm_fragments", "llm", "llm"),
        ("opentelemetry", "opentelemetry", "otel"),
    ],
)
def test_adapter_without_its_package_names_the_extra(module: str, package: str, extra: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "try:\n"
        f"    import foveate.integrations.{module}\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert f"`pip install foveate[{extra}]`" in done.stdout


def test_a_list_that_was_cut_loses_only_what_was_said_before(memory: Engine) -> None:
    seat = Seat(engine=memory, session="s")
    seat.keep([Said(role="user", text="go on"), Said(role="assistant", text="step one done")])
    new = [Said(role="user", text="rename the widget"), Said(role="assistant", text="renamed")]
    assert seat.keep([*new, Said(role="user", text="go on")]).added == 2


def test_sessions_and_ids_with_colons_do_not_meet(memory: Engine) -> None:
    for session, id in (("a", "b:1"), ("a:b", "1")):
        assert Seat(engine=memory, session=session).keep([Said(role="user", text="x", id=id)]).added == 1


def test_a_budget_that_the_marks_alone_take_is_named(memory: Engine) -> None:
    with pytest.raises(BudgetError, match="20 tokens"):
        Seat(engine=memory, budget=20).blocks([Said(role="user", text="Which port?")], [])
