"""Profile files: where they are, what they say and whom they extend.

Comes in: a profile's name and the directories to look into. Goes out: raw layers, bottom first. Files are only read;
what their settings mean is judged elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from foveate.errors import ProfileError, near

BASE = "base"
BUILTIN = Path(__file__).parent / "builtin"
# A name may come from a request, so that it must not be able to leave the directory.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """One line of `foveate profile list`. `where` is `builtin` or the file."""

    name: str
    where: str
    extends: str
    description: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One file, to be laid over those before it. Its table is shared with the cache: read it only."""

    name: str
    path: Path
    table: dict[str, Any]
    label: str
    """What provenance calls it: its name, plus its directory where another file goes before it."""


def places(root: Path) -> tuple[Path, Path]:
    """Where a user's profiles live: the project's directory, then the person's own."""
    from platformdirs import user_config_path

    return root / ".foveate" / "profiles", user_config_path("foveate") / "profiles"


def names(places: Sequence[Path] = (), *, builtin: bool = True) -> list[str]:
    """The names of all profiles that can be resolved; without `builtin`, of the user's own."""
    stems = {path.stem for place in (*places, *([BUILTIN] if builtin else [])) for path in place.glob("*.toml")}
    return sorted(stem for stem in stems if _NAME.fullmatch(stem))


def known(places: Sequence[Path] = ()) -> list[ProfileInfo]:
    """All profiles, by name; one that cannot be read says so in its description."""
    return [_info(name, paths) for name in names(places) if (paths := _paths(name, places))]


def load(name: str, places: Sequence[Path] = ()) -> dict[str, Any]:
    """What the first file of that name says, as it stands."""
    paths = _paths(name, places)
    if not paths:
        raise ProfileError(f"There is no profile {name!r}.{near(name, names(places))}")
    return deepcopy(_read(name, paths[0]))


def chain(name: str, places: Sequence[Path], *, on_base: bool) -> list[Layer]:
    """A profile and all that it extends, bottom first.

    With `on_base`, whoever extends nobody extends base. A profile that extends its own name means the next file of
    that name: the person's under the project's, the builtin under both. So base itself can be adjusted, too.
    """
    found: list[Layer] = []
    while name:
        paths = _paths(name, places)
        shadowed = 0
        if found and found[-1].name == name:
            shadowed = paths.index(found[-1].path) + 1
        if shadowed and shadowed == len(paths):
            if "extends" in found[-1].table:
                raise ProfileError(_cycle(found, name))
            break  # the last base
        if not paths:
            asker = f"Profile {found[-1].name!r} extends {name!r}, but there" if found else "There"
            raise ProfileError(f"{asker} is no profile {name!r}.{near(name, names(places))}")
        path = paths[shadowed]
        if any(layer.path == path for layer in found):
            raise ProfileError(_cycle(found, name))
        label = f"{name} ({path.parent.name})" if shadowed else name
        table = _read(name, path)
        found.append(Layer(name, path, table, label))
        name = _parent(table, BASE if on_base else "")
    return found[::-1]


def _cycle(found: list[Layer], name: str) -> str:
    circle = [*(layer.name for layer in found), name]
    circle = circle[circle.index(name) :]
    return f"Profile {name!r} extends itself: {' -> '.join(circle)}."


def _parent(table: dict[str, Any], default: str) -> str:
    extends = table.get("extends", default)
    return extends if isinstance(extends, str) else default


def _paths(name: str, places: Sequence[Path]) -> list[Path]:
    """The files of that name, the one that counts first."""
    if not _NAME.fullmatch(name):
        return []
    paths = (place / f"{name}.toml" for place in (*places, BUILTIN))
    return [path for path in dict.fromkeys(paths) if path.is_file()]


def _info(name: str, paths: list[Path]) -> ProfileInfo:
    path = paths[0]
    where = "builtin" if path.parent == BUILTIN else str(path)
    try:
        table = _read(name, path)
    except ProfileError as error:
        return ProfileInfo(name, where, "", str(error))
    own_base = name == BASE and len(paths) == 1
    return ProfileInfo(name, where, _parent(table, "" if own_base else BASE), str(table.get("description", "")))


def _read(name: str, path: Path) -> dict[str, Any]:
    try:
        status = path.stat()
        return _parsed(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise ProfileError(f"Profile {name!r}: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"Profile {name!r}: {path} is not UTF-8 text.") from error
    except ValueError as error:  # tomllib's own error is one
        raise ProfileError(f"Profile {name!r}: {path} is not valid TOML: {error}.") from error


@lru_cache(maxsize=128)
def _parsed(path: Path, mtime: int, size: int) -> dict[str, Any]:
    """The file's table, parsed again only when the file has changed."""
    import tomllib  # about 3 ms on top of what is loaded by then: not for those who resolve nothing

    return tomllib.loads(path.read_text(encoding="utf-8"))
