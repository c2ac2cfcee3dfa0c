"""Add vectors and better summaries to records that were stored without them.

A record has no vector if the embedder was set later, was changed, or did not answer. A page of records is read, embedded
while no transaction is open, and written if the texts are still the same. So a slow embedder blocks no writer, a killed
process loses one page, and several processes can share the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from foveate.errors import Conflict, InputError
from foveate.records.kinds import kind_of
from foveate.records.make import finish
from foveate.store.protocol import Store
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import PERSONAL_PROJECT, ScopedStore
from foveate.text.embed import Embedder, Vector, embed_or_none
from foveate.text.summarize import ExtractiveSummarizer, Lengths, Summarizer
from foveate.types import Record, Scope

NO_EMBEDDER_MESSAGE = 'No embedder is set. Set one in .foveate/config.toml: embedder = "model2vec:...".'

EMBED_BATCH_SIZE = 256
"""Records embedded at once. An interruption loses at most this many."""

DROP_BATCH_SIZE = 5000
"""Vectors deleted in one transaction."""

SUMMARY_BATCH_SIZE = 100
"""Records summarized from one snapshot. A slow model must not keep a snapshot open."""

PROBE_TEXT = "Does it answer?"
"""Text that every embedder accepts. It shows whether an embedder is down or has rejected one of the texts."""


# --- vectors -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """Records that were embedded, records still without a vector, and the error if the embedder did not answer."""

    embedded_count: int = 0
    remaining: int = 0
    error: str = ""


def embed_missing(
    data: ScopedStore,
    *,
    batch: int = EMBED_BATCH_SIZE,
    all_projects: bool = False,
    start: float = 0.0,
    progress: Callable[[int, int], None] = lambda done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> EmbedResult:
    """Embed every record of the project and the personal store that has no vector by this embedder.

    `all_projects` includes every project of the store. `start` (0..1) is the position in each project to begin at, so that
    several processes can begin at different records. The work can be stopped at any point and continues from there.
    """
    embedder = _embedder_of(data)
    targets = _targets(data, all_projects)
    missing = [count_missing(store, scope) for store, scope in targets]
    # An embedder that is down is down for every project: after an error the others are only counted.
    done = EmbedResult()
    for (store, scope), number in zip(targets, missing, strict=True):
        part = EmbedResult(0, number, done.error)
        if number and not done.error:
            overall = partial(_report_overall, progress, done.embedded_count, sum(missing))
            part = _embed_project(store, scope, embedder, batch, start, overall, should_stop)
        done = EmbedResult(done.embedded_count + part.embedded_count, done.remaining + part.remaining, part.error)
    return done


def drop_unused_vectors(data: ScopedStore) -> dict[str, int]:
    """Delete the vectors of other embedders and return how many each had. Every record must have one of the current one."""
    _embedder_of(data)
    with data.reader() as reader:
        missing = reader.count_missing_vectors()
    if missing:
        raise InputError(f"{missing} records have no vector by this embedder yet. Run `foveate store maintain` first.")
    dropped: dict[str, int] = {}
    for store, scope in _targets(data, all_projects=False):
        for fingerprint, number in _drop_unused(store, scope).items():
            dropped[fingerprint] = dropped.get(fingerprint, 0) + number
    return dropped


def count_missing(store: Store, scope: Scope) -> int:
    """Return the number of records in a project that have no vector by the store's embedder."""
    with store.read(scope) as reader:
        return reader.count_missing_vectors()


def _report_overall(progress: Callable[[int, int], None], before: int, total: int, made: int, expected: int) -> None:
    """Report the progress of one project as a part of all."""
    progress(before + made, max(total, before + expected))


def _embedder_of(data: ScopedStore) -> Embedder:
    if data.embedder is None:
        raise InputError(NO_EMBEDDER_MESSAGE)
    return data.embedder


def _targets(data: ScopedStore, all_projects: bool) -> list[tuple[Store, Scope]]:
    projects = data.store.projects() if all_projects else [data.scope.project]
    personal = [] if data.personal is None else [(data.personal, Scope(PERSONAL_PROJECT))]
    return [*((data.store, Scope(name)) for name in projects), *personal]


def _embed_project(
    store: Store,
    scope: Scope,
    embedder: Embedder,
    batch: int,
    start: float,
    progress: Callable[[int, int], None],
    should_stop: Callable[[], bool],
) -> EmbedResult:
    with store.read(scope) as reader:
        total, first = reader.count_missing_vectors(), int(reader.max_doc() * start)
    made = 0
    # From the start position to the end, then from the beginning to the start position.
    for after, end in ((first, None), (0, first)):
        cursor: int | None = after
        while total and cursor is not None and (end is None or cursor < end) and not should_stop():
            with store.read(scope) as reader:
                page, next_cursor = reader.records_without_vector(cursor, batch)
            vectors, error = _vectors(embedder, [record.text for record in page])
            if vectors is None:
                return EmbedResult(made, count_missing(store, scope), error)
            made += _store_vectors(store, scope, page, vectors)
            progress(made, max(total, made))
            cursor = next_cursor or None
    return EmbedResult(made, count_missing(store, scope))


