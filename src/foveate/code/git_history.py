"""Reads from git when and how often files changed, and which files changed together.

This runs one `git log`, bounded by commits and time. Ages are measured from the newest commit and not from now, so that the
same commit always gives the same result. Without git or without commits the history is empty; nothing raises.
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
"""Older commits say little about which files belong together today."""

MAX_FILES_CO_CHANGED = 30
"""Files of a larger commit do not belong together: it renames, reformats or imports."""

MAX_FILES_PER_COMMIT = 1000
"""A larger commit is ignored: it says nothing about any of its files and would fill the index."""

HALF_LIFE_S = 180 * 86_400
"""Age at which a commit counts half. In about this time half of the files that are worked on change."""

GIT_TIMEOUT_S = 20.0

Commit = tuple[int, tuple[str, ...]]
"""Seconds since 1970, and the paths that the commit changed."""


@dataclass(frozen=True, slots=True)
class GitHistory:
    """The commits of a repository, the newest first, and figures derived from them."""

    commits: tuple[Commit, ...] = ()
    last_commit_time: Mapping[str, int] = field(init=False, compare=False, repr=False)
    """Time of the last commit of each path, in seconds since 1970. Files without recent commits are missing."""
    weighted_changes: Mapping[str, float] = field(init=False, compare=False, repr=False)
    """Number of commits of each path, each weighted by its age."""
    _commits_by_path: Mapping[str, list[int]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        last_commit_time: dict[str, int] = {}
        weighted_changes: defaultdict[str, float] = defaultdict(float)
        commits_by_path: defaultdict[str, list[int]] = defaultdict(list)
        for number, (time, paths) in enumerate(self.commits):
            weight = self._weight(time)
            for path in paths:
                last_commit_time[path] = max(time, last_commit_time.get(path, 0))
                weighted_changes[path] += weight
                commits_by_path[path].append(number)
        for name, value in (
            ("last_commit_time", last_commit_time),
            ("weighted_changes", dict(weighted_changes)),
            ("_commits_by_path", dict(commits_by_path)),
        ):
            object.__setattr__(self, name, value)

    def co_changed(self, path: str) -> dict[str, float]:
        """Return the files that changed in the same commits, each with its share of this file's commits, 0..1.

        A commit counts less the older it is and the more files it has. One is added to the number of commits, because a
        single common commit is not a habit.
        """
        weights: defaultdict[str, float] = defaultdict(float)
        total = 1.0
        for number in self._commits_by_path.get(path, ()):
            time, paths = self.commits[number]
            weight = self._weight(time)
            total += weight
            if len(paths) <= MAX_FILES_CO_CHANGED:
                for other in paths:
                    weights[other] += weight / max(1, len(paths) - 1)
        weights.pop(path, None)
        return {other: weight / total for other, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0]))}

    def churn(self, path: str) -> float:
        """Return how often a file changes, 0..1. Two recent commits give one half."""
        changes = self.weighted_changes.get(path, 0.0)
        return changes / (changes + 2.0)

    def _weight(self, time: int) -> float:
        newest = max(self.commits[0][0], time)
        return float(0.5 ** ((newest - time) / HALF_LIFE_S))

    def dumps(self) -> bytes:
        """Return compact JSON that contains every path once."""
        paths = sorted({path for _, changed in self.commits for path in changed})
        position = {path: number for number, path in enumerate(paths)}
        commits = [[time, *(position[path] for path in changed)] for time, changed in self.commits]
        return json.dumps({"paths": paths, "commits": commits}, separators=(",", ":"), ensure_ascii=False).encode()


def loads(data: bytes) -> GitHistory:
    """Return the history that `dumps` wrote. Other data give an empty one, because it can be read from git again."""
    try:
        document: Any = json.loads(data)
        paths = document["paths"]
        return GitHistory(
            tuple((int(time), tuple(str(paths[number]) for number in numbers)) for time, *numbers in document["commits"])
        )
    except (ValueError, KeyError, IndexError, TypeError):
        return GitHistory()


def read_git_history(root: Path, head: str, limit: int = MAX_COMMITS) -> GitHistory:
    """Return the last commits up to `head` that changed files below `root`."""
    if not head.isalnum():  # not a commit; git would read it as an option
        return GitHistory()
    answer = run_git(
        os.path.abspath(root), "log", "-z", "--no-merges", "--name-only", "--no-renames", "--relative", f"-n{limit:d}",
        "--format=%x01%ct %P", head, "--", ".", seconds=GIT_TIMEOUT_S,
    )  # fmt: skip
    return GitHistory(tuple(_commits(os.fsdecode(answer.stdout).split("\x01")[1:]))) if answer.code == 0 else GitHistory()


def _commits(entries: Iterable[str]) -> Iterable[Commit]:
    for entry in entries:
        header, *names = entry.split("\0")
        time, _, parents = header.partition(" ")
        # A commit without parents is an import or the end of a shallow clone, in which every file seems new.
        paths = tuple(sorted({name for name in (name.lstrip("\n") for name in names) if name and name.isprintable()}))
        if parents and paths and len(paths) <= MAX_FILES_PER_COMMIT and time.isdigit():
            yield int(time), paths
