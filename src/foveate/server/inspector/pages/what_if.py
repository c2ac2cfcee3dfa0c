"""What if: a context as it would be with another question, budget, profile, weights or filters. Nothing is kept of it,
unless somebody keeps the changes as a profile, or the outcome as a case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request

from foveate.engine import Engine
from foveate.errors import BudgetError, InputError, NotFound, ProfileError, SourceError
from foveate.pipeline import profiles
from foveate.pipeline.assembly import Context
from foveate.pipeline.profiles.choose import COMPLEXITY, INPUT
from foveate.pipeline.profiles.frames import FRAME, NONE
from foveate.receipts.receipt import FORGOTTEN, Receipt
from foveate.receipts.receipt import diff as changes_between
from foveate.server.inspector.candidate_rows import rows
from foveate.server.inspector.page import Action, Asked, Page, Went
from foveate.server.inspector.pages.comparison import summary
from foveate.server.inspector.pages.contexts import head, receipt_of, told, tried
from foveate.server.inspector.project_files import CASES, NO_FOLDER, keep_case, keep_profile
from foveate.server.inspector.what_if_form import LONG, OWN, TEXTS, WEIGHT, Trial, begun, floored, trial
from foveate.types import TRUST

NEAREST = 10
"""Candidates that are shown of those that were left out."""

WRONG = (InputError, ProfileError, BudgetError, NotFound, SourceError)
"""What a form can get wrong: said in the page, where it can be put right."""

OF_PROFILE = (WEIGHT, OWN, "without")
"""How the fields begin that wait, unseen, while no profile can be shown."""


def what_if(asked: Asked) -> dict[str, Any]:
    """The form, what it would give, and what that changes against the context that it starts from."""
    receipt = receipt_of(asked, "context") if asked.text("context") else None
    asked = begun(asked, receipt)
    document = {
        "subject": "What if",
        "start": head(receipt) if receipt else None,
        "form": _form(asked, receipt),
        "choices": _choices(asked.engine),
        "no_folder": NO_FOLDER if asked.engine.root is None else "",
        "cases": CASES,
        **dict.fromkeys(("settings", "result", "against", "keep")),
        "problem": "",
    }
    try:
        this = trial(asked, receipt)
        document["settings"] = _settings(this)
        document |= _outcome(this, receipt)
    except WRONG as error:
        document["problem"] = str(error)
    return document


def _form(asked: Asked, receipt: Receipt | None) -> dict[str, Any]:
    """The fields as they stand. A question that is too long for an address is not typed again: it is the context's."""
    query = receipt.document["request"]["query"] if receipt else ""
    return {
        **{name: asked.text(name) for name in TEXTS},
        "context": receipt.id if receipt else "",
        "without_code": asked.flag("without_code"),
        "waiting": [
            {"name": name, "value": value}
            for name, value in asked.values
            if name.startswith(OF_PROFILE) and name != "without_code"
        ],
        "long_query": query if len(query) > LONG and query != FORGOTTEN and not asked.text("query") else "",
    }


def _choices(engine: Engine) -> dict[str, Any]:
    """What can be chosen: profiles, and the layers that go over them."""
    known = {each.name: each for each in profiles.known(engine.places)}
    whole = [each for name, each in known.items() if not name.startswith((FRAME, COMPLEXITY, INPUT))]
    return {
        "profiles": [{"name": each.name, "about": each.description, "own": each.where != "builtin"} for each in whole],
        "frames": [NONE, *(name.removeprefix(FRAME) for name in known if name.startswith(FRAME))],
        "complexities": [name.removeprefix(COMPLEXITY) for name in known if name.startswith(COMPLEXITY)],
        "trust": list(TRUST),
        "has_code": engine.has_code,
    }


def _settings(this: Trial) -> dict[str, Any]:
    """The profile's own figures, and what the form makes of them."""
    own, changed = this.own, this.changes.get("weights", {})
    floors = Counter(slot.min_score for slot in floored(own)).most_common(1)
    return {
        "profile": this.request.profile,
        "total": own.written_for,
        "half_life": own.half_life,
        "min_score": floors[0][0] if floors else None,
        "weights": [
            {"name": name, "own": weight, "value": changed.get(name, weight), "changed": name in changed}
            for name, weight in {**own.weights, **{name: own.weights.get(name, 0.0) for name in changed}}.items()
        ],
        "slots": [{"name": slot.name, "left_out": slot.name in this.removed, "keep": slot.keep} for slot in own.slots],
        "carried": profiles.layer_to_toml(carried) if (carried := this.options["overrides"]) else "",
    }


def _outcome(this: Trial, start: Receipt | None) -> dict[str, Any]:
    """The context that it would be."""
    context, receipt = this.engine.what_if(**this.everything)
    shown = tried(this.asked, context, receipt)
    near = _nearest(this, context, receipt)
    return {
        "result": {**shown, "summary": summary(receipt), "nearest": near},
        "against": _against(this, start, receipt, shown["items"]) if start else None,
        "keep": {
            "fields": [{"name": name, "value": value} for name, value in this.fields],
            "profile": profiles.layer_to_toml(_layer(this)) if this.overrides or this.options["budget"] else "",
            "no_total": _no_total(this),
            "can_be_wanted": [_markable(row) for row in (*shown["items"], *near) if row["is_record"]],
        },
    }


