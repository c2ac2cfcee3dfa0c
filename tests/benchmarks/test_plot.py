"""Plots of reports, drawn by the real matplotlib."""

from __future__ import annotations

import struct
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench.plot import caption, format_budget, plot, spread_labels

from foveate.errors import InputError
from foveate.eval.report import Report, report
from foveate.eval.rows import BudgetResult, CaseResult, Run

pytest.importorskip("matplotlib")

BUDGETS = (250, 500, 1000, 4000, 32000)


def make_report(system: str, good: int, suite: str = "talks", types: tuple[str, ...] = ("single-hop", "temporal")) -> Report:
    results = [
        CaseResult(
            "w",
            str(n),
            types[n % len(types)],
            {b: BudgetResult(b, 1.0, {"turn": [n + i < good]}) for i, b in enumerate(BUDGETS)},
        )
        for n in range(20)
    ]
    return report(
        Run(suite, system, tuple(results), {"version": "1.2.3", "fingerprint": f"{system} 7"}, Path(f"{system}.jsonl"))
    )


REPORTS = [make_report("foveate", 20), make_report("fts5", 12), make_report("recency", 11)]


def words(path: Path) -> list[str]:
    tree = ElementTree.parse(path)
    return ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]


def test_svg_contains_the_labels_as_text_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "a.svg", tmp_path / "deeper" / "b.svg"
    plot(REPORTS, first)
    plot(REPORTS, second)
    assert first.read_bytes() == second.read_bytes()
    found = words(first)
    assert {"any of the turns", "all turns", "recall of the turns", "250", "500", "1k", "4k", "32k"} <= set(found)
    assert [found.count(name) for name in ("● foveate", "■ fts5", "◆ recency")] == [
        3,
        3,
        3,
    ]  # at the ends of the lines of each panel
    said = " ".join(found)
    assert "talks: 20 cases in 1 subset; foveate 1.2.3, fts5 7, recency 7; bands: 95% intervals" in said
    assert "<dc:date>" not in first.read_text()


def test_caption_names_versions_and_no_settings() -> None:
    assert caption([make_report("foveate without stage dates", 20)]) == (
        "talks: 20 cases in 1 subset; foveate without stage dates 1.2.3; bands: 95% intervals"
    )


def test_png_is_a_picture_on_white(tmp_path: Path) -> None:
    to = tmp_path / "a.PNG"
    plot(REPORTS, to, metrics=["recall"])
    raw = to.read_bytes()
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", raw[16:24])
    assert width > height > 600
    from matplotlib.image import imread

    assert imread(to)[0, 0].tolist() == [1.0] * 4


def test_panel_for_each_type_of_question(tmp_path: Path) -> None:
    to = tmp_path / "types.svg"
    plot(REPORTS, to, metrics=["complete"], by_type=True)
    found = words(to)
    assert {"single-hop (n = 10)", "temporal (n = 10)", "all turns"} <= set(found)


def test_many_systems_have_a_legend_instead(tmp_path: Path) -> None:
    to = tmp_path / "many.svg"
    plot([make_report(f"system-{n}", n) for n in range(10)], to)
    assert [words(to).count(f"system-{n}") for n in range(10)] == [1] * 10


def test_one_budget_can_be_drawn(tmp_path: Path) -> None:
    results = (CaseResult("w", "1", "", {8000: BudgetResult(1, 1.0, {"file": [True]}, [False])}),)
    to = tmp_path / "one.svg"
    plot([report(Run("s", "foveate", results, {}, Path("x")))], to, metrics=["complete", "no_forbidden", "passed"])
    assert {"8k", "all files", "nothing forbidden"} <= set(words(to))


@pytest.mark.parametrize(
    ("reports", "to", "options", "message"),
    [
        (REPORTS, "a.pdf", {}, "must end in .png or .svg"),
        (REPORTS, "a.svg", {"metrics": ["recal"]}, "no metric 'recal'. Did you mean 'recall'?"),
        (REPORTS, "a.svg", {"evidence_type": "turns"}, "no evidence of type 'turns' in these runs. Did you mean 'turn'?"),
        (REPORTS, "a.svg", {"by_type": True}, "has one metric, got hit_rate, complete, recall"),
        ([make_report("foveate", 1, types=("",))], "a.svg", {"by_type": True, "metrics": ["hit_rate"]}, "have no types"),
        ([*REPORTS, make_report("foveate", 1, "code")], "a.svg", {}, "of one suite, got code, talks"),
        ([report(Run("s", "foveate", (), {}, Path("x")))], "a.svg", {}, "no cases"),
    ],
)
def test_errors_say_what_cannot_be_drawn(
    reports: list[Report], to: str, options: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as error:
        plot(reports, tmp_path / to, **options)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_missing_matplotlib_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        plot(REPORTS, tmp_path / "a.svg")


@pytest.mark.parametrize("heights", [[50.0], [50, 50, 50], [98, 99, 100, 100], [0, 1, 2], [10, 12, 60, 61, 63, 90], []])
def test_labels_are_moved_apart_in_their_order_and_stay_inside(heights: list[float]) -> None:
    found = spread_labels(heights, gap=6)
    ordered = [place for _, place in sorted(zip(heights, found, strict=True))]
    assert all(above - below >= 6 - 1e-9 for below, above in pairwise(ordered))
    assert all(-1e-9 <= place <= 100 + 1e-9 for place in found)
    assert spread_labels([10, 50, 90]) == [10, 50, 90]


@pytest.mark.parametrize(("budget", "text"), [(250, "250"), (1000, "1k"), (1500, "1.5k"), (32000, "32k")])
def test_budgets_are_formatted(budget: int, text: str) -> None:
    assert format_budget(budget) == text
