"""Other tools, in an environment of their own: their dependencies are many, pinned, and not ours.

FOVEATE_EVAL_PEERS names that environment's folder or its interpreter; without it the running interpreter is used. A tool
is asked by a process that lives as long as this one (`peer_process.py`), a line of JSON for a line of JSON.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from foveate.errors import FoveateError, InputError
from foveate.eval.reading import cache_folder

VARIABLE = "FOVEATE_EVAL_PEERS"
SCRIPT = Path(__file__).with_name("peer_process.py")


def missing(package: str, extra: str) -> str:
    """What to do before a tool can run: nothing where the environment holds its package."""
    try:
        found = version(package)
    except InputError as error:
        return str(error)
    return "" if found else f"pip install 'foveate[{extra}]', or name another environment that holds it with {VARIABLE}"


def version(package: str) -> str:
    """The version of a package over there; nothing where it is not installed."""
    return _version(_python(), package)


class Peer:
    """A tool that answers questions about repositories."""

    def __init__(self, package: str, extra: str) -> None:
        if said := missing(package, extra):
            raise InputError(f"The system {extra!r} cannot run: {said}")
        self.version = version(package)
        self.verb = extra
        self.folder = cache_folder(f"{extra}-{self.version}")

    def ask(self, **request: Any) -> Any:
        process = _process(_python(), self.verb, str(self.folder))
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise FoveateError(f"The process of {self.verb!r} has ended; its last words are above.")
        return json.loads(answer)


def _python() -> str:
    named = os.environ.get(VARIABLE)
    if not named:
        return sys.executable
    places = (Path(named), Path(named, "bin", "python"), Path(named, "Scripts", "python.exe"))
    for place in places:
        if place.is_file():
            return str(place.absolute())
    raise InputError(f"{VARIABLE} is {named!r}, where there is no interpreter; name a virtual environment's folder.")


@cache
def _version(python: str, package: str) -> str:
    asked = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    try:
        done = subprocess.run([python, "-I", "-c", asked, package], capture_output=True, text=True)
    except OSError as error:
        raise InputError(f"{VARIABLE} names {python!r}, which does not run: {error.strerror}.") from None
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def _process(python: str, verb: str, folder: str) -> subprocess.Popen[str]:
    # Isolated: else the modules beside the script would stand for the packages of the same name.
    command = [python, "-I", str(SCRIPT), verb, folder]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[str]) -> None:
    """It ends when its input does."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()
