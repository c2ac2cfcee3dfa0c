"""A conversation in a framework's loop: its context is computed for each call of the model, its messages are stored.

An adapter says in a `MessageFormat` how to read its framework's messages, and places the parts of a `Prompt`. A
`Conversation` does the rest: no adapter computes a context, stores messages or shortens a history in another way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Any, Generic, TypeVar, Unpack, cast

from foveate.engine import Engine
from foveate.engine.engine import note_session, without_code
from foveate.errors import BudgetError, InputError, SourceError, StoreError
from foveate.integrations.importers.rows import CONTEXT_BEGIN, CONTEXT_END, content_text, parse_millis
from foveate.memory.messages import ConversationMessage, RememberResult, digest, message_key, remember
from foveate.memory.tool_events import without_private_parts
from foveate.options import ContextOptions, HasId, RequestOptions, refuse_unknown
from foveate.pipeline.request import MAX_QUERY_CHARS
from foveate.receipts.context import Context
from foveate.store.protocol import Reader
from foveate.text import tokens
from foveate.types import Filters, Scope

Message = TypeVar("Message")

DEFAULT_TURNS = 3
"""Latest turns of the conversation that stay in the prompt by default."""

DEFAULT_SESSION = "main"
"""The session of messages whose framework names none."""

DEFAULT_QUERY = "What holds here"
"""The query for a message without words, such as a picture: rules apply to it, too."""

KNOWN_RUN_LENGTH = 4
"""If this many messages in a row are stored already, so are all messages before them."""

OPTIONS_FOR_CODE = ("profile", "code_query")
"""Options that ask for code. Without one, no context of an adapter holds any: it is often the bot's own source code."""

TIME_FIELDS = ("at", "created_at", "timestamp")
"""Fields in which programs store the time of a message."""

log = logging.getLogger("foveate.agents")


class AdapterOptions(RequestOptions, total=False):
    """Options of every adapter: those of `Engine.context`, and whether it stores messages."""

    user: str | Callable[[Any], str] | None
    """User of the conversation: what is stored for one user, no other sees. A function receives the framework's run."""
    agent: str | None
    session: str | None
    task: str | HasId | None
    remember: bool
    """Store the messages of the conversation. The default is True."""


class HistoryOptions(AdapterOptions, total=False):
    """Options of an adapter that shortens the conversation."""

    turns: int | None
    """Latest turns that stay in the prompt; None for all. The default is 3. Older turns come back from the store."""


_OPTIONS = frozenset(HistoryOptions.__annotations__)


@dataclass(frozen=True, slots=True)
class MessageFormat(Generic[Message]):
    """How to read the messages of a framework."""

    convert: Callable[[Sequence[Message]], list[ConversationMessage]]
    is_turn_start: Callable[[Message], bool]
    is_system: Callable[[Message], bool] = lambda _: False


CONVERTED: MessageFormat[ConversationMessage] = MessageFormat(
    list, lambda message: message.role == "user", lambda message: message.role == "system"
)
"""The format of messages that are converted already."""


@dataclass(frozen=True, slots=True)
class Prompt(Generic[Message]):
    """What the next call of the model receives: the messages that stay, and the two parts of the context."""

    messages: list[Message]
    stable: str
    volatile: str


