"""Write a profile as TOML, for people to read and to start their own from.

Each value has the layer that set it in a comment. Defaults that no layer set are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from foveate.types import Profile, Slot

_TOP = (
    "total",
    "reserve",
    "half_life_hours",
    "vector_weight",
    "expansion_weight",
    "flexible_share",
    "max_file_chars",
    "choose_frame",
)
_TABLES = ("weights", "fields")


def to_toml(profile: Profile) -> str:
    """Return TOML that extends nothing and resolves to the same profile, except for the frame of a question."""
    settings = {key: getattr(profile, key) for key in _TOP} | {"total": profile.written_for}
    defaults = {field.name: field.default for field in fields(Profile)}
    blocks = [
        [f"name = {_value(profile.name)}", 'extends = ""', *_lines(settings, defaults, profile.layers, "")],
        *(
            [f"[{table}]", *_lines(getattr(profile, table), {}, profile.layers, f"{table}.")]
            for table in _TABLES
            if getattr(profile, table)
        ),
        *(_slot(slot, profile.layers) for slot in profile.slots),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _slot(slot: Slot, setters: Mapping[str, str]) -> list[str]:
    defaults = {field.name: field.default for field in fields(Slot)}
    defaults["role"] = "system" if slot.stable else "user"
    settings = {key: getattr(slot, key) for key in defaults if key != "name"} | {"extra_sources": dict(slot.extra_sources)}
    defaults["extra_sources"] = {}
    return [f"[slots.{slot.name}]", *_lines(settings, defaults, setters, f"slots.{slot.name}.")]


def _lines(settings: Mapping[str, Any], defaults: Mapping[str, Any], setters: Mapping[str, str], prefix: str) -> list[str]:
    lines = []
    for key, value in settings.items():
        setter = setters.get(prefix + key)
        if setter is not None or value != defaults.get(key, MISSING):
            lines.append(f"{key} = {_value(value)}" + (f"  # {setter}" if setter else ""))
    return lines


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_value(name)} = {_value(part)}' for name, part in value.items())} }}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML does not take as it stands.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
