"""Deltas: what an agent's window lacks, where what was once put into it cannot be taken back.

Comes in: an engine, what is asked, and whose window it is. Goes out: a text of what is new, changed or no longer holds, and
nothing where nothing is. What a window holds is on record: ids, levels and hashes of lines, never texts, a record for each
delivery, so that hooks of one session may run at once. An item that is merely not asked for any more stays in the window
and costs nothing. (docs/decisions/023)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby
from typing import Any

from foveate.code.model import CODE_ID_PREFIXES
from foveate.engine import Engine
from foveate.errors import BudgetError
from foveate.integrations.conversation import DEFAULT_QUERY
from foveate.integrations.importers.rows import BEGIN, END
from foveate.pipeline.assembly import line
from foveate.pipeline.context import Context
from foveate.pipeline.request import MAX_QUERY
from foveate.records.fence import fenced
from foveate.records.kinds import KINDS, kind_of
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retried
from foveate.tasks.task import NO_LIMIT
from foveate.text import tokens
from foveate.types import LEVELS, NO_FILTERS, Candidate, Filters, Item, Level, Record, Scope

KIND, PROFILE = "delivery", "hook"
MAX_TOKENS, MAX_CHARS = 2_000, 9_500
"""Below every host's limit (2,500 tokens, 10,000 characters), beyond which a text is cut off or put aside."""

WORDLESS = "…"
"""The text of a delivery's record: it has no words, so that no search finds it."""

FORGOTTEN_AFTER = 30 * 86_400_000
"""Milliseconds after which a window that nobody closed counts as gone."""

TRIES = 4
"""How often a context that is too long is computed again, into less room each time."""

NO_LONGER = "No longer holds"


@dataclass(frozen=True, slots=True)
class Delivered:
    """What was sent, as text and by id. `text` is empty where the window has it all."""

    text: str
    context: Context
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class Shown:
    """How an item stands in a window: at which level, and the hash of its line."""

    level: Level
    hash: str


@dataclass(frozen=True, slots=True)
class _News:
    """A line to send. `heading` is that of its kind; no `shown`: it no longer holds; no `record`: it is gone."""

    id: str
    heading: str
    line: str
    record: Record | None = None
    shown: Shown | None = None
    known: bool = False


@retried
def deliver(
    engine: Engine,
    query: str | None,
    *,
    session: str,
    window: str | None = None,
    fresh: bool = False,
    profile: str = PROFILE,
    max_tokens: int = MAX_TOKENS,
    max_chars: int = MAX_CHARS,
    **options: Any,
) -> Delivered:
    """What a window lacks for a question. Without one: what holds for every question.

    `window` is the session's, unless it is that of another agent in it. `fresh`: the window is empty, as after a start or
    a compaction, so that everything is new. Options are those of `engine.context`.
    """
    scope = replace(engine.scope, session=window or session)
    asked = (query or DEFAULT_QUERY)[:MAX_QUERY]
    options = {"profile": profile, "session": session, **options, "filters": _others(engine, session, options)}
    room = _Room(max_tokens, max_chars, tokens.counter(options.get("counter") or engine.store.data.rules.counter).name)
    context = _fitting(engine, asked, room, options, stable=query is None)
    with engine.store.data.reader(scope) as reader:
        seen = [] if fresh else [id for id in shown_in(reader, scope) if not id.startswith(CODE_ID_PREFIXES)]
        found = reader.get(seen)
        states = {id: found.get(id) for id in seen}  # not of what another hook notes in the meantime
    items = {item.id: item for item in _items(context, stable=query is None)}
    with engine.store.data.store.write(scope) as writer:
        old = _records(writer, scope)
        if fresh:
            _forget(engine, writer, old)
        held = {} if fresh else _folded(old)
        news = list(_news(held, items, states, engine.store.data.clock()))
        if not held and (whole := _text(context, stable=query is None)) and room.holds(BEGIN + whole + END):
            sent, text = news, BEGIN + whole + END
        else:
            sent = _that_fit(news, room, context.tag)
            text = _rendered(sent, context.tag)
        if sent:
            number = 1 if fresh or not old else old[-1].data["number"] + 1
            _note(engine, writer, scope, number, sent)
    return Delivered(
        text if sent else "",
        context,
        added=tuple(each.id for each in sent if each.shown and not each.known),
        changed=tuple(each.id for each in sent if each.shown and each.known),
        withdrawn=tuple(each.id for each in sent if each.shown is None),
    )


@retried
def forget(engine: Engine, window: str) -> int:
    """The window is gone, and so is the record of what it held; of how many deliveries."""
    scope = replace(engine.scope, session=window)
    with engine.store.data.store.write(scope) as writer:
        return _forget(engine, writer, _records(writer, scope), others=False)


def shown_in(reader: Reader, scope: Scope) -> dict[str, Shown]:
    """What a window holds, by id."""
    return _folded(_records(reader, scope))


@retried
def ledger(engine: Engine) -> dict[str, int]:
    """How many items are on record for how many windows, in how many deliveries."""
    with engine.store.data.store.read(engine.scope) as reader:
        found = reader.recent([KIND], NO_LIMIT, NO_FILTERS)
    windows = {record.scope.session for record in found}
    return {"windows": len(windows), "deliveries": len(found), "items": sum(len(r.data.get("shown", ())) for r in found)}


# --- the context ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Room:
    tokens: int
    chars: int
    counter: str

    def holds(self, text: str) -> bool:
        return len(text) <= self.chars and tokens.count(text, self.counter) <= self.tokens


