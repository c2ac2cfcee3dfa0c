"""PrecisionMemBench through `foveate eval`: does what is asked for come, and nothing else?"""

from __future__ import annotations

from bench.corpus import DATA
from bench.kit import absent, judged, measured
from foveate.eval.datasets.precision import BUDGET
from foveate.eval.report import scored

TARGETS = {"retrieval": 74, "session": 12}


def run() -> dict:
    folder = DATA / "precisionmembench"
    if absent(folder):
        return {}
    reports = measured("precision", ("foveate",), folder)
    out = judged(reports, ())
    rows = reports["foveate"].run.rows if "foveate" in reports else ()
    for name, target in TARGETS.items() if rows else ():
        group = [row for row in rows if (row.type == "session") == (name == "session")]
        failed = [row.case for row in group if not scored(row, "passed", BUDGET)]
        passed = len(group) - len(failed)
        out[name] = {"passed": passed, "of": len(group), "failed": failed}
        print(f"{name}: {passed} of {len(group)}" + "".join(f"\n  {id}" for id in failed))
        if passed < target:
            out["missed"].append(f"{name}: {passed} of {len(group)} passed, {target} are wanted.")
    return out
