"""From an issue to the code that its fix changed: SWE-bench's dev split, 225 issues of six repositories.

None of this is unseen. The first weights of foveate's search were set on all six repositories. What came later was judged
on four of them, and on commit messages of pandas, mypy, networkx and celery, which are larger; pydicom and astroid were kept
aside: no value was chosen on them, but their figures were seen. Issues whose fix changed one file are shown apart: most
benchmarks have only such.

What the environment says, besides what `bench.kit` reads:
    FOVEATE_BENCH_REPOS    bare repositories, as `owner+name/repo`, `owner/name.git` or `owner__name`
    FOVEATE_BENCH_CACHE    for checkouts and foveate's index of them
    FOVEATE_BENCH_REPO     names, or parts of them, with commas between
    FOVEATE_BENCH_LIMIT    issues a repository, spread over its history
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from bench.corpus import DATA
from bench.kit import absent, judged, measured, show
from foveate.eval.datasets import suite
from foveate.eval.report import Report, report

SYSTEMS = ("foveate", "file-bm25", "semble", "semble:whole")
TARGETS = ("file.fraction@8000=90", "function.fraction@8000=60")
KEPT_ASIDE = ("pydicom__pydicom", "pylint-dev__astroid")
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
    if absent(folder):
        return {}
    reports = measured("swebench", SYSTEMS, folder, options=options)
    if "foveate" in reports and (aside := kept_aside(reports["foveate"])).cases:
        print("\nOf these, the two repositories that were kept aside:")
        show([aside])
    return judged(reports, TARGETS)


def kept_aside(of: Report) -> Report:
    rows = tuple(row for row in of.run.rows if row.world.startswith(KEPT_ASIDE))
    return report(replace(of.run, rows=rows), suite("swebench").top)
