"""aider's repository map, in an environment of its own (see `peers`): signatures of the code that the query mentions.

A map is in the order of the paths, so it has no ranking. aider may return a map that is somewhat larger than requested, so
smaller maps are requested until one fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench.systems import peers
from foveate.eval.model import Case, Dataset, RenderedPrompt, Suite, SystemType
from foveate.text import tokens

SHRINK_FACTOR = 0.97
"""The next map is this much smaller than proportion suggests, so that few requests are needed."""


@dataclass(frozen=True, slots=True)
class Aider:
    peer: peers.Peer
    name: str = "aider"
    is_code: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str:
        return f"aider-chat {self.peer.version}"

    def open(self, dataset: Dataset, suite: Suite) -> AiderMap:
        return AiderMap(self.peer, dataset.root or Path())


class AiderMap:
    def __init__(self, peer: peers.Peer, root: Path) -> None:
        self.peer = peer
        self.root = root

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        requested = budget
        while requested > 0:
            text = self.peer.ask(root=str(self.root.absolute()), query=case.query, budget=requested)
            used = tokens.count(text)
            if used <= budget:
                return RenderedPrompt(text)
            requested = int(requested * min(SHRINK_FACTOR, SHRINK_FACTOR * budget / used))
        return RenderedPrompt("")

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        return {}

    def close(self) -> None: ...


SYSTEM = SystemType(
    make=lambda argument: Aider(peers.Peer("aider-chat", "aider")),
    description="code: aider's map of a repository",
    missing=lambda: peers.missing_requirement("aider-chat"),
)
