"""Reads the folders of a repository without git, with the rules of every .gitignore."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Any, TypeAlias

from foveate.code.exclusions import error_reason, exclusion_by_dir

MAX_SCANNED_FILES = 1_000_000
"""Maximum number of files that a walk without git reads: a home directory or a disk is not a repository."""

MAX_IGNORE_CHARS = 200_000
"""The rest of a longer .gitignore is not read."""

Matcher: TypeAlias = Callable[[str], bool]

_VCS_DIRS = frozenset((".git", ".hg", ".svn", ".bzr", "CVS", ".jj", ".foveate"))
_BUILD_DIRS = {
    "build": ("setup.py", "pyproject.toml", "package.json", "build.gradle", "build.gradle.kts", "CMakeLists.txt"),
    "dist": ("setup.py", "pyproject.toml", "package.json"),
    "out": ("package.json", "build.gradle", "CMakeLists.txt", "foundry.toml"),
    "target": ("Cargo.toml", "pom.xml", "build.sbt"),
    "_build": ("mix.exs", "dune-project", "conf.py"),
    "bin": ("*.csproj",),
    "obj": ("*.csproj",),
}
"""Folders that a build writes, if one of these files is next to them."""


@dataclass(frozen=True, slots=True)
class FolderScan:
    """Reads folders breadth first, each in order of its names."""

    base: str
    exclusions: dict[str, str]
    """Paths with the reasons why they are excluded. The scan adds to it."""
    notes: list[str]
    include_matcher: Matcher | None
    max_depth: float = inf
    max_files: int = MAX_SCANNED_FILES

    def paths(self, prefix: str) -> list[str]:
        """Return the paths of all files that no rule ignores."""
        paths: list[str] = []
        queue = [(prefix, _add_gitignore((), prefix, f"{self.base}/{prefix}.git/info/exclude"), False)]
        for folder, rules, only_included in queue:  # grows while it is read
            if len(paths) > self.max_files:
                self.notes.append(f"More than {self.max_files:,} files: the walk ended before {printable(folder)}.")
                break
            entries = self._entries(folder)
            names = {entry.name for entry in entries}
            if folder != prefix and (reason := self._dir_exclusion(folder, names)):
                self.exclusions[printable(folder)] = reason
                continue
            if ".gitignore" in names:
                rules = _add_gitignore(rules, folder, f"{self.base}/{folder}.gitignore")
            for entry in entries:
                path = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    is_excluded = only_included or self._is_dir_excluded(path, entry.name, names, rules)
                    # With `include`, excluded folders are read as well: an included file can be anywhere.
                    is_read = entry.name not in _VCS_DIRS and path.count("/") + 1 < self.max_depth
                    if is_read and (self.include_matcher or not is_excluded):
                        queue.append((f"{path}/", rules, is_excluded))
                    continue
                is_ignored = only_included or _is_ignored(rules, path, entry.name, "")
                if not is_ignored or (self.include_matcher and self.include_matcher(path)):
                    paths.append(path)
        return paths

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self.base}/{folder}") as entries:
                return sorted(entries, key=attrgetter("name"))
        except OSError as error:
            self.exclusions[printable(folder) or "./"] = error_reason(error)
            return []

    def _is_dir_excluded(self, path: str, name: str, names: set[str], rules: _Rules) -> bool:
        """Return whether a folder is ignored or excluded as a whole."""
        if name in _VCS_DIRS or _is_ignored(rules, path, name, "/"):
            return True
        reason = exclusion_by_dir(f"{path}/")[1] or self._build_output(path, name, names)
        if reason:
            self.exclusions[f"{printable(path)}/"] = reason
        return bool(reason)

    def _build_output(self, path: str, name: str, sibling_names: set[str]) -> str:
        markers = _BUILD_DIRS.get(name, ())
        if any(
            marker in sibling_names or (marker[0] == "*" and any(sibling.endswith(marker[1:]) for sibling in sibling_names))
            for marker in markers
        ):
            return "" if os.path.exists(f"{self.base}/{path}/__init__.py") else "build output"
        return ""

    def _dir_exclusion(self, folder: str, names: set[str]) -> str:
        """Return the reason why a folder is excluded by the names of its entries, or ""."""
        if "pyvenv.cfg" in names and not self.include_matcher:
            return "virtual environment"
        return "another worktree" if ".git" in names and is_worktree(f"{self.base}/{folder}.git") else ""


@dataclass(frozen=True, slots=True)
class _GitIgnore:
    """The rules of one .gitignore. As in git, each entry of a folder is matched by itself, from the top down.

    `pathspec` translates the patterns. It also matches everything below a folder that matches, which is right for a list of
    paths and wrong under `!src/`. So a pattern without a slash is matched with the bare name, and one with slashes only with
    paths of its own depth.
    """

    prefix_length: int
    """Length of the path of the folder that it is in."""
    rules: tuple[tuple[Any, int, float], ...]
    """Patterns with their minimum and maximum depth (0 for bare names), the last line first."""
    prefilter: re.Pattern[str]
    """Finds every name or path that any rule could match. Most entries match none."""

    def match(self, path: str, name: str, slash: str) -> bool | None:
        """Return whether an entry is ignored, or None if no rule matches it."""
        relative = path[self.prefix_length :] + slash
        bare = name + slash
        if not self.prefilter.search(bare) and not self.prefilter.search(relative):
            return None
        depth = relative.count("/", 0, -1) + 1
        for pattern, min_depth, max_depth in self.rules:
            if pattern.match_file(bare if not max_depth else relative) and (
                not max_depth or min_depth <= depth <= max_depth
            ):
                return bool(pattern.include)
        return None


_Rules: TypeAlias = tuple[_GitIgnore, ...]
"""The rules of each .gitignore above a folder, the root's first."""

