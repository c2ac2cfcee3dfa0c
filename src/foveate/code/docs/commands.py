"""How a project is tested, checked, built and run, and where it starts: commands that its own files name.

Comes in: a `Repository`, its manifests and configuration. Goes out: `Command`s by purpose, the likeliest first, and entry
points. A command that several files name is likelier than one that a single file names. A command that follows from a
manifest alone (`cargo test`) counts least and says what it follows from.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from foveate.code.docs import prose
from foveate.code.docs.manifests import Manifest, ini, table
from foveate.code.docs.repository import Repository, is_beside
from foveate.code.docs.stack import ECOSYSTEMS, ProjectConfig, package_manager

PURPOSES = ("test", "lint", "types", "format", "build", "run", "docs", "setup")
MAX_WORKFLOWS = 6
LONGEST = 140
"""Longer lines are scripts, not commands that someone would type."""

LONGEST_WRITTEN = 1_000
"""What is looked at of a line before it is cleaned."""

_INSTRUCTED, _NAMED, _CI, _GUIDE, _RUNNER, _CONFIGURED, _USUAL = 5, 4, 3, 3, 3, 2, 1
"""What a mention is worth: in instructions for agents, as a target or script, in CI, in a guide, in tox or nox, by "
"settings."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, what it is for, and the files that say so."""

    purpose: str
    line: str
    sources: tuple[str, ...]
    weight: int = 0
    ecosystem: str = ""
    """Whose tool it is; empty for those that serve any language."""


@dataclass(frozen=True, slots=True)
class _Mention:
    purpose: str
    line: str
    source: str
    worth: int


def commands(
    repository: Repository, found: Sequence[Manifest], project: ProjectConfig, guides: Sequence[str]
) -> tuple[Command, ...]:
    """Every command by purpose, the likeliest of each first. `guides` are documents that may name commands."""
    mentions = [
        *_targets(repository),
        *_scripts(repository, found),
        *_from_guides(repository, guides),
        *_from_ci(repository),
        *_from_tox(repository),
        *_from_nox(repository),
        *_usual(repository, found, project),
    ]
    named = {(one.purpose, _ecosystem(one.line)) for one in mentions if one.worth > _USUAL}
    grouped: dict[tuple[str, str], list[_Mention]] = {}
    for mention in mentions:
        if mention.worth == _USUAL and (mention.purpose, _ecosystem(mention.line)) in named:
            continue  # what is written down wins over what is usual
        grouped.setdefault((mention.purpose, _key(mention.line)), []).append(mention)
    own = ("", ECOSYSTEMS.get(project.language, ""))
    found_commands = (_command(group) for group in grouped.values())
    return tuple(
        sorted(found_commands, key=lambda one: (PURPOSES.index(one.purpose), one.ecosystem not in own, -one.weight))
    )


def _command(group: Sequence[_Mention]) -> Command:
    """The worthiest mention, for tests the shortest of all: that runs the whole suite. Each kind of place counts once."""
    ranked = sorted(group, key=lambda one: -one.worth)
    shortest = min(group, key=lambda one: (len(one.line), one.line))
    line = shortest.line if shortest.purpose == "test" else ranked[0].line
    weight = sum(worth for worth, _ in {(one.worth, _place(one.source)) for one in group})
    return Command(group[0].purpose, line, tuple(dict.fromkeys(one.source for one in ranked)), weight, _ecosystem(line))


def _place(source: str) -> str:
    return ".github" if source.startswith(".github/workflows") else source


# --- what a line is for --------------------------------------------------------------------------------------------

_TOOLS = {
    "test": "pytest, py.test, unittest, nose2, tox, nox, jest, vitest, mocha, ava, karma, playwright test, cypress run, "
    "gotestsum, rspec, phpunit, pest, ctest, go test, cargo test, cargo nextest, dotnet test, mix test, swift test, "
    "flutter test, dart test, deno test, bazel test, stack test, cabal test, lein test, sbt test, rails test, "
    "bin/rails test, artisan test",
    "lint": "flake8, pylint, ruff check, ruff ., eslint, golangci-lint, rubocop, standardrb, phpcs, phpstan, psalm, "
    "pre-commit run, shellcheck, biome check, biome lint, biome ci, stylelint, ktlint, detekt, swiftlint, yamllint, "
    "bandit, codespell, typos, cargo clippy, go vet, mix credo, dart analyze, flutter analyze",
    "types": "mypy, pyright, basedpyright, pytype, tsc, vue-tsc, ty check, pyre, mix dialyzer",
    "format": "black, isort, ruff format, prettier, gofmt, goimports, gofumpt, cargo fmt, mix format, dotnet format, "
    "dart format, swiftformat, clang-format, pint, php-cs-fixer",
    "build": "build, hatch build, poetry build, uv build, flit build, pdm build, cargo build, go build, dotnet build, "
    "swift build, docker build, cmake --build, mix compile",
    "run": "uvicorn, gunicorn, flask run, streamlit run, go run, cargo run, rails server, bin/rails server, bin/dev, "
    "artisan serve, mix phx.server, dotnet run, docker compose up, docker-compose up, flutter run",
    "docs": "sphinx-build, sphinx-autobuild, mkdocs, pdoc, cargo doc",
    "setup": "pip install -e, pip install --editable, pip install -r, poetry install, uv sync, pdm install, "
    "pipenv install, npm ci, bundle install, composer install, go mod download, dotnet restore, mix deps.get, "
    "flutter pub get, pre-commit install",
}
"""How the command lines of known tools begin."""

_SCRIPTS = {
    "test": "test|tests|t|spec|unit", "lint": "lint", "types": "typecheck|type-check|types|check-types|mypy",
    "format": "format|fmt",
    "build": "build|dist|package|all", "run": "start|dev|serve|run", "docs": "docs?|html",
    "setup": "install|setup|bootstrap|develop",
}  # fmt: skip
"""Names of the targets and scripts that task runners run."""

_RUNNERS = (
    r"(?:(?:npm|pnpm|yarn|bun)(?: -w| -r| --filter \S+)* (?:run |run-script )?"
    r"|(?:make|just|task|rake|invoke|inv|nox -s|poe|hatch run|composer(?: run)?) )"
)
_MVN, _GRADLE = r"(?:\./)?mvnw?(?: -\S+)* (?:[\w:-]+ )*", r"(?:\./)?gradlew?(?: -\S+)* (?:[\w-]+ )*(?:[\w:-]*:)?"
_SPECIAL = {
    "test": rf"{_MVN}(?:test|verify)|{_GRADLE}(?:test|check)|(?:python3? )?\S*(?:runtests\.py|manage\.py test)"
    rf"|xcodebuild .*\btest",
    "format": rf"{_GRADLE}spotless\w+",
    "build": rf"{_MVN}(?:package|install)|{_GRADLE}(?:build|assemble)",
    "run": rf"{_MVN}spring-boot:run|{_GRADLE}(?:bootRun|run)|(?:python3? )?\S*manage\.py runserver",
    "setup": r"pip3? install \.\S*",
}
"""Programs whose verb is not their second word."""


def _class(purpose: str) -> re.Pattern[str]:
    tools = "|".join(re.escape(tool) for tool in _TOOLS[purpose].split(", "))
    return re.compile(rf"(?:{tools}|{_RUNNERS}(?:{_SCRIPTS[purpose]})|{_SPECIAL.get(purpose, '(?!)')})(?=\s|$)")


_CLASSES = tuple(
    (purpose, _class(purpose)) for purpose in ("docs", "lint", "types", "format", "test", "run", "setup", "build")
)
_LAUNCHER = re.compile(
    r"(?:(?:[A-Z_][A-Z0-9_]*=\S*|env|sudo|time|xvfb-run(?: -\S+)*|uv run(?: --\S+)*|(?:poetry|pipenv|pdm|rye) run"
    r"|npx(?: --\S+)*|pnpm exec|yarn dlx|bunx|bundle exec|php|coverage run(?: -\S+)*? -m|python[\d.]*(?: -W\S*)? -m"
    r"|(?:\./)?vendor/bin/|(?:\./)?\.?venv/bin/(?:python -m)?|node_modules/\.bin/)\s*)+"
)
"""What stands before the tool itself."""

_PLACEHOLDER = re.compile(r"(?:\s-{1,2}[\w-]+[ =])?\s*\$?\{\{[^{}\n]*\}\}")
_POSARGS = re.compile(r"\s*\{posargs[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_SPACED = re.compile(r"\s+")


def purpose_of(line: str) -> str:
    """What a command is for; empty for one that is not known."""
    bare = _bare(line[:LONGEST])
    return next((purpose for purpose, pattern in _CLASSES if pattern.match(bare)), "")


def _bare(line: str) -> str:
    line = line.partition(" && ")[2] if line.startswith("cd ") and " && " in line else line
    launcher = _LAUNCHER.match(line)
    return line[launcher.end() :] if launcher and launcher.end() < len(line) else line


_PROGRAMS = {
    program: ecosystem
    for ecosystem, programs in {
        "python": "pytest py.test unittest tox nox pip pip3 ruff flake8 pylint mypy pyright black isort poetry uv hatch "
        "pdm build sphinx-build runtests.py manage.py coverage bandit",
        "node": "npm pnpm yarn bun jest vitest mocha eslint prettier tsc biome karma ava stylelint",
        "go": "go golangci-lint gofmt goimports gotestsum",
        "rust": "cargo",
        "jvm": "mvn mvnw gradle gradlew sbt",
        "ruby": "bundle bin/rails rails rake rspec rubocop",
        "php": "composer artisan phpunit pest phpstan phpcs pint",
        "dotnet": "dotnet",
        "elixir": "mix",
        "swift": "swift xcodebuild swiftlint",
        "dart": "flutter dart",
    }.items()
    for program in programs.split()
}
_VERBED = frozenset(
    ("npm", "pnpm", "yarn", "bun", "make", "just", "task", "go", "cargo", "dotnet", "mix", "rake", "nox", "composer",
    "hatch",
     "poe", "ruff", "docker", "rails", "bin/rails", "flutter", "dart", "bundle", "pre-commit")
)  # fmt: skip
"""Programs whose second word says what they do."""


def _key(line: str) -> str:
    """What makes two lines the same command: the program and, where it has verbs, the verb."""
    words = [word for word in _bare(line).split() if word not in {"run", "run-script"} and not word.startswith("-")] or [
        line
    ]
    if words[0].startswith("python") and len(words) > 1:
        words = words[1:]
    program = words[0].removeprefix("./")
    return " ".join([program, *words[1:2]]) if program in _VERBED else program


def _ecosystem(line: str) -> str:
    return _PROGRAMS.get(_key(line).split()[0], "")


def _cleaned(line: str) -> str:
    """A line without prompts, quotes and the places where a runner puts values in, with the option that takes them."""
    line = line[:LONGEST_WRITTEN]
    line = _PLACEHOLDER.sub("", line) if "{{" in line else line
    line = _POSARGS.sub("", line.replace("{envpython}", "python").replace("{toxinidir}/", "").replace("{toxinidir}", "."))
    line = line.strip().removeprefix("- ").removeprefix("$ ").strip()
    quoted = len(line) > 1 and line[0] == line[-1] and line[0] in "\"'"
    return _SPACED.sub(" ", line[1:-1] if quoted else line)


def _known(lines: Iterable[str], source: str, worth: int) -> Iterator[_Mention]:
    """The lines that are commands of a known purpose."""
    for written in lines:
        line = _cleaned(written)
        for part in [line] if line.startswith("cd ") else re.split(r" (?:&&|;|\|\|) ", line):
            part = part.partition(" | ")[0].strip()
            if 2 < len(part) <= LONGEST and (purpose := purpose_of(part)):
                yield _Mention(purpose, part, source, worth)


# --- task runners --------------------------------------------------------------------------------------------------

_TARGET_NAMES = {
    "test": r"tests?|unit|unit[-_]?tests?|pytest|spec",
    "lint": r"lint(?:ers?|ing)?|check|style|code-analysis",
    "types": r"types?|type-?check|check-types|mypy|tsc",
    "format": r"fmt|format(?:ting)?|prettier",
    "build": r"build|compile|dist|package|all",
    "run": r"run|start|serve|server|dev|up|develop",
    "docs": r"docs?|html|documentation",
    "setup": r"install|setup|bootstrap|deps|dependencies|install-dev|sync|init",
}
_TARGETS = tuple((purpose, re.compile(pattern, re.IGNORECASE)) for purpose, pattern in _TARGET_NAMES.items())
_MAKE_TARGET = re.compile(
    r"^([A-Za-z][\w./-]*)[ \t]*:(?![=:])([^\n]*)\n((?:(?:\t|[ ]{2,})[^\n]*\n|[ \t]*\n)*)", re.MULTILINE
)
_JUST_RECIPE = re.compile(r"^@?([a-z][\w-]*)(?:[ \t][^:\n=]*)?:(?!=)([^\n]*)\n((?:[ \t]+[^\n]*\n|[ \t]*\n)*)", re.MULTILINE)
_TASK = re.compile(r"^  ([a-z][\w:-]*):(\s*)\n((?: {4,}[^\n]*\n|[ \t]*\n)*)", re.MULTILINE)
_NO_TEST = re.compile(r"no test specified")


def _target_purpose(name: str, recipe: str) -> str:
    """By the target's name; `check` and `all` may mean anything, so what they run decides first."""
    lines = [_cleaned(line.strip().lstrip("@-"))[:LONGEST] for line in recipe.splitlines()]
    runs = next((purpose for line in lines if (purpose := purpose_of(_make_line(line)))), "")
    named = next((purpose for purpose, pattern in _TARGETS if pattern.fullmatch(name)), "")
    return (runs or named) if name in {"check", "all", "ci"} else named


