"""What became of a record: its stage, its versions, what superseded what, what it is joined to, and who was shown it.

Comes in: a record and an open reader. Goes out: parts of the document of a record's page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from foveate.clock import iso
from foveate.memory.memory import OWN_PROJECT
from foveate.receipts import receipt as receipts
from foveate.records import lifecycle
from foveate.records.links import CONFLICTS_WITH
from foveate.records.make import to_json
from foveate.records.render import called
from foveate.records.supersede import DISPUTED_BY, SUPERSEDED_BY
from foveate.store.protocol import Change, Reader
from foveate.types import Link, Record

USED = 20
"""The latest contexts that showed a record: each is unpacked, for what it says of it."""
JOINED = 60
"""Links that are listed, the heaviest first."""
CHANGES = 50
"""Versions that are told, the newest first."""
FURTHEST = 12
"""Steps of a chain of values, to either side."""
CUT, BEFORE = 300, 60
"""Characters of a value that changed, and how many of them stand before the first that differs."""

SAID = {
    (DISPUTED_BY, False): "disputed by",
    (DISPUTED_BY, True): "disputes",
    (CONFLICTS_WITH, False): "seems to conflict with",
    (CONFLICTS_WITH, True): "seems to conflict with",
}
"""What a link says of the other record, by its name and whether it leads here."""

_NOT_TOLD = {"id", "kind", "version", "updated"}
_FOLLOWS_TEXT = {"summary", "micro"}
_COUNTED = {"uses", "wins", "data.confirmations"}
COUNTING = ("outcome", "trip", "confirm")
"""Verbs that count. Uses are counted at any time and are no change of a record: no other verb made them."""


def row(record: Record) -> dict[str, Any]:
    """A record as a line of a list."""
    return {
        "id": record.id,
        "title": called(record),
        "kind": record.kind,
        "status": record.status,
        "pinned": record.pinned,
        "trust": record.trust,
        "own": record.scope.project == OWN_PROJECT,
    }


def stages(record: Record, now: int, thresholds: lifecycle.Thresholds) -> dict[str, Any]:
    """Its stage among those of its kind, why it is there, what leads on, and what is due."""
    found, due = lifecycle.life(record, now, thresholds), lifecycle.due(record, now, thresholds)
    return {
        "stage": found.stage,
        "stages": list(found.stages),
        "because": found.because,
        "onward": found.onward,
        "due": None if due is None else {"verb": due.verb, "to": due.to, "because": due.why},
    }


# --- what it is joined to --------------------------------------------------------------------------------------------


def chain(reader: Reader, record: Record) -> dict[str, Any]:
    """The values before and after this one, oldest first."""
    earlier, later = (_walked(reader, record.id, back=back) for back in (True, False))
    found = reader.get([*earlier, *later])
    places = [("earlier", id) for id in reversed(earlier)] + [("this", record.id)] + [("later", id) for id in later]
    known = {record.id: record, **found}
    return {
        "records": [_in_chain(known[id], place) for place, id in places if id in known],
        "cut": max(len(earlier), len(later)) >= FURTHEST,
    }


def _walked(reader: Reader, id: str, *, back: bool) -> list[str]:
    """The ids along one kind of link, nearest first; one query for each step."""
    met, frontier = {id: None}, [id]
    for _ in range(FURTHEST):
        links = reader.links(frontier, [SUPERSEDED_BY], back=back)
        frontier = [end for link in links if (end := link.src if back else link.dst) not in met]
        frontier = list(dict.fromkeys(frontier))[:FURTHEST]
        if not frontier:
            break
        met |= dict.fromkeys(frontier)
    return list(met)[1:]


def _in_chain(record: Record, place: str) -> dict[str, Any]:
    ends = None if record.valid_to is None else iso(record.valid_to)
    return {**row(record), "place": place, "version": record.version, "valid_from": iso(record.valid_from), "valid_to": ends}


def joined(reader: Reader, id: str) -> dict[str, Any]:
    """The links of a record, either way, and how many are not listed; disputes stand by themselves."""
    links = [(link, False) for link in reader.links([id])] + [(link, True) for link in reader.links([id], back=True)]
    told = sorted(links, key=lambda pair: -pair[0].weight)[:JOINED]
    disputes = [pair for pair in links if (pair[0].name, pair[1]) in SAID][:FURTHEST]
    found = reader.get([_end(*pair) for pair in (*told, *disputes)])
    rows = [_joined(link, back, found[_end(link, back)]) for link, back in told if _end(link, back) in found]
    against = [
        {"said": SAID[link.name, back], **row(found[_end(link, back)])}
        for link, back in disputes
        if _end(link, back) in found
    ]
    return {"links": rows, "more_links": len(links) - len(told), "disputes": against}


def _end(link: Link, back: bool) -> str:
    return link.src if back else link.dst


def _joined(link: Link, back: bool, other: Record) -> dict[str, Any]:
    return {"name": link.name, "direction": "in" if back else "out", "weight": link.weight, **row(other)}


# --- who was shown it ------------------------------------------------------------------------------------------------


def used(reader: Reader, id: str) -> list[dict[str, Any]]:
    """The latest contexts that showed it: at which level, and what became of it there."""
    return [_shown(stored.created, receipts.unpack(stored.body), id) for stored in reader.receipts(USED, record=id)]


def _shown(created: int, receipt: receipts.Receipt, id: str) -> dict[str, Any]:
    entry = receipt.of(id)  # nothing for an entity that was only named in a relation
    notes = receipt.document.get("notes", {})
    return {
        "context": receipt.id,
        "created": iso(created),
        "query": receipt.document["request"]["query"],
        "slot": entry["slot"] if entry else "",
        "level": entry.get("level", "") if entry else "in a relation",
        "tokens": entry.get("shown_tokens") if entry else None,
        "answered": id in notes.get("used", ()),
        "mark": notes.get("marks", {}).get(id, ""),
    }


def feedback(record: Record, shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was counted of it, and what answers and people made of it in the contexts that showed it."""
    return {
        "uses": record.uses,
        "wins": record.wins,
        "confirmations": int(record.data.get("confirmations", 0)),
        "outcome": record.outcome or "",
        "answers": sum(each["answered"] for each in shown),
        "marks": {mark: n for mark in ("useful", "wrong", "outdated") if (n := sum(e["mark"] == mark for e in shown))},
    }


