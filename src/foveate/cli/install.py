"""`install` and `uninstall`: hooks, MCP server and skill in the settings of a coding agent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from foveate.cli.call import Call, Verb, pass_call, say
from foveate.errors import InputError
from foveate.integrations.hooks.program import HOSTS

if TYPE_CHECKING:
    from foveate.integrations.install.apply import FileChange
    from foveate.integrations.install.hosts import InstallPaths


def _options(function: Any) -> Any:
    function = click.option("--yes", is_flag=True, help="Do not ask.")(function)
    function = click.option("--dry-run", is_flag=True, help="Show the changes and make none.")(function)
    return click.option(
        "--global", "is_global", is_flag=True, help="Use your own settings, for every project, instead of this project's."
    )(function)


@click.command(cls=Verb)
@click.argument("host", type=click.Choice(HOSTS), required=False)
@click.option("--plugin-dir", is_flag=True, help="Print the folder of the plugin for Claude Code and Codex, and exit.")
@_options
@pass_call
def install(call: Call, host: str | None, plugin_dir: bool, is_global: bool, dry_run: bool, yes: bool) -> None:
    """Add foveate to a coding agent: hooks, MCP server and skill.

    HOST is claude, codex, cursor or gemini. Every change is shown first, and other entries in the files stay. Running the
    command again changes nothing; `foveate uninstall` undoes it.
    """
    from foveate.integrations.install import apply, hosts
    from foveate.integrations.install.config_files import PLUGIN

    if plugin_dir:
        call.print({"plugin_dir": str(PLUGIN)}, str(PLUGIN))
        return
    if host is None:
        raise click.UsageError(f"Name the agent: {', '.join(HOSTS)}.")
    paths = hosts.install_paths(call.place().root)
    if not is_global and not call.place().has_store:
        raise InputError("No store was found here, so hooks would do nothing. Create one with `foveate init`.")
    files = hosts.config_files(host, paths, is_global=is_global)
    changes = apply.plan_install(files)
    if _is_confirmed(call, changes, paths, dry_run, yes):
        apply.install(changes, files, apply.install_record_path(paths, is_global=is_global), host)
    steps = [] if dry_run else hosts.manual_steps(host, paths, is_global=is_global)
    _print(call, host, is_global, changes, dry_run, steps)


@click.command(cls=Verb)
@click.argument("host", type=click.Choice(HOSTS))
@_options
@pass_call
def uninstall(call: Call, host: str, is_global: bool, dry_run: bool, yes: bool) -> None:
    """Remove foveate from a coding agent's settings.

    A file that has not changed since the installation is restored byte for byte; from others, only foveate's entries are
    removed. The store stays.
    """
    from foveate.integrations.install import apply, hosts

    paths = hosts.install_paths(call.place().root)
    files = hosts.config_files(host, paths, is_global=is_global)
    record_path = apply.install_record_path(paths, is_global=is_global)
    changes = apply.plan_uninstall(files, apply.load_install_record(record_path), host)
    if _is_confirmed(call, changes, paths, dry_run, yes):
        apply.uninstall(changes, files, record_path, host)
    _print(call, host, is_global, changes, dry_run, [])


def _is_confirmed(call: Call, changes: list[FileChange], paths: InstallPaths, dry_run: bool, yes: bool) -> bool:
    """Show the changes and ask."""
    edits = [change for change in changes if change.action != "unchanged"]
    if not call.as_json:
        for change in edits:
            click.echo(change.diff(paths.root), nl=False)
    if dry_run or not edits:
        return not dry_run
    if yes:
        return True
    if call.as_json or not sys.stdin.isatty():
        raise InputError("No terminal to ask. See the changes with --dry-run, then pass --yes. Nothing was written.")
    click.confirm(f"Change {len(edits)} file{'s' if len(edits) > 1 else ''}?", abort=True, err=True)
    return True


def _print(call: Call, host: str, is_global: bool, changes: list[FileChange], dry_run: bool, steps: list[str]) -> None:
    actions = [{"path": str(change.path), "action": change.action} for change in changes]
    if call.as_json:
        call.print_json({"host": host, "global": is_global, "dry_run": dry_run, "files": actions, "notes": steps})
        return
    if all(change.action == "unchanged" for change in changes):
        say("everything is up to date; nothing was changed.")
    elif dry_run:
        say("nothing was written.")
    for step in steps:
        say(step)


VERBS = {"install": install, "uninstall": uninstall}
