"""Lines of text about tasks, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveate.cli.render import Line, cut, pairs, text_line, title, value_text, width
from foveate.clock import iso
from foveate.records.render import part_of_task
from foveate.tasks.task import Task, state_of
from foveate.types import Record

LIST_TITLES = {"acceptance_criteria": "done when", "test_criteria": "tested by", "reads": "read first"}
"""Fields that hold a list of texts, with the title of each list."""

SEPARATE_FIELDS = (*LIST_TITLES, "name", "files", "steps", "files_to_read", "description", "result", "handoff", "state")
"""Fields that have a part of their own, so they are not listed among the others."""


def record_lines(records: Iterable[Record]) -> list[Line]:
    """Return a line for each record: its id, its status if it is a task, and its name or text."""
    lines: list[Line] = []
    for record in records:
        status = state_of(record) if record.kind == "task" else "" if record.status == "active" else record.status
        note = f"  {status}" if status else ""
        text = str(record.data.get("name") or record.micro)
        columns = max(20, width() - len(record.id) - len(note) - 2)
        lines.append([(record.id, "cyan"), (note, "dim"), ("  " + cut(text, columns), "")])
    return lines


def task_lines(task: Task, around: Mapping[str, Record], handoff: Record | None, learned: Sequence[Record]) -> list[Line]:
    """Return a task with its fields, the tasks that it is linked to, its handoff and the records learned from it."""
    return [*_fields(task), *_texts(task.record), *_linked(task, around, handoff, learned)]


def _fields(task: Task) -> list[Line]:
    record = task.record
    fields = [("name", task.name), ("key", record.key), ("tags", ", ".join(record.tags)), ("outcome", record.outcome)]
    others = [(n.replace("_", " "), value_text(v)) for n, v in record.data.items() if n not in SEPARATE_FIELDS]
    times = [("created", iso(record.created)), ("updated", iso(record.updated))]
    head: Line = [(task.id, "cyan"), (f"  {task.status}, version {record.version}", "")]
    return [head, *pairs([*fields, *others, *times])]


def _texts(record: Record) -> list[Line]:
    """Return the parts that are texts and lists: the objective first, the result last."""
    data = record.data
    parts = [("objective", record.text.split("\n")), ("description", str(data.get("description") or "").split("\n"))]
    parts += [(head, [f"- {text}" for text in data.get(name) or ()]) for name, head in LIST_TITLES.items()]
    parts += [
        ("files", [f"- {part_of_task(file)}" for file in data.get("files") or ()]),
        ("steps", [line for n, step in enumerate(data.get("steps") or (), 1) for line in _step(n, step)]),
        ("result", str(data.get("result") or "").split("\n")),
        ("for the next task to read", [f"- {part_of_task(file)}" for file in data.get("files_to_read") or ()]),
    ]
    return [line for head, lines in parts if any(lines) for line in _part(head, lines)]


def _step(number: int, step: Any) -> list[str]:
    fields = step if isinstance(step, Mapping) else {"text": step}
    texts = [line for name in ("text", "code", "command") for line in str(fields.get(name) or "").split("\n") if line]
    return [f"{number}. {line}" if n == 0 else f"   {line}" for n, line in enumerate(texts)]


def _part(head: str, lines: Iterable[str]) -> list[Line]:
    return [[], title(head), *map(text_line, lines)]


def _linked(task: Task, around: Mapping[str, Record], handoff: Record | None, learned: Sequence[Record]) -> list[Line]:
    parts = (("depends on", task.depends_on), ("part of", [task.parent] if task.parent else []), ("parts", task.children))
    lines: list[Line] = []
    for head, ids in parts:
        if ids:
            lines += [[], title(head), *record_lines(around[id] for id in ids if id in around)]
    if handoff is not None:
        number = len(handoff.data.get("problems", ()))
        problems = f"{number} problem{'' if number == 1 else 's'}" if number else "no problem"
        note = f"  read as {handoff.data.get('rung')}, {problems}"
        lines += [[], title("handoff"), [(handoff.id, "cyan"), (note, "")]]
    return [*lines, [], title("learned"), *record_lines(learned)] if learned else lines
