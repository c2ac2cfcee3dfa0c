"""LangGraph's long-term memory in foveate's store: `create_agent(..., store=FoveateStore(engine))`.

It behaves like LangGraph's `InMemoryStore`. An item is a note, so contexts show it too. Values must be JSON and come back
unchanged, except that secrets are redacted. In a search with a query, items with its words come first, with their relevance
as score; the others follow without a score.
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
from foveate.integrations.memories import field_lines
from foveate.memory.messages import digest
from foveate.records.make import clean
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retry_interrupted
from foveate.tasks.task import NO_LIMIT, shared_scope
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


class FoveateStore(BaseStore):
    """A LangGraph store whose items are notes of the engine's project and user."""

    def __init__(self, engine: Engine, *, user: str | None = None, trust: Trust = "agent") -> None:
        self._engine = engine if user is None else engine.scoped(user=user)
        self._trust: Trust = trust

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do all reads, then all writes in one transaction. If several puts have the same key, the last one counts."""
        operations = list(ops)
        for op in operations:
            validate_op_namespace(op)
        puts = {(op.namespace, op.key): op for op in operations if isinstance(op, PutOp)}
        with self._engine.store.data.reader() as reader:
            found = [self._read(op, reader) for op in operations]
        if puts:
            self._write(list(puts.values()))
        return found

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op, reader: Reader) -> Result:
        if isinstance(op, GetOp):
            record = reader.by_key(self._encode_namespace(*op.namespace, op.key))
            return None if record is None or record.status != "active" else Item(**_item_values(record))
        if isinstance(op, SearchOp):
            return self._search(op, reader)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op, reader)
        if not isinstance(op, PutOp):
            raise ValueError(f"Unknown operation {type(op).__name__}.")
        return None

    def _search(self, op: SearchOp, reader: Reader) -> list[SearchItem]:
        within, expected = Filters(tags=(self._encode_namespace(*op.namespace_prefix),)), op.offset + op.limit
        limit = NO_LIMIT if op.filter else expected  # a filter compares values, which the store itself cannot do
        hits = self._engine.search(op.query, kinds=(KIND,), limit=limit, filters=within) if op.query else []
        hits = [hit for hit in hits if _is_indexed(hit.record, str(op.query))]
        scores = {hit.record.id: hit.lexical for hit in hits}
        rest = reader.recent((KIND,), NO_LIMIT, within)[::-1] if len(hits) < expected or op.filter else []
        found = [*(hit.record for hit in hits), *(record for record in rest if record.id not in scores)]
        passed = [record for record in found if _matches_filter(record.data["value"], op.filter or {})]
        return [SearchItem(**_item_values(record), score=scores.get(record.id)) for record in passed[op.offset : expected]]

    def _namespaces(self, op: ListNamespacesOp, reader: Reader) -> list[tuple[str, ...]]:
        items = reader.recent((KIND,), NO_LIMIT, Filters(tags=(self._encode_namespace(),)))
        known = {tuple(record.data["namespace"]) for record in items}
        fitting = {
            name[: op.max_depth] for name in known if all(_matches_condition(one, name) for one in op.match_conditions or ())
        }
        return sorted(fitting)[op.offset : op.offset + op.limit]

    @retry_interrupted
    def _write(self, puts: Sequence[PutOp]) -> None:
        engine = self._engine
        made = [self._make_record(op) for op in puts if op.value is not None]
        vectors = engine.store.data.vectors([record.text for record in made])
        with engine.store.data.store.write(engine.scope) as writer:
            for record, vector in zip(made, vectors, strict=True):
                known = self._own_item(writer, str(record.key))
                if known is None:
                    writer.add(record, vector)
                else:
                    writer.change(replace(record, id=known.id, created=known.created), "put", vector=vector)
            dropped = [
                self._own_item(writer, self._encode_namespace(*op.namespace, op.key)) for op in puts if op.value is None
            ]
            if gone := [record.id for record in dropped if record is not None]:
                writer.forget(gone)

    def _make_record(self, op: PutOp) -> Record:
        engine, scope = self._engine, shared_scope(self._engine.scope)
        key = self._encode_namespace(*op.namespace, op.key)
        tags = [self._encode_namespace(*op.namespace[:depth]) for depth in range(len(op.namespace) + 1)]
        data: dict[str, Any] = {"namespace": list(op.namespace), "item": op.key, "value": op.value}
        data |= {} if op.index is None else {"index": op.index}
        values = {"key": key, "tags": tags, "data": data, "trust": self._trust}
        record = engine.store.data.make(KIND, _search_text(op), values, scope)
        exact = redact_value(json.loads(json.dumps(data)), engine.store.data.rules.allow)
        return replace(record, data=exact, hash=digest(key, scope.user or ""))  # the same text under two keys is two items

    def _own_item(self, writer: Writer, key: str) -> Record | None:
        """Return the item of exactly this scope; the shared items of others are not changed."""
        known = writer.by_key(key)
        return known if known is not None and known.scope == shared_scope(self._engine.scope) else None

    def _encode_namespace(self, *labels: str) -> str:
        """Return a namespace, or an item in it, as one word for a tag or key."""
        return clean("langgraph:" + "/".join(quote(label, safe="") for label in labels), self._engine.store.data.rules.allow)


def _item_values(record: Record) -> dict[str, Any]:
    data = record.data
    times = {"created_at": record.created, "updated_at": record.updated}
    dates = {name: datetime.fromtimestamp(at / 1000, UTC) for name, at in times.items()}
    return {"namespace": tuple(data["namespace"]), "key": data["item"], "value": data["value"], **dates}


def _search_text(op: PutOp) -> str:
    """Return the text by which an item is found, and which a context shows: its fields, or those that `index` names."""
    value: Mapping[str, Any] = op.value or {}
    if op.index is False:
        return op.key or KIND
    if op.index is not None:
        texts = [text for path in op.index for text in get_text_at_path(value, path)]
    else:
        texts = field_lines(value)
    return "\n".join(texts) if any(text.strip() for text in texts) else op.key or KIND


def _is_indexed(record: Record, query: str) -> bool:
    """Return whether a word of the query is in the fields that `index` names. The store searches the whole record."""
    return "index" not in record.data or not set(analysis.terms(query)).isdisjoint(analysis.terms(record.text))


def _matches_condition(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return len(namespace) >= len(path) and all(want in ("*", label) for want, label in zip(path, part, strict=True))


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _matches_filter(value: Any, expected: Any) -> bool:
    """Return whether a value has everything that a filter names. `$gt` and the like match only numbers."""
    if isinstance(expected, Mapping):
        if any(str(name).startswith("$") for name in expected):
            return all(_compare(value, name, other) for name, other in expected.items())
        return isinstance(value, Mapping) and all(_matches_filter(value.get(name), part) for name, part in expected.items())
    if isinstance(expected, list | tuple):
        same = isinstance(value, list) and len(value) == len(expected)
        return same and all(_matches_filter(one, other) for one, other in zip(value, expected, strict=True))
    return bool(value == expected)


def _compare(value: Any, name: str, other: Any) -> bool:
    if name in ("$eq", "$ne"):
        return (value == other) is (name == "$eq")
    if name not in _COMPARISONS:
        raise ValueError(f"Unknown filter {name!r}. Known: $eq, $ne, {', '.join(_COMPARISONS)}.")
    try:
        return _COMPARISONS[name](float(value), float(other))
    except (TypeError, ValueError):
        return False
