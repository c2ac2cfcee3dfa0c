"""Microsoft Agent Framework: histories that are stored at every call. See also `test_every_adapter`."""

from __future__ import annotations

from frameworks import AgentFramework, talk

from foveate import Engine


class StoringEveryCall(AgentFramework):
    stores_every_call = True


def test_the_context_is_not_stored_where_every_call_is(memory: Engine) -> None:
    talking = StoringEveryCall(memory)
    requests = talk(talking, "weather Oslo")
    assert len(requests) == 2
    assert talking.stored_questions == ["weather Oslo"]
