"""The protocol that a database must implement to be a store, and the values that it takes and returns. No SQL here.

Every read and write goes through a `Reader` or `Writer` that was opened for a scope, so that no call can forget the scope. A
`Reader` is one snapshot, a `Writer` is one transaction. `tests/conformance` checks that a store implements the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from foveate.store.retention import ExpiredCounts, Retention
from foveate.types import NO_FILTERS, Change, ExpansionTerm, Filters, Link, Record, Scope

NOT_EMPTY_MESSAGE = "holds records or receipts. Pass --yes to replace them (in Python: replace=True)."
"""The rest of the error, after the name of the store, when a copy or a backup would replace what a store holds."""


@dataclass(frozen=True, slots=True)
class SearchGroup:
    """One group of a search: the best `limit` records of these kinds, or of every kind if none is named."""

    kinds: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a search found, with its relevance by words and by vector, both calibrated to 0..1."""

    record: Record
    lexical: float
    vector: float | None = None
    coverage: float | None = None
    """Share of the query's weight whose words the record has at all; measured for the first hits of a group."""

    @property
    def relevance(self) -> float:
        """The higher one of both relevances, by which hits are sorted."""
        return max(self.lexical, self.vector or 0.0)


@dataclass(frozen=True, slots=True)
class SessionNeighbor:
    """A record stored in the same session close to another one, the anchor.

    `offset` counts from the anchor: -1 is the record before it, 1 the one after it.
    """

    anchor_id: str
    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class Query:
    """A search: analyzed terms and fields with their weights, and the query's vector if there is an embedder.

    Expansion terms add to a score at reduced weight, `expansion_weight`. A record without them loses nothing, because
    relevance is measured against the query's own terms. Associations are for events alone: in knowledge they find too much.
    """

    terms: Mapping[str, float]
    field_weights: Mapping[str, float]
    vector: Sequence[float] | None = None
    filters: Filters = NO_FILTERS
    expansions: Mapping[str, ExpansionTerm] = field(default_factory=dict)
    expansion_weight: float = 0.4


@dataclass(frozen=True, slots=True)
class EmbeddingNamespace:
    """The vectors of one embedder in a project. `is_current`: the store was opened for this embedder."""

    fingerprint: str
    vector_count: int
    size_bytes: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """Numbers of records by kind and status, and of rows in the other tables, for one project."""

    records: Mapping[str, Mapping[str, int]]
    links: int
    history: int
    receipts: int
    receipt_bytes: int
    vectors: int


