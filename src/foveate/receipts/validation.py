"""Validation of a context (001): is it within its budget, where did the tokens go, what could be better.

Comes in: a receipt, and nothing else. Goes out: the breakdown by part, warnings, and suggestions that name a setting and
a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil
from typing import Any

from foveate.receipts.receipt import Receipt
from foveate.types import LEVELS

LARGE = 0.1
"""The share of the room from which a part is large enough to miss."""

SLACK = 1.1
"""What a smaller budget that would do keeps free: blank lines and rounding."""


def validate(receipt: Receipt) -> dict[str, Any]:
    """001's validation of a context: valid or not, the breakdown by slot, warnings and suggestions.

    A suggestion names a setting and a number. There is one for each kind of loss, whatever the number of slots.
    """
    budget = receipt.document["budget"]
    used, ceiling = budget["used"], budget["total"] - budget["reserve"]
    unseen = _unseen(receipt)
    suggestions = (
        _no_room(receipt),
        _under_their_floor(receipt),
        _nothing_found(receipt),
        "" if unseen else _no_file_of_the_task(receipt),
        _in_parts(receipt),
        _beyond_max_items(receipt),
        _files_gone(receipt),
        _unused(receipt),
    )
    return {
        "valid": used <= ceiling,
        "token_count": used,
        "max_tokens": ceiling,
        "breakdown": {slot["name"]: slot["used"] for slot in budget["slots"]}
        | {"reserved": budget["reserve"], "total": used + budget["reserve"]},
        "warnings": list(receipt.document["warnings"]) + unseen,
        "suggestions": [suggestion for suggestion in suggestions if suggestion],
    }


def _unseen(receipt: Receipt) -> list[str]:
    """The parts that stayed empty because there was nothing to look at, and why."""
    empty = {slot["name"] for slot in _empty(receipt)}
    parts: dict[str, list[str]] = {}
    for report in receipt.document["sources"]:
        if report.get("note"):
            parts.setdefault(report["note"], []).extend(slot for slot in report["slots"] if slot in empty)
    return [f"{note} Left empty: {', '.join(dict.fromkeys(slots))}." for note, slots in parts.items() if slots]


def _no_room(receipt: Receipt) -> str:
    """What a larger budget would show, or show at length."""
    slots = _slots(receipt)
    lost = Counter(entry["slot"] for entry in receipt.candidates if entry.get("reason") == "budget")
    short = Counter(entry["slot"] for entry in receipt.candidates if _is_shortened(entry, slots[entry["slot"]]))
    if not lost and not short:
        return ""
    said = [f"{number} in {name!r} did not fit" for name, number in lost.most_common()]
    said += [f"{number} in {name!r} are shortened" for name, number in short.most_common()]
    budget = receipt.document["budget"]
    worst = (lost or short).most_common(1)[0][0]
    got = next(slot["granted"] for slot in budget["slots"] if slot["name"] == worst)
    setting = "share" if slots[worst]["tokens"] is None else "tokens"
    return (
        f"{', '.join(said)}: raise the budget ({budget['total']:,} now), or slots.{worst}.{setting}; "
        f"{worst!r} got {got:,} tokens."
    )


def _is_shortened(entry: Mapping[str, Any], slot: Mapping[str, Any]) -> bool:
    """Whether there was no room to show it as deep as its slot goes; stable ones do not go deeper."""
    return entry["kept"] and not slot["stable"] and LEVELS.index(entry["level"]) > LEVELS.index(slot["deepest"])


def _under_their_floor(receipt: Receipt) -> str:
    """Parts that are empty because nothing reached their `min_score`."""
    parts = []
    for slot in _empty(receipt):
        scores = [e["score"] for e in receipt.candidates if e["slot"] == slot["name"] and e.get("reason") == "min_score"]
        if scores:
            floor = f"slots.{slot['name']}.min_score is {slot['min_score']:g}"
            parts.append(f"the best of {len(scores)} for {slot['name']!r} has {max(scores):.2f}, and {floor}")
    return f"Nothing was near enough: {'; '.join(parts)}." if parts else ""


def _nothing_found(receipt: Receipt) -> str:
    """Large parts that were searched for in vain."""
    document = receipt.document
    room = {slot["name"]: slot["own"] for slot in document["budget"]["slots"]}
    large = LARGE * (document["budget"]["total"] - document["budget"]["reserve"])
    blind = {slot for report in document["sources"] if report.get("note") for slot in report["slots"]}
    seen = {entry["slot"] for entry in receipt.candidates} | blind
    whole = any(entry["kept"] and entry["source"] == "found_files" for entry in receipt.candidates)
    searched = ("search",) if whole else ("search", "code")  # definitions of a file that is shown are not found again
    missed = [s for s in _empty(receipt) if s["source"] in searched and s["name"] not in seen and room[s["name"]] >= large]
    if not missed:
        return ""
    said = f"Nothing was found for {', '.join(repr(slot['name']) for slot in missed)}."
    if any(slot["source"] == "code" for slot in missed):
        said += " Say in `code_query` what to look for, in words that the code uses."
    return said


def _no_file_of_the_task(receipt: Receipt) -> str:
    document = receipt.document
    asked = any(report["source"] == "files" and not report["found"] for report in document["sources"])
    if document["request"]["task"] is None or not asked:
        return ""
    return "The task points to no file that is here: those in its `files` and `depends_on` come first, and whole."


def _in_parts(receipt: Receipt) -> str:
    """Files of which lines are left out."""
    paths = [entry["id"].removeprefix("file:") for entry in receipt.candidates if entry.get("in_parts")]
    if not paths:
        return ""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"Shown in parts: {paths[0]}{more}. The question, or `code_query`, decides which."


def _beyond_max_items(receipt: Receipt) -> str:
    slots = _slots(receipt)
    beyond = Counter(entry["slot"] for entry in receipt.candidates if entry.get("reason") == "max_items")
    parts = [f"{number} for slots.{name}.max_items ({slots[name]['max_items']})" for name, number in beyond.most_common()]
    return f"Too many: {', '.join(parts)}." if parts else ""


def _files_gone(receipt: Receipt) -> str:
    gone = [entry["id"] for entry in receipt.candidates if entry["kept"] and entry.get("stale")]
    return f"{len(gone)} point to files that are gone; `foveate retire {' '.join(gone[:3])}` drops them." if gone else ""


def _unused(receipt: Receipt) -> str:
    """A smaller budget that would do. Below the total that a profile is written for, fixed parts shrink with it."""
    budget, profile = receipt.document["budget"], receipt.document["profile"]
    if any(entry.get("reason") == "budget" for entry in receipt.candidates):
        return ""
    fixed = {slot["name"] for slot in profile["slots"] if slot["tokens"]}
    fullest = max(
        (slot["used"] / slot["own"] for slot in budget["slots"] if slot["name"] in fixed and slot["own"]), default=0.0
    )
    needs = max(budget["used"] + budget["reserve"], min(budget["total"], profile["written_for"]) * fullest) * SLACK
    enough = _rounded_up(needs)
    if not budget["used"] or enough > budget["total"] / 2:
        return ""
    room = budget["total"] - budget["reserve"]
    return f"{budget['used']:,} of {room:,} tokens are used; a budget of {enough:,} would do."


def _rounded_up(number: float) -> int:
    """To two figures."""
    step = int(10 ** max(0, len(str(int(number))) - 2))
    return ceil(number / step) * step


def _slots(receipt: Receipt) -> dict[str, Mapping[str, Any]]:
    return {slot["name"]: slot for slot in receipt.document["profile"]["slots"]}


def _empty(receipt: Receipt) -> list[Mapping[str, Any]]:
    """The slots that show no item, as the profile has them."""
    slots = _slots(receipt)
    return [slots[slot["name"]] for slot in receipt.document["budget"]["slots"] if not slot["items"]]
