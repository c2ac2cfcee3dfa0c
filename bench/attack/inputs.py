"""All of Unicode, NUL, lone surrogates and very long texts in every text argument: only foveate's own errors may come out.

The command line must end with a documented exit code and without a traceback, the HTTP service with a documented status, and
the library with an error of foveate or none.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import schemathesis
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from mcp import Client
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.redteam.any_text import CALLS, SPECIAL

import foveate
from bench.attack.stores import any_unicode
from bench.attack.tally import Tally, require
from foveate.cli import cli
from foveate.errors import FoveateError
from foveate.server.http import Settings, create_app
from foveate.server.mcp import create_server
from foveate.server.tokens import SCOPES, Tokens
from foveate.testing import engine as new_engine

LONG = "pump " * 20_000
EXIT_CODES = (0, 1, 2, 3, 4, 5)
BLOCKING = ("serve", "ui", "mcp", "eval")
"""Commands that would wait for clients, or run for long."""
FULL_TEXTS, QUICK_TEXTS = 24, 2
FULL_EXAMPLES, QUICK_EXAMPLES = 200, 2
PROCESS_STEP, QUICK_PROCESS_STEP = 20, 400
"""One of so many command lines runs in a process of its own."""
ENDLESS_ROUTE = "^/v1/events$"
UNCHECKED = [positive_data_acceptance, negative_data_rejection]


def texts(chance: random.Random, count: int) -> list[str]:
    """Return texts of each sort: special ones, random ones, and a long one."""
    chosen = [chance.choice(SPECIAL) for _ in range(count // 2)] + [any_unicode(chance) for _ in range(count - count // 2)]
    return [*chosen, "\udcff\ud800", "a\x00b", LONG]


# --- the library -----------------------------------------------------------------------------------------------------


def attack_library(tally: Tally, quick: bool, chance: random.Random) -> None:
    for name, call in CALLS.items():
        with new_engine(session="s") as engine:
            for text in texts(chance, QUICK_TEXTS if quick else FULL_TEXTS):
                with tally.case(f"library {name} {text!r:.40}"), suppress(FoveateError):
                    call(engine, text)


# --- the command line ------------------------------------------------------------------------------------------------


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or name in BLOCKING:
            continue
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield for each text parameter of each command a line in which it is the text."""
    for path, command in commands(cli):
        arguments = [param for param in command.params if isinstance(param, click.Argument)]
        for param in command.params:
            if isinstance(param, click.Option) and (param.is_flag or param.count):
                continue
            values = [text if each is param else "x" for each in arguments if each is param or each.required]
            option = [f"{max(param.opts, key=len)}={text}"] if isinstance(param, click.Option) else []
            yield [*path, *option, "--", *values]


def attack_cli(tally: Tally, quick: bool, chance: random.Random) -> None:
    number = 0
    at_terminal = patch("foveate.cli.call.has_terminal", lambda: True)  # a person may do more than an agent
    with tempfile.TemporaryDirectory() as name, chdir(name), patch.dict(os.environ, {"HOME": f"{name}/home"}), at_terminal:
        os.mkdir("home")
        with foveate.open(name, personal=False, code=False) as engine:
            engine.add("fact", "Pumps run daily")
            engine.tasks.add("Check the pumps", key="x")
        for text in texts(chance, QUICK_TEXTS if quick else FULL_TEXTS):
            for line in command_lines(text):
                with tally.case(f"cli {' '.join(line)!r:.80}"):
                    run_line(line, text)
                number += 1
                if number % (QUICK_PROCESS_STEP if quick else PROCESS_STEP) == 0:
                    with tally.case(f"process {' '.join(line)!r:.80}"):
                        run_process(line)


def run_line(line: list[str], text: str) -> None:
    result = CliRunner().invoke(cli, line, input=text.encode("utf-8", "surrogatepass"))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    require(result.exit_code in EXIT_CODES, f"exit code {result.exit_code}")
    require("Traceback" not in result.output, "a traceback")


def run_process(line: list[str]) -> None:
    """Run the command as a shell would: with arbitrary bytes instead of surrogates, without NUL, and not too long."""
    arguments = [part.replace("\x00", "").encode("utf-8", "surrogatepass")[:100_000] for part in line]
    environment = {**os.environ, "PYTHONPATH": str(Path(foveate.__file__).parents[1])}
    done = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"foveate", *arguments], env=environment, input=b"\xff\x00", capture_output=True
    )
    require(done.returncode in EXIT_CODES, f"exit code {done.returncode}")
    require(b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")[-200:])


# --- HTTP and MCP ----------------------------------------------------------------------------------------------------


def attack_http(tally: Tally, quick: bool) -> None:
    """Send what schemathesis makes of the OpenAPI document to each route."""
    schemathesis.serializer("application/x-ndjson")(lambda context, value: str(value).encode("utf-8", "replace"))
    with tempfile.TemporaryDirectory() as name, new_engine(session="s") as engine:
        engine.add("fact", "Pumps run daily")
        file = Path(name) / "tokens.json"
        _, secret = Tokens(file).create("test", SCOPES, engine.scope.project)
        app = create_app(engine, settings=Settings(require_token=True, tokens=file))
        schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "127.0.0.1"})
        for found in schema.exclude(path_regex=ENDLESS_ROUTE).get_all_operations():
            attack_route(tally, found.ok(), secret, QUICK_EXAMPLES if quick else FULL_EXAMPLES)


def attack_route(tally: Tally, route: Any, secret: str, examples: int) -> None:
    headers = {"Authorization": f"Bearer {secret}"}
    phases = (Phase.explicit, Phase.generate)  # without shrinking: the first failure is enough

    @settings(max_examples=examples, phases=phases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(route.as_strategy())
    def send(case: schemathesis.Case) -> None:
        tally.tried += 1
        case.call_and_validate(base_url="http://127.0.0.1", headers=headers, excluded_checks=UNCHECKED)

    with tally.case(f"http {route.method.upper()} {route.path}"):
        send()


async def attack_mcp(tally: Tally, quick: bool, chance: random.Random) -> None:
    with new_engine(session="s") as engine:
        async with Client(create_server(engine)) as client:
            tools = (await client.list_tools()).tools
            for text in texts(chance, QUICK_TEXTS if quick else FULL_TEXTS):
                for tool in tools:
                    for name, field in tool.input_schema["properties"].items():
                        required = dict.fromkeys(tool.input_schema.get("required", ()), "x")
                        value: Any = [text] if field.get("type") == "array" else text
                        with tally.case(f"mcp {tool.name} {name} {text!r:.40}"):
                            found = await client.call_tool(tool.name, {**required, name: clean_json(value)})
                            require(not found.is_error or "Traceback" not in str(found.content), "a traceback")
                            require("Internal" not in str(found.content), str(found.content))


def clean_json(value: Any) -> Any:
    """Return a value that JSON in UTF-8 can carry: the client itself refuses lone surrogates."""
    if isinstance(value, list):
        return [clean_json(part) for part in value]
    return value.encode("utf-8", "replace").decode()


def attack(tally: Tally, quick: bool) -> None:
    chance = random.Random(7)
    attack_library(tally, quick, chance)
    attack_cli(tally, quick, chance)
    attack_http(tally, quick)
    asyncio.run(attack_mcp(tally, quick, chance))
