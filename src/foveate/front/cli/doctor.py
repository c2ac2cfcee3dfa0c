"""`doctor`: is everything that foveate relies on sound, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from foveate.errors import Damaged, FoveateError
from foveate.front.cli.calling import Call, Verb, pass_call, say

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.project import Place


@click.command(cls=Verb)
@click.option("--fix", is_flag=True, help="Make the index anew; carry what can be read out of a damaged file.")
@pass_call
def doctor(call: Call, fix: bool) -> None:
    """Examine store, index, settings and profiles.

    The exit code is 1 where something is wrong, and each problem says what to do.
    """
    with _opened(call, fix) as engine:
        facts, problems = _store(engine.store, fix)
        if fix and engine.embeds:
            say(f"{engine.embed_missing()} records given a vector.")
        warnings: list[str] = []
        if not problems:
            warnings = engine.outgrown()
        if engine.own is not None:
            own_facts, own_problems = _store(engine.own, fix)
            problems += [f"Your own store: {problem}" for problem in own_problems]
            facts["own store"] = own_facts.get("path", "")
        facts |= _settings(call.place(), engine)
    problems += _profiles(call.place())
    if call.as_json:
        call.print_json({"ok": not problems, "facts": facts, "problems": problems, "warnings": warnings})
    else:
        _print(facts, problems, warnings)
    if problems:
        raise click.exceptions.Exit(1)


def _opened(call: Call, fix: bool) -> Engine:
    """The engine; with `fix`, also on a file that is too damaged to be opened as it is."""
    try:
        return call.open()
    except Damaged:
        if not fix:
            raise
        from foveate.state.sqlite import SQLiteStore

        path = call.place().store
        say(f"{SQLiteStore.salvage_file(str(path))} records carried into a new file; the damaged one is kept beside it.")
        return call.open()


def _store(store: Any, fix: bool) -> tuple[dict[str, Any], list[str]]:
    """What a store says of its health, after mending it where that was asked for."""
    facts, problems, damaged = _health(store)
    if fix and problems:
        if damaged:
            say(f"{store.salvage()} records carried into a new file; the damaged one is {store.path + '.damaged'!r}.")
        else:
            say(f"{store.rebuild()} records indexed again.")
        facts, problems, _ = _health(store)
    return facts, problems


def _health(store: Any) -> tuple[dict[str, Any], list[str], bool]:
    try:
        found = store.health()
    except Damaged as error:
        return {"path": store.path}, [str(error)], True
    return dict(found.facts), list(found.problems), found.damaged


def _settings(place: Place, engine: Engine) -> dict[str, Any]:
    from foveate import tokens
    from foveate.project import own_store

    counter = tokens.counter(place.settings.get("counter", "o200k"))
    facts: dict[str, Any] = {
        "counter": f"{counter.name} ({'exact' if counter.exact else 'an estimate'})",
        "embedder": place.settings.get("embedder") or "none: search is by words",
        "profile": place.settings.get("profile", "base"),
    }
    if engine.own is None:
        facts["own store"] = f"none ({own_store()}); `foveate init --own` creates it"
    return facts


def _profiles(place: Place) -> list[str]:
    """What keeps a profile from being resolved. Layers that need others below them are judged on base."""
    from foveate import profiles

    found = profiles.places(place.root)
    return [problem for name in profiles.names(found) for problem in _checked(name, found)]


def _checked(name: str, places: Any) -> list[str]:
    from foveate import profiles

    try:
        return profiles.check(name, places)
    except FoveateError as error:
        return [str(error)]


def _print(facts: Mapping[str, Any], problems: list[str], warnings: list[str]) -> None:
    from foveate.front.cli.show import Line, pairs, print_lines

    lines: list[Line] = pairs((name.replace("_", " "), value) for name, value in facts.items())
    lines += [[("problem  ", "red"), (problem, "")] for problem in problems]
    lines += [[("warning  ", "yellow"), (warning, "")] for warning in warnings]
    if not problems:
        lines.append([("ok", "green")])
    print_lines(lines)


VERBS = {"doctor": doctor}
