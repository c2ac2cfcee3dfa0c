"""The settings of a profile, a slot and a frame, and what each may hold.

One layer is checked at a time. Problems that only the merged profile can have are found in `profile.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, get_args

from foveate.errors import near
from foveate.types import FILL_MODES, LEVELS, TASK_FIELDS, TRUST, Intent

FEATURES: tuple[str, ...] = (
    "relevance",  # the probability that it is evidence for the request
    "recency",  # one half after `half_life_hours`
    "salience",  # how much it mattered when it was written
    "type",  # its slot's `priority`
    "outcome",  # how well it turned out
    "usage",  # how often it has been used
    "confidence",  # how sure its author was
    "trust",  # who said it
    "stage",  # a fact that is core, a procedure that is effective: 1; a confirmed fact: one half
    "success",  # how often a procedure or pattern went well, with a prior of one in two
    "applies",  # the share of its conditions (intents, types of entities) that the question meets
    "entity",  # it names what the question names
    "mentioned",  # an entity that the question names: 1, one that only matters much: one half
    "keyword",  # the share of the question's words that its tags hold
    "contained",  # 0.1 for each of the question's words that its text holds
    "domain",  # it is tagged with a domain of the question
    "inherited",  # a dependency of the task handed it on
    "map_component",  # words of the question in a component's name
    "map_location",  # words of the question in its location
    "map_domain",  # domains of the question in its notes
    "map_file",  # files that the question names
)
"""Features to which a profile can give a weight; each is between 0 and 1."""

FIELDS: tuple[str, ...] = ("text", "summary", "tags", "subject", "entities", "paths", "dates")
"""Parts of a record with a weight of their own in lexical search."""

CALL_LAYER = "call"
"""Name of the last layer, which has the overrides of the call."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The description and the test of the values that a setting may have."""

    description: str
    is_valid: Callable[[Any], bool]


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_int(value)


_TEXT = Setting("text", lambda v: isinstance(v, str))
_NAME = Setting("a name", lambda v: isinstance(v, str) and v != "")
_NAMES = Setting("a list of names", lambda v: isinstance(v, list | tuple) and all(isinstance(n, str) for n in v))
_TEXTS = Setting("a list of texts", lambda v: isinstance(v, list | tuple) and all(isinstance(n, str) for n in v))
_FLAG = Setting("true or false", lambda v: isinstance(v, bool))
_NON_NEGATIVE_INT = Setting("a whole number, 0 or more", lambda v: _is_int(v) and v >= 0)
POSITIVE_INT = Setting("a whole number above 0", lambda v: _is_int(v) and v > 0)
_NON_NEGATIVE_NUMBER = Setting("a number, 0 or more", lambda v: _is_number(v) and 0 <= v < inf)
_POSITIVE_NUMBER = Setting("a number above 0", lambda v: _is_number(v) and 0 < v < inf)
_UNIT = Setting("a number from 0 to 1", lambda v: _is_number(v) and 0 <= v <= 1)
_LEVEL = Setting("full, passage, summary or micro", lambda v: isinstance(v, str) and v in LEVELS)
_TRUST = Setting("web, tool, repo, agent or user", lambda v: isinstance(v, str) and v in TRUST)
_FILL = Setting(", ".join(FILL_MODES), lambda v: isinstance(v, str) and v in FILL_MODES)
_ROLE = Setting("system or user", lambda v: isinstance(v, str) and v in ("system", "user"))
_SOURCE_LIMITS = Setting(
    "a table of sources with how many candidates each may bring",
    lambda v: isinstance(v, Mapping) and all(_is_int(limit) and limit >= 0 for limit in v.values()),
)
_INTENTS = Setting(
    f"a list of {', '.join(get_args(Intent))}",
    lambda v: isinstance(v, list | tuple) and all(isinstance(n, str) and n in get_args(Intent) for n in v),
)
_FIELD = Setting(f"one of {', '.join(TASK_FIELDS)}", lambda v: isinstance(v, str) and v in TASK_FIELDS)
_TABLE = Setting("a table", lambda v: isinstance(v, Mapping))
_TABLES = Setting("tables", lambda v: isinstance(v, Mapping) and all(isinstance(inner, Mapping) for inner in v.values()))

