"""Find and read the files of profiles and frames. The settings are checked in `settings.py` and `profile.py`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from foveate.errors import ProfileError, near
from foveate.project.locate import DIR_NAME
from foveate.project.trusted_files import accepted_file, refusal

DEFAULT = "default"
"""The profile that every other extends unless it says otherwise."""
AGENT = "agent"
HIDDEN_PROFILES = (AGENT, "map")
"""Building blocks: they can be used and extended, but are not shown in lists."""

BUILTIN_DIR = Path(__file__).parent / "builtin"
FRAMES_FILE = "frames.toml"
"""Next to each directory of profiles: `.foveate/profiles/` and `.foveate/frames.toml`."""

VARIANTS = {"complexity": "complexity", "frames": "frame", "input": "input"}
"""Tables that change a profile, each with the option that chooses one. They are named `complexity.easy`, `frames.debug`."""

# A name may come from a request, so it must not be able to leave the directory.
# File systems refuse names of more than 255 bytes.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")


@dataclass(frozen=True, slots=True)
class ProfileInfo:
    """One row of a list of profiles. `where` is `builtin` or the file."""

    name: str
    where: str
    extends: str
    description: str


@dataclass(frozen=True, slots=True)
class Layer:
    """One file or table that is laid over those before it. Its table is shared with the cache and must not be changed."""

    name: str
    path: Path
    table: Mapping[str, Any]
    label: str
    """Name for errors and provenance: the file's name, and its directory if another file of that name comes first."""


def profile_dirs(root: Path) -> tuple[Path, Path]:
    """Return the directories of a user's profiles: the project's, then the person's."""
    from platformdirs import user_config_path

    return root / ".foveate" / "profiles", user_config_path("foveate") / "profiles"


def names(dirs: Sequence[Path] = (), *, builtin: bool = True) -> list[str]:
    """Return the names of all profiles; without `builtin`, only the user's."""
    stems = {path.stem for folder in dirs for path in folder.glob("*.toml") if _is_obeyed(path)}
    stems |= {path.stem for path in BUILTIN_DIR.glob("*.toml")} if builtin else set()
    return sorted(stem for stem in stems if _NAME.fullmatch(stem))


def list_profiles(dirs: Sequence[Path] = ()) -> list[ProfileInfo]:
    """List the profiles by name, without building blocks. A file that cannot be read has the error as its description."""
    user_names = names(dirs, builtin=False)
    listed = [name for name in names(dirs) if name in user_names or name not in HIDDEN_PROFILES]
    return [_info(name, _paths(name, dirs)) for name in listed]


def load(name: str, dirs: Sequence[Path] = ()) -> dict[str, Any]:
    """Return the content of the first file of that name."""
    paths = _paths(name, dirs)
    if not paths:
        raise ProfileError(unknown_profile(name, dirs))
    return deepcopy(dict(_read(name, paths[0])))


def unknown_profile(name: str, dirs: Sequence[Path], child: str = "") -> str:
    """Return the error for a name that no profile has. For a frame or a complexity, name the option that chooses it."""
    start, _, rest = name.replace(".", "-").partition("-")
    for table, option in VARIANTS.items():
        key = rest if start in (table, option) else name
        if key in _variants(table, dirs):
            how = "is chosen by the length of the question" if table == "input" else f'is chosen with {option}="{key}"'
            return f"{name!r} is not a profile: the {option} {key!r} {how}."
    if child:
        return f"Profile {child!r} extends {name!r}, which does not exist.{near(name, names(dirs))}"
    return f"Profile {name!r} does not exist.{near(name, names(dirs))}"


def chain(name: str, dirs: Sequence[Path], *, on_default: bool) -> list[Layer]:
    """Return a profile and everything that it extends, bottom first.

    With `on_default`, a profile that extends nothing extends `default`. A profile that extends its own name means the next
    file of that name: the person's below the project's, the builtin below both. So `default` can be adjusted, too.
    """
    found: list[Layer] = []
    while name:
        paths = _paths(name, dirs)
        shadowed = paths.index(found[-1].path) + 1 if found and found[-1].name == name else 0
        if shadowed and shadowed == len(paths):
            if "extends" in found[-1].table:
                raise ProfileError(_cycle(found, name))
            break  # the built-in default, which extends nothing
        if not paths:
            raise ProfileError(unknown_profile(name, dirs, found[-1].name if found else ""))
        path = paths[shadowed]
        if any(layer.path == path for layer in found):
            raise ProfileError(_cycle(found, name))
        table = _read(name, path)
        found.append(Layer(name, path, table, f"{name} ({path.parent.name})" if shadowed else name))
        name = _parent(table, DEFAULT if on_default else "")
    return found[::-1]


