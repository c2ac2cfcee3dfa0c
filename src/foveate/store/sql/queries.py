"""Named SQL from `.sql` files, and how the schema of a store compares with this version's.

`{name}` in a query stands for another query of the same file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from foveate.errors import SchemaTooNew, StoreError
from foveate.records.kinds import RENDERER_VERSION

SQL_DIR = files("foveate.store")
"""A folder for each dialect: `queries.sql`, and `migrations/` by number."""

META_SECRET = "secret"
"""Name in `meta` of a random value that is drawn once for a store and never changes."""

META_RESIDUE = "residue"
"""Name in `meta`: something was forgotten, and its bytes may still be in the file."""

META_STAMPS = ("analyser", "renderer", "counter", META_SECRET)
"""Names in `meta`: what the rows were indexed and counted with, and what their marks are made from."""

_QUERY_HEADER = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_QUERY_REFERENCE = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=4)
def load(dialect: str) -> dict[str, str]:
    """Return every query of a dialect by name, with its references filled in."""
    text = (SQL_DIR / dialect / "queries.sql").read_text("utf-8")
    pieces = _QUERY_HEADER.split(text)[1:]
    raw = {name: body.strip() for name, body in zip(pieces[::2], pieces[1::2], strict=True)}

    def fill(body: str) -> str:
        return _QUERY_REFERENCE.sub(lambda match: fill(raw[match[1]]) if match[1] in raw else match[0], body)

    return {name: fill(body) for name, body in raw.items()}


@lru_cache(maxsize=4)
def migrations(dialect: str) -> tuple[tuple[int, str], ...]:
    """Return (number, script) of every migration, in order."""
    return tuple(
        (int(name[:3]), (SQL_DIR / dialect / "migrations" / name).read_text("utf-8")) for name in migration_names(dialect)
    )


def migration_names(dialect: str) -> list[str]:
    """Return the names of the scripts in order, such as `001_initial.sql`."""
    return sorted(item.name for item in (SQL_DIR / dialect / "migrations").iterdir() if re.match(r"\d{3}_", item.name))


def pending_migrations(dialect: str, version: int, label: str) -> tuple[tuple[int, str], ...]:
    """Return the migrations that a store of this schema version lacks, or raise if the store is too new."""
    steps = migrations(dialect)
    refuse_newer(version, steps[-1][0], label)
    return tuple(step for step in steps if step[0] > version)


def refuse_newer(version: int, latest: int, label: str) -> None:
    if version > latest:
        raise SchemaTooNew(
            f"{label} has schema {version}; this foveate knows up to {latest}. "
            "Upgrade foveate to open it, and start every program again that has it open."
        )
    if version < 0:  # how version 0.1 marked a target that it was still copying to
        raise StoreError(f"{label} holds an unfinished copy that foveate 0.1 began. Remove it, and copy again.")


def refuse_schema_mismatch(version: int, latest: int, label: str) -> None:
    """Raise unless a store has this version's schema. Another process may have migrated it since it was opened."""
    refuse_newer(version, latest, label)
    if version != latest:
        raise StoreError(f"{label} has schema {version} now, and had {latest}: open it again to migrate it.")


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema of a store and what a migration would do. `label` is the path or URL, without a password."""

    label: str
    version: int
    latest_version: int
    pending_migrations: tuple[str, ...]
    needs_reindex: bool
    """The analyser or the renderer is not the one that the store was indexed with."""

    @property
    def is_current(self) -> bool:
        return not (self.pending_migrations or self.needs_reindex or self.is_too_new)

    @property
    def is_too_new(self) -> bool:
        return self.version > self.latest_version

    @property
    def needs_restart(self) -> bool:
        """Whether programs that have the store open must be restarted with this version once it is migrated."""
        return bool(self.pending_migrations)

    @property
    def advice(self) -> str:
        """Return what to do, or an empty string."""
        if self.is_too_new:
            return "It was written by a newer foveate: upgrade this one."
        if self.needs_restart:
            return "`foveate migrate` does it. Programs of an older foveate that have it open stop then: start them again."
        return "`foveate migrate` does it." if self.needs_reindex else ""


def compute_schema_status(dialect: str, label: str, version: int, meta: Mapping[str, str]) -> SchemaStatus:
    """Return how a store of this version stands, from what its `meta` table says."""
    from foveate.text import analysis

    names = migration_names(dialect)
    known = {"analyser": str(analysis.VERSION), "renderer": str(RENDERER_VERSION)}
    return SchemaStatus(
        label=label,
        version=version,
        latest_version=int(names[-1][:3]),
        pending_migrations=tuple(name.removesuffix(".sql") for name in names if int(name[:3]) > version),
        needs_reindex=any(name in meta and meta[name] != value for name, value in known.items()),
    )
