"""The command line: each command calls the engine once and prints the result.

Data goes to stdout, messages to stderr; `--json` prints one document. A command's module is imported when the command is
called, and the engine when a command opens a store, so that `foveate --version` and shell completion cost next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from foveate import __version__
from foveate.cli.call import STORE, Call, CommandGroup
from foveate.cli.commands import COMMANDS, EXAMPLES, MODULES, SUMMARIES
from foveate.cli.failures import handle_errors

PROGRAM = "foveate"


class Root(CommandGroup):
    """The group of all commands. It imports the module of a command when it is called, and handles every error."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        module = import_module(f"{__name__}.{MODULES[cmd_name]}")
        command: click.Command = module.VERBS[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, SUMMARIES))
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(path.ljust(width), summary) for path, (_, summary) in commands.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        given = list(sys.argv[1:] if args is None else args)

        def run() -> Any:
            return super(Root, self).main(given, PROGRAM, complete_var, standalone_mode=False, **extra)

        code = handle_errors(run, as_json=_asks_for_json(given))
        if standalone_mode:
            sys.exit(code)
        return code


def _asks_for_json(args: Sequence[str]) -> bool:
    """Return whether errors, too, are wanted as JSON. It is needed before the arguments are parsed, as that may fail."""
    options = args[: args.index("--")] if "--" in args else args
    return "--json" in options


@click.group(
    cls=Root,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.option("--store", **STORE, envvar="FOVEATE_STORE", help="Project directory, or the URL of a shared store.")
@click.option("--project", metavar="NAME", help="Project of a store that holds several.")
@click.option("--user", metavar="NAME", help="User whose records are visible.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, store: Path | str | None, project: str | None, user: str | None, as_json: bool) -> None:
    """A context engine for LLM agents: stores what is known, and computes a prompt from it inside a hard token budget.

    Exit codes: 0 ok, 1 failure, 2 usage or config, 3 not found, 4 auth, 5 over budget.
    """
    ctx.obj = Call(user=user, project=project, as_json=as_json)
    ctx.obj.go_to(store)
    if ctx.invoked_subcommand is None:
        click.echo(_everyday())


def _everyday() -> str:
    """Return what plain `foveate` prints: the commands of every day with an example each."""
    column = max(map(len, EXAMPLES)) + 2
    lines = ["A context engine for LLM agents. The commands of every day:", ""]
    for path, example in EXAMPLES.items():
        lines += [f"  {path:{column}}{SUMMARIES[path]}", f"  {'':{column}}{example}", ""]
    return "\n".join([*lines, "`foveate --help` lists all commands, `foveate COMMAND --help` explains one."])


def main() -> None:
    """Run the `foveate` command."""
    cli.main()
