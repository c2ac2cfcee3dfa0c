"""Lists the files of a repository that are worth indexing, and the excluded ones with reasons.

Git decides which files belong to the repository: tracked files, and untracked ones that are not ignored, in submodules too.
Without an answer from git (no repository, not installed, refused, too slow) the folders are read, with the rules of every
.gitignore. No file is opened and no link is followed. No name, permission or unusual kind of file stops a walk.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple
from unicodedata import category

from foveate.code.exclusions import (
    MANDATORY_REASONS,
    MAX_DATA_BYTES,
    REASON_FOVEATE_FILE,
    error_reason,
    exclusion_by_dir,
    exclusion_by_name,
)
from foveate.code.folder_scan import FolderScan, Matcher, is_worktree, printable
from foveate.code.git_files import MAX_CACHED_BYTES, GitResult, list_files
from foveate.code.model import Exclusion, FoundFile
from foveate.code.roles import role_of
from foveate.errors import InputError
from foveate.text.format import pluralize

MAX_FILES = 50_000
"""Maximum number of indexed files. The Linux kernel has about 60,000 sources, nearly everything else far fewer."""

MAX_EXCLUSIONS = 1_000
"""More exclusions are summarized by top folder and reason, because people do not read a longer list."""


@dataclass(frozen=True, slots=True)
class WalkResult:
    """The result of a walk, sorted by path."""

    files: tuple[FoundFile, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    used_git: bool = False
    """Whether git listed the files."""
    notes: tuple[str, ...] = ()
    """Warnings for people: a submodule without files, an error of git."""


def walk(root: Path, include: Sequence[str] = (), exclude: Sequence[str] = (), max_files: int = MAX_FILES) -> WalkResult:
    """Return the files of a repository that are worth indexing.

    `include` and `exclude` are patterns in the syntax of .gitignore. `include` adds files that are ignored or excluded by
    default, but no secrets, binaries and files that are too large. `exclude` removes files and overrides `include`.
    """
    base = os.path.abspath(root)
    if not os.path.isdir(base):
        return WalkResult(notes=(f"{base} is not a folder that can be read.",))
    state = _Walk(base, tuple(include), tuple(exclude), matcher(include))
    used_git = state.scan("")
    files, excess = state.files, len(state.files) - max_files
    if excess > 0:
        files = _most_important(state, max_files)
        state.notes.append(f"{excess:,} files are over the limit of {max_files:,} and left out; raise max_files in [code].")
    files.sort(key=attrgetter("path"))
    return WalkResult(tuple(files), _summarize_exclusions(state.exclusions), used_git, tuple(state.notes))


def matcher(patterns: Sequence[str]) -> Matcher | None:
    """Return a function that matches paths with patterns in the syntax of .gitignore, or None if there are no patterns."""
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns).match_file
    except ValueError as error:
        raise InputError([f"Invalid file pattern: {error}"]) from error


# --- filtering ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ExclusionList:
    """The excluded files with their reasons."""

    paths: dict[str, str] = field(default_factory=dict)
    folders: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of files by excluded folder and reason."""

    def add(self, path: str, reason: str) -> None:
        """Add a file. If its folder is the reason, the folder is counted instead."""
        folder = exclusion_by_dir(path)
        if folder[1] == reason:
            self.folders[folder] += 1
        else:
            self.paths[path] = reason

    def add_all(self, others: _ExclusionList) -> None:
        self.paths.update(others.paths)
        self.folders.update(others.folders)


@dataclass(slots=True)
class _Walk:
    """The state of a walk. Files are filtered by name first, because most exclusions need nothing else."""

    base: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    include_matcher: Matcher | None
    files: list[FoundFile] = field(default_factory=list)
    exclusions: _ExclusionList = field(default_factory=_ExclusionList)
    notes: list[str] = field(default_factory=list)

    def scan(self, prefix: str) -> bool:
        """Add the files below a folder. Returns whether git listed them."""
        listing = _list_with_git(self.base, prefix, self.include)
        if isinstance(listing, GitResult):
            for folder, error in _UNREADABLE_DIR.findall(listing.stderr):
                self.exclusions.paths[f"{printable(prefix + folder)}/"] = error.lower()
            self._filter_paths(listing.stdout, prefix)
            return True
        if listing:
            self.notes.append(listing)
        names = FolderScan(self.base, self.exclusions.paths, self.notes, self.include_matcher).paths(prefix)
        self._filter_paths(os.fsencode("\0".join(names)), "")
        return False

    def _filter_paths(self, names: bytes, prefix: str) -> None:
        """Filter paths by their names, then the remaining ones by their size and kind."""
        filter_names = _filter_by_name_cached if len(names) <= MAX_CACHED_BYTES else _filter_by_name
        filtered = filter_names(names, prefix, self.include, self.exclude)
        self.exclusions.add_all(filtered.exclusions)
        nested, links = [], []
        first_new = len(self.files)
        lead, lstat, is_file = f"{self.base}/", os.lstat, stat.S_ISREG
        for path in filtered.kept_paths:
            try:
                status = lstat(lead + path)
            except FileNotFoundError:  # tracked, but deleted
                continue
            except OSError as error:
                self.exclusions.paths[path] = error_reason(error)
                continue
            size = status.st_size
            if not is_file(status.st_mode):
                if stat.S_ISDIR(status.st_mode):
                    nested.append(path.rstrip("/"))
                else:
                    links.append(path)
                    self.exclusions.paths[path] = _kind(status.st_mode)
            elif size > MAX_DATA_BYTES and (
                reason := _unless_included(exclusion_by_name(path, size), path, self.include_matcher)
            ):
                self.exclusions.add(path, reason)
            else:
                self.files.append(FoundFile(path, size, status.st_mtime_ns))
        if links:  # a tracked file below a folder that is now a link no longer exists
            prefixes = tuple(f"{link}/" for link in links)
            self.files[first_new:] = [file for file in self.files[first_new:] if not file.path.startswith(prefixes)]
        for path in nested:
            self._scan_nested_repository(f"{path}/")

    def _scan_nested_repository(self, prefix: str) -> None:
        """Add the files of a submodule or of another repository inside this one."""
        if not os.path.lexists(f"{self.base}/{prefix}.git"):
            self.notes.append(f"The submodule {prefix} has no files: it is not initialised.")
        elif is_worktree(f"{self.base}/{prefix}.git"):
            self.exclusions.paths[prefix] = "another worktree"
        else:
            self.scan(prefix)


