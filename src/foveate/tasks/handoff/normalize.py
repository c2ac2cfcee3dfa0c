"""Brings whatever was read to the form of the schema.

Comes in: a mapping of any shape, of plain values. Goes out: a handoff that conforms to `json_schema()`. What is spelled
or typed in another way is brought to the schema's, what has no field goes to `extra`, and each of these is noted. A
number or a date where a text is expected is the text that was written, and needs no note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from foveate.errors import InputError
from foveate.tasks.handoff.notes import MAX_DEPTH, Notes, excerpt, merge, too_deep
from foveate.tasks.handoff.schema import FIELDS, SCHEMA, WRAPPERS, Field, find, fold
from foveate.tasks.handoff.shorthand import bullets, from_pair, from_text
from foveate.tasks.handoff.text import MAX_BYTES, visible

_NOTHING = frozenset({"", "none", "na", "nil", "null", "nothing", "noneyet", "nonesofar", "noneknown", "notapplicable"})
_YES = frozenset({"yes", "true", "y", "1", "on", "blocking"})
_NO = frozenset({"no", "false", "n", "0", "off", "nonblocking", "notblocking"})
_SURE = {
    "veryhigh": 0.95,
    "high": 0.9,
    "medium": 0.6,
    "moderate": 0.6,
    "low": 0.3,
    "verylow": 0.1,
    "certain": 1.0,
    "full": 1.0,
}
_PAIRS = {"“": "”", "‘": "’", "«": "»", "„": "“"}
_RATIO = re.compile(r"~?(\d{1,9}(?:\.\d{1,9})?)\s*(?:(%)|/\s*(\d{1,9}))?")


# --- plain values --------------------------------------------------------------------------------------------------


def plain(value: Any, notes: Notes) -> Any:
    """The value in JSON's own types, copied; what JSON has no type for becomes its text."""
    left = [MAX_BYTES]  # values that share a list many times over must not grow without end

    def copy(value: Any, depth: int) -> Any:
        left[0] -= 1
        if depth > MAX_DEPTH:
            raise too_deep()
        if left[0] < 0:
            raise InputError(f"The handoff holds more than {MAX_BYTES:,} values. Write what the next task needs to know.")
        if isinstance(value, Mapping):
            out: dict[str, Any] = {}
            for key, entry in value.items():
                merge(out, visible(str(key), notes), copy(entry, depth + 1), "", notes)
            return out
        if isinstance(value, list | tuple | set | frozenset):
            return [copy(entry, depth + 1) for entry in value]
        return _plain_scalar(value, notes)

    return copy(value, 0)


