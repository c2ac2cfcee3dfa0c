"""foveate's side of the code benches. When its code room changes, this is the file to follow it.

`python -m bench.ours index ROOT`, `... edit ROOT FILE` and `... context ROOT BUDGET QUESTION ...` do one job in a process of
its own and print the CPU seconds of its steps, as the verbs of `bench.peers` do. Their clock ticks a hundred times a second;
what is measured here takes a few ticks only, so it is measured with a finer one.
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
EDITS = 7


def cpu() -> float:
    """User and system seconds of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process_time() + children.ru_utime + children.ru_stime


def timed(steps: dict[str, float], name: str, job: Callable[[], object]) -> object:
    began = cpu()
    result = job()
    steps[name] = cpu() - began
    return result


def index_file(root: Path) -> Path:
    return root.with_name(f"{root.name}.index")


def open_index(root: Path):
    """The index of a checkout, brought up to date: new the first time, then only what changed."""
    from foveate.code.index import CodeIndex

    index = CodeIndex(root, index_file(root))
    index.refresh()
    return index


def open_engine(root: Path) -> foveate.Engine:
    return foveate.open(root, personal=False, profile=PROFILE)


def index(root: str) -> None:
    steps = {"start": cpu()}
    timed(steps, "index", lambda: open_index(Path(root)))
    answer({"steps": steps})


def edit(root: str, path: str) -> None:
    """Edits of a file, each taken in by a process that runs: the first still loads its grammar; the median of the others."""
    steps = {"start": cpu()}
    index = open_index(Path(root))
    steps["open"] = cpu() - steps["start"]
    edits = ["first", *(f"further {n}" for n in range(1, EDITS))]
    for n, name in enumerate(edits):
        with (Path(root) / path).open("a", encoding="utf-8") as file:
            file.write(f"\n\ndef number_{n}_added_by_the_benchmark():\n    return {n}\n")
        timed(steps, name, index.refresh)
    steps["further"] = median(steps[name] for name in edits[1:])
    answer({"steps": steps})


def context(root: str, budget: str, *questions: str) -> None:
    """A context for each question, one after the other, with the index already there."""
    steps = {"start": cpu()}
    engine = open_engine(Path(root))
    steps["open"] = cpu() - steps["start"]
    for question in questions:
        timed(steps, question, lambda question=question: engine.context(question, budget=int(budget), profile=PROFILE))
    engine.close()
    answer({"steps": steps})


if __name__ == "__main__":
    {"index": index, "edit": edit, "context": context}[sys.argv[1]](*sys.argv[2:])
