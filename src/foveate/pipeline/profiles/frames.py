"""Choose the frame of a question, with the reason.

Triggers are data: beginnings of a question (`forms`), words in it (`words`) and its intent (`intents`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from foveate.errors import ProfileError, near
from foveate.pipeline.profiles.files import frame_files
from foveate.pipeline.profiles.settings import check_frame
from foveate.types import Frame, Request

NO_FRAME = "none"
"""Name with which a call switches frames off."""

FORM_POINTS, WORD_POINTS, INTENT_POINTS = 4, 2, 1
"""The beginning of a question outweighs a word and an intent together: "Should we fix it?" asks for a decision."""
MAX_TRIGGER_WORDS = 2
"""More trigger words of one frame give no points, because they repeat the same hint."""

CONVERSATION, TASK = "conversation", "task"
"""Frames of a question without a trigger: in general, and for a task."""

MAX_QUESTION_CHARS = 2000
"""Characters of a question that are read. The request itself is at the beginning."""


def choose_frame_for(
    request: Request, intent: str, dirs: Sequence[Path] = (), *, has_own: bool = False
) -> tuple[str, Frame, str]:
    """Return the name of the frame, the frame, and the reason. `has_own`: the caller passes an approach as text."""
    if request.frame == NO_FRAME:
        return "", Frame(), "the call wants none"
    if request.frame is None and has_own:
        return "", Frame(), "the call passes its own"
    found = load_frames(dirs)
    if request.frame is not None:
        if request.frame not in found:
            raise ProfileError(f"Frame {request.frame!r} does not exist.{near(str(request.frame), [*found, NO_FRAME])}")
        return request.frame, found[request.frame], "the call names it"
    scores = {name: trigger_score(frame.triggers, request.query, intent) for name, frame in found.items()}
    best = min(found, key=lambda name: (-scores[name][0], found[name].order, name))
    if scores[best][0]:
        return best, found[best], scores[best][1]
    default = TASK if request.task is not None else CONVERSATION
    return default, found[default], "the request is for a task" if default == TASK else "no trigger of another frame matches"


def load_frames(dirs: Sequence[Path] = ()) -> dict[str, Frame]:
    """Return all frames by name. A user's frame is merged over the built-in one of its name."""
    tables: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for _, frames_of_file in frame_files(dirs):
        for name, table in frames_of_file.items():
            checked = check_frame(f"frames.{name}", table)
            problems += checked.problems
            below, frame = tables.get(name, {}), checked.layer["frame"]
            tables[name] = {**below, **frame, "triggers": {**below.get("triggers", {}), **frame.get("triggers", {})}}
    if problems:
        raise ProfileError("\n".join(problems))
    return {name: build_frame(table) for name, table in tables.items()}


def build_frame(table: Mapping[str, Any]) -> Frame:
    """Return the settings of a frame as a value."""
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Frame(**settings | {"triggers": {key: tuple(texts) for key, texts in table.get("triggers", {}).items()}})


def trigger_score(triggers: Mapping[str, Sequence[str]], query: str, intent: str) -> tuple[int, str]:
    """Return the points of a frame for a question, and the triggers that match."""
    text = " ".join(query[:MAX_QUESTION_CHARS].lower().replace("’", "'").split())
    points, reasons = 0, []
    form = _pattern(tuple(triggers.get("forms", ())), opening=True).search(text)
    if form:
        points += FORM_POINTS
        reasons.append(f"it begins with {form[1]!r}")
    words = list(dict.fromkeys(match[1] for match in _pattern(tuple(triggers.get("words", ()))).finditer(text)))
    if words:
        points += WORD_POINTS * min(len(words), MAX_TRIGGER_WORDS)
        reasons.append(f"it contains {' and '.join(map(repr, words[:MAX_TRIGGER_WORDS]))}")
    if intent in triggers.get("intents", ()):
        points += INTENT_POINTS
        reasons.append(f"its intent is {intent}")
    return points, ", ".join(reasons)


@lru_cache(maxsize=256)
def _pattern(phrases: tuple[str, ...], *, opening: bool = False) -> re.Pattern[str]:
    """Return a pattern for any of these phrases as whole words, with the endings of a verb or a plural.

    `error-free` does not match `error`. With `opening`, a phrase matches only at the beginning of a sentence or clause.
    """
    if not phrases:
        return re.compile(r"(?!)")
    longest_first = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    either = "|".join(re.escape(phrase.lower()) for phrase in longest_first)
    before = r"(?:^|[.!?;:,] )(?:(?:so|and|but|okay|ok|well|now|please)[, ]+)*" if opening else r"(?<![\w-])"
    return re.compile(rf"{before}({either})(?:s|es|d|ed|ing)?(?![\w-])")
