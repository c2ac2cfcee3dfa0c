"""Find: records, contexts, tasks, entities and sessions by their words; the palette asks it too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from foveate.engine import Engine
from foveate.memory.memory import SEARCH_FIELDS
from foveate.records.render import called
from foveate.server.inspector.page import Action, Asked, Page
from foveate.server.inspector.render import Links
from foveate.store.protocol import Query, Reader, Want
from foveate.text import analysis
from foveate.types import Record

RECORDS, CONTEXTS, SESSIONS, NAMED = 20, 10, 10, 10
"""How many of each are told."""
LATEST = 200
"""Contexts among which is looked."""

Found = dict[str, str]
To = Callable[..., str]


def find(asked: Asked) -> dict[str, Any]:
    """What goes by some words: exact ids and keys first, then names, then what says them."""
    words, to = asked.text("q").strip(), Links("find", asked.values).to
    if not words:
        return {"q": "", "found": []}
    contexts = _contexts(asked.engine) if asked.may("context:read") else []
    with asked.engine.reader() as reader:
        exact = [*_exact(reader, words), *_named(reader, words)]
    hits = [hit.record for hit in asked.engine.search(words, limit=RECORDS)]
    found = [
        *(_context(line, to) for line in contexts if line["id"] == words),
        *(_record(record, to) for record in exact),
        *_sessions(contexts, words, to),
        *(_record(record, to) for record in hits),
        *(_context(line, to) for line in _asking(contexts, words)),
    ]
    known: dict[str, Found] = {}
    for hit in found:
        known.setdefault(hit["href"], hit)
    return {"q": words, "found": list(known.values())}


def _contexts(engine: Engine) -> list[dict[str, Any]]:
    return engine.lines(LATEST)


def _exact(reader: Reader, words: str) -> Iterator[Record]:
    """What has this id or this key."""
    yield from reader.get([words]).values()
    if (keyed := reader.by_key(words)) is not None:
        yield keyed


def _named(reader: Reader, words: str) -> list[Record]:
    """Entities that go by this name, then entities and tasks whose name begins so; the last word may be unfinished."""
    name = analysis.names(words)
    if not name:
        return []
    begun = dict.fromkeys(reader.beginning([words.split()[-1].casefold()]), 0.5)
    query = Query({**begun, **dict.fromkeys(analysis.terms(words), 1.0)}, SEARCH_FIELDS)
    hits = reader.search(query, [Want(("entity", "task"), 4 * NAMED)])[0]
    begin_so = [hit.record for hit in hits if analysis.names(called(hit.record)).startswith(name)]
    return [*reader.named([name]).values(), *begin_so[:NAMED]]


def _asking(contexts: Iterable[Mapping[str, Any]], words: str) -> list[Mapping[str, Any]]:
    """Contexts whose id begins so, or whose question has each of the words."""
    wanted = words.casefold().split()
    return [
        line for line in contexts if line["id"].startswith(words) or all(word in line["query"].casefold() for word in wanted)
    ][:CONTEXTS]


def _sessions(contexts: Iterable[Mapping[str, Any]], words: str, to: To) -> list[Found]:
    """Sessions with the words in their name, the one of this very name first."""
    names = dict.fromkeys(name for line in contexts if (name := line["scope"].get("session")))
    said = sorted((name for name in names if words.casefold() in name.casefold()), key=lambda name: name != words)
    return [
        {"title": name, "what": "session", "href": to("session", name=name), "kind": "session"} for name in said[:SESSIONS]
    ]


def _context(line: Mapping[str, Any], to: To) -> Found:
    what = f"context {line['created'][:16].replace('T', ' ')}"
    return {
        "title": line["query"][:200] or line["id"],
        "what": what,
        "href": to("context", id=line["id"]),
        "kind": "context",
    }


def _record(record: Record, to: To) -> Found:
    page = "task" if record.kind == "task" else "record"
    what = record.kind if record.status == "active" else f"{record.kind}, {record.status}"
    return {"title": called(record)[:200], "what": what, "href": to(page, id=record.id), "kind": record.kind}


PAGES: tuple[Page, ...] = (Page("find", "Find", find),)
ACTIONS: tuple[Action, ...] = ()
