"""Reads manifests: the name of a project, its dependencies and scripts, and which frameworks follow from them.

Everything is taken from a file or from the names of files; nothing is resolved or executed. A manifest that cannot be read
leaves a note and is skipped.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from foveate.code.languages import SECONDARY_LANGUAGES, programming_language
from foveate.code.roles import PERIPHERAL_ROLES, role_of
from foveate.text.format import pluralize
from foveate.text.markdown import remove_generated_block

MAX_MANIFESTS = 16
"""A workspace may have hundreds. Those nearest to the root describe it."""
MAX_MANIFEST_DEPTH = 3
MAX_FILE_CHARS = 200_000
"""The rest of a longer file is not read. No manifest is larger."""
MAX_TEST_FILES_READ = 4


class RepositoryFiles:
    """The paths of a repository, and the texts of the few files that are read for its docs."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], str | None]) -> None:
        self.paths = sorted(set(paths))
        self.notes: list[str] = []
        """Files that could not be read, with the reasons."""
        self._read = read
        self._known = frozenset(self.paths)
        self._texts: dict[str, str] = {}

    @property
    def read_paths(self) -> tuple[str, ...]:
        """The files that were read so far. With all paths, they are what the docs depend on."""
        return tuple(sorted(self._texts))

    def __contains__(self, path: str) -> bool:
        return path in self._known

    def text(self, path: str) -> str:
        """Return the text of a file, or "" if there is none. The block that foveate writes itself is left out."""
        if path not in self._known:
            return ""
        if path not in self._texts:
            self._texts[path] = remove_generated_block((self._read(path) or "")[:MAX_FILE_CHARS].lstrip("\ufeff"))
        return self._texts[path]

    def first_existing(self, *paths: str) -> str | None:
        return next((path for path in paths if path in self._known), None)

    def find_by_suffix(self, ends: str | tuple[str, ...], max_depth: int) -> list[str]:
        """Return the paths with these ends, those nearest to the root first; none of tests, examples or vendored code."""
        found = [path for path in self.paths if path.endswith(ends) and path.count("/") <= max_depth]
        return sorted((path for path in found if not is_peripheral(path)), key=lambda path: (path.count("/"), path))


