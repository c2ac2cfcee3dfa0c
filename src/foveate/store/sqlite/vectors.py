"""Exact vector search over one project's vectors, held in memory. This is the only module of the store that imports NumPy.

A segment holds each vector quantized to 8-bit steps with a scale, and the error that this can cause: a quarter of the memory
of 32-bit floats, and twice as fast to multiply. So one matrix product gives an upper bound of every record's similarity. The
search visits records in the order of their bounds, lets the database filter them, and scores them by their stored vectors,
until no bound that is left could reach the list. The result is exact under every filter.
"""

from __future__ import annotations

import json
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.store.protocol import SearchGroup
from foveate.store.vectors import VectorHit, VectorView, best_hits

Array = NDArray[Any]

MAX_MEMORY_BYTES = 2**30
"""Memory for the segments of all projects: four million vectors of 256 numbers. The segment in use always stays."""

MAX_CACHED_VERSIONS = 4
"""Versions of a segment that are cached, so that a reader with an older snapshot need not read all vectors again."""

PAGE_ROWS = 1024
"""Vectors read or multiplied at once. A page of 256-number vectors is 1 MB of floats and fits a processor's cache."""

EXTRA_CANDIDATES = 50
"""Records scored in the first round in addition to the group's limit. Bounds are not in the order of the exact similarities,
and most filters let most records pass, so one round is usually enough."""

MAX_LISTED_DOCS = 20_000
"""Records that a narrow filter may let through for the search to list them all, which takes a few milliseconds."""

LOOKUP_COST = 8
"""Cost of looking up one record by its number, relative to reading one in a scan."""

INITIAL_SORTED_ROWS = 4096
"""Rows that are sorted by their bounds at first. Sorting all rows takes longer, and few searches need more."""

SIMILARITY_EPSILON = 1e-6
"""Similarities are rounded to six places, so a bound may be this much below the rounded value."""

FLOAT_EPSILON = 2.0**-24
"""Relative error of one operation on 32-bit floats."""


@dataclass(frozen=True, slots=True)
class VectorSegment:
    """The vectors of one project and embedder as of one change. Each field is a column with one entry for each row."""

    last_change: int
    docs: Array
    kinds: Array
    scale: Array
    error: Array
    """Upper limit of the quantization error. -inf marks a row that was replaced or removed: its bound is -inf, too."""
    blocks: tuple[Array, ...]
    """The quantized vectors, a large block and then smaller ones. A change appends a block and copies none of the others."""

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self.docs, self.kinds, self.scale, self.error, *self.blocks

    def upper_bounds(self, query_vector: Array) -> Array:
        """Return for each row a value that its similarity to the query cannot exceed."""
        factors = query_vector.astype("f4")
        bounds = np.empty(len(self.docs), "f4")
        start = 0
        for block in self.blocks:
            floats = np.empty((min(PAGE_ROWS, len(block)), block.shape[1]), "f4")
            for first in range(0, len(block), PAGE_ROWS):
                page = block[first : first + PAGE_ROWS]
                # NumPy multiplies 8-bit integers without BLAS, so each page is converted into one reused buffer.
                np.copyto(floats[: len(page)], page)
                np.dot(floats[: len(page)], factors, out=bounds[start : start + len(page)])
                start += len(page)
        bounds *= self.scale
        # Cauchy-Schwarz: the error vector changes the product by at most its length times the query's length.
        bounds += self.error * np.float32(np.linalg.norm(query_vector) * (1 + 4 * FLOAT_EPSILON))
        return bounds

    def merge(self, newer: VectorSegment) -> VectorSegment:
        """Return a segment with the vectors of a newer one. They replace the vectors of the same records."""
        if not len(newer.docs):
            return replace(self, last_change=newer.last_change)
        error = self.error
        # New records have higher numbers than all before, so the search for replaced rows is seldom needed.
        if len(self.docs) and newer.docs.min() <= self.docs.max():
            error = np.where(np.isin(self.docs, newer.docs), np.float32(-np.inf), error)
        return VectorSegment(
            newer.last_change,
            np.concatenate((self.docs, newer.docs)),
            np.concatenate((self.kinds, newer.kinds)),
            np.concatenate((self.scale, newer.scale)),
            np.concatenate((error, newer.error)),
            _merge_blocks((*self.blocks, *newer.blocks)),
        ).compact()

    def restrict_to(self, docs: Array) -> VectorSegment:
        """Return a segment without the records that are not among these."""
        error = np.where(np.isin(self.docs, docs), self.error, np.float32(-np.inf))
        return replace(self, error=error).compact()

    def compact(self) -> VectorSegment:
        """Return a segment without dead rows if they are at least a quarter, otherwise this one.

        Compacting copies every vector. At a quarter it happens seldom enough, and little memory is wasted until then.
        """
        live = np.isfinite(self.error)
        if 4 * int(live.sum()) > 3 * len(live):
            return self
        blocks = (np.concatenate(self.blocks)[live],) if live.any() else ()
        return VectorSegment(self.last_change, self.docs[live], self.kinds[live], self.scale[live], self.error[live], blocks)


