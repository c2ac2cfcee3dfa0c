"""A task as `task show` gives it: its fields, the tasks around it, and what came of it, as lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from foveate.cli.render import Line, pairs, plain, plainly, title
from foveate.cli.task_common import brief
from foveate.records.render import part_of_task

if TYPE_CHECKING:
    from foveate.tasks.task import Task
    from foveate.types import Record

LISTED = {"acceptance_criteria": "done when", "test_criteria": "tested by", "reads": "read first"}
"""Fields that hold a list of texts, and the line above it."""
APART = (*LISTED, "name", "files", "steps", "files_to_read", "description", "result", "handoff")
"""Fields that stand in a part of their own, and not among the others."""


def lines(task: Task, around: Mapping[str, Record], handoff: Record | None, learned: list[Record]) -> list[Line]:
    return [*_fields(task), *_texts(task.record), *_linked(task, around, handoff, learned)]


def _fields(task: Task) -> list[Line]:
    from foveate.clock import iso

    record = task.record
    fields = [("name", task.name), ("key", record.key), ("tags", ", ".join(record.tags)), ("outcome", record.outcome)]
    others = [(n.replace("_", " "), plainly(v)) for n, v in record.data.items() if n not in APART and n != "state"]
    times = [("created", iso(record.created)), ("updated", iso(record.updated))]
    head: Line = [(task.id, "cyan"), (f"  {task.status}, version {record.version}", "")]
    return [head, *pairs([*fields, *others, *times])]


def _texts(record: Record) -> list[Line]:
    """The parts that are texts: the objective first, the result last."""
    data = record.data
    parts = [("objective", record.text.split("\n")), ("description", str(data.get("description") or "").split("\n"))]
    parts += [(head, [f"- {text}" for text in data.get(name) or ()]) for name, head in LISTED.items()]
    parts.append(("files", [f"- {part_of_task(file)}" for file in data.get("files") or ()]))
    parts.append(("steps", [line for n, step in enumerate(data.get("steps") or (), 1) for line in _step(n, step)]))
    parts.append(("result", str(data.get("result") or "").split("\n")))
    files = [f"- {part_of_task(file)}" for file in data.get("files_to_read") or ()]
    parts.append(("for the next task to read", files))
    return [line for head, lines in parts if any(lines) for line in _part(head, lines)]


def _step(number: int, step: Any) -> list[str]:
    fields = step if isinstance(step, Mapping) else {"text": step}
    texts = [line for name in ("text", "code", "command") for line in str(fields.get(name) or "").split("\n") if line]
    return [f"{number}. {line}" if n == 0 else f"   {line}" for n, line in enumerate(texts)]


def _part(head: str, lines: Iterable[str]) -> list[Line]:
    return [[], title(head), *map(plain, lines)]


def _linked(task: Task, around: Mapping[str, Record], handoff: Record | None, learned: list[Record]) -> list[Line]:
    parts = (("depends on", task.depends_on), ("part of", [task.parent] if task.parent else []), ("parts", task.children))
    lines: list[Line] = []
    for head, ids in parts:
        if ids:
            lines += [[], title(head), *brief(around[id] for id in ids if id in around)]
    if handoff is not None:
        number = len(handoff.data.get("problems", ()))
        problems = f"{number} problem{'' if number == 1 else 's'}" if number else "no problem"
        note = f"  read as {handoff.data.get('rung')}, {problems}"
        lines += [[], title("handoff"), [(handoff.id, "cyan"), (note, "")]]
    return [*lines, [], title("learned"), *brief(learned)] if learned else lines
