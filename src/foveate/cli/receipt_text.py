"""Receipts as text for people: the budget as a bar and a table, scores as bars of their parts, and comparisons.

Neighbours in a bar differ in colour and, without colour, in their mark. A terminal without UTF-8 gets ASCII. Without room
(0 columns or fewer) there is no bar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from foveate.cli.render import Line, Piece, supports_utf8, table, text_line, title
from foveate.types import Budget, Signals, SlotBudget

if TYPE_CHECKING:
    from foveate.receipts.diff import Diff, SharedPrefix
    from foveate.receipts.parts import CandidateEntry, KeptCandidate, LeftOutCandidate
    from foveate.receipts.receipt import Receipt
    from foveate.receipts.why import Why

MAX_COLUMNS = 100
"""Columns of a drawing. Longer bars say no more."""

SCORE_COLUMNS = 12
"""Columns of the bar of an item's score. The words of seven features then fit on two lines of 80 columns."""


def explain(receipt: Receipt, counter: str, columns: int) -> list[Line]:
    """Return where the tokens of a context went, and why each item is in it or not."""
    weights = receipt.profile.weights
    order = {slot.name: n for n, slot in enumerate(receipt.budget.slots)}
    kept = sorted(receipt.items, key=lambda entry: (order[entry.slot], entry.rank))
    left_out = sorted(receipt.left_out, key=lambda entry: (-entry.score, entry.id))
    lines = [*summarize_budget(receipt, counter, columns), [], title(f"Kept ({len(kept)})")]
    most = max((entry.score for entry in kept), default=0.0)
    lines += [line for entry in kept for line in _kept(entry, weights, most, columns)]
    lines += [[], title(f"Left out ({len(left_out)})")]
    lines += [line for entry in left_out for line in _left_out(entry)]
    return lines


def summarize_budget(receipt: Receipt, counter: str, columns: int) -> list[Line]:
    """Return where the tokens of a context went: in total, as a bar, and for each slot."""
    return [*_head(receipt, counter), _bar(receipt.budget, columns), [], *_slots(receipt.budget)]


def _head(receipt: Receipt, counter: str) -> list[Line]:
    budget, marks = receipt.budget, _marks()
    return [
        title(f"{receipt.id}  profile {receipt.profile.name}  counter {counter}"),
        text_line(
            f"{budget.total} tokens: {budget.used} used, {budget.framing} of them framing {marks['framing']}, "
            f"{budget.free} free {marks['free']}, {budget.reserve} reserve {marks['reserve']}"
        ),
        *_approach(receipt.signals),
    ]


def _approach(signals: Signals) -> list[Line]:
    """Return the frame and the size of the question with their reasons, if the profile chose by them."""
    named = (("frame", signals.frame, signals.frame_reason), ("input", signals.input, signals.input_reason))
    return [text_line(f"{name} {value}: {reason}") for name, value, reason in named if value]


def _bar(budget: Budget, columns: int) -> Line:
    """Return the total as one bar: what each slot used, what is free, and the reserve."""
    marks = _marks()
    parts: list[tuple[float, str, str]] = [(slot.used, *_swatch(n)) for n, slot in enumerate(_filled(budget))]
    rest = budget.used - sum(slot.used for slot in budget.slots)
    parts.append((max(0, rest), marks["framing"], ""))
    parts.append((budget.free, marks["free"], "dim"))
    parts.append((budget.reserve, marks["reserve"], "dim"))
    return _stacked(parts, columns)


def _filled(budget: Budget) -> list[SlotBudget]:
    return [slot for slot in budget.slots if slot.used]


def _slots(budget: Budget) -> list[Line]:
    filled = [slot.name for slot in _filled(budget)]
    swatches = {name: _swatch(n) for n, name in enumerate(filled)}
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


def _flow(slot: SlotBudget) -> str:
    """Return the tokens that a slot borrowed from others or lent to them."""
    if slot.borrowed:
        return f"+{slot.borrowed}"
    return f"-{slot.lent}" if slot.lent else "0"


