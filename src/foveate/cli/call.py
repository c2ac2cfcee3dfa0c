"""The parts of every command: shared options, opening the engine, and printing JSON.

A command is a function of a `Call` and its own options. It gets an engine from `call.open()`, and prints either a document
with `call.print_json` or lines with `render.print_lines`.

The engine, its receipts and its profiles take four times as long to import as a command with its help. So that help and
completion stay quick, modules of commands import these in functions or for type checkers only.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from foveate.cli.commands import suggestions
from foveate.cli.render import Line, print_lines, progress_bar, supports_utf8, text_line
from foveate.errors import InputError
from foveate.operations.documents import SCHEMA_VERSION, plain
from foveate.operations.inputs import refuse_unreadable as refuse_unreadable

if TYPE_CHECKING:
    from foveate.engine import Engine
    from foveate.project.project import ProjectLocation

STDIN = "-"

Function = Callable[..., Any]

AGENT_ENV_VAR = "FOVEATE_AGENT"
"""Set in the shell of a coding agent by `foveate install`, or by a person."""

HOST_ENV_VARS = ("CLAUDECODE", "CODEX_THREAD_ID", "CURSOR_AGENT", "GEMINI_CLI")
"""Set by the agents themselves: not every host has a setting for other variables."""


AGENT_TRUST_ERROR = "--trust user is for people, and a coding agent runs this command. Leave the option out."


@dataclass
class Call:
    """One run of the command line: the project, the scope, and the form of the output."""

    store: Path | None = None
    """Directory of the project; None for the current one."""
    url: str | None = None
    """URL of a shared database; it replaces the project's setting."""
    project: str | None = None
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    trust: str | None = None
    """Value of `--trust`: whose words or decision it is."""
    is_authored: bool = False
    """Whether the command writes or decides for a user or an agent. A service does not: its callers do."""
    as_json: bool = False

    def place(self) -> ProjectLocation:
        """Return the project of `--store` or of the current directory."""
        from foveate.project import project

        return project.locate_project(self.store or Path(), self.url)

    def project_name(self) -> str:
        """Return the name that the project has in its store."""
        from foveate.project import project

        return project.name_of(self.place(), self.project)

    def go_to(self, store: str | Path | None) -> None:
        """Set the place to a value of `--store`, which is a directory or a URL."""
        self.store = store if isinstance(store, Path) else None
        self.url = store if isinstance(store, str) else None

    def open(self, *, code: bool | None = None, create: bool = False) -> Engine:
        """Open the engine as `engine` does. On a terminal, a bar shows the progress of indexing."""
        engine = self.engine(code=code, create=create)
        if engine.code.available:
            engine.code.workspace.progress = progress_bar("indexing", "files")
        return engine

    def engine(self, *, code: bool | None = None, create: bool = False) -> Engine:
        """Open the engine on an existing store. With `create`, a project with code gets a store when it is first used."""
        from foveate.project.project import create as make_folder

        place = self.place()
        wanted = create and (place.has_code if code is None else code)
        missing = not place.has_store
        if missing and not wanted:
            self.existing()
        from foveate import factory

        if place.database_url is not None and wanted:
            make_folder(place)  # the code index is a local file, also if the records are in a shared database
        here = self.store or Path()  # not the project's root, because a worktree has files of its own
        names: dict[str, Any] = {
            "user": self.user,
            "agent": self.agent,
            "session": self.session,
            "task": self.task,
            "project": self.project,
        }
        environment = factory.Environment(author=self.author() if self.is_authored else "user")
        engine = factory.open(here, **names, store=self.url, code=code, create=missing, _environment=environment)
        if missing:
            say(f"created {place.folder}")
        return engine

    def existing(self) -> str:
        """Return where the store is, or raise an error that says how to create it."""
        from foveate.project.project import refuse_untrusted

        place = self.place()
        refuse_untrusted(place)
        if not place.has_store:
            where, how = "here", "foveate init"
            if self.store is not None:
                where, how = f"at {str(self.store)!r}", f"foveate init --store {shlex.quote(str(self.store))}"
            raise InputError(f"there is no store {where}. Create one with `{how}`.")
        return place.database_url or str(place.store_file)

    def is_agent(self) -> bool:
        """Return whether the command acts for a coding agent: one runs it, or it has no terminal and no `--trust user`."""
        return is_agent() or (self.trust != "user" and not has_terminal())

    def author(self) -> Literal["user", "agent"]:
        """Return whose words a command without a field `trust` stores."""
        return "agent" if self.trust == "agent" or self.is_agent() else "user"

    def agent_reason(self) -> str:
        """Return why the command acts for a coding agent, as a clause and a way out."""
        if is_agent():
            return "a coding agent runs this command. Ask the user to run it"
        return "this command runs without a terminal, as agents do. A script of a person passes --trust user"

    def author_trust(self, trust: str | None) -> str | None:
        """Return the trust of a text; None leaves it to the engine. An agent cannot write as a person."""
        if not self.is_agent():
            return trust
        if trust == "user":
            raise InputError(AGENT_TRUST_ERROR)
        return trust or "agent"

    def say_agent_trust(self) -> None:
        """Tell a script that its words were stored with an agent's trust. A coding agent need not be told."""
        if self.trust is None and self.is_agent() and not is_agent():
            say("there is no terminal, so this has the trust of an agent. A script of a person passes --trust user.")

    def refuse_agent(self, engine: Engine, ids: Iterable[str]) -> None:
        """Raise if the command acts for an agent and one of the records is a person's rule, or pinned by a person."""
        if not self.is_agent():
            return
        from foveate.records.kinds import RULE_KINDS  # imported for agents only

        with engine.store.data.reader() as reader:
            for id, record in reader.get(list(ids)).items():
                if record.trust == "user" and (record.kind in RULE_KINDS or record.pinned):
                    raise InputError(f"{id!r} is a rule of the user, and {self.agent_reason()}. Nothing was changed.")

    def print_json(self, document: Mapping[str, Any]) -> None:
        """Print a document on one line, with `schema_version` in front."""
        whole = {"schema_version": SCHEMA_VERSION, **document}
        click.echo(json.dumps(whole, ensure_ascii=not supports_utf8(), default=plain))

    def print(self, document: Mapping[str, Any], lines: str | Iterable[Line]) -> None:
        """Print a result: the document with `--json`, else its lines, or a line of text."""
        if self.as_json:
            self.print_json(document)
        else:
            print_lines([text_line(lines)] if isinstance(lines, str) else lines)


