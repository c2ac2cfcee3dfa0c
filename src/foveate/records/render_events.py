"""How an event reads: one form for each type, at each level (003's formatters).

Comes in: a record of kind `event`; what it is about lies in `data` (`path`, `command`, `stdout`, ...) or, where a field is
missing, in its text. Goes out: a block, see `lines.py`. The time is the event's own, so that a line never changes.
An event without a type, or with nothing but a text, reads as its text; of messages and errors, the text is the content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from foveate.clock import iso
from foveate.records import render
from foveate.text.format import one_line, pluralize, truncate
from foveate.types import Level, Record

ERROR_LINE = re.compile(r"error|exception|traceback|failed", re.IGNORECASE)
"""What is kept of long output, wherever it stands."""

MAX_TYPE = 32
"""Characters of a type: it is a name, not a text."""

MAX_LINE = 200
"""Characters of one line of output: a minified file is one line."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much of an event is shown: lines of output (first, last, errors between them), characters of the rest."""

    head: int
    tail: int
    errors: int
    chars: int


ROOM: Mapping[Level, Room] = {
    "full": Room(head=15, tail=15, errors=10, chars=600),
    "summary": Room(head=1, tail=3, errors=4, chars=160),
    "micro": Room(head=0, tail=0, errors=0, chars=44),
}
"""The micro line's date takes seven of its twenty tokens; 44 characters are about a dozen more."""

ROLES = ("user", "assistant", "system")
_TYPES_OF_MESSAGE = {name: role for role in ROLES for name in (role, f"{role}_message", f"{role}_prompt")}

Content = Mapping[str, Any]
Form = Callable[[Record, Content, Level], tuple[str, str, str]]
"""What stands before the outcome, what after it, and the output beneath."""


def event(record: Record, level: Level) -> str:
    """The line of an event."""
    sort, content = one_line(record.data.get("type", "")), content_of(record)
    form = _message if role_of(record) else _FORMS.get(sort, _other)
    if not sort or (not content and form not in (_message, _error)):
        return render.plain(record, level)
    lead, rest, output = form(record, content, level)
    at = iso(record.created)
    time = at[:10] if level == "micro" else f"{at[:19]}Z"
    outcome = f" [{record.outcome}]" if record.outcome and sort != "file_read" else ""
    line = f"[{time}] {lead}{outcome}{rest}"
    return render.block(f"{line}\n{_fenced(output)}" if output and level != "micro" else line)


def content_of(record: Record) -> Content:
    """What an event holds beside its type; 003 keeps it in a `content` of its own."""
    own = {name: value for name, value in record.data.items() if name not in ("type", "content", "message_id")}
    content = record.data.get("content")
    return {**content, **own} if isinstance(content, Mapping) else own | ({"content": content} if content else {})


def role_of(record: Record) -> str:
    """Who said it, where the event is a message."""
    sort = str(record.data.get("type", ""))
    role = str(record.data.get("role", "")) if sort == "message" else _TYPES_OF_MESSAGE.get(sort, "")
    return role if role in ROLES else ""


def shortened(text: str, head: int, tail: int, errors: int) -> str:
    """The first and last lines of an output and the errors between them, with a note on what is missing."""
    every = text.strip("\n").splitlines()
    kept = set(range(len(every)))
    if len(every) > head + tail + 1:
        between = [n for n in range(head, len(every) - tail) if ERROR_LINE.search(every[n])]
        kept = {*range(head), *between[:errors], *range(len(every) - tail, len(every))}
    return "\n".join(_with_notes(every, kept))


def _with_notes(every: list[str], kept: set[int]) -> Iterator[str]:
    gap = 0
    for n, line in enumerate(every):
        if n not in kept:
            gap += 1
            continue
        if gap:
            yield _note(gap)
        gap = 0
        yield truncate(line.rstrip(), MAX_LINE)
    if gap:
        yield _note(gap)


def _note(missing: int) -> str:
    return f"... {pluralize(missing, 'line')} left out ..."


def _output(text: Any, level: Level, part: float = 1.0) -> str:
    room = ROOM[level]
    return shortened(str(text), round(room.head * part), round(room.tail * part), room.errors)


def _fenced(output: str) -> str:
    """Output as it came: no line of it can be taken for one of ours."""
    return "```\n" + output.replace("```", "'''") + "\n```"


def _code(text: Any, limit: int) -> str:
    return f"`{truncate(one_line(text).replace('`', chr(39)), limit)}`"


def _words(record: Record, level: Level) -> str:
    words = render.body(record, level)
    return truncate(words, ROOM["micro"].chars) if level == "micro" else words


def _path(record: Record, content: Content, level: Level) -> str:
    path = one_line(content.get("path") or content.get("file_path") or next(iter(record.paths), "") or record.micro)
    limit = ROOM[level].chars
    return path if len(path) <= limit else f"…{path[1 - limit :]}"  # the end of a path says more than its beginning


def _message(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    words = _words(record, level)
    # A fence opens at the beginning of a line, or not at all.
    return role_of(record).capitalize(), (":\n" if words.startswith(("```", "~~~")) else ": ") + words, ""


def _file_read(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    return f"Read: {_path(record, content, level)}", "", ""


def _file_write(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    return f"Wrote: {_path(record, content, level)}", "", ""


def _shell_exec(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    command = content.get("command") or record.micro
    words = " ".join(map(str, command)) if isinstance(command, list) else str(command)
    output = content.get("stdout") or content.get("stderr") or record.text.removeprefix(words.strip())
    return f"Executed: {_code(words, ROOM[level].chars)}", "", _output(output, level)


def _error(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    message = str(content.get("message") or record.text.split("\n")[0])
    stack = content.get("stack") or record.text.removeprefix(message.strip())
    return f"Error: {truncate(one_line(message), ROOM[level].chars)}", "", _output(stack, level, 0.5)


def _other(record: Record, content: Content, level: Level) -> tuple[str, str, str]:
    """Any other type: what was said of it, then its content as JSON."""
    sort, limit = one_line(record.data["type"]), ROOM[level].chars
    words = one_line(_words(record, level))
    said = [] if words == sort else [words]
    if content and level != "micro":
        compact = json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)
        said.append(truncate(compact, limit))
    return truncate(sort, MAX_TYPE), f": {' '.join(said)}" if said else "", ""


_FORMS: Mapping[str, Form] = {
    "file_read": _file_read,
    "file_write": _file_write,
    "shell_exec": _shell_exec,
    "error": _error,
}
