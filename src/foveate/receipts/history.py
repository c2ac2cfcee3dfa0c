"""`engine.receipts`: list past contexts, explain, compare and replay them, and record how useful they were.

Everything is read from receipts; no context is computed. Code and records of other memories are not in the store. They are
read again from their files and services, and count as missing if they have changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.code.records import CODE_ID_PREFIXES
from foveate.errors import InputError, NotFound, SourceError
from foveate.memory.memory import Memory
from foveate.options import Extra, check_limit
from foveate.pipeline.request import extra_records
from foveate.pipeline.run import Run
from foveate.pipeline.signals import extract_signals
from foveate.pipeline.sources import Source, SourceContext
from foveate.pipeline.sources.code_snapshot import open_snapshot
from foveate.pipeline.sources.gather import candidates_of, requests_of
from foveate.pipeline.sources.parts import stored_id
from foveate.receipts.context import Context
from foveate.receipts.parts import Notes
from foveate.receipts.receipt import Receipt
from foveate.receipts.summary import ReceiptSummary
from foveate.receipts.writer import ReceiptWriter
from foveate.records.kinds import kind_of
from foveate.store.retry import retry_interrupted
from foveate.tasks.claims import claimed_tasks
from foveate.types import LAST, Filters, Item, Record

if TYPE_CHECKING:
    from foveate.code.plain_folder import PlainFolder
    from foveate.code.snapshot import Workspace
    from foveate.receipts.diff import Diff
    from foveate.receipts.feedback import Feedback, Mark
    from foveate.receipts.metrics import ContextStats, DayMetrics, Metric
    from foveate.receipts.replay import Replay
    from foveate.receipts.timeline import SessionSummary, Timeline
    from foveate.receipts.validation import Validation
    from foveate.receipts.why import Why

# A process that computes one context, such as a command, needs none of the modules that explain past ones. Their dataclasses
# take a twentieth of its start, so methods import them.

ContextRef = str | Context | Receipt
"""A past context: its id, `"last"`, the context itself, or its receipt."""


class Receipts:
    """The receipts of past contexts."""

    def __init__(
        self,
        memory: Memory,
        *,
        sources: Mapping[str, Source],
        root: Path | None = None,
        workspace: Workspace | None = None,
        folder: PlainFolder | None = None,
        writer: ReceiptWriter | None = None,
    ) -> None:
        self._memory = memory
        self._data = memory.data
        self._sources = sources
        self._root = root
        self._workspace = workspace
        self._folder = folder
        self._writer = writer or ReceiptWriter(self._data.store, self._data.project_reader)

    def for_scope(
        self, memory: Memory, root: Path | None, workspace: Workspace | None, folder: PlainFolder | None
    ) -> Receipts:
        """Return the same receipts as the scope of `memory` sees them."""
        return Receipts(
            memory,
            sources=self._sources,
            root=root,
            workspace=workspace,
            folder=folder,
            writer=self._writer.for_reader(memory.data.project_reader),
        )

    # --- reading -----------------------------------------------------------------------------------------------

    @retry_interrupted
    def get(self, context: ContextRef = LAST) -> Receipt:
        """Return the receipt of a context; `"last"` is the latest of this scope."""
        if isinstance(context, Receipt):
            return context
        if isinstance(context, Context):
            # A caller who has the context may see its receipt. The receipt of a dry run is not stored.
            return self._writer.find(context.id, any_scope=True) or context.receipt
        if context == LAST:
            return self._writer.latest()
        if not isinstance(context, str):
            raise InputError(f"A context is named by its id, by 'last' or by itself, got {context!r:.80}.")
        receipt = self._writer.find(context) or self._find_claimed(context)
        if receipt is None:
            raise NotFound(
                f"No receipt {context!r} in this scope. Receipts expire; `foveate log` lists those that are stored."
            )
        return receipt

    @retry_interrupted
    def list(
        self,
        *,
        session: str | None = None,
        agent: str | None = None,
        limit: int = 50,
        after: tuple[int, str] | None = None,
    ) -> Sequence[ReceiptSummary]:
        """List past contexts, newest first. `after` is (created, id) of the last one of the previous page."""
        check_limit(limit)
        name = None if session is None else self._data.clean_name(session)
        return self._writer_of(agent).summaries(limit, after, name)

    @retry_interrupted
    def agents(self) -> Sequence[str]:
        """Return the names of the agents that contexts were computed for."""
        self.flush()
        with self._data.project_reader() as reader:
            return reader.receipt_agents()

    def _writer_of(self, agent: str | None) -> ReceiptWriter:
        """Return the receipts as this scope sees them for an agent."""
        if agent is None or agent == self._data.scope.agent:
            return self._writer
        data = self._data.with_scope(replace(self._data.scope, agent=agent))
        return self._writer.for_reader(data.project_reader)

    def _find_claimed(self, context: str) -> Receipt | None:
        """Return the receipt of a context that an agent got with its claim on a task.

        Whoever assigns tasks, from a scope without an agent, may read what the agents started with. Other receipts of an
        agent are its own.
        """
        if self._data.scope.agent is not None:
            return None
        with self._data.project_reader() as reader:
            claimed = claimed_tasks(reader)
        for agent, tasks in claimed.items():
            receipt = self._writer_of(agent).find(context)
            if receipt is not None and receipt.request.task in tasks:
                return receipt
        return None

    def _writers_of_agents(self) -> Iterator[ReceiptWriter]:
        """Yield the receipts of each agent, if the scope names none. They are counted; their texts are the agents' own."""
        if self._data.scope.agent is None:
            yield from map(self._writer_of, self.agents())

    @retry_interrupted
    def sessions(self, *, limit: int = 50) -> Sequence[SessionSummary]:
        """List the sessions that contexts were computed in, the one with the latest context first."""
        from foveate.receipts.timeline import SessionSummary

        check_limit(limit)
        self.flush()
        with self._data.project_reader() as reader:
            rows = reader.receipt_sessions(limit)
        return [SessionSummary(name, number, last) for name, number, last in rows]

    @retry_interrupted
    def timeline(self, session: str, *, limit: int = 200) -> Timeline:
        """Return the latest turns of a session, oldest first, each compared with the one before, and its compactions."""
        from foveate.receipts.timeline import COMPACTION_EVENT_TYPE, timeline_of

        check_limit(limit)
        session = self._data.clean_name(session)
        rows = self._writer.summaries(limit + 1, session=session)  # one more, to compare the first turn with
        with self._data.project_reader() as reader:
            shown_ids = reader.items_shown_by([row.id for row in rows])
            is_compaction = Filters(event_types=(COMPACTION_EVENT_TYPE,))
            compactions = reader.recent(["event"], limit, is_compaction, archived=True, session=session)
        if not rows and not compactions:
            raise NotFound(f"No context of session {session!r}: none was computed, or its receipts have expired.")
        return timeline_of(session, rows, shown_ids, compactions, limit)

    # --- explaining --------------------------------------------------------------------------------------------

    @retry_interrupted
    def why(self, item: str | Item, context: ContextRef = LAST) -> Why:
        """Explain why an item is in a context or not, even if no source returned it.

        `item` is its id, or the item itself.
        """
        from foveate.receipts.why import why_candidate, why_not_considered

        if isinstance(item, Item):
            item = item.id
        if not isinstance(item, str):
            raise InputError(f"item must be the id of an item, or an item of a context, got {item!r:.80}.")
        item, receipt = self._full_id(item), self.get(context)
        entry = receipt.candidate(item)
        if entry is not None:
            return why_candidate(receipt, entry)
        if item.startswith(CODE_ID_PREFIXES) and self._workspace is not None:
            from foveate.receipts.why_code import why_code_not_shown  # loads the code index

            with self._workspace.snapshot() as snapshot:
                return why_code_not_shown(receipt, item, snapshot)
        with self._data.reader(receipt.narrow_scope(self._data.scope)) as reader:
            return why_not_considered(receipt, item, reader, self._sources)

    def validate(self, context: ContextRef = LAST) -> Validation:
        """Check a context against its budget, and suggest what could be better (001)."""
        from foveate.receipts.validation import validate

        receipt = self.get(context)
        return validate(receipt, self.count_not_considered(receipt))

    @retry_interrupted
    def count_not_considered(self, context: ContextRef = LAST) -> int:
        """Return how many records in the scope of a context were never candidates, so that nothing says why.

        They are counted when they are asked for: among 100,000 records that takes 0.1 s.
        """
        receipt = self.get(context)
        ids = {stored_id(entry.id) for entry in receipt.candidates if self._is_own_record(entry.id)}
        with self._data.reader(receipt.narrow_scope(self._data.scope)) as reader:
            considered = reader.get(sorted(ids)).values()
            counted = [r for r in considered if r.created <= receipt.created and r.status not in ("retired", "archived")]
            others = reader.count_created(receipt.created) - sum(not kind_of(r.kind).is_internal for r in counted)
        return max(0, others - receipt.forgotten)

    @retry_interrupted
    def diff(self, before: ContextRef, after: ContextRef = LAST) -> Diff:
        """Compare two contexts: which items changed, and how much of their beginning they share.

        `Diff.unread` names a context whose text cannot be computed again, such as one with extra texts.
        """
        from foveate.receipts.diff import diff_of_replays

        return diff_of_replays(self.replay(before), self.replay(after))

    @retry_interrupted
    def replay(self, context: ContextRef = LAST, *, extra: Extra = ()) -> Replay:
        """Compute a past context again from its receipt. Extra texts are not stored: pass them again."""
        from foveate.receipts.replay import replay

        receipt = self.get(context)
        extra_texts = extra_records(extra, receipt.request.scope, self._data.clock(), self._data.rules)
        external = self._external_records(receipt)
        with self._data.reader(receipt.narrow_scope(self._data.scope)) as reader:
            return replay(receipt, reader, extra_texts, external, counter=self._data.store.counter)

    # --- notes on contexts -------------------------------------------------------------------------------------

    def record(self, run: Run) -> None:
        """Write the receipt of a context soon, together with others."""
        self._writer.add(run)

    def add_notes(self, context: str, notes: Notes, *, agent: str | None = None) -> None:
        """Add notes to the receipt of a context of an agent, such as the items that an answer used."""
        self._writer_of(agent).add_notes(context, notes)

    @retry_interrupted
    def record_answer(self, context: ContextRef, answer: str) -> Feedback:
        """Return the items of a context that an answer used. Each counts once as a use of its record."""
        from foveate.receipts.feedback import find_used_items

        receipt = self.get(context)
        external = {} if isinstance(context, Context) else self._external_records(receipt)
        with self._data.reader(receipt.narrow_scope(self._data.scope)) as reader:
            result = find_used_items(receipt, context, answer, reader, external)
        counted = receipt.notes.used or ()
        self.add_notes(receipt.id, Notes(used=tuple(result.used)), agent=receipt.request.scope.agent)
        self._memory.count_uses([id for id in result.used if self._is_own_record(id) and id not in counted])
        return result

    def check_marks(self, marks: Mapping[str, Mark], context: ContextRef | None = None) -> Receipt | None:
        """Raise if a record cannot be marked. Return the receipt of the context, if one is named."""
        from foveate.receipts.feedback import check_mark

        receipt = None if context is None else self.get(context)
        for id, mark in marks.items():
            if self.external_source(id) is not None:
                raise InputError(f"{id!r} belongs to another memory; only records of this store can be marked.")
            check_mark(id, mark, receipt)
            if receipt is None:
                self._memory.get(id)
        return receipt

    def mark(self, marks: Mapping[str, Mark], context: ContextRef | None = None) -> dict[str, str]:
        """Store verdicts on records, by id, as items of a context or by themselves. Return the next step for each.

        All ids are checked before one is marked. Repeating a verdict on an item of a context changes nothing.
        """
        from foveate.receipts.feedback import advice_on

        receipt = self.check_marks(marks, context)
        known = {} if receipt is None else receipt.notes.marks or {}
        for id, mark in marks.items():
            if known.get(id) == mark:
                continue
            if mark == "useful":
                self._memory.count_uses([id], successful=True)
            elif mark == "wrong":
                self._memory.edit(id, outcome="failure")
        if receipt is not None and marks:
            self.add_notes(receipt.id, Notes(marks=marks), agent=receipt.request.scope.agent)
        return {id: advice for id, mark in marks.items() if (advice := advice_on(id, mark))}

    # --- figures -----------------------------------------------------------------------------------------------

    @retry_interrupted
    def metrics(self) -> dict[str, Metric]:
        """Return 004's metrics over the latest contexts, each with its target."""
        from foveate.receipts import metrics

        now = self._data.clock()
        summaries = self._latest_summaries(metrics.MAX_CONTEXTS)
        with self._data.project_reader() as reader:
            return metrics.measure(summaries, reader.growth(now - metrics.GROWTH_DAYS * metrics.DAY_MS), now)

    @retry_interrupted
    def metrics_by_day(self, days: int) -> tuple[tuple[DayMetrics, ...], bool]:
        """Return the figures of the last days, oldest first, and whether the oldest are missing.

        They are missing if there are more contexts than are read.
        """
        from foveate.receipts import metrics

        since = metrics.first_day(self._data.clock(), days)
        summaries, cut = self._writer.summaries_since(since, metrics.MAX_CONTEXTS_BY_DAY)
        for writer in self._writers_of_agents():
            others, others_cut = writer.summaries_since(since, metrics.MAX_CONTEXTS_BY_DAY)
            summaries, cut = iter(_newest_first([*summaries, *others])), cut or others_cut
        with self._data.project_reader() as reader:
            return metrics.by_day(summaries, reader.growth_by_day(since), cut=cut), cut

    @retry_interrupted
    def context_stats(self) -> ContextStats:
        """Return 001's statistics over the latest contexts; without an agent in the scope, over those of every agent."""
        from foveate.receipts import metrics

        return metrics.context_stats(self._latest_summaries(metrics.MAX_CONTEXTS))

    def _latest_summaries(self, limit: int) -> Sequence[ReceiptSummary]:
        """Return summaries, newest first; without an agent in the scope, of the contexts of every agent."""
        own = self._writer.summaries(limit)
        others = [summary for writer in self._writers_of_agents() for summary in writer.summaries(limit)]
        return _newest_first([*own, *others])[:limit] if others else own

    # --- life of the object ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write all receipts and notes that wait."""
        self._writer.flush()

    def close(self) -> None:
        """Write all receipts and notes that wait. The end of the process no longer does so."""
        self._writer.close()

    # --- items that are not in the store: code, and records of other memories ----------------------------------

    def external_source(self, id: str) -> Source | None:
        """Return the source that owns the record of an id like `mem0:ID`; None for ids of this store."""
        name, colon, _ = id.partition(":")
        source = self._sources.get(name) if colon else None
        return source if source is not None and source.can_recall else None

    def _is_own_record(self, id: str) -> bool:
        return not id.startswith(CODE_ID_PREFIXES) and self.external_source(id) is None

    def _full_id(self, id: str) -> str:
        """Return the id of a piece of code as receipts have it, from any shorter form."""
        if not id.startswith(CODE_ID_PREFIXES) or self._workspace is None:
            return id
        from foveate.pipeline.sources.code import canonical_id

        with self._workspace.snapshot() as snapshot:
            return canonical_id(id, snapshot)

    def _external_records(self, receipt: Receipt) -> dict[tuple[str, str], Record]:
        """Return the code and the records of other memories that a context considered, as they are now."""
        records, failed = self._code_records(receipt), set()
        for entry in receipt.candidates:
            source = self.external_source(entry.id)
            if source is None or source in failed:
                continue
            try:
                records[entry.source, entry.id] = source.recall(entry.id, self._data.scope, self._data.clock())
            except NotFound:  # deleted in the other memory, so the replay lacks it
                continue
            except SourceError:  # it does not answer; asking for each further record would wait as long again
                failed.add(source)
        return records

    def _code_records(self, receipt: Receipt) -> dict[tuple[str, str], Record]:
        has_files = self._workspace is not None or self._folder is not None
        if not has_files or not any(entry.id.startswith(CODE_ID_PREFIXES) for entry in receipt.candidates):
            return {}
        profile, scope, task_id = receipt.profile, receipt.narrow_scope(self._data.scope), receipt.request.task
        requests = requests_of(profile, self._sources)
        with self._data.reader(scope) as reader:
            task = reader.get([task_id]).get(task_id) if task_id else None
            request = receipt.request.as_request(scope, task)
            signals = extract_signals(request, reader.entities_by_name)
            readers = [(self._sources[name], group) for name, group in requests.items() if self._sources[name].reads_code]
            with open_snapshot(request, profile, self._sources, self._workspace, self._folder) as code:
                context = SourceContext(request, signals, profile, reader, self._root, code.snapshot, folder=code.folder)
                found = [each for source, group in readers for each in candidates_of(source, group, context)]
        return {(candidate.source, candidate.record.id): candidate.record for candidate in found}


def _newest_first(summaries: Iterable[ReceiptSummary]) -> Sequence[ReceiptSummary]:
    """Return each summary once, newest first. Contexts without an agent are in the list of every agent."""
    by_id = {summary.id: summary for summary in summaries}
    return sorted(by_id.values(), key=lambda summary: (summary.created, summary.id), reverse=True)
