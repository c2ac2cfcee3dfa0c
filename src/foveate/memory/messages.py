"""Store the messages of a conversation as events, each with its role, name, id and time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from foveate.clock import parse_time
from foveate.errors import InputError, near
from foveate.records.render_events import shorten_output
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.text.format import truncate
from foveate.types import Message, Record, Scope

BATCH_SIZE = 500
"""Messages that one transaction stores."""

MAX_OUTPUT_CHARS = 8_000
"""Longest output of a tool that is stored. A prompt shows less of it, and the rest would only fill the index."""

HEAD_LINES, TAIL_LINES, ERROR_LINES = 40, 40, 20
"""Lines that remain of a longer output: from its beginning, from its end, and lines with errors from between."""

ROLES = ("user", "assistant", "tool", "system")
MESSAGE_FIELDS = tuple(Message.__annotations__)
TRUST_OF_ROLE = {"user": "user", "assistant": "agent"}

# A tag that is never closed hides the rest of the text, because it is safer to store too little.
_PRIVATE = re.compile(r"<(private|foveate-context)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)

# Hosts do not report where the output of a tool comes from, so its name decides whether it is trusted as little as the web.
_WEB_TOOL = re.compile(
    r"(?:^|[_\W])(?:web|fetch|http|brows|crawl|scrape|url|playwright|puppeteer|chrome|google|bing|brave|duckduckgo|tavily"
    r"|firecrawl|perplexity)|_(?:url|page)s?$"
)


@dataclass(frozen=True, slots=True)
class RememberResult:
    """The result of storing the messages of one call."""

    ids: tuple[str, ...] = ()
    """Ids of the events that were stored, in the order of the messages. Empty after a dry run."""
    stored: int = 0
    known: int = 0
    """Number of messages that were stored before this call."""
    skipped: int = 0
    """Number of system messages, and of messages without text after private parts were removed."""


def as_messages(messages: str | Message | Sequence[Message]) -> list[Message]:
    """Return checked messages. A plain text becomes a message of the user. Raise one error that lists every problem."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if not isinstance(messages, Iterable):
        raise InputError(f"messages must be a text, a message or a list of messages, got {messages!r:.80}.")
    several = [messages] if isinstance(messages, Mapping) else list(messages)
    problems = [f"Message {n}: {problem}" for n, message in enumerate(several, 1) for problem in _problems(message)]
    if problems:
        raise InputError(problems)
    return several


def _problems(message: Any) -> list[str]:
    if not isinstance(message, Mapping):
        return [f"it must be a mapping with role and content, got {message!r:.80}."]
    problems = [
        f"unknown field {name!r}.{near(str(name), MESSAGE_FIELDS)}" for name in message if name not in MESSAGE_FIELDS
    ]
    if message.get("role") not in ROLES:
        problems.append(f"role must be one of {', '.join(ROLES)}, got {message.get('role')!r}.")
    if not isinstance(message.get("content"), str):
        problems.append(f"content must be a text, got {message.get('content')!r:.80}.")
    problems += [
        f"{name} must be a text, got {message[name]!r:.80}."
        for name in ("name", "id")
        if name in message and not isinstance(message[name], str)
    ]
    return problems


def remember(data: ScopedStore, messages: Sequence[Message], scope: Scope, *, dry_run: bool = False) -> RememberResult:
    """Store messages as events of the scope's session, in their order.

    A message with the same id, or with the same time and text, is not stored twice. One with neither id nor time is new.
    """
    now = data.clock()
    records = []
    for number, message in enumerate(messages):
        # Messages without a time end now, a millisecond apart, so that they keep their order.
        at = parse_time(message["at"], "at", current=now) if "at" in message else now - (len(messages) - 1 - number)
        record = _record(data, message, at, scope)
        if record is not None:
            records.append(record)
    ids: list[str] = []
    for start in range(0, len(records), BATCH_SIZE):
        # Known messages are left out before their texts are embedded.
        new = _new_records(data, records[start : start + BATCH_SIZE], scope)
        ids += [record.id for record in new] if dry_run else store_records(data, new, scope)
    return RememberResult(
        ids=() if dry_run else tuple(ids),
        stored=len(ids),
        known=len(records) - len(ids),
        skipped=len(messages) - len(records),
    )


def _record(data: ScopedStore, message: Message, at: int, scope: Scope) -> Record | None:
    """Return the event of a message, or None if there is nothing to store."""
    role, text = message["role"], without_private_parts(message["content"])
    # A system message has the developer's instructions, which are not part of the conversation.
    if role == "system" or not text:
        return None
    name, id = message.get("name", ""), message.get("id", "")
    fields: dict[str, Any] = {"message_id": id} if id else {}
    if role == "tool":
        tool = name or "tool"
        text = f"{tool}\n{shortened_output(text)}"
        fields |= {"type": "tool_call", "tool": tool}
        trust = "web" if is_web_tool(tool) else "tool"
    else:
        fields |= {"type": f"{role}_message", **({"name": name} if name else {})}
        trust = TRUST_OF_ROLE[role]
    identity = (id,) if id else (name, str(at), text) if "at" in message else ()
    key = f"message:{_digest(scope.session or '', role, *identity)}" if identity else None
    return data.make("event", text, {"data": fields, "key": key, "created": at, "trust": trust}, scope)


def _digest(*parts: str) -> str:
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()


def without_private_parts(text: str) -> str:
    """Return a text without the parts marked as private, and without contexts that foveate put into the prompt."""
    return _PRIVATE.sub("", text).strip()


def shortened_output(text: str) -> str:
    """Return a tool's output. A long one is reduced to its beginning, its end and its errors."""
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    return truncate(shorten_output(text, HEAD_LINES, TAIL_LINES, ERROR_LINES), MAX_OUTPUT_CHARS)


def is_web_tool(name: str) -> bool:
    """Return whether a tool's name says that it reads the web."""
    return bool(_WEB_TOOL.search(name.lower()))


@retry_interrupted
def _new_records(data: ScopedStore, records: Sequence[Record], scope: Scope) -> list[Record]:
    """Return the events that are not stored yet."""
    with data.project_reader(scope) as reader:
        return [record for record in records if record.key is None or reader.by_key(record.key) is None]


@retry_interrupted
def store_records(data: ScopedStore, records: Sequence[Record], scope: Scope) -> list[str]:
    """Store records in one transaction, and return the ids of those that are new."""
    vectors = data.vectors([record.text for record in records])
    with data.writer(scope) as writer:
        added = [writer.add(record, vector) for record, vector in zip(records, vectors, strict=True)]
    return [result.record.id for result in added if result.action == "added"]
