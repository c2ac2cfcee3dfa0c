"""Compute a context: prepare a plan for a request, gather candidates, score them and fill the slots of the profile.

Both steps read one snapshot of the store and of the code. Everything after `gather` is a pure function of values, so that a
receipt can be replayed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from time import perf_counter

from foveate.errors import InputError, ProfileError, near
from foveate.pipeline import profiles, request_summary
from foveate.pipeline.assembly import join_sections
from foveate.pipeline.fill import FilledSlots, fill_slots
from foveate.pipeline.follow_up import with_topic_of_session
from foveate.pipeline.passages import with_passages
from foveate.pipeline.relevance import estimate, within_reach
from foveate.pipeline.scoring import score
from foveate.pipeline.signals import extract_signals
from foveate.pipeline.sources import GatherResult, Source, SourceContext, SourceReport, gather
from foveate.pipeline.sources.code_snapshot import OpenCode
from foveate.pipeline.sources.conflicts import with_conflicts
from foveate.records import fence
from foveate.records.lifecycle import DEFAULT_THRESHOLDS, Thresholds
from foveate.records.render import title_of
from foveate.store.protocol import Reader
from foveate.tasks.task import open_dependencies, state_of
from foveate.text import tokens
from foveate.types import CONTEXT_PREFIX, Budget, Candidate, LeftOut, Prefix, Profile, Request, Section, Signals

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Plan:
    """A request with its signals and its profile."""

    request: Request
    signals: Signals
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A computed context with everything that goes into its receipt."""

    id: str
    request: Request
    signals: Signals
    profile: Profile
    sections: tuple[Section, ...]
    left_out: tuple[LeftOut, ...]
    budget: Budget
    prefix: Prefix
    warnings: tuple[str, ...]
    tag: str
    """Tag of the fences around quoted text."""
    candidates: tuple[Candidate, ...]
    reports: tuple[SourceReport, ...]
    revision: str
    record_counter: str
    """Counter of the token counts that records have."""
    start_time: float
    end_time: float = field(default_factory=perf_counter)

    @property
    def text(self) -> str:
        """Everything that the model sees, in order."""
        return join_sections(self.sections)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The settings and sources that all calls share."""

    sources: Mapping[str, Source]
    profile_dirs: tuple[Path, ...] = ()
    domains: Mapping[str, Sequence[str]]
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    record_counter: str = "o200k"
    """Counter of the token counts that records have."""
    root: Path | None = None
    count_pools: bool = False
    """Ask each source how many records it chose from. This costs a query each and is for debugging."""

    def prepare(self, request: Request, embedding: Vector | None, reader: Reader) -> Plan:
        """Extract the signals of a request and resolve its profile."""
        vector = None if embedding is None else tuple(embedding)
        signals = extract_signals(request, reader.entities_by_name, vector, self.domains)
        signals = with_topic_of_session(signals, request, reader)
        signals = profiles.with_frame(request, signals, self.profile_dirs)
        return Plan(request, signals, self._resolve_profile(request, signals))

    def run(
        self,
        plan: Plan,
        reader: Reader,
        code: OpenCode,
        warnings: Sequence[str],
        start_time: float,
    ) -> Run:
        """Compute the context of a plan."""
        request, signals, profile = plan.request, plan.signals, plan.profile
        context = SourceContext(request, signals, profile, reader, self.root, code.snapshot, code.unavailable, code.folder)
        gathered = gather(self.sources, context, count_pools=self.count_pools)
        _raise_if_required(profile, gathered)
        found = with_conflicts(estimate(gathered.candidates, signals, request.query, request.filters.exclude), reader)
        found = with_passages(within_reach(found, profile), profile, signals)
        candidates = score(found, profile, signals, request.now, self.thresholds)
        tag = fence.tag_of(reader.secret, request.scope.session)
        filled = fill_slots(candidates, profile, request.filters, request.counter, self.record_counter, request.now, tag)
        stable = join_sections(section for section in filled.sections if section.stable)
        return Run(
            id=context_id(request, reader.revision, join_sections(filled.sections)),
            request=request,
            signals=signals,
            profile=profile,
            sections=filled.sections,
            left_out=filled.left_out,
            budget=filled.budget,
            prefix=Prefix(text_hash(stable), len(stable), _count_prefix(stable, request.counter)),
            warnings=(
                *warnings,
                *_unfinished_dependencies(request, reader),
                *_missing_vectors(signals, reader),
                *code.notes,
                *_failed_sources(gathered),
                *_oversized_slots(filled, profile),
            ),
            tag=tag,
            candidates=tuple(candidates),
            reports=gathered.reports,
            revision=reader.revision,
            record_counter=self.record_counter,
            start_time=start_time,
        )

    def with_budget(self, plan: Plan, budget: int) -> Plan:
        """Return the plan with another budget."""
        request = replace(plan.request, budget=budget)
        return Plan(request, plan.signals, self._resolve_profile(request, plan.signals))

    def _resolve_profile(self, request: Request, signals: Signals) -> Profile:
        user_profiles = profiles.names(self.profile_dirs, builtin=False) if request.agent else ()
        names = profiles.layer_names(request, signals, user_profiles)
        profile = profiles.resolve(names, self.profile_dirs, request.overrides, request.budget)
        slots = {slot.name for slot in profile.slots if "given" in slot.sources}
        for name in request.extra:
            if name not in slots:
                raise ProfileError(f"Profile {profile.name!r} has no slot {name!r} for extra texts.{near(name, slots)}")
        return profile


def text_hash(text: str) -> str:
    """Return the hash of a prompt. Two prompts with the same hash have the same bytes."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def context_id(request: Request, revision: str, text: str) -> str:
    """Return the id of a context. It is the same for the same request on the same state, in any process."""
    summary = request_summary.to_json(request_summary.summarize(request))
    parts = json.dumps([summary, revision, text_hash(text)], sort_keys=True, ensure_ascii=False)
    return CONTEXT_PREFIX + blake2b(parts.encode(), digest_size=12).hexdigest()


def _failed_sources(gathered: GatherResult) -> list[str]:
    return [f"Source {report.source!r} failed: {report.error}" for report in gathered.reports if report.error]


def _oversized_slots(filled: FilledSlots, profile: Profile) -> list[str]:
    return [
        f"Slot {size.name!r} needs more than its {size.base} tokens and took {size.borrowed} from other slots."
        for size, slot in zip(filled.budget.slots, profile.slots, strict=True)
        if slot.keep and size.base and size.borrowed
    ]


def _raise_if_required(profile: Profile, gathered: GatherResult) -> None:
    """Raise InputError with the messages of all slots that must show something and have no candidate."""
    filled = {candidate.slot for candidate in gathered.candidates}
    missing = [slot.required for slot in profile.slots if slot.required and slot.name not in filled]
    if missing:
        raise InputError(list(dict.fromkeys(missing)))


def _unfinished_dependencies(request: Request, reader: Reader) -> list[str]:
    records = open_dependencies(reader, request.task) if request.task else []
    return [f"{title_of(record) or record.id}, on which the task depends, is {state_of(record)}." for record in records]


def _missing_vectors(signals: Signals, reader: Reader) -> list[str]:
    missing = 0 if signals.embedding is None else reader.count_missing_vectors()
    warning = f"{missing:,} records have no vector by this embedder yet and are found by words alone. "
    return [warning + "Run `foveate store maintain --only vectors`."] if missing else []


@lru_cache(maxsize=64)
def _count_prefix(text: str, counter: str) -> int:
    return tokens.count(text, counter) if text else 0