def _make_line(line: str) -> str:
    """A line of a recipe with the variable that holds the interpreter read as one."""
    return re.sub(r"^\$[({]\w*PY\w*[)}]", "python", line)


def makefile(repository: Repository) -> str | None:
    """The Makefile at the root."""
    return repository.root("Makefile", "GNUmakefile")


def default_target(text: str) -> str:
    """What `make` alone runs."""
    goal = re.search(r"^\.DEFAULT_GOAL\s*:?=\s*(\S+)", text, re.MULTILINE)
    first = _MAKE_TARGET.search(text + "\n")
    return goal[1] if goal else first[1] if first else ""


def _targets(repository: Repository) -> Iterator[_Mention]:
    runners = (
        (makefile(repository), _MAKE_TARGET, "make"),
        (repository.root("justfile", ".justfile"), _JUST_RECIPE, "just"),
        (repository.root("Taskfile.yml", "Taskfile.yaml"), _TASK, "task"),
    )
    for path, pattern, runner in runners:
        for match in pattern.finditer(repository.text(path) + "\n") if path else ():
            if purpose := _target_purpose(match[1], match[3]):
                yield _Mention(purpose, f"{runner} {match[1]}", path or "", _NAMED)


def _scripts(repository: Repository, found: Sequence[Manifest]) -> Iterator[_Mention]:
    """Scripts of the manifests at the root, as their package manager runs them."""
    for manifest in found:
        if manifest.folder:
            continue
        manager, _ = package_manager(repository, found, manifest.ecosystem)
        for name, line in manifest.scripts:
            bare = name.rpartition(":")[2] if manifest.ecosystem == "python" else name
            purpose = next((purpose for purpose, pattern in _TARGETS if pattern.fullmatch(bare)), "")
            if manifest.ecosystem != "node" and bare in {"check", "all"}:
                purpose = purpose_of(line) or purpose
            if purpose and not _NO_TEST.search(line):
                yield _Mention(purpose, _script_line(manifest, manager, name), manifest.path, _NAMED)