def _no_total(this: Trial) -> str:
    """Why the budget cannot be the total of a profile: a call may go below what its slots are written for."""
    layer = {name: value for name, value in _layer(this).items() if name != "extends"}
    try:
        profiles.resolve(this.request.profile, this.engine.places, layer)
    except WRONG as error:
        return str(error)
    return ""


def _nearest(this: Trial, context: Context, receipt: Receipt) -> list[dict[str, Any]]:
    """The candidates that lacked least: a share of the room, or of a score. More would not bring in the others."""
    room = max(1, receipt.document["budget"]["total"])
    lost = [entry for entry in receipt.candidates if not entry["kept"]]
    lacking = [entry for entry in lost if entry["needs_tokens"] or entry["needs_score"]]
    lacking.sort(key=lambda entry: (entry["needs_tokens"] / room + entry["needs_score"], -entry["score"]))
    handed = {omission.candidate.record.id: omission.candidate.record for omission in context.left_out}
    return rows(this.engine, receipt, lacking[:NEAREST], handed)


def _markable(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": row["id"], "title": row["title"], "kind": row["kind"], "kept": row["kept"], "is_record": True}


def _against(this: Trial, start: Receipt, receipt: Receipt, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What would be otherwise than in the context that it starts from."""
    found = changes_between(start, receipt)
    titles = {item["id"]: item for item in items}
    ids = {entry["id"] for entry in found["withdrawn"]}
    gone = [entry for entry in start.candidates if entry["kept"] and entry["id"] in ids]
    left = {row["id"]: row for row in rows(this.engine, start, gone)}

    names = ("id", "title", "is_record", "slot", "level", "tokens")
    return {
        "added": [{name: titles[entry["id"]][name] for name in names} for entry in found["added"]],
        "withdrawn": [{name: left[entry["id"]][name] for name in names} for entry in found["withdrawn"]],
        "moved": len(found["moved"]),
        "re_detailed": len(found["re_detailed"]),
        "tokens": found["tokens"],
        "same_prefix": found["same_prefix"],
        "given": 0 if this.options["given"] else sum(map(len, start.document["request"]["given"].values())),
        "same_state": start.document["revision"] == receipt.document["revision"],
    }


# --- keeping ---------------------------------------------------------------------------------------------------------


def _layer(this: Trial, *, budget: bool = True, description: str = "") -> dict[str, Any]:
    """What is changed, as the file of a profile."""
    total = this.options["budget"] if budget else None
    return {
        **({"description": description} if description else {}),
        "extends": this.request.profile,
        **({"total": total} if total else {}),
        **this.overrides,
    }


def _keep_profile(asked: Asked, request: Request) -> Went:
    """Write the changes as a profile of the project, and go on with it."""
    this = _again(asked)
    name = asked.needed("profile_name", "name the profile gets")
    budget = asked.flag("with_budget")
    layer = _layer(this, budget=budget, description=asked.text("description"))
    if not layer.keys() - {"extends", "description"}:
        raise InputError("Nothing was changed: the profile would be the one that it extends.")
    keep_profile(this.engine, name, layer, replace=asked.flag("replace"))
    folded = ("half_life", "min_score", "profile", *(("budget",) if budget else ()))
    rest = {field: asked.text(field) for field in (*TEXTS, "context", "without_code") if field not in folded}
    return "what-if", {**rest, "typed": "1", "profile": name}, f"Kept as profile {name!r}, in .foveate/profiles."


def _keep_case(asked: Asked, request: Request) -> Went:
    """Compute it for good, and write it as a case."""
    this = _again(asked)
    file = asked.text("file", CASES)
    id, case = keep_case(this.engine, this.everything, file, asked.several("wanted"), asked.several("unwanted"))
    said = f"Kept as a case in .foveate/{file}: {len(case['wanted'])} wanted, {len(case['unwanted'])} unwanted"
    note = f" ({case['note']})" if case.get("note") else ""
    return "context", {"id": id}, f"{said}{note}. Ask it with `foveate eval run own .foveate/{file}`."


def _again(asked: Asked) -> Trial:
    return trial(asked, receipt_of(asked, "context") if asked.text("context") else None)


def _told(document: Mapping[str, Any]) -> dict[str, Any]:
    result = document["result"]
    return {"problem": document["problem"], **(told(result) if result else {}), "against the context": document["against"]}


KEEPING = ("admin", "context:read")
"""What is kept is a file of the project's folder, and a profile changes what everybody is shown."""

PAGES: tuple[Page, ...] = (
    Page("what-if", "What if", what_if, "context:read", "Change question, budget or weights and see the prompt.", _told),
)
ACTIONS: tuple[Action, ...] = (
    Action("keep-profile", KEEPING, _keep_profile),
    Action("keep-case", KEEPING, _keep_case),
)
