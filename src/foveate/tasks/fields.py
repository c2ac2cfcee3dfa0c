"""Checks the fields of a task that callers pass, and turns them into what its record stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foveate.errors import InputError, NotFound, near
from foveate.records import make
from foveate.store.protocol import Reader
from foveate.tasks.task import lookup
from foveate.text.format import one_line

OPERATIONS = ("create", "modify", "delete", "read")
"""Operations of a task on a file."""

STEP_FIELDS = ("text", "code", "command")

_COPIED_FIELDS = ("description", "type", "complexity", "estimated_time")


def record_values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a task as values of its record. Links and the objective are not among them."""
    values: dict[str, Any] = {name: fields[name] for name in _COPIED_FIELDS if name in fields}
    for name in ("acceptance_criteria", "test_criteria"):
        if name in fields:
            values[name] = _texts(fields[name], name)
    if "files" in fields:
        values["files"] = [_file(file) for file in _as_list(fields["files"], "files")]
    if "steps" in fields:
        values["steps"] = [_step(step) for step in _as_list(fields["steps"], "steps")]
    if "tags" in fields:
        values["tags"] = _texts(fields["tags"], "tags")
    return values


def title(name: object) -> str:
    """Return the name of a task as one line."""
    text = one_line(name) if isinstance(name, str) else ""
    if not text:
        raise InputError("A task needs a name; the other fields can be empty.")
    return text


def dependencies(reader: Reader, depends_on: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split what a task depends on into ids of tasks and paths of files to read."""
    tasks: list[str] = []
    paths: list[str] = []
    for entry in dict.fromkeys(_as_list(depends_on, "depends_on")):
        record = lookup(reader, entry)
        if record is not None and record.kind == "task":
            tasks.append(record.id)
        elif record is not None:
            raise InputError(f"{entry!r} is a {record.kind}; a task depends on tasks and on files.")
        elif isinstance(entry, str) and ("/" in entry or make.paths_in(entry)):
            paths.append(entry)
        else:
            raise NotFound(
                f"No task {entry!r} to depend on, and it does not look like a path. Add that task first; for a file in the "
                f"project's root, write './{entry}'."
            )
    return tasks, paths


def paths_of(values: Mapping[str, Any], reads: Iterable[str]) -> list[str]:
    """Return the paths of the files that a task touches or reads."""
    return list(dict.fromkeys([*(file["path"] for file in values.get("files", ())), *reads]))


def reason_text(reason: object) -> str:
    """Return the reason why a task is blocked or failed."""
    if not isinstance(reason, str) or not reason.strip():
        raise InputError("The reason is empty; say why the task cannot go on.")
    return reason.strip()


def _as_list(value: Any, name: str) -> list[Any]:
    """Return one thing or several as a list."""
    if not isinstance(value, Iterable):
        raise InputError(f"{name} must be a text or a list, got {value!r}.")
    return [value] if isinstance(value, str | Mapping) else list(value)


def _texts(value: Any, name: str) -> list[str]:
    parts = _as_list(value, name)
    wrong = next((part for part in parts if not isinstance(part, str)), None)
    if wrong is not None:
        raise InputError(f"{name} must be texts, got {wrong!r}.")
    return [part.strip() for part in parts if part.strip()]


def _file(value: Any) -> dict[str, str]:
    """Return `path`, `path:operation` or a mapping of both as a mapping."""
    if isinstance(value, str):
        path, _, operation = value.rpartition(":")
        file = {"path": path, "operation": operation} if path and operation.isalpha() else {"path": value}
    elif isinstance(value, Mapping):
        file = {str(name): one_line(part) for name, part in value.items()}
    else:
        raise InputError(f"A file is a path or a mapping with a path, got {value!r}.")
    if not file.get("path", "").strip():
        raise InputError(f"A file needs a path, got {value!r}.")
    file.setdefault("operation", "modify")
    if file["operation"] not in OPERATIONS:
        raise InputError(f"Unknown file operation {file['operation']!r}.{near(file['operation'], OPERATIONS)}")
    return file


def _step(value: Any) -> dict[str, Any]:
    """Return a step as a mapping: `text`, and `code` or `command`."""
    if not isinstance(value, str | Mapping):
        raise InputError(f"A step is a text or a mapping with a text, got {value!r}.")
    step = {"text": value} if isinstance(value, str) else dict(value)
    unknown = next((name for name in step if name not in STEP_FIELDS), None)
    if unknown is not None:
        raise InputError(f"A step has no field {unknown!r}.{near(str(unknown), STEP_FIELDS)}")
    if not any(isinstance(part, str) and part.strip() for part in step.values()):
        raise InputError("A step is empty; give it a text, code or a command.")
    return step
