"""The base class of all sources, and what a source is given to answer with."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foveate.errors import NotFound
from foveate.store.protocol import Reader
from foveate.types import TRUST, Candidate, Filters, Profile, Record, Request, Scope, Signals, Slot

if TYPE_CHECKING:
    from foveate.code.plain_folder import FolderSnapshot
    from foveate.code.snapshot import CodeSnapshot

DEADLINE_S = 2.0
"""Time that a slow source gets unless it sets its own: an agent waits for its prompt."""

TOKENS_PER_ITEM = 15
MIN_LIMIT, MAX_LIMIT = 40, 400
"""A slot without a limit asks for as many candidates as its room could hold micro lines, within these bounds."""


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """A slot that wants candidates of a source, and how many at most."""

    slot: Slot
    limit: int


@dataclass(frozen=True, slots=True)
class SourceContext:
    """Everything that a source may read."""

    request: Request
    signals: Signals
    profile: Profile
    reader: Reader
    root: Path | None = None
    """The project's folder, if there is one."""
    code: CodeSnapshot | None = None
    """The code, if the project has any and a source of the profile reads it."""
    code_unavailable: str = ""
    """Why there is no snapshot of the code although a source wants one."""
    folder: FolderSnapshot | None = None
    """Stands in for the code in a folder that is not indexed."""


class Source:
    """Brings candidates for slots. Subclass it, set `name` and implement `find`; a source decides nothing.

    The name is what a slot's `source` says. A source whose ids begin with its name (`tickets:42`) may set `can_recall` and
    implement `recall`, so that `expand` and `replay` can show its records again.
    """

    name: str = ""
    slow: bool = False
    """Run `find` in a thread with a deadline. A slow source must not use `context.reader`."""
    deadline: float = DEADLINE_S
    """Seconds that a slow source gets."""
    reads_code: bool = False
    """Provide `context.code`."""
    can_recall: bool = False
    unrelated: str = ""
    """Why a record that `find` did not return is unrelated to a request, as a clause for `why`."""

    def find(
        self, requests: Sequence[SlotRequest], context: SourceContext
    ) -> Iterable[Candidate] | Awaitable[Iterable[Candidate]]:
        """Return candidates for all slots that ask this source. May be a coroutine function."""
        raise NotImplementedError(f"Source {self.name!r} does not implement find().")

    def pool_size(self, context: SourceContext) -> int | None:
        """Return the number of records that the source chose from, if it can tell. Called for debugging only."""
        return None

    def recall(self, id: str, scope: Scope, now: int) -> Record:
        """Return a record of this source as it is now."""
        raise NotFound(f"Source {self.name!r} does not keep {id!r}.")

    def candidate(self, request: SlotRequest, record: Record, **features: float) -> Candidate:
        """Return a candidate of this source for a slot."""
        return Candidate(record=record, slot=request.slot.name, source=self.name, features=features)


def limit_of(slot: Slot, profile: Profile) -> int:
    """Return how many candidates a slot asks for."""
    if slot.max_candidates is not None:
        return slot.max_candidates
    return max(MIN_LIMIT, min(base_tokens(slot, profile) // TOKENS_PER_ITEM, MAX_LIMIT))


def base_tokens(slot: Slot, profile: Profile) -> int:
    """Return the tokens that a slot has by the profile alone, before unused room is shared."""
    shares = sum(other.share or 0.0 for other in profile.slots)
    return slot.tokens if slot.tokens is not None else int(profile.total * (slot.share or 0.0) / (shares or 1.0))


def excluding_filter(record: Record, filters: Filters) -> str:
    """Return the name of the filter that excludes a record, or an empty text. `exclude` is applied in selection."""
    if filters.since is not None and record.created < filters.since:
        return "since"
    if filters.until is not None and record.created >= filters.until:
        return "until"
    if filters.kinds and record.kind not in filters.kinds:
        return "kinds"
    if filters.tags and not set(filters.tags) & set(record.tags):
        return "tags"
    if TRUST.index(record.trust) < TRUST.index(filters.min_trust):
        return "min_trust"
    for kind, name, types in (
        ("event", "event_types", filters.event_types),
        ("entity", "entity_types", filters.entity_types),
    ):
        if types and record.kind == kind and record.data.get("type") not in types:
            return name
    return ""
