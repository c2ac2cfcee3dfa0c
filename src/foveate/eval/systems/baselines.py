"""Baselines for memories: SQLite's full-text search, BM25, embeddings alone, and the newest documents.

Each baseline ranks documents and fills the budget with the best ones that fit, without headings or framing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import ClassVar

import apsw

from foveate.eval.model import Case, Dataset, Document, OpenSystem, RenderedPrompt, Suite, SystemType
from foveate.text import tokens
from foveate.text.embed import Embedder, open_embedder

MAX_TRIED_TEXTS = 1000

Search = Callable[[str], Sequence[int]]
"""Maps a query to the positions of the documents that match it, best first."""
BuildIndex = Callable[[Sequence[str]], Search]

# --- filling a budget ----------------------------------------------------------------------------------------------


def pack(texts: Iterable[str], budget: int) -> RenderedPrompt:
    """Return the texts that fit into a budget, in the given order."""
    return RenderedPrompt("".join(select_fitting(texts, budget)))


def select_fitting(texts: Iterable[str], budget: int) -> list[str]:
    """Take each text that still fits. A long text does not keep shorter ones after it out."""
    selected, used = [], 0
    for _, text in zip(range(MAX_TRIED_TEXTS), texts, strict=False):
        line = f"{text.rstrip()}\n"
        cost = _token_count(line)
        if used + cost <= budget:
            selected.append(line)
            used += cost
    return selected


@lru_cache(maxsize=100_000)  # the same texts are tried for many cases and budgets
def _token_count(text: str) -> int:
    return tokens.count(text)


# --- ranking documents ---------------------------------------------------------------------------------------------


class DocumentRanking:
    """The documents that are not retired, ranked by a search.

    Sessions are ranked as joined documents, or by their best document if they are not joined: an embedding of a whole
    session says little.
    """

    def __init__(self, dataset: Dataset, build_index: BuildIndex, *, join_sessions: bool = True) -> None:
        self.documents = active_documents(dataset)
        self._search = lru_cache(maxsize=None)(build_index([document.text for document in self.documents]))
        texts: dict[str, list[str]] = {}
        for document in self.documents:
            texts.setdefault(document.session or "", []).append(document.text)
        self.sessions = list(texts)
        joined = ["\n".join(of_session) for of_session in texts.values()]
        self._search_sessions = build_index(joined) if join_sessions else None

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        return pack((document_line(self.documents[n]) for n in self._search(case.query)), budget)

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        ranked = [self.documents[n] for n in self._search(case.query)]
        if self._search_sessions is None:
            sessions = list(dict.fromkeys(document.session or "" for document in ranked))
        else:
            sessions = [self.sessions[n] for n in self._search_sessions(case.query)]
        return {"turn": [document.id for document in ranked], "session": sessions}

    def close(self) -> None: ...


def active_documents(dataset: Dataset) -> list[Document]:
    return [document for document in dataset.documents if not document.is_retired]


def document_line(document: Document) -> str:
    return f"- {document.text}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A system that ranks documents."""

    name: str
    fingerprint: str
    build: Callable[[Dataset], OpenSystem] = field(repr=False)
    is_code: ClassVar[bool] = False

    def open(self, dataset: Dataset, suite: Suite) -> OpenSystem:
        return self.build(dataset)


# --- SQLite's full-text search: Porter stems, any word of the query, BM25 -------------------------------------------

_WORD = re.compile(r"\w+")


def build_fts5_index(texts: Sequence[str]) -> Search:
    db = apsw.Connection(":memory:")
    db.execute("create virtual table documents using fts5(text, tokenize = 'porter unicode61')")
    db.executemany("insert into documents(rowid, text) values (?, ?)", enumerate(texts))

    def search(query: str) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)))
        if not match:
            return []
        rows = db.execute("select rowid from documents where documents match ? order by rank, rowid", (match,))
        return [n for (n,) in rows]

    return search


def _make_fts5(argument: str) -> Baseline:
    fingerprint = f"SQLite {apsw.sqlite_lib_version()}"
    return Baseline("fts5", fingerprint, partial(DocumentRanking, build_index=build_fts5_index))


FTS5 = SystemType(make=_make_fts5, description="memories: SQLite's full-text search")

# --- bm25s with its English stop words and Snowball stems -----------------------------------------------------------


def build_bm25_index(texts: Sequence[str]) -> Search:
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokenize(texts: Sequence[str]) -> list[list[str]]:
        words: list[list[str]] = bm25s.tokenize(list(texts), stemmer=stemmer, return_ids=False, show_progress=False)
        return words

    words_of_texts = tokenize(texts)
    vocabulary = {word for words in words_of_texts for word in words}
    if not vocabulary:  # bm25s fails on an empty index
        return lambda query: []
    retriever = bm25s.BM25()
    retriever.index(words_of_texts, show_progress=False)

    def search(query: str) -> list[int]:
        words = [word for word in tokenize([query])[0] if word in vocabulary]
        if not words:
            return []
        scores = retriever.get_scores(words).tolist()
        return sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], n))

    return search


def _make_bm25(argument: str) -> Baseline:
    fingerprint = f"bm25s {version('bm25s')} PyStemmer {version('PyStemmer')}"
    return Baseline("bm25", fingerprint, partial(DocumentRanking, build_index=build_bm25_index))


BM25 = SystemType(
    make=_make_bm25,
    description="memories: BM25 with stems, by bm25s",
    missing=lambda: "" if find_spec("bm25s") else "pip install bm25s",
)

# --- embeddings alone: cosine similarity of query and document ------------------------------------------------------


def build_dense_index(texts: Sequence[str], embedder: Embedder) -> Search:
    import numpy

    if not texts:
        return lambda query: []
    vectors = numpy.asarray(embedder.embed(texts), dtype=numpy.float32)

    def search(query: str) -> list[int]:
        similarity = vectors @ numpy.asarray(embedder.query(query), dtype=numpy.float32)
        order: list[int] = numpy.argsort(-similarity, kind="stable").tolist()
        return order

    return search


def _make_dense(argument: str) -> Baseline:
    embedder = open_embedder(argument)
    build_index = partial(build_dense_index, embedder=embedder)
    build = partial(DocumentRanking, build_index=build_index, join_sessions=False)
    return Baseline(f"dense:{argument}", embedder.fingerprint, build)


DENSE = SystemType(
    make=_make_dense,
    description="memories: embeddings alone, as dense:PROVIDER:MODEL",
    argument="PROVIDER:MODEL",
    needs_argument=True,
    missing=lambda: "" if find_spec("numpy") else "pip install 'foveate[vectors]'",
)

# --- the newest documents that fit, in their order, without any search ----------------------------------------------


class Transcript:
    """Documents are in order of time, so the last one is the newest."""

    def __init__(self, dataset: Dataset) -> None:
        self.lines = [document_line(document) for document in active_documents(dataset)]

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        return RenderedPrompt("".join(reversed(select_fitting(reversed(self.lines), budget))))

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        return {}

    def close(self) -> None: ...


RECENCY = SystemType(
    make=lambda argument: Baseline("recency", "recency", Transcript),
    description="memories: the newest ones that fit",
)
