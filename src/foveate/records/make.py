"""Makes a `Record` from a caller's values: validated, redacted, summarized and measured before it is stored.

Every store keeps such a record as it is. Nothing here reads or writes a database; id and time are arguments. The JSON form
of a record, for export, history and the front ends, is here as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from struct import pack
from typing import Any
from zlib import crc32

from foveate.clock import iso, parse_time
from foveate.errors import InputError, near
from foveate.records.kinds import OUTCOMES, SEVERITIES, Kind, data_problems, kind_of
from foveate.text import analysis, tokens
from foveate.text.format import one_line
from foveate.text.redact import AllowList, redact, redact_value
from foveate.text.sanitize import strip_invisible
from foveate.text.summarize import ExtractiveSummarizer, Summarizer
from foveate.types import TRUST, Level, Record, Scope, Trust

MAX_TEXT_CHARS = 1_000_000
"""A longer text is a document. It must be split, so that a context can contain parts of it."""

MAX_NAME_BYTES = 500
"""Length of a subject, an attribute, a key or a level of the scope."""

_NAMES = ("subject", "attribute", "key")

MAX_CLOCK_SKEW_MS = 86_400_000
"""How far another machine's clock may be ahead. A day covers every time zone."""

SKETCH_HASHES = 8
"""Hashes in a near-duplicate sketch. In 32 bytes they distinguish 85 % similarity from 60 %."""

_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_PATH = re.compile(r"[~\w.+@/-]+")
_LINE_NUMBER = re.compile(r"(?::\d+(?:-\d+)?)+$")
_EXTENSIONS = frozenset(
    """py pyi js jsx mjs ts tsx go rs java c h cc cpp hpp cs rb php kt swift scala sh bash sql html css scss yaml yml toml
    json jsonl md rst txt cfg ini lock proto tf vue svelte ipynb csv xml gradle cmake dockerfile env log""".split()  # noqa: SIM905
)


_EXTRACTIVE = ExtractiveSummarizer()


@dataclass(frozen=True, slots=True)
class Rules:
    """Settings for making records: summarizer, token counter, and texts that are not secrets."""

    summarizer: Summarizer = _EXTRACTIVE
    counter: str = "o200k"
    allow: AllowList | None = None
    author: Trust = "user"
    """Trust of a record that is made without one."""


def make(
    kind: str,
    text: str,
    *,
    scope: Scope,
    id: str,
    now: int,
    rules: Rules,
    **values: object,
) -> Record:
    """Return a record with the caller's values, or raise one `InputError` that lists every problem."""
    row = kind_of(kind)
    columns, data, problems = _split_values(row, values)
    problems += _text_problems(text, "text") + column_problems(columns) + _json_problems(data)
    problems += trust_problems(row, columns.get("trust"), columns.get("pinned"))
    problems += _time_problems(columns.get("created"), now) + scope_problems(scope)
    if problems:
        raise InputError(problems)
    text = clean(text, rules.allow)
    if row.name == "entity":
        data.setdefault("name", text)
    if row.name == "component":
        columns["subject"] = columns.get("subject") or data.get("component")
        columns["paths"] = columns.get("paths") or [_LINE_NUMBER.sub("", str(data.get("location", "")))]
    if row.name == "gotcha" and columns.get("salience") is None:
        columns["salience"] = SEVERITIES.get(str(data.get("severity")), SEVERITIES["medium"])
    data = clean_value(data, rules.allow) if data else {}
    problems = data_problems(row, data)
    if problems:
        raise InputError(problems)
    summary, micro = _lengths(
        text, clean(columns.pop("summary", None) or "", rules.allow), clean(columns.pop("micro", None) or "", rules.allow),
        data, rules,
    )  # fmt: skip
    for name in _TEXT_COLUMNS & columns.keys():
        columns[name] = clean_value(columns[name], rules.allow)
    subject, attribute = columns.get("subject"), columns.get("attribute")
    created = columns.pop("created", None) or now
    columns["trust"] = columns.get("trust") or rules.author
    record = Record(
        id=id,
        kind=kind,
        scope=scope,
        text=text,
        summary=summary,
        micro=micro,
        paths=_unique(columns.pop("paths", ())) or paths_in(text),
        tags=_unique(columns.pop("tags", ())),
        entities=_unique(columns.pop("entities", ())),
        valid_from=columns.pop("valid_from", None) or created,
        created=created,
        updated=now,
        data=data,
        hash=_hash(row, scope, subject, attribute, text, data),
        sketch=sketch(text),
        **{name: value for name, value in columns.items() if value is not None},
    )
    return _with_token_counts(record, rules.counter)


