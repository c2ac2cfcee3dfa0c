"""Deltas: the lines that an agent's context window lacks. A hook can add to a window, but cannot remove anything from it.

Each delivery stores a record of what it put into the window: ids, levels and hashes of lines, but no texts. One record for
each delivery lets hooks of one session run at the same time. The next delivery holds only what is new, has changed or no
longer holds. An item that is merely not relevant any more stays in the window and costs nothing. (docs/decisions/023)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby

from foveate.code.records import CODE_ID_PREFIXES
from foveate.engine import Engine
from foveate.errors import BudgetError
from foveate.integrations.conversation import DEFAULT_QUERY
from foveate.integrations.importers.rows import CONTEXT_BEGIN, CONTEXT_END
from foveate.options import ContextOptions
from foveate.pipeline.assembly import render_line
from foveate.pipeline.request import MAX_QUERY_CHARS
from foveate.receipts.context import Context
from foveate.records.fence import render_fenced
from foveate.records.kinds import KINDS, kind_of
from foveate.records.lifecycle import awaits_successor, invalidity
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retry_interrupted
from foveate.tasks.task import NO_LIMIT
from foveate.text import tokens
from foveate.types import LEVELS, NO_FILTERS, Candidate, Filters, Item, Level, Record, Scope

KIND, PROFILE = "delivery", "hook"
MAX_TOKENS, MAX_CHARS = 2_000, 9_500
"""Below the limit of every host (2,500 tokens, 10,000 characters), beyond which a text is cut."""

EMPTY_TEXT = "…"
"""The text of a delivery's record, which no search finds."""

WINDOW_EXPIRY_MS = 30 * 86_400_000
"""Age at which the deliveries of a window are deleted if no host has closed it."""

MAX_ATTEMPTS = 4
"""How often a context that is too long is computed again with a smaller budget."""

OUTDATED_HEADING = "No longer holds"


MAX_OWN_RECORDS = 1_000
"""Latest records of a session that are not sent to it. A window holds fewer."""

PASSAGE_MARK = ":"
"""Between the two hashes of a delivered passage."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The text to send, and the ids of the items in it. The text is empty if the window has everything already."""

    text: str
    context: Context
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True)
class DeliveredItem:
    """An item in a window: its level, and the hash of its line."""

    level: Level
    hash: str


@dataclass(frozen=True, slots=True)
class _DeltaLine:
    """A line to send. Without an `item` it is about an outdated record, without a `record` about a deleted one."""

    id: str
    heading: str
    line: str
    record: Record | None = None
    item: DeliveredItem | None = None
    is_update: bool = False


@retry_interrupted
def deliver(
    engine: Engine,
    query: str | None,
    *,
    session: str,
    window: str | None = None,
    is_new_window: bool = False,
    budget: int | None = None,
    max_chars: int = MAX_CHARS,
) -> Delivery:
    """Return what a window lacks for a query, and record what it has now. Without a query, only what every prompt receives.

    A session has one window, named like it; its subagents have windows of their own. A new window is empty, after a start
    or a compaction.
    """
    session, window = map(engine.store.data.clean_name, (session, window or session))
    scope = replace(engine.scope, session=window)
    limits = _Limits(MAX_TOKENS, max_chars, tokens.counter(engine.store.data.rules.counter).name)
    options: ContextOptions = {"profile": PROFILE, "session": session, "filters": _exclude_own_session(engine, session)}
    if budget is not None:
        options["budget"] = budget
    context = _compute_fitting(engine, query, limits, options)
    with engine.store.data.reader(scope) as reader:
        delivered = {} if is_new_window else _merge_deliveries(_deliveries(reader, scope))
        ids = [id for id in delivered if not id.startswith(CODE_ID_PREFIXES)]
        records = reader.get(ids)
        states = {id: records.get(id) for id in ids}  # without what another hook delivers in the meantime
    sections = [section for section in context.sections if section.stable or query is not None]
    items = {item.id: item for section in sections for item in section.items}
    with engine.store.data.writer(scope) as writer:
        earlier = _deliveries(writer, scope)
        if is_new_window:
            expired = Filters(until=engine.store.data.clock() - WINDOW_EXPIRY_MS)
            _delete(writer, [*earlier, *writer.recent([KIND], NO_LIMIT, expired)])
        in_window = {} if is_new_window else _merge_deliveries(earlier)
        lines = list(_delta_lines(in_window, items, states, engine.store.data.clock()))
        whole = _text(context, query)
        text = CONTEXT_BEGIN + whole + CONTEXT_END
        if in_window or not whole or not limits.fits(text):
            lines = _select_fitting(lines, limits, context.tag)
            text = _render(lines, context.tag)
        if lines:
            number = 1 if is_new_window or not earlier else earlier[-1].data["number"] + 1
            _save_delivery(engine, writer, scope, number, lines)
    return Delivery(
        text if lines else "",
        context,
        added=tuple(each.id for each in lines if each.item and not each.is_update),
        changed=tuple(each.id for each in lines if each.item and each.is_update),
        removed=tuple(each.id for each in lines if each.item is None),
    )


