"""`foveate store export --agents-md`: what a project knows, as a block in AGENTS.md that every coding agent reads.

The block holds rules, patterns, procedures and the worst gotchas of the project itself. It holds nothing of one person or
agent, nothing that only tools or the repository said, and nothing that depends on a query: its bytes stay the same until
the records change, or one of them becomes valid or expires. The rest of the file stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foveate.cli.call import STDIN, Call, say
from foveate.errors import InputError
from foveate.text.markdown import BEGIN, END

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.types import Record

DEFAULT_FILE = "AGENTS.md"
MAX_LINES = 60
SECTIONS = (
    ("Rules", ("censor", "instruction"), 24),
    ("How it is done here", ("pattern", "procedure"), 11),
    ("Gotchas", ("gotcha",), 11),
)
"""Heading, kinds and maximum number of records of each section. With headings and marks, fewer than `MAX_LINES`."""

MAX_LINE_CHARS = 400
"""Agents read the file at every start, so a record that is longer is left out or shortened."""


def write_block(call: Call, file: str, *, check: bool) -> None:
    """Write the block into a file, or with `check` only tell whether it is up to date there."""
    with call.open() as engine:
        lines = list(block(engine))
    if file == STDIN:
        click.echo("\n".join(lines))
        return
    path = Path(file)
    before = _text(path)
    after = _with_block(before, lines, file)
    stale = before != after
    if stale and not check:
        _write(path, after)
    if call.as_json:
        call.print_json({"path": file, "lines": len(lines), "changed": stale and not check, "stale": stale and check})
    elif check:
        say(f"{file} is {'out of date: `foveate store export --agents-md` renews it' if stale else 'up to date'}.")
    else:
        say(f"{len(lines)} lines in {file}" if stale else f"{file} is up to date; nothing was changed.")
    if check and stale:
        raise click.exceptions.Exit(1)


def block(engine: Engine) -> Iterator[str]:
    """Yield the lines of the block, marks included."""
    yield BEGIN
    yield "## What this project knows"
    yield ""
    yield "Written by foveate and replaced as a whole. To change it, use `foveate add`, `foveate edit` and `foveate forget`."
    for heading, kinds, limit in SECTIONS:
        lines = [line for record in _most_salient(engine, kinds, limit) if (line := _line(record))]
        if lines:
            yield from ("", f"### {heading}", "", *lines)
    yield END


def _most_salient(engine: Engine, kinds: tuple[str, ...], limit: int) -> list[Record]:
    """Return the most salient records of some kinds, in the order in which they were created."""
    from foveate.records.lifecycle import invalidity
    from foveate.tasks.task import NO_LIMIT
    from foveate.types import NO_FILTERS, Scope

    with engine.store.data.store.read(Scope(engine.scope.project)) as reader:
        found = [*reader.always_on(kinds), *reader.most_salient(kinds, NO_LIMIT, NO_FILTERS)]
    now = engine.store.data.clock()
    active = [r for r in found if r.status == "active" and not invalidity(r, now)]
    shared = {r.id: r for r in active if r.trust in ("user", "agent") and _is_shared(r)}
    best = sorted(shared.values(), key=lambda r: (-r.salience, r.created, r.id))[:limit]
    return sorted(best, key=lambda r: (kinds.index(r.kind), r.created, r.id))


def _is_shared(record: Record) -> bool:
    return record.scope.user is None and record.scope.agent is None


def _line(record: Record) -> str:
    """Return a record as one line of Markdown, or an empty string. A comment within it would end the block."""
    from foveate.pipeline.assembly import render_line
    from foveate.types import STORED_LEVELS, Candidate

    candidate = Candidate(record=record, slot="", source="")
    lines = (render_line(candidate, level) for level in STORED_LEVELS)
    told = next((line for line in lines if _is_one_line(line)), "")
    return told.strip().replace("<!--", "&lt;!--")


def _is_one_line(text: str) -> bool:
    return "\n" not in text.strip() and len(text) <= MAX_LINE_CHARS


def _with_block(text: str, lines: list[str], name: str) -> str:
    from foveate.integrations.install.config_files import insert_block

    return insert_block(text, lines[1:-1], (BEGIN, END), name)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not UTF-8 text; nothing was written.") from None


def _write(path: Path, text: str) -> None:
    from foveate.text.atomic_write import write_file

    write_file(path, text)
