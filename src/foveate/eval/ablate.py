"""What earns its place: each feature, field, slot and stage switched off in turn, and what becomes of a suite without it.

Comes in: a suite and its data. Goes out: a run as it is, and one for each part that is off. Most parts are data of a
profile, so that their absence is an override. A stage is a function; while its run lasts, one that does nothing stands in
its place. Nothing in the pipeline knows about this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

from foveate.errors import NotFound, near
from foveate.eval.compare import compare
from foveate.eval.model import Suite
from foveate.eval.rows import Run
from foveate.eval.run import Progress, run
from foveate.eval.systems.engine import Foveate
from foveate.pipeline import profiles
from foveate.types import Profile

WHOLE = "as it is"
BEYOND = 0.05
"""So small a p value has a star."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that can be switched off: by overrides of the profile, or by a function that does nothing."""

    name: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    stage: tuple[str, str, Callable[..., Any]] | None = None
    """Module, name and stand-in."""


@contextmanager
def off(part: Part) -> Iterator[None]:
    """While it lasts, a stage does nothing."""
    if part.stage is None:
        yield
        return
    place, name, stand_in = part.stage
    module = import_module(place)
    real = getattr(module, name)
    setattr(module, name, stand_in)
    try:
        yield
    finally:
        setattr(module, name, real)


def _nothing(*_: Any) -> None:
    return None


def _none(*_: Any) -> tuple[()]:
    return ()


def _empty(*_: Any) -> dict[Any, Any]:
    return {}


def _two(*_: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
    return {}, {}


STAGES = (
    Part("stage dates", stage=("foveate.text.dates", "question_terms", _none)),
    Part("stage words that ask", stage=("foveate.text.query_terms", "_table", _empty)),
    Part("stage quantities", stage=("foveate.text.quantities", "terms", _none)),
    Part("stage near-duplicates", stage=("foveate.pipeline.selection", "_near", _nothing)),
    Part("stage ladder", stage=("foveate.pipeline.selection", "ladder", lambda top: (top,))),
    Part("stage deepening", stage=("foveate.pipeline.selection", "_deepen", _nothing)),
    Part("stage room used up", stage=("foveate.pipeline.fill", "_use_up", _nothing)),
)
STAGES_ON_CODE = (
    Part("stage names vote", stage=("foveate.code.search", "_named", _empty)),
    Part("stage paths vote", stage=("foveate.code.search", "_file_votes", _two)),
    Part("stage traces vote", stage=("foveate.code.search", "_traced", _two)),
    Part("stage history", stage=("foveate.code.search", "_with_past", lambda files, *_: files)),
)


def parts(suite: Suite) -> list[Part]:
    """Everything that can be switched off in the profile that a suite is asked with."""
    profile = profiles.resolve(suite.profile or "base")
    found = [Part(f"feature {name}", {"weights": {name: 0}}) for name, weight in profile.weights.items() if weight]
    found += [Part(f"field {name}", {"fields": {name: 0}}) for name, weight in profile.fields.items() if weight]
    found += [Part(f"slot {slot.name}", {"slots": {slot.name: {"remove": True}}}) for slot in profile.slots]
    found += _beside(profile)
    found += [Part("related words", {"related_weight": 0})] if profile.related_weight else []
    return [*found, *STAGES, *(STAGES_ON_CODE if suite.on_code else ())]


def _beside(profile: Profile) -> Iterator[Part]:
    """Sources that a slot asks besides its own."""
    for slot in profile.slots:
        for source, _limit in slot.also:
            yield Part(f"source {source} in {slot.name}", {"slots": {slot.name: {"also": {source: 0}}}})


def check(only: Sequence[str], suites: Sequence[Suite]) -> None:
    """Whether each pattern fits a part of one of the suites."""
    names = list(dict.fromkeys(part.name for suite in suites for part in parts(suite)))
    for pattern in only:
        if not any(fnmatch(name, pattern) for name in names):
            raise NotFound(f"Nothing that can be switched off is called {pattern!r}.{near(pattern, names)}")


def ablate(
    suite: Suite,
    data: Path,
    folder: Path,
    *,
    only: Sequence[str] = (),
    budgets: Sequence[int] | None = None,
    limit: int | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Run]:
    """A run for each part that is off, by its name; the first is the whole. `only`: patterns such as `feature *`."""
    chosen = [part for part in parts(suite) if not only or any(fnmatch(part.name, pattern) for pattern in only)]
    out = {}
    for part in (None, *chosen):
        system = Foveate() if part is None else Foveate(f"foveate without {part.name}", overrides=part.overrides)
        with nullcontext() if part is None else off(part):
            out[part.name if part else WHOLE] = run(
                suite, system, data, folder, budgets=budgets, limit=limit, options=options, progress=progress
            )
    return out


@dataclass(frozen=True, slots=True)
class Effect:
    """What switching a part off does to one measure at one budget: a negative difference is what the part is worth."""

    part: str
    suite: str
    what: str
    measure: str
    budget: int
    difference: float
    p: float
    ms: float
    """CPU time of a context without it, times that of one with it."""

    @property
    def is_beyond_chance(self) -> bool:
        return self.p < BEYOND


def effects(runs: Mapping[str, Run]) -> Iterator[Effect]:
    """Each part against the whole."""
    whole = runs[WHOLE]
    for part, without in runs.items():
        if part == WHOLE:
            continue
        for one in compare(whole, without).differences:
            ms = _ms(without, one.budget) / max(_ms(whole, one.budget), 0.01)
            yield Effect(part, whole.suite, one.what, one.measure, one.budget, one.difference, one.p, round(ms, 3))


def _ms(run: Run, budget: int) -> float:
    return sum(row.packs[budget].ms for row in run.rows) / max(1, len(run.rows))