EMPTY_SEGMENT = VectorSegment(0, np.empty(0, "i8"), np.empty(0, "i2"), np.empty(0, "f4"), np.empty(0, "f4"), ())


def quantize(rows: Sequence[tuple[int, int, int, bytes]]) -> VectorSegment:
    """Return a segment of rows (number of the change, doc, kind, stored vector)."""
    changes, docs, kinds, blobs = zip(*rows, strict=True)
    floats = _float_array(blobs, "f4")
    scale = np.maximum(floats.max(axis=1), -floats.min(axis=1)) / np.float32(127)
    scale[scale == 0] = 1
    steps = floats / scale[:, None]
    np.rint(steps, out=steps)
    quantized = steps.astype("i1")
    # The arrays are reused from here on: a page of floats is the largest value that this function holds.
    steps *= scale[:, None]
    length = np.sqrt(np.einsum("ij,ij->i", floats, floats))
    floats -= steps
    error = np.sqrt(np.einsum("ij,ij->i", floats, floats))
    # Sums of 32-bit floats are inexact, too, both here and in `upper_bounds`. Without this term a bound could be too low.
    error += np.float32(2 * floats.shape[1] * FLOAT_EPSILON) * length
    return VectorSegment(changes[-1], np.array(docs, "i8"), np.array(kinds, "i2"), scale, error, (quantized,))


class InMemoryVectorSearch:
    """Vector search over cached segments, one for each (project, namespace). A search first reads what changed since."""

    def __init__(self, max_bytes: int = MAX_MEMORY_BYTES) -> None:
        self._max_bytes = max_bytes
        self._versions: OrderedDict[tuple[int, int], list[VectorSegment]] = OrderedDict()
        """Versions of each segment, oldest first; the segment used last is at the end."""
        self._lock = Lock()
        self._update_locks: defaultdict[tuple[int, int], Lock] = defaultdict(Lock)

    def nearest(self, view: VectorView, vector: Sequence[float], groups: Sequence[SearchGroup]) -> list[list[VectorHit]]:
        segment = self.segment(view)
        query_vector = np.asarray(vector, "f8")
        bounds = segment.upper_bounds(query_vector)
        return [best_hits(_search_segment(view, segment, bounds, query_vector, group), group.limit) for group in groups]

    def similarities(self, view: VectorView, vector: Sequence[float], docs: Sequence[int]) -> dict[int, float]:
        params = {"project": view.project, "space": view.namespace_id, "docs": json.dumps(list(docs))}
        rows = view.rows("vectors_of", params) if docs else []
        scores = _exact_similarities(np.asarray(vector, "f8"), [row[1] for row in rows])
        return dict(zip((row[0] for row in rows), scores, strict=True))

    def segment(self, view: VectorView) -> VectorSegment:
        """Return the vectors that the view sees. Only those that are not cached are read from the database."""
        params = {"project": view.project, "space": view.namespace_id}
        rows = view.rows("segment", params)
        last_change, last_removal = rows[0] if rows else (0, 0)
        key = (view.project, view.namespace_id)
        cached = self._newest_cached(key, last_change)
        if cached.last_change == last_change:
            return cached
        if view.has_uncommitted_writes:
            return _read_changes(view, cached, last_change, last_removal)
        with self._lock:
            update_lock = self._update_locks[key]
        # One thread reads the changes; the others wait and find them cached. `_lock` is held for moments only, so that
        # searches in other projects never wait for this reading.
        with update_lock:
            cached = self._newest_cached(key, last_change)
            if cached.last_change != last_change:
                cached = _read_changes(view, cached, last_change, last_removal)
                self._cache(key, cached)
        return cached

    def _newest_cached(self, key: tuple[int, int], last_change: int) -> VectorSegment:
        """Return the newest version that holds nothing later than the change."""
        with self._lock:
            versions = self._versions.get(key, [])
            if versions:
                self._versions.move_to_end(key)
            return next((version for version in reversed(versions) if version.last_change <= last_change), EMPTY_SEGMENT)

    def _cache(self, key: tuple[int, int], segment: VectorSegment) -> None:
        with self._lock:
            versions = self._versions.setdefault(key, [])
            if versions and versions[-1].last_change >= segment.last_change:
                return  # the reader had an older snapshot than others
            self._versions[key] = [*versions, segment][-MAX_CACHED_VERSIONS:]
            self._versions.move_to_end(key)
            self._evict()

    def _evict(self) -> None:
        """Drop the least recently used segments, old versions first, until the rest fits. The one in use stays."""
        while _memory_bytes(self._versions.values()) > self._max_bytes:
            least_recent = next(iter(self._versions.values()))
            if len(least_recent) > 1:
                del least_recent[0]
            elif len(self._versions) > 1:
                self._versions.popitem(last=False)
            else:
                return


