"""Manifests and paths -> the project's configuration: language, framework, test framework, package manager, services.

Each answer comes with the file that it was taken from. What no file says stays empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foveate.code.docs import layout
from foveate.code.docs.manifests import Manifest, table
from foveate.code.docs.repository import Repository

ECOSYSTEMS = {
    "python": "python", "javascript": "node", "typescript": "node", "vue": "node", "svelte": "node", "go": "go",
    "rust": "rust",
    "java": "jvm", "kotlin": "jvm", "scala": "jvm", "groovy": "jvm", "ruby": "ruby", "php": "php", "csharp": "dotnet",
    "fsharp": "dotnet", "swift": "swift", "elixir": "elixir", "dart": "dart",
}  # fmt: skip
"""The package managers' world of each language."""


@dataclass(frozen=True, slots=True)
class ProjectConfig:
    """001's project configuration. Empty where no file says it; the caller may replace any of it."""

    name: str = ""
    language: str = ""
    framework: str = ""
    test_framework: str = ""
    name_from: str = ""
    language_from: str = ""
    framework_from: str = ""
    test_framework_from: str = ""


def configure(repository: Repository, found: Sequence[Manifest], name: str = "") -> ProjectConfig:
    """The project's configuration, from its manifests first and its paths second."""
    counts = layout.languages(repository.paths)
    language = layout.main_language(counts)
    language_from = f"{layout.files(counts[language])}" if language else ""
    if not language and found:
        language = next((one for one, ecosystem in ECOSYSTEMS.items() if ecosystem == found[0].ecosystem), "")
        language_from = found[0].path
    ecosystem = ECOSYSTEMS.get(language, "")
    own = [manifest for manifest in found if manifest.ecosystem == ecosystem]
    named, named_from = (name, "given") if name else _name(own, found)
    framework, framework_from = _framework(repository, own, named)
    test, test_from = _test_framework(repository, own, ecosystem)
    return ProjectConfig(named, language, framework, test, named_from, language_from, framework_from, test_from)


def _name(own: Iterable[Manifest], found: Iterable[Manifest]) -> tuple[str, str]:
    """The name in a manifest at the root: those of the main language first."""
    for manifest in (*own, *found):
        if manifest.name and not manifest.folder:
            return (manifest.name.rpartition("/")[2] if manifest.ecosystem == "go" else manifest.name), manifest.path
    return "", ""


# --- frameworks ----------------------------------------------------------------------------------------------------

_FRAMEWORKS: dict[str, str] = {
    "python": "django=django fastapi=fastapi flask=flask litestar=litestar starlette=starlette sanic=sanic quart=quart "
    "tornado=tornado pyramid=pyramid falcon=falcon bottle=bottle aiohttp=aiohttp streamlit=streamlit scrapy=scrapy",
    "node": "next=next nuxt=nuxt @nestjs/core=nestjs @remix-run/react=remix @sveltejs/kit=sveltekit @angular/core=angular "
    "astro=astro gatsby=gatsby expo=expo react-native=react-native electron=electron express=express fastify=fastify "
    "koa=koa hono=hono @hapi/hapi=hapi vue=vue svelte=svelte solid-js=solid preact=preact react=react",
    "go": "github.com/gin-gonic/gin=gin github.com/labstack/echo=echo github.com/gofiber/fiber=fiber "
    "github.com/go-chi/chi=chi github.com/gorilla/mux=gorilla/mux github.com/beego/beego=beego google.golang.org/grpc=grpc",
    "rust": "axum=axum actix-web=actix-web rocket=rocket warp=warp poem=poem tauri=tauri leptos=leptos yew=yew "
    "bevy=bevy tonic=tonic",
    "jvm": "org.springframework.boot=spring-boot io.quarkus=quarkus io.micronaut=micronaut io.dropwizard=dropwizard "
    "io.ktor=ktor io.vertx=vert.x com.android.application=android com.android.library=android org.playframework=play "
    "com.typesafe.play=play org.http4s=http4s dev.zio=zio org.apache.spark=spark org.springframework=spring "
    "jakarta.platform=jakarta-ee",
    "ruby": "rails=rails hanami=hanami sinatra=sinatra roda=roda grape=grape jekyll=jekyll",
    "php": "laravel/framework=laravel laravel/lumen-framework=lumen symfony/framework-bundle=symfony slim/slim=slim "
    "cakephp/cakephp=cakephp yiisoft/yii2=yii codeigniter4/framework=codeigniter",
    "dotnet": "Microsoft.NET.Sdk.BlazorWebAssembly=blazor Microsoft.NET.Sdk.Web=aspnetcore "
    "Microsoft.AspNetCore.App=aspnetcore Avalonia=avalonia",
    "swift": "vapor=vapor hummingbird=hummingbird",
    "elixir": "phoenix=phoenix",
    "dart": "flutter=flutter",
}
_MARKS = {
    "python": (("manage.py", "django"),),
    "ruby": (("config/application.rb", "rails"),),
    "php": (("artisan", "laravel"),),
}
"""Files that only one framework has, for projects whose manifest does not name it."""


