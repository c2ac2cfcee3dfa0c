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

SCHEMA = 1
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
    user: str | None = None
    project: str | None = None
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
            "agent": agent,
            "session": session,
            "task": task,
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
        whole = {"schema_version": SCHEMA, **document}
        click.echo(json.dumps(whole, ensure_ascii=not speaks_utf8(), default=str))


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


def speaks_utf8() -> bool:
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
    from foveate.store.address import names_database

    return value if names_database(value) else Path(value)


def _complete_folders(ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
    return click.Path(file_okay=False).shell_complete(ctx, param, incomplete)


STORE: dict[str, Any] = {"type": _where, "metavar": "PATH|URL", "shell_complete": _complete_folders}
"""What `--store` takes, on both sides of a verb."""


def _sets(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """An option after the verb does what it does before it."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        call = ctx.find_object(Call)
        if value and call is not None:
            call.go_to(value) if name == "store" else setattr(call, name, value)

    return callback


class Verb(click.Command):
    """A command that also takes `--store`, `--project`, `--user` and `--json`, and refuses what is no text."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        shared = (
            (("--store",), "store", STORE, "A project's directory, or the URL of a shared store."),
            (("--project",), "project", {"metavar": "NAME"}, "Which project of the store is meant."),
            (("--user",), "user", {"metavar": "NAME"}, "Whose state it is."),
            (("--json",), "as_json", {"is_flag": True}, "One JSON document on stdout."),
        )
        for flags, name, kind, help in shared:
            self.params.append(click.Option(flags, expose_value=False, callback=_sets(name), help=help, **kind))

    def invoke(self, ctx: click.Context) -> Any:
        paths = {param.name for param in self.params if isinstance(param.type, click.Path)}
        texts = {name: value for name, value in ctx.params.items() if name not in paths and name != "query"}
        refuse_unreadable(texts)
        return super().invoke(ctx)


def scoped(function: Function) -> Function:
    """`--agent`, `--session` and `--task`: whose records may be seen, and whose a new one is."""
    function = click.option("--task", metavar="NAME", help="The task that this is for.")(function)
    function = click.option("--session", metavar="NAME", help="The session that this is for.")(function)
    return click.option("--agent", metavar="NAME", help="The agent that this is for.")(function)


def read_text(value: str) -> str:
    """The value itself, or standard input where it is `-`."""
    return decoded(sys.stdin.buffer.read(), "standard input") if value == STDIN else value


def decoded(raw: bytes, where: str) -> str:
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
