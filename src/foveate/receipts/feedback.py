"""Find the items of a context that an answer used, and check the verdicts of people on items.

An item counts as used if the answer refers to it, quotes it or repeats its rare words. No model is asked, so an item that
influenced an answer without leaving words in it is not found, and the figures are a lower bound. Receipts store the ids of
used items, never the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from foveate.code.records import CODE_ID_PREFIXES
from foveate.errors import InputError, NotFound, near
from foveate.receipts.context import Context
from foveate.receipts.receipt import Receipt
from foveate.receipts.refresh import shown_records
from foveate.records.kinds import kind_of
from foveate.store.protocol import Reader
from foveate.text import analysis
from foveate.types import Record

MIN_QUOTED_TERMS = 5
"""Index terms in a row that count as a quotation. Four in a row still occur by chance in texts on one subject."""

MIN_OVERLAP_SHARE = 0.5
"""Share of an item's own rare words, weighted by idf, that an answer must repeat to count as using the item."""

MIN_SHARED_TERMS = 2
"""Terms that the overlap must have. A single rare word can be the subject of the question under another name."""

UsageEvidence = Literal["reference", "quotation", "overlap"]
"""How it is known that an answer used an item."""

Mark = Literal["useful", "wrong", "outdated"]
MARKS: tuple[Mark, ...] = ("useful", "wrong", "outdated")

ADVICE: Mapping[Mark, str] = {
    "useful": "",
    "wrong": "Its outcome is failure now. Correct its text with `foveate edit {id}`, or retire it with "
    "`foveate edit {id} --retire`.",
    "outdated": "Retire it with `foveate edit {id} --retire`, or give it its new text with `foveate edit {id}`.",
}
"""Mark -> the next step that is possible."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """The items of a context that an answer used and did not use."""

    context: str
    used: Mapping[str, UsageEvidence]
    """Ids of the used items, each with its evidence."""
    unused: tuple[str, ...]
    advice: Mapping[str, str] = field(default_factory=dict)
    """The next step for a record that was marked as wrong or outdated, by its id."""

    @property
    def precision(self) -> float:
        """Return the share of the items found for the query that the answer used (004: recall precision)."""
        total = len(self.used) + len(self.unused)
        return len(self.used) / total if total else 0.0


def find_used_items(
    receipt: Receipt,
    context: str | Context | Receipt,
    answer: str,
    reader: Reader,
    external: Mapping[tuple[str, str], Record],
) -> Feedback:
    """Compare an answer with the items that its context found for the query.

    `external` has the code and the records of other memories that the context considered, by source and id.
    """
    if not isinstance(answer, str) or not answer.strip():
        raise InputError("The answer is empty. Pass the text that the model gave.")
    found = receipt.found_ids()
    lines = {id: pair for id, pair in shown_records(receipt, reader, context).items() if id in found}
    for entry in receipt.items:
        record = external.get((entry.source, entry.id))
        if record is not None and entry.id in found:
            lines.setdefault(record.id, (record, kind_of(record.kind).render(record, entry.level, entry.passage)))
    # Code that no longer exists cannot be compared, so it counts neither as used nor as unused.
    found = [id for id in found if id in lines or not id.startswith(CODE_ID_PREFIXES)]
    answer_terms = analysis.terms(answer)
    answer_runs = _term_runs(answer_terms)
    query_terms = frozenset(receipt.signals.terms)
    idf = reader.idf([term for _, line in lines.values() for term in analysis.terms(line)])
    used: dict[str, UsageEvidence] = {}
    for id, (record, line) in lines.items():
        terms = analysis.terms(line)
        if _refers_to(answer, record):
            used[id] = "reference"
        elif not answer_runs.isdisjoint(_term_runs(terms)):
            used[id] = "quotation"
        elif _repeats_rare_terms(frozenset(terms) - query_terms, frozenset(answer_terms), idf):
            used[id] = "overlap"
    return Feedback(receipt.id, used, tuple(id for id in found if id not in used))


def refuse_two_marks(ids_by_mark: Mapping[str, Sequence[str]]) -> None:
    """Raise if a record has two marks."""
    marks: dict[str, str] = {}
    for mark, ids in ids_by_mark.items():
        for id in ids:
            if marks.setdefault(id, mark) != mark:
                raise InputError(f"{id!r} is marked as {marks[id]} and as {mark}. Pass one of them.")


def check_mark(id: str, mark: str, receipt: Receipt | None = None) -> None:
    """Raise if a record cannot be marked, or if the context of the receipt does not show it."""
    if mark not in MARKS:
        raise InputError(f"A mark must be one of {', '.join(MARKS)}, got {mark!r}.{near(mark, MARKS)}")
    if id.startswith(CODE_ID_PREFIXES):
        raise InputError(f"{id!r} is code, which is not stored; only records can be marked.")
    if receipt is None:
        return
    entry = receipt.candidate(id)
    if entry is None or not entry.is_kept:
        raise NotFound(f"{id!r} is not shown in {receipt.id!r}. `foveate why {id}` explains why.")


def advice_on(id: str, mark: Mark) -> str:
    """Return the next step for a marked record; empty if there is none."""
    return ADVICE[mark].format(id=id)


def _refers_to(answer: str, record: Record) -> bool:
    """Return whether the answer names the id of a record, its key or one of its files."""
    names = [record.id, *([record.key] if record.key else []), *record.paths]
    # Shorter names occur in any text. A name inside a longer one, such as a.py in data.py, is another name.
    return any(re.search(rf"(?<![\w/-]){re.escape(name)}(?![\w/-])", answer) for name in names if len(name) > 3)


def _term_runs(terms: Sequence[str]) -> set[tuple[str, ...]]:
    """Return all runs of MIN_QUOTED_TERMS terms."""
    return {tuple(terms[n : n + MIN_QUOTED_TERMS]) for n in range(len(terms) - MIN_QUOTED_TERMS + 1)}


def _repeats_rare_terms(item_terms: frozenset[str], answer_terms: frozenset[str], idf: Mapping[str, float]) -> bool:
    """Return whether an answer repeats enough of the terms that the item brought and the query did not have."""
    total = sum(idf.get(term, 0.0) for term in item_terms)
    shared = [idf.get(term, 0.0) for term in item_terms & answer_terms]
    return len(shared) >= MIN_SHARED_TERMS and total > 0 and sum(shared) / total >= MIN_OVERLAP_SHARE
