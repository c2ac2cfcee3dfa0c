"""Plain BM25 over whole files and over the functions in them, without splitting identifiers or stemming."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from bench.datasets.python_files import MAX_CACHED_FILES, functions, read_source
from foveate.eval.model import Case, Dataset, RenderedPrompt, Suite, SystemType
from foveate.eval.systems.baselines import pack

K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class FileBm25:
    name: str = "file-bm25"
    fingerprint: str = "file-bm25"
    is_code: ClassVar[bool] = True

    def open(self, dataset: Dataset, suite: Suite) -> FileRanking:
        return FileRanking(dataset.root or Path(), dataset.answer_files)


class FileRanking:
    def __init__(self, root: Path, files: Sequence[str]) -> None:
        texts = {path: read_source(root, path) for path in files}
        pairs = [(path, function) for path, source in texts.items() for function in functions(source)]
        self.sources = {f"{path}::{function.name}": function.source for path, function in pairs}
        self.files = Index(texts)
        self.functions = Index(self.sources)

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        names = self.functions.search(case.query)
        return pack((code_with_path(name.partition("::")[0], self.sources[name]) for name in names), budget)

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        return {"file": self.files.search(case.query), "function": self.functions.search(case.query)}

    def close(self) -> None: ...


class Index:
    """Word counts of documents."""

    def __init__(self, documents: Mapping[str, str]) -> None:
        self.counts = {name: word_counts(source) for name, source in documents.items()}
        self.lengths = {name: count.total() for name, count in self.counts.items()}
        self.mean_length = sum(self.lengths.values()) / max(1, len(self.lengths))
        self.search = lru_cache(maxsize=64)(self._search)

    def _search(self, query: str) -> list[str]:
        """Return the names of documents that share a word with the query, best first; equal ones by name."""
        scores: defaultdict[str, float] = defaultdict(float)
        for word, times in word_counts(query).items():
            matches = [name for name, count in self.counts.items() if word in count]
            idf = math.log(1 + (len(self.counts) - len(matches) + 0.5) / (len(matches) + 0.5))
            for name in matches:
                frequency = self.counts[name][word]
                scores[name] += times * idf * frequency * (K1 + 1) / (frequency + K1 * self._length_norm(name))
        return sorted(scores, key=lambda name: (-scores[name], name))

    def _length_norm(self, name: str) -> float:
        return 1 - B + B * self.lengths[name] / self.mean_length


@lru_cache(maxsize=10 * MAX_CACHED_FILES)
def word_counts(source: str) -> Counter[str]:
    return Counter(_WORD.findall(source.lower()))


def code_with_path(path: str, source: str) -> str:
    """Return a piece of code as code baselines show it."""
    return f"# {path}\n{source.rstrip()}"


SYSTEM = SystemType(make=lambda argument: FileBm25(), description="code: plain BM25 over files and functions")
