"""The map of the repository for this task: files with the heads of what matters in them, by personalised PageRank.

Each file is an item of its own, so that the map fits any room and every line of it has a reason; they stand in order of
their paths. Without code to parse, folders and counts stand in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foveate.code.graph import rank
from foveate.code.model import RenderedLevels, code_record
from foveate.code.outline import MAX_FILES, Outline, directory_outlines, outlines
from foveate.code.snapshot import CodeSnapshot
from foveate.pipeline.sources.files import asked_for
from foveate.pipeline.sources.gather import Around, room_of
from foveate.types import Ask, Candidate

SEEDS = 20
"""Definitions that the walk over the graph starts from."""

TOKENS_A_FILE, FEWEST = 6, 12
"""How many files are drawn: at half the tokens of a line each, as many as the room and what may flow to it could hold."""

NAMED = 0.5
"""The weight of a file that the question points to, against the heaviest definition."""


class RepoMap:
    name = "repo_map"

    def find(self, asks: Sequence[Ask], around: Around) -> Iterator[Candidate]:
        look = around.look
        if look is None:
            return
        for ask in asks:
            number = min(ask.limit, max(FEWEST, room_of(ask.slot, around.profile) // TOKENS_A_FILE))
            for outline in drawn(look, asked_for(around), number):
                record = code_record(
                    "outline",
                    f"map:{outline.path}",
                    RenderedLevels(outline.full, outline.summary, outline.micro),
                    around.request.scope,
                    outline.path,
                )
                features = {"relevance": round(outline.rank, 4)}
                yield Candidate(record=record, slot=ask.slot.name, source=self.name, features=features)


def drawn(look: CodeSnapshot, text: str, limit: int = MAX_FILES) -> list[Outline]:
    """The parts of the map for a question; an empty one gives the map of the whole."""
    hits = look.search(text) if text.strip() else None
    seeds: dict[int, float] = {}
    for hit in hits.definitions[:SEEDS] if hits else ():
        seeds[hit.symbol.id] = hit.relevance**2  # sharper: a flat start gives a flat map
    files = {hit.file.path: NAMED * hit.relevance for hit in hits.files[:SEEDS] if "named" in hit.features} if hits else {}
    found = outlines(look.index, rank(look.index, seeds), files=files, max_files=limit)
    if found:
        return found
    paths = list(look.index.file_table().by_path)
    return directory_outlines(paths)[:limit] if paths else []
