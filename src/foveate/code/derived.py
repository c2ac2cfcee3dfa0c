"""What is made from files, as records: never kept, of the repository's trust, with ids that people can read."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from foveate.types import Record, Scope

if TYPE_CHECKING:
    from foveate.code.graph import Symbol
    from foveate.code.model import RenderedLevels

NO_CODE = (
    "No code to look at: it is switched off, or this is neither a repository nor an indexed folder; "
    "`foveate index` makes it one."
)

IN_PARTS_SUFFIX = ", in parts"
"""What stands above a file of which lines are left out."""

PREFIXES = ("code:", "file:", "map:", "docs:")
"""How the ids of such records begin."""


def record(kind: str, id: str, lengths: RenderedLevels, scope: Scope, *paths: str) -> Record:
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


def id_of(symbol: Symbol) -> str:
    """`code:src/shop/cart.py::Cart.add`; a namesake in the same file has `~2` after it."""
    again = f"~{symbol.occurrence}" if symbol.occurrence > 1 else ""
    return f"code:{symbol.path}::{symbol.qualified_name}{again}"


def is_shown_in_parts(text: str) -> bool:
    """Whether a file that is shown so has lines left out."""
    return text.partition("\n")[0].endswith(f" lines{IN_PARTS_SUFFIX})")