@retry_interrupted
def forget_window(engine: Engine, window: str) -> int:
    """Delete the record of a window that is gone; return the number of its deliveries."""
    scope = engine.store.data.clean_scope(replace(engine.scope, session=window))
    with engine.store.data.writer(scope) as writer:
        return _delete(writer, _deliveries(writer, scope))


@retry_interrupted
def delivery_stats(engine: Engine) -> dict[str, int]:
    """Count the windows, deliveries and items on record."""
    with engine.store.data.project_reader() as reader:
        records = reader.recent([KIND], NO_LIMIT, NO_FILTERS)
    windows = {record.scope.session for record in records}
    items = sum(len(record.data.get("shown", ())) for record in records)
    return {"windows": len(windows), "deliveries": len(records), "items": items}


# --- the context -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Limits:
    tokens: int
    chars: int
    counter: str

    def fits(self, text: str) -> bool:
        return len(text) <= self.chars and tokens.count(text, self.counter) <= self.tokens


def _compute_fitting(engine: Engine, query: str | None, limits: _Limits, options: ContextOptions) -> Context:
    """Compute a context whose text is within the limits. How many characters it has shows only once it is rendered."""
    text_query = (query or DEFAULT_QUERY)[:MAX_QUERY_CHARS]
    context = engine.context(text_query, **options)
    for _ in range(MAX_ATTEMPTS):
        text = CONTEXT_BEGIN + _text(context, query) + CONTEXT_END
        if limits.fits(text):
            break
        excess = max(len(text) / limits.chars, tokens.count(text, limits.counter) / limits.tokens)
        options["budget"] = max(int(min(context.budget.total, context.tokens) * 0.95 / excess), 1)
        try:
            context = engine.context(text_query, **options)
        except BudgetError:  # the rules alone need more: the lines that fit are sent
            break
    return context


def _text(context: Context, query: str | None) -> str:
    return context.stable if query is None else context.text


def _exclude_own_session(engine: Engine, session: str) -> Filters:
    """Exclude what the window shows anyway: the latest events of the session, the prompt among them, and its summaries."""
    with engine.store.data.project_reader(replace(engine.scope, session=session)) as reader:
        own = reader.recent(["episode", "event"], MAX_OWN_RECORDS, NO_FILTERS, session=session)
    return Filters(exclude=tuple(record.id for record in own))


# --- the delta -------------------------------------------------------------------------------------------------------


def _delta_lines(
    in_window: Mapping[str, DeliveredItem], items: Mapping[str, Item], states: Mapping[str, Record | None], now: int
) -> Iterator[_DeltaLine]:
    """Yield what is different from the window: corrections first, then new items."""
    for id, delivered in in_window.items():
        if id in items or id not in states:
            continue
        record = states[id]
        if record is None:
            kind = KINDS.get(id.rpartition("_")[0])
            yield _DeltaLine(
                id, OUTDATED_HEADING, f"- something shown before was deleted{f' ({kind.name})' if kind else ''}\n"
            )
        elif invalidity(record, now) or not (record.status == "active" or awaits_successor(record, now)):
            yield _DeltaLine(id, OUTDATED_HEADING, render_line(_plain_candidate(record), "micro"), record)
        elif _hash(_plain_candidate(record), delivered.level) != delivered.hash.partition(PASSAGE_MARK)[0]:
            # No passage was cut for this request.
            level: Level = "summary" if delivered.level == "passage" else delivered.level
            yield _delta_line(_plain_candidate(record), level, is_update=True)
    for id, item in items.items():
        before = in_window.get(id)
        if before is None:
            yield _delta_line(item.candidate, item.level)
        elif _hash(item.candidate, before.level) != before.hash or LEVELS.index(item.level) < LEVELS.index(before.level):
            yield _delta_line(item.candidate, item.level, is_update=True)


