"""`engine.store`: the store as a whole - statistics, health, maintenance, bulk writes, export, import and backup."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import random
from typing import TYPE_CHECKING, Literal, Unpack

from foveate.errors import InputError, ProfileError, near
from foveate.memory import backfill, maintenance, transfer
from foveate.memory.memory import Memory, unknown_project
from foveate.memory.transfer import ImportResult, NewRecord
from foveate.options import WHO, Who, refuse_text, refuse_unknown, scope_of
from foveate.pipeline import profiles
from foveate.pipeline.sources.standing import applies_always
from foveate.receipts.history import Receipts
from foveate.records.kinds import kind_of
from foveate.records.lifecycle import Step, Thresholds
from foveate.store.protocol import EmbeddingNamespace, Health
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.tasks.claims import ClaimStats, claim_stats
from foveate.text.summarize import ExtractiveSummarizer, Summarizer
from foveate.types import Filters, Record, Scope

if TYPE_CHECKING:
    from foveate.receipts.metrics import ContextStats, DayMetrics, Metric

Job = Literal["lifecycle", "retention", "vectors", "summaries", "unused-vectors"]
DEFAULT_JOBS: tuple[Job, ...] = ("lifecycle", "retention", "vectors", "summaries")
JOBS: tuple[Job, ...] = (*DEFAULT_JOBS, "unused-vectors")
"""All jobs. Unused vectors are dropped only by name: without them, switching the embedder back costs a new embedding."""

NO_LLM_MESSAGE = 'No language model is set. Set one in .foveate/config.toml: summarizer = "openai:MODEL@URL".'


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Figures about the records and contexts of a project that a scope may see."""

    project: str
    revision: str
    records: Mapping[str, Mapping[str, int]]
    """Number of records by kind and status."""
    links: int
    history: int
    """Versions of records that are kept."""
    receipts: int
    receipt_bytes: int
    vectors: int
    claims: ClaimStats
    contexts: ContextStats
    """Statistics of spec 001 over the latest contexts."""
    metrics: Mapping[str, Metric]
    """Metrics of spec 004 by name, each with its target."""
    days: tuple[DayMetrics, ...] = ()
    """Figures of each of the last days, oldest first; empty unless they were asked for."""
    days_cut: bool = False
    """The oldest days are missing, because there are more contexts than are read."""


@dataclass(frozen=True, slots=True)
class VectorStats:
    """Number of records with and without a vector of the configured embedder."""

    embedder: str | None
    stored: int
    missing: int
    unused: tuple[EmbeddingNamespace, ...]
    """Vectors of other embedders."""


@dataclass(frozen=True, slots=True)
class ProfileDefaults:
    """The profile whose always-on slots a record is checked against."""

    name: str
    dirs: tuple[Path, ...]


