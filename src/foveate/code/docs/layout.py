"""What the paths alone say: languages, directories and what they hold, how files and tests are named.

Comes in: paths, and for the roles of directories a `Repository`. Goes out: counts, names and one line for a directory.
Counts of a hundred and more are rounded, so that a description stays the same, byte for byte, while a project grows by a
file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from foveate.code.docs import prose
from foveate.code.docs.repository import BESIDE, Repository, is_beside
from foveate.code.roles import role_of

_SUFFIXES = {
    "python": "py pyi pyx",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts tsx mts cts",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "kotlin": "kt kts",
    "scala": "scala sc",
    "groovy": "groovy",
    "ruby": "rb rake",
    "php": "php",
    "csharp": "cs",
    "fsharp": "fs fsx",
    "c": "c h",
    "cpp": "cc cpp cxx hpp hh hxx",
    "objective-c": "m mm",
    "swift": "swift",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "dart": "dart",
    "haskell": "hs",
    "clojure": "clj cljs cljc",
    "lua": "lua",
    "perl": "pl pm",
    "r": "r",
    "julia": "jl",
    "zig": "zig",
    "vue": "vue",
    "svelte": "svelte",
    "shell": "sh bash zsh",
    "sql": "sql",
    "html": "html htm",
    "css": "css scss sass less",
}
LANGUAGES = {f".{suffix}": language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
SECONDARY = frozenset({"shell", "sql", "html", "css", "vue", "svelte"})
"""Never the language of a project that has another one."""

_SHOWN = {"csharp": "C#", "fsharp": "F#", "cpp": "C++", "javascript": "JavaScript", "typescript": "TypeScript", "php": "PHP",
          "sql": "SQL", "html": "HTML", "css": "CSS", "objective-c": "Objective-C"}  # fmt: skip

_TEST_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("test_*.py", re.compile(r"test_\w*\.py$")),
    ("*_test.py", re.compile(r"\w+_test\.py$")),
    ("*_test.go", re.compile(r"\w+_test\.go$")),
    ("*.test.*", re.compile(r"[\w.-]+\.test\.[cm]?[jt]sx?$")),
    ("*.spec.*", re.compile(r"[\w.-]+\.spec\.[cm]?[jt]sx?$")),
    ("*_spec.rb", re.compile(r"\w+_spec\.rb$")),
    ("*_test.rb", re.compile(r"\w+_test\.rb$")),
    ("*Test.java", re.compile(r"\w+Tests?\.java$")),
    ("*Test.kt", re.compile(r"\w+Tests?\.kt$")),
    ("*Test.php", re.compile(r"\w+Test\.php$")),
    ("*Tests.cs", re.compile(r"\w+Tests?\.cs$")),
    ("*_test.exs", re.compile(r"\w+_test\.exs$")),
    ("*_test.dart", re.compile(r"\w+_test\.dart$")),
    ("*Tests.swift", re.compile(r"\w+Tests?\.swift$")),
    ("*Spec.scala", re.compile(r"\w+(?:Spec|Test|Suite)\.scala$")),
)


_MAYBE_TEST = re.compile(r"[tT]est|[sS]pec|Suite")
"""One look spares most paths the patterns above."""

SHOWN_SHARE = 0.1
"""A language with a smaller share of a directory's code is not named for it, nor code with a smaller share of its files."""


def shown(language: str) -> str:
    """A language as people write it."""
    return _SHOWN.get(language, language.capitalize())


def language_of(path: str) -> str:
    """The programming language of a file by its suffix; empty for data, documents and the rest."""
    name = path.rpartition("/")[2]
    return LANGUAGES.get(name[name.rfind(".") :].lower(), "") if "." in name else ""