def _memory_bytes(versions_by_key: Iterable[Sequence[VectorSegment]]) -> int:
    """Return the memory that segments take. Versions share most of their arrays, so each array is counted once."""
    arrays = {id(array): array.nbytes for versions in versions_by_key for segment in versions for array in segment.arrays}
    return sum(arrays.values())


def _read_changes(view: VectorView, cached: VectorSegment, last_change: int, last_removal: int) -> VectorSegment:
    """Return a segment as the view sees it: the cached one with the vectors that were stored or removed since."""
    params = {"project": view.project, "space": view.namespace_id}
    after, parts = cached.last_change, []
    while rows := view.rows("vectors_since", {**params, "after": after, "limit": PAGE_ROWS}):
        parts.append(quantize(rows))
        after = rows[-1][0]
    segment = cached.merge(_concat_segments(parts, last_change))
    # A removed row leaves no trace of its own. So after any removal the remaining numbers are read and compared.
    if cached.last_change < last_removal and len(segment.docs):
        segment = segment.restrict_to(np.array(json.loads(view.rows("vector_docs", params)[0][0]), "i8"))
    return segment


def _concat_segments(parts: Sequence[VectorSegment], last_change: int) -> VectorSegment:
    """Return one segment of parts that have no record in common."""
    if not parts:
        return replace(EMPTY_SEGMENT, last_change=last_change)
    columns = zip(*((part.docs, part.kinds, part.scale, part.error, part.blocks[0]) for part in parts), strict=True)
    docs, kinds, scale, error, vectors = (np.concatenate(column) for column in columns)
    return VectorSegment(last_change, docs, kinds, scale, error, (vectors,))


def _merge_blocks(blocks: tuple[Array, ...]) -> tuple[Array, ...]:
    """Merge trailing blocks until each is more than twice as large as the next.

    There are then at most log2(n) blocks, and a vector is copied that often at most.
    """
    while len(blocks) > 1 and len(blocks[-2]) <= 2 * len(blocks[-1]):
        blocks = (*blocks[:-2], np.concatenate(blocks[-2:]))
    return blocks


def _search_segment(
    view: VectorView, segment: VectorSegment, bounds: Array, query_vector: Array, group: SearchGroup
) -> list[VectorHit]:
    """Return hits of a group that contain all of its nearest records.

    Records are scored in the order of their bounds, in rounds that double in size. If the filters let few records pass,
    the database lists those, and only they are scored from then on.
    """
    unsorted = _candidate_rows(view, segment, bounds, group)
    candidates, scored, width, sort_size = len(unsorted), 0, group.limit + EXTRA_CANDIDATES, INITIAL_SORTED_ROWS
    hits: list[VectorHit] = []
    queue, is_listed = unsorted[:0], False
    while len(queue) or len(unsorted):
        if not len(queue):
            queue, unsorted = _split_by_bound(unsorted, bounds, sort_size)
            sort_size *= 8
        if _min_competitive_similarity(hits, group.limit) - SIMILARITY_EPSILON > bounds[queue[0]]:
            break
        page, queue = queue[:width], queue[width:]
        hits += _score_visible(view, segment.docs[page], query_vector)
        scored, width = scored + len(page), width * 2
        # At least half a hit, so that the estimate stays above 0 while nothing has passed.
        pass_rate = max(len(hits), 0.5) / scored
        if not is_listed and _should_list_docs(view, group.limit - len(hits), pass_rate, candidates):
            unsorted = _rows_that_pass(view, segment, np.concatenate((queue, unsorted)), group)
            queue, is_listed = queue[:0], True
    return hits