def frameworks(manifest: Manifest) -> list[str]:
    """The frameworks that a manifest depends on, the one that shapes the program most first."""
    rows = (pair.partition("=") for pair in _FRAMEWORKS.get(manifest.ecosystem, "").split())
    return list(dict.fromkeys(name for package, _, name in rows if _depends(manifest.dependencies, package)))


def _depends(names: Iterable[str], package: str) -> bool:
    """Whether one of the names is the package, or a module, an artifact or a major version of it."""
    wanted = package.lower()
    return any(name == wanted or name.startswith((f"{wanted}/", f"{wanted}:")) for name in map(_folded, names))


def _folded(name: str) -> str:
    return name.lower().replace("_", "-")


def _framework(repository: Repository, own: Sequence[Manifest], name: str) -> tuple[str, str]:
    for manifest in own:
        if found := [framework for framework in frameworks(manifest) if framework != name.lower()]:
            return found[0], manifest.path
    ecosystem = own[0].ecosystem if own else ""
    marks = _MARKS.get(ecosystem, ()) if own else tuple(mark for marks in _MARKS.values() for mark in marks)
    return next(((framework, path) for path, framework in marks if path in repository), ("", ""))


# --- test frameworks -----------------------------------------------------------------------------------------------

_TEST_PACKAGES: dict[str, str] = {
    "python": "pytest=pytest nose2=nose2 unittest2=unittest",
    "node": "vitest=vitest jest=jest @jest/core=jest ts-jest=jest mocha=mocha ava=ava jasmine=jasmine "
    "@playwright/test=playwright cypress=cypress qunit=qunit tap=tap karma=karma",
    "jvm": "org.junit.jupiter=junit5 junit:junit=junit4 org.springframework.boot:spring-boot-starter-test=junit5 "
    "org.testng=testng org.spockframework=spock io.kotest=kotest org.scalatest=scalatest org.scalameta:munit=munit "
    "org.jetbrains.kotlin:kotlin-test=kotlin-test",
    "ruby": "rspec=rspec rspec-rails=rspec minitest=minitest test-unit=test-unit",
    "php": "pestphp/pest=pest phpunit/phpunit=phpunit codeception/codeception=codeception",
    "dotnet": "xunit=xunit xunit.v3=xunit nunit=nunit mstest.testframework=mstest mstest=mstest",
    "dart": "flutter-test=flutter test test=dart test",
}
_TEST_FILES: dict[str, tuple[tuple[str, str], ...]] = {
    "python": (("pytest.ini", "pytest"), ("conftest.py", "pytest"), ("tests/conftest.py", "pytest"),
    ("test/conftest.py", "pytest")),
    "node": (("vitest.config.ts", "vitest"), ("vitest.config.js", "vitest"), ("jest.config.js", "jest"),
    ("jest.config.ts", "jest"),
             (".mocharc.json", "mocha"), (".mocharc.yml", "mocha"), ("karma.conf.js", "karma")),
    "ruby": ((".rspec", "rspec"), ("spec/spec_helper.rb", "rspec"), ("test/test_helper.rb", "minitest")),
    "php": (("phpunit.xml", "phpunit"), ("phpunit.xml.dist", "phpunit")),
    "elixir": (("test/test_helper.exs", "exunit"),),
}  # fmt: skip
_TEST_PATTERNS = {"go": ("*_test.go", "go test"), "rust": ("", "cargo test"), "swift": ("*Tests.swift", "xctest")}
_UNITTEST = re.compile(r"^(?:import unittest|from unittest import|from django\.test import)", re.MULTILINE)
_PYTEST = re.compile(r"^(?:import pytest|from pytest import)", re.MULTILINE)
_TESTS_READ = 4


