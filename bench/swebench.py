"""From an issue to the code that its fix changed: SWE-bench's dev split, 225 issues of six repositories.

The query is the raw text of the issue, the files are those of the base commit, and the candidates are all Python files that
are not tests. foveate, plain BM25 and semble go through the same scorer (`bench.localisation`).

None of this is unseen. The first weights of foveate's search were set on all six repositories. What came later was judged
on four of them, and on commit messages of pandas, mypy, networkx and celery, which are larger; pydicom and astroid were kept
aside and scored when it was done. Issues whose fix changed one file are shown apart: most benchmarks have only such.

What the environment says:
    FOVEATE_BENCH_DATA     a folder with swebench_dev/
    FOVEATE_BENCH_REPOS    bare repositories, as `owner+name/repo`
    FOVEATE_BENCH_PEERS    a virtual environment with semble
    FOVEATE_BENCH_CACHE    for checkouts, indexes and rows: a run goes on where the last one with the same sources stopped
    FOVEATE_BENCH_METHODS  of BM25,semble,semble-whole,foveate
    FOVEATE_BENCH_REPO     names, or parts of them, with commas between
    FOVEATE_BENCH_LIMIT    issues a repository, spread over its history
    FOVEATE_BENCH_AGAINST  the rows of an earlier run to compare with
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from statistics import fmean

from bench import baselines, localisation, ours, peers
from bench.corpus import DATA
from foveate import tokens

BUDGETS = (2000, 8000, 32000)
KEPT_ASIDE = ("pydicom/pydicom", "pylint-dev/astroid")
"""87 of the 225 issues: a file format and a library for syntax trees, unlike each other and unlike the other four."""
COMPARED = ("file@1", "file@5", "function@10", "whole in 8000")

HERE = Path(__file__).parent
Row = dict
Made = Callable[[Path], baselines.Searcher]
METHODS: dict[str, tuple[Made, tuple[Path, ...]]] = {
    "BM25": (baselines.Bm25, (HERE / "baselines.py",)),
    "semble": (baselines.Semble, (HERE / "baselines.py", HERE / "peers.py")),
    "semble-whole": (baselines.SembleWhole, (HERE / "baselines.py", HERE / "peers.py")),
    "foveate": (ours.Ours, (HERE / "ours.py", HERE.parent / "src" / "foveate")),
}
"""How a method is made for a checkout, and the sources on which its rows depend besides the scorer's."""


# --- data ----------------------------------------------------------------------------------------------------------


def instances() -> list[dict]:
    """The issues asked for, by repository and date, so that a checkout moves through its history in one direction."""
    with (DATA / "swebench_dev" / "instances.jsonl").open(encoding="utf-8") as lines:
        found = sorted(map(json.loads, lines), key=lambda issue: (issue["repo"], issue["created_at"], issue["instance_id"]))
    wanted = [name for name in os.environ.get("FOVEATE_BENCH_REPO", "").split(",") if name]
    limit = int(os.environ.get("FOVEATE_BENCH_LIMIT", "0"))
    out = []
    for repo, group in groupby(found, key=lambda issue: issue["repo"]):
        issues = list(group)
        if not wanted or any(name in repo for name in wanted):
            step = max(1.0, len(issues) / limit) if limit else 1.0
            out += [issues[int(n * step)] for n in range(min(len(issues), limit or len(issues)))]
    return out


