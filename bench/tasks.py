"""Benchmark of task contexts: they stay at 500 to 2,000 tokens while a project grows, and inherit every gotcha (000).

There are two projects, one with ten times the finished tasks of the other. The larger one contains all tasks of the smaller
one, on the same days. Both compute contexts for the same new tasks. Each of these has four finished dependencies, whose
handoffs contain planted gotchas and blocking questions in words that no task uses, so that similarity cannot find them. The
baselines are a prompt of everything and a prompt of the latest twenty tasks, in the same lines and with the same counter.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from bench.project import Plants, Work, Writer
from bench.speed import cpu
from foveate import Engine, testing
from foveate.records.kinds import LEARNED_FROM, kind_of
from foveate.tasks.task import state_of
from foveate.text import analysis, tokens
from foveate.types import Record

NEW_TASKS = 30
DEPENDENCY_COUNT = 4
REPEAT_COUNT = 3
"""Contexts of each task that are timed, so that one slow moment of the machine is not the 95th percentile."""

MIN_TOKENS, MAX_TOKENS = 500, 2000
"""Size of a context that 000 requires."""
MAX_GROWTH = 10
"""Percentage by which a context may grow while the project grows tenfold."""

AMPLE_BUDGET = 20_000
"""A budget that no context fills. It shows if contexts stay small by themselves, or only because they are cut."""

LATEST_TASKS = 20
"""Tasks in the prompt that represents a short memory."""

START_MS, YEAR_MS = 1_735_689_600_000, 365 * 24 * 3_600_000
PROMPT_KINDS = ("task", "pattern", "gotcha", "decision", "question", "component")
LOADS = ("usual", "crowded")
"""Handoffs with one or two gotchas, and with one or two of each severity from medium up."""


class Clock:
    """A clock that the benchmark sets."""

    def __init__(self) -> None:
        self.at = START_MS

    def __call__(self) -> int:
        return self.at


@dataclass(frozen=True, slots=True)
class NewTask:
    """A new task, and the numbers of the shared finished tasks that it depends on."""

    work: Work
    dependencies: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The tasks that both projects contain."""

    finished: list[Work]
    new: dict[str, list[NewTask]]
    plants: dict[int, Plants]


# --- the project ---------------------------------------------------------------------------------------------------


def plan(size: int) -> Plan:
    """Write the shared finished tasks, the new tasks, and the plants in the handoffs that new tasks depend on."""
    chance, writer = random.Random("plan"), Writer("shared")
    finished = [writer.task(done=True) for _ in range(size)]
    new: dict[str, list[NewTask]] = {}
    plants: dict[int, Plants] = {}
    for n, load in enumerate(LOADS):
        pool = range(n, size, len(LOADS))  # each finished task belongs to one load
        new[load] = [
            NewTask(writer.task(done=False), tuple(sorted(chance.sample(pool, DEPENDENCY_COUNT)))) for _ in range(NEW_TASKS)
        ]
        for at in sorted({at for task in new[load] for at in task.dependencies}):
            severities = _severities(load, chance)
            lists, plants[at] = writer.plants(len(plants) * 10, [*severities, "low"], question=chance.random() < 0.5)
            for name, more in lists.items():
                finished[at].handoff[name] = [*finished[at].handoff.get(name, ()), *more]
    _check_words(new, plants)
    return Plan(finished, new, plants)


def _severities(load: str, chance: random.Random) -> list[str]:
    if load == "usual":
        return [chance.choice(("medium", "high", "critical")) for _ in range(chance.randint(1, 2))]
    return [severity for severity in ("medium", "high", "critical") for _ in range(chance.randint(1, 2))]


def _check_words(new: dict[str, list[NewTask]], plants: dict[int, Plants]) -> None:
    """Check that no plant shares a term with a task that must inherit it."""
    for task in (task for group in new.values() for task in group):
        values = task.work.values
        task_terms = set(analysis.terms(" ".join((task.work.name, values["objective"], *values["acceptance_criteria"]))))
        for at in task.dependencies:
            planted = (*plants[at].gotchas.values(), *plants[at].questions.values(), *plants[at].low_gotchas.values())
            common = task_terms & set(analysis.terms(" ".join(planted)))
            assert not common, f"Plants share {common} with {task.work.name!r}."


