"""Plain OpenAI messages, of chat completions or of the Responses API -> the messages to send instead.

Comes in: the conversation as a list of dicts. Goes out: a new list, with the stable part behind the system messages and the
volatile part last. The list that came in stays as it is; the blocks carry a mark, so that a list that came from here may
come in again. It needs no package: what it reads and writes is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foveate.engine import Engine
from foveate.integrations.conversation import TURNS, Said, Seat, is_marked
from foveate.integrations.importers import Report

Message = Any
"""A dict, or an object of the client's own: `messages.append(response.choices[0].message)` is usual."""

SYSTEM = ("system", "developer")
_OUTPUT = "_call_output"
_WORDS = ("text", "refusal", "stdout", "stderr")


def messages_for(
    engine: Engine,
    messages: Sequence[Message],
    *,
    budget: int | None = None,
    turns: int | None = TURNS,
    session: str | None = None,
    keeps: bool = True,
    **options: Any,
) -> list[Message]:
    """The messages to send: system messages, the stable part, the last turns, and what was computed for this call.

    What was said so far is kept, so that turns that are dropped are not lost; `keeps=False` keeps nothing. Further options
    are those of `engine.context`.
    """
    seat = Seat(engine=engine, budget=budget, turns=turns, session=session, keeps=keeps, options=options)
    own = [message for message in messages if not is_marked(_plain(message).get("content"))]
    system = [message for message in own if _plain(message).get("role") in SYSTEM]
    stay = seat.latest([message for message in own if _plain(message).get("role") not in SYSTEM], begins)
    blocks = seat.blocks(said(own), said(stay))
    if blocks is None:  # what could not be kept is not dropped either
        return own
    stable, volatile = blocks
    role = _plain(system[-1])["role"] if system else SYSTEM[0]
    before = [{"role": role, "content": stable}] if stable else []
    return [*system, *before, *stay, *([{"role": "user", "content": volatile}] if volatile else [])]


def keep(engine: Engine, messages: Sequence[Message], *, session: str | None = None) -> Report:
    """What was said, as events; what is known already adds nothing, so the whole conversation may be handed over."""
    return Seat(engine=engine, session=session).keep(said(messages))


def begins(message: Message) -> bool:
    """Whether a turn begins here: a user's words, and no tool's answer."""
    return bool(_plain(message).get("role") == "user")


def said(messages: Sequence[Message]) -> list[Said]:
    """What people, models and tools said, in both of OpenAI's shapes."""
    plain = [_plain(message) for message in messages]
    called = {id: call for message in plain for id, call in _calls(message)}
    return [part for message in plain if not is_marked(message.get("content")) for part in _said(message, called)]


def _plain(message: Message) -> Mapping[str, Any]:
    return message if isinstance(message, Mapping) else message.model_dump(exclude_none=True)


def _said(message: Mapping[str, Any], called: Mapping[str, tuple[str, Any]]) -> Iterator[Said]:
    role = message.get("role")
    if role == "tool" or str(message.get("type", "")).endswith(_OUTPUT):
        id = str(message.get("tool_call_id") or message.get("call_id") or "")
        tool, given = called.get(id, ("", None))
        text = _text(message.get("content") if role == "tool" else message.get("output"))
        yield Said(role="tool", text=text, id=id, tool=tool, input=given)
    elif role in SYSTEM:
        yield Said(role="system", text=_text(message.get("content")))
    elif role in ("user", "assistant"):
        content = message.get("content")
        yield Said(role=role, text=_text(content), parts=_wordless(content))


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """The calls in a message, by id: which tool, with what."""
    if message.get("call_id") and not str(message.get("type", "")).endswith(_OUTPUT):
        given = next((message[name] for name in ("arguments", "input", "action") if message.get(name)), None)
        yield message["call_id"], (str(message.get("name") or message.get("type")), _parsed(given))
    for call in message.get("tool_calls") or ():
        inner = call.get("function") or call.get("custom") or {}
        yield call.get("id", ""), (str(inner.get("name", "")), _parsed(inner.get("arguments") or inner.get("input")))


def _parsed(given: Any) -> Any:
    try:
        return json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given


def _wordless(content: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """Pictures, sounds and files of a content, each with its place."""
    if not isinstance(content, list | tuple):
        return []
    return [(n, part) for n, part in enumerate(content) if isinstance(part, Mapping) and not _text(part)]


def _text(content: Any) -> str:
    """The words of a content, whatever its shape; pictures and files have none."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = content if isinstance(content, list | tuple) else [content]
    words = [
        part if isinstance(part, str) else "\n".join(str(part[name]) for name in _WORDS if part.get(name)) for part in parts
    ]
    return "\n".join(word for word in words if word)
