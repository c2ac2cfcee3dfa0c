"""The whole line, from a request to a context: prepare a plan, gather candidates, score, select and assemble.

Both steps read one snapshot of the store and of the code. Everything after `gather` is a pure function of values, which is
why a receipt can be replayed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from foveate.errors import InputError, ProfileError, near
from foveate.pipeline import profiles, request_summary
from foveate.pipeline.assembly import join_sections
from foveate.pipeline.fill import FilledSlots, fill_slots
from foveate.pipeline.scoring import score
from foveate.pipeline.signals import extract
from foveate.pipeline.sources import Gathered, Source, SourceContext, SourceReport, gather
from foveate.records import fence
from foveate.records.lifecycle import DEFAULT_THRESHOLDS, Thresholds
from foveate.records.render import title_of
from foveate.store.protocol import Reader
from foveate.tasks.task import state_of, unfinished
from foveate.text import tokens
from foveate.types import Budget, Candidate, LeftOut, Prefix, Profile, Request, Section, Signals

if TYPE_CHECKING:
    from foveate.code.snapshot import CodeSnapshot

Vector = Sequence[float]

CONTEXT_PREFIX = "ctx_"
"""Ids of contexts begin with it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A request with what it is about and the profile that it gets."""

    request: Request
    signals: Signals
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A computed context with everything that its receipt is made from."""

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
    measured_by: str
    """Counter of the token counts that the records have."""
    began: float
    ended: float = field(default_factory=perf_counter)

    @property
    def text(self) -> str:
        """Everything that the model sees, in order."""
        return join_sections(self.sections)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The parts of the line that stay the same from call to call."""

    sources: Mapping[str, Source]
    profile_dirs: tuple[Path, ...] = ()
    domains: Mapping[str, Sequence[str]]
    thresholds: Thresholds = DEFAULT_THRESHOLDS
    measured_by: str = "o200k"
    root: Path | None = None
    count_pools: bool = False
    """Ask each source how many records it chose from: for debugging, as it costs a query each."""

    def prepare(self, request: Request, embedding: Vector | None, reader: Reader) -> Plan:
        """Extract the signals of a request and resolve its profile."""
        vector = None if embedding is None else tuple(embedding)
        signals = extract(request, reader.entities_by_name, vector, self.domains)
        signals = profiles.add_frame(request, signals, self.profile_dirs)
        return Plan(request, signals, self._resolve_profile(request, signals))

    def run(
        self, plan: Plan, reader: Reader, code: CodeSnapshot | None, unavailable: str, warnings: Sequence[str], began: float
    ) -> Run:
        """Compute the context of a plan. `unavailable` says why there is no code, if a source needs it."""
        request, signals, profile = plan.request, plan.signals, plan.profile
        context_of_sources = SourceContext(request, signals, profile, reader, self.root, code, unavailable)
        found = gather(self.sources, context_of_sources, count_pools=self.count_pools)
        _raise_if_required(profile, found)
        notes = [*warnings, *_unfinished_dependencies(request, reader), *_missing_vectors(signals, reader)]
        notes += code.notes if code else ()
        revision, tag = reader.revision, fence.tag_of(reader.secret, request.scope.session)
        candidates = score(found.candidates, profile, signals, request.now, self.thresholds)
        filled = fill_slots(candidates, profile, request.filters, request.counter, self.measured_by, request.now, tag)
        stable = join_sections(section for section in filled.sections if section.stable)
        return Run(
            id=context_id(request, revision, join_sections(filled.sections)),
            request=request,
            signals=signals,
            profile=profile,
            sections=filled.sections,
            left_out=filled.left_out,
            budget=filled.budget,
            prefix=Prefix(text_hash(stable), len(stable), _count(stable, request.counter)),
            warnings=(*notes, *_failed_sources(found), *_oversized_slots(filled, profile)),
            tag=tag,
            candidates=tuple(candidates),
            reports=found.reports,
            revision=revision,
            measured_by=self.measured_by,
            began=began,
        )

    def with_budget(self, plan: Plan, budget: int) -> Plan:
        """Return the plan with another budget."""
        request = replace(plan.request, budget=budget)
        return Plan(request, plan.signals, self._resolve_profile(request, plan.signals))

    def _resolve_profile(self, request: Request, signals: Signals) -> Profile:
        user_profiles = profiles.names(self.profile_dirs, builtin=False) if request.agent else ()
        names = profiles.layers(request, signals, user_profiles)
        profile = profiles.resolve(names, self.profile_dirs, request.overrides, request.budget)
        slots = {slot.name for slot in profile.slots if "given" in slot.sources}
        for name in request.extra:
            if name not in slots:
                raise ProfileError(f"Profile {profile.name!r} has no slot {name!r} for extra texts.{near(name, slots)}")
        return profile


def text_hash(text: str) -> str:
    """Return the hash by which two prompts are compared."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def context_id(request: Request, revision: str, text: str) -> str:
    """Return the id of a context: the same for the same request on the same state, in any process."""
    asked = request_summary.to_json(request_summary.summarize(request))
    parts = json.dumps([asked, revision, text_hash(text)], sort_keys=True, ensure_ascii=False)
    return CONTEXT_PREFIX + blake2b(parts.encode(), digest_size=12).hexdigest()


def _failed_sources(found: Gathered) -> list[str]:
    return [f"Source {report.source!r} failed: {report.error}" for report in found.reports if report.error]


def _oversized_slots(filled: FilledSlots, profile: Profile) -> list[str]:
    return [
        f"Slot {size.name!r} holds more than its room and took {size.borrowed} tokens from others."
        for size, slot in zip(filled.budget.slots, profile.slots, strict=True)
        if slot.keep and size.base and size.borrowed
    ]


def _raise_if_required(profile: Profile, found: Gathered) -> None:
    """Raise an error for each slot that must have something to show and has nothing."""
    filled = {candidate.slot for candidate in found.candidates}
    missing = [slot.required for slot in profile.slots if slot.required and slot.name not in filled]
    if missing:
        raise InputError(list(dict.fromkeys(missing)))


def _unfinished_dependencies(request: Request, reader: Reader) -> list[str]:
    records = unfinished(reader, request.task) if request.task else []
    return [f"{title_of(record) or record.id}, on which the task depends, is {state_of(record)}." for record in records]


def _missing_vectors(signals: Signals, reader: Reader) -> list[str]:
    missing = 0 if signals.embedding is None else reader.count_missing_vectors()
    warning = f"{missing:,} records have no vector by this embedder yet and are found by words alone. "
    return [warning + "Run `foveate store maintain --only vectors`."] if missing else []


@lru_cache(maxsize=64)
def _count(text: str, counter: str) -> int:
    return tokens.count(text, counter) if text else 0
