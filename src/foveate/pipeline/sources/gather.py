"""Ask every source that the profile names, once, and collect what they bring.

Sources that read the store share its snapshot and run one after another: they take milliseconds, and a context is then
one moment of the state. A source that says it is slow runs in a thread of its own, with a deadline. One that fails is
reported and the rest goes on, unless a slot that must be kept depends on it.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from foveate.code.model import NO_CODE_MESSAGE
from foveate.errors import FoveateError, Interrupted, ProfileError, SourceError, near
from foveate.records.kinds import CONFLICTS_WITH, kind_of
from foveate.records.merge import is_conflict
from foveate.store.protocol import Reader
from foveate.types import TRUST, Ask, Candidate, Filters, Profile, Record, Request, Signals, Slot

if TYPE_CHECKING:
    from foveate.code.snapshot import CodeSnapshot, Workspace

T = TypeVar("T")

DEADLINE = 2.0
"""Seconds that a slow source gets unless it says otherwise: an agent waits for its prompt."""

TOKENS_AN_ITEM = 15
FEWEST, MOST = 20, 400
"""A slot without a limit asks for as many candidates as its room could hold micro lines, within these bounds."""


@dataclass(frozen=True, slots=True)
class Around:
    """What a source may look at."""

    request: Request
    signals: Signals
    profile: Profile
    reader: Reader
    root: Path | None = None
    """The project's folder, where there is one: what files exist."""
    look: CodeSnapshot | None = None
    """The code, where there is any and a source of the profile reads it."""
    blind: str = ""
    """Why there is no snapshot of the code, where a source wants one."""


class Source(Protocol):
    """Something that can be asked for candidates. `find` may be a coroutine function.

    Optional: `slow = True` runs it in a thread with `deadline` seconds; such a source must not use `around.reader`.
    `among(around)` says how many it chose from. `reads_code = True` asks for `around.look`. A source whose ids begin with
    its name (`tickets:42`) may have `recall(id, scope, now)`, which gives the record again: for `expand` and `replay`.
    """

    name: str

    def find(self, asks: Sequence[Ask], around: Around) -> Any: ...


@dataclass(frozen=True, slots=True)
class Report:
    """What became of asking one source. `error` is empty when it answered."""

    source: str
    slots: tuple[str, ...]
    found: int
    ms: float
    error: str = ""
    among: int | None = None
    """How many it chose from, where the source can say."""
    note: str = ""
    """Why it had nothing to look at."""


@dataclass(frozen=True, slots=True)
class Gathered:
    candidates: tuple[Candidate, ...]
    reports: tuple[Report, ...]


def gather(sources: Mapping[str, Source], around: Around, *, count: bool = False) -> Gathered:
    """Everything that the profile's sources have, in the profile's order of slots; `count` asks how many they chose from."""
    asks = asks_of(around.profile, sources)
    slow = {name: group for name, group in asks.items() if getattr(sources[name], "slow", False)}
    started = perf_counter()
    waiting = {name: in_thread(partial(_find, sources[name], group, around), name) for name, group in slow.items()}
    return _collected(asks, waiting, started, sources, around, count)


