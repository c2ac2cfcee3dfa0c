"""Kinds: one row for each sort of record. Adding a sort is adding a row.

A row says under which heading records of the kind stand, which fields `data` may hold, how a record reads at each level,
on which shelf of the index it lies and how it lives. A line is a *block*: it begins with a visible character and owns
its trailing newline, so that token counts of lines add up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from foveate.errors import InputError, near
from foveate.types import Level, Record

RENDERER = 1
"""Raise it when any line below changes: stores then count their lines again by themselves."""

Line = Callable[[Record, Level], str]
OUTCOMES = ("success", "partial", "failure", "pending")
SEVERITIES = {"low": 0.3, "medium": 0.5, "high": 0.7, "critical": 0.9}
"""How much a gotcha of each severity matters: its salience, unless the caller gives one."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind's `data`."""

    type: type | tuple[type, ...]
    required: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of the table below."""

    name: str
    heading: str
    line: Line
    fields: Mapping[str, Field] = field(default_factory=dict)
    shelf: Literal["knowledge", "events"] = "knowledge"
    private: bool = False
    """Session and task are walls for it: working notes and raw tool output stay where they were made."""
    rule: bool = False
    """Chosen by scope, never by similarity; only a person's word may become one."""
    open: bool = False
    """`data` may hold any further fields."""
    keyed: bool = False
    """(subject, attribute) names one value; a new one supersedes the old."""
    append_only: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(name for name, rule in self.fields.items() if rule.required)


def block(text: str, mark: str = "- ") -> str:
    """A list item that owns its newline; further lines are indented, so that they cannot pass for headings."""
    body = text.strip()
    if "\n" in body:
        body = "\n".join(
            "  " + line.rstrip() if n and line.strip() else line.rstrip() for n, line in enumerate(body.split("\n"))
        )
    return f"{mark}{body}\n"


def body(record: Record, level: Level) -> str:
    """The record's own words at a level."""
    return record.text if level == "full" else record.summary if level == "summary" else record.micro


def _plain(record: Record, level: Level) -> str:
    return block(body(record, level))


def _prose(record: Record, level: Level) -> str:
    return _flush(body(record, level))


def _decision(record: Record, level: Level) -> str:
    badge = [record.outcome] if record.outcome else []
    if record.confidence < 1.0:
        badge.append(f"{record.confidence:.2f}")
    line = body(record, level) + (f" [{', '.join(badge)}]" if badge else "")
    rationale = record.data.get("rationale")
    if rationale and level != "micro":
        line += f" — {rationale}"
    rejected = record.data.get("alternatives")
    if rejected and level == "full":
        line += f"\nInstead of: {'; '.join(rejected)}"
    return block(line)


def _censor(record: Record, level: Level) -> str:
    action = str(record.data.get("action", "warn")).upper()
    reason = record.data.get("reason")
    line = f"**{action}:** {body(record, level)}"
    return block(f"{line} — {reason}" if reason and level != "micro" else line)


def _titled(record: Record, level: Level) -> str:
    """A heading of its own with the text beneath, where there is a title; one bullet at the smallest level."""
    title = record.data.get("name") or record.data.get("title")
    if not title:
        return block(body(record, level))
    if level == "micro":
        return block(f"{title}: {record.micro}")
    return f"### {' '.join(str(title).split())}\n{_flush(body(record, level))}"


def _flush(text: str) -> str:
    """Lines at the margin: none may pass for a heading."""
    lines = (line.rstrip() for line in text.strip().split("\n"))
    return "\n".join("\\" + line if line.lstrip().startswith("#") else line for line in lines) + "\n"


def _pattern(record: Record, level: Level) -> str:
    location = record.data.get("location")
    words = " ".join(body(record, level).split())
    return block(f"**{words}**" + (f" (see: {location})" if location else ""))


def _gotcha(record: Record, level: Level) -> str:
    return block(f"⚠️ **{record.data.get('severity', 'medium')}**: {body(record, level)}")


