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

from foveate import profiles, receipts, tokens
from foveate.assembly import Context, Prefix, joined
from foveate.code.derived import NO_CODE, PREFIXES
from foveate.compose import Composed, compose
from foveate.debug import debug
from foveate.errors import FoveateError, InputError, NotFound, ProfileError, SourceError, near
from foveate.ids import Clock, Ids, iso, millis, new_id, now
from foveate.journal import Journal, changes
from foveate.prompt import Prompt
from foveate.receipts import Facts, Receipt
from foveate.refresh import CACHE_SECONDS, Cache, Refresh, asked_again, cache_key, refresh, scope_within
from foveate.scoring import Reranker, rerank, score
from foveate.signals import extended, extract, task_text
from foveate.sources import SHIPPED, Around, Gathered, Source, gather
from foveate.sources.censors import stands_here
from foveate.sources.gather import asks_of
from foveate.state import fence, lifecycle, records
from foveate.state.kinds import kind_of
from foveate.state.lines import title_of
from foveate.state.living import Living
from foveate.state.records import Rules
from foveate.state.retry import retried
from foveate.state.stack import Stack, current
from foveate.state.store import Added, Forgotten, Health, Reader, Store
from foveate.state.task import lookup, state_of, unfinished
from foveate.state.tasks import Tasks
from foveate.summarize import Extractive
from foveate.types import TRUST, Candidate, Filters, Level, Profile, Record, Request, Scope, Signals
from foveate.validation import validate

BASE, FOR_A_TASK, FOR_CODE = "base", "task", "coding"
"""The profile of a request that names none, of one that is for a task, and of one that is asked beside code."""

MAP, WHOLE = "map", "The map of the repository"
"""The profile of the map alone, and the question of one that is drawn for none."""

DEBUG = "FOVEATE_DEBUG_CONTEXT"
"""Set to true, every computed context is explained on stderr."""

MAX_QUERY = 100_000
"""Characters of a question: more is a document."""

if TYPE_CHECKING:
    from foveate.code.workspace import Look, Workspace
    from foveate.embed import Embedder
    from foveate.feedback import Feedback

Given = str | Mapping[str, Any]
Past = str | Context | Receipt
"""A past context: its id, itself, or its receipt."""


