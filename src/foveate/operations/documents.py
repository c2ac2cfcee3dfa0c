"""Results of the engine as JSON documents, the same on the command line, over HTTP and over MCP.

Contexts and records are converted elsewhere: `context_to_json` in `receipts/codec.py`, `to_json` in `records/make.py`.
Functions import modules when they are called, so that a command loads only what it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foveate.clock import When
    from foveate.code.docs import CodebaseDocs
    from foveate.code.indexing import IndexUpdate
    from foveate.code.search import CodeHits, FileHit
    from foveate.code.search import DefinitionHit as CodeHit
    from foveate.code.snapshot import Workspace
    from foveate.engine import Engine
    from foveate.engine.inbox import Review
    from foveate.engine.store_tools import Stats
    from foveate.engine.tasks import ClaimWithContext
    from foveate.integrations.importers import ImportReport
    from foveate.memory.entities import Proposal
    from foveate.pipeline.profiles import ProfileInfo
    from foveate.receipts.context import Context
    from foveate.receipts.diff import Diff, ItemChange
    from foveate.receipts.feedback import Feedback
    from foveate.receipts.parts import KeptCandidate
    from foveate.receipts.receipt import Receipt
    from foveate.receipts.replay import Replay
    from foveate.receipts.summary import ReceiptSummary
    from foveate.receipts.timeline import SessionSummary
    from foveate.receipts.validation import Validation
    from foveate.receipts.why import Why
    from foveate.records.triggers import CensorMatch
    from foveate.store.protocol import AddResult, ForgetResult, Hit
    from foveate.tasks.claims import Claim
    from foveate.tasks.handoff import ParsedHandoff
    from foveate.tasks.learn import Learned
    from foveate.tasks.task import Task
    from foveate.types import Change, Link, Record


RECORD_PARTS = ("history", "links")
RECEIPT_PARTS = ("text", "candidates", "validation", "markdown")
"""Parts of a record or receipt that are included only if the caller names them."""


def record(engine: Engine, id: str, parts: Iterable[str] = (), *, as_of: When | None = None) -> dict[str, Any]:
    """Return a record with its lifecycle stage, and with its history and links if they are named in `parts`."""
    found = engine.get(id, as_of=as_of)
    history = engine.history(id) if "history" in parts else []
    links: list[Link] = []
    if "links" in parts:
        with engine.store.data.reader() as reader:
            links = [*reader.links([id]), *reader.links([id], incoming=True)]
    document = whole_record(found, links, history)
    document["record"]["stage"] = found.stage
    return {"record": document["record"], **{part: document[part] for part in RECORD_PARTS if part in parts}}


def whole_record(record: Record, links: Sequence[Link], history: Sequence[Change]) -> dict[str, Any]:
    """Return a record with its token counts, links and history."""
    from foveate.clock import iso
    from foveate.records.make import to_json

    return {
        "record": {**to_json(record), "tokens": dict(record.tokens or {})},
        "links": [asdict(link) for link in links],
        "history": [
            {
                "version": change.version,
                "verb": change.verb,
                "at": iso(change.at),
                "before": to_json(change.before) if change.before else None,
            }
            for change in history
        ],
    }


def changed(record: Record) -> dict[str, Any]:
    """Return a record after a change."""
    from foveate.records.make import to_json

    return {"id": record.id, "version": record.version, "record": to_json(record)}


def records(found: Iterable[Record]) -> list[dict[str, Any]]:
    """Return records without their history and links."""
    from foveate.records.make import to_json

    return [to_json(record) for record in found]


def undo_result(records: Iterable[Record]) -> dict[str, Any]:
    """Return the records that an undo restored."""
    from foveate.records.make import to_json

    return {"undone": [to_json(record) for record in records]}


def forgotten(ids: Iterable[str], done: ForgetResult) -> dict[str, Any]:
    """Return the ids that were forgotten, with the number of rows removed from each table."""
    return {"forgotten": list(ids), "counts": dict(done.counts), "warnings": list(done.warnings)}


def added(done: AddResult) -> dict[str, Any]:
    """Return a record that was added, and what the store did with it."""
    from foveate.records.make import to_json

    return {
        "id": done.record.id,
        "action": done.action,
        "affected": list(done.affected),
        "warnings": list(done.warnings),
        "record": to_json(done.record),
    }


def hits(query: str, found: Iterable[Hit], unknown: str = "") -> dict[str, Any]:
    """Return the hits of a search. `unknown` is a warning that the project does not exist."""
    from foveate.records.make import to_json

    rows = [{"lexical": hit.lexical, "vector": hit.vector, "record": to_json(hit.record)} for hit in found]
    return {"query": query, "hits": rows, **({"warnings": [unknown]} if unknown else {})}


def task(found: Task) -> dict[str, Any]:
    """Return a task and its links, without its other fields."""
    return {
        "id": found.id,
        "key": found.record.key,
        "name": found.name,
        "objective": found.objective,
        "status": found.status,
        "ready": found.ready,
        "depends_on": list(found.depends_on),
        "waiting_for": list(found.waiting_for),
        "parent": found.parent,
        "children": list(found.children),
        "result": found.result,
        "reason": str(found.record.data.get("reason", "")),
    }


def whole_task(engine: Engine, found: Task) -> dict[str, Any]:
    """Return a task with its fields, the tasks that it is linked to, its handoff and what was learned from it."""
    around, learned = around_task(engine, found)
    return task_with(found, around, handoff_of(engine, found), learned)


def around_task(engine: Engine, found: Task) -> tuple[Mapping[str, Record], list[Record]]:
    """Return the tasks that a task is linked to, by id, and the records that were learned from it."""
    from foveate.records.kinds import LEARNED_FROM

    others = [*found.depends_on, *found.children, *([found.parent] if found.parent else [])]
    with engine.store.data.reader() as reader:
        learned = [link.src for link in reader.links([found.id], [LEARNED_FROM], incoming=True)]
        records = reader.get([*others, *learned])
    return records, [records[id] for id in sorted(learned) if id in records]


def task_with(
    found: Task, around: Mapping[str, Record], handoff: Record | None, learned: Iterable[Record]
) -> dict[str, Any]:
    from foveate.records.make import to_json
    from foveate.tasks.task import state_of

    def linked(ids: Iterable[str]) -> list[dict[str, Any]]:
        others = [around[id] for id in ids if id in around]
        return [
            {"id": other.id, "key": other.key, "name": other.data.get("name") or other.micro, "status": state_of(other)}
            for other in others
        ]

    return {
        "task": task(found),
        "record": to_json(found.record),
        "dependencies": linked(found.depends_on),
        "parent": next(iter(linked([found.parent] if found.parent else [])), None),
        "children": linked(found.children),
        "handoff": handoff_reading(handoff),
        "learned": [to_json(record) for record in learned],
    }


def handoff_of(engine: Engine, found: Task) -> Record | None:
    """Return the latest handoff of a task."""
    from foveate.records.kinds import HANDOFF_OF

    with engine.store.data.reader() as reader:
        links = reader.links([found.id], [HANDOFF_OF], incoming=True)
        records = reader.get([link.src for link in links]).values()
    return max(records, key=lambda record: (record.created, record.id == found.record.data.get("handoff")), default=None)


def handoff_reading(handoff: Record | None) -> dict[str, Any] | None:
    """Return how a handoff was read, without its text."""
    if handoff is None:
        return None
    data = handoff.data
    return {
        "id": handoff.id,
        "method": data.get("rung"),
        "form": data.get("form"),
        "problems": list(data.get("problems", ())),
    }


def parsed_handoff(parsed: ParsedHandoff) -> dict[str, Any]:
    """Return how a text would be read as a handoff."""
    return {
        "method": parsed.method,
        "form": parsed.form,
        "problems": list(parsed.problems),
        "counts": entries(parsed.handoff),
        "handoff": parsed.handoff,
    }


def entries(handoff: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of entries in each list of a handoff."""
    return {name: len(value) for name, value in handoff.items() if isinstance(value, list | tuple)}


