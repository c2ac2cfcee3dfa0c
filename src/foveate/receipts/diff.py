"""Compare two past contexts: their items, their tokens, and the beginning that their texts share."""

from __future__ import annotations

from dataclasses import dataclass, replace

from foveate.receipts.parts import KeptCandidate
from foveate.receipts.receipt import Receipt
from foveate.receipts.replay import Replay
from foveate.text import tokens


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A property of an item that both contexts show, with its earlier and its later value."""

    id: str
    before: str | int
    after: str | int


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The equal beginning of two texts. `share` is its part of the second text, 0..1."""

    chars: int
    tokens: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The differences between two contexts."""

    before: str
    after: str
    added: tuple[KeptCandidate, ...]
    withdrawn: tuple[KeptCandidate, ...]
    place_changes: tuple[ItemChange, ...]
    """Items in another slot or at another rank."""
    level_changes: tuple[ItemChange, ...]
    """Items at another level."""
    version_changes: tuple[ItemChange, ...]
    """Items at another version."""
    tokens: int
    """Tokens of the second context minus those of the first."""
    same_prefix: bool
    """The stable parts of both contexts are equal."""
    unread: tuple[str, ...] = ()
    """Ids of the contexts whose text can no longer be computed."""
    texts: tuple[str, str] | None = None
    shared_prefix: SharedPrefix | None = None
    """None if a text can no longer be computed."""


def diff_of(before: Receipt, after: Receipt) -> Diff:
    """Compare two receipts, without their texts."""
    old = {entry.id: entry for entry in before.items}
    new = {entry.id: entry for entry in after.items}
    both = [(old[id], new[id]) for id in new if id in old]
    return Diff(
        before=before.id,
        after=after.id,
        added=tuple(entry for id, entry in new.items() if id not in old),
        withdrawn=tuple(entry for id, entry in old.items() if id not in new),
        place_changes=tuple(ItemChange(two.id, _place(one), _place(two)) for one, two in both if _place(one) != _place(two)),
        level_changes=tuple(ItemChange(two.id, one.level, two.level) for one, two in both if one.level != two.level),
        version_changes=tuple(
            ItemChange(two.id, one.version, two.version) for one, two in both if one.version != two.version
        ),
        tokens=after.budget.used - before.budget.used,
        same_prefix=before.prefix.hash == after.prefix.hash,
    )


def _place(entry: KeptCandidate) -> str:
    return f"{entry.slot} {entry.rank}"


def diff_of_replays(before: Replay, after: Replay) -> Diff:
    """Compare two contexts and, if both can be computed again, their texts."""
    found = diff_of(before.receipt, after.receipt)
    unread = tuple(each.id for each in (before, after) if not each.same)
    if unread:
        return replace(found, unread=unread)
    shared = _shared_prefix(before.text, after.text, before.receipt.request.counter)
    return replace(found, texts=(before.text, after.text), shared_prefix=shared)


def _shared_prefix(first: str, second: str, counter: str) -> SharedPrefix:
    shared, end = 0, min(len(first), len(second))
    # A binary search with slices, which Python compares at once; a loop over characters would be slow.
    while shared < end:
        half = (shared + end + 1) // 2
        shared, end = (half, end) if first[shared:half] == second[shared:half] else (shared, half - 1)
    same, whole = (tokens.count(text, counter) for text in (second[:shared], second))
    return SharedPrefix(shared, same, round(same / whole, 4) if whole else 1.0)