def checkout(issue: dict, repos: Path, folder: Path) -> Path:
    """The base commit, in a repository that knows its past and not its future.

    Files that do not differ from the last commit there are left alone. Large files may be missing from a partial copy of a
    repository; a checkout goes without them.
    """
    name = issue["repo"].replace("/", "+")
    root = folder / name

    def git(*command: str, given: str = "") -> str:
        ran = subprocess.run(["git", *command], check=True, cwd=root, input=given, capture_output=True, text=True)
        return ran.stdout

    if not (root / ".git").is_dir():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        git("init", "--quiet")
        objects = (repos / name / "repo" / "objects").resolve()
        (root / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n", "utf-8")
    (root / ".git" / "index.lock").unlink(missing_ok=True)  # left by a run that was stopped

    def listed() -> dict[str, str]:
        lines = git("ls-files", "--stage", "-z").split("\0")
        return {path: entry.split()[1] for entry, _tab, path in (line.partition("\t") for line in lines if line)}

    before = listed()
    git("read-tree", "--reset", issue["base_commit"])
    after = listed()
    for path in before.keys() - after.keys():
        (root / path).unlink(missing_ok=True)
    known = git("cat-file", "--batch-check", given="".join(f"{object}\n" for object in after.values())).splitlines()
    absent = [path for path, answer in zip(after, known, strict=True) if answer.endswith(" missing")]
    git("update-index", "--force-remove", "-z", "--stdin", given="".join(f"{path}\0" for path in absent))
    git("checkout-index", "--force", "--all", "--index")
    git("update-ref", "--no-deref", "HEAD", issue["base_commit"])
    return root


# --- rows ----------------------------------------------------------------------------------------------------------


def measure(issue: dict, root: Path, make: Made) -> Row:
    """One issue, one method: figures, and the head of what it ranked."""
    query = issue["problem_statement"]
    began = time.perf_counter()
    searcher = make(root)
    opened = time.perf_counter()
    ranked = searcher.ranked(query)
    packs = {}
    for budget in BUDGETS:
        text = searcher.packed(query, budget)
        # The issue may name its own gold; only what was found counts.
        packs[budget] = (text.replace(query, ""), tokens.count(text))
    ended = time.perf_counter()
    searcher.close()
    figures = localisation.score(
        localisation.candidates(root), issue["gold_files_py"], issue["gold_functions"], ranked, packs
    )
    return {
        "id": issue["instance_id"],
        "repo": issue["repo"],
        "figures": figures,
        "files": ranked[0][: localisation.KEPT],
        "functions": ranked[1][: localisation.KEPT],
        "seconds": [round(opened - began, 2), round(ended - opened, 2)],
    }


def digest(paths: Iterable[Path]) -> str:
    """A short name for the present state of these files."""
    hashed = blake2b(digest_size=4)
    for path in paths:
        files = [file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
        for file in sorted(files) or [path]:
            hashed.update(file.read_bytes())
    return hashed.hexdigest()


def read(path: Path) -> dict[str, Row]:
    if not path.is_file():
        return {}
    return {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}


def rows_of(method: str, issues: list[dict], repos: Path, cache: Path) -> tuple[Path, list[Row]]:
    """A row for each issue, from the file of these very sources or measured now, and that file."""
    make, sources = METHODS[method]
    path = cache / f"{method}.{digest([HERE / 'localisation.py', *sources])}.jsonl"
    known = read(path)
    with path.open("a", encoding="utf-8") as out:
        for n, issue in enumerate(issues, 1):
            if issue["instance_id"] in known:
                continue
            root = checkout(issue, repos, cache / method)
            row = known[issue["instance_id"]] = measure(issue, root, make)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(f"{method} {n}/{len(issues)} {row['id']} {row['seconds']} s", file=sys.stderr, flush=True)
    return path, [known[issue["instance_id"]] for issue in issues]


# --- report --------------------------------------------------------------------------------------------------------


def summary(rows: list[Row]) -> dict[str, float]:
    """Percentages of issues that have all of their gold, and mean parts of it; issues without such gold do not count."""
    out: dict[str, float] = {"issues": len(rows)}
    for name in dict.fromkeys(name for row in rows for name in row["figures"] if not name.startswith("tokens")):
        values = [row["figures"][name] for row in rows if name in row["figures"]]
        out[name] = round(100 * fmean(value == 1.0 for value in values), 1)
        if " in " in name:
            out[f"{name}, part"] = round(100 * fmean(values), 1)
    return out


def groups(rows: list[Row], of_one_file: Collection[str] = ()) -> dict[str, list[Row]]:
    out = {"all": rows}
    out["one file"] = [row for row in rows if row["id"] in of_one_file]
    out["judged on"] = [row for row in rows if row["repo"] not in KEPT_ASIDE]
    out["kept aside"] = [row for row in rows if row["repo"] in KEPT_ASIDE]
    for row in rows:
        out.setdefault(row["repo"].split("/")[1], []).append(row)
    return {name: group for name, group in out.items() if group}


def show(method: str, table: dict[str, dict[str, float]]) -> None:
    """A line for each group: all of the gold among the first k; then file, whole and named in packs of so many tokens."""
    packs = [[f"{what} in {budget}" for what in ("file", "whole", "named")] for budget in BUDGETS]
    blocks = [[f"file@{k}" for k in localisation.FILE_AT], [f"function@{k}" for k in localisation.FUNCTION_AT], *packs]
    print(f"{method:13} issues |", " | ".join(f"{block[0]:{6 * len(block) - 1}}" for block in blocks))
    for name, figures in table.items():
        cells = (" ".join(f"{figures.get(figure, float('nan')):5.1f}" for figure in block) for block in blocks)
        print(f"{name:13} {figures['issues']:6} |", " | ".join(cells))


def changes(old: dict[str, Row], new: list[Row]) -> dict[str, dict[str, list[str]]]:
    """Which issues were won and lost since an earlier run, by figure."""
    out: dict[str, dict[str, list[str]]] = {}
    for name in COMPARED:
        pairs = [
            (row["id"], old[row["id"]]["figures"].get(name), row["figures"].get(name)) for row in new if row["id"] in old
        ]
        won = [id for id, before, after in pairs if after == 1.0 and before != 1.0]
        lost = [id for id, before, after in pairs if before == 1.0 and after != 1.0]
        if won or lost:
            out[name] = {"won": won, "lost": lost}
    return out


def earlier(path: Path) -> Path | None:
    """The run to compare with: the one named, or else the latest of the same method with other sources."""
    if named := os.environ.get("FOVEATE_BENCH_AGAINST"):
        return Path(named)
    others = [other for other in path.parent.glob(f"{path.name.split('.')[0]}.*.jsonl") if other != path]
    return max(others, key=lambda other: other.stat().st_mtime, default=None)


def usable() -> list[str]:
    """The methods asked for that can run here."""
    named = os.environ.get("FOVEATE_BENCH_METHODS", ",".join(METHODS)).split(",")
    if peers.python() is None and any(name.startswith("semble") for name in named):
        print("semble is left out: set FOVEATE_BENCH_PEERS to a virtual environment that holds it.", file=sys.stderr)
        return [name for name in named if not name.startswith("semble")]
    return named


def run() -> dict:
    repos = Path(os.environ.get("FOVEATE_BENCH_REPOS", "missing"))
    if not (DATA / "swebench_dev").is_dir() or not repos.is_dir():
        print(
            "SWE-bench needs FOVEATE_BENCH_DATA (with swebench_dev/) and FOVEATE_BENCH_REPOS (bare repositories).",
            file=sys.stderr,
        )
        return {}
    cache = Path(os.environ.get("FOVEATE_BENCH_CACHE", Path(tempfile.gettempdir(), "foveate-bench")), "swebench")
    cache.mkdir(parents=True, exist_ok=True)
    issues = instances()
    of_one_file = {issue["instance_id"] for issue in issues if len(issue["gold_files_py"]) == 1}
    out: dict = {"budgets": BUDGETS, "kept aside": KEPT_ASIDE, "methods": {}, "missed": []}
    for method in usable():
        path, rows = rows_of(method, issues, repos, cache)
        table = out["methods"][method] = {name: summary(group) for name, group in groups(rows, of_one_file).items()}
        show(method, table)
        over = [(row["id"], budget) for row in rows for budget in BUDGETS if row["figures"][f"tokens {budget}"] > budget]
        out["missed"] += [f"{method} is over its budget of {budget} tokens on {id}" for id, budget in over]
        before = earlier(path)
        if before and (changed := changes(read(before), rows)):
            out["methods"][method]["changes"] = changed
            for name, lists in changed.items():
                print(f"{name}: won {lists['won']}, lost {lists['lost']}")
    return out
