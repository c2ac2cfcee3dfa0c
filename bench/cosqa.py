"""From a short question to a function: CoSQA, 500 web queries over 6,267 Python functions, beside plain BM25."""

from __future__ import annotations

from bench.corpus import DATA
from bench.kit import absent, judged, measured, value
from foveate.eval.report import Figure

SYSTEMS = ("foveate", "file-bm25")
TARGET = 1.2
"""Times BM25's mean reciprocal rank."""


def run() -> dict:
    folder = DATA / "cosqa"
    if absent(folder):
        return {}
    reports = measured("cosqa", SYSTEMS, folder)
    out = judged(reports, ())
    ours = value(reports.get("foveate"), Figure("mrr", what="function"))
    # A file is a function here; BM25 is a little better at files, because it need not parse them.
    other = value(reports.get("file-bm25"), Figure("mrr", what="file"))
    if ours is not None and other:
        out["ratio"] = round(ours / other, 3)
        print(f"\nmean reciprocal rank {ours:.4f}, {out['ratio']} times BM25's {other:.4f} (target {TARGET})")
        if out["ratio"] < TARGET:
            out["missed"].append(f"the mean reciprocal rank is {out['ratio']} times BM25's, not {TARGET}")
    return out
