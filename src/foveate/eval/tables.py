"""Reports and comparisons -> tables of cells for people: percentages with one decimal, budgets as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foveate.eval.ablate import Effect
from foveate.eval.compare import Comparison
from foveate.eval.measures import EVIDENCE, MEASURES, WHOLE
from foveate.eval.report import Figure, Report
from foveate.eval.rows import Run
from foveate.eval.statistics import Estimate

LISTED = 20
"""Cases that a line names; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Table:
    """The first `left` columns are words, the others numbers."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


def summary(reports: Sequence[Report]) -> str:
    """One line over the tables of a suite: how much was asked, and what is not all of it."""
    cases, worlds = _range([one.cases for one in reports], "case"), _range([one.worlds for one in reports], "world")
    head = f"{reports[0].run.suite}: {cases} in {worlds}"
    notes = [shortfall(one.run) for one in reports]
    if len(set(notes)) == 1:
        return f"{head}, {notes[0]}" if notes[0] else head
    return "; ".join([head, *(f"{one.name} {note}" for one, note in zip(reports, notes, strict=True) if note)])


def shortfall(run: Run) -> str:
    """In which way a run is not the whole of its suite; nothing where it is."""
    notes = [] if run.finished else ["not finished"]
    notes += [f"with --limit {run.limit}"] if run.finished and run.limit else []
    notes += [f"{run.skipped:,} not asked"] if run.skipped else []
    return ", ".join(notes)


def _range(numbers: Sequence[int], noun: str) -> str:
    least, most = min(numbers), max(numbers)
    return counted(most, noun) if least == most else f"{least:,} to {counted(most, noun)}"


def tables(reports: Sequence[Report], measures: Sequence[str] = ()) -> Iterator[Table]:
    """All tables of the reports of one suite, or those of some measures. Where nothing is unwanted, `passed` says no more
    than `all` and is shown on demand."""
    budgets = sorted({budget for one in reports for budget in one.budgets})
    whats = list(dict.fromkeys(what for one in reports for what in one.whats))
    there = {figure.measure for one in reports for figure in one.figures}
    shown = measures or (MEASURES if "clean" in there else EVIDENCE)
    evidence, whole = ([one for one in some if one in shown and one in there] for some in (EVIDENCE, WHOLE))
    for what in whats:
        for measure in evidence:
            yield _evidence(reports, budgets, measure, what)
    for measure in whole:
        yield _evidence(reports, budgets, measure, "")
    if any(len(one.types) > 1 for one in reports):
        for measure in (*evidence, *whole):
            yield _by_type(reports, budgets, measure, whats[0] if measure in evidence else "")
    yield from _ranks(reports)
    yield _spent(reports, budgets)


def _evidence(reports: Sequence[Report], budgets: Sequence[int], measure: str, what: str) -> Table:
    rows = []
    for one in reports:
        found = [one.figures.get(Figure(measure, budget, what)) for budget in budgets]
        rows.append([one.name, *map(percent, found)])
        rows.append(["", *map(span, found)])
    return Table(_title(measure, what), ["", *map(str, budgets)], rows)


def _by_type(reports: Sequence[Report], budgets: Sequence[int], measure: str, what: str) -> Table:
    there = {figure.type for one in reports for figure in one.figures if (figure.measure, figure.what) == (measure, what)}
    types = [type for type in dict.fromkeys(type for one in reports for type in one.types) if type in there]
    rows = []
    for type in types:
        for one in reports:
            found = [one.figures.get(Figure(measure, budget, what, type)) for budget in budgets]
            n = next((str(cell.n) for cell in found if cell), "")
            rows.append([type if one is reports[0] else "", one.name, n, *map(percent, found)])
    return Table(f"{_title(measure, what)}, by type", ["", "", "n", *map(str, budgets)], rows, left=2)


def _ranks(reports: Sequence[Report]) -> Iterator[Table]:
    ranked = [figure for one in reports for figure in one.figures if figure.budget is None and not figure.type]
    for what in dict.fromkeys(figure.what for figure in ranked):
        columns = list(dict.fromkeys(figure for figure in ranked if figure.what == what))
        heads = [figure.measure.upper() if figure.top is None else f"{figure.measure}@{figure.top}" for figure in columns]
        rows = [[one.name, *(_place(figure, one.figures.get(figure)) for figure in columns)] for one in reports]
        yield Table(f"{what}, by rank", ["", *heads], rows)


def _spent(reports: Sequence[Report], budgets: Sequence[int]) -> Table:
    rows = []
    for one in reports:
        by = {spent.budget: spent for spent in one.spent}
        cells = [by.get(budget) for budget in budgets]
        rows.append([one.name, "tokens", *(f"{cell.tokens:,.0f}" if cell else "" for cell in cells)])
        if any(cell and cell.ms is not None for cell in cells):
            rows.append(["", "CPU ms", *(f"{cell.ms:,.1f}" if cell and cell.ms is not None else "" for cell in cells)])
        if any(cell and cell.over for cell in cells):
            rows.append(["", "packs over it", *(str(cell.over) if cell else "" for cell in cells)])
    return Table("a pack, on average", ["", "", *map(str, budgets)], rows, left=2)


def compared(comparison: Comparison, measures: Sequence[str] = MEASURES) -> Iterator[Table]:
    """What `b` changes, a table for each measure."""
    shown = [one for one in comparison.differences if one.measure in measures]
    for measure, what in dict.fromkeys((one.measure, one.what) for one in shown):
        found = [one for one in shown if (one.measure, one.what) == (measure, what)]
        rows = [
            ["a", *(f"{one.a:.1%}" for one in found)],
            ["b", *(f"{one.b:.1%}" for one in found)],
            ["difference", *(f"{one.difference * 100:+.1f}" for one in found)],
            ["won, lost", *(f"{len(one.won)}, {len(one.lost)}" for one in found)],
            ["p", *(f"{one.p:.3f}" if one.p >= 0.001 else "< 0.001" for one in found)],
        ]
        yield Table(_title(measure, what), ["", *(str(one.budget) for one in found)], rows)


def changed(comparison: Comparison, measures: Sequence[str] = MEASURES) -> Iterator[str]:
    """Lines that name the cases which `b` won and lost."""
    for one in comparison.differences:
        for word, cases in (("won", one.won), ("lost", one.lost)):
            if cases and one.measure in measures:
                more = f" and {len(cases) - LISTED} more" if len(cases) > LISTED else ""
                yield f"{_title(one.measure, one.what)}, {one.budget}: {word} {', '.join(cases[:LISTED])}{more}"


def ablated(effects: Sequence[Effect], measure: str) -> Iterator[Table]:
    """A line for each part, what is lost most without it first; a star where chance would give it once in twenty."""
    shown = [one for one in effects if one.measure == measure]
    columns = list(dict.fromkeys((one.suite, one.what, one.budget) for one in shown))
    cells = {(one.part, one.suite, one.what, one.budget): one for one in shown}
    worth = {part: min(one.difference for one in shown if one.part == part) for part in dict.fromkeys(e.part for e in shown)}
    rows = [
        [part, *(_effect(cells.get((part, *column))) for column in columns)]
        for part in sorted(worth, key=lambda part: (worth[part], part))
    ]
    heads = [f"{suite} {what + ' ' if what else ''}{budget}" for suite, what, budget in columns]
    yield Table(f"{measure} without it, in points", ["", *heads], rows)


def _effect(one: Effect | None) -> str:
    return f"{one.difference * 100:+.1f}{'*' if one.is_beyond_chance else ' '}" if one else ""


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(found: Estimate | None) -> str:
    return f"{found.value:.1%}" if found else ""


def span(found: Estimate | None) -> str:
    return f"{found.interval.low * 100:.1f}-{found.interval.high * 100:.1f}" if found else ""


def _place(figure: Figure, found: Estimate | None) -> str:
    return f"{found.value:.3f}" if found and figure.measure == "mrr" else percent(found)


def _title(measure: str, what: str) -> str:
    return f"{what}, {measure}" if what else measure
