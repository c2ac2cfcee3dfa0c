"""Options of several commands: those that the library declares, extra texts, and what the shell completes."""

from __future__ import annotations

import os
import re
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import click
from click.shell_completion import CompletionItem

from foveate.cli.call import Call, Function, decode_text, read_text, say
from foveate.errors import FoveateError, InputError, near
from foveate.options import Arg
from foveate.records.kinds import KINDS

SINGULAR = {
    "entities": "entity",
    "entity_types": "entity_type",
    "event_types": "event_type",
    "files": "file",
    "kinds": "kind",
    "paths": "path",
    "steps": "step",
    "tags": "tag",
}
"""Fields that list things, with the name of the option."""


def collect(into: str, declaration: type, *names: str) -> Callable[[Function], Function]:
    """Add options of `foveate.options` to a command, with the same names and help; all of a declaration if none is named.

    The command gets those that were given as one mapping, the parameter `into`. The library checks their values, so that an
    error reads the same everywhere.
    """
    hints = get_type_hints(declaration, include_extras=True)
    fields = names or tuple(hints)

    def decorate(function: Function) -> Function:
        @wraps(function)
        def with_mapping(*args: Any, **values: Any) -> Any:
            named = {name: values.pop(name) for name in fields}
            given = {name: value for name, value in named.items() if value is not None and value != ()}
            return function(*args, **values, **{into: given})

        command: Function = with_mapping
        for name in reversed(fields):
            command = click.option(flag_of(name), name, **_attributes(hints[name]))(command)
        return command

    return decorate


def _attributes(hint: Any) -> dict[str, Any]:
    """Return what `click.option` takes for a field."""
    plain, arg = get_args(hint)[0], next(each for each in hint.__metadata__ if isinstance(each, Arg))
    several = get_origin(plain) in (Union, types.UnionType)
    alternatives = [each for each in (get_args(plain) if several else (plain,)) if each is not type(None)]
    attributes: dict[str, Any] = {"help": arg.help}
    if arg.metavar:
        attributes["metavar"] = arg.metavar
    if arg.complete:
        attributes["shell_complete"] = COMPLETIONS[arg.complete]
    if any(get_origin(each) is Sequence for each in alternatives):
        attributes["multiple"] = True
    elif alternatives in ([int], [float]):
        attributes["type"] = alternatives[0]
    elif get_origin(alternatives[0]) is Literal and not arg.metavar:
        attributes["metavar"] = "|".join(get_args(alternatives[0]))
    return attributes


def flag_of(name: str) -> str:
    """Return the flag of a field: its name, in the singular if the option takes one of several things at a time."""
    return f"--{SINGULAR.get(name, name).replace('_', '-')}"


def complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a kind that people write."""
    return [name for name in public_kinds() if name.startswith(incomplete)]


def public_kinds() -> list[str]:
    """Return the kinds that people may add, without those that foveate stores for itself."""
    return [name for name, kind in KINDS.items() if not (kind.is_internal or kind.is_derived)]


def check_public_kind(kind: str) -> None:
    """Raise an error for a kind that people cannot write. Tasks have a command of their own, because they have a status."""
    if kind == "task":
        raise InputError("Add tasks with `foveate task add NAME`: a task has a name and a status.")
    if kind in KINDS and KINDS[kind].is_internal:
        raise InputError(f"Unknown kind {kind!r}.{near(kind, public_kinds())}")


def complete_profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a profile."""
    from foveate.pipeline import profiles

    found = profiles.names(profiles.profile_dirs(Call().place().root))
    return [name for name in found if name.startswith(incomplete)]


def complete_tasks(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return keys and ids of tasks; none if there is no store to ask."""
    with suppress(FoveateError, OSError), Call().open() as engine:
        return [
            CompletionItem(ref, help=task.name)
            for task in engine.tasks.list()
            for ref in (task.record.key, task.id)
            if ref and ref.startswith(incomplete)
        ]
    return []


COMPLETIONS = {"tasks": complete_tasks, "kinds": complete_kinds, "profiles": complete_profiles}

# --- extra texts ---------------------------------------------------------------------------------------------------

EXTRA_SLOT = "given"
"""Slot of an extra text that names none."""

_PATH = re.compile(r"\S*/\S+|\S+\.\w{1,4}")
"""A text without blanks that has a slash or a suffix: probably the name of a file."""

_SLOT_AND_TEXT = re.compile(r"([A-Za-z0-9_-]+)=(.*)", re.DOTALL)

extra_option = click.option(
    "--extra",
    multiple=True,
    metavar="[SLOT=]FILE_OR_TEXT",
    help="Text that only this call knows, or a file with it; `-` reads stdin. Repeatable.",
)


def extra_texts(values: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """Return the extra texts of a call by slot. A text that itself begins with `word=` needs its slot named."""
    out: dict[str, list[dict[str, str]]] = {}
    for value in values:
        match = _SLOT_AND_TEXT.fullmatch(value)
        slot, text = (match[1], match[2]) if match and not os.path.isfile(value) else (EXTRA_SLOT, value)
        if os.path.isfile(text):
            with open(text, "rb") as file:
                part = {"text": decode_text(file.read(), repr(text)), "origin": text}
        else:
            if _PATH.fullmatch(text):
                say(f"warning: there is no file {text!r}, so it is passed as a text.")
            part = {"text": read_text(text)}
        out.setdefault(slot, []).append(part)
    return out
