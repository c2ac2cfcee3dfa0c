"""Anthropic's memory tool: records as files, `/memories/<kind>/<name>.md`.

    client.beta.messages.tool_runner(model=..., tools=[MemoryTool(engine)], ...)

A file has the name that the model gave it, else the id of its record. Records that the model writes are records of trust
`agent`. Rules and pinned records can be read and not written; deleting a file retires its record.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from foveate.engine import Engine
from foveate.errors import Conflict, FoveateError, near
from foveate.integrations import requires_extra
from foveate.records.kinds import KINDS, Kind
from foveate.types import NO_FILTERS, Record

with requires_extra("anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncBuiltinFunctionTool, ToolError
    from anthropic.types.beta import BetaCacheControlEphemeralParam

ROOT = "/memories"
MAX_LISTED_FILES = 100
"""A directory lists the newest records: the model reads the whole list."""

_HIDDEN_KINDS = ("task", "frame", "entity")
_FILE = re.compile(r"/memories/(?P<kind>[^/]+)/(?P<name>[^/]+)\.md")
_KEY = "memory:{kind}/{name}"


def visible_kinds() -> dict[str, Kind]:
    """Return the kinds that are directories: knowledge, without the kinds that only the engine uses."""
    return {
        name: kind
        for name, kind in KINDS.items()
        if kind.partition == "knowledge"
        and not (kind.is_derived or kind.is_private or kind.required_fields or name in _HIDDEN_KINDS)
    }


class MemoryTool(BetaAbstractMemoryTool):
    """The tool for `client.beta.messages.tool_runner`."""

    def __init__(
        self, engine: Engine, *, user: str | None = None, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._engine = engine if user is None else engine.scoped(user=user)

    def execute(self, command: Any) -> Any:
        """Run a command. Errors are text for the model, so that it can correct the call."""
        try:
            return super().execute(command)
        except Conflict as error:
            raise ToolError("The file was changed meanwhile. View it again, then repeat the edit.") from error
        except FoveateError as error:
            raise ToolError(str(error)) from error

    def view(self, command: Any) -> str:
        path = command.path.rstrip("/")
        if path == ROOT or path.removeprefix(f"{ROOT}/") in visible_kinds():
            kinds = list(visible_kinds()) if path == ROOT else [path.removeprefix(f"{ROOT}/")]
            lines = [f"{_size(size)}\t{name}" for kind in kinds for size, name in self._directory(kind, path != ROOT)]
            return f"Here're the files and directories up to 2 levels deep in {path}:\n" + "\n".join(lines)
        lines = self._file(command.path).text.split("\n")
        first, last = command.view_range or (1, -1)
        numbered = list(enumerate(lines, 1))[max(first, 1) - 1 : len(lines) if last == -1 else last]
        return f"Here's the content of {command.path} with line numbers:\n" + "\n".join(
            f"{n:6}\t{line}" for n, line in numbered
        )

    def create(self, command: Any) -> str:
        kind, name = self._check_writable(command.path)
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
            return f"The same text is stored already, as {_path(added.record)}"
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: Any) -> str:
        record = self._editable_record(command.path)
        number = record.text.count(command.old_str)
        if number != 1:
            raise ToolError(
                f"No replacement was performed: old_str `{command.old_str}` appears {number} times in {command.path}. "
                "It must appear exactly once."
            )
        return self._save_edit(record, record.text.replace(command.old_str, command.new_str), command.path)

    def insert(self, command: Any) -> str:
        record = self._editable_record(command.path)
        lines = record.text.split("\n")
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(f"Invalid `insert_line`: {command.insert_line}. It should be within [0, {len(lines)}].")
        lines[command.insert_line : command.insert_line] = command.insert_text.rstrip("\n").split("\n")
        return self._save_edit(record, "\n".join(lines), command.path)

    def delete(self, command: Any) -> str:
        self._engine.edit(self._editable_record(command.path).id, status="retired")
        return f"Successfully deleted {command.path}"

    def rename(self, command: Any) -> str:
        record, (kind, name) = self._editable_record(command.old_path), self._check_writable(command.new_path)
        if self._find(kind, name):
            raise ToolError(f"The destination {command.new_path} already exists")
        if kind != record.kind:
            raise ToolError(
                f"A file cannot move to another directory. Create {command.new_path}, then delete {command.old_path}."
            )
        if record.key and not record.key.startswith("memory:"):
            raise ToolError(f"{command.old_path} has a key of another program and cannot be renamed.")
        self._engine.edit(record.id, key=_KEY.format(kind=kind, name=name), expect_version=record.version)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    # --- paths ---------------------------------------------------------------------------------------------------

    def _split_path(self, path: str) -> tuple[str, str]:
        found, kinds = _FILE.fullmatch(path), visible_kinds()
        if found is None or ".." in path:
            raise ToolError(f"{path} is not a valid path. Paths are {ROOT}/<kind>/<name>.md.")
        if found["kind"] not in kinds:
            raise ToolError(
                f"Unknown directory {ROOT}/{found['kind']}.{near(found['kind'], kinds)} Known: {', '.join(kinds)}."
            )
        return found["kind"], found["name"]

    def _find(self, kind: str, name: str) -> Record | None:
        with self._engine.store.data.reader() as reader:
            record = reader.by_key(_KEY.format(kind=kind, name=name)) or reader.get([name]).get(name)
        return record if record and record.kind == kind and record.status == "active" else None

    def _file(self, path: str) -> Record:
        record = self._find(*self._split_path(path))
        if record is None:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return record

    def _check_writable(self, path: str) -> tuple[str, str]:
        kind, name = self._split_path(path)
        if KINDS[kind].is_rule or kind == "procedure":
            raise ToolError(f"{ROOT}/{kind} contains rules. You can read them; only a person may change them.")
        return kind, name

    def _editable_record(self, path: str) -> Record:
        self._check_writable(path)
        record = self._file(path)
        if record.pinned:
            raise ToolError(f"A person has pinned {path}. You can read it and not change it.")
        return record

    def _save_edit(self, record: Record, text: str, path: str) -> str:
        # The text is the model's now, so it must not keep a person's trust.
        self._engine.edit(record.id, text=text, trust="agent", expect_version=record.version)
        return f"The file {path} has been edited."

    def _directory(self, kind: str, include_self: bool) -> list[tuple[int, str]]:
        with self._engine.store.data.reader() as reader:
            records = (
                reader.always_on((kind,)) if KINDS[kind].is_rule else reader.recent((kind,), MAX_LISTED_FILES, NO_FILTERS)
            )
        sizes = [(len(record.text.encode()), _path(record)) for record in records]
        return [(sum(size for size, _ in sizes), f"{ROOT}/{kind}"), *sizes] if sizes or include_self else []


def _path(record: Record) -> str:
    """Return the path of a record's file."""
    prefix = _KEY.format(kind=record.kind, name="")
    own = record.key if record.key and record.key.startswith(prefix) else ""
    return f"{ROOT}/{record.kind}/{own.removeprefix(prefix) or record.id}.md"


def _size(number: int) -> str:
    return f"{number}B" if number < 1024 else f"{number / 1024:.1f}K"


class AsyncMemoryTool(BetaAsyncBuiltinFunctionTool):
    """The tool for an async client. It uses the store in another thread."""

    def __init__(
        self, engine: Engine, *, user: str | None = None, cache_control: BetaCacheControlEphemeralParam | None = None
    ) -> None:
        self._tool = MemoryTool(engine, user=user, cache_control=cache_control)

    def to_dict(self) -> Any:
        return self._tool.to_dict()

    async def call(self, input: object) -> Any:
        return await asyncio.to_thread(self._tool.call, input)