# --- versions --------------------------------------------------------------------------------------------------------


def history(record: Record, steps: Sequence[Change]) -> dict[str, Any]:
    """Each change, newest first: its verb, its time, and what differs."""
    after = [*(step.before for step in steps[1:]), record]
    told = [_told(step, then or record) for step, then in zip(steps, after, strict=False)]
    if not any(step.version == 1 for step in steps):
        told.insert(0, {"version": 1, "verb": "add", "at": iso(record.created), "changes": []})
    return {"history": told[::-1][:CHANGES], "more_history": max(0, len(told) - CHANGES)}


def _told(step: Change, after: Record) -> dict[str, Any]:
    changes = [] if step.before is None else changed(_flat(step.before), _flat(after))
    if step.verb not in COUNTING:
        changes = [change for change in changes if change["field"] not in _COUNTED]
    return {"version": step.version, "verb": step.verb, "at": iso(step.at), "changes": changes}


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    """The fields that differ, as words; what follows from the text is not told beside it."""
    names = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
    passed_over = _NOT_TOLD | (_FOLLOWS_TEXT if "text" in names else set())
    return [_pair(name, before.get(name), after.get(name)) for name in names if name not in passed_over]


def _pair(name: str, before: Any, after: Any) -> dict[str, str]:
    one, other = _words(before), _words(after)
    same = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start = max(0, same - BEFORE)
    return {"field": name, "before": _cut(one, start), "after": _cut(other, start)}


def _cut(text: str, start: int) -> str:
    part = text[start : start + CUT]
    return ("…" if start and part else "") + part + ("…" if len(text) > start + CUT else "")


def _flat(record: Record) -> dict[str, Any]:
    """A record's fields, those of its data among them."""
    fields = to_json(record)
    data = fields.pop("data", {})
    return {**fields, **{f"data.{name}": value for name, value in data.items()}}


def _words(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)