def variant_layers(name: str, profile: Sequence[Layer], dirs: Sequence[Path]) -> list[Layer]:
    """Return the tables of a complexity, frame or input (`complexity.easy`), bottom first.

    Complexities are those of `default` and of the profile with all that it extends, inputs those of the profile.
    """
    table, _, key = name.partition(".")
    if table == "frames":
        found = [Layer(name, path, values[key], name) for path, values in frame_files(dirs) if key in values]
    else:
        below = chain(DEFAULT, dirs, on_default=True) if table == "complexity" else []
        files = {layer.path: layer for layer in (*below, *profile)}.values()
        found = [Layer(name, file.path, tables[key], name) for file in files if key in (tables := _tables(file, table))]
    if not found and table != "input":
        option = VARIANTS[table]
        raise ProfileError(f"{option.capitalize()} {key!r} does not exist.{near(key, _variants(table, dirs))}")
    return found


def frame_files(dirs: Sequence[Path]) -> list[tuple[Path, Mapping[str, Any]]]:
    """Return the frames of each file, by name, bottom first: the builtin ones, the person's, the project's."""
    paths = [BUILTIN_DIR.parent / FRAMES_FILE, *(folder.parent / FRAMES_FILE for folder in reversed(dirs))]
    found = []
    for path in dict.fromkeys(paths):
        if path.is_file() and _is_obeyed(path):
            table = _read(FRAMES_FILE, path)
            frames = table.get("frames", {})
            if table.keys() - {"frames"} or not _is_table_of_tables(frames):
                raise ProfileError(f"{path} may hold tables [frames.NAME] and nothing else.")
            found.append((path, frames))
    return found


def _variants(table: str, dirs: Sequence[Path]) -> list[str]:
    if table == "frames":
        return sorted({name for _, frames in frame_files(dirs) for name in frames})
    files = chain(DEFAULT if table == "complexity" else "assistant", dirs, on_default=True)
    return sorted({name for file in files for name in _tables(file, table)})


def _tables(file: Layer, table: str) -> Mapping[str, Any]:
    found = file.table.get(table, {})
    return found if _is_table_of_tables(found) else {}


def _is_table_of_tables(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(inner, Mapping) for inner in value.values())


def _cycle(found: list[Layer], name: str) -> str:
    circle = [*(layer.name for layer in found), name]
    circle = circle[circle.index(name) :]
    return f"Profile {name!r} extends itself: {' -> '.join(circle)}."


def _parent(table: Mapping[str, Any], default: str) -> str:
    extends = table.get("extends", default)
    return extends if isinstance(extends, str) else default


def _paths(name: str, dirs: Sequence[Path]) -> list[Path]:
    """Return the files of that name, in order of precedence."""
    if not _NAME.fullmatch(name):
        return []
    paths = (folder / f"{name}.toml" for folder in (*dirs, BUILTIN_DIR))
    return [path for path in dict.fromkeys(paths) if path.is_file() and _is_obeyed(path)]


def _is_obeyed(path: Path) -> bool:
    """Return whether a file is built in, the person's, or a project's that the person has written or accepted."""
    if DIR_NAME not in path.parts[-3:]:
        return True
    status = path.stat()
    return not _refusal(str(path), status.st_mtime_ns, status.st_ctime_ns, _modified(accepted_file()))


@lru_cache(maxsize=128)
def _refusal(path: str, mtime: int, ctime: int, accepted: int) -> str:
    """Return why a file is not obeyed, found again only if it or the list of accepted files has changed."""
    return refusal(path)


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _info(name: str, paths: list[Path]) -> ProfileInfo:
    path = paths[0]
    where = "builtin" if path.parent == BUILTIN_DIR else str(path)
    try:
        table = _read(name, path)
    except ProfileError as error:
        return ProfileInfo(name, where, "", str(error))
    is_last_default = name == DEFAULT and len(paths) == 1
    parent = _parent(table, "" if is_last_default else DEFAULT)
    return ProfileInfo(name, where, parent, str(table.get("description", "")))


def _read(name: str, path: Path) -> Mapping[str, Any]:
    try:
        status = path.stat()
        return _parse_file(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise ProfileError(f"Profile {name!r}: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"Profile {name!r}: {path} is not UTF-8 text.") from error
    except ValueError as error:  # the base class of tomllib.TOMLDecodeError
        raise ProfileError(f"Profile {name!r}: {path} is not valid TOML: {error}.") from error


@lru_cache(maxsize=128)
def _parse_file(path: Path, mtime: int, size: int) -> Mapping[str, Any]:
    """Parse a file, again only if it has changed."""
    import tomllib  # takes 3 ms, which commands without a profile should not spend

    return tomllib.loads(path.read_text(encoding="utf-8"))
