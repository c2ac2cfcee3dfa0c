"""How code is written here: formatters, linters and type checkers with their settings, hooks, names, and what CONTRIBUTING
asks.

Comes in: a `Repository` and its manifests. Goes out: lines in plain words, each with the file that it comes from. Settings
are read, never interpreted: a line says what the file says.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from foveate.code.docs import layout, prose
from foveate.code.docs.manifests import Manifest, ini, strings, table
from foveate.code.docs.repository import Repository

CONTRIBUTING = ("CONTRIBUTING.md", "CONTRIBUTING.rst", "CONTRIBUTING.txt", "CONTRIBUTING")
MAX_RULES = 12
MAX_LISTED = 12

Line = tuple[str, str]
"""A sentence and the file that it comes from."""


def conventions(repository: Repository, found: Sequence[Manifest], language: str) -> list[Line]:
    """Everything that the settings, the hooks and the paths say about how code is written."""
    lines = [
        *_python(repository, found),
        *_node(repository, found),
        *_others(repository, found),
        *_editorconfig(repository, language),
        *_hooks(repository),
        *_names(repository, language),
    ]
    return list(dict.fromkeys(lines))


def contributing(repository: Repository) -> str | None:
    """The guide for contributors: at the root, in .github or in docs."""
    places = [f"{folder}{name}" for folder in ("", ".github/", "docs/") for name in CONTRIBUTING]
    return repository.root(*CONTRIBUTING) or repository.first(*places, "docs/contributing.md", "docs/contributing.rst")


_ABOUT_WORK = re.compile(
    r"\b(?:commits?|branch|tests?|tested|lint\w*|format\w*|style|pull requests?|PRs?|patch\w*|changelog|docs|documentation"
    r"|docstrings?|typ(?:es?|ing)|pre-commit|ticket|issue|sign\w*|rebase|squash|coverage|convention\w*|review"
    r"|release notes?|whatsnew|code|import\w*|names?|dependenc\w+)\b",
    re.IGNORECASE,
)
_MANNERS = re.compile(
    r"code of conduct|be (?:kind|respectful|patient)|thank|click|button|github account|fork\b|welcome", re.IGNORECASE
)


def asked(repository: Repository) -> tuple[list[str], str]:
    """What the guide for contributors asks for, its rules before its advice, in its own words, and its path."""
    path = contributing(repository)
    if path is None:
        return [], ""
    found = [
        rule for rule in prose.rules(repository.text(path)) if _ABOUT_WORK.search(rule[1]) and not _MANNERS.search(rule[1])
    ]
    kept = sorted(range(len(found)), key=lambda place: (-found[place][0], place))[:MAX_RULES]
    return [found[place][1] for place in sorted(kept)], path


# --- settings ------------------------------------------------------------------------------------------------------


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")


def _settings(options: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """The settings that matter, in words: `line length 100`; switched-on ones by their name alone."""
    lines = []
    for key, words in names.items():
        value = options.get(key)
        if value is None or value == "" or isinstance(value, Mapping):
            continue
        if isinstance(value, bool):
            lines.append(words if value else f"{words}: no")
        else:
            lines.append(f"{words} {_listed(strings(value)) if isinstance(value, list) else value}")
    return lines


def _line(tool: str, parts: Sequence[str], path: str) -> Iterator[Line]:
    yield f"{tool}: {'; '.join(parts)}" if parts else tool, path


def _toml(repository: Repository, path: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(repository.text(path))
    except (ValueError, RecursionError) as error:
        repository.notes.append(f"{path} could not be read: {' '.join(str(error).split())[:80]}")
        return {}


def _sections(repository: Repository, path: str) -> Mapping[str, Mapping[str, str]]:
    try:
        return ini(repository.text(path))
    except configparser.Error:  # the manifest or the commands have said so, or it is another tool's own dialect
        return {}


_RUFF = {"line-length": "line length", "target-version": "target"}
_RUFF_LINT = {"select": "rules", "extend-select": "further rules", "ignore": "ignores"}
_RUFF_FORMAT = {"quote-style": "quotes", "indent-style": "indent", "docstring-code-format": "formats code in docstrings"}
_BLACK = {"line-length": "line length", "skip-string-normalization": "leaves quotes as they are", "target-version": "target"}
_ISORT = {"profile": "profile", "line_length": "line length", "force_single_line": "one import a line"}
_MYPY = {"strict": "strict", "disallow_untyped_defs": "every function typed",
"ignore_missing_imports": "ignores missing imports",
         "check_untyped_defs": "checks untyped functions", "warn_unreachable": "warns of unreachable code"}  # fmt: skip
_PYRIGHT = {"typeCheckingMode": "mode", "strict": "strict for", "pythonVersion": "Python"}
_PYTEST = {"addopts": "options", "testpaths": "paths", "filterwarnings": "warnings", "asyncio_mode": "asyncio mode"}
_FLAKE8 = {
    "max-line-length": "line length",
    "max_line_length": "line length",
    "extend-ignore": "ignores",
    "ignore": "ignores",
}


def _python(repository: Repository, found: Sequence[Manifest]) -> Iterator[Line]:
    for manifest in found:
        if manifest.ecosystem == "python" and not manifest.folder and manifest.path.endswith("pyproject.toml"):
            yield from _pyproject(manifest.tools, manifest.path)
    for path in ("ruff.toml", ".ruff.toml"):
        if path in repository:
            yield from _ruff(_toml(repository, path), path)
    for path in ("setup.cfg", "tox.ini", ".flake8", "mypy.ini", "pytest.ini"):
        sections = _sections(repository, path) if path in repository else {}
        for name, tool, names in (("flake8", "flake8", _FLAKE8), ("mypy", "mypy", _MYPY), ("isort", "isort", _ISORT),
                                  ("pytest", "pytest", _PYTEST), ("tool:pytest", "pytest", _PYTEST)):  # fmt: skip
            if name in sections:
                options = {key: " ".join(value.split()) for key, value in sections[name].items()}
                yield from _line(tool, _settings(options, names), path)
    if found_path := repository.first(".pylintrc", "pylintrc", "pyrightconfig.json"):
        yield "pylint" if "lint" in found_path else "pyright", found_path


def _pyproject(tools: Mapping[str, Any], path: str) -> Iterator[Line]:
    if table(tools, "ruff"):
        yield from _ruff(table(tools, "ruff"), path)
    for name, names in (
        ("black", _BLACK),
        ("isort", _ISORT),
        ("mypy", _MYPY),
        ("pyright", _PYRIGHT),
        ("basedpyright", _PYRIGHT),
    ):
        if table(tools, name):
            yield from _line(name, _settings(table(tools, name), names), path)
    if table(tools, "pytest", "ini_options"):
        yield from _line("pytest", _settings(table(tools, "pytest", "ini_options"), _PYTEST), path)
    if floor := table(tools, "coverage", "report").get("fail_under"):
        yield f"coverage must reach {floor} %", path


def _ruff(options: Mapping[str, Any], path: str) -> Iterator[Line]:
    lint = {**options, **table(options, "lint")}
    parts = [*_settings(options, _RUFF), *_settings(lint, _RUFF_LINT), *_settings(table(options, "format"), _RUFF_FORMAT)]
    if complexity := table(lint, "mccabe").get("max-complexity"):
        parts.append(f"complexity at most {complexity}")
    if convention := table(lint, "pydocstyle").get("convention"):
        parts.append(f"docstrings in {convention} style")
    yield from _line("ruff", parts, path)


_PRETTIER = {"printWidth": "line length", "tabWidth": "indent", "useTabs": "tabs", "semi": "semicolons",
"singleQuote": "single quotes",
             "trailingComma": "trailing commas"}  # fmt: skip
_TSCONFIG = re.compile(
    r"\"(strict|noImplicitAny|noUncheckedIndexedAccess|noUnusedLocals|target|module|jsx"
    r"|baseUrl)\"\s*:\s*(\"[^\"\n]*\"|true|false)"
)
_BIOME = re.compile(r"\"(indentStyle|indentWidth|lineWidth|quoteStyle|semicolons)\"\s*:\s*\"?([\w-]+)")
_EXTENDS = re.compile(
    r"[\"']?extends[\"']?\s*[:=]\s*(\[[^\]]{0,500}\]|[\"'][^\"'\n]+[\"'])|^extends:\s*\n((?:\s+-[^\n]*\n)+)", re.MULTILINE
)
_QUOTED = re.compile(r"[\"']([^\"'\n]+)[\"']|-\s+([^\s#]+)")


def _node(repository: Repository, found: Sequence[Manifest]) -> Iterator[Line]:
    root = next((manifest for manifest in found if manifest.ecosystem == "node" and not manifest.folder), None)
    tools = root.tools if root else {}
    if path := repository.first(
        ".prettierrc", ".prettierrc.json", "prettier.config.js", ".prettierrc.js", ".prettierrc.yml"
    ):
        yield from _line("prettier", _settings(_loose(repository.text(path)), _PRETTIER), path)
    elif root and table(tools, "prettier"):
        yield from _line("prettier", _settings(table(tools, "prettier"), _PRETTIER), root.path)
    if path := repository.first(".eslintrc.json", ".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.yml",
    "eslint.config.js",
                                "eslint.config.mjs", "eslint.config.ts"):  # fmt: skip
        match = _EXTENDS.search(repository.text(path))
        names = [one or other for one, other in _QUOTED.findall(match[1] or match[2])] if match else []
        yield from _line("eslint", [f"extends {_listed(names)}"] if names else [], path)
    if path := repository.first("tsconfig.json", "tsconfig.base.json"):
        options = dict.fromkeys(
            f"{key} {value}".replace('"', "").replace(" true", "") for key, value in _TSCONFIG.findall(repository.text(path))
        )
        yield from _line("TypeScript", list(options), path)
    if path := repository.first("biome.json", "biome.jsonc"):
        yield from _line("biome", [f"{key} {value}" for key, value in _BIOME.findall(repository.text(path))], path)
    if path := repository.first(
        "commitlint.config.js", "commitlint.config.cjs", "commitlint.config.ts", ".commitlintrc.json"
    ):
        yield "commit messages are checked by commitlint", path


def _loose(text: str) -> Mapping[str, Any]:
    """The plain settings of JSON, YAML or a JavaScript object, whichever it is."""
    try:
        return table(json.loads(text))
    except (ValueError, RecursionError):
        pairs = re.findall(r"^[ \t]*[\"']?(\w+)[\"']?\s*:\s*[\"']?([\w-]+)[\"']?,?\s*$", text[:10_000], re.MULTILINE)
        return {key: {"true": True, "false": False}.get(value, value) for key, value in pairs}


_PLAIN: tuple[tuple[str, str, str], ...] = (
    (".golangci.yml", "golangci-lint", r"^[ \t]+-[ \t]+([a-z]\w+)\s*$"),
    (".golangci.yaml", "golangci-lint", r"^[ \t]+-[ \t]+([a-z]\w+)\s*$"),
    ("rustfmt.toml", "rustfmt", r"^(\w+\s*=\s*\S+)"),
    (".rustfmt.toml", "rustfmt", r"^(\w+\s*=\s*\S+)"),
    ("clippy.toml", "clippy", r"^([\w-]+\s*=\s*\S+)"),
    ("rust-toolchain.toml", "Rust toolchain", r"channel\s*=\s*\"([^\"\n]+)\""),
    (
        ".rubocop.yml",
        "rubocop",
        r"^((?:Layout|Style|Metrics|Naming)/\w+|inherit_\w+:[^\n]*|[ \t]+(?:Max|EnforcedStyle|TargetRubyVersion):[^\n]*)",
    ),
    ("phpstan.neon", "phpstan", r"^[ \t]*(level:\s*\S+)"),
    ("phpstan.neon.dist", "phpstan", r"^[ \t]*(level:\s*\S+)"),
    ("pint.json", "pint", r"\"preset\":\s*\"([^\"\n]+)\""),
    (".php-cs-fixer.dist.php", "php-cs-fixer", r"'(@[\w:]+)'\s*=>\s*true"),
    ("phpcs.xml", "phpcs", r"<rule ref=\"([^\"\n]+)\""),
    (".clang-format", "clang-format", r"^((?:BasedOnStyle|ColumnLimit|IndentWidth):[^\n]*)"),
    (".formatter.exs", "mix format", r"(line_length:\s*\d+)"),
    (".credo.exs", "credo", r"(strict:\s*true)"),
    ("checkstyle.xml", "checkstyle", r"<module name=\"(\w+)\""),
    ("analysis_options.yaml", "Dart analysis", r"^include:\s*(\S+)"),
    (".swiftlint.yml", "swiftlint", r"^[ \t]*(line_length:\s*\d+)"),
    (".scalafmt.conf", "scalafmt", r"^((?:maxColumn|version)\s*=\s*\S+)"),
)
_DOTNET = {"Nullable": "nullable references", "TreatWarningsAsErrors": "warnings as errors", "LangVersion": "C#"}


def _others(repository: Repository, found: Sequence[Manifest]) -> Iterator[Line]:
    for path, tool, pattern in _PLAIN:
        if path in repository:
            parts = (" ".join(part.split()) for part in re.findall(pattern, repository.text(path)[:20_000], re.MULTILINE))
            yield from _line(tool, list(dict.fromkeys(parts))[:8], path)
    if "Directory.Build.props" in repository:
        text = repository.text("Directory.Build.props")
        options = {key: match[1].strip() for key in _DOTNET if (match := re.search(rf"<{key}>([^<]+)<", text))}
        yield from _line(".NET projects", _settings(options, _DOTNET), "Directory.Build.props")
    for manifest in found:
        if manifest.ecosystem == "dotnet" and manifest.tools:
            yield from _line(manifest.name, _settings(manifest.tools, _DOTNET), manifest.path)
        if any("spotless" in name for name in manifest.dependencies):
            yield "spotless formats the code", manifest.path


# --- editor, hooks, names ------------------------------------------------------------------------------------------

_EDITOR = {
    "indent_style": "indent with",
    "indent_size": "indent",
    "max_line_length": "line length",
    "end_of_line": "line ends",
}


def _editorconfig(repository: Repository, language: str) -> Iterator[Line]:
    """The settings for all files and for the main language."""
    if ".editorconfig" not in repository:
        return
    suffixes = [suffix[1:] for suffix, one in layout.LANGUAGES.items() if one == language]
    wanted = re.compile(rf"\b(?:{'|'.join(map(re.escape, suffixes))})\b") if suffixes else None
    sections = _sections(repository, "editorconfig") or _sections(repository, ".editorconfig") or _headless(repository)
    for name, options in sections.items():
        if (name == "*" or (wanted and wanted.search(name))) and (parts := _settings(options, _EDITOR)):
            yield from _line(f"editor, `[{name}]`", parts, ".editorconfig")


def _headless(repository: Repository) -> Mapping[str, Mapping[str, str]]:
    """An .editorconfig begins with `root = true`, outside of any section."""
    try:
        return ini("[root]\n" + repository.text(".editorconfig"))
    except configparser.Error:
        return {}


_HOUSEKEEPING = re.compile(r"^(?:check-|end-of-file|trailing-whitespace|mixed-line|debug-statements|fix-|detect-"
                           r"|requirements-txt"
                           r"|file-contents|name-tests|forbid-|no-commit)")  # fmt: skip


def _hooks(repository: Repository) -> Iterator[Line]:
    if path := repository.first(".pre-commit-config.yaml", ".pre-commit-config.yml"):
        hooks = list(dict.fromkeys(re.findall(r"^[ \t]*-[ \t]+id:\s*[\"']?([\w.-]+)", repository.text(path), re.MULTILINE)))
        telling = [hook for hook in hooks if not _HOUSEKEEPING.match(hook)] or hooks
        if telling:
            yield f"pre-commit runs {_listed(telling)}", path
        if "no-commit-to-branch" in hooks:
            yield "commits to the main branch are refused by a hook", path
    for path, tool in (("lefthook.yml", "lefthook"), (".husky/pre-commit", "husky"), ("captainhook.json", "captainhook")):
        if path in repository:
            yield f"git hooks by {tool}", path


def _names(repository: Repository, language: str) -> Iterator[Line]:
    """How files and tests are named, as seen in the paths."""
    if case := layout.file_case(repository.paths, language):
        yield f"{layout.shown(language)} files are named in {case}", ""
    shapes: dict[str, Counter[str]] = {}
    for path in repository.paths:
        if shape := layout.test_pattern(path):
            shapes.setdefault(shape, Counter())[_test_place(path)] += 1
    most = max((places.total() for places in shapes.values()), default=0)
    for shape, places in sorted(shapes.items(), key=lambda item: (-item[1].total(), item[0]))[:3]:
        if 20 * places.total() < most:
            continue
        place, count = min(places.items(), key=lambda item: (-item[1], item[0]))
        where = f"in `{place}`" if place else "next to the code"
        mostly = "" if count == places.total() else "mostly "
        yield f"tests are named `{shape}`, {mostly}{where} ({layout.files(places.total())})", ""


def _test_place(path: str) -> str:
    """The directory of tests that a test is in; empty for one next to the code."""
    parts = path.split("/")[:-1]
    place = next((n for n, part in enumerate(parts) if layout.is_test(part + "/")), None)
    if place is None:
        return ""
    return "/".join(parts[: place + 1]) if place <= 1 else f"*/{parts[place]}"
