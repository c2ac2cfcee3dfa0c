"""Validate a context (001): compare it with its budget, break its tokens down by slot, and suggest better settings.

Only the receipt is read. Each suggestion names a setting and a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from foveate.receipts.parts import KeptCandidate
from foveate.receipts.receipt import Receipt
from foveate.types import LEVELS, Slot

LARGE_SHARE = 0.1
"""An empty slot is reported only if the profile gives it at least this share of the budget."""

SLACK_FACTOR = 1.1
"""A suggested budget is larger than the tokens that are needed by this factor, for blank lines and rounding."""


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of validating a context. `valid` means that it is within its budget."""

    valid: bool
    token_count: int
    max_tokens: int
    breakdown: Mapping[str, int]
    """Tokens by slot, and under `reserved` and `total` the reserve and the sum of all."""
    warnings: tuple[str, ...]
    suggestions: tuple[str, ...]
    """At most one for each kind of loss, even if several slots are affected."""
    not_considered: int = 0
    """Records in scope that were never candidates."""


def validate(receipt: Receipt, not_considered: int = 0) -> Validation:
    """Validate a context (001), of whose scope this number of records were never candidates."""
    budget = receipt.budget
    without_input = _empty_without_input(receipt)
    suggestions = (
        _larger_budget(receipt),
        _below_min_relevance(receipt),
        _nothing_found(receipt),
        "" if without_input else _no_file_of_task(receipt),
        _shown_in_parts(receipt),
        _beyond_max_items(receipt),
        _stale(receipt),
        _smaller_budget(receipt),
    )
    breakdown = {slot.name: slot.used for slot in budget.slots}
    return Validation(
        valid=budget.used <= budget.ceiling,
        token_count=budget.used,
        max_tokens=budget.ceiling,
        breakdown={**breakdown, "reserved": budget.reserve, "total": budget.used + budget.reserve},
        warnings=(*receipt.warnings, *without_input),
        suggestions=tuple(suggestion for suggestion in suggestions if suggestion),
        not_considered=not_considered,
    )


def _empty_without_input(receipt: Receipt) -> list[str]:
    """Name the slots that are empty because their source had nothing to read, with its reason."""
    empty = {slot.name for slot in _empty_slots(receipt)}
    slots_by_note: dict[str, list[str]] = {}
    for report in receipt.sources:
        if report.note:
            slots_by_note.setdefault(report.note, []).extend(slot for slot in report.slots if slot in empty)
    return [f"{note} Left empty: {', '.join(dict.fromkeys(slots))}." for note, slots in slots_by_note.items() if slots]


def _larger_budget(receipt: Receipt) -> str:
    """Suggest a larger budget if candidates did not fit or are shortened."""
    slots = _slots(receipt)
    omitted = Counter(entry.slot for entry in receipt.left_out if entry.reason == "budget")
    shortened = Counter(entry.slot for entry in receipt.items if _is_shortened(entry, slots[entry.slot]))
    if not omitted and not shortened:
        return ""
    losses = [f"{number} in {name!r} did not fit" for name, number in omitted.most_common()]
    losses += [f"{number} in {name!r} are shortened" for name, number in shortened.most_common()]
    worst = (omitted or shortened).most_common(1)[0][0]
    granted = next(slot.granted for slot in receipt.budget.slots if slot.name == worst)
    setting = "share" if slots[worst].tokens is None else "tokens"
    return (
        f"{', '.join(losses)}: raise the budget ({receipt.budget.total:,} now), or slots.{worst}.{setting}; "
        f"{worst!r} got {granted:,} tokens."
    )


def _is_shortened(entry: KeptCandidate, slot: Slot) -> bool:
    """Return whether a larger budget would show more of an item. Stable slots always show the same level."""
    return not slot.stable and LEVELS.index(entry.level) > LEVELS.index(slot.max_level)


