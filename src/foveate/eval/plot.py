"""Reports -> a picture: evidence against the token budget, a line for each system with its interval as a band.

PNG or SVG, by the file's name; an SVG has the same bytes each time. Needs matplotlib, from the extra `eval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from foveate.errors import InputError, near
from foveate.eval.measures import EVIDENCE, WHOLE
from foveate.eval.report import Figure, Report
from foveate.eval.tables import summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

FORMATS = (".png", ".svg")
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's: told apart with any kind of colour blindness. Markers and dashes say the same without colour."""
MARKERS = "osD^vP*X"
GLYPHS = "●■◆▲▼✚★✖"
"""The same marks as letters, for the names at the ends of the lines."""
DASHES = ("-", "--", "-.", ":")
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # words stay words: they can be searched and read aloud
    "svg.hashsalt": "foveate",
}
MEANS = {
    "any": "any of the {whats}",
    "all": "all {whats}",
    "fraction": "fraction of the {whats}",
    "clean": "nothing unwanted",
    "passed": "all wanted, nothing unwanted",
}
MOST_LABELS = 8
"""Systems that are named at the ends of their lines; more have a legend."""
COLUMNS = 3
"""Small multiples beside one another."""
LETTER = 0.075
"""Inches that a letter of a name takes."""
CHARACTERS = 15
"""Of the caption, to an inch."""
GREY = "#555555"


def plot(
    reports: Sequence[Report], to: Path, *, measures: Sequence[str] = EVIDENCE, what: str = "", by_type: bool = False
) -> None:
    """Draw the reports of one suite: a panel for each measure, or one measure with a panel for each type."""
    check(to)
    what = _what(reports, measures, what)
    if by_type and len(measures) != 1:
        raise InputError(f"A plot by type is of one measure, not of {', '.join(measures)}; name one.")
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Drawing

    panels = _by_type(reports, measures[0], what) if by_type else _by_measure(measures, what)
    columns = min(COLUMNS, len(panels))
    rows = ceil(len(panels) / columns)
    with rc_context(STYLE):
        named = max(len(one.name) for one in reports) * LETTER if len(reports) <= MOST_LABELS else 0
        size = (0.4 + (3.3 + named) * columns, 0.7 + 2.7 * rows)
        drawing = Drawing(figsize=size, facecolor="white", layout="constrained")
        axes = list(drawing.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
        for panel, (title, kind, type) in zip(axes, panels, strict=False):
            _panel(panel, reports, title, kind, what, type)
        for panel in axes[len(panels) :]:
            panel.set_visible(False)
        _finish(drawing, reports, _title(measures[0], what) if by_type else "")
        to.parent.mkdir(parents=True, exist_ok=True)
        drawing.savefig(to, dpi=200, metadata={"Date": None} if to.suffix.lower() == ".svg" else {"Software": None})


def check(to: Path) -> None:
    """Whether such a file can be drawn here, before anything is run for it."""
    if to.suffix.lower() not in FORMATS:
        raise InputError(f"{str(to)!r} is no picture that can be written; name a file that ends in .png or .svg.")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(f"Plots need matplotlib: pip install 'foveate[eval]' ({error})") from None


def _what(reports: Sequence[Report], measures: Sequence[str], what: str) -> str:
    """The kind of evidence that is drawn."""
    for measure in measures:
        if measure not in MEANS:
            raise InputError(f"There is no measure {measure!r}.{near(measure, MEANS)}")
    suites = sorted({one.run.suite for one in reports})
    if len(suites) != 1:
        raise InputError(f"A plot is of one suite, not of {', '.join(suites) or 'none'}; name runs of one.")
    if not any(one.cases for one in reports):
        raise InputError("There is nothing to draw: the runs have no cases.")
    whats = list(dict.fromkeys(one for report in reports for one in report.whats))
    if what and what not in whats:
        raise InputError(f"There is no evidence {what!r} in these runs.{near(what, whats)}")
    return what or (whats[0] if whats else "")


Panel = tuple[str, str, str]
"""Title, measure, and type of question."""


def _by_measure(measures: Sequence[str], what: str) -> list[Panel]:
    return [(_title(measure, what), measure, "") for measure in measures]


def _by_type(reports: Sequence[Report], measure: str, what: str) -> list[Panel]:
    types = list(dict.fromkeys(type for one in reports for type in one.types))
    if not types:
        raise InputError("The cases of these runs have no types; draw them without --by-type.")
    return [(f"{type} (n = {max(one.types.get(type, 0) for one in reports):,})", measure, type) for type in types]


def _title(measure: str, what: str) -> str:
    return MEANS[measure].format(whats=what if what.endswith("s") else f"{what}s")


def _panel(panel: Axes, reports: Sequence[Report], title: str, measure: str, what: str, type: str) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    budgets = sorted({budget for one in reports for budget in one.budgets})
    ends = []
    for n, one in enumerate(reports):
        figures = {
            budget: found
            for budget in one.budgets
            if (found := one.figures.get(Figure(measure, budget, "" if measure in WHOLE else what, type)))
        }
        if not figures:
            continue
        color, dash, mark = COLORS[n % len(COLORS)], DASHES[n % len(DASHES)], n % len(MARKERS)
        lows, highs = ([100 * getattr(found.interval, end) for found in figures.values()] for end in ("low", "high"))
        values = [100 * found.value for found in figures.values()]
        panel.fill_between(list(figures), lows, highs, color=color, alpha=0.15, linewidth=0)
        panel.plot(
            list(figures), values, dash, color=color, marker=MARKERS[mark], ms=4, lw=1.6, label=one.name, clip_on=False
        )
        ends.append((values[-1], max(figures), f"{GLYPHS[mark]} {one.name}", color))
    panel.set_title(title, fontsize=9, loc="left")
    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator(budgets))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.set_xticks(budgets, [short(budget) for budget in budgets])
    panel.set_ylim(0, 100)
    panel.yaxis.set_major_formatter("{x:.0f}%")
    panel.grid(axis="y", color="#DDDDDD", linewidth=0.6)
    panel.tick_params(labelbottom=True, labelleft=True, labelsize=8, length=3)
    if len(reports) <= MOST_LABELS:
        _name_ends(panel, ends)


