"""How a record reads: one line for each kind and level.

A line is a *block*: it begins with a visible character and owns its trailing newline, so that token counts of lines add
up. No line may pass for a section's heading, whatever the record says; what else it must not pass for depends on its
author and is `sanitize.py`'s. `kinds.RENDERER_VERSION` is raised when one changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.text.format import one_line
from foveate.text.markdown import escape_headings
from foveate.text.sanitize import sanitize, strip_invisible
from foveate.types import Level, Record

CALLED = 80
"""Characters of a text that stand for a name."""


def block(text: str, mark: str = "- ") -> str:
    """Return a list item that ends in a newline. Further lines are indented, and none can pass for a heading."""
    first, *rest = strip_invisible(text).strip().split("\n")
    lines = escape_headings([mark + first, *(f"  {line}" if line else "" for line in rest)])
    return "\n".join(map(str.rstrip, lines)) + "\n"


def body(record: Record, level: Level) -> str:
    """The record's own words at a level."""
    return record.text if level == "full" else record.summary if level == "summary" else record.micro


def plain(record: Record, level: Level) -> str:
    return block(body(record, level))


def prose(record: Record, level: Level) -> str:
    return _flush(body(record, level))


def code(record: Record, level: Level) -> str:
    """A piece of code stands as it is; what only points to it is a list item."""
    said = body(record, level)
    return _flush(said) if "\n```" in said else block(said)


def decision(record: Record, level: Level) -> str:
    badge = [record.outcome] if record.outcome else []
    if record.confidence < 1.0:
        badge.append(f"{record.confidence:.2f}")
    line = body(record, level) + (f" [{', '.join(badge)}]" if badge else "")
    rationale = record.data.get("rationale")
    if rationale and level != "micro":
        line += f" — {rationale}"
    if record.data.get("result") and level != "micro":
        line += f"\nOutcome: {one_line(record.data['result'])}"
    rejected = record.data.get("alternatives")
    if rejected and level == "full":
        line += f"\nInstead of: {'; '.join(rejected)}"
    return block(line)


def censor(record: Record, level: Level) -> str:
    action = str(record.data.get("action", "warn")).upper()
    reason = record.data.get("reason")
    line = f"**{action}:** {body(record, level)}"
    return block(f"{line} — {reason}" if reason and level != "micro" else line)


def titled(record: Record, level: Level) -> str:
    """A heading of its own with the text beneath, where there is a title; one bullet at the smallest level."""
    title = title_of(record)
    if not title:
        return block(body(record, level))
    if level == "micro":
        return block(f"{title}: {record.micro}")
    return _under(title, _flush(body(record, level)))


def procedure(record: Record, level: Level) -> str:
    """Its core patterns first, then its words, then its steps; the smallest level is the chain of its steps."""
    title, data = title_of(record), record.data
    chain = " → ".join(part_of_task(step).split("\n")[0] for step in data.get("steps") or ())
    if level == "micro":
        words = chain or record.micro
        return block(f"{title}: {words}" if title else words)
    words = body(record, level)
    parts = ["Core patterns:\n" + "".join(block(one_line(part)) for part in data["core"])] if data.get("core") else []
    parts += [_flush(words)] if one_line(words) != title or not (parts or chain) else []
    parts += [f"Steps: {chain}\n"] if chain and level == "full" else []
    return _under(title, "\n".join(parts)) if title else block("\n".join(parts))


def episode(record: Record, level: Level) -> str:
    """Title, duration, with whom, what came of it; where there is no title, its words and then the rest."""
    data, title = record.data, title_of(record)
    people = ", ".join(one_line(name) for name in data.get("participants") or ())
    facts = ", ".join(part for part in (one_line(data.get("duration") or ""), f"with {people}" if people else "") if part)
    beside = f" ({facts})" if facts else ""
    if level == "full":
        came = f"\nOutcome: {one_line(data['result'])}" if data.get("result") else ""
        return block((f"{title}{beside}\n{record.text}" if title else record.text + beside) + came)
    if title:
        return block(f"{title}{beside} — {one_line(data.get('result') or body(record, level))}")
    came = f" — {one_line(data['result'])}" if data.get("result") else ""
    return block(f"{body(record, level)}{beside}{came}")


def title_of(record: Record) -> str:
    """The name under which a record goes, on one line."""
    return one_line(record.data.get("name") or record.data.get("title") or "")


def called(record: Record) -> str:
    """What a record is called, for people: its title, else its shortest line, else how it begins."""
    return title_of(record) or record.micro or one_line(record.text[:CALLED])


def _under(title: str, text: str) -> str:
    """Level four: below any section's heading, whatever that section's level is."""
    return f"#### {title}\n{text}"


def _flush(text: str) -> str:
    """Lines at the margin."""
    lines = escape_headings(strip_invisible(text).strip().split("\n"))
    return "\n".join(map(str.rstrip, lines)) + "\n"


def pattern(record: Record, level: Level) -> str:
    location = record.data.get("location")
    words = " ".join(body(record, level).split())
    return block(f"**{words}**" + (f" (see: {location})" if location else ""))


