"""`remember`: conversations, transcripts, logs and memory files become records."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from foveate.cli.call import STDIN, Call, Verb, decode_text, pass_call, say
from foveate.cli.render import print_lines, table
from foveate.errors import InputError
from foveate.integrations.importers import ImportReport, importable_files, save_rows
from foveate.integrations.importers.files import EXPORT_FORMAT, MAX_DETECTION_LINES, READERS, detect_format, read_rows
from foveate.integrations.importers.rows import ImportRows, SkippedLine
from foveate.memory.entities import Proposal, propose_entities
from foveate.memory.messages import as_messages
from foveate.types import Message

if TYPE_CHECKING:
    from foveate.engine import Engine

MESSAGES = "messages"
"""Format of a JSON list of messages, as `engine.remember` takes them."""

TEXT = "text"
"""Format of standard input that is none of the others: one message."""

FORMATS = ("auto", *READERS, MESSAGES)

_LIST_OF_OBJECTS = re.compile(rb"\s*\[\s*[{\]]")

PERSONAL_FORMATS = ("claude-code", "codex", MESSAGES)
"""Formats whose messages get the trust of the user."""


@click.command(cls=Verb, scoped=True, authored=True)
@click.argument("files", metavar="[FILE...|-]", nargs=-1)
@click.option("--format", type=click.Choice(FORMATS), default="auto", help="Format of FILE; by default, its lines tell.")
@click.option("--dry-run", is_flag=True, help="Only say what would be stored, and which names could be entities.")
@pass_call
def remember(call: Call, files: tuple[str, ...], format: str, dry_run: bool) -> None:
    """Store conversations, transcripts, logs and memory files.

    FILE is a transcript of Claude Code, a rollout of Codex, a log with a JSON object on each line, a memory file in
    Markdown, or a JSON list of messages, each with role and content. In a folder, every .jsonl and .md file is read. `-`, or
    no FILE, reads stdin, where a plain text is one message. Records that are stored already are not stored again, and a line
    that cannot be read is skipped and counted. `--user` says whose conversations they are, and `--session` names those that
    have no name; by default it is the name of the file. The lines of a memory file become notes; `foveate inbox accept ID
    --as instruction` makes a rule of one. `foveate store import` reads foveate's own exports.
    """
    if not files and sys.stdin.isatty():
        raise click.UsageError("Name a file or a folder, or pipe a text into the command.", click.get_current_context())
    sources = files or (STDIN,)
    for source in sources:
        if source != STDIN and not os.path.exists(source):
            raise InputError(
                f"There is no file {source!r}. To store a text, `foveate add note TEXT`, or pipe it into `foveate remember`."
            )
    texts: list[str] | None = [] if dry_run else None
    with call.open() as engine:
        reader = _Reader(engine, call, format, texts)
        report = sum((reader.remember(source, strict=len(sources) == 1) for source in sources), ImportReport())
        names = [] if texts is None else propose_entities(engine.store.data, "\n\n".join(texts))
    _print_report(call, report, names, dry_run=dry_run)


def _print_report(call: Call, report: ImportReport, names: Sequence[Proposal], *, dry_run: bool) -> None:
    if call.as_json:
        counts = {"stored": report.added, "known": report.known, "skipped": report.skipped}
        found = {"entities": names} if dry_run else {}
        call.print_json({"dry_run": dry_run, **counts, "files": dict(report.files), "notes": list(report.notes), **found})
        return
    skipped = f", {report.skipped:,} skipped" if report.skipped else ""
    stored = f"{report.added:,} would be stored" if dry_run else f"{report.added:,} stored"
    click.echo(f"{stored}, {report.known:,} known already{skipped}")
    for note in report.notes:
        say(note)
    if names:
        rows = [(name.name, name.type, name.known or "", str(name.count)) for name in names]
        print_lines([[], *table(("name", "type", "entity", "count"), rows, left=3)])
        say("`foveate add entity NAME` adds a name as an entity.")


class _Reader:
    """Reads sources in any format and stores what they contain, or collects the texts of a dry run."""

    def __init__(self, engine: Engine, call: Call, format: str, texts: list[str] | None) -> None:
        self._engine = engine
        self._call = call
        self._session = call.session
        self._format = format
        self._texts = texts

    def remember(self, path: str, *, strict: bool) -> ImportReport:
        """Store what a file, the files of a folder, or standard input contains.

        An unknown format is an error if `strict`, and a note in the report in a folder or among several files.
        """
        if path == STDIN:
            return self._source(sys.stdin.buffer, STDIN, strict=strict)
        files = importable_files(Path(path))
        size = sum(file.stat().st_size for file in files)
        is_watched = sys.stderr.isatty()
        report = ImportReport()
        with click.progressbar(length=size, label="remember", file=sys.stderr) if is_watched else nullcontext() as bar:
            for file in files:
                with file.open("rb") as source:
                    lines = _with_progress(source, bar) if bar else source
                    report += self._source(lines, os.fspath(file), strict=strict and not os.path.isdir(path))
        return report

    def _source(self, source: Iterable[bytes], name: str, *, strict: bool) -> ImportReport:
        first_lines = list(islice(iter_lines := iter(source), MAX_DETECTION_LINES))
        lines = chain(first_lines, iter_lines)
        format = self._format if self._format != "auto" else _detect(first_lines, name)
        is_empty = len(first_lines) < MAX_DETECTION_LINES and not any(raw.strip() for raw in first_lines)
        if is_empty and self._format == "auto" and name != STDIN:
            problem = f"{name!r} is empty: it has no text to remember."
        else:
            problem = self._problem(format, name)
        if problem and strict:
            raise InputError(problem)
        if problem:
            return ImportReport(notes=(problem,))
        if format in (MESSAGES, TEXT):
            role: Literal["assistant", "user"] = "assistant" if self._call.author() == "agent" else "user"
            if format == TEXT:
                self._call.say_agent_trust()
            return self._messages(_messages(b"".join(lines), name, format, role), name, format)
        rows = read_rows(lines, name, format, self._session)
        saved = save_rows(self._engine.store.data, self._collected(rows), name, dry_run=self._texts is not None)
        return ImportReport(saved.added, saved.known, saved.skipped, files={name: format}, notes=saved.notes)

    def _messages(self, messages: list[Message], name: str, format: str) -> ImportReport:
        session = self._session or (None if name == STDIN else Path(name).stem)
        if session is not None and format == MESSAGES:
            messages = [_with_id(number, message) for number, message in enumerate(messages)]
        if self._texts is not None:
            self._texts += [message["content"] for message in messages]
        done = self._engine.remember(messages, dry_run=self._texts is not None, session=session)
        return ImportReport(done.stored, done.known, done.skipped, files={name: format})

    def _collected(self, rows: ImportRows) -> ImportRows:
        for row in rows:
            if self._texts is not None and not isinstance(row, SkippedLine):
                self._texts.append(row.text)
            yield row

    def _problem(self, format: str, name: str) -> str:
        """Return why a source cannot be remembered, or an empty text."""
        if not format:
            known = ", ".join(FORMATS[1:])
            return f"{name!r} has no format that foveate knows. Name one with --format ({known}), or pipe the text in."
        if format == EXPORT_FORMAT:
            return (
                f"{name!r} is an export of foveate, which may contain rules. Import it with `foveate store import {name}`."
            )
        if format in PERSONAL_FORMATS and self._call.author() == "agent":
            return f"{name!r} contains messages of the user, and {self._call.agent_reason()}."
        return ""


def _with_progress(source: IO[bytes], bar: Any) -> Iterator[bytes]:
    for raw in source:
        bar.update(len(raw))
        yield raw


def _detect(first_lines: Sequence[bytes], name: str) -> str:
    """Return the format of a source; empty if it is none that is known."""
    if name == STDIN and not any(raw.strip() for raw in first_lines):
        return TEXT
    format = detect_format(first_lines, name)
    if format != "markdown" and _LIST_OF_OBJECTS.match(b"".join(first_lines)):
        return MESSAGES
    return format or (TEXT if name == STDIN else "")


def _messages(raw: bytes, name: str, format: str, role: Literal["assistant", "user"]) -> list[Message]:
    where = "standard input" if name == STDIN else repr(name)
    text = decode_text(raw, where)
    if format == TEXT:
        if not text.strip():
            raise InputError(f"{where} is empty.")
        return [{"role": role, "content": text}]
    try:
        return as_messages(json.loads(text))
    except ValueError as error:
        raise InputError(f"{where} is not a JSON list of messages: {error}.") from None


def _with_id(number: int, message: Message) -> Message:
    """Return a message with an id by its place and its text, so that a file is not stored twice."""
    if "id" in message or "at" in message:
        return message
    digest = blake2b(message["content"].encode("utf-8", "replace"), digest_size=8).hexdigest()
    return {**message, "id": f"{number}-{digest}"}


VERBS = {"remember": remember}
