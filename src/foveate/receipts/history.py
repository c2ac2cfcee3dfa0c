"""The past: which contexts were computed, what was in them and why, and what became of them.

Comes in: a context as its id, itself or its receipt; without one, the latest. Goes out: what its receipt tells. No context
is computed here. What one showed of the code and of other memories is in no store: it is asked for again, and is missing
where it no longer reads as it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveate.clock import iso
from foveate.code.derived import NO_CODE, PREFIXES
from foveate.errors import InputError, NotFound, SourceError
from foveate.memory.lifecycle import Living
from foveate.pipeline.assembly import Context
from foveate.pipeline.request import given_records
from foveate.pipeline.signals import extract
from foveate.pipeline.sources import SHIPPED, Around, Source
from foveate.pipeline.sources.gather import asks_of, open_snapshot, reads_code
from foveate.receipts import receipt as receipts
from foveate.receipts.prompt import Prompt
from foveate.receipts.receipt import Receipt, scope_within
from foveate.receipts.replay import Replay, changes, replay
from foveate.receipts.validation import validate
from foveate.receipts.why import why_not_considered
from foveate.receipts.writer import Journal
from foveate.records import fence
from foveate.records.kinds import kind_of
from foveate.store.protocol import Forgotten, Store
from foveate.store.retry import retried
from foveate.types import Filters, Level, Record

if TYPE_CHECKING:
    from foveate.code.snapshot import Workspace
    from foveate.receipts.feedback import Feedback

PastContext = str | Context | Receipt
"""A past context: its id, itself, or its receipt."""


class Past(Living):
    """A memory that knows which contexts were computed from it."""

    def __init__(
        self,
        store: Store,
        *,
        sources: Iterable[Source] = (),
        root: Path | None = None,
        workspace: Workspace | None = None,
        **options: Any,
    ) -> None:
        super().__init__(store, scrub=receipts.scrub, **options)
        self._sources = {source.name: source for source in (*SHIPPED, *sources)}
        self._root = root
        self._workspace = workspace
        self._journal = Journal(store, self.reader)

    def save(self) -> None:
        """Write the receipts that are waiting."""
        self._journal.save()

    def forget(self, ids: Sequence[str]) -> Forgotten:
        self.save()  # a receipt that is still waiting would bring the record back
        return super().forget(ids)

    def close(self) -> None:
        """Write what is pending and let go of the files."""
        self._journal.close()
        if self._workspace is not None:
            self._workspace.close()
        super().close()

    # --- which contexts there were -----------------------------------------------------------------------------

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
        self.save()
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
        from foveate.receipts.timeline import COMPACTION, timeline

        lines = self._journal.lines(limit + 1, session=session)  # one more: what the first is compared with
        with self.reader() as reader:
            shown = reader.shown_by([line["id"] for line in lines])
            marks = Filters(event_types=(COMPACTION,))
            compactions = reader.recent(["event"], limit, marks, archived=True, session=session)
        if not lines and not compactions:
            raise NotFound(f"No context was computed in session {session!r}: it was dropped by age, or never was.")
        return timeline(session, lines, shown, compactions, limit)

    # --- what was in one, and why ------------------------------------------------------------------------------

    def why(self, id: str, context: str | Context | None = None) -> dict[str, Any]:
        """Why a record is, or is not, in a context."""
        return receipts.why(self.receipt(context), self._full_id(id))

    @retried
    def why_not(self, id: str, context: str | Context | None = None) -> dict[str, Any]:
        """Why a record, or a piece of code, is not in a context, even where it was not a candidate at all."""
        id, receipt = self._full_id(id), self.receipt(context)
        if receipt.of(id) is not None:
            return receipts.why(receipt, id)
        if id.startswith(PREFIXES):
            from foveate.receipts.why_code import why_not_shown

            with self.code.snapshot() as snapshot:
                return why_not_shown(receipt, id, snapshot)
        others = [name for name in self._sources if self._keeper(f"{name}:")]
        with self.reader(scope_within(receipt, self.scope)) as reader:
            return why_not_considered(receipt, id, reader, others)

    def validate(self, context: str | Context | None = None) -> dict[str, Any]:
        """001's validation: is it within its budget, where did the tokens go, what could be better."""
        return validate(self.receipt(context))

    @retried
    def diff(
        self, one: PastContext, other: PastContext, given: tuple[Any, Any] = ((), ()), *, texts: bool = False
    ) -> dict[str, Any]:
        """What changed between two contexts, and how much of their beginning they share.

        `given`: what was handed in to the one and to the other, as for `replay`. A context that cannot be had again as it
        was is `unread`, and then nothing is said of the beginning. `texts`: the two prompts as well.
        """
        before, after = (self._replayed(each, handed) for each, handed in zip((one, other), given, strict=True))
        return changes(before, after, texts=texts)

    @retried
    def replay(self, context: PastContext, given: Any = ()) -> dict[str, Any]:
        """Compute a past context again from its receipt; says whether the bytes are the same, and why if not."""
        return self._replayed(context, given).document()

    @retried
    def prompt(self, context: PastContext | None = None, given: Any = ()) -> Prompt:
        """The text of a context, piece by piece, each with the item that it shows; a past one is read again from state."""
        return self._replayed(context, given).prompt()

    def expand(self, id: str) -> dict[str, str]:
        """A record in full, as a user message: the details that a context leaves out. It counts as a use.

        The id may be of a piece of code in a context, `code:PATH::NAME` or `file:PATH`, or of another memory, `mem0:ID`.
        """
        if id.startswith(PREFIXES):
            from foveate.pipeline.sources.code import recalled

            with self.code.snapshot() as snapshot:
                record = recalled(id, snapshot, self.scope)
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

    def _replayed(self, context: PastContext | None, given: Any) -> Replay:
        receipt = context if isinstance(context, Receipt) else self.receipt(context)
        asked_in = receipts.scope_from_json(receipt.document["request"]["scope"])
        handed = given_records(given, asked_in, self.clock(), self.rules)
        elsewhere = self._shown_again(receipt)
        with self.reader(scope_within(receipt, self.scope)) as reader:
            return replay(receipt, reader, handed, elsewhere, counter=getattr(self.store, "counter", None))

    # --- what became of it -------------------------------------------------------------------------------------

    def note(self, context: str, **notes: Any) -> None:
        """Add to a context's receipt what became of it: `turns`, `refresh`, `used`, `marks`. Ids only, no texts."""
        self._journal.note(context, notes)

    def feedback(self, context: str | Context, answer: str) -> Feedback:
        """What an answer used of its context; noted on the receipt, and counted once as a use of each record."""
        from foveate.receipts.feedback import feedback

        receipt = self.receipt(context)

        @retried
        def used() -> Feedback:
            elsewhere = {} if isinstance(context, Context) else self._shown_again(receipt)
            with self.reader(scope_within(receipt, self.scope)) as state:
                return feedback(receipt, context, answer, state, elsewhere)

        found = used()
        counted = set(receipt.document.get("notes", {}).get("used", ()))
        self.note(receipt.id, used=list(found.used))
        ours = [id for id in found.used if not id.startswith(PREFIXES) and self._keeper(id) is None]
        self.count_uses([id for id in ours if id not in counted])
        return found

    def mark(self, context: str | Context, id: str, mark: str) -> str:
        """Say that an item of a context was useful, wrong or outdated; what to do about it next."""
        from foveate.receipts.feedback import checked_mark

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

    # --- figures over many -------------------------------------------------------------------------------------

    @retried
    def metrics(self) -> dict[str, Any]:
        """004's key metrics over the latest receipts, each with its target and whether it holds."""
        from foveate.receipts.metrics import DAY, DAYS, LATEST, measure

        now = self.clock()
        lines = self._journal.lines(LATEST)
        with self.store.read(self.scope) as reader:
            return measure(lines, reader.growth(now - DAYS * DAY), now)

    @retried
    def metrics_over_time(self) -> dict[str, Any]:
        """The metrics of each of the last days, oldest first, and how many records were written on each.

        `cut`: there were more contexts than are read for it, and the days before the first one are not told.
        """
        from foveate.receipts.metrics import MOST, over_time, since

        first = since(self.clock())
        lines, more = self._journal.lines_since(first, MOST)
        with self.store.read(self.scope) as reader:
            return {**over_time(lines, cut=more), "growth": reader.growth_by_day(first)}

    @retried
    def context_stats(self) -> dict[str, Any]:
        """001's statistics over the latest contexts: how large and how full they are, by profile and by part."""
        from foveate.receipts.metrics import context_stats

        self.save()
        return context_stats(self.store, self.scope, self.clock())

    # --- what no store holds: the code, and memories of others -------------------------------------------------

    @property
    def root(self) -> Path | None:
        """The project's folder; none for a store without one, nor for another project than the one that was opened."""
        return self._root

    @property
    def code(self) -> Workspace:
        """The code of the project: its index, search, map and docs."""
        if self._workspace is None:
            raise InputError(NO_CODE)
        return self._workspace

    @property
    def has_code(self) -> bool:
        return self._workspace is not None

    def _full_id(self, id: str) -> str:
        """The id of a piece of code as receipts have it; a shorter form will do."""
        if not id.startswith(PREFIXES) or self._workspace is None:
            return id
        from foveate.pipeline.sources.code import canonical

        with self._workspace.snapshot() as snapshot:
            return canonical(id, snapshot)

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
        asked, scope = receipt.document["request"], scope_within(receipt, self.scope)
        profile = receipts.profile_from_json(receipt.document["profile"])
        asks = {name: asks for name, asks in asks_of(profile, self._sources).items() if reads_code(self._sources[name])}
        with open_snapshot(profile, self._sources, self._workspace) as (look, _), self.reader(scope) as state:
            task = state.get([asked["task"]]).get(asked["task"]) if asked.get("task") else None
            request = receipts.request_from_json(asked, scope, task)
            around = Around(request, extract(request, state.named), profile, state, self._root, look)
            found = [candidate for name, group in asks.items() for candidate in self._sources[name].find(group, around)]
        return {(candidate.source, candidate.record.id): candidate.record for candidate in found}
