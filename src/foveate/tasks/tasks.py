"""Tasks: records with a fate. What is to be done, what it waits for, and what came of it.

A task is a record of kind `task`; what it depends on and what it is a part of are links, so that nothing can wait for
itself. `Tasks` holds the verbs that move a task from open to done; it computes no context. Tasks belong to the project
and its user, never to one agent: they are how agents hand work to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from foveate.errors import Conflict, InputError, NotFound, near
from foveate.memory.memory import Memory
from foveate.records import make
from foveate.records.kinds import DEPENDS_ON, LEARNED_FROM, PART_OF, TASK_STATES
from foveate.store.protocol import Reader, Writer
from foveate.store.retry import retried
from foveate.tasks.learn import Learned, ingest
from foveate.tasks.task import EVERY, Task, changed, find, lookup, shared, state_of, views
from foveate.text.format import one_line
from foveate.types import NO_FILTERS, Link, Record, Scope

OPERATIONS = ("create", "modify", "delete", "read")
"""What a task does to a file."""

Given = str | Mapping[str, Any]


class Tasks:
    """The verbs on the tasks of one memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    # --- read --------------------------------------------------------------------------------------------------

    @retried
    def get(self, ref: str) -> Task:
        """A task by its id, or by the key that its author gave it."""
        with self._memory.store.read(self._memory.scope) as reader:
            return views(reader, [find(reader, ref)])[0]

    @retried
    def list(self, status: str | None = None, *, ready: bool = False, parent: str | None = None) -> Sequence[Task]:
        """All tasks in the order in which they were added: of one status, ready to start, or part of one task."""
        if status is not None and status not in TASK_STATES:
            raise InputError(f"There is no task status {status!r}.{near(status, TASK_STATES)}")
        with self._memory.store.read(self._memory.scope) as reader:
            found = sorted(reader.recent(["task"], EVERY, NO_FILTERS), key=lambda record: (record.created, record.id))
            wanted = [record for record in found if status is None or state_of(record) == status]
            tasks = views(reader, wanted)
            under = find(reader, parent).id if parent is not None else None
        tasks = [task for task in tasks if task.ready] if ready else tasks
        return [task for task in tasks if task.parent == under] if under is not None else tasks

    # --- write -------------------------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        *,
        objective: str = "",
        depends_on: Iterable[str] = (),
        parent: str | None = None,
        files: Iterable[Given] = (),
        steps: Iterable[Given] = (),
        acceptance_criteria: str | Iterable[str] = (),
        test_criteria: str | Iterable[str] = (),
        **values: Any,
    ) -> Task:
        """A new task. `depends_on` names tasks, or paths of files that must be read first.

        `values` are `type`, `complexity`, `description`, `estimated_time`, `tags`, `key`, ... A known key changes nothing.
        """
        touched = [_file(file) for file in _several(files)]
        fields: dict[str, Any] = {
            "acceptance_criteria": _texts(acceptance_criteria),
            "test_criteria": _texts(test_criteria),
            "files": touched,
            "steps": [_step(step) for step in _several(steps)],
        }
        if "state" in values:
            raise InputError("A new task is open; `start`, `complete`, `fail` and `block` change that.")
        title = one_line(name) if isinstance(name, str) else ""
        if not title:
            raise InputError("A task needs a name; the rest can be empty.")
        paths = [*(file["path"] for file in touched), *values.pop("paths", ())]
        known = {field: value for field, value in fields.items() if value}
        values = {"name": title, "state": "open", "paths": paths, **known, **values}
        return self._add(objective or name, _several(depends_on), parent, values)

    @retried
    def _add(self, text: str, depends_on: Sequence[str], parent: str | None, values: Mapping[str, Any]) -> Task:
        memory = self._memory
        with memory.store.read(memory.scope) as reader:
            dependencies, reads = _sorted_out(reader, depends_on)
            above = find(reader, parent).id if parent is not None else None
        paths = {"paths": [*values["paths"], *reads], **({"reads": reads} if reads else {})}
        record = memory.make("task", text, self._scope(), {**values, **paths})
        (vector,) = memory.embedded([record.text])
        with memory.store.write(memory.scope) as writer:
            added = writer.add(record, vector)
            if added.record.kind != "task":
                raise Conflict(f"The key {record.key!r} is that of {added.record.id!r}, which is no task; choose another.")
            if added.action == "added":
                for dependency in dependencies:
                    writer.link(Link(record.id, DEPENDS_ON, dependency))
                if above is not None:
                    writer.link(Link(record.id, PART_OF, above))
            return views(writer, [added.record])[0]

    @retried
    def depend(self, ref: str, on: Sequence[str]) -> Task:
        """Have a task wait for others, or name files to read first. A circle is refused, and named."""
        memory = self._memory
        with memory.store.write(memory.scope) as writer:
            record = find(writer, ref)
            dependencies, reads = _sorted_out(writer, _several(on))
            for dependency in dependencies:
                writer.link(Link(record.id, DEPENDS_ON, dependency))
            if reads:
                both = list(dict.fromkeys((*record.data.get("reads", ()), *reads)))
                paths = tuple(dict.fromkeys((*record.paths, *reads)))
                record = self._moved(writer, replace(record, paths=paths), "depend", {"reads": both})
            return views(writer, [record])[0]

    def start(self, ref: str) -> Task:
        """Somebody works on it. A blocked or failed task is taken up again."""
        return self._move(ref, "active", not_from=("completed",))

    def block(self, ref: str, reason: str) -> Task:
        """It cannot go on, and why."""
        return self._move(ref, "blocked", reason=_reason(reason), not_from=("completed",))

    def fail(self, ref: str, reason: str) -> Task:
        """It was given up, and why; it can be started again."""
        return self._move(ref, "failed", reason=_reason(reason), outcome="failure", not_from=("completed",))

    def complete(self, ref: str, result: str = "", *, handoff: Any = None, outcome: str | None = None) -> Task:
        """It is done. `result` is what whoever depends on it should know; a handoff says that and more."""
        if handoff is None:
            return self._move(ref, "completed", result=result, outcome=outcome or "success", not_from=("completed",))
        if result or outcome is not None:
            raise InputError("A handoff brings its own result and outcome; give one or the other.")
        return self.get(self.ingest(ref, handoff).task)

    def ingest(self, ref: str, handoff: Any, *, again: bool = False) -> Learned:
        """Learn from a task's handoff, and complete it: a text in any of the accepted forms, bytes, or its fields.

        All of it is kept or nothing. The same handoff twice changes nothing; another one for a task that is completed
        is refused, unless `again` says that it should count as well.
        """
        return ingest(self._memory, ref, handoff, again=again)

    @retried
    def answer(self, question: str, answer: str) -> Record:
        """Settle an open question: the answer becomes a decision of the same tasks, and the question is put away."""
        memory = self._memory
        asked = memory.get(question)
        if asked.kind != "question":
            raise InputError(f"{question!r} is a {asked.kind}, not a question.")
        if asked.status != "active":
            raise Conflict(f"{question!r} is {asked.status} already.")
        if not answer.strip():
            raise InputError("The answer is empty; say what was decided.")
        record = memory.make("decision", f"{one_line(asked.text)} {answer.strip()}", asked.scope, {"tags": asked.tags})
        (vector,) = memory.embedded([record.text])
        with memory.store.write(memory.scope) as writer:
            added = writer.add(record, vector).record
            for link in writer.links([asked.id], [LEARNED_FROM]):
                writer.link(Link(added.id, LEARNED_FROM, link.dst))
            writer.change(replace(asked, status="retired", updated=memory.clock()), "answer", expect=asked.version)
            return added  # type: ignore[no-any-return]

    # --- helpers -----------------------------------------------------------------------------------------------

    def _scope(self) -> Scope:
        return shared(self._memory.scope)

    @retried
    def _move(self, ref: str, state: str, *, not_from: tuple[str, ...], outcome: str | None = None, **data: str) -> Task:
        memory = self._memory
        with memory.store.write(memory.scope) as writer:
            record = find(writer, ref)
            if record.status != "active":
                raise Conflict(f"Task {record.id!r} is {record.status}. `foveate undo {record.id}` takes that back.")
            if state_of(record) in not_from:
                raise Conflict(
                    f"Task {record.id!r} is {state_of(record)} already. `foveate undo {record.id}` takes that back."
                )
            moved = self._moved(writer, record, state, {"state": state, **data}, outcome)
            return views(writer, [moved])[0]

    def _moved(
        self, writer: Writer, record: Record, verb: str, data: Mapping[str, Any], outcome: str | None = None
    ) -> Record:
        if outcome is not None and (problems := make.column_problems({"outcome": outcome})):
            raise InputError(problems)
        return writer.change(changed(self._memory, record, data, outcome), verb, expect=record.version)


