"""Real text to measure on: LoCoMo's turns from a path that the user gives, and the docs of installed packages."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

DATA = Path(os.environ.get("FOVEATE_BENCH_DATA", Path(__file__).parents[2] / "shared" / "data"))
_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    speaker: str
    text: str
    when: str
    session: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def locomo() -> list[Conversation]:
    """The conversations of LoCoMo that are there; none where the data is not."""
    path = DATA / "locomo" / "conversations_1_to_5.json"
    if not path.is_file():
        return []
    return [_conversation(sample) for sample in json.loads(path.read_text("utf-8"))]


def _conversation(sample: dict) -> Conversation:
    talk = sample["conversation"]
    turns = tuple(
        Turn(_dia(turn["dia_id"]), turn["speaker"], turn["text"], _when(talk[f"{name}_date_time"]), name)
        for name, session in talk.items()
        if isinstance(session, list)
        for turn in session
    )
    known = {turn.id for turn in turns}
    questions = []
    for qa in sample["qa"]:
        evidence = tuple(dict.fromkeys(f"D{a}:{int(b)}" for e in qa["evidence"] for a, b in _EVIDENCE.findall(e)))
        if evidence and set(evidence) <= known:
            questions.append(Question(qa["question"], qa["category"], evidence))
    return Conversation(turns, tuple(questions))


def _dia(text: str) -> str:
    (a, b), *_ = _EVIDENCE.findall(text)
    return f"D{a}:{int(b)}"


def _when(text: str) -> str:
    """`1:56 pm on 8 May, 2023` as ISO 8601."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).isoformat()


def docs() -> Iterator[str]:
    """Paragraphs of the docstrings of the standard library and of every installed package."""
    roots = dict.fromkeys((sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")))
    for root in roots:
        for path in sorted(Path(root).rglob("*.py")):
            try:
                tree = ast.parse(path.read_text("utf-8"))
            except (SyntaxError, ValueError, OSError):
                continue
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                    for part in (ast.get_docstring(node) or "").split("\n\n"):
                        text = " ".join(part.split())
                        if 60 < len(text) < 600 and text.isprintable():
                            yield text


def texts(count: int, seed: int = 1) -> list[str]:
    """So many different texts: dialogue and docs first, then new pairings of their halves (real words, unreal topics)."""
    chance = random.Random(seed)
    turns = [f"{turn.speaker}: {turn.text}" for talk in locomo() for turn in talk.turns]
    found = list(dict.fromkeys([*turns, *docs()]))
    chance.shuffle(found)
    natural = len(found)
    seen = set(found)
    while len(found) < count:
        text = f"{found[chance.randrange(natural)][:200]} {found[chance.randrange(natural)][:150]}"
        if text not in seen:
            seen.add(text)
            found.append(text)
    return found[:count]


def queries(corpus: list[str], count: int, seed: int = 7) -> list[str]:
    """Questions of 3 to 6 words, each drawn from one known text."""
    from foveate import lexical

    chance = random.Random(seed)
    out = []
    while len(out) < count:
        words = list(dict.fromkeys(lexical.words(chance.choice(corpus))))
        if len(words) >= 6:
            chance.shuffle(words)
            out.append(" ".join(words[: chance.choice((3, 4, 5, 6))]))
    return out
