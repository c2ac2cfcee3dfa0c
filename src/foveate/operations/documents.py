"""Results of the engine as JSON documents, the same on the command line, over HTTP and over MCP.

A value becomes an object of its fields, under the library's names: `plain` does that for all that `json.dumps` cannot write.
The other functions compose documents that hold more or less than one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

# Modules are imported in functions, so that a command loads only what it needs.
if TYPE_CHECKING:
    from foveate.clock import When
    from foveate.code.docs import CodebaseDocs
    from foveate.code.indexing import IndexUpdate
    from foveate.code.search import CodeHits
    from foveate.code.snapshot import Workspace
    from foveate.engine import Engine
    from foveate.engine.tasks import ClaimWithContext
    from foveate.receipts.diff import Diff
    from foveate.receipts.feedback import Feedback
    from foveate.receipts.receipt import Receipt
    from foveate.receipts.replay import Replay
    from foveate.receipts.summary import ReceiptSummary
    from foveate.receipts.why import Why
    from foveate.records.triggers import CensorMatch
    from foveate.store.protocol import AddResult, ForgetResult, Hit
    from foveate.tasks.claims import Claim
    from foveate.tasks.task import Task
    from foveate.types import Record

SCHEMA_VERSION = 1
"""The first field of every document. It changes when a field goes or means something else."""

RECORD_PARTS = ("history", "links")
RECEIPT_PARTS = ("text", "candidates", "validation", "markdown")
"""Parts of a record or receipt that are included only if the caller names them."""

TIMES = frozenset(("at", "expires", "last", "since"))
"""Fields that hold milliseconds. Documents give them as ISO texts."""


def plain(value: Any) -> Any:
    """Return a value of the engine as JSON can write it. Pass it to `json.dumps` as `default`."""
    from foveate.clock import iso
    from foveate.records.make import to_json
    from foveate.types import Record

    if isinstance(value, Record):
        return to_json(value)
    if is_dataclass(value):
        parts = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: iso(part) if name in TIMES else part for name, part in parts}
    return dict(value) if isinstance(value, Mapping) else str(value)


def _pick(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


# --- records -------------------------------------------------------------------------------------------------------


def record(engine: Engine, id: str, parts: Iterable[str] = (), *, as_of: When | None = None) -> dict[str, Any]:
    """Return a record with its token counts and lifecycle stage, and with the parts of `RECORD_PARTS` that are named."""
    found = engine.get(id, as_of=as_of)
    document: dict[str, Any] = {"record": {**plain(found), "tokens": found.tokens or {}, "stage": found.stage}}
    if "history" in parts:
        document["history"] = engine.history(id)
    if "links" in parts:
        with engine.store.data.reader() as reader:
            document["links"] = [*reader.links([id]), *reader.links([id], incoming=True)]
    return document


def changed(record: Record) -> dict[str, Any]:
    """Return a record after a change."""
    return {"id": record.id, "version": record.version, "record": record}


def forgotten(ids: Iterable[str], done: ForgetResult) -> dict[str, Any]:
    """Return the ids that were forgotten, with the number of rows removed from each table."""
    return {"forgotten": list(ids), **plain(done)}


def added(done: AddResult) -> dict[str, Any]:
    """Return a record that was added, and what the store did with it."""
    return {"id": done.id, **plain(done)}


def hits(query: str, found: Iterable[Hit], unknown: str = "") -> dict[str, Any]:
    """Return the hits of a search. `unknown` is a warning that the project does not exist."""
    rows = [_pick(hit, "relevance", "lexical", "vector", "record") for hit in found]
    return {"query": query, "hits": rows, **({"warnings": [unknown]} if unknown else {})}


def check(matches: Iterable[CensorMatch]) -> dict[str, Any]:
    """Return the censors and instructions that a planned action violates."""
    found = list(matches)
    return {"blocked": any(match.action == "block" for match in found), "matches": found}


# --- tasks ---------------------------------------------------------------------------------------------------------

TASK_FIELDS = (
    "id", "key", "name", "objective", "status", "ready",
    "depends_on", "waiting_for", "parent", "children", "result", "reason",
)  # fmt: skip


def task(found: Task) -> dict[str, Any]:
    """Return a task and its links, without its other fields."""
    return _pick(found, *TASK_FIELDS)


def whole_task(engine: Engine, found: Task) -> dict[str, Any]:
    """Return a task with its fields, the tasks that it is linked to, its handoff and what was learned from it."""
    from foveate.tasks.task import state_of

    around, learned = around_task(engine, found)

    def linked(ids: Iterable[str]) -> list[dict[str, Any]]:
        others = [around[id] for id in ids if id in around]
        return [
            {"id": other.id, "key": other.key, "name": other.data.get("name") or other.micro, "status": state_of(other)}
            for other in others
        ]

    return {
        "task": task(found),
        "record": found.record,
        "dependencies": linked(found.depends_on),
        "parent": next(iter(linked([found.parent] if found.parent else [])), None),
        "children": linked(found.children),
        "handoff": _handoff_reading(handoff_of(engine, found)),
        "learned": learned,
    }


def around_task(engine: Engine, found: Task) -> tuple[Mapping[str, Record], list[Record]]:
    """Return the tasks that a task is linked to, by id, and the records that were learned from it."""
    from foveate.records.kinds import LEARNED_FROM

    others = [*found.depends_on, *found.children, *([found.parent] if found.parent else [])]
    with engine.store.data.reader() as reader:
        learned = [link.src for link in reader.links([found.id], [LEARNED_FROM], incoming=True)]
        records = reader.get([*others, *learned])
    return records, [records[id] for id in sorted(learned) if id in records]


def handoff_of(engine: Engine, found: Task) -> Record | None:
    """Return the latest handoff of a task."""
    from foveate.records.kinds import HANDOFF_OF

    with engine.store.data.reader() as reader:
        links = reader.links([found.id], [HANDOFF_OF], incoming=True)
        records = reader.get([link.src for link in links]).values()
    return max(records, key=lambda record: (record.created, record.id == found.record.data.get("handoff")), default=None)


def _handoff_reading(handoff: Record | None) -> dict[str, Any] | None:
    """Return how a handoff was read, without its text."""
    if handoff is None:
        return None
    data = handoff.data
    return {"id": handoff.id, "method": data.get("rung"), "form": data.get("form"), "problems": data.get("problems", ())}


def claim(found: Claim) -> dict[str, Any]:
    """Return a claim with the id of its task, and without its context."""
    return {name: part for name, part in plain(found).items() if name != "context"} | {"task": found.task.id}


def claim_with_context(found: ClaimWithContext) -> dict[str, Any]:
    """Return a claim with its task and its context."""
    from foveate.receipts.codec import context_to_json

    return {"claim": claim(found), "task": task(found.task), "context": context_to_json(found.context)}


# --- contexts ------------------------------------------------------------------------------------------------------


def context_summary(line: ReceiptSummary) -> dict[str, Any]:
    """Return an entry of the list of contexts."""
    from foveate.receipts.codec import summary_to_json

    return {name: value for name, value in summary_to_json(line).items() if name != "now"}


def why(found: Why) -> dict[str, Any]:
    """Return the reason why an item is in a context or not."""
    from foveate.receipts.codec import candidate_to_json

    if found.candidate is None:
        return {**_pick(found, "context", "id", "kind"), "kept": False, **_pick(found, "reason", "sentence")}
    entry = candidate_to_json(found.candidate)
    return {"context": found.context, **entry, **_pick(found, "score_parts", "relevance_parts", "sentence")}


def receipt(engine: Engine, found: Receipt, parts: Iterable[str] = ()) -> dict[str, Any]:
    """Return the receipt of a context, with the parts of `RECEIPT_PARTS` that are named."""
    from foveate.receipts.codec import to_json

    document = {name: value for name, value in to_json(found).items() if name != "candidates" or name in parts}
    if "text" in parts:
        document["text"] = engine.receipts.replay(found).text
    if "validation" in parts:
        document["validation"] = engine.receipts.validate(found)
    if "markdown" in parts:
        document["markdown"] = found.debug()
    return document


def diff(found: Diff) -> dict[str, Any]:
    """Return the differences between two contexts, without their texts."""
    from foveate.receipts.codec import candidate_to_json

    items = {name: [candidate_to_json(entry) for entry in getattr(found, name)] for name in ("added", "withdrawn")}
    return {name: value for name, value in plain(found).items() if name != "texts"} | items


def replay(found: Replay) -> dict[str, Any]:
    """Return a past context that was computed again, with the reason if its bytes differ."""
    return _pick(found, "id", "text", "tokens", "same", "missing", "reason")


def feedback(found: Feedback) -> dict[str, Any]:
    """Return the items of a context that an answer used, and the next step for items that were wrong or outdated."""
    return _pick(found, "context", "used", "unused", "precision", "advice")


# --- code ----------------------------------------------------------------------------------------------------------

CONFIG = ".foveate/config.toml"
PROJECT = ("name", "language", "framework", "test_framework")


def code_index(code: Workspace, done: IndexUpdate | None = None, seconds: float = 0.0) -> dict[str, Any]:
    """Return the statistics of the code index and, after an update, what the update changed."""
    from foveate.code.languages import grammar

    with code.index.open_reader() as reader:
        found = reader.stats()
    read_as_lines = {name: number for name, number in found["languages"].items() if grammar(name) is None}
    document = {"root": str(code.root), **found, "read_as_lines": read_as_lines}
    if done is None:
        return document
    counts = _pick(done, "parsed_files", "removed_files")
    return {**document, "update": {**counts, "seconds": round(seconds, 3)}, "notes": list(done.notes)}


def codebase(found: CodebaseDocs, code: Workspace, section: str | None = None) -> dict[str, Any]:
    """Return the documentation of the repository, or one section of it."""
    from foveate.errors import NotFound, near

    names = [part.name for part in found.sections]
    if section is not None and section not in (*names, "project"):
        raise NotFound(f"The documentation has no section {section!r}.{near(section, (*names, 'project'))}")
    project = {"project": _project(found, code)} if section in (None, "project") else {}
    return {**project, "sections": [part for part in found.sections if section in (None, part.name)], "notes": found.notes}


def _project(codebase: CodebaseDocs, code: Workspace) -> dict[str, dict[str, str]]:
    """Return each value of the project's configuration with its source."""
    found = {}
    for name in PROJECT:
        value, source = getattr(codebase.project, name), getattr(codebase.project, f"{name}_source")
        if code.settings.project.get(name):
            source = CONFIG
        elif name == "name" and value and not source:
            source = "the folder's name"
        found[name] = {"value": value, "from": source}
    return found


def code_hits(query: str, found: CodeHits) -> dict[str, Any]:
    """Return the definitions and files of a code search."""
    from foveate.code.records import symbol_id

    symbol_fields = ("path", "start_line", "end_line", "qualified_name", "kind", "signature", "doc", "role")
    definitions = [
        {"id": symbol_id(hit.symbol), **_pick(hit.symbol, *symbol_fields), **_pick(hit, "relevance", "features")}
        for hit in found.definitions
    ]
    files = [
        {"id": f"file:{hit.file.path}", **_pick(hit.file, "path", "role", "language", "lines")}
        | _pick(hit, "relevance", "features")
        for hit in found.files
    ]
    return {"query": query, "definitions": definitions, "files": files}
