"""Brings the fields that a reader found to the form of the schema.

Other spellings and types are converted, values without a field go to `extra`, and each of these is noted. A number or a
date in place of a text is the text that was written, and needs no note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from foveate.errors import InputError
from foveate.tasks.handoff.headings import bullets, from_pair, from_text
from foveate.tasks.handoff.notes import MAX_BYTES, MAX_DEPTH, Notes, excerpt, merge, nesting_error, strip_hidden
from foveate.tasks.handoff.schema import FIELDS, SCHEMA, WRAPPERS, Field, find, fold

_EMPTY_WORDS = frozenset({"", "none", "na", "nil", "null", "nothing", "noneyet", "nonesofar", "noneknown", "notapplicable"})
_TRUE_WORDS = frozenset({"yes", "true", "y", "1", "on", "blocking"})
_FALSE_WORDS = frozenset({"no", "false", "n", "0", "off", "nonblocking", "notblocking"})
_NEGATIONS = frozenset({"not", "no", "un", "never", "nothing", "cannot", "isn", "wasn", "hasn", "haven", "nor", "without"})
_CONFIDENCE_WORDS = {
    "veryhigh": 0.95,
    "high": 0.9,
    "medium": 0.6,
    "moderate": 0.6,
    "low": 0.3,
    "verylow": 0.1,
    "certain": 1.0,
    "full": 1.0,
}
_QUOTE_PAIRS = {"“": "”", "‘": "’", "«": "»", "„": "“"}
_RATIO = re.compile(r"~?(\d{1,9}(?:\.\d{1,9})?)\s*(?:(%)|/\s*(\d{1,9}))?")
_NO_VALUE: tuple[Any, ...] = (None, "", [], {})


# --- mappings ------------------------------------------------------------------------------------------------------


def to_json_types(value: Any, notes: Notes) -> Any:
    """Return a copy of a value in JSON's own types; other values become their text."""
    remaining = MAX_BYTES  # a list that is shared many times over must not grow without end

    def copy(value: Any, depth: int) -> Any:
        nonlocal remaining
        remaining -= 1
        if depth > MAX_DEPTH:
            raise nesting_error()
        if remaining < 0:
            raise InputError(f"The handoff holds more than {MAX_BYTES:,} values. Write what the next task needs to know.")
        if isinstance(value, Mapping):
            out: dict[str, Any] = {}
            for key, entry in value.items():
                merge(out, strip_hidden(str(key), notes), copy(entry, depth + 1), "", notes)
            return out
        if isinstance(value, list | tuple | set | frozenset):
            return [copy(entry, depth + 1) for entry in value]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):  # Python refuses to write longer numbers in decimal
            return int(value) if value.bit_length() < 10_000 else hex(value)
        if isinstance(value, float) and math.isfinite(value):
            return float(value)
        return strip_hidden(str(value), notes)

    return copy(value, 0)


def unwrap(data: Any, notes: Notes) -> dict[str, Any]:
    """Return the mapping that holds the fields: `data` itself, its parts, or the mapping under `handoff:`."""
    if isinstance(data, list) and data and all(isinstance(part, dict) for part in data):
        notes.add("The fields were in a list; they were read as one object.")
        fields: dict[str, Any] = {}
        for part in data:
            for key, value in part.items():
                merge(fields, key, value, "", notes)
        data = fields
    if not isinstance(data, dict):
        return {}
    for key, value in data.items():
        if isinstance(value, dict) and not find(key) and (len(data) == 1 or fold(key) in WRAPPERS) and is_usable(value):
            notes.add(f"The fields stand under {excerpt(key)}; they were read from there.")
            return {**{name: other for name, other in data.items() if name != key}, **value}
    return data


def is_usable(data: Any) -> bool:
    """Return whether a mapping has at least one field with a value, apart from `schema`."""
    return isinstance(data, dict) and any(
        (field := find(key)) and field.name != "schema" and value not in _NO_VALUE for key, value in data.items()
    )


# --- fields --------------------------------------------------------------------------------------------------------