def finish(record: Record, rules: Rules) -> Record:
    """Return a record with its derived fields: short lengths, content hash, sketch and token counts."""
    summary, micro = _lengths(record.text, record.summary, record.micro, record.data, rules)
    made = replace(record, summary=summary, micro=micro, hash=content_hash(record), sketch=sketch(record.text))
    return _with_token_counts(made, rules.counter)


def _lengths(text: str, summary: str, micro: str, data: Mapping[str, Any], rules: Rules) -> tuple[str, str]:
    if summary and micro:
        return summary, micro
    short = rules.summarizer.shorten(text, str(data.get("name") or data.get("title") or ""))
    return summary or short.summary, micro or (one_line(short.micro) if "\n" in short.micro else short.micro)


def _with_token_counts(record: Record, counter: str) -> Record:
    # Set in place, because the record is not shared yet and copying its thirty fields costs more than everything else.
    object.__setattr__(record, "tokens", measure(record, counter))
    return record


def measure(record: Record, counter: str) -> dict[Level, int]:
    """Count the tokens of the rendered record at each level."""
    count = tokens.counter(counter).count
    line = kind_of(record.kind).render
    full, summary, micro = line(record, "full"), line(record, "summary"), line(record, "micro")
    sizes: dict[Level, int] = {"full": count(full)}
    sizes["summary"] = sizes["full"] if summary == full else count(summary)
    sizes["micro"] = sizes["summary"] if micro == summary else count(micro)
    return sizes


def content_hash(record: Record) -> str:
    """Return a hash of kind, owner, subject, attribute and words. Two records with the same hash say the same thing.

    Case and spacing of the words do not count.
    """
    return _hash(kind_of(record.kind), record.scope, record.subject, record.attribute, record.text, record.data)


def _hash(kind: Kind, scope: Scope, subject: str | None, attribute: str | None, text: str, data: Mapping[str, Any]) -> str:
    # Session and task are part of a private record's owner. Other kinds are shared by all sessions of a user.
    within = (scope.session or "", scope.task or "") if kind.is_private else ()
    # Required fields are part of the statement: the same note on two components is two notes.
    required = (str(data.get(name, "")) for name in kind.required_fields)
    words = " ".join(text.casefold().split())
    parts = (kind.name, scope.user or "", scope.agent or "", *within, subject or "", attribute or "", *required, words)
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


def sketch(text: str) -> bytes:
    """Return the smallest hashes of a text's terms. Texts with nearly the same words share nearly all of them."""
    smallest = sorted({crc32(term.encode()) for term in analysis.terms(text)})[:SKETCH_HASHES]
    return pack(f">{len(smallest)}I", *smallest)


def clean(text: str, allow: AllowList | None = None) -> str:
    """Return a text without secrets, terminal codes and invisible characters, as it is stored."""
    return redact(strip_invisible(text).strip(), allow).text if text else text


def clean_scope(scope: Scope, allow: AllowList | None = None) -> Scope:
    """Return a scope without secrets in its names. The same name always becomes the same one, so it is found again."""
    names = {level: getattr(scope, level) for level in _SCOPE_LEVELS}
    changed = {
        level: cleaned
        for level, name in names.items()
        if isinstance(name, str) and (cleaned := clean_name(name, allow)) != name
    }
    return replace(scope, **changed) if changed else scope


