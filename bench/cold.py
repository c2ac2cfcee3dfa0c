"""Measures the cold start: one context over 10,000 records in a new process, as CPU time above that of bare Python.

The parts come from processes that each go one step further. The minimum of five runs counts: it is the least disturbed one.
"""

from __future__ import annotations

import os
import sys
import tempfile
from itertools import islice
from pathlib import Path

from bench.corpus import docs, queries
from bench.speed import child_cpu, fill

RECORDS = int(os.environ.get("FOVEATE_BENCH_RECORDS", "10000"))
TARGET_MS = 300.0
"""CPU time above that of bare Python."""

STEPS = {
    "imports": "import foveate; foveate.Engine; foveate.open",
    "open": "import foveate; foveate.open({folder!r}, personal=False).close()",
    "compute": "import foveate; e = foveate.open({folder!r}, personal=False); e.context({question!r}); e.close()",
}


def run() -> dict:
    corpus = list(dict.fromkeys(islice(docs(), 2 * RECORDS)))[:RECORDS]
    question = queries(corpus, 1)[0]
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), corpus)
        names = {"folder": folder, "question": question}
        bare = child_cpu([sys.executable, "-I", "-c", "pass"])
        costs = {step: child_cpu([sys.executable, "-I", "-c", code.format(**names)]) - bare for step, code in STEPS.items()}
        command = [sys.executable, "-m", "foveate", "--store", folder, "context", question]
        line = child_cpu(command) - bare
    parts = {
        "imports ms": round(costs["imports"], 1),
        "open ms": round(costs["open"] - costs["imports"], 1),
        "compute ms": round(costs["compute"] - costs["open"], 1),
    }
    out = {
        "records": len(corpus),
        "python ms": round(bare, 1),
        "context above python ms": round(costs["compute"], 1),
        "parts": parts,
        "foveate context above python ms": round(line, 1),
        "target ms": TARGET_MS,
    }
    if costs["compute"] >= TARGET_MS:
        out["missed"] = [f"{costs['compute']:.0f} ms, not below {TARGET_MS:.0f}"]
    print(out)
    return out