class Engine(Living):
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
        variants: Mapping[str, float] | None = None,
    ) -> None:
        self._embedder = embedder
        self.embed_trouble = ""
        self._reranker = reranker
        self._sources = {source.name: source for source in (*SHIPPED, *sources)}
        self._places = tuple(places)
        self._default_profile = profile
        self._default_budget = budget
        self._root = root
        self._workspace = workspace
        self._domains = extended(domains or {})
        self._variants = dict(variants or {})
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
            scrub=receipts.scrub,
            thresholds=thresholds,
        )
        self._journal = Journal(store, self.reader)
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
        return facts.context, receipts.write(facts)

    def _computed(self, request: Request, began: float) -> Context:
        facts = self._facts(request, began)
        self._journal.remember(facts)
        if self.debug:
            print(debug(receipts.write(facts)), file=sys.stderr)
        return facts.context

    def _facts(self, request: Request, began: float) -> Facts:
        """The line, from a request to everything that its receipt is made from."""
        embedding, warnings = self._embedding(request)
        with self.reader(request.scope) as state:
            signals, profile = self._seen_as(request, embedding, state)
            look, blind = self._look(profile)
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
        options["now"] = self._cache.rounded(self.clock() if at is None else _time(at, "now"))
        request, _, profile = self.looked_at(query, **options)
        look, _ = self._look(profile)
        with self.reader(request.scope) as state:
            key = cache_key(request, profile, state.revision, look.index.generation if look else "")
        held = self._cache.get(key)
        if held is None or (look is not None and look.renewed(_files_in(held))):
            held = self._computed(request, began)
            self._cache.put(key, request.now, held)
        return held

    async def acompute(self, query: str | None = None, **options: Any) -> Context:
        """`compute` for async callers, in a thread."""
        import asyncio  # a tenth of the start-up of a command that never needs it

        return await asyncio.to_thread(self.compute, query, **options)

    def request(
        self,
        query: str | None = None,
        *,
        budget: int | None = None,
        profile: str | None = None,
        agent: str | None = None,
        complexity: str | None = None,
        frame: str | None = None,
        variant: str | None = None,
        scope: Scope | None = None,
        session: str | None = None,
        task: str | None = None,
        code_query: str | None = None,
        filters: Filters | None = None,
        given: Given | Sequence[Given] | Mapping[str, Sequence[Given]] = (),
        overrides: Mapping[str, Any] | None = None,
        counter: str | None = None,
        now: Any = None,
    ) -> Request:
        """A request, with everything that the caller left open filled in.

        `task` is the id or key of a task: without a query, what it is about is the question. A name of your own that is
        no task is a scope only. With neither, the goal on top of the stack is the task. `code_query` is what the code is
        searched for, where the question says it in other words; "" searches for nothing. `variant` is a profile to lay
        over the rest, or `control` for none, in place of the one that the settings give the session.
        """
        if budget is not None and (not isinstance(budget, int) or budget <= 0):
            raise InputError(f"A budget is a number of tokens above 0, not {budget!r}.")
        asked = "" if query is None else _question(query)
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
        for kind in filters.kinds if filters else ():
            kind_of(kind)
        at = self.clock() if now is None else _time(now, "now")
        return Request(
            query=asked or task_text(subject)[:MAX_QUERY],  # type: ignore[arg-type]
            scope=where,
            now=at,
            budget=budget if budget is not None else self._default_budget,
            profile=profile or self._default_profile or (FOR_A_TASK if subject else FOR_CODE if self._workspace else BASE),
            agent=agent,
            complexity=complexity,
            frame=frame,
            variant=variant or profiles.assigned(self._variants, where.session),
            task=subject,
            code_query=_question(code_query) if code_query else _described(asked, subject, code_query),
            counter=tokens.counter(counter or self.rules.counter).name,
            filters=_checked(filters or Filters()),
            given=self._given(given, where, at),
            overrides=dict(overrides or {}),
        )

    # --- receipts ----------------------------------------------------------------------------------------------

    @retried
    def receipt(self, context: str | Context | None = None) -> Receipt:
        """The receipt of a context; without one, of the latest."""
        return self._journal.receipt(context)

    @retried
    def receipts(self, limit: int = 50, after: tuple[int, str] | None = None) -> list[Receipt]:
        """The receipts of this scope, newest first; `after` is (`now` of its request, id) of the last of the page before."""
        return self._journal.page(limit, after)

    @retried
    def lines(
        self, limit: int = 50, after: tuple[int, str] | None = None, session: str | None = None
    ) -> list[dict[str, Any]]:
        """What lists show of the receipts of this scope, or of a session's, newest first: no receipt is unpacked for it.

        `after` is (`now`, id) of the last one of the page before.
        """
        return self._journal.lines(limit, after, session)

    @retried
    def agents(self) -> list[str]:
        """The agents that contexts were computed for; `within` a scope that names one, its contexts are seen."""
        self._journal.save()
        with self.store.read(self.scope) as reader:
            return reader.receipt_agents()

    @retried
    def sessions(self, limit: int = 50) -> list[dict[str, Any]]:
        """The sessions that contexts were computed in, how many and when the last one was; the newest first."""
        found = self._journal.lined(lambda reader: reader.receipt_sessions(limit))
        return [{"name": name, "contexts": number, "last": iso(last)} for name, number, last in found]

    @retried
    def timeline(self, session: str, limit: int = 200) -> dict[str, Any]:
        """The latest turns of a session, oldest first, each against the one before; and when its window was compacted."""
        from foveate.timeline import COMPACTION, timeline

        lines = self._journal.lines(limit + 1, session=session)  # one more: what the first is compared with
        with self.reader() as reader:
            shown = reader.shown_by([line["id"] for line in lines])
            marks = Filters(event_types=(COMPACTION,))
            compactions = reader.recent(["event"], limit, marks, archived=True, session=session)
        if not lines and not compactions:
            raise NotFound(f"No context was computed in session {session!r}: it was dropped by age, or never was.")
        return timeline(session, lines, shown, compactions, limit)

    def why(self, id: str, context: str | Context | None = None) -> dict[str, Any]:
        """Why a record is, or is not, in a context."""
        return receipts.why(self.receipt(context), self._full_id(id))

    @retried
    def why_not(self, id: str, context: str | Context | None = None) -> dict[str, Any]:
        """Why a record, or a piece of code, is not in a context, even where it was not a candidate at all."""
        id = self._full_id(id)
        if id.startswith(PREFIXES) and (receipt := self.receipt(context)).of(id) is None:
            from foveate.explain_code import why_not_shown

            return why_not_shown(receipt, id, self.code.look())
        return self._journal.why_not(id, context, [name for name in self._sources if self._keeper(f"{name}:")])

    @retried
    def diff(self, one: Past, other: Past, given: tuple[Any, Any] = ((), ()), *, texts: bool = False) -> dict[str, Any]:
        """What changed between two contexts, and how much of their beginning they share.

        `given`: what was handed in to the one and to the other, as for `replay`. A context that cannot be had again as it
        was is `unread`, and then nothing is said of the beginning. `texts`: the two prompts as well.
        """
        before, after = self._past(one), self._past(other)
        replays = [self.replay(each, handed) for each, handed in zip((before, after), given, strict=True)]
        return changes(before, after, replays, texts=texts)

    @retried
    def replay(self, context: Past, given: Any = ()) -> dict[str, Any]:
        """Compute a past context again from its receipt; says whether the bytes are the same, and why if not."""
        receipt = self._past(context)
        return self._journal.replay(receipt, self._handed(given, receipt), self._shown_again(receipt))

    @retried
    def prompt(self, context: Past | None = None, given: Any = ()) -> Prompt:
        """The text of a context, piece by piece, each with the item that it shows; a past one is read again from state."""
        receipt = self._past(context)
        return self._journal.prompt(receipt, self._handed(given, receipt), self._shown_again(receipt))

    def validate(self, context: str | Context | None = None) -> dict[str, Any]:
        """001's validation: is it within its budget, where did the tokens go, what could be better."""
        return validate(self.receipt(context))

    # --- after a context: still good? used? ----------------------------------------------------------------------

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

    def note(self, context: str, **notes: Any) -> None:
        """Add to a context's receipt what became of it: `turns`, `refresh`, `used`, `marks`. Ids only, no texts."""
        self._journal.note(context, notes)

    def update(self, context: str | Context, text: str, **values: Any) -> Context:
        """Keep a new event and compute the context again from state; the newest event stands first."""
        before = asked_again(self.receipt(context), self.scope)
        self.add("event", text, scope=before["scope"], **values)
        return self.compute(**before)

    def compress(self, text: str, max_tokens: int | None = None, query: str = "") -> str:
        """A text in fewer tokens, word for word: a third of it, unless told; what the query is about goes first."""
        from foveate.compress import compress

        return compress(text, max_tokens, query, self.rules.counter)

    def expand(self, id: str) -> dict[str, str]:
        """A record in full, as a user message: the details that a context leaves out. It counts as a use.

        The id may be of a piece of code in a context, `code:PATH::NAME` or `file:PATH`, or of another memory, `mem0:ID`.
        """
        if id.startswith(PREFIXES):
            from foveate.sources.code import recalled

            record = recalled(id, self.code.look(), self.scope)
            return {"role": "user", "content": self.shown(record)}
        if (keeper := self._keeper(id)) is not None:
            record = keeper.recall(id, self.scope, self.clock())
            return {"role": "user", "content": self.shown(record)}
        record = self.get(id)
        if record.data.get("archived"):  # the text as it was before
            steps = [step.before for step in self.history(id) if step.verb == "archive" and step.before is not None]
            record = steps[-1] if steps else record
        self.count_uses([id])
        return {"role": "user", "content": f"## {kind_of(record.kind).heading}\n{self.shown(record)}"}

    @retried
    def shown(self, record: Record, level: Level = "full", *, session: str | None = None) -> str:
        """One record as a model may read it, outside of any context: what nobody vouches for stands in a fence."""
        with self.store.read(self.scope) as reader:
            tag = fence.tag_of(reader.secret, session or self.scope.session)
        return fence.fenced([(record, kind_of(record.kind).line(record, level))], tag)

    def feedback(self, context: str | Context, answer: str) -> Feedback:
        """What an answer used of its context; noted on the receipt, and counted once as a use of each record."""
        from foveate.feedback import feedback

        receipt = self.receipt(context)

        @retried
        def used() -> Feedback:
            code = {} if isinstance(context, Context) else self._shown_again(receipt)
            with self.reader(scope_within(receipt, self.scope)) as state:
                return feedback(receipt, context, answer, state, code)

        found = used()
        counted = set(receipt.document.get("notes", {}).get("used", ()))
        self.note(receipt.id, used=list(found.used))
        ours = [id for id in found.used if not id.startswith(PREFIXES) and self._keeper(id) is None]
        self.count_uses([id for id in ours if id not in counted])
        return found

    def mark(self, context: str | Context, id: str, mark: str) -> str:
        """Say that an item of a context was useful, wrong or outdated; what to do about it next."""
        from foveate.feedback import checked_mark

        receipt = self.receipt(context)
        if self._keeper(id) is not None:
            raise InputError(f"{id!r} is kept by another memory: only records of this one can be marked. Correct it there.")
        advice = checked_mark(receipt, id, mark)
        if receipt.document.get("notes", {}).get("marks", {}).get(id) != mark:
            if mark == "useful":
                self.count_uses([id], won=True)
            elif mark == "wrong":
                self.outcome(id, "failure")
        self.note(receipt.id, marks={id: mark})
        return advice

    @retried
    def metrics(self) -> dict[str, Any]:
        """004's key metrics over the latest receipts, each with its target and whether it holds."""
        from foveate.metrics import DAY, DAYS, LATEST, measure

        now = self.clock()
        lines = self._journal.lines(LATEST)
        with self.store.read(self.scope) as reader:
            return measure(lines, reader.growth(now - DAYS * DAY), now)

    @retried
    def metrics_over_time(self) -> dict[str, Any]:
        """The metrics of each of the last days, oldest first, and how many records were written on each.

        `cut`: there were more contexts than are read for it, and the days before the first one are not told.
        """
        from foveate.metrics import MOST, over_time, since

        first = since(self.clock())
        lines, more = self._journal.lines_since(first, MOST)
        with self.store.read(self.scope) as reader:
            return {**over_time(lines, cut=more), "growth": reader.growth_by_day(first)}

    @retried
    def context_stats(self) -> dict[str, Any]:
        """001's statistics over the latest contexts: how large and how full they are, by profile and by part."""
        from foveate.metrics import context_stats

        self._journal.save()
        return context_stats(self.store, self.scope, self.clock())

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
        self._journal.save()  # a receipt that is still waiting would bring the record back
        self._cache.clear()
        return super().forget(ids)

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

    @retried
    def stats(self) -> dict[str, Any]:
        """What the store holds."""
        with self.store.read(self.scope) as reader:
            return {"project": self.scope.project, "revision": reader.revision, **reader.counts()}

    def health(self) -> Health:
        found = super().health()
        return replace(found, facts={**found.facts, "warnings": self.outgrown()} if found.ok else found.facts)

    @property
    def places(self) -> tuple[Path, ...]:
        """Where profiles are looked for, besides the shipped ones."""
        return self._places

    @property
    def root(self) -> Path | None:
        """The project's folder; none for a store without one, nor for another project than the one that was opened."""
        return self._root

    def save(self) -> None:
        """Write the receipts that are waiting."""
        self._journal.save()

    def close(self) -> None:
        """Write what is pending and let go of the files."""
        self._journal.close()
        if self._workspace is not None:
            self._workspace.close()
        super().close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- code --------------------------------------------------------------------------------------------------

    @property
    def code(self) -> Workspace:
        """The code of the project: its index, search, map and docs."""
        if self._workspace is None:
            raise InputError(NO_CODE)
        return self._workspace

    @property
    def has_code(self) -> bool:
        return self._workspace is not None

    def map(self, query: str | None = None, **options: Any) -> Context:
        """The repository map alone, inside a budget: drawn for a question, else of the whole. Options as for `request`."""
        if self._workspace is None:
            raise InputError(NO_CODE)
        return self.compute(query or WHOLE, profile=MAP, code_query=query or "", **options)

    def _full_id(self, id: str) -> str:
        """The id of a piece of code as receipts have it; a shorter form will do."""
        if not id.startswith(PREFIXES) or self._workspace is None:
            return id
        from foveate.sources.code import canonical

        return canonical(id, self._workspace.look())

    def _look(self, profile: Profile) -> tuple[Look | None, str]:
        """The code as it is now, where a source of the profile reads it; else why the parts that need it stay empty."""
        names = {name for slot in profile.slots for name in slot.sources}
        if not any(_reads_code(self._sources[name]) for name in names if name in self._sources):
            return None, ""
        if self._workspace is None:
            return None, NO_CODE
        try:
            return self._workspace.look(), ""
        except (FoveateError, OSError) as error:
            return None, f"The code could not be looked at: {error}"

    def _keeper(self, id: str) -> Any:
        """The source that keeps what has this id, where that is not ours: `mem0` for `mem0:ID`."""
        name, colon, _ = id.partition(":")
        source = self._sources.get(name) if colon else None
        return source if hasattr(source, "recall") else None

    def _shown_again(self, receipt: Receipt) -> dict[tuple[str, str], Record]:
        """What a past context showed of the code and of other memories, as it would be shown now."""
        found, silent = self._code_again(receipt), set()
        for entry in receipt.candidates:
            keeper = self._keeper(entry["id"])
            if keeper is None or keeper in silent:
                continue
            try:
                found[entry["source"], entry["id"]] = keeper.recall(entry["id"], self.scope, self.clock())
            except NotFound:  # gone: it is missing
                continue
            except SourceError:  # nobody waits for it twice
                silent.add(keeper)
        return found

    def _code_again(self, receipt: Receipt) -> dict[tuple[str, str], Record]:
        """What a past context showed of the code, as it would be shown now."""
        if self._workspace is None or not any(entry["id"].startswith(PREFIXES) for entry in receipt.candidates):
            return {}
        asked = asked_again(receipt, self.scope)
        request = self.request(**asked, now=receipt.document["request"]["now"])
        profile = receipts.profile_from_json(receipt.document["profile"])
        asks = {name: asked for name, asked in asks_of(profile, self._sources).items() if _reads_code(self._sources[name])}
        with self.reader(request.scope) as state:
            around = Around(request, extract(request, state.named), profile, state, self._root, self._look(profile)[0])
            found = [candidate for name, asked in asks.items() for candidate in self._sources[name].find(asked, around)]
        return {(candidate.source, candidate.record.id): candidate.record for candidate in found}

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
            id=receipts.context_id(request, revision, text),
            sections=composed.sections,
            left_out=composed.left_out,
            budget=composed.budget,
            profile=profile.name,
            counter=request.counter,
            signals=signals,
            prefix=Prefix(receipts.text_hash(stable), len(stable), _count(stable, request.counter)),
            considered={report.source: report.found for report in found.reports},
            warnings=tuple(warnings),
            tag=tag,
        )

    def _past(self, context: Past | None) -> Receipt:
        return context if isinstance(context, Receipt) else self.receipt(context)

    def _handed(self, given: Any, receipt: Receipt) -> dict[str, tuple[Record, ...]]:
        """Given texts as records of the scope in which they were handed in."""
        return self._given(given, receipts.scope_from_json(receipt.document["request"]["scope"]), self.clock())

    def _given(self, given: Any, scope: Scope, at: int) -> dict[str, tuple[Record, ...]]:
        if not given:
            return {}
        if _single(given):
            given = [given]
        groups = given if isinstance(given, Mapping) else {"given": given}
        return {
            slot: tuple(self._given_record(part, scope, at) for part in ([parts] if _single(parts) else parts))
            for slot, parts in groups.items()
        }

    def _given_record(self, part: Given, scope: Scope, at: int) -> Record:
        values = {"text": part} if isinstance(part, str) else dict(part)
        kind, text = values.pop("kind", "note"), values.pop("text", "")
        offline = replace(self.rules, summarizer=Extractive())  # a model may shorten what is kept, never during compute
        record = records.make(kind, text, scope=scope, id="given", now=at, rules=offline, **values)
        return replace(record, id=f"given_{record.hash[:16]}")

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
        from foveate.embed import query_or_none

        vector, reason = query_or_none(self._embedder, request.query)
        if vector is None:
            return None, [f"No vector for the question ({reason}); searched by words alone."]
        return tuple(vector), []

    def _embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]] | None:
        from foveate.embed import embed_or_none

        assert self._embedder is not None
        found, self.embed_trouble = embed_or_none(self._embedder, texts)
        return found


