"""Ablation: switch off each feature, field, slot, source and stage in turn, and report what a suite loses without it.

    python -m bench ablate locomo=PATH --only 'feature *' --budgets 1000,4000

Most components are data of a profile, so overrides switch them off. A stage is a function; during its run a stand-in that
does nothing replaces it, and the pipeline needs no switch for it. A feature of relevance is a coefficient of the model,
so the stand-in returns the model without it. Every component is a whole run, which is stored and resumed like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from bench.kit import load_suite
from foveate.cli.call import say
from foveate.cli.eval import FILE_TYPE, parse_budgets, parse_pairs, progress_line
from foveate.cli.eval_text import print_tables
from foveate.errors import InputError, NotFound, near
from foveate.eval.compare import compare
from foveate.eval.model import METRICS, RUNS_DIR, Suite
from foveate.eval.rows import Run
from foveate.eval.run import Progress, run
from foveate.eval.systems.engine import FoveateSystem
from foveate.eval.tables import Table
from foveate.pipeline import profiles, relevance
from foveate.pipeline.request import DEFAULT_PROFILE
from foveate.pipeline.selection import levels_of
from foveate.records.kinds import kind_of
from foveate.types import Candidate, Level, Profile

BASELINE_NAME = "as it is"
SIGNIFICANCE_LEVEL = 0.05
"""Effects with a smaller p value get a star."""
ABLATION_DIR = f"{RUNS_DIR}/ablation"
"""Apart from other runs, so that a report of those does not list every component."""


@dataclass(frozen=True, slots=True)
class Component:
    """Something that can be switched off, by overrides of the profile or by a function that does nothing."""

    name: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    stage: tuple[str, str, Callable[..., Any]] | None = None
    """Module, name and stand-in."""


@contextmanager
def disable(component: Component) -> Iterator[None]:
    """Replace a stage by its stand-in while the block runs."""
    if component.stage is None:
        yield
        return
    module_name, name, stand_in = component.stage
    module = import_module(module_name)
    original = getattr(module, name)
    setattr(module, name, stand_in)
    try:
        yield
    finally:
        setattr(module, name, original)


def _return_none(*_: Any) -> None:
    return None


def _return_candidates(candidates: Sequence[Candidate], *_: Any) -> list[Candidate]:
    return list(candidates)


def _longest_level_of(candidate: Candidate, longest: Level) -> list[Level]:
    return levels_of(candidate, longest)[:1]


def _return_empty_tuple(*_: Any) -> tuple[()]:
    return ()


def _return_empty_dict(*_: Any) -> dict[Any, Any]:
    return {}


def _return_two_dicts(*_: Any) -> tuple[dict[Any, Any], dict[Any, Any]]:
    return {}, {}


STAGES = (
    Component("stage dates", stage=("foveate.text.dates", "question_terms", _return_empty_tuple)),
    Component("stage words that ask", stage=("foveate.text.query_terms", "_question_word_weights", _return_empty_dict)),
    Component("stage quantities", stage=("foveate.text.quantities", "terms", _return_empty_tuple)),
    Component("stage near-duplicates", stage=("foveate.pipeline.duplicates", "are_near_duplicates", lambda a, b: False)),
    Component("stage passages", stage=("foveate.pipeline.run", "with_passages", _return_candidates)),
    Component("stage ladder", stage=("foveate.pipeline.selection", "levels_of", _longest_level_of)),
    Component("stage deepening", stage=("foveate.pipeline.selection", "_spend_rest", _return_none)),
    Component("stage room used up", stage=("foveate.pipeline.fill", "_spend_leftovers", _return_none)),
)
CODE_STAGES = (
    Component("stage names vote", stage=("foveate.code.search", "_named_definitions", _return_empty_dict)),
    Component("stage paths vote", stage=("foveate.code.search", "_file_votes", _return_two_dicts)),
    Component("stage traces vote", stage=("foveate.code.search", "_trace_votes", _return_two_dicts)),
)


def components(suite: Suite) -> list[Component]:
    """Return everything that can be switched off in the profile of a suite."""
    profile = profiles.resolve(suite.profile or DEFAULT_PROFILE)
    of_profile = [Component(f"feature {name}", {"weights": {name: 0}}) for name, weight in profile.weights.items() if weight]
    of_profile += [Component(f"field {name}", {"fields": {name: 0}}) for name, weight in profile.fields.items() if weight]
    # A profile cannot remove slots that show rules.
    removable = [slot.name for slot in profile.slots if not any(kind_of(kind).is_rule for kind in slot.kinds)]
    of_profile += [Component(f"slot {name}", {"slots": {name: {"remove": True}}}) for name in removable]
    of_profile += _extra_source_components(profile)
    of_profile += [Component("related words", {"expansion_weight": 0})] if profile.expansion_weight else []
    return [*of_profile, *_relevance_components(), *STAGES, *(CODE_STAGES if suite.is_code else ())]


def _relevance_components() -> Iterator[Component]:
    """Yield the features that decide how relevant a record is. Every profile has the same ones."""
    model = relevance.model()
    for name in model["strength"]:
        without = {**model, "strength": {**model["strength"], name: 0.0}}
        yield Component(f"relevance {name}", stage=("foveate.pipeline.relevance", "model", partial(dict, without)))


def _extra_source_components(profile: Profile) -> Iterator[Component]:
    """Yield the sources that a slot has in addition to its own."""
    for slot in profile.slots:
        for source, _ in slot.extra_sources:
            yield Component(f"source {source} in {slot.name}", {"slots": {slot.name: {"extra_sources": {source: 0}}}})


def check_patterns(patterns: Sequence[str], suites: Sequence[Suite]) -> None:
    """Raise NotFound if a pattern matches no component of the suites."""
    names = list(dict.fromkeys(component.name for suite in suites for component in components(suite)))
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in names):
            raise NotFound(f"There is no component {pattern!r}.{near(pattern, names)}")


def ablate(
    suite: Suite,
    data: Path,
    folder: Path,
    *,
    patterns: Sequence[str] = (),
    budgets: Sequence[int] | None = None,
    limit: int | None = None,
    options: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> dict[str, Run]:
    """Return the run of the whole system, and a run without each component by its name.

    `patterns` such as `feature *` choose components.
    """
    every = components(suite)
    chosen = [one for one in every if not patterns or any(fnmatch(one.name, pattern) for pattern in patterns)]
    runs = {}
    for component in (None, *chosen):
        if component is None:
            system = FoveateSystem()
        else:
            system = FoveateSystem(f"foveate without {component.name}", overrides=component.overrides)
        with nullcontext() if component is None else disable(component):
            runs[component.name if component else BASELINE_NAME] = run(
                suite, system, data, folder, budgets=budgets, limit=limit, options=options, progress=progress
            )
    return runs


@dataclass(frozen=True, slots=True)
class Effect:
    """The change of one metric at one budget without a component: a negative difference is what it contributes."""

    component: str
    suite: str
    evidence_type: str
    metric: str
    budget: int
    difference: float
    p: float
    time_ratio: float
    """CPU time of a prompt without the component, divided by that with it."""

    @property
    def is_significant(self) -> bool:
        return self.p < SIGNIFICANCE_LEVEL


def effects(runs: Mapping[str, Run]) -> Iterator[Effect]:
    """Compare the run without each component with the run of the whole system."""
    whole = runs[BASELINE_NAME]
    for component, without in runs.items():
        if component == BASELINE_NAME:
            continue
        for one in compare(whole, without).differences:
            ratio = round(_mean_cpu_ms(without, one.budget) / max(_mean_cpu_ms(whole, one.budget), 0.01), 3)
            yield Effect(component, whole.suite, one.evidence_type, one.metric, one.budget, one.difference, one.p, ratio)


def _mean_cpu_ms(run: Run, budget: int) -> float:
    return sum(case.by_budget[budget].cpu_ms for case in run.results) / max(1, len(run.results))


def ablation_tables(effects: Sequence[Effect], metric: str) -> Iterator[Table]:
    """Yield a table with a row for each component, the largest loss first."""
    shown = [effect for effect in effects if effect.metric == metric]
    columns = list(dict.fromkeys((effect.suite, effect.evidence_type, effect.budget) for effect in shown))
    cells = {(effect.component, effect.suite, effect.evidence_type, effect.budget): effect for effect in shown}
    names = dict.fromkeys(effect.component for effect in shown)
    losses = {name: min(effect.difference for effect in shown if effect.component == name) for name in names}
    rows = [
        [name, *(_effect_cell(cells.get((name, *column))) for column in columns)]
        for name in sorted(losses, key=lambda name: (losses[name], name))
    ]
    headers = [f"{suite} {evidence_type + ' ' if evidence_type else ''}{budget}" for suite, evidence_type, budget in columns]
    yield Table(f"{metric} without it, in points", ["", *headers], rows)


def _effect_cell(effect: Effect | None) -> str:
    return f"{effect.difference * 100:+.1f}{'*' if effect.is_significant else ' '}" if effect else ""


@click.command("ablate")
@click.argument("data", metavar="SUITE=PATH...", nargs=-1, required=True, callback=parse_pairs)
@click.option(
    "--only", "patterns", multiple=True, metavar="PATTERN", help="Only these components, such as 'feature *'. Repeatable."
)
@click.option("--budgets", metavar="N,N", callback=parse_budgets, default="1000,4000", show_default=True)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Run only the first N subsets of each suite.")
@click.option(
    "-o", "options", multiple=True, metavar="NAME=VALUE", callback=parse_pairs, help="Set an option of the suites."
)
@click.option("--metric", type=click.Choice(METRICS), default="recall", show_default=True)
@click.option("--out", type=FILE_TYPE, default=ABLATION_DIR, show_default=True, metavar="DIR")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def main(
    data: dict[str, str],
    patterns: tuple[str, ...],
    budgets: tuple[int, ...],
    limit: int | None,
    options: dict[str, str],
    metric: str,
    out: Path,
    as_json: bool,
) -> None:
    """Switch off each feature, field, slot, source and stage in turn, and report what is lost without it.

    A component that changes nothing, or helps when it is off, is not worth its cost on these data.
    """
    suites = [(load_suite(name), Path(path)) for name, path in data.items()]
    known = [option for suite, _ in suites for option in suite.options]
    for option in options:
        if option not in known:
            raise InputError(f"None of these suites has an option {option!r}.{near(option, known)}")
    check_patterns(patterns, [suite for suite, _ in suites])
    measured: list[Effect] = []
    for suite, path in suites:
        own = {key: value for key, value in options.items() if key in suite.options}
        with progress_line(out) as progress:
            runs = ablate(suite, path, out, patterns=patterns, budgets=budgets, limit=limit, options=own, progress=progress)
        measured += effects(runs)
    if as_json:
        import json

        click.echo(json.dumps({"effects": [asdict(effect) for effect in measured]}))
        return
    shown = [effect for effect in measured if effect.metric == metric]
    if not shown:
        raise InputError(f"No case has the metric {metric!r}; choose another --metric.")
    print_tables(ablation_tables(shown, metric))
    if any(effect.is_significant for effect in shown):
        say("* p below 0.05 for this value alone; of twenty such values one is so by chance.")
