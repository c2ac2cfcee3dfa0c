"""Renders records as text for the model, one function for each kind.

Each text begins with a visible character and ends in a newline, so that token counts of texts add up. No text can imitate a
section's heading. `text/sanitize.py` removes what its author must not imitate. A change of any text must
increase `kinds.RENDERER_VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foveate.text.format import one_line
from foveate.text.markdown import escape_headings
from foveate.text.sanitize import sanitize, strip_invisible
from foveate.types import Level, Record

MAX_DISPLAY_NAME_CHARS = 80
"""Length of the beginning of a text that is shown as its name."""


def block(text: str, mark: str = "- ") -> str:
    """Return a list item that ends in a newline. Further lines are indented, and none can pass for a heading."""
    first, *rest = strip_invisible(text).strip().split("\n")
    lines = escape_headings([mark + first, *(f"  {line}" if line else "" for line in rest)])
    return "\n".join(map(str.rstrip, lines)) + "\n"


def body(record: Record, level: Level) -> str:
    """Return the record's own words at a level."""
    return record.text if level == "full" else record.summary if level == "summary" else record.micro


def plain_text(record: Record, level: Level) -> str:
    return block(body(record, level))


def prose(record: Record, level: Level) -> str:
    return _flush(body(record, level))


def code(record: Record, level: Level) -> str:
    """Return a piece of code unchanged, and a reference to code as a list item."""
    text = body(record, level)
    return _flush(text) if "\n```" in text else block(text)


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


def with_title(record: Record, level: Level) -> str:
    """Return a heading with the text below if the record has a title; at the smallest level, one list item."""
    title = title_of(record)
    if not title:
        return block(body(record, level))
    if level == "micro":
        return block(f"{title}: {record.micro}")
    return _with_heading(title, _flush(body(record, level)))


def procedure(record: Record, level: Level) -> str:
    """Return core patterns, words and steps. The smallest level is the chain of the steps."""
    title, data = title_of(record), record.data
    chain = " → ".join(part_of_task(step).split("\n")[0] for step in data.get("steps") or ())
    if level == "micro":
        words = chain or record.micro
        return block(f"{title}: {words}" if title else words)
    words = body(record, level)
    parts = ["Core patterns:\n" + "".join(block(one_line(part)) for part in data["core"])] if data.get("core") else []
    parts += [_flush(words)] if one_line(words) != title or not (parts or chain) else []
    parts += [f"Steps: {chain}\n"] if chain and level == "full" else []
    return _with_heading(title, "\n".join(parts)) if title else block("\n".join(parts))


def episode(record: Record, level: Level) -> str:
    """Return title, duration, participants and outcome. Without a title, the words come first."""
    data, title = record.data, title_of(record)
    people = ", ".join(one_line(name) for name in data.get("participants") or ())
    facts = ", ".join(part for part in (one_line(data.get("duration") or ""), f"with {people}" if people else "") if part)
    details = f" ({facts})" if facts else ""
    if level == "full":
        outcome = f"\nOutcome: {one_line(data['result'])}" if data.get("result") else ""
        return block((f"{title}{details}\n{record.text}" if title else record.text + details) + outcome)
    if title:
        return block(f"{title}{details} — {one_line(data.get('result') or body(record, level))}")
    outcome = f" — {one_line(data['result'])}" if data.get("result") else ""
    return block(f"{body(record, level)}{details}{outcome}")


def title_of(record: Record) -> str:
    """Return the name or title of a record on one line, or an empty text."""
    return one_line(record.data.get("name") or record.data.get("title") or "")


def display_name(record: Record) -> str:
    """Return a name of a record for people: its title, its shortest text, or the beginning of its text."""
    return title_of(record) or record.micro or one_line(record.text[:MAX_DISPLAY_NAME_CHARS])


def _with_heading(title: str, text: str) -> str:
    """Return a text below a heading of level four, which is below every section's heading."""
    return f"#### {title}\n{text}"


def _flush(text: str) -> str:
    """Return a text without indentation, with its headings escaped."""
    lines = escape_headings(strip_invisible(text).strip().split("\n"))
    return "\n".join(map(str.rstrip, lines)) + "\n"


def pattern(record: Record, level: Level) -> str:
    location = record.data.get("location")
    words = " ".join(body(record, level).split())
    return block(f"**{words}**" + (f" (see: {location})" if location else ""))