def _script_line(manifest: Manifest, manager: str, name: str) -> str:
    if manifest.ecosystem == "node":
        manager = manager if manager in {"pnpm", "yarn", "bun"} else "npm"
        return f"{manager} {name}" if name in {"test", "start"} or manager == "yarn" else f"{manager} run {name}"
    if manifest.ecosystem == "php":
        return f"composer {name}"
    runner = next((tool for tool in ("poe", "taskipy", "pdm") if table(manifest.tools, tool)), "hatch")
    return f"{'task' if runner == 'taskipy' else runner} {name}" if runner in {"poe", "taskipy"} else f"{runner} run {name}"


# --- documents, CI, tox, nox ---------------------------------------------------------------------------------------

_GUIDE_CODE = re.compile(r"^[ \t]{0,12}(?:```|~~~)[^\n]*\n(.*?)^[ \t]{0,12}(?:```|~~~)|^(?: {3,}|\t)(\$ [^\n]+)"
                         r"|`([^`\n]{4,120})`",
                         re.MULTILINE | re.DOTALL)  # fmt: skip


def _from_guides(repository: Repository, guides: Sequence[str]) -> Iterator[_Mention]:
    for path in guides:
        worth = _GUIDE if re.search(r"contributing|readme|develop", path, re.IGNORECASE) else _INSTRUCTED
        for match in _GUIDE_CODE.finditer(repository.text(path)[: prose.MAX_CHARS]):
            code = match[1] or match[2] or (match[3] if " " in (match[3] or "") else "") or ""
            lines = code.replace("\\\n", " ").splitlines()
            yield from _known((line.split("  #")[0].partition(" # ")[0] for line in lines), path, worth)


