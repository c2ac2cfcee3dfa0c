"""LongMemEval: a question, and a haystack of talks with an assistant in which its evidence lies.

A file of it is a list of questions, each with a haystack of its own: `haystack_sessions` lists talks as turns of `role` and
`content`, `haystack_dates` and `haystack_session_ids` go with them, `answer_session_ids` names the talks with the evidence,
and `has_answer` marks its turns. Files are large: one question is held at a time.

- The ids of sessions tell the gold from the rest (`answer_...`): they are replaced by their place in the haystack before
  anything is told to a store.
- Abstentions (`..._abs`) have no evidence and are not asked; nor is a question whose evidence is not there.
- A turn is told as it is, however long, and stands only where all of it stands. Where a system shows a turn in fewer words,
  or a part of it, it may well show the answer, but nobody can tell: it does not count, for any system.
- A session stands where one of its marked turns does, or any of its turns where none is marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from foveate.errors import InputError
from foveate.eval.evidence import OneOf, Said
from foveate.eval.model import Case, Entry, Evidence, Scene, Suite, World
from foveate.eval.reading import Misshapen, content, find, moment, reading

FORM = (
    "a list of questions with question_id, question, answer_session_ids, and for each session of the haystack "
    "haystack_session_ids, haystack_dates and haystack_sessions (turns of role and content)"
)
ABSTENTION = "_abs"
PIECE = 1 << 22
"""Characters that are read at once."""
_BETWEEN = re.compile(r"[\s,]*")
_WEEKDAY = re.compile(r"\s*\(\w+\)")
DATES = ("%Y/%m/%d %H:%M", "%Y/%m/%d")


def files(path: Path) -> list[Path]:
    return [find(path, "longmemeval", "longmemeval*.json")]


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    (file,) = files(path)
    for asked in _questions(file):
        yield World(str(asked["question_id"]), partial(_scene, asked))


def _scene(asked: Mapping[str, Any]) -> Scene:
    if str(asked["question_id"]).endswith(ABSTENTION):
        return Scene([], skipped=1)
    gold = frozenset(_gold(asked["answer_session_ids"]))
    entries: list[Entry] = []
    turns: list[Said] = []
    sessions: list[OneOf] = []
    for n, (id, date, said) in enumerate(_haystack(asked), 1):
        when = _when(date)
        told = [(turn, _entry(f"session {n}", m, turn, when)) for m, turn in enumerate(said, 1) if content(turn["content"])]
        entries += [entry for _, entry in told]
        marked = [entry for turn, entry in told if turn.get("has_answer")]
        turns += [Said(entry.id, entry.text) for entry in marked]
        if id in gold:
            sessions.append(OneOf(f"session {n}", tuple(entry.text for entry in marked or [entry for _, entry in told])))
    wanted: tuple[Evidence, ...] = (*turns, *sessions)
    if not wanted:
        return Scene([], skipped=1)
    now = _when(asked.get("question_date"))
    return Scene([Case(str(asked["question_id"]), asked["question"], wanted, type=_type(asked), now=now)], entries)


def _gold(named: Any) -> list[str]:
    if not isinstance(named, list):
        raise Misshapen(f"answer_session_ids must be a list of ids, not {named!r}")
    return named


def _haystack(asked: Mapping[str, Any]) -> Iterator[tuple[str, Any, list[Mapping[str, Any]]]]:
    columns = [asked[name] for name in ("haystack_session_ids", "haystack_dates", "haystack_sessions")]
    if len(set(map(len, columns))) != 1:
        raise Misshapen("haystack_session_ids, haystack_dates and haystack_sessions are not equally many")
    return zip(*columns, strict=True)


def _entry(session: str, n: int, turn: Mapping[str, Any], when: str | None) -> Entry:
    return Entry(id=f"{session}, turn {n}", text=f"{turn['role']}: {content(turn['content'])}", session=session, when=when)


def _type(asked: Mapping[str, Any]) -> str:
    return str(asked.get("question_type", ""))


def _when(text: str | None) -> str | None:
    """`2023/05/20 (Sat) 02:21` as ISO 8601; none where there is no date."""
    found = moment(_WEEKDAY.sub("", text), *DATES) if text else None
    if text and found is None:
        raise Misshapen(f"{text!r} is no date such as 2023/05/20 (Sat) 02:21")
    return found


def _questions(path: Path) -> Iterator[Any]:
    """The items of a list in a file, one after the other: the whole may be larger than the memory."""
    decode = json.JSONDecoder().raw_decode
    with reading(path) as file:
        text = file.read(PIECE).lstrip()
        if not text.startswith("["):
            raise InputError(f"{str(path)!r} is not data of 'longmemeval'. Wanted: {FORM}.")
        at = 1
        while True:
            at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]
            if text.startswith("]", at):
                return
            try:
                item, at = decode(text, at)
            except ValueError as error:
                more = file.read(PIECE)
                if not more:
                    raise InputError(f"{str(path)!r} is not JSON: {error}.") from None
                text, at = text[at:] + more, 0
            else:
                yield item


SUITE = Suite(
    name="longmemeval",
    about="LongMemEval: a haystack of talks for each question; evidence is turns and sessions, without abstentions",
    worlds=worlds,
    files=files,
    form=FORM,
    profile="chat",
    top={"session": (5, 10), "turn": (10,)},
)
