"""Manifests -> what a project is made of: name, language versions, libraries, scripts, entry points.

Comes in: a `Repository`. Goes out: one `Manifest` for each file of a package manager that it has, those at the root first.
It reads what is written there and resolves nothing. A manifest that cannot be read leaves a note and is skipped.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from foveate.code.docs.repository import Repository

MAX_MANIFESTS = 16
"""A workspace may have hundreds: those nearest to the root describe it."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one file says. Names are as written; what the file does not say is empty."""

    path: str
    ecosystem: str
    """`python`, `node`, `go`, `rust`, `jvm`, `ruby`, `php`, `dotnet`, `swift`, `elixir` or `dart`."""
    name: str = ""
    description: str = ""
    requires: str = ""
    """The language and its version: `Python >=3.11`."""
    dependencies: tuple[str, ...] = ()
    development: tuple[str, ...] = ()
    """What is only needed to test, check and build it."""
    scripts: Pairs = ()
    """Named commands, with what they run."""
    entries: Pairs = ()
    """How the outside starts it: the name of a command or `main`, with what it leads to."""
    build: str = ""
    """Build backend or package manager, where the file names one."""
    workspaces: tuple[str, ...] = ()
    tools: Mapping[str, Any] = field(default_factory=dict)
    """Settings of other tools: the `[tool]` tables of pyproject.toml, all of package.json."""

    @property
    def folder(self) -> str:
        """The directory that it describes; empty for the root."""
        return self.path.rpartition("/")[0]


def manifests(repository: Repository) -> tuple[Manifest, ...]:
    """Every manifest near the root that could be read."""
    names = [name for name, _ in _READERS if not name.startswith("*")]
    ends = [name[1:] for name, _ in _READERS if name.startswith("*")]
    paths = dict.fromkeys([*repository.named(*names), *repository.ending(*ends)])
    requirements = [path for path in repository.ending(".txt", depth=2) if _REQUIREMENTS.search(path)]
    nearest = sorted([*paths, *requirements], key=lambda path: (path.count("/"), path))[:MAX_MANIFESTS]
    found = (_read(repository, path) for path in nearest)
    return tuple(manifest for manifest in found if manifest is not None)


def _read(repository: Repository, path: str) -> Manifest | None:
    name = path.rpartition("/")[2].lower()
    reader = next(
        (read for end, read in _READERS if name == end or (end[0] == "*" and name.endswith(end[1:]))), _requirements
    )
    text = repository.text(path)
    if not text.strip():
        return None
    try:
        return reader(path, text)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        configparser.Error,
        ElementTree.ParseError,
        RecursionError,
    ) as error:
        reason = " ".join(str(error).split())[:80] or type(error).__name__
        repository.notes.append(f"{path} could not be read: {reason}")
        return None


# --- values from files that anyone may have written ----------------------------------------------------------------


def table(value: Any, *keys: str) -> Mapping[str, Any]:
    """A nested table; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def strings(value: Any) -> tuple[str, ...]:
    """The strings of a list; a single string is a list of one."""
    values = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    return tuple(one for one in values if isinstance(one, str))


def said(value: Any) -> str:
    """A string on one line; empty for anything else."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def _pairs(value: Any) -> Pairs:
    return tuple((str(name), said(line)) for name, line in table(value).items() if said(line))


_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)")


def _names(requirements: Iterable[str]) -> tuple[str, ...]:
    """The packages of requirements such as `django>=4 ; python_version > '3'`."""
    found = (_NAME.match(line) for line in requirements)
    return tuple(dict.fromkeys(match[1] for match in found if match))


def _version(language: str, version: Any) -> str:
    if isinstance(version, Mapping):
        version = version.get("version")
    return f"{language} {said(version)}" if said(version) else ""


# --- Python --------------------------------------------------------------------------------------------------------