_CI_KEY = re.compile(r"^\s*(?:- )?(?:run|script|command|sh|bash|exec)\s*:?\s+(?:[|>][+-]?\s*$)?")
_PREFERRED_WORKFLOW = re.compile(
    r"test|ci|check|lint|build|main|pr\b|python|node|go|rust|java|quality|pre-commit", re.IGNORECASE
)
_OTHER_WORKFLOW = re.compile(r"release|publish|deploy|label|stale|welcome|issue|lock|codeql|scan|schedul|nightly"
                             r"|comment|merge|bench"
                             r"|wheel|docker|backport|triage", re.IGNORECASE)  # fmt: skip
_CI_FILES = (".gitlab-ci.yml", ".circleci/config.yml", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml",
"Jenkinsfile",
             "appveyor.yml", ".drone.yml", ".woodpecker.yml", ".cirrus.yml", ".ci/run", "ci.sh")  # fmt: skip


def ci_files(repository: Repository) -> list[str]:
    """The CI files that say how the project is checked, those about tests first."""
    workflows = [path for path in repository.under(".github/workflows") if path.endswith((".yml", ".yaml"))]
    named = sorted(
        workflows, key=lambda path: (bool(_OTHER_WORKFLOW.search(path)), not _PREFERRED_WORKFLOW.search(path[18:]), path)
    )
    kept = [path for path in named if not _OTHER_WORKFLOW.search(path[18:])] or named
    return kept[:MAX_WORKFLOWS] + [path for path in _CI_FILES if path in repository]


