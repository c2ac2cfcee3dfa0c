"""What was chosen and what was not: everything that was left out of a context, and what changed between two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from foveate.agents import compared
from foveate.engine import Engine
from foveate.errors import InputError, NotFound
from foveate.operations.inputs import LAST
from foveate.receipts.receipt import Receipt, line, scope_within
from foveate.records.render import called
from foveate.server.inspector.candidate_rows import features, rows
from foveate.server.inspector.page import Action, Asked, Page
from foveate.server.inspector.pages.contexts import head, ledger, receipt_of
from foveate.server.inspector.text_diff import differing
from foveate.types import Reason

Row = dict[str, Any]

# --- left out --------------------------------------------------------------------------------------------------------

SORTS = ("score", "needs_tokens", "needs_score", "kind", "slot", "reason", "title")
FALLING = ("score",)
"""Sorted with the largest first, unless told otherwise; what it lacked begins with the nearest, and words with a."""

NAMED = ("duplicate", "superseded", "disputed")
"""Reasons whose detail is the id of another record."""

PER_PAGE = 100


def left_out(asked: Asked) -> dict[str, Any]:
    """Every candidate of a context that was left out: why, and what it lacked."""
    if not asked.text("id") and not asked.engine.lines(1):
        return {"subject": "Left out", "context": None}
    receipt = receipt_of(asked)
    lost = [entry for entry in receipt.candidates if not entry["kept"]]
    every = rows(asked.engine, receipt, lost)
    shown = _shown(asked)
    found = _sorted([row for row in every if _fits(row, shown)], shown["sort"], shown["order"])
    limit = asked.limit(PER_PAGE)
    pages = max(1, -(-len(found) // limit))
    page = min(asked.number("page", 1) or 1, pages)
    here = found[(page - 1) * limit : page * limit]
    return {
        "subject": f"Left out: {receipt.document['request']['query'][:60]}",
        "context": head(receipt),
        "summary": summary(receipt),
        "reasons": _counts(every, "reason"),
        "kinds": _counts(every, "kind"),
        "slots": _counts(every, "slot"),
        "shown": shown,
        "features": features(here),
        "scale": {name: _most(every, name) for name in ("score", "needs_tokens", "needs_score")},
        "number": len(found),
        "page": page,
        "pages": pages,
        "first": (page - 1) * limit + 1,
        "left_out": _with_others(asked, receipt, here),
        "why_not": _why_not(asked, receipt),
    }


def summary(receipt: Receipt) -> str:
    """What was left out, in one sentence for people."""
    lost = [entry for entry in receipt.candidates if not entry["kept"]]
    number = len(receipt.candidates)
    if not lost:
        return f"Nothing was left out: {_all(number)} in the prompt." if number else "No source brought a candidate."
    room = [entry for entry in lost if entry["reason"] == "budget"]
    weak = [entry for entry in lost if entry["needs_score"] > 0]
    parts = []
    if room:
        nearest = min(entry["needs_tokens"] for entry in room)
        more = "1 token" if nearest == 1 else f"{nearest:,} tokens"
        parts.append(f"{len(room)} of {number} candidates lacked room; the nearest needed {more} more")
    if weak:
        nearest = min(entry["needs_score"] for entry in weak)
        lacked = f"{nearest:.3f}" if nearest >= 0.0005 else "less than 0.001"
        parts.append(f"{len(weak)} of {number} ranked too low; the nearest lacked {lacked} of a score")
    if others := len(lost) - len(room) - len(weak):
        parts.append(f"{others} of {number} were left out for another reason")
    return f"{'. '.join(parts)}."


def _all(number: int) -> str:
    return "the one candidate is" if number == 1 else f"all {number} candidates are"


def _shown(asked: Asked) -> dict[str, str]:
    """What the form says: filters and order."""
    sort = asked.choice("sort", SORTS, "score")
    order = asked.choice("order", ("asc", "desc"), "desc" if sort in FALLING else "asc")
    filters = {"reason": asked.choice("reason", get_args(Reason))}
    return {**filters, **{name: asked.text(name) for name in ("kind", "slot", "q")}, "sort": sort, "order": order}


def _fits(row: Row, shown: Mapping[str, str]) -> bool:
    if any(shown[name] and row[name] != shown[name] for name in ("reason", "kind", "slot")):
        return False
    text = f"{row['title']} {row['id']} {row['source']} {row['origin']}".lower()
    return all(word in text for word in shown["q"].lower().split())


def _sorted(found: list[Row], sort: str, order: str) -> list[Row]:
    """In order; of equals, the better score first. What lacked nothing of the sort stands last, whichever way."""
    found = sorted(found, key=lambda row: (-row["score"], row["id"], row["slot"]))
    found.sort(key=lambda row: row[sort].lower() if isinstance(row[sort], str) else row[sort], reverse=order == "desc")
    return sorted(found, key=lambda row: not row[sort]) if sort.startswith("needs_") else found


def _with_others(asked: Asked, receipt: Receipt, found: Sequence[Row]) -> list[Row]:
    """The rows, each with the record that it repeats or that overruled it."""
    ids = list(dict.fromkeys(row["detail"] for row in found if row["reason"] in NAMED and row["detail"]))
    with asked.engine.reader(scope_within(receipt, asked.engine.scope)) as reader:
        known = reader.get(ids) if ids else {}
    others = {id: {"id": id, "title": id, "is_record": False} for id in ids}
    for id, record in known.items():
        others[id] = {"id": id, "title": called(record), "is_record": True}
    return [{**row, "other": others.get(row["detail"]) if row["reason"] in NAMED else None} for row in found]


def _counts(found: Iterable[Row], name: str) -> dict[str, int]:
    return dict(Counter(row[name] for row in found).most_common())


def _most(found: Iterable[Row], name: str) -> float:
    return max((row[name] for row in found), default=0)


def _why_not(asked: Asked, receipt: Receipt) -> dict[str, Any] | None:
    """Why a record is not in the context, whether it was a candidate or not."""
    id = asked.text("why_not").strip()
    if not id:
        return None
    try:
        said = asked.engine.why_not(id, receipt.id)
    except (NotFound, InputError) as error:
        return {"id": id, "title": id, "is_record": False, "found": False, "kept": False, "sentence": str(error)}
    with asked.engine.reader(scope_within(receipt, asked.engine.scope)) as reader:
        record = reader.get([said["id"]]).get(said["id"])
    title = called(record) if record else said["id"]
    about = {"id": said["id"], "title": title, "is_record": record is not None, "found": True}
    return {**about, "kept": said["kept"], "sentence": said["sentence"]}


# --- diff ------------------------------------------------------------------------------------------------------------

PICKED = 50
"""Contexts to choose from."""

LISTS = ("added", "withdrawn", "moved", "re_detailed", "changed")


def diff(asked: Asked) -> dict[str, Any]:
    """What changed between two contexts."""
    latest = asked.engine.lines(PICKED)
    before, after = _pair(asked, latest)
    document = {"subject": "Diff", "contexts": _to_choose(latest, before, after), "compared": None}
    if before is None or after is None:
        one = after or before
        return {**document, "from": before and before.id, "to": after and after.id, "only": one and head(one)}
    return {
        **document,
        "from": before.id,
        "to": after.id,
        "only": None,
        "compared": _compared(asked, before, after),
    }


def _pair(asked: Asked, latest: Sequence[Mapping[str, Any]]) -> tuple[Receipt | None, Receipt | None]:
    """The two that are meant: without `from`, the one before `to`; with neither, the two latest."""
    if not latest:
        return None, None
    if asked.text("from") and asked.text("to"):
        return receipt_of(asked, "from"), receipt_of(asked, "to")
    if asked.text("from"):
        return receipt_of(asked, "from"), asked.engine.receipt(latest[0]["id"])
    to = asked.text("to")
    after = receipt_of(asked, "to") if to else asked.engine.receipt(latest[0]["id"])
    return _before(asked.engine, after, same_session=to not in ("", LAST)), after


def _before(engine: Engine, receipt: Receipt, *, same_session: bool) -> Receipt | None:
    """The context before another: of its session, where it has one and that is meant, else of all."""
    request = receipt.document["request"]
    at, session = (request["now"], receipt.id), request["scope"]["session"]
    found = engine.lines(1, at, session) if same_session and session else []
    found = found or engine.lines(1, at)
    return engine.receipt(found[0]["id"]) if found else None


def _to_choose(latest: Sequence[Mapping[str, Any]], *chosen: Receipt | None) -> list[dict[str, Any]]:
    """The latest contexts, and the two that are compared where they are older."""
    known = {each["id"] for each in latest}
    older = {receipt.id: line(receipt) for receipt in chosen if receipt is not None and receipt.id not in known}
    return [
        {
            "id": each["id"],
            "created": each["created"],
            "query": each["query"][:200],
            "session": each["scope"]["session"],
        }
        for each in (*latest, *sorted(older.values(), key=lambda each: -each["now"]))
    ]


def _compared(asked: Asked, before: Receipt, after: Receipt) -> dict[str, Any]:
    """What `engine.diff` says, with what each item is called, and the lines that differ."""
    found = compared(asked.engine, before, after, texts=True)
    named = {**_named(asked, after, found, LISTS[:1] + LISTS[2:]), **_named(asked, before, found, LISTS[1:2])}
    lists = {name: [{**named[entry["id"]], **_steps(entry)} for entry in found[name]] for name in LISTS}
    ends = {"before": before, "after": after}
    budgets = {name: ledger(receipt.document["budget"]) for name, receipt in ends.items()}
    return {
        **{name: head(receipt) for name, receipt in ends.items()},
        "tokens": found["tokens"],
        "same_prefix": found["same_prefix"],
        "counts": {name: len(rows) for name, rows in lists.items()},
        **lists,
        "budgets": budgets,
        "slots": _by_slot(*budgets.values()),
        **_texts(found),
    }


def _named(asked: Asked, receipt: Receipt, found: Mapping[str, Any], lists: Sequence[str]) -> dict[str, Row]:
    """What the entries of some lists are called, and where and how they stand in this context."""
    ids = {entry["id"] for name in lists for entry in found[name]}
    kept = [entry for entry in receipt.candidates if entry["kept"] and entry["id"] in ids]
    names = ("id", "title", "is_record", "kind", "slot", "level", "tokens")
    return {row["id"]: {name: row[name] for name in names} for row in rows(asked.engine, receipt, kept)}


def _steps(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry[name] for name in ("from", "to") if name in entry}


def _by_slot(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Tokens of each slot that either fills, one beside the other."""
    used = [{slot["name"]: slot["used"] for slot in budget["slots"]} for budget in (before, after)]
    return [
        {"name": name, "before": used[0].get(name, 0), "after": used[1].get(name, 0)}
        for name in dict.fromkeys((*used[0], *used[1]))
        if used[0].get(name) or used[1].get(name)
    ]


def _texts(found: Mapping[str, Any]) -> dict[str, Any]:
    """The two prompts, where both can be had as they were sent: how they begin alike, and the lines that differ."""
    if found["unread"]:
        return {"shared_prefix": None, "text": None, "unread": found["unread"]}
    first, second = found["texts"]
    return {"shared_prefix": {**found["shared_prefix"], "of": len(second)}, "text": differing(first, second), "unread": []}


PAGES: tuple[Page, ...] = (
    Page("left-out", "Left out", left_out, "context:read", "What did not enter the latest prompt, and by how much."),
    Page("diff", "Diff", diff, "context:read", "What changed between two contexts."),
)
ACTIONS: tuple[Action, ...] = ()
