"""Exact vector search over one project's vectors, held in memory. The one module that imports NumPy.

A segment holds each vector as whole steps of -127 to 127 with a scale, and how far that may be from what is stored: a
quarter of the memory of full floats, and twice as fast to multiply. So a product gives a bound for every record; the
records are taken in the order of their bounds, filtered by the database and scored by the vectors that it has stored,
until no bound that is left could reach the list. Nothing that a filter lets through can be lost.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.store.vectors import VectorGroup, VectorHit, VectorView, best_hits

Array = NDArray[Any]

MAX_BYTES = 2**30
"""Memory for the vectors of all projects: four million of 256 numbers. The one in use stays, whatever its size."""

VERSIONS = 4
"""Of a segment that are held: a reader whose snapshot is a little older need not read everything again."""

PAGE = 1024
"""Vectors read, or multiplied, at once: what a processor's cache can hold."""

SPARE = 50
"""Records looked at first beyond those that are wanted: bounds are not scores, and a filter seldom rejects most."""

LISTED = 20_000
"""Records that a narrow filter may let through: listed, they are a few milliseconds."""

LOOKUP = 8
"""What it costs to look one record up, in records read one after another."""

SLICE = 4096
"""Rows put in the order of their bounds at first: mostly enough, and quick to sort."""

ROUNDED = 1e-6
UNIT = 2.0**-24
"""Of a float: what one multiplication may be wrong by."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One project's vectors in one space, as of one change. Rows that were replaced or removed have no bound."""

    latest: int
    docs: Array
    kinds: Array
    scale: Array
    error: Array
    blocks: tuple[Array, ...]
    """The steps, row by row: a large block, then smaller ones. A change adds a block and leaves the others as they are."""

    @property
    def parts(self) -> tuple[Array, ...]:
        return self.docs, self.kinds, self.scale, self.error, *self.blocks

    def bounds(self, question: Array) -> Array:
        """What the nearness of each row cannot exceed."""
        asked = question.astype("f4")
        found = np.empty(len(self.docs), "f4")
        start = 0
        for block in self.blocks:
            floats = np.empty((min(PAGE, len(block)), block.shape[1]), "f4")
            for first in range(0, len(block), PAGE):
                part = block[first : first + PAGE]
                np.copyto(floats[: len(part)], part)
                np.dot(floats[: len(part)], asked, out=found[start : start + len(part)])
                start += len(part)
        found *= self.scale
        found += self.error * np.float32(np.linalg.norm(question) * (1 + 4 * UNIT))
        return found

    def taking(self, newer: Segment) -> Segment:
        """With the vectors of a newer segment, each in place of the one that its record had."""
        if not len(newer.docs):
            return Segment(newer.latest, self.docs, self.kinds, self.scale, self.error, self.blocks)
        error = self.error
        if len(self.docs) and newer.docs.min() <= self.docs.max():  # else they are all new
            error = np.where(np.isin(self.docs, newer.docs), np.float32(-np.inf), error)
        return Segment(
            newer.latest,
            np.concatenate((self.docs, newer.docs)),
            np.concatenate((self.kinds, newer.kinds)),
            np.concatenate((self.scale, newer.scale)),
            np.concatenate((error, newer.error)),
            _merged((*self.blocks, *newer.blocks)),
        ).tidied()

    def only(self, docs: Array) -> Segment:
        """Without the records that are not among these."""
        error = np.where(np.isin(self.docs, docs), self.error, np.float32(-np.inf))
        return Segment(self.latest, self.docs, self.kinds, self.scale, error, self.blocks).tidied()

    def tidied(self) -> Segment:
        """Without the rows that have no bound, where they are a quarter."""
        live = np.isfinite(self.error)
        if 4 * int(live.sum()) > 3 * len(live):
            return self
        blocks = (np.concatenate(self.blocks)[live],) if live.any() else ()
        return Segment(self.latest, self.docs[live], self.kinds[live], self.scale[live], self.error[live], blocks)


EMPTY = Segment(0, np.empty(0, "i8"), np.empty(0, "i2"), np.empty(0, "f4"), np.empty(0, "f4"), ())


