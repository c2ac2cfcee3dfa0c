"""The values of the code room.

Paths are relative to the root, with forward slashes; lines count from 1, both ends included.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

from foveate.types import Record, Scope

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
class Symbol:
    """A definition as the index knows it: `model.Definition` with an id and its place.

    What stands outside of all definitions of a file is one without a name: it uses others, and is never shown.
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
    """The id of the enclosing definition."""
    role: Role
    """Of its file."""
    occurrence: int = 1
    """Of the definitions of that qualified name in its file: overloads and setters have the same."""


@dataclass(frozen=True, slots=True)
class RenderedLevels:
    """The same thing at the three lengths of the ladder."""

    full: str
    summary: str
    micro: str


# --- records ---------------------------------------------------------------------------------------------------------

NO_CODE_MESSAGE = (
    "No code to look at: it is switched off, or this is neither a repository nor an indexed folder; "
    "`foveate index` makes it one."
)

IN_PARTS_SUFFIX = ", in parts"
"""What stands above a file of which lines are left out."""

CODE_ID_PREFIXES = ("code:", "file:", "map:", "docs:")
"""How the ids of such records begin."""


def code_record(kind: str, id: str, lengths: RenderedLevels, scope: Scope, *paths: str) -> Record:
    """A record of one of the derived kinds: `code`, `file`, `outline`, `docs`."""
    said = "\0".join((lengths.full, lengths.summary, lengths.micro))
    return Record(
        id=id,
        kind=kind,
        scope=Scope(scope.project),
        text=lengths.full,
        summary=lengths.summary,
        micro=lengths.micro,
        paths=paths,
        trust="repo",
        hash=blake2b(said.encode("utf-8", "replace"), digest_size=16).hexdigest(),
    )


def symbol_id(symbol: Symbol) -> str:
    """`code:src/shop/cart.py::Cart.add`; a namesake in the same file has `~2` after it."""
    again = f"~{symbol.occurrence}" if symbol.occurrence > 1 else ""
    return f"code:{symbol.path}::{symbol.qualified_name}{again}"


def is_shown_in_parts(text: str) -> bool:
    """Whether a file that is shown so has lines left out."""
    return text.partition("\n")[0].endswith(f" lines{IN_PARTS_SUFFIX})")
