"""Caller's values -> `Record`: checked, redacted, shortened and measured, before any store sees it.

Goes out: a record that every store keeps as it is. Nothing here reads or writes a database; id and time come in as
arguments. JSON forms of a record, for export, history and the front ends, live here too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any
from zlib import crc32

from foveate import lexical, tokens
from foveate.errors import InputError, near
from foveate.ids import iso, millis
from foveate.state.kinds import OUTCOMES, Kind, kind_of, problems_in
from foveate.state.redact import Allow, redact, redact_value
from foveate.summarize import Extractive, Summarizer
from foveate.types import LEVELS, TRUST, Level, Record, Scope

MAX_TEXT = 1_000_000
"""Characters. A longer text is a document: split it, so that parts of it can be chosen."""

SKETCH = 8
"""Hashes in a near-duplicate sketch: enough to tell 85 % alike from 60 % for 32 bytes a record."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# Zero-width, bidirectional and tag characters hide text from people that a model still reads.
_HIDDEN = re.compile("[\x01-\x08\x0b-\x1f\x7f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_SUSPECT = re.compile("[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_PATH = re.compile(
    r"(?<![\w/.:@-])(?:\.{0,2}/)?(?:[\w.+@-]+/)+[\w.+@-]+\.?\w*|(?<![\w/.:@-])[\w+-]+\.(?:py|js|jsx|ts|tsx|go|rs|java|c|h|cc|cpp|hpp|cs|rb|php|kt|swift|scala|sh|sql|html|css|yaml|yml|toml|json|md|txt|cfg|ini|lock|proto|tf|vue|svelte)\b"
)


_EXTRACTIVE = Extractive()


@dataclass(frozen=True, slots=True)
class Rules:
    """How records are made: shortener, counter and what is not a secret after all."""

    summarizer: Summarizer = _EXTRACTIVE
    counter: str = "o200k"
    allow: Allow | None = None


def make(
    kind: str,
    text: str,
    *,
    scope: Scope,
    id: str,
    now: int,
    rules: Rules,
    **values: Any,
) -> Record:
    """A record from the caller's values; raises one `InputError` that lists every problem."""
    row = kind_of(kind)
    columns, data, problems = _sort_out(row, values)
    problems += _text_problems(text, "text")
    for name in ("summary", "micro"):
        if columns.get(name) is not None:
            problems += _text_problems(columns[name], name)
    problems += column_problems(columns)
    if problems:
        raise InputError(problems)
    text = clean(text, rules.allow)
    if row.name == "entity":
        data.setdefault("name", text)
    data = redact_value(data, rules.allow) if data else {}
    problems = problems_in(row, data)
    if problems:
        raise InputError(problems)
    record = Record(
        id=id,
        kind=kind,
        scope=scope,
        text=text,
        summary=clean(columns.pop("summary", None) or "", rules.allow),
        micro=clean(columns.pop("micro", None) or "", rules.allow),
        paths=_unique(columns.pop("paths", ())) or paths_in(text),
        tags=_unique(columns.pop("tags", ())),
        entities=_unique(columns.pop("entities", ())),
        valid_from=columns.pop("valid_from", None) or now,
        created=columns.pop("created", None) or now,
        updated=now,
        data=data,
        **{name: value for name, value in columns.items() if value is not None},
    )
    return finish(record, rules)


def finish(record: Record, rules: Rules) -> Record:
    """Fill in what follows from the rest: shorter lengths, content hash, sketch and token counts."""
    title = str(record.data.get("name") or record.data.get("title") or "")
    if not (record.summary and record.micro):
        short = rules.summarizer.shorten(record.text, title)
        record = replace(record, summary=record.summary or short.summary, micro=record.micro or _one_line(short.micro))
    return replace(
        record,
        hash=content_hash(record),
        sketch=sketch(record.text),
        tokens=measure(record, rules.counter),
    )


def measure(record: Record, counter: str) -> dict[Level, int]:
    """Tokens of the rendered line at each level."""
    count = tokens.counter(counter).count
    line = kind_of(record.kind).line
    seen: dict[str, int] = {}
    sizes: dict[Level, int] = {}
    for level in LEVELS:
        text = line(record, level)
        if text not in seen:
            seen[text] = count(text)
        sizes[level] = seen[text]
    return sizes


def content_hash(record: Record) -> str:
    """What makes two writes the same thing said twice: kind, whose it is, key and words (case and spacing aside)."""
    scope = record.scope
    within = (scope.session or "", scope.task or "") if kind_of(record.kind).private else ()
    parts = (
        record.kind,
        scope.user or "",
        scope.agent or "",
        *within,
        record.subject or "",
        record.attribute or "",
        " ".join(record.text.casefold().split()),
    )
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


def sketch(text: str) -> bytes:
    """The smallest hashes of its terms: two texts with nearly the same words share nearly all of them."""
    smallest = sorted({crc32(term.encode()) for term in lexical.terms(text)})[:SKETCH]
    return b"".join(number.to_bytes(4, "big") for number in smallest)


def clean(text: str, allow: Allow | None = None) -> str:
    """Text as it is kept: no secrets, no terminal codes, no characters that hide."""
    if not text:
        return text
    if _SUSPECT.search(text):
        text = _HIDDEN.sub("", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n")))
    return redact(text.strip(), allow).text


def paths_in(text: str) -> tuple[str, ...]:
    """File paths that a text mentions, in order."""
    if "/" not in text and "." not in text:
        return ()
    return _unique(path.rstrip(".") for path in _PATH.findall(text) if not path.startswith("//"))


def to_json(record: Record) -> dict[str, Any]:
    """The lossless JSON form: what is empty is left out, times as people read them."""
    out: dict[str, Any] = {"id": record.id, "kind": record.kind, "text": record.text}
    for item in fields(Record):
        value = getattr(record, item.name)
        if item.name in _DERIVED or item.name in out or value in (None, (), {}):
            continue
        if item.name == "scope":
            value = {level: name for level in _LEVELS_OF_SCOPE if (name := getattr(value, level)) is not None}
        elif item.name in _TIMES:
            value = iso(value)
        elif isinstance(value, tuple):
            value = list(value)
        out[item.name] = value
    return out


def from_json(value: Mapping[str, Any], scope: Scope, rules: Rules) -> Record:
    """A record from its JSON form. The project is the caller's: an export can be read into another one."""
    known = {item.name for item in fields(Record)} - _DERIVED
    problems = [f"A record has no field {name!r}.{near(name, known)}" for name in value if name not in known]
    problems += [f"A record needs {name!r}." for name in ("id", "kind", "text") if not value.get(name)]
    if problems:
        raise InputError(problems)
    levels = {level: name for level, name in dict(value.get("scope", {})).items() if level in _LEVELS_OF_SCOPE[1:]}
    columns = {name: part for name, part in value.items() if name not in ("scope", "id", "kind", "text", "data")}
    for name in _TIMES & columns.keys():
        columns[name] = millis(columns[name])
    for name in ("tags", "entities", "paths"):
        columns[name] = tuple(columns.get(name, ()))
    problems = _text_problems(value["text"], "text") + column_problems(columns)
    if problems:
        raise InputError(problems)
    record = Record(
        id=value["id"],
        kind=kind_of(value["kind"]).name,
        scope=Scope(project=scope.project, **levels),
        text=clean(value["text"], rules.allow),
        summary=clean(columns.pop("summary", ""), rules.allow),
        micro=clean(columns.pop("micro", ""), rules.allow),
        data=redact_value(dict(value.get("data", {})), rules.allow),
        **columns,
    )
    return finish(record, rules)


def dumps(record: Record) -> str:
    """One line of JSONL."""
    return json.dumps(to_json(record), ensure_ascii=False, separators=(",", ":"))


_DERIVED = {"hash", "sketch", "tokens"}
_TIMES = {"created", "updated", "valid_from", "valid_to"}
_LEVELS_OF_SCOPE = ("project", "user", "agent", "session", "task")
_COLUMNS = {item.name for item in fields(Record)} - _DERIVED - {"id", "kind", "scope", "text", "data", "version", "updated"}


def _sort_out(kind: Kind, values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Split the caller's keywords into columns and fields of `data`; name the ones that are neither."""
    columns: dict[str, Any] = {}
    data: dict[str, Any] = dict(values.get("data") or {})
    problems = []
    for name, value in values.items():
        if name == "data":
            continue
        if name in _COLUMNS:
            columns[name] = millis(value) if name in _TIMES and value is not None else value
        elif name in kind.fields or kind.open:
            data[name] = value
        else:
            known = sorted(_COLUMNS | kind.fields.keys())
            problems.append(f"Kind {kind.name!r} has no field {name!r}.{near(name, known)}")
    return columns, data, problems


def _text_problems(text: Any, name: str) -> list[str]:
    if not isinstance(text, str):
        return [f"{name} must be a string, not {type(text).__name__}."]
    if not text.strip():
        return [f"{name} is empty; say what should be remembered."]
    if len(text) > MAX_TEXT:
        return [f"{name} has {len(text):,} characters, more than {MAX_TEXT:,}; split it into parts."]
    if "\x00" in text:
        return [f"{name} contains a NUL character at {text.index(chr(0))}; remove it or pass the bytes as text."]
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return [f"{name} contains a lone surrogate at {error.start}; decode the input with errors='replace'."]
    return []


def column_problems(columns: Mapping[str, Any]) -> list[str]:
    found = []
    for name in ("salience", "confidence"):
        value = columns.get(name)
        if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
            found.append(f"{name} must be between 0 and 1, not {value!r}.")
    outcome = columns.get("outcome")
    if outcome is not None and outcome not in OUTCOMES:
        found.append(f"There is no outcome {outcome!r}.{near(str(outcome), OUTCOMES)}")
    trust = columns.get("trust")
    if trust is not None and trust not in TRUST:
        found.append(f"There is no trust {trust!r}.{near(str(trust), TRUST)}")
    for name in ("tags", "entities", "paths"):
        value = columns.get(name)
        if value is not None and (isinstance(value, str) or not all(isinstance(part, str) for part in value)):
            found.append(f"{name} must be a list of strings, not {value!r}.")
    if columns.get("attribute") and not columns.get("subject"):
        found.append("attribute needs a subject: of whom or what is it an attribute?")
    for name in ("subject", "attribute", "key", "origin"):
        value = columns.get(name)
        if value is not None:
            found += _text_problems(value, name)
    return found


def _unique(parts: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts or () if part.strip()))


def _one_line(text: str) -> str:
    return text if "\n" not in text else " ".join(text.split())
