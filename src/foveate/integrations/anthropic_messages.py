"""Plain Anthropic messages -> `system` and `messages` to send instead.

Comes in: the conversation as the Messages API takes it. Goes out: both parts anew, with the stable part as the last block of
`system`, where a cache mark ends it, and the volatile part as the last block of the last user message. What came in stays as
it is; the blocks carry a mark, so that messages that came from here may come in again. It needs no package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foveate.engine import Engine
from foveate.integrations.conversation import TURNS, Said, Seat, is_marked
from foveate.integrations.importers import Report

Message = Mapping[str, Any]
Block = Mapping[str, Any]

CACHE_MARKS = 4
"""The API takes no more in one request."""


def messages_for(
    engine: Engine,
    messages: Sequence[Message],
    *,
    system: str | Sequence[Block] = (),
    budget: int | None = None,
    turns: int | None = TURNS,
    session: str | None = None,
    keeps: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """`{"system": ..., "messages": ...}` for `client.messages.create`.

    What was said so far is kept, so that turns that are dropped are not lost; `keeps=False` keeps nothing. Further options
    are those of `engine.context`.
    """
    seat = Seat(engine=engine, budget=budget, turns=turns, session=session, keeps=keeps, options=options)
    own = [{**message, "content": _own(message["content"])} for message in messages]
    stay = seat.latest(own, begins)
    blocks = seat.blocks(said(own), said(stay))
    above = _own(system)
    if blocks is None:  # what could not be kept is not dropped either
        return {"system": above, "messages": own}
    stable, volatile = blocks
    if stable:
        marks = sum("cache_control" in block for part in (above, *(each["content"] for each in own)) for block in part)
        end = {"cache_control": {"type": "ephemeral"}} if marks < CACHE_MARKS else {}
        above.append({"type": "text", "text": stable, **end})
    return {"system": above, "messages": _with_last(stay, volatile)}


def keep(engine: Engine, messages: Sequence[Message], *, session: str | None = None) -> Report:
    """What was said, as events; what is known already adds nothing, so the whole conversation may be handed over."""
    return Seat(engine=engine, session=session).keep(said(messages))


def begins(message: Message) -> bool:
    """Whether a turn begins here: a user's words, and no tool's answer."""
    answers = any(block.get("type") == "tool_result" for block in _blocks(message["content"]))
    return message["role"] == "user" and not answers


def said(messages: Sequence[Message]) -> list[Said]:
    """What people, models and tools said."""
    blocks = [(message["role"], block) for message in messages for block in _own(message["content"])]
    called = {block["id"]: block for _, block in blocks if block.get("type") == "tool_use"}
    return [part for role, block in blocks for part in _said(role, block, called)]


def _said(role: str, block: Block, called: Mapping[str, Block]) -> Iterator[Said]:
    sort = block.get("type")
    if sort == "tool_result":
        id, answer = block["tool_use_id"], block.get("content") or ""
        call = called.get(id, {})
        text = "\n".join(part["text"] for part in _blocks(answer) if part.get("text"))
        failed = bool(block.get("is_error"))
        yield Said(role="tool", text=text, id=id, tool=call.get("name", ""), input=call.get("input"), failed=failed)
    elif sort == "text" and role in ("user", "assistant"):
        yield Said(role="user" if role == "user" else "assistant", text=block["text"])


def _own(content: Any) -> list[Block]:
    """The blocks of a content without those that were put there by an earlier call."""
    return [block for block in _blocks(content) if not is_marked(block.get("text"))]


def _blocks(content: Any) -> list[Block]:
    """A content as blocks, whatever its shape; those of a response are objects of the client's own."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block if isinstance(block, Mapping) else block.model_dump(exclude_none=True) for block in content]


def _with_last(messages: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The messages with a text as the last thing that the user says: behind tools' results, before a prefilled answer."""
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=None)
    if not text or last is None:
        return messages
    more = {**messages[last], "content": [*messages[last]["content"], {"type": "text", "text": text}]}
    return [*messages[:last], more, *messages[last + 1 :]]
