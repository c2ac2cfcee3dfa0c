"""Past contexts: which were computed, what was in them and why, and how useful they were.

It reads receipts and computes no context. Code and records of other memories are in no store: they are read again, and are
missing if they have changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.code.model import CODE_ID_PREFIXES
from foveate.errors import InputError, NotFound, SourceError
from foveate.memory.memory import Memory
from foveate.options import Extra
from foveate.pipeline.request import extra_records
from foveate.pipeline.run import Run
from foveate.pipeline.signals import extract
from foveate.pipeline.sources import Source, SourceContext
from foveate.pipeline.sources.gather import candidates_of, open_snapshot, requests_of
from foveate.receipts import metrics
from foveate.receipts.context import Context
from foveate.receipts.diff import Diff, diff_of_replays
from foveate.receipts.metrics import ContextStats, DayMetrics, Metric
from foveate.receipts.parts import Notes
from foveate.receipts.receipt import Receipt
from foveate.receipts.replay import Replay, replay
from foveate.receipts.summary import ReceiptSummary
from foveate.receipts.timeline import COMPACTION_EVENT_TYPE, SessionSummary, Timeline, timeline_of
from foveate.receipts.validation import Validation, validate
from foveate.receipts.why import Why, why_candidate, why_not_considered
from foveate.receipts.writer import ReceiptWriter
from foveate.records import fence
from foveate.records.kinds import kind_of
from foveate.store.retry import retry_interrupted
from foveate.types import Filters, Level, Record

if TYPE_CHECKING:
    from foveate.code.snapshot import Workspace
    from foveate.receipts.feedback import Feedback

ContextRef = str | Context | Receipt
"""A past context: its id, `"last"`, the context itself, or its receipt."""

LAST = "last"


class Receipts:
    """The receipts of past contexts."""

    def __init__(
        self,
        memory: Memory,
        *,
        sources: Mapping[str, Source],
        root: Path | None = None,
        workspace: Workspace | None = None,
        writer: ReceiptWriter | None = None,
    ) -> None:
        self._memory = memory
        self._data = memory.data
        self._sources = sources
        self._root = root
        self._workspace = workspace
        self._writer = writer or ReceiptWriter(self._data.store, self._data.project_reader)

    def within(self, memory: Memory, root: Path | None, workspace: Workspace | None) -> Receipts:
        """Return the same receipts as another scope sees them."""
        return Receipts(
            memory,
            sources=self._sources,
            root=root,
            workspace=workspace,
            writer=self._writer.seen_by(memory.data.project_reader),
        )

    # --- reading -----------------------------------------------------------------------------------------------

    @retry_interrupted
    def get(self, context: ContextRef | None = LAST) -> Receipt:
        """Return the receipt of a context; `"last"` is the latest of this scope."""
        if isinstance(context, Receipt):
            return context
        if isinstance(context, Context) and not self._writer.has(context.id):
            return context.receipt  # a dry run, or a context whose receipt was dropped
        return self._writer.receipt(None if context is None or context == LAST else context)

    @retry_interrupted
    def list(
        self,
        *,
        session: str | None = None,
        agent: str | None = None,
        limit: int = 50,
        after: tuple[int, str] | None = None,
    ) -> Sequence[ReceiptSummary]:
        """List past contexts, newest first. `after` is (created, id) of the last line of the previous page."""
        if agent is not None:
            data = self._data.with_scope(replace(self._data.scope, agent=agent))
            return self._writer.seen_by(data.project_reader).summaries(limit, after, session)
        return self._writer.summaries(limit, after, session)

    @retry_interrupted
    def agents(self) -> Sequence[str]:
        """Return the agents that contexts were computed for."""
        self.flush()
        with self._data.store.read(self._data.scope) as reader:
            return reader.receipt_agents()

    @retry_interrupted
    def sessions(self, *, limit: int = 50) -> Sequence[SessionSummary]:
        """List the sessions that contexts were computed in, newest first, with their number and last time."""
        self.flush()
        with self._data.store.read(self._data.scope) as reader:
            rows = reader.receipt_sessions(limit)
        return [SessionSummary(name, number, last) for name, number, last in rows]

    @retry_interrupted
    def timeline(self, session: str, *, limit: int = 200) -> Timeline:
        """Return the latest turns of a session, oldest first, each compared with the one before, and its compactions."""
        lines = self._writer.summaries(limit + 1, session=session)  # one more, to compare the first turn with
        with self._data.project_reader() as reader:
            shown = reader.items_shown_by([line.id for line in lines])
            compacted = Filters(event_types=(COMPACTION_EVENT_TYPE,))
            compactions = reader.recent(["event"], limit, compacted, archived=True, session=session)
        if not lines and not compactions:
            raise NotFound(f"There is no context of session {session!r}: none was computed, or its receipts have expired.")
        return timeline_of(session, lines, shown, compactions, limit)

    # --- explaining --------------------------------------------------------------------------------------------

    @retry_interrupted
    def why(self, item: str, context: ContextRef | None = LAST) -> Why:
        """Explain why an item is in a context or not, even if it was no candidate at all."""
        item, receipt = self._full_id(item), self.get(context)
        entry = receipt.candidate(item)
        if entry is not None:
            return why_candidate(receipt, entry)
        if item.startswith(CODE_ID_PREFIXES) and self._workspace is not None:
            from foveate.receipts.why_code import why_code_not_shown  # loads the code index

            with self._workspace.snapshot() as snapshot:
                return why_code_not_shown(receipt, item, snapshot)
        others = [name for name in self._sources if self.keeper_of(f"{name}:")]
        with self._data.reader(receipt.narrow_scope(self._data.scope)) as reader:
            return why_not_considered(receipt, item, reader, others)

    def validate(self, context: ContextRef | None = LAST) -> Validation:
        """Validate a context (001): is it within its budget, where did the tokens go, what could be better."""
        return validate(self.get(context))

    @retry_interrupted
    def diff(self, before: ContextRef, after: ContextRef | None = LAST) -> Diff:
        """Compare two contexts: which items changed, and how much of their beginning they share.

        `Diff.unread` names a context whose text cannot be computed again, such as one with extra texts.
        """
        return diff_of_replays(self.replay(before), self.replay(after))

    @retry_interrupted
    def replay(self, context: ContextRef | None = LAST, *, extra: Extra = ()) -> Replay:
        """Compute a past context again from its receipt. Extra texts are not stored: pass them again."""
        receipt = self.get(context)
        given = extra_records(extra, receipt.request.scope, self._data.clock(), self._data.rules)
        external = self._external_records(receipt)
        with self._data.reader(receipt.narrow_scope(self._data.scope)) as reader:
            return replay(receipt, reader, given, external, counter=getattr(self._data.store, "counter", None))

    @retry_interrupted
    def render(self, record: Record, level: Level = "full", *, session: str | None = None) -> str:
        """Return one record as a model may read it outside a context. Untrusted text is quoted."""
        with self._data.store.read(self._data.scope) as reader:
            tag = fence.tag_of(reader.secret, session or self._data.scope.session)
        return fence.render_fenced([(record, kind_of(record.kind).render(record, level))], tag)

    # --- results -----------------------------------------------------------------------------------------------

    def record(self, run: Run) -> None:
        """Remember a computed context; its receipt is written later, with others."""
        self._writer.remember(run)

    def add_notes(self, context: str, notes: Notes) -> None:
        """Add to a receipt what became of its context."""
        self._writer.add_notes(context, notes)

    @retry_interrupted
    def record_answer(self, context: ContextRef, answer: str) -> Feedback:
        """Return the items of a context that an answer used. Each counts once as a use of its record."""
        from foveate.receipts.feedback import feedback

        receipt = self.get(context)
        external = {} if isinstance(context, Context) else self._external_records(receipt)
        with self._data.reader(receipt.narrow_scope(self._data.scope)) as reader:
            result = feedback(receipt, context, answer, reader, external)
        counted = set(receipt.notes.used or ())
        self.add_notes(receipt.id, Notes(used=tuple(result.used)))
        records = [id for id in result.used if not id.startswith(CODE_ID_PREFIXES) and self.keeper_of(id) is None]
        self._memory.count_uses([id for id in records if id not in counted])
        return result

    def mark(self, context: ContextRef, id: str, mark: str) -> str:
        """Record a person's verdict on an item of a context, and return what to do next."""
        from foveate.receipts.feedback import check_mark

        receipt = self.get(context)
        if self.keeper_of(id) is not None:
            raise InputError(f"{id!r} belongs to another memory; only records of this store can be marked.")
        advice = check_mark(receipt, id, mark)
        if (receipt.notes.marks or {}).get(id) != mark:
            if mark == "useful":
                self._memory.count_uses([id], successful=True)
            elif mark == "wrong":
                self._memory.edit(id, outcome="failure")
        self.add_notes(receipt.id, Notes(marks={id: mark}))
        return advice

    def mark_record(self, id: str, mark: str) -> str:
        """Record a verdict on a record outside any context, and return what to do next."""
        from foveate.receipts.feedback import ADVICE

        if mark == "useful":
            self._memory.count_uses([self._memory.get(id).id], successful=True)
        elif mark == "wrong":
            self._memory.edit(id, outcome="failure")
        return ADVICE[mark].format(id=id)

    # --- figures -----------------------------------------------------------------------------------------------

    @retry_interrupted
    def metrics(self) -> dict[str, Metric]:
        """Return 004's metrics over the latest contexts, each with its target."""
        now = self._data.clock()
        lines = self._writer.summaries(metrics.LATEST)
        with self._data.store.read(self._data.scope) as reader:
            return metrics.measure(lines, reader.growth(now - metrics.GROWTH_DAYS * metrics.DAY_MS), now)

    @retry_interrupted
    def metrics_by_day(self, days: int) -> tuple[tuple[DayMetrics, ...], bool]:
        """Return the figures of the last days, oldest first, and whether the oldest are missing.

        They are missing if there are more contexts than are read.
        """
        since = metrics.first_day(self._data.clock(), days)
        lines, cut = self._writer.summaries_since(since, metrics.MAX_LINES_BY_DAY)
        with self._data.store.read(self._data.scope) as reader:
            return metrics.by_day(lines, reader.growth_by_day(since), cut=cut), cut

    @retry_interrupted
    def context_stats(self) -> ContextStats:
        """Return 001's statistics over the latest contexts; without an agent in the scope, over those of every agent."""
        agents = () if self._data.scope.agent is not None else self.agents()
        lines = {line.id: line for agent in (None, *agents) for line in self.list(agent=agent, limit=metrics.LATEST)}
        latest = sorted(lines.values(), key=lambda line: (-line.created, line.id))
        return metrics.context_stats(latest[: metrics.LATEST])

    # --- life of the object ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write the receipts that are waiting."""
        self._writer.save()

    def close(self) -> None:
        """Write the receipts that are waiting, and stop waiting for the end of the process."""
        self._writer.close()

    # --- what no store holds: code, and records of other memories ------------------------------------------------

    def keeper_of(self, id: str) -> Source | None:
        """Return the source that keeps the record of an id like `mem0:ID`, or None if it is ours."""
        name, colon, _ = id.partition(":")
        source = self._sources.get(name) if colon else None
        return source if source is not None and source.can_recall else None

    def _full_id(self, id: str) -> str:
        """Return the id of a piece of code as receipts have it, from any shorter form."""
        if not id.startswith(CODE_ID_PREFIXES) or self._workspace is None:
            return id
        from foveate.pipeline.sources.code import canonical

        with self._workspace.snapshot() as snapshot:
            return canonical(id, snapshot)

    def _external_records(self, receipt: Receipt) -> dict[tuple[str, str], Record]:
        """Return the code and the records of other memories that a past context considered, as they are now."""
        found, failed = self._code_records(receipt), set()
        for entry in receipt.candidates:
            keeper = self.keeper_of(entry.id)
            if keeper is None or keeper in failed:
                continue
            try:
                found[entry.source, entry.id] = keeper.recall(entry.id, self._data.scope, self._data.clock())
            except NotFound:  # deleted there: it is missing here
                continue
            except SourceError:  # do not wait for the same memory twice
                failed.add(keeper)
        return found

    def _code_records(self, receipt: Receipt) -> dict[tuple[str, str], Record]:
        if self._workspace is None or not any(entry.id.startswith(CODE_ID_PREFIXES) for entry in receipt.candidates):
            return {}
        profile, scope, task_id = receipt.profile, receipt.narrow_scope(self._data.scope), receipt.request.task
        requests = requests_of(profile, self._sources)
        with open_snapshot(profile, self._sources, self._workspace) as (code, _), self._data.reader(scope) as reader:
            task = reader.get([task_id]).get(task_id) if task_id else None
            request = receipt.request.as_request(scope, task)
            context = SourceContext(request, extract(request, reader.entities_by_name), profile, reader, self._root, code)
            sources = [(self._sources[name], group) for name, group in requests.items() if self._sources[name].reads_code]
            found = [each for source, group in sources for each in candidates_of(source, group, context)]
        return {(candidate.source, candidate.record.id): candidate.record for candidate in found}
