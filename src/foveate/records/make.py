"""Caller's values -> `Record`: checked, redacted, shortened and measured, before any store sees it.

Goes out: a record that every store keeps as it is. Nothing here reads or writes a database; id and time come in as
arguments. JSON forms of a record, for export, history and the front ends, live here too.
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
from foveate.records.kinds import OUTCOMES, SEVERITIES, Kind, kind_of, problems_in
from foveate.text import analysis, tokens
from foveate.text.format import one_line
from foveate.text.redact import AllowList, redact, redact_value
from foveate.text.sanitize import strip_invisible
from foveate.text.summarize import ExtractiveSummarizer, Summarizer
from foveate.types import TRUST, Level, Record, Scope

MAX_TEXT = 1_000_000
"""Characters. A longer text is a document: split it, so that parts of it can be chosen."""

MAX_NAME = 500
"""Bytes of a subject, an attribute, a key or a level of the scope."""

_NAMES = ("subject", "attribute", "key")

AHEAD = 86_400_000
"""Milliseconds that another machine's clock may be ahead: a day covers every time zone."""

SKETCH = 8
"""Hashes in a near-duplicate sketch: enough to tell 85 % alike from 60 % for 32 bytes a record."""

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
    """How records are made: shortener, counter and what is not a secret after all."""

    summarizer: Summarizer = _EXTRACTIVE
    counter: str = "o200k"
    allow: AllowList | None = None


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
    problems += _text_problems(text, "text") + column_problems(columns) + _data_problems(data)
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
    data = tidied(data, rules.allow) if data else {}
    problems = problems_in(row, data)
    if problems:
        raise InputError(problems)
    summary, micro = _lengths(
        text, clean(columns.pop("summary", None) or "", rules.allow), clean(columns.pop("micro", None) or "", rules.allow),
        data, rules,
    )  # fmt: skip
    for name in _SAID & columns.keys():
        columns[name] = tidied(columns[name], rules.allow)
    subject, attribute = columns.get("subject"), columns.get("attribute")
    created = columns.pop("created", None) or now
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
    return _measured(record, rules.counter)


def finish(record: Record, rules: Rules) -> Record:
    """A record with what follows from the rest: shorter lengths, content hash, sketch and token counts."""
    summary, micro = _lengths(record.text, record.summary, record.micro, record.data, rules)
    made = replace(record, summary=summary, micro=micro, hash=content_hash(record), sketch=sketch(record.text))
    return _measured(made, rules.counter)


def _lengths(text: str, summary: str, micro: str, data: Mapping[str, Any], rules: Rules) -> tuple[str, str]:
    if summary and micro:
        return summary, micro
    short = rules.summarizer.shorten(text, str(data.get("name") or data.get("title") or ""))
    return summary or short.summary, micro or (one_line(short.micro) if "\n" in short.micro else short.micro)


def _measured(record: Record, counter: str) -> Record:
    # Set in place: the record is still being made, and copying its thirty fields costs more than all the rest.
    object.__setattr__(record, "tokens", measure(record, counter))
    return record


def measure(record: Record, counter: str) -> dict[Level, int]:
    """Tokens of the rendered line at each level."""
    count = tokens.counter(counter).count
    line = kind_of(record.kind).render
    full, summary, micro = line(record, "full"), line(record, "summary"), line(record, "micro")
    sizes: dict[Level, int] = {"full": count(full)}
    sizes["summary"] = sizes["full"] if summary == full else count(summary)
    sizes["micro"] = sizes["summary"] if micro == summary else count(micro)
    return sizes


def content_hash(record: Record) -> str:
    """What makes two writes the same thing said twice: kind, whose it is, key and words (case and spacing aside)."""
    return _hash(kind_of(record.kind), record.scope, record.subject, record.attribute, record.text, record.data)


def _hash(kind: Kind, scope: Scope, subject: str | None, attribute: str | None, text: str, data: Mapping[str, Any]) -> str:
    within = (scope.session or "", scope.task or "") if kind.is_private else ()
    # What a kind requires is part of what its record says: the same note on two components is two notes.
    named = (str(data.get(name, "")) for name in kind.required)
    words = " ".join(text.casefold().split())
    parts = (kind.name, scope.user or "", scope.agent or "", *within, subject or "", attribute or "", *named, words)
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