def is_peripheral(path: str) -> bool:
    """Return whether a path lies in a directory of tests, documents, examples or other people's code."""
    return role_of(path[: path.rfind("/") + 1]) in PERIPHERAL_ROLES


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of one manifest. Missing values are empty."""

    path: str
    ecosystem: str
    name: str = ""
    description: str = ""
    language_version: str = ""
    """The language and its version: `Python >=3.11`."""
    dependencies: Sequence[str] = ()
    dev_dependencies: Sequence[str] = ()
    scripts: Mapping[str, str] = field(default_factory=dict)
    tools: frozenset[str] = frozenset()
    """Tools that it has settings for: the `[tool]` tables of pyproject.toml."""

    @property
    def folder(self) -> str:
        """The directory that it describes, "" for the root."""
        return self.path.rpartition("/")[0]


def read_manifests(files: RepositoryFiles) -> list[Manifest]:
    """Return the manifests near the root that can be read, those at the root first."""
    found: list[Manifest] = []
    for path in files.find_by_suffix(tuple(_READERS), MAX_MANIFEST_DEPTH)[:MAX_MANIFESTS]:
        name = path.rpartition("/")[2]
        reader = next(
            (read for end, read in _READERS.items() if name == end or (end[0] == "." and name.endswith(end))), None
        )
        text = files.text(path)
        if reader is None or not text.strip():
            continue
        try:
            found.append(reader(path, text))
        except (ValueError, TypeError, AttributeError, ElementTree.ParseError, RecursionError) as error:
            reason = " ".join(str(error).split())[:80] or type(error).__name__
            files.notes.append(f"{path} could not be read: {reason}")
    return found


# --- values from files that anyone may have written ----------------------------------------------------------------


def _table(value: Any, *keys: str) -> Mapping[str, Any]:
    """Return a nested table, empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _line(value: Any) -> str:
    """Return a string on one line, "" for anything else."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _version(language: str, version: Any) -> str:
    return f"{language} {_line(version)}" if _line(version) else ""


_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")


def _packages(requirements: Iterable[str]) -> list[str]:
    """Return the packages of requirements such as `django>=4 ; python_version > '3'`."""
    return list(dict.fromkeys(match[1] for match in map(_REQUIREMENT.match, requirements) if match))


# --- formats -------------------------------------------------------------------------------------------------------

_DEV_GROUP = re.compile(r"dev|test|lint|doc|typing|types|ci\b|check", re.IGNORECASE)


def _pyproject(path: str, text: str) -> Manifest:
    data = tomllib.loads(text)
    project, tools = _table(data, "project"), _table(data, "tool")
    poetry = _table(tools, "poetry")
    extras = _table(project, "optional-dependencies")
    dev = [line for group, lines in extras.items() if _DEV_GROUP.search(group) for line in _strings(lines)]
    dev += [line for lines in _table(data, "dependency-groups").values() for line in _strings(lines)]
    dev += [name for group in _table(poetry, "group").values() for name in _table(group, "dependencies")]
    poetry_packages = _table(poetry, "dependencies")
    name = _line(project.get("name")) or _line(poetry.get("name"))
    return Manifest(
        path,
        "python",
        name,
        _line(project.get("description")) or _line(poetry.get("description")),
        _version("Python", project.get("requires-python") or poetry_packages.get("python")),
        _packages([*_strings(project.get("dependencies")), *(name for name in poetry_packages if name != "python")]),
        [package for package in _packages(dev) if package.lower() != name.lower()],
        tools=frozenset(tools),
    )


def _requirements(path: str, text: str) -> Manifest:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "-"))]
    return Manifest(path, "python", dependencies=_packages(lines))


def _package_json(path: str, text: str) -> Manifest:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    return Manifest(
        path,
        "node",
        _line(data.get("name")),
        _line(data.get("description")),
        _version("Node", _table(data, "engines").get("node")),
        [*_table(data, "dependencies"), *_table(data, "peerDependencies")],
        list(_table(data, "devDependencies")),
        {name: _line(line) for name, line in _table(data, "scripts").items() if _line(line)},
    )


def _cargo(path: str, text: str) -> Manifest:
    data = tomllib.loads(text)
    package = _table(data, "package")
    return Manifest(
        path,
        "rust",
        _line(package.get("name")),
        _line(package.get("description")),
        _version("Rust", package.get("rust-version")) or _version("Rust edition", package.get("edition")),
        [*_table(data, "dependencies"), *_table(data, "workspace", "dependencies")],
        list(_table(data, "dev-dependencies")),
    )


_GO_REQUIRE = re.compile(r"^(?:require\s+|[ \t]+)([\w.-]+\.[\w./~-]+)\s+v\S+(?P<indirect>\s*// indirect)?", re.MULTILINE)


def _go_mod(path: str, text: str) -> Manifest:
    module = re.search(r"^module\s+(\S+)", text, re.MULTILINE)
    version = re.search(r"^go\s+([\d.]+)", text, re.MULTILINE)
    direct = [match[1] for match in _GO_REQUIRE.finditer(text) if not match["indirect"]]
    return Manifest(
        path,
        "go",
        module[1].rpartition("/")[2] if module else "",
        language_version=f"Go {version[1]}" if version else "",
        dependencies=direct,
    )


def _xml(text: str) -> ElementTree.Element:
    """Return the root of an XML document, tags without namespaces. Entities could be endless, so they are refused."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it declares a document type, which is not read")
    root = ElementTree.fromstring(text)
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    return root


def _pom(path: str, text: str) -> Manifest:
    root = _xml(text)
    packages: list[str] = []
    dev_packages: list[str] = []
    for element in (*root.findall("parent"), *root.findall("dependencies/dependency")):
        name = f"{_line(element.findtext('groupId'))}:{_line(element.findtext('artifactId'))}"
        (dev_packages if _line(element.findtext("scope")) == "test" else packages).append(name)
    properties = {element.tag: _line(element.text) for element in root.findall("properties/*")}
    version = properties.get("java.version") or properties.get("maven.compiler.release")
    return Manifest(
        path,
        "jvm",
        _line(root.findtext("artifactId")),
        _line(root.findtext("description")),
        _version("Java", version),
        packages,
        dev_packages,
    )


_GRADLE_PACKAGE = re.compile(
    r"^[ \t]*(?:(?P<plugin>id)|(?P<scope>\w*(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly)))\s*\(?\s*"
    r"(?:platform\()?[\"'](?P<name>[\w.-]+(?::[\w.-]+)?)",
    re.MULTILINE,
)


def _gradle(path: str, text: str) -> Manifest:
    packages: list[str] = []
    dev_packages: list[str] = []
    for match in _GRADLE_PACKAGE.finditer(text):
        is_dev = (match["scope"] or "").lower().startswith(("test", "androidtest"))
        (dev_packages if is_dev else packages).append(match["name"])
    version = re.search(r"(?:languageVersion\D{1,60}|jvmToolchain\(|sourceCompatibility\D{1,40}?)(\d+)", text)
    return Manifest(
        path,
        "jvm",
        language_version=f"Java {version[1]}" if version else "",
        dependencies=packages,
        dev_dependencies=dev_packages,
    )


