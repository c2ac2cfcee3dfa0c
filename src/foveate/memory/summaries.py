"""Better short lengths for records that have extracted ones: by a summarizer, ahead of time, some at a time.

Comes in: a memory and a summarizer, usually a language model. Goes out: how many records read better now. A record whose
author wrote its summary is left alone, and so is one that changed in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from foveate.errors import Conflict
from foveate.memory.memory import Memory
from foveate.records.kinds import kind_of
from foveate.text.summarize import Extractive, Lengths, Summarizer
from foveate.types import Record

BATCH = 100
"""Records looked at before the next snapshot is taken: a slow model must not hold one open."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """How many records have extracted lengths, and of those how many were rewritten and how many were not."""

    found: int
    rewritten: int = 0
    kept: int = 0


def compact(
    memory: Memory,
    summarizer: Summarizer,
    *,
    limit: int | None = None,
    dry_run: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Compacted:
    """Shorten again what was extracted. `tell` hears the id of each record that is about to be shortened."""
    with memory.store.read(memory.scope) as reader:
        found = [record.id for record, _ in extracted(reader.records())]
    if dry_run:
        return Compacted(len(found))
    rewritten = kept = 0
    wanted = found[:limit]
    for start in range(0, len(wanted), BATCH):
        with memory.store.read(memory.scope) as reader:
            batch = list(extracted(iter(reader.get(wanted[start : start + BATCH]).values())))
        for record, lengths in batch:
            tell(record.id)
            better = summarizer.shorten(record.text, title_of(record))
            if better != lengths and _written(memory, record, better):
                rewritten += 1
            else:
                kept += 1
    return Compacted(len(found), rewritten, kept)


def extracted(records: Iterator[Record]) -> Iterator[tuple[Record, Lengths]]:
    """Knowledge whose short lengths are those that the extractive default gives, and shorter than the text."""
    plain = Extractive()
    for record in records:
        if record.summary == record.text or record.status != "active" or kind_of(record.kind).shelf != "knowledge":
            continue
        lengths = plain.shorten(record.text, title_of(record))
        if lengths.summary == record.summary:
            yield record, lengths


def title_of(record: Record) -> str:
    return str(record.data.get("name") or record.data.get("title") or "")


def _written(memory: Memory, record: Record, lengths: Lengths) -> bool:
    try:
        memory.edit(record.id, expect=record.version, summary=lengths.summary, micro=lengths.micro)
    except Conflict:  # somebody wrote it while the model was thinking
        return False
    return True