def claim(found: Claim) -> dict[str, Any]:
    """Return a claim without its context."""
    from foveate.clock import iso

    return {
        "id": found.id,
        "agent": found.agent,
        "task": found.task.id,
        "context": found.context_id,
        "tokens": found.tokens,
        "since": iso(found.since),
        "expires": iso(found.expires),
        "exclusive": found.exclusive,
        "others": list(found.others),
    }


def claim_with_context(found: ClaimWithContext) -> dict[str, Any]:
    """Return a claim with its task and its context."""
    from foveate.receipts.codec import context_to_json

    return {"claim": claim(found), "task": task(found.task), "context": context_to_json(found.context)}


def learned(done: Learned) -> dict[str, Any]:
    """Return the result of learning from a handoff."""
    return {
        "task": done.task,
        "handoff": done.handoff,
        "action": done.action,
        "method": done.method,
        "status": done.status,
        "counts": {kind: dict(counts) for kind, counts in done.counts.items()},
        "problems": list(done.problems),
    }


def trips(found: Sequence[CensorMatch]) -> dict[str, Any]:
    """Return the censors that a planned action violates."""
    rows = [
        {
            "id": trip.censor.id,
            "action": trip.action,
            "text": trip.censor.text,
            "reason": trip.reason,
            "matched": trip.matched_text,
        }
        for trip in found
    ]
    return {"blocked": any(trip.action == "block" for trip in found), "trips": rows}


