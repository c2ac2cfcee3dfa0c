"""`profile list`, `profile show`, `profile check`: profiles as data. No store is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from foveate.cli.call import Call, Verb, VerbGroup, complete_profiles, pass_call
from foveate.operations import json

UNSOUND = 2


def _places(call: Call) -> tuple[Path, ...]:
    from foveate.pipeline import profiles

    return profiles.places(call.place().root)


@click.group(cls=VerbGroup)
def profile() -> None:
    """List, show and check profiles."""


@profile.command("list", cls=Verb)
@pass_call
def list_(call: Call) -> None:
    """List the profiles: shipped, the project's, your own."""
    from foveate.pipeline import profiles

    known = profiles.known(_places(call))
    if call.as_json:
        call.print_json(json.profiles(known))
        return
    from foveate.cli.render import print_lines, table

    rows = [(info.name, info.extends, info.where, info.description) for info in known]
    print_lines(table(("name", "extends", "where", "description"), rows, left=4))


@profile.command("show", cls=Verb)
@click.argument("name", shell_complete=complete_profiles)
@pass_call
def show(call: Call, name: str) -> None:
    """Print a profile as TOML, with the layer that set each value."""
    from foveate.pipeline import profiles

    found = profiles.resolve(name, _places(call))
    if call.as_json:
        from foveate.pipeline.profiles.codec import profile_to_json

        call.print_json({"profile": profile_to_json(found)})
    else:
        click.echo(profiles.to_toml(found), nl=False)


@profile.command("check", cls=Verb)
@click.argument("name_or_file", shell_complete=complete_profiles)
@pass_call
def check(call: Call, name_or_file: str) -> None:
    """Say what is wrong with a profile.

    By name, or by file where the argument ends in .toml. The exit code is 2 where something is wrong.
    """
    from foveate.pipeline import profiles

    problems = profiles.check(name_or_file, _places(call))
    if call.as_json:
        call.print_json({"name": name_or_file, "ok": not problems, "problems": problems})
    else:
        for problem in problems or [f"{name_or_file} is sound."]:
            click.echo(problem)
    if problems:
        raise click.exceptions.Exit(UNSOUND)


VERBS: dict[str, Any] = {"profile": profile}
