"""Tells the language of a file by its name and first lines, and loads the grammar that parses it.

This is the only table of languages: names, suffixes, comment marks, Markdown fences, grammars. Grammars are loaded on first
use. A language without a grammar is known by name only, and its files are cut into blocks of lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar


@dataclass(frozen=True, slots=True)
class Language:
    """A language. Suffixes begin with a dot; suffixes and file names are lower case."""

    name: str
    files: str
    """Suffixes and file names."""
    grammar: str = ""
    """The package of the grammar without `tree_sitter_`, or ""."""
    line_comments: tuple[str, ...] = ()
    """Marks of comments that end with their line."""
    block_comment: str = ""
    """Opening and closing mark of comments of several lines."""
    grammar_function: str = "language"
    queries: str = ""
    """Names of the query files, if they are not named after the language."""
    is_outline_only: bool = False
    """Whether it is data or markup. A file may contain any number of keys, rules or headings, so their number is limited."""

    @property
    def package(self) -> str:
        return f"tree_sitter_{self.grammar}"


C_BLOCK_COMMENT = "/* */"
PARSED_LANGUAGES = (
    Language("python", ".py .pyi .pyw sconstruct wscript", "python", ("#",)),
    Language("starlark", ".bzl .star build build.bazel workspace tiltfile", "python", ("#",), queries="python"),
    Language("javascript", ".js .jsx .mjs .cjs jakefile", "javascript", ("//",), C_BLOCK_COMMENT, queries="javascript jsx"),
    Language("typescript", ".ts .mts .cts", "typescript", ("//",), C_BLOCK_COMMENT, grammar_function="language_typescript"),
    Language(
        "tsx", ".tsx", "typescript", ("//",), C_BLOCK_COMMENT, grammar_function="language_tsx", queries="typescript jsx"
    ),
    Language("go", ".go", "go", ("//",), C_BLOCK_COMMENT),
    Language("rust", ".rs", "rust", ("//",), C_BLOCK_COMMENT),
    Language("java", ".java", "java", ("//",), C_BLOCK_COMMENT),
    Language("c", ".c .h", "c", ("//",), C_BLOCK_COMMENT),
    Language("cpp", ".cpp .cc .cxx .c++ .hpp .hh .hxx .h++ .ipp .tpp .inl .cu .cuh .ino", "cpp", ("//",), C_BLOCK_COMMENT),
    Language("csharp", ".cs .csx", "c_sharp", ("//",), C_BLOCK_COMMENT),
    Language("ruby", ".rb .rake .gemspec .podspec .ru gemfile rakefile podfile vagrantfile", "ruby", ("#",), "=begin =end"),
    Language("php", ".php .phtml", "php", ("//", "#"), C_BLOCK_COMMENT, grammar_function="language_php"),
    Language("kotlin", ".kt .kts", "kotlin", ("//",), C_BLOCK_COMMENT),
    Language("swift", ".swift", "swift", ("//",), C_BLOCK_COMMENT),
    Language("scala", ".scala .sc .sbt", "scala", ("//",), C_BLOCK_COMMENT),
    Language("bash", ".sh .bash .zsh .ksh .bats .bashrc .bash_profile .profile .zshrc .zshenv pkgbuild", "bash", ("#",)),
    Language("sql", ".sql .ddl .psql", "sql", ("--",), C_BLOCK_COMMENT, is_outline_only=True),
    Language("html", ".html .htm .xhtml", "html", (), "<!-- -->", is_outline_only=True),
    Language("css", ".css", "css", (), C_BLOCK_COMMENT, is_outline_only=True),
    Language("yaml", ".yaml .yml .clang-format .clang-tidy", "yaml", ("#",), is_outline_only=True),
    Language("toml", ".toml cargo.lock poetry.lock uv.lock pipfile", "toml", ("#",), is_outline_only=True),
    Language(
        "json",
        ".json .jsonc .json5 .geojson .webmanifest .ipynb .babelrc .eslintrc",
        "json",
        ("//",),
        C_BLOCK_COMMENT,
        is_outline_only=True,
    ),
    Language("markdown", ".md .markdown .mdx .mkd", "markdown", is_outline_only=True),
)
NAMED_LANGUAGES = {
    "ada": ".adb .ads",
    "asciidoc": ".adoc .asciidoc",
    "assembly": ".s .asm",
    "astro": ".astro",
    "awk": ".awk",
    "batch": ".bat .cmd",
    "clojure": ".clj .cljs .cljc .edn",
    "cmake": ".cmake cmakelists.txt",
    "cobol": ".cob .cbl",
    "crystal": ".cr",
    "csv": ".csv .tsv",
    "cython": ".pyx .pxd",
    "d": ".d",
    "dart": ".dart",
    "diff": ".diff .patch",
    "dockerfile": ".dockerfile .containerfile dockerfile containerfile",
    "elixir": ".ex .exs .heex",
    "elm": ".elm",
    "erb": ".erb",
    "erlang": ".erl .hrl",
    "fish": ".fish",
    "fortran": ".f .f90 .f95 .f03 .for",
    "fsharp": ".fs .fsi .fsx",
    "gitignore": ".gitignore .dockerignore .npmignore .eslintignore .prettierignore .gitattributes",
    "graphql": ".graphql .gql .graphqls",
    "groovy": ".groovy .gradle jenkinsfile",
    "handlebars": ".hbs .handlebars .mustache",
    "haskell": ".hs .lhs",
    "ini": ".ini .cfg .conf .properties .env .editorconfig .gitconfig .npmrc .flake8 .pylintrc .coveragerc",
    "jinja": ".j2 .jinja .jinja2",
    "julia": ".jl",
    "just": ".just .justfile justfile",
    "latex": ".tex .sty .cls .bib",
    "less": ".less",
    "lisp": ".lisp .el .scm .rkt",
    "lua": ".lua",
    "makefile": ".mk .mak makefile gnumakefile",
    "meson": "meson.build meson_options.txt",
    "nim": ".nim",
    "nix": ".nix",
    "objectivec": ".m .mm",
    "ocaml": ".ml .mli",
    "org": ".org",
    "pascal": ".pas .pp .dpr",
    "perl": ".pl .pm .t",
    "powershell": ".ps1 .psm1 .psd1",
    "prisma": ".prisma",
    "proto": ".proto",
    "r": ".r .rmd .rprofile",
    "rst": ".rst .rest",
    "scss": ".scss .sass",
    "solidity": ".sol",
    "svelte": ".svelte",
    "tcl": ".tcl",
    "terraform": ".tf .tfvars .hcl",
    "text": ".txt .text .log license licence copying authors notice readme changelog changes install todo",
    "thrift": ".thrift",
    "vbnet": ".vb .vbs .bas",
    "verilog": ".v .sv .svh",
    "vhdl": ".vhd .vhdl",
    "vim": ".vim .vimrc",
    "vue": ".vue",
    "xml": ".xml .xsd .xsl .xslt .svg .plist .csproj .props .resx .xaml",
    "zig": ".zig",
}
"""Languages without a grammar, known for fences, the map and the roles of files."""
LANGUAGES = {
    row.name: row for row in (*PARSED_LANGUAGES, *(Language(name, files) for name, files in NAMED_LANGUAGES.items()))
}
INTERPRETERS = {
    "python": "python pypy",
    "javascript": "node nodejs",
    "typescript": "deno bun",
    "bash": "sh bash zsh ksh dash ash bats",
    "awk": "awk gawk mawk",
    "lua": "lua luajit",
    "r": "Rscript",
    "powershell": "pwsh",
    "tcl": "tclsh",
    "makefile": "make",
    **{name: name for name in ("ruby", "php", "perl", "julia", "fish", "elixir", "groovy", "scala", "kotlin", "swift")},
}

PROGRAMMING_LANGUAGES = frozenset(
    """ada assembly c clojure cobol cpp crystal csharp cython d dart elixir elm erlang fortran fsharp go groovy haskell java
    javascript julia kotlin lisp lua nim objectivec ocaml pascal perl php python r ruby rust scala solidity swift tcl
    typescript vbnet verilog vhdl zig""".split()  # noqa: SIM905
)
"""Languages that a project can be written in."""
SECONDARY_LANGUAGES = frozenset(
    "astro bash css erb fish html less powershell scss sql starlark svelte vue".split()  # noqa: SIM905
)
"""Languages that mostly accompany another one."""

_DISPLAY_NAMES = {"csharp": "C#", "fsharp": "F#", "cpp": "C++", "javascript": "JavaScript", "typescript": "TypeScript",
                  "php": "PHP", "sql": "SQL", "html": "HTML", "css": "CSS", "objectivec": "Objective-C"}  # fmt: skip
_FENCES = {"text": "", "terraform": "hcl", "assembly": "asm", "objectivec": "objc", "starlark": "python"}
_BY_FILE = {file: row.name for row in LANGUAGES.values() for file in row.files.split()}
_BY_INTERPRETER = {command: name for name, commands in INTERPRETERS.items() for command in commands.split()}
_SHEBANG = re.compile(r"#!\s*(?:\S*/env\s+)?(?:(?:-\S*|\w+=\S*)\s+)*(?:\S*/)?([A-Za-z]+)")
_PREFIX_FILE_NAMES = ("dockerfile", "containerfile", "makefile", "jenkinsfile")
"""Names that count before a dot as well: `Dockerfile.dev`, `Makefile.in`."""
_CPP_HEADER = re.compile(
    r"^\s*(?:class\s+\w+|namespace\b|template\s*<|using\s+\w|(?:public|private|protected)\s*:|#\s*include\s*<\w+>)|\bstd::",
    re.MULTILINE,
)


def language_of(path: str, head: str = "") -> str:
    """Return the language of a file by its name, its suffix, or the interpreter in its first line; "" if unknown."""
    file = path.replace("\\", "/").rpartition("/")[2].lower()
    name = _by_name(file)
    if name == "c" and file.endswith(".h") and _CPP_HEADER.search(head):
        return "cpp"  # the name of a header does not tell C from C++
    return name or _by_shebang(head)


def programming_language(path: str) -> str:
    """Return the language of a source file by its name, "" for data, markup and documents. TSX counts as TypeScript."""
    name = language_of(path).replace("tsx", "typescript")
    return name if name in PROGRAMMING_LANGUAGES or name in SECONDARY_LANGUAGES else ""


def display_name(language: str) -> str:
    """Return the name of a language as people write it."""
    return _DISPLAY_NAMES.get(language, language.capitalize())


def _by_name(file: str) -> str:
    """Look up the whole name, then each suffix, the longest first: `.blade.php`, then `.php`."""
    parts = file.split(".")
    for tried in (file, *("." + ".".join(parts[first:]) for first in range(1, len(parts)))):
        if name := _BY_FILE.get(tried):
            return name
    return _BY_FILE[parts[0]] if parts[0] in _PREFIX_FILE_NAMES else ""


def _by_shebang(head: str) -> str:
    match = _SHEBANG.match(head.removeprefix("\ufeff"))
    return _BY_INTERPRETER.get(match[1], "") if match else ""


def fence_tag(name: str) -> str:
    """Return the tag of a Markdown fence around code in this language."""
    return _FENCES.get(name, name) if name in LANGUAGES else ""


# --- grammars ------------------------------------------------------------------------------------------------------


OUTLINES_OFF = "Outlines are off: tree-sitter is not installed, so files are read as lines. Run `pip install tree-sitter`."


@cache
def has_parser() -> bool:
    """Return whether tree-sitter is installed. It is not where it has no wheel: on Python 3.15."""
    return find_spec("tree_sitter") is not None


def grammar(name: str) -> Grammar | None:
    """Return the grammar of a language, or None. `unavailable_grammars` gives the reason."""
    return _load(name)[0]


def unavailable_grammars() -> dict[str, str]:
    """Return the languages whose grammar cannot be loaded, with the reason and the command that fixes it."""
    return {row.name: reason for row in PARSED_LANGUAGES if (reason := _load(row.name)[1])}


@cache
def _load(name: str) -> tuple[Grammar | None, str]:
    row = LANGUAGES.get(name)
    if row is None or not row.grammar:
        return None, ""
    package = row.package.replace("_", "-")
    try:
        from tree_sitter import Language as Grammar

        return Grammar(getattr(import_module(row.package), row.grammar_function)()), ""
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # missing, or made for another tree-sitter
        return None, f"{package} cannot be loaded ({error}); pip install --upgrade {package} tree-sitter"
