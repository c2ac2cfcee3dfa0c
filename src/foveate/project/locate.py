"""Find the project that a folder belongs to, and where its state is.

`foveate-hook` runs on every prompt and must start quickly, so this module imports only `os`.
"""

import os

DIR_NAME = ".foveate"
STORE_FILE = "state.db"
INDEX_FILE = "code.db"
CONFIG_FILE = "config.toml"
SERVICE_FILE = "service.json"

STORE_ENV_VAR = "FOVEATE_STORE"
"""Environment variable with a project's folder or the URL of a shared store. The command line and the hooks read it.
`foveate.open` does not, because every folder that a program opens, also in a test, would then write to one database."""


def find_project(path: str) -> tuple[str, str]:
    """Return the root of the project that `path` belongs to, and the worktree with its files.

    The project is the nearest folder with a `.foveate/`, with or without a store in it. The search ends at the top of the
    repository, because what is above it may be another user's. Without a `.foveate/`, the project is the main worktree of
    the repository, and without a repository `path` itself. The worktree differs from the root only in a linked worktree,
    which has its own files but shares the state of the main one.
    """
    path = os.path.abspath(path)
    worktree, main = find_worktrees(path)
    folders = _with_parents(path)
    folders = folders[: folders.index(worktree) + 1] if worktree else folders
    root = next((folder for folder in folders if os.path.isdir(os.path.join(folder, DIR_NAME))), "")
    if not root:
        return main or path, worktree or path
    return root, root


def find_worktrees(path: str) -> tuple[str, str]:
    """Return the worktree that `path` is in and the main worktree of its repository. Both are empty without a repository."""
    top, git_dir = find_checkout(path)
    return top, _main_worktree(top, git_dir) or top


def find_checkout(path: str) -> tuple[str, str]:
    """Return the top folder of the git checkout that `path` is in, and its git directory. Both are empty without one."""
    top = next((folder for folder in _with_parents(path) if os.path.exists(os.path.join(folder, ".git"))), "")
    if not top:
        return "", ""
    marker = os.path.join(top, ".git")
    if os.path.isdir(marker):
        return top, marker
    # In a linked worktree or a submodule, `.git` is a file that names the git directory.
    first_line = _first_line(marker)
    if not first_line.startswith("gitdir:"):
        return top, ""
    return top, os.path.join(top, first_line[len("gitdir:") :].strip())


def _main_worktree(top: str, git_dir: str) -> str:
    """Return the main worktree of a linked one. The git directory of a linked worktree is `MAIN/.git/worktrees/NAME`."""
    git_dir = os.path.realpath(git_dir)
    worktrees = os.path.dirname(git_dir)
    common = os.path.dirname(worktrees)
    if os.path.basename(worktrees) != "worktrees" or os.path.basename(common) != ".git":
        return ""
    # Anyone can write a `.git` file that names another repository, to make foveate use that project's memory. So git's own
    # file in that repository must name this worktree in return.
    note = _first_line(os.path.join(git_dir, "gitdir"))
    if not note or os.path.realpath(note) != os.path.realpath(os.path.join(top, ".git")):
        return ""
    return os.path.dirname(common)


def store_source(root: str) -> str:
    """Return which one defines the project's store: STORE_ENV_VAR, STORE_FILE or CONFIG_FILE. Empty without a store."""
    folder = os.path.join(root, DIR_NAME)
    if database_from_environment() and os.path.isdir(folder):
        return STORE_ENV_VAR
    if os.path.isfile(os.path.join(folder, STORE_FILE)):
        return STORE_FILE
    return CONFIG_FILE if _names_store(os.path.join(folder, CONFIG_FILE)) else ""


def database_from_environment() -> str:
    """Return the URL in FOVEATE_STORE, or the variable that contains one. Empty if it names a folder or is not set."""
    value = os.environ.get(STORE_ENV_VAR, "")
    return value if value.startswith(("postgresql://", "postgres://", "$")) else ""


def folder_from_environment() -> str:
    """Return the project's folder in FOVEATE_STORE. Empty if it names a database or is not set."""
    return "" if database_from_environment() else os.environ.get(STORE_ENV_VAR, "")


def _names_store(config: str) -> bool:
    """Return whether the settings set `store`. This does not parse TOML: importing the parser would delay the hook."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            return any(line.split("=")[0].strip() == "store" for line in file if "=" in line)
    except OSError:
        return False


def _with_parents(path: str) -> list[str]:
    folders = [path]
    while (parent := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(parent)
    return folders


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline().strip()
    except OSError:
        return ""
