"""Why a piece of code was not even a candidate: worked out from the receipt's question and the code as it is now.

The counterpart of `explain` for what is read from files: set aside, no slot for it, shown as part of its file, no shared
word, or a rank beyond the limit. What is nowhere in the code is not found.
"""

from __future__ import annotations

from typing import Any

from foveate.code import query
from foveate.code.exclusions import REASON_GENERATED, REASON_MINIFIED, REASON_VENDORED, exclusion_by_name
from foveate.code.model import Exclusion, Symbol
from foveate.code.search import MAX_SCORED_DEFINITIONS, search
from foveate.code.snapshot import CodeSnapshot
from foveate.code.walk import OVER_LIMIT_REASON
from foveate.errors import NotFound, near
from foveate.pipeline.sources.base import limit_of
from foveate.pipeline.sources.code import named
from foveate.receipts.receipt import FORGOTTEN, Receipt, profile_from_json, sentence
from foveate.text import analysis
from foveate.types import Profile

KINDS = {"code": "code", "file": "file", "map": "outline", "docs": "docs"}
"""What an id begins with -> the kind of record."""

SOURCES = {
    "code": ("code", "neighbours"),
    "file": ("files", "found_files"),
    "map": ("repo_map",),
    "docs": ("docs", "project"),
}
"""Who brings what an id of this sort names; the first ranks it."""

