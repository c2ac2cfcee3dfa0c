"""LangGraph's long-term memory in foveate's store: `create_agent(..., store=FoveateStore(engine))`.

Comes in: get, put, search and list operations. Goes out: what LangGraph's own `InMemoryStore` would answer. An item is a
note, so that contexts show it too. Values are what JSON can say and come back as they were, but secrets are never kept.
Where there is a query, items that share its words come first, with their relevance as score; the others follow without one.
"""

from __future__ import annotations

import asyncio
import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.integrations.importers.rows import digest
from foveate.records.make import clean
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retried
from foveate.tasks.task import shared
from foveate.text import analysis
from foveate.text.redact import redact_value
from foveate.types import Filters, Record, Trust

with requires_extra("langchain"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        validate_op_namespace,
    )

KIND = "note"
EVERY = 1_000_000
"""More items than a namespace holds: filters look at values, which the store cannot."""


class FoveateStore(BaseStore):
    """Items by namespace and key, as notes of the engine's project and user."""

    def __init__(self, engine: Engine, *, trust: Trust = "agent") -> None:
        self._engine = engine
        self._trust: Trust = trust

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer all reads as things are before the batch, then write all puts together; of one key the last counts."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        puts = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        with self._engine.store.data.reader() as reader:
            found = [self._read(op, reader) for op in asked]
        if puts:
            self._write(list(puts.values()))
        return found

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op, reader: Reader) -> Result:
        if isinstance(op, GetOp):
            record = reader.by_key(self._place(*op.namespace, op.key))
            return None if record is None or record.status != "active" else Item(**_values(record))
        if isinstance(op, SearchOp):
            return self._search(op, reader)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op, reader)
        if not isinstance(op, PutOp):
            raise ValueError(f"There is no operation {type(op).__name__}.")
        return None

    def _search(self, op: SearchOp, reader: Reader) -> list[SearchItem]:
        within, wanted = Filters(tags=(self._place(*op.namespace_prefix),)), op.offset + op.limit
        limit = EVERY if op.filter else wanted
        hits = self._engine.search(op.query, kinds=(KIND,), limit=limit, filters=within) if op.query else []
        hits = [hit for hit in hits if _is_indexed(hit.record, str(op.query))]
        scores = {hit.record.id: hit.lexical for hit in hits}
        rest = _oldest_first(reader.recent((KIND,), EVERY, within)) if len(hits) < wanted or op.filter else []
        found = [*(hit.record for hit in hits), *(record for record in rest if record.id not in scores)]
        passed = [record for record in found if _equal(record.data["value"], op.filter or {})]
        return [SearchItem(**_values(record), score=scores.get(record.id)) for record in passed[op.offset : wanted]]

    def _namespaces(self, op: ListNamespacesOp, reader: Reader) -> list[tuple[str, ...]]:
        items = reader.recent((KIND,), EVERY, Filters(tags=(self._place(),)))
        known = {tuple(record.data["namespace"]) for record in items}
        fitting = {name[: op.max_depth] for name in known if all(_matches(one, name) for one in op.match_conditions or ())}
        return sorted(fitting)[op.offset : op.offset + op.limit]

    @retried
    def _write(self, puts: Sequence[PutOp]) -> None:
        engine = self._engine
        made = [self._made(op) for op in puts if op.value is not None]
        vectors = engine.store.data.vectors([record.text for record in made])
        with engine.store.data.store.write(engine.scope) as writer:
            for record, vector in zip(made, vectors, strict=True):
                known = self._own(writer, str(record.key))
                if known is None:
                    writer.add(record, vector)
                else:
                    writer.change(replace(record, id=known.id, created=known.created), "put", vector=vector)
            dropped = [self._own(writer, self._place(*op.namespace, op.key)) for op in puts if op.value is None]
            if gone := [record.id for record in dropped if record is not None]:
                writer.forget(gone)

    def _made(self, op: PutOp) -> Record:
        engine, scope = self._engine, shared(self._engine.scope)
        key = self._place(*op.namespace, op.key)
        tags = [self._place(*op.namespace[:depth]) for depth in range(len(op.namespace) + 1)]
        data: dict[str, Any] = {"namespace": list(op.namespace), "item": op.key, "value": op.value}
        data |= {} if op.index is None else {"index": op.index}
        values = {"key": key, "tags": tags, "data": data, "trust": self._trust}
        record = engine.store.data.make(KIND, _words(op), values, scope)
        exact = redact_value(json.loads(json.dumps(data)), engine.store.data.rules.allow)
        return replace(record, data=exact, hash=digest(key, scope.user or ""))  # the same words under two keys are two items

    def _own(self, writer: Writer, key: str) -> Record | None:
        """The item of exactly this scope: what others share is not changed here."""
        known = writer.by_key(key)
        return known if known is not None and known.scope == shared(self._engine.scope) else None

    def _place(self, *labels: str) -> str:
        """A namespace, or an item in it, as one word."""
        return clean("langgraph:" + "/".join(quote(label, safe="") for label in labels), self._engine.store.data.rules.allow)


def _values(record: Record) -> dict[str, Any]:
    data = record.data
    times = {"created_at": record.created, "updated_at": record.updated}
    dates = {name: datetime.fromtimestamp(at / 1000, UTC) for name, at in times.items()}
    return {"namespace": tuple(data["namespace"]), "key": data["item"], "value": data["value"], **dates}


def _oldest_first(records: Iterable[Record]) -> list[Record]:
    return sorted(records, key=lambda record: (record.created, record.id))


def _words(op: PutOp) -> str:
    """By what an item is found, and how a context shows it: its fields, or those that `index` names."""
    value: Mapping[str, Any] = op.value or {}
    if op.index is False:
        return op.key or KIND
    if op.index is not None:
        said = [text for path in op.index for text in get_text_at_path(value, path)]
    else:
        texts = {name: part if isinstance(part, str) else json.dumps(part, default=str) for name, part in value.items()}
        said = [text if len(texts) == 1 else f"{name}: {text}" for name, text in texts.items()]
    return "\n".join(said) if any(part.strip() for part in said) else op.key or KIND


def _is_indexed(record: Record, query: str) -> bool:
    """Whether the words are in what `index` names: the store looks at all of a record."""
    return "index" not in record.data or not set(analysis.terms(query)).isdisjoint(analysis.terms(record.text))


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return len(namespace) >= len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))


_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _equal(value: Any, wanted: Any) -> bool:
    """Whether a value holds all that a filter names; `$gt` and its like compare numbers, and nothing else fits them."""
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compared(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and all(_equal(value.get(name), part) for name, part in wanted.items())
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(_equal(one, other) for one, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compared(value: Any, name: str, other: Any) -> bool:
    if name in ("$eq", "$ne"):
        return (value == other) is (name == "$eq")
    if name not in _ORDERS:
        raise ValueError(f"There is no filter {name!r}. Known: $eq, $ne, {', '.join(_ORDERS)}.")
    try:
        return _ORDERS[name](float(value), float(other))
    except (TypeError, ValueError):
        return False
