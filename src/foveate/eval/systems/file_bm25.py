"""Plain BM25 over whole files, and over the functions in them: no identifier is split, no word is stemmed."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from foveate.eval.model import Case, Rendered, Scene, Suite
from foveate.eval.python_files import KNOWN, functions, text
from foveate.eval.systems.packing import packed, under_path

K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FileBm25:
    name: str = "file-bm25"
    fingerprint: str = "file-bm25"
    on_code: ClassVar[bool] = True

    def open(self, scene: Scene, suite: Suite) -> Files:
        return Files(scene.root or Path(), scene.files)


class Files:
    def __init__(self, root: Path, files: Sequence[str]) -> None:
        texts = {path: text(root, path) for path in files}
        found = [(path, function) for path, source in texts.items() for function in functions(source)]
        self.sources = {f"{path}::{function.name}": function.source for path, function in found}
        self.files = Index(texts)
        self.functions = Index(self.sources)

    def render(self, case: Case, budget: int) -> Rendered:
        best = self.functions.search(case.query)
        return packed((under_path(name.partition("::")[0], self.sources[name]) for name in best), budget)

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        return {"file": self.files.search(case.query), "function": self.functions.search(case.query)}

    def close(self) -> None: ...


class Index:
    """How often each word stands in each document."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self.counts = {name: words(source) for name, source in documents.items()}
        self.lengths = {name: count.total() for name, count in self.counts.items()}
        self.mean = sum(self.lengths.values()) / max(1, len(self.lengths))
        self.search = lru_cache(maxsize=64)(self._search)

    def _search(self, query: str) -> list[str]:
        """The names of the documents that share a word with the query, best first; names decide between equals."""
        scores: defaultdict[str, float] = defaultdict(float)
        for word, times in words(query).items():
            having = [name for name, count in self.counts.items() if word in count]
            rarity = math.log(1 + (len(self.counts) - len(having) + 0.5) / (len(having) + 0.5))
            for name in having:
                often = self.counts[name][word]
                scores[name] += times * rarity * often * (K1 + 1) / (often + K1 * self._length(name))
        return sorted(scores, key=lambda name: (-scores[name], name))

    def _length(self, name: str) -> float:
        """Of a document against the others: a long one says each word more often."""
        return 1 - B + B * self.lengths[name] / self.mean


@lru_cache(maxsize=10 * KNOWN)
def words(source: str) -> Counter[str]:
    return Counter(_WORD.findall(source.lower()))


SYSTEM = FileBm25()
