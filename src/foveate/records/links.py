"""The names of links that foveate itself draws and reads, and the rule that some of them never run in a circle.

`task -depends_on-> task`, `task -part_of-> its parent`, `record -learned_from-> the task that taught it`,
`handoff -handoff_of-> its task`, `fact -conflicts_with-> an earlier one that seems to say otherwise`,
`record -promoted_from-> what a person made it from`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foveate.records import supersede
from foveate.types import Link

DEPENDS_ON = "depends_on"
PART_OF = "part_of"
LEARNED_FROM = "learned_from"
HANDOFF_OF = "handoff_of"
CONFLICTS_WITH = "conflicts_with"
PROMOTED_FROM = "promoted_from"

STRUCTURAL = frozenset(
    (
        DEPENDS_ON,
        PART_OF,
        LEARNED_FROM,
        HANDOFF_OF,
        CONFLICTS_WITH,
        PROMOTED_FROM,
        supersede.SUPERSEDED_BY,
        supersede.DISPUTED_BY,
    )
)
"""What foveate draws itself says how records hang together, not how the things do that they are about."""

ACYCLIC = frozenset((DEPENDS_ON, PART_OF))
"""Nothing waits for itself, and nothing is a part of itself."""

Onward = Callable[[Sequence[str]], Sequence[Link]]
"""The links that lead on from some records."""


def circle(link: Link, onward: Onward) -> list[str]:
    """The circle that a link would close, from its source back to it; empty where it closes none."""
    came_from: dict[str, str] = {link.dst: link.src}
    frontier = [link.dst]
    while frontier and link.src not in frontier:
        steps = [step for step in onward(frontier) if step.dst not in came_from]
        came_from |= {step.dst: step.src for step in reversed(steps)}
        frontier = list(dict.fromkeys(step.dst for step in steps))
    if link.src not in frontier:
        return []
    back = [link.src, came_from[link.src]]
    while back[-1] != link.src:
        back.append(came_from[back[-1]])
    return back[::-1]
