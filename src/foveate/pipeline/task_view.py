"""000's computed result, as a view: the same items under the names of that document, with its `_computed` figures.

Comes in: what a context holds (items, what was left out, signals). Goes out: one JSON document. It reads the items that
are in the prompt, so that the view never says more than the model sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from foveate.records.render import title_of
from foveate.types import Candidate, Item, Omission, Signals


def computed(items: Sequence[Item], left_out: Sequence[Omission], signals: Signals) -> dict[str, Any]:
    """The parts that 000 names. What was left out counts in the figures, which are taken before any limit."""
    considered = [*(item.candidate for item in items), *(omission.candidate for omission in left_out)]
    kinds = {name: [item for item in items if item.candidate.record.kind == name] for name in _KINDS}
    prior = [item for item in kinds["task"] if item.candidate.source == "dependencies"]
    return {
        "patterns_to_follow": [_pattern(item.candidate) for item in _own(kinds["pattern"])],
        "warnings": [_gotcha(item.candidate) for item in _own(kinds["gotcha"])],
        "relevant_decisions": [_decision(item.candidate) for item in kinds["decision"]],
        "related_tasks": [item.candidate.record.id for item in kinds["task"] if item.candidate.slot == "related_tasks"],
        "prior_work": [_prior(item.candidate) for item in prior],
        "inherited_patterns": [_pattern(item.candidate) for item in _inherited(kinds["pattern"])],
        "inherited_warnings": [_gotcha(item.candidate) for item in _inherited(kinds["gotcha"])],
        "blocking_questions": [_question(item.candidate) for item in kinds["question"]],
        "code_references": [_reference(item.candidate) for item in kinds["component"]],
        "_computed": {
            "signals": {
                "keywords": list(signals.keywords),
                "domains": list(signals.domains),
                "files_mentioned": list(signals.paths),
                "task_types": [signals.task_type] if signals.task_type else [],
            },
            "knowledge_nodes_matched": sum(len(_own(kinds[name])) for name in ("pattern", "gotcha", "decision")),
            "dependency_count": sum(c.source == "dependencies" and c.record.kind == "task" for c in considered),
            "context_map_filtered": sum(c.source == "context_map" for c in considered),
        },
    }


_KINDS = ("pattern", "gotcha", "decision", "task", "question", "component")


def _own(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if item.candidate.via is None]


def _inherited(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if item.candidate.via is not None]


def _from(candidate: Candidate) -> dict[str, str]:
    return {"from": title_of(candidate.via) or candidate.via.id} if candidate.via else {}


def _pattern(candidate: Candidate) -> dict[str, Any]:
    return _looked_up(candidate, "pattern", location=candidate.record.data.get("location"))


def _gotcha(candidate: Candidate) -> dict[str, Any]:
    return _looked_up(candidate, "issue", severity=candidate.record.data.get("severity", "medium"))


def _decision(candidate: Candidate) -> dict[str, Any]:
    return _looked_up(candidate, "decision", rationale=candidate.record.data.get("rationale"))


def _looked_up(candidate: Candidate, name: str, **beside: Any) -> dict[str, Any]:
    """What the knowledge query gives for each of its kinds: the words, what belongs to them, how relevant, and from whom."""
    relevance = candidate.features.get("relevance", 0.0)
    return {name: candidate.record.summary, **beside, "relevance": relevance, **_from(candidate)}


def _prior(candidate: Candidate) -> dict[str, Any]:
    record = candidate.record
    return {
        "task": title_of(record) or record.id,
        "summary": record.data.get("result") or record.summary,
        "files_to_read": [dict(file) for file in record.data.get("files_to_read") or ()],
    }


def _question(candidate: Candidate) -> dict[str, Any]:
    record = candidate.record
    return {
        "question": record.text,
        "context": record.data.get("context"),
        "recommendation": record.data.get("recommendation"),
        **_from(candidate),
    }


def _reference(candidate: Candidate) -> dict[str, Any]:
    record = candidate.record
    notes = "" if record.text == record.data.get("component") else record.summary
    out = {"file": record.data.get("location"), "component": record.data.get("component"), "notes": notes}
    return {**out, "stale": True} if candidate.stale else out
