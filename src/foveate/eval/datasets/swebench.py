"""SWE-bench: from an issue to the code that its fix changed.

`instances.jsonl` holds one issue a line: `repo` and `base_commit`, the `problem_statement`, and what the fix changed:
`gold_files_py`, `gold_functions` (`path::Class.method`) and `edits` (`path`, `deleted_lines`, `insert_after`; lines of the
old file). The question is the raw text of the issue; candidates are all Python files that are not tests. What a fix makes
anew cannot be found before: it is no evidence.

Repositories are read at the base commit from bare ones that the user has. A checkout is made for each repository, knows its
past and not its future, and moves from issue to issue.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

from foveate.errors import InputError, NotFound
from foveate.eval.evidence import File, Lines, named
from foveate.eval.locks import lock
from foveate.eval.model import Case, Evidence, Rendered, Scene, Suite, World
from foveate.eval.python_files import Function, candidates, functions, text
from foveate.eval.reading import cache_folder, find, lines, strings, whole

NEEDED = ("instance_id", "repo", "base_commit", "problem_statement", "gold_files_py", "gold_functions")


# --- evidence ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Head:
    """A function that is at least named: its path, and the line with `def`; spaces do not matter."""

    id: str
    path: str
    heads: tuple[str, ...]
    what: str = "named"

    def stands(self, rendered: Rendered) -> bool:
        return named(self.path, rendered.text) and any(head in _closed(rendered.text) for head in self.heads)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, known by the line before or after it: `return None` alone could be any."""

    id: str
    path: str
    pairs: tuple[tuple[str, str], ...]
    what: str = "line"

    def stands(self, rendered: Rendered) -> bool:
        return named(self.path, rendered.text) and any(pair in _pairs(rendered.text) for pair in self.pairs)


@lru_cache(maxsize=4)
def _closed(shown: str) -> str:
    return "".join(shown.split())


@lru_cache(maxsize=4)
def _pairs(shown: str) -> frozenset[tuple[str, str]]:
    """Each line with the next one, blank ones left out, without indentation and numbers."""
    plain = [_unnumbered(line).strip() for line in shown.split("\n")]
    kept = [line for line in plain if line]
    return frozenset(pairwise(kept))


def _unnumbered(line: str) -> str:
    number, bar, rest = line.partition("|")
    return rest if bar and number.strip().isdigit() else line


# --- issues --------------------------------------------------------------------------------------------------------


def files(path: Path) -> list[Path]:
    """The issues. Each names its base commit, which stands for the repository's files."""
    return [find(path, "swebench", "instances.jsonl", "swebench*.jsonl")]


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    (file,) = files(path)
    issues = _issues(file)
    repos = _repositories(options)
    folder = Path(options["checkouts"]) if "checkouts" in options else cache_folder("swebench")
    for issue in _chosen(issues, options):
        yield World(issue["instance_id"], partial(_scene, issue, repos, folder))


def _issues(path: Path) -> list[dict[str, Any]]:
    """By repository and date, so that a checkout moves through its history in one direction; those with gold only."""
    found = []
    for n, issue in lines(path):
        if not isinstance(issue, dict) or (absent := [name for name in NEEDED if name not in issue]):
            said = f"has no {absent[0]!r}" if isinstance(issue, dict) else "is no object"
            raise InputError(f"{str(path)!r}, line {n}, {said}; an issue has {', '.join(NEEDED)}.")
        for name in ("gold_files_py", "gold_functions"):
            strings(issue[name], f"{str(path)!r}, line {n}, {name!r}")
        if issue["gold_files_py"]:
            found.append(issue)
    return sorted(found, key=lambda issue: (issue["repo"], str(issue.get("created_at", "")), issue["instance_id"]))


