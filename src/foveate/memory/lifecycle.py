"""Memory with a life of its own: records have stages, censors watch, entities are joined by name.

The rules are elsewhere and pure (`lifecycle.py`, `triggers.py`, `relations.py`, `extract.py`); here they become verbs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from foveate.errors import InputError
from foveate.memory import maintenance
from foveate.memory.entity_extraction import Proposal, propose
from foveate.memory.memory import Memory
from foveate.memory.relations import relate
from foveate.records import lifecycle
from foveate.records.triggers import Trip, trip
from foveate.types import Link, Record


class Living(Memory):
    """A memory whose records pass through stages."""

    def __init__(self, *args: Any, thresholds: lifecycle.Thresholds = lifecycle.DEFAULT, **options: Any) -> None:
        super().__init__(*args, **options)
        self.thresholds = thresholds

    # --- lifecycles and censors --------------------------------------------------------------------------------

    def stage(self, id: str) -> str:
        """At which stage of its life a record is."""
        return lifecycle.stage(self.get(id), self.clock(), self.thresholds)

    def gc(self, *, dry_run: bool = True) -> list[lifecycle.Step]:
        """What the rules of lifecycles and retention would change, and why; done where it is no dry run.

        Of records, only events beyond what the settings keep are dropped.
        """
        return maintenance.gc(self, self.thresholds, dry_run=dry_run)

    def drop_outlived(self, rest: Callable[[], bool] | None = None) -> list[lifecycle.Step]:
        """For the background: drop the project's receipts and events that are beyond their retention, in small batches.

        `rest` is called between two of them, and ends the round where it says so.
        """
        return maintenance.dropped(self.store, self.scope, self.clock(), rest=rest)

    def tick(self) -> list[lifecycle.Step]:
        """For the background: `gc`, at most once an hour on a store. No context ever waits for it."""
        return maintenance.tick(self, self.thresholds)

    def check(self, text: str, *, dry_run: bool = False) -> list[Trip]:
        """The censors that a planned action trips, blocks first. Each trip is counted, unless it is a dry run."""
        if not isinstance(text, str) or not text.strip():
            raise InputError("There is nothing to check; say what is planned.")
        with self.reader() as reader:
            trips = [found for censor in reader.standing(("censor",)) if (found := trip(censor, text))]
        for each in () if dry_run else trips:
            self._change(each.censor.id, "trip", lambda record, now: replace(record, uses=record.uses + 1, updated=now))
        return sorted(trips, key=lambda each: each.action != "block")

    def false_alarm(self, id: str) -> Record:
        """Say that a censor tripped for nothing; one that is mostly wrong is withdrawn by `gc`."""

        def counted(record: Record, now: int) -> Record:
            if record.kind != "censor":
                raise InputError(f"{id!r} is a {record.kind}; only a censor can raise a false alarm.")
            alarms = int(record.data.get("false_alarms", 0)) + 1
            return replace(record, data={**record.data, "false_alarms": alarms}, updated=now)

        return self._change(id, "false alarm", counted)

    # --- entities ----------------------------------------------------------------------------------------------

    def relate(self, source: str, name: str, target: str, *, weight: float = 1.0, create: bool = False) -> Link:
        """Join two entities by their names; `create` keeps those that are not known yet."""
        return relate(self, source, name, target, weight=weight, create=create)

    def propose_entities(self, text: str) -> list[Proposal]:
        """Names in a text that could be entities, the most frequent first; nothing is kept."""
        with self.reader() as reader:
            return propose(text, reader.named)
