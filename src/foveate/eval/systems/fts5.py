"""SQLite's own full-text search: porter stems, any of the question's words, BM25."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import apsw

from foveate.eval.model import Case, Entry, Rendered, Scene, Suite
from foveate.eval.systems.packing import packed

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Fts5:
    name: str = "fts5"
    fingerprint: str = "fts5 1"

    def open(self, scene: Scene, suite: Suite) -> Table:
        return Table(scene.entries)


class Table:
    """The entries as rows; their sessions, for a ranking of sessions, as rows of a second table."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = [entry for entry in entries if not entry.retired]
        texts: dict[str, list[str]] = {}
        for entry in self.entries:
            texts.setdefault(entry.session or "", []).append(entry.text)
        self.sessions = list(texts)
        self.db = apsw.Connection(":memory:")
        self._fill("entries", [entry.text for entry in self.entries])
        self._fill("sessions", ["\n".join(said) for said in texts.values()])
        self._found = lru_cache(maxsize=None)(self._search)

    def render(self, case: Case, budget: int) -> Rendered:
        return packed((f"- {self.entries[n].text}" for n in self._found("entries", case.query)), budget)

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        return {
            "turn": [self.entries[n].id for n in self._found("entries", case.query)],
            "session": [self.sessions[n] for n in self._found("sessions", case.query)],
        }

    def close(self) -> None:
        self.db.close()

    def _fill(self, table: str, texts: Sequence[str]) -> None:
        self.db.execute(f"create virtual table {table} using fts5(text, tokenize = 'porter unicode61')")
        self.db.executemany(f"insert into {table}(rowid, text) values (?, ?)", enumerate(texts))

    def _search(self, table: str, query: str) -> list[int]:
        match = " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)))
        if not match:
            return []
        rows = self.db.execute(f"select rowid from {table} where {table} match ? order by rank, rowid", (match,))
        return [n for (n,) in rows]


SYSTEM = Fts5()
