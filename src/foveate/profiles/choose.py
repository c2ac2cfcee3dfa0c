"""Request -> the names of the layers to lay, bottom first.

Comes in: the request, its signals and the names of all profiles. Goes out: names for `resolve`. It reads no file and
guesses nothing: a request that names no agent and no complexity gets its profile alone.
"""

from __future__ import annotations

from collections.abc import Collection

from foveate.errors import ProfileError, near
from foveate.types import Request, Signals

_COMPLEXITY = "complexity-"


def layers(request: Request, signals: Signals, names: Collection[str]) -> tuple[str, ...]:
    """The profile, its agent's where there is one of that name, then the complexity's.

    The signals name no layer yet: what is laid is what the request names.
    """
    chosen = [request.profile]
    if request.agent is not None and request.agent in names:
        chosen.append(request.agent)
    if request.complexity is not None:
        complexity = _COMPLEXITY + request.complexity
        if complexity not in names:
            known = [name.removeprefix(_COMPLEXITY) for name in names if name.startswith(_COMPLEXITY)]
            raise ProfileError(f"There is no complexity {request.complexity!r}.{near(request.complexity, known)}")
        chosen.append(complexity)
    return tuple(dict.fromkeys(chosen))
