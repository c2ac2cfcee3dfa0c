"""The developer: carries out the current task. It reads the task, the files to touch and the steps to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foveate.agents.strategies import Agent, Answer, ContextStrategy, State
from foveate.errors import InputError
from foveate.text.format import one_line
from foveate.types import Record, Section

NO_TASK = (
    "The {agent} needs a task. Name one with `--task` (`foveate task list` shows them), or take one up: "
    "`foveate stack push GOAL`."
)


class DeveloperContextStrategy(ContextStrategy):
    """002: the current task, its file operations, its steps."""

    agent = "developer"

    def sections(self, state: State) -> Iterator[Section]:
        task = self.current_task(state)
        if task is None:
            raise InputError(NO_TASK.format(agent=self.name))
        yield Section(name="task", content=described(task), source="current task")
        for file in task.data.get("files") or ():
            yield Section(name="files", content=file_line(file), source="current task, files")
        for number, step in enumerate(task.data.get("steps") or (), 1):
            yield Section(name="steps", content=step_text(number, step), source="current task, steps")


class Developer(Agent[Answer]):
    context_strategy = DeveloperContextStrategy


def described(task: Record) -> str:
    """What a task is for, and its description."""
    parts = (task.text.strip(), str(task.data.get("description") or "").strip())
    return "\n\n".join(part for part in dict.fromkeys(parts) if part)


def file_line(file: Any) -> str:
    """What is done to a file, and its path."""
    if not isinstance(file, Mapping):
        return f"- `{_code(file)}`"
    operation = file.get("operation") or file.get("purpose") or file.get("reason")
    path = f"`{_code(file.get('path') or file.get('file') or file)}`"
    return f"- {one_line(operation)}: {path}" if operation else f"- {path}"


def step_text(number: int, step: Any) -> str:
    """A step by its number, its code in a fence, and what to run."""
    if not isinstance(step, Mapping):
        return f"{number}. {one_line(step)}"
    lines = [f"{number}. {one_line(step.get('description') or step.get('text') or '')}".rstrip()]
    if step.get("code"):
        lines.append(fenced(str(step["code"])))
    if step.get("command"):
        lines.append(f"Run: `{_code(step['command'])}`")
    return "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    """A text in a fence that is longer than any in it."""
    ticks = "```"
    while ticks in text:
        ticks += "`"
    return f"{ticks}{language}\n{text.strip(chr(10))}\n{ticks}"


def _code(text: Any) -> str:
    """One line that stays within its backticks."""
    return one_line(text).replace("`", "'")
