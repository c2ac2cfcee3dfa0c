"""Store the messages of a conversation as events, each with its role, name, id and time.

`Engine.remember`, the adapters of frameworks, the hooks and the importers of transcripts all store messages here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal

from foveate.clock import parse_time
from foveate.errors import InputError, near
from foveate.memory.tool_events import UNNAMED_TOOL, output_trust, tool_events, without_private_parts
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.types import Message, Record, Scope, Trust

BATCH_SIZE = 500
"""Messages that one transaction stores."""

ROLES = ("user", "assistant", "tool", "system")
MESSAGE_FIELDS = tuple(Message.__annotations__)
TRUST_OF_ROLE: Mapping[str, Trust] = {"user": "user", "assistant": "agent"}

Role = Literal["system", "user", "assistant", "tool"]

log = logging.getLogger("foveate.messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationMessage:
    """A message, or the result of a tool, from any program."""

    role: Role
    text: str
    name: str = ""
    """The speaker, or for role `tool` the tool."""
    id: str = ""
    """An id that is the same whenever the message is handed over."""
    alternate_id: str = ""
    """Another id under which it may be stored: a hook receives the text of a message without the id of its line."""
    at: int | None = None
    """When it was said, in milliseconds; None if that is not known."""
    session: str | None = None
    """Its session, if it is not that of the call."""
    trust: Trust | None = None
    """Its trust, if it is not that of its role."""
    tool_input: Any = None
    """Arguments of the tool's call."""
    outcome: str | None = None
    """How the tool's call ended."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of its event."""
    attachments: Sequence[tuple[int, Mapping[str, Any]]] = ()
    """Pictures and files between the texts, each with its index. They are not stored, unless an adapter does."""

    @property
    def has_content(self) -> bool:
        """Whether there is something to store. The developer wrote a system message; it is not part of a conversation."""
        if self.role == "tool":
            return bool(self.name or self.tool_input or without_private_parts(self.text))
        return self.role != "system" and bool(without_private_parts(self.text))


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record to store: kind, text, the fields of `Engine.add`, and the session."""

    kind: str
    text: str
    values: Mapping[str, Any]
    session: str | None = None
    alternate_key: str | None = None


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


def convert_messages(messages: str | Message | Sequence[Message], now: int) -> list[ConversationMessage]:
    """Return the messages of a caller in the form in which they are stored."""
    return [
        ConversationMessage(
            role=message["role"],
            text=message["content"],
            name=message.get("name", ""),
            id=message.get("id", ""),
            at=parse_time(message["at"], "at", current=now) if "at" in message else None,
            data={"message_id": message["id"]} if message.get("id") else {},
        )
        for message in as_messages(messages)
    ]


def remember(
    data: ScopedStore,
    messages: Sequence[ConversationMessage],
    scope: Scope,
    *,
    dry_run: bool = False,
    strict: bool = True,
) -> RememberResult:
    """Store messages as events of their session, in their order.

    A message with the same id, or with the same time and text, is not stored twice. One with neither id nor time is new.
    A message that cannot be stored is an error if `strict`; otherwise it is logged and skipped.
    """
    now = data.clock()
    if not strict:  # the clock of another program may be ahead
        messages = [message if message.at is None else replace(message, at=min(message.at, now)) for message in messages]
    rows = [row for each in with_times(messages, now) for row in event_rows(each, scope)]
    seen: set[str] = set()
    problems: list[str] | None = None if strict else []
    records: list[Record] = []
    known = 0
    for start in range(0, len(rows), BATCH_SIZE):
        new, known_rows = store_rows(data, rows[start : start + BATCH_SIZE], scope, seen, problems, dry_run=dry_run)
        records += new
        known += known_rows
    for problem in problems or ():
        log.warning("a message was not stored: %s", problem)
    return RememberResult(
        ids=() if dry_run else tuple(record.id for record in records),
        stored=len(records),
        known=known,
        skipped=sum(not message.has_content for message in messages) + len(problems or ()),
    )


def with_times(messages: Sequence[ConversationMessage], now: int) -> list[tuple[ConversationMessage, int]]:
    """Return each message with the time of its event, so that a conversation keeps its order.

    A message without a time follows the one before it by a millisecond; the last ones, or all, end now.
    """
    given = [message.at for message in messages]
    timed = [n for n, at in enumerate(given) if at is not None]
    first, last = (timed[0], timed[-1]) if timed else (len(messages), -1)
    times: list[int] = []
    for n, at in enumerate(given):
        if at is None and n < first and timed:
            time = (given[first] or 0) - (first - n)
        elif at is None and n > last:
            time = max(now - (len(messages) - 1 - n), times[-1] + 1 if times else 0)
        elif at is None or (n and given[n - 1] == at):
            time = times[-1] + 1
        else:
            time = at
        times.append(time)
    return list(zip(messages, times, strict=True))


def event_rows(timed: tuple[ConversationMessage, int], scope: Scope) -> Iterator[RecordRow]:
    """Yield the events of a message: one; for a patch one for each file; none if there is nothing to store."""
    message, at = timed
    if not message.has_content:
        return
    key = message_key(message, scope)
    alternate_key = message_key(replace(message, id=message.alternate_id), scope) if message.alternate_id else None
    values: dict[str, Any] = {"created": at, "key": key, "outcome": message.outcome}
    if message.role != "tool":
        name = {"name": message.name} if message.name else {}
        values["data"] = {"type": f"{message.role}_message", **name, **message.data}
        values["trust"] = message.trust or TRUST_OF_ROLE[message.role]
        yield RecordRow("event", without_private_parts(message.text), values, message.session, alternate_key)
        return
    tool = message.name or UNNAMED_TOOL
    values["trust"] = message.trust or output_trust(tool, message.tool_input)
    events = tool_events(tool, message.tool_input, message.text, message.outcome == "failure")
    for number, (text, fields) in enumerate(events):
        own: dict[str, Any] = {"data": {**fields, **message.data}, "paths": [fields["path"]] if "path" in fields else ()}
        own["key"] = f"{key}:{number}" if key and number else key
        yield RecordRow("event", text, {**values, **own}, message.session, alternate_key)


def message_key(message: ConversationMessage, scope: Scope) -> str | None:
    """Return the key of a message's event; None if nothing says whether it is the same as another.

    The same message can be said again in another session, or by another user.
    """
    identity: tuple[str, ...] = (message.id,) if message.id else ()
    if not identity and message.at is not None:
        identity = (message.name, str(message.at), without_private_parts(message.text))
    if not identity:
        return None
    return f"message:{digest(scope.user or '', message.session or scope.session or '', message.role, *identity)}"


def text_id(role: str, text: str) -> str:
    """Return an id for a message that has none but its text."""
    return digest(role, " ".join(without_private_parts(text).split()))


def digest(*parts: str) -> str:
    """Return a short hash of texts."""
    return blake2b("\x1f".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def store_rows(
    data: ScopedStore,
    rows: Sequence[RecordRow],
    scope: Scope,
    seen: set[str],
    problems: list[str] | None = None,
    *,
    dry_run: bool = False,
) -> tuple[list[Record], int]:
    """Store the rows that are new in one transaction. Return their records, and the number of rows that were known.

    `seen` collects the keys, because one call can contain a row twice. A row that cannot be stored raises, or its problem
    is added to `problems`. Known rows are left out before their records are made and their texts are embedded.
    """
    records, rejected = [], 0
    for row in _new_rows(data, rows, scope, seen):
        try:
            own_scope = replace(scope, session=row.session or scope.session)
            records.append(data.make(row.kind, row.text, row.values, own_scope))
        except InputError as error:
            if problems is None:
                raise
            problems.append(f"{row.values.get('key') or row.kind} cannot be stored: {error}")
            rejected += 1
    stored = records if dry_run else _store_records(data, records, scope)
    return stored, len(rows) - rejected - len(stored)


@retry_interrupted
def _new_rows(data: ScopedStore, rows: Sequence[RecordRow], scope: Scope, seen: set[str]) -> list[RecordRow]:
    """Return the rows that are neither stored nor seen yet. Their keys are seen then."""
    new, keys = [], set(seen)
    with data.reader(scope) as reader:
        for row in rows:
            key = row.values.get("key")
            if key in keys or any(reader.by_key(each) for each in (key, row.alternate_key) if each):
                continue
            new.append(row)
            keys |= {key} if key else set()
    seen |= keys
    return new


@retry_interrupted
def _store_records(data: ScopedStore, records: Sequence[Record], scope: Scope) -> list[Record]:
    """Store records in one transaction, and return those that are new."""
    vectors = data.vectors([record.text for record in records])
    with data.writer(scope) as writer:
        added = [writer.add(record, vector) for record, vector in zip(records, vectors, strict=True)]
    return [result.record for result in added if result.action == "added"]
