"""Imports files: detects the format, reads line by line, and stores in batches.

Formats other than foveate's own export belong to other programs and change without notice. A line that cannot be used is
counted and reported, and the import goes on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from foveate.errors import InputError, near
from foveate.integrations.importers import claude_code, codex, jsonl, markdown
from foveate.integrations.importers.rows import ImportRows, Lines, SkippedLine
from foveate.memory import transfer
from foveate.memory.messages import ConversationMessage, RecordRow, event_rows, store_rows, with_times
from foveate.store.scoped import ScopedStore

EXPORT_FORMAT = "foveate"
READERS: Mapping[str, Callable[[Lines, str], ImportRows]] = {
    claude_code.NAME: claude_code.read,
    codex.NAME: codex.read,
    jsonl.NAME: jsonl.read,
    markdown.NAME: markdown.read,
}
FORMATS = ("auto", EXPORT_FORMAT, *READERS)

BATCH_SIZE = 1000
"""Rows in one transaction. An interrupted import keeps whole batches, and other writers get their turn in between."""

MAX_DETECTION_LINES = 50
"""Lines read to detect the format. A transcript may begin with lines of the program itself."""

MAX_REPORTED_SKIPS = 5
"""Skipped lines of a file that a report names."""

_MARKDOWN_SUFFIXES = (".md", ".markdown")
_IMPORTABLE_SUFFIXES = (".jsonl", ".ndjson", *_MARKDOWN_SUFFIXES)


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import. `skipped` counts lines; `notes` gives the reason for the first few of each file."""

    added: int = 0
    known: int = 0
    skipped: int = 0
    links: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    """The format of each file that was read."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: ImportReport) -> ImportReport:
        return ImportReport(
            self.added + other.added,
            self.known + other.known,
            self.skipped + other.skipped,
            self.links + other.links,
            {**self.files, **other.files},
            self.notes + other.notes,
        )


def import_path(data: ScopedStore, path: str | Path, format: str = "auto") -> ImportReport:
    """Import a file, or every file in a folder."""
    report = ImportReport()
    for file in importable_files(Path(path)):
        with file.open("rb") as source:
            report += import_lines(data, source, str(file), format, strict=file == Path(path))
    return report


def importable_files(path: Path) -> list[Path]:
    """Return the file itself, or the files in a folder that can be imported, sorted by name."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix.lower() in _IMPORTABLE_SUFFIXES and file.is_file())
    if not files:
        raise InputError(f"The folder {str(path)!r} contains no file to import ({', '.join(_IMPORTABLE_SUFFIXES)}).")
    return files


def import_lines(
    data: ScopedStore, source: Iterable[bytes], name: str, format: str = "auto", *, strict: bool = True
) -> ImportReport:
    """Import the lines of a file. An unknown format is an error, or a note in the report if not `strict`."""
    if format not in FORMATS:
        raise InputError(f"Unknown format {format!r}.{near(format, FORMATS)} Known: {', '.join(FORMATS)}.")
    lines, first_lines = iter(source), []
    if format == "auto":
        first_lines = list(islice(lines, MAX_DETECTION_LINES))
        lines = chain(first_lines, lines)
        format = detect_format(first_lines, name)
        if not format:
            return _unknown_format(first_lines, name, strict)
    if format == EXPORT_FORMAT and not strict:
        note = f"{name}: skipped, because it looks like an export, which may contain rules. Import it by its own path."
        return ImportReport(notes=(note,))
    if format == EXPORT_FORMAT:
        done = transfer.import_lines(data, (_decode(raw, f"line {n}") for n, raw in enumerate(lines, 1)))
        return ImportReport(done.added, done.known, links=done.links, files={name: format})
    return replace(save_rows(data, read_rows(lines, name, format), name), files={name: format})


def _unknown_format(first_lines: Sequence[bytes], name: str, strict: bool) -> ImportReport:
    problem = f"{name}: unknown format. Name it with --format: {', '.join(FORMATS[1:])}."
    if not strict:
        return ImportReport(notes=(problem,))
    for number, raw in enumerate(first_lines, 1):
        _decode(raw, f"line {number}")  # "not UTF-8" is the better error
    raise InputError(problem)


def read_rows(source: Iterable[bytes], name: str, format: str, session: str | None = None) -> ImportRows:
    """Yield the rows of a file, in a format of `READERS`. `session` is that of lines which name none."""
    numbered = ((n, raw.decode("utf-8-sig" if n == 1 else "utf-8", "replace")) for n, raw in enumerate(source, 1))
    return READERS[format](numbered, Path(name).name if format == markdown.NAME else session or Path(name).stem)


def detect_format(first_lines: Sequence[bytes], name: str) -> str:
    """Return the format of a file by its suffix and first lines; empty if none fits."""
    if Path(name).suffix.lower() in _MARKDOWN_SUFFIXES:
        return markdown.NAME
    values = [value for raw in first_lines if isinstance(value := _parse_json(raw), dict)]
    for value in values:
        if "link" in value or "history" in value or {"id", "kind", "text"} <= value.keys():
            return EXPORT_FORMAT
        if codex.is_rollout_line(value):
            return codex.NAME
        if claude_code.is_transcript_line(value):
            return claude_code.NAME
    is_blank = not any(raw.strip() for raw in first_lines)
    return jsonl.NAME if values else EXPORT_FORMAT if is_blank else ""


def _parse_json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 text (byte {error.start}).") from None


def save_rows(data: ScopedStore, rows: ImportRows, name: str, *, dry_run: bool = False) -> ImportReport:
    """Store messages and other rows in batches, and count those that are stored already or cannot be stored.

    A dry run only counts.
    """
    added = known = skipped = 0
    notes: list[str] = []
    seen: set[str] = set()
    guarded = _stop_at_error(rows)
    while batch := list(islice(guarded, BATCH_SIZE)):
        problems = [f"{name}, line {part.number}: {part.reason}." for part in batch if isinstance(part, SkippedLine)]
        messages = [part for part in batch if isinstance(part, ConversationMessage)]
        events = [row for timed in with_times(messages, data.clock()) for row in event_rows(timed, data.scope)]
        others = [part for part in batch if isinstance(part, RecordRow)]
        rejected: list[str] = []
        stored, known_rows = store_rows(data, [*events, *others], data.scope, seen, rejected, dry_run=dry_run)
        problems += [f"{name}: {problem}" for problem in rejected]
        added += len(stored)
        known += known_rows
        skipped += len(problems)
        notes += problems[: MAX_REPORTED_SKIPS - len(notes)]
    if not added + known + skipped:
        notes.append(f"{name}: contains nothing to import. Is its format another one?")
    return ImportReport(added, known, skipped, notes=tuple(notes))


def _stop_at_error(rows: ImportRows) -> ImportRows:
    """Yield the rows before a line of an unexpected form, and report the rest as skipped."""
    try:
        yield from rows
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError) as error:
        yield SkippedLine(0, f"the rest could not be read ({type(error).__name__}: {error})")
