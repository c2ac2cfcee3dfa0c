"""The JSON form of resolved profiles, which receipts store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.types import Frame, Profile, Slot

_PROFILE_FIELDS = {
    "half_life": "half_life_hours",
    "related_weight": "expansion_weight",
    "flexible": "flexible_share",
    "frames": "choose_frame",
}
_SLOT_FIELDS = {
    "also": "extra_sources",
    "empty": "empty_text",
    "limit": "max_candidates",
    "deepest": "max_level",
    "pinned": "pinned_only",
    "min_score": "min_relevance",
}
"""Settings of profiles by their names in receipts of version 0.1, which are still read."""

Json = dict[str, Any]


def profile_to_json(profile: Profile) -> Json:
    """Return a resolved profile as JSON values."""
    return {
        "name": profile.name,
        "total": profile.total,
        "written_for": profile.written_for,
        "reserve": profile.reserve,
        "slots": [_slot_to_json(slot) for slot in profile.slots],
        "weights": dict(profile.weights),
        "half_life_hours": profile.half_life_hours,
        "fields": dict(profile.fields),
        "vector_weight": profile.vector_weight,
        "expansion_weight": profile.expansion_weight,
        "flexible_share": profile.flexible_share,
        "max_file_chars": profile.max_file_chars,
        "choose_frame": profile.choose_frame,
        "frame": _frame_to_json(profile.frame) if profile.frame else None,
        "layers": dict(profile.layers),
    }


def profile_from_json(value: Mapping[str, Any]) -> Profile:
    """Return the profile of a JSON document."""
    values = {_PROFILE_FIELDS.get(key, key): setting for key, setting in value.items()}
    slots = tuple(_slot_from_json(slot) for slot in value["slots"])
    frame = value.get("frame")
    return Profile(**{**values, "slots": slots, "frame": _frame_from_json(frame) if frame else None})


def _slot_to_json(slot: Slot) -> Json:
    return {
        "name": slot.name,
        "source": slot.source,
        "extra_sources": [list(pair) for pair in slot.extra_sources],
        "kinds": list(slot.kinds),
        "heading": slot.heading,
        "intro": slot.intro,
        "empty_text": slot.empty_text,
        "tokens": slot.tokens,
        "share": slot.share,
        "max_items": slot.max_items,
        "min_relevance": slot.min_relevance,
        "fill": slot.fill,
        "max_candidates": slot.max_candidates,
        "level": slot.level,
        "max_level": slot.max_level,
        "keep": slot.keep,
        "stable": slot.stable,
        "role": slot.role,
        "order": slot.order,
        "priority": slot.priority,
        "pinned_only": slot.pinned_only,
        "text": slot.text,
        "min_trust": slot.min_trust,
        "field": slot.field,
        "required": slot.required,
    }


def _slot_from_json(value: Mapping[str, Any]) -> Slot:
    values = {_SLOT_FIELDS.get(key, key): setting for key, setting in value.items()}
    extra_sources = tuple((name, limit) for name, limit in values.get("extra_sources", ()))
    return Slot(**{**values, "kinds": tuple(values["kinds"]), "extra_sources": extra_sources})


def _frame_to_json(frame: Frame) -> Json:
    return {
        "title": frame.title,
        "description": frame.description,
        "questions": list(frame.questions),
        "domains": list(frame.domains),
        "triggers": {name: list(texts) for name, texts in frame.triggers.items()},
        "order": frame.order,
    }


def _frame_from_json(value: Mapping[str, Any]) -> Frame:
    parts: Json = {name: tuple(part) if isinstance(part, list) else part for name, part in value.items()}
    return Frame(**{**parts, "triggers": {name: tuple(texts) for name, texts in value["triggers"].items()}})
