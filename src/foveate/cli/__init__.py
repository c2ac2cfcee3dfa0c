"""The command line: each verb calls the engine once and formats the answer.

Data goes to stdout, talk to stderr; `--json` gives one document. A verb's module is imported when the verb is called, and
the engine when a verb opens a store, so that `foveate --version` and shell completion cost next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from foveate import __version__
from foveate.cli.call import STORE, Call
from foveate.cli.failures import guarded

PROGRAM = "foveate"

VERBS: dict[str, dict[str, str]] = {
    "Contexts": {
        "context": "context",
        "why": "why",
        "why-not": "why",
        "diff": "why",
        "replay": "why",
        "expand": "context_use",
        "feedback": "context_use",
    },
    "Memory": {
        "add": "memory",
        "edit": "memory",
        "outcome": "record_actions",
        "confirm": "record_actions",
        "pin": "record_actions",
        "promote": "record_actions",
        "retire": "record_actions",
        "undo": "record_actions",
        "forget": "record_actions",
        "show": "show",
        "search": "show",
        "relate": "entities",
        "entities": "entities",
        "check": "maintenance",
        "false-alarm": "maintenance",
    },
    "Code": {
        "index": "code",
        "map": "code",
        "docs": "code",
    },
    "Tasks": {
        "task": "task",
        "handoff": "handoff",
        "stack": "stack",
        "agent": "agent",
        "schema": "handoff",
    },
    "Coding agents": {
        "install": "install",
        "uninstall": "install",
    },
    "Store": {
        "init": "store",
        "stats": "store",
        "doctor": "doctor",
        "gc": "maintenance",
        "compact": "context_use",
        "embed": "embed",
        "backup": "store",
        "restore": "store_copy",
        "copy": "store_copy",
        "migrate": "store_copy",
        "export": "store",
        "import": "importing",
        "profile": "profile",
        "completion": "completion",
    },
    "Service": {
        "ui": "serve",
        "serve": "serve",
        "token": "token",
        "role": "role",
        "mcp": "mcp",
    },
    "Evaluation": {
        "eval": "eval",
    },
}
"""Which module holds a verb, in the order of the help."""

_MODULES = {verb: module for verbs in VERBS.values() for verb, module in verbs.items()}


class Verbs(click.Group):
    """A group that imports the module of a verb when the verb is called, and answers every error in one place."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"{__name__}.{_MODULES[cmd_name]}")
        command: click.Command = module.VERBS[cmd_name]
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _MODULES and not args[0].startswith("-"):
            from foveate.errors import near

            ctx.fail(f"There is no command {args[0]!r}.{near(args[0], _MODULES)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in VERBS.items():
            room = formatter.width - max(map(len, verbs)) - 6
            rows = [(verb, command.get_short_help_str(room)) for verb in verbs if (command := self.get_command(ctx, verb))]
            with formatter.section(title):
                formatter.write_dl(rows)

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
            return super(Verbs, self).main(given, PROGRAM, complete_var, standalone_mode=False, **extra)

        code = guarded(run, as_json=_asks_for_json(given))
        if standalone_mode:
            sys.exit(code)
        return code


def _asks_for_json(args: Sequence[str]) -> bool:
    """Whether errors, too, are wanted as JSON: known before the arguments are parsed, as that may fail."""
    options = args[: args.index("--")] if "--" in args else args
    return "--json" in options


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--store", **STORE, envvar="FOVEATE_STORE", help="A project's directory, instead of this one, or a shared store's URL."
)
@click.option("--project", metavar="NAME", help="Which project of the store is meant, where it holds several.")
@click.option("--user", metavar="NAME", help="Whose state it is; what a user owns, others do not see.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, store: Path | str | None, project: str | None, user: str | None, as_json: bool) -> None:
    """A context engine for LLM agents: keeps what is known, and computes a prompt from it inside a hard token budget.

    Exit codes: 0 ok, 1 failure, 2 usage or config, 3 not found, 4 auth, 5 over budget.
    """
    ctx.obj = Call(user=user, project=project, as_json=as_json)
    ctx.obj.go_to(store)


def main() -> None:
    """The `foveate` command."""
    cli.main()
