"""What every verb shares: the options that are accepted on both sides of it, opening the engine, and printing JSON.

A verb is a function of `Call` and its own options. It asks `call.open()` for an engine, and either prints a document
with `call.print_json` or lines with `show`.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foveate.errors import InputError
from foveate.operations.inputs import refuse_unreadable as refuse_unreadable

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.project.project import Place

SCHEMA_VERSION = 1
STDIN = "-"

Function = Callable[..., Any]

AGENT_ENV_VAR = "FOVEATE_AGENT"
"""Set in the shell of a coding agent by `foveate install`, or by a person."""

HOST_ENV_VARS = ("CLAUDECODE", "CODEX_THREAD_ID", "CURSOR_AGENT", "GEMINI_CLI")
"""Set by the agents themselves: not every host has a setting for other variables."""


@dataclass
class Call:
    """One run of the command line: where, for whom, and in which form the answer is wanted."""

    store: Path | None = None
    """A project's directory."""
    url: str | None = None
    """A shared database, whatever the project's settings say."""
    project: str | None = None
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    as_json: bool = False

    def place(self) -> Place:
        """The project that `--store`, or the current directory, belongs to."""
        from foveate.project import project

        return project.find(self.store or Path(), self.url)

    def project_name(self) -> str:
        """The project's name in its store."""
        from foveate.project import project

        return project.name_of(self.place(), self.project)

    def go_to(self, store: str | Path | None) -> None:
        """What `--store` says: a directory or a URL."""
        self.store = store if isinstance(store, Path) else None
        self.url = store if isinstance(store, str) else None

    def open(self, **options: Any) -> Engine:
        """The engine on an existing store, as `engine` gives it; whoever looks at a terminal sees what takes time."""
        engine = self.engine(**options)
        if engine.code.available and sys.stderr.isatty():
            from foveate.cli.progress import Bar

            bar = Bar()
            engine.code.workspace.progress = bar
            click.get_current_context().call_on_close(bar.close)
        return engine

    def engine(
        self,
        *,
        agent: str | None = None,
        session: str | None = None,
        task: str | None = None,
        code: bool | None = None,
        create: bool = False,
    ) -> Engine:
        """The engine on an existing store; with `create`, a project of code gets one when it is first asked about."""
        from foveate.project.project import create as make_folder

        place = self.place()
        wanted = create and (place.has_code if code is None else code)
        missing = not place.has_store
        if missing and not wanted:
            self.existing()
        from foveate import factory

        if place.shared is not None and wanted:
            make_folder(place)  # the index of the code is a file here, wherever the state is
        here = self.store or Path()  # not its root: a worktree has files of its own
        names: dict[str, Any] = {
            "user": self.user,
            "agent": agent or self.agent,
            "session": session or self.session,
            "task": task or self.task,
            "project": self.project,
        }
        engine = factory.open(here, **names, store=self.url, code=code, create=missing)
        if missing:
            say(f"created {place.folder}")
        return engine

    def existing(self) -> str:
        """Where the store is; an error where there is none."""
        place = self.place()
        if not place.has_store:
            where, how = "here", "foveate init"
            if self.store is not None:
                where, how = f"at {str(self.store)!r}", f"foveate init --store {shlex.quote(str(self.store))}"
            raise InputError(f"there is no store {where}. Create one with `{how}`.")
        from foveate.project.project import refuse_shipped

        refuse_shipped(place)
        return place.shared or str(place.store)

    def print_json(self, document: Mapping[str, Any]) -> None:
        """One document on one line; `schema_version` leads it."""
        whole = {"schema_version": SCHEMA_VERSION, **document}
        click.echo(json.dumps(whole, ensure_ascii=not supports_utf8(), default=str))


def is_agent() -> bool:
    """Return whether a coding agent runs this command."""
    return bool(os.environ.get(AGENT_ENV_VAR)) or any(os.environ.get(name) for name in HOST_ENV_VARS)


def author_trust(trust: str | None) -> str | None:
    """Return the trust of a text from the command line; None leaves it to the engine. An agent cannot write as a person."""
    if not is_agent():
        return trust
    if trust == "user":
        raise InputError("--trust user is for people, and a coding agent runs this command. Leave the option out.")
    return trust or "agent"


def supports_utf8() -> bool:
    """Whether stdout can show every character."""
    return (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "") in ("utf8", "utf8sig")


def say(text: str) -> None:
    """A word to the person, beside the data."""
    click.echo(f"foveate: {text}", err=True)


def pass_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hand the `Call` to a verb."""
    return click.make_pass_decorator(Call)(function)


def _where(value: str) -> str | Path:
    """A project's directory, or the URL of a shared store, which a path would spoil."""
    from foveate.store.database_url import refers_to_database

    return value if refers_to_database(value) else Path(value)


