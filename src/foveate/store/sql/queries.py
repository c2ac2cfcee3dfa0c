"""Named queries and migrations from `.sql` files, what runs them, and the schema of a store against this version's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Protocol

from foveate.errors import SchemaTooNew, StoreError
from foveate.records.kinds import RENDERER_VERSION
from foveate.text import analysis

SQL_DIR = files("foveate.store")
"""Holds `sql/queries.sql`, and a folder for each dialect with its own `queries.sql` and numbered `migrations/`."""

META_SECRET = "secret"
"""Name in `meta` of a random value, drawn when the store is created. Quote tags are derived from it, so it never changes."""

META_RESIDUE = "residue"
"""Name in `meta` of a flag: records were forgotten, and their bytes may still be in the file."""

META_STAMPS = ("analyser", "renderer", "counter", META_SECRET)
"""Names in `meta` of what the rows depend on: how they were indexed and counted, and the secret. A copy takes them along."""

_QUERY_HEADER = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_QUERY_REFERENCE = re.compile(r"\{(\w+)(?: ([^{}]+))?\}")
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


class Database(Protocol):
    """A database driver, inside one open transaction. It knows each query of its dialect by name."""

    def fetch_all(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> list[tuple[Any, ...]]: ...
    def execute(self, query: str, params: Mapping[str, Any] | Sequence[Any] = ...) -> int:
        """Run a query that returns no rows, and return how many rows it changed."""
        ...

    def execute_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None: ...


@lru_cache(maxsize=4)
def load(dialect: str) -> dict[str, str]:
    """Return every query of a dialect by name, the shared ones included, with all references filled in."""
    raw: dict[str, str] = {}
    for folder in ("sql", dialect):
        parts = _QUERY_HEADER.split((SQL_DIR / folder / "queries.sql").read_text("utf-8"))[1:]
        # Comments are removed, because a `?` or a `:name` in one would be taken for a parameter.
        raw |= {name: _COMMENT.sub("", body).strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}

    def fill(body: str) -> str:
        return _QUERY_REFERENCE.sub(lambda match: fill(raw[match[1]].replace("{}", match[2] or "")), body)

    return {name: fill(body) for name, body in raw.items()}


@lru_cache(maxsize=4)
def migrations(dialect: str) -> tuple[tuple[int, str], ...]:
    """Return the number and the script of every migration, in order."""
    return tuple(
        (int(name[:3]), (SQL_DIR / dialect / "migrations" / name).read_text("utf-8")) for name in migration_names(dialect)
    )


def migration_names(dialect: str) -> list[str]:
    """Return the file names of the migrations in order, such as `001_initial.sql`."""
    return sorted(item.name for item in (SQL_DIR / dialect / "migrations").iterdir() if re.match(r"\d{3}_", item.name))


def pending_migrations(dialect: str, version: int, label: str) -> tuple[tuple[int, str], ...]:
    """Return the migrations that a store at this schema version needs. Raise `SchemaTooNew` if a newer foveate wrote it."""
    steps = migrations(dialect)
    refuse_newer(version, steps[-1][0], label)
    return tuple(step for step in steps if step[0] > version)


def refuse_newer(version: int, latest: int, label: str) -> None:
    """Raise if the schema of a store is newer than this version of foveate, or marks an unfinished copy."""
    if version > latest:
        raise SchemaTooNew(
            f"{label} has schema {version}, and this foveate knows schemas up to {latest}. "
            "Upgrade foveate, and restart every program that has the store open."
        )
    if version < 0:  # version 0.1 gave a store a negative version while it copied into it
        raise StoreError(f"{label} holds an unfinished copy that foveate 0.1 began. Remove it, then copy again.")


def refuse_schema_mismatch(version: int, latest: int, label: str) -> None:
    """Raise unless a store has this version's schema. Each transaction checks it: another process may have migrated it."""
    refuse_newer(version, latest, label)
    if version != latest:
        raise StoreError(f"{label} has schema {version}, and had schema {latest} when it was opened. Open it again.")


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema of a store and what a migration would do. `label` is the path or URL, without a password."""

    label: str
    version: int
    latest_version: int
    pending_migrations: tuple[str, ...]
    needs_reindex: bool
    """The store was indexed with another version of the analyser or of the renderer."""

    @property
    def is_current(self) -> bool:
        return not (self.pending_migrations or self.needs_reindex or self.is_too_new)

    @property
    def is_too_new(self) -> bool:
        return self.version > self.latest_version

    @property
    def advice(self) -> str:
        """Return what to do, or an empty string."""
        if self.is_too_new:
            return "It was written by a newer foveate: upgrade this one."
        if self.pending_migrations:
            return "`foveate store maintain` migrates it. Restart programs of an older foveate that have it open."
        return "`foveate store maintain` does it." if self.needs_reindex else ""


def compute_schema_status(dialect: str, label: str, version: int, meta: Mapping[str, str]) -> SchemaStatus:
    """Return the status of a store from its schema version and the rows of its `meta` table."""
    names = migration_names(dialect)
    known = {"analyser": str(analysis.VERSION), "renderer": str(RENDERER_VERSION)}
    return SchemaStatus(
        label=label,
        version=version,
        latest_version=int(names[-1][:3]),
        pending_migrations=tuple(name.removesuffix(".sql") for name in names if int(name[:3]) > version),
        needs_reindex=any(name in meta and meta[name] != value for name, value in known.items()),
    )
