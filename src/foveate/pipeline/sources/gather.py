"""Ask every source of a profile once and collect the candidates.

Sources that read the store share its snapshot, so a context shows one moment. They take milliseconds and run one after
another. A slow source runs in its own thread, with a deadline. A source that fails is reported and the others go on,
unless a slot that must be kept depends on it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from foveate.errors import FoveateError, InputError, Interrupted, ProfileError, SourceError, near
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, limit_of
from foveate.pipeline.sources.running import await_result, in_thread
from foveate.types import Candidate, Profile


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The result of asking one source. `error` is empty if it answered."""

    source: str
    slots: tuple[str, ...]
    found: int
    ms: float
    error: str = ""
    among: int | None = None
    """Number of records that the source chose from, if it can tell."""
    note: str = ""
    """Why it had nothing to read."""


@dataclass(frozen=True, slots=True)
class GatherResult:
    """All candidates, in the profile's order of slots, and a report on each source."""

    candidates: tuple[Candidate, ...]
    reports: tuple[SourceReport, ...]


def by_name(sources: Iterable[Source]) -> dict[str, Source]:
    """Return sources by name. A later one replaces an earlier one of its name."""
    found = list(sources)
    for source in found:
        if not isinstance(source, Source) or not source.name:
            raise InputError(f"A source must subclass foveate.Source and set its name, got {source!r}.")
    return {source.name: source for source in found}


def gather(sources: Mapping[str, Source], context: SourceContext, *, count_pools: bool = False) -> GatherResult:
    """Ask all sources of the profile. `count_pools` also asks how many records each chose from."""
    requests = requests_of(context.profile, sources)
    started = perf_counter()
    waiting = {
        name: in_thread(partial(candidates_of, sources[name], group, context), name)
        for name, group in requests.items()
        if sources[name].slow
    }
    found: list[list[Candidate]] = []
    reports = []
    for name, group in requests.items():
        begun = started if name in waiting else perf_counter()
        candidates, error = _answer(sources[name], group, context, waiting.get(name), started)
        if error:
            _raise_if_keep_slot(name, group, error)
        found.append(candidates)
        pool_size = sources[name].pool_size(context) if count_pools and not error else None
        note = context.code_unavailable if sources[name].reads_code and context.code is None else ""
        slots = tuple(request.slot.name for request in group)
        ms = (perf_counter() - begun) * 1000
        reports.append(SourceReport(name, slots, len(candidates), ms, error, pool_size, note))
    return GatherResult(tuple(_in_slot_order(found, context.profile)), tuple(reports))


def _answer(
    source: Source,
    requests: Sequence[SlotRequest],
    context: SourceContext,
    waiting: Future[list[Candidate]] | None,
    started: float,
) -> tuple[list[Candidate], str]:
    """Return the candidates of one source, or an error."""
    try:
        if waiting is None:
            found = candidates_of(source, requests, context)
        else:
            found = waiting.result(timeout=max(source.deadline - (perf_counter() - started), 0.0))
    except TimeoutError as late:
        source_raised_it = waiting is None or waiting.done()
        return [], f"TimeoutError: {late}" if source_raised_it else f"no answer within {source.deadline} s"
    except Interrupted:  # the snapshot is gone for every source: the whole context is computed again
        raise
    except FoveateError as failure:
        return [], str(failure)
    except Exception as failure:  # a source is foreign code: its errors must not cost the caller the prompt
        return [], f"{type(failure).__name__}: {failure}"
    if source.reads_code and (kinds := context.request.filters.kinds):
        found = [candidate for candidate in found if candidate.record.kind in kinds]
    return found, ""


def requests_of(profile: Profile, sources: Mapping[str, Source]) -> dict[str, list[SlotRequest]]:
    """Return what the slots of a profile want of each source."""
    requests: dict[str, list[SlotRequest]] = {}
    for slot in profile.slots:
        for source, limit in ((slot.source, limit_of(slot, profile)), *slot.extra_sources):
            if source not in sources:
                raise ProfileError(
                    f"Slot {slot.name!r} asks source {source!r}, which does not exist.{near(source, sources)}"
                )
            requests.setdefault(source, []).append(SlotRequest(slot, limit))
    return requests


def candidates_of(source: Source, requests: Sequence[SlotRequest], context: SourceContext) -> list[Candidate]:
    """Return the candidates of one source. Wait for them if the source is async."""
    answer = source.find(requests, context)
    found = list(await_result(answer) if inspect.isawaitable(answer) else answer)
    wrong = next((each for each in found if not isinstance(each, Candidate)), None)
    if wrong is not None:
        raise TypeError(f"find() must return candidates, got {type(wrong).__name__}")
    return found


def _raise_if_keep_slot(name: str, requests: Sequence[SlotRequest], error: str) -> None:
    kept = [request.slot.name for request in requests if request.slot.keep]
    if kept:
        raise SourceError(f"Source {name!r} failed ({error}), and slot {kept[0]!r} must be kept; no context was computed.")


def _in_slot_order(answers: Iterable[Iterable[Candidate]], profile: Profile) -> list[Candidate]:
    place = {slot.name: n for n, slot in enumerate(profile.slots)}
    several = {slot.name for slot in profile.slots if slot.extra_sources}
    found: list[Candidate] = []
    first: dict[tuple[str, str], int] = {}
    for candidate in (candidate for answer in answers for candidate in answer if candidate.slot in place):
        key = (candidate.slot, candidate.record.id)
        if candidate.slot in several and key in first:
            found[first[key]] = _merge(found[first[key]], candidate)
        else:
            first[key] = len(found)
            found.append(candidate)
    return sorted(found, key=lambda candidate: place[candidate.slot])


def _merge(one: Candidate, other: Candidate) -> Candidate:
    """Return the same record for the same slot from two sources as one candidate with the features of both."""
    features = {name: max(one.features.get(name, 0.0), value) for name, value in other.features.items()}
    return replace(
        one,
        features={**one.features, **features},
        inherited_from=one.inherited_from or other.inherited_from,
        stale=one.stale or other.stale,
        overruled_by=one.overruled_by or other.overruled_by,
    )