def clean_name(name: str, allow: AllowList | None = None) -> str:
    """Return the name of a project, user, agent, session or task as it is stored."""
    return redact(name, allow).text


def paths_in(text: str) -> tuple[str, ...]:
    """Return the file paths that a text mentions, in order. `and/or`, `1/2` and URLs are not paths."""
    if "/" not in text and "." not in text:
        return ()
    found = []
    for word in text.split():
        # A cheap test first: this runs for every word of every record.
        if "/" in word or "." in word[1:-1]:
            path = _LINE_NUMBER.sub("", word.strip("`'\"()[]{}<>,;:!?*").rstrip("."))
            if _PATH.fullmatch(path) and _is_path(path):
                found.append(path)
    return _unique(found)


def _is_path(path: str) -> bool:
    parts = path.split("/")
    stem, _, extension = parts[-1].rpartition(".")
    if len(parts) == 1:
        return bool(stem) and extension.lower() in _EXTENSIONS
    if path.startswith(("/", "./", "../", "~/")):
        return len(path) > 3 and not path.startswith("//")
    named = stem and extension.isalnum() and not extension.isdigit()
    return bool(named) or (len(parts) > 2 and all(any(c.isalpha() for c in part) for part in parts))


def to_json(record: Record) -> dict[str, Any]:
    """Return the lossless JSON form of a record. Empty fields are omitted, times are ISO texts."""
    out: dict[str, Any] = {"id": record.id, "kind": record.kind, "text": record.text}
    for item in fields(Record):
        value = getattr(record, item.name)
        if item.name in _DERIVED_COLUMNS or item.name in out or value in (None, (), {}):
            continue
        if item.name == "scope":
            value = {level: name for level in _SCOPE_LEVELS if (name := getattr(value, level)) is not None}
        elif item.name in _TIMES:
            value = iso(value)
        elif isinstance(value, tuple):
            value = list(value)
        out[item.name] = value
    return out


def from_json(value: Mapping[str, Any], scope: Scope, rules: Rules, *, cleaned: bool = False) -> Record:
    """Return a record from its JSON form. It gets the caller's project, so an export can be read into another one.

    `cleaned` says that the form comes from the store itself and must not be checked or redacted again.
    """
    known = {item.name for item in fields(Record)} - _DERIVED_COLUMNS
    problems = [f"A record has no field {name!r}.{near(name, known)}" for name in value if name not in known]
    for name in ("id", "kind", "text"):
        problems += _text_problems(value.get(name), name)
    for name in ("scope", "data"):
        if not isinstance(value.get(name, {}), dict):
            problems.append(f"{name} must be an object, got {value[name]!r}.")
    if problems:
        raise InputError(problems)
    kind = kind_of(value["kind"])
    levels = {level: name for level, name in value.get("scope", {}).items() if level in _SCOPE_LEVELS[1:]}
    columns, problems = _times({name: part for name, part in value.items() if name not in _NOT_COLUMNS and part is not None})
    problems += column_problems(columns) + _json_problems(value.get("data", {}))
    problems += trust_problems(kind, columns.get("trust"), columns.get("pinned")) if not cleaned else []
    problems += [problem for level, name in levels.items() for problem in _text_problems(name, f"scope.{level}")]
    problems += data_problems(kind, value.get("data", {})) if not cleaned else []
    if problems:
        raise InputError(problems)
    for name in _TEXT_COLUMNS & columns.keys() if not cleaned else ():
        columns[name] = clean_value(columns[name], rules.allow)
    for name in _LISTS:
        columns[name] = tuple(columns.get(name, ()))
    data = dict(value.get("data", {}))

    def tidy(text: str) -> str:
        return text if cleaned else clean(text, rules.allow)

    record = Record(
        id=value["id"],
        kind=kind.name,
        scope=Scope(project=scope.project, **levels),
        text=tidy(value["text"]),
        summary=tidy(columns.pop("summary", "")),
        micro=tidy(columns.pop("micro", "")),
        data=data if cleaned else clean_value(data, rules.allow),
        **columns,
    )
    return finish(record, rules)


