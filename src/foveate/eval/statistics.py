"""Confidence intervals of metrics, and tests of the difference between two systems.

If every case scores 0 or 1, the mean is a share and gets Wilson's interval, which is right near 0 and 1 and for few cases.
A mean of other fractions gets the normal interval, clipped to 0..1. It is rough for few cases, and empty if all score alike.

Intervals and tests take cases as independent. Cases of one subset are not: they use the same store, and a hard subset is
hard for all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

Z_95 = 1.959963984540054
"""95 % of a normal distribution lie within this many standard deviations."""
PERMUTATION_COUNT = 10_000
SEED = 1
EQUAL_TOLERANCE = 1e-9
DIFFERENCE_DIGITS = 12
"""Differences are rounded, so that equal ones are recognized despite floating-point errors."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval. `method` is wilson or normal."""

    low: float
    high: float
    method: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """A metric in 0..1 over some cases."""

    value: float
    case_count: int
    interval: Interval


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of scores in 0..1 with its interval."""
    n = len(values)
    interval = wilson(round(sum(values)), n) if {0.0, 1.0}.issuperset(values) else normal(values)
    return Estimate(math.fsum(values) / n, n, interval)


def wilson(hits: int, n: int) -> Interval:
    """Return Wilson's score interval for `hits` of `n`."""
    share, z2 = hits / n, Z_95 * Z_95
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half_width = Z_95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the formula gives exactly 0 or 1, apart from rounding errors.
    return Interval(0.0 if not hits else middle - half_width, 1.0 if hits == n else middle + half_width, "wilson")


def normal(values: Sequence[float]) -> Interval:
    """Return the normal interval of a mean, clipped to 0..1. A single score says nothing about the spread."""
    n = len(values)
    if n < 2:
        return Interval(0.0, 1.0, "normal")
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    half_width = Z_95 * math.sqrt(variance / n)
    return Interval(max(0.0, mean - half_width), min(1.0, mean + half_width), "normal")


# --- two systems on the same cases ---------------------------------------------------------------------------------


def mcnemar(improved_count: int, worsened_count: int) -> float:
    """Return the exact two-sided p value of McNemar's test: how often a fair coin gives a result as uneven."""
    n = improved_count + worsened_count
    ways, tail = 1, 0
    for k in range(min(improved_count, worsened_count) + 1):
        tail += ways
        ways = ways * (n - k) // (k + 1)
    return min(1.0, 2 * tail / (1 << n))


def sign_flip_test(differences: Iterable[float]) -> float:
    """Return the two-sided p value of a mean difference: how often random signs, from a fixed seed, give one as large."""
    rounded = [round(value, DIFFERENCE_DIGITS) for value in differences]
    sizes = sorted(Counter(abs(value) for value in rounded if value).items())
    observed = abs(math.fsum(rounded)) - len(rounded) * 10**-DIFFERENCE_DIGITS  # three rounded thirds are not quite 1
    if not sizes or observed <= 0:
        return 1.0
    random = Random(SEED)
    as_large = 0
    for _ in range(PERMUTATION_COUNT):
        # Differences of one size are flipped together: the number of plus signs is the number of ones in random bits.
        total = sum(size * (2 * random.getrandbits(number).bit_count() - number) for size, number in sizes)
        as_large += abs(total) >= observed
    return (as_large + 1) / (PERMUTATION_COUNT + 1)
