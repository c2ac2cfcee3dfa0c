"""LoCoMo: how much of the needed evidence is in the rendered text, by token budget, beside SQLite FTS5 and a BM25 library.

A turn counts as present only if its text is in the context as the model receives it; ours pays for headings and framing.
"""

from __future__ import annotations

from bench.corpus import DATA
from bench.kit import absent, judged, measured, value
from foveate.eval.report import Figure

SYSTEMS = ("foveate", "fts5", "bm25", "last")
TARGETS = ("turn.fraction@1000=80", "turn.fraction@4000=90")
SESSIONS = Figure("all", what="session", top=10)
SESSIONS_TARGET = 0.94
SEVERAL = Figure("all", 4000, "turn", "multi-hop")
RATIO = 1.5
"""Times what FTS5 has of questions whose evidence is in several places."""


def run() -> dict:
    folder = DATA / "locomo"
    if absent(folder):
        return {}
    reports = measured("locomo", SYSTEMS, folder)
    out = judged(reports, TARGETS)
    sessions = value(reports.get("foveate"), SESSIONS)
    if sessions is not None and sessions < SESSIONS_TARGET:
        out["missed"].append(f"all sessions among the first 10 is {sessions:.1%}, not {SESSIONS_TARGET:.0%}")
    ours, other = (value(reports.get(name), SEVERAL) for name in ("foveate", "fts5"))
    if ours is not None and other:
        out["multi-hop to fts5"] = round(ours / other, 3)
        print(f"\nmulti-hop, all, in 4000 tokens: {out['multi-hop to fts5']} times FTS5's (target {RATIO})")
        if ours < RATIO * other:
            out["missed"].append(f"multi-hop questions with all evidence are {ours / other:.2f} times FTS5's, not {RATIO}")
    return out