# --- contexts ------------------------------------------------------------------------------------------------------


def context_summary(line: ReceiptSummary) -> dict[str, Any]:
    """Return an entry of the list of contexts."""
    from foveate.receipts.codec import summary_to_json

    return {name: value for name, value in summary_to_json(line).items() if name != "now"}


def context(found: Context) -> dict[str, Any]:
    """Return a context with its messages, items and everything that it left out."""
    from foveate.receipts.codec import context_to_json

    return context_to_json(found)


def why(found: Why) -> dict[str, Any]:
    """Return the reason why an item is in a context or not."""
    from foveate.receipts.codec import candidate_to_json

    if found.candidate is None:
        decision = {"id": found.id, "kind": found.kind, "kept": False, "reason": found.reason}
        return {"context": found.context, **decision, "sentence": found.sentence}
    entry = candidate_to_json(found.candidate)
    return {"context": found.context, **entry, "score_parts": dict(found.score_parts), "sentence": found.sentence}


def receipt(engine: Engine, found: Receipt, parts: Iterable[str] = ()) -> dict[str, Any]:
    """Return the receipt of a context, with the parts of `RECEIPT_PARTS` that are named."""
    from foveate.receipts.codec import to_json

    document = {name: value for name, value in to_json(found).items() if name != "candidates" or name in parts}
    if "text" in parts:
        document["text"] = engine.receipts.replay(found).text
    if "validation" in parts:
        document["validation"] = validation(engine.receipts.validate(found))
    if "markdown" in parts:
        document["markdown"] = found.debug()
    return document


def diff(found: Diff) -> dict[str, Any]:
    """Return the differences between two contexts."""

    def items(entries: Iterable[KeptCandidate]) -> list[dict[str, Any]]:
        return [
            {
                "id": entry.id,
                "kind": entry.kind,
                "slot": entry.slot,
                "level": entry.level,
                "shown_tokens": entry.tokens,
                "score": entry.score,
            }
            for entry in entries
        ]

    def steps(changed: Iterable[ItemChange]) -> list[dict[str, Any]]:
        return [{"id": step.id, "from": step.before, "to": step.after} for step in changed]

    return {
        "from": found.before,
        "to": found.after,
        "added": items(found.added),
        "withdrawn": items(found.withdrawn),
        "moved": steps(found.place_changes),
        "re_detailed": steps(found.level_changes),
        "changed": steps(found.version_changes),
        "tokens": found.tokens,
        "same_prefix": found.same_prefix,
        "unread": list(found.unread),
        **({"shared_prefix": asdict(found.shared_prefix)} if found.shared_prefix else {}),
    }


def replay(found: Replay) -> dict[str, Any]:
    """Return a past context that was computed again, with the reason if its bytes differ."""
    return {
        "id": found.id,
        "text": found.text,
        "tokens": found.tokens,
        "identical": found.same,
        "missing": list(found.missing),
        "reason": found.reason,
    }


def validation(found: Validation) -> dict[str, Any]:
    """Return the validation of a context, as requirement document 001 defines it."""
    return {
        "valid": found.valid,
        "token_count": found.token_count,
        "max_tokens": found.max_tokens,
        "breakdown": dict(found.breakdown),
        "warnings": list(found.warnings),
        "suggestions": list(found.suggestions),
    }


def session(found: SessionSummary) -> dict[str, Any]:
    """Return an entry of the list of sessions."""
    from foveate.clock import iso

    return {"name": found.name, "contexts": found.contexts, "last": iso(found.last)}


