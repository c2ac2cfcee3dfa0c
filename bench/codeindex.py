"""What it costs to know a large code base: Django indexed, asked and edited, beside aider's map and semble's index.

CPU seconds (user and system, with all child processes) of the job itself, without interpreter start and imports, each in a
new process; and the peak memory of that process. Cheap jobs run three times: best and median are shown, ratios use the best.

FOVEATE_BENCH_DJANGO names Django's sources in a git repository, FOVEATE_BENCH_PEERS a virtual environment with aider-chat,
semble and wordllama==0.3.9 (whose vectors semble is given; without them its index does a part of its work only),
FOVEATE_BENCH_METHODS some of foveate,semble,aider. The work is done on a copy under FOVEATE_BENCH_CACHE.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench import ours, peers

BUDGET = 4096
QUESTIONS = ("QuerySet get_or_create", "SessionMiddleware process_response", "MigrationAutodetector generate_created_models")
"""The words of a question are also the identifiers that aider is told about."""
EDITED = "django/db/models/query.py"
RUNS = 3
TARGETS = {
    "cold index to aider's cold map": 1 / 2,
    "cold index to semble's index": 1 / 2,
    "warm context to aider's warm map": 1 / 50,
    "index after an edit to cold index": 1 / 100,
}
"""The aim for the first two is a third."""
PEAK = 300
"""Megabytes."""


def child(command: list[str]) -> dict:
    """What a process printed last, with the memory it took at its peak."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
    assert process.stdout is not None
    printed = process.stdout.read()
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}.")
    unit = 1 if sys.platform == "darwin" else 1024
    return json.loads(printed.splitlines()[-1]) | {"peak": usage.ru_maxrss * unit / 1e6}


def figure(name: str, runs: list[dict], pick: Callable[[dict], float]) -> dict[str, float]:
    """The cost of one job over some runs."""
    costs = [pick(run["steps"]) for run in runs]
    out = {
        "best s": round(min(costs), 3),
        "median s": round(median(costs), 3),
        "peak MB": round(max(run["peak"] for run in runs)),
    }
    print(f"{name:44} {out}", flush=True)
    return out


def later(steps: dict[str, float]) -> float:
    """The mean of all questions but the first, when everything is in memory."""
    return sum(steps[question] for question in QUESTIONS[1:]) / len(QUESTIONS[1:])


def foveate_costs(root: Path) -> dict[str, dict[str, float]]:
    python = [sys.executable, "-m", "bench.ours"]
    out = {}
    cold = []
    for _ in range(RUNS):
        for left in root.parent.glob(f"{ours.index_file(root).name}*"):
            left.unlink()
        cold.append(child([*python, "index", str(root)]))
    out["cold index"] = figure("foveate, cold index", cold, lambda steps: steps["index"])
    same = [child([*python, "index", str(root)]) for _ in range(RUNS)]
    out["nothing changed"] = figure("foveate, index when nothing changed", same, lambda steps: steps["index"])
    edited = [child([*python, "edit", str(root), EDITED]) for _ in range(RUNS)]
    out["after an edit"] = figure("foveate, index after an edit", edited, lambda steps: steps["further"])
    asked = [child([*python, "context", str(root), str(BUDGET), *QUESTIONS]) for _ in range(RUNS)]
    first = QUESTIONS[0]
    out["first context"] = figure("foveate, first context of a process", asked, lambda steps: steps["open"] + steps[first])
    out["warm context"] = figure("foveate, further contexts", asked, later)
    return out


def aider_costs(python: str, root: Path) -> dict[str, dict[str, float]]:
    verb = [python, peers.__file__, "aider-map", str(root)]
    for cache in root.glob(".aider.tags.cache*"):
        shutil.rmtree(cache)
    first = QUESTIONS[0]
    out = {"cold map": figure("aider, cold map of 1024 tokens", [child([*verb, "1024", first])], lambda steps: steps[first])}
    for budget in (1024, BUDGET):
        asked = [child([*verb, str(budget), *QUESTIONS])]
        name = f"map of {budget} tokens"
        out[f"first {name}"] = figure(f"aider, first {name} of a process", asked, lambda steps: steps[first])
        out[f"warm {name}"] = figure(f"aider, further maps of {budget} tokens", asked, later)
        print(f"{'':44} real tokens {asked[0]['tokens']}")
    return out


def semble_costs(python: str, root: Path, cache: Path) -> dict[str, dict[str, float]]:
    shutil.rmtree(cache, ignore_errors=True)
    runs = [child([python, peers.__file__, "semble-index", str(root), str(cache)])]
    job = "index" if runs[0]["embeds"] else "index without embeddings"
    return {job: figure(f"semble, {job}", runs, lambda steps: steps["index"])}


def judged(costs: dict[str, dict[str, dict[str, float]]]) -> tuple[dict[str, float], list[str]]:
    """Ratios of what was measured, and the targets that were missed."""

    def best(system: str, job: str) -> float | None:
        return costs.get(system, {}).get(job, {}).get("best s")

    cold, warm = best("foveate", "cold index"), best("foveate", "warm context")
    pairs = {
        "cold index to aider's cold map": (cold, best("aider", "cold map")),
        "cold index to semble's index": (cold, best("semble", "index")),
        "cold index to semble's without embeddings": (cold, best("semble", "index without embeddings")),
        "warm context to aider's warm map": (warm, best("aider", f"warm map of {BUDGET} tokens")),
        "index after an edit to cold index": (best("foveate", "after an edit"), cold),
    }
    ratios = {name: round(cost / other, 4) for name, (cost, other) in pairs.items() if cost is not None and other}
    over = [(name, target) for name, target in TARGETS.items() if ratios.get(name, 0) > target]
    missed = [f"{name} is {ratios[name]}, not {target:.3g}" for name, target in over]
    peak = costs.get("foveate", {}).get("cold index", {}).get("peak MB", 0)
    if peak > PEAK:
        missed.append(f"the cold index took {peak} MB, not {PEAK}")
    return ratios, missed


def run() -> dict:
    source = os.environ.get("FOVEATE_BENCH_DJANGO")
    if not source:
        print("Set FOVEATE_BENCH_DJANGO to Django's sources, unpacked and committed to a git repository.", file=sys.stderr)
        return {}
    cache = Path(os.environ.get("FOVEATE_BENCH_CACHE", Path(tempfile.gettempdir(), "foveate-bench")), "codeindex")
    shutil.rmtree(cache, ignore_errors=True)
    root = cache / "django"
    shutil.copytree(source, root)
    costs = {}
    wanted = os.environ.get("FOVEATE_BENCH_METHODS", "foveate,semble,aider").split(",")
    python = peers.python()
    if not python:
        print("Peers are left out: set FOVEATE_BENCH_PEERS to a virtual environment that holds them.", file=sys.stderr)
    if "foveate" in wanted:
        costs["foveate"] = foveate_costs(root)
    if python and "semble" in wanted:
        costs["semble"] = semble_costs(python, root, cache / "semble")
    if python and "aider" in wanted:
        costs["aider"] = aider_costs(python, root)
    ratios, missed = judged(costs)
    for name, ratio in ratios.items():
        print(f"{name:44} {ratio}", f"(target {TARGETS[name]:.3g})" if name in TARGETS else "")
    return {"costs": costs, "ratios": ratios, "targets": TARGETS, "missed": missed}
