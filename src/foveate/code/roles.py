"""Decides the role of a file by its path alone, which is cheap enough to do for every file.

The first match wins:

1. generated: names that generators give to their files (`x_pb2.py`, `x.g.dart`), and folders called `generated`.
2. vendored: a folder such as `_vendor`, `vendor`, `extern`.
3. test, by the file's name (`test_x.py`, `x_test.go`, `x.spec.ts`, `XTest.java`, `conftest.py`).
4. the outermost folder with a known name. `tests` and `__tests__` count anywhere. Words that are also names of packages
   (`test`, `spec`, `docs`, `examples`, `benchmarks`) count at the top of the repository or of a member of a monorepo, and
   `test` also directly below `src` or `lib`: `django/test/client.py`, `numpy/testing/utils.py` and `botocore/docs/method.py`
   are sources.
5. config, docs or data by name or suffix; everything else is source.
"""

from __future__ import annotations

from functools import lru_cache

from foveate.code.model import Role

PERIPHERAL_ROLES: frozenset[Role] = frozenset(("test", "docs", "example", "vendored", "generated"))
"""Roles of files that say little about what a project is made of."""


def role_of(path: str) -> Role:
    """Return the role of the file at a path."""
    cut = path.rfind("/") + 1
    name = path[cut:]
    stem, dot, suffix = name.rpartition(".")
    lowered = name.lower()
    folder = _role_of_folder(path[:cut])
    if lowered.endswith(_GENERATED_SUFFIXES) or lowered.startswith("zz_generated"):
        return "generated"
    if folder == "generated" or folder == "vendored":
        return folder
    if _is_test(stem if dot else name, suffix.lower() if dot else ""):
        return "test"
    return folder or _role_of_name(name, lowered, suffix.lower() if dot else "")


# --- folders -----------------------------------------------------------------------------------------------------------


def _role_table(**words: str) -> dict[str, Role]:
    return {word: role for role, listed in words.items() for word in listed.split()}  # type: ignore[misc]


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ROLE_BY_DIR = _role_table(
    generated="generated __generated__ _generated autogen",
    vendored="vendor vendored _vendor _vendored extern externals third_party third-party thirdparty node_modules",
    test="tests __tests__ __mocks__ __snapshots__ __fixtures__ testdata test-data test_data test-fixtures test_fixtures "
    "testfixtures androidtest commontest jvmtest integrationtest unittests e2e cypress fixtures",
    config=".github .gitlab .circleci .vscode .idea .husky .devcontainer .changeset .buildkite",
)

_ROLE_BY_TOP_DIR = _role_table(
    test="test spec specs t bench benches benchmark benchmarks asv_bench",
    docs="doc docs documentation man manual wiki changelog changelogs newsfragments changes",
    example="example examples sample samples demo demos tutorial tutorials cookbook docs_src notebooks playground",
)

_MONOREPO_DIRS = _word_set(
    "packages apps libs crates services modules projects plugins components extensions tools cmd clients sdks"
)
"""Folders of a monorepo. Each folder below them is the top of a member."""

_ROOTS = frozenset(("src", "lib"))
_TEST_ENDS = ("_tests", "-tests", ".tests", ".test")


@lru_cache(maxsize=4096)
def _role_of_folder(folder: str) -> Role | None:
    parts = folder.split("/")[:-1]
    lowered = [part.lower() for part in parts]
    for role in ("generated", "vendored"):
        if any(_ROLE_BY_DIR.get(part) == role for part in lowered):
            return role
    top = 2 if len(parts) > 2 and lowered[0] in _MONOREPO_DIRS else 0
    for at, part in enumerate(lowered):
        role_here = _ROLE_BY_DIR.get(part) or (_ROLE_BY_TOP_DIR.get(part) if at in (0, top) else None)
        if role_here:
            return role_here
        if part == "test" and at and lowered[at - 1] in _ROOTS:
            return "test"
        if part.endswith(_TEST_ENDS) or parts[at].endswith("Tests"):
            return "test"
    return None


# --- names -------------------------------------------------------------------------------------------------------------

_GENERATED_SUFFIXES = tuple(
    """_pb2.py _pb2.pyi _pb2_grpc.py _pb2_grpc.pyi .pb.go .pb.gw.go .pb.cc .pb.h .pb.swift .pb.dart .pbjson.dart .pbenum.dart
    _pb.js _pb.d.ts _pb.rb .g.dart .freezed.dart .gr.dart .mocks.dart .g.cs .g.i.cs .designer.cs .generated.cs .generated.ts
    .generated.js .generated.swift .gen.go .gen.ts _gen.go _generated.go _generated.rs _generated.py _generated.ts
    _generated.h""".split()  # noqa: SIM905
)

