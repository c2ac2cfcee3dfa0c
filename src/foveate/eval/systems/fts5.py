"""SQLite's own full-text search: porter stems, any of the question's words, BM25."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import apsw

from foveate.eval.model import Scene, Suite
from foveate.eval.systems.documents import Documents, Search

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Fts5:
    name: str = "fts5"
    fingerprint: str = f"SQLite {apsw.sqlite_lib_version()}"
    on_code: ClassVar[bool] = False

    def open(self, scene: Scene, suite: Suite) -> Documents:
        return Documents(scene, table)


def table(texts: Sequence[str]) -> Search:
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


SYSTEM = Fts5()
