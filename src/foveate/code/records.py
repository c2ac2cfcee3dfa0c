"""The records that code becomes, and their ids. Every process imports this module, so it imports nothing else from here."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from foveate.types import Record, Scope

if TYPE_CHECKING:
    from foveate.code.model import RenderedLevels, Symbol

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
