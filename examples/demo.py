"""Compute a context from the memory of a small team: should it cache in Redis?

Run with `make demo`. Everything happens in a temporary folder on the embedded store; no network, no model, no server.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import foveate
from foveate import clock
from foveate.types import Budget

sys.path.insert(0, str(Path(__file__).parent))
from team import world

QUESTION = "Should we use Redis for caching in Newton?"
BUDGET = 320  # tight on purpose: 004 gives such a context 8,000
FRAME = {
    "kind": "design",
    "title": "Decision",
    "text": "What are we optimising for? What did we decide last time? What are the constraints?",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, foveate.open(folder, personal=False) as engine:
        known = engine.store.add_many(world(clock.now()))
        given = {"frame": [FRAME], "working": "Making the catalogue answer in under 100 ms before the autumn launch."}
        context = engine.context(QUESTION, profile="assistant", budget=BUDGET, extra=given)
        print(f"$ foveate context {QUESTION!r} --profile assistant --budget {BUDGET}\n")
        print(context.text)
        print_budget(context.budget)
        print("\nLeft out, for example:")
        for id in three(context, known):
            print(f"- {engine.get(id).micro}\n  {engine.why(id, context)}")


def print_budget(budget: Budget) -> None:
    """Print the tokens that each slot used."""
    print(f"{budget.total} tokens: {budget.used} used, {budget.free} free")
    for slot in budget.slots:
        if slot.items:
            print(f"  {slot.name}: {slot.used} of {slot.granted} tokens")


def three(context: foveate.Context, known: list[str]) -> list[str]:
    """Return three records that are not in the context, if possible for different reasons."""
    by_reason = {omission.reason: omission.id for omission in reversed(context.left_out)}
    considered = {item.id for item in (*context.items, *context.left_out)}
    rest = [id for id in known if id.startswith("decision") and id not in considered]
    return [*by_reason.values(), *rest][:3]


if __name__ == "__main__":
    main()
