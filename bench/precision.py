"""PrecisionMemBench: is exactly what is asked for in the prompt?"""

from __future__ import annotations

from bench.corpus import DATA
from bench.datasets.precision import BUDGET
from bench.kit import is_missing, measure, outcome
from foveate.eval.report import case_score

TARGETS = {"retrieval": 74, "session": 12}


def run() -> dict:
    folder = DATA / "precisionmembench"
    if is_missing(folder):
        return {}
    reports = measure("precision", ("foveate",), folder)
    out = outcome(reports, ())
    results = reports["foveate"].run.results if "foveate" in reports else ()
    for name, target in TARGETS.items() if results else ():
        group = [case for case in results if (case.question_type == "session") == (name == "session")]
        failed = [case.case for case in group if not case_score(case, "passed", BUDGET)]
        passed = len(group) - len(failed)
        out[name] = {"passed": passed, "of": len(group), "failed": failed}
        print(f"{name}: {passed} of {len(group)}" + "".join(f"\n  {id}" for id in failed))
        if passed < target:
            out["missed"].append(f"{name}: {passed} of {len(group)} passed, the target is {target}.")
    return out