def dumps(record: Record) -> str:
    """Return a record as one line of JSONL."""
    return json.dumps(to_json(record), ensure_ascii=False, separators=(",", ":"))


STATUSES = ("active", "superseded", "disputed", "retired", "archived")
_CHOICES: dict[str, tuple[str, ...]] = {"outcome": OUTCOMES, "trust": TRUST, "status": STATUSES}
_TEXT_COLUMNS = {"subject", "attribute", "origin", "key", "tags", "entities", "paths"}
_LISTS = ("tags", "entities", "paths")
_UNIT = ("between 0 and 1", lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v <= 1)
# Below 2**53, so that a count survives JSON readers that have only floats.
_COUNT = ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**53)
_VALUE_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "salience": _UNIT,
    "confidence": _UNIT,
    "uses": _COUNT,
    "wins": _COUNT,
    "version": _COUNT,
    "pinned": ("true or false", lambda v: isinstance(v, bool)),
}
_DERIVED_COLUMNS = {"hash", "sketch", "tokens", "stage"}
_TIMES = {"created", "updated", "valid_from", "valid_to"}
_NOT_COLUMNS = {"scope", "id", "kind", "text", "data"}
_SCOPE_LEVELS = ("project", "user", "agent", "session", "task")
_COLUMNS = (
    {item.name for item in fields(Record)} - _DERIVED_COLUMNS - {"id", "kind", "scope", "text", "data", "version", "updated"}
)