def is_agent() -> bool:
    """Return whether a coding agent runs this command."""
    return bool(os.environ.get(AGENT_ENV_VAR)) or any(os.environ.get(name) for name in HOST_ENV_VARS)


def has_terminal() -> bool:
    """Return whether a person can see or type anything: stdin, stdout or stderr is a terminal."""
    streams = (sys.stdin, sys.stdout, sys.stderr)  # None or closed in a process that was started without them
    return any(stream is not None and not stream.closed and stream.isatty() for stream in streams)


def say(text: str) -> None:
    """Print a message on stderr, so that stdout holds only data."""
    click.echo(f"foveate: {text}", err=True)


def record_id(engine: Engine, name: str) -> str:
    """Return the id of the record that an id, a key or `current` names; an unknown name is returned as it is."""
    from foveate.tasks.task import lookup  # not needed by commands that open no store

    with engine.store.data.reader() as reader:
        record = lookup(reader, name)
    return name if record is None else record.id


def pass_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the `Call` to a command as its first argument."""
    return click.make_pass_decorator(Call)(function)


def _where(value: str) -> str | Path:
    """Return a value of `--store`: a URL as text, because a `Path` would merge its slashes, or a directory."""
    from foveate.store.database_url import refers_to_database

    return value if refers_to_database(value) else Path(value)


def _complete_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
    return click.Path(file_okay=False).shell_complete(ctx, param, incomplete)


STORE: dict[str, Any] = {"type": _where, "metavar": "PATH|URL", "shell_complete": _complete_folders}
"""Attributes of the option `--store`, which stands before or after a command."""


def _sets(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return the callback of an option that all commands share: after the command it does what it does before it."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        call = ctx.find_object(Call)
        refuse_unreadable(value, name)
        if value == "user" and name == "trust" and is_agent():
            raise InputError(AGENT_TRUST_ERROR)
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


TRUST_OPTION: tuple[str, str, dict[str, Any]] = (
    "--trust",
    "trust",
    {"type": click.Choice(["user", "agent"]), "help": "Whose words or decision it is; without a terminal: an agent's."},
)
"""Option of the commands that write or decide for a user or an agent and have no field `trust` of their own."""


class Verb(click.Command):
    """A command that takes the shared options, with `scoped=True` those of a scope too, and refuses unreadable text.

    With `authored=True` it takes `--trust`. The options set fields of the `Call`: a command has no parameters for them.
    """

    def __init__(self, *args: Any, scoped: bool = False, authored: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scoped = scoped
        self.authored = authored
        own = (*(SCOPE_OPTIONS if scoped else ()), *((TRUST_OPTION,) if authored else ()))
        for flag, name, attributes in (*own, *SHARED_OPTIONS):
            self.params.append(click.Option((flag, name), expose_value=False, callback=_sets(name), **attributes))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except ValueError as error:  # from the system, about the name of a file
            raise InputError(f"A path contains a character that no file name can have ({error}). Remove it.") from None

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.invoked_subcommand is not None:
            return None  # a group's own function is for the group without a command
        paths = {param.name for param in self.params if isinstance(param.type, click.Path)}
        texts = {name: value for name, value in ctx.params.items() if name not in paths and name != "query"}
        refuse_unreadable(texts)
        if (call := ctx.find_object(Call)) is not None:
            call.is_authored = self.authored
        return super().invoke(ctx)


class CommandGroup(click.Group):
    """A group that names the nearest commands when it does not know one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if not word.startswith("-") and self.get_command(ctx, word) is None:
            group = " ".join(ctx.command_path.split()[1:])
            hint = " or ".join(map(repr, suggestions(word, group)))
            ctx.fail(f"There is no command {f'{group} {word}'.strip()!r}.{f' Did you mean {hint}?' if hint else ''}")
        return super().resolve_command(ctx, args)


class VerbGroup(CommandGroup, Verb):
    """Commands under one noun, such as `task add` and `task list`.

    With `invoke_without_command=True` the function of the group runs when no command follows: `foveate inbox` lists.
    """


def read_text(value: str) -> str:
    """Return the value, or standard input if the value is `-`."""
    return decode_text(sys.stdin.buffer.read(), "standard input") if value == STDIN else value


def decode_text(raw: bytes, where: str) -> str:
    """Return bytes as text, or raise an error that names the first byte that is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8 text (byte {error.start}).") from None
