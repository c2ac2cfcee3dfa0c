"""Sources of files: those of the task, of its dependencies and of the question, and files that the search finds."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from foveate.code import rendering
from foveate.code.languages import language_of
from foveate.code.model import MODULE, RenderedLevels
from foveate.code.plain_folder import FolderSnapshot
from foveate.code.records import code_record
from foveate.code.search import DefinitionHit
from foveate.code.snapshot import CodeSnapshot
from foveate.pipeline.sources.base import SlotRequest, Source, SourceContext, base_tokens, limit_of
from foveate.pipeline.sources.tasks import completed_dependencies
from foveate.types import Candidate, Profile, Record, Scope, Slot

CHARS_PER_TOKEN = 4
"""Approximate size of a token of code. It decides how much of a file is prepared, never what fits."""

HEAD_LINES = 50
"""Lines from which the language of a file without an index is detected."""

TASK_FILE_RELEVANCE, DEPENDENCY_FILE_RELEVANCE, NAMED_FILE_RELEVANCE, FOUND_FILE_RELEVANCE = 1.0, 0.95, 0.9, 0.85
"""Relevance of a file by its origin. That of a found file is multiplied by the relevance of the hit."""


class Files(Source):
    """Files that the task, its dependencies or the question name."""

    name = "files"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        if context.code is not None:
            yield from _file_candidates(self.name, referenced_files(context, context.code), requests, context, context.code)
        elif context.folder is not None:
            yield from _plain_candidates(self, requests, context, context.folder)


class FoundFiles(Source):
    """Files that the search finds, that nothing names and of which no slot shows definitions."""

    name = "found_files"

    def find(self, requests: Sequence[SlotRequest], context: SourceContext) -> Iterator[Candidate]:
        if context.code is not None:
            yield from _file_candidates(self.name, found_files(context, context.code), requests, context, context.code)


def _file_candidates(
    source: str,
    files: Mapping[str, Mapping[str, float]],
    requests: Sequence[SlotRequest],
    context: SourceContext,
    code: CodeSnapshot,
) -> Iterator[Candidate]:
    scope, profile = context.request.scope, context.profile
    relevance = {hit.symbol.id: hit.relevance for hit in code.search(code_query_of(context)).definitions}
    for request in requests:
        room = CHARS_PER_TOKEN * base_tokens(request.slot, profile)
        lines_only = files_shown_as_definitions(request.slot, context, code)
        for path, features in list(files.items())[: request.limit]:
            if path in lines_only:
                record = file_line(path, code, scope)
            else:
                record = file_record(path, code, scope, relevance, profile.max_file_chars, room)
            if record is not None:
                yield Candidate(record=record, slot=request.slot.name, source=source, features=features)


def _plain_candidates(
    source: Source, requests: Sequence[SlotRequest], context: SourceContext, folder: FolderSnapshot
) -> Iterator[Candidate]:
    """Yield the files that the task and its dependencies name, in a folder that is not indexed."""
    features: dict[str, Mapping[str, float]] = {}
    for path, relevance, origin in _paths_of_task(context):
        resolved = folder.resolve_path(path)
        if resolved is None:
            folder.add_note(f"{path} is not shown: there is no such file.")
        else:
            features.setdefault(resolved, {"relevance": relevance, origin: 1.0})
    for request in requests:
        room = CHARS_PER_TOKEN * base_tokens(request.slot, context.profile)
        for path in list(features)[: request.limit]:
            record = plain_file_record(path, folder, context.request.scope, context.profile.max_file_chars, room)
            if record is not None:
                yield source.candidate(request, record, **features[path])


def plain_file_record(
    path: str, folder: FolderSnapshot, scope: Scope, max_chars: int = sys.maxsize, room: int = sys.maxsize
) -> Record | None:
    """Return a file of a folder that is not indexed as a record, or None if it is gone or may not be shown."""
    lines = folder.lines(path)
    if lines is None:
        return None
    language = language_of(path, "\n".join(lines[:HEAD_LINES]))
    levels = rendering.file(path, lines, (), {}, language, max_whole_file_chars(max_chars, room), room // 4)
    return code_record("file", f"file:{path}", levels, scope, path)


def whole_file(path: str, code: CodeSnapshot, scope: Scope) -> Record | None:
    """Return a file in full, whatever its size, or None if it is gone."""
    return file_record(path, code, scope, {}, sys.maxsize, sys.maxsize)


def file_record(
    path: str, code: CodeSnapshot, scope: Scope, relevance: Mapping[int, float], max_chars: int, room: int
) -> Record | None:
    """Return a file as a record: one line if it has changed since the snapshot, None if it is gone.

    `room` is the number of characters that all files of the slot have together.
    """
    lines, file = code.lines(path), code.file(path)
    if lines is None or file is None:
        return file_line(path, code, scope)
    whole, parts = max_whole_file_chars(max_chars, room), room // 4
    lengths = rendering.file(path, lines, code.index.symbols_in_file(path), relevance, file.language, whole, parts)
    return code_record("file", f"file:{path}", lengths, scope, path)


def file_line(path: str, code: CodeSnapshot, scope: Scope) -> Record | None:
    """Return a file as one line, None if it is gone."""
    file = code.file(path)
    if file is None or (code.lines(path) is None and not code.is_changed(path)):
        return None
    text = rendering.file_line(path, file.lines, code.index.symbols_in_file(path))
    return code_record("file", f"file:{path}", RenderedLevels(text, text, text), scope, path)


def max_whole_file_chars(max_chars: int, room: int) -> int:
    """Return the largest size at which a file is shown whole: half of what the slot has, so that other files fit, too."""
    return min(max_chars, room // 2)


def files_shown_as_definitions(slot: Slot, context: SourceContext, code: CodeSnapshot) -> frozenset[str]:
    """Return the files that another slot shows as definitions, and that are therefore only a line here.

    These are files that only the question names, that are too large to be shown whole, and of which a slot for definitions
    shows some. That slot shows more of them than this one could.
    """
    max_chars = max_whole_file_chars(context.profile.max_file_chars, CHARS_PER_TOKEN * base_tokens(slot, context.profile))
    left = set()
    for path, features in referenced_files(context, code).items():
        lines = code.lines(path) if "named" in features else None
        is_large = lines is not None and not rendering.fits(lines, max_chars)
        if lines and is_large and _is_shown_as_definitions(path, lines, context, code):
            left.add(path)
    return frozenset(left)


def _paths_of_definitions(context: SourceContext, code: CodeSnapshot) -> frozenset[str]:
    """Return the files of the definitions that slots for definitions can show, by their limits and `min_relevance`."""
    shown = files_shown(context, code)
    hits = [hit for hit in _definition_hits(context, code) if hit.symbol.path not in shown]
    return frozenset(
        hit.symbol.path
        for slot, max_items in _definition_slots(context.profile)
        for hit in hits[:max_items]
        if hit.relevance >= slot.min_relevance
    )


def _definition_slots(profile: Profile) -> Iterator[tuple[Slot, int]]:
    """Yield the slots for definitions, each with how many it shows at most."""
    for slot in profile.slots:
        if "code" in slot.sources:
            limit = dict(slot.extra_sources).get("code", limit_of(slot, profile))
            yield slot, limit if slot.max_items is None else min(limit, slot.max_items)


def _definition_hits(context: SourceContext, code: CodeSnapshot) -> Sequence[DefinitionHit]:
    kinds = context.request.filters.kinds
    return code.search(code_query_of(context)).definitions if not kinds or "code" in kinds else ()


def _is_shown_as_definitions(path: str, lines: Sequence[str], context: SourceContext, code: CodeSnapshot) -> bool:
    """Return whether a slot for definitions can show one of this file whole, by its limits, `min_relevance` and tokens.

    Code outside of definitions does not count.
    """
    found = _definition_hits(context, code)
    for slot, max_items in _definition_slots(context.profile):
        room = CHARS_PER_TOKEN * base_tokens(slot, context.profile)
        shown = [hit.symbol for hit in found[:max_items] if hit.relevance >= slot.min_relevance]
        definitions = [symbol for symbol in shown if symbol.path == path and symbol.kind != MODULE]
        if any(rendering.fits(lines[symbol.start_line - 1 : symbol.end_line], room) for symbol in definitions):
            return True
    return False


def referenced_files(context: SourceContext, code: CodeSnapshot) -> dict[str, Mapping[str, float]]:
    """Return the files that the task, its dependencies or the question name, with the features of their origin."""
    files: dict[str, Mapping[str, float]] = {}
    for path, relevance, origin in _referenced_paths(context):
        resolved = code.resolve_path(path)
        if resolved:
            files.setdefault(resolved, {"relevance": relevance, origin: 1.0})
        elif origin != "named":  # a question may mention any path, but a task lists files that should exist
            code.add_note(f"{path} is not shown: the index has no such file.")
    return files


def _referenced_paths(context: SourceContext) -> Iterator[tuple[str, float, str]]:
    """Yield the paths of the task, of its dependencies and of the question, with their relevance and origin."""
    yield from _paths_of_task(context)
    yield from ((path, NAMED_FILE_RELEVANCE, "named") for path in context.signals.paths)


def _paths_of_task(context: SourceContext) -> Iterator[tuple[str, float, str]]:
    task = context.request.task
    if task is not None:
        yield from ((path, TASK_FILE_RELEVANCE, "own") for path in _paths(task, "files", "reads"))
        for dependency in completed_dependencies(context.reader, [task.id]):
            yield from ((path, DEPENDENCY_FILE_RELEVANCE, "handed_on") for path in _paths(dependency, "files_to_read"))


def _paths(task: Record, *fields: str) -> Iterator[str]:
    for field in fields:
        for part in task.data.get(field) or ():
            path = part.get("path") if isinstance(part, Mapping) else part
            # A file that the task is to create does not exist yet.
            if path and not (isinstance(part, Mapping) and part.get("operation") == "create"):
                yield str(path)


def found_files(context: SourceContext, code: CodeSnapshot) -> dict[str, Mapping[str, float]]:
    """Return the files that the search finds, that nothing names and of which no definition is shown, best first."""
    others = {*referenced_files(context, code), *_paths_of_definitions(context, code)}
    return {
        hit.file.path: {"relevance": round(FOUND_FILE_RELEVANCE * hit.relevance, 4), **hit.features}
        for hit in code.search(code_query_of(context)).files
        if hit.file.path not in others
    }


def files_shown(context: SourceContext, code: CodeSnapshot) -> frozenset[str]:
    """Return the files that the task or the question names and that slots for files will show, whole or in parts."""
    shown: set[str] = set()
    for slot in context.profile.slots:
        if Files.name in slot.sources:
            paths = list(referenced_files(context, code))[: slot.max_items]
            shown.update(set(paths) - files_shown_as_definitions(slot, context, code))
    return frozenset(shown)


def code_query_of(context: SourceContext) -> str:
    """Return the text for the code search: that of the call, which may be empty, else the query."""
    request = context.request
    return request.query if request.code_query is None else request.code_query
