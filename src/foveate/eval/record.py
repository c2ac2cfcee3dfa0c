"""From real use to a case: a receipt, with what became of its context, as a line of the `own` suite.

Wanted is what the answer used or a person called useful, unwanted what somebody called wrong or outdated, and what else was
a candidate is told beside it, so that there is something to choose from. The records are copied as the context saw them:
the case stays the same when the store changes, and what the feedback itself did to them (a use counted, an outcome noted, a
corrected text) is not in it. Secrets were taken out before they were kept; read a case before you share it nonetheless.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from foveate.clock import iso
from foveate.code.derived import PREFIXES
from foveate.engine import Engine
from foveate.errors import InputError, NotFound, StoreError
from foveate.eval.datasets.own import OPTIONS, SCOPE
from foveate.eval.reading import lines
from foveate.pipeline import profiles
from foveate.receipts.receipt import FORGOTTEN, Receipt, scope_within
from foveate.records.kinds import kind_of
from foveate.records.make import to_json
from foveate.types import Record

DROPPED = ("scope", "version", "updated", "created", "uses", "wins")
"""What is said otherwise in a case, or would tell which records were used."""


def record(
    engine: Engine, context: str | None, to: Path, *, wanted: Sequence[str] = (), unwanted: Sequence[str] = ()
) -> Mapping[str, Any]:
    """Write a context, the latest unless one is named, as a case into a JSONL; the case of the same context is replaced.

    `wanted` and `unwanted` say more than the feedback on the context, or stand in for it; they may name any record.
    """
    receipt = engine.receipt(context)
    if receipt.document["request"]["query"] == FORGOTTEN:
        raise InputError(
            f"The question of {receipt.id!r} was forgotten, with a record that it was about; take another context."
        )
    good, bad, notes = _judged(receipt, wanted, unwanted)
    copies, gone = _copies(engine, receipt, [*good, *bad], [*wanted, *unwanted])
    notes += [f"no longer kept: {', '.join(gone)}"] if gone else []
    good, bad = ([id for id in ids if id in copies] for ids in (good, bad))
    if not good and not bad:
        raise InputError(f"Of what {receipt.id!r} used, nothing is kept that can be recorded: {'; '.join(notes)}.")
    case, more = _asked(receipt)
    notes += more
    case |= {"wanted": good, "unwanted": bad, **({"note": "; ".join(notes)} if notes else {})}
    case["records"] = [_line(copy) for copy in copies.values()]
    _write(to, case)
    return case


def _judged(receipt: Receipt, wanted: Sequence[str], unwanted: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The ids that should and should not be there, and what is left out of them. A person's word outweighs a trace."""
    both = sorted(set(wanted) & set(unwanted))
    if both:
        raise InputError(f"{both[0]!r} cannot be wanted and unwanted.")
    told = receipt.document.get("notes", {})
    marks = told.get("marks", {})
    bad = dict.fromkeys([*unwanted, *(id for id, mark in marks.items() if mark != "useful" and id not in wanted)])
    useful = [*wanted, *told.get("used", ()), *(id for id, mark in marks.items() if mark == "useful")]
    good = dict.fromkeys(id for id in useful if id not in bad)
    if not good and not bad:
        raise InputError(
            f"There is no feedback on {receipt.id!r}. Give `foveate feedback` the answer, or mark records with --useful, "
            "--wrong or --outdated; or name those that should be there."
        )
    code = sorted(id for id in (*good, *bad) if id.startswith(PREFIXES))
    notes = [f"code is not recorded: {', '.join(code)}"] if code else []
    return [id for id in good if id not in code], [id for id in bad if id not in code], notes


def _copies(
    engine: Engine, receipt: Receipt, judged: Sequence[str], named: Iterable[str]
) -> tuple[dict[str, Record], list[str]]:
    """The records of a case as the context saw them, by id, and which of the judged ones are gone."""
    seen = {entry["id"]: entry["version"] for entry in receipt.candidates if not kind_of(entry["kind"]).derived}
    copies: dict[str, Record] = {}
    with engine.reader(scope_within(receipt, engine.scope)) as reader:
        for id in dict.fromkeys((*judged, *seen)):
            found = reader.version(id, seen[id]) if id in seen else reader.get([id]).get(id)
            if found is not None:
                copies[id] = found
    unknown = [id for id in named if id not in copies and not id.startswith(PREFIXES)]
    if unknown:
        raise NotFound(f"There is no record {unknown[0]!r} in this scope. `foveate search` finds records by their words.")
    # Told as they came to be: an order that began with the wanted ones would help whoever keeps it.
    told = sorted(copies, key=lambda id: (copies[id].created, id))
    return {id: copies[id] for id in told}, [id for id in judged if id not in copies]


def _asked(receipt: Receipt) -> tuple[dict[str, Any], list[str]]:
    """The request as a case has it. A profile of a project's own is not there where the case is asked."""
    asked = receipt.document["request"]
    case = {"id": receipt.id, "question": asked["query"], "type": "recorded", "now": iso(asked["now"])}
    case |= {name: asked["scope"][name] for name in SCOPE if asked["scope"].get(name)}
    case |= {name: asked[name] for name in (*OPTIONS, "budget") if asked.get(name) and name not in case}
    if case.get("profile") in (None, *profiles.names()):
        return case, []
    return case, [f"profile {case.pop('profile')} is of the project and is left out"]


def _line(copy: Record) -> dict[str, Any]:
    values = {name: value for name, value in to_json(copy).items() if name not in DROPPED}
    scope = {name: value for name in SCOPE if (value := getattr(copy.scope, name))}
    return {**values, **scope, "when": iso(copy.created)}


def _write(to: Path, case: Mapping[str, Any]) -> None:
    """Put a case into its file: in the place of the one of the same id, or at the end."""
    known = [line for _, line in lines(to)] if to.exists() else []
    here = [n for n, line in enumerate(known) if isinstance(line, dict) and line.get("id") == case["id"]]
    if here:
        known[here[0]] = case
    else:
        known.append(case)
    part = to.with_name(f"{to.name}.part")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        part.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in known), "utf-8")
        os.replace(part, to)
    except OSError as error:
        raise StoreError(f"{str(to)!r} cannot be written: {error.strerror}. Choose another file.") from None
