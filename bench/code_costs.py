"""foveate's jobs for `bench.codeindex`, each in a process of its own.

`python -m bench.code_costs index ROOT`, `... edit ROOT FILE` and `... context ROOT BUDGET QUESTION ...` print the CPU
seconds of their steps, as the commands of `bench.peers` do. Those use a clock with a hundred ticks a second; these jobs take
only a few ticks, so they use a finer clock.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import foveate
from bench.peers import answer

PROFILE = "coding"
EDIT_COUNT = 7


def cpu() -> float:
    """Return the user and system seconds of this process and of its ended children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def time_step(steps: dict[str, float], name: str, job: Callable[[], object]) -> object:
    began = cpu()
    result = job()
    steps[name] = cpu() - began
    return result


def index_file(root: Path) -> Path:
    return root.with_name(f"{root.name}.index")


def open_index(root: Path):
    """Open and update the index of a checkout."""
    from foveate.code.index import CodeIndex

    index = CodeIndex(root, index_file(root))
    index.refresh()
    return index


def open_engine(root: Path) -> foveate.Engine:
    return foveate.open(root, personal=False, profile=PROFILE)


def index(root: str) -> None:
    steps = {"start": cpu()}
    time_step(steps, "index", lambda: open_index(Path(root)))
    answer({"steps": steps})


def edit(root: str, path: str) -> None:
    """Time index updates after edits of a file: the first one, which loads the grammar, and the median of the others."""
    steps = {"start": cpu()}
    index = open_index(Path(root))
    steps["open"] = cpu() - steps["start"]
    edits = ["first", *(f"further {n}" for n in range(1, EDIT_COUNT))]
    for n, name in enumerate(edits):
        with (Path(root) / path).open("a", encoding="utf-8") as file:
            file.write(f"\n\ndef number_{n}_added_by_the_benchmark():\n    return {n}\n")
        time_step(steps, name, index.refresh)
    steps["further"] = median(steps[name] for name in edits[1:])
    answer({"steps": steps})


def context(root: str, budget: str, *questions: str) -> None:
    """Compute a context for each question in turn. The index exists already."""
    steps = {"start": cpu()}
    engine = open_engine(Path(root))
    steps["open"] = cpu() - steps["start"]
    for question in questions:
        time_step(steps, question, lambda question=question: engine.context(question, budget=int(budget), profile=PROFILE))
    engine.close()
    answer({"steps": steps})


if __name__ == "__main__":
    {"index": index, "edit": edit, "context": context}[sys.argv[1]](*sys.argv[2:])
