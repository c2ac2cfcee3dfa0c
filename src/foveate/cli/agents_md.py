"""`export agents-md`: the stable part of what is known, as a block in AGENTS.md that every coding agent reads.

Rules, ways of doing things and the worst gotchas of the project itself: nothing of one person or agent, nothing that only
tools or the repository said, and nothing that depends on a question or a clock. The bytes are the same until the content is
not, and everything around the block stays as it is.
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

FILE = "AGENTS.md"
MAX_LINES = 60
SHARES = (
    ("Rules", ("censor", "instruction"), 24),
    ("How it is done here", ("pattern", "procedure"), 11),
    ("Gotchas", ("gotcha",), 11),
)
"""Headings, kinds, and how many of each at most: together with headings and marks, fewer than `MAX_LINES`."""

MAX_LINE = 400
"""Characters of a line: what is longer has no place in a file that is read at every start."""


def export_agents_md(call: Call, file: str, *, check: bool) -> None:
    """Write the block into a file, or say whether it is up to date."""
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
        say(f"{file} is {'stale: `foveate export agents-md` renews it' if stale else 'up to date'}.")
    else:
        say(f"{len(lines)} lines in {file}" if stale else f"{file} is up to date; nothing was changed.")
    if check and stale:
        raise click.exceptions.Exit(1)


def block(engine: Engine) -> Iterator[str]:
    """The lines of the block, marks included."""
    yield BEGIN
    yield "## What this project knows"
    yield ""
    yield "Kept by foveate, and replaced as a whole: edit with `foveate add`, `foveate edit` and `foveate forget`."
    for heading, kinds, most in SHARES:
        lines = [line for record in _chosen(engine, kinds, most) if (line := _line(record))]
        if lines:
            yield from ("", f"### {heading}", "", *lines)
    yield END


def _chosen(engine: Engine, kinds: tuple[str, ...], most: int) -> list[Record]:
    """What matters most of some kinds, in the order in which it came to be known."""
    from foveate.tasks.task import NO_LIMIT
    from foveate.types import NO_FILTERS, Scope

    with engine.store.data.store.read(Scope(engine.scope.project)) as reader:
        found = [*reader.always_on(kinds), *reader.most_salient(kinds, NO_LIMIT, NO_FILTERS)]
    shared = {r.id: r for r in found if r.trust in ("user", "agent") and r.status == "active" and _is_shared(r)}
    best = sorted(shared.values(), key=lambda r: (-r.salience, r.created, r.id))[:most]
    return sorted(best, key=lambda r: (kinds.index(r.kind), r.created, r.id))


def _is_shared(record: Record) -> bool:
    return record.scope.user is None and record.scope.agent is None


def _line(record: Record) -> str:
    """One line of Markdown; a mark within it would end the block."""
    from foveate.pipeline.assembly import render_line
    from foveate.types import LEVELS, Candidate

    candidate = Candidate(record=record, slot="", source="")
    lines = (render_line(candidate, level) for level in LEVELS)
    told = next((line for line in lines if _is_one_line(line)), "")
    return told.strip().replace("<!--", "&lt;!--")


def _is_one_line(text: str) -> bool:
    return "\n" not in text.strip() and len(text) <= MAX_LINE


def _with_block(text: str, lines: list[str], name: str) -> str:
    from foveate.integrations.install.config_edits import insert_block

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