def _name_ends(panel: Axes, ends: Sequence[tuple[float, int, str, str]]) -> None:
    """The systems' names where their lines end, moved apart where they would overlap."""
    heights = apart([height for height, *_ in ends])
    for (_, budget, name, color), height in zip(ends, heights, strict=True):
        panel.annotate(
            name, (budget, height), xytext=(6, 0), textcoords="offset points", color=color, va="center", fontsize=8
        )


def apart(heights: Sequence[float], gap: float = 6.0, top: float = 100.0) -> list[float]:
    """Heights with at least `gap` between any two: those too near are spread around their middle, within 0..`top`."""
    groups: list[list[int]] = []
    places: dict[int, float] = {}
    for n in sorted(range(len(heights)), key=lambda n: (heights[n], -n)):
        groups.append([n])
        places[n] = heights[n]
        while len(groups) > 1 and places[groups[-1][0]] - places[groups[-2][-1]] < gap:
            joined = [*groups[-2], *groups.pop()]
            groups[-1] = joined
            reach = (len(joined) - 1) * gap
            middle = sum(heights[one] for one in joined) / len(joined)
            lowest = max(0.0, min(middle - reach / 2, top - reach))
            places |= {one: lowest + gap * number for number, one in enumerate(joined)}
    return [places[n] for n in range(len(heights))]


def _finish(drawing: Drawing, reports: Sequence[Report], title: str) -> None:
    if title:
        drawing.suptitle(title, fontsize=10, x=0.01, ha="left")
    said = wrap(caption(reports), round(drawing.get_figwidth() * CHARACTERS))
    drawing.supxlabel("\n".join(["token budget", *said]), fontsize=8, color=GREY)
    if len(reports) > MOST_LABELS:
        lines, names = drawing.axes[0].get_legend_handles_labels()
        drawing.legend(lines, names, loc="outside upper left", ncols=5, frameon=False, fontsize=8)


def caption(reports: Sequence[Report]) -> str:
    """Suite, number of cases, versions, and what the bands are."""
    return f"{summary(reports)}; {', '.join(map(_version, reports))}; bands: 95% intervals"


def _version(report: Report) -> str:
    """A system's version: foveate's, or what a baseline says of itself."""
    about = report.run.about
    if report.run.system.startswith("foveate"):
        return f"{report.name} {about.get('version', '')}".strip()
    said = str(about.get("fingerprint", ""))
    return said if said.startswith(report.name) else f"{report.name} {said}".strip()


def short(budget: int) -> str:
    """250, 500, 1k, 1.5k."""
    return str(budget) if budget < 1000 else f"{budget / 1000:g}k"
