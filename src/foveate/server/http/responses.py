"""How endpoints answer: documents as JSON, lists in pages, contexts with a tag for their bytes."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from foveate.errors import InputError

SCHEMA = 1

Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(max_length=500, description="`next` of the page before.")]


class Document(Response):
    """A document; `schema_version` leads it, as on the command line."""

    media_type = "application/json"

    def render(self, content: Mapping[str, Any]) -> bytes:
        whole = {"schema_version": SCHEMA, **content}
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")


def created(content: Mapping[str, Any], where: str) -> Document:
    """Something new, and where it is."""
    return Document(content, 201, {"Location": where})


def tag(text_hash: str) -> str:
    """The entity tag of a context: the hash of what the model sees. Weak, as the document around it also holds notes."""
    return f'W/"{text_hash}"'


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether the caller has it already."""
    known = [part.strip().removeprefix("W/") for part in (if_none_match or "").split(",")]
    return "*" in known or tag.removeprefix("W/") in known


def cursor(*parts: Any) -> str:
    """Where the next page begins, as a word that means nothing to anybody else."""
    return urlsafe_b64encode(json.dumps(parts, separators=(",", ":")).encode()).decode().rstrip("=")


def position(given: str | None, *types: type) -> tuple[Any, ...] | None:
    """What a cursor says."""
    if given is None:
        return None
    try:
        parts = json.loads(urlsafe_b64decode(given.encode("ascii") + b"=" * (-len(given) % 4)))
        if isinstance(parts, list) and [type(part) for part in parts] == list(types) and max(map(_size, parts)) < 2**63:
            return tuple(parts)
    except (ValueError, RecursionError):
        pass
    raise InputError(f"{given!r} is no cursor. Take `next` of the page before as it is.")


def _size(part: Any) -> int:
    return abs(part) if isinstance(part, int) else 0