class Normalizer:
    """Converts the fields of one mapping; `extra` collects values without a field."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.extra: dict[str, Any] = {}

    def handoff(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return all fields, in the order of the schema."""
        values = self._assign_fields(data, FIELDS, "")
        extra = values.pop("extra", None)
        if isinstance(extra, dict):
            self.extra = {**extra, **self.extra}  # names that the author chose stay as they are
        elif extra not in (None, "", []):
            self._move_to_extra("extra", extra, "is not an object")
        out: dict[str, Any] = {"schema": SCHEMA}
        if (schema := values.pop("schema", None)) not in (None, "", SCHEMA):
            self.notes.add(f"The handoff says that its schema is {excerpt(schema)}; it was read as {SCHEMA}.")
            self.extra.setdefault("schema", schema)
        for field in FIELDS[1:]:
            value = values.get(field.name)
            value = self._items(value, field) if field.kind == "items" else self._value(value, field, field.name)
            if value is not None:
                out[field.name] = value
            elif field.name == "summary":
                out["summary"] = ""
        out["extra"] = self.extra
        return out

    def _assign_fields(self, data: Mapping[str, Any], fields: tuple[Field, ...], path: str) -> dict[str, Any]:
        """Return values by the name of their field; the others go to `extra`."""
        values: dict[str, Any] = {}
        for key, value in data.items():
            field = find(key, fields)
            if field is None:
                if value is not None:
                    self._move_to_extra(path + key, value, "is not a field of the schema")
                continue
            if key != field.name and data.get(field.name) is not None and not field.is_list:
                self._move_to_extra(path + key, value, f"means {field.name!r}, which is there as well")
                continue
            if key != field.name:
                self.notes.add(f"{excerpt(key)} was read as {field.name!r}.")
            merge(values, field.name, value, "", self.notes)
        return values

    def _move_to_extra(self, path: str, value: Any, reason: str) -> None:
        name, number = path, 1
        while name in self.extra:
            number += 1
            name = f"{path} ({number})"
        self.extra[name] = value
        self.notes.add(f"{excerpt(path)} {reason}; its value is kept in 'extra'.")

    # --- values ---

    def _value(self, value: Any, field: Field, path: str) -> Any:
        """Return the value of a field that is no list of objects, or None if it has none."""
        if field.kind == "texts":
            return self._texts(value, path)
        if value is None or (isinstance(value, str) and not value.strip()):
            return field.default
        if field.kind == "text":
            if isinstance(value, dict | list):
                self.notes.add(f"{path} should be a text; its parts were joined.")
            return self._strip_quotes(_to_single_text(value)) or None
        convert = {"lines": self._lines, "choice": self._choice, "flag": self._to_bool, "unit": self._unit}[field.kind]
        converted = convert(value, field)
        if converted is None:
            self._move_to_extra(path, value, f"holds {excerpt(value)}, which cannot be read")
            return "partial" if field.name == "status" else field.default  # an unknown status is no success
        return converted

    def _strip_quotes(self, text: str) -> str:
        """Return the text without space or typographic quotes around it; YAML does not know the latter as quotes."""
        text = text.strip()
        while len(text) > 1 and text[-1] == _QUOTE_PAIRS.get(text[0]) and not {text[0], text[-1]} & set(text[1:-1]):
            text = text[1:-1].strip()
            self.notes.add("Typographic quotes around a text were removed.")
        return text

    def _texts(self, value: Any, path: str) -> list[str]:
        if isinstance(value, str):
            is_enumeration = path.endswith(("applies_to", "alternatives"))
            parts = bullets(value) or (re.split(r"[,;]\s+|,", value) if is_enumeration else [value])
            value = [] if fold(value) in _EMPTY_WORDS else parts
            self.notes.add(f"{path} should be a list; the text was read as one.")
        parts = _flatten(value)
        if any(isinstance(part, dict) for part in parts):
            self.notes.add(f"{path} should hold plain texts; objects were joined to one text each.")
        return [text for part in parts if (text := self._strip_quotes(_to_single_text(part)))]

    def _lines(self, value: Any, _: Field) -> str | None:
        if isinstance(value, list) and value and all(isinstance(part, int | str) for part in value):
            self.notes.add("A list of line numbers was read as a range.")
            return ("-" if len(value) == 2 else ", ").join(str(part).strip() for part in value).strip() or None
        return None if isinstance(value, dict | list) else (self._strip_quotes(_to_single_text(value)) or None)

    def _choice(self, value: Any, field: Field) -> str | None:
        if not isinstance(value, str) or value in field.choices:
            return value if isinstance(value, str) else None
        key, words = fold(value), re.findall(r"[a-z]+", value.lower())
        matches = [choice for choice, variants in field.choices.items() if key in map(fold, (choice, *variants))]
        if not matches and not _NEGATIONS & set(words):  # "not completed yet" is not completed
            matches = [choice for choice in field.choices if choice in words[:4]]
        if len(matches) != 1:
            return None
        self.notes.add(f"{field.name} {excerpt(value)} was read as {matches[0]!r}.")
        return matches[0]

    def _to_bool(self, value: Any, field: Field) -> bool:
        if isinstance(value, bool):
            return value
        word = fold(str(value)) if isinstance(value, str | int) else ""
        if word not in _TRUE_WORDS and word not in _FALSE_WORDS:
            self.notes.add(f"{field.name} {excerpt(value)} could not be read, and was taken as true.")
            return True  # an unnecessary question costs less than a missed one
        self.notes.add(f"{field.name} {excerpt(value)} was read as {'true' if word in _TRUE_WORDS else 'false'}.")
        return word in _TRUE_WORDS

    def _unit(self, value: Any, field: Field) -> float | None:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        text = str(value).strip()
        match = _RATIO.match(text)
        unit = _CONFIDENCE_WORDS.get(fold(text))
        if match and (match.end() == len(text) or not text[match.end()].isalnum()):
            unit = float(match[1])
            unit /= float(match[3] or 0) or 1.0
            unit /= 100 if match[2] or (match[3] is None and 1 < unit <= 100) else 1
        if unit is None or not 0 <= unit <= 1:
            return None
        if not (match and match[0] == text and not match[2] and not match[3] and unit == float(match[1])):
            self.notes.add(f"{field.name} {excerpt(value)} was read as {unit:g}.")
        return unit

    # --- lists of objects ---

    def _items(self, value: Any, field: Field) -> list[dict[str, Any]]:
        if value is None:
            return []
        if isinstance(value, str):
            parts: list[Any] = [] if fold(value) in _EMPTY_WORDS else (bullets(value) or [value])
            self.notes.add(f"{field.name} should be a list; the text was read as one.")
        elif isinstance(value, list):
            parts = _flatten(value)
            if any(isinstance(part, list) for part in value):
                self.notes.add(f"{field.name} holds lists in lists; they were read as one list.")
        else:
            self.notes.add(f"{field.name} should be a list; the single value was read as one.")
            is_map = isinstance(value, dict) and not any(find(key, field.fields) for key in value)
            parts = [{key: entry} for key, entry in value.items()] if is_map else [value]  # `src/a.py: its purpose`
        items = (self._item(part, field, f"{field.name}[{n}]") for n, part in enumerate(parts))
        return [item for item in items if item is not None]

    def _item(self, value: Any, field: Field, path: str) -> dict[str, Any] | None:
        item = value if isinstance(value, dict) else None
        if item is not None and not any(find(key, field.fields) for key in item):
            item = from_pair(item, field)
        if item is None:
            text = _to_single_text(value).strip()
            if not text or fold(text) in _EMPTY_WORDS:
                return None
            item = from_text(text, field)
        if item is not value:
            self.notes.add(f"{field.name} should hold objects; plain texts were read as '{field.fields[0].name}'.")
        return self._object(item, field, path)

    def _object(self, item: Mapping[str, Any], field: Field, path: str) -> dict[str, Any] | None:
        main = field.fields[0].name
        values = self._assign_fields(item, field.fields, f"{path}.")
        if values.get(main) in _NO_VALUE:
            if any(value not in _NO_VALUE for value in values.values()):
                self._move_to_extra(path, values, f"has no '{main}'")
            return None
        out = {}
        for part in field.fields:
            if (value := self._value(values.get(part.name), part, f"{path}.{part.name}")) is not None:
                out[part.name] = value
        return out if main in out else None


def _flatten(value: Any) -> list[Any]:
    if not isinstance(value, list):
        return [] if value is None else [value]
    return [part for entry in value for part in _flatten(entry)]


def _to_single_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "\n".join(text for part in value if (text := _to_single_text(part)))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_to_single_text(part)}" if part is not None else str(key) for key, part in value.items())
    return str(value)