def _from_ci(repository: Repository) -> Iterator[_Mention]:
    """Any line of a CI file that is a known command, whatever the system's keys for it are."""
    for path in ci_files(repository):
        text = re.sub(r"\\\n\s*", " ", repository.text(path))
        lines = (_CI_KEY.sub("", line[:LONGEST_WRITTEN], count=1).strip().removeprefix("- ") for line in text.splitlines())
        yield from _known((line.strip(" (),") for line in lines if not line.startswith("#")), path, _CI)


def _from_tox(repository: Repository) -> Iterator[_Mention]:
    path = repository.root("tox.ini")
    if path is None:
        return
    try:
        sections = ini(repository.text(path))
    except configparser.Error as error:
        repository.notes.append(f"{path} could not be read: {' '.join(str(error).split())[:80]}")
        return
    for name, options in sections.items():
        if not name.startswith("testenv"):
            continue
        folder = _cleaned(options.get("changedir", "")).strip("./")
        lines = re.sub(r"\\\n\s*", " ", options.get("commands", "")).splitlines()
        lines = [re.sub(r"^[\w{},!-]+:\s+", "", line) for line in lines]
        yield from _known((f"cd {folder} && {_cleaned(line)}" if folder else line for line in lines), path, _RUNNER)


_NOX_SESSION = re.compile(r"@(?:nox\.)?session\b[^\n]*\n(?:@[^\n]*\n)*def (\w+)")


