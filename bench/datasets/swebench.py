"""SWE-bench: issues, and the code that the fix of each changed.

`instances.jsonl` has one issue a line: `repo` and `base_commit`, the `problem_statement`, and what the fix changed:
`gold_files_py`, `gold_functions` (`path::Class.method`) and `edits` (`path`, `deleted_lines`, `insert_after`; lines of the
old file). The query is the raw text of the issue; all Python files that are not tests can be answers. Code that a fix adds
does not exist before the fix, so it is no evidence.

Repositories are read at the base commit from bare repositories that the user has. Each gets one checkout, which contains the
history up to the commit but nothing later, and moves from issue to issue.
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

from bench.datasets.files import cache_dir, parse_count, require_strings
from bench.datasets.python_files import (
    EvidenceFile,
    EvidenceLines,
    Function,
    answer_files,
    contains_path,
    functions,
    read_source,
)
from foveate.errors import InputError, NotFound
from foveate.eval.model import Case, Dataset, Evidence, RenderedPrompt, Subset, Suite
from foveate.eval.reading import find_data_file, lock, read_jsonl

REQUIRED_KEYS = ("instance_id", "repo", "base_commit", "problem_statement", "gold_files_py", "gold_functions")


# --- evidence ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SignatureEvidence:
    """A function that is at least named: its path and the line with `def`, whatever its spaces."""

    id: str
    path: str
    signatures: tuple[str, ...]
    evidence_type: str = "named"

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        text = _without_spaces(prompt.text)
        return contains_path(prompt.text, self.path) and any(signature in text for signature in self.signatures)


@dataclass(frozen=True, slots=True)
class EditedLineEvidence:
    """A line of a file, together with the line before or after it: `return None` alone could be any line."""

    id: str
    path: str
    pairs: tuple[tuple[str, str], ...]
    evidence_type: str = "line"

    def is_present_in(self, prompt: RenderedPrompt) -> bool:
        adjacent = _adjacent_lines(prompt.text)
        return contains_path(prompt.text, self.path) and any(pair in adjacent for pair in self.pairs)


@lru_cache(maxsize=4)  # all pieces of a case are looked up in the same prompt
def _without_spaces(text: str) -> str:
    return "".join(text.split())


@lru_cache(maxsize=4)
def _adjacent_lines(text: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of adjacent lines, without blank lines, indentation and line numbers."""
    lines = [_strip_line_number(line).strip() for line in text.split("\n")]
    return frozenset(pairwise(line for line in lines if line))


def _strip_line_number(line: str) -> str:
    number, bar, rest = line.partition("|")
    return rest if bar and number.strip().isdigit() else line


# --- issues --------------------------------------------------------------------------------------------------------


def files(path: Path) -> list[Path]:
    # Each issue names its base commit, which determines the files of the repository.
    return [find_data_file(path, "swebench", "instances.jsonl", "swebench*.jsonl")]


def subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    (file,) = files(path)
    issues = _issues(file)
    repos = _repositories(options)
    folder = Path(options["checkouts"]) if "checkouts" in options else cache_dir("swebench")
    for issue in _filter_issues(issues, options):
        yield Subset(issue["instance_id"], partial(_dataset, issue, repos, folder))


def _issues(path: Path) -> list[dict[str, Any]]:
    """Return the issues with gold files, by repository and date, so that a checkout moves in one direction."""
    issues = []
    for n, issue in read_jsonl(path):
        if not isinstance(issue, dict) or (missing := [name for name in REQUIRED_KEYS if name not in issue]):
            problem = f"has no {missing[0]!r}" if isinstance(issue, dict) else "is not an object"
            raise InputError(f"{str(path)!r}, line {n}, {problem}; an issue has {', '.join(REQUIRED_KEYS)}.")
        for name in ("gold_files_py", "gold_functions"):
            require_strings(issue[name], f"{str(path)!r}, line {n}, {name!r}")
        if issue["gold_files_py"]:
            issues.append(issue)
    return sorted(issues, key=lambda issue: (issue["repo"], str(issue.get("created_at", "")), issue["instance_id"]))


