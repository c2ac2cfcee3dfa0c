"""semble's code search, in an environment of its own (see `peers`).

`semble` alone is without embeddings, `semble:model=PATH` with the model in that folder. Its chunks cut functions apart;
`semble:whole` renders its ranking more kindly: the functions that its chunks touch, whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from foveate.errors import InputError
from foveate.eval.model import Case, Rendered, Scene, Suite
from foveate.eval.python_files import among, functions, text
from foveate.eval.reading import digest
from foveate.eval.systems import peers
from foveate.eval.systems.packing import packed, under_path

Chunk = tuple[str, int, int, str]
"""Path, first and last line, text."""


@dataclass(frozen=True, slots=True)
class Semble:
    name: str
    peer: peers.Peer
    model: Path | None = None
    whole: bool = False
    on_code: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str:
        model = digest([self.model]) if self.model else "no model"
        return f"semble {self.peer.version} {model} {'whole' if self.whole else 'chunks'}"

    def open(self, scene: Scene, suite: Suite) -> Chunks:
        return Chunks(self, scene.root or Path(), scene.files)


class Chunks:
    """A chunk stands for its file and for the functions it shares lines with, most lines first."""

    def __init__(self, system: Semble, root: Path, files: Sequence[str]) -> None:
        self.system = system
        self.root = root
        self.files = files
        self.found = lru_cache(maxsize=4)(self._search)

    def render(self, case: Case, budget: int) -> Rendered:
        if self.system.whole:
            return packed((under_path(path, self._source(path, name)) for path, name in self._touched(case.query)), budget)
        return packed((under_path(path, source) for path, _first, _last, source in self.found(case.query)), budget)

    def ranked(self, case: Case) -> Mapping[str, Sequence[str]]:
        touched = [f"{path}::{name}" for path, name in self._touched(case.query)]
        return {"file": among(self.files, [chunk[0] for chunk in self.found(case.query)]), "function": touched}

    def close(self) -> None: ...

    def _search(self, query: str) -> list[Chunk]:
        model = str(self.system.model) if self.system.model else None
        answer = self.system.peer.ask(root=str(self.root.absolute()), query=query, model=model)
        return [(path, first, last, source) for path, first, last, source in answer]

    def _touched(self, query: str) -> list[tuple[str, str]]:
        return list(dict.fromkeys(self._overlapping(query)))

    def _overlapping(self, query: str) -> Iterator[tuple[str, str]]:
        known = set(self.files)
        for path, first, last, _source in self.found(query):
            inside = functions(text(self.root, path)) if path in known else ()
            shared = [
                (min(last, function.end) - max(first, function.line), function.name)
                for function in inside
                if function.line <= last and function.end >= first
            ]
            yield from ((path, name) for _lines, name in sorted(shared, reverse=True))

    def _source(self, path: str, name: str) -> str:
        return next(function.source for function in functions(text(self.root, path)) if function.name == name)


def missing() -> str:
    return peers.missing("semble", "semble")


def make(argument: str = "") -> Semble:
    model, whole = None, False
    for part in argument.split(",") if argument else ():
        name, _, value = part.partition("=")
        if name == "model" and value:
            model = Path(value)
        elif part == "whole":
            whole = True
        else:
            raise InputError(f"'semble:{argument}' is not understood; write semble, semble:whole or semble:model=PATH.")
    if model and not model.is_dir():
        raise InputError(f"There is no folder {str(model)!r} with a model for semble.")
    return Semble(f"semble:{argument}" if argument else "semble", peers.Peer("semble", "semble"), model, whole)
