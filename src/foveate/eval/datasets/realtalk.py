"""REALTALK: chats of real people over three weeks, and questions whose evidence is a message or several.

A folder of it holds a file for each chat, `Chat_*.json`, in nearly LoCoMo's form: `session_N` lists messages with their
`dia_id`, `speaker`, `clean_text` and `date_time`, `qa` the questions. A session has the date of its first message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from foveate.errors import NotFound
from foveate.eval.datasets import locomo
from foveate.eval.model import Scene, Suite, World
from foveate.eval.reading import dated, parsed

PATTERN = "Chat_*.json"
FORM = "a chat with session_N (messages of dia_id, speaker, clean_text and date_time) and qa (question, evidence, category)"


def files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    for folder in (path, path / "realtalk", path / "data"):
        if found := sorted(folder.glob(PATTERN), key=_number):
            return found
    raise NotFound(f"{str(path)!r} holds no data of 'realtalk': {PATTERN} is looked for.")


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    for file in files(path):
        yield World(file.stem, partial(_scene, file))


def _number(file: Path) -> tuple[int, str]:
    """`Chat_2_...` comes before `Chat_10_...`."""
    number = file.name.split("_")[1]
    return int(number) if number.isdigit() else 0, file.name


def _scene(file: Path) -> Scene:
    chat = parsed(file)
    talk: dict[str, Any] = {}
    for name, messages in chat.items():
        if name.startswith("session_") and isinstance(messages, list) and messages:
            talk[name] = [{**message, "text": message["clean_text"]} for message in messages]
            talk[f"{name}_date_time"] = dated(messages[0]["date_time"], "%d.%m.%Y, %H:%M:%S", "29.12.2023, 22:42:04")
    asked = [{**one, "evidence": one.get("evidence") if isinstance(one.get("evidence"), list) else []} for one in chat["qa"]]
    return locomo.scene({"conversation": talk, "qa": asked})


SUITE = Suite(
    name="realtalk",
    about="REALTALK: chats of real people; evidence is messages, and the sessions they are of",
    worlds=worlds,
    files=files,
    form=FORM,
    profile=locomo.SUITE.profile,
    top=locomo.SUITE.top,
)
