"""`install` and `uninstall`: hooks, MCP server and skill in the settings of a coding agent."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.errors import InputError
from foveate.integrations.hooks.program import HOSTS

if TYPE_CHECKING:
    from foveate.integrations.install.apply import Change
    from foveate.integrations.install.hosts import Scope, Where


def _options(function: Any) -> Any:
    function = click.option("--yes", is_flag=True, help="Do not ask.")(function)
    function = click.option("--dry-run", is_flag=True, help="Show the changes and make none.")(function)
    return click.option(
        "--scope",
        type=click.Choice(("project", "user")),
        default="project",
        show_default=True,
        help="This project's settings, or your own for every project.",
    )(function)


@click.command(cls=Verb)
@click.argument("host", type=click.Choice(HOSTS), required=False)
@click.option("--plugin-dir", is_flag=True, help="Print where the plugin for Claude Code and Codex is, and do nothing else.")
@_options
@pass_call
def install(call: Call, host: str | None, plugin_dir: bool, scope: Scope, dry_run: bool, yes: bool) -> None:
    """Add foveate to a coding agent: hooks, MCP server and skill.

    HOST is claude, codex, cursor or gemini. Every change is shown first; what others wrote in those files stays. Once more
    changes nothing, and `foveate uninstall` takes it back.
    """
    from foveate.integrations.install import apply, hosts
    from foveate.integrations.install.paths import where_of

    if plugin_dir:
        _print_plugin(call, hosts.PLUGIN)
        return
    if host is None:
        raise click.UsageError(f"Name the agent: {', '.join(HOSTS)}.")
    where = where_of(call.place().root)
    if scope == "project" and not call.place().has_store:
        raise InputError("there is no store here, so that hooks would do nothing. Create one with `foveate init`.")
    files = hosts.files(host, scope, where)
    changes = apply.planned(files)
    if _agreed(call, changes, where, dry_run, yes):
        apply.installed(changes, files, apply.record_of(scope, where), host)
    _print(call, host, scope, changes, dry_run, [] if dry_run else hosts.notes(host, scope, where))


@click.command(cls=Verb)
@click.argument("host", type=click.Choice(HOSTS))
@_options
@pass_call
def uninstall(call: Call, host: str, scope: Scope, dry_run: bool, yes: bool) -> None:
    """Take foveate out of a coding agent's settings.

    A file that nobody changed since is as it was before, byte for byte; of others, only what is foveate's goes. The store
    stays.
    """
    from foveate.integrations.install import apply, hosts
    from foveate.integrations.install.paths import where_of

    where = where_of(call.place().root)
    files = hosts.files(host, scope, where)
    path = apply.record_of(scope, where)
    changes = apply.unplanned(files, apply.remembered(path), host)
    if _agreed(call, changes, where, dry_run, yes):
        apply.uninstalled(changes, files, path, host)
    _print(call, host, scope, changes, dry_run, [])


def _agreed(call: Call, changes: list[Change], where: Where, dry_run: bool, yes: bool) -> bool:
    """Show what would change, and ask."""
    to_do = [change for change in changes if change.action != "unchanged"]
    if not call.as_json:
        for change in to_do:
            click.echo(change.diff(where.root), nl=False)
    if dry_run or not to_do:
        return not dry_run
    if yes:
        return True
    if call.as_json or not sys.stdin.isatty():
        raise InputError(
            "nobody can be asked here. Look at the changes with --dry-run, then pass --yes. Nothing was written."
        )
    click.confirm(f"Change {len(to_do)} file{'s' if len(to_do) > 1 else ''}?", abort=True, err=True)
    return True


def _print(call: Call, host: str, scope: str, changes: list[Change], dry_run: bool, notes: list[str]) -> None:
    done = [{"path": str(change.path), "action": change.action} for change in changes]
    if call.as_json:
        call.print_json({"host": host, "scope": scope, "dry_run": dry_run, "files": done, "notes": notes})
        return
    if all(change.action == "unchanged" for change in changes):
        say("everything is as it should be; nothing was changed.")
    elif dry_run:
        say("nothing was written.")
    for note in notes:
        say(note)


def _print_plugin(call: Call, folder: Path) -> None:
    if call.as_json:
        call.print_json({"plugin_dir": str(folder)})
    else:
        click.echo(str(folder))


VERBS = {"install": install, "uninstall": uninstall}
