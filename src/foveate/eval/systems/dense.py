"""Embeddings alone: cosine of question and entry, with the embedder that the user names, as `static:model2vec:PATH`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import ClassVar

from foveate.errors import InputError
from foveate.eval.model import Scene, Suite
from foveate.eval.systems.documents import Documents, Search
from foveate.text.embed import Embedder, open_embedder

WANTED = "write static:PROVIDER:MODEL"


@dataclass(frozen=True, slots=True)
class Static:
    name: str
    embedder: Embedder = field(repr=False)
    on_code: ClassVar[bool] = False

    @property
    def fingerprint(self) -> str:
        return self.embedder.fingerprint

    def open(self, scene: Scene, suite: Suite) -> Documents:
        return Documents(scene, partial(index, self.embedder), joined=False)


def index(embedder: Embedder, texts: Sequence[str]) -> Search:
    import numpy

    if not texts:
        return lambda query: []
    vectors = numpy.asarray(embedder.embed(texts), dtype=numpy.float32)

    def search(query: str) -> list[int]:
        likeness = vectors @ numpy.asarray(embedder.query(query), dtype=numpy.float32)
        order: list[int] = numpy.argsort(-likeness, kind="stable").tolist()
        return order

    return search


def missing() -> str:
    return "" if find_spec("numpy") else "pip install 'foveate[vectors]'"


def make(argument: str = "") -> Static:
    if not argument:
        raise InputError("The system 'static' needs an embedder; write `static:PROVIDER:MODEL`, as `static:model2vec:PATH`.")
    if said := missing():
        raise InputError(f"The system 'static' needs a package: {said}")
    return Static(f"static:{argument}", open_embedder(argument))
