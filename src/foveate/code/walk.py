"""Which files a repository has: a root in; files, what was set aside and why, and the commit out.

Git says what belongs to it: tracked files and untracked ones that nothing ignores, of submodules too. Where git cannot say
(no repository, not installed, refused, too slow) the folders are read instead, with the rules of every .gitignore. No file
is opened, no link followed, and no name, permission or odd kind of file stops a walk.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from unicodedata import category

from foveate.code.exclusions import (
    MANDATORY_REASONS,
    MAX_DATA_BYTES,
    REASON_FOVEATE_FILE,
    exclusion_by_dir,
    exclusion_by_name,
)
from foveate.code.git_files import MAX_CACHED_BYTES, GitResult, list_files, run_git
from foveate.code.model import Exclusion, FoundFile
from foveate.code.roles import role_of
from foveate.errors import InputError

MAX_FILES = 50_000
"""Indexable files. The Linux kernel has about 60,000 sources, nearly everything else far fewer."""

MAX_SCANNED_FILES = 1_000_000
"""Files that a walk without git looks at: a home directory or a disk is not a repository."""

MAX_EXCLUSIONS = 1_000
"""With more, they are summed up by top folder and reason, because nobody reads a longer list."""

MAX_IGNORE_CHARS = 200_000
"""Of one .gitignore: the rest of a longer one is not read."""

Matcher: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class WalkResult:
    """What a walk found, in order of the paths."""

    files: tuple[FoundFile, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    used_git: bool = False
    """Whether git listed the files."""
    head_commit: str = ""
    """The commit that is checked out; "" without one."""
    notes: tuple[str, ...] = ()
    """What a person should know: a submodule without files, git that refused."""


def walk(root: Path, include: Sequence[str] = (), exclude: Sequence[str] = (), max_files: int = MAX_FILES) -> WalkResult:
    """The files of a repository that are worth indexing.

    `include` and `exclude` are patterns in the syntax of .gitignore. `include` brings back what is ignored or set aside by
    default (not secrets, binaries and what is too large); `exclude` leaves out more, and wins.
    """
    base = os.path.abspath(root)
    if not os.path.isdir(base):
        return WalkResult(notes=(f"{base} is not a folder that can be read.",))
    walked = _Walk(base, tuple(include), tuple(exclude), matcher(include))
    by_git = walked.scan("")
    files, over = walked.files, len(walked.files) - max_files
    if over > 0:
        files = _most_important(walked, max_files)
        walked.notes.append(f"{over:,} files are over the limit of {max_files:,} and left out; raise max_files in [code].")
    files.sort(key=attrgetter("path"))
    head = os.fsdecode(run_git(base, "rev-parse", "-q", "--verify", "HEAD").stdout).strip() if by_git else ""
    return WalkResult(tuple(files), _summarize_exclusions(walked.exclusions), by_git, head, tuple(walked.notes))


def matcher(patterns: Sequence[str]) -> Matcher | None:
    """Whether a path matches patterns in the syntax of .gitignore; None without patterns, which nothing matches."""
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns).match_file
    except ValueError as error:
        raise InputError([f"A pattern of files cannot be read: {error}"]) from error


# --- sorting out -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ExclusionList:
    """What is set aside, and why."""

    paths: dict[str, str] = field(default_factory=dict)
    folders: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of folders that are set aside as a whole: folder and reason -> how many files."""

    def add(self, path: str, reason: str) -> None:
        """Take down a file, with its folder where that is the reason."""
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
    """What a walk has come across so far. Names are judged first, because most of what is set aside needs no more."""

    base: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    include_matcher: Matcher | None
    files: list[FoundFile] = field(default_factory=list)
    exclusions: _ExclusionList = field(default_factory=_ExclusionList)
    notes: list[str] = field(default_factory=list)

    def scan(self, prefix: str) -> bool:
        """Take down the files below a folder; whether git listed them."""
        answer = _list_with_git(self.base, prefix, self.include)
        if isinstance(answer, GitResult):
            for closed, why in _UNREADABLE_DIR.findall(answer.stderr):
                self.exclusions.paths[f"{_printable(prefix + closed)}/"] = why.lower()
            self._filter_paths(answer.stdout, prefix)
            return True
        if answer:
            self.notes.append(answer)
        names = _Scan(self.base, self.exclusions.paths, self.notes, self.include_matcher).names(prefix)
        self._filter_paths(os.fsencode("\0".join(names)), "")
        return False

    def _filter_paths(self, names: bytes, prefix: str) -> None:
        """Judge paths by their names, then what is left by what lies there."""
        judge = _filter_by_name_cached if len(names) <= MAX_CACHED_BYTES else _filter_by_name
        judged = judge(names, prefix, self.include, self.exclude)
        self.exclusions.add_all(judged.aside)
        nested, links = [], []
        before = len(self.files)
        lead, lstat, is_file = f"{self.base}/", os.lstat, stat.S_ISREG
        for path in judged.kept_paths:
            try:
                status = lstat(lead + path)
            except FileNotFoundError:  # tracked, but deleted
                continue
            except OSError as error:
                self.exclusions.paths[path] = _error_reason(error)
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
        if links:  # tracked files whose folder is now a link are not there any more
            behind = tuple(f"{link}/" for link in links)
            self.files[before:] = [found for found in self.files[before:] if not found.path.startswith(behind)]
        for path in nested:
            self._scan_nested_repository(f"{path}/")

    def _scan_nested_repository(self, prefix: str) -> None:
        """A submodule or another repository inside of this one."""
        if not os.path.lexists(f"{self.base}/{prefix}.git"):
            self.notes.append(f"The submodule {prefix} has no files: it is not initialised.")
        elif _is_worktree(f"{self.base}/{prefix}.git"):
            self.exclusions.paths[prefix] = "another worktree"
        else:
            self.scan(prefix)


