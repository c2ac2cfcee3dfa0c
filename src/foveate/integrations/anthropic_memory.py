"""Anthropic's memory tool over state: `/memories/<kind>/<name>.md` is a record.

    client.beta.messages.tool_runner(model=..., tools=[MemoryTool(engine)], ...)

Comes in: the model's file commands. Goes out: text for the model, and records of trust `agent`. A record is called by its
id, or by the name under which the model created it. Rules and what is pinned can be read and not written; deleting retires.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from foveate.engine import Engine
from foveate.errors import Conflict, FoveateError, near
from foveate.integrations import requires_extra
from foveate.records.kinds import KINDS, Kind
from foveate.types import NO_FILTERS, Record

with requires_extra("anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

ROOT = "/memories"
LISTED = 100
"""The newest records of a kind that a directory shows: a model reads all of it."""

_HIDDEN = ("task", "frame", "entity")
_FILE = re.compile(r"/memories/(?P<kind>[^/]+)/(?P<name>[^/]+)\.md")
_KEY = "memory:{kind}/{name}"
P = ParamSpec("P")


def shown_kinds() -> dict[str, Kind]:
    """What the model sees as directories: knowledge, not the engine's own bookkeeping."""
    return {name: kind for name, kind in KINDS.items() if _is_knowledge(kind)}


def _is_knowledge(kind: Kind) -> bool:
    return kind.partition == "knowledge" and not (
        kind.is_derived or kind.is_private or kind.required_fields or kind.name in _HIDDEN
    )


