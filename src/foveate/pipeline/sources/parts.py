"""Parts of a stored record as records of their own: the steps of a task, the files of a diff, an issue under its title.

A part's id names where it comes from (`task_01J...#steps.2`), so that a replay can make it again from the same version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from foveate.records.render import title_of
from foveate.text.format import one_line
from foveate.text.summarize import ExtractiveSummarizer
from foveate.types import Record

MARK = "#"
TEXT_PART, DIFF_PART = "text", "diff"
OBJECTIVE, FILES, STEPS = "objective", "files", "steps"

_DIFF_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)


def stored_id(id: str) -> str:
    """Return the id of the stored record that a part belongs to; the id itself if it is not a part."""
    return id.partition(MARK)[0]


def parts_of(record: Record, field: str = "") -> list[Record]:
    """Return the parts of a record: one field of a task, a change file by file, anything else as title and text."""
    if record.kind == "change":
        texts = [code_fence(file, "diff") for file in _DIFF_FILE.split(record.text) if file.strip()]
        return _parts(record, DIFF_PART, texts)
    if not field:
        return _parts(record, TEXT_PART, [titled_text(record)])
    if field == OBJECTIVE:
        return _parts(record, OBJECTIVE, [objective(record)])
    values = record.data.get(field) or ()
    if field == FILES:
        return _parts(record, field, [file_line(file) for file in values])
    if field == STEPS:
        return _parts(record, field, [step_text(number, step) for number, step in enumerate(values, 1)])
    return _parts(record, field, [f"- {one_line(value)}" for value in values])


def part(record: Record, id: str) -> Record | None:
    """Return the part of a record that an id names, or None if this version does not have it."""
    name = id.partition(MARK)[2].rpartition(".")[0]
    field = "" if name in (TEXT_PART, DIFF_PART) else name
    return next((found for found in parts_of(record, field) if found.id == id), None)


def _parts(record: Record, name: str, texts: list[str]) -> list[Record]:
    return [_part(record, f"{record.id}{MARK}{name}.{n}", text) for n, text in enumerate(texts, 1) if text.strip()]


def _part(record: Record, id: str, text: str) -> Record:
    short = ExtractiveSummarizer().shorten(text, "")
    return replace(
        record,
        id=id,
        kind="section",
        text=text,
        summary=short.summary,
        micro=one_line(short.micro),
        data={},
        pinned=False,
        hash=blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest(),
        sketch=b"",
        tokens=None,
    )


# --- how parts read ------------------------------------------------------------------------------------------------


def titled_text(record: Record) -> str:
    """Return a record's title, a blank line and its text."""
    return "\n\n".join(part for part in dict.fromkeys((title_of(record), record.text.strip())) if part)


def objective(task: Record) -> str:
    """Return a task's objective, a blank line and its description."""
    texts = (task.text.strip(), str(task.data.get("description") or "").strip())
    return "\n\n".join(text for text in dict.fromkeys(texts) if text)


def file_line(file: Any) -> str:
    """Return one line with the operation on a file and its path."""
    if not isinstance(file, Mapping):
        return f"- `{_code(file)}`"
    operation = file.get("operation") or file.get("purpose") or file.get("reason")
    path = f"`{_code(file.get('path') or file.get('file') or file)}`"
    return f"- {one_line(operation)}: {path}" if operation else f"- {path}"


def step_text(number: int, step: Any) -> str:
    """Return a step with its number, its code in a fence, and the command to run."""
    if not isinstance(step, Mapping):
        return f"{number}. {one_line(step)}"
    lines = [f"{number}. {one_line(step.get('description') or step.get('text') or '')}".rstrip()]
    if step.get("code"):
        lines.append(code_fence(str(step["code"])))
    if step.get("command"):
        lines.append(f"Run: `{_code(step['command'])}`")
    return "\n".join(lines)


def code_fence(text: str, language: str = "") -> str:
    """Return a text in a fence that is longer than any fence in it."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}{language}\n{text.strip(chr(10))}\n{ticks}"


def _code(text: Any) -> str:
    """Return one line that stays within its backticks."""
    return one_line(text).replace("`", "'")