PROFILE_SETTINGS: Mapping[str, Setting] = {
    "name": _NAME,
    "description": _TEXT,
    "extends": _TEXT,
    "total": POSITIVE_INT,
    "reserve": _NON_NEGATIVE_INT,
    "half_life_hours": _POSITIVE_NUMBER,
    "vector_weight": _UNIT,
    "expansion_weight": _UNIT,
    "flexible_share": _UNIT,
    "max_file_chars": POSITIVE_INT,
    "choose_frame": _FLAG,
    "weights": _TABLE,
    "fields": _TABLE,
    "slots": _TABLE,
    "complexity": _TABLES,
    "input": _TABLES,
}
VARIANT_SETTINGS: Mapping[str, Setting] = {
    name: setting
    for name, setting in PROFILE_SETTINGS.items()
    if name not in ("name", "description", "extends", "complexity", "input")
}
"""Settings of a complexity, a frame or an input."""
SLOT_SETTINGS: Mapping[str, Setting] = {
    "source": _NAME,
    "extra_sources": _SOURCE_LIMITS,
    "kinds": _NAMES,
    "heading": _TEXT,
    "intro": _TEXT,
    "empty_text": _TEXT,
    "tokens": _NON_NEGATIVE_INT,
    "share": _NON_NEGATIVE_NUMBER,
    "times": _NON_NEGATIVE_NUMBER,
    "max_items": _NON_NEGATIVE_INT,
    "min_relevance": _UNIT,
    "fill": _FILL,
    "max_candidates": _NON_NEGATIVE_INT,
    "level": _LEVEL,
    "max_level": _LEVEL,
    "keep": _FLAG,
    "stable": _FLAG,
    "role": _ROLE,
    "order": _NON_NEGATIVE_INT,
    "priority": _UNIT,
    "pinned_only": _FLAG,
    "text": _TEXT,
    "min_trust": _TRUST,
    "field": _FIELD,
    "required": _TEXT,
    "optional": _FLAG,
    "remove": _FLAG,
}
FRAME_SETTINGS: Mapping[str, Setting] = {
    "title": _TEXT,
    "description": _TEXT,
    "questions": _TEXTS,
    "domains": _NAMES,
    "triggers": _TABLE,
    "order": _NON_NEGATIVE_INT,
}
TRIGGER_SETTINGS: Mapping[str, Setting] = {"forms": _TEXTS, "words": _TEXTS, "intents": _INTENTS}
_WEIGHTS = dict.fromkeys(FEATURES, _NON_NEGATIVE_NUMBER)
_FIELDS = dict.fromkeys(FIELDS, _NON_NEGATIVE_NUMBER)
_SLOT_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(slots=True)
class LayerCheck:
    """The valid part of a layer, its problems, and the slots (or `total`) with problems."""

    layer: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    invalid: set[str] = field(default_factory=set)


def layer_label(layer: str) -> str:
    """Return the name of a layer in messages."""
    table, _, name = layer.partition(".")
    if table in ("complexity", "frames", "input") and name:
        return f"{'Frame' if table == 'frames' else table.capitalize()} {name!r}"
    return "The call" if layer == CALL_LAYER else f"Profile {layer!r}"


def unknown_name(layer: str, what: str, name: str, known: Collection[str]) -> str:
    """Return `Profile 'developer' has no slot setting 'max_item'. Did you mean 'max_items'?`"""
    return f"{layer_label(layer)} has no {what} {name!r}.{near(name, known)}"


