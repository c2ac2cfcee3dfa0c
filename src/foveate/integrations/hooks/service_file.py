"""`.foveate/service.json`: the address of a project's running service, for hooks and other tools.

Standard library only: a program that looks for the service must not import a web framework.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from foveate.errors import InputError
from foveate.project.tracked_by_git import read_private
from foveate.text.atomic_write import write_file

PORT = 8377
"""Where the service of a machine is, unless told."""

PATIENCE = 0.5
"""Seconds to wait for a service that should be there."""


@dataclass(frozen=True, slots=True)
class Service:
    """A running service. `token` is set where it asks for one: whoever may read this file may use it."""

    url: str
    pid: int
    version: str = ""
    started: str = ""
    token: str = ""


def find(path: Path) -> Service | None:
    """Return the service that a file names if it still runs. A file that other users can have written is ignored."""
    try:
        held = json.loads(read_private(str(path)))
        found = Service(**{field.name: held[field.name] for field in fields(Service) if field.name in held})
    except (OSError, ValueError, TypeError):
        return None
    return found if _answers(found) else None


def announce(path: Path, service: Service) -> None:
    """Write the file; what a dead service left is replaced, a living one is not."""
    while True:
        try:
            write_file(path, json.dumps(asdict(service), indent=1), private=True, exclusive=True)
            return
        except FileExistsError:
            other = find(path)
            if other is not None:
                raise InputError(
                    f"This project is served already, at {other.url} by process {other.pid}. Use it, or stop it first."
                ) from None
            path.unlink(missing_ok=True)


def withdraw(path: Path) -> None:
    """Remove the file where it is this process's own."""
    with suppress(OSError, ValueError, AttributeError):
        if json.loads(path.read_text("utf-8")).get("pid") == os.getpid():
            path.unlink()


def _answers(service: Service) -> bool:
    """Return whether the process lives and its port answers. The process id alone may belong to another program by now."""
    try:
        os.kill(service.pid, 0)
        address = urlsplit(service.url)
        with socket.create_connection((address.hostname or "", address.port or 80), timeout=PATIENCE):
            return True
    except PermissionError:  # a process of another user
        return False
    except (OSError, ValueError, OverflowError, TypeError, AttributeError):
        return False
