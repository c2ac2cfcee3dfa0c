"""Codebase docs: what a repository says about itself, and the project's configuration, from its own files."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from foveate.code.docs import Codebase, describe, prose
from foveate.code.docs.commands import purpose_of
from foveate.code.docs.layout import about
from foveate.text import tokens

ORDER = ["instructions", "architecture", "stack", "entry_points", "commands", "conventions", "directories"]


def read(tree: dict[str, str], name: str = "") -> Codebase:
    return describe(sorted(tree), tree.get, name)


def text(codebase: Codebase, section: str) -> str:
    return next((one.text for one in codebase.sections if one.name == section), "")


def first_test_command(codebase: Codebase) -> str:
    line = text(codebase, "commands").splitlines()[0]
    assert line.startswith("- Test: `")
    return line.split("`")[1]


POETRY = {
    "pyproject.toml": """
[tool.poetry]
name = "orders"
description = "Takes orders and bills them."
[tool.poetry.dependencies]
python = "^3.11"
fastapi = "^0.110"
sqlalchemy = {version = "^2.0", extras = ["asyncio"]}
[tool.poetry.group.dev.dependencies]
pytest = "^8"
ruff = "*"
[tool.poetry.scripts]
orders = "orders.cli:main"
[tool.ruff]
line-length = 100
[tool.ruff.lint]
select = ["E", "F", "I"]
[tool.mypy]
strict = true
[build-system]
requires = ["poetry-core"]
build-backend = "poetry.core.masonry.api"
""",
    "poetry.lock": "",
    "README.md": "# Orders\n\n[![ci](https://x/y.svg)](https://x)\n\n"
    "Orders takes orders from shops and bills them once a month.\n",
    "docker-compose.yml": 'services:\n  db:\n    image: "postgres:16"\n  cache:\n    image: docker.io/library/redis:7\n',
    "Dockerfile": 'FROM python:3.12\nENTRYPOINT ["uvicorn"]\nCMD ["orders.app:app", "--port", "80"]\n',
    ".github/workflows/ci.yml": "jobs:\n  t:\n    steps:\n      - run: poetry install\n"
    "      - run: poetry run pytest -n ${{ env.N }}\n",
    "orders/__init__.py": '"""Orders: the domain and its HTTP interface."""\n',
    "orders/app.py": "",
    "orders/billing/__init__.py": '"""Monthly bills. Runs at night."""\n',
    "orders/billing/run.py": "",
    "tests/test_app.py": "import pytest\n",
}
PEP621 = {
    "pyproject.toml": """
