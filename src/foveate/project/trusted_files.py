"""Decide whether a file in `.foveate/` is obeyed: it must be the user's own, or the user must have accepted it.

A repository, or another user of the machine, can bring a `.foveate/` whose settings and profiles write into the system
message, drop rules, or name a server that gets the memory. So a file that git tracks, or that another user owns or can
write to, is not obeyed.

This module imports little, because the hook must start quickly.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from foveate.project.locate import CONFIG_FILE, DIR_NAME
from foveate.project.tracked_by_git import DATABASE_SUFFIXES, is_accepted_folder, read_private, tracked_file

SETTING_FILES = (CONFIG_FILE, "allow", "frames.toml", "tokens.json", "service.json", "installed.json")
"""Files in `.foveate/` that change what foveate does; the profiles in `profiles/` do, too."""

ACCEPTED_FILE = "accepted"
"""File in the user's configuration folder with the accepted files: a SHA-256 and a path on each line."""


def refusal(path: str) -> str:
    """Return why a file in `.foveate/` is not obeyed, or an empty string.

    An accepted folder (FOVEATE_ACCEPTED) makes a database and files of other users acceptable. A text file that git tracks
    is accepted by its content, so that a later change must be accepted again.
    """
    path = os.path.abspath(path)
    root = path[: path.rfind(os.sep + DIR_NAME + os.sep)] if os.sep + DIR_NAME + os.sep in path else os.path.dirname(path)
    if is_accepted_folder(root):
        reason = "" if is_database(path) or not tracked_file(path) else "it is tracked by git"
    else:
        reason = foreign_owner(path) or ("it is tracked by git" if tracked_file(path) else "")
    return "" if not reason or is_accepted(path) else reason


def is_database(path: str) -> bool:
    """Return whether a file is a database, which changes with each write and so cannot be accepted by its content."""
    return path.endswith(".db")


def foreign_owner(path: str) -> str:
    """Return which other user owns a file, its folders up to `.foveate/` or a link to them, or can write to one of them."""
    if os.name != "posix":
        return ""
    side_files = [path + suffix for suffix in DATABASE_SUFFIXES] if is_database(path) else [path]
    return next(filter(None, map(_foreign_owner, [*side_files, *_folders(path)])), "")


def _folders(path: str) -> Iterator[str]:
    """Yield the folders of a file up to `.foveate/`."""
    while DIR_NAME in os.path.dirname(path).split(os.sep):
        path = os.path.dirname(path)
        yield path
        if os.path.basename(path) == DIR_NAME:
            return


def _foreign_owner(path: str) -> str:
    for status in _statuses(path):
        if status.st_uid not in _trusted_owners():
            return f"{_described(path)} belongs to another user (uid {status.st_uid})"
        # A group of one's own is the default on many systems, together with a umask that lets it write.
        group_writes = status.st_mode & stat.S_IWGRP and status.st_gid != os.getegid()
        if (status.st_mode & stat.S_IWOTH or group_writes) and not stat.S_ISLNK(status.st_mode):
            return f"other users can write to {_described(path)}"
    return ""


def is_accepted(path: str) -> bool:
    """Return whether the user accepted a file with its present content."""
    accepted = _accepted_lines()
    return bool(accepted) and not is_database(path) and f"{_content_hash(path)}  {os.path.realpath(path)}" in accepted


def accept(path: str, content: bytes) -> None:
    """Accept a file with this content, in place of any other content that was accepted before."""
    target = accepted_file()
    path = os.path.realpath(path)
    kept = [line for line in _accepted_lines() if line[66:] != path]
    from pathlib import Path

    from foveate.text.atomic_write import write_file

    os.makedirs(os.path.dirname(target), exist_ok=True)
    write_file(Path(target), "".join(f"{line}\n" for line in [*kept, f"{_hash(content)}  {path}"]), private=True)


def accepted_file() -> str:
    """Return the path of the list of accepted files. No repository can bring it, because it is in the user's own folder."""
    from platformdirs import user_config_dir  # loaded only for a file that would be refused

    return os.path.join(user_config_dir("foveate"), ACCEPTED_FILE)


def setting_files(folder: str) -> list[str]:
    """Return the existing files in a `.foveate/` folder that change what foveate does, databases last."""
    profiles = os.path.join(folder, "profiles")
    names = [os.path.join(folder, name) for name in SETTING_FILES]
    names += [os.path.join(profiles, name) for name in _sorted_names(profiles) if name.endswith(".toml")]
    names += [os.path.join(folder, name) for name in _sorted_names(folder) if is_database(name)]
    return [name for name in names if os.path.isfile(name)]


def _statuses(path: str) -> Iterator[os.stat_result]:
    try:
        yield os.lstat(path)
        if os.path.islink(path):
            yield os.stat(path)
    except OSError:
        return


def _trusted_owners() -> tuple[int, ...]:
    """Return the user, and root, who can change every file anyway. Under sudo, the user who called it."""
    user = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if user == 0 else ""
    return (user, 0, int(caller)) if caller.isdecimal() else (user, 0)


def _described(path: str) -> str:
    return "its folder" if os.path.isdir(path) else "it"


def _accepted_lines() -> list[str]:
    try:
        return os.fsdecode(read_private(accepted_file())).splitlines()
    except OSError:
        return []


def _content_hash(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return _hash(file.read())
    except OSError:
        return ""


def _hash(content: bytes) -> str:
    from hashlib import sha256

    return sha256(content).hexdigest()


def _sorted_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
