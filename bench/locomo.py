"""LoCoMo: how much of the needed evidence is in the prompt by token budget, compared with SQLite FTS5 and a BM25 library.

A turn counts only if its text is in the context as the model receives it. foveate's context includes headings and framing.
"""

from __future__ import annotations

from bench.corpus import DATA
from bench.kit import is_missing, measure, outcome, value
from foveate.eval.report import MetricKey

SYSTEMS = ("foveate", "fts5", "bm25", "recency")
TARGETS = ("turn.recall@1000=80", "turn.recall@4000=90")
SESSIONS = MetricKey("complete", evidence_type="session", rank_cutoff=10)
SESSIONS_TARGET = 0.94
MULTI_HOP = MetricKey("complete", 4000, "turn", "multi-hop")
MULTI_HOP_RATIO = 1.5
"""The target for questions whose evidence is in several places, as a multiple of FTS5's value."""


def run() -> dict:
    folder = DATA / "locomo"
    if is_missing(folder):
        return {}
    reports = measure("locomo", SYSTEMS, folder)
    out = outcome(reports, TARGETS)
    sessions = value(reports.get("foveate"), SESSIONS)
    if sessions is not None and sessions < SESSIONS_TARGET:
        out["missed"].append(f"all sessions among the first 10 is {sessions:.1%}, not {SESSIONS_TARGET:.0%}")
    ours, fts5 = (value(reports.get(name), MULTI_HOP) for name in ("foveate", "fts5"))
    if ours is not None and fts5:
        ratio = ours / fts5
        out["multi-hop to fts5"] = round(ratio, 3)
        print(f"\nmulti-hop, complete, in 4000 tokens: {ratio:.3f} times FTS5's (target {MULTI_HOP_RATIO})")
        if ratio < MULTI_HOP_RATIO:
            out["missed"].append(
                f"multi-hop questions with all evidence are {ratio:.2f} times FTS5's, not {MULTI_HOP_RATIO}"
            )
    return out
