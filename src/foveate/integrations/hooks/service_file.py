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
"""The default port of the service."""

CONNECT_TIMEOUT_S = 0.5


@dataclass(frozen=True, slots=True)
class Service:
    """A running service. The token is empty if the service needs none; everyone who can read the file can use it."""

    url: str
    pid: int
    version: str = ""
    started: str = ""
    token: str = ""


def find_service(path: Path) -> Service | None:
    """Return the service that a file names if it still runs. A file that other users can have written is ignored."""
    try:
        held = json.loads(read_private(str(path)))
        found = Service(**{field.name: held[field.name] for field in fields(Service) if field.name in held})
    except (OSError, ValueError, TypeError):
        return None
    return found if _answers(found) else None


def write_service_file(path: Path, service: Service) -> None:
    """Write the file. The file of a dead service is replaced; raises InputError if another service runs."""
    while True:
        try:
            write_file(path, json.dumps(asdict(service), indent=1), private=True, exclusive=True)
            return
        except FileExistsError:
            other = find_service(path)
            if other is not None:
                raise InputError(
                    f"Process {other.pid} serves this project already, at {other.url}. Use it, or stop it first."
                ) from None
            path.unlink(missing_ok=True)


def remove_service_file(path: Path) -> None:
    """Remove the file if this process has written it."""
    with suppress(OSError, ValueError, AttributeError):
        if json.loads(path.read_text("utf-8")).get("pid") == os.getpid():
            path.unlink()


def _answers(service: Service) -> bool:
    """Return whether the process lives and its port answers. The process id alone may belong to another program by now."""
    try:
        os.kill(service.pid, 0)
        address = urlsplit(service.url)
        with socket.create_connection((address.hostname or "", address.port or 80), timeout=CONNECT_TIMEOUT_S):
            return True
    except PermissionError:  # a process of another user
        return False
    except (OSError, ValueError, OverflowError, TypeError, AttributeError):
        return False