class StoreTools:
    """Operations on the whole store of a project."""

    def __init__(
        self,
        memory: Memory,
        receipts: Receipts,
        profile: ProfileDefaults,
        *,
        llm: Summarizer | None = None,
        names_projects: bool = True,
    ) -> None:
        self._llm = llm
        self._memory = memory
        self._receipts = receipts
        self._profile = profile
        self._names_projects = names_projects

    @property
    def data(self) -> ScopedStore:
        """The store as this engine's scope sees it, for programs that read or write records directly."""
        return self._memory.data

    @property
    def profile_dirs(self) -> tuple[Path, ...]:
        """Folders where profiles are looked for, besides the built-in ones."""
        return self._profile.dirs

    @property
    def thresholds(self) -> Thresholds:
        """The ages and counts at which a record changes its lifecycle stage."""
        return self._memory.thresholds

    # --- figures -----------------------------------------------------------------------------------------------

    @retry_interrupted
    def stats(self, *, days: int = 0) -> Stats:
        """Count what the scope may see of the project, and measure how well its contexts serve.

        `days` adds figures of each of that many days.
        """
        if days < 0:
            raise InputError(f"days must be 0 or more, got {days}.")
        by_day, cut = self._receipts.metrics_by_day(days) if days else ((), False)
        contexts, metrics = self._receipts.context_stats(), self._receipts.metrics()
        with self.data.project_reader() as reader:
            counts = reader.counts()
            claims = claim_stats(reader, self.data.clock())
            revision = reader.revision
        return Stats(
            project=self.data.scope.project,
            revision=revision,
            records=counts.records,
            links=counts.links,
            history=counts.history,
            receipts=counts.receipts,
            receipt_bytes=counts.receipt_bytes,
            vectors=counts.vectors,
            claims=claims,
            contexts=contexts,
            metrics=metrics,
            days=by_day,
            days_cut=cut,
        )

    def vectors(self) -> VectorStats:
        """Count the records with and without a vector, and the vectors of other embedders."""
        with self.data.project_reader() as reader:
            missing, spaces = reader.count_missing_vectors(), reader.embedding_namespaces()
        current = next((space for space in spaces if space.is_current), None)
        return VectorStats(
            embedder=self.data.embedder.fingerprint if self.data.embedder else None,
            stored=current.vector_count if current else 0,
            missing=missing,
            unused=tuple(space for space in spaces if not space.is_current),
        )

    def health(self) -> Health:
        """Check the store. Each problem says what to do."""
        health = self.data.store.health()
        return replace(health, facts={**health.facts, "warnings": self.oversized_rules()} if health.ok else health.facts)

    @retry_interrupted
    def oversized_rules(self, scope: Scope | None = None) -> list[str]:
        """Warn about always-on slots whose records need more tokens than the slot has."""
        profile = profiles.resolve(self._profile.name, self._profile.dirs)
        warnings = []
        with self.data.reader(scope and replace(scope, project=self.data.scope.project)) as reader:
            for slot in profile.slots:
                if slot.source != "always" or slot.tokens is None:
                    continue
                rules = [r for r in reader.always_on(slot.kinds, pinned=slot.pinned_only) if applies_always(r, profile)]
                needed = sum((r.tokens or {}).get("full" if kind_of(r.kind).is_rule else slot.level, 0) for r in rules)
                if needed > slot.tokens:
                    warnings.append(
                        f"Slot {slot.name!r} has {slot.tokens} tokens and its records need {needed}: rules are shown in "
                        f"full and take tokens from other slots; other records are shortened first. Retire or shorten some, "
                        f"or raise slots.{slot.name}.tokens."
                    )
        return warnings

    def rule_warnings(self, scope: Scope) -> tuple[str, ...]:
        """Return the warnings of a rule that was just added. A broken profile is a warning too: the record is stored."""
        try:
            return tuple(self.oversized_rules(scope))
        except ProfileError as error:
            return (str(error),)

    def unknown_project(self) -> str:
        """Return a warning if the store has no record of this project."""
        return unknown_project(self.data, suggest=self._names_projects)

    @retry_interrupted
    def page(
        self, limit: int = 50, *, filters: Filters | None = None, status: str | None = None, after: int = 0
    ) -> tuple[list[Record], int]:
        """Return one page of records, newest first, and the cursor of the next page; 0 if there is none."""
        records, cursor = self._memory.page(limit, filters=filters, status=status, after=after)
        return [self._memory.with_stage(record) for record in records], cursor

    # --- maintenance -------------------------------------------------------------------------------------------

    def maintain(
        self, *, only: Sequence[Job] = (), dry_run: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> list[Step]:
        """Run the maintenance that is due, or only report it. Expired events are the only records that it deletes.

        `only` names the jobs; a job that needs an embedder or a language model is then an error if there is none.
        `progress` is called while vectors are computed, with the number of records that are done and that there are.
        """
        refuse_text(only, "only")
        for job in only:
            if job not in JOBS:
                raise InputError(f"Unknown job {job!r}.{near(job, JOBS)}")
        if {"vectors", "unused-vectors"} & set(only) and self.data.embedder is None:
            raise InputError(backfill.NO_EMBEDDER_MESSAGE)
        if "summaries" in only and self._llm is None and not dry_run:
            raise InputError(NO_LLM_MESSAGE)
        jobs = set(only or DEFAULT_JOBS)
        steps = []
        if jobs & {"lifecycle", "retention"}:
            steps += maintenance.gc(
                self.data,
                self._memory.thresholds,
                dry_run=dry_run,
                moves="lifecycle" in jobs,
                drops="retention" in jobs,
            )
        if "vectors" in jobs and self.data.embedder is not None:
            steps += self._fill_vectors(dry_run, progress or (lambda done, total: None))
        if "unused-vectors" in jobs:
            steps += self._drop_unused_vectors(dry_run)
        if "summaries" in jobs and (self._llm is not None or "summaries" in only):
            steps += self._fill_summaries(self._llm or ExtractiveSummarizer(), dry_run)
        return steps

    def _fill_vectors(self, dry_run: bool, progress: Callable[[int, int], None]) -> list[Step]:
        if dry_run:
            number, error = self.vectors().missing, ""
        else:
            done = backfill.embed_missing(self.data, start=random(), progress=progress)
            number, reason = done.embedded_count, done.error or "the embedder refused their texts, or others were quicker"
            error = f"{done.remaining:,} records have no vector: {reason}" if done.remaining else ""
        step = Step("", "record", "embed", "no vector", "vector", "the embedder is new or was changed", number, error)
        return [step] if number or error else []

    def _drop_unused_vectors(self, dry_run: bool) -> list[Step]:
        if dry_run:
            dropped = {namespace.fingerprint: namespace.vector_count for namespace in self.vectors().unused}
        else:
            dropped = backfill.drop_unused_vectors(self.data)
        return [
            Step("", "vector", "drop", "kept", "gone", f"vectors of {name} are not used", number)
            for name, number in dropped.items()
        ]

    def _fill_summaries(self, llm: Summarizer, dry_run: bool) -> list[Step]:
        done = backfill.rewrite_summaries(self.data, llm, dry_run=dry_run)
        number, reason = done.candidates if dry_run else done.rewritten, getattr(llm, "failed", "")
        error = f"The language model gave no usable answer: {reason}" if reason else ""
        step = Step("", "record", "summarize", "extracted", "written", "the model writes better summaries", number, error)
        return [step] if number or error else []

    def run_due_maintenance(self) -> list[Step]:
        """Run the lifecycle at most once an hour on a store. No context waits for it."""
        return maintenance.run_if_due(self.data, self._memory.thresholds)

    def drop_expired(self, should_stop: Callable[[], bool] = lambda: False) -> list[Step]:
        """Drop expired receipts and events in small batches. `should_stop` is called between two batches."""
        data = self.data
        return maintenance.delete_expired(data.store, data.scope, data.clock(), should_stop=should_stop)

    # --- whole stores ------------------------------------------------------------------------------------------

    def add_many(self, records: Iterable[NewRecord], **who: Unpack[Who]) -> list[str]:
        """Add many (kind, text, fields) in large transactions and return their ids."""
        refuse_unknown(who, WHO, "add_many")
        return transfer.add_many(self.data, records, scope_of(self.data.scope, who))

    def export_lines(self) -> Iterator[str]:
        """Yield the scope's records, their history and links as lines of JSON, without loss."""
        return transfer.export_lines(self.data)

    def import_lines(self, lines: Iterable[str]) -> ImportResult:
        """Read what `export_lines` wrote. Records that exist already stay as they are."""
        return transfer.import_lines(self.data, lines)

    def backup(self, target: str | Path) -> None:
        """Write a copy of the store that is consistent at one moment."""
        self.data.store.backup(Path(target))
