"""Plot evidence against the token budget: a line for each system, with its interval as a band.

    python -m bench plot eval-runs --to curve.svg
    python -m bench plot eval-runs --to types.svg --by-type

Writes PNG or SVG, by the file's name; an SVG has the same bytes each time. Needs matplotlib.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.eval import FILE_TYPE, metric_option
from foveate.cli.eval_text import labelled_reports
from foveate.errors import InputError, near
from foveate.eval.model import CASE_METRICS, EVIDENCE_METRICS
from foveate.eval.report import MetricKey, Report
from foveate.eval.rows import read_runs
from foveate.eval.tables import summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colors, which can be distinguished with any color blindness. Markers and dashes repeat the distinction."""
MARKERS = "osD^vP*X"
GLYPHS = "●■◆▲▼✚★✖"
"""The same markers as letters, for the names at the ends of the lines."""
DASHES = ("-", "--", "-.", ":")
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text, so that it can be searched and read aloud
    "svg.hashsalt": "foveate",
}
METRIC_TITLES = {
    "hit_rate": "any of the {evidence}",
    "complete": "all {evidence}",
    "recall": "recall of the {evidence}",
    "no_forbidden": "nothing forbidden",
    "passed": "all expected, nothing forbidden",
}
MAX_END_LABELS = 8
"""More systems get a legend instead of names at the ends of their lines."""
PANEL_COLUMNS = 3
LETTER_WIDTH_IN = 0.075
CAPTION_CHARS_PER_IN = 15
CAPTION_COLOR = "#555555"


def plot(
    reports: Sequence[Report],
    path: Path,
    *,
    metrics: Sequence[str] = EVIDENCE_METRICS,
    evidence_type: str = "",
    by_type: bool = False,
) -> None:
    """Draw the reports of one suite: a panel for each metric, or one metric with a panel for each question type."""
    _check_can_draw(path)
    evidence_type = _check_evidence_type(reports, metrics, evidence_type)
    if by_type and len(metrics) != 1:
        raise InputError(f"A plot by type has one metric, got {', '.join(metrics)}; choose one.")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    panels = _type_panels(reports, metrics[0]) if by_type else _metric_panels(metrics, evidence_type)
    columns = min(PANEL_COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    with rc_context(STYLE):
        label_width = max(len(one.name) for one in reports) * LETTER_WIDTH_IN if len(reports) <= MAX_END_LABELS else 0
        size = (0.4 + (3.3 + label_width) * columns, 0.7 + 2.7 * rows)
        figure = Figure(figsize=size, facecolor="white", layout="constrained")
        axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
        for panel, (title, metric, question_type) in zip(axes, panels, strict=False):
            _draw_panel(panel, reports, title, metric, evidence_type, question_type)
        for panel in axes[len(panels) :]:
            panel.set_visible(False)
        _draw_caption(figure, reports, _title(metrics[0], evidence_type) if by_type else "")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=200, metadata={"Date": None} if path.suffix.lower() == ".svg" else {"Software": None})


def _check_can_draw(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{str(path)!r} must end in .png or .svg.")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(f"Plots need matplotlib: pip install matplotlib ({error})") from None


def _check_evidence_type(reports: Sequence[Report], metrics: Sequence[str], evidence_type: str) -> str:
    """Return the type of evidence to draw, by default the first one of the reports."""
    for metric in metrics:
        if metric not in METRIC_TITLES:
            raise InputError(f"There is no metric {metric!r}.{near(metric, METRIC_TITLES)}")
    suites = sorted({one.run.suite for one in reports})
    if len(suites) != 1:
        raise InputError(f"A plot has the runs of one suite, got {', '.join(suites) or 'none'}.")
    if not any(one.cases for one in reports):
        raise InputError("There is nothing to draw: the runs have no cases.")
    available = list(dict.fromkeys(name for report in reports for name in report.evidence_types))
    if evidence_type and evidence_type not in available:
        raise InputError(f"There is no evidence of type {evidence_type!r} in these runs.{near(evidence_type, available)}")
    return evidence_type or (available[0] if available else "")


Panel = tuple[str, str, str]
"""Title, metric and question type."""


def _metric_panels(metrics: Sequence[str], evidence_type: str) -> list[Panel]:
    return [(_title(metric, evidence_type), metric, "") for metric in metrics]


def _type_panels(reports: Sequence[Report], metric: str) -> list[Panel]:
    types = list(dict.fromkeys(name for report in reports for name in report.question_types))
    if not types:
        raise InputError("The cases of these runs have no types; draw them without --by-type.")
    counts = {name: max(report.question_types.get(name, 0) for report in reports) for name in types}
    return [(f"{name} (n = {counts[name]:,})", metric, name) for name in types]


def _title(metric: str, evidence_type: str) -> str:
    return METRIC_TITLES[metric].format(evidence=evidence_type if evidence_type.endswith("s") else f"{evidence_type}s")


def _draw_panel(
    panel: Axes, reports: Sequence[Report], title: str, metric: str, evidence_type: str, question_type: str
) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    budgets = sorted({budget for one in reports for budget in one.budgets})
    ends = []
    for n, one in enumerate(reports):
        keys = {
            budget: MetricKey(metric, budget, "" if metric in CASE_METRICS else evidence_type, question_type)
            for budget in one.budgets
        }
        estimates = {budget: estimate for budget, key in keys.items() if (estimate := one.metrics.get(key))}
        if not estimates:
            continue
        color, dash, mark = COLORS[n % len(COLORS)], DASHES[n % len(DASHES)], n % len(MARKERS)
        lows = [100 * estimate.interval.low for estimate in estimates.values()]
        highs = [100 * estimate.interval.high for estimate in estimates.values()]
        values = [100 * estimate.value for estimate in estimates.values()]
        x = list(estimates)
        panel.fill_between(x, lows, highs, color=color, alpha=0.15, linewidth=0)
        panel.plot(x, values, dash, color=color, marker=MARKERS[mark], ms=4, lw=1.6, label=one.name, clip_on=False)
        ends.append((values[-1], max(x), f"{GLYPHS[mark]} {one.name}", color))
    panel.set_title(title, fontsize=9, loc="left")
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator(budgets))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticks(budgets, [format_budget(budget) for budget in budgets])
    panel.set_ylim(0, 100)
    panel.yaxis.set_major_formatter("{x:.0f}%")
    panel.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    panel.tick_params(labelbottom=True, labelleft=True, labelsize=8, length=3)
    if len(reports) <= MAX_END_LABELS:
        _label_line_ends(panel, ends)