def in_thread(job: Callable[[], T], name: str) -> Future[T]:
    """An answer on its way, in a thread that does not keep the process alive when nobody waits any more."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(job())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, name=f"foveate {name}", daemon=True).start()
    return answer


def _collected(
    asks: Mapping[str, Sequence[Ask]],
    waiting: Mapping[str, Future[list[Candidate]]],
    started: float,
    sources: Mapping[str, Source],
    around: Around,
    count: bool,
) -> Gathered:
    answers: dict[str, list[Candidate]] = {}
    reports = []
    for name, group in asks.items():
        begun = started if name in waiting else perf_counter()
        among = None
        try:
            if name in waiting:
                left = float(getattr(sources[name], "deadline", DEADLINE)) - (perf_counter() - started)
                answers[name] = waiting[name].result(timeout=max(left, 0.0))
            else:
                answers[name] = _find(sources[name], group, around)
            if reads_code(sources[name]) and (kinds := around.request.filters.kinds):
                answers[name] = [found for found in answers[name] if found.record.kind in kinds]
            among = _among(sources[name], around) if count else None
            error = ""
        except Late as late:
            answered = name not in waiting or waiting[name].done()  # then it is the source's own time-out
            error = (
                f"TimeoutError: {late}" if answered else f"no answer within {getattr(sources[name], 'deadline', DEADLINE)} s"
            )
        except Interrupted:  # the snapshot is gone for every source: the whole is computed again
            raise
        except FoveateError as failure:
            error = str(failure)
        except Exception as failure:  # a source is foreign code: whatever it raises must not take the prompt down
            error = f"{type(failure).__name__}: {failure}"
        if error:
            _refuse_if_kept(name, group, error)
        found = len(answers.get(name, ()))
        took = (perf_counter() - begun) * 1000
        note = around.blind if reads_code(sources[name]) and around.look is None else ""
        reports.append(Report(name, tuple(ask.slot.name for ask in group), found, took, error, among, note))
    candidates = _with_conflicts(_in_slot_order(answers.values(), around.profile), around.reader)
    return Gathered(tuple(candidates), tuple(reports))


def _among(source: Source, around: Around) -> int | None:
    """How many a source chose from: a question of its own, and only for those who want to know."""
    among = getattr(source, "among", None)
    return int(among(around)) if among else None


def asks_of(profile: Profile, sources: Mapping[str, Source]) -> dict[str, list[Ask]]:
    """What the profile's slots want of each source."""
    asks: dict[str, list[Ask]] = {}
    for slot in profile.slots:
        for source, limit in ((slot.source, limit_of(slot, profile)), *slot.also):
            if source not in sources:
                raise ProfileError(f"Slot {slot.name!r} asks source {source!r}, which is not there.{near(source, sources)}")
            asks.setdefault(source, []).append(Ask(slot, limit))
    return asks


def reads_code(source: Source) -> bool:
    return bool(getattr(source, "reads_code", False))


@contextmanager
def open_snapshot(
    profile: Profile, sources: Mapping[str, Source], workspace: Workspace | None
) -> Iterator[tuple[CodeSnapshot | None, str]]:
    """Open the code for one context, if a source of the profile reads it; otherwise give None and the reason.

    The index is refreshed first. After that every source sees the same code, whatever happens to the files.
    """
    names = {name for slot in profile.slots for name in slot.sources}
    snapshot, reason = None, ""
    if any(reads_code(sources[name]) for name in names if name in sources):
        try:
            snapshot, reason = (workspace.snapshot(), "") if workspace is not None else (None, NO_CODE_MESSAGE)
        except (FoveateError, OSError) as error:
            reason = f"The code could not be read: {error}"
    try:
        yield snapshot, reason
    finally:
        if snapshot is not None:
            snapshot.close()