def _sorted_out(reader: Reader, entries: Iterable[str]) -> tuple[list[str], list[str]]:
    """Dependencies (ids of tasks) and files to read. What is neither is an error."""
    tasks: list[str] = []
    paths: list[str] = []
    for entry in dict.fromkeys(entries):
        record = lookup(reader, entry)
        if record is not None and record.kind == "task":
            tasks.append(record.id)
        elif record is not None:
            raise InputError(f"{entry!r} is a {record.kind}; a task depends on tasks and on files.")
        elif isinstance(entry, str) and ("/" in entry or make.paths_in(entry)):
            paths.append(entry)
        else:
            raise NotFound(
                f"There is no task {entry!r} to depend on, and it is no path of a file. Add that task first; a file in "
                f"the project's root is './{entry}'."
            )
    return tasks, paths


def _several(given: Any) -> list[Any]:
    """One thing, or several."""
    if not isinstance(given, Iterable):
        raise InputError(f"A text or a list of texts is wanted, not {given!r}.")
    return [given] if isinstance(given, str | Mapping) else list(given)


def _texts(given: str | Iterable[str]) -> list[str]:
    parts = _several(given)
    wrong = next((part for part in parts if not isinstance(part, str)), None)
    if wrong is not None:
        raise InputError(f"A criterion is a text, not {wrong!r}.")
    return [part.strip() for part in parts if part.strip()]