def _filter_issues(issues: Sequence[dict[str, Any]], options: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    names = [name for name in options.get("only", "").split(",") if name]
    each = parse_count(options.get("each", "0"), "each")
    for repo, group in groupby(issues, key=lambda issue: str(issue["repo"])):
        if not names or any(name in repo for name in names):
            of_repo = list(group)
            step = max(1.0, len(of_repo) / each) if each else 1.0
            yield from (of_repo[int(n * step)] for n in range(min(len(of_repo), each or len(of_repo))))


def _dataset(issue: Mapping[str, Any], repos: Path, folder: Path) -> Dataset:
    root = checkout(issue["repo"], issue["base_commit"], repos, folder)
    gold = [path for path in issue["gold_files_py"] if (root / path).is_file()]
    if not gold:
        return Dataset([], skipped_cases=1)
    expected: list[Evidence] = [EvidenceFile(path) for path in gold]
    for name in issue["gold_functions"]:
        path, _, function = name.partition("::")
        if definitions := [one for one in _functions_of(root, path) if one.name == function]:
            expected.append(EvidenceLines(name, path, tuple(one.source for one in definitions)))
            heads = [_without_spaces(one.source.split("\n")[0]).rstrip(":") for one in definitions]
            expected.append(SignatureEvidence(name, path, tuple(heads)))
    for path, numbers in _edits(issue):
        if path in gold:
            expected += _edited_lines(path, numbers, read_source(root, path).split("\n"))
    case = Case(
        issue["instance_id"],
        issue["problem_statement"],
        tuple(expected),
        question_type="one file" if len(gold) == 1 else "several files",
    )
    return Dataset([case], root=root, answer_files=answer_files(root))


def _edits(issue: Mapping[str, Any]) -> list[tuple[str, list[int]]]:
    try:
        edits = issue.get("edits", ())
        return [(str(edit["path"]), sorted({*edit["deleted_lines"], *edit["insert_after"]})) for edit in edits]
    except (KeyError, TypeError):
        raise InputError(
            f"{issue['instance_id']!r}: each edit must have a path and the line numbers deleted_lines and insert_after."
        ) from None


def _functions_of(root: Path, path: str) -> tuple[Function, ...]:
    return functions(read_source(root, path)) if (root / path).is_file() else ()


def _edited_lines(path: str, numbers: Sequence[int], source: Sequence[str]) -> Iterator[EditedLineEvidence]:
    """Yield the lines that a fix deletes or inserts after, without blank lines."""
    not_blank = [n for n, line in enumerate(source, 1) if line.strip()]
    positions = {n: position for position, n in enumerate(not_blank)}
    for n in numbers:
        if n in positions:
            neighbors = [source[m - 1].strip() for m in not_blank[max(0, positions[n] - 1) : positions[n] + 2]]
            yield EditedLineEvidence(f"{path}:{n}", path, tuple(pairwise(neighbors)))


# --- repositories --------------------------------------------------------------------------------------------------


def _repositories(options: Mapping[str, str]) -> Path:
    if "repos" not in options:
        raise InputError("The suite 'swebench' needs bare repositories; name their folder with `-o repos=FOLDER`.")
    folder = Path(options["repos"])
    if not folder.is_dir():
        raise NotFound(f"There is no folder {str(folder)!r}; name the folder with bare repositories with `-o repos=FOLDER`.")
    return folder.resolve()


def _bare_repository(repo: str, repos: Path) -> Path:
    owner, _, name = repo.partition("/")
    places = (f"{owner}+{name}/repo", f"{owner}/{name}.git", f"{owner}__{name}", f"{owner}__{name}.git")
    for place in places:
        for folder in (repos / place, repos / place / ".git"):
            if (folder / "objects").is_dir():
                return folder
    raise NotFound(f"{str(repos)!r} contains no bare repository of {repo!r}. Tried: {', '.join(places)}.")


def checkout(repo: str, commit: str, repos: Path, folder: Path) -> Path:
    """Check out a commit and return the folder. Files that the previous commit has, too, are not touched.

    A partial clone may lack large files; the checkout does without them.
    """
    root = folder / repo.replace("/", "+")
    objects = _bare_repository(repo, repos) / "objects"
    _lock_checkout(root)
    if not (root / ".git").is_dir():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        _git(root, "init", "--quiet")
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n", "utf-8")
    (root / ".git" / "index.lock").unlink(missing_ok=True)  # left by a run that was killed
    before = _tracked_files(root)
    try:
        _git(root, "read-tree", "--reset", commit)
    except InputError:
        raise InputError(
            f"The repository of {repo!r} does not contain the commit {commit!r}; fetch its whole history."
        ) from None
    after = _tracked_files(root)
    for path in before.keys() - after.keys():
        (root / path).unlink(missing_ok=True)
    ids = "".join(f"{object}\n" for object in after.values())
    states = _git(root, "cat-file", "--batch-check", stdin=ids).splitlines()
    absent = [path for path, state in zip(after, states, strict=True) if state.endswith(" missing")]
    _git(root, "update-index", "--force-remove", "-z", "--stdin", stdin="".join(f"{path}\0" for path in absent))
    _git(root, "checkout-index", "--force", "--all", "--index")
    _git(root, "update-ref", "--no-deref", "HEAD", commit)
    return root


_locked_checkouts: dict[Path, int] = {}
"""The checkout that this process uses, with the open file that holds its lock."""


def _lock_checkout(root: Path) -> None:
    """Keep other processes from moving a checkout, until this process ends or uses another one."""
    if root in _locked_checkouts:
        return
    while _locked_checkouts:
        os.close(_locked_checkouts.popitem()[1])
    root.parent.mkdir(parents=True, exist_ok=True)
    opened = os.open(root.with_name(f"{root.name}.lock"), os.O_CREAT | os.O_RDWR)
    try:
        lock(opened, f"Another run is using {str(root)!r}: wait for it, or use another folder with `-o checkouts=FOLDER`.")
    except InputError:
        os.close(opened)
        raise
    _locked_checkouts[root] = opened


def _tracked_files(root: Path) -> dict[str, str]:
    entries = _git(root, "ls-files", "--stage", "-z").split("\0")
    return {path: entry.split()[1] for entry, _tab, path in (line.partition("\t") for line in entries if line)}


def _git(root: Path, *command: str, stdin: str = "") -> str:
    try:
        done = subprocess.run(["git", *command], check=True, cwd=root, input=stdin, capture_output=True, text=True)
    except FileNotFoundError:
        raise InputError("The suite 'swebench' needs git; install it.") from None
    except subprocess.CalledProcessError as error:
        raise InputError(f"git {command[0]} failed in {str(root)!r}: {error.stderr.strip()}") from None
    return done.stdout


SWEBENCH = Suite(
    name="swebench",
    description="SWE-bench: issues; evidence is the files, functions and lines that the fix changed",
    subsets=subsets,
    files=files,
    data_format=f"issues, one a line, with {', '.join(REQUIRED_KEYS)}",
    profile="coding",
    budgets=(500, 1000, 2000, 4000, 8000, 16000, 32000),
    options={
        "repos": "required: the folder with bare repositories, as owner+name/repo, owner/name.git or owner__name",
        "checkouts": "the folder for checkouts, with foveate's index; by default a cache folder",
        "only": "only these repositories: names or parts of names, separated by commas",
        "each": "only so many issues of each repository, spread over its history",
    },
    path_options=("repos", "checkouts"),
    rank_cutoffs={"file": (1, 3, 5, 10), "function": (5, 10)},
    is_code=True,
)
