"""Profile -> TOML, for people to read and to start their own from.

Comes in: a resolved profile. Goes out: TOML that resolves to the same profile, with the layer that set each value
beside it. Values that nobody set and that are the default are not printed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from foveate.types import Frame, Profile, Slot

_TOP = ("total", "reserve", "half_life", "vector_weight", "related_weight", "flexible", "max_file_chars", "frames")
_TABLES = ("weights", "fields")


def to_toml(profile: Profile) -> str:
    """The profile as TOML that stands alone; resolving it, at the same total, gives the profile again."""
    settings = {key: getattr(profile, key) for key in _TOP} | {"total": profile.written_for}
    defaults = {field.name: field.default for field in fields(Profile)}
    blocks = [
        [f"name = {_value(profile.name)}", 'extends = ""', *_lines(settings, defaults, profile.layers, "")],
        *(
            [f"[{table}]", *_lines(getattr(profile, table), {}, profile.layers, f"{table}.")]
            for table in _TABLES
            if getattr(profile, table)
        ),
        *([_frame(profile.frame, profile.layers)] if profile.frame else []),
        *(_slot(slot, profile.layers) for slot in profile.slots),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _frame(frame: Frame, setters: Mapping[str, str]) -> list[str]:
    defaults = {field.name: field.default for field in fields(Frame)} | {"triggers": {}}
    settings = {key: getattr(frame, key) for key in defaults}
    return ["[frame]", *_lines(settings, defaults, setters, "frame.")]


def _slot(slot: Slot, setters: Mapping[str, str]) -> list[str]:
    defaults = {field.name: field.default for field in fields(Slot)}
    defaults["role"] = "system" if slot.stable else "user"
    settings = {key: getattr(slot, key) for key in defaults if key != "name"} | {"also": dict(slot.also)}
    defaults["also"] = {}
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
