"""Helpers for tests of suites: write data files, load datasets, and run foveate on a suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foveate.eval.model import Dataset
from foveate.eval.rows import Run
from foveate.eval.run import run
from foveate.eval.systems import open_system


def load_suite(name: str) -> Any:
    """Return a suite of foveate or of bench by its short name."""
    from bench.kit import load_suite

    return load_suite(name)


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return path


def write_jsonl(path: Path, *documents: Any) -> Path:
    return write(path, "".join(f"{json.dumps(document)}\n" for document in documents))


def load_datasets(name: str, path: Path, **options: str) -> dict[str, Dataset]:
    return {subset.id: subset.load() for subset in load_suite(name).subsets(path, options)}


def run_foveate(name: str, path: Path, out: Path, **options: str) -> Run:
    return run(load_suite(name), open_system("foveate"), path, out, budgets=[8000], options=options)