def _entity(record: Record, level: Level) -> str:
    sort = record.data.get("type", "entity")
    name = record.data.get("name", record.micro)
    properties = record.data.get("properties") or {}
    if level == "micro" or not properties:
        text = "" if record.text == name else f" — {body(record, level)}"
        return block(f"**{sort}**: {name}{text if level != 'micro' else ''}")
    return block(f"**{sort}**: {name} ({', '.join(f'{k}: {v}' for k, v in properties.items())})")


def _component(record: Record, level: Level) -> str:
    notes = "" if record.text == record.data["component"] else f" — {body(record, level)}"
    return block(f"`{record.data['location']}` {record.data['component']}{notes if level != 'micro' else ''}")


COUNTED = {"confirmations": Field(int)}
"""What memory counts by itself, in the data of any kind."""

_TITLED = {"name": Field(str), "title": Field(str)}

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("identity", "Identity", _prose, rule=True),
        Kind(
            "censor",
            "Active Constraints",
            _censor,
            {"action": Field(str, choices=("warn", "block")), "reason": Field(str)},
            rule=True,
        ),
        Kind("instruction", "Standing Instructions", _plain, rule=True),
        Kind(
            "decision",
            "Relevant Past Decisions",
            _decision,
            {"rationale": Field(str), "alternatives": Field(list)},
        ),
        Kind("fact", "Known Information", _plain, keyed=True),
        Kind("episode", "Past Experience", _plain, {"participants": Field(list), "duration": Field(str)}),
        Kind("procedure", "Procedures", _titled, {"name": Field(str)}),
        Kind("pattern", "Patterns to Follow", _pattern, {"location": Field(str), "applies_to": Field(list)}),
        Kind("gotcha", "Warnings", _gotcha, {"severity": Field(str, choices=tuple(SEVERITIES))}),
        Kind(
            "entity",
            "Known Entities",
            _entity,
            {"name": Field(str), "type": Field(str), "aliases": Field(list), "properties": Field(dict)},
        ),
        Kind("event", "Recent Activity", _plain, {"type": Field(str)}, shelf="events", open=True, append_only=True),
        Kind("task", "Tasks", _titled, _TITLED, open=True),
        Kind(
            "component",
            "Code References",
            _component,
            {"component": Field(str, required=True), "location": Field(str, required=True)},
        ),
        Kind("issue", "Issue", _titled, _TITLED),
        Kind("design", "Design", _titled, _TITLED),
        Kind("change", "Change", _titled, _TITLED),
        Kind("note", "Notes", _titled, open=True),
        Kind("scratch", "Working Notes", _plain, private=True, open=True),
    )
}


def kind_of(name: str) -> Kind:
    """The row of that name, or an error that names the nearest one."""
    try:
        return KINDS[name]
    except KeyError:
        raise InputError(f"There is no kind {name!r}.{near(name, KINDS)}") from None


def register(kind: Kind) -> None:
    """Add a kind of the user's own; the shipped ones cannot be replaced."""
    if kind.name in KINDS and KINDS[kind.name] is not kind:
        raise InputError(f"Kind {kind.name!r} exists already; choose another name.")
    KINDS[kind.name] = kind


def problems_in(kind: Kind, data: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a record's `data`, as sentences."""
    found = []
    for name, value in data.items():
        rule = kind.fields.get(name) or COUNTED.get(name)
        if rule is None:
            if not kind.open:
                found.append(f"Kind {kind.name!r} has no field {name!r}.{near(name, kind.fields)}")
        elif not isinstance(value, rule.type):
            wanted = rule.type.__name__ if isinstance(rule.type, type) else "/".join(t.__name__ for t in rule.type)
            found.append(f"{kind.name}.{name} must be {wanted}, not {value!r}.")
        elif rule.choices and value not in rule.choices:
            found.append(f"{kind.name}.{name} must be one of {', '.join(rule.choices)}, not {value!r}.")
    found += [
        f"Kind {kind.name!r} needs {name!r}." for name, rule in kind.fields.items() if rule.required and name not in data
    ]
    return found
