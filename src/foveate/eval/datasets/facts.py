"""Fact consolidation (MemoryAgentBench): numbered facts of which later ones overrule earlier ones.

A JSON or JSONL of rows with `context` (lines such as `12. The capital of X is Y.`), `questions` and `answers` (a text or
several for each question); `metadata.source`, where it is there, is the type. Facts are told one by one, in order, each
dated a minute after the one before.

The set names answers and no facts. Which fact is meant is found by rule:

- A *frame* is a fact without its answer: `The capital of X is`. Facts of one frame state the same thing.
- Wanted is the last fact that holds the answer, whose frame no later fact fills otherwise, and whose names (or, where it has
  none, most of its words) stand in the question. Unwanted are the other values of its frame: they are overruled.
- A question for which there is no such fact is not asked.

The rule cannot know what lies between question and answer: where several facts must be chained, the question does not
name the subject of the last one, and is mostly not asked. It cannot see that two facts of other wording state the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from foveate.eval.evidence import Said
from foveate.eval.model import Case, Entry, Scene, Suite, World
from foveate.eval.reading import Misshapen, find, lines, parsed
from foveate.text import analysis

FORM = "rows with context (lines such as `12. text`), questions and answers"
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
MOST = 0.5
"""Share of a frame's words that a question must hold, where the frame has no names."""
_FACT = re.compile(r"^[ \t]*(\d{1,18})\.[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_NAME = re.compile(r"\b[A-Z][\w'’-]*|\b\d[\w-]*")


@dataclass(frozen=True, slots=True)
class Fact:
    number: int
    text: str

    @property
    def told(self) -> str:
        """With its number: that is how a reader knows which one holds."""
        return f"{self.number}. {self.text}"


def files(path: Path) -> list[Path]:
    return [find(path, "facts", "*.jsonl", "*.json")]


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    (file,) = files(path)
    for n, row in enumerate(_rows(file), 1):
        yield World(f"context {n}", partial(_loaded, row))


def _rows(file: Path) -> Iterator[Any]:
    if file.suffix == ".jsonl":
        yield from (row for _, row in lines(file))
        return
    document = parsed(file)
    yield from document if isinstance(document, list) else [document]


def _loaded(row: Mapping[str, Any]) -> Scene:
    facts = [Fact(int(number), text) for number, text in _FACT.findall(row["context"])]
    if not facts:
        raise Misshapen("its context holds no numbered facts")
    if len(row["questions"]) != len(row["answers"]):
        raise Misshapen("it has more questions than answers, or fewer")
    return _scene(sorted(facts, key=lambda fact: fact.number), row)


def _scene(facts: Sequence[Fact], row: Mapping[str, Any]) -> Scene:
    entries = [
        Entry(id=str(fact.number), text=fact.told, kind="fact", when=(FIRST + timedelta(minutes=n)).isoformat())
        for n, fact in enumerate(facts)
    ]
    source = row.get("metadata", {}).get("source", "") if isinstance(row.get("metadata"), Mapping) else ""
    cases = []
    for n, (question, answers) in enumerate(zip(row["questions"], row["answers"], strict=True), 1):
        found = meant(question, [answers] if isinstance(answers, str) else answers, facts)
        if found is not None:
            holds, overruled = found
            unwanted = tuple(_piece(fact) for fact in overruled)
            cases.append(Case(str(n), question, (_piece(holds),), unwanted, type=str(source), now=entries[-1].when))
    return Scene(cases, entries, skipped=len(row["questions"]) - len(cases))


def meant(question: str, answers: Sequence[str], facts: Sequence[Fact]) -> tuple[Fact, list[Fact]] | None:
    """The fact that answers, and those that it overrules; none where the rule finds none."""
    for fact in reversed(facts):
        for answer in answers:
            frame = _frame(fact.text, answer)
            if frame is None or not _asks(question, frame):
                continue
            same = [other for other in facts if other is not fact and _fills(frame, other.text)]
            others = [other for other in same if not _holds(other.text, answers)]
            if all(other.number < fact.number for other in others):
                return fact, others
    return None


def _frame(text: str, answer: str) -> tuple[str, str] | None:
    """What stands before and after the answer; the last place, where it stands several times."""
    places = [*re.finditer(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.IGNORECASE)] if answer.strip() else []
    return (text[: places[-1].start()], text[places[-1].end() :]) if places else None


def _fills(frame: tuple[str, str], text: str) -> bool:
    before, after = frame
    return len(text) > len(before) + len(after) and text.startswith(before) and text.endswith(after)


def _holds(text: str, answers: Sequence[str]) -> bool:
    return any(_frame(text, answer) is not None for answer in answers)


def _asks(question: str, frame: tuple[str, str]) -> bool:
    """Whether a question is about what a frame is about."""
    asked = frozenset(analysis.terms(question))
    said = " ".join(frame)
    names = frozenset(analysis.terms(" ".join(_NAME.findall(said))))
    if names:
        return names <= asked
    terms = frozenset(analysis.terms(said))
    return bool(terms) and len(terms & asked) >= MOST * len(terms)


def _piece(fact: Fact) -> Said:
    return Said(str(fact.number), fact.told, "fact")


SUITE = Suite(
    name="facts",
    about="Fact consolidation: the latest of several statements is wanted, the ones that it overrules are not",
    worlds=worlds,
    files=files,
    form=FORM,
)