def _kept(entry: KeptCandidate, weights: Mapping[str, float], most: float, columns: int) -> list[Line]:
    head = f"  {entry.slot} {entry.level}, {entry.tokens} tokens, score {entry.score:.3f}"
    parts = entry.score_parts(weights)
    first, *rest = _score_words(parts, columns - SCORE_COLUMNS - 6)
    drawn: Line = [("    ", ""), *_score_bar(parts, most, SCORE_COLUMNS), ("  ", ""), *first]
    return [[(entry.id, "cyan"), (head, "")], drawn, *([(" " * (SCORE_COLUMNS + 6), ""), *line] for line in rest)]


def _left_out(entry: LeftOutCandidate) -> list[Line]:
    return [[(entry.id, "cyan"), (f"  score {entry.score:.3f}", "")], [(f"    {entry}", "dim")]]


# --- why and diff ------------------------------------------------------------------------------------------------------


def why(found: Why, receipt: Receipt, columns: int) -> list[Line]:
    """Return why an item is in a context or not, and its score as bars."""
    columns = min(MAX_COLUMNS, columns)
    lines: list[Line] = [[(found.id, "cyan"), (f" in {found.context}: {found}", "")]]
    if found.candidate is not None:
        lines += [[], *_score_lines(found.candidate, found.score_parts, columns)]
        if not found.included:
            lines += _lack_lines(found, found.candidate, receipt, columns)
    return lines


def _score_lines(entry: CandidateEntry, score_parts: Mapping[str, float], columns: int) -> list[Line]:
    """Return the score as one bar of its parts, and below it a line for each: what it adds, its share, and its value."""
    whole = entry.score
    parts = {name: part for name, part in score_parts.items() if part or entry.features.get(name)}
    size = max(len(name) for name in ("score", *parts))
    heads = f"  {'':{size}}  {'part':>5}  {'share':>5}  {'feature':>7}"
    bar = _score_bar(parts, whole, columns - len(heads) - 2)
    drawn = dict(zip((name for name, _, _ in _score_pieces(parts)), bar, strict=False))
    lines: list[Line] = [[(heads, "dim")], [(f"  {'score':{size}}  {whole:.3f}  {'':5}  {'':7}  ", "bold"), *bar]]
    for name, part in parts.items():
        share = part / whole if whole else 0.0
        text = f"  {name:{size}}  {part:.3f}  {share:5.0%}  {entry.features.get(name, 0.0):7.3f}  "
        lines.append([(text, "" if part else "dim"), drawn.get(name, ("", ""))])
    return lines


def _lack_lines(found: Why, entry: CandidateEntry, receipt: Receipt, columns: int) -> list[Line]:
    """Return what a candidate lacked as bars, beside what it had."""
    granted = {slot.name: slot.granted for slot in receipt.budget.slots}.get(entry.slot, 0)
    lacks: list[tuple[float, float, str]] = []
    if tokens := found.needs_tokens:
        lacks.append((granted, tokens, f"lacked +{tokens} tokens of {granted + tokens}"))
    if short := found.needs_relevance:
        relevance = entry.features.get("relevance", 0.0)
        lacks.append((relevance, short, f"lacked +{short:.3f} relevance of {relevance + short:.3f}"))
    return [[], *([(f"  {text}  ", ""), *_lack_bar(has, lack, columns - len(text) - 4)] for has, lack, text in lacks)]


def diff(found: Diff, columns: int) -> list[Line]:
    """Return what changed between two contexts."""
    columns = min(MAX_COLUMNS, columns)
    entries = (("+", "green", found.added), ("-", "red", found.withdrawn))
    steps = (("moved", found.place_changes), ("level", found.level_changes), ("version", found.version_changes))
    lines: list[Line] = [[(f"{found.before} -> {found.after}: {found.tokens:+d} tokens", "bold")]]
    lines += [
        [(f"{mark} {entry.id}", color), (f"  {entry.slot} {entry.level}, {entry.tokens} tokens", "")]
        for mark, color, group in entries
        for entry in group
    ]
    lines += [
        [(f"~ {step.id}", "yellow"), (f"  {what} {step.before} -> {step.after}", "")]
        for what, group in steps
        for step in group
    ]
    if len(lines) == 1:
        lines.append([("no item changed", "")])
    return [*lines, *_prefix_lines(found.shared_prefix, columns)] if found.shared_prefix else lines