class _NameFilterResult(NamedTuple):
    """What the names of files tell."""

    kept_paths: list[str]
    aside: _ExclusionList


def _filter_by_name(listed: bytes, prefix: str, include: tuple[str, ...], exclude: tuple[str, ...]) -> _NameFilterResult:
    """Paths that a zero byte ends, by their names alone."""
    names = dict.fromkeys(os.fsdecode(listed).split("\0"))
    names.pop("", None)
    paths = [prefix + name for name in names] if prefix else list(names)
    environments = tuple(path.removesuffix("pyvenv.cfg") for path in paths if path.endswith("/pyvenv.cfg"))
    wanted, unwanted = matcher(include), matcher(exclude)
    judged = _NameFilterResult([], _ExclusionList())
    for path in paths:
        if why := _unprintable(path):
            judged.aside.paths[_printable(path)] = why
        elif unwanted and unwanted(path):
            judged.aside.add(path, "excluded")
        elif reason := _unless_included(_by_name(path, environments), path, wanted):
            judged.aside.add(path, reason)
        else:
            judged.kept_paths.append(path)
    return judged


_filter_by_name_cached = lru_cache(maxsize=8)(_filter_by_name)
"""The same list comes again at every walk until a file is made."""


def _by_name(path: str, environments: tuple[str, ...]) -> str:
    """Why the name of a file speaks against it."""
    return exclusion_by_name(path, 0) or ("virtual environment" if environments and path.startswith(environments) else "")


def _unless_included(reason: str, path: str, include_matcher: Matcher | None) -> str:
    """The reason to set a file aside; none where it was asked for and may be."""
    return "" if reason and include_matcher and reason not in MANDATORY_REASONS and include_matcher(path) else reason


def _unprintable(path: str) -> str:
    """Why a name cannot stand in a line of text; spaces of other scripts can."""
    if path.isprintable():
        return ""
    kinds = {category(character) for character in path}
    if "Cs" in kinds:
        return "its name is not UTF-8"
    return "its name has control characters" if kinds & {"Cc", "Cf", "Zl", "Zp"} else ""


def _printable(path: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)


_ROLE_PRIORITY = {"source": 0, "test": 1, "config": 2, "docs": 2, "example": 3, "generated": 4, "vendored": 5, "data": 6}


OVER_LIMIT_REASON = "over the limit of"


def _most_important(walked: _Walk, limit: int) -> list[FoundFile]:
    """What was asked for first, then sources, those near the top before those deep down."""

    def place(found: FoundFile) -> tuple[bool, int, int, str]:
        asked = walked.include_matcher is not None and walked.include_matcher(found.path)
        return (not asked, _ROLE_PRIORITY[role_of(found.path)], found.path.count("/"), found.path)

    files = sorted(walked.files, key=place)
    over = Counter(found.path[: found.path.find("/") + 1] or "./" for found in files[limit:])
    for top, count in over.items():
        walked.exclusions.paths[top] = f"{OVER_LIMIT_REASON} {limit:,}, {count:,} file{'s' * (count > 1)}"
    return files[:limit]