def build(folder: Path, size: int, shared: Plan) -> tuple[Engine, dict[str, list[str]]]:
    """Fill a store with this number of finished tasks and their handoffs, and return it with the ids of the new tasks."""
    clock, numbers = Clock(), count(1)
    engine = testing.engine(folder, personal=False, clock=clock, ids=lambda kind, _: f"{kind}_{next(numbers):026d}")
    others, chance = Writer("others"), random.Random("links")
    each = size // len(shared.finished)
    ids: list[str] = []
    for n, work in enumerate(shared.finished):
        row = [work, *(others.task(done=True) for _ in range(each - 1))]
        for step, one in enumerate(row):
            clock.at = START_MS + (n * each + step) * YEAR_MS // size
            before = chance.sample(ids[-50:], min(len(ids), chance.randint(0, 2))) if one is work else ()
            _touch(folder, one)
            task = engine.tasks.add(one.name, depends_on=before, **one.values).id
            engine.tasks.handoff(task, one.handoff)
            if one is work:
                ids.append(task)
    clock.at = START_MS + YEAR_MS
    new = {
        load: [
            engine.tasks.add(t.work.name, depends_on=[ids[at] for at in t.dependencies], **t.work.values).id for t in group
        ]
        for load, group in shared.new.items()
    }
    return engine, new