def gotcha(record: Record, level: Level) -> str:
    around = record.data.get("workaround") if level != "micro" else None
    line = f"⚠️ **{record.data.get('severity', 'medium')}**: {body(record, level)}"
    return block(f"{line} — {one_line(around)}" if around else line)


def entity(record: Record, level: Level) -> str:
    sort = record.data.get("type", "entity")
    name = record.data.get("name", record.micro)
    properties = record.data.get("properties") or {}
    if level == "micro" or not properties:
        text = "" if record.text == name else f" — {body(record, level)}"
        return block(f"**{sort}**: {name}{text if level != 'micro' else ''}")
    return block(f"**{sort}**: {name} ({', '.join(f'{k}: {v}' for k, v in properties.items())})")


def relation(record: Record, level: Level) -> str:
    """003's `source --[type]--> target`, by names and on one line, whatever the names hold."""
    source, sort, target = (one_line(record.data[part]) for part in ("source", "type", "target"))
    return block(_unfenced(f"{source} --[{sort}]--> {target}"))


def _unfenced(line: str) -> str:
    """A line that opens no fence."""
    return line.replace("```", "'''").replace("~~~", "~")


def component(record: Record, level: Level) -> str:
    """A row of the table of code references."""
    notes = "" if level == "micro" or record.text == record.data["component"] else body(record, level)
    location = str(record.data["location"]).replace("`", "'")
    return f"| `{_cell(location)}` | {_cell(record.data['component'])} | {_cell(notes)} |\n"


def _cell(text: Any) -> str:
    """Text that stays within its cell."""
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|")


def question(record: Record, level: Level) -> str:
    line = f"**{one_line(body(record, level))}**"
    if level != "micro":
        for label in ("context", "recommendation"):
            if record.data.get(label):
                line += f"\n- {label.capitalize()}: {one_line(record.data[label])}"
    return block(line)


def task(record: Record, level: Level) -> str:
    """What is to be done or, once somebody was at it, what came of it: that is an agent's word, whoever set the task."""
    line = _task(record, level)
    return line if record.data.get("state", "open") in ("open", "active") else sanitize(line, "agent")


def _task(record: Record, level: Level) -> str:
    data, name = record.data, title_of(record)
    state = str(data.get("state", "open"))
    stuck = state in ("blocked", "failed")
    badge = state if state != "completed" else "" if record.outcome in ("success", None) else str(record.outcome)
    if level == "micro":
        words = f"{name}: {record.micro}" if name and name != record.micro else record.micro
        return block(f"{words} [{badge}]" if badge else words)
    if state == "completed":
        result = str(data.get("result") or record.text)
        marked = [f"Outcome: {badge}\n"] if badge else []
        files = _listed("Files to read", data.get("files_to_read"))
        parts = [result if level == "full" else record.summary, *marked, *files]
    else:
        parts = [body(record, level)]
        parts += [f"{state.capitalize()}: {one_line(data['reason'])}\n"] if stuck and data.get("reason") else []
        parts += _specified(data) if level == "full" else []
    title = name or record.micro
    said = [] if one_line(parts[0]) == title else [_flush(parts[0])]
    return _under(title, "\n".join([*said, *parts[1:]]))


def _specified(data: Mapping[str, Any]) -> list[str]:
    """The rest of a task's specification, part by part."""
    facts = [
        f"{label}: {one_line(data[name])}"
        for name, label in (("type", "Type"), ("complexity", "Complexity"), ("estimated_time", "Estimated time"))
        if data.get(name)
    ]
    return [
        *([_flush(str(data["description"]))] if data.get("description") else []),
        *([", ".join(facts) + "\n"] if facts else []),
        *_listed("Acceptance criteria", data.get("acceptance_criteria")),
        *_listed("Test criteria", data.get("test_criteria")),
        *_listed("Files", data.get("files")),
        *_listed("Steps", data.get("steps")),
        *_listed("Read first", [{"path": path} for path in data.get("reads") or ()]),
    ]


def _listed(title: str, parts: Any) -> list[str]:
    """A titled list of texts, files (`path`: why) or steps; nothing where there are none."""
    if not parts:
        return []
    parts = parts if isinstance(parts, list | tuple) else [parts]
    return [f"**{title}:**\n" + "".join(block(part_of_task(part)) for part in parts)]


def part_of_task(part: Any) -> str:
    """A file, a step or a criterion of a task, in words."""
    if not isinstance(part, Mapping):
        return one_line(part)
    path = part.get("path") or part.get("file")
    if path:
        why = part.get("reason") or part.get("purpose") or part.get("operation")
        return f"`{one_line(path).replace('`', chr(39))}`" + (f": {one_line(why)}" if why else "")
    line = one_line(part.get("text", ""))
    if part.get("command"):
        line += f"\n`{one_line(part['command'])}`"
    if part.get("code"):
        line += f"\n```\n{str(part['code']).strip().replace('```', chr(39) * 3)}\n```"
    return line.strip() or one_line(part)
