"""Other memories as sources of contexts: Mem0, Graphiti, a LangGraph store. Their memories stay where they are.

You pass your client object. It is called in a thread, with a deadline, and this module imports no package. The hits become
candidates with ids such as `mem0:ID`, cleaned, redacted and shortened like all others; their records are not stored.

`relevance` is the backend's score, limited to 0..1, which suits cosines and Mem0's combined score. For another score (a
distance, a logit), pass `calibrate`. If a backend only ranks, as Graphiti does, relevance is the share of the query's words
that the text contains, but at least a value by rank: 0.5 for the first hit.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Any, TypedDict, Unpack
from urllib.parse import quote, unquote

from foveate.clock import millis
from foveate.code.records import CODE_ID_PREFIXES
from foveate.errors import FoveateError, InputError, NotFound, SourceError, near
from foveate.integrations.importers.rows import parse_millis
from foveate.pipeline.sources.base import DEADLINE_S, SlotRequest, Source, SourceContext, excluding_filter
from foveate.pipeline.sources.running import await_result, in_thread
from foveate.records import make
from foveate.records.kinds import kind_of
from foveate.text import analysis
from foveate.types import TRUST, Candidate, Record, Scope, Signals, Trust

MAX_MEMORY_CHARS = 20_000
"""A longer memory is cut."""

MAX_QUERY_CHARS = 2_000
"""A longer query is cut: embedders read no more."""

UNSCORED_RELEVANCE = 0.5
"""The minimum relevance of the first hit of a backend without scores."""

Calibrate = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A memory as its backend returns it."""

    id: str
    text: Any
    score: Any = None
    created: Any = None
    valid_from: Any = None
    valid_to: Any = None


class SourceOptions(TypedDict, total=False):
    """Options of every source. `deadline` is in seconds."""

    kind: str
    trust: Trust
    deadline: float
    calibrate: Calibrate | None


