"""Other memories as sources: Mem0, Graphiti, a LangGraph store. They keep what they know; contexts show it.

Comes in: the user's own client object, which is asked in a thread, with a deadline. Goes out: candidates whose records are
in no store of ours, with ids such as `mem0:ID`, cleaned, redacted and shortened like any other. No package is imported here.

`relevance` is the backend's score, held within 0..1: cosines and Mem0's joined score mean there what they mean here. For a
score that means something else (a distance, a logit), hand in `calibrate`. Where a backend only ranks, as Graphiti does,
relevance is the share of the question's words that the text says, and at least what the rank allows: a half for the first.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Any
from urllib.parse import quote, unquote

from foveate.clock import millis
from foveate.code.model import CODE_ID_PREFIXES
from foveate.errors import FoveateError, InputError, NotFound, SourceError, near
from foveate.integrations.importers.rows import parse_millis
from foveate.pipeline.sources.gather import DEADLINE, Around, awaited, filtered, in_thread
from foveate.records import make
from foveate.records.kinds import kind_of
from foveate.text import analysis
from foveate.types import TRUST, Ask, Candidate, Record, Scope, Signals, Trust

LONGEST = 20_000
"""Characters of one memory: it is a sentence or a page, and what is longer is a document."""

LONGEST_QUERY = 2_000
"""Characters of a question that are sent: embedders read no more."""

RANKED = 0.5
"""The least relevance of the first hit of a backend without scores: it was found, and nobody knows how well."""

Calibrate = Callable[[float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A memory as its backend tells it."""

    id: str
    text: Any
    score: Any = None
    created: Any = None
    valid_from: Any = None
    valid_to: Any = None


class Other:
    """What they share. `ask` puts the question to the backend, `get` fetches one memory, `read` understands the answers."""

    slow = True

    def __init__(
        self,
        *,
        name: str,
        kind: str = "fact",
        trust: Trust = "agent",
        deadline: float = DEADLINE,
        calibrate: Calibrate | None = None,
    ) -> None:
        if not name or ":" in name or f"{name}:" in CODE_ID_PREFIXES:
            raise InputError(f"A source cannot be called {name!r}: its name begins the ids of what it brings.")
        if kind_of(kind).is_rule or kind_of(kind).is_derived:
            raise InputError(f"Kind {kind!r} is not for what others remember; take 'fact', 'episode' or 'note'.")
        if trust not in TRUST:
            raise InputError(f"There is no trust {trust!r}.{near(str(trust), TRUST)}")
        self.name, self.kind, self.deadline = name, kind, deadline
        self._trust: Trust = trust
        self._calibrate = calibrate or (lambda score: score)

    def ask(self, query: str, limit: int) -> Any:
        raise NotImplementedError

    def get(self, id: str) -> Any:
        raise NotImplementedError

    def read(self, answer: Any) -> Iterable[Found]:
        raise NotImplementedError

    def find(self, asks: Sequence[Ask], around: Around) -> list[Candidate]:
        limit = max(ask.limit for ask in asks)
        answer = self.ask(around.request.query[:LONGEST_QUERY], limit)
        hits = self._hits(awaited(answer) if inspect.isawaitable(answer) else answer, limit)
        request, out = around.request, []
        for rank, hit in enumerate(hits):
            record = self._record(hit, request.scope, request.now)
            features = {"relevance": self._relevance(hit, 1 - rank / len(hits), around.signals)}
            if record is not None and not filtered(record, request.filters):
                out += [
                    Candidate(record=record, slot=ask.slot.name, source=self.name, features=features)
                    for ask in asks
                    if rank < ask.limit and (not ask.slot.kinds or self.kind in ask.slot.kinds)
                ]
        return out

    def recall(self, id: str, scope: Scope, now: int) -> Record:
        """One memory again, as it is there now."""

        def fetched() -> Any:
            answer = self.get(id.removeprefix(f"{self.name}:"))
            return awaited(answer) if inspect.isawaitable(answer) else answer

        try:
            answer = in_thread(fetched, self.name).result(timeout=self.deadline)
        except Exception as failure:  # foreign code, in which "not there" may be an error of its own
            if not type(failure).__name__.endswith("NotFoundError"):
                said = f"{type(failure).__name__}: {failure}".rstrip(": ")
                raise SourceError(f"Source {self.name!r} did not give {id!r} ({said}).") from None
            answer = None
        found = self._hits([answer], 1) if answer is not None else []
        record = self._record(found[0], scope, now) if found else None
        if record is None:
            raise NotFound(f"Source {self.name!r} has no {id!r} any more.")
        return record

    def _hits(self, answer: Any, limit: int) -> list[Found]:
        """The usable hits of an answer, each once and no more than were asked for."""
        found: dict[str, Found] = {}
        try:
            for hit in self.read(answer):
                if hit.id and isinstance(hit.text, str) and hit.text.strip():
                    found.setdefault(hit.id, hit)
                if len(found) == limit:
                    break
        except FoveateError:
            raise
        except Exception as failure:  # of a shape that nobody foresaw
            said = f"it answered with something else than memories ({type(failure).__name__}: {failure})"
            raise SourceError(said) from None
        return list(found.values())

    def _record(self, hit: Found, scope: Scope, now: int) -> Record | None:
        """A record that is never kept; None where even its cleaned text cannot be one."""
        whole = hit.text[: 4 * LONGEST].encode("utf-8", "replace").decode().replace("\x00", " ")
        text = make.clean(whole)[:LONGEST]  # in this order: half a secret is not recognised
        created = min(max(_millis(hit.created) or now, 0), now)
        ends = _millis(hit.valid_to)
        begins = _millis(hit.valid_from) or created
        begins = begins if ends is None else min(begins, ends)
        values = {"created": created, "valid_from": begins, "valid_to": ends, "trust": self._trust, "origin": self.name}
        id, project = f"{self.name}:{hit.id}", Scope(scope.project)
        try:
            made = make.make(self.kind, text, scope=project, id=id, now=created, rules=make.Rules(), **values)
        except InputError:
            return None
        return replace(made, tokens=None)  # counted by the request's own counter

    def _relevance(self, hit: Found, rank: float, signals: Signals) -> float:
        if isinstance(hit.score, int | float):
            score = float(self._calibrate(hit.score))
            return min(1.0, max(0.0, score)) if isfinite(score) else 0.0
        whole = sum(signals.terms.values())
        said = set(analysis.terms(hit.text[:LONGEST]))
        share = sum(weight for term, weight in signals.terms.items() if term in said) / whole if whole else 0.0
        return min(1.0, max(share, RANKED * rank))