[project]
name = "widgets"
description = "Widgets for terminals"
requires-python = ">=3.10"
dependencies = ["rich>=13", "click ; python_version > '3'"]
[project.optional-dependencies]
test = ["pytest", "widgets[fancy]"]
[project.scripts]
widgets = "widgets.__main__:main"
[build-system]
build-backend = "hatchling.build"
[tool.pytest.ini_options]
testpaths = ["tests"]
""",
    "tox.ini": "[testenv]\ncommands = pytest {posargs}\n[testenv:lint]\ncommands = ruff check .\n",
    "src/widgets/__init__.py": "",
    "src/widgets/__main__.py": "",
    "tests/test_widgets.py": "",
}
EXPRESS = {
    "package.json": json.dumps(
        {
            "name": "shop-api",
            "description": "The shop's HTTP API",
            "engines": {"node": ">=20"},
            "main": "dist/server.js",
            "scripts": {
                "start": "node dist/server.js",
                "test": "vitest run",
                "lint": "eslint src",
                "typecheck": "tsc --noEmit",
            },
            "dependencies": {
                "express": "^4",
                "pg": "^8",
                "@types/a": "1",
                "@types/b": "1",
                "@types/c": "1",
                "@types/d": "1",
            },
            "devDependencies": {"typescript": "^5", "vitest": "^1", "eslint": "^9"},
        }
    ),
    "pnpm-lock.yaml": "",
    "tsconfig.json": '{ // comments are allowed here\n "compilerOptions": {"strict": true, "target": "ES2022",}\n}',
    ".prettierrc": '{"singleQuote": true, "printWidth": 100, "semi": false}',
    ".editorconfig": "root = true\n[*]\nindent_style = space\nindent_size = 2\n[*.py]\nindent_size = 4\n",
    "src/server.ts": "",
    "src/users/user.service.ts": "",
    "src/users/user.service.test.ts": "",
}
GO = {
    "go.mod": "module github.com/acme/gateway\n\ngo 1.22\n\nrequire (\n\tgithub.com/gin-gonic/gin v1.9.1\n"
    "\tgithub.com/x/y v1.0.0 // indirect\n)\n",
    "go.sum": "",
    "cmd/gateway/main.go": "package main\n",
    "internal/route/doc.go": "// Package route chooses an upstream for a request.\npackage route\n",
    "internal/route/route_test.go": "package route\n",
    ".golangci.yml": "linters:\n  enable:\n    - errcheck\n    - govet\n",
    "Makefile": "build:\n\tgo build ./...\n\ntest: build\n\tgo test -race ./...\n\nVERSION := 1\n",
}
RUST = {
    "Cargo.toml": '[package]\nname = "grepper"\nedition = "2021"\nrust-version = "1.75"\n[dependencies]\naxum = "0.7"\n'
    'serde = { version = "1" }\n[dev-dependencies]\ninsta = "1"\n',
    "src/main.rs": "//! Searches files.\nfn main() {}\n",
    "src/bin/index.rs": "",
    "tests/search.rs": "",
    "rustfmt.toml": "max_width = 110\n",
}
MAVEN = {
    "pom.xml": """<?xml version="1.0"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId></parent>
  <artifactId>ledger</artifactId><description>Keeps accounts.</description>
  <properties><java.version>21</java.version></properties>
  <dependencies>
    <dependency><groupId>org.postgresql</groupId><artifactId>postgresql</artifactId></dependency>
    <dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><scope>test</scope></dependency>
  </dependencies>
