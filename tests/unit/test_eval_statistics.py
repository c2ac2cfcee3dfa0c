"""Intervals and tests against values worked out by hand."""

from __future__ import annotations

from itertools import product
from math import comb, sqrt

import pytest

from foveate.eval.statistics import estimate, mcnemar, normal, sign_flip_test, wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),  # centre (0.8 + 0.19207) / 1.38415 = 0.71674, half_width 0.22659
        (0, 10, 0.0, 0.2775),  # z2 / (n + z2) = 3.84146 / 13.84146
        (10, 10, 0.7225, 1.0),
        (1, 1, 0.2065, 1.0),
        (500, 1000, 0.4691, 0.5309),
    ],
)
def test_wilson_interval(hits: int, n: int, low: float, high: float) -> None:
    found = wilson(hits, n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert found.method == "wilson"


def test_normal_interval_is_the_mean_plus_minus_1_96_standard_errors() -> None:
    found = normal([0.2, 0.4, 0.6])  # mean 0.4, variance 0.04, standard error 0.2 / sqrt(3)
    half_width = 1.959964 * 0.2 / sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.4 - half_width, 0.4 + half_width), abs=1e-6)


@pytest.mark.parametrize(("values", "expected"), [([0.0, 1.0], (0.0, 1.0)), ([1.0], (0.0, 1.0)), ([0.5, 0.5], (0.5, 0.5))])
def test_normal_interval_is_clipped_and_knows_nothing_from_one_case(
    values: list[float], expected: tuple[float, float]
) -> None:
    found = normal(values)
    assert (found.low, found.high) == expected


@pytest.mark.parametrize(
    ("improved", "worsened", "p"),
    [
        (0, 0, 1.0),
        (5, 0, 2 / 32),
        (0, 5, 2 / 32),
        (9, 1, 2 * 11 / 1024),
        (3, 3, 1.0),
        (600, 400, 2 * sum(comb(1000, k) for k in range(401)) / 2**1000),
    ],
)
def test_mcnemar_is_exact(improved: int, worsened: int, p: float) -> None:
    assert mcnemar(improved, worsened) == pytest.approx(p)


def exact(differences: list[float]) -> float:
    """Every way to set the signs."""
    ways = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(way >= abs(sum(differences)) - 1e-9 for way in ways) / len(ways)


@pytest.mark.parametrize(
    "differences",
    [
        [1.0, 0.5, 0.5, 1 / 3, -0.5, 0.25, 1.0, 1.0],
        [0.5, -0.5, 1.0, 0.0, 0.0, 1 / 3],
        [1.0] * 10,
    ],
)
def test_sign_flips_come_near_the_exact_value_and_repeat(differences: list[float]) -> None:
    p = sign_flip_test(differences)
    assert p == pytest.approx(exact(differences), abs=0.02)
    assert p == sign_flip_test(differences)
    assert p == sign_flip_test([-one for one in differences])


@pytest.mark.parametrize("differences", [[], [0.0, 0.0], [0.5, -0.5], [1 / 3] * 3000 + [-1.0] * 1000])
def test_no_difference_has_p_one(differences: list[float]) -> None:
    assert sign_flip_test(differences) == 1.0


def test_all_or_nothing_has_the_interval_of_a_share() -> None:
    share, fractions = (estimate(values) for values in ([1.0, 0.0], [0.25, 0.75]))
    assert share.value == fractions.value == 0.5
    assert (share.interval.method, fractions.interval.method) == ("wilson", "normal")
