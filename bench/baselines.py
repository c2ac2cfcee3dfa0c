"""What foveate is measured beside on a code base: plain BM25, and semble in a process of its own environment.

A `Searcher` is made for a checkout as it stands; it ranks files and functions (`path::Class.method`) and renders a text
within a number of tokens. The baselines render what they found best first, each piece under its path, and skip what does not
fit.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Protocol

from bench import peers
from bench.localisation import candidates, functions
from foveate import tokens

K1, B = 1.2, 0.75
RENDERED = 400
"""So many pieces are tried for a pack, at most."""
_WORD = re.compile(r"\w+")


class Searcher(Protocol):
    def ranked(self, query: str) -> tuple[list[str], list[str]]:
        """Files and functions, best first."""
        ...

    def packed(self, query: str, budget: int) -> str: ...

    def close(self) -> None: ...


@cache
def words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def bm25(documents: Mapping[str, str], query: str) -> list[str]:
    """The names of the documents that share a word with the query, best first; names decide between equals."""
    counts = {name: words(text) for name, text in documents.items()}
    lengths = {name: count.total() for name, count in counts.items()}
    mean = sum(lengths.values()) / max(1, len(lengths))
    scores: dict[str, float] = dict.fromkeys(documents, 0.0)
    for word, times in words(query).items():
        having = [name for name, count in counts.items() if word in count]
        rarity = math.log(1 + (len(counts) - len(having) + 0.5) / (len(having) + 0.5))
        for name in having:
            often = counts[name][word]
            scores[name] += times * rarity * often * (K1 + 1) / (often + K1 * (1 - B + B * lengths[name] / mean))
    return sorted((name for name, value in scores.items() if value), key=lambda name: (-scores[name], name))


def greedy(pieces: Iterable[tuple[str, str]], budget: int) -> str:
    """Pieces of text under their paths, in the order given, each if it still fits."""
    out, used = [], 0
    for path, source in pieces:
        text = f"# {path}\n{source.rstrip()}\n"
        cost = tokens.count(text)
        if used + cost <= budget:
            out.append(text)
            used += cost
    return "".join(out)


class Bm25:
    """BM25 over whole files, and over functions: no identifier is split, no word is stemmed."""

    def __init__(self, root: Path) -> None:
        self.files = candidates(root)
        found = [(path, function) for path, text in self.files.items() for function in functions(text)]
        self.functions = {f"{path}::{function.name}": function.source for path, function in found}

    def ranked(self, query: str) -> tuple[list[str], list[str]]:
        return bm25(self.files, query), bm25(self.functions, query)

    def packed(self, query: str, budget: int) -> str:
        best = bm25(self.functions, query)[:RENDERED]
        return greedy(((name.split("::")[0], self.functions[name]) for name in best), budget)

    def close(self) -> None: ...


class Semble:
    """Chunks as semble ranks and renders them.

    A chunk stands for its file and for the functions it shares lines with, most lines first.
    """

    _child: subprocess.Popen[str] | None = None

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = candidates(root)
        self.answers: dict[str, list[tuple[str, int, int, str]]] = {}

    def ranked(self, query: str) -> tuple[list[str], list[str]]:
        files: dict[str, None] = {}
        found: dict[str, None] = {}
        for path, first, last, _text in self._chunks(query):
            files[path] = None
            shared = [
                (min(last, function.end) - max(first, function.line), function.name)
                for function in functions(self.files.get(path, ""))
                if function.line <= last and function.end >= first
            ]
            found |= dict.fromkeys(f"{path}::{name}" for _lines, name in sorted(shared, reverse=True))
        return list(files), list(found)

    def packed(self, query: str, budget: int) -> str:
        return greedy(((path, text) for path, _first, _last, text in self._chunks(query)), budget)

    def close(self) -> None: ...

    def _chunks(self, query: str) -> list[tuple[str, int, int, str]]:
        if query not in self.answers:
            child = self._process(self.root.parent / "index")
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(json.dumps({"root": str(self.root), "query": query}) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
            if not line:
                raise RuntimeError("semble's process has ended; its last words are above.")
            self.answers[query] = json.loads(line)
        return self.answers[query]

    @classmethod
    def _process(cls, folder: Path) -> subprocess.Popen[str]:
        """One child for all checkouts; it ends with this process, when its input does."""
        if cls._child is None:
            command = [str(peers.python()), peers.__file__, "semble-search", str(folder)]
            cls._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return cls._child


class SembleWhole(Semble):
    """semble's ranking, rendered more kindly: its chunks cut functions apart; here the functions they touch stand whole."""

    def packed(self, query: str, budget: int) -> str:
        _files, names = self.ranked(query)
        return greedy((self._function(*name.split("::")) for name in names[:RENDERED]), budget)

    def _function(self, path: str, name: str) -> tuple[str, str]:
        return path, next(function.source for function in functions(self.files[path]) if function.name == name)