def _candidate_rows(view: VectorView, segment: VectorSegment, bounds: Array, group: SearchGroup) -> Array:
    """Return the rows of a group's kinds that can have a similarity above 0."""
    if group.limit < 1:
        return np.empty(0, "i8")
    possible = bounds > 0
    if group.kinds:
        possible &= np.isin(segment.kinds, [view.kind_codes[kind] for kind in group.kinds if kind in view.kind_codes])
    return np.flatnonzero(possible)


def _split_by_bound(rows: Array, bounds: Array, size: int) -> tuple[Array, Array]:
    """Return the `size` rows with the highest bounds, sorted, and the others, unsorted."""
    highest, others = rows, rows[:0]
    if len(rows) > size:
        order = np.argpartition(bounds[rows], len(rows) - size)
        highest, others = rows[order[-size:]], rows[order[:-size]]
    return highest[np.argsort(-bounds[highest], kind="stable")], others


def _min_competitive_similarity(hits: Sequence[VectorHit], limit: int) -> float:
    """Return the similarity that a record needs to be among the `limit` best, or 0 while there are fewer hits."""
    current = sorted((hit.similarity for hit in hits if hit.is_current), reverse=True)
    return current[limit - 1] if len(current) >= limit > 0 else 0.0


def _should_list_docs(view: VectorView, missing: int, pass_rate: float, candidates: int) -> bool:
    """Return whether listing the records that pass the filters is cheaper than looking up candidates one by one.

    An index finds the records of a time range. For other filters the list reads every record, until too many have passed.
    """
    by_time = view.filter_params.get("since") is not None or view.filter_params.get("until") is not None
    listed = min(MAX_LISTED_DOCS, pass_rate * candidates) if by_time else min(MAX_LISTED_DOCS / pass_rate, candidates)
    return LOOKUP_COST * missing / pass_rate > listed


def _rows_that_pass(view: VectorView, segment: VectorSegment, rows: Array, group: SearchGroup) -> Array:
    """Return the rows that pass the filters, or all rows if more than `MAX_LISTED_DOCS` records do."""
    names = json.dumps(group.kinds) if group.kinds else None
    params = {"project": view.project, "kinds": names, "limit": MAX_LISTED_DOCS + 1}
    docs = view.rows("matching_docs", {**view.filter_params, **params})
    if len(docs) > MAX_LISTED_DOCS:
        return rows
    return rows[np.isin(segment.docs[rows], np.array([row[0] for row in docs], "i8"))]


def _score_visible(view: VectorView, docs: Array, query_vector: Array) -> list[VectorHit]:
    """Return a hit with its exact similarity for each of these records that is visible and passes the filters."""
    params = {"project": view.project, "space": view.namespace_id, "docs": json.dumps(docs.tolist())}
    rows = view.rows("matching_vectors", {**view.filter_params, **params})
    scores = _exact_similarities(query_vector, [row[2] for row in rows])
    return [VectorHit(doc, score, status == "active") for (doc, status, _), score in zip(rows, scores, strict=True)]


def _exact_similarities(query_vector: Array, blobs: Sequence[bytes]) -> list[float]:
    """Return the similarity of each stored vector, in 0..1.

    Double precision and six places: a record gets the same bits regardless of the vectors that are scored together with it.
    """
    if not blobs:
        return []
    scores: list[float] = np.clip(np.round(_float_array(blobs, "f8") @ query_vector, 6), 0.0, 1.0).tolist()
    return scores


def _float_array(blobs: Sequence[bytes], dtype: str) -> Array:
    return np.frombuffer(b"".join(blobs), dtype="<f2").reshape(len(blobs), -1).astype(dtype)
