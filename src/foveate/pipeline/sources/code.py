"""Definitions of the repository that answer the question, and what stands beside the best of them.

What a slot for whole files shows already is not brought again: depth is there, breadth is here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foveate.code.graph import neighbors
from foveate.code.model import MODULE, RenderedLevels, Symbol, code_record, symbol_id
from foveate.code.rendering import definition, direct_children, line
from foveate.code.search import DefinitionHit
from foveate.code.snapshot import CodeSnapshot
from foveate.errors import NotFound, near
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, room_of
from foveate.pipeline.sources.docs import docs_records
from foveate.pipeline.sources.files import asked_for, files_shown, whole_file
from foveate.types import Candidate, Record, Scope

NEAR = 4
"""Of how many of the best definitions the neighbours are looked up."""
EACH = 4
"""Neighbours of one definition."""
_NTH = re.compile(r"~\d+$")

TOKENS_WHOLE, FEWEST_WHOLE = 40, 12
"""Of how many definitions the whole text is prepared: at so many tokens each, more than fit. The rest are lines."""

SHORT_LINES, LENGTH_POWER = 10, 0.15
"""Beyond so many lines a definition must be better to have its room, by this power of how much longer it is: what one of a
hundred lines takes holds several that answer nearly as well."""

FURTHER = 0.5
"""What a neighbour is worth against the definition that it stands beside."""


class Code(Source):
    """Definitions that the question finds."""

    name = "code"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code
        if code is None:
            return
        shown = files_shown(context, code)
        hits = [hit for hit in code.search(asked_for(context)).definitions if hit.symbol.path not in shown]
        for request in requests:
            whole = max(FEWEST_WHOLE, room_of(request.slot, context.profile) // TOKENS_WHOLE)
            best = hits[: request.limit]
            # Where they are taken whole, one after the other, length has its price.
            ordered = by_worth(best) if request.slot.level == "full" else [(hit, hit.relevance) for hit in best]
            for place, (hit, worth) in enumerate(ordered):
                made = record_of if place < whole else line_of
                found = made(hit.symbol, code, context.request.scope)
                if found is not None:
                    features = {"relevance": worth, "found": hit.relevance, **hit.features}
                    yield self.candidate(request, found, **features)

    def pool_size(self, context: SourceContext) -> int:
        code = context.code
        return 0 if code is None else code.index.file_table().documents.count


def by_worth(hits: Sequence[DefinitionHit]) -> list[tuple[DefinitionHit, float]]:
    """Definitions with how relevant they are for the room that they take: the best as it is, then what is worth most.

    A class counts with all that it holds. What search says of each stays beside it, as `found`.
    """
    rest = []
    for hit in hits[1:]:
        lines = hit.symbol.end_line - hit.symbol.start_line + 1
        rest.append((hit, round(hit.relevance * (SHORT_LINES / max(SHORT_LINES, lines)) ** LENGTH_POWER, 4)))
    return [*((hit, hit.relevance) for hit in hits[:1]), *sorted(rest, key=lambda pair: -pair[1])]


class Neighbours(Source):
    """Callers, callees, base classes and tests of the best definitions: a line each."""

    name = "neighbours"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code
        if code is None:
            return
        hits = code.search(asked_for(context)).definitions
        best = [hit for hit in hits if hit.symbol.kind != MODULE][:NEAR]
        known = {hit.symbol.id for hit in hits[: max((request.limit for request in requests), default=0)]}
        for request in requests:
            for hit in best:
                for other in neighbors(code.index, hit.symbol.id, EACH):
                    if other.symbol.id not in known:
                        known.add(other.symbol.id)
                        said = f"{other.relation} of {hit.symbol.qualified_name}"
                        found = line_of(other.symbol, code, context.request.scope, said)
                        if found is not None:
                            features = {"relevance": round(hit.relevance * FURTHER, 4)}
                            yield self.candidate(request, found, **features)


def record_of(symbol: Symbol, code: CodeSnapshot, scope: Scope) -> Record | None:
    """Return a definition as a record: its head alone if its file has changed since the snapshot, None if it is gone."""
    lines, file = code.lines(symbol.path), code.file(symbol.path)
    if lines is None or file is None:
        return line_of(symbol, code, scope) if code.is_changed(symbol.path) else None
    inner = direct_children(symbol, code.index.symbols_in_file(symbol.path))
    return code_record("code", symbol_id(symbol), definition(symbol, lines, inner, file.language), scope, symbol.path)


def line_of(symbol: Symbol, code: CodeSnapshot, scope: Scope, remark: str = "") -> Record:
    """Return a definition as one line. Its file is not read: the index knows the head."""
    said = f"{line(symbol)} ({remark})" if remark else line(symbol)
    return code_record("code", symbol_id(symbol), RenderedLevels(said, said, said), scope, symbol.path)


def recalled(id: str, code: CodeSnapshot, scope: Scope) -> Record:
    """What an id in a context names, in full and as it is now; of an outline, the file."""
    sort, _, rest = id.partition(":")
    path, _, name = rest.partition("::")
    found = None
    if sort == "docs":
        found = next((record for record in docs_records(code, scope) if record.id == id), None)
    elif known := code.resolve_path(path):
        found = record_of(named(code, known, name), code, scope) if sort == "code" else whole_file(known, code, scope)
    if found is None:
        raise NotFound(f"There is no {id!r} in the code as it is now. `foveate search --code` finds what is.")
    return found


def canonical(id: str, code: CodeSnapshot) -> str:
    """An id as a receipt has it: with the whole path, and `::` before a name, even where there is none."""
    sort, _, rest = id.partition(":")
    path, _, name = rest.partition("::")
    path = path if sort == "docs" else code.resolve_path(path) or path
    return f"{sort}:{path}::{name}" if sort == "code" else f"{sort}:{path}"


def named(code: CodeSnapshot, path: str, name: str) -> Symbol:
    """The definition of a file that an id names: `Cart.add`, or `Cart.add~2` for the second of that name."""
    plain, _, nth = name.rpartition("~") if _NTH.search(name) else (name, "", "1")
    every = code.index.symbols_in_file(path)
    found = [symbol for symbol in every if symbol.qualified_name == plain and str(symbol.occurrence) == nth]
    if not found:
        known = {symbol.qualified_name for symbol in every} - {""}
        raise NotFound(f"{path!r} does not define {name!r}.{near(name, known)}")
    return found[0]
