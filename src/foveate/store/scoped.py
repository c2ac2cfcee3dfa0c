"""A store as one scope sees it, with the rules, clock, ids and embedder that writes need.

Memory, tasks, receipts and agents are built on a `ScopedStore`. Its reader shows the project's store and the user's personal
store as one; a writer writes to one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from foveate.clock import Clock, Ids
from foveate.errors import InputError
from foveate.records import fence
from foveate.records import make as records
from foveate.records.kinds import kind_of
from foveate.records.make import Rules
from foveate.store.chain import ChainedReader
from foveate.store.protocol import ProjectReader, Reader, Store, Writer
from foveate.store.retry import retry_interrupted
from foveate.types import Level, Record, Scope

if TYPE_CHECKING:
    from foveate.text.embed import Embedder, Vector

PERSONAL_PROJECT = "~"
"""Project name of the records in a personal store. No real project can have this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedStore:
    """A project's store and, if it exists, the user's personal store, for one scope."""

    store: Store
    scope: Scope
    rules: Rules
    clock: Clock
    ids: Ids
    personal: Store | None = None
    embedder: Embedder | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", self.clean_scope(self.scope))

    def clean_scope(self, scope: Scope) -> Scope:
        """Return a scope without secrets in its names, as they are stored."""
        return records.clean_scope(scope, self.rules.allow)

    def clean_name(self, name: str) -> str:
        """Return the name of a session or an agent as it is stored."""
        return records.clean_name(name, self.rules.allow)

    @contextmanager
    def reader(self, scope: Scope | None = None) -> Iterator[Reader]:
        """Open one snapshot of all that the scope may see in both stores."""
        with ExitStack() as stack:
            scope = self.clean_scope(scope or self.scope)
            project = stack.enter_context(self.store.read(scope))
            if self.personal is None:
                yield project
            else:
                personal = self.personal.read(replace(scope, project=PERSONAL_PROJECT))
                yield ChainedReader([project, stack.enter_context(personal)])

    def project_reader(self, scope: Scope | None = None) -> AbstractContextManager[ProjectReader]:
        """Open one snapshot of the project's store alone, with its receipts, statistics and listings."""
        return self.store.read(self.clean_scope(scope or self.scope))

    @contextmanager
    def writer(self, scope: Scope | None = None, *, personal: bool = False) -> Iterator[Writer]:
        """Open one transaction on the project's store, or on the personal store."""
        store = self.personal if personal and self.personal is not None else self.store
        with store.write(self.record_scope(scope, personal=personal)) as writer:
            yield writer

    @contextmanager
    def writer_of(self, record: Record) -> Iterator[Writer]:
        """Open one transaction on the store that holds the record, in this scope."""
        store = self.personal if self.is_personal(record) and self.personal is not None else self.store
        with store.write(replace(self.scope, project=record.scope.project)) as writer:
            yield writer

    def is_personal(self, record: Record) -> bool:
        """Return whether the record is in the personal store."""
        return self.personal is not None and record.scope.project == PERSONAL_PROJECT

    def record_scope(self, scope: Scope | None = None, *, personal: bool = False) -> Scope:
        """Return the scope for a new record. In the personal store only the user of the scope is used."""
        scope = self.clean_scope(scope or self.scope)
        if not personal:
            return scope
        if self.personal is None:
            raise InputError("No personal store is open. Create one with `foveate init --personal`.")
        return Scope(PERSONAL_PROJECT, user=scope.user)

    def make(self, kind: str, text: str, values: Mapping[str, Any], scope: Scope | None = None) -> Record:
        """Return a new record that is not stored yet."""
        now = self.clock()
        return records.make(
            kind,
            text,
            scope=self.clean_scope(scope or self.scope),
            id=self.ids(kind, now),
            now=now,
            rules=self.rules,
            **values,
        )

    @retry_interrupted
    def render(self, record: Record, level: Level = "full", *, session: str | None = None) -> str:
        """Return one record as a model reads it outside a context. Untrusted text is quoted."""
        with self.store.read(self.scope) as reader:
            tag = fence.tag_of(reader.secret, session or self.scope.session)
        return fence.render_fenced([(record, kind_of(record.kind).render(record, level))], tag)

    def vectors(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """Return a vector for each text, or None for each if there is no embedder or it does not answer."""
        if self.embedder is None or not texts:
            return [None] * len(texts)
        # Imported here: the module loads an HTTP client, which a store without an embedder never needs.
        from foveate.text.embed import embed_or_none

        vectors, _ = embed_or_none(self.embedder, texts)
        return [None] * len(texts) if vectors is None else vectors

    def with_scope(self, scope: Scope) -> ScopedStore:
        """Return the same store for another scope."""
        return replace(self, scope=scope)