def _described(asked: str, task: Record | None, code_query: str | None) -> str | None:
    """What the code is searched for where the call does not say: for a task, what it is about and its description."""
    described = str(task.data.get("description") or "") if task else ""
    if code_query is not None or task is None or not described:
        return code_query
    return "\n".join(dict.fromkeys((asked or task_text(task), described)))[:MAX_QUERY]


def _files_in(context: Context) -> list[str]:
    """The files that a context shows something of."""
    records = (item.candidate.record for item in context.items)
    return [path for record in records if record.id.startswith(PREFIXES) for path in record.paths]


def _reads_code(source: Source) -> bool:
    return bool(getattr(source, "reads_code", False))


def _time(when: Any, name: str) -> int:
    try:
        at = millis(when)
        iso(at)
    except (ValueError, TypeError, AttributeError, OverflowError, OSError):
        raise InputError(f"{name} must be a time such as 2026-05-14T09:30Z, not {when!r}.") from None
    return at


def _checked(filters: Filters) -> Filters:
    """Filters with their times in milliseconds; a wrong one must not silently find nothing."""
    if filters.min_trust not in TRUST:
        raise InputError(f"There is no trust {filters.min_trust!r}.{near(str(filters.min_trust), TRUST)}")
    for name in ("event_types", "entity_types"):
        types = getattr(filters, name)
        if not isinstance(types, tuple | list) or not all(isinstance(part, str) and part for part in types):
            raise InputError(f"{name} must be a tuple of names such as ('error', 'shell_exec'), not {types!r}.")
    since = None if filters.since is None else _time(filters.since, "since")
    until = None if filters.until is None else _time(filters.until, "until")
    events, entities = tuple(filters.event_types), tuple(filters.entity_types)
    return replace(filters, since=since, until=until, event_types=events, entity_types=entities)


