"""The newest entries that fit, in their order, as a transcript has them: nothing is searched, and nothing is ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from foveate.eval.model import Case, Rendered, Scene, Suite
from foveate.eval.systems.documents import line, present
from foveate.eval.systems.packing import fitting


@dataclass(frozen=True, slots=True)
class Last:
    name: str = "last"
    fingerprint: str = "last"
    on_code: ClassVar[bool] = False

    def open(self, scene: Scene, suite: Suite) -> Transcript:
        return Transcript([line(entry) for entry in present(scene)])


class Transcript:
    """Entries come as they were told; the last one is the newest."""

    def __init__(self, said: Sequence[str]) -> None:
        self.said = said

    def render(self, case: Case, budget: int) -> Rendered:
        return Rendered("".join(reversed(fitting(reversed(self.said), budget))))

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        return {}

    def close(self) -> None: ...


SYSTEM = Last()