def _label_line_ends(panel: Axes, ends: Sequence[tuple[float, int, str, str]]) -> None:
    """Write the systems' names where their lines end, moved apart if they would overlap."""
    heights = spread_labels([height for height, *_ in ends])
    for (_, budget, name, color), height in zip(ends, heights, strict=True):
        panel.annotate(
            name, (budget, height), xytext=(6, 0), textcoords="offset points", color=color, va="center", fontsize=8
        )


def spread_labels(heights: Sequence[float], gap: float = 6.0, top: float = 100.0) -> list[float]:
    """Return heights at least `gap` apart: those that are too near are spread around their mean, within 0..`top`."""
    groups: list[list[int]] = []
    positions: dict[int, float] = {}
    for n in sorted(range(len(heights)), key=lambda n: (heights[n], -n)):
        groups.append([n])
        positions[n] = heights[n]
        while len(groups) > 1 and positions[groups[-1][0]] - positions[groups[-2][-1]] < gap:
            joined = [*groups[-2], *groups.pop()]
            groups[-1] = joined
            height = (len(joined) - 1) * gap
            mean = sum(heights[one] for one in joined) / len(joined)
            lowest = max(0.0, min(mean - height / 2, top - height))
            positions |= {one: lowest + gap * number for number, one in enumerate(joined)}
    return [positions[n] for n in range(len(heights))]


def _draw_caption(figure: Figure, reports: Sequence[Report], title: str) -> None:
    if title:
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    text = wrap(caption(reports), round(figure.get_figwidth() * CAPTION_CHARS_PER_IN))
    figure.supxlabel("\n".join(["token budget", *text]), fontsize=8, color=CAPTION_COLOR)
    if len(reports) > MAX_END_LABELS:
        lines, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside upper left", ncols=5, frameon=False, fontsize=8)


def caption(reports: Sequence[Report]) -> str:
    """Return the suite, the number of cases, the versions and the meaning of the bands."""
    return f"{summary(reports)}; {', '.join(map(_version, reports))}; bands: 95% intervals"


def _version(report: Report) -> str:
    """Return a system's name and version; the version of a baseline is its fingerprint."""
    header = report.run.header
    if report.run.system.startswith("foveate"):
        return f"{report.name} {header.get('version', '')}".strip()
    fingerprint = str(header.get("fingerprint", ""))
    return fingerprint if fingerprint.startswith(report.name) else f"{report.name} {fingerprint}".strip()


def format_budget(budget: int) -> str:
    """Format as 250, 500, 1k or 1.5k."""
    return str(budget) if budget < 1000 else f"{budget / 1000:g}k"


@click.command("plot")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=FILE_TYPE)
@click.option("--to", "path", required=True, type=FILE_TYPE, metavar="FILE", help="A .png or .svg file.")
@click.option("--by-type", is_flag=True, help="Draw one metric, with a panel for each question type.")
@click.option("--evidence-type", default="", metavar="NAME", help="turn, session, file, ...; by default the first one.")
@metric_option
def main(runs: tuple[Path, ...], path: Path, by_type: bool, evidence_type: str, metrics: tuple[str, ...]) -> None:
    """Plot evidence against the token budget. RUN is a file that `foveate eval run` wrote, or a folder of them."""
    by_path = {run.path: run for given in runs for run in read_runs(given)}
    chosen = metrics or (("recall",) if by_type else EVIDENCE_METRICS)
    plot(labelled_reports(list(by_path.values())), path, metrics=chosen, evidence_type=evidence_type, by_type=by_type)
    click.echo(str(path))
