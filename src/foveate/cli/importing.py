"""`import`: an export of foveate's own, or what other programs have written down."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import STDIN, Call, Verb, pass_call, say, scoped
from foveate.operations import json

if TYPE_CHECKING:
    from foveate.integrations.importers import ImportReport

FORMATS = ("auto", "foveate", "claude-code", "codex", "jsonl", "markdown")


@click.command("import", cls=Verb)
@click.argument("file", type=click.Path(exists=True, allow_dash=True, path_type=str))
@click.option("--format", type=click.Choice(FORMATS), default="auto", help="What wrote FILE; by default, its lines tell.")
@scoped
@pass_call
def import_(call: Call, file: str, format: str, **scope: Any) -> None:
    """Read what `export` wrote, or what other programs did.

    FILE is an export, a transcript of Claude Code, a rollout of Codex, a log with a JSON object on each line, or a memory
    file in Markdown; of a directory, every such file is read, and `-` is stdin. What is here already is left as it is, so
    that importing again adds only what is new. A line that cannot be read stops the import of an export, whole batches
    before it are kept; in the other formats it is skipped and counted.
    """
    from foveate.integrations.importers import ImportReport

    with call.open(**scope) as engine:
        if file == STDIN:
            done = _imported(engine, sys.stdin.buffer, STDIN, format, strict=True)
        else:
            done = sum(_of_files(engine, file, format), ImportReport())
    if call.as_json:
        call.print_json(json.imported(done))
        return
    skipped = f", {done.skipped} line{'s' if done.skipped > 1 else ''} skipped" if done.skipped else ""
    click.echo(f"{done.added} added, {done.known} known already, {done.links} links{skipped}")
    for note in done.notes:
        say(note)


def _of_files(engine: Any, path: str, format: str) -> Iterator[ImportReport]:
    """The report of each file, with a bar over all of them on a terminal."""
    from foveate.integrations.importers import importable_files

    files = importable_files(Path(path))
    size = sum(file.stat().st_size for file in files)
    shown = sys.stderr.isatty()
    with click.progressbar(length=size, label="import", file=sys.stderr) if shown else nullcontext() as bar:
        for file in files:
            with file.open("rb") as source:
                lines = _told(source, bar) if bar else source
                yield _imported(engine, lines, os.fspath(file), format, strict=len(files) == 1)


def _told(source: Iterable[bytes], bar: Any) -> Iterator[bytes]:
    for raw in source:
        bar.update(len(raw))
        yield raw


def _imported(engine: Any, lines: Iterable[bytes], name: str, format: str, *, strict: bool) -> ImportReport:
    from foveate.integrations.importers import import_lines

    return import_lines(engine.store.data, lines, name, format, strict=strict)


VERBS = {"import": import_}
