"""The value types of the code index, and the records that code becomes.

Paths are relative to the root, with forward slashes. Lines count from 1, both ends included.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

from foveate.types import Record, Scope

Role = Literal["source", "test", "docs", "example", "generated", "vendored", "config", "data"]
"""The purpose of a file. All roles except `source` rank lower in search unless the query asks for them."""


MODULE = "top level"
"""The kind of everything outside of the definitions of a file: imports, constants, top-level code. No language has
definitions of this kind."""


class FoundFile(NamedTuple):
    """A file that may be worth indexing. It is a tuple because a walk creates one for every file."""

    path: str
    size: int
    mtime_ns: int
    """Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A path that is not indexed, with the reason: `binary`, `minified`, `larger than 1,000,000 bytes`."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition in a file: a class, a function, a section of a document, a table."""

    name: str
    qualified_name: str
    """The name with those of the enclosing definitions: `Engine.context`."""
    kind: str
    """`class`, `function`, `method`, `interface`, `enum`, `type`, `module`, `constant`, `section`, `key`, `table`, ..."""
    start_line: int
    """The first line, including decorators and the comment directly above."""
    end_line: int
    signature: str
    """The head without the body, on one line: `def context(self, query: str) -> Context`."""
    doc: str = ""
    """The docstring or doc comment without its marks."""
    parent: int | None = None
    """Index of the enclosing definition in `ParsedFile.definitions`."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """The contents of one file. `definitions` are sorted by first line, each after the one that encloses it."""

    language: str
    definitions: tuple[Definition, ...] = ()
    references: tuple[tuple[str, int], ...] = ()
    """Names that the file calls, instantiates, inherits from or uses as a type, with their lines. No local variables."""
    imports: tuple[str, ...] = ()
    """Imports as written: `os.path`, `./utils`, `github.com/x/y`."""
    doc: str = ""
    """The docstring of the module, or the comment at its top."""
    has_syntax_error: bool = False
    """Whether the file has a syntax error."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An indexed definition: a `Definition` with its id, file and role.

    Everything outside of the definitions of a file is one symbol without a name and of kind `MODULE`.
    """

    id: int
    path: str
    name: str
    qualified_name: str
    kind: str
    start_line: int
    end_line: int
    signature: str
    doc: str
    parent: int | None
    """Id of the enclosing definition."""
    role: Role
    """Role of its file."""
    occurrence: int = 1
    """Number among the definitions of this qualified name in the file: overloads and setters share a name."""


@dataclass(frozen=True, slots=True)
class RenderedLevels:
    """A text at the three levels of detail."""

    full: str
    summary: str
    micro: str


# --- records ---------------------------------------------------------------------------------------------------------

NO_CODE_MESSAGE = (
    "No code to look at: it is switched off, or this is neither a repository nor an indexed folder; "
    "`foveate init --code` makes it one."
)

IN_PARTS_SUFFIX = ", in parts"
"""Ends the heading of a file that is shown in parts."""

CODE_ID_PREFIXES = ("code:", "file:", "map:", "docs:")
"""Prefixes of the ids of records that are made from code. Such records are never stored."""


def code_record(kind: str, id: str, levels: RenderedLevels, scope: Scope, *paths: str) -> Record:
    """Return a record of one of the derived kinds: `code`, `file`, `outline`, `docs`."""
    content = "\0".join((levels.full, levels.summary, levels.micro))
    return Record(
        id=id,
        kind=kind,
        scope=Scope(scope.project),
        text=levels.full,
        summary=levels.summary,
        micro=levels.micro,
        paths=paths,
        trust="repo",
        hash=blake2b(content.encode("utf-8", "replace"), digest_size=16).hexdigest(),
    )


def symbol_id(symbol: Symbol) -> str:
    """Return an id such as `code:src/shop/cart.py::Cart.add`. A second definition of the name in the file ends with `~2`."""
    suffix = f"~{symbol.occurrence}" if symbol.occurrence > 1 else ""
    return f"code:{symbol.path}::{symbol.qualified_name}{suffix}"


def is_shown_in_parts(text: str) -> bool:
    """Return whether this text of a file leaves out lines."""
    return text.partition("\n")[0].endswith(f" lines{IN_PARTS_SUFFIX})")
