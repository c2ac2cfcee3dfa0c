"""Named SQL from `.sql` files. `{name}` in a query stands for another query of the file, where there is one."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from foveate.errors import SchemaTooNew, StoreError

ROOT = files("foveate.store")
"""A folder for each dialect: `queries.sql`, and `migrations/` by number."""

AGAIN = "Run the same `foveate copy` again to finish it, or copy something else there with --replace."

_HEAD = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_PART = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=4)
def load(dialect: str) -> dict[str, str]:
    """Every query of a dialect by name, with its parts filled in."""
    text = (ROOT / dialect / "queries.sql").read_text("utf-8")
    pieces = _HEAD.split(text)[1:]
    raw = {name: body.strip() for name, body in zip(pieces[::2], pieces[1::2], strict=True)}

    def fill(body: str) -> str:
        return _PART.sub(lambda part: fill(raw[part[1]]) if part[1] in raw else part[0], body)

    return {name: fill(body) for name, body in raw.items()}


@lru_cache(maxsize=4)
def migrations(dialect: str) -> tuple[tuple[int, str], ...]:
    """(number, script) in order."""
    return tuple(
        (int(name[:3]), (ROOT / dialect / "migrations" / name).read_text("utf-8")) for name in migration_names(dialect)
    )


def migration_names(dialect: str) -> list[str]:
    """The scripts' names, in order: `001_initial.sql`."""
    return sorted(item.name for item in (ROOT / dialect / "migrations").iterdir() if re.match(r"\d{3}_", item.name))


def pending(dialect: str, version: int, where: str) -> tuple[tuple[int, str], ...]:
    """The migrations that a store of this schema version lacks; one that is newer than this foveate is refused."""
    steps = migrations(dialect)
    refuse_newer(version, steps[-1][0], where)
    return tuple(step for step in steps if step[0] > version) if version >= 0 else ()


def refuse_newer(version: int, latest: int, where: str) -> None:
    if abs(version) > latest:
        raise SchemaTooNew(
            f"{where} has schema {abs(version)}; this foveate knows up to {latest}. "
            "Upgrade foveate to open it, and start every program again that has it open."
        )


def refuse_other(version: int, latest: int, where: str, *, unfinished: bool = False) -> None:
    """For every transaction: another process may have migrated the store since this one opened it, or be copying to it.

    While a copy is unfinished its schema has a number below 0: no version of foveate knows that, and one look at one
    number does for both.
    """
    if version == latest or (unfinished and version == -latest):
        return
    refuse_newer(version, latest, where)
    if version == -latest:
        raise StoreError(f"{where} holds a copy that is not finished. {AGAIN}")
    if version < 0:
        raise StoreError(f"{where} holds a copy that an older foveate began. Remove it, and copy anew.")
    raise StoreError(f"{where} has schema {version} now, and had {latest}: open it again to migrate it.")
