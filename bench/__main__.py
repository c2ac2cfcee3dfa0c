"""`python -m bench [NAME ...]`: run benchmarks and write their figures to bench/out/."""

from __future__ import annotations

import json
import platform
import sys
from importlib import import_module
from pathlib import Path

NAMES = (
    "precision", "rules", "locomo", "speed", "cold", "adapters", "crash", "tasks", "codeindex", "scale", "swebench", "cosqa",
    "cache", "hook", "service", "inspector", "vectors", "writers",
)  # fmt: skip
NAMED_ONLY = ("scale", "codeindex", "service", "inspector", "vectors", "writers")
"""Run only when named: a million records or vectors, peers at work on Django, servers and writers under load for minutes."""


def main() -> None:
    names = sys.argv[1:] or [name for name in NAMES if name not in NAMED_ONLY]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"There is no benchmark {unknown[0]!r}. Known: {', '.join(NAMES)}.")
    out = Path(__file__).parent / "out"
    out.mkdir(exist_ok=True)
    missed: list[str] = []
    for name in names:
        print(f"--- {name}", flush=True)
        figures = import_module(f"bench.{name}").run()
        if figures:
            document = {"benchmark": name, "python": platform.python_version(), "figures": figures}
            (out / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", "utf-8")
            missed += [f"{name}: {reason}" for reason in figures.get("missed", ())]
    if missed:
        sys.exit("Targets missed:\n" + "\n".join(missed))


main()
