"""Request -> the names of the layers to lay, bottom first.

Comes in: the request, its signals and the names of all profiles, or where they are. Goes out: names for `resolve` and,
where frames are wanted, signals that say how the question is approached and how much it asks, each with a reason. What
the request leaves open, the signals say: a request that is for no task and names no agent, with a profile that wants no
frames, gets its profile alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foveate.errors import ProfileError, near
from foveate.pipeline.profiles.files import chain
from foveate.pipeline.profiles.frames import FRAME, READ, frame_for
from foveate.pipeline.signals import HARD
from foveate.text import analysis
from foveate.types import Request, Signals

COMPLEXITY, INPUT = "complexity-", "input-"
"""How the names of layers begin that a request gets by what it asks."""

FRAME_SLOT = "frame"
"""Whoever hands in a text for this slot has chosen an approach already."""

SHORT = 8
"""Words up to which a question is short, where nothing makes it more than it looks."""
COMPLEX = 3
"""Points from which a question is complex."""
_COUNTED = (("words", 30, 60), ("clauses", 3, 6), ("domains", 2, 4))
"""What is counted, and from how many on it gives one point and two."""
_JOINS = re.compile(
    r"[,;:](?=\s)|[.?!](?=\s+\S)|\b(?:and|but|because|while|whereas|although|if|when|unless|until|so that)\b", re.IGNORECASE
)


def layers(
    request: Request, signals: Signals, names: Collection[str], own: Collection[str] | None = None
) -> tuple[str, ...]:
    """The profile, the frame, the question's extent, the agent where somebody wrote a profile of that name, and the
    complexity (the request's, else the task's). `own`: the profiles that are not shipped, else all: an agent that happens
    to be called `task` is no reason to lay that one.
    """
    chosen = [request.profile]
    if signals.frame:
        chosen.append(FRAME + signals.frame)
    if signals.input and INPUT + signals.input in names:
        chosen.append(INPUT + signals.input)
    if request.agent is not None and request.agent in (names if own is None else own):
        chosen.append(request.agent)
    complexity = request.complexity or signals.complexity
    if complexity:
        layer = COMPLEXITY + complexity
        if layer not in names:
            known = [name.removeprefix(COMPLEXITY) for name in names if name.startswith(COMPLEXITY)]
            raise ProfileError(f"There is no complexity {complexity!r}.{near(complexity, known)}")
        chosen.append(layer)
    return tuple(dict.fromkeys(chosen))


def framed(request: Request, signals: Signals, places: Sequence[Path] = ()) -> Signals:
    """The signals with the frame and the extent of the question, where the profile wants them or the call names a frame."""
    wanted = _wants_frames(request, places)
    if not wanted and request.frame is None:
        return signals
    name, frame, because = frame_for(request, signals.intent, places, own=FRAME_SLOT in request.given)
    extent, reason = extent_of(request.query, signals, name) if wanted else ("", "")
    if extent == "short" and request.budget is not None:  # whoever names a budget has thought of it
        extent, reason = "", f"{reason}, and the call names its budget"
    return replace(
        signals,
        frame=name,
        frame_because=because,
        input=extent,
        input_because=reason,
        domains=tuple(dict.fromkeys((*signals.domains, *frame.domains))),
    )


def _wants_frames(request: Request, places: Sequence[Path]) -> bool:
    """What the call says, else the profile or the nearest that it extends; a profile that is not there is told of later."""
    if "frames" in request.overrides:
        return request.overrides["frames"] is True
    try:
        files = chain(request.profile, places, on_base=True)
    except ProfileError:
        return False
    return next((file.table["frames"] is True for file in reversed(files) if "frames" in file.table), False)


def extent_of(query: str, signals: Signals, frame: str = "") -> tuple[str, str]:
    """How much a question asks, `short`, `complex` or neither, and why: by its size, its domains and its words."""
    text = query[:READ]
    words = len(text.split())
    points = dict(_points(text, words, signals, frame))
    total = sum(points.values())
    said = ", ".join(f"{what} ({number:+d})" for what, number in points.items())
    if total >= COMPLEX:
        return "complex", said
    if not total and words <= SHORT:
        return "short", f"{words} word{'' if words == 1 else 's'}, one thing asked"
    return "", said or f"{words} words"


def _points(text: str, words: int, signals: Signals, frame: str) -> Iterator[tuple[str, int]]:
    counts = {"words": words, "clauses": 1 + len(_JOINS.findall(text)), "domains": len(signals.domains)}
    for name, some, many in _COUNTED:
        if counts[name] >= some:
            yield f"{counts[name]} {name}", 2 if counts[name] >= many else 1
    for word in sorted(frozenset(analysis.words(text)) & HARD)[:2]:
        yield f"{word!r}", 1
    if frame == "decision":
        yield "a decision", 1
