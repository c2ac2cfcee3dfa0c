"""Other tools in an environment of their own: they have many pinned dependencies that conflict with ours.

FOVEATE_EVAL_PEERS names the folder or the interpreter of that environment; by default it is the running interpreter. A tool
answers through a process that runs as long as this one (`peer_process.py`), with a line of JSON for each request.
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

from bench.datasets.files import cache_dir
from foveate.errors import FoveateError, InputError

PEERS_ENV_VAR = "FOVEATE_EVAL_PEERS"
SCRIPT = Path(__file__).with_name("peer_process.py")


def missing_requirement(package: str) -> str:
    """Return how to install a tool, or an empty string if the environment has its package."""
    try:
        version = package_version(package)
    except InputError as error:
        return str(error)
    return "" if version else f"pip install {package}, or set {PEERS_ENV_VAR} to an environment that has it"


def package_version(package: str) -> str:
    """Return the version of a package in the environment, or an empty string."""
    return _package_version(_python(), package)


class Peer:
    """A tool that answers requests about repositories."""

    def __init__(self, package: str, verb: str) -> None:
        if missing := missing_requirement(package):
            raise InputError(f"The system {verb!r} cannot run: {missing}")
        self.version = package_version(package)
        self.verb = verb
        self.folder = cache_dir(f"{verb}-{self.version}")

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
            raise FoveateError(f"The process of {self.verb!r} has ended; its error message is above.")
        return json.loads(answer)


def _python() -> str:
    value = os.environ.get(PEERS_ENV_VAR)
    if not value:
        return sys.executable
    for path in (Path(value), Path(value, "bin", "python"), Path(value, "Scripts", "python.exe")):
        if path.is_file():
            return str(path.absolute())
    raise InputError(f"{PEERS_ENV_VAR} is {value!r}, which has no interpreter; set it to the folder of an environment.")


@cache
def _package_version(python: str, package: str) -> str:
    script = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    try:
        done = subprocess.run([python, "-I", "-c", script, package], capture_output=True, text=True)
    except OSError as error:
        raise InputError(f"{PEERS_ENV_VAR} names {python!r}, which does not run: {error.strerror}.") from None
    return done.stdout.strip() if done.returncode == 0 else ""


@cache
def _process(python: str, verb: str, folder: str) -> subprocess.Popen[str]:
    # Isolated (-I): otherwise semble.py and aider.py beside the script would hide the packages of these names.
    command = [python, "-I", str(SCRIPT), verb, folder]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    atexit.register(_stop_process, process)
    return process


def _stop_process(process: subprocess.Popen[str]) -> None:
    # The process ends with its input.
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()
