"""Several stores read as one: the project's, then the user's own, so that preferences follow a person.

A chain is a `Reader`; sources cannot tell. Relevance is calibrated in every store by itself, so hits can be merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from foveate.store.protocol import EmbeddingNamespace, Hit, Query, Reader, SearchGroup, SessionNeighbor, StoredReceipt
from foveate.store.retention import Gone, Retention
from foveate.types import Change, Filters, Link, Record, Scope


class Chain:
    """Readers in order of precedence; the first one's scope is the request's."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = readers
        self.scope: Scope = readers[0].scope

    @property
    def revision(self) -> str:
        return "+".join(reader.revision for reader in self._readers)

    @property
    def secret(self) -> str:
        return self._readers[0].secret

    def get(self, ids: Sequence[str]) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for reader in reversed(self._readers):
            found.update(reader.get(ids))
        return found

    def by_key(self, key: str) -> Record | None:
        return next((record for reader in self._readers if (record := reader.by_key(key))), None)

    def count(self, kind: str) -> int:
        return sum(reader.count(kind) for reader in self._readers)

    def terms_with_prefix(self, words: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(term for reader in self._readers for term in reader.terms_with_prefix(words)))

    def idf(self, terms: Sequence[str]) -> dict[str, float]:
        found: dict[str, float] = {}
        for reader in reversed(self._readers):
            found |= reader.idf(terms)
        return found

    def growth(self, since: int) -> dict[str, int]:
        return self._readers[0].growth(since)

    def growth_by_day(self, since: int) -> dict[str, int]:
        return self._readers[0].growth_by_day(since)

    def search(self, query: Query, wants: Sequence[SearchGroup]) -> list[list[Hit]]:
        answers = [reader.search(query, wants) for reader in self._readers]
        return [
            sorted(chain(*hits), key=lambda hit: -max(hit.lexical, hit.vector or 0.0)) for hits in zip(*answers, strict=True)
        ]

    def always_on(self, kinds: Sequence[str], *, pinned: bool = False) -> list[Record]:
        return [record for reader in self._readers for record in reader.always_on(kinds, pinned=pinned)]

    def recent(
        self, kinds: Sequence[str], limit: int, filters: Filters, *, archived: bool = False, session: str | None = None
    ) -> list[Record]:
        found = chain.from_iterable(
            reader.recent(kinds, limit, filters, archived=archived, session=session) for reader in self._readers
        )
        return sorted(found, key=lambda record: (-record.created, record.id))[:limit]

    def sessions(self, limit: int, filters: Filters) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, at in (pair for reader in self._readers for pair in reader.sessions(limit, filters).items()):
            found[name] = max(at, found.get(name, at))
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])

    def most_salient(self, kinds: Sequence[str], limit: int, filters: Filters) -> list[Record]:
        found = [record for reader in self._readers for record in reader.most_salient(kinds, limit, filters)]
        return sorted(found, key=lambda record: (-record.salience, -record.created))[:limit]

    def entities_by_name(self, names: Sequence[str]) -> dict[str, Record]:
        found: dict[str, Record] = {}
        for reader in reversed(self._readers):
            found.update(reader.entities_by_name(names))
        return found

    def session_neighbors(
        self, ids: Sequence[str], kinds: Sequence[str], max_distance: int, filters: Filters
    ) -> list[SessionNeighbor]:
        return [pair for reader in self._readers for pair in reader.session_neighbors(ids, kinds, max_distance, filters)]

    def links(self, ids: Sequence[str], names: Sequence[str] = (), *, back: bool = False) -> list[Link]:
        return [link for reader in self._readers for link in reader.links(ids, names, back=back)]

    def relations(self, ids: Sequence[str], limit: int) -> list[Link]:
        found = [link for reader in self._readers for link in reader.relations(ids, limit)]
        return sorted(found, key=lambda link: (-link.weight, link.src, link.name, link.dst))[:limit]

    def records(self) -> Iterator[Record]:
        return chain.from_iterable(reader.records() for reader in self._readers)

    def page(self, limit: int, filters: Filters, *, status: str | None = None, after: int = 0) -> tuple[list[Record], int]:
        return self._readers[0].page(limit, filters, status=status, after=after)

    def all_links(self) -> Iterator[Link]:
        return chain.from_iterable(reader.all_links() for reader in self._readers)

    def all_history(self) -> Iterator[Change]:
        return chain.from_iterable(reader.all_history() for reader in self._readers)

    def history(self, id: str) -> list[Change]:
        return self._holder(id).history(id)

    def version(self, id: str, version: int) -> Record | None:
        return self._holder(id).version(id, version)

    def receipt(self, id: str) -> bytes | None:
        return self._readers[0].receipt(id)

    def receipts(self, limit: int, record: str | None = None) -> list[StoredReceipt]:
        return self._readers[0].receipts(limit, record)

    def receipts_page(self, limit: int, after: tuple[int, str] | None = None) -> list[StoredReceipt]:
        return self._readers[0].receipts_page(limit, after)

    def receipt_summaries(self, limit: int, after: tuple[int, str] | None = None, session: str | None = None) -> list[str]:
        return self._readers[0].receipt_summaries(limit, after, session)

    def receipt_summaries_since(self, since: int, limit: int) -> tuple[list[str], bool]:
        return self._readers[0].receipt_summaries_since(since, limit)

    def receipt_agents(self) -> list[str]:
        return self._readers[0].receipt_agents()

    def receipt_sessions(self, limit: int) -> list[tuple[str, int, int]]:
        return self._readers[0].receipt_sessions(limit)

    def items_shown_by(self, receipts: Sequence[str]) -> dict[str, list[str]]:
        return self._readers[0].items_shown_by(receipts)

    def counts(self) -> dict[str, Any]:
        return self._readers[0].counts()

    def count_missing_vectors(self) -> int:
        return sum(reader.count_missing_vectors() for reader in self._readers)

    def records_without_vector(self, after: int, limit: int) -> tuple[list[Record], int]:
        return self._readers[0].records_without_vector(after, limit)

    def max_doc(self) -> int:
        return self._readers[0].max_doc()

    def embedding_namespaces(self) -> list[EmbeddingNamespace]:
        return self._readers[0].embedding_namespaces()

    def count_expired(self, retention: Retention, now: int) -> Gone:
        return self._readers[0].count_expired(retention, now)

    def _holder(self, id: str) -> Reader:
        return next((reader for reader in self._readers if id in reader.get([id])), self._readers[0])
