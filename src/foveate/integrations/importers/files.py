"""Files -> records of a memory: finds the format, reads line by line, keeps in batches.

Formats other than foveate's own export are somebody else's and change without notice: a line that cannot be used is
counted and reported, and the rest goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from foveate.errors import InputError, near
from foveate.integrations.importers import claude_code, codex, jsonl, markdown
from foveate.integrations.importers.rows import Given, Lines, Row, Skipped
from foveate.memory import transfer
from foveate.store.retry import retried
from foveate.store.scoped import ScopedStore
from foveate.types import Record

FOVEATE = "foveate"
READERS: Mapping[str, Callable[[Lines, str], Given]] = {
    claude_code.NAME: claude_code.read,
    codex.NAME: codex.read,
    jsonl.NAME: jsonl.read,
    markdown.NAME: markdown.read,
}
FORMATS = ("auto", FOVEATE, *READERS)

BATCH = 1000
"""Rows in one transaction: an interrupted import keeps whole batches, and others may write in between."""

PEEKED = 50
"""Lines looked at to tell a format: transcripts may begin with a program's own notes."""

SHOWN = 5
"""Skipped lines that a report names, of each file."""

_MARKDOWN = (".md", ".markdown")
_WANTED = (".jsonl", ".ndjson", *_MARKDOWN)


@dataclass(frozen=True, slots=True)
class Report:
    """What an import did. `skipped` counts lines; `notes` says why, for the first few of each file."""

    added: int = 0
    known: int = 0
    skipped: int = 0
    links: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    """The format of each file that was read."""
    notes: tuple[str, ...] = ()

    def __add__(self, other: Report) -> Report:
        return Report(
            self.added + other.added,
            self.known + other.known,
            self.skipped + other.skipped,
            self.links + other.links,
            {**self.files, **other.files},
            self.notes + other.notes,
        )


def import_path(data: ScopedStore, path: str | Path, format: str = "auto") -> Report:
    """Import a file, or every file of a directory."""
    report = Report()
    for file in files_in(Path(path)):
        with file.open("rb") as source:
            report += import_lines(data, source, str(file), format, strict=file == Path(path))
    return report


def files_in(path: Path) -> list[Path]:
    """The file itself, or what can be imported of a directory, in the order of names."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.rglob("*") if file.suffix.lower() in _WANTED and file.is_file())
    if not found:
        raise InputError(f"{str(path)!r} holds no file that could be imported ({', '.join(_WANTED)}).")
    return found


def import_lines(
    data: ScopedStore, source: Iterable[bytes], name: str, format: str = "auto", *, strict: bool = True
) -> Report:
    """Import one file's lines. Where no format fits, that is an error or, unless `strict`, a note."""
    if format not in FORMATS:
        raise InputError(f"There is no format {format!r}.{near(format, FORMATS)}")
    lines, first = iter(source), []
    if format == "auto":
        first = list(islice(lines, PEEKED))
        lines = chain(first, lines)
        format = detected(first, name)
    if format == FOVEATE and not strict:
        said = f"{name}: it looks like an export, which may hold rules. Import it by itself, if it is yours."
        return Report(notes=(said,))
    if not format and strict:
        for number, raw in enumerate(first, 1):
            _decoded(raw, f"line {number}")  # what is no text has no format either
    if not format:
        said = f"{name}: its format is not known. Name it with --format: {', '.join(FORMATS[1:])}."
        if strict:
            raise InputError(said)
        return Report(notes=(said,))
    if format == FOVEATE:
        done = transfer.import_lines(data, (_decoded(raw, f"line {n}") for n, raw in enumerate(lines, 1)))
        return Report(done.added, done.known, links=done.links, files={name: format})
    numbered = ((n, raw.decode("utf-8-sig" if n == 1 else "utf-8", "replace")) for n, raw in enumerate(lines, 1))
    stem = Path(name).name if format == markdown.NAME else Path(name).stem
    return replace(keep(data, READERS[format](numbered, stem), name), files={name: format})


def detected(first: Sequence[bytes], name: str) -> str:
    """The format of a file by its first lines; empty where none fits."""
    if Path(name).suffix.lower() in _MARKDOWN:
        return markdown.NAME
    values = [value for raw in first if isinstance(value := _json(raw), dict)]
    for value in values:
        if "link" in value or "history" in value or {"id", "kind", "text"} <= value.keys():
            return FOVEATE
        if codex.looks_like(value):
            return codex.NAME
        if claude_code.looks_like(value):
            return claude_code.NAME
    blank = not any(raw.strip() for raw in first)
    return jsonl.NAME if values else FOVEATE if blank else ""


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return None


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 text (byte {error.start}).") from None


def keep(data: ScopedStore, given: Iterator[Row | Skipped], name: str) -> Report:
    """Keep the rows in batches; what an importer or the memory refuses is counted."""
    counts: Counter[str] = Counter()
    notes: list[str] = []
    guarded = _guarded(given)
    while batch := list(islice(guarded, BATCH)):
        for part in batch:
            if isinstance(part, Skipped):
                counts["skipped"] += 1
                notes += [f"{name}, line {part.number}: {part.why}."] if len(notes) < SHOWN else []
        counts += _write(data, [part for part in batch if isinstance(part, Row)], name, notes)
    if not sum(counts.values()):
        notes.append(f"{name}: nothing in it could be used. Is it of another format?")
    return Report(counts["added"], counts["known"], counts["skipped"], notes=tuple(notes))


def _guarded(given: Given) -> Given:
    """The rows up to a line of a shape that nobody foresaw; what came before it is kept."""
    try:
        yield from given
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError) as error:
        yield Skipped(0, f"the rest could not be read ({type(error).__name__}: {error})")


def _write(data: ScopedStore, rows: Sequence[Row], name: str, notes: list[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    new = _unknown(data, rows)
    counts["known"] += len(rows) - len(new)
    made: list[Record] = []
    for row in new:
        scope = replace(data.scope, session=row.session or data.scope.session)
        try:
            made.append(data.make(row.kind, row.text, row.values, scope))
        except InputError as error:
            counts["skipped"] += 1
            notes += [f"{name}: {row.values['key']} cannot be kept: {error}"] if len(notes) < SHOWN else []
    counts.update(_kept(data, made))
    return counts


@retried
def _unknown(data: ScopedStore, rows: Sequence[Row]) -> list[Row]:
    """What is known need not be made again."""
    with data.reader() as reader:
        return [row for row in rows if not any(reader.by_key(key) for key in (row.values["key"], row.alias) if key)]


@retried
def _kept(data: ScopedStore, made: Sequence[Record]) -> list[str]:
    """What became of each record: added, or known."""
    vectors = data.vectors([record.text for record in made])
    with data.store.write(data.scope) as writer:
        actions = [writer.add(record, vector).action for record, vector in zip(made, vectors, strict=True)]
    return ["added" if action == "added" else "known" for action in actions]