def _below_min_relevance(receipt: Receipt) -> str:
    """Name the slots that are empty because nothing reached their `min_relevance`."""
    parts = []
    for slot in _empty_slots(receipt):
        low = [each for each in receipt.left_out if each.slot == slot.name and each.reason == "min_relevance"]
        if low:
            best = max(each.features.get("relevance", 0.0) for each in low)
            minimum = f"slots.{slot.name}.min_relevance is {slot.min_relevance:g}"
            parts.append(f"the best of {len(low)} for {slot.name!r} has {best:.2g}, and {minimum}")
    return f"Nothing was relevant enough: {'; '.join(parts)}." if parts else ""


def _nothing_found(receipt: Receipt) -> str:
    """Name the large slots for which a search found nothing."""
    base_tokens = {slot.name: slot.base for slot in receipt.budget.slots}
    large = LARGE_SHARE * receipt.budget.ceiling
    without_input = {slot for report in receipt.sources if report.note for slot in report.slots}
    explained = {entry.slot for entry in receipt.candidates} | without_input
    shows_files = any(entry.source == "found_files" for entry in receipt.items)
    # Definitions of files that are shown whole are not searched for, so an empty slot for them is no loss.
    searched = ("search",) if shows_files else ("search", "code")
    empty = [
        slot
        for slot in _empty_slots(receipt)
        if slot.source in searched and slot.name not in explained and base_tokens[slot.name] >= large
    ]
    if not empty:
        return ""
    suggestion = f"Nothing was found for {', '.join(repr(slot.name) for slot in empty)}."
    if any(slot.source == "code" for slot in empty):
        suggestion += " Pass `code_query` with words that the code uses."
    return suggestion


def _no_file_of_task(receipt: Receipt) -> str:
    found_no_file = any(report.source == "files" and not report.found for report in receipt.sources)
    if receipt.request.task is None or not found_no_file:
        return ""
    return "The task names no file that exists here. Files in its `files` and `depends_on` are shown first, and whole."


def _shown_in_parts(receipt: Receipt) -> str:
    paths = [entry.id.removeprefix("file:") for entry in receipt.items if entry.in_parts]
    if not paths:
        return ""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"Shown in parts: {paths[0]}{more}. The query, or `code_query`, decides which parts."


def _beyond_max_items(receipt: Receipt) -> str:
    slots = _slots(receipt)
    beyond = Counter(entry.slot for entry in receipt.left_out if entry.reason == "max_items")
    parts = [f"{number} for slots.{name}.max_items ({slots[name].max_items})" for name, number in beyond.most_common()]
    return f"Too many: {', '.join(parts)}." if parts else ""


def _stale(receipt: Receipt) -> str:
    ids = [entry.id for entry in receipt.items if entry.stale]
    if not ids:
        return ""
    return f"{len(ids)} are about files that no longer exist: {', '.join(ids[:3])}. Retire each: `foveate edit ID --retire`."


def _smaller_budget(receipt: Receipt) -> str:
    """Suggest a smaller budget if most of the present one is not used."""
    budget, profile = receipt.budget, receipt.profile
    if any(entry.reason == "budget" for entry in receipt.left_out):
        return ""
    # Below the total that a profile is written for, slots with fixed tokens shrink with the budget.
    fixed = {slot.name for slot in profile.slots if slot.tokens}
    fullest = max((slot.used / slot.base for slot in budget.slots if slot.name in fixed and slot.base), default=0.0)
    needed = max(budget.used + budget.reserve, min(budget.total, profile.written_for) * fullest) * SLACK_FACTOR
    enough = _round_up(needed)
    if not budget.used or enough > budget.total / 2:
        return ""
    return f"{budget.used:,} of {budget.ceiling:,} tokens are used; a budget of {enough:,} would do."


def _round_up(number: float) -> int:
    """Round up to two digits."""
    step = int(10 ** max(0, len(str(int(number))) - 2))
    return ceil(number / step) * step


def _slots(receipt: Receipt) -> dict[str, Slot]:
    return {slot.name: slot for slot in receipt.profile.slots}


def _empty_slots(receipt: Receipt) -> list[Slot]:
    """Return the slots that show no item."""
    slots = _slots(receipt)
    return [slots[slot.name] for slot in receipt.budget.slots if not slot.items]
