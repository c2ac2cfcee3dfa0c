"""Choose the layers that a request gets over its profile: frame, input, agent and complexity, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foveate.errors import ProfileError
from foveate.pipeline.profiles.files import chain
from foveate.pipeline.profiles.frames import MAX_CHARS, frame_for
from foveate.pipeline.signals import COMPLEX_WORDS
from foveate.text import analysis
from foveate.types import Request, Signals

FRAME_SLOT = "frame"
"""A caller who passes a text for this slot has chosen an approach already."""

MAX_SHORT_WORDS = 8
"""Words up to which a question is short, if no point speaks against it."""
MIN_COMPLEX_POINTS = 3
_COUNTED = (("words", 30, 60), ("clauses", 3, 6), ("domains", 2, 4))
"""Counts, and the numbers from which each gives one point and two."""
_CLAUSE_BREAK = re.compile(
    r"[,;:](?=\s)|[.?!](?=\s+\S)|\b(?:and|but|because|while|whereas|although|if|when|unless|until|so that)\b", re.IGNORECASE
)


def layers(request: Request, signals: Signals, user_profiles: Collection[str]) -> tuple[str, ...]:
    """Return the names of the layers for `resolve`, bottom first: profile, frame, input, agent, complexity.

    An agent gets a layer only if the user wrote a profile of its name: an agent called `task` must not get the shipped one.
    """
    chosen = [request.profile]
    if signals.frame:
        chosen.append(f"frames.{signals.frame}")
    if signals.input:
        chosen.append(f"input.{signals.input}")
    if request.agent is not None and request.agent in user_profiles:
        chosen.append(request.agent)
    if complexity := request.complexity or signals.complexity:
        chosen.append(f"complexity.{complexity}")
    return tuple(dict.fromkeys(chosen))


def add_frame(request: Request, signals: Signals, places: Sequence[Path] = ()) -> Signals:
    """Return the signals with the frame and the extent of the question, if profile or call want them."""
    wanted = _wants_frames(request, places)
    if not wanted and request.frame is None:
        return signals
    name, frame, frame_reason = frame_for(request, signals.intent, places, has_own=FRAME_SLOT in request.extra)
    extent, reason = extent_of(request.query, signals, name) if wanted else ("", "")
    if extent == "short" and request.budget is not None:  # a budget that the caller chose is not reduced
        extent, reason = "", f"{reason}, and the call names its budget"
    return replace(
        signals,
        frame=name,
        frame_reason=frame_reason,
        input=extent,
        input_reason=reason,
        domains=tuple(dict.fromkeys((*signals.domains, *frame.domains))),
    )


def _wants_frames(request: Request, places: Sequence[Path]) -> bool:
    """Return the setting of the call, else of the profile or the nearest that it extends."""
    if "choose_frame" in request.overrides:
        return request.overrides["choose_frame"] is True
    try:
        files = chain(request.profile, places, on_default=True)
    except ProfileError:  # `resolve` raises it, together with every other problem
        return False
    return next((file.table["choose_frame"] is True for file in reversed(files) if "choose_frame" in file.table), False)


def extent_of(query: str, signals: Signals, frame: str = "") -> tuple[str, str]:
    """Return how much a question asks (`short`, `complex` or neither) and why: its size, its domains and its words."""
    text = query[:MAX_CHARS]
    words = len(text.split())
    points = dict(_points(text, words, signals, frame))
    total = sum(points.values())
    reasons = ", ".join(f"{what} ({number:+d})" for what, number in points.items())
    if total >= MIN_COMPLEX_POINTS:
        return "complex", reasons
    if not total and words <= MAX_SHORT_WORDS:
        return "short", f"{words} word{'' if words == 1 else 's'}, nothing complex in it"
    return "", reasons or f"{words} words"


def _points(text: str, words: int, signals: Signals, frame: str) -> Iterator[tuple[str, int]]:
    counts = {"words": words, "clauses": 1 + len(_CLAUSE_BREAK.findall(text)), "domains": len(signals.domains)}
    for name, one_point, two_points in _COUNTED:
        if counts[name] >= one_point:
            yield f"{counts[name]} {name}", 2 if counts[name] >= two_points else 1
    for word in sorted(frozenset(analysis.words(text)) & COMPLEX_WORDS)[:2]:
        yield f"{word!r}", 1
    if frame == "decision":
        yield "a decision", 1
