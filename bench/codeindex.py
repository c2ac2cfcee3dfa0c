"""Measures the cost of indexing a large code base: Django indexed, queried and edited, compared with aider and semble.

Measured are CPU seconds (user and system, with all child processes) of each job in a new process, without interpreter start
and imports, and the peak memory of that process. Cheap jobs run three times: best and median are shown, ratios use the best.

FOVEATE_BENCH_DJANGO names Django's sources in a git repository. FOVEATE_BENCH_PEERS names a virtual environment with
aider-chat, semble and wordllama==0.3.9 (the vectors for semble; without them its index does only a part of its work).
FOVEATE_BENCH_METHODS names some of foveate,semble,aider. The work is done on a copy under FOVEATE_BENCH_CACHE.
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

from bench import code_costs, peers

BUDGET = 4096
QUESTIONS = ("QuerySet get_or_create", "SessionMiddleware process_response", "MigrationAutodetector generate_created_models")
"""aider gets the words of a question as identifiers."""
EDITED_FILE = "django/db/models/query.py"
RUN_COUNT = 3
TARGETS = {
    "cold index to aider's cold map": 1 / 2,
    "cold index to semble's index": 1 / 2,
    "warm context to aider's warm map": 1 / 50,
    "index after an edit to cold index": 1 / 100,
}
"""The goal for the first two is a third."""
MAX_PEAK_MB = 300


def child(command: list[str]) -> dict:
    """Run a process, and return the JSON that it printed last together with its peak memory."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
    assert process.stdout is not None
    printed = process.stdout.read()
    _pid, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}.")
    unit = 1 if sys.platform == "darwin" else 1024
    return json.loads(printed.splitlines()[-1]) | {"peak": usage.ru_maxrss * unit / 1e6}


def job_cost(name: str, runs: list[dict], pick: Callable[[dict], float]) -> dict[str, float]:
    costs = [pick(run["steps"]) for run in runs]
    out = {
        "best s": round(min(costs), 3),
        "median s": round(median(costs), 3),
        "peak MB": round(max(run["peak"] for run in runs)),
    }
    print(f"{name:44} {out}", flush=True)
    return out


def warm_cost(steps: dict[str, float]) -> float:
    """Return the mean of all questions but the first, after everything is in memory."""
    return sum(steps[question] for question in QUESTIONS[1:]) / len(QUESTIONS[1:])


def foveate_costs(root: Path) -> dict[str, dict[str, float]]:
    python = [sys.executable, "-m", "bench.code_costs"]
    out = {}
    cold = []
    for _ in range(RUN_COUNT):
        for file in root.parent.glob(f"{code_costs.index_file(root).name}*"):
            file.unlink()
        cold.append(child([*python, "index", str(root)]))
    out["cold index"] = job_cost("foveate, cold index", cold, lambda steps: steps["index"])
    same = [child([*python, "index", str(root)]) for _ in range(RUN_COUNT)]
    out["nothing changed"] = job_cost("foveate, index when nothing changed", same, lambda steps: steps["index"])
    edited = [child([*python, "edit", str(root), EDITED_FILE]) for _ in range(RUN_COUNT)]
    out["after an edit"] = job_cost("foveate, index after an edit", edited, lambda steps: steps["further"])
    asked = [child([*python, "context", str(root), str(BUDGET), *QUESTIONS]) for _ in range(RUN_COUNT)]
    first = QUESTIONS[0]
    out["first context"] = job_cost("foveate, first context of a process", asked, lambda steps: steps["open"] + steps[first])
    out["warm context"] = job_cost("foveate, further contexts", asked, warm_cost)
    return out


def aider_costs(python: str, root: Path) -> dict[str, dict[str, float]]:
    verb = [python, peers.__file__, "aider-map", str(root)]
    for cache in root.glob(".aider.tags.cache*"):
        shutil.rmtree(cache)
    first = QUESTIONS[0]
    out = {
        "cold map": job_cost("aider, cold map of 1024 tokens", [child([*verb, "1024", first])], lambda steps: steps[first])
    }
    for budget in (1024, BUDGET):
        asked = [child([*verb, str(budget), *QUESTIONS])]
        name = f"map of {budget} tokens"
        out[f"first {name}"] = job_cost(f"aider, first {name} of a process", asked, lambda steps: steps[first])
        out[f"warm {name}"] = job_cost(f"aider, further maps of {budget} tokens", asked, warm_cost)
        print(f"{'':44} real tokens {asked[0]['tokens']}")
    return out


def semble_costs(python: str, root: Path, cache: Path) -> dict[str, dict[str, float]]:
    shutil.rmtree(cache, ignore_errors=True)
    runs = [child([python, peers.__file__, "semble-index", str(root), str(cache)])]
    job = "index" if runs[0]["embeds"] else "index without embeddings"
    return {job: job_cost(f"semble, {job}", runs, lambda steps: steps["index"])}


def compare_costs(costs: dict[str, dict[str, dict[str, float]]]) -> tuple[dict[str, float], list[str]]:
    """Return the ratios of the costs, and the missed targets."""

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
    if peak > MAX_PEAK_MB:
        missed.append(f"the cold index took {peak} MB, not {MAX_PEAK_MB}")
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
    chosen = os.environ.get("FOVEATE_BENCH_METHODS", "foveate,semble,aider").split(",")
    python = peers.python()
    if not python:
        print("Other tools are skipped: set FOVEATE_BENCH_PEERS to a virtual environment that has them.", file=sys.stderr)
    if "foveate" in chosen:
        costs["foveate"] = foveate_costs(root)
    if python and "semble" in chosen:
        costs["semble"] = semble_costs(python, root, cache / "semble")
    if python and "aider" in chosen:
        costs["aider"] = aider_costs(python, root)
    ratios, missed = compare_costs(costs)
    for name, ratio in ratios.items():
        print(f"{name:44} {ratio}", f"(target {TARGETS[name]:.3g})" if name in TARGETS else "")
    return {"costs": costs, "ratios": ratios, "targets": TARGETS, "missed": missed}