def feedback(context: str, found: Feedback | None, marks: Mapping[str, str]) -> dict[str, Any]:
    """Return the items of a context that an answer used, and the verdicts on items."""
    said = {} if found is None else {"used": dict(found.used), "unused": found.unused, "precision": found.precision}
    return {"context": context, **said, "marks": dict(marks)}


# --- entities, profiles, imports -----------------------------------------------------------------------------------


def proposals(found: Iterable[Proposal]) -> list[dict[str, Any]]:
    """Return names that could be entities, and the entities that have them already."""
    return [{"name": one.name, "type": one.type, "count": one.count, "known": one.known} for one in found]


def stats(found: Stats) -> dict[str, Any]:
    """Return the statistics of a store. Figures by day are included only if there are any."""
    document = asdict(found)
    return document if found.days else {name: value for name, value in document.items() if not name.startswith("days")}


def review(found: Review) -> dict[str, Any]:
    """Return an entry of the inbox."""
    from foveate.records.make import to_json

    return {"id": found.id, "reason": found.reason, "kind": found.proposed_kind, "record": to_json(found.record)}


def relation(link: Link) -> dict[str, Any]:
    return {"src": link.src, "name": link.name, "dst": link.dst, "weight": link.weight}


def profiles(known: Iterable[ProfileInfo]) -> dict[str, Any]:
    found = [
        {"name": info.name, "where": info.where, "extends": info.extends, "description": info.description} for info in known
    ]
    return {"profiles": found}


def import_report(done: ImportReport) -> dict[str, Any]:
    """Return the counts of an import, its files and its notes."""
    counts = {name: getattr(done, name) for name in ("added", "known", "skipped", "links")}
    return {**counts, "files": dict(done.files), "notes": list(done.notes)}


# --- code ----------------------------------------------------------------------------------------------------------

CONFIG = ".foveate/config.toml"
PROJECT = ("name", "language", "framework", "test_framework")


def code_index(code: Workspace, done: IndexUpdate | None = None, seconds: float = 0.0) -> dict[str, Any]:
    """Return the statistics of the code index and, after an update, what the update changed."""
    with code.index.open_reader() as reader:
        found = reader.stats()
    document = {"root": str(code.root), **found, "read_as_lines": read_as_lines(found["languages"])}
    if done is None:
        return document
    refreshed = {
        "parsed": done.parsed_files,
        "moved": done.moved_files,
        "removed": done.removed_files,
        "seconds": round(seconds, 3),
    }
    return {**document, "refreshed": refreshed, "notes": list(done.notes)}


def read_as_lines(languages: Mapping[str, int]) -> dict[str, int]:
    """Return the languages without a grammar, whose files are split into blocks of lines."""
    from foveate.code.languages import grammar

    return {name: number for name, number in languages.items() if grammar(name) is None}


def codebase(found: CodebaseDocs, code: Workspace, section: str | None = None) -> dict[str, Any]:
    """Return the documentation of the repository, or one section of it."""
    from foveate.errors import NotFound, near

    names = [part.name for part in found.sections]
    if section is not None and section not in (*names, "project"):
        raise NotFound(f"The documentation has no section {section!r}.{near(section, (*names, 'project'))}")
    told = {"project": project(found, code)} if section in (None, "project") else {}
    wanted = [asdict(part) for part in found.sections if section in (None, part.name)]
    return {**told, "sections": wanted, "notes": list(found.notes)}


def project(codebase: CodebaseDocs, code: Workspace) -> dict[str, dict[str, str]]:
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
    definitions = [_definition(hit) for hit in found.definitions]
    return {"query": query, "definitions": definitions, "files": [_file(hit) for hit in found.files]}


def _definition(hit: CodeHit) -> dict[str, Any]:
    from foveate.code.records import symbol_id

    one = hit.symbol
    place = {"id": symbol_id(one), "path": one.path, "line": one.start_line, "end": one.end_line}
    said = {"name": one.qualified_name, "kind": one.kind, "signature": one.signature, "doc": one.doc, "role": one.role}
    return {**place, **said, "relevance": hit.relevance, "features": dict(hit.features)}


def _file(hit: FileHit) -> dict[str, Any]:
    one = hit.file
    said = {"role": one.role, "language": one.language, "lines": one.lines}
    return {"id": f"file:{one.path}", "path": one.path, **said, "relevance": hit.relevance, "features": dict(hit.features)}
