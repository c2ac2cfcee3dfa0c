"""The pages about records: search and list, one record in four tabs, and the form that deletes a record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foveate.engine import Engine
from foveate.records.kinds import KINDS, LEARNED_FROM, OUTCOMES, kind_of
from foveate.records.make import STATUSES, measure
from foveate.records.render import display_name
from foveate.server.http.responses import encode_cursor
from foveate.server.inspector import record_actions, record_history
from foveate.server.inspector.page import Page, PageRequest
from foveate.tasks.task import lookup
from foveate.types import STORED_LEVELS, Filters, Level, Record

TABS = ("text", "history", "links", "used")

MAX_COUNTED_CONTEXTS = 100

VISIBLE_KINDS = tuple(kind.name for kind in KINDS.values() if not (kind.is_derived or kind.is_internal))

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
        # Ids and keys are no words of the text, so the search does not find them.
        with engine.store.data.reader() as reader:
            named = lookup(reader, words.strip())
        if named is not None and named.id not in {record.id for record in records}:
            records.insert(0, engine.get(named.id))
    else:
        (start,) = request.cursor(int) or (0,)
        records, next_position = engine.store.page(limit, filters=filters, status=status or None, after=start)
    return {
        "records": records,
        "next": encode_cursor(next_position) if next_position else None,
        "q": words,
        "kind": kind,
        "tag": tag,
        "status": status,
        "kinds": VISIBLE_KINDS,
        "statuses": STATUSES,
        "has_personal_store": engine.store.data.personal is not None,
    }


# --- one record ------------------------------------------------------------------------------------------------------


def record_page(request: PageRequest) -> dict[str, Any]:
    """Show a record: its text and fields, or its history, its links, or the contexts that showed it."""
    id, engine, tab = request.require("id", "record"), request.engine, request.choice("tab", TABS, "text")
    record = engine.get(id)
    engine.receipts.flush()  # contexts whose receipts are not written yet may have shown it
    view: dict[str, Any] = {}
    with engine.store.data.reader() as reader:
        if tab == "history":
            versions, more = record_history.versions(record, reader.history(id))
            chain = record_history.supersession_chain(reader, record)
            view = {"versions": versions, "more_versions": more, "chain": chain}
        elif tab == "links":
            links, more = record_history.linked_records(reader, id)
            view = {"links": links, "more_links": more}
        elif tab == "used" and request.has_scope("context:read"):
            with engine.store.data.project_reader() as project:
                view = {"uses": record_history.uses_in_contexts(project, id)}
    if tab == "text":
        view = {"levels": _levels(engine, record), "counter": engine.store.data.rules.counter}
    return {
        "subject": f"{record.kind.capitalize()}: {display_name(record)[:60]}",
        "record": record,
        "edit": _edit_form(record),
        "tab": tab,
        **view,
    }


@dataclass(frozen=True, slots=True)
class LevelText:
    """A record as a model reads it at one level. `same_as` names a longer level with the same text."""

    level: Level
    text: str
    tokens: int
    same_as: str


def _levels(engine: Engine, record: Record) -> list[LevelText]:
    tokens = record.tokens or measure(record, engine.store.data.rules.counter)
    levels: list[LevelText] = []
    for level in STORED_LEVELS:
        text = engine.store.data.render(record, level)
        same_as = next((other.level for other in levels if other.text == text), "")
        levels.append(LevelText(level, text, tokens[level], same_as))
    return levels


def _edit_form(record: Record) -> dict[str, Any]:
    """Return the values of the forms that change a record."""
    field, kind = record_actions.title_field(record), kind_of(record.kind)
    return {
        "has_text": not kind.is_append_only,
        "title": str(record.data.get(field, "")) if field else "",
        "title_field": field,
        "tags": record_actions.tags_text(record),
        "has_result": "result" in kind.fields or kind.allow_extra,
        "outcomes": OUTCOMES,
        "kinds": [name for name in PROMOTABLE_KINDS if name != record.kind],
    }


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
        "record": record,
        "versions": versions,
        "links": len(links),
        "contexts": min(contexts, MAX_COUNTED_CONTEXTS),
        "has_more_contexts": contexts > MAX_COUNTED_CONTEXTS,
        "has_handoffs": record.kind == "task" or any(link.name == LEARNED_FROM and link.src == id for link in links),
        "word": record_actions.CONFIRM_WORD,
    }


PAGES = (
    Page("memory", "Memory", memory_page),
    Page("record", "Record", record_page, in_navigation=False),
    Page("forget", "Forget", forget_page, "admin", in_navigation=False),
)
ACTIONS = record_actions.ACTIONS