def sketch(text: str) -> bytes:
    """The smallest hashes of its terms: two texts with nearly the same words share nearly all of them."""
    smallest = sorted({crc32(term.encode()) for term in analysis.terms(text)})[:SKETCH]
    return pack(f">{len(smallest)}I", *smallest)


def clean(text: str, allow: AllowList | None = None) -> str:
    """Text as it is kept: no secrets, no terminal codes, no characters that hide."""
    return redact(strip_invisible(text).strip(), allow).text if text else text


def paths_in(text: str) -> tuple[str, ...]:
    """File paths that a text mentions, in order. `and/or`, `1/2` and URLs are none."""
    if "/" not in text and "." not in text:
        return ()
    found = []
    for word in text.split():
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


def from_json(value: Mapping[str, Any], scope: Scope, rules: Rules, *, cleaned: bool = False) -> Record:
    """A record from its JSON form. The project is the caller's: an export can be read into another one.

    `cleaned`: it comes from the store itself, and is taken as it is.
    """
    known = {item.name for item in fields(Record)} - _DERIVED
    problems = [f"A record has no field {name!r}.{near(name, known)}" for name in value if name not in known]
    for name in ("id", "kind", "text"):
        problems += _text_problems(value.get(name), name)
    for name, sort in (("scope", dict), ("data", dict)):
        if not isinstance(value.get(name, {}), sort):
            problems.append(f"{name} must be an object, not {value[name]!r}.")
    if problems:
        raise InputError(problems)
    kind = kind_of(value["kind"])
    levels = {level: name for level, name in value.get("scope", {}).items() if level in _LEVELS_OF_SCOPE[1:]}
    columns, problems = _times({name: part for name, part in value.items() if name not in _NOT_COLUMNS and part is not None})
    problems += column_problems(columns) + _data_problems(value.get("data", {}))
    problems += trust_problems(kind, columns.get("trust"), columns.get("pinned")) if not cleaned else []
    problems += [problem for level, name in levels.items() for problem in _text_problems(name, f"scope.{level}")]
    problems += problems_in(kind, value.get("data", {})) if not cleaned else []
    if problems:
        raise InputError(problems)
    for name in _SAID & columns.keys() if not cleaned else ():
        columns[name] = tidied(columns[name], rules.allow)
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
        data=data if cleaned else tidied(data, rules.allow),
        **columns,
    )
    return finish(record, rules)


def dumps(record: Record) -> str:
    """One line of JSONL."""
    return json.dumps(to_json(record), ensure_ascii=False, separators=(",", ":"))


STATUSES = ("active", "superseded", "disputed", "retired", "archived")
_CHOICES: dict[str, tuple[str, ...]] = {"outcome": OUTCOMES, "trust": TRUST, "status": STATUSES}
_SAID = {"subject", "attribute", "origin", "key", "tags", "entities", "paths"}
_LISTS = ("tags", "entities", "paths")
_UNIT = ("between 0 and 1", lambda v: isinstance(v, int | float) and not isinstance(v, bool) and 0 <= v <= 1)
_COUNT = ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool) and 0 <= v < 2**53)
_SORTS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "salience": _UNIT,
    "confidence": _UNIT,
    "uses": _COUNT,
    "wins": _COUNT,
    "version": _COUNT,
    "pinned": ("true or false", lambda v: isinstance(v, bool)),
}
_DERIVED = {"hash", "sketch", "tokens"}
_TIMES = {"created", "updated", "valid_from", "valid_to"}
_NOT_COLUMNS = {"scope", "id", "kind", "text", "data"}
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
            columns[name] = value
        elif name in kind.fields or kind.allow_extra:
            data[name] = value
        else:
            known = sorted(_COLUMNS | kind.fields.keys())
            problems.append(f"Kind {kind.name!r} has no field {name!r}.{near(name, known)}")
    columns, wrong = _times(columns)
    return columns, data, problems + wrong