def _pyproject(path: str, text: str) -> Manifest:
    data = tomllib.loads(text)
    project, tools = table(data, "project"), table(data, "tool")
    poetry, build = table(tools, "poetry"), said(table(data, "build-system").get("build-backend"))
    groups = [strings(group) for group in table(data, "dependency-groups").values()]
    extras = table(project, "optional-dependencies")
    development = [line for name, group in extras.items() if _DEVELOPMENT.search(name) for line in strings(group)]
    development += [line for group in groups for line in group] + list(strings(table(tools, "uv").get("dev-dependencies")))
    for group in (
        table(poetry, "dev-dependencies"),
        *(table(one, "dependencies") for one in table(poetry, "group").values()),
    ):
        development += list(group)
    required = table(poetry, "dependencies")
    scripts = [*_pairs(table(tools, "pdm", "scripts")), *_pairs(table(tools, "poe", "tasks")), *_hatch(tools),
               *_pairs(table(tools, "taskipy", "tasks"))]  # fmt: skip
    own = said(project.get("name")) or said(poetry.get("name"))
    return Manifest(
        path,
        "python",
        own,
        said(project.get("description")) or said(poetry.get("description")),
        _version("Python", project.get("requires-python") or required.get("python")),
        _names([*strings(project.get("dependencies")), *(name for name in required if name != "python")]),
        tuple(name for name in _names(development) if name.lower() != own.lower()),
        tuple(scripts),
        (*_pairs(project.get("scripts")), *_pairs(project.get("gui-scripts")), *_pairs(poetry.get("scripts"))),
        build.split(".")[0],
        strings(table(tools, "uv", "workspace").get("members")),
        tools,
    )


_DEVELOPMENT = re.compile(r"dev|test|lint|doc|typing|types|ci\b|check", re.IGNORECASE)