def _chosen(issues: Sequence[dict[str, Any]], options: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    names = [name for name in options.get("only", "").split(",") if name]
    each = whole(options.get("each", "0"), "each")
    for repo, group in groupby(issues, key=lambda issue: str(issue["repo"])):
        if not names or any(name in repo for name in names):
            all_of_it = list(group)
            step = max(1.0, len(all_of_it) / each) if each else 1.0
            yield from (all_of_it[int(n * step)] for n in range(min(len(all_of_it), each or len(all_of_it))))


def _scene(issue: Mapping[str, Any], repos: Path, folder: Path) -> Scene:
    root = checkout(issue["repo"], issue["base_commit"], repos, folder)
    gold = [path for path in issue["gold_files_py"] if (root / path).is_file()]
    if not gold:
        return Scene([], skipped=1)
    wanted: list[Evidence] = [File(path) for path in gold]
    for name in issue["gold_functions"]:
        path, _, function = name.partition("::")
        if found := [one for one in _functions_of(root, path) if one.name == function]:
            wanted.append(Lines(name, path, tuple(one.source for one in found)))
            wanted.append(Head(name, path, tuple(_closed(one.source.split("\n")[0]).rstrip(":") for one in found)))
    for path, numbers in _edits(issue):
        if path in gold:
            wanted += _edited(path, numbers, text(root, path).split("\n"))
    case = Case(
        issue["instance_id"],
        issue["problem_statement"],
        tuple(wanted),
        type="one file" if len(gold) == 1 else "several files",
    )
    return Scene([case], root=root, files=candidates(root))


def _edits(issue: Mapping[str, Any]) -> list[tuple[str, list[int]]]:
    try:
        edits = issue.get("edits", ())
        return [(str(edit["path"]), sorted({*edit["deleted_lines"], *edit["insert_after"]})) for edit in edits]
    except (KeyError, TypeError):
        raise InputError(
            f"{issue['instance_id']!r}: each of its edits has a path, deleted_lines and insert_after, lists of line numbers."
        ) from None


def _functions_of(root: Path, path: str) -> tuple[Function, ...]:
    return functions(text(root, path)) if (root / path).is_file() else ()


def _edited(path: str, numbers: Sequence[int], source: Sequence[str]) -> Iterator[Line]:
    """The lines that a fix takes out or adds to, blank ones left out."""
    kept = [n for n, line in enumerate(source, 1) if line.strip()]
    places = {n: place for place, n in enumerate(kept)}
    for n in numbers:
        if n in places:
            around = [source[m - 1].strip() for m in kept[max(0, places[n] - 1) : places[n] + 2]]
            yield Line(f"{path}:{n}", path, tuple(pairwise(around)))


# --- repositories --------------------------------------------------------------------------------------------------


def _repositories(options: Mapping[str, str]) -> Path:
    if "repos" not in options:
        raise InputError("The suite 'swebench' needs bare repositories: say where they are with `-o repos=FOLDER`.")
    folder = Path(options["repos"])
    if not folder.is_dir():
        raise NotFound(f"There is no folder {str(folder)!r}; `-o repos=FOLDER` names the one with bare repositories.")
    return folder.resolve()


def _bare(repo: str, repos: Path) -> Path:
    owner, _, name = repo.partition("/")
    places = (f"{owner}+{name}/repo", f"{owner}/{name}.git", f"{owner}__{name}", f"{owner}__{name}.git")
    for place in places:
        for folder in (repos / place, repos / place / ".git"):
            if (folder / "objects").is_dir():
                return folder
    raise NotFound(f"{str(repos)!r} holds no bare repository of {repo!r}; it is looked for as {', '.join(places)}.")


def checkout(repo: str, commit: str, repos: Path, folder: Path) -> Path:
    """The files of a commit. Those that do not differ from the last commit there are left alone.

    Large files may be missing from a partial copy of a repository; a checkout goes without them.
    """
    root = folder / repo.replace("/", "+")
    objects = _bare(repo, repos) / "objects"
    _claim(root)
    if not (root / ".git").is_dir():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        _git(root, "init", "--quiet")
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n", "utf-8")
    (root / ".git" / "index.lock").unlink(missing_ok=True)  # left by a run that was stopped
    before = _listed(root)
    try:
        _git(root, "read-tree", "--reset", commit)
    except InputError:
        raise InputError(
            f"The repository of {repo!r} does not hold the commit {commit!r}; fetch its whole history."
        ) from None
    after = _listed(root)
    for path in before.keys() - after.keys():
        (root / path).unlink(missing_ok=True)
    known = _git(root, "cat-file", "--batch-check", given="".join(f"{object}\n" for object in after.values())).splitlines()
    absent = [path for path, answer in zip(after, known, strict=True) if answer.endswith(" missing")]
    _git(root, "update-index", "--force-remove", "-z", "--stdin", given="".join(f"{path}\0" for path in absent))
    _git(root, "checkout-index", "--force", "--all", "--index")
    _git(root, "update-ref", "--no-deref", "HEAD", commit)
    return root


_claimed: dict[Path, int] = {}
"""The checkout that this process uses, with the open file whose lock says so."""


def _claim(root: Path) -> None:
    """Keep others from moving a checkout, until this process ends or takes another one."""
    if root in _claimed:
        return
    while _claimed:
        os.close(_claimed.popitem()[1])
    root.parent.mkdir(parents=True, exist_ok=True)
    opened = os.open(root.with_name(f"{root.name}.lock"), os.O_CREAT | os.O_RDWR)
    try:
        lock(opened, f"Another run is using {str(root)!r}: let it end, or give this one `-o checkouts=FOLDER` of its own.")
    except InputError:
        os.close(opened)
        raise
    _claimed[root] = opened


def _listed(root: Path) -> dict[str, str]:
    entries = _git(root, "ls-files", "--stage", "-z").split("\0")
    return {path: entry.split()[1] for entry, _tab, path in (line.partition("\t") for line in entries if line)}


def _git(root: Path, *command: str, given: str = "") -> str:
    try:
        done = subprocess.run(["git", *command], check=True, cwd=root, input=given, capture_output=True, text=True)
    except FileNotFoundError:
        raise InputError("The suite 'swebench' needs git, which was not found; install it.") from None
    except subprocess.CalledProcessError as error:
        raise InputError(f"git {command[0]} failed in {str(root)!r}: {error.stderr.strip()}") from None
    return done.stdout


SUITE = Suite(
    name="swebench",
    about="SWE-bench: issues; evidence is the files, functions and lines that the fix changed",
    worlds=worlds,
    files=files,
    form=f"issues, one on a line, with {', '.join(NEEDED)}",
    profile="coding",
    budgets=(500, 1000, 2000, 4000, 8000, 16000, 32000),
    options={
        "repos": "the folder with bare repositories, as owner+name/repo, owner/name.git or owner__name (needed)",
        "checkouts": "where the files of a commit are laid out, with foveate's index; a cache folder unless told",
        "only": "repositories, or parts of their names, with commas between",
        "each": "so many issues a repository, spread over its history",
    },
    places=("repos", "checkouts"),
    top={"file": (1, 3, 5, 10), "function": (5, 10)},
    on_code=True,
)
