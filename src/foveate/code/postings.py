"""Terms -> where they stand: posting lists with a weight of one byte, in segments that are written once.

A refresh writes one new segment and touches no old one, so that an edit costs what the edited file holds; small segments
are merged now and then. The weight is BM25's saturated, length-normalised frequency, worked out when the text is indexed.
It measures against a fixed length and not against the mean of the repository: a mean would change under every segment,
and on repositories with a few huge tables of data the fixed one ranks better too.
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
    """What a list is about."""

    WORDS = 0
    """The words of definitions."""
    USES = 1
    """Names that definitions refer to; the weight is how often."""


K1 = 1.6
B = 0.75
AVG_DEFINITION_TERMS = 150.0
"""Words of a definition of ordinary length."""
AVG_FILE_TERMS = 1500.0
FILE_K1 = 2.0
"""The same for files: their frequencies are the sums of those of their definitions."""
NAME_TERM_WEIGHT = 3
"""What a word is worth in the name, against one in the body or the docstring."""

LINEAR_SCAN_POSTINGS = 16
"""Postings that are looked at in the time in which one id is looked for."""

MAX_ID = (1 << 24) - 1
"""What fits above the weight. Ids are never given out twice: an index that has used up half of them is built again."""


def half_saturation(length: float) -> float:
    """How many occurrences are worth half of the most that a word can be worth, in a text of that length."""
    return K1 * (1 - B + B * length / AVG_DEFINITION_TERMS)


def file_half_saturation(length: float) -> float:
    """The same for a file."""
    return FILE_K1 * (1 - B + B * length / AVG_FILE_TERMS)


class Segment:
    """Postings on their way to the index: one number each, the id above and the weight in its lowest byte."""

    def __init__(self) -> None:
        self._lists: dict[PostingKind, defaultdict[str, array[int]]] = {
            space: defaultdict(_int_array) for space in PostingKind
        }

    def add(self, id: int, body: dict[str, int], name: Collection[str] = ()) -> int:
        """A text by the terms of its body and of its name; its length."""
        for term in name:
            body[term] = body.get(term, 0) + NAME_TERM_WEIGHT
        length = sum(body.values())
        packed = {times: id << 8 | _weight(times, length) for times in set(body.values())}
        lists = self._lists[PostingKind.WORDS]
        for term, times in body.items():  # the innermost loop of indexing
            lists[term].append(packed[times])
        return length

    def add_references(self, id: int, references: Mapping[str, int]) -> None:
        """The names that a definition refers to."""
        lists = self._lists[PostingKind.USES]
        for name, times in references.items():
            lists[name].append(id << 8 | min(times, 255))

    def rows(self) -> Iterator[tuple[int, str, bytes]]:
        """The lists in the order of the table that holds them."""
        for space, lists in self._lists.items():
            for term in sorted(lists):
                yield int(space), term, lists[term].tobytes()


def _int_array() -> array[int]:
    return array("I")


@lru_cache(maxsize=50_000)
def _weight(frequency: int, length: int) -> int:
    """What so many occurrences are worth in a text of that length, as a byte."""
    return max(1, min(254, round(255 * (frequency / (frequency + half_saturation(length))))))


def ints(blob: bytes) -> array[int]:
    """Numbers that were packed as an array of theirs."""
    found = array("I")
    found.frombytes(blob)
    return found


def pairs(blobs: Iterable[bytes]) -> Iterator[tuple[int, int]]:
    """The ids of lists and their weights."""
    return ((one >> 8, one & 255) for blob in blobs for one in ints(blob))


def count_postings(blobs: Iterable[bytes]) -> int:
    """How many postings lists have."""
    return sum(map(len, blobs)) // 4


def merge_lists(blobs: Iterable[bytes], live_ids: Collection[int]) -> bytes:
    """Several lists of one term as one, in order of the ids, without what is gone."""
    return array("I", sorted(one for blob in blobs for one in ints(blob) if one >> 8 in live_ids)).tobytes()


def remove_ids(blob: bytes, removed_ids: Set[int]) -> bytes:
    """A list without the ids that are gone. Mostly they are few: then each is looked for, and not each posting looked at."""
    if not removed_ids:
        return blob
    postings = ints(blob)
    if len(removed_ids) * LINEAR_SCAN_POSTINGS > len(postings):
        return array("I", (one for one in postings if one >> 8 not in removed_ids)).tobytes()
    places = {bisect_left(postings, id << 8) for id in removed_ids}
    for place in sorted(places, reverse=True):
        if place < len(postings) and postings[place] >> 8 in removed_ids:
            del postings[place]
    return postings.tobytes()


def idf(document_frequency: int, total: int) -> float:
    """BM25's inverse document frequency; above 0 however common a term is."""
    return log(1 + (max(total - document_frequency, 0) + 0.5) / (document_frequency + 0.5))


@dataclass(frozen=True, slots=True)
class DocumentStats:
    """What scoring needs to know of all definitions, by id."""

    file_ids: list[int]
    """The file of each; 0 where it is gone."""
    half_saturation: list[float]
    """The `half_saturation` of each."""
    file_half_saturation: Mapping[int, float]
    """The `half_saturation` of each file."""
    count: int


def scores(
    lists: Mapping[str, list[bytes]], terms: Mapping[str, float], documents: DocumentStats
) -> tuple[dict[int, float], dict[int, float]]:
    """The scores of definitions and of files that hold any of the terms.

    How often a file has a word follows from the weights that its definitions have for it: no second index is needed.
    """
    owner, half, norm = documents.file_ids, documents.half_saturation, documents.file_half_saturation
    found: dict[int, float] = {}
    files: dict[int, float] = {}
    for term, importance in terms.items():
        blobs = lists.get(term)
        if not blobs:
            continue
        step = importance * idf(count_postings(blobs), documents.count) / 255
        worth = [step * weight for weight in range(256)]
        often: dict[int, float] = {}
        for blob in blobs:
            for one in ints(blob):  # the innermost loop of searching
                id, weight = one >> 8, one & 255
                file = owner[id]
                if file:
                    found[id] = found.get(id, 0.0) + worth[weight]
                    often[file] = often.get(file, 0.0) + half[id] * _FREQUENCY_BY_WEIGHT[weight]
        value = importance * idf(len(often), len(norm))
        for file, times in often.items():
            files[file] = files.get(file, 0.0) + value * times / (times + norm[file])
    return found, files


_FREQUENCY_BY_WEIGHT = [weight / (255 - weight) for weight in range(255)]
"""The frequency behind a weight, in units of the text's `half_saturation`."""