def _delta_line(candidate: Candidate, level: Level, *, is_update: bool = False) -> _DeltaLine:
    record = candidate.record
    heading = kind_of(record.kind).heading
    heading = f"{heading} (changed)" if is_update else heading
    delivered = DeliveredItem(level, _hash(candidate, level))
    return _DeltaLine(record.id, heading, render_line(candidate, level), record, delivered, is_update)


def _plain_candidate(record: Record) -> Candidate:
    return Candidate(record=record, slot="", source="")


def _hash(candidate: Candidate, level: Level) -> str:
    """Return a hash of the line without remarks: a new remark, such as a hint at a handoff, does not change the record.

    That of a passage is the hash of the whole text, and then of the passage: another request cuts another one.
    """
    whole = _hash_text(render_line(_plain_candidate(candidate.record), level))
    return whole + PASSAGE_MARK + _hash_text(str(candidate.passage)) if candidate.passage and level == "passage" else whole


def _hash_text(text: str) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _select_fitting(lines: Iterable[_DeltaLine], limits: _Limits, quote_tag: str) -> list[_DeltaLine]:
    """Return the lines that fit, each whole. The others are sent with the next delivery."""
    selected: list[_DeltaLine] = []
    for each in lines:
        if limits.fits(_render([*selected, each], quote_tag)):
            selected.append(each)
    return selected


def _render(lines: Iterable[_DeltaLine], quote_tag: str) -> str:
    groups: dict[str, list[_DeltaLine]] = {}
    for each in lines:
        groups.setdefault(each.heading, []).append(each)
    body = "\n".join(f"## {heading}\n{_render_group(group, quote_tag)}" for heading, group in groups.items())
    return CONTEXT_BEGIN + body + CONTEXT_END


def _render_group(lines: Iterable[_DeltaLine], quote_tag: str) -> str:
    """Render lines, and quote those of untrusted records as in a context."""
    parts = []
    for has_record, group in groupby(lines, key=lambda each: each.record is not None):
        pairs = [(each.record, each.line) for each in group]
        quoted = render_fenced(((record, text) for record, text in pairs if record), quote_tag)
        parts.append(quoted if has_record else "".join(text for _, text in pairs))
    return "".join(parts)


# --- the record of deliveries ----------------------------------------------------------------------------------------


def _deliveries(reader: Reader, scope: Scope) -> list[Record]:
    """Return a window's deliveries in order. Several may have the same time, so each has a number."""
    records = reader.recent([KIND], NO_LIMIT, NO_FILTERS, session=scope.session)
    return sorted(records, key=lambda record: record.data["number"])


def _merge_deliveries(records: Iterable[Record]) -> dict[str, DeliveredItem]:
    items: dict[str, DeliveredItem] = {}
    for record in records:
        items |= {id: DeliveredItem(level, hash) for id, (level, hash) in record.data.get("shown", {}).items()}
        for id in record.data.get("gone", ()):
            items.pop(id, None)
    return items


def _save_delivery(engine: Engine, writer: Writer, scope: Scope, number: int, lines: Iterable[_DeltaLine]) -> None:
    shown = {each.id: [each.item.level, each.item.hash] for each in lines if each.item}
    gone = [each.id for each in lines if each.item is None]
    data = {"number": number, "shown": shown, "gone": gone}
    writer.add(engine.store.data.make(KIND, EMPTY_TEXT, {"data": data, "trust": "agent"}, scope))


def _delete(writer: Writer, records: Iterable[Record]) -> int:
    ids = {record.id for record in records}
    if ids:
        writer.forget(sorted(ids))
    return len(ids)
