"""Your own cases: a JSONL of questions, the records that are told, and the ids that should be in the answer.

One line is one case:

    {"question": "Which port?", "wanted": ["r2"], "unwanted": ["r1"], "records": [{"id": "r1", "text": "Port 80"}, ...]}

`question` and `wanted` (or `unwanted`) are needed; `id`, `type`, `now`, `user`, `agent`, `note` and the options of `compute`
(`profile`, `overrides`, `session`, `complexity`, `frame`) may be there; so may `budget`, which is what a recorded case was
asked with: a run has budgets of its own. A record has an `id` and a `text`, and may have a `kind` (`note` unless told),
`session`, `user`, `agent`, `when`, `retired`, `links` (pairs of a name and an id) and every value that `engine.add` takes.

Where many cases ask the same, the records stand once: in a line `{"records": [...]}` before them, in a file
`records.jsonl` beside the cases, one on a line, or in a store of yours: `{"store": "PATH"}`, from the folder of the cases.
A store is asked as it is, by a copy that is thrown away; `wanted` names the ids of its records.

A record stands where its text stands word for word, or its `summary`, where it brings one: what is kept at several lengths
may be shown at those.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import foveate
from foveate.clock import millis, now
from foveate.errors import FoveateError, InputError, NotFound, near
from foveate.eval.evidence import OneOf
from foveate.eval.model import Case, Entry, Scene, Suite, World
from foveate.eval.reading import find, lines
from foveate.project import project
from foveate.records import make
from foveate.records.make import Rules
from foveate.types import Scope

RECORDS = "records.jsonl"
OPTIONS = ("profile", "overrides", "session", "complexity", "frame")
CASE: Mapping[str, type] = {
    "id": str, "question": str, "wanted": list, "unwanted": list, "type": str, "now": str, "user": str, "agent": str,
    "note": str, "budget": int, "records": list, "store": str, "profile": str, "overrides": dict, "session": str,
    "complexity": str, "frame": str,
}  # fmt: skip
SHARED = {"records", "store", "note"}
"""What a line may have that is no case: what the cases after it ask."""
SCOPE = ("session", "user", "agent")
RECORD: Mapping[str, type] = {
    "id": str, "text": str, "kind": str, "when": str, "retired": bool, "links": list, **dict.fromkeys(SCOPE, str),
}  # fmt: skip
NAMES: Mapping[type, str] = {
    str: "a text that is not empty",
    list: "a list",
    dict: "an object",
    int: "a number",
    bool: "true or false",
}
EXAMPLE = '{"question": "...", "wanted": ["ID"], "records": [{"id": "ID", "text": "..."}]}'

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Told:
    """What cases ask: records, or a store; `name` tells one such from the others of a file."""

    name: str
    rows: Sequence[tuple[str, Line]] = ()
    """Records with the place that an error names."""
    store: Path | None = None


def worlds(path: Path, options: Mapping[str, str]) -> Iterator[World]:
    file = cases_in(path)
    groups: dict[str, tuple[Told, list[tuple[str, Line]]]] = {}
    ids: set[str] = set()
    for at, line, told in _asked(file):
        id = _id(at, line)
        if id in ids:
            raise InputError(f"{at}: there is a case {id!r} already, by that id or by its line; give it another id.")
        ids.add(id)
        groups.setdefault(told.name, (told, []))[1].append((at, line))
    if not groups:
        raise InputError(f"{str(file)!r} holds no case. A line is {EXAMPLE}.")
    for name, (told, asked) in groups.items():
        yield World(name, partial(_scene, told, asked))


def cases_in(path: Path) -> Path:
    return find(path, "own", "cases*.jsonl")


def files(path: Path) -> list[Path]:
    """The cases, and what they name beside themselves."""
    file = cases_in(path)
    stores = {_place(file, line["store"]) for _, line in lines(file) if isinstance(line, dict) and _text(line.get("store"))}
    held = [store / project.FOLDER / name for store in sorted(stores) for name in _STORE]
    return [file, *(path for path in (file.with_name(RECORDS), *held) if path.exists() and path != file)]


_STORE = (project.STORE, f"{project.STORE}-wal", "config.toml", "allow", "profiles")


# --- reading -------------------------------------------------------------------------------------------------------


def _asked(file: Path) -> Iterator[tuple[str, Line, Told]]:
    """The cases, each with the place that an error names and with what it asks."""
    shared = _beside(file)
    for n, line in lines(file):
        at = f"{str(file)!r}, line {n}"
        _check(at, line, CASE, EXAMPLE)
        own = _told(file, n, line)
        if "question" in line:
            told = own or shared
            if told is None:
                raise InputError(
                    f"{at}: there are no records. Put them into the case, into a line of their own before it, "
                    f"or into {RECORDS} beside the file; or name a store."
                )
            yield at, line, told
        elif own is None or set(line) - SHARED:
            raise InputError(f"{at}: question is missing. A line is {EXAMPLE}.")
        else:
            shared = own


def _id(at: str, line: Line) -> str:
    return str(line.get("id") or at.rpartition(", ")[2])


def _told(file: Path, n: int, line: Line) -> Told | None:
    if "records" in line and "store" in line:
        raise InputError(f"{str(file)!r}, line {n}: records and a store are two things to ask; keep one of them.")
    if "store" in line:
        store = _place(file, line["store"])
        if not (store / project.FOLDER).is_dir():  # a store above it is not the one that was named
            raise NotFound(f"{str(file)!r}, line {n}: There is no store in {line['store']!r}.")
        if project.find(store).shared is not None:  # a copy is asked, and its settings would lead back to the original
            raise InputError(f"{str(file)!r}, line {n}: its state is in a shared database. Name a copy of it in a file.")
        return Told(f"store {line['store']}", store=store)
    if "records" not in line:
        return None
    rows = tuple((f"{str(file)!r}, line {n}, record {m}", record) for m, record in enumerate(line["records"], 1))
    return Told(f"line {n}" if "question" in line else f"records of line {n}", rows)


def _beside(file: Path) -> Told | None:
    sibling = file.with_name(RECORDS)
    if not sibling.is_file() or sibling == file:
        return None
    return Told(RECORDS, tuple((f"{str(sibling)!r}, line {n}", record) for n, record in lines(sibling)))


def _place(file: Path, store: str) -> Path:
    place = (file.parent / Path(store).expanduser()).resolve()
    return place.parent if place.name == project.FOLDER else place


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check(at: str, line: Any, known: Mapping[str, type], example: str, *, closed: bool = True) -> None:
    """An error that says what is wrong with a line."""
    if not isinstance(line, dict):
        raise InputError(f"{at}: it is no object. Wanted: {example}.")
    problems = [f"{name!r} is no field.{near(name, known)}" for name in line if closed and name not in known]
    problems += [
        f"{name} must be {NAMES[sort]}, not {json.dumps(line[name], ensure_ascii=False)[:80]}."
        for name, sort in known.items()
        if name in line and not (_text(line[name]) if sort is str else isinstance(line[name], sort))
    ]
    if problems:
        raise InputError([f"{at}: {problem}" for problem in problems])


# --- scenes --------------------------------------------------------------------------------------------------------


def _scene(told: Told, asked: Sequence[tuple[str, Line]]) -> Scene:
    entries = _kept(told.store, asked) if told.store else _entries(told.rows)
    return Scene([_case(at, line, entries) for at, line in asked], list(entries.values()), store=told.store)


def _case(at: str, line: Line, entries: Mapping[str, Entry]) -> Case:
    wanted, unwanted = line.get("wanted", []), line.get("unwanted", [])
    if not wanted and not unwanted:
        raise InputError(f"{at}: wanted is missing; name the ids of the records that should be there.")
    unknown = [id for id in (*wanted, *unwanted) if not isinstance(id, str) or id not in entries]
    if unknown:
        raise InputError(
            f"{at}: there is no record {', '.join(map(repr, unknown))} to be found.{near(str(unknown[0]), entries)}"
        )
    if both := sorted(set(wanted) & set(unwanted)):
        raise InputError(f"{at}: {both[0]!r} cannot be wanted and unwanted.")
    if "now" in line:
        _time(at, "now", line["now"])
    return Case(
        _id(at, line),
        line["question"],
        tuple(_piece(entries[id]) for id in dict.fromkeys(wanted)),
        tuple(_piece(entries[id]) for id in dict.fromkeys(unwanted)),
        type=line.get("type", ""),
        now=line.get("now"),
        user=line.get("user"),
        agents=(line.get("agent"),),
        options={name: line[name] for name in OPTIONS if name in line},
    )


def _piece(entry: Entry) -> OneOf:
    lengths = (entry.text, entry.values.get("summary"))
    return OneOf(entry.id, tuple(length for length in lengths if length), "record")


def _entries(rows: Sequence[tuple[str, Line]]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for at, record in rows:
        _check(at, record, RECORD, '{"id": "...", "text": "..."}', closed=False)
        missing = [name for name in ("id", "text") if name not in record]
        if missing:
            raise InputError(f"{at}: {' and '.join(missing)} is missing.")
        if record["id"] in entries:
            raise InputError(f"{at}: there is a record {record['id']!r} already.")
        entries[record["id"]] = _entry(at, record)
    for at, record in rows:
        wrong = [other for _, other in entries[record["id"]].links if other not in entries]
        if wrong:
            raise InputError(f"{at}: it is linked to {wrong[0]!r}, and there is no such record.")
    return entries


def _entry(at: str, record: Line) -> Entry:
    links = record.get("links", [])
    if not all(isinstance(link, list) and len(link) == 2 and all(map(_text, link)) for link in links):
        raise InputError(f'{at}: links are pairs such as ["caused_by", "ID"], not {links!r}.')
    entry = Entry(
        id=record["id"],
        text=record["text"],
        kind=record.get("kind", "note"),
        when=record.get("when"),
        values={name: value for name, value in record.items() if name not in RECORD},
        retired=record.get("retired", False),
        links=tuple((name, other) for name, other in links),
        **{name: record.get(name) for name in SCOPE},
    )
    if entry.when is not None:
        _time(at, "when", entry.when)
    try:  # what the store would say, with the line that it is about
        values = {"created": entry.when, **entry.values} if entry.when else entry.values
        make.make(entry.kind, entry.text, scope=Scope("own"), id=entry.id, now=now(), rules=Rules(), **values)
    except InputError as error:
        raise InputError([f"{at}: {problem}" for problem in error.problems]) from None
    return entry


def _time(at: str, name: str, value: str) -> None:
    try:
        millis(value)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{at}: {name} must be a time such as 2026-05-14T09:30Z, not {value!r}.") from None


def _kept(store: Path, asked: Sequence[tuple[str, Line]]) -> dict[str, Entry]:
    """What a store holds, for everyone who asks."""
    entries: dict[str, Entry] = {}
    for (user, agent), at in {(line.get("user"), line.get("agent")): at for at, line in asked}.items():
        try:
            with foveate.open(store, user=user, agent=agent, own=False, code=False, create=False) as engine:
                held = [json.loads(row) for row in engine.export()]
        except FoveateError as error:
            raise InputError(f"{at}: {error}") from None
        for record in held:
            if "text" in record:
                entries[record["id"]] = _held(record)
    return entries


def _held(record: Line) -> Entry:
    return Entry(
        id=record["id"],
        text=record["text"],
        kind=record["kind"],
        when=record["created"],
        values={"summary": record.get("summary")},
        retired=record.get("status", "active") != "active",
        **{name: record.get("scope", {}).get(name) for name in SCOPE},
    )


SUITE = Suite(
    name="own",
    about="your own cases: a JSONL of questions, records and the ids that should be there",
    worlds=worlds,
    files=files,
    form=EXAMPLE,
)