def _drop_unused(store: Store, scope: Scope) -> dict[str, int]:
    with store.read(scope) as reader:
        others = [namespace.fingerprint for namespace in reader.embedding_namespaces() if not namespace.is_current]
    dropped = dict.fromkeys(others, 0)
    for fingerprint in others:
        number = DROP_BATCH_SIZE
        while number == DROP_BATCH_SIZE:
            with store.write(scope) as writer:
                number = writer.drop_vectors(fingerprint, DROP_BATCH_SIZE)
            dropped[fingerprint] += number
    return dropped


@retry_interrupted
def _store_vectors(store: Store, scope: Scope, page: Sequence[Record], vectors: Sequence[Vector | None]) -> int:
    ready = [(record, vector) for record, vector in zip(page, vectors, strict=True) if vector is not None]
    if not ready:
        return 0
    with store.write(scope) as writer:
        return writer.add_missing_vectors(ready)


def _vectors(embedder: Embedder, texts: Sequence[str]) -> tuple[Sequence[Vector | None] | None, str]:
    """Return a vector for each text, None for a text that the embedder rejects. If it is down, return None and the error."""
    if not texts:
        return [], ""
    vectors, error = embed_or_none(embedder, texts)
    if vectors is not None:
        return vectors, ""
    answers, _ = embed_or_none(embedder, [PROBE_TEXT])
    return (None, error) if answers is None else (_embed_halves(embedder, texts), "")


def _embed_halves(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    """Embed texts of which some are rejected, by halving until the rejected ones are alone."""
    if len(texts) == 1:
        return [None]
    out: list[Vector | None] = []
    for half in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
        vectors, _ = embed_or_none(embedder, half)
        out += _embed_halves(embedder, half) if vectors is None else vectors
    return out


# --- summaries -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """Records with an extracted summary, and how many of them were rewritten or left unchanged."""

    candidates: int
    rewritten: int = 0
    unchanged: int = 0


def rewrite_summaries(
    data: ScopedStore,
    summarizer: Summarizer,
    *,
    limit: int | None = None,
    dry_run: bool = False,
    progress: Callable[[str], None] = lambda id: None,
) -> SummaryResult:
    """Rewrite extracted summaries with a summarizer, usually a language model. Summaries that an author wrote stay."""
    with data.project_reader() as reader:
        candidates = [record.id for record, _ in _with_extracted_summary(reader.records())]
    if dry_run:
        return SummaryResult(len(candidates))
    rewritten = unchanged = 0
    ids = candidates[:limit]
    for start in range(0, len(ids), SUMMARY_BATCH_SIZE):
        with data.project_reader() as reader:
            records = reader.get(ids[start : start + SUMMARY_BATCH_SIZE]).values()
            batch = list(_with_extracted_summary(iter(records)))
        for record, lengths in batch:
            progress(record.id)
            better = summarizer.shorten(record.text, _title_of(record))
            if better != lengths and _store_summary(data, record, better):
                rewritten += 1
            else:
                unchanged += 1
    return SummaryResult(len(candidates), rewritten, unchanged)


def _with_extracted_summary(records: Iterator[Record]) -> Iterator[tuple[Record, Lengths]]:
    """Yield the active knowledge records whose summary is the extractive default, and shorter than the text.

    The records do not say who wrote a summary, so it is extracted again and compared.
    """
    extractive = ExtractiveSummarizer()
    for record in records:
        if record.summary == record.text or record.status != "active" or kind_of(record.kind).partition != "knowledge":
            continue
        lengths = extractive.shorten(record.text, _title_of(record))
        if lengths.summary == record.summary:
            yield record, lengths


def _title_of(record: Record) -> str:
    return str(record.data.get("name") or record.data.get("title") or "")


@retry_interrupted
def _store_summary(data: ScopedStore, record: Record, lengths: Lengths) -> bool:
    """Store a summary and return True. Return False if the record was changed since it was read."""
    changed = replace(record, summary=lengths.summary, micro=lengths.micro, updated=data.clock())
    try:
        with data.writer_of(record) as writer:
            writer.change(finish(changed, data.rules), "edit", expect_version=record.version)
    except Conflict:
        return False
    return True
