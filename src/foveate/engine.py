"""The engine: state -> signals -> profile -> sources -> scoring -> budget -> selection -> assembly -> context."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from foveate.clock import Clock, Ids, new_id, now
from foveate.code.derived import NO_CODE
from foveate.errors import InputError, NotFound, ProfileError, near
from foveate.pipeline import profiles
from foveate.pipeline.assembly import Context, Prefix, joined
from foveate.pipeline.fill import Composed, compose
from foveate.pipeline.request import MAX_QUERY, Given, checked, code_question, given_records, question, time_of
from foveate.pipeline.scoring import Reranker, rerank, score
from foveate.pipeline.signals import extended, extract, task_text
from foveate.pipeline.sources import Around, Gathered, Source, gather
from foveate.pipeline.sources.censors import stands_here
from foveate.pipeline.sources.gather import open_snapshot
from foveate.receipts import receipt
from foveate.receipts.debug import debug
from foveate.receipts.history import Past
from foveate.receipts.receipt import Facts, Receipt
from foveate.receipts.refresh import CACHE_SECONDS, Cache, Refresh, asked_again, cache_key, refresh
from foveate.records import fence, lifecycle
from foveate.records import make as records
from foveate.records.kinds import kind_of
from foveate.records.make import Rules
from foveate.records.render import title_of
from foveate.store.protocol import Added, Forgotten, Health, Reader, Store
from foveate.store.retry import retried
from foveate.tasks.stack import Stack, current
from foveate.tasks.task import lookup, state_of, unfinished
from foveate.tasks.tasks import Tasks
from foveate.text import tokens
from foveate.types import Candidate, Filters, Profile, Record, Request, Scope, Signals

BASE, FOR_A_TASK, FOR_CODE = "base", "task", "coding"
"""The profile of a request that names none, of one that is for a task, and of one that is asked beside code."""

MAP, WHOLE = "map", "The map of the repository"
"""The profile of the map alone, and the question of one that is drawn for none."""

DEBUG = "FOVEATE_DEBUG_CONTEXT"
"""Set to true, every computed context is explained on stderr."""

if TYPE_CHECKING:
    from foveate.code.snapshot import Workspace
    from foveate.text.embed import Embedder


class Engine(Past):
    """Computes contexts from state. Open one with `foveate.open`."""

    def __init__(
        self,
        store: Store,
        *,
        scope: Scope,
        rules: Rules | None = None,
        clock: Clock = now,
        ids: Ids = new_id,
        own: Store | None = None,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        sources: Iterable[Source] = (),
        places: Sequence[Path] = (),
        profile: str | None = None,
        budget: int | None = None,
        root: Path | None = None,
        workspace: Workspace | None = None,
        domains: Mapping[str, Sequence[str]] | None = None,
        thresholds: lifecycle.Thresholds = lifecycle.DEFAULT,
        explain: bool = False,
        cache_seconds: float | None = None,
    ) -> None:
        self._embedder = embedder
        self.embed_trouble = ""
        self._reranker = reranker
        self._places = tuple(places)
        self._default_profile = profile
        self._default_budget = budget
        self._domains = extended(domains or {})
        self._cache_always = cache_seconds is not None
        self._cache = Cache(CACHE_SECONDS if cache_seconds is None else cache_seconds)
        self.debug = explain or os.environ.get(DEBUG, "").lower() in ("1", "true", "yes", "on")
        super().__init__(
            store,
            scope=scope,
            rules=rules or Rules(),
            clock=clock,
            ids=ids,
            own=own,
            vectors=self._embed if embedder else None,
            thresholds=thresholds,
            sources=sources,
            root=root,
            workspace=workspace,
        )
        self.tasks = Tasks(self)
        if scope.task is not None:
            self.scope = self._with_task(scope)

    def within(self, scope: Scope, *, own: bool = True, code: bool = True) -> Engine:
        """The same engine as somebody else sees it: it shares store, cache and receipts, and costs next to nothing.

        Another project has other files: it sees no code. Without `own`, the store of whoever runs the engine is not read.
        It is closed with this one, not by itself.
        """
        other = copy(self)
        other.scope = self._with_task(scope) if scope.task is not None else scope
        other.own = self.own if own else None
        other._sees_projects = False
        if scope.project != self.scope.project or not code:
            other._workspace = None
        if scope.project != self.scope.project:
            other._root = None
        other.tasks = Tasks(other)
        other._journal = self._journal.seen_by(other.reader)
        return other

    def stack(self, *, agent: str | None = None, session: str | None = None) -> Stack:
        """The task stack of an agent and session: this engine's, unless others are named."""
        return Stack(self, agent=agent, session=session)

    # --- the line ----------------------------------------------------------------------------------------------

    @retried
    def compute(self, query: str | None = None, *, cached: bool | None = None, **options: Any) -> Context:
        """The context for a question, for a task, or for the goal on top of the stack. Options are those of `request`.

        `cached`: the context of the last seconds, where nothing changed; its clock is rounded to them.
        """
        began = perf_counter()
        if self._cache_always if cached is None else cached:
            return self._cached(query, options, began)
        return self._computed(self.request(query, **options), began)

    @retried
    def what_if(self, query: str | None = None, **options: Any) -> tuple[Context, Receipt]:
        """The context that `compute` would give, with its receipt; nobody is told, and nothing is kept of it."""
        facts = self._facts(self.request(query, **options), perf_counter())
        return facts.context, receipt.write(facts)

    def _computed(self, request: Request, began: float) -> Context:
        facts = self._facts(request, began)
        self._journal.remember(facts)
        if self.debug:
            print(debug(receipt.write(facts)), file=sys.stderr)
        return facts.context

    def _facts(self, request: Request, began: float) -> Facts:
        """The line, from a request to everything that its receipt is made from."""
        embedding, warnings = self._embedding(request)
        with self.reader(request.scope) as state:
            signals, profile = self._seen_as(request, embedding, state)
            with open_snapshot(profile, self._sources, self._workspace) as (look, blind):
                around = Around(request, signals, profile, state, self._root, look, blind)
                found = gather(self._sources, around, count=self.debug)
            warnings += [*_waiting(request, state), *_unembedded(embedding, state), *(look.notes if look else ())]
            revision, tag = state.revision, fence.tag_of(state.secret, request.scope.session)
        candidates = score(found.candidates, profile, signals, request.now, self.thresholds)
        candidates = self._reranked(candidates, request, profile, warnings)
        composed = compose(candidates, profile, request.filters, request.counter, self.rules.counter, request.now, tag)
        context = self._context(request, profile, signals, found, composed, revision, warnings, tag)
        return Facts(request, profile, context, tuple(candidates), found.reports, revision, self.rules.counter, began)

    def _cached(self, query: str | None, options: dict[str, Any], began: float) -> Context:
        at = options.get("now")
        options["now"] = self._cache.rounded(self.clock() if at is None else time_of(at, "now"))
        request, _, profile = self.looked_at(query, **options)
        with open_snapshot(profile, self._sources, self._workspace) as (code, _), self.reader(request.scope) as state:
            key = cache_key(request, profile, state.revision, code.generation if code else "")
        held = self._cache.get(key)
        if held is None:
            held = self._computed(request, began)
            self._cache.put(key, request.now, held)
        return held

    async def acompute(self, query: str | None = None, **options: Any) -> Context:
        """`compute` for async callers, in a thread."""
        import asyncio  # a tenth of the start-up of a command that never needs it

        return await asyncio.to_thread(self.compute, query, **options)

    def map(self, query: str | None = None, **options: Any) -> Context:
        """The repository map alone, inside a budget: drawn for a question, else of the whole. Options as for `request`."""
        if not self.has_code:
            raise InputError(NO_CODE)
        return self.compute(query or WHOLE, profile=MAP, code_query=query or "", **options)

    def request(
        self,
        query: str | None = None,
        *,
        budget: int | None = None,
        profile: str | None = None,
        agent: str | None = None,
        complexity: str | None = None,
        frame: str | None = None,
        scope: Scope | None = None,
        session: str | None = None,
        task: str | None = None,
        code_query: str | None = None,
        filters: Filters | None = None,
        given: Given = (),
        overrides: Mapping[str, Any] | None = None,
        counter: str | None = None,
        now: Any = None,
    ) -> Request:
        """A request, with everything that the caller left open filled in.

        `task` is the id or key of a task: without a query, what it is about is the question. A name of your own that is
        no task is a scope only. With neither, the goal on top of the stack is the task. `code_query` is what the code is
        searched for, where the question says it in other words; "" searches for nothing.
        """
        if budget is not None and (not isinstance(budget, int) or budget <= 0):
            raise InputError(f"A budget is a number of tokens above 0, not {budget!r}.")
        asked = "" if query is None else question(query)
        where = scope or replace(
            self.scope,
            agent=agent or self.scope.agent,
            session=session or self.scope.session,
            task=task or self.scope.task,
        )
        if problems := records.scope_problems(where):
            raise InputError(problems)
        subject = self._subject(where, asked)
        if subject is not None:
            where = replace(where, task=subject.id)
        elif not asked:
            raise InputError("The query is empty; say what the context is for, or name a task.")
        at = self.clock() if now is None else time_of(now, "now")
        return Request(
            query=asked or task_text(subject)[:MAX_QUERY],  # type: ignore[arg-type]
            scope=where,
            now=at,
            budget=budget if budget is not None else self._default_budget,
            profile=profile or self._default_profile or (FOR_A_TASK if subject else FOR_CODE if self._workspace else BASE),
            agent=agent,
            complexity=complexity,
            frame=frame,
            task=subject,
            code_query=code_question(asked, subject, code_query),
            counter=tokens.counter(counter or self.rules.counter).name,
            filters=checked(filters or Filters()),
            given=given_records(given, where, at, self.rules),
            overrides=dict(overrides or {}),
        )

    # --- after a context: is it still good? --------------------------------------------------------------------

    def refresh_if_needed(self, query: str, previous: str | Context | None, **options: Any) -> Refresh:
        """A new context where the previous one no longer serves what is said now, and why; false where it still does.

        Besides those of `request`: `decision=True` (the agent is about to act), `spent` (tokens of the conversation),
        `window` (what conversation and context may take together), `pressure` (the share of it that may be used).
        """
        return refresh(self, query, previous, **options)

    @retried
    def looked_at(self, query: str | None = None, **options: Any) -> tuple[Request, Signals, Profile]:
        """What a request is about and which profile it would get, without computing a context."""
        request = self.request(query, **options)
        embedding, _ = self._embedding(request)
        with self.reader(request.scope) as state:
            return request, *self._seen_as(request, embedding, state)

    def nearness(self, one: str, other: str) -> float:
        """How near two texts are by the embedder, 0..1; 0 without one."""
        vectors = self._embed([one, other]) if self._embedder else None
        return 0.0 if vectors is None else min(1.0, max(0.0, sum(a * b for a, b in zip(*vectors, strict=True))))

    def update(self, context: str | Context, text: str, **values: Any) -> Context:
        """Keep a new event and compute the context again from state; the newest event stands first."""
        before = asked_again(self.receipt(context), self.scope)
        self.add("event", text, scope=before["scope"], **values)
        return self.compute(**before)

    def compress(self, text: str, max_tokens: int | None = None, query: str = "") -> str:
        """A text in fewer tokens, word for word: a third of it, unless told; what the query is about goes first."""
        from foveate.text.compress import compress

        return compress(text, max_tokens, query, self.rules.counter)

    # --- memory, with what only the engine knows ---------------------------------------------------------------

    def add(self, kind: str, text: str, *, own: bool = False, scope: Scope | None = None, **values: Any) -> Added:
        added = super().add(kind, text, own=own, scope=scope, **values)
        if not (kind_of(kind).rule or added.record.pinned):
            return added
        try:
            return replace(added, warnings=tuple(self.outgrown(added.record.scope)))
        except ProfileError as error:  # the record is kept; that the profile is wrong is another matter
            return replace(added, warnings=(str(error),))

    @retried
    def outgrown(self, scope: Scope | None = None) -> list[str]:
        """Warnings on always-on slots that hold more than their room."""
        profile = profiles.resolve(self._default_profile or BASE, self._places)
        out = []
        with self.reader(scope and replace(scope, project=self.scope.project)) as reader:
            for slot in profile.slots:
                if slot.source != "always" or slot.tokens is None:
                    continue
                standing = [r for r in reader.standing(slot.kinds, pinned=slot.pinned) if stands_here(r, profile)]
                needs = sum((record.tokens or {}).get(slot.level, 0) for record in standing)
                if needs > slot.tokens:
                    out.append(
                        f"Slot {slot.name!r} has {slot.tokens} tokens and its records need {needs}: they step down to micro "
                        f"lines and then take room from others. Retire or shorten some, or raise slots.{slot.name}.tokens."
                    )
        return out

    def forget(self, ids: Sequence[str]) -> Forgotten:
        forgotten = super().forget(ids)
        self._cache.clear()
        return forgotten

    @property
    def embeds(self) -> bool:
        """Whether an embedder is set."""
        return self._embedder is not None

    def vectors(self) -> dict[str, Any]:
        """How far the project's records have vectors by the embedder that is set, and what those of others take."""
        with self.store.read(self.scope) as reader:
            lacking, spaces = reader.lacking(), reader.spaces()
        held = next((space for space in spaces if space.used), None)
        others = [{"embedder": space.fingerprint, "vectors": space.vectors, "bytes": space.bytes} for space in spaces]
        return {
            "embedder": self._embedder.fingerprint if self._embedder else None,
            "held": held.vectors if held else 0,
            "lacking": lacking,
            "unused": [other for other, space in zip(others, spaces, strict=True) if not space.used],
        }

    def health(self) -> Health:
        found = super().health()
        return replace(found, facts={**found.facts, "warnings": self.outgrown()} if found.ok else found.facts)

    @property
    def places(self) -> tuple[Path, ...]:
        """Where profiles are looked for, besides the shipped ones."""
        return self._places

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- steps of the line -------------------------------------------------------------------------------------

    def _with_task(self, scope: Scope) -> Scope:
        """A scope whose task is named by its id, so that notes on a task are found whatever it was called."""
        with self.store.read(scope) as reader:
            record = reader.by_key(str(scope.task))
        return replace(scope, task=record.id) if record is not None and record.kind == "task" else scope

    def _subject(self, where: Scope, asked: str) -> Record | None:
        """The task that a request is for: the one it names or, where it asks nothing, the top of its stack."""
        if where.task is None and asked:
            return None
        with self.store.read(where) as reader:
            if where.task is None:
                return current(reader)
            record = lookup(reader, where.task)
        if record is not None and record.kind == "task":
            return record
        if not asked or where.task.startswith("task_"):
            raise NotFound(f"There is no task {where.task!r} in this scope. `foveate task list` shows them.")
        return None

    def _seen_as(self, request: Request, embedding: tuple[float, ...] | None, state: Reader) -> tuple[Signals, Profile]:
        signals = extract(request, state.named, embedding, self._domains)
        signals = profiles.framed(request, signals, self._places)
        return signals, self._profile(request, signals)

    def _profile(self, request: Request, signals: Signals) -> Profile:
        known = profiles.names(self._places)
        own = profiles.names(self._places, builtin=False) if request.agent else ()
        names = profiles.layers(request, signals, known, own)
        profile = profiles.resolve(names, self._places, request.overrides, request.budget)
        slots = {slot.name for slot in profile.slots if "given" in slot.sources}
        for name in request.given:
            if name not in slots:
                raise ProfileError(f"Profile {profile.name!r} has no slot {name!r} for given texts.{near(name, slots)}")
        return profile

    def _context(
        self,
        request: Request,
        profile: Profile,
        signals: Signals,
        found: Gathered,
        composed: Composed,
        revision: str,
        warnings: list[str],
        tag: str,
    ) -> Context:
        text = joined(composed.sections)
        stable = joined(section for section in composed.sections if section.stable)
        warnings += [f"Source {report.source!r} failed: {report.error}" for report in found.reports if report.error]
        warnings += [
            f"Slot {grant.slot!r} holds more than its room and took {grant.borrowed} tokens from others."
            for grant, slot in zip(composed.budget.grants, profile.slots, strict=True)
            if slot.keep and grant.own and grant.borrowed
        ]
        return Context(
            id=receipt.context_id(request, revision, text),
            sections=composed.sections,
            left_out=composed.left_out,
            budget=composed.budget,
            profile=profile.name,
            counter=request.counter,
            signals=signals,
            prefix=Prefix(receipt.text_hash(stable), len(stable), _count(stable, request.counter)),
            considered={report.source: report.found for report in found.reports},
            warnings=tuple(warnings),
            tag=tag,
        )

    def _reranked(
        self, candidates: list[Candidate], request: Request, profile: Profile, warnings: list[str]
    ) -> list[Candidate]:
        if self._reranker is not None and not profile.weights.get("rerank"):
            warnings.append(f"A reranker is set, and profile {profile.name!r} gives `rerank` no weight: it was not asked.")
        try:
            return rerank(candidates, self._reranker, request.query, profile.weights)
        except Exception as failure:  # foreign code, as a source is: the prompt goes on without it
            warnings.append(f"The reranker failed ({type(failure).__name__}: {failure}); ranked without it.")
            return candidates

    def _embedding(self, request: Request) -> tuple[tuple[float, ...] | None, list[str]]:
        if self._embedder is None:
            return None, []
        from foveate.text.embed import query_or_none

        vector, reason = query_or_none(self._embedder, request.query)
        if vector is None:
            return None, [f"No vector for the question ({reason}); searched by words alone."]
        return tuple(vector), []

    def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        from foveate.text.embed import embed_or_none

        assert self._embedder is not None
        found, self.embed_trouble = embed_or_none(self._embedder, texts)
        return found


def _waiting(request: Request, state: Reader) -> list[str]:
    """What the task depends on and does not have yet."""
    found = unfinished(state, request.task) if request.task else []
    return [f"{title_of(record) or record.id}, on which the task depends, is {state_of(record)}." for record in found]


def _unembedded(embedding: tuple[float, ...] | None, state: Reader) -> list[str]:
    """What cannot be near to the question yet."""
    lacking = 0 if embedding is None else state.lacking()
    said = f"{lacking:,} records have no vector by this embedder yet and are found by words alone. Run `foveate embed`."
    return [said] if lacking else []


@lru_cache(maxsize=64)
def _count(text: str, counter: str) -> int:
    return tokens.count(text, counter) if text else 0
