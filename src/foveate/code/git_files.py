"""Lists the files of a folder with git, and caches the list.

Git spends most of the time reading every folder for untracked files. A list that was the same twice is therefore cached
with the file stamps of everything it depends on: the folders, the ignore rules, git's own index. It is valid as long as none
of these has changed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, time_ns
from typing import TypeAlias

GIT_TIMEOUT_S = 20.0
"""Git lists a million files in far less time. A longer run means a dead network drive."""

MAX_CACHED_BYTES = 5_000_000
"""Maximum size of a cached list: enough for the Linux kernel, not for a whole disk."""

MAX_CACHED_LISTINGS = 8

MAX_CACHE_AGE_S = 300.0
"""A cached list expires after this time: ignore rules may be in a file that is not checked here, and some drives do not
update the times of folders."""

MTIME_GRANULARITY_NS = 2_000_000_000
"""A younger timestamp is unreliable: a file can change twice within one tick of the clock."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """The result of a git command. `code` is None if git could not be started or took too long."""

    code: int | None
    stdout: bytes = b""
    stderr: str = ""


# A hook or an outer command may point git at another repository or make it prompt for input.
_CLEARED_ENV_VARS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE",
            "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_LITERAL_PATHSPECS")  # fmt: skip
_GIT_ENV = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


def run_git(folder: str, *arguments: str, seconds: float = GIT_TIMEOUT_S, ceiling: str = "") -> GitResult:
    """Run a git command that only reads. It runs no program from the repository's settings, and never raises."""
    environment = {name: value for name, value in os.environ.items() if name not in _CLEARED_ENV_VARS} | _GIT_ENV
    if ceiling:
        environment["GIT_CEILING_DIRECTORIES"] = ceiling
    command = ["git", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", *arguments]
    try:
        ended = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return GitResult(None, stderr=f"git took longer than {seconds:g} s")
    except (OSError, ValueError) as error:
        return GitResult(None, stderr=f"git could not be run ({getattr(error, 'strerror', None) or error})")
    return GitResult(ended.returncode, ended.stdout, os.fsdecode(ended.stderr).strip())


def list_files(folder: str, include: Sequence[str] = (), ceiling: str = "") -> GitResult:
    """Return the paths of tracked files and of untracked ones that are not ignored, each with a zero byte at its end.

    `include`: patterns of ignored files to list as well. `ceiling`: the folder at which the search for a repository stops.
    """
    if include:  # the stamps do not cover folders with ignored files
        return _add_included(_run_ls_files(folder, ceiling), folder, include, ceiling)
    kept = _listing_cache.pop((folder, ceiling), None)
    if kept is None or not kept.is_fresh():
        kept = _refresh_listing(kept, folder, ceiling)
    if kept.answer.code == 0 and not kept.answer.stderr and len(kept.answer.stdout) <= MAX_CACHED_BYTES:
        _listing_cache[folder, ceiling] = kept
        while len(_listing_cache) > MAX_CACHED_LISTINGS:
            _listing_cache.pop(next(iter(_listing_cache)), None)
    return kept.answer


def _refresh_listing(previous: _CachedListing | None, folder: str, ceiling: str) -> _CachedListing:
    """List the files again. If the list is the same as before, it is returned with the stamps taken before git ran."""
    now = time_ns()
    stamps: dict[str, FileStamp] = {}
    if previous is not None and not previous.stamps:
        paths = _dependency_paths(folder, previous.answer.stdout, ceiling)
        stamps = {path: _file_stamp(path) for path in paths}
    answer = _run_ls_files(folder, ceiling)
    is_settled = all(stamp is None or max(stamp[:2]) < now - MTIME_GRANULARITY_NS for stamp in stamps.values())
    is_same = previous is not None and answer == previous.answer
    return _CachedListing(answer, stamps if is_settled and is_same else {}, monotonic())


def _run_ls_files(folder: str, ceiling: str) -> GitResult:
    return run_git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard", ceiling=ceiling)


def _add_included(answer: GitResult, folder: str, include: Sequence[str], ceiling: str) -> GitResult:
    """Add the ignored files that match `include`. Git itself reads the patterns."""
    if answer.code != 0:
        return answer
    patterns = [f"--exclude={pattern}" for pattern in include]
    wanted = run_git(folder, "ls-files", "-z", "--others", "--ignored", *patterns, ceiling=ceiling)
    return GitResult(0, answer.stdout + wanted.stdout, answer.stderr)


# --- cached lists ------------------------------------------------------------------------------------------------------

FileStamp: TypeAlias = "tuple[int, int, int, int] | None"
"""Modification time, change time, size and inode of a file, or None if it does not exist. A tool can set the first of the
times, but not the second."""


@dataclass(frozen=True, slots=True)
class _CachedListing:
    """The last list of the files of a folder."""

    answer: GitResult
    stamps: Mapping[str, FileStamp] = field(repr=False)
    """Stamps of the files it depends on, from before git ran. Empty after the first run, and if a timestamp was
    unreliable."""
    since: float

    def is_fresh(self) -> bool:
        """Return whether git would return the same list."""
        if not self.stamps or monotonic() > self.since + MAX_CACHE_AGE_S:
            return False
        return all(_file_stamp(path) == stamp for path, stamp in self.stamps.items())


_listing_cache: dict[tuple[str, str], _CachedListing] = {}
"""Cached lists by folder and ceiling, the most recently used last."""


def _file_stamp(path: str) -> FileStamp:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _dependency_paths(folder: str, names: bytes, ceiling: str) -> Iterator[str]:
    """Yield the paths that git's list depends on: folders, ignore rules, settings, and git's index."""
    places = [part for name in ("index", "config", "config.worktree", "info/exclude") for part in ("--git-path", name)]
    own = os.fsdecode(run_git(folder, "rev-parse", "--show-cdup", *places, ceiling=ceiling).stdout).split("\n")
    up, *files = own[:5]
    yield from (os.path.join(folder, file) for file in files)
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    yield from (os.path.expanduser("~/.gitconfig"), f"{settings}/git/config", f"{settings}/git/ignore")
    ignored = run_git(folder, "config", "--type=path", "core.excludesFile", ceiling=ceiling).stdout
    yield from (os.path.join(folder, file) for file in os.fsdecode(ignored).splitlines())
    above = os.path.realpath(folder)
    for _ in range(up.count("../")):
        above = os.path.dirname(above)
        yield f"{above}/.gitignore"
    base = folder.rstrip("/")
    for inner in _folders(base, names, ceiling):
        yield f"{base}/{inner}".rstrip("/")
        if os.path.lexists(rules := f"{base}/{inner}.gitignore"):  # a new file changes the stamp of its folder
            yield rules


def _folders(base: str, names: bytes, ceiling: str) -> set[str]:
    """Return the folders with listed files, and untracked folders without files: a file may be created there."""
    found = {""}
    for name in os.fsdecode(names).split("\0"):
        end = name.rfind("/")
        while end > 0 and name[: end + 1] not in found:
            found.add(name[: end + 1])
            end = name.rfind("/", 0, end)
    untracked = _untracked_dirs(base, ceiling)
    ignored = frozenset(_untracked_dirs(base, ceiling, "--ignored")) if untracked else frozenset()
    for name in untracked:
        for folder, below, _ in os.walk(f"{base}/{name}"):
            inner = f"{folder[len(base) + 1 :].rstrip('/')}/"
            below[:] = [one for one in below if one != ".git" and f"{inner}{one}/" not in ignored]
            found.add(inner)
    return found


def _untracked_dirs(base: str, ceiling: str, *which: str) -> list[str]:
    """Return the outermost folders in which git tracks no file, or that it ignores."""
    answer = run_git(base, "ls-files", "-z", "--others", *which, "--directory", "--exclude-standard", ceiling=ceiling)
    return [name for name in os.fsdecode(answer.stdout).split("\0") if name.endswith("/")]
