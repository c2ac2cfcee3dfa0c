"""Where everything is that a host is told of: the project, the home, the programs of this installation, the service."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from foveate.errors import InputError
from foveate.integrations.hooks.service_file import find
from foveate.integrations.install.hosts import Where
from foveate.project.project import Place


def where_of(root: Path) -> Where:
    """For the project at `root`, on this machine, as it is now."""
    service = find(Place(root).service)
    return Where(root, Path.home(), _program("foveate-hook"), _program("foveate"), service.url if service else "")


def _program(name: str) -> str:
    """The program beside this Python, else on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise InputError(f"There is no program {name!r} beside {sys.executable!r}. Install foveate: `pip install foveate`.")
    return found
