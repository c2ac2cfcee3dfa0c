"""Errors of the command line: one line on stderr and the exit code of the error's class, without a traceback.

Handled are errors that foveate raises on purpose, usage errors and errors of the operating system. Any other exception is a
defect and keeps its traceback.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from foveate.cli.call import say
from foveate.cli.render import supports_utf8
from foveate.errors import BudgetError, FoveateError, InputError
from foveate.operations.documents import SCHEMA_VERSION

EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
"""Exit code of a shell command that Ctrl-C ended."""


def handle_errors(run: Callable[[], Any], *, as_json: bool) -> int:
    """Run a command line, print its error if there is one, and return the exit code."""
    _replace_unprintable_characters()
    try:
        code = run()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise  # click turns a broken pipe into an exit of its own; this is another exit
        _discard_output()
        return EXIT_FAILURE
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except (FoveateError, click.ClickException, OSError, RecursionError) as error:
        return print_error(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def print_error(error: Exception, *, as_json: bool) -> int:
    """Print an error on stderr, and on stdout if JSON was asked for. Return its exit code."""
    if isinstance(error, click.UsageError) and type(error).__name__ == "NoArgsIsHelpError":  # a class since click 8.2
        error.show()
        return EXIT_USAGE
    kind, message, code = _describe(error)
    say(" ".join(message.split("\n")))
    if as_json:
        document: dict[str, Any] = {"type": kind, "message": message, "exit_code": code}
        if isinstance(error, InputError):
            document["problems"] = list(error.problems)
        if isinstance(error, BudgetError):
            document["short"] = error.short
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "error": document}, ensure_ascii=not supports_utf8()))
    return code


def _describe(error: Exception) -> tuple[str, str, int]:
    """Return the type of an error, its message and its exit code."""
    name = type(error).__name__
    if isinstance(error, InputError):
        return name, " ".join(map(_sentence, error.problems)), error.exit_code
    if isinstance(error, FoveateError):
        return name, str(error), error.exit_code
    if isinstance(error, click.UsageError):
        message = _sentence(error.format_message())
        if "unexpected extra argument" in message:
            message += " Put a text of several words in quotes."
        hint = f" See `{error.ctx.command_path} --help`." if error.ctx else ""
        return "UsageError", message + hint, EXIT_USAGE
    if isinstance(error, click.ClickException):
        return name, error.format_message(), error.exit_code
    if isinstance(error, RecursionError):
        return "InputError", "the input is nested too deeply.", EXIT_USAGE
    assert isinstance(error, OSError)
    path = f"{str(error.filename)!r}: " if error.filename else ""
    return name, f"{path}{error.strerror or error}.", EXIT_FAILURE


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _replace_unprintable_characters() -> None:
    """Print a question mark for a character that the terminal cannot show, instead of raising an error."""
    if hasattr(sys.stdout, "reconfigure") and not supports_utf8():
        sys.stdout.reconfigure(errors="replace")


def _discard_output() -> None:
    """Discard what is still buffered: the interpreter would flush it into the closed pipe and print an error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return
