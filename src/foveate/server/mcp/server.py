"""The server: tools with their annotations, resources, the prompt, and errors as a model should read them."""

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
from foveate.server.mcp import results
from foveate.server.mcp.tools import MAX_NAME_CHARS, Tools, client_name
from foveate.tasks.handoff import json_schema

INSTRUCTIONS = """\
foveate stores what is known in this project (decisions, facts, traps, rules, code) and computes a small context from it.
Call `get_context` first for each request; `expand` or `search` when you need more; `check` before an action that is hard \
to undo; `remember` what a later session should know; `claim_task` and `finish_task` around a planned task; `feedback` \
when an item was wrong."""

READ_ANNOTATIONS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADD_ANNOTATIONS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Nothing here is destructive: what is replaced stays in the history. The same call again changes nothing."""
CLAIM_ANNOTATIONS = ADD_ANNOTATIONS.model_copy(update={"idempotent_hint": False})
"""Each claim without a task takes another one."""

HOSTS_HIDING_TEXT = ("claude-code", "codex")
"""Names of hosts that show a model the structured content as JSON, and not the text next to it."""

MARKDOWN, JSON = "text/markdown", "application/json"

Error = TypeVar("Error", bound=BaseException)


def build_server(engine: Callable[[], Engine]) -> MCPServer:
    """Return a server with all tools, resources and the prompt, without a transport."""
    server = FoveateServer("foveate", title="foveate", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    tools = Tools(engine)
    for tool, hints in (
        (tools.get_context, READ_ANNOTATIONS),
        (tools.search, READ_ANNOTATIONS),
        (tools.expand, READ_ANNOTATIONS),
        (tools.remember, ADD_ANNOTATIONS),
        (tools.check, READ_ANNOTATIONS),
        (tools.feedback, ADD_ANNOTATIONS),
        (tools.claim_task, CLAIM_ANNOTATIONS),
        (tools.finish_task, ADD_ANNOTATIONS),
    ):
        server.add_tool(tool, description=cleandoc(tool.__doc__ or ""), annotations=hints)
    _add_resources(server, engine)
    _add_prompts(server, engine)
    return server


def _add_resources(server: FoveateServer, engine: Callable[[], Engine]) -> None:
    @server.resource("foveate://record/{id}", mime_type=MARKDOWN)
    def record(id: str) -> str:
        """Read a record in full, as a prompt would show it."""
        return engine().expand(id)["content"]

    @server.resource("foveate://context/{id}", mime_type=MARKDOWN)
    def context(id: str) -> str:
        """Read the budget of a context, and the items that were left out. `last` is the latest context."""
        receipts = engine().receipts
        return results.context_explanation(receipts.get(id), receipts.count_not_considered(id))

    @server.resource("foveate://context/{id}/why/{+item}", mime_type=MARKDOWN)
    def why(id: str, item: str) -> str:
        """Explain why an item is in a context or not, with the parts of its score."""
        return results.item_explanation(engine().why(item, id))

    @server.resource("foveate://schema/handoff", mime_type=JSON)
    def handoff_schema() -> str:
        """Read the JSON Schema of a handoff."""
        return json.dumps(json_schema(), ensure_ascii=False)


def _add_prompts(server: FoveateServer, engine: Callable[[], Engine]) -> None:
    @server.prompt(title="Start a task")
    def start_task(
        objective: Annotated[str, Field(description="What to do. May be empty if a task is named.")] = "",
        task: Annotated[str, Field(max_length=MAX_NAME_CHARS, description="Id or key of a task.")] = "",
    ) -> str:
        """Start with the context for a task, and the task."""
        goal = objective.strip()
        context = engine().context(goal or None, task=task or None)
        return "\n".join(filter(None, (context.text, f"Your task: {goal}" if goal else "")))


class FoveateServer(MCPServer[Any]):
    """A server whose errors say what is wrong and what to do. They contain no traceback and do not repeat the arguments."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        parameters = {tool.name: tool.input_schema.get("properties", {}) for tool in await self.list_tools()}
        if name not in parameters:
            # Models misspell names, and the package's own error names no other.
            shown = name[:MAX_NAME_CHARS]
            raise ToolError(f"Unknown tool {shown!r}.{near(shown, parameters)}")
        # A parameter that is ignored silently would make a model believe that it had an effect.
        if unknown := next((each for each in arguments if each not in parameters[name]), None):
            shown = unknown[:MAX_NAME_CHARS]
            raise ToolError(f"{name} has no parameter {shown!r}.{near(shown, parameters[name])}")
        try:
            result = await super().call_tool(name, arguments, context)
        except ToolError as error:
            if (message := _error_message(error)) is None:
                raise  # a defect: the package logs the traceback and does not send it
            raise ToolError(message) from error
        if isinstance(result, CallToolResult) and not client_name(context).startswith(HOSTS_HIDING_TEXT):
            result.structured_content = (result.meta or {}).get(results.META_KEY)
        return result

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        try:
            return await super().read_resource(uri, context)
        except ResourceError as error:
            if (message := _error_message(error)) is None:
                raise
            raise (ResourceNotFoundError if _cause(error, NotFound) else ResourceError)(message) from error

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, _error_message(error) or str(error)) from error


def _error_message(error: BaseException) -> str | None:
    """Return the message of an expected failure in the chain of causes; None if nothing expected caused the error."""
    if failure := _cause(error, FoveateError):
        return "\n".join(failure.problems) if isinstance(failure, InputError) else str(failure)
    if invalid := _cause(error, ValidationError):
        return "\n".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}." for each in invalid.errors())
    if failed := _cause(error, OSError):
        return f"{failed.strerror or failed}. `foveate doctor` says more."
    return "The input is nested too deeply." if _cause(error, RecursionError) else None


def _cause(error: BaseException | None, error_type: type[Error]) -> Error | None:
    """Return the first error of a type in the chain of causes."""
    while error is not None and not isinstance(error, error_type):
        error = error.__cause__
    return error