def _plain_scalar(value: Any, notes: Notes) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() < 10_000 else hex(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    return visible(str(value), notes)


# --- the handoff ---------------------------------------------------------------------------------------------------


def unboxed(data: Any, notes: Notes) -> dict[str, Any]:
    """The mapping that holds the fields: `data` itself, or what stands under `handoff:`."""
    if isinstance(data, list) and data and all(isinstance(each, dict) for each in data):
        notes.say("The fields stand in a list; they were read as one object.")
        joined: dict[str, Any] = {}
        for each in data:
            for key, value in each.items():
                merge(joined, key, value, "", notes)
        data = joined
    if not isinstance(data, dict):
        return {}
    for key, value in data.items():
        if isinstance(value, dict) and not find(key) and (len(data) == 1 or fold(key) in WRAPPERS) and is_usable(value):
            notes.say(f"The fields stand under {excerpt(key)}; they were read from there.")
            return {**{name: other for name, other in data.items() if name != key}, **value}
    return data


def is_usable(data: Any) -> bool:
    """Whether a mapping has at least one field that says something."""
    return isinstance(data, dict) and any(
        (field := find(key)) and field.name != "schema" and value not in (None, "", [], {}) for key, value in data.items()
    )


class Normalizer:
    """Reads the fields of one mapping; `extra` collects what has no place."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.extra: dict[str, Any] = {}

    def handoff(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """All fields, in the order of the schema."""
        own = self._sorted(data, FIELDS, "")
        self._extra(own.pop("extra", None))
        out: dict[str, Any] = {"schema": SCHEMA}
        if (written := own.pop("schema", None)) not in (None, "", SCHEMA):
            self.notes.say(f"The handoff says that its schema is {excerpt(written)}; it was read as {SCHEMA}.")
            self.extra.setdefault("schema", written)
        for field in FIELDS[1:]:
            given = own.get(field.name)
            value = self._items(given, field) if field.kind == "items" else self._value(given, field, field.name)
            if value is not None:
                out[field.name] = value
            elif field.name == "summary":
                out["summary"] = ""
        out["extra"] = self.extra
        return out

    def _extra(self, given: Any) -> None:
        """What stands under `extra` goes first, so that the names in it stay as they are."""
        if isinstance(given, dict):
            self.extra = {**given, **self.extra}
        elif given not in (None, "", []):
            self._keep("extra", given, "is not an object")

    def _sorted(self, data: Mapping[str, Any], fields: tuple[Field, ...], path: str) -> dict[str, Any]:
        """Values by the name of their field; the others go to `extra`."""
        own: dict[str, Any] = {}
        for key, value in data.items():
            field = find(key, fields)
            if field is None:
                if value is not None:
                    self._keep(path + key, value, "is not a field of the schema")
                continue
            if key != field.name and data.get(field.name) is not None and field.kind not in ("items", "texts"):
                self._keep(path + key, value, f"stands beside {field.name!r}")  # a field's own name goes before others
                continue
            if key != field.name:
                self.notes.say(f"{excerpt(key)} was read as {field.name!r}.")
            merge(own, field.name, value, "", self.notes)
        return own

    def _keep(self, path: str, value: Any, why: str) -> None:
        name, more = path, 1
        while name in self.extra:
            more += 1
            name = f"{path} ({more})"
        self.extra[name] = value
        self.notes.say(f"{excerpt(path)} {why}; its value is kept in 'extra'.")

    # --- values ----------------------------------------------------------------------------------------------------

    def _value(self, value: Any, field: Field, path: str) -> Any:
        """The value of a field that is no list of objects, or None where there is none."""
        if field.kind == "texts":
            return self._texts(value, path)
        if value is None or (isinstance(value, str) and not value.strip()):
            return field.default
        if field.kind == "text":
            return self._text(value, path)
        read = {"lines": self._lines, "choice": self._choice, "flag": self._flag, "unit": self._unit}[field.kind](
            value, field
        )
        if read is None:
            self._keep(path, value, f"holds {excerpt(value)}, which cannot be read")
            # An unknown status is not taken for success.
            return "partial" if field.name == "status" else field.default
        return read

    def _text(self, value: Any, path: str) -> str | None:
        if isinstance(value, dict | list):
            self.notes.say(f"{path} should be a text; its parts were joined.")
        return self._unquoted(_joined(value)) or None

    def _unquoted(self, text: str) -> str:
        """The text without space or typographic quotes around all of it, which YAML does not know for quotes."""
        text = text.strip()
        while len(text) > 1 and text[-1] == _PAIRS.get(text[0]) and not {text[0], text[-1]} & set(text[1:-1]):
            text = text[1:-1].strip()
            self.notes.say("Typographic quotes around a text were taken off.")
        return text

    def _texts(self, value: Any, path: str) -> list[str]:
        if isinstance(value, str):
            given = bullets(value) or (
                re.split(r"[,;]\s+|,", value) if path.endswith(("applies_to", "alternatives")) else [value]
            )
            value = [] if fold(value) in _NOTHING else given
            self.notes.say(f"{path} should be a list; the text was read as one.")
        parts = _flat(value)
        if any(isinstance(part, dict) for part in parts):
            self.notes.say(f"{path} should hold plain texts; objects were joined to one text each.")
        texts = [self._unquoted(_joined(part)) for part in parts]
        return [text for text in texts if text]

    def _lines(self, value: Any, _: Field) -> str | None:
        if isinstance(value, list) and value and all(isinstance(part, int | str) for part in value):
            self.notes.say("A list of line numbers was read as a range.")
            return ("-" if len(value) == 2 else ", ").join(str(part).strip() for part in value).strip() or None
        return None if isinstance(value, dict | list) else (self._unquoted(_joined(value)) or None)

    def _choice(self, value: Any, field: Field) -> str | None:
        if not isinstance(value, str) or value in field.choices:
            return value if isinstance(value, str) else None
        key = fold(value)
        for choice, variants in field.choices.items():
            if key == choice or key in map(fold, variants):
                self.notes.say(f"{field.name} {excerpt(value)} was read as {choice!r}.")
                return choice
        words = re.findall(r"[a-z]+", value.lower())
        named = [choice for choice in field.choices if choice in words[:4]]
        if len(named) == 1 and not {"not", "no", "un"} & set(words):
            self.notes.say(f"{field.name} {excerpt(value)} was read as {named[0]!r}.")
            return named[0]
        return None

    def _flag(self, value: Any, field: Field) -> bool | None:
        if isinstance(value, bool):
            return value
        word = fold(str(value)) if isinstance(value, str | int) else ""
        if word not in _YES and word not in _NO:
            self.notes.say(f"{field.name} {excerpt(value)} could not be read, and was taken as true.")
            return True  # to ask once too often is the smaller mistake
        self.notes.say(f"{field.name} {excerpt(value)} was read as {'true' if word in _YES else 'false'}.")
        return word in _YES

    def _unit(self, value: Any, field: Field) -> float | None:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        text = str(value).strip()
        match = _RATIO.match(text)
        unit = _SURE.get(fold(text))
        if match and (match.end() == len(text) or not text[match.end()].isalnum()):
            unit = float(match[1])
            unit /= float(match[3] or 0) or 1.0
            unit /= 100 if match[2] or (match[3] is None and 1 < unit <= 100) else 1
        if unit is None or not 0 <= unit <= 1:
            return None
        if not (match and match[0] == text and not match[2] and not match[3] and unit == float(match[1])):
            self.notes.say(f"{field.name} {excerpt(value)} was read as {unit:g}.")
        return unit

    # --- lists of objects ------------------------------------------------------------------------------------------

    def _items(self, value: Any, field: Field) -> list[dict[str, Any]]:
        if value is None:
            return []
        if isinstance(value, str):
            given: list[Any] = [] if fold(value) in _NOTHING else (bullets(value) or [value])
            self.notes.say(f"{field.name} should be a list; the text was read as one.")
        elif isinstance(value, list):
            given = _flat(value)
            if len(given) != len(value) or any(isinstance(part, list) for part in value):
                self.notes.say(f"{field.name} holds lists in lists; they were read as one list.")
        else:
            self.notes.say(f"{field.name} should be a list; the single value was read as one.")
            given = _entries(value, field) if isinstance(value, dict) else [value]
        items = (self._item(part, field, f"{field.name}[{n}]") for n, part in enumerate(given))
        return [item for item in items if item is not None]

    def _item(self, value: Any, field: Field, path: str) -> dict[str, Any] | None:
        if isinstance(value, dict) and not any(find(key, field.fields) for key in value):
            given = from_pair(value, field)
        else:
            given = value if isinstance(value, dict) else None
        if given is None:
            text = _joined(value).strip()
            if not text or fold(text) in _NOTHING:
                return None
            given = from_text(text, field)
        if not isinstance(value, dict) or given is not value:
            self.notes.say(f"{field.name} should hold objects; plain texts were read as '{field.fields[0].name}'.")
        return self._object(given, field, path)

    def _object(self, given: Mapping[str, Any], field: Field, path: str) -> dict[str, Any] | None:
        main = field.fields[0]
        own = self._sorted(given, field.fields, f"{path}.")
        if own.get(main.name) in (None, "", [], {}):
            if any(part not in (None, "", [], {}) for part in own.values()):
                self._keep(path, own, f"has no '{main.name}'")
            return None
        out = {}
        for part in field.fields:
            if (value := self._value(own.get(part.name), part, f"{path}.{part.name}")) is not None:
                out[part.name] = value
        return out if main.name in out else None


def _entries(value: dict[str, Any], field: Field) -> list[Any]:
    """An object where a list is expected: one item, or one for each key, such as `src/a.py: what it is for`."""
    if any(find(key, field.fields) for key in value):
        return [value]
    return [{key: entry} for key, entry in value.items()]


def _flat(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [part for each in value for part in _flat(each)]


def _joined(value: Any) -> str:
    """Any plain value as one text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "\n".join(text for part in value if (text := _joined(part)))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_joined(part)}" if part is not None else str(key) for key, part in value.items())
    return str(value)