def _told(method: Callable[P, str]) -> Callable[P, str]:
    """What goes wrong is said to the model, which can then do better."""

    @wraps(method)
    def told(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return method(*args, **kwargs)
        except Conflict as error:
            raise ToolError("The file was changed meanwhile. View it again, then repeat the edit.") from error
        except FoveateError as error:
            raise ToolError(str(error)) from error

    return told


class Files:
    """Records as files."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @_told
    def view(self, command: Any) -> str:
        path = command.path.rstrip("/")
        if path == ROOT or path.removeprefix(f"{ROOT}/") in shown_kinds():
            kinds = list(shown_kinds()) if path == ROOT else [path.removeprefix(f"{ROOT}/")]
            lines = [f"{_size(size)}\t{name}" for kind in kinds for size, name in self._directory(kind, path != ROOT)]
            return f"Here're the files and directories up to 2 levels deep in {path}:\n" + "\n".join(lines)
        lines = self._file(command.path)[1].text.split("\n")
        first, last = command.view_range or (1, -1)
        numbered = list(enumerate(lines, 1))[max(first, 1) - 1 : len(lines) if last == -1 else last]
        return f"Here's the content of {command.path} with line numbers:\n" + "\n".join(
            f"{n:6}\t{line}" for n, line in numbered
        )

    @_told
    def create(self, command: Any) -> str:
        kind, name = self._writable(command.path)
        if self._find(kind, name):
            raise ToolError(f"File {command.path} already exists")
        key = _KEY.format(kind=kind, name=name)
        with self._engine.store.data.reader() as reader:
            deleted = reader.by_key(key)
        if deleted is not None:
            self._engine.edit(
                deleted.id, text=command.file_text, trust="agent", status="active", expect_version=deleted.version
            )
        elif (added := self._engine.add(kind, command.file_text, trust="agent", key=key)).action != "added":
            return f"This is known already: {_path(added.record)}"
        return f"File created successfully at: {command.path}"

    @_told
    def str_replace(self, command: Any) -> str:
        record = self._editable(command.path)
        number = record.text.count(command.old_str)
        if number != 1:
            raise ToolError(
                f"No replacement was performed: old_str `{command.old_str}` appears {number} times in {command.path}. "
                "It must appear exactly once."
            )
        return self._edited(record, record.text.replace(command.old_str, command.new_str), command.path)

    @_told
    def insert(self, command: Any) -> str:
        record = self._editable(command.path)
        lines = record.text.split("\n")
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(f"Invalid `insert_line`: {command.insert_line}. It should be within [0, {len(lines)}].")
        lines[command.insert_line : command.insert_line] = command.insert_text.rstrip("\n").split("\n")
        return self._edited(record, "\n".join(lines), command.path)

    @_told
    def delete(self, command: Any) -> str:
        self._engine.edit(self._editable(command.path).id, status="retired")
        return f"Successfully deleted {command.path}"

    @_told
    def rename(self, command: Any) -> str:
        record, (kind, name) = self._editable(command.old_path), self._writable(command.new_path)
        if self._find(kind, name):
            raise ToolError(f"The destination {command.new_path} already exists")
        if kind != record.kind:
            raise ToolError(f"A {record.kind} stays a {record.kind}: create {command.new_path}, then delete the old file.")
        if record.key and not record.key.startswith("memory:"):
            raise ToolError(f"{command.old_path} is known under another name and cannot be renamed.")
        self._engine.edit(record.id, key=_KEY.format(kind=kind, name=name), expect_version=record.version)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    # --- paths ---------------------------------------------------------------------------------------------------

    def _parts(self, path: str) -> tuple[str, str]:
        found, kinds = _FILE.fullmatch(path), shown_kinds()
        if found is None or ".." in path:
            raise ToolError(f"{path} is no file here. Files are called {ROOT}/<kind>/<name>.md.")
        if found["kind"] not in kinds:
            raise ToolError(f"There is no directory {ROOT}/{found['kind']}.{near(found['kind'], kinds)}")
        return found["kind"], found["name"]

    def _find(self, kind: str, name: str) -> Record | None:
        with self._engine.store.data.reader() as reader:
            record = reader.by_key(_KEY.format(kind=kind, name=name)) or reader.get([name]).get(name)
        return record if record and record.kind == kind and record.status == "active" else None

    def _file(self, path: str) -> tuple[str, Record]:
        kind, name = self._parts(path)
        record = self._find(kind, name)
        if record is None:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return kind, record

    def _writable(self, path: str) -> tuple[str, str]:
        kind, name = self._parts(path)
        if KINDS[kind].is_rule or kind == "procedure":
            raise ToolError(f"{ROOT}/{kind} holds rules: they can be read, and only a person may write them.")
        return kind, name

    def _editable(self, path: str) -> Record:
        self._writable(path)
        record = self._file(path)[1]
        if record.pinned:
            raise ToolError(f"{path} was pinned by a person: it can be read and not changed.")
        return record

    def _edited(self, record: Record, text: str, path: str) -> str:
        # The words are the model's now: they must not carry a person's trust.
        self._engine.edit(record.id, text=text, trust="agent", expect_version=record.version)
        return f"The file {path} has been edited."

    def _directory(self, kind: str, itself: bool) -> list[tuple[int, str]]:
        with self._engine.store.data.reader() as reader:
            records = reader.always_on((kind,)) if KINDS[kind].is_rule else reader.recent((kind,), LISTED, NO_FILTERS)
        sizes = [(len(record.text.encode()), _path(record)) for record in records]
        return [(sum(size for size, _ in sizes), f"{ROOT}/{kind}"), *sizes] if sizes or itself else []


def _path(record: Record) -> str:
    """The file that a record is: under the name that the model gave it, else its id."""
    prefix = _KEY.format(kind=record.kind, name="")
    own = record.key if record.key and record.key.startswith(prefix) else ""
    return f"{ROOT}/{record.kind}/{own.removeprefix(prefix) or record.id}.md"


def _size(number: int) -> str:
    return f"{number}B" if number < 1024 else f"{number / 1024:.1f}K"


class MemoryTool(Files, BetaAbstractMemoryTool):
    """The tool for `client.beta.messages.tool_runner`."""

    def __init__(self, engine: Engine, **options: Any) -> None:
        Files.__init__(self, engine)
        BetaAbstractMemoryTool.__init__(self, **options)


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for an async client; the store is asked in a thread."""

    def __init__(self, engine: Engine, **options: Any) -> None:
        super().__init__(**options)
        self._files = Files(engine)

    async def view(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.view, command)

    async def create(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.create, command)

    async def str_replace(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.str_replace, command)

    async def insert(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.insert, command)

    async def delete(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.delete, command)

    async def rename(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.rename, command)