def test_pattern(path: str) -> str:
    """How a test file is named (`test_*.py`); empty for other files."""
    name = path.rpartition("/")[2]
    if not _MAYBE_TEST.search(name):
        return ""
    return next((shape for shape, pattern in _TEST_NAMES if pattern.match(name)), "")


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests, by its name or its directory."""
    return role_of(path) == "test"


def languages(paths: Iterable[str]) -> Counter[str]:
    """How many files each language has, outside of tests, documents and examples where there are any."""
    every, own = Counter[str](), Counter[str]()
    for path in paths:
        if language := language_of(path):
            every[language] += 1
            if role_of(path) not in BESIDE:
                own[language] += 1
    return own or every


def main_language(counts: Counter[str]) -> str:
    """The language with most files; one of `SECONDARY` only where there is no other."""
    ranked = sorted(counts, key=lambda language: (language in SECONDARY, -counts[language], language))
    return ranked[0] if ranked else ""


def about(count: int) -> str:
    """A count in words: exact below a hundred, of two digits above."""
    if count < 100:
        return str(count)
    unit = 10 ** (len(str(count)) - 2)
    return f"about {round(count / unit) * unit:,}"


def files(count: int, language: str = "") -> str:
    """`12 Python files`, `about 2,800 files`."""
    return f"{about(count)} {shown(language) + ' ' if language else ''}file{'' if count == 1 else 's'}"


# --- directories ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Directory:
    """A directory with everything below it."""

    path: str
    count: int = 0
    languages: Counter[str] = field(default_factory=Counter)
    folders: dict[str, None] = field(default_factory=dict)
    """Names of the directories right inside, in order."""
    own: list[str] = field(default_factory=list)
    """Names of the files right inside, in order."""

    @property
    def size(self) -> str:
        """`24 Python files`, `11 Python, 92 HTML files`; all files where little of it is code."""
        code = self.languages.total()
        if code <= SHOWN_SHARE * self.count:
            return files(self.count)
        ranked = sorted(self.languages.items(), key=lambda item: (item[0] in SECONDARY, -item[1], item[0]))
        telling = ranked[:1] + [item for item in ranked[1:2] if item[1] >= SHOWN_SHARE * code]
        counted = ", ".join(f"{about(count)} {shown(name)}" for name, count in telling)
        return f"{counted} file{'' if code == 1 else 's'}"


def directories(paths: Iterable[str]) -> dict[str, Directory]:
    """Every directory, by its path."""
    found: dict[str, Directory] = {}
    for path in paths:
        language = language_of(path)
        *folders, name = path.split("/")
        place, above = "", None
        for folder in folders:
            place = f"{place}/{folder}" if place else folder
            if above is not None:
                above.folders[folder] = None
            above = found.get(place) or found.setdefault(place, Directory(place))
            above.count += 1
            if language:
                above.languages[language] += 1
        if above is not None:
            above.own.append(name)
    return found


def told(found: dict[str, Directory], limit: int) -> list[Directory]:
    """The directories worth a line: those with the code first, with what is inside; then tests, documents and the rest."""
    top = [_opened(found, one) for path, one in found.items() if "/" not in path and not path.startswith(".")]
    code = [one for one in top if one.languages and not is_beside(f"{one.path}/")]
    nested = [child for one in code for child in _children(found, one)]
    deeper = [child for one in nested if one.path.split("/")[0] in _WRAPPERS for child in _children(found, one)]
    beside = [one for one in top if one not in code]
    inner = [child for one in beside for child in _children(found, one) if child.path.endswith(_TEST_PARTS)]
    kept: dict[str, Directory] = {}
    for group in (code, beside, nested, deeper, inner):
        for directory in sorted(group, key=lambda one: (-one.languages.total(), one.path))[: max(0, limit - len(kept))]:
            kept.setdefault(directory.path, directory)
    weight = {one.path.split("/")[0]: (one not in code, -one.languages.total()) for one in top}
    return sorted(kept.values(), key=lambda one: (weight[one.path.split("/")[0]], one.path))


_TEST_PARTS = ("/unit", "/integration", "/functional", "/e2e", "/fixtures", "/testdata")
_WRAPPERS = frozenset(("src", "lib", "libs", "packages", "apps", "crates", "services", "modules"))
"""Directories whose directories are packages of their own: what these hold is told too."""


def _opened(found: dict[str, Directory], directory: Directory) -> Directory:
    """What a chain of directories that hold nothing but the next one leads to: `src/main/java/com/example/shop`."""
    while len(directory.folders) == 1 and not directory.own:
        directory = found[f"{directory.path}/{next(iter(directory.folders))}"]
    return directory


def _children(found: dict[str, Directory], directory: Directory) -> list[Directory]:
    names = [name for name in directory.folders if not name.startswith((".", "__"))]
    inside = [_opened(found, found[f"{directory.path}/{name}"]) for name in names]
    return [one for one in inside if one.languages]


# --- what a directory is for ---------------------------------------------------------------------------------------

_ROLES = {
    "tests": "test tests spec specs __tests__",
    "end-to-end tests": "e2e",
    "unit tests": "unit",
    "integration tests": "integration",
    "functional tests": "functional",
    "test data": "fixtures testdata",
    "source code": "src source",
    "documents": "doc docs documentation",
    "examples": "example examples samples demo demos",
    "scripts": "script scripts bin tools",
    "benchmarks": "bench benches benchmark benchmarks asv_bench",
    "database migrations": "migrations migrate",
    "continuous integration": "ci",
    "deployment": "deploy deployment k8s kubernetes helm charts terraform infra infrastructure",
    "Docker files": "docker",
    "static files": "static public assets",
    "templates": "templates",
    "translations": "locale locales i18n translations",
    "vendored code": "vendor third_party",
    "configuration": "config configs conf settings",
    "commands, one directory each": "cmd",
    "packages that other modules may not import": "internal",
    "applications of the workspace": "apps",
    "packages of the workspace": "packages crates",
    "HTTP handlers": "controllers handlers routes",
    "data models": "models",
    "plug-ins": "plugins",
}
ROLES = {name: role for role, names in _ROLES.items() for name in names.split()}
_TOP_ROLES = frozenset(
    ("src", "source", "apps", "packages", "crates", "internal", "cmd", "ci", "config", "conf", "settings", "public",
    "assets",
     "docker", "plugins")
)  # fmt: skip
"""Names that say something at the top only: further down they are names like any other."""

_DOCSTRING = re.compile(r"(?:#[^\n]*\n\s*)*[rRuU]?(\"\"\"|''')(.{1,2000}?)\1", re.DOTALL)
_LINE_DOC = re.compile(r"((?:[ \t]*//[!/]?[^\n]*\n)+)")
_BLOCK_DOC = re.compile(r"/\*[*!]?(.{1,2000}?)\*/", re.DOTALL)
_NO_DOC = re.compile(r"^\s*init\b|copyright|licen[cs]e|spdx|eslint|@ts-|generated|prettier|<reference", re.IGNORECASE)
_PACKAGE_FILES = ("__init__.py", "mod.rs", "lib.rs", "src/lib.rs", "doc.go", "index.ts", "index.js", "src/index.ts")
_HEAD_CHARS = 4_000


def role(repository: Repository, directory: Directory) -> tuple[str, str]:
    """What a directory is for, and the file that says so: its package's own words, its usual role, its README, its "
    "contents."""
    for name in _PACKAGE_FILES:
        path = f"{directory.path}/{name}"
        if path in repository and (said := prose.first_sentence(_own_words(repository.text(path)[:_HEAD_CHARS]))):
            return said, path
    name = directory.path.rpartition("/")[2].lower()
    if name in ROLES and ("/" not in directory.path or name not in _TOP_ROLES):
        return ROLES[name], ""
    for name in ("README.md", "README.rst", "README.txt", "README"):
        path = f"{directory.path}/{name}"
        if path in repository and (paragraphs := prose.opening(repository.text(path))):
            return prose.first_sentence(paragraphs[0].removeprefix("- ")), path
    return _contents(directory), ""


