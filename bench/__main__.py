"""Run benchmarks and developer tools: `python -m bench [NAME ...]`, `python -m bench TOOL ARGUMENTS`.

Benchmarks write their metrics to bench/out/. See README.md.
"""

from __future__ import annotations

import json
import platform
import sys
from importlib import import_module
from pathlib import Path

NAMES = (
    "precision", "rules", "locomo", "speed", "cold", "adapters", "crash", "tasks", "codeindex", "scale", "swebench", "cosqa",
    "cache", "hook", "doors", "paraphrases", "service", "inspector", "vectors", "writers",
)  # fmt: skip
NAMED_ONLY = ("scale", "codeindex", "service", "inspector", "vectors", "writers", "doors", "paraphrases")
"""Run only by name: they take minutes, with a million records or vectors, servers under load, or many processes."""
TOOLS = ("ablate", "attack", "plot", "mutants", "relevance")
"""Commands with arguments of their own; `python -m bench TOOL --help` explains them."""


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in TOOLS:
        run_tool(sys.argv[1], sys.argv[2:])
        return
    names = sys.argv[1:] or [name for name in NAMES if name not in NAMED_ONLY]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"There is no benchmark {unknown[0]!r}. Benchmarks: {', '.join(NAMES)}. Tools: {', '.join(TOOLS)}.")
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


def run_tool(name: str, arguments: list[str]) -> None:
    from foveate.cli.failures import handle_errors

    command = import_module(f"bench.{name}").main
    sys.exit(handle_errors(lambda: command.main(arguments, f"python -m bench {name}", standalone_mode=False), as_json=False))


if __name__ == "__main__":
    main()
