"""The budget of a context, drawn: one stacked bar, a table by slot, what was kept with its score taken apart, what was not.

It reads the context's receipt and nothing else, so that a past context is drawn as the present one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foveate.front.cli.calling import speaks_utf8
from foveate.front.cli.show import Line, plain, table, title
from foveate.receipts import Receipt, sentence

COLORS = ("cyan", "green", "yellow", "magenta", "blue", "red")
UTF8 = {"slots": "█▓", "framing": "▚", "free": "░", "reserve": "▒"}
ASCII = {"slots": "#=", "framing": "+", "free": ".", "reserve": "-"}
"""Neighbouring slots differ without colour, too."""

Entry = Mapping[str, Any]


def explain(receipt: Receipt, counter: str, columns: int) -> list[Line]:
    """Everything that a person may want to know about a context's budget."""
    weights = receipt.document["profile"]["weights"]
    kept = [entry for entry in receipt.candidates if entry["kept"]]
    order = {slot["name"]: n for n, slot in enumerate(receipt.document["budget"]["slots"])}
    kept.sort(key=lambda entry: (order[entry["slot"]], entry["rank"]))
    left_out = [entry for entry in receipt.candidates if not entry["kept"]]
    left_out.sort(key=lambda entry: (-entry["score"], entry["id"]))
    lines = [*spent(receipt, counter, columns), [], title(f"Kept ({len(kept)})")]
    lines += [line for entry in kept for line in _kept(entry, weights)]
    lines += [[], title(f"Left out ({len(left_out)})")]
    lines += [line for entry in left_out for line in _left_out(entry)]
    return lines


def spent(receipt: Receipt, counter: str, columns: int) -> list[Line]:
    """Where the tokens went: the bar and its table."""
    budget = receipt.document["budget"]
    return [*_head(receipt, counter), _bar(budget, columns), [], *_slots(budget)]


def _head(receipt: Receipt, counter: str) -> list[Line]:
    budget, profile = receipt.document["budget"], receipt.document["profile"]["name"]
    free, marks = budget["total"] - budget["reserve"] - budget["used"], _marks()
    return [
        title(f"{receipt.id}  profile {profile}  counter {counter}"),
        plain(
            f"{budget['total']} tokens: {budget['used']} used, {budget['framing']} of them framing {marks['framing']}, "
            f"{free} free {marks['free']}, {budget['reserve']} reserve {marks['reserve']}"
        ),
        *_approach(receipt.document["signals"]),
    ]


def _approach(signals: Mapping[str, Any]) -> list[Line]:
    """Which frame was laid and how much the question was taken to ask, where that was judged at all."""
    named = [(name, signals.get(name), signals.get(f"{name}_because")) for name in ("frame", "input")]
    return [plain(f"{name} {value}: {because}") for name, value, because in named if value]


def _marks() -> dict[str, str]:
    return UTF8 if speaks_utf8() else ASCII


def _bar(budget: Mapping[str, Any], columns: int) -> Line:
    """One bar of the total: what each slot used, what is free, what is held in reserve."""
    marks = _marks()
    parts = [(slot["used"], *_swatch(n)) for n, slot in enumerate(_filled(budget))]
    rest = budget["used"] - sum(slot["used"] for slot in budget["slots"])
    parts.append((max(0, rest), marks["framing"], ""))
    parts.append((budget["total"] - budget["reserve"] - budget["used"], marks["free"], "dim"))
    parts.append((budget["reserve"], marks["reserve"], "dim"))
    sizes = proportional([size for size, _, _ in parts], columns)
    return [(mark * size, style) for size, (_, mark, style) in zip(sizes, parts, strict=True)]


def proportional(amounts: Sequence[int], columns: int) -> list[int]:
    """Whole columns for each amount, together exactly `columns`; what is not nothing gets one where there is room."""
    total = sum(amounts)
    if not total:
        return [0] * len(amounts)
    exact = [amount * columns / total for amount in amounts]
    sizes = [max(int(size), 1 if size else 0) for size in exact]
    while sum(sizes) != columns:
        step = 1 if sum(sizes) < columns else -1
        able = [n for n, size in enumerate(sizes) if step > 0 or size > 1] or [n for n, size in enumerate(sizes) if size]
        furthest = max(able, key=lambda n: (step * (exact[n] - sizes[n]), exact[n], -n))
        sizes[furthest] += step
    return sizes


def _filled(budget: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [slot for slot in budget["slots"] if slot["used"]]


def _swatch(n: int) -> tuple[str, str]:
    marks = _marks()["slots"]
    return marks[n % len(marks)], COLORS[n % len(COLORS)]


def _slots(budget: Mapping[str, Any]) -> list[Line]:
    filled = [slot["name"] for slot in _filled(budget)]
    swatches = {name: _swatch(n) for n, name in enumerate(filled)}
    rows = [
        (
            swatches.get(slot["name"], (" ", ""))[0],
            slot["name"],
            str(slot["own"]),
            str(slot["granted"]),
            _flow(slot),
            str(slot["used"]),
            str(slot["items"]),
        )
        for slot in budget["slots"]
    ]
    heads = (" ", "slot", "own", "granted", "flow", "used", "items")
    styles = [swatches.get(slot["name"], (" ", ""))[1] for slot in budget["slots"]]
    return table(heads, rows, left=2, styles=styles)


def _flow(slot: Mapping[str, Any]) -> str:
    """What a slot borrowed from others, or lent to them."""
    if slot["borrowed"]:
        return f"+{slot['borrowed']}"
    return f"-{slot['lent']}" if slot["lent"] else "0"


def _kept(entry: Entry, weights: Mapping[str, float]) -> list[Line]:
    head = f"  {entry['slot']} {entry['level']}, {entry['shown_tokens']} tokens, score {entry['score']:.3f}"
    return [[(entry["id"], "cyan"), (head, "")], [("    = " + parts(entry, weights), "dim")]]


def parts(entry: Entry, weights: Mapping[str, float]) -> str:
    """A score taken apart: `relevance 0.480 + recency 0.100`, the largest first."""
    found = {name: weight * entry["features"].get(name, 0.0) for name, weight in weights.items()}
    shown = [f"{name} {value:.3f}" for name, value in sorted(found.items(), key=lambda pair: -pair[1]) if value]
    return " + ".join(shown) or "0"


def _left_out(entry: Entry) -> list[Line]:
    return [[(entry["id"], "cyan"), (f"  score {entry['score']:.3f}", "")], [(f"    {sentence(entry)}", "dim")]]
