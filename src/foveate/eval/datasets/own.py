"""Your own cases: a JSONL file with questions, records to store, and the ids that must be in the prompt.

One line is one case:

    {"question": "Which port?", "expected": ["r2"], "forbidden": ["r1"], "records": [{"id": "r1", "text": "Port 80"}, ...]}

`question` and `expected` (or `forbidden`) are required. Optional are `id`, `type`, `now`, `user`, `agent`, `note`, the
options of a context (`profile`, `overrides`, `session`, `complexity`, `frame`) and `budget`, which a recorded case has and a
run ignores. A record has an `id` and a `text`, and may have a `kind` (default: `note`), `session`, `user`, `agent`, `when`,
`retired`, `links` (pairs of a name and an id) and every field that `engine.add` takes.

Records that several cases share are written once: in a line `{"records": [...]}` before the cases, in a file
`records.jsonl` beside the cases with one record a line, or in a store of yours: `{"store": "PATH"}`, relative to the folder
of the cases. The run uses a copy of the store, and `expected` has the ids of its records.

A record is present if its text is there word for word, or its `summary` if it brings one.
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
from foveate.eval.evidence import AnyEvidence
from foveate.eval.model import Case, Dataset, Document, Subset, Suite
from foveate.eval.reading import find_data_file, read_jsonl
from foveate.project import project
from foveate.project.locate import DIR_NAME, STORE_FILE
from foveate.records import make
from foveate.records.make import Rules
from foveate.types import Scope

RECORDS_FILE = "records.jsonl"
OPTION_FIELDS = ("profile", "overrides", "session", "complexity", "frame")
SCOPE_FIELDS = ("session", "user", "agent")
CASE_FIELDS: Mapping[str, type] = {
    "id": str, "question": str, "expected": list, "forbidden": list, "type": str, "now": str, "user": str, "agent": str,
    "note": str, "budget": int, "records": list, "store": str, "profile": str, "overrides": dict, "session": str,
    "complexity": str, "frame": str,
}  # fmt: skip
CORPUS_FIELDS = {"records", "store", "note"}
"""The fields of a line that is not a case but holds the corpus of the cases after it."""
RECORD_FIELDS: Mapping[str, type] = {
    "id": str, "text": str, "kind": str, "when": str, "retired": bool, "links": list, **dict.fromkeys(SCOPE_FIELDS, str),
}  # fmt: skip
TYPE_NAMES: Mapping[type, str] = {
    str: "a text that is not empty",
    list: "a list",
    dict: "an object",
    int: "a number",
    bool: "true or false",
}
CASE_EXAMPLE = '{"question": "...", "expected": ["ID"], "records": [{"id": "ID", "text": "..."}]}'
RECORD_EXAMPLE = '{"id": "...", "text": "..."}'
STORE_FILES = (STORE_FILE, f"{STORE_FILE}-wal", "config.toml", "allow", "profiles")

Line = Mapping[str, Any]
LocatedLine = tuple[str, Line]
"""A line with its place, for error messages."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """The records or the store that cases use. `name` identifies it within the file."""

    name: str
    records: Sequence[LocatedLine] = ()
    store: Path | None = None


def _subsets(path: Path, options: Mapping[str, str]) -> Iterator[Subset]:
    file = cases_file(path)
    groups: dict[str, tuple[Corpus, list[LocatedLine]]] = {}
    ids: set[str] = set()
    for location, line, corpus in _read_cases(file):
        id = _case_id(location, line)
        if id in ids:
            raise InputError(f"{location}: there is a case {id!r} already, by its id or by its line; give it another id.")
        ids.add(id)
        groups.setdefault(corpus.name, (corpus, []))[1].append((location, line))
    if not groups:
        raise InputError(f"{str(file)!r} contains no case. A line is {CASE_EXAMPLE}.")
    for name, (corpus, cases) in groups.items():
        yield Subset(name, partial(_dataset, corpus, cases))


def cases_file(path: Path) -> Path:
    return find_data_file(path, "own", "cases*.jsonl")


def _files(path: Path) -> list[Path]:
    """Return the file of cases, and the files that its cases refer to."""
    file = cases_file(path)
    lines = [line for _, line in read_jsonl(file) if isinstance(line, dict)]
    stores = {_resolve_store(file, line["store"]) for line in lines if _is_nonempty_text(line.get("store"))}
    referred = [store / DIR_NAME / name for store in sorted(stores) for name in STORE_FILES]
    return [file, *(path for path in (file.with_name(RECORDS_FILE), *referred) if path.exists() and path != file)]


# --- reading -------------------------------------------------------------------------------------------------------


def _read_cases(file: Path) -> Iterator[tuple[str, Line, Corpus]]:
    """Yield the cases, each with its place and its corpus."""
    shared = _corpus_beside(file)
    for n, line in read_jsonl(file):
        location = f"{str(file)!r}, line {n}"
        _check_fields(location, line, CASE_FIELDS, CASE_EXAMPLE)
        of_line = _corpus_of_line(file, n, line)
        if "question" in line:
            corpus = of_line or shared
            if corpus is None:
                raise InputError(
                    f"{location}: there are no records. Put them into the case, into a line before it or into "
                    f"{RECORDS_FILE} next to the file, or name a store."
                )
            yield location, line, corpus
        elif of_line is None or set(line) - CORPUS_FIELDS:
            raise InputError(f"{location}: question is missing. A line is {CASE_EXAMPLE}.")
        else:
            shared = of_line


def _case_id(location: str, line: Line) -> str:
    return str(line.get("id") or location.rpartition(", ")[2])


def _corpus_of_line(file: Path, n: int, line: Line) -> Corpus | None:
    location = f"{str(file)!r}, line {n}"
    if "records" in line and "store" in line:
        raise InputError(f"{location}: a case has either records or a store; remove one of them.")
    if "store" in line:
        store = _resolve_store(file, line["store"])
        if not (store / DIR_NAME).is_dir():  # project.locate_project would take a store of a parent folder
            raise NotFound(f"{location}: There is no store in {line['store']!r}.")
        if project.locate_project(store).database_url is not None:  # the settings of a copy would lead back to the original
            raise InputError(f"{location}: the store is a shared database. Name a copy of it in a file.")
        return Corpus(f"store {line['store']}", store=store)
    if "records" not in line:
        return None
    records = tuple((f"{location}, record {m}", record) for m, record in enumerate(line["records"], 1))
    return Corpus(f"line {n}" if "question" in line else f"records of line {n}", records)


def _corpus_beside(file: Path) -> Corpus | None:
    beside = file.with_name(RECORDS_FILE)
    if not beside.is_file() or beside == file:
        return None
    return Corpus(RECORDS_FILE, tuple((f"{str(beside)!r}, line {n}", record) for n, record in read_jsonl(beside)))


def _resolve_store(file: Path, store: str) -> Path:
    path = (file.parent / Path(store).expanduser()).resolve()
    return path.parent if path.name == DIR_NAME else path


def _is_nonempty_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _check_fields(
    location: str, line: Any, field_types: Mapping[str, type], example: str, *, forbid_extra: bool = True
) -> None:
    if not isinstance(line, dict):
        raise InputError(f"{location}: the line is not an object. Expected: {example}.")
    problems = [
        f"there is no field {name!r}.{near(name, field_types)}" for name in line if forbid_extra and name not in field_types
    ]
    problems += [
        f"{name} must be {TYPE_NAMES[sort]}, got {json.dumps(line[name], ensure_ascii=False)[:80]}."
        for name, sort in field_types.items()
        if name in line and not (_is_nonempty_text(line[name]) if sort is str else isinstance(line[name], sort))
    ]
    if problems:
        raise InputError([f"{location}: {problem}" for problem in problems])


# --- datasets ------------------------------------------------------------------------------------------------------


def _dataset(corpus: Corpus, cases: Sequence[LocatedLine]) -> Dataset:
    documents = _documents_in_store(corpus.store, cases) if corpus.store else _documents(corpus.records)
    return Dataset(
        [_case(location, line, documents) for location, line in cases], list(documents.values()), store=corpus.store
    )


def _case(location: str, line: Line, documents: Mapping[str, Document]) -> Case:
    expected, forbidden = line.get("expected", []), line.get("forbidden", [])
    if not expected and not forbidden:
        raise InputError(f"{location}: expected is missing; list the ids of the records that should be there.")
    unknown = [id for id in (*expected, *forbidden) if not isinstance(id, str) or id not in documents]
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise InputError(f"{location}: there is no record {names}.{near(str(unknown[0]), documents)}")
    if both := sorted(set(expected) & set(forbidden)):
        raise InputError(f"{location}: {both[0]!r} cannot be both expected and forbidden.")
    if "now" in line:
        _check_time(location, "now", line["now"])
    return Case(
        _case_id(location, line),
        line["question"],
        tuple(_evidence(documents[id]) for id in dict.fromkeys(expected)),
        tuple(_evidence(documents[id]) for id in dict.fromkeys(forbidden)),
        question_type=line.get("type", ""),
        now=line.get("now"),
        user=line.get("user"),
        agents=(line.get("agent"),),
        options={name: line[name] for name in OPTION_FIELDS if name in line},
    )


def _evidence(document: Document) -> AnyEvidence:
    texts = (document.text, document.values.get("summary"))
    return AnyEvidence(document.id, tuple(text for text in texts if text), "record")


def _documents(records: Sequence[LocatedLine]) -> dict[str, Document]:
    documents: dict[str, Document] = {}
    for location, record in records:
        _check_fields(location, record, RECORD_FIELDS, RECORD_EXAMPLE, forbid_extra=False)
        missing = [name for name in ("id", "text") if name not in record]
        if missing:
            raise InputError(f"{location}: {' and '.join(missing)} is missing.")
        if record["id"] in documents:
            raise InputError(f"{location}: there is a record {record['id']!r} already.")
        documents[record["id"]] = _document(location, record)
    for location, record in records:
        unknown = [target for _, target in documents[record["id"]].links if target not in documents]
        if unknown:
            raise InputError(f"{location}: it is linked to {unknown[0]!r}, and there is no such record.")
    return documents


def _document(location: str, record: Line) -> Document:
    links = record.get("links", [])
    if not all(isinstance(link, list) and len(link) == 2 and all(map(_is_nonempty_text, link)) for link in links):
        raise InputError(f'{location}: links must be pairs such as ["caused_by", "ID"], got {links!r}.')
    document = Document(
        id=record["id"],
        text=record["text"],
        kind=record.get("kind", "note"),
        timestamp=record.get("when"),
        values={name: value for name, value in record.items() if name not in RECORD_FIELDS},
        is_retired=record.get("retired", False),
        links=tuple((name, target) for name, target in links),
        **{name: record.get(name) for name in SCOPE_FIELDS},
    )
    if document.timestamp is not None:
        _check_time(location, "when", document.timestamp)
    values = {"created": document.timestamp, **document.values} if document.timestamp else document.values
    try:  # the store would refuse it, too, but could not name the line
        make.make(document.kind, document.text, scope=Scope("own"), id=document.id, now=now(), rules=Rules(), **values)
    except InputError as error:
        raise InputError([f"{location}: {problem}" for problem in error.problems]) from None
    return document


def _check_time(location: str, name: str, value: str) -> None:
    try:
        millis(value)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{location}: {name} must be a time such as 2026-05-14T09:30Z, got {value!r}.") from None


def _documents_in_store(store: Path, cases: Sequence[LocatedLine]) -> dict[str, Document]:
    """Return the records of a store that the users and agents of the cases can see."""
    documents: dict[str, Document] = {}
    for (user, agent), location in {(line.get("user"), line.get("agent")): location for location, line in cases}.items():
        try:
            with foveate.open(store, user=user, agent=agent, personal=False, code=False, create=False) as engine:
                records = [json.loads(row) for row in engine.store.export_lines()]
        except FoveateError as error:
            raise InputError(f"{location}: {error}") from None
        documents |= {record["id"]: _document_of_record(record) for record in records if "text" in record}
    return documents


def _document_of_record(record: Line) -> Document:
    return Document(
        id=record["id"],
        text=record["text"],
        kind=record["kind"],
        timestamp=record["created"],
        values={"summary": record.get("summary")},
        is_retired=record.get("status", "active") != "active",
        **{name: record.get("scope", {}).get(name) for name in SCOPE_FIELDS},
    )


OWN = Suite(
    name="own",
    description="your own cases: a JSONL file of questions, records and expected ids",
    subsets=_subsets,
    files=_files,
    data_format=CASE_EXAMPLE,
)