def _csproj(path: str, text: str) -> Manifest:
    """Read a .NET project. Its SDK counts as a dependency, because it says what kind of program it is."""
    root = _xml(text)
    packages = [_line(element.get("Include")) for element in root.iter("PackageReference") if element.get("Include")]
    is_test = any(re.match(r"xunit|nunit|MSTest|Microsoft\.NET\.Test", package, re.IGNORECASE) for package in packages)
    return Manifest(
        path,
        "dotnet",
        path.rpartition("/")[2].rpartition(".")[0],
        _line(root.findtext(".//Description")),
        _version(".NET", root.findtext(".//TargetFramework")),
        [] if is_test else [_line(root.get("Sdk")), *packages],
        packages if is_test else [],
    )


_READERS: Mapping[str, Callable[[str, str], Manifest]] = {
    "pyproject.toml": _pyproject,
    "requirements.txt": _requirements,
    "package.json": _package_json,
    "Cargo.toml": _cargo,
    "go.mod": _go_mod,
    "pom.xml": _pom,
    "build.gradle": _gradle,
    "build.gradle.kts": _gradle,
    ".csproj": _csproj,
}


# --- project configuration -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """The project's configuration (001), each value with the file that says it. Settings may replace any value."""

    name: str = ""
    language: str = ""
    framework: str = ""
    test_framework: str = ""
    name_source: str = ""
    language_source: str = ""
    framework_source: str = ""
    test_framework_source: str = ""


_ECOSYSTEMS = {
    **dict.fromkeys(("javascript", "typescript", "vue", "svelte"), "node"),
    **dict.fromkeys(("java", "kotlin", "scala", "groovy"), "jvm"),
    **dict.fromkeys(("csharp", "fsharp"), "dotnet"),
}
"""Languages whose packages come from an ecosystem of another name."""


def ecosystem_of(language: str) -> str:
    """Return the world of packages and tools that a language belongs to: `node`, `jvm`, `python`."""
    return _ECOSYSTEMS.get(language, language)


_FRAMEWORKS: Mapping[str, str] = {
    "python": "django fastapi flask litestar starlette sanic quart tornado pyramid falcon bottle aiohttp streamlit scrapy",
    "node": "next nuxt @nestjs/core=nestjs @remix-run/react=remix @sveltejs/kit=sveltekit @angular/core=angular astro "
    "gatsby expo react-native electron express fastify koa hono @hapi/hapi=hapi vue svelte solid-js=solid preact react",
    "go": "github.com/gin-gonic/gin=gin github.com/labstack/echo=echo github.com/gofiber/fiber=fiber "
    "github.com/go-chi/chi=chi github.com/gorilla/mux=gorilla/mux github.com/beego/beego=beego google.golang.org/grpc=grpc",
    "rust": "axum actix-web rocket warp poem tauri leptos yew bevy tonic",
    "jvm": "org.springframework.boot=spring-boot io.quarkus=quarkus io.micronaut=micronaut io.dropwizard=dropwizard "
    "io.ktor=ktor io.vertx=vert.x com.android.application=android com.android.library=android org.playframework=play "
    "org.http4s=http4s dev.zio=zio org.apache.spark=spark org.springframework=spring jakarta.platform=jakarta-ee",
    "dotnet": "Microsoft.NET.Sdk.BlazorWebAssembly=blazor Microsoft.NET.Sdk.Web=aspnetcore "
    "Microsoft.AspNetCore.App=aspnetcore Avalonia=avalonia",
}
"""Packages, and the framework where its name is another one; the one that shapes the program most comes first."""

_TEST_FRAMEWORKS: Mapping[str, str] = {
    "python": "pytest nose2",
    "node": "vitest jest @jest/core=jest ts-jest=jest mocha ava jasmine @playwright/test=playwright cypress qunit tap karma",
    "jvm": "org.junit.jupiter=junit5 junit:junit=junit4 org.springframework.boot:spring-boot-starter-test=junit5 "
    "org.testng=testng org.spockframework=spock io.kotest=kotest org.scalatest=scalatest org.scalameta:munit=munit "
    "org.jetbrains.kotlin:kotlin-test=kotlin-test",
    "dotnet": "xunit xunit.v3=xunit nunit mstest.testframework=mstest mstest",
}

_FRAMEWORK_FILES = {"manage.py": "django", "config/application.rb": "rails", "artisan": "laravel"}
"""Files that only one framework has, for projects whose manifest does not name it."""

