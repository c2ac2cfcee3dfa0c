"""Which items of a context an answer used, and what a person says of them.

Comes in: a context and the answer that a model gave to it. Goes out: `Feedback`, the items that the answer refers to, quotes
or takes its rare words from. It is noted on the context's receipt as ids, never as text, and counted as uses of the records.
No model is asked: an item that was only thought of leaves no trace, so that the figures lean low.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from foveate.code.model import CODE_ID_PREFIXES
from foveate.errors import InputError, NotFound, near
from foveate.receipts.context import Context
from foveate.receipts.receipt import Receipt
from foveate.receipts.refresh import shown_records
from foveate.records.kinds import kind_of
from foveate.store.protocol import Reader
from foveate.text import analysis
from foveate.types import Record

QUOTED = 5
"""Index terms in a row that make a quotation: four in a row still happen by chance in texts on one subject."""

OVERLAP = 0.5
"""Share of an item's own rare words, weighted by rarity, that an answer must say again to count as using it."""

LEAST_SHARED = 2
"""Terms that the overlap must hold: one rare word alone may be the question's subject under another name."""

How = Literal["reference", "quotation", "overlap"]
MARKS = ("useful", "wrong", "outdated")
ADVICE = {
    "useful": "",
    "wrong": "Its outcome is failure now. Correct it with `foveate edit {id}`, or take it out with `foveate retire {id}`.",
    "outdated": "Take it out of use with `foveate retire {id}`, or give it its new text with `foveate edit {id}`.",
}
"""What to do next about a marked record."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What an answer used of a context: by id, and how that is known."""

    context: str
    used: Mapping[str, How]
    unused: tuple[str, ...]
    advice: Mapping[str, str] = field(default_factory=dict)
    """What to do next about a record that was marked wrong or outdated, by its id."""

    @property
    def precision(self) -> float:
        """The share of the items found for the question that the answer used (004: recall precision)."""
        whole = len(self.used) + len(self.unused)
        return len(self.used) / whole if whole else 0.0


def feedback(
    receipt: Receipt, context: str | Context | Receipt, answer: str, state: Reader, code: Mapping[tuple[str, str], Record]
) -> Feedback:
    """Compare an answer with the items that its context found for the question; `code`: what it showed of the code."""
    if not isinstance(answer, str) or not answer.strip():
        raise InputError("The answer is empty; hand in the text that the model gave.")
    found = receipt.found_ids()
    lines = {id: pair for id, pair in shown_records(receipt, state, context).items() if id in found}
    for entry in receipt.items:
        record = code.get((entry.source, entry.id))
        if record is not None and entry.id in found:
            lines.setdefault(record.id, (record, kind_of(record.kind).render(record, entry.level)))
    found = [
        id for id in found if id in lines or not id.startswith(CODE_ID_PREFIXES)
    ]  # of code that is gone nobody can tell
    said = analysis.terms(answer)
    asked = frozenset(receipt.signals.terms)
    rarity = state.idf([term for _, line in lines.values() for term in analysis.terms(line)])
    runs = _runs(said)
    used: dict[str, How] = {}
    for id, (record, line) in lines.items():
        terms = analysis.terms(line)
        if _refers(answer, record):
            used[id] = "reference"
        elif not runs.isdisjoint(_runs(terms)):
            used[id] = "quotation"
        elif _overlaps(frozenset(terms) - asked, frozenset(said), rarity):
            used[id] = "overlap"
    return Feedback(receipt.id, used, tuple(id for id in found if id not in used))


def check_mark(receipt: Receipt, id: str, mark: str) -> str:
    """The advice that follows a mark; an error where there is no such mark, or the context did not show the record."""
    if mark not in MARKS:
        raise InputError(f"There is no mark {mark!r}.{near(mark, MARKS)}")
    if id.startswith(CODE_ID_PREFIXES):
        raise InputError(f"{id!r} is code and not kept: only records can be marked.")
    entry = receipt.candidate(id)
    if entry is None or not entry.is_kept:
        raise NotFound(f"{id!r} is not shown in {receipt.id!r}. `foveate why {id}` says why.")
    return ADVICE[mark].format(id=id)


def _refers(answer: str, record: Record) -> bool:
    """Whether the answer names the record: its id, its key or a file that it is about."""
    names = [record.id, *([record.key] if record.key else []), *record.paths]
    return any(re.search(rf"(?<![\w/-]){re.escape(name)}(?![\w/-])", answer) for name in names if len(name) > 3)


def _runs(terms: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(terms[n : n + QUOTED]) for n in range(len(terms) - QUOTED + 1)}


def _overlaps(own: frozenset[str], said: frozenset[str], rarity: Mapping[str, float]) -> bool:
    """Whether an answer says again what an item brought that the question did not."""
    whole = sum(rarity.get(term, 0.0) for term in own)
    shared = [rarity.get(term, 0.0) for term in own & said]
    return len(shared) >= LEAST_SHARED and whole > 0 and sum(shared) / whole >= OVERLAP
