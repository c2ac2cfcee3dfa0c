"""Microsoft Agent Framework: histories that are stored at every call. See also `test_every_adapter`."""

from __future__ import annotations

from frameworks import AgentFramework, talk, texts_of

from foveate import Engine


class StoringEveryCall(AgentFramework):
    stores_every_call = True


def test_the_context_is_not_stored_where_every_call_is(memory: Engine) -> None:
    talking = StoringEveryCall(memory)
    requests = talk(talking, "weather Oslo")
    assert len(requests) == 2
    assert talking.stored_questions == ["weather Oslo"]


def test_the_user_is_that_of_the_session(memory: Engine) -> None:
    for user in ("ada", "bob"):
        talking = AgentFramework(memory, session=user, user=lambda session: session.state["user"])
        talking.run_session.state["user"] = user
        talk(talking, f"I am {user}")
    assert (texts_of(memory, "ada"), texts_of(memory, "bob")) == (["I am ada", "answer 1"], ["I am bob", "answer 1"])
