"""Files: the task's own first, then those that its dependencies point to, those that the question names, then found ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from foveate.code import rendering
from foveate.code.model import MODULE, RenderedLevels, code_record
from foveate.code.snapshot import CodeSnapshot
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, limit_of, room_of
from foveate.pipeline.sources.tasks import completed
from foveate.types import Candidate, Record, Scope, Slot

CHARS_A_TOKEN = 4
"""About what a token of code holds: only how much of a file is prepared depends on it, never what fits."""

OWN, HANDED_ON, NAMED, FOUND = 1.0, 0.95, 0.9, 0.85
"""How relevant a file is by how we came to it; a found one by its rank, below the others."""


class Files(Source):
    """Those that somebody pointed to."""

    name = "files"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        if context.code is not None:
            yield from _shown(self.name, pointed_to(context, context.code), requests, context, context.code)


class FoundFiles(Source):
    """Those that the question finds, and nobody pointed to."""

    name = "found_files"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        if context.code is not None:
            yield from _shown(self.name, found(context, context.code), requests, context, context.code)


def _shown(
    source: str,
    wanted: Mapping[str, Mapping[str, float]],
    requests: Sequence[SlotRequest],
    context: SourceContext,
    code: CodeSnapshot,
) -> Iterator[Candidate]:
    scope, profile = context.request.scope, context.profile
    relevance = {hit.symbol.id: hit.relevance for hit in code.search(asked_for(context)).definitions}
    for request in requests:
        room = CHARS_A_TOKEN * room_of(request.slot, profile)
        lines_only = left_to_definitions(request.slot, context, code)
        for path, features in list(wanted.items())[: request.limit]:
            if path in lines_only:
                record = file_line(path, code, scope)
            else:
                record = file_record(path, code, scope, relevance, profile.max_file_chars, room)
            if record is not None:
                yield Candidate(record=record, slot=request.slot.name, source=source, features=features)


def whole_file(path: str, code: CodeSnapshot, scope: Scope) -> Record | None:
    """All of a file, whatever its size; None where it is gone."""
    return file_record(path, code, scope, {}, sys.maxsize, sys.maxsize)


def file_record(
    path: str, code: CodeSnapshot, scope: Scope, relevance: Mapping[int, float], max_chars: int, room: int
) -> Record | None:
    """Return a file as a record: one line if it has changed since the snapshot, None if it is gone.

    `room`: characters that the files together may count on.
    """
    lines, file = code.lines(path), code.file(path)
    if lines is None or file is None:
        return file_line(path, code, scope)
    whole, parts = whole_chars(max_chars, room), room // 4
    lengths = rendering.file(path, lines, code.index.symbols_in_file(path), relevance, file.language, whole, parts)
    return code_record("file", f"file:{path}", lengths, scope, path)


def file_line(path: str, code: CodeSnapshot, scope: Scope) -> Record | None:
    """Return a file as one line, None if it is gone."""
    file = code.file(path)
    if file is None or (code.lines(path) is None and not code.is_changed(path)):
        return None
    said = rendering.file_line(path, file.lines, code.index.symbols_in_file(path))
    return code_record("file", f"file:{path}", RenderedLevels(said, said, said), scope, path)


def whole_chars(max_chars: int, room: int) -> int:
    """Up to how many characters a file is shown whole."""
    return min(max_chars, room // 2)


def left_to_definitions(slot: Slot, context: SourceContext, code: CodeSnapshot) -> frozenset[str]:
    """Files that only the question names, that are too large to be shown whole, and whose definitions come elsewhere.

    They stand there, as many as there is room for, and not a few of them here.
    """
    most = whole_chars(context.profile.max_file_chars, CHARS_A_TOKEN * room_of(slot, context.profile))
    left = set()
    for path, features in pointed_to(context, code).items():
        lines = code.lines(path) if "named" in features else None
        if lines is not None and not rendering.fits(lines, most) and _comes_in_definitions(path, lines, context, code):
            left.add(path)
    return frozenset(left)


def _comes_in_definitions(path: str, lines: Sequence[str], context: SourceContext, code: CodeSnapshot) -> bool:
    """Whether a slot for definitions can show one of this file whole: within its limit, its floor and its room.

    What stands beside a file's definitions is none, and a section that is as good as the whole file does not fit.
    """
    profile, kinds = context.profile, context.request.filters.kinds
    found = code.search(asked_for(context)).definitions if not kinds or "code" in kinds else ()
    for slot in profile.slots:
        if "code" not in slot.sources:
            continue
        limit = dict(slot.extra_sources).get("code", limit_of(slot, profile))
        most = limit if slot.max_items is None else min(limit, slot.max_items)
        room = CHARS_A_TOKEN * room_of(slot, profile)
        good = (hit.symbol for hit in found[:most] if hit.relevance >= slot.min_score)
        own = (one for one in good if one.path == path and one.kind != MODULE)
        if any(rendering.fits(lines[one.start_line - 1 : one.end_line], room) for one in own):
            return True
    return False


def pointed_to(context: SourceContext, code: CodeSnapshot) -> dict[str, Mapping[str, float]]:
    """The files that somebody named, with how relevant that makes them and why."""
    named: dict[str, Mapping[str, float]] = {}
    for path, worth, why in _named(context):
        known = code.resolve_path(path)
        if known:
            named.setdefault(known, {"relevance": worth, why: 1.0})
        elif why != "named":  # a question may speak of any path; a task means what it says
            code.add_note(f"{path} is not shown: there is no such file in the index.")
    return named


def _named(context: SourceContext) -> Iterator[tuple[str, float, str]]:
    """Paths of the task, of what it depends on, of the question."""
    task = context.request.task
    if task is not None:
        yield from ((path, OWN, "own") for path in _paths(task, "files", "reads"))
        for dependency in completed(context.reader, [task.id]):
            yield from ((path, HANDED_ON, "handed_on") for path in _paths(dependency, "files_to_read"))
    yield from ((path, NAMED, "named") for path in context.signals.paths)


def _paths(task: Record, *fields: str) -> Iterator[str]:
    for field in fields:
        for part in task.data.get(field) or ():
            path = part.get("path") if isinstance(part, Mapping) else part
            if path and not (isinstance(part, Mapping) and part.get("operation") == "create"):  # it is not there yet
                yield str(path)


def found(context: SourceContext, code: CodeSnapshot) -> dict[str, Mapping[str, float]]:
    """The files that the question finds besides, best first."""
    named = pointed_to(context, code)
    return {
        hit.file.path: {"relevance": round(FOUND * hit.relevance, 4), **hit.features}
        for hit in code.search(asked_for(context)).files
        if hit.file.path not in named
    }


def files_shown(context: SourceContext, code: CodeSnapshot) -> frozenset[str]:
    """The files that slots for whole files will be filled with, whole or in parts: as many as they take."""
    shown: set[str] = set()
    for slot in context.profile.slots:
        paths: list[str] = []
        if Files.name in slot.sources:
            paths += pointed_to(context, code)
        if FoundFiles.name in slot.sources:
            near = found(context, code).items()
            paths += [path for path, features in near if features["relevance"] >= slot.min_score]
        if paths:
            shown.update(set(paths[: slot.max_items]) - left_to_definitions(slot, context, code))
    return frozenset(shown)


def asked_for(context: SourceContext) -> str:
    """What the code is searched for: the call's own words for it, which may be none, else the question."""
    request = context.request
    return request.query if request.code_query is None else request.code_query