def check_layer(name: str, layer: Mapping[str, Any]) -> LayerCheck:
    """Return the valid part of a profile file or of the settings of a call, and its problems."""
    out = _check(name, layer, PROFILE_SETTINGS, "setting")
    for table in ("complexity", "input"):
        for key, values in out.layer.get(table, {}).items():
            out.problems += check_variant(f"{table}.{key}", values).problems
    return out


def check_variant(name: str, table: Mapping[str, Any]) -> LayerCheck:
    """Return the valid part of a complexity, frame or input. It sets only slots that the profile has."""
    if name.startswith("frames."):
        return check_frame(name, table)
    return _with_optional_slots(_check(name, table, VARIANT_SETTINGS, "setting"))


def check_frame(name: str, table: Mapping[str, Any]) -> LayerCheck:
    """Return the valid part of a frame, with the settings that only frames have in `layer["frame"]`."""
    out = _with_optional_slots(_check(name, table, {**VARIANT_SETTINGS, **FRAME_SETTINGS}, "frame setting"))
    frame = {key: out.layer.pop(key) for key in FRAME_SETTINGS if key in out.layer}
    if "triggers" in frame:
        frame["triggers"], problems = _check_values(name, frame["triggers"], TRIGGER_SETTINGS, "trigger", "triggers.")
        out.problems += problems
    out.layer["frame"] = frame
    return out


def _with_optional_slots(out: LayerCheck) -> LayerCheck:
    out.layer["slots"] = {slot: {**values, "optional": True} for slot, values in out.layer.get("slots", {}).items()}
    return out


def _check(name: str, layer: Mapping[str, Any], settings: Mapping[str, Setting], what: str) -> LayerCheck:
    out = LayerCheck()
    out.layer, out.problems = _check_values(name, layer, settings, what, "")
    if "total" in layer.keys() - out.layer.keys():
        out.invalid.add("total")
    for table, weights, weight in (("weights", _WEIGHTS, "weight"), ("fields", _FIELDS, "field")):
        if table in out.layer:
            out.layer[table], problems = _check_values(name, out.layer[table], weights, weight, f"{table}.")
            out.problems += problems
    if "slots" in out.layer:
        slots, out.layer["slots"] = out.layer["slots"], {}
        for slot, values in slots.items():
            kept, problems = _slot(name, slot, values)
            if problems:
                out.problems += problems
                out.invalid.add(slot)
            out.layer["slots"][slot] = kept
    return out


def _slot(name: str, slot: str, values: Any) -> tuple[dict[str, Any], list[str]]:
    if not _SLOT_NAME.fullmatch(slot):
        return {}, [f"{layer_label(name)}: the slot name {slot!r} may have letters, digits, '-' and '_' only."]
    if not _TABLE.is_valid(values):
        return {}, [_type_message(name, f"slots.{slot}", _TABLE, values)]
    kept, problems = _check_values(name, values, SLOT_SETTINGS, "slot setting", f"slots.{slot}.")
    if kept.get("remove") and kept.keys() - {"remove", "optional"}:
        problems.append(f"{layer_label(name)}: slot {slot!r} is removed and set at once; do one of them.")
    if "tokens" in kept and "share" in kept:
        problems.append(f"{layer_label(name)}: slot {slot!r} has both tokens and share; give it one of them.")
    return kept, problems


def _check_values(
    name: str, values: Mapping[str, Any], settings: Mapping[str, Setting], what: str, path: str
) -> tuple[dict[str, Any], list[str]]:
    kept: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in values.items():
        setting = settings.get(key)
        if setting is None:
            problems.append(unknown_name(name, what, key, settings))
        elif setting.is_valid(value):
            kept[key] = value
        else:
            problems.append(_type_message(name, path + key, setting, value))
    return kept, problems


def _type_message(name: str, path: str, setting: Setting, value: Any) -> str:
    return f"{layer_label(name)}: {path} must be {setting.description}, got {value!r}."