_GROUP = re.compile(r"\(\?P<\w+>")


def _is_ignored(rules: _Rules, path: str, name: str, slash: str) -> bool:
    for file in reversed(rules):
        is_match = file.match(path, name, slash)
        if is_match is not None:
            return is_match
    return False


def _add_gitignore(rules: _Rules, folder: str, file: str) -> _Rules:
    """Return the rules with those of one more file, which take precedence."""
    from pathspec import GitIgnoreSpec

    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return rules
        with open(file, encoding="utf-8-sig", errors="surrogateescape") as stream:
            lines = stream.read(MAX_IGNORE_CHARS).split("\n")
    except OSError:
        return rules
    patterns: list[tuple[Any, int, float]] = []
    for line in lines:
        try:
            patterns += [(pattern, *_depths(line)) for pattern in GitIgnoreSpec.from_lines([line]).patterns]
        except ValueError:  # for git an invalid pattern matches nothing
            continue
    patterns = [rule for rule in patterns if rule[0].include is not None]
    if not patterns:
        return rules
    prefilter = re.compile("|".join(f"(?:{_GROUP.sub('(?:', rule[0].regex.pattern)})" for rule in patterns))
    return (*rules, _GitIgnore(len(folder), tuple(reversed(patterns)), prefilter))


def _depths(line: str) -> tuple[int, float]:
    """Return the minimum and maximum number of parts of a path that a pattern matches; 0 if it matches bare names."""
    pattern = line.strip().removeprefix("!").rstrip("/")
    if pattern.startswith("**/") and "/" not in pattern[3:]:
        return 0, 0
    if "/" not in pattern:
        return 0, 0
    parts = pattern.strip("/").split("/")
    min_depth = sum(part != "**" for part in parts) + (parts[-1] == "**")
    return min_depth, inf if "**" in parts else min_depth


def printable(path: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


def is_worktree(mark: str) -> bool:
    """Return whether a `.git` file belongs to a linked worktree: another copy of a repository that is indexed already."""
    try:
        if not os.path.isfile(mark):
            return False
        with open(mark, encoding="utf-8", errors="replace") as file:
            return os.path.basename(os.path.dirname(file.read(4096).strip())) == "worktrees"
    except OSError:
        return False