def _prefix_lines(shared: SharedPrefix, columns: int) -> list[Line]:
    size = f"{shared.tokens} tokens, {shared.share:.0%} of the second"
    bar = _lack_bar(shared.share, 1 - shared.share, columns)
    return [bar, [(f"the first {shared.chars} characters ({size}) are the same", "")]]


# --- bars --------------------------------------------------------------------------------------------------------------

COLORS = ("cyan", "green", "yellow", "magenta", "blue", "red")
UTF8 = {"parts": "█▓", "framing": "▚", "free": "░", "reserve": "▒"}
ASCII = {"parts": "#=", "framing": "+", "free": ".", "reserve": "-"}


def _marks() -> dict[str, str]:
    return UTF8 if supports_utf8() else ASCII


def _swatch(n: int) -> Piece:
    """Return the mark and the colour of the n-th part."""
    parts = _marks()["parts"]
    return parts[n % len(parts)], COLORS[n % len(COLORS)]


def _stacked(parts: Iterable[tuple[float, str, str]], columns: int) -> Line:
    """Return one bar: amounts side by side, each with its mark and its style."""
    drawn = list(parts)
    sizes = proportional([amount for amount, _, _ in drawn], max(0, columns))
    return [(mark * size, style) for size, (_, mark, style) in zip(sizes, drawn, strict=True)]


def proportional(amounts: Sequence[float], columns: int) -> list[int]:
    """Return whole columns for each amount, together exactly `columns`. An amount above 0 gets one if there is room."""
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


def _length(amount: float, most: float, columns: int) -> int:
    """Return the columns of an amount if `most` has all of them. An amount above 0 has at least one."""
    return min(columns, max(1, round(amount * columns / most))) if amount > 0 and most > 0 else 0


# --- scores ----------------------------------------------------------------------------------------------------------


def _score_pieces(parts: Mapping[str, float]) -> list[tuple[str, float, Piece]]:
    """Return the parts above 0, each with its mark and colour. A feature has the same colour in every score."""
    shown = [(n, name, part) for n, (name, part) in enumerate(parts.items()) if part > 0]
    return [(name, part, (_swatch(place)[0], _swatch(n)[1])) for place, (n, name, part) in enumerate(shown)]


def _score_bar(parts: Mapping[str, float], most: float, columns: int) -> Line:
    """Return a score as a bar of its parts. A score of `most` fills all columns."""
    drawn, columns = [(part, *look) for _, part, look in _score_pieces(parts)], max(0, columns)
    whole = max(_length(sum(parts.values()), most, columns), min(len(drawn), columns))
    return [*_stacked(drawn, whole), (" " * (columns - whole), "")]


def _score_words(parts: Mapping[str, float], columns: int) -> list[Line]:
    """Return `relevance 0.480 + recency 0.100` in lines, each part in the colour of its piece of the bar."""
    lines: list[Line] = [[]]
    room = columns
    for n, (name, part, (_, color)) in enumerate(_score_pieces(parts)):
        text = f"{name} {part:.3f}"
        if n and len(text) + 3 > room:
            lines.append([("+ ", "dim")])
            room = columns - 2
        elif n:
            lines[-1].append((" + ", "dim"))
            room -= 3
        lines[-1].append((text, color))
        room -= len(text)
    return lines if lines[0] else [[("0", "dim")]]


def _lack_bar(has: float, lacks: float, columns: int) -> Line:
    """Return a bar of what there is and what is missing."""
    return _stacked([(has, *_swatch(0)), (lacks, _marks()["free"], "dim")], columns)
