"""Git's list of a folder's files: a folder in; the paths out, and what git said.

Most of its time goes into reading every folder for files that are not tracked. A list that came twice the same is therefore
kept, with the times of all that it depends on: the folders, the rules of what is ignored, git's own index. As long as none
of them changed, it is the list.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, time_ns
from typing import TypeAlias

SECONDS = 20.0
"""Git lists a million files in far less; what takes longer is a dead network drive."""

MAX_KEPT = 5_000_000
"""Bytes of a list that is kept: that of the Linux kernel, and not that of a disk."""

MAX_LISTS = 8

TRUSTED = 300.0
"""Seconds for which a list is kept at most: rules of what to ignore may stand where nobody looks here, and there are drives
whose folders do not say when they were changed."""

SETTLED = 2_000_000_000
"""Nanoseconds after which a time can be trusted: what was just changed may be changed again within a tick."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a call of git ended; `code` is None if it could not be started or took too long."""

    code: int | None
    out: bytes = b""
    said: str = ""


# A hook or an outer command may point git at another repository, or have it ask a person.
_STEERED = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE",
            "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_LITERAL_PATHSPECS")  # fmt: skip
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


def git(folder: str, *arguments: str, seconds: float = SECONDS, ceiling: str = "") -> Answer:
    """Run git for reading only; it runs no program that the repository's own settings name, and nothing here raises."""
    environment = {name: value for name, value in os.environ.items() if name not in _STEERED} | _QUIET
    if ceiling:
        environment["GIT_CEILING_DIRECTORIES"] = ceiling
    command = ["git", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", *arguments]
    try:
        ended = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Answer(None, said=f"git took longer than {seconds:g} s")
    except (OSError, ValueError) as error:
        return Answer(None, said=f"git could not be run ({getattr(error, 'strerror', None) or error})")
    return Answer(ended.returncode, ended.stdout, os.fsdecode(ended.stderr).strip())


def listed(folder: str, include: Sequence[str] = (), ceiling: str = "") -> Answer:
    """The paths of tracked files and of those that nothing ignores, each with a zero byte at its end.

    `include`: patterns of what is wanted although it is ignored. `ceiling`: where to stop looking for a repository.
    """
    if include:  # ignored files lie in folders whose times are not kept
        return _with_wanted(_asked(folder, ceiling), folder, include, ceiling)
    kept = _kept.pop((folder, ceiling), None)
    if kept is None or not kept.holds():
        kept = _again(kept, folder, ceiling)
    if kept.answer.code == 0 and not kept.answer.said and len(kept.answer.out) <= MAX_KEPT:
        _kept[folder, ceiling] = kept
        while len(_kept) > MAX_LISTS:
            _kept.pop(next(iter(_kept)), None)
    return kept.answer


def _again(kept: _Kept | None, folder: str, ceiling: str) -> _Kept:
    """Git's answer as of now; one that comes the second time with what it depends on, as that was before git was asked."""
    now = time_ns()
    marks = _marks(_depends(folder, kept.answer.out, ceiling)) if kept is not None and not kept.marks else {}
    answer = _asked(folder, ceiling)
    settled = all(mark is None or max(mark[:2]) < now - SETTLED for mark in marks.values())
    return _Kept(answer, marks if settled and kept is not None and answer == kept.answer else {}, monotonic())


def _asked(folder: str, ceiling: str) -> Answer:
    return git(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard", ceiling=ceiling)


def _with_wanted(answer: Answer, folder: str, include: Sequence[str], ceiling: str) -> Answer:
    """With ignored files that were asked for, by git's own reading of the patterns."""
    if answer.code != 0:
        return answer
    patterns = [f"--exclude={pattern}" for pattern in include]
    wanted = git(folder, "ls-files", "-z", "--others", "--ignored", *patterns, ceiling=ceiling)
    return Answer(0, answer.out + wanted.out, answer.said)


# --- lists that are kept -----------------------------------------------------------------------------------------------

Mark: TypeAlias = "tuple[int, int, int, int] | None"
"""When something was changed last (a tool can set the first of the times, but not the second), its size and number; None
where there is nothing."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """The last list of a folder."""

    answer: Answer
    marks: Mapping[str, Mark] = field(repr=False)
    """What it depends on, as it was before git was asked; empty where the list came but once, or something was too new."""
    since: float

    def holds(self) -> bool:
        """Whether git would say the same again."""
        if not self.marks or monotonic() > self.since + TRUSTED:
            return False
        return all(_mark(path) == mark for path, mark in self.marks.items())


_kept: dict[tuple[str, str], _Kept] = {}
"""By folder and ceiling; the last used is the last."""


def _marks(paths: Iterable[str]) -> dict[str, Mark]:
    return {path: _mark(path) for path in paths}


def _mark(path: str) -> Mark:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _depends(folder: str, names: bytes, ceiling: str) -> Iterator[str]:
    """What git's list of a folder depends on: folders, rules of what is ignored, settings, and git's index."""
    places = [part for name in ("index", "config", "config.worktree", "info/exclude") for part in ("--git-path", name)]
    own = os.fsdecode(git(folder, "rev-parse", "--show-cdup", *places, ceiling=ceiling).out).split("\n")
    up, *files = own[:5]
    yield from (os.path.join(folder, file) for file in files)
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    yield from (os.path.expanduser("~/.gitconfig"), f"{settings}/git/config", f"{settings}/git/ignore")
    ignored = git(folder, "config", "--type=path", "core.excludesFile", ceiling=ceiling).out
    yield from (os.path.join(folder, file) for file in os.fsdecode(ignored).splitlines())
    above = os.path.realpath(folder)
    for _ in range(up.count("../")):
        above = os.path.dirname(above)
        yield f"{above}/.gitignore"
    base = folder.rstrip("/")
    for inner in _folders(base, names, ceiling):
        yield f"{base}/{inner}".rstrip("/")
        if os.path.lexists(rules := f"{base}/{inner}.gitignore"):  # a new one changes its folder
            yield rules


def _folders(base: str, names: bytes, ceiling: str) -> set[str]:
    """The folders below one that hold what is listed, and those that hold nothing yet: a file may come there."""
    found = {""}
    for name in os.fsdecode(names).split("\0"):
        end = name.rfind("/")
        while end > 0 and name[: end + 1] not in found:
            found.add(name[: end + 1])
            end = name.rfind("/", 0, end)
    untracked = _whole(base, ceiling)
    ignored = frozenset(_whole(base, ceiling, "--ignored")) if untracked else frozenset()
    for name in untracked:
        for folder, below, _ in os.walk(f"{base}/{name}"):
            inner = f"{folder[len(base) + 1 :].rstrip('/')}/"
            below[:] = [one for one in below if one != ".git" and f"{inner}{one}/" not in ignored]
            found.add(inner)
    return found


def _whole(base: str, ceiling: str, *which: str) -> list[str]:
    """Folders of which git tracks nothing, or that it ignores, each named once for all that is in it."""
    answer = git(base, "ls-files", "-z", "--others", *which, "--directory", "--exclude-standard", ceiling=ceiling)
    return [name for name in os.fsdecode(answer.out).split("\0") if name.endswith("/")]
