"""The store's contract: what a database must do to hold state. No SQL here.

Every read and write happens inside a handle that was opened for a scope; there is no call that forgets it. A `Reader` is
one snapshot; a `Writer` is one transaction that either happens or does not. The tests
in `tests/conformance` check that a store keeps this contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from foveate.store.retention import ExpiredCounts, Retention
from foveate.types import NO_FILTERS, Change, ExpansionTerm, Filters, Link, Record, Scope


@dataclass(frozen=True, slots=True)
class SearchGroup:
    """One group of a search: the best `limit` among these kinds (none: any kind of the shelf)."""

    kinds: tuple[str, ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that a search found; both relevances are calibrated to 0..1."""

    record: Record
    lexical: float
    vector: float | None = None


@dataclass(frozen=True, slots=True)
class SessionNeighbor:
    """A record that was kept in the same session shortly before (below 0) or after another: -1 is the one right before."""

    anchor_id: str
    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class Query:
    """What to search for: analysed terms with weights, weights of the fields, and a vector where there is one.

    `expansions` find too, each for a term that it stands for and at its share of `expansion_weight`. Nothing lacks them:
    relevance is a part of what was asked for.
    """

    terms: Mapping[str, float]
    fields: Mapping[str, float]
    vector: Sequence[float] | None = None
    filters: Filters = NO_FILTERS
    expansions: Mapping[str, ExpansionTerm] = field(default_factory=dict)
    expansion_weight: float = 0.4


@dataclass(frozen=True, slots=True)
class EmbeddingNamespace:
    """Vectors of one embedder in a project. `used`: it is the one that the store was opened for."""

    fingerprint: str
    vector_count: int
    size_bytes: int
    is_current: bool


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """How much a project holds: records by kind and status, and rows of the other tables."""

    records: Mapping[str, Mapping[str, int]]
    links: int
    history: int
    receipts: int
    receipt_bytes: int
    vectors: int


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a write. `affected` are other records that it changed or contradicts."""

    record: Record
    action: Literal["added", "unchanged", "confirmed", "superseded older", "older", "disputed"]
    affected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a `forget` removed, table by table, and what it could not finish."""

    counts: Mapping[str, int]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt as the store keeps it: compressed, with the ids by which it can be found.

    `line` is what lists and metrics show of it, as JSON. No list shows a receipt without one.
    """

    id: str
    created: int
    body: bytes
    kept: tuple[str, ...] = ()
    session: str | None = None
    line: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """What `doctor` finds. Everything in `problems` says what to do."""

    ok: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    is_damaged: bool = False
    """The file itself is broken, not only what can be made anew."""


Embed = Callable[[Sequence[str]], "Sequence[Sequence[float]] | None"]
"""Vectors for texts, or None where the embedder does not answer."""

Scrub = Callable[[bytes, frozenset[str], frozenset[str]], tuple[bytes, str] | None]
"""A receipt's body without some records (ids) and words that only they hold, and the line of what is left; None where it
holds none of them. The store cannot read receipts itself."""


class Reader(Protocol):
    """One consistent view of one scope: of a project, or of a project and a personal store together."""

    scope: Scope

    @property
    def revision(self) -> str: ...
    @property
    def secret(self) -> str:
        """A random value from which tags are made that outsiders must not guess. It is drawn when the store is created and
        never shown. A shared store has one for each project."""
        ...

    def get(self, ids: Sequence[str]) -> dict[str, Record]: ...
    def by_key(self, key: str) -> Record | None: ...
    def count(self, kind: str) -> int: ...
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
    """One consistent view of one scope in one store, with receipts, statistics and listings of everything."""

    def records(self) -> Iterator[Record]: ...
    def page(
        self, limit: int, filters: Filters, *, status: str | None = None, after: int = 0
    ) -> tuple[list[Record], int]: ...
    def all_links(self) -> Iterator[Link]: ...
    def all_history(self) -> Iterator[Change]: ...
    def receipt(self, id: str) -> bytes | None: ...
    def receipts(self, limit: int, record: str | None = None) -> list[StoredReceipt]: ...
    def receipts_page(self, limit: int, after: tuple[int, str] | None = None) -> list[StoredReceipt]: ...
    def receipt_summaries(
        self, limit: int, after: tuple[int, str] | None = None, session: str | None = None
    ) -> list[str]: ...
    def receipt_summaries_since(self, since: int, limit: int) -> tuple[list[str], bool]: ...
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

    def add(self, record: Record, vector: Sequence[float] | None = None) -> Added: ...
    def restore(self, record: Record, vector: Sequence[float] | None = None) -> bool: ...
    def change(
        self, record: Record, verb: str, *, expect: int | None = None, vector: Sequence[float] | None = None
    ) -> Record: ...
    def count_uses(self, ids: Sequence[str], *, won: bool = False) -> None: ...
    def put_vector(self, id: str, vector: Sequence[float]) -> None: ...
    def add_missing_vectors(self, found: Sequence[tuple[Record, Sequence[float]]]) -> int: ...
    def drop_vectors(self, fingerprint: str, limit: int) -> int: ...
    def undo_group(self) -> AbstractContextManager[None]: ...
    def link(self, link: Link, *, anybody: bool = False) -> None: ...
    def unlink(self, link: Link) -> bool: ...
    def restore_history(self, step: Change) -> None: ...
    def undo(self, id: str, now: int) -> list[Record]: ...
    def forget(self, ids: Sequence[str], scrub: Scrub | None = None, elsewhere: Sequence[str] = ()) -> dict[str, int]: ...
    def drop_receipts(self, retention: Retention, now: int, *, overdue: bool = False) -> int: ...
    def drop_events(
        self, retention: Retention, now: int, after: tuple[int, int] = (0, 0)
    ) -> tuple[int, tuple[int, int] | None]: ...


class Store(Protocol):
    """A database that holds state."""

    retention: Retention
    """What writers drop by themselves, a little now and then."""

    def projects(self) -> list[str]: ...
    def read(self, scope: Scope) -> AbstractContextManager[ProjectReader]: ...
    def write(self, scope: Scope) -> AbstractContextManager[Writer]: ...
    def forget(
        self, scope: Scope, ids: Sequence[str], scrub: Scrub | None = None, elsewhere: Sequence[str] = ()
    ) -> Forgotten: ...
    def save_receipts(self, scope: Scope, receipts: Iterable[StoredReceipt]) -> None: ...
    def reclaim_space(self) -> int:
        """Give unused room back to the system, without holding up others for long; how many bytes."""
        ...

    def backup(self, target: Path) -> None: ...
    def health(self) -> Health: ...
    def close(self) -> None: ...
