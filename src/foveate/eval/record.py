"""Turn a context of real use and the feedback on it into a case of the `own` suite.

Expected are the records that the answer used or that a person called useful; forbidden are those called wrong or outdated.
The other candidates are copied as well, so that there is something to choose from. Records are copied as the context saw
them, without later changes to the store or effects of the feedback. Secrets were removed when the records were stored; read
a case before you share it nonetheless.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from foveate.clock import iso
from foveate.code.records import CODE_ID_PREFIXES
from foveate.engine import Engine
from foveate.errors import InputError, NotFound, StoreError
from foveate.eval.datasets.own import OPTION_FIELDS, SCOPE_FIELDS
from foveate.eval.reading import read_jsonl
from foveate.pipeline import profiles, request_summary
from foveate.receipts.receipt import Receipt
from foveate.records.kinds import kind_of
from foveate.records.make import to_json
from foveate.text.atomic_write import write_file
from foveate.types import Record

DROPPED_FIELDS = ("scope", "version", "updated", "created", "uses", "wins")
"""Fields that a case has in another form, or that would show which records were used."""


def record_case(
    engine: Engine, context: str, path: Path, *, expected: Sequence[str] = (), forbidden: Sequence[str] = ()
) -> Mapping[str, Any]:
    """Write a context (`last` is the latest) as a case into a JSONL file, replacing an earlier case of the same context.

    `expected` and `forbidden` add to the feedback on the context, or replace missing feedback. They may name any record.
    """
    receipt = engine.receipts.get(context)
    if receipt.request.is_forgotten:
        raise InputError(
            f"The query of {receipt.id!r} was forgotten together with a record that it was about; use another context."
        )
    good, bad, notes = _split_by_feedback(receipt, expected, forbidden)
    copies, deleted = _records_as_seen(engine, receipt, [*good, *bad], [*expected, *forbidden])
    notes += [f"deleted since: {', '.join(deleted)}"] if deleted else []
    good, bad = ([id for id in ids if id in copies] for ids in (good, bad))
    if not good and not bad:
        raise InputError(f"No record that {receipt.id!r} used can be recorded: {'; '.join(notes)}.")
    case, dropped = _request_fields(receipt)
    notes += dropped
    case |= {"expected": good, "forbidden": bad, **({"note": "; ".join(notes)} if notes else {})}
    case["records"] = [_record_fields(copy) for copy in copies.values()]
    _write(path, case)
    return case


def _split_by_feedback(
    receipt: Receipt, expected: Sequence[str], forbidden: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """Return the expected ids, the forbidden ids, and notes on ids that cannot be recorded."""
    both = sorted(set(expected) & set(forbidden))
    if both:
        raise InputError(f"{both[0]!r} cannot be both expected and forbidden.")
    marks = receipt.notes.marks or {}
    # A person's mark counts more than a trace of use in the answer.
    bad = dict.fromkeys([*forbidden, *(id for id, mark in marks.items() if mark != "useful" and id not in expected)])
    useful = [*expected, *(receipt.notes.used or ()), *(id for id, mark in marks.items() if mark == "useful")]
    good = dict.fromkeys(id for id in useful if id not in bad)
    if not good and not bad:
        raise InputError(
            f"There is no feedback on {receipt.id!r}. Give `foveate feedback` the answer, mark records with --useful, "
            "--wrong or --outdated, or name the expected records."
        )
    code = sorted(id for id in (*good, *bad) if id.startswith(CODE_ID_PREFIXES))
    notes = [f"code is not recorded: {', '.join(code)}"] if code else []
    return [id for id in good if id not in code], [id for id in bad if id not in code], notes


def _records_as_seen(
    engine: Engine, receipt: Receipt, judged: Sequence[str], named: Iterable[str]
) -> tuple[dict[str, Record], list[str]]:
    """Return the records of a case by id, as the context saw them, and which of the judged ones are deleted."""
    seen = {entry.id: entry.version for entry in receipt.candidates if not kind_of(entry.kind).is_derived}
    copies: dict[str, Record] = {}
    with engine.store.data.reader(receipt.narrow_scope(engine.scope)) as reader:
        for id in dict.fromkeys((*judged, *seen)):
            copy = reader.version(id, seen[id]) if id in seen else reader.get([id]).get(id)
            if copy is not None:
                copies[id] = copy
    unknown = [id for id in named if id not in copies and not id.startswith(CODE_ID_PREFIXES)]
    if unknown:
        raise NotFound(f"No record {unknown[0]!r} in this scope. `foveate search` finds records by their words.")
    # In order of creation: a list that began with the expected ones would favor systems that keep the order.
    ordered = sorted(copies, key=lambda id: (copies[id].created, id))
    return {id: copies[id] for id in ordered}, [id for id in judged if id not in copies]


def _request_fields(receipt: Receipt) -> tuple[dict[str, Any], list[str]]:
    """Return the request as fields of a case, and notes on what was dropped."""
    request = receipt.request
    options = request_summary.to_json(request)
    case = {"id": receipt.id, "question": request.query, "type": "recorded", "now": iso(request.now)}
    case |= {name: value for name in SCOPE_FIELDS if (value := getattr(request.scope, name))}
    case |= {name: options[name] for name in (*OPTION_FIELDS, "budget") if options.get(name) and name not in case}
    if case.get("profile") in (None, *profiles.names()):
        return case, []
    # The project's own profiles do not exist in the temporary store in which the case will run.
    return case, [f"the project's own profile {case.pop('profile')} is dropped"]


def _record_fields(record: Record) -> dict[str, Any]:
    values = {name: value for name, value in to_json(record).items() if name not in DROPPED_FIELDS}
    scope = {name: value for name in SCOPE_FIELDS if (value := getattr(record.scope, name))}
    return {**values, **scope, "when": iso(record.created)}


def _write(path: Path, case: Mapping[str, Any]) -> None:
    """Put a case into its file, in place of a case with the same id or at the end."""
    lines = [line for _, line in read_jsonl(path)] if path.exists() else []
    same = [n for n, line in enumerate(lines) if isinstance(line, dict) and line.get("id") == case["id"]]
    if same:
        lines[same[0]] = case
    else:
        lines.append(case)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    except OSError as error:
        raise StoreError(f"{str(path)!r} cannot be written: {error.strerror}. Choose another file.") from None
