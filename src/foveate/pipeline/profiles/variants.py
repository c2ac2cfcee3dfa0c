"""Sessions -> variants: which share of them gets which profile laid over its own, to see which does better.

Comes in: `[variants]` of the settings (a profile's name and its share of the sessions) and a session's name. Goes out: the
name of a variant. A session's hash decides, so that it gets the same in every process and on every machine, and nothing is
kept. Shares may grow while a comparison runs: whoever has the first variant keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

CONTROL = "control"
"""Sessions that take part and get no variant: what the others are compared with."""


def assigned(variants: Mapping[str, float], session: str | None) -> str | None:
    """The variant of a session; None where nothing is compared, or where there is no session."""
    if not variants or session is None:
        return None
    # The names are hashed too, so that the next comparison does not divide the sessions as the last one did.
    digest = blake2b("\x1f".join((*variants, session)).encode("utf-8", "replace"), digest_size=8).digest()
    place = int.from_bytes(digest) / 2**64
    reached = 0.0
    for name, share in variants.items():
        reached += share
        if place < reached:
            return name
    return CONTROL


def problems_in(variants: Mapping[str, Any]) -> list[str]:
    """What is wrong with the settings, as sentences."""
    found = [
        f"{name} must be a share of the sessions above 0 and up to 1, not {share!r}."
        for name, share in variants.items()
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1
    ]
    if CONTROL in variants:
        found.append(f"{CONTROL!r} is what sessions without a variant are called; choose another name.")
    if not found and sum(variants.values()) > 1 + 1e-9:
        found.append(f"the shares sum to {sum(variants.values()):g}, and there are no more sessions than all.")
    return found
