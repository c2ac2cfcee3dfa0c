"""Posting lists with weights of one byte, in segments that are written once, and BM25 scores over them.

A refresh writes one new segment and changes no old one, so that the cost of an edit depends on the edited file only. Small
segments are merged now and then. The weight is BM25's saturated, length-normalised frequency, computed when the text is
indexed. Lengths are normalised with a constant instead of the mean of the repository: the mean would change with every
segment, and the constant ranks better in repositories with a few huge tables of data.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from math import log


class PostingKind(IntEnum):
    """The kinds of posting lists."""

    WORDS = 0
    """The words of definitions."""
    USES = 1
    """Names that definitions refer to. The weight is the number of references."""


K1 = 1.6
B = 0.75
AVG_DEFINITION_TERMS = 150.0
"""Terms of a definition of average length."""
AVG_FILE_TERMS = 1500.0
FILE_K1 = 2.0
"""K1 for files. Their frequencies are the sums of those of their definitions."""
NAME_TERM_WEIGHT = 3
"""Frequency that one occurrence in the name counts as, relative to the body and the docstring."""

LINEAR_SCAN_POSTINGS = 16
"""Postings that a linear scan reads in the time of one bisection."""

MAX_ID = (1 << 24) - 1
"""The largest id that fits next to the weight. Ids are never reused: an index that has used half of them is built again."""


def half_saturation(length: float) -> float:
    """Return the term frequency at which a term reaches half of its maximum BM25 score in a text of this length."""
    return K1 * (1 - B + B * length / AVG_DEFINITION_TERMS)


def file_half_saturation(length: float) -> float:
    """Return the same for a file."""
    return FILE_K1 * (1 - B + B * length / AVG_FILE_TERMS)


class Segment:
    """A segment in memory. A posting is one number: the id, and the weight in the lowest byte."""

    def __init__(self) -> None:
        self._lists: dict[PostingKind, defaultdict[str, array[int]]] = {
            space: defaultdict(_int_array) for space in PostingKind
        }

    def add(self, id: int, body: dict[str, int], name: Collection[str] = ()) -> int:
        """Add a definition by the terms of its body and of its name, and return its length."""
        for term in name:
            body[term] = body.get(term, 0) + NAME_TERM_WEIGHT
        length = sum(body.values())
        packed = {frequency: id << 8 | _weight(frequency, length) for frequency in set(body.values())}
        lists = self._lists[PostingKind.WORDS]
        for term, frequency in body.items():  # the innermost loop of indexing
            lists[term].append(packed[frequency])
        return length

    def add_references(self, id: int, references: Mapping[str, int]) -> None:
        """Add the names that a definition refers to."""
        lists = self._lists[PostingKind.USES]
        for name, count in references.items():
            lists[name].append(id << 8 | min(count, 255))

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield the rows of the table of postings, in its order."""
        for space, lists in self._lists.items():
            for term in sorted(lists):
                yield int(space), term, lists[term].tobytes()


def _int_array() -> array[int]:
    return array("I")


@lru_cache(maxsize=50_000)
def _weight(frequency: int, length: int) -> int:
    """Return the saturated frequency of a term in a text of this length, as a byte."""
    return max(1, min(254, round(255 * (frequency / (frequency + half_saturation(length))))))


def ints(blob: bytes) -> array[int]:
    """Unpack an array of numbers."""
    numbers = array("I")
    numbers.frombytes(blob)
    return numbers


def pairs(blobs: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the ids and weights of posting lists."""
    return ((posting >> 8, posting & 255) for blob in blobs for posting in ints(blob))


def count_postings(blobs: Iterable[bytes]) -> int:
    """Return the number of postings."""
    return sum(map(len, blobs)) // 4


def merge_lists(blobs: Iterable[bytes], live_ids: Collection[int]) -> bytes:
    """Merge lists of one term, sorted by id, without removed definitions."""
    return array("I", sorted(posting for blob in blobs for posting in ints(blob) if posting >> 8 in live_ids)).tobytes()


def remove_ids(blob: bytes, removed_ids: Set[int]) -> bytes:
    """Remove ids from a list. If they are few, each is found by bisection instead of scanning all postings."""
    if not removed_ids:
        return blob
    postings = ints(blob)
    if len(removed_ids) * LINEAR_SCAN_POSTINGS > len(postings):
        return array("I", (posting for posting in postings if posting >> 8 not in removed_ids)).tobytes()
    places = {bisect_left(postings, id << 8) for id in removed_ids}
    for place in sorted(places, reverse=True):
        if place < len(postings) and postings[place] >> 8 in removed_ids:
            del postings[place]
    return postings.tobytes()


def idf(document_frequency: int, total: int) -> float:
    """Return BM25's inverse document frequency. It is above 0 for the most common term, too."""
    return log(1 + (max(total - document_frequency, 0) + 0.5) / (document_frequency + 0.5))


@dataclass(frozen=True, slots=True)
class DocumentStats:
    """Facts about all definitions that scoring needs. Positions are ids."""

    file_ids: list[int]
    """The file of each definition, 0 if it was removed."""
    half_saturation: list[float]
    """The half saturation of each definition."""
    file_half_saturation: Mapping[int, float]
    """The half saturation of each file."""
    count: int


def scores(
    lists: Mapping[str, list[bytes]], terms: Mapping[str, float], documents: DocumentStats
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the scores of the definitions and of the files that contain any of the terms.

    The frequency of a term in a file is computed from the weights of its definitions, so that files need no second index.
    """
    file_ids, half_saturation, file_half_saturation = (
        documents.file_ids,
        documents.half_saturation,
        documents.file_half_saturation,
    )
    definitions: dict[int, float] = {}
    files: dict[int, float] = {}
    for term, query_weight in terms.items():
        blobs = lists.get(term)
        if not blobs:
            continue
        step = query_weight * idf(count_postings(blobs), documents.count) / 255
        score_by_weight = [step * weight for weight in range(256)]
        frequency_by_file: dict[int, float] = {}
        for blob in blobs:
            for posting in ints(blob):  # the innermost loop of searching
                id, weight = posting >> 8, posting & 255
                file = file_ids[id]
                if file:
                    definitions[id] = definitions.get(id, 0.0) + score_by_weight[weight]
                    frequency_by_file[file] = (
                        frequency_by_file.get(file, 0.0) + half_saturation[id] * _FREQUENCY_BY_WEIGHT[weight]
                    )
        value = query_weight * idf(len(frequency_by_file), len(file_half_saturation))
        for file, frequency in frequency_by_file.items():
            files[file] = files.get(file, 0.0) + value * frequency / (frequency + file_half_saturation[file])
    return definitions, files


_FREQUENCY_BY_WEIGHT = [weight / (255 - weight) for weight in range(255)]
"""The frequency for each weight, in units of the text's half saturation."""
