"""Choose the layers that a request gets over its profile: frame, input, agent and complexity, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from foveate.errors import ProfileError
from foveate.pipeline.profiles.files import chain
from foveate.pipeline.profiles.frames import MAX_QUESTION_CHARS, choose_frame_for
from foveate.pipeline.signals import COMPLEX_WORDS
from foveate.text import analysis
from foveate.types import Request, Signals

FRAME_SLOT = "frame"
"""No frame is chosen if the caller passes a text for this slot."""

MAX_SHORT_WORDS = 8
"""Words up to which a question is short, if no point speaks against it."""
MIN_COMPLEX_POINTS = 3
_COUNT_THRESHOLDS = (("words", 30, 60), ("clauses", 3, 6), ("domains", 2, 4))
"""Counts, and the numbers from which each gives one point and two."""
_CLAUSE_BREAK = re.compile(
    r"[,;:](?=\s)|[.?!](?=\s+\S)|\b(?:and|but|because|while|whereas|although|if|when|unless|until|so that)\b", re.IGNORECASE
)


def layer_names(request: Request, signals: Signals, user_profiles: Collection[str]) -> tuple[str, ...]:
    """Return the names of the layers for `resolve`, bottom first: profile, frame, input, agent, complexity.

    An agent gets a layer only if the user wrote a profile of its name: an agent called `task` must not get the built-in one.
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


def with_frame(request: Request, signals: Signals, dirs: Sequence[Path] = ()) -> Signals:
    """Return the signals with the frame and the size of the question, if the profile or the call asks for them."""
    is_chosen = _chooses_frame(request, dirs)
    if not is_chosen and request.frame is None:
        return signals
    name, frame, frame_reason = choose_frame_for(request, signals.intent, dirs, has_own=FRAME_SLOT in request.extra)
    extent, reason = input_size(request.query, signals, name) if is_chosen else ("", "")
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


def _chooses_frame(request: Request, dirs: Sequence[Path]) -> bool:
    """Return the setting `choose_frame` of the call, else of the profile or of the nearest one that it extends."""
    if "choose_frame" in request.overrides:
        return request.overrides["choose_frame"] is True
    try:
        files = chain(request.profile, dirs, on_default=True)
    except ProfileError:  # `resolve` raises it, together with every other problem
        return False
    return next((file.table["choose_frame"] is True for file in reversed(files) if "choose_frame" in file.table), False)


def input_size(query: str, signals: Signals, frame: str = "") -> tuple[str, str]:
    """Return the size of a question (`short`, `complex` or empty) and the reason: its length, domains and words."""
    text = query[:MAX_QUESTION_CHARS]
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
    for name, one_point, two_points in _COUNT_THRESHOLDS:
        if counts[name] >= one_point:
            yield f"{counts[name]} {name}", 2 if counts[name] >= two_points else 1
    for word in sorted(frozenset(analysis.words(text)) & COMPLEX_WORDS)[:2]:
        yield f"{word!r}", 1
    if frame == "decision":
        yield "a decision", 1