_TEST_FILES: Mapping[str, Sequence[tuple[str, str]]] = {
    "python": (("conftest.py", "pytest"), ("pytest.ini", "pytest")),
    "node": (("vitest.config.ts", "vitest"), ("jest.config.js", "jest"), ("jest.config.ts", "jest")),
    "go": (("_test.go", "go test"),),
    "ruby": (("_spec.rb", "rspec"), ("_test.rb", "minitest")),
    "php": (("Test.php", "phpunit"),),
    "elixir": (("_test.exs", "exunit"),),
    "swift": (("Tests.swift", "xctest"),),
}
"""Ends of paths, and the test framework that such a file is for."""

_TEST_IMPORT = re.compile(r"^(?:import|from) (pytest|unittest|django\.test)\b", re.MULTILINE)


def count_languages(paths: Iterable[str]) -> Counter[str]:
    """Return how many files each language has, without tests, documents and examples if there are any others."""
    every, own = Counter[str](), Counter[str]()
    for path in paths:
        if language := programming_language(path):
            every[language] += 1
            if role_of(path) not in PERIPHERAL_ROLES:
                own[language] += 1
    return own or every


def main_language(counts: Counter[str]) -> str:
    """Return the language with the most files. A secondary one, such as SQL, is chosen only if there is no other."""
    return min(counts, key=lambda language: (language in SECONDARY_LANGUAGES, -counts[language], language), default="")


def project_config(files: RepositoryFiles, manifests: Sequence[Manifest]) -> ProjectConfig:
    """Return the project's configuration, from its manifests first and from its paths second."""
    counts = count_languages(files.paths)
    language = main_language(counts)
    language_source = pluralize(counts[language], "file") if language else ""
    if not language and manifests:
        language, language_source = manifests[0].ecosystem, manifests[0].path
    ecosystem = ecosystem_of(language)
    own = [manifest for manifest in manifests if manifest.ecosystem == ecosystem]
    at_root = (manifest for manifest in (*own, *manifests) if manifest.name and not manifest.folder)
    named = next(((manifest.name, manifest.path) for manifest in at_root), ("", ""))
    framework = _framework(files, own, named[0])
    test = _test_framework(files, own, ecosystem)
    return ProjectConfig(named[0], language, framework[0], test[0], named[1], language_source, framework[1], test[1])


def frameworks(manifest: Manifest) -> list[str]:
    """Return the frameworks that a manifest depends on, the one that shapes the program most first."""
    return _matches(_FRAMEWORKS.get(manifest.ecosystem, ""), manifest.dependencies)


def _matches(table: str, packages: Iterable[str]) -> list[str]:
    """Return what a table names for packages. A module, an artifact or a major version of a package counts as it."""
    names = [package.lower().replace("_", "-") for package in packages]
    found = []
    for row in table.split():
        package, _, name = row.partition("=")
        wanted = package.lower()
        if any(known == wanted or known.startswith((f"{wanted}/", f"{wanted}:", f"{wanted}.")) for known in names):
            found.append(name or package)
    return list(dict.fromkeys(found))


def _framework(files: RepositoryFiles, main_manifests: Iterable[Manifest], name: str) -> tuple[str, str]:
    for manifest in main_manifests:
        if found := [framework for framework in frameworks(manifest) if framework != name.lower()]:
            return found[0], manifest.path
    return next(((framework, path) for path, framework in _FRAMEWORK_FILES.items() if path in files), ("", ""))


def _test_framework(files: RepositoryFiles, main_manifests: Iterable[Manifest], ecosystem: str) -> tuple[str, str]:
    for manifest in main_manifests:
        packages = (*manifest.dev_dependencies, *manifest.dependencies, *manifest.tools)
        if found := _matches(_TEST_FRAMEWORKS.get(ecosystem, ""), packages):
            return found[0], manifest.path
    for end, framework in _TEST_FILES.get(ecosystem, ()):
        if path := next((path for path in files.paths if path.endswith(end)), ""):
            return framework, path
    tests = [path for path in files.paths if role_of(path) == "test"]
    if ecosystem == "rust":
        units = [path for path in files.find_by_suffix(("lib.rs", "main.rs"), 3) if "#[cfg(test)]" in files.text(path)]
        tests = [*(path for path in tests if path.endswith(".rs")), *units]
        return ("cargo test", tests[0]) if tests else ("", "")
    for path in [path for path in tests if path.endswith(".py")][:MAX_TEST_FILES_READ] if ecosystem == "python" else ():
        if match := _TEST_IMPORT.search(files.text(path)):
            return ("pytest" if match[1] == "pytest" else "unittest"), path
    return "", ""
