"""The values of the code room.

Paths are relative to the root, with forward slashes; lines count from 1, both ends included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Role = Literal["source", "test", "docs", "example", "generated", "vendored", "config", "data"]
"""What a file is for. All but `source` are demoted in search unless the question asks for them."""


MODULE = "top level"
"""The kind of what stands outside of all definitions of a file: imports, constants, top-level code. No language has a
definition of this kind."""


class FoundFile(NamedTuple):
    """A file that the walk came across and that may be worth indexing. A tuple, because a walk makes one of every file."""

    path: str
    size: int
    mtime_ns: int
    """Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A path that is not indexed, and why, as the end of a sentence: `binary`, `minified`, `larger than 1,000,000 bytes`."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Definition:
    """Something that a file defines: a class, a function, a section of a document, a table."""

    name: str
    qualified_name: str
    """With what encloses it: `Engine.compute`."""
    kind: str
    """`class`, `function`, `method`, `interface`, `enum`, `type`, `module`, `constant`, `section`, `key`, `table`, ..."""
    start_line: int
    """Where it begins, its decorators and the comment right above it included."""
    end_line: int
    signature: str
    """Its head on one line, without the body: `def compute(self, query: str) -> Context`."""
    doc: str = ""
    """Docstring or doc comment, without its marks."""
    parent: int | None = None
    """The place of the enclosing definition in `ParsedFile.definitions`."""


@dataclass(frozen=True, slots=True)
class ParsedFile:
    """What one file says. `definitions` are in order of their first line, each after what encloses it."""

    language: str
    definitions: tuple[Definition, ...] = ()
    references: tuple[tuple[str, int], ...] = ()
    """Names that the file calls, instantiates, inherits from or uses as a type, with the line; not its local variables."""
    imports: tuple[str, ...] = ()
    """What it imports, as written: `os.path`, `./utils`, `github.com/x/y`."""
    doc: str = ""
    """What the file says of itself: a module docstring or the comment at its top."""
    has_syntax_error: bool = False
    """The parser met a syntax error somewhere."""


@dataclass(frozen=True, slots=True)
class RenderedLevels:
    """The same thing at the three lengths of the ladder."""

    full: str
    summary: str
    micro: str