def _hatch(tools: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Scripts of hatch environments, as `hatch run` takes them."""
    found = []
    for environment, settings in table(tools, "hatch", "envs").items():
        prefix = "" if environment == "default" else f"{environment}:"
        found += [(f"{prefix}{name}", line) for name, line in _pairs(table(settings, "scripts"))]
    return found


def ini(text: str) -> Mapping[str, Mapping[str, str]]:
    """The sections of an ini file. Broken ones raise."""
    parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
    parser.optionxform = str.lower  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return {section: {key: value or "" for key, value in parser[section].items()} for section in parser.sections()}


def _setup_cfg(path: str, text: str) -> Manifest | None:
    data = ini(text)
    metadata, options = data.get("metadata", {}), data.get("options", {})
    if not metadata and not options:
        return None
    development = [line for name, lines in data.get("options.extras_require", {}).items() if _DEVELOPMENT.search(name)
                   for line in lines.splitlines()]  # fmt: skip
    commands = data.get("options.entry_points", {}).get("console_scripts", "")
    return Manifest(
        path,
        "python",
        said(metadata.get("name")),
        said(metadata.get("description")),
        _version("Python", options.get("python_requires")),
        _names(options.get("install_requires", "").splitlines()),
        _names(development),
        entries=_equations(commands.splitlines()),
        build="setuptools",
    )


def _equations(lines: Iterable[str]) -> Pairs:
    parts = (line.partition("=") for line in lines)
    return tuple((name.strip(), target.strip()) for name, _, target in parts if name.strip() and target.strip())


_QUOTED = re.compile(r"[\"']([^\"'\n]+)[\"']")


def _setup_py(path: str, text: str) -> Manifest | None:
    if "setup(" not in text:
        return None

    def argument(name: str) -> str:
        match = re.search(rf"\b{name}\s*=\s*(?:str\()?[\"']([^\"'\n]+)[\"']", text)
        return match[1] if match else ""

    def listed(name: str) -> list[str]:
        match = re.search(rf"\b{name}[\"']?\s*[=:]\s*\[([^\]]{{0,5000}})\]", text)
        return _QUOTED.findall(match[1]) if match else []

    return Manifest(
        path,
        "python",
        argument("name"),
        argument("description"),
        _version("Python", argument("python_requires")),
        _names(listed("install_requires")),
        _names(listed("tests_require")),
        entries=_equations(listed("console_scripts")),
        build="setuptools",
    )


_REQUIREMENTS = re.compile(r"(?:^|/)(?:[\w-]*requirements[\w-]*|requirements/[\w-]+)\.txt$")


def _requirements(path: str, text: str) -> Manifest:
    names = _names(line for line in text.splitlines() if not line.lstrip().startswith(("#", "-")))
    if _DEVELOPMENT.search(path.rpartition("/")[2].replace("requirements", "")):
        return Manifest(path, "python", development=names, build="pip")
    return Manifest(path, "python", dependencies=names, build="pip")


def _pipfile(path: str, text: str) -> Manifest:
    data = tomllib.loads(text)
    return Manifest(
        path,
        "python",
        requires=_version("Python", table(data, "requires").get("python_version")),
        dependencies=tuple(table(data, "packages")),
        development=tuple(table(data, "dev-packages")),
        scripts=_pairs(data.get("scripts")),
        build="pipenv",
    )


# --- Node, PHP, Deno -----------------------------------------------------------------------------------------------


def _package_json(path: str, text: str) -> Manifest:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    commands = data.get("bin")
    entries = [(said(data.get("name")), said(commands))] if said(commands) else list(_pairs(commands))
    entries += [(key, said(data.get(key))) for key in ("main", "module") if said(data.get(key))]
    packages = data.get("workspaces")
    return Manifest(
        path,
        "node",
        said(data.get("name")),
        said(data.get("description")),
        _version("Node", table(data, "engines").get("node")),
        (*table(data, "dependencies"), *table(data, "peerDependencies")),
        tuple(table(data, "devDependencies")),
        _pairs(data.get("scripts")),
        tuple(entries),
        said(data.get("packageManager")).split("@")[0],
        strings(packages) or strings(table(packages).get("packages")),
        data,
    )


def _composer(path: str, text: str) -> Manifest:
    data = json.loads(text)
    required = table(data, "require")
    scripts = table(data, "scripts")
    return Manifest(
        path,
        "php",
        said(data.get("name")),
        said(data.get("description")),
        _version("PHP", required.get("php")),
        tuple(name for name in required if "/" in name),
        tuple(name for name in table(data, "require-dev") if "/" in name),
        tuple((name, " && ".join(strings(line))) for name, line in scripts.items() if strings(line)),
        tuple((line.rpartition("/")[2], line) for line in strings(data.get("bin"))),
        "composer",
    )


# --- Rust, Go, Swift -----------------------------------------------------------------------------------------------


def _cargo(path: str, text: str) -> Manifest:
    data = tomllib.loads(text)
    package, workspace = table(data, "package"), table(data, "workspace")
    edition = said(package.get("edition"))
    version = said(package.get("rust-version"))
    return Manifest(
        path,
        "rust",
        said(package.get("name")),
        said(package.get("description")),
        " ".join(part for part in (version and f"Rust >={version}", edition and f"Rust edition {edition}") if part),
        (*table(data, "dependencies"), *table(workspace, "dependencies")),
        tuple(table(data, "dev-dependencies")),
        entries=tuple(
            (said(one.get("name")), said(one.get("path"))) for one in data.get("bin", []) if said(one.get("path"))
        ),
        build="cargo",
        workspaces=strings(workspace.get("members")),
    )


_GO_REQUIRE = re.compile(r"^(?:require\s+|[ \t]+)([\w.-]+\.[\w./~-]+)\s+v\S+(?P<indirect>\s*// indirect)?", re.MULTILINE)


def _go_mod(path: str, text: str) -> Manifest:
    module = re.search(r"^module\s+(\S+)", text, re.MULTILINE)
    version = re.search(r"^go\s+([\d.]+)", text, re.MULTILINE)
    direct = [match[1] for match in _GO_REQUIRE.finditer(text) if not match["indirect"]]
    return Manifest(
        path,
        "go",
        module[1] if module else "",
        requires=f"Go {version[1]}" if version else "",
        dependencies=tuple(direct),
        build="go modules",
    )


def _package_swift(path: str, text: str) -> Manifest:
    name = re.search(r"Package\(\s*name:\s*\"([^\"\n]+)\"", text)
    version = re.search(r"swift-tools-version:\s*([\d.]+)", text)
    libraries = re.findall(r"\.package\([^)]{0,200}?url:\s*\"[^\"\n]*/([\w.-]+?)(?:\.git)?\"", text)
    executables = re.findall(r"\.executableTarget\(\s*name:\s*\"([^\"\n]+)\"", text)
    return Manifest(
        path,
        "swift",
        name[1] if name else "",
        requires=f"Swift tools {version[1]}" if version else "",
        dependencies=tuple(libraries),
        entries=tuple((name, f"Sources/{name}") for name in executables),
        build="swift package manager",
    )


# --- JVM -----------------------------------------------------------------------------------------------------------


def _xml(text: str) -> ElementTree.Element:
    """The root of an XML document whose tags have lost their namespaces. Entities could be endless: they are refused."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("declares a document type, which is not read")
    root = ElementTree.fromstring(text)
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    return root


def _pom(path: str, text: str) -> Manifest:
    root = _xml(text)
    libraries: list[str] = []
    development: list[str] = []
    parent = root.find("parent")
    for one in ([parent] if parent is not None else []) + root.findall("dependencies/dependency"):
        name = f"{said(one.findtext('groupId'))}:{said(one.findtext('artifactId'))}"
        (development if said(one.findtext("scope")) == "test" else libraries).append(name)
    properties = {one.tag: said(one.text) for one in root.findall("properties/*")}
    version = next((properties[key] for key in ("java.version", "maven.compiler.release", "maven.compiler.source")
                    if properties.get(key)), "")  # fmt: skip
    return Manifest(
        path,
        "jvm",
        said(root.findtext("artifactId")),
        said(root.findtext("description")),
        _version("Java", version),
        tuple(libraries),
        tuple(development),
        build="maven",
        workspaces=tuple(said(module.text) for module in root.findall("modules/module")),
    )


_GRADLE_LINE = re.compile(
    r"^[ \t]*(?P<how>\w*(?:[iI]mplementation|[aA]pi|[cC]ompileOnly|[rR]untimeOnly|kapt|ksp))\s*\(?\s*(?:platform\()?"
    r"(?:[\"'](?P<name>[\w.-]+:[\w.-]+)(?::[^\"'\n]*)?[\"']|(?P<catalog>libs\.[\w.]+)|kotlin\([\"'](?P<kotlin>[\w-]+))",
    re.MULTILINE,
)
_GRADLE_PLUGIN = re.compile(r"^[ \t]*id\s*\(?\s*[\"']([\w.-]+)[\"']", re.MULTILINE)


def _gradle(path: str, text: str) -> Manifest:
    libraries, development = _GRADLE_PLUGIN.findall(text), list[str]()
    for match in _GRADLE_LINE.finditer(text):
        name = match["name"] or match["catalog"] or f"org.jetbrains.kotlin:kotlin-{match['kotlin']}"
        (development if match["how"].lower().startswith(("test", "androidtest")) else libraries).append(name)
    version = re.search(r"(?:languageVersion\D{1,60}|jvmToolchain\(|sourceCompatibility\D{1,40}?)(\d+)", text)
    main = re.search(r"mainClass(?:Name)?(?:\.set\(|\s*=)\s*[\"']([\w.$]+)[\"']", text)
    return Manifest(
        path,
        "jvm",
        requires=f"Java {version[1]}" if version else "",
        dependencies=tuple(libraries),
        development=tuple(development),
        entries=(("main", main[1]),) if main else (),
        build="gradle",
    )


def _sbt(path: str, text: str) -> Manifest:
    name = re.search(r"^[ \t]*name\s*:=\s*\"([^\"\n]+)\"", text, re.MULTILINE)
    version = re.search(r"scalaVersion\s*:=\s*\"([^\"\n]+)\"", text)
    libraries, development = list[str](), list[str]()
    for match in re.finditer(r"\"([\w.-]+)\"\s*%%?%?\s*\"([\w.-]+)\"\s*%[^,\n)]*", text):
        (development if re.search(r"%\s*(?:Test|\"test\")", match[0]) else libraries).append(f"{match[1]}:{match[2]}")
    return Manifest(
        path,
        "jvm",
        name[1] if name else "",
        requires=f"Scala {version[1]}" if version else "",
        dependencies=tuple(libraries),
        development=tuple(development),
        build="sbt",
    )


# --- Ruby, .NET, Elixir, Dart --------------------------------------------------------------------------------------

_GEM_GROUP = re.compile(
    r"^(?P<group>[ \t]*group\b[^\n]*\bdo\b)|^(?P<end>[ \t]*end)\b"
    r"|^[ \t]*gem\s*\(?\s*[\"'](?P<gem>[\w.-]+)[\"'](?P<rest>[^\n]*)",
    re.MULTILINE,
)


def _gemfile(path: str, text: str) -> Manifest:
    version = re.search(r"^ruby\s+[\"']([^\"'\n]+)[\"']", text, re.MULTILINE)
    libraries, development = list[str](), list[str]()
    group = ""
    for match in _GEM_GROUP.finditer(text):
        if match["group"] or match["end"]:
            group = match["group"] or ""
        else:
            is_development = re.search(
                r":(?:test|development)", group + " ".join(re.findall(r"group\w*:[^\n]*", match["rest"]))
            )
            (development if is_development else libraries).append(match["gem"])
    return Manifest(path, "ruby", "", "", f"Ruby {version[1]}" if version else "", tuple(libraries), tuple(development),
                    build="bundler")  # fmt: skip


def _project_file(path: str, text: str) -> Manifest:
    """A .NET project: its SDK counts as a library, because it says what kind of program it is."""
    root = _xml(text)
    packages = [said(one.get("Include")) for one in root.iter("PackageReference") if one.get("Include")]
    is_test = any(_DOTNET_TEST.match(name) for name in packages)
    target = said(root.findtext(".//TargetFramework")) or said(root.findtext(".//TargetFrameworks"))
    name = path.rpartition("/")[2].rpartition(".")[0]
    sdk = said(root.get("Sdk"))
    executable = said(root.findtext(".//OutputType")) == "Exe" or sdk.endswith(".Web")
    settings = {tag: said(root.findtext(f".//{tag}")) for tag in ("Nullable", "TreatWarningsAsErrors", "LangVersion")}
    return Manifest(
        path,
        "dotnet",
        name,
        said(root.findtext(".//Description")),
        f".NET {target}" if target else "",
        () if is_test else (*([sdk] if sdk else []), *packages),
        tuple(packages) if is_test else (),
        entries=((name, path),) if executable and not is_test else (),
        build="dotnet",
        tools={tag: value for tag, value in settings.items() if value},
    )


_DOTNET_TEST = re.compile(r"xunit|nunit|MSTest|Microsoft\.NET\.Test", re.IGNORECASE)


def _mix(path: str, text: str) -> Manifest:
    name = re.search(r"\bapp:\s*:(\w+)", text)
    version = re.search(r"\belixir:\s*\"([^\"\n]+)\"", text)
    libraries, development = list[str](), list[str]()
    for match in re.finditer(r"\{:(\w+),([^{}\n]*)\}", text):
        (development if re.search(r"only:\s*\[?\s*:(?:test|dev)", match[2]) else libraries).append(match[1])
    return Manifest(path, "elixir", name[1] if name else "", "", f"Elixir {version[1]}" if version else "", tuple(libraries),
                    tuple(development), build="mix")  # fmt: skip


def _pubspec(path: str, text: str) -> Manifest:
    def section(name: str) -> tuple[str, ...]:
        match = re.search(rf"^{name}:[^\S\n]*\n((?:[ \t]+[^\n]*\n|[ \t]*#[^\n]*\n|\s*\n)*)", text + "\n", re.MULTILINE)
        return tuple(re.findall(r"^ {2}([\w-]+):", match[1], re.MULTILINE)) if match else ()

    def value(name: str) -> str:
        match = re.search(rf"^{name}:\s*([^\s#>|][^\n#]*)", text, re.MULTILINE)
        return match[1].strip(" \"'") if match else ""

    version = re.search(r"^ {2}sdk:\s*[\"']?([^\"'\n]+)", text, re.MULTILINE)
    return Manifest(path, "dart", value("name"), value("description"), f"Dart {version[1]}" if version else "",
                    section("dependencies"), section("dev_dependencies"), build="pub")  # fmt: skip


_READERS: tuple[tuple[str, Callable[[str, str], Manifest | None]], ...] = (
    ("pyproject.toml", _pyproject),
    ("setup.cfg", _setup_cfg),
    ("setup.py", _setup_py),
    ("pipfile", _pipfile),
    ("package.json", _package_json),
    ("cargo.toml", _cargo),
    ("go.mod", _go_mod),
    ("pom.xml", _pom),
    ("build.gradle", _gradle),
    ("build.gradle.kts", _gradle),
    ("build.sbt", _sbt),
    ("gemfile", _gemfile),
    ("composer.json", _composer),
    ("*.csproj", _project_file),
    ("*.fsproj", _project_file),
    ("package.swift", _package_swift),
    ("mix.exs", _mix),
    ("pubspec.yaml", _pubspec),
)