CURABLE = frozenset(
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
"""Reasons that `include` in the settings outweighs."""

EXCLUDED = "excluded"
"""How the walk calls what the settings leave out."""

FAR = 100_000
"""How far down a ranking to look."""

Reason = tuple[str, str]


def why_not_shown(receipt: Receipt, id: str, look: CodeSnapshot) -> dict[str, Any]:
    """The reason, in one word and one sentence."""
    sort, _, rest = id.partition(":")
    path, _, name = rest.partition("::")
    reason, said = _untold(look, rest) if sort == "docs" else _absent(look, path)
    if not reason:
        symbol = named(look, path, name) if sort == "code" else None
        reason, said = _kept_out(receipt, sort) or _outranked(receipt, sort, path, symbol, look)
    told = {"reason": reason, "sentence": f"not considered: {said}"}
    return {"context": receipt.id, "id": id, "kind": KINDS[sort], "kept": False, **told}


def _untold(look: CodeSnapshot, name: str) -> Reason:
    """Nothing where the repository says something under this name."""
    known = {"project", *(section.name for section in look.codebase_docs.sections)}
    if name not in known:
        raise NotFound(f"The repository says nothing under {name!r}.{near(name, known)}")
    return "", ""


def _absent(look: CodeSnapshot, path: str) -> Reason:
    """Why a file is not in the index; nothing where it is."""
    if look.file(path) is not None:
        return "", ""
    for aside in look.index.exclusions():
        if path == aside.path or (aside.path.endswith("/") and path.startswith(aside.path)):
            return _set_aside(path, aside)
    inside = not path.startswith("/") and ".." not in path.split("/")
    if inside and (look.root / path).is_file():
        reason = exclusion_by_name(path, 0)
        excluded = Exclusion(path, reason) if reason else look.exclusion(path)
        if excluded is not None:
            return _set_aside(path, excluded)
        return "not indexed", f"{path} is ignored, as .gitignore says; `include` in [code] brings it back"
    known = look.index.file_table().by_path
    same = [one for one in known if one.rpartition("/")[2] == path.rpartition("/")[2]]
    hint = f" Did you mean {same[0]!r}?" if len(same) == 1 else near(path, known).partition(" Known:")[0]
    raise NotFound(f"There is no file {path!r} in the code.{hint}")


def _set_aside(path: str, aside: Exclusion) -> Reason:
    cure = "; `include` in [code] brings it back" if aside.reason.partition(",")[0] in CURABLE else ""
    if aside.reason.startswith(OVER_LIMIT_REASON):
        cure = "; raise `max_files` in [code]"
    if aside.reason == EXCLUDED:
        cure = " by `exclude` in [code]"
    return "set aside", f"{path} is set aside: {aside.reason}{cure}"


def _kept_out(receipt: Receipt, sort: str) -> Reason | None:
    """What keeps everything of its sort out."""
    profile = profile_from_json(receipt.document["profile"])
    wanted = SOURCES[sort]
    if not any(set(slot.sources) & set(wanted) for slot in profile.slots):
        return "no slot", f"no slot of profile {profile.name!r} asks for {' or '.join(map(repr, wanted))}"
    for report in receipt.document["sources"]:
        if report["source"] in wanted and report["error"]:
            return "source failed", f"source {report['source']!r} failed ({report['error']})"
        if report["source"] in wanted and report.get("note"):
            return "no code", report["note"]
    return None


def _outranked(receipt: Receipt, sort: str, path: str, symbol: Symbol | None, look: CodeSnapshot) -> Reason:
    """Why others of its sort were brought, and it was not."""
    profile = profile_from_json(receipt.document["profile"])
    request = receipt.document["request"]
    asked = request["query"] if request.get("code_query") is None else request["code_query"]
    if sort == "docs":
        return "limit", f"it is beyond the {_limit(profile, 'docs')} documents that are asked for"
    if asked == FORGOTTEN:
        return "forgotten", "this cannot be worked out, as the question was removed with a record that was forgotten"
    whole = receipt.of(f"file:{path}") if symbol and path in _as_wholes(receipt) else None
    if whole is not None and whole["kept"]:
        return "in its file", f"file:{path}, which it is part of, is shown instead: {sentence(whole)}"
    if whole is not None:
        return "in its file", f"its file was considered as a whole, and {sentence(whole)}"
    if sort == "map":
        return "limit", f"it is not among the {_limit(profile, 'repo_map')} files that weigh the most for the question"
    if sort == "file" and not any("found_files" in slot.sources for slot in profile.slots):
        return "unrelated", "neither the task nor the question points to the file, and the profile looks for no others"
    return _ranked(receipt, profile, asked, path, symbol, look)


def _ranked(receipt: Receipt, profile: Profile, asked: str, path: str, symbol: Symbol | None, look: CodeSnapshot) -> Reason:
    """Its rank now, for the same words."""
    read = query.parse_query(asked)
    hits = search(look.index, read, FAR, FAR)
    as_wholes = _as_wholes(receipt)
    if symbol is None:
        ranking: list[Any] = [hit.file.path for hit in hits.files]
        place: Any = path
    else:
        ranking = [hit.symbol.id for hit in hits.definitions if hit.symbol.path not in as_wholes]
        place = symbol.id
    lines = look.lines(path) or []
    shown = lines if symbol is None else [symbol.qualified_name, *lines[symbol.start_line - 1 : symbol.end_line]]
    shared = sorted(set(read.terms) & set(analysis.terms("\n".join([path, *shown]))))
    if place not in ranking:
        if not shared:
            return "no shared term", f"it shares no word with the question ({', '.join(sorted(read.terms)[:5])})"
        return (
            "limit",
            f"it is not among the {MAX_SCORED_DEFINITIONS} that are looked at closely; shares {', '.join(shared[:5])}",
        )
    rank, limit = ranking.index(place) + 1, _limit(profile, "found_files" if symbol is None else "code")
    if rank <= limit:
        return "later", f"it has rank {rank} now, within the {limit} that are asked for, and had not when this was computed"
    return "limit", f"rank {rank}, beyond the {limit} that are asked for; shares {', '.join(shared[:5]) or 'no word'}"


def _as_wholes(receipt: Receipt) -> set[str]:
    """The files that stood for their definitions; one that was too large came as a line beside them."""
    entries = [(entry["id"].partition(":")[2], entry["source"]) for entry in receipt.candidates]
    files = {path for path, source in entries if source in SOURCES["file"]}
    return files - {path.partition("::")[0] for path, source in entries if source == "code"}


def _limit(profile: Profile, source: str) -> int:
    """The most that any slot asks a source for."""
    limits = [limit_of(slot, profile) for slot in profile.slots if slot.source == source]
    return max([*limits, *(limit for slot in profile.slots for name, limit in slot.also if name == source)], default=0)
