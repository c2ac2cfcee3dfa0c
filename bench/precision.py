"""PrecisionMemBench through `foveate eval`: does what is asked for come, and nothing else?"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from bench.corpus import DATA
from foveate.eval import run as evaluation
from foveate.eval.suites.precision import BUDGET, SUITE, passes
from foveate.eval.systems.engine import SYSTEM

TARGETS = {"retrieval": 74, "session": 12}


def run() -> dict:
    folder = DATA / "precisionmembench"
    if not folder.is_dir():
        print("PrecisionMemBench is not there; set FOVEATE_BENCH_DATA to a folder that holds it.", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as out:
        rows = evaluation.run(SUITE, SYSTEM, folder, Path(out)).rows
    figures: dict = {"median ms": statistics.median(row.packs[BUDGET].ms for row in rows), "missed": []}
    for name, target in TARGETS.items():
        group = [row for row in rows if (row.world == "retrieval") == (name == "retrieval")]
        failed = [row.case for row in group if not passes(row)]
        passed = len(group) - len(failed)
        figures[name] = {"passed": passed, "of": len(group), "failed": failed}
        print(f"{name}: {passed} of {len(group)}" + "".join(f"\n  {id}" for id in failed))
        if passed < target:
            figures["missed"].append(f"{name}: {passed} of {len(group)} passed, {target} are wanted.")
    return figures