class ExternalMemory(Source):
    """Base of the sources. A subclass searches its backend, fetches one memory by id, and parses the responses of both."""

    slow = True
    can_recall = True

    def __init__(self, name: str, **options: Unpack[SourceOptions]) -> None:
        kind, trust = options.get("kind", "fact"), options.get("trust", "agent")
        if not name or ":" in name or f"{name}:" in CODE_ID_PREFIXES:
            raise InputError(
                f"A source's name must not be empty, contain ':' or be used for code, got {name!r}: ids begin with it."
            )
        if kind_of(kind).is_rule or kind_of(kind).is_derived:
            raise InputError(f"Another memory cannot have records of kind {kind!r}. Use 'fact', 'episode' or 'note'.")
        if trust not in TRUST:
            raise InputError(f"Unknown trust {trust!r}.{near(str(trust), TRUST)} Known: {', '.join(TRUST)}.")
        self.name, self.kind, self.deadline = name, kind, options.get("deadline", DEADLINE_S)
        self._trust: Trust = trust
        self._calibrate = options.get("calibrate") or (lambda score: score)

    def search_backend(self, query: str, limit: int) -> Any:
        raise NotImplementedError

    def fetch_backend(self, id: str) -> Any:
        raise NotImplementedError

    def parse_response(self, response: Any) -> Iterable[MemoryHit]:
        raise NotImplementedError

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> list[Candidate]:
        limit = max(request_.limit for request_ in requests)
        hits = self._hits(_result(self.search_backend(context.request.query[:MAX_QUERY_CHARS], limit)), limit)
        request, out = context.request, []
        for rank, hit in enumerate(hits):
            record = self._record(hit, request.scope, request.now)
            features = {"relevance": self._relevance(hit, 1 - rank / len(hits), context.signals)}
            if record is not None and not excluding_filter(record, request.filters):
                out += [
                    Candidate(record=record, slot=request_.slot.name, source=self.name, features=features)
                    for request_ in requests
                    if rank < request_.limit and (not request_.slot.kinds or self.kind in request_.slot.kinds)
                ]
        return out

    def recall(self, id: str, scope: Scope, now: int) -> Record:
        """Return one memory as its backend has it now."""
        try:
            fetching = in_thread(lambda: _result(self.fetch_backend(id.removeprefix(f"{self.name}:"))), self.name)
            response = fetching.result(timeout=self.deadline)
        except Exception as failure:  # foreign code, which may raise an error of its own for a missing memory
            if not type(failure).__name__.endswith("NotFoundError"):
                reason = f"{type(failure).__name__}: {failure}".rstrip(": ")
                raise SourceError(f"Source {self.name!r} failed to return {id!r} ({reason}).") from None
            response = None
        found = self._hits([response], 1) if response is not None else []
        record = self._record(found[0], scope, now) if found else None
        if record is None:
            raise NotFound(f"Source {self.name!r} no longer has {id!r}.")
        return record

    def _hits(self, response: Any, limit: int) -> list[MemoryHit]:
        """Return the usable hits of a response, each once, at most `limit`."""
        found: dict[str, MemoryHit] = {}
        try:
            for hit in self.parse_response(response):
                if hit.id and isinstance(hit.text, str) and hit.text.strip():
                    found.setdefault(hit.id, hit)
                if len(found) == limit:
                    break
        except FoveateError:
            raise
        except Exception as failure:  # a response of an unexpected form
            problem = f"its response cannot be read as memories ({type(failure).__name__}: {failure})"
            raise SourceError(problem) from None
        return list(found.values())

    def _record(self, hit: MemoryHit, scope: Scope, now: int) -> Record | None:
        """Return a record, which is never stored; None if the cleaned text is empty."""
        whole = hit.text[: 4 * MAX_MEMORY_CHARS].encode("utf-8", "replace").decode().replace("\x00", " ")
        text = make.clean(whole)[:MAX_MEMORY_CHARS]  # cleaned before it is cut: half a secret is not recognised
        created = min(max(_to_millis(hit.created) or now, 0), now)
        ends = _to_millis(hit.valid_to)
        begins = _to_millis(hit.valid_from) or created
        begins = begins if ends is None else min(begins, ends)
        values = {"created": created, "valid_from": begins, "valid_to": ends, "trust": self._trust, "origin": self.name}
        id, project = f"{self.name}:{hit.id}", Scope(scope.project)
        try:
            made = make.make(self.kind, text, scope=project, id=id, now=created, rules=make.Rules(), **values)
        except InputError:
            return None
        return replace(made, tokens=None)  # counted by the request's own counter

    def _relevance(self, hit: MemoryHit, rank: float, signals: Signals) -> float:
        if isinstance(hit.score, int | float):
            score = float(self._calibrate(hit.score))
            return min(1.0, max(0.0, score)) if isfinite(score) else 0.0
        whole = sum(signals.terms.values())
        words = set(analysis.terms(hit.text[:MAX_MEMORY_CHARS]))
        share = sum(weight for term, weight in signals.terms.items() if term in words) / whole if whole else 0.0
        return min(1.0, max(share, UNSCORED_RELEVANCE * rank))


class Mem0(ExternalMemory):
    """Mem0's memories of a user, an agent or a run: `Mem0(memory, user_id="ada")`, with any of its clients.

    `filters` are added to Mem0's filters, `search_options` are passed to its `search`.
    """

    def __init__(
        self,
        memory: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        search_options: Mapping[str, Any] | None = None,
        name: str = "mem0",
        **options: Unpack[SourceOptions],
    ) -> None:
        super().__init__(name, **options)
        whose = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        self._filters = {**{level: id for level, id in whose.items() if id is not None}, **(filters or {})}
        if not self._filters:
            raise InputError("Mem0 needs a user_id, an agent_id or a run_id whose memories it searches.")
        self._memory, self._options = memory, dict(search_options or {})

    def search_backend(self, query: str, limit: int) -> Any:
        return self._memory.search(query, filters=dict(self._filters), top_k=limit, **self._options)

    def fetch_backend(self, id: str) -> Any:
        return self._memory.get(id)

    def parse_response(self, response: Any) -> Iterator[MemoryHit]:
        for hit in response["results"] if isinstance(response, Mapping) else response:
            made = hit.get("updated_at") or hit.get("created_at")
            yield MemoryHit(id=str(hit.get("id") or ""), text=hit.get("memory"), score=hit.get("score"), created=made)