def _own_words(head: str) -> str:
    """The documentation at the top of a module, without its marks; nothing where that is a licence or for a tool."""
    head = head.strip() + "\n"
    if match := _DOCSTRING.match(head):
        said = match[2]
    elif match := _LINE_DOC.match(head):
        said = "\n".join(line.strip().lstrip("/!").strip() for line in match[1].splitlines())
    elif match := _BLOCK_DOC.match(head):
        said = "\n".join(line.strip().lstrip("*").strip() for line in match[1].splitlines())
    else:
        return ""
    return "" if _NO_DOC.search(said) else said.strip()


def _contents(directory: Directory) -> str:
    modules = [name.rpartition(".")[0] for name in directory.own if language_of(name) and not name.startswith("_")]
    names = [name for name in directory.folders if not name.startswith((".", "__"))] or modules
    if not names:
        return ""
    return "holds " + ", ".join(names[:6]) + (" and others" if len(names) > 6 else "")


# --- names ---------------------------------------------------------------------------------------------------------

_CASES = (
    ("snake_case", re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+$")),
    ("kebab-case", re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+$")),
    ("PascalCase", re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+$")),
    ("camelCase", re.compile(r"[a-z]+[a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+$")),
)
NAMED_SHARE, NAMED_FILES = 0.8, 5
"""A way of naming is a convention when four in five names of several words follow it, and there are a few."""


def file_case(paths: Sequence[str], language: str) -> str:
    """How files of a language are named, where nearly all agree: `snake_case`."""
    counts = Counter[str]()
    for path in paths:
        if language_of(path) == language and not is_test(path):
            stem = path.rpartition("/")[2].split(".")[0].strip("_")
            counts.update(case for case, pattern in _CASES if pattern.match(stem))
    case, count = min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    return case if count >= NAMED_FILES and count >= NAMED_SHARE * counts.total() else ""