@dataclass(frozen=True, slots=True)
class AddResult:
    """The result of adding a record. `affected` are the ids of other records that it changed or contradicts."""

    record: Record
    action: Literal["added", "unchanged", "confirmed", "superseded older", "older", "disputed"]
    affected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.record.id


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The result of `forget`: the rows removed from each table, and warnings about work that is not finished."""

    counts: Mapping[str, int]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt as it is stored: a compressed body, and what queries need to find it.

    `summary` is JSON with the values that lists and metrics show, so that they need not unpack bodies. A receipt without a
    summary is in no list.
    """

    id: str
    created: int
    body: bytes
    session: str | None = None
    summary: str | None = None
    shown_ids: tuple[str, ...] = ()
    """Ids of the records that the context showed. They are written, and not read again."""


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a store, as `doctor` reports it. Each problem says what to do."""

    ok: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    is_damaged: bool = False
    """The file itself is broken, not only an index that can be rebuilt."""


Scrub = Callable[[bytes, frozenset[str], frozenset[str]], tuple[bytes, str] | None]
"""Removes records from a receipt. Takes its body, the ids, and the words that occur in no other record. Returns the new body
and summary, or None if the receipt mentions none of them. It is passed in because a store cannot read receipts."""


class Reader(Protocol):
    """One snapshot of one scope: of a project, or of a project and a personal store together."""

    scope: Scope

    @property
    def revision(self) -> str: ...
    @property
    def secret(self) -> str:
        """A random value from which quote tags are derived, so that a quoted text cannot close its own quote.

        It is drawn when the store is created and never shown. A shared store has one for each project.
        """
        ...

    def get(self, ids: Sequence[str]) -> dict[str, Record]: ...
    def by_key(self, key: str) -> Record | None: ...
    def count(self, kind: str) -> int: ...
    def count_created(self, until: int) -> int: ...
    def terms_with_prefix(self, prefixes: Sequence[str]) -> list[str]: ...
    def idf(self, terms: Sequence[str]) -> dict[str, float]: ...
    def search(self, query: Query, groups: Sequence[SearchGroup]) -> list[list[Hit]]: ...
    def always_on(self, kinds: Sequence[str], *, pinned: bool = False) -> list[Record]: ...
    def recent(
        self, kinds: Sequence[str], limit: int, filters: Filters, *, archived: bool = False, session: str | None = None
    ) -> list[Record]: ...
    def sessions(self, limit: int, filters: Filters) -> dict[str, int]: ...
    def most_salient(self, kinds: Sequence[str], limit: int, filters: Filters) -> list[Record]: ...
    def entities_by_name(self, names: Sequence[str]) -> dict[str, Record]: ...
    def session_neighbors(
        self, ids: Sequence[str], kinds: Sequence[str], max_distance: int, filters: Filters
    ) -> list[SessionNeighbor]: ...
    def links(self, ids: Sequence[str], names: Sequence[str] = (), *, incoming: bool = False) -> list[Link]: ...
    def relations(self, ids: Sequence[str], limit: int) -> list[Link]: ...
    def history(self, id: str) -> list[Change]: ...
    def version(self, id: str, version: int) -> Record | None: ...
    def count_missing_vectors(self) -> int: ...


class ProjectReader(Reader, Protocol):
    """One snapshot of one scope in one store, with receipts, statistics and listings of all rows."""

    def records(self) -> Iterator[Record]: ...
    def page(
        self, limit: int, filters: Filters, *, status: str | None = None, after: int = 0
    ) -> tuple[list[Record], int]: ...
    def all_links(self) -> Iterator[Link]: ...
    def all_history(self) -> Iterator[Change]: ...
    def receipt(self, id: str) -> bytes | None: ...
    def receipts(self, limit: int, record: str | None = None) -> list[StoredReceipt]: ...
    def receipt_summaries(
        self, limit: int, after: tuple[int, str] | None = None, session: str | None = None, *, since: int = 0
    ) -> list[str]: ...
    def receipt_agents(self) -> list[str]: ...
    def receipt_sessions(self, limit: int) -> list[tuple[str, int, int]]: ...
    def items_shown_by(self, receipts: Sequence[str]) -> dict[str, list[str]]: ...
    def counts(self) -> StoreCounts: ...
    def growth(self, since: int) -> dict[str, int]: ...
    def growth_by_day(self, since: int) -> dict[str, int]: ...
    def records_without_vector(self, after: int, limit: int) -> tuple[list[Record], int]: ...
    def max_doc(self) -> int: ...
    def embedding_namespaces(self) -> list[EmbeddingNamespace]: ...
    def count_expired(self, retention: Retention, now: int) -> ExpiredCounts: ...


class Writer(ProjectReader, Protocol):
    """One transaction on one scope."""

    def add(self, record: Record, vector: Sequence[float] | None = None) -> AddResult: ...
    def restore(self, record: Record, vector: Sequence[float] | None = None) -> bool: ...
    def change(
        self, record: Record, verb: str, *, expect_version: int | None = None, vector: Sequence[float] | None = None
    ) -> Record: ...
    def count_uses(self, ids: Sequence[str], *, success: bool = False) -> None: ...
    def put_vector(self, id: str, vector: Sequence[float]) -> None: ...
    def add_missing_vectors(self, record_vectors: Sequence[tuple[Record, Sequence[float]]]) -> int: ...
    def drop_vectors(self, fingerprint: str, limit: int) -> int: ...
    def undo_group(self) -> AbstractContextManager[None]: ...
    def link(self, link: Link, *, any_owner: bool = False) -> None: ...
    def unlink(self, link: Link) -> bool: ...
    def restore_history(self, change: Change) -> None: ...
    def undo(self, id: str, now: int) -> list[Record]: ...
    def forget(
        self, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()
    ) -> dict[str, int]: ...
    def drop_receipts(self, retention: Retention, now: int, *, only_if_overdue: bool = False) -> int: ...
    def drop_events(
        self, retention: Retention, now: int, after: tuple[int, int] = (0, 0)
    ) -> tuple[int, tuple[int, int] | None]: ...


class Store(Protocol):
    """A database that holds state."""

    counter: str
    """Name of the token counter that records are counted with."""
    retention: Retention
    """When receipts and events expire. Writers delete expired ones in small batches as they go."""

    def projects(self) -> list[str]: ...
    def read(self, scope: Scope) -> AbstractContextManager[ProjectReader]: ...
    def write(self, scope: Scope) -> AbstractContextManager[Writer]: ...
    def forget(
        self, scope: Scope, ids: Sequence[str], scrub: Scrub | None = None, other_store_ids: Sequence[str] = ()
    ) -> ForgetResult: ...
    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None: ...
    def reclaim_space(self) -> int:
        """Return unused space to the operating system in short steps, and return how many bytes it was."""
        ...

    def backup(self, target: Path) -> None: ...
    def health(self) -> Health: ...
    def close(self) -> None: ...
