"""Explain why a piece of code is not in a past context, from its query and the present code.

The reasons are those of `why` for records, and two more: its file is excluded from the index, or is shown as a whole. An id
that does not exist in the code raises NotFound.
"""

from __future__ import annotations

from foveate.code import query
from foveate.code.exclusions import REASON_GENERATED, REASON_MINIFIED, REASON_VENDORED, exclusion_by_name
from foveate.code.model import Exclusion, Symbol
from foveate.code.search import MAX_SCORED_DEFINITIONS, search
from foveate.code.snapshot import CodeSnapshot
from foveate.code.walk import OVER_LIMIT_REASON
from foveate.errors import NotFound, near
from foveate.pipeline.sources.base import limit_of
from foveate.pipeline.sources.code import symbol_by_name
from foveate.receipts.receipt import Receipt
from foveate.receipts.why import MAX_RANK, MAX_SHOWN_WORDS, Explanation, Why
from foveate.text import analysis
from foveate.types import Profile

KIND_OF_PREFIX = {"code": "code", "file": "file", "map": "outline", "docs": "docs"}
"""Prefix of an id -> the kind of its record."""

SOURCES_OF_PREFIX = {
    "code": ("code", "neighbours"),
    "file": ("files", "found_files"),
    "map": ("repo_map",),
    "docs": ("docs", "project"),
}
"""Prefix of an id -> the sources that return such items; the first one ranks them."""

INCLUDABLE_REASONS = frozenset(
    (
        REASON_VENDORED,
        REASON_GENERATED,
        REASON_MINIFIED,
        "lock file",
        "build output",
        "translation",
        "cache",
        "large data file",
        "ignored",
    )
)
"""Reasons for an exclusion that the setting `include` overrides."""

EXCLUDED_BY_SETTING = "excluded"


def why_code_not_shown(receipt: Receipt, id: str, code: CodeSnapshot) -> Why:
    """Explain why no source returned a piece of code."""
    prefix, _, rest = id.partition(":")
    path, _, name = rest.partition("::")
    if prefix == "docs":
        _check_section(code, rest)
        found = None
    else:
        found = _not_indexed(code, path)
    if found is None:
        symbol = symbol_by_name(code, path, name) if prefix == "code" else None
        found = _source_reason(receipt, prefix) or _ranking_reason(receipt, prefix, path, symbol, code)
    reason, clause = found
    kind = KIND_OF_PREFIX[prefix]
    return Why(context=receipt.id, id=id, kind=kind, reason=reason, sentence=f"not considered: {clause}")


def _check_section(code: CodeSnapshot, name: str) -> None:
    known = {"project", *(section.name for section in code.codebase_docs.sections)}
    if name not in known:
        raise NotFound(f"The repository's documentation has no section {name!r}.{near(name, known)}")


def _not_indexed(code: CodeSnapshot, path: str) -> Explanation | None:
    """Return why a file is not in the index; None if it is."""
    if code.file(path) is not None:
        return None
    for exclusion in code.index.exclusions():
        if path == exclusion.path or (exclusion.path.endswith("/") and path.startswith(exclusion.path)):
            return _exclusion_reason(path, exclusion)
    inside = not path.startswith("/") and ".." not in path.split("/")
    if inside and (code.root / path).is_file():
        reason = exclusion_by_name(path, 0)
        excluded = Exclusion(path, reason) if reason else code.exclusion(path)
        if excluded is not None:
            return _exclusion_reason(path, excluded)
        return "not indexed", f"{path} is ignored by .gitignore; add it to `include` in [code]"
    known = code.index.file_table().by_path
    same_name = [each for each in known if each.rpartition("/")[2] == path.rpartition("/")[2]]
    hint = f" Did you mean {same_name[0]!r}?" if len(same_name) == 1 else near(path, known).partition(" Known:")[0]
    raise NotFound(f"The code has no file {path!r}.{hint}")


def _exclusion_reason(path: str, exclusion: Exclusion) -> Explanation:
    advice = "; add it to `include` in [code]" if exclusion.reason.partition(",")[0] in INCLUDABLE_REASONS else ""
    if exclusion.reason.startswith(OVER_LIMIT_REASON):
        advice = "; raise `max_files` in [code]"
    if exclusion.reason == EXCLUDED_BY_SETTING:
        advice = " by `exclude` in [code]"
    return "skipped", f"{path} is skipped: {exclusion.reason}{advice}"


