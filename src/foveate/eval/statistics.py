"""Scores of cases -> how sure a figure is, and whether two systems differ. Pure, no package needed.

Where every case scores 0 or 1, the mean is a share and has Wilson's interval, which is right near 0 and 1 and for few cases.
A mean of other fractions has the normal interval, clipped to 0..1: rough for few cases, and empty where all score the same.

Both take cases as independent. Cases of one world are not: they ask the same store, and a world that is hard is hard for all
of them. Where there are at least five worlds, `Estimate.over_worlds` gives the interval that takes worlds, not cases, as the
sample: its standard error comes from how far the worlds are from the mean, each weighed by its cases, with Student's t for
their number. It is what to quote for "on another talk". The paired tests, too, take cases as independent; where a p value
matters and worlds are few, look at the worlds.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

Z = 1.959963984540054
"""The normal distribution holds 95 % within so many standard deviations."""
FEWEST_WORLDS = 5
FLIPS = 10_000
SEED = 1
SAME = 1e-9
"""Fractions nearer than this are the same."""
DIGITS = 12
"""Differences are rounded to so many, so that equal ones are known as such."""


@dataclass(frozen=True, slots=True)
class Interval:
    """95 % of such intervals hold the true value. `method`: wilson, normal or worlds."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure in 0..1 over `n` cases."""

    value: float
    n: int
    interval: Interval
    over_worlds: Interval | None = None


def estimate(values: Sequence[float], worlds: Sequence[str]) -> Estimate:
    """The mean of scores in 0..1; `worlds` says where each is from."""
    n = len(values)
    mean = math.fsum(values) / n
    interval = wilson(round(sum(values)), n) if {0.0, 1.0}.issuperset(values) else normal(values)
    return Estimate(mean, n, interval, over_worlds(values, worlds))


def wilson(hits: int, n: int) -> Interval:
    """Wilson's score interval for `hits` of `n`."""
    share, z2 = hits / n, Z * Z
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the formula gives exactly 0 or 1, but for rounding.
    return Interval(0.0 if not hits else middle - reach, 1.0 if hits == n else middle + reach, "wilson")


def normal(values: Sequence[float]) -> Interval:
    """The normal interval on a mean, clipped; a single score tells nothing of the spread."""
    n = len(values)
    if n < 2:
        return Interval(0.0, 1.0, "normal")
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    return _around(mean, Z * math.sqrt(variance / n), "normal")


def over_worlds(values: Sequence[float], worlds: Sequence[str]) -> Interval | None:
    """The interval with worlds as the sample, where there are enough of them."""
    if len(set(worlds)) < FEWEST_WORLDS:
        return None
    by_world: defaultdict[str, list[float]] = defaultdict(list)
    for value, world in zip(values, worlds, strict=True):
        by_world[world].append(value)
    n, number = len(values), len(by_world)
    mean = math.fsum(values) / n
    spread = math.fsum((math.fsum(scores) - mean * len(scores)) ** 2 for scores in by_world.values())
    error = math.sqrt(spread * number / (number - 1)) / n
    return _around(mean, student(number - 1) * error, "worlds")


def student(freedom: int) -> float:
    """The t quantile for 95 %, by the first terms of its series in 1 / freedom; within 0.3 % from 4 on."""
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
    )
    return Z + terms[0] / freedom + terms[1] / freedom**2 + terms[2] / freedom**3


def _around(mean: float, reach: float, method: str) -> Interval:
    return Interval(max(0.0, mean - reach), min(1.0, mean + reach), method)


# --- two systems on the same cases ---------------------------------------------------------------------------------


def mcnemar(won: int, lost: int) -> float:
    """The exact two-sided p value where so many cases changed for the better and for the worse: a fair coin's."""
    n = won + lost
    ways, tail = 1, 0
    for k in range(min(won, lost) + 1):
        tail += ways
        ways = ways * (n - k) // (k + 1)
    return min(1.0, 2 * tail / (1 << n))


def sign_flips(differences: Iterable[float], *, flips: int = FLIPS, seed: int = SEED) -> float:
    """The two-sided p value of a mean difference: how often random signs give one as large.

    Differences of the same size are flipped together: the number of plus signs among them is the number of ones in as many
    random bits. The same seed gives the same value.
    """
    rounded = [round(value, DIGITS) for value in differences]
    sizes = sorted(Counter(abs(value) for value in rounded if value).items())
    seen = abs(math.fsum(rounded)) - len(rounded) * 10**-DIGITS  # three thirds are one, but for rounding each
    if not sizes or seen <= 0:
        return 1.0
    random = Random(seed)
    as_large = 0
    for _ in range(flips):
        total = sum(size * (2 * random.getrandbits(number).bit_count() - number) for size, number in sizes)
        as_large += abs(total) >= seen
    return (as_large + 1) / (flips + 1)
