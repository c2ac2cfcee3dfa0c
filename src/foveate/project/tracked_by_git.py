"""Detect files that came with a repository: git tracks them, and the user has not accepted the project.

This module reads git's index itself and does not start `git`. It runs before a store is opened and in the hook, where a
process for every prompt is slow, and where the repository's own configuration could make git run a program. The hook must
start quickly, so this module imports little of the standard library.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from foveate.project.locate import DIR_NAME, find_checkout

ACCEPTED_ENV_VAR = "FOVEATE_ACCEPTED"
"""Environment variable with folders, separated as in PATH, whose `.foveate/` the user trusts although git tracks it."""

DATABASE_SUFFIXES = ("", "-wal", "-journal")
"""Suffixes of files that SQLite reads with a database. A tracked WAL would be played into a store that is not tracked."""

MAX_PRIVATE_FILE_BYTES = 100_000
"""Bytes of a private file that are read."""


def untrusted_file(path: str) -> tuple[str, ...]:
    """Return the result of `tracked_file` for a file in `.foveate/`, or an empty tuple if the user accepted the project."""
    return () if is_accepted_folder(os.path.dirname(os.path.dirname(os.path.abspath(path)))) else tracked_file(path)


def tracked_file(path: str) -> tuple[str, ...]:
    """Return the top of a checkout and the path that git tracks in it: the file, its WAL or journal, or a link to it.

    Return an empty tuple if git tracks none of them. A tracked link counts, because its target may be created later.
    """
    file = os.path.realpath(path)
    for name in (file, *_links(os.path.abspath(path))):
        folder = os.path.dirname(name)
        top, git = find_checkout(folder)
        if git:
            tracked_name = os.path.relpath(os.path.join(folder, _actual_name(name)), top).replace(os.sep, "/")
            wanted = os.fsencode(tracked_name).lower()
            before, marker, _ = wanted.rpartition(f"{DIR_NAME}/".encode())
            entries = _entries_below(git, before + marker or wanted, _index_stamps(git))
            for suffix in DATABASE_SUFFIXES:
                if entry := entries.get(wanted + suffix.encode()):
                    return top, os.fsdecode(entry)
    return ()


def read_private(path: str) -> bytes:
    """Return the content of a small file that only this user can have written. Raise OSError for any other file."""
    # O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        # A regular file without permissions for the group and others.
        if os.name == "posix" and (status.st_mode & 0o170077 != 0o100000 or status.st_uid != os.geteuid()):
            raise OSError("not private")
        # With a strict umask, the files that git checks out have no permissions for others either.
        if untrusted_file(path):
            raise OSError("tracked by git")
        return file.read(MAX_PRIVATE_FILE_BYTES)


def is_accepted_folder(root: str) -> bool:
    """Return whether the user trusts the `.foveate/` of a folder."""
    folders = filter(None, os.environ.get(ACCEPTED_ENV_VAR, "").split(os.pathsep))
    return any(os.path.realpath(os.path.expanduser(folder)) == os.path.realpath(root) for folder in folders)


def _links(path: str) -> Iterator[str]:
    """Yield the file and its folders up to `.foveate/` that are links, each with the real path of the folder around it.

    Links further up do not count, because users keep links to folders under version control.
    """
    names = [path, os.path.dirname(path)]
    while os.path.basename(names[-1]) != DIR_NAME and f"{os.sep}{DIR_NAME}{os.sep}" in names[-1]:
        names.append(os.path.dirname(names[-1]))
    for link in filter(os.path.islink, names):
        yield os.path.join(os.path.realpath(os.path.dirname(link)), os.path.basename(link))


def _actual_name(path: str) -> str:
    """Return the path with the file's name as its folder lists it, because some file systems ignore case."""
    folder, name = os.path.split(path)
    if os.path.lexists(os.path.join(folder, name.swapcase())):
        with suppress(OSError), os.scandir(folder) as entries:
            number = os.lstat(path).st_ino
            return next((entry.name for entry in entries if entry.inode() == number), name)
    return name


def _index_names(git: str) -> list[str]:
    """Return the names of the index, and of the shared part of a split index."""
    try:
        return ["index", *(name for name in os.listdir(git) if name.startswith("sharedindex."))]
    except OSError:
        return []


def _index_stamps(git: str) -> tuple[tuple[str, int, int], ...]:
    """Return what changes whenever git writes its index."""
    stamps = []
    for name in _index_names(git):
        with suppress(OSError):
            status = os.stat(os.path.join(git, name))
            stamps.append((name, status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def _indexes(git: str) -> Iterator[mmap.mmap]:
    for name in _index_names(git):
        try:
            with (
                open(os.path.join(git, name), "rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as index,
            ):
                yield index
        except (OSError, ValueError):  # the file is missing or empty
            continue


@lru_cache(maxsize=32)
def _entries_below(git: str, prefix: bytes, stamps: tuple[tuple[str, int, int], ...]) -> dict[bytes, bytes]:
    """Return the entries of an index that begin with a prefix in lower case, by their name in lower case.

    Entries are sorted, so the search for `.foveate/` at the top of a repository ends early in a large index. For a path
    further down, a search for the bytes of the name excludes most repositories first.
    """
    found: dict[bytes, bytes] = {}
    for index in _indexes(git):
        if prefix.count(b"/") > 1 and _version(index) < 4 and prefix not in index[:].lower():
            continue
        for id_size in (20, 32):  # SHA-1 and SHA-256; the index does not say which one it has
            for entry in _entry_names(index, id_size):
                if (name := entry.lower()).startswith(prefix):
                    found[name] = entry
                elif entry > prefix + b"\xff":
                    break
    return found


def _version(index: mmap.mmap) -> int:
    return int.from_bytes(index[4:8], "big")


def _entry_names(index: mmap.mmap, id_size: int) -> Iterator[bytes]:
    """Yield the names in an index with object ids of `id_size` bytes. With the wrong size, the names are nonsense.

    The format is described in git's `gitformat-index`.
    """
    version, at, name = _version(index), 12, b""
    for _ in range(int.from_bytes(index[8:12], "big")):
        begin = at + 40 + id_size + 2  # times, device, inode, mode, owner, size; id; flags
        begin += 2 if int.from_bytes(index[begin - 2 : begin], "big") & 0x4000 else 0  # extended flags
        prefix = b""
        if version >= 4:
            dropped, begin = _prefix_difference(index, begin)
            prefix = name[: max(0, len(name) - dropped)]
        end = index.find(b"\0", begin)
        if end < 0:
            return
        name = prefix + index[begin:end]
        at = end + 1 if version >= 4 else at + (end - at) // 8 * 8 + 8
        yield name


def _prefix_difference(index: mmap.mmap, at: int) -> tuple[int, int]:
    """Return how many bytes a name of version 4 drops from the end of the previous name, and where its own bytes begin."""
    value = -1
    while at < len(index):
        value = (value + 1 << 7) + (index[at] & 127)
        at += 1
        if not index[at - 1] & 128:
            break
    return max(value, 0), at
