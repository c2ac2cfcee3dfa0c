"""Messages of OpenAI's chat completions or Responses API, without a framework and without a package.

`messages_for` returns the messages to send: the stable part follows the system messages, the volatile part is the last
message. The arguments stay as they are. A list that comes from here may come in again, because the messages of a context
are recognised by their marker lines.
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
from foveate.integrations.importers.rows import content_text, parse_arguments
from foveate.memory.messages import ConversationMessage, RememberResult

Message = Any
"""A dict, or an object of the client: `messages.append(response.choices[0].message)` is usual."""

SYSTEM_ROLES = ("system", "developer")
_OUTPUT_SUFFIX = "_call_output"
_ARGUMENT_KEYS = ("arguments", "input", "action")


def messages_for(engine: Engine, messages: Sequence[Message], **options: Unpack[HistoryOptions]) -> list[Message]:
    """Return the messages to send: system messages, the stable part, the last turns, and the volatile part.

    The messages are stored first, so that the turns that are dropped are not lost.
    """
    own = [message for message in messages if not is_context_block(_as_mapping(message).get("content"))]
    prompt = Conversation(engine, FORMAT, **options).prompt(own, with_markers=True)
    if prompt is None:
        return own
    system = [message for message in prompt.messages if _is_system(message)]
    role = _as_mapping(system[-1])["role"] if system else SYSTEM_ROLES[0]
    before = [{"role": role, "content": prompt.stable}] if prompt.stable else []
    kept = [message for message in prompt.messages if not _is_system(message)]
    after = [{"role": "user", "content": prompt.volatile}] if prompt.volatile else []
    return [*system, *before, *kept, *after]


def remember(
    engine: Engine, messages: Sequence[Message], *, user: str | None = None, session: str | None = None
) -> RememberResult:
    """Store a conversation. Messages that are stored already are not stored again."""
    return Conversation(engine, FORMAT, user=user, session=session).remember(messages)


def _is_turn_start(message: Message) -> bool:
    return bool(_as_mapping(message).get("role") == "user")


def _is_system(message: Message) -> bool:
    return _as_mapping(message).get("role") in SYSTEM_ROLES


def _convert_messages(messages: Sequence[Message]) -> list[ConversationMessage]:
    """Convert messages of both APIs, without those that an earlier call has added."""
    mappings = [_as_mapping(message) for message in messages]
    calls = {id: call for message in mappings for id, call in _tool_calls(message)}
    own = [message for message in mappings if not is_context_block(message.get("content"))]
    return [part for message in own for part in _convert_message(message, calls)]


FORMAT: MessageFormat[Message] = MessageFormat(_convert_messages, _is_turn_start, _is_system)


def _as_mapping(message: Message) -> Mapping[str, Any]:
    return message if isinstance(message, Mapping) else message.model_dump(exclude_none=True)


def _convert_message(message: Mapping[str, Any], calls: Mapping[str, tuple[str, Any]]) -> Iterator[ConversationMessage]:
    role, at = message.get("role"), message_time(message)
    if role == "tool" or str(message.get("type", "")).endswith(_OUTPUT_SUFFIX):
        id = str(message.get("tool_call_id") or message.get("call_id") or "")
        name, tool_input = calls.get(id) or (str(message.get("name") or ""), None)
        text = content_text(message.get("content") if role == "tool" else message.get("output"))
        yield ConversationMessage(role="tool", text=text, id=id, name=name, tool_input=tool_input, at=at)
    elif role in SYSTEM_ROLES:
        yield ConversationMessage(role="system", text=content_text(message.get("content")))
    elif role in ("user", "assistant"):
        content = message.get("content")
        name = str(message.get("name") or "")
        yield ConversationMessage(role=role, text=content_text(content), name=name, at=at, attachments=_attachments(content))


def _tool_calls(message: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, Any]]]:
    """Yield the id of each tool call in a message, with the name of the tool and the arguments."""
    if message.get("call_id") and not str(message.get("type", "")).endswith(_OUTPUT_SUFFIX):
        arguments = next((message[key] for key in _ARGUMENT_KEYS if message.get(key)), None)
        yield message["call_id"], (str(message.get("name") or message.get("type")), parse_arguments(arguments))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call.get("custom") or {}
        arguments = parse_arguments(function.get("arguments") or function.get("input"))
        yield call.get("id", ""), (str(function.get("name", "")), arguments)


def _attachments(content: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """Return pictures, sounds and files of a content, each with its index."""
    if not isinstance(content, list | tuple):
        return []
    return [(n, part) for n, part in enumerate(content) if isinstance(part, Mapping) and not content_text(part)]
