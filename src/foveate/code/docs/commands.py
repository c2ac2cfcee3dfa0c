"""The commands that test, check, build and run a project, as its manifests and its Makefile name them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from foveate.code.docs.manifests import Manifest, RepositoryFiles

PURPOSES: Mapping[str, str] = {
    "test": "Test",
    "lint": "Lint",
    "types": "Check types",
    "format": "Format",
    "build": "Build",
    "run": "Run",
    "docs": "Build the docs",
    "setup": "Set up",
}
"""Purposes of commands with their titles, the most important first."""

_NAMES: Mapping[str, re.Pattern[str]] = {
    purpose: re.compile(names, re.IGNORECASE)
    for purpose, names in {
        "test": r"tests?|unit|unit[-_:]?tests?|spec",
        "lint": r"lint(?:ers?|ing)?|check|style",
        "types": r"types?|type-?check|check-types|mypy|tsc",
        "format": r"fmt|format(?:ting)?|prettier",
        "build": r"build|compile|dist|package|all",
        "run": r"run|start|serve|server|dev",
        "docs": r"docs?|html|documentation",
        "setup": r"install|setup|bootstrap|deps|dependencies|sync|init",
    }.items()
}
"""Names of the Makefile targets and scripts that serve a purpose."""

_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "Cargo.toml": {"test": "cargo test", "lint": "cargo clippy", "format": "cargo fmt", "build": "cargo build"},
    "go.mod": {"test": "go test ./...", "lint": "go vet ./...", "format": "gofmt -w .", "build": "go build ./..."},
    "pom.xml": {"test": "mvn test", "build": "mvn package"},
    "build.gradle": {"test": "gradle test", "build": "gradle build"},
    "build.gradle.kts": {"test": "gradle test", "build": "gradle build"},
    ".csproj": {"test": "dotnet test", "build": "dotnet build"},
}
"""What a manifest implies: its build tool has these commands in every project."""

_WRAPPERS = {"mvn": "mvnw", "gradle": "gradlew"}
"""Scripts in the repository that run a build tool of the right version."""

_PYTHON_TOOLS: Mapping[str, tuple[str, str]] = {
    "pytest": ("test", "pytest"),
    "tox": ("test", "tox"),
    "ruff": ("lint", "ruff check ."),
    "flake8": ("lint", "flake8"),
    "mypy": ("types", "mypy ."),
    "pyright": ("types", "pyright"),
    "black": ("format", "black ."),
}
"""Tools of Python, and the command where a project depends on one or has settings for it."""

_RUNNERS: Mapping[str, Sequence[tuple[str, str]]] = {
    "python": (("uv.lock", "uv run "), ("poetry.lock", "poetry run "), ("pdm.lock", "pdm run ")),
    "node": (("pnpm-lock.yaml", "pnpm "), ("yarn.lock", "yarn "), ("bun.lockb", "bun run "), ("bun.lock", "bun run ")),
}
"""Lock files, and how the package manager that writes them runs a tool or a script."""

_MAKE_TARGET = re.compile(r"^([A-Za-z][\w.-]*)[ \t]*:(?![=:])", re.MULTILINE)
_NO_TEST = "no test specified"
"""Part of the test script that `npm init` writes."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, its purpose, and the file that says so."""

    purpose: str
    line: str
    source: str


def find_commands(files: RepositoryFiles, manifests: Sequence[Manifest], ecosystem: str) -> list[Command]:
    """Return the commands by purpose: targets of the Makefile, then commands of the project's own ecosystem, then others."""
    at_root = {manifest.ecosystem for manifest in manifests if not manifest.folder}
    found = list(_make_targets(files))
    for manifest in sorted(manifests, key=lambda manifest: manifest.ecosystem != ecosystem):
        if manifest.folder and manifest.ecosystem in at_root:
            continue  # a workspace is tested as a whole
        lead = f"cd {manifest.folder} && " if manifest.folder and manifest.ecosystem != "dotnet" else ""
        commands: dict[str, str] = {}
        for purpose, line in _manifest_commands(files, manifest):
            commands.setdefault(purpose, line)
        found += [Command(purpose, f"{lead}{line}", manifest.path) for purpose, line in commands.items()]
    order = list(PURPOSES)
    return sorted(found, key=lambda command: order.index(command.purpose))


def _purpose(name: str) -> str:
    return next((purpose for purpose, pattern in _NAMES.items() if pattern.fullmatch(name)), "")


def _make_targets(files: RepositoryFiles) -> Iterator[Command]:
    path = files.first_existing("Makefile", "makefile", "GNUmakefile")
    for target in _MAKE_TARGET.findall(files.text(path)) if path else ():
        if purpose := _purpose(target):
            yield Command(purpose, f"make {target}", path or "")


def _manifest_commands(files: RepositoryFiles, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield purposes with commands, the best of each purpose first."""
    if manifest.ecosystem == "python":
        runner = _runner(files, manifest, "")
        tools = {*manifest.dev_dependencies, *manifest.dependencies, *manifest.tools}
        yield from ((purpose, runner + line) for tool, (purpose, line) in _PYTHON_TOOLS.items() if tool in tools)
    elif manifest.ecosystem == "node":
        runner = _runner(files, manifest, "npm run ")
        for name, line in manifest.scripts.items():
            if (purpose := _purpose(name)) and _NO_TEST not in line:
                yield purpose, "npm test" if f"{runner}{name}" == "npm run test" else f"{runner}{name}"
    else:
        defaults = next((commands for end, commands in _DEFAULTS.items() if manifest.path.endswith(end)), {})
        for purpose, line in defaults.items():
            tool, _, rest = line.partition(" ")
            wrapper = _WRAPPERS.get(tool, "")
            yield purpose, f"./{wrapper} {rest}" if wrapper and _sibling_path(manifest, wrapper) in files else line


def _runner(files: RepositoryFiles, manifest: Manifest, default: str) -> str:
    locks = _RUNNERS[manifest.ecosystem]
    return next((runner for lock, runner in locks if _sibling_path(manifest, lock) in files or lock in files), default)


def _sibling_path(manifest: Manifest, name: str) -> str:
    return f"{manifest.folder}/{name}".lstrip("/")
