"""What git remembers of each file: a root and a commit in; when, how often and with which others files changed, out.

One `git log`, bounded by commits and time. Times count back from the newest commit, not from now, so that the same commit
always gives the same answer. Without git, or without commits, everything is empty; nothing raises.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from foveate.code.git_files import run_git

MAX_COMMITS = 1000
"""Older ones say little about what belongs together today."""

MAX_FILES_CO_CHANGED = 30
"""Files in a commit that still belong together: larger ones rename, reformat or import."""

MAX_FILES_PER_COMMIT = 1000
"""A commit over more files says nothing about any of them, and would fill the index."""

HALF_LIFE_S = 180 * 86_400
"""Seconds after which a commit counts half: about the time in which half of the files under work are others."""

GIT_TIMEOUT_S = 20.0

Commit = tuple[int, tuple[str, ...]]
"""Seconds since 1970, and the paths that it touched."""


@dataclass(frozen=True, slots=True)
class GitHistory:
    """The commits of a repository, newest first, and what follows from them."""

    commits: tuple[Commit, ...] = ()
    last_commit_time: Mapping[str, int] = field(init=False, compare=False, repr=False)
    """Path -> time of its last commit, in seconds since 1970. Files that nobody touched lately are not in it."""
    weighted_changes: Mapping[str, float] = field(init=False, compare=False, repr=False)
    """Path -> number of its commits, each of them halved by every HALF_LIFE_S before the newest."""
    _commits_by_path: Mapping[str, list[int]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        last: dict[str, int] = {}
        changes: defaultdict[str, float] = defaultdict(float)
        of: defaultdict[str, list[int]] = defaultdict(list)
        for number, (time, paths) in enumerate(self.commits):
            weight = self._weight(time)
            for path in paths:
                last[path] = max(time, last.get(path, 0))
                changes[path] += weight
                of[path].append(number)
        for name, value in (("last_commit_time", last), ("weighted_changes", dict(changes)), ("_commits_by_path", dict(of))):
            object.__setattr__(self, name, value)

    def co_changed(self, path: str) -> dict[str, float]:
        """Files that changed in the same commits, each with the share of this file's commits that it had, 0..1.

        A commit counts less the older it is and the more files it has. One is added to what a share is taken of, because
        a single commit is no habit.
        """
        found: defaultdict[str, float] = defaultdict(float)
        total = 1.0
        for number in self._commits_by_path.get(path, ()):
            time, paths = self.commits[number]
            weight = self._weight(time)
            total += weight
            if len(paths) <= MAX_FILES_CO_CHANGED:
                for other in paths:
                    found[other] += weight / max(1, len(paths) - 1)
        found.pop(path, None)
        return {other: weight / total for other, weight in sorted(found.items(), key=lambda item: (-item[1], item[0]))}

    def churn(self, path: str) -> float:
        """How much a file changes these days, 0..1: half of it at two recent commits."""
        changes = self.weighted_changes.get(path, 0.0)
        return changes / (changes + 2.0)

    def _weight(self, time: int) -> float:
        newest = max(self.commits[0][0], time)
        return float(0.5 ** ((newest - time) / HALF_LIFE_S))

    def dumps(self) -> bytes:
        """As compact JSON: every path once, commits as the places of their paths."""
        paths = sorted({path for _, touched in self.commits for path in touched})
        place = {path: at for at, path in enumerate(paths)}
        commits = [[time, *(place[path] for path in touched)] for time, touched in self.commits]
        return json.dumps({"paths": paths, "commits": commits}, separators=(",", ":"), ensure_ascii=False).encode()


def loads(data: bytes) -> GitHistory:
    """A history from what `dumps` wrote; an empty one from anything else, because it can be read from git again."""
    try:
        kept: Any = json.loads(data)
        paths = kept["paths"]
        return GitHistory(tuple((int(time), tuple(str(paths[at]) for at in places)) for time, *places in kept["commits"]))
    except (ValueError, KeyError, IndexError, TypeError):
        return GitHistory()


def read_git_history(root: Path, head: str, limit: int = MAX_COMMITS) -> GitHistory:
    """The last commits before and at `head` that touched files below `root`."""
    if not head.isalnum():  # no commit, or something that git would take for an option
        return GitHistory()
    answer = run_git(
        os.path.abspath(root), "log", "-z", "--no-merges", "--name-only", "--no-renames", "--relative", f"-n{limit:d}",
        "--format=%x01%ct %P", head, "--", ".", seconds=GIT_TIMEOUT_S,
    )  # fmt: skip
    return GitHistory(tuple(_commits(os.fsdecode(answer.stdout).split("\x01")[1:]))) if answer.code == 0 else GitHistory()


def _commits(entries: Iterable[str]) -> Iterable[Commit]:
    for entry in entries:
        said, *names = entry.split("\0")
        time, _, parents = said.partition(" ")
        # Without parents: an import, or the edge of a shallow clone, where every file seems to be new.
        paths = tuple(sorted({name for name in (name.lstrip("\n") for name in names) if name and name.isprintable()}))
        if parents and paths and len(paths) <= MAX_FILES_PER_COMMIT and time.isdigit():
            yield int(time), paths
