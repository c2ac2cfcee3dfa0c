"""Pages about records: search and list, one record in four tabs, and the form before a record is deleted for good."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from foveate.clock import iso
from foveate.code.model import CODE_ID_PREFIXES
from foveate.engine import Engine
from foveate.errors import NotFound
from foveate.memory.relations import ends_of, load_relation
from foveate.records.fence import is_quoted
from foveate.records.kinds import KINDS, LEARNED_FROM, OUTCOMES, kind_of
from foveate.records.lifecycle import stage
from foveate.records.make import STATUSES, measure
from foveate.records.render import display_name
from foveate.server.http.responses import encode_cursor
from foveate.server.inspector import record_actions, record_history
from foveate.server.inspector.page import Page, PageRequest
from foveate.store.scoped import PERSONAL_PROJECT
from foveate.tasks.task import lookup
from foveate.types import LEVELS, Filters, Record

TABS = ("text", "history", "links", "used")

MAX_COUNTED_CONTEXTS = 100

COLUMNS = ("text", "subject", "attribute", "outcome", "salience", "confidence", "uses", "wins", "origin", "key", "version")

INTERNAL_KINDS = ("stack", "lease", "delivery", "frame", "scratch")
"""Kinds of the engine's own records. Lists leave them out, unless one is asked for by name."""

VISIBLE_KINDS = tuple(kind.name for kind in KINDS.values() if not kind.is_derived and kind.name not in INTERNAL_KINDS)

PROMOTABLE_KINDS = tuple(
    kind.name
    for kind in KINDS.values()
    if kind.partition == "knowledge"
    and not (kind.is_derived or kind.is_private or kind.required_fields or kind.allow_duplicates)
)
"""Kinds that a record can be turned into when a person accepts it."""


# --- list and search -------------------------------------------------------------------------------------------------


def memory_page(request: PageRequest) -> dict[str, Any]:
    """Search records by words, id or key. Without words, list them, newest first."""
    engine, words, limit = request.engine, request.text("q"), request.limit()
    kind, tag, status = request.text("kind"), request.text("tag"), request.choice("status", STATUSES)
    filters = Filters(kinds=(kind,) if kind else VISIBLE_KINDS, tags=(tag,) if tag else ())
    next_position = 0
    if words:
        hits = engine.search(words, kinds=filters.kinds, limit=limit, filters=Filters(tags=filters.tags))
        records = [hit.record for hit in hits if status in ("", hit.record.status)]
        with engine.store.data.reader() as reader:
            named = lookup(reader, words.strip())
        if named is not None and named.id not in {record.id for record in records}:
            records.insert(0, named)
    else:
        (start,) = request.cursor(int) or (0,)
        records, next_position = engine.store.page(limit, filters=filters, status=status or None, after=start)
    now = engine.store.data.clock()
    return {
        "records": [{**_list_row(record), "stage": stage(record, now, engine.store.thresholds)} for record in records],
        "next": encode_cursor(next_position) if next_position else None,
        "q": words,
        "kind": kind,
        "tag": tag,
        "status": status,
        "kinds": list(VISIBLE_KINDS),
        "statuses": list(STATUSES),
        "has_personal_store": engine.store.data.personal is not None,
    }


def _list_row(record: Record) -> dict[str, Any]:
    return {
        **record_history.record_row(record),
        "tags": list(record.tags),
        "created": iso(record.created),
        "uses": record.uses,
        "tokens": (record.tokens or {}).get("full"),
    }


# --- one record ------------------------------------------------------------------------------------------------------


def record_page(request: PageRequest) -> dict[str, Any]:
    """Show a record: its text and fields, or its history, its links, or the contexts that showed it."""
    id, engine, tab = request.require("id", "record"), request.engine, request.choice("tab", TABS, "text")
    engine.receipts.flush()  # contexts whose receipts are not written yet may have shown it
    with engine.store.data.reader() as reader:
        record = reader.get([id]).get(id)
        if record is None:
            return _external_item(engine, id)
        view: dict[str, Any] = {}
        if tab == "history":
            changes = reader.history(id)
            view = {**record_history.history(record, changes), "chain": record_history.supersession_chain(reader, record)}
        elif tab == "links":
            view = record_history.linked_records(reader, id)
        elif tab == "used" and request.has_scope("context:read"):
            with engine.store.data.project_reader() as project:
                view = {"used": record_history.contexts_showing(project, id)}
    if tab == "text":
        view = {"levels": _levels(engine, record)}
    return {
        "subject": f"{record.kind.capitalize()}: {display_name(record)[:60]}",
        "record": _all_fields(record, engine),
        "stage": stage(record, engine.store.data.clock(), engine.store.thresholds),
        "edit": _editable_fields(record),
        "tab": tab,
        "external": None,
        **view,
    }


