"""The value types of the code index.

Paths are relative to the root, with forward slashes. Lines count from 1, both ends included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

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
