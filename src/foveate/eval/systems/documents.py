"""What the baselines for memories share: entries and their sessions as plain documents, ranked by a search of any kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from foveate.eval.model import Case, Entry, Rendered, Scene
from foveate.eval.systems.packing import packed

Search = Callable[[str], Sequence[int]]
"""From a question to the numbers of the documents it finds, best first."""


class Documents:
    """The entries of a scene that were not retired.

    Sessions are ranked as documents of all that was said in each, or, if they are not `joined`, by the best entry in each:
    the mean of many vectors says little.
    """

    def __init__(self, scene: Scene, index: Callable[[Sequence[str]], Search], *, joined: bool = True) -> None:
        self.entries = present(scene)
        self._entries = lru_cache(maxsize=None)(index([entry.text for entry in self.entries]))
        texts: dict[str, list[str]] = {}
        for entry in self.entries:
            texts.setdefault(entry.session or "", []).append(entry.text)
        self.sessions = list(texts)
        self._sessions = index(["\n".join(said) for said in texts.values()]) if joined else None

    def render(self, case: Case, budget: int) -> Rendered:
        return packed((line(self.entries[n]) for n in self._entries(case.query)), budget)

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        found = [self.entries[n] for n in self._entries(case.query)]
        if self._sessions is None:
            sessions = list(dict.fromkeys(entry.session or "" for entry in found))
        else:
            sessions = [self.sessions[n] for n in self._sessions(case.query)]
        return {"turn": [entry.id for entry in found], "session": sessions}

    def close(self) -> None: ...


def present(scene: Scene) -> list[Entry]:
    return [entry for entry in scene.entries if not entry.retired]


def line(entry: Entry) -> str:
    return f"- {entry.text}"