class Graphiti(ExternalMemory):
    """The facts of a Graphiti graph: `Graphiti(graphiti, group_ids=["ada"])`. Invalid facts are not shown.

    `loop` is the event loop of the graph's driver, if the driver works in no other, such as Neo4j's. Call
    `engine.acontext` in that loop.
    """

    def __init__(
        self,
        graphiti: Any,
        *,
        group_ids: Sequence[str] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        name: str = "graphiti",
        **options: Unpack[SourceOptions],
    ) -> None:
        super().__init__(name, **options)
        self._graphiti, self._loop = graphiti, loop
        self._groups = list(group_ids) if group_ids is not None else None

    def search_backend(self, query: str, limit: int) -> Any:
        return self._in_loop(self._graphiti.search(query, group_ids=self._groups, num_results=limit))

    def fetch_backend(self, id: str) -> Any:
        return self._in_loop(self._graphiti.edges.entity.get_by_uuid(id))

    def parse_response(self, response: Any) -> Iterator[MemoryHit]:
        for edge in response:
            ends = [_to_millis(when) for when in (edge.invalid_at, edge.expired_at) if when is not None]
            yield MemoryHit(
                id=str(edge.uuid),
                text=edge.fact,
                created=edge.created_at,
                valid_from=edge.valid_at,
                valid_to=min((when for when in ends if when is not None), default=None),
            )

    def _in_loop(self, answer: Any) -> Any:
        if self._loop is None:
            return answer
        return asyncio.run_coroutine_threadsafe(answer, self._loop).result(self.deadline)


class LangGraphStore(ExternalMemory):
    """The items of a LangGraph store below a namespace: `LangGraphStore(store, ("users", "ada"))`.

    `field` is the field of a value that contains its text. By default the whole value is the text.
    """

    def __init__(
        self,
        store: Any,
        namespace: Sequence[str],
        *,
        field: str | None = None,
        name: str = "langgraph",
        **options: Unpack[SourceOptions],
    ) -> None:
        super().__init__(name, **options)
        self._store, self._namespace, self._field = store, tuple(namespace), field

    def search_backend(self, query: str, limit: int) -> Any:
        return self._store.search(self._namespace, query=query, limit=limit)

    def fetch_backend(self, id: str) -> Any:
        *below, key = id.split("/")
        return self._store.get((*self._namespace, *map(unquote, below)), unquote(key))

    def parse_response(self, response: Any) -> Iterator[MemoryHit]:
        for item in response:
            labels = (*item.namespace[len(self._namespace) :], item.key)
            text = _text(item.value.get(self._field) if self._field else item.value)
            id, score = "/".join(quote(label, safe="") for label in labels), getattr(item, "score", None)
            yield MemoryHit(id=id, text=text, score=score, created=item.updated_at)


def _result(answer: Any) -> Any:
    return await_result(answer) if inspect.isawaitable(answer) else answer


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "\n".join(field_lines(value))
    return "" if value is None else str(value)


def field_lines(value: Mapping[str, Any]) -> list[str]:
    """Return a line for each field of a value; the text alone if it is the only one."""
    texts = {name: part if isinstance(part, str) else json.dumps(part, default=str) for name, part in value.items()}
    return [text if len(texts) == 1 else f"{name}: {text}" for name, text in texts.items()]


def _to_millis(when: Any) -> int | None:
    """Return a time in milliseconds; None for anything else."""
    return millis(when) if isinstance(when, datetime) else parse_millis(when)
