"""Detect files that came with a repository: git tracks them, so their author is unknown, and the user has not accepted them.

The module reads git's index directly and does not start git. It runs before every opening of a store and in the hook, so it
imports little of the standard library.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress

from foveate.project.locate import find_checkout

ACCEPTED = "FOVEATE_ACCEPTED"
"""A person's environment: folders of projects, parted as in PATH, whose `.foveate/` is theirs although git tracks it."""

LOGS = ("", "-wal", "-journal")
"""What SQLite takes for a part of a file: a log that is brought along would be played into a store that was not."""

MAX_PRIVATE = 100_000
"""Bytes of a private file that are looked at."""


def shipped(path: str) -> tuple[str, ...]:
    """Return the result of `tracked` for a file in a project's `.foveate/`; empty if the user has accepted the project."""
    return () if _accepted(os.path.dirname(os.path.dirname(os.path.abspath(path)))) else tracked(path)


def tracked(path: str) -> tuple[str, ...]:
    """Return the top of a checkout and the path that git tracks there: the file, one of its logs or a link to it.

    Empty if git tracks none of them. A tracked link counts because its target may be created later.
    """
    file = os.path.realpath(path)
    for name in (file, *_links(os.path.abspath(path))):
        folder = os.path.dirname(name)
        top, git = find_checkout(folder)
        if git:
            wanted = os.path.relpath(os.path.join(folder, _spelled(name)), top).replace(os.sep, "/")
            for index in _indexes(git):
                if found := _listed(index, os.fsencode(wanted)):
                    return top, os.fsdecode(found)
    return ()


def read_private(path: str) -> bytes:
    """Return the content of a small file that only this user can have written. Raises OSError for any other file."""
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if os.name == "posix" and (status.st_mode & 0o170077 != 0o100000 or status.st_uid != os.geteuid()):
            raise OSError("not private")
        if shipped(path):  # with a strict umask, git creates private files too
            raise OSError("tracked by git")
        return file.read(MAX_PRIVATE)


def _accepted(root: str) -> bool:
    folders = filter(None, os.environ.get(ACCEPTED, "").split(os.pathsep))
    return any(os.path.realpath(os.path.expanduser(folder)) == os.path.realpath(root) for folder in folders)


def _links(path: str) -> Iterator[str]:
    """Yield the file and its folder if they are links, each with the real path of the folder that contains it.

    Folders above do not count: a user may well keep a link to a folder that is under version control.
    """
    for link in filter(os.path.islink, (path, os.path.dirname(path))):
        yield os.path.join(os.path.realpath(os.path.dirname(link)), os.path.basename(link))


def _spelled(path: str) -> str:
    """Return the path with the name as the folder lists it. Some file systems ignore the case of letters."""
    folder, name = os.path.split(path)
    if os.path.lexists(os.path.join(folder, name.swapcase())):
        with suppress(OSError), os.scandir(folder) as entries:
            number = os.lstat(path).st_ino
            return next((entry.name for entry in entries if entry.inode() == number), name)
    return name


def _indexes(git: str) -> Iterator[mmap.mmap]:
    """Yield the index, and the shared part of a split index."""
    try:
        shared = [name for name in os.listdir(git) if name.startswith("sharedindex.")]
    except OSError:
        return
    for name in ("index", *shared):
        try:
            with (
                open(os.path.join(git, name), "rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as index,
            ):
                yield index
        except (OSError, ValueError):  # it is gone, or empty
            continue


def _listed(index: mmap.mmap, name: bytes) -> bytes:
    """Return the entry of a file or of one of its logs in an index, ignoring case like some file systems; empty without one.

    Names are sorted, so the search for `.foveate/` at the top of a repository ends early, however many files follow. For a
    path further down, a plain search of the whole index first rules out most repositories.
    """
    name = name.lower()
    if name.count(b"/") > 1 and _version(index) < 4 and name not in index[:].lower():
        return b""
    wanted = {name + log.encode() for log in LOGS}
    last = max(wanted)
    for digest in (20, 32):
        for listed in _names(index, digest):
            if listed.lower() in wanted:
                return listed
            if listed > last:
                break
    return b""


def _version(index: mmap.mmap) -> int:
    return int.from_bytes(index[4:8], "big")


def _names(index: mmap.mmap, digest: int) -> Iterator[bytes]:
    """Yield the names in an index whose object ids have `digest` bytes. With the wrong number, the names are nonsense."""
    version, at, name = _version(index), 12, b""
    for _ in range(int.from_bytes(index[8:12], "big")):
        begin = at + 40 + digest + 2  # times, numbers, mode, owner, size; id; flags
        begin += 2 if int.from_bytes(index[begin - 2 : begin], "big") & 0x4000 else 0  # there are more flags
        kept = b""
        if version >= 4:
            dropped, begin = _number(index, begin)
            kept = name[: max(0, len(name) - dropped)]
        end = index.find(b"\0", begin)
        if end < 0:
            return
        name = kept + index[begin:end]
        at = end + 1 if version >= 4 else at + (end - at) // 8 * 8 + 8
        yield name


def _number(index: mmap.mmap, at: int) -> tuple[int, int]:
    """Return how many bytes a name of version 4 drops from the previous one, and the position of its remainder."""
    value = -1
    while at < len(index):
        value = (value + 1 << 7) + (index[at] & 127)
        at += 1
        if not index[at - 1] & 128:
            break
    return max(value, 0), at