def quantised(rows: Sequence[tuple[int, int, int, bytes]]) -> Segment:
    """A segment of (number of the change, doc, kind, vector)."""
    changes, docs, kinds, blobs = zip(*rows, strict=True)
    floats = _floats(blobs, "f4")
    scale = np.maximum(floats.max(axis=1), -floats.min(axis=1)) / np.float32(127)
    scale[scale == 0] = 1
    steps = floats / scale[:, None]
    np.rint(steps, out=steps)
    whole = steps.astype("i1")
    steps *= scale[:, None]
    length = np.sqrt(np.einsum("ij,ij->i", floats, floats))
    floats -= steps
    error = np.sqrt(np.einsum("ij,ij->i", floats, floats))
    error += np.float32(2 * floats.shape[1] * UNIT) * length  # of the sums, here and in `bounds`
    return Segment(changes[-1], np.array(docs, "i8"), np.array(kinds, "i2"), scale, error, (whole,))


class Search:
    """Segments by (project, space), brought up to date by what changed since, and the search over them."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[tuple[int, int], list[Segment]] = OrderedDict()
        self._lock = Lock()
        self._bringing: defaultdict[tuple[int, int], Lock] = defaultdict(Lock)

    def nearest(self, view: VectorView, vector: Sequence[float], groups: Sequence[VectorGroup]) -> list[list[VectorHit]]:
        segment = self.segment(view)
        question = np.asarray(vector, "f8")
        bounds = segment.bounds(question)
        return [best_hits(_found(view, segment, bounds, question, group), group.limit) for group in groups]

    def similarities(self, view: VectorView, vector: Sequence[float], docs: Sequence[int]) -> dict[int, float]:
        at = {"project": view.project, "space": view.namespace_id, "docs": json.dumps(list(docs))}
        rows = view.rows("vectors_of", at) if docs else []
        return dict(zip((row[0] for row in rows), _exact(np.asarray(vector, "f8"), [row[1] for row in rows]), strict=True))

    def segment(self, view: VectorView) -> Segment:
        """The vectors that the view sees, read as far as they are not held."""
        at = {"project": view.project, "space": view.namespace_id}
        state = view.rows("segment", at)
        latest, removed = state[0] if state else (0, 0)
        key = (view.project, view.namespace_id)
        held = self._newest(key, latest)
        if held.latest == latest:
            return held
        if view.has_uncommitted_writes:
            return _brought(view, held, latest, removed)
        with self._lock:
            bringing = self._bringing[key]
        with bringing:  # who comes second finds it done
            held = self._newest(key, latest)
            if held.latest != latest:
                held = _brought(view, held, latest, removed)
                self._keep(key, held)
        return held

    def _newest(self, key: tuple[int, int], latest: int) -> Segment:
        """The newest version that is not ahead of the view."""
        with self._lock:
            versions = self._held.get(key, [])
            if versions:
                self._held.move_to_end(key)
            return next((held for held in reversed(versions) if held.latest <= latest), EMPTY)

    def _keep(self, key: tuple[int, int], segment: Segment) -> None:
        with self._lock:
            versions = self._held.setdefault(key, [])
            if versions and versions[-1].latest >= segment.latest:
                return
            self._held[key] = [*versions, segment][-VERSIONS:]
            self._held.move_to_end(key)
            self._shrink()

    def _shrink(self) -> None:
        """Let go of what was used longest ago, older versions first, until the rest fits; the one in use stays."""
        while _bytes(self._held.values()) > self._max_bytes:
            longest_ago = next(iter(self._held.values()))
            if len(longest_ago) > 1:
                del longest_ago[0]
            elif len(self._held) > 1:
                self._held.popitem(last=False)
            else:
                return


def _bytes(held: Iterable[Sequence[Segment]]) -> int:
    """What segments take together: versions of one have most of their blocks in common."""
    parts = {id(part): part.nbytes for versions in held for segment in versions for part in segment.parts}
    return sum(parts.values())


def _brought(view: VectorView, held: Segment, latest: int, removed: int) -> Segment:
    """A segment as of the view: what was put since is read; after a removal also which records still have a vector."""
    at = {"project": view.project, "space": view.namespace_id}
    after, parts = held.latest, []
    while page := view.rows("vectors_since", {**at, "after": after, "limit": PAGE}):
        parts.append(quantised(page))
        after = page[-1][0]
    found = held.taking(_joined(parts, latest))
    if held.latest < removed and len(found.docs):
        found = found.only(np.array(json.loads(view.rows("vector_docs", at)[0][0]), "i8"))
    return found


def _joined(parts: Sequence[Segment], latest: int) -> Segment:
    """Segments of different records as one."""
    if not parts:
        return Segment(latest, EMPTY.docs, EMPTY.kinds, EMPTY.scale, EMPTY.error, ())
    columns = zip(*((part.docs, part.kinds, part.scale, part.error, part.blocks[0]) for part in parts), strict=True)
    docs, kinds, scale, error, steps = (np.concatenate(column) for column in columns)
    return Segment(latest, docs, kinds, scale, error, (steps,))


def _merged(blocks: tuple[Array, ...]) -> tuple[Array, ...]:
    """Each block larger than all that follow it, so that they stay few and no row is copied often."""
    while len(blocks) > 1 and len(blocks[-2]) <= 2 * len(blocks[-1]):
        blocks = (*blocks[:-2], np.concatenate(blocks[-2:]))
    return blocks


def _found(view: VectorView, segment: Segment, bounds: Array, question: Array, asked: VectorGroup) -> list[VectorHit]:
    """Records of a group that pass the filters, by their bounds, until no other could be among the nearest."""
    rest = _rows_of(segment, bounds, asked)
    number, looked, width, slice_ = len(rest), 0, asked.limit + SPARE, SLICE
    found: list[VectorHit] = []
    ahead, listed = rest[:0], False
    while len(ahead) or len(rest):
        if not len(ahead):
            ahead, rest = _sliced(rest, bounds, slice_)
            slice_ *= 8
        if _last(found, asked.limit) - ROUNDED > bounds[ahead[0]]:
            break
        page, ahead = ahead[:width], ahead[width:]
        found += _passing(view, segment.docs[page], question)
        looked, width = looked + len(page), width * 2
        if not listed and _is_narrow(view, asked.limit - len(found), max(len(found), 0.5) / looked, number):
            listed, rest, ahead = True, _within(view, segment, np.concatenate((ahead, rest)), asked), ahead[:0]
    return found


def _rows_of(segment: Segment, bounds: Array, asked: VectorGroup) -> Array:
    """The rows of a group that could be near at all."""
    if asked.limit < 1:
        return np.empty(0, "i8")
    possible = bounds > 0
    if asked.kinds is not None:
        wanted = np.zeros(len(bounds), bool)
        for code in asked.kinds.values():
            wanted |= segment.kinds == code
        possible &= wanted
    return np.flatnonzero(possible)


def _sliced(rows: Array, bounds: Array, size: int) -> tuple[Array, Array]:
    """The rows of the largest bounds, these first, and the others."""
    first, others = rows, rows[:0]
    if len(rows) > size:
        order = np.argpartition(bounds[rows], len(rows) - size)
        first, others = rows[order[-size:]], rows[order[:-size]]
    return first[np.argsort(-bounds[first], kind="stable")], others


def _last(found: Sequence[VectorHit], limit: int) -> float:
    """The nearness of the last that would be on the list; nothing is too far while there are fewer."""
    holding = sorted((one.similarity for one in found if one.is_current), reverse=True)
    return holding[limit - 1] if len(holding) >= limit > 0 else 0.0


def _is_narrow(view: VectorView, lacking: int, share: float, number: int) -> bool:
    """Whether to list what a filter lets through, rather than to look records up until enough have passed.

    An index finds what is within a time; for every other filter all records are read, or until too many have passed.
    """
    by_time = view.filter_params.get("since") is not None or view.filter_params.get("until") is not None
    read = min(LISTED, share * number) if by_time else min(LISTED / share, number)
    return LOOKUP * lacking / share > read


def _within(view: VectorView, segment: Segment, rows: Array, asked: VectorGroup) -> Array:
    """The rows that pass the filters, where these are few; else all of them."""
    names = None if asked.kinds is None else json.dumps(list(asked.kinds))
    at = {"project": view.project, "kinds": names, "limit": LISTED + 1}
    docs = view.rows("few_within", {**view.filter_params, **at})
    if len(docs) > LISTED:
        return rows
    return rows[np.isin(segment.docs[rows], np.array([row[0] for row in docs], "i8"))]


def _passing(view: VectorView, docs: Array, question: Array) -> list[VectorHit]:
    """Those of some records that may be seen and pass the filters, with their exact nearness."""
    at = {"project": view.project, "space": view.namespace_id, "docs": json.dumps(docs.tolist())}
    rows = view.rows("vectors_within", {**view.filter_params, **at})
    scores = _exact(question, [row[2] for row in rows])
    return [VectorHit(doc, score, status == "active") for (doc, status, _), score in zip(rows, scores, strict=True)]


def _exact(question: Array, blobs: Sequence[bytes]) -> list[float]:
    """The nearness of stored vectors, within 0..1. In double precision: the same bits whatever else was scored with them."""
    if not blobs:
        return []
    found: list[float] = np.clip(np.round(_floats(blobs, "f8") @ question, 6), 0.0, 1.0).tolist()
    return found


def _floats(blobs: Sequence[bytes], sort: str) -> Array:
    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), -1).astype(sort)
