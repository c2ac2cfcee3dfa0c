"""The fields of a handoff: one table for the readers, the normalizer, the JSON Schema and the template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

SCHEMA = "handoff/v1"

MAX_NAME = 64
"""Characters of a key; a longer text before a colon is a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field: its name, the kind of its value, and its aliases.

    `kind` is text, lines, choice, flag, unit (0 to 1), texts (a list of texts), items (a list of objects) or object.
    `aliases` and the variants in `choices` are separated by commas. The first of an item's `fields` is required, and a
    plain text in place of the object is its value.
    """

    name: str
    kind: str
    description: str
    aliases: str = ""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default: Any = None
    fields: tuple[Field, ...] = ()

    @property
    def is_list(self) -> bool:
        return self.kind in ("texts", "items")


def _choices(**variants: str) -> Mapping[str, tuple[str, ...]]:
    return {choice: tuple(text.split(", ")) for choice, text in variants.items()}


_STATUS = _choices(
    completed="complete, done, success, successful, succeeded, finished, ok, passed, resolved",
    partial="in progress, partially completed, partially complete, incomplete, wip, ongoing, pending",
    failed="failure, fail, error, errored, unsuccessful, aborted",
    blocked="blocking, stuck, waiting, on hold",
)
_SEVERITY = _choices(
    low="minor, info, note, trivial, nit, p3, p4, 低",
    medium="moderate, warn, warning, normal, med, mid, p2, 中",
    high="major, severe, serious, error, important, p1, 高",
    critical="blocker, fatal, crit, urgent, showstopper, p0, 严重",
)
STATUSES: tuple[str, ...] = tuple(_STATUS)

_FILE = (
    Field("path", "text", "path from the repository's root", "file, filename, file path, name, location"),
    Field("lines", "lines", "the lines concerned, such as 10-20", "line, line range, line numbers, loc"),
    Field("purpose", "text", "what it is for, or what changed", "description, reason, change, changes, notes, what"),
)
_PATTERN = (
    Field("pattern", "text", "the convention, as an instruction", "name, description, title, text, rule"),
    Field("location", "text", "where it can be seen", "file, path, where"),
    Field("applies_to", "texts", "what else it holds for", "applies, scope, tags, used in"),
)
_GOTCHA = (
    Field("issue", "text", "what goes wrong and how to avoid it", "gotcha, description, title, text, warning, problem"),
    Field("severity", "choice", "how bad it is", "level, priority, impact", _SEVERITY, "medium"),
    Field("workaround", "text", "how to get around it", "mitigation, solution, fix, avoid, resolution"),
)
_QUESTION = (
    Field("question", "text", "what is not known", "q, title, text, description, issue"),
    Field("context", "text", "why it matters", "background, details, why"),
    Field("recommendation", "text", "what to do unless somebody decides otherwise", "suggestion, proposal, recommended"),
    Field("blocking", "flag", "whether the next task must wait for it", "blocks, is blocking, blocker", default=False),
)
_DEPENDENCY = (
    Field("file", "text", "what the next task should read", "path, filename, name, dependency"),
    Field("reason", "text", "what it will find there", "purpose, description, why, notes"),
)
_ALTERNATIVES = "rejected, rejected alternatives, alternatives rejected, alternatives considered, alternative, instead of"
_DECISION = (
    Field("decision", "text", "what was decided", "title, choice, chosen, text, description, what"),
    Field("rationale", "text", "why", "reason, reasoning, because, why, justification"),
    Field("alternatives", "texts", "what was considered and rejected", _ALTERNATIVES),
)


def _items(name: str, description: str, fields: tuple[Field, ...], aliases: str) -> Field:
    return Field(name, "items", description, aliases, fields=fields)


FIELDS: tuple[Field, ...] = (
    Field("schema", "text", "the form of this handoff", "schema version, $schema", default=SCHEMA),
    Field("task_id", "text", "the task that was worked on", "task, id, ticket"),
    Field("status", "choice", "how far the task got", "task status", _STATUS, "completed"),
    Field(
        "summary", "text", "what was done and what came of it, in one to three sentences", "overview, tldr, what was done"
    ),
    _items(
        "files_created",
        "files that did not exist before",
        _FILE,
        "file created, new files, created files, created, files added",
    ),
    _items(
        "files_modified",
        "files that were changed",
        _FILE,
        "file modified, modified files, modified, files changed, changed files, files edited, files updated, files touched",
    ),
    _items(
        "patterns_discovered",
        "conventions of this code base that others should follow",
        _PATTERN,
        "patterns, pattern discovered, discovered patterns, conventions, patterns found, patterns to follow",
    ),
    _items(
        "gotchas",
        "traps that others would fall into",
        _GOTCHA,
        "gotcha, warnings, pitfalls, caveats, known issues, watch out, watch out for, gotchas and warnings",
    ),
    _items(
        "open_questions",
        "what somebody still has to decide or find out",
        _QUESTION,
        "questions, open question, unresolved questions, unresolved, remaining questions",
    ),
    _items(
        "dependencies_for_next",
        "what the next task should read first",
        _DEPENDENCY,
        "dependencies, dependency for next, dependencies for next task, files to read, read first, read next",
    ),
    _items("decisions", "choices that were made", _DECISION, "decision, key decisions, decisions made, design decisions"),
    Field(
        "evidence",
        "texts",
        "what shows that it works: commands and their results",
        "verification, proof, tests run, validation",
    ),
    Field("confidence", "unit", "how sure the author is, from 0 to 1", "confidence level, confidence score"),
    Field("extra", "object", "anything else, under names of your own"),
)

WRAPPERS = frozenset({"handoff", "handoffv1", "taskhandoff", "handoffs", "agenthandoff", "structuredhandoff"})
"""Folded names of a key that holds the whole handoff."""


def fold(name: str) -> str:
    """Return a name for comparison: without case, spaces, punctuation, emoji or a leading number."""
    return re.sub(r"[\W_]+", "", re.sub(r"^\s*\d{1,3}[.)]\s+", "", name)).lower()


@lru_cache(maxsize=64)
def fields_by_name(fields: tuple[Field, ...]) -> Mapping[str, Field]:
    """Return fields by folded name and alias; a name precedes the alias of another field."""
    names: dict[str, Field] = {}
    for each in fields:
        for alias in filter(None, each.aliases.split(", ")):
            names.setdefault(fold(alias), each)
    names.update({fold(each.name): each for each in fields})
    return MappingProxyType(names)


def find(name: str, fields: tuple[Field, ...] = FIELDS) -> Field | None:
    """Return the field that a name stands for, in any spelling."""
    return fields_by_name(fields).get(fold(name)) if len(name) <= MAX_NAME else None


# --- JSON Schema and template --------------------------------------------------------------------------------------


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a handoff; the result of `parse` always conforms to it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:foveate:{SCHEMA}",
        "title": "Handoff",
        "description": "What an agent leaves for the next one when a task ends.",
        **_object_schema(FIELDS, ["summary"]),
    }


def _object_schema(fields: tuple[Field, ...], required: list[str]) -> dict[str, Any]:
    properties = {
        each.name: {**_value_schema(each), "description": each.description[:1].upper() + each.description[1:] + "."}
        for each in fields
    }
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def _value_schema(each: Field) -> dict[str, Any]:
    if each.name == "schema":
        return {"const": SCHEMA}
    if each.kind == "items":
        return {"type": "array", "items": _object_schema(each.fields, [each.fields[0].name]), "default": []}
    schemas: dict[str, dict[str, Any]] = {
        "text": {"type": "string"},
        "lines": {"type": "string"},
        "choice": {"type": "string", "enum": list(each.choices)},
        "flag": {"type": "boolean"},
        "unit": {"type": "number", "minimum": 0, "maximum": 1},
        "texts": {"type": "array", "items": {"type": "string"}, "default": []},
        "object": {"type": "object"},
    }
    return schemas[each.kind] if each.default is None else {**schemas[each.kind], "default": each.default}


def template(task: str = "", *, name: str = "") -> str:
    """Return a handoff to fill in: Markdown with YAML front matter and a comment for each field."""
    lines = [line for each in FIELDS if each.kind != "object" for line in _template_lines(each, task)]
    title = " ".join(name.split()) or "Handoff"
    body = "<!-- Whatever does not fit a field above: details, logs, code. -->"
    return "\n".join(["---", *lines, "---", "", f"# {title}", "", body, ""])


def _template_lines(each: Field, task: str) -> list[str]:
    if each.name == "schema":
        return [f"schema: {SCHEMA}"]
    comment = f"# {each.description}"
    if each.kind == "items":
        example = ", ".join(f"{part.name}: {_hint(part)}" for part in each.fields)
        return [f"{comment}; each: {{{example}}}", f"{each.name}: []"]
    if each.kind == "choice":
        return [f"{each.name}: {each.default}  {comment}: {', '.join(each.choices)}"]
    value = {"texts": "[]", "unit": "null"}.get(each.kind, '""')
    return [f"{each.name}: {json.dumps(task) if each.name == 'task_id' else value}  {comment}"]


def _hint(part: Field) -> str:
    return {"choice": " | ".join(part.choices), "flag": "true | false", "texts": "[...]"}.get(part.kind, "...")