def _times(columns: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The columns with every time in milliseconds, and the times that are none."""
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
        return [f"{name} must be a string, not {type(text).__name__}."]
    if not text.strip():
        return [f"{name} is empty; say what should be remembered."]
    if len(text) > MAX_TEXT:
        return [f"{name} has {len(text):,} characters, more than {MAX_TEXT:,}; split it into parts."]
    return _byte_problems(text, name)


def _byte_problems(text: str, name: str) -> list[str]:
    """What a database or a JSON reader would choke on."""
    if "\x00" in text:
        return [f"{name} contains a NUL character at {text.index(chr(0))}; remove it."]
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return [f"{name} contains a lone surrogate at {error.start}; decode the input with errors='replace'."]
    return []


def _data_problems(data: Mapping[str, Any]) -> list[str]:
    if not data:
        return []
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return [f"data cannot be kept as JSON: {error}."]
    if len(text) > MAX_TEXT:
        return [f"data has {len(text):,} characters as JSON, more than {MAX_TEXT:,}."]
    return _byte_problems(_ESCAPED_NUL.sub("\x00", text), "data")


def column_problems(columns: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a record's columns, as sentences."""
    found = [problem for name, value in columns.items() if value is not None for problem in _column_problems(name, value)]
    begins, ends = columns.get("valid_from"), columns.get("valid_to")
    if isinstance(begins, int) and isinstance(ends, int) and ends < begins:
        found.append("valid_to must not be earlier than valid_from.")
    if columns.get("attribute") and not columns.get("subject"):
        found.append("attribute needs a subject: of whom or what is it an attribute?")
    return found


def _column_problems(name: str, value: Any) -> list[str]:
    if name in _CHOICES:
        return [] if value in _CHOICES[name] else [f"There is no {name} {value!r}.{near(str(value), _CHOICES[name])}"]
    if name in _LISTS:
        return _list_problems(value, name)
    if name in _SORTS:
        wanted, holds = _SORTS[name]
        return [] if holds(value) else [f"{name} must be {wanted}, not {value!r}."]
    if name in _NAMES and isinstance(value, str):
        return _name_problems(value, name)
    return [] if name in _TIMES else _text_problems(value, name)


def _name_problems(value: str, name: str) -> list[str]:
    """A name is looked up in an index, which takes no long ones, on some databases."""
    found = _text_problems(value, name)
    if not found and len(value) > MAX_NAME // 4 and len(value.encode()) > MAX_NAME:
        return [f"{name} has {len(value):,} characters; a name may have {MAX_NAME} bytes. Say the rest in the text."]
    return found


def scope_problems(scope: Scope) -> list[str]:
    """What is wrong with the names of a scope's levels."""
    levels = {name: getattr(scope, name) for name in ("project", "user", "agent", "session", "task")}
    return [problem for name, value in levels.items() if value for problem in _name_problems(value, name)]


def _time_problems(created: Any, now: int) -> list[str]:
    """Nothing was written before computers kept time, and nothing tomorrow: it would be the newest for good."""
    if isinstance(created, int) and not 0 <= created <= now + AHEAD:
        return [f"created must lie between 1970 and today, not {iso(created)}; say when it will hold with valid_from."]
    return []


def _list_problems(value: Any, name: str) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable) or not all(isinstance(part, str) for part in value):
        return [f"{name} must be a list of strings, not {value!r}."]
    return [problem for part in value for problem in _byte_problems(part, name)]


def trust_problems(kind: Kind, trust: str | None, pinned: bool | None) -> list[str]:
    """Rules, procedures and what is pinned tell the model what to do: no tool's, page's or repository's word may."""
    if trust in (None, "user", "agent"):
        return []
    read_it = "Read it first: `foveate promote` makes it yours"
    if kind.min_trust == "agent":
        sort = "is a rule" if kind.is_rule else "says what to do"
        return [f"A {kind.name} {sort}, and trust {trust!r} cannot make one. Add it as a note. {read_it}."]
    if pinned:
        return [f"What has trust {trust!r} cannot be pinned. {read_it}."]
    return []


def _unique(parts: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts or () if part.strip()))


def tidied(said: Any, allow: AllowList | None) -> Any:
    """Words beside the text as they are kept: strings cleaned, however deep they lie."""
    if isinstance(said, str):
        return clean(said, allow)
    if isinstance(said, Mapping):
        return redact_value({tidied(name, allow): tidied(value, allow) for name, value in said.items()}, allow)
    if isinstance(said, list | tuple | set):
        return [tidied(part, allow) for part in said]
    return said
