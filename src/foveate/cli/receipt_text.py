"""Receipts as text for people: the budget, the reason for each item, the parts of a score, and comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from foveate.cli.render import Line, table, text_line, title
from foveate.receipts.parts import never_candidates
from foveate.types import Budget, Signals, SlotBudget

if TYPE_CHECKING:
    from foveate.receipts.diff import Diff
    from foveate.receipts.parts import CandidateEntry, KeptCandidate, LeftOutCandidate
    from foveate.receipts.receipt import Receipt
    from foveate.receipts.why import Why


def explain(receipt: Receipt, counter: str, not_considered: int) -> list[Line]:
    """Return where the tokens of a context went, and why each item is in it or not.

    `not_considered` is the number of records in its scope that were never candidates.
    """
    weights = receipt.profile.weights
    order = {slot.name: n for n, slot in enumerate(receipt.budget.slots)}
    kept = sorted(receipt.items, key=lambda entry: (order[entry.slot], entry.rank))
    left_out = sorted(receipt.left_out, key=lambda entry: (-entry.score, entry.id))
    lines = [*_head(receipt, counter), *_slots(receipt.budget), [], title(f"Kept ({len(kept)})")]
    lines += [line for entry in kept for line in _kept(entry, weights)]
    lines += [[], title(f"Left out ({len(left_out)})")]
    lines += [line for entry in left_out for line in _left_out(entry)]
    lines += [text_line(f"  {never_candidates(not_considered)}")] if not_considered else []
    return lines


def _head(receipt: Receipt, counter: str) -> list[Line]:
    budget = receipt.budget
    return [
        title(f"{receipt.id}  profile {receipt.profile.name}  counter {counter}"),
        text_line(
            f"{budget.total} tokens: {budget.used} used, {budget.framing} of them framing, {budget.free} free, "
            f"{budget.reserve} reserve"
        ),
        *_approach(receipt.signals),
        [],
    ]


def _approach(signals: Signals) -> list[Line]:
    """Return the frame and the size of the question with their reasons, if the profile chose by them."""
    named = (("frame", signals.frame, signals.frame_reason), ("input", signals.input, signals.input_reason))
    return [text_line(f"{name} {value}: {reason}") for name, value, reason in named if value]


def _slots(budget: Budget) -> list[Line]:
    rows = [
        (slot.name, str(slot.base), str(slot.granted), _flow(slot), str(slot.used), str(slot.items)) for slot in budget.slots
    ]
    return table(("slot", "own", "granted", "flow", "used", "items"), rows)


def _flow(slot: SlotBudget) -> str:
    """Return the tokens that a slot borrowed from others or lent to them."""
    if slot.borrowed:
        return f"+{slot.borrowed}"
    return f"-{slot.lent}" if slot.lent else "0"


def _kept(entry: KeptCandidate, weights: Mapping[str, float]) -> list[Line]:
    head = f"  {entry.slot} {entry.level}, {entry.tokens} tokens, score {entry.score:.3f}"
    parts = " + ".join(f"{name} {part:.3f}" for name, part in entry.score_parts(weights).items() if part > 0)
    return [[(entry.id, "cyan"), (head, "")], [(f"    {parts or 0}", "dim")]]


def _left_out(entry: LeftOutCandidate) -> list[Line]:
    return [[(entry.id, "cyan"), (f"  score {entry.score:.3f}", "")], [(f"    {entry}", "dim")]]


# --- why and diff ------------------------------------------------------------------------------------------------------


def why(found: Why, receipt: Receipt) -> list[Line]:
    """Return why an item is in a context or not, and the parts of its score and of its relevance."""
    lines: list[Line] = [[(found.id, "cyan"), (f" in {found.context}: {found}", "")]]
    if found.candidate is not None:
        lines += [[], *_score_lines(found.candidate, found.score_parts)]
        lines += [[], *_relevance_lines(found.candidate, found.relevance_parts)] if found.relevance_parts else []
        if not found.included:
            lines += [[], *map(text_line, _lacks(found, found.candidate, receipt))]
    return lines


def _score_lines(entry: CandidateEntry, score_parts: Mapping[str, float]) -> list[Line]:
    """Return a table of the parts of a score: what each adds, its share, and the value of its feature."""
    whole = entry.score
    parts = {name: part for name, part in score_parts.items() if part or entry.features.get(name)}
    rows = [
        (name, f"{part:.3f}", f"{part / whole if whole else 0.0:.0%}", f"{entry.features.get(name, 0.0):.3f}")
        for name, part in parts.items()
    ]
    return table(("", "part", "share", "feature"), [("score", f"{whole:.3f}", "", ""), *rows])


def _relevance_lines(entry: CandidateEntry, parts: Mapping[str, float]) -> list[Line]:
    """Return what the relevance is made of: the strength of the match by feature, and whether anything answers the query."""
    features = entry.features
    rows = [(name, f"{part:+.2f}", f"{features[name]:.3f}") for name, part in parts.items()]
    rows.append(("strength", f"{features['strength']:+.2f}", ""))
    rows.append(("answerable", "", f"{features['answerable']:.3f}"))
    return table(("", "adds", "feature"), [("relevance", "", f"{features['relevance']:.3f}"), *rows])


def _lacks(found: Why, entry: CandidateEntry, receipt: Receipt) -> Iterator[str]:
    """Yield the tokens and the relevance that a candidate lacked."""
    granted = {slot.name: slot.granted for slot in receipt.budget.slots}.get(entry.slot, 0)
    if tokens := found.needs_tokens:
        yield f"lacked +{tokens} tokens of {granted + tokens}"
    if short := found.needs_relevance:
        yield f"lacked +{short:.3f} relevance of {entry.features.get('relevance', 0.0) + short:.3f}"


def diff(found: Diff) -> list[Line]:
    """Return what changed between two contexts."""
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
        lines.append(text_line("no item changed"))
    if shared := found.shared_prefix:
        size = f"{shared.tokens} tokens, {shared.share:.0%} of the second"
        lines.append(text_line(f"the first {shared.chars} characters ({size}) are the same"))
    return lines
