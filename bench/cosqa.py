"""From a short question to a function: CoSQA, 500 web queries over 6,267 Python functions.

Each function is a file of a scratch repository. What counts is the mean reciprocal rank of the function that answers, beside
plain BM25.

FOVEATE_BENCH_DATA names a folder with cosqa/, FOVEATE_BENCH_LIMIT how many of the queries are asked.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import fmean

from bench.baselines import bm25
from bench.corpus import DATA

TARGET = 1.2
"""Times BM25's rank."""
DEPTH = 1000
"""A function that is ranked lower counts as not found."""


def corpus() -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Functions by the path of their file, and queries with the path that answers each."""
    folder = DATA / "cosqa"
    numbered = json.loads((folder / "code_idx_map.txt").read_text("utf-8"))
    queries = json.loads((folder / "cosqa-retrieval-dev-500.json").read_text("utf-8"))
    limit = int(os.environ.get("FOVEATE_BENCH_LIMIT", "0")) or len(queries)
    return (
        {_path(number): code for code, number in numbered.items()},
        [(query["doc"], _path(query["retrieval_idx"])) for query in queries[:limit]],
    )


def _path(number: int) -> str:
    return f"{number // 100:03}/{number:05}.py"


def ours(functions: dict[str, str], queries: list[str], root: Path) -> list[list[str]]:
    """The paths that foveate's definition search ranks for each query."""
    from foveate.code import question
    from foveate.code.index import CodeIndex
    from foveate.code.search import search

    for path, code in functions.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(code, "utf-8")
    index = CodeIndex(root, ":memory:")
    index.refresh()
    found = [search(index, question.read(query), definitions=DEPTH).definitions for query in queries]
    index.close()
    return [list(dict.fromkeys(hit.symbol.path for hit in hits)) for hits in found]


def reciprocal(ranked: list[str], gold: str) -> float:
    return 1 / (1 + ranked.index(gold)) if gold in ranked[:DEPTH] else 0.0


def run() -> dict:
    if not (DATA / "cosqa").is_dir():
        print("CoSQA needs FOVEATE_BENCH_DATA (with cosqa/).", file=sys.stderr)
        return {}
    functions, asked = corpus()
    queries = [query for query, _ in asked]
    with tempfile.TemporaryDirectory() as folder:
        rankings = {"foveate": ours(functions, queries, Path(folder)), "BM25": bm25_each(functions, queries)}
    out: dict = {"queries": len(asked), "target": TARGET, "missed": []}
    for name, ranked in rankings.items():
        out[name] = round(fmean(reciprocal(one, gold) for one, (_, gold) in zip(ranked, asked, strict=True)), 4)
        print(f"{name:10} MRR {out[name]}")
    out["ratio"] = round(out["foveate"] / out["BM25"], 3)
    print(f"{'ratio':10} {out['ratio']} (target {TARGET})")
    if out["ratio"] < TARGET:
        out["missed"] = [f"CoSQA's mean reciprocal rank is {out['ratio']} times BM25's, not {TARGET}"]
    return out


def bm25_each(functions: dict[str, str], queries: list[str]) -> list[list[str]]:
    return [bm25(functions, query) for query in queries]
