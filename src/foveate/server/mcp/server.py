"""The server itself: tools with their hints, resources, the prompt, and errors as a model should read them.

Comes in: a function that gives the engine. Goes out: an `MCPServer` without a transport.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from inspect import cleandoc
from typing import Annotated, Any, TypeVar

from mcp.server import MCPServer
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, ToolAnnotations
from pydantic import AnyUrl, Field, ValidationError

from foveate import __version__
from foveate.engine import Engine
from foveate.errors import FoveateError, InputError, NotFound, near
from foveate.server.mcp.answers import FIGURES
from foveate.server.mcp.tools import MAX_NAME, Tools
from foveate.tasks.handoff import json_schema

INSTRUCTIONS = """\
foveate keeps what is known in this project (decisions, facts, traps, rules, code) and computes a small context from it.
Call `compute_context` first for each request; `expand` or `search` when you need more; `check` before an action that is \
hard to undo; `remember` what a later session should know; `handoff` when a task ends; `feedback` when an item was wrong."""

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Nothing here destroys: what is replaced stays in the history. Said twice, it is known already."""

HIDE_TEXT = ("claude-code", "codex")
"""How hosts call themselves that show a model structured content, as JSON, and nothing of the text beside it."""

Error = TypeVar("Error", bound=BaseException)
MARKDOWN, JSON = "text/markdown", "application/json"


def offer(engine: Callable[[], Engine]) -> MCPServer:
    """A server with everything that it offers."""
    server = Server("foveate", title="foveate", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    tools = Tools(engine)
    for tool, hints in (
        (tools.compute_context, READS),
        (tools.search, READS),
        (tools.expand, READS),
        (tools.remember, ADDS),
        (tools.handoff, ADDS),
        (tools.feedback, ADDS),
        (tools.explain, READS),
        (tools.check, READS),
    ):
        server.add_tool(tool, description=cleandoc(tool.__doc__ or ""), annotations=hints)
    _resources(server, engine)
    _prompts(server, engine)
    return server


def _resources(server: Server, engine: Callable[[], Engine]) -> None:
    @server.resource("foveate://record/{id}", mime_type=MARKDOWN)
    def record(id: str) -> str:
        """A record in full, as it would stand in a prompt."""
        return engine().expand(id)["content"]

    @server.resource("foveate://context/{id}", mime_type=JSON)
    def context(id: str) -> str:
        """The receipt of a computed context: every candidate, its score, and why it is in it or not. Ids, no texts."""
        return json.dumps(engine().receipts.get(id).document, ensure_ascii=False)

    @server.resource("foveate://schema/handoff", mime_type=JSON)
    def handoff_schema() -> str:
        """The JSON Schema of a handoff."""
        return json.dumps(json_schema(), ensure_ascii=False)


def _prompts(server: Server, engine: Callable[[], Engine]) -> None:
    @server.prompt(title="Start a task")
    def start_task(
        objective: Annotated[str, Field(description="What is to be done. May be empty where a task is named.")] = "",
        task: Annotated[str, Field(max_length=MAX_NAME, description="Id or key of a task.")] = "",
    ) -> str:
        """Everything that is known for a task, as the prompt to start it with."""
        wanted = objective.strip()
        found = engine().context(wanted or None, task=task or None)
        return "\n".join(filter(None, (found.text, f"Your task: {wanted}" if wanted else "")))


class Server(MCPServer[Any]):
    """A server whose errors are ours: what is wrong and what to do, never a traceback or the arguments again."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        known = {tool.name: tool.input_schema.get("properties", {}) for tool in await self.list_tools()}
        if name not in known:
            raise ToolError(f"There is no tool {name[:MAX_NAME]!r}.{near(name[:MAX_NAME], known)}")
        if unknown := next((each for each in arguments if each not in known[name]), None):
            raise ToolError(f"{name} has no parameter {unknown[:MAX_NAME]!r}.{near(unknown[:MAX_NAME], known[name])}")
        try:
            result = await super().call_tool(name, arguments, context)
        except ToolError as error:
            if (words := _said(error)) is None:
                raise  # a defect: logged with its traceback, which stays here
            raise ToolError(words) from error
        if isinstance(result, CallToolResult) and not _hides_text(context):
            result.structured_content = (result.meta or {}).get(FIGURES)
        return result

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            if (words := _said(error)) is None:
                raise
            raise (ResourceNotFoundError if _cause(error, NotFound) else ResourceError)(words) from error

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, _said(error) or str(error)) from error


def _hides_text(context: Context[Any, Any] | None) -> bool:
    """Whether the host shows its model structured content in place of the text, as far as is known."""
    who = context.session.client_params if context is not None else None
    return who is not None and who.client_info.name.startswith(HIDE_TEXT)


def _said(error: BaseException) -> str | None:
    """What a failure comes down to, in our words; None where nobody expected it."""
    if found := _cause(error, FoveateError):
        return "\n".join(found.problems) if isinstance(found, InputError) else str(found)
    if wrong := _cause(error, ValidationError):
        return "\n".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}." for each in wrong.errors())
    if failed := _cause(error, OSError):
        return f"{failed.strerror or failed}. `foveate doctor` says more."
    return "The input is nested too deeply." if _cause(error, RecursionError) else None


def _cause(error: BaseException | None, sort: type[Error]) -> Error | None:
    """The first failure of a sort among those that led to another."""
    while error is not None and not isinstance(error, sort):
        error = error.__cause__
    return error
