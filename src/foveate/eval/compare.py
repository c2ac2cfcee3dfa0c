"""Two runs of one suite -> on which cases the second is better or worse, and whether that is more than chance.

Only the cases and budgets that both have are compared. Shares have McNemar's exact test, fractions a test by random signs.
There is a p value for every measure and budget: of twenty, one is below 0.05 by chance alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from foveate.errors import InputError
from foveate.eval.measures import EVIDENCE, SHARES, WHOLE
from foveate.eval.report import DIGITS, scored
from foveate.eval.rows import Row, Run
from foveate.eval.statistics import SAME, mcnemar, sign_flips

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """One measure at one budget: means of both runs, and the cases (`world/case`) that `b` won and lost."""

    measure: str
    budget: int
    what: str
    n: int
    a: float
    b: float
    p: float
    won: tuple[str, ...]
    lost: tuple[str, ...]

    @property
    def difference(self) -> float:
        return self.b - self.a

    @property
    def test(self) -> str:
        return "mcnemar" if self.measure in SHARES else "sign flips"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`cases`: how many both have; `only_a` and `only_b`: how many one of them has alone."""

    a: Run
    b: Run
    cases: int
    only_a: int
    only_b: int
    differences: tuple[Difference, ...]


Pairs = Sequence[tuple[Row, Row]]


def compare(a: Run, b: Run) -> Comparison:
    """How `b` differs from `a`."""
    _check(a, b)
    first, second = ({(row.world, row.case): row for row in run.rows} for run in (a, b))
    pairs = [(first[key], second[key]) for key in first if key in second]
    if not pairs:
        raise InputError("The two runs have no case in common; run both on the same worlds and types.")
    budgets = sorted(set(pairs[0][0].packs) & set(pairs[0][1].packs))
    if not budgets:
        raise InputError("The two runs have no budget in common; run both with the same --budgets.")
    return Comparison(
        a, b, len(pairs), len(first) - len(pairs), len(second) - len(pairs), tuple(_differences(pairs, budgets))
    )


def _check(a: Run, b: Run) -> None:
    for what in ("suite", "data", "options"):
        one, other = a.about.get(what), b.about.get(what)
        if one != other:
            raise InputError(f"Only runs with the same {what} can be compared, not {one!r} and {other!r}.")
    if a.about.get("scoring") != b.about.get("scoring"):
        raise InputError("The two runs were asked and scored by other code of the evaluation; run both again.")


def _differences(pairs: Pairs, budgets: Sequence[int]) -> Iterator[Difference]:
    whats = list(dict.fromkeys(what for a, _ in pairs for pack in a.packs.values() for what in pack.hits))
    measured = [*((what, measure) for what in whats for measure in EVIDENCE), *(("", measure) for measure in WHOLE)]
    for what, measure in measured:
        for budget in budgets:
            found = _difference(pairs, measure, budget, what)
            if found:
                yield found


def _difference(pairs: Pairs, measure: str, budget: int, what: str) -> Difference | None:
    both = [
        (f"{a.world}/{a.case}", one, other)
        for a, b in pairs
        if (one := scored(a, measure, budget, what)) is not None and (other := scored(b, measure, budget, what)) is not None
    ]
    if not both:
        return None
    n = len(both)
    won = tuple(case for case, one, other in both if other - one > SAME)
    lost = tuple(case for case, one, other in both if one - other > SAME)
    is_share = measure in SHARES
    p = mcnemar(len(won), len(lost)) if is_share else sign_flips(other - one for _, one, other in both)
    a, b = sum(one for _, one, _ in both) / n, sum(other for _, _, other in both) / n
    return Difference(measure, budget, what, n, a, b, p, won, lost)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison as a document; means are in 0..1."""
    return {
        "schema": SCHEMA,
        "suite": comparison.a.suite,
        **{
            name: {
                "system": run.system,
                "fingerprint": run.about.get("fingerprint"),
                "rows": str(run.path),
                "finished": run.finished,
            }
            for name, run in (("a", comparison.a), ("b", comparison.b))
        },
        "cases": comparison.cases,
        "only_a": comparison.only_a,
        "only_b": comparison.only_b,
        "differences": [
            {
                **asdict(one),
                "a": round(one.a, DIGITS),
                "b": round(one.b, DIGITS),
                "difference": round(one.difference, DIGITS),
                "p": round(one.p, DIGITS),
                "test": one.test,
            }
            for one in comparison.differences
        ],
    }
