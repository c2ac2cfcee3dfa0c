"""Errors as the command line says them: one line on stderr, the exit code of the error's class, never a traceback.

What is not expected here is a defect and keeps its traceback.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from foveate.cli.call import SCHEMA_VERSION, say, supports_utf8
from foveate.errors import BudgetError, FoveateError, InputError

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
"""What a shell reports for Ctrl-C."""
EXIT_FAILURE = 1


def handle_errors(run: Callable[[], Any], *, as_json: bool) -> int:
    """Run a command line; its exit code."""
    _show_any_character()
    try:
        code = run()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit) as error:
        # click turns a broken pipe into an exit of its own.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _close_quietly()
        return EXIT_FAILURE
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except (FoveateError, click.ClickException, OSError, RecursionError) as error:
        return render(error, as_json=as_json)
    return code if isinstance(code, int) else 0


def render(error: Exception, *, as_json: bool) -> int:
    """Say what went wrong; the exit code."""
    if isinstance(error, click.UsageError) and type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2
        error.show()
        return EXIT_USAGE
    kind, message, code = _described(error)
    say(" ".join(message.split("\n")))
    if as_json:
        document: dict[str, Any] = {"type": kind, "message": message, "exit_code": code}
        if isinstance(error, InputError):
            document["problems"] = list(error.problems)
        if isinstance(error, BudgetError):
            document["short"] = error.short
        click.echo(json.dumps({"schema_version": SCHEMA_VERSION, "error": document}, ensure_ascii=not supports_utf8()))
    return code


def _described(error: Exception) -> tuple[str, str, int]:
    if isinstance(error, FoveateError):
        return type(error).__name__, str(error), error.exit_code
    if isinstance(error, click.UsageError):
        where = f" See `{error.ctx.command_path} --help`." if error.ctx else ""
        said = error.format_message()
        return "UsageError", said + ("" if said.endswith((".", "?")) else ".") + where, EXIT_USAGE
    if isinstance(error, click.ClickException):
        return type(error).__name__, error.format_message(), error.exit_code
    if isinstance(error, RecursionError):
        return "InputError", "the input is nested too deeply.", EXIT_USAGE
    assert isinstance(error, OSError)
    where = f"{str(error.filename)!r}: " if error.filename else ""
    return type(error).__name__, f"{where}{error.strerror or error}.", EXIT_FAILURE


def _show_any_character() -> None:
    """A terminal that cannot show a character shows a question mark instead of an error."""
    if hasattr(sys.stdout, "reconfigure") and not supports_utf8():
        sys.stdout.reconfigure(errors="replace")


def _close_quietly() -> None:
    """The reader has left: nothing is flushed into a closed pipe when the interpreter ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return
