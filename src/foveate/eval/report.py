"""Rows -> figures: how much of the needed evidence arrived, with intervals, over all cases and by type of question.

A case counts for a kind of evidence (`what`) where it wants some of that kind: `any` of it arrived, `all` of it, which
`fraction` of it. `clean` is of the cases that name something unwanted: nothing of it is there. `passed` is of every case: it
is clean, and all that is wanted is there. From rankings come `any` and `all` within the first `top` places, and `mrr`, the
mean of 1 / place of the first piece found. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from foveate.eval.measures import EVIDENCE, WHOLE
from foveate.eval.rows import Row, Run
from foveate.eval.statistics import Estimate, Interval, estimate

SCHEMA = 1
DIGITS = 6


class Figure(NamedTuple):
    """Which figure: of all cases where `type` is empty; of a pack where there is a budget, of a ranking otherwise."""

    measure: str
    budget: int | None = None
    what: str = ""
    type: str = ""
    top: int | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """What the packs of a budget cost, on average: tokens, and of foveate CPU milliseconds; and how many were over it.

    The time of others would mislead: they work in a process of their own, or keep what they found for the next budget.
    """

    budget: int
    tokens: float
    ms: float | None
    over: int


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run. `whats`: the kinds of evidence, the headline first; `types`: how many cases of each."""

    run: Run
    cases: int
    worlds: int
    budgets: tuple[int, ...]
    whats: tuple[str, ...]
    types: Mapping[str, int]
    figures: Mapping[Figure, Estimate]
    spent: tuple[Spent, ...]
    label: str = ""
    """Its name in tables and pictures, where the system's would not tell it from another run."""

    @property
    def name(self) -> str:
        return self.label or self.run.system

    @property
    def headline(self) -> str:
        return self.whats[0] if self.whats else ""


Tops = Mapping[str, Sequence[int]]
"""Which places of a ranking are reported, by `what`: a suite's `top`."""


def report(run: Run, top: Tops | None = None) -> Report:
    """The figures of a run."""
    rows = run.rows
    types: dict[str, list[Row]] = {}
    for row in rows:
        types.setdefault(row.type, []).append(row)
    budgets = tuple(sorted(rows[0].packs)) if rows else ()
    whats = tuple(dict.fromkeys(what for row in rows for pack in row.packs.values() for what in pack.hits))
    figures: dict[Figure, Estimate] = {}
    for type, group in (("", rows), *(pair for pair in sorted(types.items()) if pair[0])):
        for budget in budgets:
            for what in whats:
                figures.update(_evidence(group, budget, what, type))
            figures.update(_whole(group, budget, type))
        figures.update(_ranks(group, type, top or {}))
    return Report(
        run,
        cases=len(rows),
        worlds=len({row.world for row in rows}),
        budgets=budgets,
        whats=whats,
        types={type: len(group) for type, group in sorted(types.items()) if type},
        figures=figures,
        spent=tuple(_spent(run, budget) for budget in budgets),
    )


def scored(row: Row, measure: str, budget: int, what: str = "") -> float | None:
    """What one case scores, in 0..1; None where it does not count."""
    pack = row.packs[budget]
    if measure == "clean":
        return float(not any(pack.unwanted)) if pack.unwanted else None
    if measure == "passed":
        return float(not any(pack.unwanted) and all(chain.from_iterable(pack.hits.values())))
    hits = pack.hits.get(what)
    return _share(measure, hits) if hits else None


def _share(measure: str, hits: Sequence[bool]) -> float:
    if measure == "any":
        return float(any(hits))
    if measure == "all":
        return float(all(hits))
    return sum(hits) / len(hits)


def _evidence(rows: Sequence[Row], budget: int, what: str, type: str) -> Iterator[tuple[Figure, Estimate]]:
    found = [(row.world, hits) for row in rows if (hits := row.packs[budget].hits.get(what))]
    if found:
        worlds = [world for world, _ in found]
        for measure in EVIDENCE:
            values = [_share(measure, hits) for _, hits in found]
            yield Figure(measure, budget, what, type), estimate(values, worlds)


def _whole(rows: Sequence[Row], budget: int, type: str) -> Iterator[tuple[Figure, Estimate]]:
    for measure in WHOLE:
        found = [(row.world, value) for row in rows if (value := scored(row, measure, budget)) is not None]
        if found:
            worlds, values = zip(*found, strict=True)
            yield Figure(measure, budget, type=type), estimate(values, worlds)


def _ranks(rows: Sequence[Row], type: str, tops: Tops) -> Iterator[tuple[Figure, Estimate]]:
    for what in dict.fromkeys(what for row in rows for what in row.ranks):
        found = [(row.world, ranks) for row in rows if (ranks := row.ranks.get(what))]
        worlds = [world for world, _ in found]
        if not found:
            continue
        for top in tops.get(what, ()):
            for measure in ("any", "all"):
                values = [_share(measure, [rank is not None and rank <= top for rank in ranks]) for _, ranks in found]
                yield Figure(measure, what=what, type=type, top=top), estimate(values, worlds)
        firsts = [1 / min((rank for rank in ranks if rank is not None), default=float("inf")) for _, ranks in found]
        yield Figure("mrr", what=what, type=type), estimate(firsts, worlds)


def _spent(run: Run, budget: int) -> Spent:
    packs = [row.packs[budget] for row in run.rows]
    tokens = sum(pack.tokens for pack in packs) / len(packs)
    ms = sum(pack.ms for pack in packs) / len(packs) if run.system.startswith("foveate") else None
    return Spent(budget, tokens, ms, sum(pack.tokens > budget for pack in packs))


# --- as a document -------------------------------------------------------------------------------------------------


def as_json(report: Report) -> dict[str, Any]:
    """A report as a document. Figures are in 0..1; keys are only ever added while `schema` stays."""
    about = report.run.about
    return {
        "schema": SCHEMA,
        "suite": report.run.suite,
        "system": report.run.system,
        "version": about.get("version"),
        "fingerprint": about.get("fingerprint"),
        "data": about.get("data"),
        "options": about.get("options", {}),
        "rows": str(report.run.path),
        "cases": report.cases,
        "worlds": report.worlds,
        "skipped": report.run.skipped,
        "limit": report.run.limit,
        "finished": report.run.finished,
        "types": dict(report.types),
        "budgets": list(report.budgets),
        "headline": report.headline,
        "figures": [{**figure._asdict(), **_estimate_json(found)} for figure, found in report.figures.items()],
        "spent": [
            {
                "budget": one.budget,
                "tokens": round(one.tokens, 1),
                "ms": None if one.ms is None else round(one.ms, 2),
                "over": one.over,
            }
            for one in report.spent
        ],
    }


def _estimate_json(found: Estimate) -> dict[str, Any]:
    return {
        "value": round(found.value, DIGITS),
        "n": found.n,
        **_interval_json(found.interval),
        "over_worlds": _interval_json(found.over_worlds) if found.over_worlds else None,
    }


def _interval_json(interval: Interval) -> dict[str, Any]:
    return {"low": round(interval.low, DIGITS), "high": round(interval.high, DIGITS), "interval": interval.method}
