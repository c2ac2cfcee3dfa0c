"""Whether a file came with a repository: git tracks it, so that anybody may have written it, and nobody here accepted it.

Comes in: the path of a file. Goes out: what git tracks of it, or the bytes of one that is ours alone. Git is not started:
its index is read as it lies there. Standard library only, and little of it, since this stands before every opening and in
the hook.
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
    """What `tracked` says of this file of a project's `.foveate/`; empty where a person has accepted it."""
    return () if _accepted(os.path.dirname(os.path.dirname(os.path.abspath(path)))) else tracked(path)


def tracked(path: str) -> tuple[str, ...]:
    """The top of a checkout and what git tracks there of a file: itself, a log beside it, or a link that leads to it.

    Empty where it tracks none of them. A link that is tracked may lead to where something else is put later.
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
    """What is in a small file that only its owner, who is we, can have written; `OSError` where others could have."""
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if os.name == "posix" and (status.st_mode & 0o170077 != 0o100000 or status.st_uid != os.geteuid()):
            raise OSError("not private")
        if shipped(path):  # whoever keeps all files private has git write them so, too
            raise OSError("tracked by git")
        return file.read(MAX_PRIVATE)


def _accepted(root: str) -> bool:
    folders = filter(None, os.environ.get(ACCEPTED, "").split(os.pathsep))
    return any(os.path.realpath(os.path.expanduser(folder)) == os.path.realpath(root) for folder in folders)


def _links(path: str) -> Iterator[str]:
    """The file and its folder, where they are links, by the folder that each really is in.

    Not what is above: a person may well keep a link to where the work is under version control.
    """
    for link in filter(os.path.islink, (path, os.path.dirname(path))):
        yield os.path.join(os.path.realpath(os.path.dirname(link)), os.path.basename(link))


def _spelled(path: str) -> str:
    """A file's name as its folder has it: some file systems open it by others, too."""
    folder, name = os.path.split(path)
    if os.path.lexists(os.path.join(folder, name.swapcase())):
        with suppress(OSError), os.scandir(folder) as entries:
            number = os.lstat(path).st_ino
            return next((entry.name for entry in entries if entry.inode() == number), name)
    return name


def _indexes(git: str) -> Iterator[mmap.mmap]:
    """The index, and what a split one shares."""
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
    """What an index lists of a file and its logs. Letters may be large: some file systems take them for the same.

    Its names are sorted, and large letters come before small ones. So `.foveate/` at the top of a repository is passed soon,
    however many files follow. One further down is looked for first in the whole, where names stand as they are.
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
    """The names in an index whose object ids have so many bytes; with the other number, nothing that makes sense."""
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
    """How many bytes a name of version 4 drops from the one before it, and where the rest of it begins."""
    value = -1
    while at < len(index):
        value = (value + 1 << 7) + (index[at] & 127)
        at += 1
        if not index[at - 1] & 128:
            break
    return max(value, 0), at
