"""Terms -> where they stand: posting lists with a weight of one byte, in segments that are written once.

A refresh writes one new segment and touches no old one, so that an edit costs what the edited file holds; small segments
are merged now and then. The weight is BM25's saturated, length-normalised frequency, worked out when the text is indexed.
It measures against a fixed length and not against the mean of the repository: a mean would change under every segment,
and on repositories with a few huge tables of data the fixed one ranks better too.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from math import log


class Space(IntEnum):
    """What a list is about."""

    WORDS = 0
    """The words of definitions."""
    USES = 1
    """Names that definitions refer to; the weight is how often."""


K1 = 1.6
B = 0.75
USUAL = 150.0
"""Words of a definition of ordinary length."""
USUAL_FILE = 1500.0
FILE_K1 = 2.0
"""The same for files: their frequencies are the sums of those of their definitions."""
NAME = 3.0
"""What a word is worth in the name, against one in the body or the docstring."""

_WIDTH = 5
"""Bytes of a posting: four for the id, one for the weight."""

COUNTED = 64
"""Occurrences beyond which one more changes no weight."""


def level(length: float) -> float:
    """How many occurrences are worth half of the most that a word can be worth, in a text of that length."""
    return K1 * (1 - B + B * length / USUAL)


class Segment:
    """Postings on their way to the index."""

    def __init__(self) -> None:
        self._lists: dict[Space, dict[str, tuple[array[int], bytearray]]] = {space: {} for space in Space}
        self.size = 0

    def add(self, id: int, body: Mapping[str, int], name: Collection[str] = ()) -> int:
        """A text by the terms of its body and of its name; its length."""
        length = sum(body.values()) + round(NAME) * len(name)
        half = level(length)
        weights = [0] * (COUNTED + 1)
        lists = self._lists[Space.WORDS]
        for term, times in body.items():  # the innermost loop of indexing: no calls, no copies
            if term in name:
                continue
            if times > COUNTED:
                times = COUNTED
            weight = weights[times]
            if not weight:
                weight = weights[times] = _byte(times / (times + half))
            held = lists.get(term)
            if held is None:
                held = lists[term] = (array("I"), bytearray())
            held[0].append(id)
            held[1].append(weight)
        worth = {term: body.get(term, 0) + NAME for term in name}
        self.put(Space.WORDS, id, {term: _byte(times / (times + half)) for term, times in worth.items()})
        self.size += len(body)
        return length

    def put(self, space: Space, id: int, weights: Mapping[str, int]) -> None:
        """Terms with weights of their own."""
        lists = self._lists[space]
        for term, weight in weights.items():
            held = lists.get(term)
            if held is None:
                held = lists[term] = (array("I"), bytearray())
            held[0].append(id)
            held[1].append(weight)
        self.size += len(weights)

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """The lists in the order of the table that holds them."""
        for space, lists in self._lists.items():
            for term in sorted(lists):
                ids, weights = lists[term]
                yield int(space), term, ids.tobytes() + bytes(weights)


def _byte(share: float) -> int:
    return max(1, min(254, round(255 * share)))


def unpacked(blob: bytes) -> tuple[array[int], bytes]:
    """The ids of a list and their weights."""
    number = len(blob) // _WIDTH
    return ints(blob[: 4 * number]), blob[4 * number :]


def ints(blob: bytes) -> array[int]:
    """Numbers that were packed as an array of theirs."""
    found = array("I")
    found.frombytes(blob)
    return found


def length_of(blob: bytes) -> int:
    return len(blob) // _WIDTH


def merged(blobs: Iterable[bytes], alive: Iterable[int] | None = None) -> bytes:
    """Several lists of one term as one, without what is gone."""
    kept = None if alive is None else frozenset(alive)
    ids, weights = array("I"), bytearray()
    for blob in blobs:
        for id, weight in zip(*unpacked(blob), strict=True):
            if kept is None or id in kept:
                ids.append(id)
                weights.append(weight)
    return ids.tobytes() + bytes(weights)


def rarity(found: int, total: int) -> float:
    """BM25's inverse document frequency; above 0 however common a term is."""
    return log(1 + (max(total - found, 0) + 0.5) / (found + 0.5))


@dataclass(frozen=True, slots=True)
class Documents:
    """What scoring needs to know of all definitions, by id."""

    owner: list[int]
    """The file of each; 0 where it is gone."""
    half: list[float]
    """The `level` of each."""
    words: Mapping[int, int]
    """The length of each file."""
    number: int


def scores(
    lists: Mapping[str, list[bytes]], terms: Mapping[str, float], documents: Documents
) -> tuple[dict[int, float], dict[int, float]]:
    """The scores of definitions and of files that hold any of the terms.

    How often a file has a word follows from the weights that its definitions have for it: no second index is needed.
    """
    owner, half = documents.owner, documents.half
    found = [0.0] * len(owner)
    files: dict[int, float] = {}
    norm = {file: FILE_K1 * (1 - B + B * words / USUAL_FILE) for file, words in documents.words.items()}
    for term, importance in terms.items():
        blobs = lists.get(term)
        if not blobs:
            continue
        step = importance * rarity(sum(map(length_of, blobs)), documents.number) / 255
        worth = [step * weight for weight in range(256)]
        often: dict[int, float] = {}
        for blob in blobs:
            for id, weight in zip(*unpacked(blob), strict=True):
                file = owner[id]
                if file:
                    found[id] += worth[weight]
                    often[file] = often.get(file, 0.0) + half[id] * _TIMES[weight]
        value = importance * rarity(len(often), len(norm))
        for file, times in often.items():
            files[file] = files.get(file, 0.0) + value * times / (times + norm[file])
    return {id: score for id, score in enumerate(found) if score}, files


_TIMES = [weight / (255 - weight) for weight in range(255)]
"""The frequency behind a weight, in units of the text's `level`."""