def _from_nox(repository: Repository) -> Iterator[_Mention]:
    path = repository.root("noxfile.py")
    for name in _NOX_SESSION.findall(repository.text(path)) if path else ():
        if purpose := _target_purpose(name, ""):
            yield _Mention(purpose, f"nox -s {name}", path or "", _RUNNER)


# --- what follows from a manifest ----------------------------------------------------------------------------------

_BY_ECOSYSTEM = {
    "go": (("test", "go test ./..."), ("build", "go build ./...")),
    "rust": (("test", "cargo test"), ("build", "cargo build")),
    "dotnet": (("test", "dotnet test"), ("build", "dotnet build")),
    "swift": (("test", "swift test"), ("build", "swift build")),
    "elixir": (("test", "mix test"), ("build", "mix compile")),
}
_BY_FRAMEWORK = {
    "pytest": "pytest", "unittest": "python -m unittest", "rspec": "bundle exec rspec", "phpunit": "vendor/bin/phpunit",
    "pest": "vendor/bin/pest", "flutter test": "flutter test", "dart test": "dart test", "jest": "npx jest",
    "vitest": "npx vitest run",
    "mocha": "npx mocha",
}  # fmt: skip


def _usual(repository: Repository, found: Sequence[Manifest], project: ProjectConfig) -> Iterator[_Mention]:
    """What the tools of the project are usually called with."""
    at_root = {one.ecosystem for one in found if not one.folder} | (
        {"dotnet"} if repository.ending(".sln", depth=1) else set()
    )
    for manifest in found:
        lines = _BY_ECOSYSTEM.get(manifest.ecosystem, ()) or _jvm(repository, manifest)
        if manifest.folder and manifest.ecosystem not in at_root:
            lines = tuple((purpose, f"cd {manifest.folder} && {line}") for purpose, line in lines)
        elif manifest.folder and manifest.ecosystem != "dotnet":
            continue  # a member of the workspace at the root
        yield from (_Mention(purpose, line, manifest.path, _USUAL) for purpose, line in lines)
    yield from _by_framework(repository, project)


def _jvm(repository: Repository, manifest: Manifest) -> tuple[tuple[str, str], ...]:
    """With the wrapper where there is one."""
    if manifest.build == "maven":
        program = "./mvnw" if "mvnw" in repository else "mvn"
        return ("test", f"{program} test"), ("build", f"{program} package")
    if manifest.build == "gradle":
        program = "./gradlew" if "gradlew" in repository else "gradle"
        return ("test", f"{program} test"), ("build", f"{program} build")
    return ()


def _by_framework(repository: Repository, project: ProjectConfig) -> Iterator[_Mention]:
    runs_django = project.framework == "django" and "manage.py" in repository and project.test_framework != "pytest"
    if project.framework == "rails":
        yield _Mention("run", "bin/rails server", project.framework_from, _USUAL)
        if project.test_framework != "rspec":
            yield _Mention("test", "bin/rails test", project.framework_from, _CONFIGURED)
    if project.framework == "laravel" and "artisan" in repository:
        yield _Mention("test", "php artisan test", "artisan", _CONFIGURED)
    if runs_django:
        yield _Mention("test", "python manage.py test", "manage.py", _CONFIGURED)
    elif line := _BY_FRAMEWORK.get(project.test_framework, ""):
        worth = _USUAL if project.test_framework == "unittest" else _CONFIGURED
        yield _Mention("test", line, project.test_framework_from, worth)


# --- entry points --------------------------------------------------------------------------------------------------

