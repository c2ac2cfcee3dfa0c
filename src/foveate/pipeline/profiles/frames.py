"""Question -> frame: which of the profiles called `frame-NAME` it calls for, and why.

Comes in: the request, its intent and where profiles are. Goes out: the frame's name, the frame and a reason. Triggers are
data: how the question begins (`forms`), words that it holds, its intent. A frame of your own in `.foveate/profiles` is
chosen as the shipped ones are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from foveate.errors import ProfileError, near
from foveate.pipeline.profiles.files import chain, names
from foveate.pipeline.profiles.settings import checked
from foveate.types import Frame, Request

FRAME = "frame-"
NONE = "none"
"""What a call names that wants no frame."""

FORM, WORD, INTENT = 4, 2, 1
"""What each trigger is worth. How a question begins outweighs a word and an intent together: "Should we fix it?" asks for
a decision."""
MOST_WORDS = 2
"""Words that count: more of them say the same again."""

CONVERSATION, TASK = "conversation", "task"
"""The frame of a question that calls for none, and of one that is for a task."""

READ = 2000
"""Characters of a question that are read: what it wants stands at its beginning."""


def frame_for(request: Request, intent: str, places: Sequence[Path] = (), *, own: bool = False) -> tuple[str, Frame, str]:
    """The name of the frame, the frame, and why it is this one. `own`: the caller hands in an approach."""
    if request.frame == NONE:
        return "", Frame(), "the call wants none"
    if request.frame is None and own:
        return "", Frame(), "the call hands in its own"
    known = [name.removeprefix(FRAME) for name in names(places) if name.startswith(FRAME)]
    if request.frame is not None:
        if request.frame not in known:
            raise ProfileError(f"There is no frame {request.frame!r}.{near(str(request.frame), [*known, NONE])}")
        return request.frame, frame_of(request.frame, places), "the call names it"
    frames = {name: frame_of(name, places) for name in known}
    scores = {name: score(frame.triggers, request.query, intent) for name, frame in frames.items()}
    best = min(known, key=lambda name: (-scores[name][0], frames[name].order, name))
    if scores[best][0]:
        return best, frames[best], scores[best][1]
    default = TASK if request.task is not None else CONVERSATION
    return default, frames[default], "it is for a task" if default == TASK else "nothing in it calls for another"


def frame_of(name: str, places: Sequence[Path] = ()) -> Frame:
    """The frame of a name, with what it extends beneath it."""
    table: dict[str, Any] = {}
    for file in chain(FRAME + name, places, on_base=False):
        layer = checked(file.label, file.table)
        if layer.problems:
            raise ProfileError("\n".join(layer.problems))
        below = table.get("triggers", {})
        table |= layer.layer.get("frame", {})
        table["triggers"] = {**below, **table.get("triggers", {})}
    return built(table)


def built(table: Mapping[str, Any]) -> Frame:
    """A `[frame]` table as a value."""
    settings = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return Frame(**settings | {"triggers": {key: tuple(texts) for key, texts in table.get("triggers", {}).items()}})


def score(triggers: Mapping[str, Sequence[str]], query: str, intent: str) -> tuple[int, str]:
    """How strongly a question calls for a frame, and by what."""
    text = " ".join(query[:READ].lower().replace("’", "'").split())
    points, reasons = 0, []
    form = _pattern(tuple(triggers.get("forms", ())), opening=True).search(text)
    if form:
        points += FORM
        reasons.append(f"it begins with {form[1]!r}")
    words = list(dict.fromkeys(match[1] for match in _pattern(tuple(triggers.get("words", ()))).finditer(text)))
    if words:
        points += WORD * min(len(words), MOST_WORDS)
        reasons.append(f"it says {' and '.join(map(repr, words[:MOST_WORDS]))}")
    if intent in triggers.get("intents", ()):
        points += INTENT
        reasons.append(f"its intent is {intent}")
    return points, ", ".join(reasons)


@lru_cache(maxsize=256)
def _pattern(phrases: tuple[str, ...], *, opening: bool = False) -> re.Pattern[str]:
    """Any of these phrases as whole words, with the endings of a verb or a plural: `error-free` is no `error`. `opening`:
    only where a sentence or a part of one begins."""
    if not phrases:
        return re.compile(r"(?!)")
    longest_first = sorted(phrases, key=lambda phrase: (-len(phrase), phrase))
    either = "|".join(re.escape(phrase.lower()) for phrase in longest_first)
    before = r"(?:^|[.!?;:,] )(?:(?:so|and|but|okay|ok|well|now|please)[, ]+)*" if opening else r"(?<![\w-])"
    return re.compile(rf"{before}({either})(?:s|es|d|ed|ing)?(?![\w-])")
