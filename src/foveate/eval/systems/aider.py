"""aider's map of a repository, in an environment of its own (see `peers`): signatures of what the question mentions.

A map is in the order of the paths, so there is no ranking of it. aider lets a map be somewhat larger than was asked for; it
is asked again for a smaller one until it fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from foveate.errors import InputError
from foveate.eval.model import Case, Rendered, Scene, Suite
from foveate.eval.systems import peers
from foveate.text import tokens

SMALLER = 0.97
"""Of what would fit by rule of three."""


@dataclass(frozen=True, slots=True)
class Aider:
    peer: peers.Peer
    name: str = "aider"
    on_code: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str:
        return f"aider-chat {self.peer.version}"

    def open(self, scene: Scene, suite: Suite) -> Map:
        return Map(self.peer, scene.root or Path())


class Map:
    def __init__(self, peer: peers.Peer, root: Path) -> None:
        self.peer = peer
        self.root = root

    def render(self, case: Case, budget: int) -> Rendered:
        asked = budget
        while asked > 0:
            shown = self.peer.ask(root=str(self.root.absolute()), query=case.query, budget=asked)
            needed = tokens.count(shown)
            if needed <= budget:
                return Rendered(shown)
            asked = int(asked * min(SMALLER, SMALLER * budget / needed))
        return Rendered("")

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        return {}

    def close(self) -> None: ...


def missing() -> str:
    return peers.missing("aider-chat", "aider")


def make(argument: str = "") -> Aider:
    if argument:
        raise InputError(f"The system 'aider' takes no argument, but was given {argument!r}; write 'aider' alone.")
    return Aider(peers.Peer("aider-chat", "aider"))
