"""Records: lists, one of them with its whole life, and the page before one is forgotten. The verbs are in `verbs.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from weakref import WeakKeyDictionary

from foveate.clock import iso
from foveate.code.derived import PREFIXES
from foveate.engine import Engine
from foveate.errors import NotFound
from foveate.memory.memory import OWN_PROJECT
from foveate.memory.relations import ends_of, recalled
from foveate.records.fence import is_quoted
from foveate.records.kinds import KINDS, OUTCOMES, kind_of
from foveate.records.lifecycle import stage
from foveate.records.links import LEARNED_FROM
from foveate.records.make import STATUSES, measure
from foveate.records.render import called
from foveate.server.http.responses import cursor
from foveate.server.inspector import record_actions, record_history
from foveate.server.inspector.page import Action, Asked, Page
from foveate.store.protocol import Reader, Store
from foveate.text import analysis
from foveate.types import LEVELS, Filters, Record, Scope

COUNTED = 100
"""Contexts that showed a record are counted up to here."""

Counts = Mapping[str, Mapping[str, int]]
"""How many records there are of each kind and status."""

_COUNTED: WeakKeyDictionary[Store, dict[Scope, tuple[str, Counts]]] = WeakKeyDictionary()
"""For each store and whose records are counted: a revision, and the counts at it."""

MOST_COUNTED = 100
"""Of a store: for how many the counts are kept, before it begins anew."""

PROMOTED_TO = tuple(
    kind.name
    for kind in KINDS.values()
    if kind.shelf == "knowledge" and not (kind.derived or kind.private or kind.required or kind.repeats)
)
"""Kinds that a record can be made into when a person vouches for it."""


# --- lists -----------------------------------------------------------------------------------------------------------


def listed(asked: Asked) -> dict[str, Any]:
    """Records by their words, best first; without words, the last kept first."""
    engine, words, limit = asked.engine, asked.text("q"), asked.limit()
    kind, tag, status = asked.text("kind"), asked.text("tag"), asked.choice("status", STATUSES)
    kinds, tags = ((kind,) if kind else ()), ((tag,) if tag else ())
    more = 0
    if words:
        hits = engine.search(words, kinds=kinds, limit=limit, filters=Filters(tags=tags))
        found = [hit.record for hit in hits if status in ("", hit.record.status)]
    else:
        (start,) = asked.after(int) or (0,)
        filters = Filters(kinds=kinds, tags=tags)
        found, more = engine.page(limit, filters=filters, status=status or None, after=start)
    now = engine.clock()
    return {
        "records": [{**_line(record), "stage": stage(record, now, engine.thresholds)} for record in found],
        "next": cursor(more) if more else None,
        "q": words,
        "kind": kind,
        "tag": tag,
        "status": status,
        "kinds": _counts(engine, status),
        "statuses": list(STATUSES),
        "has_own": engine.own is not None,
    }


def _line(record: Record) -> dict[str, Any]:
    return {
        **record_history.row(record),
        "tags": list(record.tags),
        "created": iso(record.created),
        "uses": record.uses,
        "tokens": (record.tokens or {}).get("full"),
        "version": record.version,
    }


def _counts(engine: Engine, status: str) -> list[dict[str, Any]]:
    """How many records of each kind there are for whoever asks, the most first."""
    counts = _by_kind(engine)
    sums = {kind: sum(n for each, n in by.items() if status in ("", each)) for kind, by in counts.items()}
    ordered = sorted(sums.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"kind": kind, "number": number} for kind, number in ordered if number]


def _by_kind(engine: Engine) -> Counts:
    """Counting looks at every record: it is done once for a revision, and not for each letter that is typed."""
    held = _COUNTED.setdefault(engine.store, {})
    whose = Scope(engine.scope.project, engine.scope.user, engine.scope.agent)
    with engine.store.read(whose) as reader:
        revision, counts = held.get(whose, ("", {}))
        if revision != reader.revision:
            counts = reader.counts()["records"]
            if len(held) >= MOST_COUNTED:
                held.clear()
            held[whose] = (reader.revision, counts)
    return counts


# --- one -------------------------------------------------------------------------------------------------------------


def one(asked: Asked) -> dict[str, Any]:
    """A record: its lengths, where it comes from, and everything that became of it."""
    id, engine = asked.needed("id", "record"), asked.engine
    engine.save()  # contexts that are still waiting to be written showed it, too
    with engine.reader() as reader:
        record = reader.get([id]).get(id)
        told = None if record is None else _around(reader, record, asked)
    if record is None or told is None:
        return _elsewhere(engine, id)
    return {
        "subject": f"{record.kind.capitalize()}: {called(record)[:60]}",
        "record": _whole(record, engine),
        "levels": _levels(engine, record),
        **told,
        "edit": _edited(record),
        "elsewhere": None,
    }


def _around(reader: Reader, record: Record, asked: Asked) -> dict[str, Any]:
    engine, sees_contexts = asked.engine, asked.may("context:read")
    shown = record_history.used(reader, record.id) if sees_contexts else []
    named = reader.named([analysis.names(name) for name in record.entities]) if record.entities else {}
    return {
        "lifecycle": record_history.stages(record, engine.clock(), engine.thresholds),
        "entities": [{"name": name, "id": _id_of(named, name)} for name in record.entities],
        "chain": record_history.chain(reader, record),
        **record_history.joined(reader, record.id),
        "used": shown,
        "sees_contexts": sees_contexts,
        "feedback": record_history.feedback(record, shown),
        **record_history.history(record, reader.history(record.id)),
    }


def _id_of(named: Mapping[str, Record], name: str) -> str:
    entity = named.get(analysis.names(name))
    return entity.id if entity else ""


def _whole(record: Record, engine: Engine) -> dict[str, Any]:
    """Its fields, each of them, empty or not."""
    shown = ("text", "subject", "attribute", "outcome", "salience", "confidence", "uses", "wins", "origin", "key", "version")
    times = {name: iso(getattr(record, name)) for name in ("created", "updated", "valid_from")}
    return {
        **record_history.row(record),
        **{name: getattr(record, name) for name in shown},
        **times,
        "valid_to": None if record.valid_to is None else iso(record.valid_to),
        "tags": list(record.tags),
        "paths": list(record.paths),
        "scope": {level: name for level, name in asdict(record.scope).items() if name and level != "project"},
        "data": dict(record.data),
        "counter": engine.rules.counter,
        "quoted": is_quoted(record),
    }


def _levels(engine: Engine, record: Record) -> list[dict[str, Any]]:
    """The record as a model may read it at each level, deepest first, and what that costs."""
    tokens = record.tokens or measure(record, engine.rules.counter)
    out: list[dict[str, Any]] = []
    for level in LEVELS:
        text = engine.shown(record, level)
        same = next((other["level"] for other in out if other["text"] == text), "")
        out.append({"level": level, "tokens": tokens[level], "text": text, "same_as": same})
    return out


def _edited(record: Record) -> dict[str, Any]:
    """What a form may change of it."""
    field, kind = record_actions.title_field(record), kind_of(record.kind)
    return {
        "text": not kind.append_only,
        "title": str(record.data.get(field, "")) if field else "",
        "title_field": field,
        "tags": record_actions.shown_tags(record),
        "result": "result" in kind.fields or kind.open,
        "outcomes": list(OUTCOMES),
        "kinds": [name for name in PROMOTED_TO if name != record.kind],
    }


# --- what has an id and is no record ---------------------------------------------------------------------------------


def _elsewhere(engine: Engine, id: str) -> dict[str, Any]:
    """What is shown in contexts and kept in no store: a relation, a piece of code, a memory of another system."""
    with engine.reader() as reader:
        relation = recalled(reader, id)
        ends = [record_history.row(record) for record in reader.get(ends_of(id)).values()] if relation else []
    if relation is not None:
        what, text = (
            "A relation: a link between two entities. It is read from the link and not kept.",
            engine.shown(relation),
        )
    elif id.startswith("given_"):
        raise NotFound(f"{id!r} is a given text: it was handed in with a call, and such texts are not kept.")
    elif ":" not in id:
        raise NotFound(f"There is no record {id!r} in this scope. Find it by its words.")
    else:
        text = engine.expand(id)["content"]  # counts no use of what is not ours
        what = (
            "Read from the files of the project as they are now, and not kept."
            if id.startswith(PREFIXES)
            else "Kept by another memory, which was asked just now."
        )
    path = id.partition(":")[2].partition("::")[0] if id.startswith(("code:", "file:")) else ""
    found = {"id": id, "what": what, "text": text, "path": path, "ends": ends}
    return {"subject": id[:80], "record": None, "elsewhere": found}


# --- forgetting ------------------------------------------------------------------------------------------------------


def before_forgetting(asked: Asked) -> dict[str, Any]:
    """What will be gone."""
    id, engine = asked.needed("id", "record"), asked.engine
    record = engine.get(id)
    engine.save()
    with engine.reader() as reader:
        links = [*reader.links([id]), *reader.links([id], back=True)]
        shown = len(reader.receipts(COUNTED + 1, record=id))
        versions = len(reader.history(id))
    gone = {"versions": versions, "links": len(links), "contexts": min(shown, COUNTED), "more": shown > COUNTED}
    taught = record.kind == "task" or any(link.name == LEARNED_FROM and link.src == id for link in links)
    return {
        "subject": f"Forget {id[:60]}",
        "record": {**record_history.row(record), "text": record.text, "version": record.version},
        "gone": gone,
        "handoffs": taught,
        "word": record_actions.WORD,
        "is_own": record.scope.project == OWN_PROJECT,
    }


PAGES: tuple[Page, ...] = (
    Page("records", "Records", listed, hint="What is known: facts, decisions, events, tasks, rules."),
    Page("record", "Record", one),
    Page("forget", "Forget", before_forgetting, "admin"),
)
ACTIONS: tuple[Action, ...] = record_actions.ACTIONS
