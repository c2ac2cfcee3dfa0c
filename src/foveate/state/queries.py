"""Named SQL from `.sql` files. `{name}` in a query stands for another query of the file, where there is one."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

from foveate.errors import SchemaTooNew

_HEAD = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_PART = re.compile(r"\{(\w+)\}")


@lru_cache(maxsize=4)
def load(dialect: str) -> dict[str, str]:
    """Every query of a dialect by name, with its parts filled in."""
    text = (files("foveate.state") / "sql" / dialect / "queries.sql").read_text("utf-8")
    pieces = _HEAD.split(text)[1:]
    raw = {name: body.strip() for name, body in zip(pieces[::2], pieces[1::2], strict=True)}

    def fill(body: str) -> str:
        return _PART.sub(lambda part: fill(raw[part[1]]) if part[1] in raw else part[0], body)

    return {name: fill(body) for name, body in raw.items()}


@lru_cache(maxsize=4)
def migrations(dialect: str) -> tuple[tuple[int, str], ...]:
    """(number, script) in order."""
    folder = files("foveate.state") / "sql" / dialect
    names = sorted(item.name for item in folder.iterdir() if re.match(r"\d{3}_", item.name))
    return tuple((int(name[:3]), (folder / name).read_text("utf-8")) for name in names)


def pending(dialect: str, version: int, where: str) -> tuple[tuple[int, str], ...]:
    """The migrations that a store of this schema version lacks; one that is newer than this foveate is refused."""
    steps = migrations(dialect)
    latest = steps[-1][0]
    if version > latest:
        raise SchemaTooNew(f"{where} has schema {version}; this foveate knows up to {latest}. Upgrade foveate to open it.")
    return tuple(step for step in steps if step[0] > version)
