"""The engine: computes a context for each call from stored state. Open one with `foveate.open`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Unpack

from foveate.clock import Clock, Ids, When, new_id, now, parse_time
from foveate.code.records import CODE_ID_PREFIXES
from foveate.engine.session_monitor import SessionMonitor
from foveate.errors import BudgetError, InputError, NotFound
from foveate.memory.memory import Memory
from foveate.memory.messages import RememberResult, convert_messages, remember
from foveate.memory.relations import relate
from foveate.options import (
    NEW_RECORD_FIELDS,
    WHO,
    ContextOptions,
    NewRecordFields,
    RecordFields,
    Who,
    check_limit,
    check_text,
    refuse_lists,
    refuse_text,
    refuse_unknown,
    scope_of,
)
from foveate.pipeline.cache import Cache, cache_key
from foveate.pipeline.request import DEFAULT_PROFILE, Defaults, resolve_request
from foveate.pipeline.run import Pipeline, Plan
from foveate.pipeline.signals import merge_domains
from foveate.pipeline.sources import BUILTIN_SOURCES, Source
from foveate.pipeline.sources.code_snapshot import open_snapshot
from foveate.pipeline.sources.gather import by_name
from foveate.receipts import codec
from foveate.receipts.context import Context, context_of
from foveate.receipts.feedback import Feedback, Mark, refuse_two_marks
from foveate.receipts.history import ContextRef, Receipts
from foveate.receipts.parts import Notes, RefreshNote
from foveate.receipts.refresh import DEFAULT_PRESSURE, Refresh, budget_left, judge, match_of, with_previous_topic
from foveate.records.kinds import kind_of
from foveate.records.lifecycle import DEFAULT_THRESHOLDS, Thresholds
from foveate.records.make import Rules
from foveate.records.triggers import CensorMatch
from foveate.store.protocol import AddResult, ForgetResult, Hit, Reader, Store
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.tasks.task import with_task_id
from foveate.types import LAST, Change, Filters, Item, Link, Message, Record, Request, Scope

if TYPE_CHECKING:
    from foveate.code.plain_folder import PlainFolder
    from foveate.code.snapshot import Workspace
    from foveate.engine.code import Code
    from foveate.engine.inbox import Inbox
    from foveate.engine.store_tools import StoreTools
    from foveate.engine.tasks import Tasks
    from foveate.receipts.why import Why
    from foveate.text.embed import Embedder, Vector
    from foveate.text.summarize import LLM

DEBUG_VARIABLE = "FOVEATE_DEBUG_CONTEXT"
"""Environment variable: if it is true, each context is explained on stderr."""


@dataclass(frozen=True, slots=True)
class SharedParts:
    """The parts that an engine shares with every scoped view of it."""

    pipeline: Pipeline
    defaults: Defaults
    cache: Cache[Context]
    llm: LLM | None
    debug: bool
    sessions: SessionMonitor


class Engine:
    """Computes contexts from stored state, and changes that state."""

    _on_view: Callable[[Engine], object] | None = None
    """Called with each scoped view, so that a view is observed like its engine."""

    def __init__(
        self,
        store: Store,
        *,
        scope: Scope,
        rules: Rules | None = None,
        clock: Clock = now,
        ids: Ids = new_id,
        personal: Store | None = None,
        embedder: Embedder | None = None,
        llm: LLM | None = None,
        sources: Iterable[Source] = (),
        profile_dirs: Sequence[Path] = (),
        profile: str | None = None,
        budget: int | None = None,
        root: Path | None = None,
        workspace: Workspace | None = None,
        folder: PlainFolder | None = None,
        domains: Mapping[str, Sequence[str]] | None = None,
        thresholds: Thresholds = DEFAULT_THRESHOLDS,
        debug: bool = False,
        cache_seconds: float = 0.0,
    ) -> None:
        data = ScopedStore(
            store=store,
            scope=scope,
            rules=rules or Rules(),
            clock=clock,
            ids=ids,
            personal=personal,
            embedder=embedder,
        )
        debug = debug or os.environ.get(DEBUG_VARIABLE, "").lower() in ("1", "true", "yes", "on")
        pipeline = Pipeline(
            sources=by_name((*BUILTIN_SOURCES, *sources)),
            profile_dirs=tuple(profile_dirs),
            domains=merge_domains(domains or {}),
            thresholds=thresholds,
            record_counter=data.rules.counter,
            root=root,
            count_pools=debug,
        )
        defaults = Defaults(profile, budget, workspace is not None)
        self._shared = SharedParts(pipeline, defaults, Cache(cache_seconds), llm, debug, SessionMonitor())
        self._is_view = False
        self._compose(data, thresholds, root, workspace, folder)

    def _compose(
        self,
        data: ScopedStore,
        thresholds: Thresholds,
        root: Path | None,
        workspace: Workspace | None,
        folder: PlainFolder | None,
        receipts: Receipts | None = None,
    ) -> None:
        """Build the parts of this engine for one scope."""
        data = data.with_scope(with_task_id(data, data.scope))
        self._data = data
        self._workspace = workspace
        self._folder = folder
        self._memory = Memory(data, thresholds=thresholds, scrub=codec.scrub)
        if receipts is None:
            sources = self._shared.pipeline.sources
            self.receipts = Receipts(self._memory, sources=sources, root=root, workspace=workspace, folder=folder)
        else:
            self.receipts = receipts.for_scope(self._memory, root, workspace, folder)
        self._root = root

    # The namespaces are imported on first use. A process that computes one context needs none of them, and importing them
    # takes a tenth of its start.

    @cached_property
    def tasks(self) -> Tasks:
        """Tasks, claims, handoffs and the stack of goals."""
        from foveate.engine.tasks import Tasks

        return Tasks(self._data, self.context)

    @cached_property
    def code(self) -> Code:
        """Search, map, documentation and index of the project's code."""
        from foveate.engine.code import Code

        return Code(self._workspace, self._root, self.context)

    @cached_property
    def inbox(self) -> Inbox:
        """Proposals and open questions, which wait for a person's decision."""
        from foveate.engine.inbox import Inbox

        return Inbox(self._memory)

    @cached_property
    def store(self) -> StoreTools:
        """The store as a whole: statistics, health, maintenance, export and backup."""
        from foveate.engine.store_tools import ProfileDefaults, StoreTools

        defaults = self._shared.defaults
        profile = ProfileDefaults(defaults.profile or DEFAULT_PROFILE, self._shared.pipeline.profile_dirs)
        return StoreTools(self._memory, self.receipts, profile, llm=self._shared.llm, names_projects=not self._is_view)

    @property
    def scope(self) -> Scope:
        """Project, user, agent, session and task of this engine."""
        return self._data.scope

    # --- contexts ----------------------------------------------------------------------------------------------

    @retry_interrupted
    def context(self, query: str | None = None, *, dry_run: bool = False, **options: Unpack[ContextOptions]) -> Context:
        """Compute the context for a query, a task or the current goal. A dry run stores no receipt."""
        context = self._compute(query, options)
        if not dry_run:
            self._record(context)
        return context

    async def acontext(self, query: str | None = None, **options: Unpack[ContextOptions]) -> Context:
        """Compute a context in a thread, for async callers."""
        import asyncio  # takes a tenth of the start-up of a command, and none needs it

        return await asyncio.to_thread(self.context, query, **options)

    @retry_interrupted
    def refresh(
        self,
        previous: ContextRef | None,
        query: str | None = None,
        *,
        event: str | None = None,
        acting: bool = False,
        conversation_tokens: int = 0,
        window: int | None = None,
        pressure: float = DEFAULT_PRESSURE,
        **options: Unpack[ContextOptions],
    ) -> Refresh:
        """Return a new context and the reason if the previous one no longer fits; otherwise a falsy value.

        Options that are not given are those of the previous context. `event` is stored first and always leads to a new
        context. `acting` says that the agent is about to act, `conversation_tokens` how much the conversation takes of the
        `window`, and `pressure` the share of the window that may be used.
        """
        if previous is None:
            if event is not None:
                self.add("event", event)
            context = self.context(query, **options)
            self.receipts.add_notes(context.id, Notes(turns=1), agent=context.run.request.scope.agent)
            return Refresh(context, "first", "there is no previous context", 0.0)
        before = self.receipts.get(previous)
        scope = before.narrow_scope(self.scope)
        merged: dict[str, Any] = {**before.request.options(), **options}
        asked = before.request.query if query is None and not before.request.is_forgotten else query
        if event is not None:
            self._memory.add("event", event, scope=scope)
        began = perf_counter()
        request, vector, warnings = self._resolve(asked, merged, scope)
        with self._data.reader(request.scope) as reader:
            plan = with_previous_topic(self._shared.pipeline.prepare(request, vector, reader), before)
            match = match_of(before, plan, previous, reader, self._similarity)
            left = budget_left(before, conversation_tokens, window, pressure)
            reason, detail = judge(before, plan, match, acting=acting)
            if event is not None:
                reason, detail = "event", "an event was stored"
            elif not reason and left is not None:
                reason, detail = "pressure", f"conversation and context take more than {pressure:.0%} of their window"
            if left is not None:
                plan = self._shared.pipeline.with_budget(plan, left)
            fresh = self._run_in_least_budget(plan, reader, warnings, began) if reason else None
        if fresh is None:
            self.receipts.add_notes(before.id, Notes(turns=1), agent=before.request.scope.agent)
            return Refresh(None, "", detail, match)
        self._record(fresh)
        notes = Notes(turns=1, refresh=RefreshNote(reason, before.id))
        self.receipts.add_notes(fresh.id, notes, agent=fresh.run.request.scope.agent)
        return Refresh(fresh, reason, detail, match)

    def _run_in_least_budget(self, plan: Plan, reader: Reader, warnings: Sequence[str], began: float) -> Context:
        """Run a plan in its budget, or in the smallest in which the `keep` slots fit (spec 004: censors and frame stay)."""
        try:
            return self._run_plan(plan, reader, warnings, began)
        except BudgetError as error:
            if plan.request.budget is None:
                raise
            larger = self._shared.pipeline.with_budget(plan, plan.request.budget + error.short)
            return self._run_plan(larger, reader, warnings, began)

    def _compute(self, query: str | None, options: Mapping[str, Any]) -> Context:
        """Compute a context from one request and one snapshot."""
        began = perf_counter()
        request, vector, warnings = self._resolve(query, options)
        with self._data.reader(request.scope) as reader:
            plan = self._shared.pipeline.prepare(request, vector, reader)
            return self._run_plan(plan, reader, warnings, began)

    def _resolve(
        self, query: str | None, options: Mapping[str, Any], scope: Scope | None = None
    ) -> tuple[Request, Vector | None, list[str]]:
        """Return the request of a call, the vector of its query, and a warning if there is none."""
        cache = self._shared.cache
        if cache.enabled:
            current, at = self._data.clock(), options.get("now")
            request_time = current if at is None else parse_time(at, "now", current=current)
            options = {**options, "now": cache.round_up(request_time)}
        request = resolve_request(query, options, self._data, self._shared.defaults, scope)
        return request, *self._query_vector(request)

    def _run_plan(self, plan: Plan, reader: Reader, warnings: Sequence[str], began: float) -> Context:
        pipeline, cache = self._shared.pipeline, self._shared.cache
        with open_snapshot(plan.request, plan.profile, pipeline.sources, self._workspace, self._folder) as code:
            if not cache.enabled or code.folder is not None:  # a folder without an index has no generation
                return context_of(pipeline.run(plan, reader, code, warnings, began))
            key = cache_key(plan, reader.revision, code.snapshot.generation if code.snapshot else "")
            context = cache.get(key)
            if context is None:
                context = context_of(pipeline.run(plan, reader, code, warnings, began))
                cache.put(key, plan.request.now, context)
            return context

    def _record(self, context: Context) -> None:
        self.receipts.record(context.run)
        if self._shared.debug:
            print(context.receipt.debug(), file=sys.stderr)

    def _query_vector(self, request: Request) -> tuple[Vector | None, list[str]]:
        if self._data.embedder is None:
            return None, []
        from foveate.text.embed import query_or_none  # loads an HTTP client

        vector, reason = query_or_none(self._data.embedder, request.query)
        if vector is None:
            return None, [f"No vector for the query ({reason}); searched by words alone."]
        return vector, []

    def _similarity(self, first: str, second: str) -> float:
        """Return how similar two texts are by the embedder, 0..1; 0 without one."""
        one, other = self._data.vectors([first, second])
        if one is None or other is None:
            return 0.0
        return min(1.0, max(0.0, sum(a * b for a, b in zip(one, other, strict=True))))

    def _scope_of(self, who: Mapping[str, Any]) -> Scope:
        """Return the scope of a call, with its task as an id."""
        scope = scope_of(self.scope, who)
        return with_task_id(self._data, scope) if who.get("task") is not None else scope

    # --- records -----------------------------------------------------------------------------------------------

    def add(
        self,
        kind: str,
        text: str,
        *,
        personal: bool = False,
        **fields: Unpack[NewRecordFields],
    ) -> AddResult:
        """Store one record; storing the same content again confirms it."""
        if kind == "task":
            raise InputError("Add tasks with engine.tasks.add(name, ...): a task has a name and a status.")
        values: dict[str, Any] = dict(fields)
        _refuse_unknown_fields(kind, values)
        scope = self._scope_of({name: values.pop(name) for name in WHO & values.keys()})
        added = self._memory.add(kind, text, personal=personal, scope=scope, **values)
        if not (kind_of(kind).is_rule or added.record.pinned):
            return added
        return replace(added, warnings=(*added.warnings, *self.store.rule_warnings(added.record.scope)))

    def remember(
        self, messages: str | Message | Sequence[Message], *, dry_run: bool = False, **who: Unpack[Who]
    ) -> RememberResult:
        """Store messages of a conversation as events of its session. A dry run stores nothing.

        A message with an `id`, or with a time (`at`), is stored once for each user and session, however often it is passed.
        Text in `<private>` marks and system messages are not stored. A plain text is a message of the user.
        """
        refuse_unknown(who, WHO, "remember")
        converted = convert_messages(messages, self._data.clock())
        return remember(self._data, converted, self._scope_of(who), dry_run=dry_run)

    def search(
        self,
        query: str,
        *,
        kinds: Sequence[str] = (),
        filters: Filters | None = None,
        limit: int = 10,
        **who: Unpack[Who],
    ) -> list[Hit]:
        """Find records by their words, best first."""
        check_text(query, "query")
        check_limit(limit)
        refuse_unknown(who, WHO, "search")
        hits = self._memory.search(query, kinds=kinds, filters=filters, limit=limit, scope=self._scope_of(who))
        return [replace(hit, record=self._memory.with_stage(hit.record)) for hit in hits]

    def records(
        self,
        *,
        kinds: Sequence[str] = (),
        filters: Filters | None = None,
        status: str | None = "active",
        limit: int | None = None,
        **who: Unpack[Who],
    ) -> Iterator[Record]:
        """Iterate over records, newest first."""
        refuse_text(kinds, "kinds")
        refuse_unknown(who, WHO, "records")
        if limit is not None:
            check_limit(limit)
        chosen = replace(filters or Filters(), kinds=tuple(kinds)) if kinds else filters
        scope = self._scope_of(who)
        return map(
            self._memory.with_stage, self._memory.list_records(filters=chosen, status=status, limit=limit, scope=scope)
        )

    def get(self, id: str, *, as_of: When | None = None) -> Record:
        """Return a record as it is, or as it was at a time."""
        return self._memory.with_stage(self._memory.get(id, as_of=as_of), as_of)

    def history(self, id: str) -> list[Change]:
        """List every version of a record with the operation that changed it."""
        return self._memory.history(id)

    def edit(
        self,
        id: str,
        *,
        text: str | None = None,
        status: Literal["active", "retired"] | None = None,
        result: str | None = None,
        expect_version: int | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record:
        """Change a record's text or fields; setting an outcome counts as a use."""
        edited = self._memory.edit(id, text=text, status=status, result=result, expect_version=expect_version, **fields)
        return self._memory.with_stage(edited)

    def undo(self, id: str) -> list[Record]:
        """Undo the last change to a record and its effects on other records."""
        return self._memory.undo(id)

    def forget(self, *ids: str) -> ForgetResult:
        """Delete records permanently, down to the bytes of the file."""
        refuse_lists(ids, "forget")
        self.receipts.flush()  # a receipt written later would contain the records again
        forgotten = self._memory.forget(ids)
        self._shared.cache.clear()
        return forgotten

    def link(self, source: str, name: str, target: str, *, weight: float = 1.0, create: bool = False) -> Link:
        """Link two records by id, or two entities by name. `create` adds entities that do not exist yet."""
        known = {} if create else self._memory.get_many([source, target])
        if len(known) == len({source, target}) and not all(record.kind == "entity" for record in known.values()):
            return self._memory.link(source, name, target, weight)
        return relate(self._memory, source, name, target, weight=weight, create=create)

    def expand(self, id: str, *, max_tokens: int | None = None) -> Message:
        """Return one item in full as a user message; it counts as a use. Code has ids like `code:PATH::NAME`."""
        text = self._full_text(id)
        if max_tokens is not None:
            from foveate.text.compress import compress

            text = compress(text, max_tokens, counter=self._data.rules.counter)
        return {"role": "user", "content": text}

    def _full_text(self, id: str) -> str:
        if id.startswith("file:") and self._folder is not None:
            from foveate.pipeline.sources.files import plain_file_record

            file = plain_file_record(id.removeprefix("file:"), self._folder.snapshot(), self.scope)
            if file is None:
                raise NotFound(f"No file {id.removeprefix('file:')!r} that may be shown.")
            return self._data.render(file)
        if id.startswith(CODE_ID_PREFIXES):
            from foveate.pipeline.sources.code import record_by_id  # loads the parser

            with self.code.workspace.snapshot() as snapshot:
                return self._data.render(record_by_id(id, snapshot, self.scope))
        source = self.receipts.external_source(id)
        if source is not None:
            return self._data.render(source.recall(id, self.scope, self._data.clock()))
        record = self.get(id)
        if record.data.get("archived"):  # archiving shortened the text; its history has the original
            before = [step.before for step in self.history(id) if step.verb == "archive" and step.before is not None]
            record = before[-1] if before else record
        self._memory.count_uses([id])
        return f"## {kind_of(record.kind).heading}\n{self._data.render(record)}"

    def check(self, action: str, *, dry_run: bool = False) -> list[CensorMatch]:
        """Return the censors and instructions that a planned action violates, blocks first; a dry run counts nothing."""
        return self._memory.check(action, dry_run=dry_run)

    # --- explaining and feedback -------------------------------------------------------------------------------

    def why(self, item: str | Item, context: ContextRef = LAST) -> Why:
        """Explain why an item is in a context or not. `item` is its id, or the item itself."""
        return self.receipts.why(item, context)

    def feedback(
        self,
        context: ContextRef | None = None,
        *,
        answer: str = "",
        useful: Sequence[str] = (),
        wrong: Sequence[str] = (),
        outdated: Sequence[str] = (),
        confirmed: Sequence[str] = (),
    ) -> Feedback:
        """Report how useful a context or single records were.

        `answer` is what the model said; the items that it used are found and counted. `wrong` on a censor reports a false
        alarm. Without a context, `useful` and `wrong` count for the records alone.
        """
        ids_by_mark: dict[Mark, Sequence[str]] = {"useful": useful, "wrong": wrong, "outdated": outdated}
        groups = (*ids_by_mark.items(), ("confirmed", confirmed))
        for name, ids in groups:
            refuse_text(ids, name)
        refuse_two_marks(dict(groups))
        marks = {id: mark for mark, ids in ids_by_mark.items() for id in ids}
        if not answer and not confirmed and not marks:
            raise InputError("The feedback is empty: pass answer, useful, wrong, outdated or confirmed.")
        false_alarms = self._censors(wrong) if context is None else []
        for id in false_alarms:
            del marks[id]
        self.receipts.check_marks(marks, context)  # before anything is stored
        result = self.receipts.record_answer(context or LAST, answer) if answer else Feedback("", {}, ())
        advice = self.receipts.mark(marks, context)
        for id in false_alarms:
            self._memory.report_false_alarm(id)
        for id in confirmed:
            self._memory.confirm(id)
        return replace(result, advice=advice)

    def _censors(self, ids: Sequence[str]) -> list[str]:
        """Return the ids that are those of censors."""
        records = self._memory.get_many(ids)
        return [id for id, record in records.items() if record.kind == "censor"]

    # --- scopes and closing ------------------------------------------------------------------------------------

    def scoped(self, *, project: str | None = None, **who: Unpack[Who]) -> Engine:
        """Return the same engine for another user, agent, session or task. Closing it does not close this one."""
        refuse_unknown(who, WHO, "scoped")
        scope = scope_of(self.scope, who)
        return self._view(replace(scope, project=project or scope.project), personal=True, code=True)

    def _view(self, scope: Scope, *, personal: bool, code: bool) -> Engine:
        same_project = scope.project == self.scope.project
        other = object.__new__(Engine)
        root = self._root if same_project else None
        workspace, folder = (self._workspace, self._folder) if same_project and code else (None, None)
        other._shared = replace(
            self._shared,
            pipeline=replace(self._shared.pipeline, root=root),
            defaults=replace(self._shared.defaults, has_code=workspace is not None),
        )
        other._is_view = True
        data = replace(self._data, scope=scope, personal=self._data.personal if personal else None)
        other._compose(data, self._memory.thresholds, root, workspace, folder, self.receipts)
        if self._on_view is not None:
            self._on_view(other)
        return other

    def close(self) -> None:
        """Write pending receipts and close the store. Closing a scoped engine only writes its receipts."""
        if self._is_view:
            self.receipts.flush()
            return
        self.receipts.close()
        if self._workspace is not None:
            self._workspace.close()
        self._data.store.close()
        if self._data.personal is not None:
            self._data.personal.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def view_of(engine: Engine, scope: Scope, *, personal: bool = True, code: bool = True) -> Engine:
    """Return the same engine for exactly this scope. Without `personal`, the personal store is not read."""
    return engine._view(scope, personal=personal, code=code)


def without_code(engine: Engine) -> Engine:
    """Return the same engine for contexts that hold nothing of the project's code."""
    return engine if engine._workspace is None else engine._view(engine.scope, personal=True, code=False)


def observe_views(engine: Engine, action: Callable[[Engine], object] | None) -> None:
    """Do something with each later view of an engine, and with their views."""
    engine._on_view = action


def note_session(engine: Engine, scope: Scope) -> None:
    """Count a session that an adapter or a service sees, so that a memory shared by several people is reported."""
    engine._shared.sessions.add(scope)


def _refuse_unknown_fields(kind: str, values: Mapping[str, Any]) -> None:
    """Raise if a field is unknown; a field of the kind belongs in `data`."""
    fields = kind_of(kind).fields
    misplaced = {name: value for name, value in values.items() if name in fields and name not in NEW_RECORD_FIELDS}
    if misplaced:
        raise InputError(f"Pass fields of a {kind} in data: add({kind!r}, ..., data={misplaced!r}).")
    refuse_unknown(values, NEW_RECORD_FIELDS, "add")
