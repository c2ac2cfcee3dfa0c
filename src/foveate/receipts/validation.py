"""Validation of a context (001): is it within its budget, where did the tokens go, what could be better.

It reads a receipt and nothing else. Each suggestion names a setting and a number.
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
"""A slot with this share of the budget is large enough to be missed if nothing was found for it."""

SLACK_FACTOR = 1.1
"""A smaller budget is suggested with this much room for blank lines and rounding."""


@dataclass(frozen=True, slots=True)
class Validation:
    """Whether a context is within its budget, where the tokens went, and what could be better."""

    valid: bool
    token_count: int
    max_tokens: int
    breakdown: Mapping[str, int]
    """Tokens by slot, with the `reserved` ones and the `total`."""
    warnings: tuple[str, ...]
    suggestions: tuple[str, ...]
    """Each names a setting and a number. There is one for each kind of loss, whatever the number of slots."""


def validate(receipt: Receipt) -> Validation:
    """Validate a context (001)."""
    budget = receipt.budget
    no_sight = _empty_without_input(receipt)
    suggestions = (
        _no_room(receipt),
        _below_min_score(receipt),
        _nothing_found(receipt),
        "" if no_sight else _no_file_of_task(receipt),
        _shown_in_parts(receipt),
        _beyond_max_items(receipt),
        _stale(receipt),
        _unused_budget(receipt),
    )
    breakdown = {slot.name: slot.used for slot in budget.slots}
    return Validation(
        valid=budget.used <= budget.ceiling,
        token_count=budget.used,
        max_tokens=budget.ceiling,
        breakdown={**breakdown, "reserved": budget.reserve, "total": budget.used + budget.reserve},
        warnings=(*receipt.warnings, *no_sight),
        suggestions=tuple(suggestion for suggestion in suggestions if suggestion),
    )


def _empty_without_input(receipt: Receipt) -> list[str]:
    """Name the slots that are empty because their source had nothing to read, and why."""
    empty = {slot.name for slot in _empty_slots(receipt)}
    slots_by_note: dict[str, list[str]] = {}
    for report in receipt.sources:
        if report.note:
            slots_by_note.setdefault(report.note, []).extend(slot for slot in report.slots if slot in empty)
    return [f"{note} Left empty: {', '.join(dict.fromkeys(slots))}." for note, slots in slots_by_note.items() if slots]


def _no_room(receipt: Receipt) -> str:
    """Suggest a larger budget if something did not fit or is shortened."""
    slots = _slots(receipt)
    lost = Counter(entry.slot for entry in receipt.left_out if entry.reason == "budget")
    short = Counter(entry.slot for entry in receipt.items if _is_shortened(entry, slots[entry.slot]))
    if not lost and not short:
        return ""
    losses = [f"{number} in {name!r} did not fit" for name, number in lost.most_common()]
    losses += [f"{number} in {name!r} are shortened" for name, number in short.most_common()]
    worst = (lost or short).most_common(1)[0][0]
    granted = next(slot.granted for slot in receipt.budget.slots if slot.name == worst)
    setting = "share" if slots[worst].tokens is None else "tokens"
    return (
        f"{', '.join(losses)}: raise the budget ({receipt.budget.total:,} now), or slots.{worst}.{setting}; "
        f"{worst!r} got {granted:,} tokens."
    )


def _is_shortened(entry: KeptCandidate, slot: Slot) -> bool:
    """Return whether a larger budget would show more of an item. Stable slots always show the same level."""
    return not slot.stable and LEVELS.index(entry.level) > LEVELS.index(slot.max_level)


def _below_min_score(receipt: Receipt) -> str:
    """Name the slots that are empty because nothing reached their `min_score`."""
    parts = []
    for slot in _empty_slots(receipt):
        scores = [each.score for each in receipt.left_out if each.slot == slot.name and each.reason == "min_score"]
        if scores:
            floor = f"slots.{slot.name}.min_score is {slot.min_score:g}"
            parts.append(f"the best of {len(scores)} for {slot.name!r} has {max(scores):.2f}, and {floor}")
    return f"Nothing scored high enough: {'; '.join(parts)}." if parts else ""


def _nothing_found(receipt: Receipt) -> str:
    """Name the large slots for which a search found nothing."""
    own_tokens = {slot.name: slot.base for slot in receipt.budget.slots}
    large = LARGE_SHARE * receipt.budget.ceiling
    without_input = {slot for report in receipt.sources if report.note for slot in report.slots}
    seen = {entry.slot for entry in receipt.candidates} | without_input
    shows_files = any(entry.source == "found_files" for entry in receipt.items)
    searched = ("search",) if shows_files else ("search", "code")  # definitions of a shown file are not found again
    missed = [
        slot
        for slot in _empty_slots(receipt)
        if slot.source in searched and slot.name not in seen and own_tokens[slot.name] >= large
    ]
    if not missed:
        return ""
    suggestion = f"Nothing was found for {', '.join(repr(slot.name) for slot in missed)}."
    if any(slot.source == "code" for slot in missed):
        suggestion += " Pass `code_query` with words that the code uses."
    return suggestion


def _no_file_of_task(receipt: Receipt) -> str:
    asked = any(report.source == "files" and not report.found for report in receipt.sources)
    if receipt.request.task is None or not asked:
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
    return (
        f"{len(ids)} point to files that are gone; `foveate edit ID --retire` drops one: {', '.join(ids[:3])}."
        if ids
        else ""
    )


def _unused_budget(receipt: Receipt) -> str:
    """Suggest a smaller budget. Below the total that a profile is written for, fixed slots shrink with the budget."""
    budget, profile = receipt.budget, receipt.profile
    if any(entry.reason == "budget" for entry in receipt.left_out):
        return ""
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