def _fitting(engine: Engine, asked: str, room: _Room, options: Mapping[str, Any], *, stable: bool) -> Context:
    """A context whose text fits: tokens are the engine's to keep, characters only show once it is rendered."""
    context = engine.context(asked, **options)
    for _ in range(TRIES):
        text = BEGIN + _text(context, stable=stable) + END
        if room.holds(text):
            break
        spent = max(len(text) / room.chars, tokens.count(text, room.counter) / room.tokens)
        smaller = int(min(context.budget.total, context.tokens) * 0.95 / spent)
        try:
            context = engine.context(asked, **{**options, "budget": max(smaller, 1)})
        except BudgetError:  # what must be kept needs more: the lines that fit are sent
            break
    return context


def _text(context: Context, *, stable: bool) -> str:
    return context.stable if stable else context.text


def _items(context: Context, *, stable: bool) -> Iterator[Item]:
    for section in context.sections:
        if section.stable or not stable:
            yield from section.items


def _others(engine: Engine, session: str, options: Mapping[str, Any]) -> Filters:
    """The caller's filters, and without the session's own episodes: a summary of a window is in the window."""
    filters: Filters = options.get("filters") or Filters()
    with engine.store.data.store.read(replace(engine.scope, session=session)) as reader:
        mine = reader.recent(["episode"], NO_LIMIT, NO_FILTERS, session=session)
    return replace(filters, exclude=(*filters.exclude, *(record.id for record in mine)))


# --- what is new ---------------------------------------------------------------------------------------------------


def _news(
    held: Mapping[str, Shown], items: Mapping[str, Item], states: Mapping[str, Record | None], now: int
) -> Iterator[_News]:
    """What a window should be told, corrections first."""
    for id, shown in held.items():
        if id in items or id not in states:
            continue
        record = states[id]
        if record is None:
            kind = KINDS.get(id.rpartition("_")[0])
            yield _News(id, NO_LONGER, f"- something shown before was deleted{f' ({kind.name})' if kind else ''}\n")
        elif record.status != "active" or (record.valid_to is not None and record.valid_to <= now):
            yield _News(id, NO_LONGER, line(_bare(record), "micro"), record)
        elif _hash(record, shown.level) != shown.hash:
            yield _seen(record, shown.level, line(_bare(record), shown.level), known=True)
    for id, item in items.items():
        record, before = item.record, held.get(id)
        told = line(item.candidate, item.level)
        if before is None:
            yield _seen(record, item.level, told)
        elif _hash(record, before.level) != before.hash or LEVELS.index(item.level) < LEVELS.index(before.level):
            yield _seen(record, item.level, told, known=True)


def _seen(record: Record, level: Level, told: str, *, known: bool = False) -> _News:
    heading = kind_of(record.kind).heading
    heading = f"{heading} (changed)" if known else heading
    return _News(record.id, heading, told, record, Shown(level, _hash(record, level)), known)


def _bare(record: Record) -> Candidate:
    return Candidate(record=record, slot="", source="")


def _hash(record: Record, level: Level) -> str:
    """Of the line without remarks: who handed something on is no news of the thing itself."""
    return blake2b(line(_bare(record), level).encode("utf-8", "replace"), digest_size=6).hexdigest()


def _that_fit(news: Iterable[_News], room: _Room, tag: str) -> list[_News]:
    """As many as there is room for, whole; the rest is news the next time."""
    sent: list[_News] = []
    for each in news:
        if room.holds(_rendered([*sent, each], tag)):
            sent.append(each)
    return sent


def _rendered(news: Iterable[_News], tag: str) -> str:
    """By heading; what nobody vouches for is quoted, as it is in a context."""
    groups: dict[str, list[_News]] = {}
    for each in news:
        groups.setdefault(each.heading, []).append(each)
    body = "\n".join(f"## {heading}\n{_quoted(group, tag)}" for heading, group in groups.items())
    return BEGIN + body + END


def _quoted(news: Iterable[_News], tag: str) -> str:
    parts = []
    for known, group in groupby(news, key=lambda each: each.record is not None):
        lines = [(each.record, each.line) for each in group]
        parts.append(fenced(((r, text) for r, text in lines if r), tag) if known else "".join(text for _, text in lines))
    return "".join(parts)


# --- the ledger ----------------------------------------------------------------------------------------------------


def _records(reader: Reader, scope: Scope) -> list[Record]:
    """A window's deliveries in their order; several may be of one moment."""
    found = reader.recent([KIND], NO_LIMIT, NO_FILTERS, session=scope.session)
    return sorted(found, key=lambda record: record.data["number"])


def _folded(records: Iterable[Record]) -> dict[str, Shown]:
    held: dict[str, Shown] = {}
    for record in records:
        held |= {id: Shown(level, hash) for id, (level, hash) in record.data.get("shown", {}).items()}
        for id in record.data.get("gone", ()):
            held.pop(id, None)
    return held


def _note(engine: Engine, writer: Writer, scope: Scope, number: int, sent: Iterable[_News]) -> None:
    shown = {each.id: [each.shown.level, each.shown.hash] for each in sent if each.shown}
    gone = [each.id for each in sent if each.shown is None]
    data = {"number": number, "shown": shown, "gone": gone}
    writer.add(engine.store.data.make(KIND, WORDLESS, {"data": data, "trust": "agent"}, scope))


def _forget(engine: Engine, writer: Writer, old: Iterable[Record], *, others: bool = True) -> int:
    """Drop a window's deliveries and, with them, those of windows that nobody closed."""
    ids = {record.id for record in old}
    if others:
        before = Filters(until=engine.store.data.clock() - FORGOTTEN_AFTER)
        ids |= {record.id for record in writer.recent([KIND], NO_LIMIT, before)}
    if ids:
        writer.forget(sorted(ids))
    return len(ids)
