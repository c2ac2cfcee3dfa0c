"""The budget of a context, drawn: one stacked bar, a table by slot, what was kept with its score taken apart, what was not.

It reads the context's receipt and nothing else, so that a past context is drawn as the present one.
"""

from __future__ import annotations

from collections.abc import Mapping

from foveate.cli import bars
from foveate.cli.render import Line, plain, table, title
from foveate.receipts.parts import BudgetLedger, KeptCandidate, LeftOutCandidate, SignalsSummary, SlotLedger
from foveate.receipts.receipt import Receipt

SCORE = 12
"""Columns of an item's score: seven features in words fit beside it on two lines of a pipe."""


def explain(receipt: Receipt, counter: str, columns: int) -> list[Line]:
    """Everything that a person may want to know about a context's budget."""
    weights = receipt.profile.weights
    order = {slot.name: n for n, slot in enumerate(receipt.budget.slots)}
    kept = sorted(receipt.items, key=lambda entry: (order[entry.slot], entry.rank))
    left_out = sorted(receipt.left_out, key=lambda entry: (-entry.score, entry.id))
    lines = [*spent(receipt, counter, columns), [], title(f"Kept ({len(kept)})")]
    most = max((entry.score for entry in kept), default=0.0)
    lines += [line for entry in kept for line in _kept(entry, weights, most, columns)]
    lines += [[], title(f"Left out ({len(left_out)})")]
    lines += [line for entry in left_out for line in _left_out(entry)]
    return lines


def spent(receipt: Receipt, counter: str, columns: int) -> list[Line]:
    """Where the tokens went: the bar and its table."""
    budget = receipt.budget
    return [*_head(receipt, counter), _bar(budget, columns), [], *_slots(budget)]


def _head(receipt: Receipt, counter: str) -> list[Line]:
    budget, marks = receipt.budget, bars.marks()
    return [
        title(f"{receipt.id}  profile {receipt.profile.name}  counter {counter}"),
        plain(
            f"{budget.total} tokens: {budget.used} used, {budget.framing} of them framing {marks['framing']}, "
            f"{budget.free} free {marks['free']}, {budget.reserve} reserve {marks['reserve']}"
        ),
        *_approach(receipt.signals),
    ]


def _approach(signals: SignalsSummary) -> list[Line]:
    """Which frame was laid and how much the question was taken to ask, where that was judged at all."""
    named = (("frame", signals.frame, signals.frame_reason), ("input", signals.input, signals.input_reason))
    return [plain(f"{name} {value}: {because}") for name, value, because in named if value]


def _bar(budget: BudgetLedger, columns: int) -> Line:
    """One bar of the total: what each slot used, what is free, what is held in reserve."""
    marks = bars.marks()
    parts: list[tuple[float, str, str]] = [(slot.used, *bars.swatch(n)) for n, slot in enumerate(_filled(budget))]
    rest = budget.used - sum(slot.used for slot in budget.slots)
    parts.append((max(0, rest), marks["framing"], ""))
    parts.append((budget.free, marks["free"], "dim"))
    parts.append((budget.reserve, marks["reserve"], "dim"))
    return bars.stacked(parts, columns)


def _filled(budget: BudgetLedger) -> list[SlotLedger]:
    return [slot for slot in budget.slots if slot.used]


def _slots(budget: BudgetLedger) -> list[Line]:
    filled = [slot.name for slot in _filled(budget)]
    swatches = {name: bars.swatch(n) for n, name in enumerate(filled)}
    rows = [
        (
            swatches.get(slot.name, (" ", ""))[0],
            slot.name,
            str(slot.base),
            str(slot.granted),
            _flow(slot),
            str(slot.used),
            str(slot.items),
        )
        for slot in budget.slots
    ]
    heads = (" ", "slot", "own", "granted", "flow", "used", "items")
    styles = [swatches.get(slot.name, (" ", ""))[1] for slot in budget.slots]
    return table(heads, rows, left=2, styles=styles)


def _flow(slot: SlotLedger) -> str:
    """What a slot borrowed from others, or lent to them."""
    if slot.borrowed:
        return f"+{slot.borrowed}"
    return f"-{slot.lent}" if slot.lent else "0"


def _kept(entry: KeptCandidate, weights: Mapping[str, float], most: float, columns: int) -> list[Line]:
    head = f"  {entry.slot} {entry.level}, {entry.tokens} tokens, score {entry.score:.3f}"
    parts = entry.score_parts(weights)
    first, *rest = bars.words(parts, columns - SCORE - 6)
    drawn: Line = [("    ", ""), *bars.score(parts, most, SCORE), ("  ", ""), *first]
    return [[(entry.id, "cyan"), (head, "")], drawn, *([(" " * (SCORE + 6), ""), *line] for line in rest)]


def _left_out(entry: LeftOutCandidate) -> list[Line]:
    return [[(entry.id, "cyan"), (f"  score {entry.score:.3f}", "")], [(f"    {entry}", "dim")]]