class Conversation(Generic[Message]):
    """Computes the contexts of a conversation and stores its messages.

    A session in the options takes precedence over the one that the framework names in a call. `run` is what the framework
    passes to a function in the option `user`.
    """

    def __init__(self, engine: Engine, format: MessageFormat[Message], **options: Unpack[HistoryOptions]) -> None:
        refuse_unknown(options, _OPTIONS, "An adapter")
        self.engine = engine if any(options.get(name) for name in OPTIONS_FOR_CODE) else without_code(engine)
        self._format = format
        self._turns = options.pop("turns", DEFAULT_TURNS)
        self._stores_messages = options.pop("remember", True)
        self._user = options.pop("user", None)
        self._session = options.pop("session", None)
        self._options = cast(ContextOptions, options)

    def prompt(
        self, messages: Sequence[Message], *, session: str | None = None, run: object = None, with_markers: bool = False
    ) -> Prompt[Message] | None:
        """Store the messages, and return what the next call of the model receives; None without a context.

        The context can contain what the messages that stay no longer show. If there is none, all messages must be sent: the
        store may have failed, and a turn that was not stored must not be dropped. `with_markers` puts marker lines around
        both parts, within the budget. Raises BudgetError if it has no room for them.
        """
        kept = self._kept_messages(messages)
        markers = self._marker_tokens() if with_markers else 0
        self.remember(messages, session=session, run=run)
        budget = self._options.get("budget")
        room = None if budget is None else budget - markers
        context = self.context(messages, kept, session=session, run=run, budget=room)
        if budget is None and context and context.tokens + markers > context.budget.ceiling:
            context = self.context(messages, kept, session=session, run=run, budget=context.budget.total - markers)
        if context is None:
            return None
        wrap = wrap_context_block if with_markers else str
        return Prompt(kept, wrap(context.stable), wrap(context.volatile))

    def context(
        self,
        messages: Sequence[Message],
        shown: Sequence[Message] = (),
        *,
        session: str | None = None,
        run: object = None,
        budget: int | None = None,
    ) -> Context | None:
        """Return the context for the next call of the model; None without a user's message or without a store.

        The context does not repeat the messages `shown`, which the prompt contains anyway. If the store fails, that is
        logged and the call can go on without a context. An error in the options is raised.
        """
        converted = self._format.convert(messages)
        query = current_query(converted) or (DEFAULT_QUERY if any(part.role == "user" for part in converted) else "")
        if not query:
            return None
        scope = self._scope(session, run)
        try:
            options: ContextOptions = {**self._options, "user": scope.user, "session": self._session or session}
            if shown:
                options["filters"] = self._exclude_shown(self._format.convert(shown), scope)
            if budget is not None:
                options["budget"] = budget
            return self.engine.context(query, **options)
        except (StoreError, SourceError) as error:
            log.warning("no context: %s", error)
            return None

    def remember(
        self, messages: Sequence[Message], *, session: str | None = None, run: object = None, is_new: bool = False
    ) -> RememberResult:
        """Store messages as events of the session. If the store fails, that is logged.

        Messages that are stored already are not stored again, so the whole conversation may be handed over each time.
        With `is_new`, all messages are new, although some may have the text of earlier ones.
        """
        if not self._stores_messages:
            return RememberResult()
        converted, scope = self._format.convert(messages), self._scope(session, run)
        try:
            known = self._known_events(converted, scope) if is_new else {}
            seen_counts = Counter({content: len(ids) for content, ids in known.items()})
            identified = list(with_ids(converted, seen_counts))
            new = identified if is_new else self._new_messages(identified, scope)
            done = remember(self.engine.store.data, new, scope, strict=False)
        except StoreError as error:
            log.warning("messages were not stored: %s", error)
            return RememberResult(skipped=len(converted))
        return replace(done, known=done.known + len(identified) - len(new))

    async def aprompt(
        self, messages: Sequence[Message], *, session: str | None = None, run: object = None
    ) -> Prompt[Message] | None:
        """`prompt` for async callers."""
        return await asyncio.to_thread(self.prompt, messages, session=session, run=run)

    async def aremember(
        self, messages: Sequence[Message], *, session: str | None = None, run: object = None
    ) -> RememberResult:
        """`remember` for async callers."""
        return await asyncio.to_thread(self.remember, messages, session=session, run=run)

    def _scope(self, session: str | None, run: object) -> Scope:
        """Return the scope of a call. A function that names no user is an error, or people would share one memory."""
        user = self._user
        if callable(user):
            if run is None:
                raise InputError("user must be a text here: this call has no run that a function could read it from.")
            user = user(run)
            if not isinstance(user, str) or not user:
                raise InputError(f"The function in user must return the name of a user, got {user!r}.")
        own = self.engine.scope
        scope = replace(
            own,
            user=own.user if user is None else user,
            session=self._session or session or own.session or DEFAULT_SESSION,
        )
        note_session(self.engine, scope)
        return self.engine.store.data.clean_scope(scope)

    def _kept_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages that stay in the prompt: the system's, and the last turns, at least the current one."""
        turns = last_turns(messages, self._turns if self._turns is None else max(self._turns, 1), self._format.is_turn_start)
        dropped = messages[: len(messages) - len(turns)]
        return [*filter(self._format.is_system, dropped), *turns]

    def _marker_tokens(self) -> int:
        """Return the tokens of the marker lines around both parts. Raises BudgetError if they leave no room."""
        counter = self._options.get("counter") or self.engine.store.data.rules.counter
        markers = 2 * tokens.count(f"{CONTEXT_BEGIN}{CONTEXT_END}\n", counter)
        budget = self._options.get("budget")
        if budget is not None and budget <= markers:
            problem = f"A budget of {budget} tokens is too small: the lines around a context take {markers}. Raise it."
            raise BudgetError(problem, short=markers + 1 - budget)
        return markers

    def _new_messages(self, messages: list[ConversationMessage], scope: Scope) -> list[ConversationMessage]:
        """Return the messages after the last ones that are stored already.

        One stored message is not enough: in a list that the caller has cut, a repeated text looks like a stored one.
        """
        run_length = 0
        with self.engine.store.data.reader(scope) as reader:
            for n in range(len(messages), 0, -1):
                if not messages[n - 1].has_content:
                    continue
                run_length = run_length + 1 if reader.by_key(str(message_key(messages[n - 1], scope))) else 0
                if run_length == KNOWN_RUN_LENGTH:
                    return messages[n:]
        return messages

    def _exclude_shown(self, shown: Sequence[ConversationMessage], scope: Scope) -> Filters:
        """Add the events of the messages that the prompt shows to the caller's filters."""
        filters = self._options.get("filters") or Filters()
        events = self._known_events(shown, scope)
        return replace(filters, exclude=(*filters.exclude, *(id for ids in events.values() for id in ids)))

    def _known_events(self, messages: Sequence[ConversationMessage], scope: Scope) -> dict[str, list[str]]:
        """Return the ids of stored events by content key. A text that was said twice has two."""
        with self.engine.store.data.reader(scope) as reader:
            return {_content_key(part): _event_ids(reader, part, scope) for part in messages if part.role != "system"}


