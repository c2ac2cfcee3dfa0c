"""Request -> the names of the layers to lay, bottom first.

Comes in: the request, its signals and the names of all profiles. Goes out: names for `resolve`. It reads no file: what the
request leaves open, the signals say, and a request that is for no task and names no agent gets its profile alone.
"""

from __future__ import annotations

from collections.abc import Collection

from foveate.errors import ProfileError, near
from foveate.types import Request, Signals

_COMPLEXITY = "complexity-"


def layers(request: Request, signals: Signals, names: Collection[str]) -> tuple[str, ...]:
    """The profile, its agent's where there is one of that name, then the complexity's: the request's, else the task's."""
    chosen = [request.profile]
    if request.agent is not None and request.agent in names:
        chosen.append(request.agent)
    complexity = request.complexity or signals.complexity
    if complexity:
        layer = _COMPLEXITY + complexity
        if layer not in names:
            known = [name.removeprefix(_COMPLEXITY) for name in names if name.startswith(_COMPLEXITY)]
            raise ProfileError(f"There is no complexity {complexity!r}.{near(complexity, known)}")
        chosen.append(layer)
    return tuple(dict.fromkeys(chosen))
