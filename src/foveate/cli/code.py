"""`code map`, `code docs` and the search in code: what the files of a project contain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, VerbGroup, pass_call, read_text, say
from foveate.cli.render import Line, print_lines, text_line, title
from foveate.code.records import NO_CODE_MESSAGE
from foveate.errors import BudgetError, InputError, SourceError
from foveate.operations import documents

if TYPE_CHECKING:
    from foveate.code.search import DefinitionHit, FileHit
    from foveate.engine import Engine

MAX_NAMED = 8
"""Files that a line names. It counts the others."""


def _open(call: Call) -> Engine:
    """Open the engine of a project that has code; its store is created if it is missing."""
    place = call.place()
    if not place.has_store and not place.has_code:
        raise InputError(NO_CODE_MESSAGE)
    return call.open(create=True)


@click.group(cls=VerbGroup)
def code() -> None:
    """Show what the index of the repository contains."""


@code.command("map", cls=Verb)
@click.argument("query", required=False)
@click.option("--budget", type=int, metavar="TOKENS", help="Maximum tokens of the map.")
@pass_call
def map_(call: Call, query: str | None, budget: int | None) -> None:
    """Print the map of the repository: the files and definitions that matter most.

    With QUERY, those that matter most for it; `-` reads it from stdin.
    """
    with _open(call) as engine:
        found = engine.code.map("" if query is None else read_text(query), budget=budget)
    if not found.items and found.warnings:
        raise SourceError(found.warnings[0])
    if not found.items and found.left_out:
        short = min(left.needs_tokens or 0 for left in found.left_out)
        raise BudgetError(f"{budget} tokens are too few for one line of the map.", short=short)
    if call.as_json:
        from foveate.receipts.codec import context_to_json

        call.print_json(context_to_json(found))
        return
    click.echo(found.text, nl=False)
    if not found.items:
        say("the map is empty: no file is indexed. `foveate doctor` lists what was skipped, and why.")
    for warning in found.warnings:
        say(f"warning: {warning}")


@code.command("docs", cls=Verb)
@click.argument("section", required=False)
@pass_call
def docs(call: Call, section: str | None) -> None:
    """Print what the documents and manifests of the repository say.

    That is configuration, instructions, architecture, stack, commands and directories; SECTION is the name of one of them.
    Each value names the file that it comes from.
    """
    with _open(call) as engine:
        codebase = engine.code.docs()
        document = documents.codebase(codebase, engine.code.workspace, section)
    if call.as_json:
        call.print_json(document)
        return
    lines: list[Line] = _project_lines(document.get("project", {}))
    for part in (part for part in codebase.sections if section in (None, part.name)):
        heading: Line = [(part.title, "bold"), (f" ({part.name})" + _sources(part.source_paths), "dim")]
        lines += [*([[]] if lines else []), heading, *map(text_line, part.text.split("\n"))]
    print_lines(lines)
    for note in codebase.notes:
        say(f"warning: {note}")
    if not lines:
        say("the repository has neither documents nor manifests that foveate reads.")


def _project_lines(project: Mapping[str, Mapping[str, str]]) -> list[Line]:
    rows = [(name.replace("_", " "), each["value"], each["from"]) for name, each in project.items() if each["value"]]
    size = max((len(name) for name, _, _ in rows), default=0)
    return [[(name.ljust(size) + "  ", "dim"), (value, ""), (f"  ({source})", "dim")] for name, value, source in rows]


def _sources(paths: Iterable[str]) -> str:
    named = list(paths)
    more = len(named) - MAX_NAMED
    return f" from {', '.join(named[:MAX_NAMED])}" + (f" and {more} more" if more > 0 else "") if named else ""


def search_code(call: Call, query: str, limit: int, files: bool) -> None:
    """Print the definitions that a query is about, and the files if they are asked for, best first."""
    with _open(call) as engine, engine.code.workspace.snapshot() as snapshot:
        found, notes = snapshot.search(query, limit, limit), snapshot.notes
    if call.as_json:
        call.print_json(documents.code_hits(query, found))
        return
    lines = [
        _hit_line(hit, f"{hit.symbol.path}:{hit.symbol.start_line}", hit.symbol.qualified_name or "top level")
        for hit in found.definitions
    ]
    if files:
        lines = [title("definitions"), *lines, [], title("files")] if lines else [title("files")]
        lines += [_hit_line(hit, hit.file.path, f"{hit.file.lines:,} lines") for hit in found.files]
    if not found.definitions and not found.files:
        say("nothing found")
    else:
        print_lines(lines)
    for note in notes:
        say(f"warning: {note}")


def _hit_line(hit: DefinitionHit | FileHit, where: str, name: str) -> Line:
    features = ", ".join(f"{feature} {value:.2f}" for feature, value in hit.features.items())
    return [(f"{hit.relevance:.2f}  ", "dim"), (where, "cyan"), (f"  {name}", ""), (f"  {features}", "dim")]


VERBS: dict[str, Any] = {"code": code}