def with_ids(messages: Sequence[ConversationMessage], seen_counts: Counter[str]) -> Iterator[ConversationMessage]:
    """Give each message an id that is the same whenever a framework hands it over.

    A text that occurs again gets the next number, as each "go on" is another message.
    """
    for part in messages:
        content = _content_key(part)
        yield _with_id(part, content, 0 if part.id else seen_counts[content])
        seen_counts[content] += 1


def message_time(*sources: object) -> int | None:
    """Return the first time in mappings that may have one, in a field of `TIME_FIELDS`."""
    values = (source[name] for source in sources if isinstance(source, Mapping) for name in TIME_FIELDS if name in source)
    return next((time for value in values if (time := parse_millis(value)) is not None), None)


def current_query(messages: Sequence[ConversationMessage]) -> str:
    """Return the text of the last user message that has any, without contexts and private parts in it."""
    texts = (without_private_parts(part.text) for part in reversed(messages) if part.role == "user")
    return next(filter(None, texts), "")[:MAX_QUERY_CHARS]


def last_turns(messages: Sequence[Message], turns: int | None, is_turn_start: Callable[[Message], bool]) -> list[Message]:
    """Return the messages of the last turns; None for all. A turn is never cut, so that each tool call has its result."""
    starts = [n for n, each in enumerate(messages) if is_turn_start(each)]
    if turns is None or len(starts) <= turns:
        return list(messages)
    return list(messages[starts[-turns] :]) if turns > 0 else []


def wrap_context_block(text: str) -> str:
    """Put marker lines around a context, by which it is recognised when the prompt comes back as history."""
    return f"{CONTEXT_BEGIN}{text}{CONTEXT_END}\n" if text else ""


def is_context_block(content: object) -> bool:
    """Return whether a content is a context that an earlier call added: a text, or a list of parts with such texts."""
    if isinstance(content, list | tuple) and content:
        return all(is_context_block(content_text(part)) for part in content)
    return isinstance(content, str) and content.startswith(CONTEXT_BEGIN) and content.rstrip().endswith(CONTEXT_END)


def _with_id(part: ConversationMessage, content: str, number: int) -> ConversationMessage:
    return replace(part, id=f"{content}:{number}")


def _event_ids(reader: Reader, part: ConversationMessage, scope: Scope) -> list[str]:
    content = _content_key(part)
    keys = (message_key(_with_id(part, content, number), scope) for number in count())
    records = (reader.by_key(str(key)) for key in keys)
    return [record.id for record in takewhile(bool, records) if record]


def _content_key(part: ConversationMessage) -> str:
    """Return a hash that is the same next time. The id alone is not enough: some servers number calls from 0 each time."""
    return digest(part.id, part.role, part.name, str(part.tool_input or ""), " ".join(part.text.split()))