def _split_values(kind: Kind, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Split the caller's values into columns and fields of `data`, and name those that are neither."""
    columns: dict[str, Any] = {}
    given = values.get("data") or {}
    problems = data_type_problems(kind, given)
    data: dict[str, Any] = {} if problems else dict(given)
    for name, value in values.items():
        if name == "data":
            continue
        if name in _COLUMNS:
            columns[name] = value
        elif name in kind.fields or kind.allow_extra:
            data[name] = value
        else:
            known = sorted(_COLUMNS | kind.fields.keys())
            problems.append(f"Kind {kind.name!r} has no field {name!r}.{near(name, known)}")
    columns, wrong = _times(columns)
    return columns, data, problems + wrong


def data_type_problems(kind: Kind, data: object) -> list[str]:
    """Return the problem of a `data` that is not a mapping."""
    if isinstance(data, Mapping):
        return []
    example = next(iter(kind.fields), "field")
    return [f"data must be a mapping of field names to values, got {data!r:.80}. Write data={{{example!r}: ...}}."]


def _times(columns: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the columns with all times in milliseconds, and the problems of values that are not times."""
    problems: list[str] = []
    for name in _TIMES & columns.keys():
        if columns[name] is not None:
            try:
                columns[name] = parse_time(columns[name], name)
            except InputError as error:
                problems += error.problems
    return columns, problems


def _text_problems(text: Any, name: str) -> list[str]:
    if not isinstance(text, str):
        return [f"{name} must be a string, got {type(text).__name__}."]
    if not text.strip():
        return [f"{name} is empty. Pass the text to remember."]
    if len(text) > MAX_TEXT_CHARS:
        return [f"{name} has {len(text):,} characters, and the limit is {MAX_TEXT_CHARS:,}. Split it into parts."]
    return _byte_problems(text, name)


def _byte_problems(text: str, name: str) -> list[str]:
    """Return the problems of characters that a database or a JSON reader would reject."""
    if "\x00" in text:
        return [f"{name} contains a NUL character at {text.index(chr(0))}. Remove it."]
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return [f"{name} contains a lone surrogate at {error.start}. Decode the input with errors='replace'."]
    return []


def _json_problems(data: Mapping[str, Any]) -> list[str]:
    if not data:
        return []
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return [f"data cannot be stored as JSON: {error}."]
    if len(text) > MAX_TEXT_CHARS:
        return [f"data has {len(text):,} characters as JSON, and the limit is {MAX_TEXT_CHARS:,}."]
    return _byte_problems(_ESCAPED_NUL.sub("\x00", text), "data")


def column_problems(columns: Mapping[str, Any]) -> list[str]:
    """Return the problems of a record's columns, as sentences."""
    found = [problem for name, value in columns.items() if value is not None for problem in _column_problems(name, value)]
    begins, ends = columns.get("valid_from"), columns.get("valid_to")
    if isinstance(begins, int) and isinstance(ends, int) and ends < begins:
        found.append("valid_to must not be earlier than valid_from.")
    if columns.get("attribute") and not columns.get("subject"):
        found.append("attribute needs a subject. Pass the person or thing that it belongs to as subject.")
    return found


def _column_problems(name: str, value: Any) -> list[str]:
    if name in _CHOICES:
        return [] if value in _CHOICES[name] else [f"{value!r} is not a value of {name}.{near(str(value), _CHOICES[name])}"]
    if name in _LISTS:
        return _list_problems(value, name)
    if name in _VALUE_CHECKS:
        expected, is_valid = _VALUE_CHECKS[name]
        return [] if is_valid(value) else [f"{name} must be {expected}, got {value!r}."]
    if name in _NAMES and isinstance(value, str):
        return _name_problems(value, name)
    return [] if name in _TIMES else _text_problems(value, name)


def _name_problems(value: str, name: str) -> list[str]:
    """Return the problems of a name. Some databases cannot index long ones."""
    found = _text_problems(value, name)
    if not found and len(value) > MAX_NAME_BYTES // 4 and len(value.encode()) > MAX_NAME_BYTES:
        return [
            f"{name} has {len(value):,} characters, and the limit is {MAX_NAME_BYTES} bytes. Put the rest into the text."
        ]
    return found


def scope_problems(scope: Scope) -> list[str]:
    """Return the problems of the names of a scope's levels."""
    levels = {name: getattr(scope, name) for name in _SCOPE_LEVELS}
    return [problem for name, value in levels.items() if value for problem in _name_problems(value, name)]


def _time_problems(created: Any, now: int) -> list[str]:
    """Return the problem of a creation time. A record from the future would stay the newest one for ever."""
    if isinstance(created, int) and not 0 <= created <= now + MAX_CLOCK_SKEW_MS:
        return [
            f"created must be between 1970 and today, got {iso(created)}. For a later start of validity pass valid_from."
        ]
    return []


def _list_problems(value: Any, name: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable) or not all(isinstance(part, str) for part in value):
        return [f"{name} must be a list of strings, got {value!r}."]
    return [problem for part in value for problem in _byte_problems(part, name)]


def trust_problems(kind: Kind, trust: str | None, pinned: bool | None) -> list[str]:
    """Return the problem of untrusted words that would tell the model what to do, as a rule or a pinned record does."""
    if trust in (None, "user", "agent"):
        return []
    advice = "Read it first, then accept it with `foveate inbox accept`."
    if kind.min_trust == "agent":
        role = "is a rule" if kind.is_rule else "tells the model what to do"
        return [f"Kind {kind.name!r} {role}, so its trust must be user or agent, got {trust!r}. Add it as a note. {advice}"]
    if pinned:
        return [f"A record with trust {trust!r} cannot be pinned. {advice}"]
    return []


def _unique(parts: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts or () if part.strip()))


def clean_value(value: Any, allow: AllowList | None) -> Any:
    """Return a value with all its strings cleaned, at any depth."""
    if isinstance(value, str):
        return clean(value, allow)
    if isinstance(value, Mapping):
        return redact_value({clean_value(name, allow): clean_value(part, allow) for name, part in value.items()}, allow)
    if isinstance(value, list | tuple | set):
        return [clean_value(part, allow) for part in value]
    return value
