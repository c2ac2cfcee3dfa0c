"""Codebase docs: what a repository says about itself, and the project's configuration, from its own files."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from foveate.code.docs import CodebaseDocs, describe, prose
from foveate.code.docs.describe import approximate_count
from foveate.text import tokens

ORDER = ["instructions", "architecture", "stack", "commands", "directories"]


def read(tree: dict[str, str]) -> CodebaseDocs:
    return describe(sorted(tree), tree.get)


def text(codebase: CodebaseDocs, section: str) -> str:
    return next((one.text for one in codebase.sections if one.name == section), "")


def first_test_command(codebase: CodebaseDocs) -> str:
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
    "Makefile": "build:\n\tgo build ./...\n\ntest: build\n\tgo test -race ./...\n\nVERSION := 1\n",
}
RUST = {
    "Cargo.toml": '[package]\nname = "grepper"\nedition = "2021"\nrust-version = "1.75"\n[dependencies]\naxum = "0.7"\n'
    'serde = { version = "1" }\n[dev-dependencies]\ninsta = "1"\n',
    "src/main.rs": "//! Searches files.\nfn main() {}\n",
    "src/bin/index.rs": "",
    "tests/search.rs": "",
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
    "config/application.rb": "",
    "config/routes.rb": "",
    "app/models/user.rb": "",
    "app/controllers/users_controller.rb": "",
    "spec/models/user_spec.rb": "",
}
LARAVEL = {
    "artisan": "",
    "routes/web.php": "<?php\n",
    "app/Models/User.php": "<?php\n",
    "tests/Feature/LoginTest.php": "<?php\n",
}
REQUIREMENTS = {
    "requirements.txt": "# web\nFlask==3.0\n-r more.txt\nrequests\n",
    "app.py": "",
    "test_app.py": "import unittest\n",
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
        (POETRY, "python", "fastapi", "pytest", "poetry run pytest"),
        (PEP621, "python", "", "pytest", "pytest"),
        (REQUIREMENTS, "python", "flask", "unittest", ""),
        (EXPRESS, "typescript", "express", "vitest", "pnpm test"),
        (GO, "go", "gin", "go test", "make test"),
        (RUST, "rust", "axum", "cargo test", "cargo test"),
        (MAVEN, "java", "spring-boot", "junit5", "./mvnw test"),
        (GRADLE, "kotlin", "ktor", "kotest", "./gradlew test"),
        (RAILS, "ruby", "rails", "rspec", ""),
        (LARAVEL, "php", "laravel", "phpunit", ""),
        (DOTNET, "csharp", "aspnetcore", "xunit", "dotnet test"),
        (MONOREPO, "typescript", "next", "", "npm test"),
    ],
    ids=[
        "poetry",
        "pep621",
        "requirements",
        "express",
        "go",
        "rust",
        "maven",
        "gradle",
        "rails",
        "laravel",
        "dotnet",
        "monorepo",
    ],
)
def test_a_project_is_configured_from_its_manifests_and_its_files(
    tree: dict[str, str], language: str, framework: str, test_framework: str, test_command: str
) -> None:
    codebase = read(tree)
    project = codebase.project
    assert (project.language, project.framework, project.test_framework) == (language, framework, test_framework)
    assert not test_command or first_test_command(codebase) == test_command
    assert codebase.notes == ()
    assert project.framework_source in ("", *tree)
    assert project.test_framework_source in ("", *tree)


@pytest.mark.parametrize(
    ("tree", "name"),
    [(POETRY, "orders"), (EXPRESS, "shop-api"), (GO, "gateway"), (RUST, "grepper"), (MAVEN, "ledger"), (RAILS, "")],
)
def test_the_name_is_that_of_the_manifest_at_the_root(tree: dict[str, str], name: str) -> None:
    assert read(tree).project.name == name


@pytest.mark.parametrize(
    ("tree", "section", "said"),
    [
        (POETRY, "architecture", "Orders takes orders from shops and bills them once a month."),
        (POETRY, "stack", "Languages: Python 100 %"),
        (POETRY, "stack", "Python ^3.11; fastapi, sqlalchemy (pyproject.toml)"),
        (POETRY, "commands", "- Check types: `poetry run mypy .` (pyproject.toml)"),
        (POETRY, "directories", "- `orders` (4 Python files)"),
        (PEP621, "architecture", "Widgets for terminals"),
        (PEP621, "stack", "rich, click"),
        (EXPRESS, "stack", "Node >=20; express, pg, "),
        (EXPRESS, "commands", "- Check types: `pnpm typecheck` (package.json)"),
        (EXPRESS, "commands", "- Run: `pnpm start` (package.json)"),
        (GO, "stack", "Go 1.22; github.com/gin-gonic/gin (go.mod)"),
        (GO, "commands", "- Build: `make build` (Makefile)"),
        (GO, "commands", "- Test: `go test ./...` (go.mod)"),
        (RUST, "stack", "Rust 1.75; axum, serde (Cargo.toml)"),
        (RUST, "directories", "- `src` (2 Rust files)"),
        (MAVEN, "architecture", "Keeps accounts."),
        (MAVEN, "stack", "Java 21"),
        (GRADLE, "stack", "Java 17"),
        (RAILS, "directories", "- `app` ("),
        (DOTNET, "commands", "- Test: `dotnet test` (src/Shop.Api/Shop.Api.csproj)"),
        (MONOREPO, "architecture", "`apps/web` is web (node, next, react): The shop."),
        (MONOREPO, "architecture", "`services/api` is api (go, echo)."),
        (MONOREPO, "commands", "`cd services/api && go test ./...` (services/api/go.mod)"),
        (MONOREPO, "stack", "TypeScript 50 %, Go 25 %, Python 25 %"),
    ],
)
def test_a_section_says_what_its_files_say(tree: dict[str, str], section: str, said: str) -> None:
    assert said in text(read(tree), section)


def test_packages_of_another_ecosystem_do_not_make_the_framework_and_its_commands_come_later() -> None:
    tree = {"pyproject.toml": '[project]\nname = "Django"\ndependencies = ["asgiref"]\n[tool.tox]\n', "django/a.py": "",
            "django/b.py": "",
            "package.json": '{"devDependencies": {"qunit": "2"}, "scripts": {"test": "grunt test"}}',
            "tests/test_a.py": "from django.test import TestCase\n"}  # fmt: skip
    codebase = read(tree)
    assert (codebase.project.framework, codebase.project.test_framework) == ("", "unittest")
    assert first_test_command(codebase) == "tox"
    assert "- Test: `npm test` (package.json)" in text(codebase, "commands")


def test_npms_placeholder_for_a_test_is_no_test() -> None:
    script = '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'
    assert text(read({"package.json": script, "a.js": ""}), "commands") == ""


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


def test_long_instructions_keep_their_beginning_and_the_summary_has_the_rules() -> None:
    filler = "".join(f"Paragraph {n} explains at some length how the part number {n} came to be.\n\n" for n in range(200))
    told = f"# Start\n\n```\ncode\n```\n\n{filler}You must never push to main.\n"
    section = read({"AGENTS.md": told}).sections[0]
    assert section.text.startswith("```\ncode\n```")
    assert section.text.endswith("… (AGENTS.md goes on)")
    assert section.text.count("```") == 2
    assert section.summary == "You must never push to main."


def test_instructions_that_are_cut_inside_of_a_code_block_close_it() -> None:
    section = read({"AGENTS.md": "Run this:\n\n```sh\n" + "make\n" * 2_000 + "```\n"}).sections[0]
    assert section.text.endswith("make\n```\n… (AGENTS.md goes on)")


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
    assert prose.introduction(readme.replace("{}", real)) == [plain]


READ = """README.md AGENTS.md ARCHITECTURE.md src/README.md src/__init__.py lib/doc.go web/index.js Makefile
requirements.txt go.mod build.gradle tests/test_a.py"""


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
        ("Cargo.toml", "bin = 3\n[package"),
        ("pom.xml", "<project>"),
        ("pom.xml", '<!DOCTYPE a [<!ENTITY b "&b;&b;">]><project/>'),
        ("src/A.csproj", "no xml"),
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
    ],
)
def test_odd_values_in_a_manifest_say_nothing(path: str, odd: str) -> None:
    codebase = read({path: odd, "a.py": ""})
    assert codebase.project.name == ""
    assert codebase.notes == ()


def test_an_empty_repository_says_nothing() -> None:
    codebase = describe([], lambda path: None)
    assert (codebase.sections, codebase.input_paths, codebase.notes) == ((), (), ())
    assert codebase.project.language == codebase.project.name == ""


def test_files_that_cannot_be_read_are_taken_by_their_paths() -> None:
    codebase = describe(sorted(POETRY), lambda path: None)
    assert codebase.project.language == "python"
    assert "- `orders` (4 Python files)" in text(codebase, "directories")


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
    assert sorted(asked) == list(codebase.input_paths)  # each is read once
    for section in codebase.sections:
        assert tokens.count(section.micro) <= tokens.count(section.summary) <= tokens.count(section.text) <= 800
        assert tokens.count(section.summary) <= 120
        assert tokens.count(section.micro) <= 30
        assert set(section.source_paths) <= set(tree)


def test_a_file_more_leaves_a_large_project_as_it_was() -> None:
    tree = {f"pkg/module_{n}.py": "" for n in range(500)}
    assert read(tree).sections == read(tree | {"pkg/module_x.py": ""}).sections
    assert [approximate_count(count) for count in (7, 99, 104, 2_823)] == ["7", "99", "about 100", "about 2,800"]


def test_directories_with_code_come_first_and_hidden_ones_are_left_out() -> None:
    tree = dict.fromkeys(["data/a.csv", "data/b.csv", "src/x.py", "src/notes.txt", "tests/test_x.py", ".github/ci.yml"], "")
    assert text(read(tree), "directories").splitlines() == [
        "- `src` (1 Python file)",
        "- `data` (2 files)",
        "- `tests` (1 Python file)",
    ]


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
    assert text(codebase, "directories").startswith("- `src` (")
    assert len(codebase.input_paths) < 60
