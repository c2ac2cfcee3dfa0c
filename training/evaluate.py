"""Judge the vectors of the package on pairs that no training saw, and on the questions of `python -m bench paraphrases`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bench import paraphrases

from foveate.text.static_vectors import static_vectors
from training import sources


def main() -> None:
    held = [item for item in sources.items() if item.is_held_out]
    passages = [text for item in held for text in (item.passage, item.lookalike)]
    asked = [(request, 2 * n) for n, item in enumerate(held) for request in item.requests]
    report("held-out pairs", passages, [request for request, _ in asked], [[answer] for _, answer in asked])
    rows = [row for store in paraphrases.STORES for row in paraphrases.read(store)]
    place = {row["id"]: n for n, row in enumerate(rows)}
    for half in ("build", "report"):
        questions = [row for row in paraphrases.read("questions") if row["half"] == half]
        answers = [[place[id] for id in row["answer"]] for row in questions]
        report(f"paraphrases, {half}", [row["text"] for row in rows], [row["question"] for row in questions], answers)


def report(name: str, passages: Sequence[str], requests: Sequence[str], answers: Sequence[Sequence[int]]) -> None:
    table = static_vectors()
    similarities = (
        np.array([table.vector(text) for text in requests]) @ np.array([table.vector(text) for text in passages]).T
    )
    best = np.array([max(row[answer] for answer in each) for row, each in zip(similarities, answers, strict=True)])
    ranks = 1 + (similarities > best[:, None]).sum(1)
    print(
        f"{name}: {len(requests):,} requests, {len(passages):,} passages, mean reciprocal rank {np.mean(1 / ranks):.3f}, "
        f"among the first ten {np.mean(ranks <= 10):.1%}"
    )


if __name__ == "__main__":
    main()