def _complete_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
    return click.Path(file_okay=False).shell_complete(ctx, param, incomplete)


STORE: dict[str, Any] = {"type": _where, "metavar": "PATH|URL", "shell_complete": _complete_folders}
"""What `--store` takes, on both sides of a verb."""


def _sets(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return the callback of an option that all commands share: after the command it does what it does before it."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        call = ctx.find_object(Call)
        if value and call is not None:
            call.go_to(value) if name == "store" else setattr(call, name, value)

    return callback


SHARED_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--store", "store", {**STORE, "help": "Project directory, or the URL of a shared store."}),
    ("--project", "project", {"metavar": "NAME", "help": "Project of a store that holds several."}),
    ("--user", "user", {"metavar": "NAME", "help": "User whose records are visible."}),
    ("--json", "as_json", {"is_flag": True, "help": "Print one JSON document."}),
)
"""Options of every command: they are accepted before it and after it."""

SCOPE_OPTIONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("--agent", "agent", {"metavar": "NAME", "help": "Agent whose records are visible, and to whom a new one belongs."}),
    ("--session", "session", {"metavar": "NAME", "help": "Session, one conversation."}),
    ("--task", "task", {"metavar": "TASK", "help": "Task by id or key."}),
)
"""Options of the commands on records and contexts, with `--user`."""


class Verb(click.Command):
    """A command that takes the shared options, with `scoped=True` those of a scope too, and refuses unreadable text.

    The options set fields of the `Call`: a command has no parameters for them.
    """

    def __init__(self, *args: Any, scoped: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scoped = scoped
        for flag, name, attributes in (*(SCOPE_OPTIONS if scoped else ()), *SHARED_OPTIONS):
            self.params.append(click.Option((flag, name), expose_value=False, callback=_sets(name), **attributes))

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.invoked_subcommand is not None:
            return None  # a group's own function is for the group without a command
        paths = {param.name for param in self.params if isinstance(param.type, click.Path)}
        texts = {name: value for name, value in ctx.params.items() if name not in paths and name != "query"}
        refuse_unreadable(texts)
        return super().invoke(ctx)


class CommandGroup(click.Group):
    """A group that names the nearest commands when it does not know one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            group = " ".join(ctx.command_path.split()[1:])
            ctx.fail(f"There is no command {f'{group} {word}'.strip()!r}.{_did_you_mean(word, group)}")
        return super().resolve_command(ctx, args)


class VerbGroup(CommandGroup, Verb):
    """Commands under one noun, such as `task add` and `task list`.

    With `invoke_without_command=True` the function of the group runs when no command follows: `foveate inbox` lists.
    """


SIMILARITY = 0.75
"""How similar two words must be to be taken for a slip; at 0.6 `remember` is similar to `embed`."""


def _did_you_mean(word: str, group: str) -> str:
    """Return ` Did you mean 'x' or 'y'?` for an unknown command of a group, or an empty string."""
    from difflib import get_close_matches

    from foveate.cli.commands import OTHER_WORDS, SUMMARIES

    named: dict[str, list[str]] = {}
    for path in (path for path in SUMMARIES if path.startswith(f"{group} " if group else "")):
        for name in {path.split()[0], path.split()[-1]} if not group else {path.split()[-1]}:
            named.setdefault(name, []).append(path)
    known = {**named, **(OTHER_WORDS if not group else {})}
    close = known.get(word) or [path for name in get_close_matches(word, named, 1, SIMILARITY) for path in named[name]]
    if not close:
        return ""
    if len(close) > MAX_SUGGESTIONS:  # a group with many commands
        close = [close[0].split()[0]]
    return f" Did you mean {' or '.join(map(repr, close))}?"


MAX_SUGGESTIONS = 3


def scoped(function: Function) -> Function:
    """`--agent`, `--session` and `--task`: whose records may be seen, and whose a new one is."""
    function = click.option("--task", metavar="NAME", help="The task that this is for.")(function)
    function = click.option("--session", metavar="NAME", help="The session that this is for.")(function)
    return click.option("--agent", metavar="NAME", help="The agent that this is for.")(function)


def read_text(value: str) -> str:
    """The value itself, or standard input where it is `-`."""
    return decode_text(sys.stdin.buffer.read(), "standard input") if value == STDIN else value


def decode_text(raw: bytes, where: str) -> str:
    """Bytes as UTF-8 text."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 text (byte {error.start}).") from None


def complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from foveate.records.kinds import KINDS

    return [name for name, kind in KINDS.items() if name.startswith(incomplete) and not kind.is_internal]


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from foveate.pipeline import profiles

    found = profiles.names(profiles.places(Call().place().root))
    return [name for name in found if name.startswith(incomplete)]
