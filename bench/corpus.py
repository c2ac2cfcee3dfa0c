"""Real text to measure on: LoCoMo's turns from a path that the user gives, and the docs of installed packages."""

from __future__ import annotations

import ast
import json
import os
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from foveate.eval.datasets import load_suite

DATA = Path(os.environ.get("FOVEATE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))


def turns() -> list[str]:
    """Return the turns of LoCoMo's conversations, or nothing if the data is missing."""
    if not (DATA / "locomo").is_dir():
        return []
    subsets = load_suite("locomo").subsets(DATA / "locomo", {})
    return [document.text for subset in subsets for document in subset.load().documents]


def docs() -> Iterator[str]:
    """Paragraphs of the docstrings of the standard library and of every installed package."""
    roots = dict.fromkeys((sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")))
    for root in roots:
        for path in sorted(Path(root).rglob("*.py")):
            try:
                tree = ast.parse(path.read_text("utf-8"))
            except (SyntaxError, ValueError, OSError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                    for part in (ast.get_docstring(node) or "").split("\n\n"):
                        text = " ".join(part.split())
                        if 60 < len(text) < 600 and text.isprintable():
                            yield text


def _natural() -> list[str]:
    """Dialogue and docs. Reading every installed package takes minutes: the result is kept under `build/`."""
    kept = Path(__file__).parents[1] / "build" / "corpus.json"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(list(dict.fromkeys([*turns(), *docs()]))), "utf-8")
    return json.loads(kept.read_text("utf-8"))


def texts(count: int, seed: int = 1) -> list[str]:
    """So many different texts: dialogue and docs first, then new pairings of their halves (real words, unreal topics)."""
    chance = random.Random(seed)
    found = _natural()
    chance.shuffle(found)
    natural = len(found)
    seen = set(found)
    while len(found) < count:
        text = f"{found[chance.randrange(natural)][:200]} {found[chance.randrange(natural)][:150]}"
        if text not in seen:
            seen.add(text)
            found.append(text)
    return found[:count]


def queries(corpus: list[str], count: int, seed: int = 7) -> list[str]:
    """Questions of 3 to 6 words, each drawn from one known text."""
    from foveate.text import analysis

    chance = random.Random(seed)
    out = []
    while len(out) < count:
        words = list(dict.fromkeys(analysis.words(chance.choice(corpus))))
        if len(words) >= 6:
            chance.shuffle(words)
            out.append(" ".join(words[: chance.choice((3, 4, 5, 6))]))
    return out
