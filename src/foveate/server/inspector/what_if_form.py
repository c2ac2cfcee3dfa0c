"""A form of what-if -> a request: what is asked, the profile as it is by itself, and what the form changes in it.

Comes in: the fields as typed and, where it starts from a past context, its receipt: what nobody typed yet is that context's.
Goes out: options for the engine, and the changes as a layer of a profile. It computes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from foveate.agents import made_again
from foveate.clock import iso
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.eval.overrides import together
from foveate.operations.inputs import when
from foveate.receipts.receipt import FORGOTTEN, Receipt
from foveate.receipts.refresh import asked_again
from foveate.server.inspector.page import Asked
from foveate.types import TRUST, Filters, Profile, Request, Slot

TYPED = "typed"
"""The field that says that somebody typed: what is empty then was left empty."""

WEIGHT, OWN = "weight.", "own."
"""How the fields of weights begin, and what each was when the form was drawn."""

TEXTS = (
    "query", "budget", "profile", "frame", "complexity", "session", "task", "half_life", "min_score",
    "kinds", "tags", "since", "until", "min_trust", "exclude",
)  # fmt: skip
"""Fields with one value."""

LONG = 4000
"""Characters of a question that fit into an address; a longer one stays the context's."""

MOST_WEIGHT, MOST_HOURS = 100.0, 1_000_000.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One try."""

    asked: Asked
    engine: Engine
    options: Mapping[str, Any]
    """As the engine takes them, with the overrides that the context brought, and without those of the form."""
    request: Request
    own: Profile
    """The profile as it would be without the form's changes."""
    changes: Mapping[str, Any]
    """What the form changes in the profile, as a layer of one."""

    @property
    def overrides(self) -> dict[str, Any]:
        """All that is set over the profile: what the context brought, and the changes."""
        return together(self.options["overrides"], self.changes)

    @property
    def removed(self) -> list[str]:
        """The slots that the form leaves out."""
        return [slot for slot, values in self.changes.get("slots", {}).items() if values.get("remove")]

    @property
    def everything(self) -> dict[str, Any]:
        """The options with all changes."""
        return {**self.options, "overrides": self.overrides}

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The form as another one carries it on: what says nothing is left out."""
        names = (*TEXTS, "context", "without", "without_code")
        said = [(name, value) for name, value in self.asked.values if name in names]
        weights = [(f"{WEIGHT}{name}", f"{value:g}") for name, value in self.changes.get("weights", {}).items()]
        return [(TYPED, "1"), *said, *weights]


def begun(asked: Asked, receipt: Receipt | None) -> Asked:
    """What is asked, with what a past context was asked wherever nobody typed anything yet."""
    if receipt is None or asked.flag(TYPED):
        return asked
    said = {name for name, _ in asked.values}
    return Asked(asked.caller, [*asked.values, *((name, value) for name, value in _was(receipt) if name not in said)])


def trial(asked: Asked, receipt: Receipt | None) -> Trial:
    """The try that a form means."""
    engine = asked.caller.narrowed(code=not asked.flag("without_code"))
    options = _options(asked, receipt, engine)
    request, own = _alone(engine, options)
    return Trial(asked, engine, options, request, own, _changes(asked, own))


def floored(profile: Profile) -> list[Slot]:
    """The slots that `min_score` is about: those that have a floor, or are searched for. What must be kept has none."""
    return [slot for slot in profile.slots if not slot.keep and (slot.min_score or slot.source == "search")]


def _was(receipt: Receipt) -> Iterator[tuple[str, str]]:
    """A past request, as somebody would have typed it."""
    asked = receipt.document["request"]
    filters, overrides = asked["filters"], asked["overrides"]
    if asked["query"] != FORGOTTEN and len(asked["query"]) <= LONG:
        yield "query", asked["query"]
    for name in ("budget", "profile", "frame", "complexity"):
        yield name, str(asked.get(name) or "")
    for name in ("session", "task"):
        yield name, asked["scope"].get(name) or ""
    for name in ("kinds", "tags", "exclude"):
        yield name, ", ".join(filters[name])
    for name in ("since", "until"):
        yield name, "" if filters[name] is None else iso(filters[name])
    yield "min_trust", "" if filters["min_trust"] == TRUST[0] else filters["min_trust"]
    yield "half_life", str(overrides.get("half_life", ""))
    for feature, weight in overrides.get("weights", {}).items():
        yield f"{WEIGHT}{feature}", str(weight)
    for slot, values in overrides.get("slots", {}).items():
        if values.get("remove"):
            yield "without", slot


def _options(asked: Asked, receipt: Receipt | None, engine: Engine) -> dict[str, Any]:
    """The request as typed. Of a context it keeps what no field is about: counter, code query, given texts, and so on."""
    before: dict[str, Any] = asked_again(receipt, engine.scope) if receipt else {"agent": engine.scope.agent}
    scope = before.get("scope", engine.scope)
    texts = {name: asked.text(name) or None for name in ("profile", "frame", "complexity")}
    return {
        **before,
        **texts,
        "query": asked.text("query") or before.get("query"),
        "budget": asked.number("budget"),
        "scope": replace(scope, session=asked.text("session") or None, task=asked.text("task") or None),
        "filters": _filters(asked, before.get("filters", Filters())),
        "given": made_again(engine, receipt) if receipt else {},
        "overrides": _carried(before.get("overrides", {})),
    }


def _filters(asked: Asked, before: Filters) -> Filters:
    since, until = (when(asked.text(name)) if asked.text(name) else None for name in ("since", "until"))
    kinds, tags, exclude = (_listed(asked.text(name)) for name in ("kinds", "tags", "exclude"))
    trust: Any = asked.choice("min_trust", TRUST, TRUST[0])
    return replace(before, since=since, until=until, kinds=kinds, tags=tags, exclude=exclude, min_trust=trust)


def _listed(text: str) -> tuple[str, ...]:
    parts = (part.strip() for part in re.split(r"[,\n]", text))
    return tuple(dict.fromkeys(part for part in parts if part))


def _carried(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """What a context overrode, without what the form has fields for."""
    slots = {slot: values for slot, values in overrides.get("slots", {}).items() if not values.get("remove")}
    rest = {name: value for name, value in overrides.items() if name not in ("weights", "half_life", "slots")}
    return {**rest, **({"slots": slots} if slots else {})}


def _alone(engine: Engine, options: Mapping[str, Any]) -> tuple[Request, Profile]:
    """The request, and its profile before the form changes it; where nothing is asked yet, for any question."""
    try:
        request, _, profile = engine.looked_at(**options)
    except InputError:
        if options["query"]:
            raise
        request, _, profile = engine.looked_at(**{**options, "query": "?"})
    return request, profile


def _changes(asked: Asked, own: Profile) -> dict[str, Any]:
    """The form's changes to the profile. What stands as it was drawn is no change, nor a slot that is not there."""
    half_life = asked.share("half_life", MOST_HOURS)
    weights, slots = _weights(asked, own), _slots(asked, own)
    return {
        **({"half_life": half_life} if half_life not in (None, own.half_life) else {}),
        **({"weights": weights} if weights else {}),
        **({"slots": slots} if slots else {}),
    }


def _weights(asked: Asked, own: Profile) -> dict[str, float]:
    """Weights that differ in their hundredths: a slider has no finer steps."""
    features = dict.fromkeys(name.removeprefix(WEIGHT) for name, _ in asked.values if name.startswith(WEIGHT))
    found = {}
    for feature in features:
        value, drawn = asked.share(WEIGHT + feature, MOST_WEIGHT) or 0.0, asked.share(OWN + feature, MOST_WEIGHT)
        if f"{value:.2f}" != f"{own.weights.get(feature, 0.0) if drawn is None else drawn:.2f}":
            found[feature] = value
    return found


def _slots(asked: Asked, own: Profile) -> dict[str, dict[str, Any]]:
    without, floor = asked.several("without"), asked.share("min_score")
    removed: dict[str, dict[str, Any]] = {slot.name: {"remove": True} for slot in own.slots if slot.name in without}
    if floor is None:
        return removed
    lifted = [slot for slot in floored(own) if slot.name not in removed and slot.min_score != floor]
    return removed | {slot.name: {"min_score": floor} for slot in lifted}