def _file(given: Given) -> dict[str, str]:
    """`path`, `path:operation` or its fields."""
    if isinstance(given, str):
        path, _, operation = given.rpartition(":")
        file = {"path": path, "operation": operation} if path and operation.isalpha() else {"path": given}
    else:
        file = {str(name): one_line(value) for name, value in given.items()}
    if not file.get("path", "").strip():
        raise InputError(f"A file needs a path: {given!r}.")
    file.setdefault("operation", "modify")
    if file["operation"] not in OPERATIONS:
        raise InputError(f"There is no file operation {file['operation']!r}.{near(file['operation'], OPERATIONS)}")
    return file


def _step(given: Given) -> dict[str, Any]:
    """A text, or its fields: `text`, and `code` or `command`."""
    step = {"text": given} if isinstance(given, str) else dict(given)
    unknown = next((name for name in step if name not in ("text", "code", "command")), None)
    if unknown is not None:
        raise InputError(f"A step has no field {unknown!r}.{near(str(unknown), ('text', 'code', 'command'))}")
    if not any(isinstance(value, str) and value.strip() for value in step.values()):
        raise InputError("A step is empty; give it a text, code or a command.")
    return step


def _reason(reason: str) -> str:
    if not isinstance(reason, str) or not reason.strip():
        raise InputError("Say why: the reason is empty.")
    return reason.strip()
