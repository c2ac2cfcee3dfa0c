"""Reads the lexical index of a project: its kinds, its statistics and its posting lists."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from foveate.records.kinds import KINDS
from foveate.store.sql import posting_blocks, query_plan
from foveate.store.sql.postings import PARTITIONS
from foveate.store.sql.queries import Database


class IndexReader:
    """The lexical index of one project, inside one transaction.

    Kinds are stored as numbers, their codes, because a posting list repeats its kind in every block.
    """

    def __init__(self, database: Database, project: int) -> None:
        self._db = database
        self._project = project
        self._kind_codes: dict[str, int] | None = None

    def kind_codes(self) -> dict[str, int]:
        """Return the code of each kind that the store has ever stored."""
        if self._kind_codes is None:
            self._kind_codes = dict(self._db.fetch_all("kinds"))
        return self._kind_codes

    def partition_codes(self, partition: str) -> dict[str, int]:
        """Return the codes of the kinds in a partition. Kinds that only another program registered are left out."""
        codes = self.kind_codes().items()
        return {kind: code for kind, code in codes if kind in KINDS and KINDS[kind].partition == partition}

    def sizes(self) -> dict[int, tuple[int, int]]:
        """Return the number of indexed records and of terms in their texts, by kind code. Empty kinds are left out."""
        rows = self._db.fetch_all("index_sizes", {"project": self._project})
        return {kind: (docs, terms) for kind, docs, terms in rows if docs}

    def document_frequencies(self, terms: Sequence[str]) -> dict[tuple[str, int, int], int]:
        """Return the number of records that have a term, by (term, kind code, field)."""
        if not terms:
            return {}
        rows = self._db.fetch_all("document_frequencies", {"project": self._project, "terms": json.dumps(list(terms))})
        return {(term, kind, field): int(size) for term, kind, field, size in rows}

    def idf(self, terms: Sequence[str]) -> dict[str, float]:
        """Return the inverse document frequency of each term that a record has.

        Events count only if no record of knowledge has the term: they are numerous and repeat themselves.
        """
        idfs: dict[str, float] = {}
        sizes, frequencies = self.sizes(), self.document_frequencies(terms)
        for partition in PARTITIONS:  # knowledge comes first
            codes = set(self.partition_codes(partition).values())
            by_term = frequencies_by_field(frequencies, codes)
            counts = {term: max(by_field.values()) for term, by_field in by_term.items() if term not in idfs}
            idfs |= query_plan.idf(counts, sum(sizes[code][0] for code in codes & sizes.keys()))
        return idfs

    def terms_with_prefix(self, prefixes: Sequence[str]) -> list[str]:
        """Return up to five terms of the knowledge partition for each prefix."""
        params = {"project": self._project, "kinds": json.dumps(sorted(self.partition_codes("knowledge").values()))}
        terms: dict[str, None] = {}
        for prefix in prefixes:
            # Terms are compared by their bytes, so this is the end of the range that begins with the prefix.
            end = prefix + chr(0x10FFFF)
            rows = self._db.fetch_all("terms_with_prefix", {**params, "prefix": prefix, "end": end})
            terms |= dict.fromkeys(term for (term,) in rows)
        return list(terms)

    def blocks(self, lists: Sequence[tuple[str, int]], kinds: Sequence[int]) -> list[tuple[int, str, int, bytes, bytes]]:
        """Return (kind code, term, field, docs, codes) for each block of these lists, given as (term, field)."""
        params = {"project": self._project, "lists": json.dumps(list(lists)), "kinds": json.dumps(list(kinds))}
        return self._db.fetch_all("blocks", params)

    def all_postings(self) -> Iterator[tuple[str, int, int, Sequence[int], Sequence[int]]]:
        """Yield (term, kind code, field, docs, codes) for each block of the project, unpacked."""
        last: tuple[Any, ...] = ("", -1, -1, -1)
        while page := self._db.fetch_all(
            "every_block", dict(zip(("term", "kind", "field", "first"), last, strict=True)) | {"project": self._project}
        ):
            for term, kind, field, _, docs, codes in page:
                yield term, kind, field, *posting_blocks.concat([docs], [codes])
            last = page[-1][:4]


def frequencies_by_field(
    frequencies: Mapping[tuple[str, int, int], int], kinds: Container[int] | None = None
) -> dict[str, dict[int, int]]:
    """Sum document frequencies over these kinds, or over all kinds. Return them by term, then by field."""
    sums: dict[str, dict[int, int]] = {}
    for (term, kind, field), count in frequencies.items():
        if kinds is None or kind in kinds:
            by_field = sums.setdefault(term, {})
            by_field[field] = by_field.get(field, 0) + count
    return sums
