"""Read a project's store and the user's personal store as one, so that preferences follow a person across projects."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from itertools import chain

from foveate.store.protocol import Hit, Query, Reader, SearchGroup, SessionNeighbor
from foveate.types import Change, Filters, Link, Record, Scope


class ChainedReader:
    """Several readers as one `Reader`. If two have the same id or name, the first one is used.

    Hits of several stores can be sorted together, because relevance is calibrated in each store to the same scale.
    """

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
        return dict(ChainMap(*(reader.get(ids) for reader in self._readers)))

    def by_key(self, key: str) -> Record | None:
        return next((record for reader in self._readers if (record := reader.by_key(key))), None)

    def count(self, kind: str) -> int:
        return sum(reader.count(kind) for reader in self._readers)

    def count_created(self, until: int) -> int:
        return sum(reader.count_created(until) for reader in self._readers)

    def terms_with_prefix(self, prefixes: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(term for reader in self._readers for term in reader.terms_with_prefix(prefixes)))

    def idf(self, terms: Sequence[str]) -> dict[str, float]:
        return dict(ChainMap(*(reader.idf(terms) for reader in self._readers)))

    def search(self, query: Query, groups: Sequence[SearchGroup]) -> list[list[Hit]]:
        answers = [reader.search(query, groups) for reader in self._readers]
        return [sorted(chain(*hits), key=lambda hit: -hit.relevance) for hits in zip(*answers, strict=True)]

    def always_on(self, kinds: Sequence[str], *, pinned: bool = False) -> list[Record]:
        return [record for reader in self._readers for record in reader.always_on(kinds, pinned=pinned)]

    def recent(
        self, kinds: Sequence[str], limit: int, filters: Filters, *, archived: bool = False, session: str | None = None
    ) -> list[Record]:
        records = chain.from_iterable(
            reader.recent(kinds, limit, filters, archived=archived, session=session) for reader in self._readers
        )
        return sorted(records, key=lambda record: (record.created, record.id), reverse=True)[:limit]

    def sessions(self, limit: int, filters: Filters) -> dict[str, int]:
        latest: dict[str, int] = {}
        for name, time in (pair for reader in self._readers for pair in reader.sessions(limit, filters).items()):
            latest[name] = max(time, latest.get(name, time))
        return dict(sorted(latest.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])

    def most_salient(self, kinds: Sequence[str], limit: int, filters: Filters) -> list[Record]:
        records = [record for reader in self._readers for record in reader.most_salient(kinds, limit, filters)]
        return sorted(records, key=lambda record: (-record.salience, -record.created))[:limit]

    def entities_by_name(self, names: Sequence[str]) -> dict[str, Record]:
        return dict(ChainMap(*(reader.entities_by_name(names) for reader in self._readers)))

    def session_neighbors(
        self, ids: Sequence[str], kinds: Sequence[str], max_distance: int, filters: Filters
    ) -> list[SessionNeighbor]:
        return [pair for reader in self._readers for pair in reader.session_neighbors(ids, kinds, max_distance, filters)]

    def links(self, ids: Sequence[str], names: Sequence[str] = (), *, incoming: bool = False) -> list[Link]:
        return [link for reader in self._readers for link in reader.links(ids, names, incoming=incoming)]

    def relations(self, ids: Sequence[str], limit: int) -> list[Link]:
        links = [link for reader in self._readers for link in reader.relations(ids, limit)]
        return sorted(links, key=lambda link: (-link.weight, link.src, link.name, link.dst))[:limit]

    def history(self, id: str) -> list[Change]:
        return self._reader_of(id).history(id)

    def version(self, id: str, version: int) -> Record | None:
        return self._reader_of(id).version(id, version)

    def count_missing_vectors(self) -> int:
        return sum(reader.count_missing_vectors() for reader in self._readers)

    def _reader_of(self, id: str) -> Reader:
        return next((reader for reader in self._readers if id in reader.get([id])), self._readers[0])
