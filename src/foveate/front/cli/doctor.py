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
    """Examine store, indexes, settings, profiles and hooks.

    The exit code is 1 where something is wrong, and each problem says what to do.
    """
    engine, lost = _opened(call, fix)
    with engine:
        facts, problems = _store(engine.store, fix)
        if fix and engine.embeds:
            say(f"{engine.embed_missing().made} records given a vector.")
        warnings: list[str] = []
        if not problems:
            warnings = engine.outgrown()
        if engine.own is not None:
            own_facts, own_problems = _store(engine.own, fix)
            problems += [f"Your own store: {problem}" for problem in own_problems]
            facts["own store"] = own_facts.get("path", "")
        facts |= _settings(call.place(), engine)
        if not problems:
            facts |= _vectors(engine)
        server_facts, server_warnings = _server(call, engine)
        facts |= server_facts
        warnings += server_warnings
        code_facts, code_warnings = _code(engine)
        hook_facts, hook_problems, hook_warnings = _hooks(call, engine)
        facts |= code_facts | hook_facts
        problems += hook_problems
        warnings += [*code_warnings, *hook_warnings]
    problems += [*lost, *_profiles(call.place())]
    if call.as_json:
        call.print_json({"ok": not problems, "facts": facts, "problems": problems, "warnings": warnings})
    else:
        _print(facts, problems, warnings)
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
            from foveate.state.sqlite import SQLiteStore

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
    return dict(found.facts), list(found.problems), found.damaged


def _settings(place: Place, engine: Engine) -> dict[str, Any]:
    from foveate import tokens
    from foveate.project import own_store

    store: Any = engine.store
    counter = tokens.counter(store.counter)
    facts: dict[str, Any] = {
        "counter": f"{counter.name} ({'exact' if counter.exact else 'an estimate'})",
        "embedder": place.settings.get("embedder") or "none: search is by words",
        "profile": place.settings.get("profile") or ("coding, as there is code" if engine.has_code else "base"),
    }
    if engine.own is None:
        facts["own store"] = f"none ({own_store()}); `foveate init --own` creates it"
    return facts


def _vectors(engine: Engine) -> dict[str, Any]:
    """How far the records have vectors, and what those of other embedders take; nothing where there are none."""
    found = engine.vectors()
    facts = {}
    if found["embedder"]:
        left = f"; {found['lacking']:,} records have none yet: `foveate embed`" if found["lacking"] else ", of every record"
        facts["vectors"] = f"{found['held']:,}{left}"
    if found["unused"]:
        each = [f"{one['vectors']:,} of {one['embedder']} ({one['bytes'] / 2**20:,.1f} MB)" for one in found["unused"]]
        facts["unused vectors"] = f"{', '.join(each)}; `foveate embed --prune` drops them"
    return facts


def _server(call: Call, engine: Engine) -> tuple[dict[str, Any], list[str]]:
    """Of a shared store: who we are there, what we see, how far away it is."""
    place = call.place()
    if place.shared is None:
        return {}, []
    from foveate.state.server import facts

    found, warnings = facts(place.shared, engine.scope.project)
    if place.store.exists():
        warnings.append(f"{str(place.store)!r} is not used: the state is in the shared store. Move the file away.")
    return {"project": engine.scope.project, **found}, warnings


def _code(engine: Engine) -> tuple[dict[str, Any], list[str]]:
    """How the code index stands, without bringing it up to date, and what keeps it from seeing more."""
    if not engine.has_code:
        return {"code": "not looked at: no repository, no manifest, no index; `foveate index` makes one"}, []
    from foveate.code.languages import missing

    warnings = [f"No grammar for {name}, so its files are read as lines: {reason}" for name, reason in missing().items()]
    facts = {"code": _index(engine), "git": _git()}
    if not facts["git"]:
        warnings.append("There is no git: files are listed by the rules of .gitignore, and history counts for nothing.")
    return facts, warnings


def _index(engine: Engine) -> str:
    if not engine.code.is_indexed:
        return "not indexed yet: the first context or `foveate index` does it"
    index = engine.code.index
    found, behind = index.stats(), index.behind()
    state = f"{behind:,} files to look at again, which the next context does" if behind else "up to date"
    return f"{found['files']:,} files, {found['definitions']:,} definitions, {state}"


def _hooks(call: Call, engine: Engine) -> tuple[dict[str, Any], list[str], list[str]]:
    """Whether the hooks of coding agents are alive."""
    from pathlib import Path

    from foveate.errors import InputError
    from foveate.front.cli.install import place
    from foveate.front.installing.check import findings

    try:
        return findings(engine, place(call), call.store or Path())
    except InputError as error:
        return {"hooks": str(error)}, [], []


def _git() -> str:
    import subprocess

    try:
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().removeprefix("git version ") if not done.returncode else ""


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