def _summarize_exclusions(exclusions: _ExclusionList) -> tuple[Exclusion, ...]:
    """What was set aside, as a list that a person can read."""
    paths = exclusions.paths
    counts = Counter({pair: count for pair, count in exclusions.folders.items() if pair[1] != REASON_FOVEATE_FILE})
    if len(paths) > MAX_EXCLUSIONS:
        counts.update([(path[: path.find("/") + 1] or "./", why) for path, why in paths.items() if path[-1] != "/"])
        paths = {path: why for path, why in paths.items() if path[-1] == "/"}
    summed = [
        Exclusion(folder, f"{reason}, {count:,} file{'s' * (count > 1)}") for (folder, reason), count in counts.items()
    ]
    listed = [Exclusion(path, reason) for path, reason in paths.items()]
    return tuple(sorted(listed + summed, key=lambda entry: (entry.path, entry.reason)))


# --- by git ------------------------------------------------------------------------------------------------------------


def _list_with_git(base: str, prefix: str, include: Sequence[str]) -> GitResult | str:
    """Git's list of files, or why there is none: "" where there is no repository, which is nothing to speak of."""
    folder = f"{base}/{prefix}"
    ceiling = os.path.dirname(folder.rstrip("/")) if prefix else ""
    answer = list_files(folder, include, ceiling)
    if answer.code == 0:
        return answer if answer.stdout else ""
    if answer.code is not None and "not a git repository" in answer.stderr and not prefix:
        return ""
    said = answer.stderr.partition("\n")[0].removeprefix("fatal: ") or "git failed"
    return f"{prefix or 'The root'} is read without git: {said}."


_UNREADABLE_DIR = re.compile(r"could not open directory '(.*?)/?': (.+)")


def _is_worktree(mark: str) -> bool:
    """Whether a `.git` says that its folder is a linked worktree: a second copy of a repository that is indexed already."""
    try:
        if not os.path.isfile(mark):
            return False
        with open(mark, encoding="utf-8", errors="replace") as file:
            return os.path.basename(os.path.dirname(file.read(4096).strip())) == "worktrees"
    except OSError:
        return False


def _kind(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symbolic link"
    kinds = ((stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))
    return next((name for test, name in kinds if test(mode)), "not a regular file")


# --- without git -------------------------------------------------------------------------------------------------------

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
"""Folders that a build writes, told by the file beside them."""


@dataclass(frozen=True, slots=True)
class _Scan:
    """Reads folder by folder, the shallow ones first, each in order of its names."""

    base: str
    aside: dict[str, str]
    notes: list[str]
    wanted: Matcher | None

    def names(self, prefix: str) -> list[str]:
        """The paths of all files that no rule ignores."""
        paths: list[str] = []
        waiting = [(prefix, _add_gitignore((), prefix, f"{self.base}/{prefix}.git/info/exclude"), False)]
        for folder, rules, only_wanted in waiting:  # grows while it is read
            if len(paths) > MAX_SCANNED_FILES:
                self.notes.append(f"More than {MAX_SCANNED_FILES:,} files: the walk ended before {_printable(folder)}.")
                break
            entries = self._entries(folder)
            names = {entry.name for entry in entries}
            if folder != prefix and (reason := self._dir_exclusion(folder, names)):
                self.aside[_printable(folder)] = reason
                continue
            if ".gitignore" in names:
                rules = _add_gitignore(rules, folder, f"{self.base}/{folder}.gitignore")
            for entry in entries:
                path = folder + entry.name
                if entry.is_dir(follow_symlinks=False):
                    out = only_wanted or self._is_out(path, entry.name, names, rules)
                    if entry.name not in _VCS_DIRS and (self.wanted or not out):  # what was asked for can be anywhere
                        waiting.append((f"{path}/", rules, out))
                elif not (only_wanted or _is_ignored(rules, path, entry.name, "")) or (self.wanted and self.wanted(path)):
                    paths.append(path)
        return paths

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self.base}/{folder}") as found:
                return sorted(found, key=attrgetter("name"))
        except OSError as error:
            self.aside[_printable(folder) or "./"] = _error_reason(error)
            return []

    def _is_out(self, path: str, name: str, names: set[str], rules: _Rules) -> bool:
        """Whether a folder is ignored or set aside as a whole."""
        if name in _VCS_DIRS or _is_ignored(rules, path, name, "/"):
            return True
        reason = exclusion_by_dir(f"{path}/")[1] or self._build_output(path, name, names)
        if reason:
            self.aside[f"{_printable(path)}/"] = reason
        return bool(reason)

    def _build_output(self, path: str, name: str, sibling_names: set[str]) -> str:
        signs = _BUILD_DIRS.get(name, ())
        if any(
            sign in sibling_names or (sign[0] == "*" and any(other.endswith(sign[1:]) for other in sibling_names))
            for sign in signs
        ):
            return "" if os.path.exists(f"{self.base}/{path}/__init__.py") else "build output"
        return ""

    def _dir_exclusion(self, folder: str, names: set[str]) -> str:
        """Why nothing in this folder is looked at, as its names tell."""
        if "pyvenv.cfg" in names and not self.wanted:
            return "virtual environment"
        return "another worktree" if ".git" in names and _is_worktree(f"{self.base}/{folder}.git") else ""


