"""Vectors for records that have none: after an embedder was set or changed, or did not answer.

Comes in: a store, a project, and what makes vectors. A page of records is read, embedded while no transaction is open, and
written where the texts are still the same. So a slow embedder holds nobody up, whoever is killed has lost one page, and
several may do it at once: each begins at a place of its own and passes over what another has done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foveate.store.protocol import Embed, Store
from foveate.store.retry import retried
from foveate.types import Record, Scope

PROBE = "Does it answer?"
DROPPED = 5000
"""Vectors dropped in one transaction."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """How many records were given a vector, how many still have none, and whether the embedder answers."""

    made: int = 0
    remaining: int = 0
    answered: bool = True


def embed_missing(
    store: Store,
    scope: Scope,
    embed: Embed,
    batch: int,
    *,
    begin: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
    stopped: Callable[[], bool] = lambda: False,
) -> Embedded:
    """Give a vector to every record of a project that has none, until done, told to stop, or without an answer.

    `begin`: where in the project to begin, 0..1.
    """
    with store.read(scope) as reader:
        total, start = reader.lacking(), int(reader.last() * begin)
    made = 0
    for after, end in ((start, None), (0, start)):
        place: int | None = after
        while total and place is not None and (end is None or place < end) and not stopped():
            with store.read(scope) as reader:
                page, further = reader.without_vector(place, batch)
            vectors = _vectors(embed, [record.text for record in page])
            if vectors is None:
                return Embedded(made, lacking(store, scope), answered=False)
            made += _written(store, scope, page, vectors)
            progress(made, max(total, made))
            place = further or None
    return Embedded(made, lacking(store, scope))


def drop_unused(store: Store, scope: Scope) -> dict[str, int]:
    """Drop a project's vectors of every embedder but the store's; how many of each went."""
    with store.read(scope) as reader:
        others = [space.fingerprint for space in reader.spaces() if not space.used]
    dropped = dict.fromkeys(others, 0)
    for fingerprint in others:
        gone = DROPPED
        while gone == DROPPED:
            with store.write(scope) as writer:
                gone = writer.drop_vectors(fingerprint, DROPPED)
            dropped[fingerprint] += gone
    return dropped


def lacking(store: Store, scope: Scope) -> int:
    with store.read(scope) as reader:
        return reader.lacking()


@retried
def _written(store: Store, scope: Scope, page: Sequence[Record], vectors: Sequence[Sequence[float] | None]) -> int:
    found = [(record, vector) for record, vector in zip(page, vectors, strict=True) if vector is not None]
    if not found:
        return 0
    with store.write(scope) as writer:
        return writer.fill_vectors(found)


def _vectors(embed: Embed, texts: Sequence[str]) -> Sequence[Sequence[float] | None] | None:
    """A vector for each text, none for one that the embedder refuses; None where it does not answer at all."""
    if not texts:
        return []
    found = embed(texts)
    if found is not None:
        return found
    return None if embed([PROBE]) is None else _apart(embed, texts)


def _apart(embed: Embed, texts: Sequence[str]) -> list[Sequence[float] | None]:
    """The vectors of texts of which some are refused: halves, until these stand alone."""
    if len(texts) == 1:
        return [None]
    parts = (texts[: len(texts) // 2], texts[len(texts) // 2 :])
    out: list[Sequence[float] | None] = []
    for part in parts:
        found = embed(part)
        out += _apart(embed, part) if found is None else found
    return out
