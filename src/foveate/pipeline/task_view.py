"""The computed result of document 000: the items of a context under that document's names, with its `_computed` figures.

Only items that are in the prompt are listed, so that the result never says more than the model sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict

from foveate.records.render import title_of
from foveate.types import Item, LeftOut, Signals

Entry = dict[str, Any]


class ComputedSignals(TypedDict):
    """What 000 extracts from a task."""

    keywords: list[str]
    domains: list[str]
    files_mentioned: list[str]
    task_types: list[str]


class Figures(TypedDict):
    """000's figures. They count what was left out as well."""

    signals: ComputedSignals
    knowledge_nodes_matched: int
    dependency_count: int
    context_map_filtered: int


class Computed(TypedDict):
    """000's computed result."""

    patterns_to_follow: list[Entry]
    warnings: list[Entry]
    relevant_decisions: list[Entry]
    related_tasks: list[str]
    prior_work: list[Entry]
    inherited_patterns: list[Entry]
    inherited_warnings: list[Entry]
    blocking_questions: list[Entry]
    code_references: list[Entry]
    _computed: Figures


def computed(items: Sequence[Item], left_out: Sequence[LeftOut], signals: Signals) -> Computed:
    """Return the computed result for the items of a context."""
    considered = [each.candidate for each in (*items, *left_out)]
    kinds = {name: [item for item in items if item.kind == name] for name in _KINDS}
    patterns, gotchas, tasks = kinds["pattern"], kinds["gotcha"], kinds["task"]
    return {
        "patterns_to_follow": [_pattern(item) for item in patterns if not _is_inherited(item)],
        "warnings": [_gotcha(item) for item in gotchas if not _is_inherited(item)],
        "relevant_decisions": [_found(item, "decision", "rationale") for item in kinds["decision"]],
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
            "knowledge_nodes_matched": _number_found(patterns, gotchas, kinds["decision"]),
            "dependency_count": sum(c.source == "dependencies" and c.record.kind == "task" for c in considered),
            "context_map_filtered": sum(c.source == "context_map" for c in considered),
        },
    }


_KINDS = ("pattern", "gotcha", "decision", "task", "question", "component")


def _is_inherited(item: Item) -> bool:
    """Return whether a dependency of the task handed the item on."""
    return item.candidate.inherited_from is not None


def _number_found(*groups: Iterable[Item]) -> int:
    return sum(not _is_inherited(item) for group in groups for item in group)


def _via(item: Item) -> dict[str, str]:
    task = item.candidate.inherited_from
    return {"from": title_of(task) or task.id} if task else {}


def _pattern(item: Item) -> Entry:
    return _found(item, "pattern", "location")


def _gotcha(item: Item) -> Entry:
    return _found(item, "issue", "severity", "medium")


def _found(item: Item, name: str, field: str, default: str | None = None) -> Entry:
    value = item.record.data.get(field, default)
    return {name: item.record.summary, field: value, "relevance": item.relevance, **_via(item)}


def _prior(item: Item) -> Entry:
    record = item.record
    return {
        "task": title_of(record) or record.id,
        "summary": record.data.get("result") or record.summary,
        "files_to_read": [dict(file) for file in record.data.get("files_to_read") or ()],
    }


def _question(item: Item) -> Entry:
    data = item.record.data
    return {
        "question": item.record.text,
        "context": data.get("context"),
        "recommendation": data.get("recommendation"),
        **_via(item),
    }


def _reference(item: Item) -> Entry:
    record = item.record
    notes = "" if record.text == record.data.get("component") else record.summary
    out = {"file": record.data.get("location"), "component": record.data.get("component"), "notes": notes}
    return {**out, "stale": True} if item.candidate.stale else out
