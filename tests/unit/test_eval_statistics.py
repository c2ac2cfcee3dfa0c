"""Intervals and tests against values worked out by hand."""

from __future__ import annotations

from itertools import product
from math import comb, sqrt

import pytest

from foveate.eval.statistics import clustered_interval, estimate, mcnemar, normal, sign_flip_test, t_quantile_95, wilson


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


def test_interval_over_subsets_is_wider_where_subsets_differ() -> None:
    subsets = [f"w{n // 10}" for n in range(50)]
    values = [float(n // 10 % 2) for n in range(50)]  # subsets of 0, 1, 0, 1, 0: mean 0.4
    found = clustered_interval(values, subsets)
    assert found is not None
    error = sqrt(0.3 / 5)  # variance of the five means is 1.2 / 4
    assert (found.low, found.high) == pytest.approx((max(0, 0.4 - 2.776 * error), min(1, 0.4 + 2.776 * error)), abs=0.003)
    assert found.high - found.low > 2 * (wilson(20, 50).high - wilson(20, 50).low)


def test_interval_over_subsets_weighs_subsets_by_their_cases() -> None:
    # Sums less mean times size: mean 0.7; 5 - 3.5, and -0.7 + 0.7 ... for the one-case subsets.
    values, subsets = [1.0] * 6 + [0.0, 1.0, 0.0, 0.0], ["a"] * 6 + ["b", "c", "d", "e"]
    found = clustered_interval(values, subsets)
    spread = (6 - 0.7 * 6) ** 2 + 3 * 0.7**2 + 0.3**2
    half_width = 2.776 * sqrt(spread * 5 / 4) / 10
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.7 - half_width, 1.0), abs=0.003)


def test_fewer_than_five_subsets_have_no_interval_of_their_own() -> None:
    assert estimate([1.0, 0.0, 1.0, 1.0], list("abcd")).clustered_interval is None
    assert estimate([1.0, 0.0, 1.0, 1.0, 1.0], list("abcde")).clustered_interval is not None


@pytest.mark.parametrize(("degrees", "t"), [(4, 2.7764), (9, 2.2622), (30, 2.0423), (1000, 1.9623)])
def test_t_quantile_is_near_the_tables(degrees: int, t: float) -> None:
    assert t_quantile_95(degrees) == pytest.approx(t, rel=0.003)


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
    share, fractions = (estimate(values, ["a", "b"]) for values in ([1.0, 0.0], [0.25, 0.75]))
    assert share.value == fractions.value == 0.5
    assert (share.interval.method, fractions.interval.method) == ("wilson", "normal")