_STARTS = (
    (re.compile(r"(?:.*/)?__main__\.py$"), "run as a module"),
    (re.compile(r"manage\.py$"), "Django's command line"),
    (re.compile(r"(?:[^/]+/){0,2}(?:wsgi|asgi)\.py$"), "web server entry"),
    (re.compile(r"(?:src/|app/)?(?:main|app|server|run|cli)\.py$"), "top-level script"),
    (re.compile(r"(?:src/)?(?:index|main|app|server|cli)\.[cm]?[jt]sx?$"), "top-level module"),
    (re.compile(r"(?:src/)?(?:app|pages)/(?:layout|_app)\.[jt]sx?$"), "root of the pages"),
    (re.compile(r"(?:(?:.*/)?cmd/[^/]+/)?main\.go$"), "program"),
    (re.compile(r"(?:(?:crates|apps|packages)/[^/]+/)?src/(?:main|bin/[^/]+)\.rs$"), "program"),
    (re.compile(r".*/\w*Application\.(?:java|kt)$"), "application class"),
    (re.compile(r"(?:.*/)?Program\.cs$"), "program"),
    (re.compile(r"config\.ru$"), "Rack application"),
    (re.compile(r"config/routes\.rb$"), "routes"),
    (re.compile(r"bin/(?:rails|console)$"), "command line"),
    (re.compile(r"artisan$"), "Laravel's command line"),
    (re.compile(r"public/index\.php$|index\.php$"), "web entry"),
    (re.compile(r"routes/(?:web|api)\.php$"), "routes"),
    (re.compile(r"lib/main\.dart$"), "program"),
    (re.compile(r"Sources/[^/]+/main\.swift$"), "program"),
    (re.compile(r"lib/[^/]+/application\.ex$"), "application"),
)
_MAYBE_START = re.compile(
    r"(?:^|/)(?:__main__|manage|wsgi|asgi|main|app|server|run|cli|index|layout|_app|Program|config|routes|web|api|rails"
    r"|console|artisan|application)(?:\.\w{1,5})?$|/bin/[^/]+\.rs$|Application\.(?:java|kt)$"
)
"""One look spares most paths the patterns above."""
MAX_STARTS = 16
_DOCKER_START = re.compile(r"^(CMD|ENTRYPOINT)\s+(.+)$", re.MULTILINE)


def entry_points(repository: Repository, found: Sequence[Manifest]) -> tuple[list[str], list[str]]:
    """A line for each way in, and the files that were read for it."""
    lines: list[str] = []
    sources: list[str] = []
    for manifest in found:
        for name, target in manifest.entries:
            lines.append(f"`{name}` → `{target}` ({manifest.path})")
        starts = [line for name, line in manifest.scripts if name == "start"]
        lines += [f"`start` → `{line}` ({manifest.path})" for line in starts if manifest.ecosystem == "node"]
        sources += [manifest.path] if manifest.entries or starts else []
    lines += _starts(repository)
    for path in repository.named("Dockerfile", "Procfile", depth=2):
        started = _container_start(path, repository.text(path))
        lines += [f"{path} starts `{line}`" for line in started]
        sources += [path] if started else []
    if (made := makefile(repository)) and (target := default_target(repository.text(made))):
        lines.append(f"`make` alone runs `{target}` ({made})")
        sources.append(made)
    return list(dict.fromkeys(lines)), sources


def _starts(repository: Repository) -> list[str]:
    likely = [path for path in repository.paths if _MAYBE_START.search(path) and not is_beside(path)]
    lines = [f"`{path}`: {_module(path) or role}" for pattern, role in _STARTS for path in likely if pattern.match(path)]
    return lines[:MAX_STARTS]


def _module(path: str) -> str:
    """`python -m name` for the `__main__.py` of a package."""
    folder = path.removesuffix("/__main__.py")
    return f"`python -m {folder.removeprefix('src/').replace('/', '.')}`" if folder != path else ""


def _container_start(path: str, text: str) -> list[str]:
    if path.endswith("Procfile"):
        return re.findall(r"^\w+:\s*(.+)$", text, re.MULTILINE)
    said = dict(_DOCKER_START.findall(re.sub(r"\\\n\s*", " ", text)))  # of each, the last one holds
    parts = [said[key].strip() for key in ("ENTRYPOINT", "CMD") if key in said]
    started = " ".join(" ".join(re.findall(r"\"([^\"]*)\"", part)) if part.startswith("[") else part for part in parts)
    return [started] if started else []
