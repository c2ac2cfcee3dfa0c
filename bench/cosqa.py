"""CoSQA: 500 short web queries over 6,267 Python functions, compared with plain BM25."""

from __future__ import annotations

from bench.corpus import DATA
from bench.kit import is_missing, measure, outcome, value
from foveate.eval.report import MetricKey

SYSTEMS = ("foveate", "bench.systems.file_bm25")
TARGET = 1.2
"""A multiple of BM25's mean reciprocal rank."""


def run() -> dict:
    folder = DATA / "cosqa"
    if is_missing(folder):
        return {}
    reports = measure("cosqa", SYSTEMS, folder)
    out = outcome(reports, ())
    ours = value(reports.get("foveate"), MetricKey("mrr", evidence_type="function"))
    # Each file has one function. BM25 is a little better at files, because it need not parse them.
    bm25 = value(reports.get("bench.systems.file_bm25"), MetricKey("mrr", evidence_type="file"))
    if ours is not None and bm25:
        out["ratio"] = round(ours / bm25, 3)
        print(f"\nmean reciprocal rank {ours:.4f}, {out['ratio']} times BM25's {bm25:.4f} (target {TARGET})")
        if out["ratio"] < TARGET:
            out["missed"].append(f"the mean reciprocal rank is {out['ratio']} times BM25's, not {TARGET}")
    return out
