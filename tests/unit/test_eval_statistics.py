"""Intervals and tests against values worked out by hand."""

from __future__ import annotations

from itertools import product
from math import comb, sqrt

import pytest

from foveate.eval.statistics import estimate, mcnemar, normal, over_worlds, sign_flips, student, wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),  # centre (0.8 + 0.19207) / 1.38415 = 0.71674, reach 0.22659
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
    reach = 1.959964 * 0.2 / sqrt(3)
    assert (found.low, found.high) == pytest.approx((0.4 - reach, 0.4 + reach), abs=1e-6)


@pytest.mark.parametrize(("values", "expected"), [([0.0, 1.0], (0.0, 1.0)), ([1.0], (0.0, 1.0)), ([0.5, 0.5], (0.5, 0.5))])
def test_normal_interval_is_clipped_and_knows_nothing_from_one_case(
    values: list[float], expected: tuple[float, float]
) -> None:
    found = normal(values)
    assert (found.low, found.high) == expected


def test_interval_over_worlds_is_wider_where_worlds_differ() -> None:
    worlds = [f"w{n // 10}" for n in range(50)]
    values = [float(n // 10 % 2) for n in range(50)]  # worlds of 0, 1, 0, 1, 0: mean 0.4
    found = over_worlds(values, worlds)
    assert found is not None
    error = sqrt(0.3 / 5)  # variance of the five means is 1.2 / 4
    assert (found.low, found.high) == pytest.approx((max(0, 0.4 - 2.776 * error), min(1, 0.4 + 2.776 * error)), abs=0.003)
    assert found.high - found.low > 2 * (wilson(20, 50).high - wilson(20, 50).low)


def test_interval_over_worlds_weighs_worlds_by_their_cases() -> None:
    # Sums less mean times size: mean 0.7; 5 - 3.5, and -0.7 + 0.7 ... for the one-case worlds.
    values, worlds = [1.0] * 6 + [0.0, 1.0, 0.0, 0.0], ["a"] * 6 + ["b", "c", "d", "e"]
    found = over_worlds(values, worlds)
    spread = (6 - 0.7 * 6) ** 2 + 3 * 0.7**2 + 0.3**2
    reach = 2.776 * sqrt(spread * 5 / 4) / 10
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.7 - reach, 1.0), abs=0.003)


def test_fewer_than_five_worlds_have_no_interval_of_their_own() -> None:
    assert estimate([1.0, 0.0, 1.0, 1.0], list("abcd")).over_worlds is None
    assert estimate([1.0, 0.0, 1.0, 1.0, 1.0], list("abcde")).over_worlds is not None


@pytest.mark.parametrize(("freedom", "t"), [(4, 2.7764), (9, 2.2622), (30, 2.0423), (1000, 1.9623)])
def test_student_is_near_the_tables(freedom: int, t: float) -> None:
    assert student(freedom) == pytest.approx(t, rel=0.003)


@pytest.mark.parametrize(
    ("won", "lost", "p"),
    [
        (0, 0, 1.0),
        (5, 0, 2 / 32),
        (0, 5, 2 / 32),
        (9, 1, 2 * 11 / 1024),
        (3, 3, 1.0),
        (600, 400, 2 * sum(comb(1000, k) for k in range(401)) / 2**1000),
    ],
)
def test_mcnemar_is_exact(won: int, lost: int, p: float) -> None:
    assert mcnemar(won, lost) == pytest.approx(p)


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
    p = sign_flips(differences)
    assert p == pytest.approx(exact(differences), abs=0.02)
    assert p == sign_flips(differences)
    assert p == sign_flips([-one for one in differences])


@pytest.mark.parametrize("differences", [[], [0.0, 0.0], [0.5, -0.5], [1 / 3] * 3000 + [-1.0] * 1000])
def test_no_difference_has_p_one(differences: list[float]) -> None:
    assert sign_flips(differences) == 1.0


def test_all_or_nothing_has_the_interval_of_a_share() -> None:
    share, fractions = (estimate(values, ["a", "b"]) for values in ([1.0, 0.0], [0.25, 0.75]))
    assert share.value == fractions.value == 0.5
    assert (share.interval.method, fractions.interval.method) == ("wilson", "normal")