def _test_framework(repository: Repository, own: Sequence[Manifest], ecosystem: str) -> tuple[str, str]:
    rows = [pair.partition("=") for pair in re.split(r" (?=\S+=)", _TEST_PACKAGES.get(ecosystem, "")) if pair]
    for manifest in own:
        if ecosystem == "python" and table(manifest.tools, "pytest"):
            return "pytest", manifest.path
        names = (*manifest.development, *manifest.dependencies)
        for package, _, name in rows:
            if _depends(names, package):
                return name, manifest.path
    for path, name in _TEST_FILES.get(ecosystem, ()):
        if path in repository:
            return name, path
    return _from_tests(repository, ecosystem)


def _from_tests(repository: Repository, ecosystem: str) -> tuple[str, str]:
    """What the test files themselves say."""
    if ecosystem == "python":
        tests = [path for path in repository.paths if layout.test_pattern(path).endswith(".py")]
        for path in (tests or repository.named("tests.py"))[:_TESTS_READ]:
            text = repository.text(path)
            if _PYTEST.search(text):
                return "pytest", path
            if _UNITTEST.search(text):
                return "unittest", path
        return "", ""
    shape, name = _TEST_PATTERNS.get(ecosystem, ("", ""))
    if ecosystem == "rust":
        found = next((path for path in repository.paths if path.endswith(".rs") and layout.is_test(path)), "")
        found = found or next(
            (path for path in repository.named("lib.rs", "main.rs") if "#[cfg(test)]" in repository.text(path)), ""
        )
    else:
        found = next((path for path in repository.paths if shape and layout.test_pattern(path) == shape), "")
    return (name, found) if found else ("", "")


# --- package managers and services ---------------------------------------------------------------------------------

_LOCKS = (
    ("poetry.lock", "python", "poetry"), ("uv.lock", "python", "uv"), ("pdm.lock", "python", "pdm"), ("Pipfile.lock",
    "python", "pipenv"),
    ("pnpm-lock.yaml", "node", "pnpm"), ("yarn.lock", "node", "yarn"), ("bun.lockb", "node", "bun"), ("bun.lock",
    "node", "bun"),
    ("package-lock.json", "node", "npm"), ("Cargo.lock", "rust", "cargo"), ("go.sum", "go", "go modules"), ("gradlew",
    "jvm", "gradle"),
    ("mvnw", "jvm", "maven"), ("Gemfile.lock", "ruby", "bundler"), ("composer.lock", "php", "composer"), ("mix.lock",
    "elixir", "mix"),
)  # fmt: skip


def package_manager(repository: Repository, found: Sequence[Manifest], ecosystem: str) -> tuple[str, str]:
    """The package manager or build tool of an ecosystem: by a lock file, else as a manifest names it."""
    for path, one, name in _LOCKS:
        if one == ecosystem and path in repository:
            return name, path
    own = [manifest for manifest in found if manifest.ecosystem == ecosystem]
    if ecosystem == "python":
        for manifest in own:
            sections = (("poetry",), ("pdm",), ("uv",), ("hatch", "envs"))
            if tool := next((keys[0] for keys in sections if table(manifest.tools, *keys)), ""):
                return tool, manifest.path
    return next(((manifest.build, manifest.path) for manifest in own if manifest.build), ("", ""))


_IMAGE = re.compile(r"^[ \t]+image:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


def services(repository: Repository) -> tuple[list[str], str]:
    """The images that a compose file runs, with their versions, and its path."""
    path = repository.first(
        "docker-compose.yml", "docker-compose.yaml", "compose.yaml", "compose.yml", "docker/docker-compose.yml"
    )
    if path is None:
        return [], ""
    images = (image for image in _IMAGE.findall(repository.text(path)) if "$" not in image.split(":")[0])
    return list(dict.fromkeys(image.partition("@")[0].rpartition("/")[2] for image in images)), path
