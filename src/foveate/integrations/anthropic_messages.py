"""Messages of Anthropic's API, without a framework and without a package.

`messages_for` returns the `system` and `messages` to send: the stable part is the last block of `system`, ended by a cache
mark, and the volatile part is the last block of the last user message. The arguments stay as they are. Messages that come
from here may come in again, because the blocks of a context are recognised by their marker lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

from foveate.engine import Engine
from foveate.integrations.conversation import (
    Conversation,
    HistoryOptions,
    MessageFormat,
    is_context_block,
    message_time,
)
from foveate.integrations.importers.rows import content_text
from foveate.memory.messages import ConversationMessage, RememberResult

Message = Mapping[str, Any]
Block = Mapping[str, Any]

MAX_CACHE_MARKS = 4
"""The API's limit for one request."""


def messages_for(
    engine: Engine,
    messages: Sequence[Message],
    *,
    system: str | Sequence[Block] = (),
    **options: Unpack[HistoryOptions],
) -> dict[str, Any]:
    """Return `{"system": ..., "messages": ...}` for `client.messages.create`.

    The messages are stored first, so that the turns that are dropped are not lost.
    """
    own: list[Message] = [{**message, "content": _without_context(message["content"])} for message in messages]
    prompt = Conversation(engine, _FORMAT, **options).prompt(own, with_markers=True)
    system_blocks = _without_context(system)
    if prompt is None:
        return {"system": system_blocks, "messages": own}
    if prompt.stable:
        contents = [system_blocks, *(message["content"] for message in own)]
        cache_marks = sum("cache_control" in block for content in contents for block in content)
        cache = {"cache_control": {"type": "ephemeral"}} if cache_marks < MAX_CACHE_MARKS else {}
        system_blocks.append({"type": "text", "text": prompt.stable, **cache})
    return {"system": system_blocks, "messages": _append_to_user_message(prompt.messages, prompt.volatile)}


def remember(
    engine: Engine, messages: Sequence[Message], *, user: str | None = None, session: str | None = None
) -> RememberResult:
    """Store a conversation. Messages that are stored already are not stored again."""
    return Conversation(engine, _FORMAT, user=user, session=session).remember(messages)


def _is_turn_start(message: Message) -> bool:
    """Return whether a message contains the user's words and no result of a tool."""
    has_result = any(block.get("type") == "tool_result" for block in _blocks(message["content"]))
    return message["role"] == "user" and not has_result


def _convert_messages(messages: Sequence[Message]) -> list[ConversationMessage]:
    blocks = [(message, block) for message in messages for block in _without_context(message["content"])]
    calls = {block["id"]: block for _, block in blocks if block.get("type") == "tool_use"}
    return [part for message, block in blocks for part in _convert_block(message, block, calls)]


_FORMAT: MessageFormat[Message] = MessageFormat(_convert_messages, _is_turn_start)


def _convert_block(message: Message, block: Block, calls: Mapping[str, Block]) -> Iterator[ConversationMessage]:
    role, at = message["role"], message_time(message)
    if block.get("type") == "tool_result":
        id = block["tool_use_id"]
        call = calls.get(id, {})
        yield ConversationMessage(
            role="tool",
            text=content_text(_blocks(block.get("content") or "")),
            id=id,
            name=call.get("name", ""),
            tool_input=call.get("input"),
            outcome="failure" if block.get("is_error") else "success",
            at=at,
        )
    elif block.get("type") == "text" and role in ("user", "assistant"):
        yield ConversationMessage(role="user" if role == "user" else "assistant", text=block["text"], at=at)


def _without_context(content: Any) -> list[Block]:
    """Return the blocks of a content without those that an earlier call has added."""
    return [block for block in _blocks(content) if not is_context_block(block.get("text"))]


def _blocks(content: Any) -> list[Block]:
    """Return a content as a list of mappings. The blocks of a response are objects of the client."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block if isinstance(block, Mapping) else block.model_dump(exclude_none=True) for block in content]


def _append_to_user_message(messages: list[Message], text: str) -> list[Message]:
    """Append a text to the last user message: after the results of tools, and before a prefilled answer."""
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=None)
    if not text or last is None:
        return messages
    extended = {**messages[last], "content": [*messages[last]["content"], {"type": "text", "text": text}]}
    return [*messages[:last], extended, *messages[last + 1 :]]