def _touch(folder: Path, work: Work) -> None:
    """Create the files of a task. Records that name a missing file would be marked as outdated."""
    for path in (folder / name for name in work.values["files"]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


# --- baselines -----------------------------------------------------------------------------------------------------


def render_all(records: Iterable[Record]) -> str:
    """Render records by kind, in the lines that a computed context has."""
    lines_by_kind: dict[str, list[str]] = {kind: [] for kind in PROMPT_KINDS}
    for record in records:
        if (
            record.kind in lines_by_kind
            and record.status == "active"
            and (record.kind != "task" or state_of(record) == "completed")
        ):
            lines_by_kind[record.kind].append(kind_of(record.kind).render(record, "summary"))
    return "\n".join(f"## {kind_of(kind).heading}\n{''.join(lines)}" for kind, lines in lines_by_kind.items() if lines)


def baselines(engine: Engine) -> tuple[dict[str, Any], str]:
    """Return the sizes of both baseline prompts, and the text of the one with the latest tasks and their records."""
    known = list(engine.records(status=None))
    with engine.store.data.reader() as reader:
        tasks = [record for record in known if record.kind == "task" and state_of(record) == "completed"]
        latest = sorted(tasks, key=lambda record: -record.updated)[:LATEST_TASKS]
        learned = reader.get(
            [link.src for link in reader.links([task.id for task in latest], [LEARNED_FROM], incoming=True)]
        )
    counter = engine.store.data.rules.counter
    short = render_all([*latest, *learned.values()])
    figures = {
        "finished tasks": len(tasks),
        "learned records": sum(record.kind in PROMPT_KINDS[1:] for record in known),
        "accumulated prompt, tokens": tokens.count(render_all(known), counter),
        f"prompt of the latest {LATEST_TASKS} tasks, tokens": tokens.count(short, counter),
    }
    return figures, short


# --- measuring -----------------------------------------------------------------------------------------------------


def measure(engine: Engine, ids: Sequence[str], group: Sequence[NewTask], shared: Plan) -> dict[str, Any]:
    """Compute the contexts of some tasks, and return their metrics."""
    sizes, truncated, times, considered = [], [], [], []
    found = {"gotchas": [0, 0, 0], "questions": [0, 0, 0], "low_gotchas": [0, 0, 0]}
    engine.context(task=ids[0])
    for id, task in zip(ids, group, strict=True):
        context = engine.context(task=id)
        times += [cpu(lambda id=id: engine.context(task=id)) for _ in range(REPEAT_COUNT)]
        sizes.append(context.tokens)
        truncated.append(context.truncated)
        considered.append(sum(context.considered.values()))
        for sort, counts in found.items():
            for marker, text in (pair for at in task.dependencies for pair in getattr(shared.plants[at], sort).items()):
                counts[0] += 1
                counts[1] += marker in context.text
                counts[2] += text in context.text
    return {
        "tokens min": min(sizes),
        "tokens median": statistics.median(sizes),
        "tokens mean": round(statistics.mean(sizes), 1),
        "tokens max": max(sizes),
        "gotchas planted": found["gotchas"][0],
        "gotchas present %": share(*found["gotchas"][:2]),
        "gotchas word for word %": share(found["gotchas"][0], found["gotchas"][2]),
        "blocking questions planted": found["questions"][0],
        "blocking questions present %": share(*found["questions"][:2]),
        "low gotchas present": found["low_gotchas"][1],
        "contexts that lack room %": share(len(truncated), sum(truncated)),
        "candidates median": statistics.median(considered),
        "compute ms median": round(statistics.median(times), 2),
        "compute ms p95": round(sorted(times)[int(len(times) * 0.95)], 2),
    }


def share(of: int, number: int) -> float:
    return round(100 * number / of, 1) if of else 100.0


def by_source(engine: Engine, ids: Sequence[str]) -> dict[str, float]:
    """Return the median wall time of each source in milliseconds, from the receipts."""
    took: dict[str, list[float]] = {}
    for id in ids:
        for report in engine.receipts.get(engine.context(task=id)).sources:
            took.setdefault(report.source, []).append(report.ms)
    return {name: round(statistics.median(ms), 2) for name, ms in sorted(took.items()) if statistics.median(ms) >= 0.05}


def missed_targets(out: dict[str, Any], small: str, large: str) -> list[str]:
    """Return a sentence for each target that was not reached."""
    missed = []
    for load in LOADS:
        for size in (small, large):
            row = out[load][size]
            where = f"{load} handoffs, {size}"
            if row["tokens min"] < MIN_TOKENS or row["tokens max"] > MAX_TOKENS:
                missed.append(
                    f"{where}: {row['tokens min']} to {row['tokens max']} tokens, not {MIN_TOKENS} to {MAX_TOKENS}."
                )
            complete = ("gotchas present %", "blocking questions present %")
            missed += [
                f"{where}: {name.removesuffix(' %')}: {row[name]} %, not 100 %." for name in complete if row[name] < 100
            ]
            if row["low gotchas present"]:
                missed.append(f"{where}: {row['low gotchas present']} gotchas of low severity were inherited.")
        for name in ("tokens median", "tokens mean"):
            growth = out[load]["growth %"][name]
            if growth >= MAX_GROWTH:
                missed.append(f"{load} handoffs: {name} grew by {growth} %, not less than {MAX_GROWTH} %.")
    return missed


def run() -> dict:
    sizes = [int(size) for size in os.environ.get("FOVEATE_BENCH_TASKS", "500,5000").split(",")]
    shared = plan(min(sizes))
    names = [f"{size} tasks" for size in sizes]
    out: dict[str, Any] = {"states": {}, **{load: {} for load in LOADS}}
    with tempfile.TemporaryDirectory() as root:
        for size, name in zip(sizes, names, strict=True):
            folder = Path(root, f"t{size}")
            folder.mkdir()
            made: list[Any] = []
            took = cpu(lambda folder=folder, size=size, made=made: made.extend(build(folder, size, shared)))
            engine, ids = made
            state, latest = baselines(engine)
            out["states"][name] = state | {"build ms a task": round(took / size, 2)}
            for load, group in shared.new.items():
                row = measure(engine, ids[load], group, shared)
                markers = [marker for task in group for at in task.dependencies for marker in shared.plants[at].gotchas]
                row["gotchas in the latest tasks' prompt %"] = share(
                    len(markers), sum(marker in latest for marker in markers)
                )
                row["accumulated to computed"] = round(state["accumulated prompt, tokens"] / row["tokens median"], 1)
                ample = [engine.context(task=id, budget=AMPLE_BUDGET).tokens for id in ids[load]]
                row[f"tokens median with {AMPLE_BUDGET} allowed"] = statistics.median(ample)
                out[load][name] = row
            out["states"][name]["ms by source, wall"] = by_source(engine, ids["usual"])
            engine.close()
            print(f"{name}: {out['states'][name]}", flush=True)
    small, large = names[0], names[-1]
    for load in LOADS:
        first, last = out[load][small], out[load][large]
        grown = ("tokens median", "tokens mean", f"tokens median with {AMPLE_BUDGET} allowed")
        out[load]["growth %"] = {name: round(100 * (last[name] / first[name] - 1), 1) for name in grown}
        out[load]["compute, largest to smallest"] = round(last["compute ms median"] / first["compute ms median"], 2)
        show(load, out[load], names)
    out["missed"] = missed_targets(out, small, large)
    return out


def show(load: str, rows: dict[str, Any], names: Sequence[str]) -> None:
    """Print a table with a line for each metric and a column for each size."""
    print(f"{load + ' handoffs':42}" + "".join(f"{name:>14}" for name in names))
    for figure in rows[names[0]]:
        print(f"  {figure:40}" + "".join(f"{rows[name][figure]:>14}" for name in names))
    print(f"  growth %: {rows['growth %']}; compute, largest to smallest: {rows['compute, largest to smallest']}")