def _waiting(request: Request, state: Reader) -> list[str]:
    """What the task depends on and does not have yet."""
    found = unfinished(state, request.task) if request.task else []
    return [f"{title_of(record) or record.id}, on which the task depends, is {state_of(record)}." for record in found]


def _unembedded(embedding: tuple[float, ...] | None, state: Reader) -> list[str]:
    """What cannot be near to the question yet."""
    lacking = 0 if embedding is None else state.lacking()
    said = f"{lacking:,} records have no vector by this embedder yet and are found by words alone. Run `foveate embed`."
    return [said] if lacking else []


def _question(query: Any) -> str:
    """A question as it is used: what cannot be encoded replaced, no secrets."""
    if not isinstance(query, str) or not query.strip():
        raise InputError("The query is empty; say what the context is for.")
    if len(query) > MAX_QUERY:
        raise InputError(f"The query has {len(query):,} characters, more than {MAX_QUERY:,}; hand long texts in as `given`.")
    return records.clean(_whole(query))


def _single(given: Any) -> bool:
    """Whether it is one text, and not several."""
    return isinstance(given, str) or (isinstance(given, Mapping) and isinstance(given.get("text"), str))


def _whole(text: str) -> str:
    """A question with what cannot be encoded replaced: it is not kept, so it need not be refused."""
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")


@lru_cache(maxsize=64)
def _count(text: str, counter: str) -> int:
    return tokens.count(text, counter) if text else 0