_SCRIPTS = ("js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte", "coffee")
_TEST_PREFIXES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("py", "pyx", "rb", "c", "cc", "cpp", "lua", "jl", "ml", "f90"), ("test_",)),
    **dict.fromkeys(("r", "sh", "el", "js"), ("test_", "test-")),
}
_TEST_SUFFIXES_BY_LANGUAGE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("py", "go", "rs", "dart", "exs", "sh", "jl", "ml", "zig", "clj", "cljs", "cljc"), ("_test", "_tests")),
    **dict.fromkeys(("c", "cc", "cpp", "h", "hpp"), ("_test", "_tests", "_unittest", "Test", "Tests")),
    **dict.fromkeys(("rb", "lua", "cr"), ("_spec", "_test")),
    **dict.fromkeys(_SCRIPTS, (".test", ".spec", ".tests", "_test", "-test", "-spec", ".e2e", ".cy")),
    **dict.fromkeys(("java", "kt", "cs", "fs", "vb", "php", "swift", "m", "mm"), ("Test", "Tests", "TestCase", "TestBase")),
    **dict.fromkeys(("scala", "groovy", "hs"), ("Test", "Tests", "Spec", "Specs", "Suite")),
}
"""Ends of the names of test files. Case matters in languages that write `XTest`: `Latest.java` is not a test."""

_TEST_NAMES = _word_set("conftest.py tests.py spec_helper.rb rails_helper.rb test_helper.rb test_helper.exs phpunit.xml")
_TEST_SUFFIXES = frozenset(("bats", "feature", "snap", "t"))


def _is_test(stem: str, suffix: str) -> bool:
    """Return whether a file is a test by the naming conventions of its language."""
    return (
        stem.startswith(_TEST_PREFIXES.get(suffix, ("\0",)))
        or stem.endswith(_TEST_SUFFIXES_BY_LANGUAGE.get(suffix, ("\0",)))
        or suffix in _TEST_SUFFIXES
        or f"{stem}.{suffix}" in _TEST_NAMES
    )


_DOC_NAMES = _word_set(
    """readme license licence copying authors contributors maintainers changelog changes history news notice install
    contributing todo thanks credits security roadmap unlicense copyright"""
)
_DOC_SUFFIXES = _word_set("md markdown mdx rst adoc asciidoc txt tex org rdoc pod textile")
_CONFIG_NAMES = _word_set(
    """makefile gnumakefile dockerfile containerfile vagrantfile jenkinsfile procfile justfile rakefile gemfile brewfile
    podfile fastfile pipfile cartfile build workspace codeowners package.json jsconfig.json composer.json deno.json
    deno.jsonc bower.json lerna.json nx.json turbo.json angular.json renovate.json vercel.json manifest.json biome.json
    setup.py noxfile.py cmakelists.txt constraints.txt go.mod go.work pom.xml build.gradle build.gradle.kts
    settings.gradle settings.gradle.kts build.sbt mix.exs manifest.in meson.build gruntfile.js gulpfile.js"""
)
_CONFIG_SUFFIXES = _word_set("toml yaml yml ini cfg conf properties cmake mk csproj sln props targets podspec gemspec bazel")
_CONFIG_STARTS = (".", "requirements", "tsconfig", "dockerfile.", "docker-compose", "makefile.")
_CONFIG_ENDS = (".config.js", ".config.ts", ".config.mjs", ".config.cjs")
_CODE = frozenset(("py", "md", *_SCRIPTS))
_DATA_SUFFIXES = _word_set(
    """csv tsv json jsonl ndjson json5 geojson topojson svg xml po pot xliff plist log dtd xsd resx strings dat lst gpx kml
    out diff patch har"""
)


def _role_of_name(name: str, lowered: str, suffix: str) -> Role:
    """Return the role of a file by its name."""
    if lowered in _CONFIG_NAMES or suffix in _CONFIG_SUFFIXES or lowered.endswith(_CONFIG_ENDS):
        return "config"
    if lowered.startswith(_CONFIG_STARTS) and suffix not in _CODE:  # requirements-dev.txt, but not requirements.py
        return "config"
    if suffix in _DOC_SUFFIXES or (name[:1].isupper() and lowered.partition(".")[0] in _DOC_NAMES and suffix not in _CODE):
        return "docs"
    return "data" if suffix in _DATA_SUFFIXES else "source"
