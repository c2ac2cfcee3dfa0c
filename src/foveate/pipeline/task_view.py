"""Show a context as the result of spec 000: its items under the names of that document, with its `_computed` figures.

Only items of the prompt are listed, so that the result contains nothing that the model does not see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from foveate.records.render import title_of
from foveate.types import Item, LeftOut, Signals

ResultItem = dict[str, Any]


class ComputedSignals(TypedDict):
    """Signals of a task, as spec 000 names them."""

    keywords: list[str]
    domains: list[str]
    files_mentioned: list[str]
    task_types: list[str]


class Figures(TypedDict):
    """Figures of spec 000. They also count candidates that were left out."""

    signals: ComputedSignals
    knowledge_nodes_matched: int
    dependency_count: int
    context_map_filtered: int


class Computed(TypedDict):
    """The result of a computed context, as spec 000 names it."""

    patterns_to_follow: list[ResultItem]
    warnings: list[ResultItem]
    relevant_decisions: list[ResultItem]
    related_tasks: list[str]
    prior_work: list[ResultItem]
    inherited_patterns: list[ResultItem]
    inherited_warnings: list[ResultItem]
    blocking_questions: list[ResultItem]
    code_references: list[ResultItem]
    _computed: Figures


def task_view(items: Sequence[Item], left_out: Sequence[LeftOut], signals: Signals) -> Computed:
    """Return the items of a context by their use in a task."""
    considered = [each.candidate for each in (*items, *left_out)]
    kinds = {name: [item for item in items if item.kind == name] for name in _KINDS}
    patterns, gotchas, tasks = kinds["pattern"], kinds["gotcha"], kinds["task"]
    return {
        "patterns_to_follow": [_pattern(item) for item in patterns if not _is_inherited(item)],
        "warnings": [_gotcha(item) for item in gotchas if not _is_inherited(item)],
        "relevant_decisions": [_knowledge(item, "decision", "rationale") for item in kinds["decision"]],
        "related_tasks": [item.id for item in tasks if item.section == "related_tasks"],
        "prior_work": [_prior(item) for item in tasks if item.candidate.source == "dependencies"],
        "inherited_patterns": [_pattern(item) for item in patterns if _is_inherited(item)],
        "inherited_warnings": [_gotcha(item) for item in gotchas if _is_inherited(item)],
        "blocking_questions": [_question(item) for item in kinds["question"]],
        "code_references": [_reference(item) for item in kinds["component"]],
        "_computed": {
            "signals": {
                "keywords": list(signals.keywords),
                "domains": list(signals.domains),
                "files_mentioned": list(signals.paths),
                "task_types": [signals.task_type] if signals.task_type else [],
            },
            "knowledge_nodes_matched": sum(not _is_inherited(item) for item in (*patterns, *gotchas, *kinds["decision"])),
            "dependency_count": sum(c.source == "dependencies" and c.record.kind == "task" for c in considered),
            "context_map_filtered": sum(c.source == "context_map" for c in considered),
        },
    }


_KINDS = ("pattern", "gotcha", "decision", "task", "question", "component")


def _is_inherited(item: Item) -> bool:
    """Return whether the item comes from a dependency of the task."""
    return item.candidate.inherited_from is not None


def _origin(item: Item) -> dict[str, str]:
    task = item.candidate.inherited_from
    return {"from": title_of(task) or task.id} if task else {}


def _pattern(item: Item) -> ResultItem:
    return _knowledge(item, "pattern", "location")


def _gotcha(item: Item) -> ResultItem:
    return _knowledge(item, "issue", "severity", "medium")


def _knowledge(item: Item, name: str, field: str, default: str | None = None) -> ResultItem:
    value = item.record.data.get(field, default)
    return {name: item.record.summary, field: value, "relevance": item.relevance, **_origin(item)}


def _prior(item: Item) -> ResultItem:
    record = item.record
    return {
        "task": title_of(record) or record.id,
        "summary": record.data.get("result") or record.summary,
        "files_to_read": [dict(file) for file in record.data.get("files_to_read") or ()],
    }


def _question(item: Item) -> ResultItem:
    data = item.record.data
    return {
        "question": item.record.text,
        "context": data.get("context"),
        "recommendation": data.get("recommendation"),
        **_origin(item),
    }


def _reference(item: Item) -> ResultItem:
    record = item.record
    notes = "" if record.text == record.data.get("component") else record.summary
    out = {"file": record.data.get("location"), "component": record.data.get("component"), "notes": notes}
    return {**out, "stale": True} if item.candidate.stale else out