</project>""",
    "mvnw": "#!/bin/sh\n",
    "src/main/java/com/acme/ledger/LedgerApplication.java": "",
    "src/main/java/com/acme/ledger/web/AccountController.java": "",
    "src/test/java/com/acme/ledger/AccountTest.java": "",
}
GRADLE = {
    "build.gradle.kts": 'plugins {\n    id("io.ktor.plugin") version "2.3"\n    kotlin("jvm")\n}\n'
    "kotlin { jvmToolchain(17) }\n"
    'dependencies {\n    implementation("io.ktor:ktor-server-core:2.3")\n'
    '    testImplementation("io.kotest:kotest-runner:5")\n}\n'
    'application { mainClass.set("com.acme.MainKt") }\n',
    "gradlew": "",
    "src/main/kotlin/com/acme/Main.kt": "",
    "src/test/kotlin/com/acme/MainTest.kt": "",
}
RAILS = {
    "Gemfile": 'ruby "3.3.0"\ngem "rails", "~> 7.1"\ngem "pg"\ngroup :development, :test do\n  gem "rspec-rails"\n'
    'end\ngem "puma"\n',
    "Gemfile.lock": "",
    "config/application.rb": "",
    "config/routes.rb": "",
    "app/models/user.rb": "",
    "app/controllers/users_controller.rb": "",
    "spec/models/user_spec.rb": "",
    ".rubocop.yml": "Style/StringLiterals:\n  EnforcedStyle: double_quotes\n",
}
LARAVEL = {
    "composer.json": json.dumps(
        {
            "name": "acme/portal",
            "require": {"php": "^8.2", "laravel/framework": "^11", "ext-json": "*"},
            "require-dev": {"phpunit/phpunit": "^11", "laravel/pint": "^1"},
            "scripts": {"test": ["@php artisan config:clear", "@php artisan test"]},
        }
    ),
    "artisan": "",
    "routes/web.php": "<?php\n",
    "app/Models/User.php": "<?php\n",
    "tests/Feature/LoginTest.php": "<?php\n",
    "phpstan.neon": "parameters:\n    level: 8\n",
}
DOTNET = {
    "Shop.sln": "",
    "src/Shop.Api/Shop.Api.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web"><PropertyGroup>'
    "<TargetFramework>net8.0</TargetFramework>"
    '<Nullable>enable</Nullable></PropertyGroup><ItemGroup><PackageReference Include="Dapper" Version="2" />'
    "</ItemGroup></Project>",
    "src/Shop.Api/Program.cs": "",
    "tests/Shop.Tests/OrderTests.cs": "",
    "src/Shop.Tests.Unit/Shop.Tests.Unit.csproj": '<Project Sdk="Microsoft.NET.Sdk"><ItemGroup>'
    '<PackageReference Include="xunit" Version="2" /></ItemGroup></Project>',
}
MONOREPO = {
    "package.json": json.dumps(
        {"name": "acme", "private": True, "workspaces": ["apps/*"], "scripts": {"test": "turbo test"}}
    ),
    "apps/web/package.json": json.dumps(
        {"name": "web", "description": "The shop.", "dependencies": {"next": "14", "react": "18"}}
    ),
    "apps/web/src/a.tsx": "",
    "apps/web/src/b.tsx": "",
    "apps/web/src/c.test.tsx": "",
    "services/api/go.mod": "module acme.dev/api\ngo 1.22\nrequire github.com/labstack/echo/v4 v4.11.0\n",
    "services/api/main.go": "",
    "services/ml/pyproject.toml": '[project]\nname = "ml"\ndependencies = ["torch"]\n',
    "services/ml/ml/train.py": "",
}


@pytest.mark.parametrize(
    ("tree", "language", "framework", "test_framework", "test_command"),
    [
        (POETRY, "python", "fastapi", "pytest", "pytest"),
        (PEP621, "python", "", "pytest", "pytest"),
        (EXPRESS, "typescript", "express", "vitest", "pnpm test"),
        (GO, "go", "gin", "go test", "make test"),
        (RUST, "rust", "axum", "cargo test", "cargo test"),
        (MAVEN, "java", "spring-boot", "junit5", "./mvnw test"),
        (GRADLE, "kotlin", "ktor", "kotest", "./gradlew test"),
        (RAILS, "ruby", "rails", "rspec", "bundle exec rspec"),
        (LARAVEL, "php", "laravel", "phpunit", "composer test"),
        (DOTNET, "csharp", "aspnetcore", "xunit", "dotnet test"),
        (MONOREPO, "typescript", "next", "", "npm test"),
    ],
    ids=["poetry", "pep621", "express", "go", "rust", "maven", "gradle", "rails", "laravel", "dotnet", "monorepo"],
)
def test_a_project_is_configured_from_its_manifests(
    tree: dict[str, str], language: str, framework: str, test_framework: str, test_command: str
) -> None:
    codebase = read(tree)
    project = codebase.project
    assert (project.language, project.framework, project.test_framework) == (language, framework, test_framework)
    assert first_test_command(codebase) == test_command
    assert codebase.notes == ()
    assert project.framework_from in ("", *tree)
    assert project.test_framework_from in ("", *tree)


@pytest.mark.parametrize(
    ("tree", "name"),
    [(POETRY, "orders"), (EXPRESS, "shop-api"), (GO, "gateway"), (MAVEN, "ledger"), (LARAVEL, "acme/portal"), (RAILS, "")],
)
def test_the_name_is_the_root_manifests_and_the_callers_wins(tree: dict[str, str], name: str) -> None:
    assert read(tree).project.name == name
    assert read(tree, "mine").project.name == "mine"


@pytest.mark.parametrize(
    ("tree", "section", "said"),
    [
        (POETRY, "architecture", "Orders takes orders from shops and bills them once a month."),
        (POETRY, "stack", "Python ^3.11 (pyproject.toml)"),
        (POETRY, "stack", "fastapi, sqlalchemy"),
        (POETRY, "stack", "poetry (poetry.lock)"),
        (POETRY, "stack", "postgres:16, redis:7 (docker-compose.yml)"),
        (POETRY, "entry_points", "`orders` → `orders.cli:main` (pyproject.toml)"),
        (POETRY, "entry_points", "Dockerfile starts `uvicorn orders.app:app --port 80`"),
        (POETRY, "commands", "Set up: `poetry install` (.github/workflows/ci.yml)"),
        (POETRY, "conventions", "ruff: line length 100; rules E, F, I (pyproject.toml)"),
        (POETRY, "conventions", "mypy: strict"),
        (POETRY, "directories", "`orders/billing` (2 Python files): Monthly bills"),
        (PEP621, "architecture", "Widgets for terminals"),
        (PEP621, "stack", "rich, click"),
        (PEP621, "entry_points", "`python -m widgets`"),
        (PEP621, "commands", "Lint: `ruff check .` (tox.ini)"),
        (EXPRESS, "stack", "Node >=20"),
        (EXPRESS, "stack", "@types/* (4)"),
        (EXPRESS, "entry_points", "`start` → `node dist/server.js`"),
        (EXPRESS, "commands", "Check types: `pnpm run typecheck`"),
        (EXPRESS, "conventions", "prettier: line length 100; semicolons: no; single quotes"),
        (EXPRESS, "conventions", "TypeScript: strict; target ES2022"),
        (EXPRESS, "conventions", "editor, `[*]`: indent with space; indent 2"),
        (EXPRESS, "conventions", "tests are named `*.test.*`, next to the code (1 file)"),
        (GO, "stack", "Go libraries: github.com/gin-gonic/gin (go.mod)"),
        (GO, "entry_points", "`cmd/gateway/main.go`: program"),
        (GO, "entry_points", "`make` alone runs `build`"),
        (GO, "conventions", "golangci-lint: errcheck; govet"),
        (GO, "directories", "Package route chooses an upstream for a request"),
        (RUST, "stack", "Rust >=1.75 Rust edition 2021"),
        (RUST, "entry_points", "`src/bin/index.rs`: program"),
        (RUST, "conventions", "rustfmt: max_width = 110"),
        (MAVEN, "architecture", "Keeps accounts."),
        (MAVEN, "stack", "Java 21"),
        (MAVEN, "entry_points", "LedgerApplication.java`: application class"),
        (MAVEN, "directories", "`src/main/java/com/acme/ledger/web`"),
        (GRADLE, "stack", "Java 17"),
        (GRADLE, "entry_points", "`main` → `com.acme.MainKt`"),
        (RAILS, "stack", "Ruby libraries: rails, pg, puma (Gemfile)"),
        (RAILS, "stack", "Ruby development tools: rspec-rails"),
        (RAILS, "directories", "`app/models` (1 Ruby file): data models"),
        (LARAVEL, "stack", "PHP ^8.2"),
        (LARAVEL, "conventions", "phpstan: level: 8"),
        (DOTNET, "stack", ".NET net8.0"),
        (DOTNET, "conventions", "nullable references enable"),
        (MONOREPO, "architecture", "`apps/web` is web (node, next, react): The shop."),
        (MONOREPO, "architecture", "`services/api` is acme.dev/api (go, echo)."),
        (MONOREPO, "commands", "`cd services/api && go test ./...` (services/api/go.mod)"),
        (MONOREPO, "stack", "Workspace of apps/*"),
        (MONOREPO, "stack", "TypeScript 50 %, Go 25 %, Python 25 %"),
    ],
)
def test_a_section_says_what_its_files_say(tree: dict[str, str], section: str, said: str) -> None:
    assert said in text(read(tree), section)


def test_libraries_of_another_package_do_not_make_its_framework() -> None:
    tree = {"pyproject.toml": '[project]\nname = "Django"\ndependencies = ["asgiref"]\n', "django/a.py": "",
            "django/b.py": "",
            "package.json": '{"devDependencies": {"qunit": "2"}, "scripts": {"test": "grunt test"}}',
            "tests/test_a.py": "from django.test import TestCase\n",
            "tox.ini": "[testenv]\nchangedir = tests\ncommands =\n    {envpython} runtests.py {posargs}\n"}  # fmt: skip
    codebase = read(tree)
    assert (codebase.project.framework, codebase.project.test_framework) == ("", "unittest")
    assert first_test_command(codebase) == "cd tests && python runtests.py"  # the project's own language before npm


def test_several_places_outweigh_one() -> None:
    makefile = {"Makefile": "test:\n\tpytest old\n", "pyproject.toml": "[tool.pytest.ini_options]\n", "a.py": ""}
    assert first_test_command(read(makefile)) == "make test"
    ci = {".github/workflows/test.yml": "    - run: python -m pytest\n", "CONTRIBUTING.md": "Run `pytest tests` first.\n"}
    assert first_test_command(read(makefile | ci)) == "pytest"


def test_what_agents_are_told_comes_first_word_for_word() -> None:
    told = "# Rules\n\nThe app is small.\n\n- Run `make check` before a commit.\n- Never edit `schema.sql` by hand.\n"
    tree = {
        "AGENTS.md": told,
        "CLAUDE.md": "See @AGENTS.md\n",
        "pkg/AGENTS.md": "Local.",
        "test/AGENTS.md": "Tests.",
        "pkg/a.py": "",
    }
    section = read(tree).sections[0]
    assert section.name == "instructions"
    assert section.text.startswith(told.removeprefix("# Rules").strip())
    assert "`pkg` has its own instructions (pkg/AGENTS.md)" in section.text
    assert "`test` has its own instructions" in section.text
    assert section.micro.startswith("Never edit `schema.sql` by hand")
    assert "CLAUDE.md" not in section.source_paths


def test_long_instructions_keep_their_beginning_and_the_rules_from_further_on() -> None:
    filler = "".join(f"Paragraph {n} explains at some length how the part number {n} came to be.\n\n" for n in range(200))
    section = read({"AGENTS.md": f"# Start\n\n```\ncode\n```\n\n{filler}You must never push to main.\n"}).sections[0]
    assert section.text.startswith("```\ncode\n```")
    assert "- You must never push to main." in section.text
    assert section.text.count("```") == 2


def test_contributing_is_read_for_what_it_asks() -> None:
    tree = {
        "a.py": "",
        "CONTRIBUTING.md": "# How to\n\nThank you for your interest!\n\nAll commits must be signed. We like cats.\n\n"
        "- Add a test for every fix.\n- Do you have a question about tests?\n\n```\ngit commit must not appear\n```\n",
        ".pre-commit-config.yaml": "repos:\n- hooks:\n  - id: trailing-whitespace\n  - id: black\n"
        "  - id: no-commit-to-branch\n",
    }
    said = text(read(tree), "conventions")
    assert "CONTRIBUTING.md asks:\n- All commits must be signed.\n- Add a test for every fix." in said
    assert "cats" not in said
    assert "question" not in said
    assert "must not appear" not in said
    assert "pre-commit runs black (.pre-commit-config.yaml)" in said
    assert "commits to the main branch are refused by a hook" in said


@pytest.mark.parametrize(
    "readme",
    [
        "---\ntitle: x\n---\n<p align='center'><img src='logo.png'></p>\n\n[![a](b)](c) ![d](e)\n\n# Tool\n\n{}\n\n"
        "## Install\n\nrun it\n",
        "<table>\n<tr><td>Latest release of the thing, for everyone to see</td></tr>\n</table>\n\n{}\n\n- [Contents](#c)\n",
        "Tool\n====\n\n|badge| |other|\n\n.. |badge| image:: https://x/y\n"
        "   :alt: A long text that nobody wants to read\n\n{}\n",
        "<!-- a comment that is never closed in its line\nbut here -->\n\n```sh\n"
        "pip install tool  # a long line of code\n```\n\n{}\n",
        "| a | b |\n|---|---|\n| a long cell with words | and another one with words |\n\n{}\n\n"
        "[ref]: https://example.org/a/long/address\n",
    ],
)
def test_a_readme_is_its_first_real_paragraph(readme: str) -> None:
    real = "Tool reads **maps** with the [grid](https://x.org/y) format and `prints` them."
    plain = "Tool reads maps with the grid format and `prints` them."
    assert prose.opening(readme.replace("{}", real)) == [plain]


READ = """README.md AGENTS.md CONTRIBUTING.md ARCHITECTURE.md src/README.md src/__init__.py lib/doc.go web/index.js
Makefile justfile Taskfile.yml tox.ini noxfile.py Dockerfile Procfile docker-compose.yml .github/workflows/ci.yml
.gitlab-ci.yml .editorconfig .prettierrc .eslintrc.js tsconfig.json biome.json .golangci.yml .rubocop.yml
.clang-format phpstan.neon .pre-commit-config.yaml setup.py setup.cfg requirements.txt go.mod build.gradle build.sbt
Gemfile mix.exs pubspec.yaml Package.swift Directory.Build.props tests/test_a.py"""


@pytest.mark.parametrize(
    "hostile",
    [
        "```\nnever closed",
        "<!-- never closed",
        "<table><table><table>",
        "[" * 5_000 + "](" * 5_000,
        "*" * 20_000,
        "`" * 20_000,
        "#" * 20_000 + "\n" + "=" * 20_000,
        "- " * 20_000,
        "<" * 20_000 + "a" * 20_000,
        "a " * 100_000,
        "\x00\ufffd\u202e מילים 文字。" * 500,
        "\n" * 50_000 + ".. " * 5_000,
        " " * 200_000,
        "\t\n" * 50_000 + "x",
        "run:" + " " * 100_000 + "{{ x",
        "test " * 40_000 + ":",
    ],
    ids=range(16),
)
def test_hostile_markdown_costs_little_and_raises_nothing(hostile: str) -> None:
    tree = dict.fromkeys(READ.split(), hostile)
    start = time.process_time()
    codebase = read(tree | {"src/a.py": hostile})
    assert time.process_time() - start < 2  # far above what it takes, far below what a quadratic pattern would
    for section in codebase.sections:
        assert len(section.text.encode()) < 6_000
        assert "\n" not in section.micro


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        ("pyproject.toml", "[project\nname ="),
        ("pyproject.toml", "a = " + "[" * 3_000),
        ("package.json", "{'name': 1"),
        ("package.json", "[]"),
        ("package.json", "[" * 100_000),
        ("composer.json", '"text"'),
        ("Cargo.toml", "bin = 3\n[package"),
        ("pom.xml", "<project>"),
        ("pom.xml", '<!DOCTYPE a [<!ENTITY b "&b;&b;">]><project/>'),
        ("src/A.csproj", "no xml"),
        ("setup.cfg", "name = no section"),
        ("tox.ini", "commands = no section"),
    ],
)
def test_a_broken_manifest_leaves_a_note_and_the_rest_is_read(path: str, broken: str) -> None:
    codebase = read({path: broken, "go.mod": "module x\ngo 1.22\n", "main.go": ""})
    assert len(codebase.notes) == 1
    assert codebase.notes[0].startswith(f"{path} could not be read: ")
    assert codebase.project.name == "x"


@pytest.mark.parametrize(
    ("path", "odd"),
    [
        (
            "pyproject.toml",
            '[project]\nname = 3\ndependencies = "x"\nscripts = []\n[tool]\nruff = 1\n[tool.poetry]\ngroup = {dev = 3}\n',
        ),
        ("package.json", '{"name": null, "scripts": ["a"], "dependencies": 3, "workspaces": {"packages": [1]}, "bin": 4}'),
        ("Cargo.toml", 'package = 3\n[workspace]\nmembers = "a"\n'),
        ("setup.py", "setup(name=NAME, install_requires=read('x'))"),
        ("Gemfile", "gem gem gem"),
    ],
)
def test_odd_values_in_a_manifest_say_nothing(path: str, odd: str) -> None:
    codebase = read({path: odd, "a.py": ""})
    assert codebase.project.name == ""
    assert codebase.notes == ()


def test_an_empty_repository_says_nothing() -> None:
    codebase = describe([], lambda path: None)
    assert (codebase.sections, codebase.inputs, codebase.notes) == ((), (), ())
    assert codebase.project.language == codebase.project.name == ""


def test_files_that_cannot_be_read_are_taken_by_their_paths() -> None:
    codebase = describe(sorted(POETRY), lambda path: None)
    assert codebase.project.language == "python"
    assert "`orders/billing` (2 Python files)" in text(codebase, "directories")


@pytest.mark.parametrize("tree", [POETRY, EXPRESS, GO, MAVEN, MONOREPO])
def test_lengths_order_and_inputs(tree: dict[str, str]) -> None:
    codebase = read(tree)
    names = [section.name for section in codebase.sections]
    assert names == [name for name in ORDER if name in names]
    asked: list[str] = []

    def recorded(path: str) -> str:
        asked.append(path)
        return tree[path]

    assert describe(sorted(tree, reverse=True), recorded) == codebase
    assert sorted(asked) == list(codebase.inputs)  # each is read once
    for section in codebase.sections:
        assert tokens.count(section.micro) <= tokens.count(section.summary) <= tokens.count(section.text) <= 800
        assert tokens.count(section.summary) <= 120
        assert tokens.count(section.micro) <= 30
        assert set(section.source_paths) <= set(tree)


def test_a_file_more_leaves_a_large_project_as_it_was() -> None:
    tree = {f"pkg/module_{n}.py": "" for n in range(500)}
    assert read(tree).sections == read(tree | {"pkg/module_x.py": ""}).sections
    assert [about(count) for count in (7, 99, 104, 2_823)] == ["7", "99", "about 100", "about 2,800"]


def test_every_top_directory_is_told_before_what_is_inside() -> None:
    tree = {f"{top}/a_rather_long_name_{n}/some_module.py": "" for top in ("alpha", "beta", "gamma") for n in range(30)}
    said = text(read(tree | {"tests/test_x.py": "", "docs/x.md": ""}), "directories")
    for top in ("alpha", "beta", "gamma", "tests", "docs"):
        assert f"\n- `{top}` (" in f"\n{said}"


def test_this_project_describes_itself() -> None:
    root = Path(__file__).parents[2]
    kept = ("src", "tests", "docs", ".ci")
    paths = [path.relative_to(root).as_posix() for folder in kept for path in (root / folder).rglob("*") if path.is_file()]
    paths += [path.name for path in root.iterdir() if path.is_file()]
    codebase = describe(sorted(paths), lambda path: (root / path).read_text(encoding="utf-8", errors="replace"))
    assert (codebase.project.name, codebase.project.language, codebase.project.test_framework) == (
        "foveate",
        "python",
        "pytest",
    )
    assert first_test_command(codebase) == "make test"
    assert "`src/foveate/state`" in text(codebase, "directories")
    assert len(codebase.inputs) < 60


@pytest.mark.parametrize(
    ("line", "purpose"),
    [
        ("poetry run pytest -x", "test"),
        ("CI=1 npx jest", "test"),
        ("npm run lint", "lint"),
        ("yarn typecheck", "types"),
        ("./gradlew --no-daemon :app:check", "test"),
        ("mvn -B clean verify", "test"),
        ("python -m build", "build"),
        ("python manage.py runserver", "run"),
        ("cd docs && make html", "docs"),
        ("pip install -e '.[dev]'", "setup"),
        ("tox.ini", ""),
        ("echo pytest", ""),
        ("needs: test", ""),
    ],
)
def test_a_command_has_a_purpose(line: str, purpose: str) -> None:
    assert purpose_of(line) == purpose
