"""`doctor`: is everything that foveate relies on sound, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.errors import Damaged

if TYPE_CHECKING:
    from foveate.engine import Engine


@click.command(cls=Verb)
@click.option("--fix", is_flag=True, help="Make the index anew; carry what can be read out of a damaged file.")
@pass_call
def doctor(call: Call, fix: bool) -> None:
    """Examine store, indexes, settings, profiles and hooks.

    The exit code is 1 where something is wrong, and each problem says what to do.
    """
    from foveate.memory.backfill import embed_missing
    from foveate.server.doctor import check_environment

    engine, lost = _opened(call, fix)
    with engine:
        facts, problems = _store(engine.store.data.store, fix)
        if fix and engine.store.data.embedder is not None:
            say(f"{embed_missing(engine.store.data).embedded_count} records given a vector.")
        sound = not problems
        if engine.store.data.personal is not None:
            own_facts, own_problems = _store(engine.store.data.personal, fix)
            problems += [f"Your own store: {problem}" for problem in own_problems]
            facts["own store"] = own_facts.get("path", "")
        found = check_environment(engine, call.place(), call.store or Path(), readable=sound)
    facts |= found.facts
    problems += [*lost, *found.problems]
    if call.as_json:
        call.print_json({"ok": not problems, "facts": facts, "problems": problems, "warnings": found.warnings})
    else:
        _print(facts, problems, found.warnings)
    if problems:
        raise click.exceptions.Exit(1)


def _opened(call: Call, fix: bool) -> tuple[Engine, list[str]]:
    """The engine, and what was lost; with `fix`, also on files that are too damaged to be opened as they are."""
    salvaged: dict[str, list[str]] = {}
    while True:
        try:
            return call.open(), [problem for problems in salvaged.values() for problem in problems]
        except Damaged as error:
            path = str(getattr(error, "path", None) or call.place().store)
            if not fix or path in salvaged:
                raise
            from foveate.store.sqlite.store import SQLiteStore

            salvaged[path] = _carried(path, SQLiteStore.salvage_file(path))


def _carried(path: str, number: int) -> list[str]:
    """Say what a salvage has done; the problem where that is nothing."""
    say(f"{number} records carried from {path!r} into a new file; the damaged one is kept beside it.")
    return [] if number else [f"Nothing could be read of {path!r}, and it is empty now. Restore a backup."]


def _store(store: Any, fix: bool) -> tuple[dict[str, Any], list[str]]:
    """What a store says of its health, after mending it where that was asked for."""
    facts, problems, damaged = _health(store)
    lost: list[str] = []
    if fix and problems:
        if damaged:
            lost = _carried(store.path, store.salvage())
        else:
            say(f"{store.rebuild()} records indexed again.")
        facts, problems, _ = _health(store)
    return facts, [*problems, *lost]


def _health(store: Any) -> tuple[dict[str, Any], list[str], bool]:
    try:
        found = store.health()
    except Damaged as error:
        return {"path": store.path}, [str(error)], True
    return dict(found.facts), list(found.problems), found.is_damaged


def _print(facts: Mapping[str, Any], problems: list[str], warnings: list[str]) -> None:
    from foveate.cli.render import Line, pairs, print_lines

    lines: list[Line] = pairs((name.replace("_", " "), value) for name, value in facts.items())
    lines += [[("problem  ", "red"), (problem, "")] for problem in problems]
    lines += [[("warning  ", "yellow"), (warning, "")] for warning in warnings]
    if not problems:
        lines.append([("ok", "green")])
    print_lines(lines)


VERBS = {"doctor": doctor}