class _NameFilterResult(NamedTuple):
    """The result of filtering paths by their names."""

    kept_paths: list[str]
    exclusions: _ExclusionList


def _filter_by_name(listing: bytes, prefix: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> _NameFilterResult:
    """Filter a list of paths, each with a zero byte at its end, by their names."""
    names = dict.fromkeys(os.fsdecode(listing).split("\0"))
    names.pop("", None)
    paths = [prefix + name for name in names] if prefix else list(names)
    environments = tuple(path.removesuffix("pyvenv.cfg") for path in paths if path.endswith("/pyvenv.cfg"))
    included, excluded = matcher(include), matcher(exclude)
    result = _NameFilterResult([], _ExclusionList())
    for path in paths:
        if reason := _unprintable(path):
            result.exclusions.paths[printable(path)] = reason
        elif excluded and excluded(path):
            result.exclusions.add(path, "excluded")
        elif reason := _unless_included(_by_name(path, environments), path, included):
            result.exclusions.add(path, reason)
        else:
            result.kept_paths.append(path)
    return result


_filter_by_name_cached = lru_cache(maxsize=8)(_filter_by_name)
"""The list is the same at every walk until a file is created or removed."""


def _by_name(path: str, environments: tuple[str, ...]) -> str:
    """Return the reason why a file is excluded by its name, or ""."""
    return exclusion_by_name(path, 0) or ("virtual environment" if environments and path.startswith(environments) else "")


def _unless_included(reason: str, path: str, include_matcher: Matcher | None) -> str:
    """Return the reason of an exclusion, or "" if `include` overrides it."""
    return "" if reason and include_matcher and reason not in MANDATORY_REASONS and include_matcher(path) else reason


def _unprintable(path: str) -> str:
    """Return the reason why a name cannot be shown in a line of text, or "". Spaces of other scripts can."""
    if path.isprintable():
        return ""
    kinds = {category(character) for character in path}
    if "Cs" in kinds:
        return "its name is not UTF-8"
    return "its name has control characters" if kinds & {"Cc", "Cf", "Zl", "Zp"} else ""


_ROLE_PRIORITY = {"source": 0, "test": 1, "config": 2, "docs": 2, "example": 3, "generated": 4, "vendored": 5, "data": 6}
"""The order in which files are kept if there are too many."""

OVER_LIMIT_REASON = "over the limit of"


def _most_important(state: _Walk, limit: int) -> list[FoundFile]:
    """Return the most important files: included ones first, then by role, then by depth."""

    def priority(file: FoundFile) -> tuple[bool, int, int, str]:
        is_included = state.include_matcher is not None and state.include_matcher(file.path)
        return (not is_included, _ROLE_PRIORITY[role_of(file.path)], file.path.count("/"), file.path)

    files = sorted(state.files, key=priority)
    excess = Counter(file.path[: file.path.find("/") + 1] or "./" for file in files[limit:])
    for folder, count in excess.items():
        state.exclusions.paths[folder] = f"{OVER_LIMIT_REASON} {limit:,}, {pluralize(count, 'file')}"
    return files[:limit]


def _summarize_exclusions(exclusions: _ExclusionList) -> tuple[Exclusion, ...]:
    """Return the exclusions as a list of readable length."""
    paths = exclusions.paths
    counts = Counter({key: count for key, count in exclusions.folders.items() if key[1] != REASON_FOVEATE_FILE})
    if len(paths) > MAX_EXCLUSIONS:
        counts.update([(path[: path.find("/") + 1] or "./", reason) for path, reason in paths.items() if path[-1] != "/"])
        paths = {path: reason for path, reason in paths.items() if path[-1] == "/"}
    summaries = [Exclusion(folder, f"{reason}, {pluralize(count, 'file')}") for (folder, reason), count in counts.items()]
    single = [Exclusion(path, reason) for path, reason in paths.items()]
    return tuple(sorted(single + summaries, key=lambda entry: (entry.path, entry.reason)))


# --- by git ------------------------------------------------------------------------------------------------------------


def _list_with_git(base: str, prefix: str, include: Sequence[str]) -> GitResult | str:
    """Return git's list of files, or a note why there is none. The note is "" if the folder is not in a repository."""
    folder = f"{base}/{prefix}"
    ceiling = os.path.dirname(folder.rstrip("/")) if prefix else ""
    result = list_files(folder, include, ceiling)
    if result.code == 0:
        return result if result.stdout else ""
    if result.code is not None and "not a git repository" in result.stderr and not prefix:
        return ""
    error = result.stderr.partition("\n")[0].removeprefix("fatal: ") or "git failed"
    return f"{prefix or 'The root'} is read without git: {error}."


_UNREADABLE_DIR = re.compile(r"could not open directory '(.*?)/?': (.+)")


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symbolic link"
    kinds = ((stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))
    return next((name for test, name in kinds if test(mode)), "not a regular file")
