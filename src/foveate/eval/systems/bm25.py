"""A plain BM25 library, bm25s: its English stop words, Snowball stems, all else as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import ClassVar

from foveate.errors import InputError
from foveate.eval.model import Scene, Suite
from foveate.eval.systems.documents import Documents, Search


@dataclass(frozen=True, slots=True)
class Bm25:
    name: str = "bm25"
    on_code: ClassVar[bool] = False

    @property
    def fingerprint(self) -> str:
        _installed()
        return f"bm25s {version('bm25s')} PyStemmer {version('PyStemmer')}"

    def open(self, scene: Scene, suite: Suite) -> Documents:
        _installed()
        return Documents(scene, index)


def index(texts: Sequence[str]) -> Search:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def words(given: Sequence[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(list(given), stemmer=stemmer, return_ids=False, show_progress=False)
        return found

    told = words(texts)
    known = {word for document in told for word in document}
    if not known:  # the library wants a word at least
        return lambda query: []
    retriever = bm25s.BM25()
    retriever.index(told, show_progress=False)

    def search(query: str) -> list[int]:
        asked = [word for word in words([query])[0] if word in known]
        if not asked:
            return []
        scores = retriever.get_scores(asked).tolist()
        return sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], n))

    return search


def missing() -> str:
    return "" if find_spec("bm25s") else "pip install 'foveate[bm25]'"


def _installed() -> None:
    if said := missing():
        raise InputError(f"The system 'bm25' needs a package: {said}")


SYSTEM = Bm25()
