"""`profile`: profiles as data. No store is needed."""

from __future__ import annotations

from pathlib import Path

import click

from foveate.cli.call import Call, Verb, pass_call
from foveate.cli.options import complete_profiles
from foveate.cli.render import table, text_line
from foveate.errors import InputError
from foveate.pipeline import profiles
from foveate.pipeline.profiles.codec import profile_to_json

EXIT_PROBLEMS = 2


@click.command(cls=Verb)
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=complete_profiles)
@pass_call
def profile(call: Call, name: str | None) -> None:
    """List profiles, or print one as TOML with the layer that set each value.

    A FILE ends in .toml. If the profile has problems, they are printed instead, one on a line, and the exit code is 2.
    """
    places = profiles.profile_dirs(call.place().root)
    if not name:
        _list(call, places)
        return
    is_file = name.endswith(".toml")
    if is_file and not Path(name).is_file():
        raise InputError(f"There is no file {name!r}.")
    problems = profiles.check(name, places)
    if problems and (is_file or name in profiles.names(places)):
        call.print({"name": name, "ok": False, "problems": problems}, map(text_line, problems))
        raise click.exceptions.Exit(EXIT_PROBLEMS)
    path = Path(name)
    found = profiles.resolve(path.stem, (path.parent, *places)) if is_file else profiles.resolve(name, places)
    call.print({"profile": profile_to_json(found)}, profiles.to_toml(found).rstrip("\n"))


def _list(call: Call, places: tuple[Path, ...]) -> None:
    """Print the profiles that are built in, the project's, and your own."""
    known = profiles.list_profiles(places)
    rows = [(info.name, info.extends, info.where, info.description) for info in known]
    call.print({"profiles": known}, table(("name", "extends", "where", "description"), rows, left=4))


VERBS = {"profile": profile}
