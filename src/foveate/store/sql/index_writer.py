"""Writes the lexical index of a project: the postings, statistics and names of its records."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from foveate.records.kinds import kind_of
from foveate.store.sql import posting_blocks
from foveate.store.sql.index_reader import IndexReader
from foveate.store.sql.posting_blocks import Posting
from foveate.store.sql.postings import entity_names, record_postings
from foveate.store.sql.queries import Database
from foveate.types import Record

FLUSH_RECORDS = 5000
"""New records whose postings are sorted and written together. A batch of 5000 takes half the time of five batches of a
thousand, and still only a few megabytes of memory."""

ListKey = tuple[str, int, int]
"""The term, kind code and field of a posting list."""


class IndexWriter(IndexReader):
    """The lexical index of one project, inside one transaction that writes.

    Postings of new records are collected and written by `flush`. A search of the same transaction does not see them before.
    """

    def __init__(self, database: Database, project: int) -> None:
        super().__init__(database, project)
        self._new_postings: dict[ListKey, list[Posting]] = defaultdict(list)
        self._new_sizes: dict[int, tuple[int, int]] = {}
        self._new_records = 0

    def kind_code(self, kind: str) -> int:
        """Return the code of a kind, and give it one if it has none."""
        if kind not in self.kind_codes():
            self._db.execute("add_kind", {"name": kind})
            self._kind_codes = None
        return self.kind_codes()[kind]

    def add(self, doc: int, record: Record) -> None:
        code = self.kind_code(record.kind)
        rows, length = record_postings(record, kind_of(record.kind))
        for term, field, frequency in rows:
            self._new_postings[term, code, field].append((doc, posting_blocks.encode(frequency, length)))
        self._grow(code, 1, length)
        self._db.execute_many("add_name", [(self._project, name, doc) for name in sorted(entity_names(record))])
        self._new_records += 1
        if self._new_records >= FLUSH_RECORDS:
            self.flush()

    def remove(self, doc: int, record: Record) -> int:
        """Remove a record, and return in how many posting lists it was."""
        self.flush()
        code = self.kind_code(record.kind)
        rows, length = record_postings(record, kind_of(record.kind))
        blocks = self._blocks_for([(term, code, field, doc) for term, field, _ in rows])
        changed, emptied, removed = [], [], 0
        for key, (first, docs, codes) in blocks.items():
            remaining = posting_blocks.remove_doc(docs, codes, doc)
            if remaining is None:
                continue
            removed += 1
            if remaining:
                changed.append(self._block_row(key, first, remaining))
            else:
                emptied.append((self._project, *key, first))
        self._db.execute_many("put_block", changed)
        self._db.execute_many("delete_block", emptied)
        self.remove_names(doc, record)
        self._grow(code, -1, -length)
        return removed

    def remove_names(self, doc: int, record: Record) -> int:
        """Remove the names of an entity, and return how many it had. Other kinds have none."""
        # SQLite has no index on the records of names, so the query reads every name of the project.
        if record.kind != "entity":
            return 0
        return self._db.execute("delete_names", {"project": self._project, "doc": doc})

    def update(self, doc: int, before: Record, after: Record) -> None:
        """Index the new version of a record. Most changes, such as of a status or a count, leave its words as they are."""
        kind = kind_of(before.kind)
        same_postings = record_postings(before, kind) == record_postings(after, kind)
        if same_postings and entity_names(before) == entity_names(after):
            return
        self.remove(doc, before)
        self.add(doc, after)
        # `flush` takes the first posting of each list to find the block, so an old doc must not wait among new ones.
        self.flush()

    def clear(self) -> None:
        """Remove every posting, statistic and name of the project."""
        for table in ("postings", "volumes", "names"):
            self._db.execute(f"clear_{table}", {"project": self._project})

    def flush(self) -> None:
        """Write what was collected, in the order of the keys, so that neighbors in the B-tree are written together."""
        keys = sorted(self._new_postings)
        blocks = self._blocks_for([(*key, self._new_postings[key][0][0]) for key in keys])
        rows = []
        for key in keys:
            new = self._new_postings[key]
            first, docs, codes = blocks.get(key, (new[0][0], b"", b""))
            merged = posting_blocks.merge_postings(docs, codes, new)
            for n, part in enumerate(posting_blocks.split_blocks(merged, appended=merged[-1] == new[-1])):
                rows.append(self._block_row(key, part[0][0] if n else first, part))
        self._db.execute_many("put_block", rows)
        self._new_postings.clear()
        for kind, (docs_added, terms_added) in self._new_sizes.items():
            size = {"project": self._project, "kind": kind, "docs": docs_added, "tokens": terms_added}
            self._db.execute("grow_index_size", size)
        self._new_sizes.clear()
        self._new_records = 0

    def _grow(self, code: int, docs: int, terms: int) -> None:
        old_docs, old_terms = self._new_sizes.get(code, (0, 0))
        self._new_sizes[code] = (old_docs + docs, old_terms + terms)

    def _blocks_for(self, keys: Sequence[tuple[str, int, int, int]]) -> dict[ListKey, tuple[int, bytes, bytes]]:
        """Return (first doc, docs, codes) of the block that a doc belongs to, for each (term, kind code, field, doc)."""
        if not keys:
            return {}
        rows = self._db.fetch_all("blocks_for_docs", {"project": self._project, "lists": json.dumps(keys)})
        return {(term, kind, field): (first, docs, codes) for term, kind, field, first, docs, codes in rows}

    def _block_row(self, key: ListKey, first: int, postings: Sequence[Posting]) -> tuple[Any, ...]:
        return (self._project, *key, first, len(postings), *posting_blocks.pack(postings))