def _all_fields(record: Record, engine: Engine) -> dict[str, Any]:
    return {
        **record_history.record_row(record),
        **{name: getattr(record, name) for name in COLUMNS},
        **{name: iso(getattr(record, name)) for name in ("created", "updated", "valid_from")},
        "valid_to": None if record.valid_to is None else iso(record.valid_to),
        "tags": list(record.tags),
        "paths": list(record.paths),
        "entities": list(record.entities),
        "scope": {level: name for level, name in asdict(record.scope).items() if name and level != "project"},
        "data": dict(record.data),
        "counter": engine.store.data.rules.counter,
        "quoted": is_quoted(record),
    }


def _levels(engine: Engine, record: Record) -> list[dict[str, Any]]:
    """Return the record as a model reads it at each level, longest first, and its tokens."""
    tokens = record.tokens or measure(record, engine.store.data.rules.counter)
    levels: list[dict[str, Any]] = []
    for level in LEVELS:
        text = engine.store.data.render(record, level)
        same = next((other["level"] for other in levels if other["text"] == text), "")
        levels.append({"level": level, "tokens": tokens[level], "text": text, "same_as": same})
    return levels


def _editable_fields(record: Record) -> dict[str, Any]:
    field, kind = record_actions.title_field(record), kind_of(record.kind)
    return {
        "text": not kind.is_append_only,
        "title": str(record.data.get(field, "")) if field else "",
        "title_field": field,
        "tags": record_actions.tags_text(record),
        "result": "result" in kind.fields or kind.allow_extra,
        "outcomes": list(OUTCOMES),
        "kinds": [name for name in PROMOTABLE_KINDS if name != record.kind],
    }


def _external_item(engine: Engine, id: str) -> dict[str, Any]:
    """Show what contexts show and no store holds: a relation, a piece of code, a memory of another system."""
    with engine.store.data.reader() as reader:
        relation = load_relation(reader, id)
        ends = [record_history.record_row(record) for record in reader.get(ends_of(id)).values()] if relation else []
    if relation is not None:
        text = engine.store.data.render(relation)
        origin = "A relation. It is made from the link between two entities and is not stored by itself."
    elif id.startswith("given_"):
        raise NotFound(f"{id!r} is an extra text: it was passed with a call, and such texts are not stored.")
    elif ":" not in id:
        raise NotFound(f"No record {id!r} in this scope. Search for its words.")
    else:
        text = engine.expand(id)["content"]
        is_code = id.startswith(CODE_ID_PREFIXES)
        origin = "Read from the files of the project just now; not stored." if is_code else "Stored by another memory."
    path = id.partition(":")[2].partition("::")[0] if id.startswith(("code:", "file:")) else ""
    external = {"id": id, "origin": origin, "text": text, "path": path, "ends": ends}
    return {"subject": id[:80], "record": None, "external": external}


# --- deleting --------------------------------------------------------------------------------------------------------


def forget_page(request: PageRequest) -> dict[str, Any]:
    """Show what is deleted together with a record, and ask for confirmation."""
    id, engine = request.require("id", "record"), request.engine
    record = engine.get(id)
    engine.receipts.flush()
    with engine.store.data.project_reader() as project:
        contexts = len(project.receipts(MAX_COUNTED_CONTEXTS + 1, record=id))
    with engine.store.data.reader() as reader:
        links = [*reader.links([id]), *reader.links([id], incoming=True)]
        versions = len(reader.history(id))
    return {
        "subject": f"Forget {id[:60]}",
        "record": {**record_history.record_row(record), "text": record.text},
        "versions": versions,
        "links": len(links),
        "contexts": min(contexts, MAX_COUNTED_CONTEXTS),
        "more_contexts": contexts > MAX_COUNTED_CONTEXTS,
        "handoffs": record.kind == "task" or any(link.name == LEARNED_FROM and link.src == id for link in links),
        "word": record_actions.CONFIRM_WORD,
        "is_personal": record.scope.project == PERSONAL_PROJECT,
    }


PAGES = (
    Page("memory", "Memory", memory_page),
    Page("record", "Record", record_page, in_navigation=False),
    Page("forget", "Forget", forget_page, "admin", in_navigation=False),
)
ACTIONS = record_actions.ACTIONS
