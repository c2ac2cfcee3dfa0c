"""SWE-bench's dev split: 225 issues of six repositories, and the code that the fix of each changed.

None of this is unseen. The first weights of foveate's search were set on all six repositories. Later changes were judged on
four of them, and on commit messages of pandas, mypy, networkx and celery, which are larger. No value was chosen on the two
held-out repositories, pydicom and astroid, but their metrics were seen. Issues whose fix changed one file are shown apart:
most benchmarks have only such issues.

Environment variables, in addition to those of `bench.kit`:
    FOVEATE_BENCH_REPOS    bare repositories, as `owner+name/repo`, `owner/name.git` or `owner__name`
    FOVEATE_BENCH_CACHE    a folder for checkouts and foveate's index of them
    FOVEATE_BENCH_REPO     comma-separated names of repositories, or parts of names
    FOVEATE_BENCH_LIMIT    the number of issues of each repository, spread over its history
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from bench.corpus import DATA
from bench.kit import is_missing, measure, outcome, show
from foveate.eval.report import Report, report

SYSTEMS = ("foveate", "bench.systems.file_bm25", "bench.systems.semble", "bench.systems.semble:whole")
TARGETS = ("file.recall@8000=90", "function.recall@8000=60")
HELD_OUT = ("pydicom__pydicom", "pylint-dev__astroid")
"""87 of the 225 issues: a file format and a library for syntax trees, unlike each other and unlike the other four."""
OPTIONS = {
    "repos": "FOVEATE_BENCH_REPOS",
    "checkouts": "FOVEATE_BENCH_CACHE",
    "only": "FOVEATE_BENCH_REPO",
    "each": "FOVEATE_BENCH_LIMIT",
}


def run() -> dict:
    options = {option: os.environ[name] for option, name in OPTIONS.items() if os.environ.get(name)}
    if "repos" not in options:
        print("SWE-bench needs bare repositories: set FOVEATE_BENCH_REPOS to their folder.", file=sys.stderr)
        return {}
    folder = DATA / "swebench_dev"
    if is_missing(folder):
        return {}
    reports = measure("swebench", SYSTEMS, folder, options=options)
    if "foveate" in reports and (held_out := _held_out_report(reports["foveate"])).cases:
        print("\nThe two held-out repositories:")
        show([held_out])
    return outcome(reports, TARGETS)


def _held_out_report(whole: Report) -> Report:
    results = tuple(case for case in whole.run.results if case.subset.startswith(HELD_OUT))
    return report(replace(whole.run, results=results))