def gotcha(record: Record, level: Level) -> str:
    workaround = record.data.get("workaround") if level != "micro" else None
    line = f"⚠️ **{record.data.get('severity', 'medium')}**: {body(record, level)}"
    return block(f"{line} — {one_line(workaround)}" if workaround else line)


def entity(record: Record, level: Level) -> str:
    type = record.data.get("type", "entity")
    name = record.data.get("name", record.micro)
    properties = record.data.get("properties") or {}
    if level == "micro" or not properties:
        text = "" if record.text == name else f" — {body(record, level)}"
        return block(f"**{type}**: {name}{text if level != 'micro' else ''}")
    return block(f"**{type}**: {name} ({', '.join(f'{k}: {v}' for k, v in properties.items())})")


def relation(record: Record, level: Level) -> str:
    """Return 003's `source --[type]--> target` by names, always on one line."""
    source, type, target = (one_line(record.data[part]) for part in ("source", "type", "target"))
    return block(_escape_fence(f"{source} --[{type}]--> {target}"))


def _escape_fence(line: str) -> str:
    """Return a line that cannot open a code fence."""
    return line.replace("```", "'''").replace("~~~", "~")


def component(record: Record, level: Level) -> str:
    """Return a row of the table of code references."""
    notes = "" if level == "micro" or record.text == record.data["component"] else body(record, level)
    location = str(record.data["location"]).replace("`", "'")
    return f"| `{_cell(location)}` | {_cell(record.data['component'])} | {_cell(notes)} |\n"


def _cell(text: Any) -> str:
    """Return a text that cannot break out of its table cell."""
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|")


def question(record: Record, level: Level) -> str:
    line = f"**{one_line(body(record, level))}**"
    if level != "micro":
        for label in ("context", "recommendation"):
            if record.data.get(label):
                line += f"\n- {label.capitalize()}: {one_line(record.data[label])}"
    return block(line)


def task(record: Record, level: Level) -> str:
    """Return what is to be done, or the result once work has begun. The result has the trust of an agent."""
    line = _task(record, level)
    return line if record.data.get("state", "open") in ("open", "active") else sanitize(line, "agent")


def _task(record: Record, level: Level) -> str:
    data, name = record.data, title_of(record)
    state = str(data.get("state", "open"))
    is_stuck = state in ("blocked", "failed")
    badge = state if state != "completed" else "" if record.outcome in ("success", None) else str(record.outcome)
    if level == "micro":
        words = f"{name}: {record.micro}" if name and name != record.micro else record.micro
        return block(f"{words} [{badge}]" if badge else words)
    if state == "completed":
        result = str(data.get("result") or record.text)
        outcome = [f"Outcome: {badge}\n"] if badge else []
        files = _titled_list("Files to read", data.get("files_to_read"))
        parts = [result if level == "full" else record.summary, *outcome, *files]
    else:
        parts = [body(record, level)]
        parts += [f"{state.capitalize()}: {one_line(data['reason'])}\n"] if is_stuck and data.get("reason") else []
        parts += _specification(data) if level == "full" else []
    title = name or record.micro
    text = [] if one_line(parts[0]) == title else [_flush(parts[0])]
    return _with_heading(title, "\n".join([*text, *parts[1:]]))


def _specification(data: Mapping[str, Any]) -> list[str]:
    """Return the other parts of a task's specification."""
    facts = [
        f"{label}: {one_line(data[name])}"
        for name, label in (("type", "Type"), ("complexity", "Complexity"), ("estimated_time", "Estimated time"))
        if data.get(name)
    ]
    return [
        *([_flush(str(data["description"]))] if data.get("description") else []),
        *([", ".join(facts) + "\n"] if facts else []),
        *_titled_list("Acceptance criteria", data.get("acceptance_criteria")),
        *_titled_list("Test criteria", data.get("test_criteria")),
        *_titled_list("Files", data.get("files")),
        *_titled_list("Steps", data.get("steps")),
        *_titled_list("Read first", [{"path": path} for path in data.get("reads") or ()]),
    ]


def _titled_list(title: str, parts: Any) -> list[str]:
    """Return a titled list of texts, files (`path`: reason) or steps, or nothing if it would be empty."""
    if not parts:
        return []
    parts = parts if isinstance(parts, list | tuple) else [parts]
    return [f"**{title}:**\n" + "".join(block(part_of_task(part)) for part in parts)]


def part_of_task(part: Any) -> str:
    """Return a file, a step or a criterion of a task as text."""
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