class Mem0(Other):
    """Mem0's memories of a user, an agent or a run: `Mem0(memory, user_id="ada")`, with any of its clients.

    `filters` are further filters of Mem0's own, `search` further options of its `search`.
    """

    def __init__(
        self,
        memory: Any,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        search: Mapping[str, Any] | None = None,
        name: str = "mem0",
        **options: Any,
    ) -> None:
        super().__init__(name=name, **options)
        whose = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        self._filters = {**{level: id for level, id in whose.items() if id is not None}, **(filters or {})}
        if not self._filters:
            raise InputError("Mem0 needs to know whose memories to search: name a user_id, an agent_id or a run_id.")
        self._memory, self._options = memory, dict(search or {})

    def ask(self, query: str, limit: int) -> Any:
        return self._memory.search(query, filters=dict(self._filters), top_k=limit, **self._options)

    def get(self, id: str) -> Any:
        return self._memory.get(id)

    def read(self, answer: Any) -> Iterator[Found]:
        for hit in answer["results"] if isinstance(answer, Mapping) else answer:
            made = hit.get("updated_at") or hit.get("created_at")
            yield Found(id=str(hit.get("id") or ""), text=hit.get("memory"), score=hit.get("score"), created=made)


class Graphiti(Other):
    """The facts of a Graphiti graph: `Graphiti(graphiti, group_ids=["ada"])`. One that no longer holds is not shown.

    `loop`: the event loop that the graph's driver lives in, where it must not be used in another one, as Neo4j's. Compute
    with `acompute` from within that loop.
    """

    def __init__(
        self,
        graphiti: Any,
        *,
        group_ids: Sequence[str] | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
        name: str = "graphiti",
        **options: Any,
    ) -> None:
        super().__init__(name=name, **options)
        self._graphiti, self._loop = graphiti, loop
        self._groups = list(group_ids) if group_ids is not None else None

    def ask(self, query: str, limit: int) -> Any:
        return self._within(self._graphiti.search(query, group_ids=self._groups, num_results=limit))

    def get(self, id: str) -> Any:
        return self._within(self._graphiti.edges.entity.get_by_uuid(id))

    def read(self, answer: Any) -> Iterator[Found]:
        for edge in answer:
            ends = [_millis(when) for when in (edge.invalid_at, edge.expired_at) if when is not None]
            yield Found(
                id=str(edge.uuid),
                text=edge.fact,
                created=edge.created_at,
                valid_from=edge.valid_at,
                valid_to=min((when for when in ends if when is not None), default=None),
            )

    def _within(self, answer: Any) -> Any:
        if self._loop is None:
            return answer
        return asyncio.run_coroutine_threadsafe(answer, self._loop).result(self.deadline)


class LangGraphStore(Other):
    """The items of a LangGraph store below a namespace: `LangGraphStore(store, ("users", "ada"))`.

    `field` names the part of a value that is its text; else the whole value is.
    """

    def __init__(
        self, store: Any, namespace: Sequence[str], *, field: str | None = None, name: str = "langgraph", **options: Any
    ) -> None:
        super().__init__(name=name, **options)
        self._store, self._namespace, self._field = store, tuple(namespace), field

    def ask(self, query: str, limit: int) -> Any:
        return self._store.search(self._namespace, query=query, limit=limit)

    def get(self, id: str) -> Any:
        *below, key = id.split("/")
        return self._store.get((*self._namespace, *map(unquote, below)), unquote(key))

    def read(self, answer: Any) -> Iterator[Found]:
        for item in answer:
            labels = (*item.namespace[len(self._namespace) :], item.key)
            text = _text(item.value.get(self._field) if self._field else item.value)
            id, score = "/".join(quote(label, safe="") for label in labels), getattr(item, "score", None)
            yield Found(id=id, text=text, score=score, created=item.updated_at)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        texts = {name: part if isinstance(part, str) else json.dumps(part, default=str) for name, part in value.items()}
        return "\n".join(text if len(texts) == 1 else f"{name}: {text}" for name, text in texts.items())
    return "" if value is None else str(value)


def _millis(when: Any) -> int | None:
    """A time in milliseconds; None where it is none."""
    return millis(when) if isinstance(when, datetime) else parse_millis(when)
