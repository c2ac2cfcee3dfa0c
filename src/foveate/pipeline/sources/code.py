"""Sources of definitions: those that the search finds, and the neighbours of the best of them in the code graph.

Definitions of files that a slot for files shows are left out, so that nothing is shown twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foveate.code.graph import neighbors
from foveate.code.model import MODULE, RenderedLevels, Symbol
from foveate.code.records import code_record, symbol_id
from foveate.code.rendering import definition, direct_children, line
from foveate.code.search import DefinitionHit
from foveate.code.snapshot import CodeSnapshot
from foveate.errors import NotFound, near
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, base_tokens
from foveate.pipeline.sources.docs import docs_records
from foveate.pipeline.sources.files import code_query_of, files_shown, whole_file
from foveate.types import Candidate, Record, Scope

MAX_NEIGHBOUR_SEEDS = 4
"""Best definitions whose neighbours are shown."""
MAX_NEIGHBOURS = 4
"""Neighbours of one definition."""
_NTH = re.compile(r"~\d+$")

TOKENS_PER_DEFINITION, MIN_FULL_DEFINITIONS = 40, 12
"""Definitions whose full text is prepared: more than fit at this size. The others are prepared as a line."""

MAX_SHORT_LINES, LENGTH_PENALTY_POWER = 10, 0.15
"""A longer definition loses relevance, by this power of its relative length. In the tokens of a definition of a hundred
lines, several others fit that answer nearly as well."""

NEIGHBOUR_DECAY = 0.5
"""Relevance of a neighbour relative to its definition."""


class Code(Source):
    """Definitions that the search finds."""

    name = "code"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code
        if code is None:
            return
        shown = files_shown(context, code)
        hits = [hit for hit in code.search(code_query_of(context)).definitions if hit.symbol.path not in shown]
        for request in requests:
            max_full = max(MIN_FULL_DEFINITIONS, base_tokens(request.slot, context.profile) // TOKENS_PER_DEFINITION)
            best = hits[: request.limit]
            # Length matters only in a slot that shows definitions in full.
            ranked = rank_by_value(best) if request.slot.level == "full" else [(hit, hit.relevance) for hit in best]
            for n, (hit, relevance) in enumerate(ranked):
                build = definition_record if n < max_full else definition_line
                record = build(hit.symbol, code, context.request.scope)
                if record is not None:
                    features = {"relevance": relevance, "found": hit.relevance, **hit.features}
                    yield self.candidate(request, record, **features)

    def pool_size(self, context: SourceContext) -> int:
        code = context.code
        return 0 if code is None else code.index.file_table().documents.count


def rank_by_value(hits: Sequence[DefinitionHit]) -> list[tuple[DefinitionHit, float]]:
    """Return definitions with their relevance reduced by length, best first. The best hit stays first, unreduced.

    The length of a class includes its methods.
    """
    rest = []
    for hit in hits[1:]:
        lines = hit.symbol.end_line - hit.symbol.start_line + 1
        rest.append((hit, round(hit.relevance * (MAX_SHORT_LINES / max(MAX_SHORT_LINES, lines)) ** LENGTH_PENALTY_POWER, 4)))
    return [*((hit, hit.relevance) for hit in hits[:1]), *sorted(rest, key=lambda pair: -pair[1])]


class Neighbours(Source):
    """Callers, callees, base classes and tests of the best definitions, one line each."""

    name = "neighbours"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        code = context.code
        if code is None:
            return
        hits = code.search(code_query_of(context)).definitions
        best = [hit for hit in hits if hit.symbol.kind != MODULE][:MAX_NEIGHBOUR_SEEDS]
        known = {hit.symbol.id for hit in hits[: max((request.limit for request in requests), default=0)]}
        for request in requests:
            for hit in best:
                for other in neighbors(code.index, hit.symbol.id, MAX_NEIGHBOURS):
                    if other.symbol.id not in known:
                        known.add(other.symbol.id)
                        relation = f"{other.relation} of {hit.symbol.qualified_name}"
                        record = definition_line(other.symbol, code, context.request.scope, relation)
                        yield self.candidate(request, record, relevance=round(hit.relevance * NEIGHBOUR_DECAY, 4))


def definition_record(symbol: Symbol, code: CodeSnapshot, scope: Scope) -> Record | None:
    """Return a definition as a record: one line if its file has changed since the snapshot, None if it is gone."""
    lines, file = code.lines(symbol.path), code.file(symbol.path)
    if lines is None or file is None:
        return definition_line(symbol, code, scope) if code.is_changed(symbol.path) else None
    inner = direct_children(symbol, code.index.symbols_in_file(symbol.path))
    return code_record("code", symbol_id(symbol), definition(symbol, lines, inner, file.language), scope, symbol.path)


def definition_line(symbol: Symbol, code: CodeSnapshot, scope: Scope, remark: str = "") -> Record:
    """Return a definition as one line. The index has its signature, so that its file is not read."""
    text = f"{line(symbol)} ({remark})" if remark else line(symbol)
    return code_record("code", symbol_id(symbol), RenderedLevels(text, text, text), scope, symbol.path)


def record_by_id(id: str, code: CodeSnapshot, scope: Scope) -> Record:
    """Return the code that an id of a context names, in full and as it is now. An outline gives its file."""
    prefix, _, rest = id.partition(":")
    path, _, name = rest.partition("::")
    record = None
    if prefix == "docs":
        record = next((docs for docs in docs_records(code, scope) if docs.id == id), None)
    elif (resolved := code.resolve_path(path)) and prefix == "code":
        record = definition_record(symbol_by_name(code, resolved, name), code, scope)
    elif resolved:
        record = whole_file(resolved, code, scope)
    if record is None:
        raise NotFound(f"The code has no {id!r} any more. `foveate search --code` finds the current definitions.")
    return record


def canonical_id(id: str, code: CodeSnapshot) -> str:
    """Return an id as receipts have it: with the full path, and for code with `::` even if the name is empty."""
    prefix, _, rest = id.partition(":")
    path, _, name = rest.partition("::")
    path = path if prefix == "docs" else code.resolve_path(path) or path
    return f"{prefix}:{path}::{name}" if prefix == "code" else f"{prefix}:{path}"


def symbol_by_name(code: CodeSnapshot, path: str, name: str) -> Symbol:
    """Return a definition of a file by its name: `Cart.add`, or `Cart.add~2` for the second of that name."""
    plain, _, nth = name.rpartition("~") if _NTH.search(name) else (name, "", "1")
    every = code.index.symbols_in_file(path)
    found = [symbol for symbol in every if symbol.qualified_name == plain and str(symbol.occurrence) == nth]
    if not found:
        known = {symbol.qualified_name for symbol in every} - {""}
        raise NotFound(f"{path!r} does not define {name!r}.{near(name, known)}")
    return found[0]
