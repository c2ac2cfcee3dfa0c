"""The main job in one go: a team's memory, the question whether to cache in Redis, and what the model should see.

Run with `make demo`. Everything happens in a temporary folder on the embedded store; no network, no model, no server.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import foveate
from foveate import ids
from foveate.front.cli.ledger import spent
from foveate.front.cli.show import print_lines, width

sys.path.insert(0, str(Path(__file__).parent))
from team import world

QUESTION = "Should we use Redis for caching in Newton?"
FRAME = {
    "kind": "design",
    "title": "Decision",
    "text": "What are we optimising for? What did we decide last time? What are the constraints?",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, foveate.open(folder, own=False) as engine:
        engine.add_many(world(ids.now()))
        given = {"frame": [FRAME], "working": ["Making the catalogue answer in under 100 ms before the autumn launch."]}
        context = engine.compute(QUESTION, profile="layers", budget=1000, given=given)
        print(f"$ foveate context {QUESTION!r} --profile layers --budget 1000\n")
        print(context.text)
        print_lines(spent(engine.receipt(context), context.counter, width()))
        print("\nLeft out, for example:")
        for omission in three(context):
            record = omission.candidate.record
            print(f"- {record.micro}\n  {engine.why(record.id, context)['sentence']}")


def three(context: foveate.Context) -> list:
    """Three omissions, for different reasons where there are."""
    by_reason = {omission.reason: omission for omission in reversed(context.left_out)}
    rest = [omission for omission in context.left_out if omission not in by_reason.values()]
    return [*by_reason.values(), *rest][:3]


if __name__ == "__main__":
    main()
