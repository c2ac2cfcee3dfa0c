"""semble's code search, in an environment of its own (see `peers`).

The argument `model=PATH` uses the embedding model in that folder; without it, semble searches by words alone. Its chunks cut
functions apart. The argument `whole` shows instead the whole functions that its chunks overlap, which is kinder to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from bench.datasets.python_files import functions, read_source, restrict_to_files
from bench.systems import peers
from bench.systems.file_bm25 import code_with_path
from foveate.errors import InputError
from foveate.eval.model import Case, Dataset, RenderedPrompt, Suite, SystemType
from foveate.eval.reading import digest
from foveate.eval.systems.baselines import pack

Chunk = tuple[str, int, int, str]
"""Path, first line, last line, text."""


@dataclass(frozen=True, slots=True)
class Semble:
    name: str
    peer: peers.Peer
    model: Path | None = None
    whole_functions: bool = False
    is_code: ClassVar[bool] = True

    @property
    def fingerprint(self) -> str:
        model = digest([self.model]) if self.model else "no model"
        return f"semble {self.peer.version} {model} {'whole' if self.whole_functions else 'chunks'}"

    def open(self, dataset: Dataset, suite: Suite) -> ChunkRanking:
        return ChunkRanking(self, dataset.root or Path(), dataset.answer_files)


class ChunkRanking:
    """A chunk stands for its file and for the functions that it overlaps, those with the most lines in it first."""

    def __init__(self, system: Semble, root: Path, files: Sequence[str]) -> None:
        self.system = system
        self.root = root
        self.files = files
        self.chunks = lru_cache(maxsize=4)(self._search)

    def render(self, case: Case, budget: int) -> RenderedPrompt:
        if self.system.whole_functions:
            unique = self._unique_functions(case.query)
            return pack((code_with_path(path, self._source(path, name)) for path, name in unique), budget)
        return pack((code_with_path(path, source) for path, _, _, source in self.chunks(case.query)), budget)

    def ranking(self, case: Case) -> Mapping[str, Sequence[str]]:
        names = [f"{path}::{name}" for path, name in self._unique_functions(case.query)]
        return {"file": restrict_to_files(self.files, [chunk[0] for chunk in self.chunks(case.query)]), "function": names}

    def close(self) -> None: ...

    def _search(self, query: str) -> list[Chunk]:
        model = str(self.system.model) if self.system.model else None
        answer = self.system.peer.ask(root=str(self.root.absolute()), query=query, model=model)
        return [(path, first, last, source) for path, first, last, source in answer]

    def _unique_functions(self, query: str) -> list[tuple[str, str]]:
        return list(dict.fromkeys(self._functions_in_chunks(query)))

    def _functions_in_chunks(self, query: str) -> Iterator[tuple[str, str]]:
        allowed = set(self.files)
        for path, first, last, _ in self.chunks(query):
            of_file = functions(read_source(self.root, path)) if path in allowed else ()
            overlaps = [
                (min(last, function.end) - max(first, function.line), function.name)
                for function in of_file
                if function.line <= last and function.end >= first
            ]
            yield from ((path, name) for _, name in sorted(overlaps, reverse=True))

    def _source(self, path: str, name: str) -> str:
        return next(function.source for function in functions(read_source(self.root, path)) if function.name == name)


def _make_semble(argument: str) -> Semble:
    model, whole = None, False
    for part in argument.split(",") if argument else ():
        name, _, value = part.partition("=")
        if name == "model" and value:
            model = Path(value)
        elif part == "whole":
            whole = True
        else:
            raise InputError(f"Unknown argument {part!r} of semble; write whole or model=PATH.")
    if model and not model.is_dir():
        raise InputError(f"There is no folder {str(model)!r} with a model for semble.")
    return Semble(f"semble:{argument}" if argument else "semble", peers.Peer("semble", "semble"), model, whole)


SYSTEM = SystemType(
    make=_make_semble,
    description="code: semble's search",
    argument="whole,model=PATH",
    missing=lambda: peers.missing_requirement("semble"),
)