def _error_reason(error: OSError) -> str:
    return (error.strerror or "not readable").lower()


@dataclass(frozen=True, slots=True)
class _GitIgnore:
    """One .gitignore. Each entry of a folder is asked about by itself, from the top down, as git does it.

    `pathspec` translates the patterns, but would also match everything below a folder that matches; that is right for a
    list of paths, and wrong under `!src/`. So a pattern without a slash sees the bare name, and one with slashes only
    paths of its own depth.
    """

    prefix_length: int
    """Length of the path of its folder."""
    rules: tuple[tuple[Any, int, float], ...]
    """Pattern, least and most depth (0: bare names), the last line first."""
    prefilter: re.Pattern[str]
    """Finds every name or path that any rule could match: most entries meet none."""

    def match(self, path: str, name: str, slash: str) -> bool | None:
        """Whether an entry is ignored; None if no rule is about it."""
        below = path[self.prefix_length :] + slash
        bare = name + slash
        if not self.prefilter.search(bare) and not self.prefilter.search(below):
            return None
        depth = below.count("/", 0, -1) + 1
        for pattern, least, most in self.rules:
            if pattern.match_file(bare if not most else below) and (not most or least <= depth <= most):
                return bool(pattern.include)
        return None


_Rules: TypeAlias = tuple[_GitIgnore, ...]
"""Those of the root first."""

_GROUP = re.compile(r"\(\?P<\w+>")


def _is_ignored(rules: _Rules, path: str, name: str, slash: str) -> bool:
    for file in reversed(rules):
        said = file.match(path, name, slash)
        if said is not None:
            return said
    return False


def _add_gitignore(rules: _Rules, folder: str, file: str) -> _Rules:
    """The rules with those of one more file, which go before them."""
    from pathspec import GitIgnoreSpec

    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return rules
        with open(file, encoding="utf-8-sig", errors="surrogateescape") as opened:
            lines = opened.read(MAX_IGNORE_CHARS).split("\n")
    except OSError:
        return rules
    found: list[tuple[Any, int, float]] = []
    for line in lines:
        try:
            found += [(pattern, *_depths(line)) for pattern in GitIgnoreSpec.from_lines([line]).patterns]
        except ValueError:  # git takes a broken pattern for one that matches nothing
            continue
    found = [rule for rule in found if rule[0].include is not None]
    if not found:
        return rules
    quick = re.compile("|".join(f"(?:{_GROUP.sub('(?:', rule[0].regex.pattern)})" for rule in found))
    return (*rules, _GitIgnore(len(folder), tuple(reversed(found)), quick))


def _depths(line: str) -> tuple[int, float]:
    """The least and the most parts that a path has which a pattern matches; 0 for one that matches names anywhere."""
    core = line.strip().removeprefix("!").rstrip("/")
    if core.startswith("**/") and "/" not in core[3:]:
        return 0, 0
    if "/" not in core:
        return 0, 0
    parts = core.strip("/").split("/")
    least = sum(part != "**" for part in parts) + (parts[-1] == "**")
    return least, inf if "**" in parts else least