def _source_reason(receipt: Receipt, prefix: str) -> Explanation | None:
    """Return the reason for which the sources of this kind of item returned none of them; None if they did."""
    wanted = SOURCES_OF_PREFIX[prefix]
    if not any(set(slot.sources) & set(wanted) for slot in receipt.profile.slots):
        return "no slot", f"no slot of profile {receipt.profile.name!r} asks for {' or '.join(map(repr, wanted))}"
    for report in receipt.sources:
        if report.source in wanted and report.error:
            return "source failed", f"source {report.source!r} failed ({report.error})"
        if report.source in wanted and report.note:
            return "no code", report.note
    return None


def _ranking_reason(receipt: Receipt, prefix: str, path: str, symbol: Symbol | None, code: CodeSnapshot) -> Explanation:
    """Return the reason for which the sources returned other items of this kind instead."""
    profile = receipt.profile
    if prefix == "docs":
        return "limit", f"it is beyond the {_limit(profile, 'docs')} documents that the profile asks for"
    if receipt.request.is_forgotten:
        return "forgotten", "the reason is unknown, because the query was removed with a forgotten record"
    file = receipt.candidate(f"file:{path}") if symbol and path in _whole_files(receipt) else None
    if file is not None and file.is_kept:
        return "in its file", f"file:{path}, which it is part of, is shown instead: {file}"
    if file is not None:
        return "in its file", f"its file was considered as a whole, and {file}"
    if prefix == "map":
        return "limit", f"it is not among the {_limit(profile, 'repo_map')} files with the most weight for the query"
    if prefix == "file" and not any("found_files" in slot.sources for slot in profile.slots):
        return "unrelated", "neither the task nor the query names the file, and the profile searches for no others"
    return _rank_reason(receipt, path, symbol, code)


def _rank_reason(receipt: Receipt, path: str, symbol: Symbol | None, code: CodeSnapshot) -> Explanation:
    """Return the reason that follows from the present rank of an item for the same query."""
    # The index knows only the present code, so the rank of that time can no longer be computed.
    text = receipt.request.query if receipt.request.code_query is None else receipt.request.code_query
    parsed = query.parse_query(text)
    hits = search(code.index, parsed, MAX_RANK, MAX_RANK)
    lines = code.lines(path) or []
    if symbol is None:
        rank = next((n for n, hit in enumerate(hits.files, 1) if hit.file.path == path), None)
        shown = lines
    else:
        whole_files = _whole_files(receipt)
        ranking = [hit.symbol.id for hit in hits.definitions if hit.symbol.path not in whole_files]
        rank = ranking.index(symbol.id) + 1 if symbol.id in ranking else None
        shown = [symbol.qualified_name, *lines[symbol.start_line - 1 : symbol.end_line]]
    shared = sorted(set(parsed.terms) & set(analysis.terms("\n".join([path, *shown]))))[:MAX_SHOWN_WORDS]
    if rank is None and not shared:
        words = ", ".join(sorted(parsed.terms)[:MAX_SHOWN_WORDS])
        return "no shared term", f"it shares no word with the query ({words})"
    if rank is None:
        return "limit", f"it is not among the {MAX_SCORED_DEFINITIONS} best by words alone; shares {', '.join(shared)}"
    limit = _limit(receipt.profile, "found_files" if symbol is None else "code")
    if rank <= limit:
        return "later", f"it has rank {rank} now, within the limit of {limit}, but had not when the context was computed"
    return "limit", f"rank {rank}, beyond the limit of {limit}; shares {', '.join(shared) or 'no word'}"


def _whole_files(receipt: Receipt) -> set[str]:
    """Return the files that were candidates instead of their definitions, except those that were too large."""
    entries = [(entry.id.partition(":")[2], entry.source) for entry in receipt.candidates]
    files = {path for path, source in entries if source in SOURCES_OF_PREFIX["file"]}
    return files - {path.partition("::")[0] for path, source in entries if source == "code"}


def _limit(profile: Profile, source: str) -> int:
    """Return the most items that any slot asks a source for."""
    limits = [limit_of(slot, profile) for slot in profile.slots if slot.source == source]
    limits += [limit for slot in profile.slots for name, limit in slot.extra_sources if name == source]
    return max(limits, default=0)