def limit_of(slot: Slot, profile: Profile) -> int:
    """How many candidates a slot asks for."""
    if slot.limit is not None:
        return slot.limit
    return max(FEWEST, min(room_of(slot, profile) // TOKENS_AN_ITEM, MOST))


def room_of(slot: Slot, profile: Profile) -> int:
    """The tokens that a slot may count on before anything flows."""
    shares = sum(other.share or 0.0 for other in profile.slots)
    return slot.tokens if slot.tokens is not None else int(profile.total * (slot.share or 0.0) / (shares or 1.0))


def _find(source: Source, asks: Sequence[Ask], around: Around) -> list[Candidate]:
    answer = source.find(asks, around)
    if inspect.isawaitable(answer):
        answer = awaited(answer)
    found = list(answer)
    strange = next((thing for thing in found if not isinstance(thing, Candidate)), None)
    if strange is not None:
        raise TypeError(f"it brought {type(strange).__name__} where a Candidate was expected")
    return found


def awaited(answer: Awaitable[Any]) -> Any:
    """The result; in a thread of its own where the caller is inside an event loop already."""
    import asyncio  # only for those who have such a source

    async def result() -> Any:
        return await answer

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(result())
    return in_thread(lambda: asyncio.run(result()), "event loop").result()


def _refuse_if_kept(name: str, asks: Sequence[Ask], error: str) -> None:
    kept = [ask.slot.name for ask in asks if ask.slot.keep]
    if kept:
        raise SourceError(f"Source {name!r} failed ({error}), and slot {kept[0]!r} must be kept; no context was computed.")


def _in_slot_order(answers: Iterable[Iterable[Candidate]], profile: Profile) -> list[Candidate]:
    place = {slot.name: n for n, slot in enumerate(profile.slots)}
    several = {slot.name for slot in profile.slots if slot.also}
    found: list[Candidate] = []
    first: dict[tuple[str, str], int] = {}
    for candidate in (candidate for answer in answers for candidate in answer if candidate.slot in place):
        key = (candidate.slot, candidate.record.id)
        if candidate.slot in several and key in first:
            found[first[key]] = _joined(found[first[key]], candidate)
        else:
            first[key] = len(found)
            found.append(candidate)
    return sorted(found, key=lambda candidate: place[candidate.slot])


def _joined(one: Candidate, other: Candidate) -> Candidate:
    """The same record for the same slot from two sources: what each knows of it."""
    features = {name: max(one.features.get(name, 0.0), value) for name, value in other.features.items()}
    return replace(
        one,
        features={**one.features, **features},
        via=one.via or other.via,
        stale=one.stale or other.stale,
        overruled_by=one.overruled_by or other.overruled_by,
    )


def _with_conflicts(candidates: list[Candidate], reader: Reader) -> list[Candidate]:
    """Statements that seem to contradict each other come together: where one is a candidate, so is the other."""
    stated = {c.record.id: c.record for c in candidates if kind_of(c.record.kind).is_keyed and c.record.status == "active"}
    links = [*reader.links(list(stated), [CONFLICTS_WITH]), *reader.links(list(stated), [CONFLICTS_WITH], incoming=True)]
    if not links:
        return candidates
    both = reader.get([id for link in links for id in (link.src, link.dst)])
    active = {id: record for id, record in both.items() if record.status == "active"}
    pairs = [(link.src, link.dst) for link in links] + [(link.dst, link.src) for link in links]
    against = {  # asked again: one of them may have been edited since
        one: active[other]
        for one, other in pairs
        if one in active and other in active and is_conflict(active[one].text, active[other].text)
    }
    there = {(candidate.slot, candidate.record.id) for candidate in candidates}
    out: list[Candidate] = []
    for candidate in candidates:
        other = against.get(candidate.record.id) if candidate.record.status == "active" else None
        out.append(replace(candidate, conflict=other) if other else candidate)
        if other and (candidate.slot, other.id) not in there:
            there.add((candidate.slot, other.id))
            out.append(replace(candidate, record=other, conflict=candidate.record))
    return out


def filtered(record: Record, filters: Filters) -> str:
    """Which of the request's filters keeps a record out; empty where none does. `exclude` is selection's."""
    if filters.since is not None and record.created < filters.since:
        return "since"
    if filters.until is not None and record.created >= filters.until:
        return "until"
    if filters.kinds and record.kind not in filters.kinds:
        return "kinds"
    if filters.tags and not set(filters.tags) & set(record.tags):
        return "tags"
    if TRUST.index(record.trust) < TRUST.index(filters.min_trust):
        return "min_trust"
    return _filtered_by_type(record, filters)


def _filtered_by_type(record: Record, filters: Filters) -> str:
    for kind, name, types in (
        ("event", "event_types", filters.event_types),
        ("entity", "entity_types", filters.entity_types),
    ):
        if types and record.kind == kind and record.data.get("type") not in types:
            return name
    return ""
