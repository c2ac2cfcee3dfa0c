"""Whether a file came with a repository: git tracks it, so that anybody may have written it, and nobody here accepted it.

Comes in: the path of a file. Goes out: yes or no, or the bytes of one that is ours alone. Git is not started: its index is
read as it lies there. Standard library only, and little of it, since this stands before every opening and in the hook.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

ACCEPTED = "FOVEATE_ACCEPTED"
"""A person's environment: folders of projects, parted as in PATH, whose `.foveate/` is theirs although git tracks it."""

LOGS = ("", "-wal", "-journal")
"""What SQLite takes for a part of a file: a log that is brought along would be played into a store that was not."""

MAX_PRIVATE = 100_000
"""Bytes of a private file that are looked at."""


def is_shipped(path: str) -> bool:
    """Whether git tracks this file of a project's `.foveate/`, and no person has accepted it."""
    return is_tracked(path) and not _accepted(os.path.dirname(os.path.dirname(os.path.abspath(path))))


def is_tracked(path: str) -> bool:
    """Whether git tracks a file, or a log beside it.

    Links are followed: a repository may bring `.foveate` as a link to a folder of another name.
    """
    file = os.path.realpath(path)
    top, git = _repository(os.path.dirname(file))
    if not git:
        return False
    name = os.path.relpath(file, top).replace(os.sep, "/").lower().encode("utf-8", "surrogateescape")
    return any(_lists(index, name) for index in _indexes(git))


def read_private(path: str) -> bytes:
    """What is in a small file that only its owner, who is we, can have written; `OSError` where others could have."""
    opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if os.name == "posix" and (status.st_mode & 0o170077 != 0o100000 or status.st_uid != os.geteuid()):
            raise OSError("not private")
        if is_shipped(path):  # whoever keeps all files private has git write them so, too
            raise OSError("tracked by git")
        return file.read(MAX_PRIVATE)


def _accepted(root: str) -> bool:
    folders = filter(None, os.environ.get(ACCEPTED, "").split(os.pathsep))
    return any(os.path.realpath(os.path.expanduser(folder)) == os.path.realpath(root) for folder in folders)


def _repository(folder: str) -> tuple[str, str]:
    """The top of the checkout that a folder is in, and where git keeps what it knows of it; both empty without one."""
    while True:
        marker = os.path.join(folder, ".git")
        if os.path.isdir(marker):
            return folder, marker
        if os.path.isfile(marker):  # of a worktree or a submodule
            with open(marker, encoding="utf-8", errors="surrogateescape") as file:
                return folder, os.path.join(folder, file.readline().removeprefix("gitdir:").strip())
        above = os.path.dirname(folder)
        if above == folder:
            return "", ""
        folder = above


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


def _lists(index: mmap.mmap, name: bytes) -> bool:
    """Whether an index lists a file or its logs. Letters may be large: some file systems take them for the same.

    Its names are sorted, and large letters come before small ones. So `.foveate/` at the top of a repository is passed soon,
    however many files follow. One further down is looked for first in the whole, where names stand as they are.
    """
    if name.count(b"/") > 1 and _version(index) < 4 and name not in index[:].lower():
        return False
    wanted = {name + log.encode() for log in LOGS}
    last = max(wanted)
    for digest in (20, 32):
        for listed in _names(index, digest):
            if listed.lower() in wanted:
                return True
            if listed > last:
                break
    return False


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
