"""How a store's schema stands to the one that this foveate knows: what a migration would do. It opens nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from foveate.records.kinds import RENDERER
from foveate.store.sql import queries
from foveate.store.sql.queries import AGAIN
from foveate.store.tables import COPYING


@dataclass(frozen=True, slots=True)
class Standing:
    """A store's schema and what it needs. `label` is fit to be shown."""

    label: str
    version: int
    latest: int
    steps: tuple[str, ...]
    """The migrations that it lacks, in order."""
    indexes_again: bool
    """Whether its words would be analysed and its lines counted anew."""
    unfinished: bool
    """Whether it holds a copy that was cut short."""

    @property
    def is_current(self) -> bool:
        return not (self.steps or self.indexes_again or self.unfinished or self.is_too_new)

    @property
    def is_too_new(self) -> bool:
        return self.version > self.latest

    @property
    def restart(self) -> bool:
        """Whether programs that have it open must be started again, by this version, once it is migrated."""
        return bool(self.steps)

    @property
    def advice(self) -> str:
        """What to do, in one sentence or none."""
        if self.is_too_new:
            return "It was written by a newer foveate: upgrade this one."
        if self.unfinished:
            return f"It holds a copy that is not finished. {AGAIN}"
        if self.restart:
            return "`foveate migrate` does it. Programs of an older foveate that have it open stop then: start them again."
        return "`foveate migrate` does it." if self.indexes_again else ""


def standing(dialect: str, label: str, version: int, meta: Mapping[str, str]) -> Standing:
    """How a store of this version stands, by what its `meta` says."""
    from foveate.text import analysis

    names = queries.migration_names(dialect)
    known = {"analyser": str(analysis.VERSION), "renderer": str(RENDERER)}
    return Standing(
        label=label,
        version=version,
        latest=int(names[-1][:3]),
        steps=tuple(name.removesuffix(".sql") for name in names if int(name[:3]) > version),
        indexes_again=any(name in meta and meta[name] != value for name, value in known.items()),
        unfinished=COPYING in meta,
    )
