"""BEAM: very long talks with an assistant, and questions of ten types about each.

A chat is a folder with `chat.json`, a list of batches with `turns` (lists of messages: `role`, `id`, `content` and at times
a `time_anchor`), and `probing_questions.json`, which lists questions by type, each with its `source_chat_ids`: a list, or
lists by name. The path is the folder of one chat, of several, or of sizes that hold chats.

- User messages end in a marker of the plan that they were written from (`->-> 1,2`): it is not told.
- Questions without sources (abstentions), or with sources that are not there or there twice, are not asked.
- A message is told as it is and stands only where all of it stands, as in the other suites.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from foveate.errors import NotFound
from foveate.eval.evidence import Said
from foveate.eval.model import Case, Entry, Scene, Suite, World
from foveate.eval.reading import content, moment, parsed, shaped

CHAT, QUESTIONS = "chat.json", "probing_questions.json"
FORM = f"{CHAT}: batches with turns of role, id and content; {QUESTIONS}: questions by type"
DATES = ("%B-%d-%Y", "%B %d, %Y")
_MARKER = re.compile(r"\s*->->[^\n]*\s*\Z")


def files(path: Path) -> list[Path]:
    return [file for folder in _chats(path).values() for file in (folder / CHAT, _questions(folder))]


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    for name, folder in _chats(path).items():
        yield World(name, partial(_scene, folder))


def _chats(path: Path) -> dict[str, Path]:
    """The folders of chats, by what tells one from the others: wherever the path begins, the names are the same."""
    chats = [chat.parent.absolute() for chat in path.rglob(CHAT)] if path.is_dir() else []
    if not chats:
        raise NotFound(f"{str(path)!r} holds no data of 'beam': a folder with {CHAT} and {QUESTIONS} is looked for.")
    above = os.path.commonpath(chats) if len(chats) > 1 else chats[0].parent
    named = {str(chat.relative_to(above)): chat for chat in chats}
    return {name: named[name] for name in sorted(named, key=_natural)}


def _questions(folder: Path) -> Path:
    for file in (folder / QUESTIONS, folder / "probing_questions" / QUESTIONS):
        if file.exists():
            return file
    raise NotFound(f"{str(folder)!r} has no {QUESTIONS}; each chat needs its questions.")


def _scene(folder: Path) -> Scene:
    questions = _questions(folder)
    with shaped(repr(str(folder / CHAT)), FORM):
        entries = list(_distinct(_entries(parsed(folder / CHAT))))
        last = max((entry.when or "" for entry in entries), default="") or None
    texts = {entry.id: entry.text for entry in entries}
    cases = []
    skipped = 0
    with shaped(repr(str(questions)), FORM):
        for type, asked in parsed(questions).items():
            for n, question in enumerate(asked, 1):
                needed = list(dict.fromkeys(_ids(question.get("source_chat_ids"))))
                if needed and all(id in texts for id in needed):
                    wanted = tuple(Said(id, texts[id]) for id in needed)
                    cases.append(Case(f"{type} {n}", question["question"], wanted, type=type, now=last))
                else:
                    skipped += 1
    return Scene(cases, entries, skipped=skipped)


def _entries(chat: list[Mapping[str, Any]]) -> list[Entry]:
    """The messages. An anchor in time holds for what follows it, the first one also for what stands before."""
    messages = [(str(batch["batch_number"]), message) for batch in chat for talk in batch["turns"] for message in talk]
    anchors = [moment(message.get("time_anchor"), *DATES) for _, message in messages]
    when = next(filter(None, anchors), None)
    entries = []
    for (batch, message), anchor in zip(messages, anchors, strict=True):
        when = anchor or when
        said = _MARKER.sub("", content(message["content"]))
        if said.strip():
            text = f"{message['role']}: {said}"
            entries.append(Entry(id=str(message["id"]), text=text, session=f"batch {batch}", when=when))
    return entries


def _distinct(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Messages with the same id are told under ids that no question names: nobody can tell which of them is meant."""
    times = Counter(entry.id for entry in entries)
    for n, entry in enumerate(entries, 1):
        yield entry if times[entry.id] == 1 else replace(entry, id=f"{entry.id} (message {n})")


def _ids(sources: Any) -> Iterator[str]:
    """Sources in whatever lists they stand."""
    if isinstance(sources, Mapping):
        sources = list(sources.values())
    if isinstance(sources, list):
        for part in sources:
            yield from _ids(part)
    elif sources is not None:
        yield str(sources)


def _natural(name: str) -> list[tuple[int, str]]:
    """2 before 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


SUITE = Suite(
    name="beam",
    about="BEAM: very long chats with questions of ten types; evidence is messages, without abstentions",
    worlds=worlds,
    files=files,
    form=FORM,
    profile="chat",
    top={"turn": (10,)},
)
