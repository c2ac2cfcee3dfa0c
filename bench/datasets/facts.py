"""Fact consolidation (MemoryAgentBench): numbered facts, of which later ones replace earlier ones.

A JSON or JSONL file of rows with `context` (lines such as `12. The capital of X is Y.`), `questions` and `answers` (one or
several texts for each question). `metadata.source`, if present, is the question type. Facts are stored one by one in their
order, each dated a minute after the previous one.

The data name answers, not facts. These rules find the fact that a question is about:

- A *frame* is a fact without its answer: `The capital of X is`. Facts with the same frame state the same thing.
- Expected is the last fact with the answer, unless a later fact fills its frame differently, and if the names in its frame
  (or, without names, most of its words) are in the question. Forbidden are the other values of its frame.
- Questions without such a fact are skipped.

If several facts must be chained, the question does not name the subject of the last one, so it is mostly skipped. The rules
do not see that two facts in different words state the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from foveate.eval.evidence import EvidenceText
from foveate.eval.model import Case, Dataset, Document, Subset, Suite
from foveate.eval.reading import MalformedData, find_data_file, load_json, read_jsonl
from foveate.text import analysis

DATA_FORMAT = "rows with context (lines such as `12. text`), questions and answers"
FIRST_DATE = datetime(2024, 1, 1, tzinfo=UTC)
MIN_SHARED_WORDS = 0.5
"""The share of a frame's words that a question must contain if the frame has no names."""
_FACT = re.compile(r"^[ \t]*(\d{1,18})\.[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_NAME = re.compile(r"\b[A-Z][\w'’-]*|\b\d[\w-]*")


@dataclass(frozen=True, slots=True)
class Fact:
    number: int
    text: str

    @property
    def numbered_text(self) -> str:
        """The text with its number, from which a reader knows which of two facts is current."""
        return f"{self.number}. {self.text}"


def files(path: Path) -> list[Path]:
    return [find_data_file(path, "facts", "*.jsonl", "*.json")]


def subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    (file,) = files(path)
    for n, row in enumerate(_rows(file), 1):
        yield Subset(f"context {n}", partial(_load_row, row))


def _rows(file: Path) -> Iterator[Any]:
    if file.suffix == ".jsonl":
        yield from (row for _, row in read_jsonl(file))
        return
    document = load_json(file)
    yield from document if isinstance(document, list) else [document]


def _load_row(row: Mapping[str, Any]) -> Dataset:
    facts = [Fact(int(number), text) for number, text in _FACT.findall(row["context"])]
    if not facts:
        raise MalformedData("the context has no numbered facts")
    if len(row["questions"]) != len(row["answers"]):
        raise MalformedData("questions and answers differ in number")
    return _dataset(sorted(facts, key=lambda fact: fact.number), row)


def _dataset(facts: Sequence[Fact], row: Mapping[str, Any]) -> Dataset:
    documents = [
        Document(
            id=str(fact.number),
            text=fact.numbered_text,
            kind="fact",
            timestamp=(FIRST_DATE + timedelta(minutes=n)).isoformat(),
        )
        for n, fact in enumerate(facts)
    ]
    last_date = documents[-1].timestamp
    source = row.get("metadata", {}).get("source", "") if isinstance(row.get("metadata"), Mapping) else ""
    cases = []
    for n, (question, answers) in enumerate(zip(row["questions"], row["answers"], strict=True), 1):
        match = find_answer(question, [answers] if isinstance(answers, str) else answers, facts)
        if match is not None:
            current, replaced = match
            forbidden = tuple(_evidence(fact) for fact in replaced)
            cases.append(Case(str(n), question, (_evidence(current),), forbidden, question_type=str(source), now=last_date))
    return Dataset(cases, documents, skipped_cases=len(row["questions"]) - len(cases))


def find_answer(question: str, answers: Sequence[str], facts: Sequence[Fact]) -> tuple[Fact, list[Fact]] | None:
    """Return the fact that answers a question and the facts that it replaces, or None if the rules find no fact."""
    for fact in reversed(facts):
        for answer in answers:
            frame = _text_around(fact.text, answer)
            if frame is None or not _is_about(question, frame):
                continue
            same = [other for other in facts if other is not fact and _matches_frame(frame, other.text)]
            others = [other for other in same if not _contains_answer(other.text, answers)]
            if all(other.number < fact.number for other in others):
                return fact, others
    return None


def _text_around(text: str, answer: str) -> tuple[str, str] | None:
    """Return the text before and after the last occurrence of the answer."""
    matches = [*re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.IGNORECASE)] if answer.strip() else []
    return (text[: matches[-1].start()], text[matches[-1].end() :]) if matches else None


def _matches_frame(frame: tuple[str, str], text: str) -> bool:
    before, after = frame
    return len(text) > len(before) + len(after) and text.startswith(before) and text.endswith(after)


def _contains_answer(text: str, answers: Sequence[str]) -> bool:
    return any(_text_around(text, answer) is not None for answer in answers)


def _is_about(question: str, frame: tuple[str, str]) -> bool:
    """Return whether a question and a frame have the same subject."""
    question_terms = frozenset(analysis.terms(question))
    text = " ".join(frame)
    names = frozenset(analysis.terms(" ".join(_NAME.findall(text))))
    if names:
        return names <= question_terms
    terms = frozenset(analysis.terms(text))
    return bool(terms) and len(terms & question_terms) >= MIN_SHARED_WORDS * len(terms)


def _evidence(fact: Fact) -> EvidenceText:
    return EvidenceText(str(fact.number), fact.numbered_text, "fact")


FACTS = Suite(
    name="facts",
    description="Fact consolidation: the latest of several statements is expected, the ones it replaces are forbidden",
    subsets=subsets,
    files=files,
    data_format=DATA_FORMAT,
)
