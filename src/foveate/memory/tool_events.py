"""How the result of a tool becomes events: a command, a file that was read or written, or a call of any other tool."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from foveate.records.render_events import shorten_output
from foveate.text.format import truncate
from foveate.types import Trust

MAX_OUTPUT_CHARS = 8_000
"""Longest output of a tool that is stored. A prompt shows less of it, and the rest would only fill the index."""

HEAD_LINES, TAIL_LINES, ERROR_LINES = 40, 40, 20
"""Lines that remain of a longer output: from its beginning, from its end, and lines with errors from between."""

UNNAMED_TOOL = "tool"

# A tag that is never closed hides the rest of the text, because it is safer to store too little.
_PRIVATE = re.compile(r"<(private|foveate-context)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)

# Hosts do not report where the output of a tool comes from, so its name decides whether it is trusted as little as the web.
_WEB_TOOL = re.compile(
    r"(?:^|[_\W])(?:web|fetch|http|brows|crawl|scrape|url|playwright|puppeteer|chrome|google|bing|brave|duckduckgo|tavily"
    r"|firecrawl|perplexity)|_(?:url|page)s?$"
)
_WEB_COMMAND = re.compile(r"(?:^|[;&|(`]|\bsudo\b)\s*(?:curl|wget|lynx|w3m|https?)\s", re.MULTILINE)

_SHELL_TOOLS = frozenset(
    {"bash", "shell", "exec_command", "local_shell", "shell_command", "container.exec", "run_shell_command"}
)
_READ_TOOLS = frozenset({"read", "read_file", "notebookread", "view_image"})
_WRITE_TOOLS = frozenset({"write", "edit", "multiedit", "notebookedit", "write_file", "replace"})
_PATCH_TOOL = "apply_patch"
_PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATH_KEYS = ("file_path", "path", "notebook_path")


def without_private_parts(text: str) -> str:
    """Return a text without the parts marked as private, and without contexts that foveate put into the prompt."""
    return _PRIVATE.sub("", text).strip()


def tool_events(tool: str, input: Any, output: str, failed: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the text and the fields of each event: one, or for a patch one for each file."""
    arguments = input if isinstance(input, Mapping) else {}
    name, command = tool.lower(), without_private_parts(_command(arguments))
    if files := _patched_files(name, input, command):
        for path in files:
            yield path, {"type": "file_write", "path": path}
        return
    path = next((str(arguments[key]) for key in _PATH_KEYS if arguments.get(key)), "")
    output = _shortened(without_private_parts(output))
    if name in _SHELL_TOOLS and command:
        yield f"{command}\n{output}".strip(), {"type": "shell_exec", "command": truncate(command, MAX_OUTPUT_CHARS)}
    elif path and name in (_READ_TOOLS | _WRITE_TOOLS):
        text = f"{path}\n{output}".strip() if failed else path
        yield text, {"type": "file_read" if name in _READ_TOOLS else "file_write", "path": path}
    else:
        fields = {"type": "tool_call", "tool": tool}
        if input:
            whole = without_private_parts(json.dumps(input, ensure_ascii=False, default=str))
            fields["input"] = truncate(whole, MAX_OUTPUT_CHARS)
        yield f"{tool}\n{output}".strip(), fields


def output_trust(tool: str, input: Any) -> Trust:
    """Return the trust of a tool's output: `web` if it comes from the network, where anyone may have written it."""
    if tool.lower() in _SHELL_TOOLS:
        is_web = _WEB_COMMAND.search(_command(input if isinstance(input, Mapping) else {}))
    else:
        is_web = _WEB_TOOL.search(tool.lower())
    return "web" if is_web else "tool"


def _shortened(output: str) -> str:
    """Return a tool's output. A long one is reduced to its beginning, its end and its errors."""
    if len(output) <= MAX_OUTPUT_CHARS:
        return output
    return truncate(shorten_output(output, HEAD_LINES, TAIL_LINES, ERROR_LINES), MAX_OUTPUT_CHARS)


def _command(arguments: Mapping[str, Any]) -> str:
    action = arguments.get("action")
    nested = action.get("command") if isinstance(action, Mapping) else None
    command = arguments.get("command") or arguments.get("cmd") or nested or ""
    if not isinstance(command, list):
        return str(command).strip()
    words = [str(word) for word in command]
    is_wrapped = len(words) == 3 and words[1] in ("-c", "-lc")  # `bash -lc "make test"`
    return words[2] if is_wrapped else " ".join(words)


def _patched_files(tool: str, input: Any, command: str) -> list[str]:
    """Return the files that a patch changes; none if the call is not a patch."""
    if tool != _PATCH_TOOL and not command.startswith(_PATCH_TOOL):
        return []
    arguments = input if isinstance(input, Mapping) else {}
    patch = input if isinstance(input, str) else str(arguments.get("input") or arguments.get("patch") or command)
    return list(dict.fromkeys(path.strip() for path in _PATCH_FILE.findall(patch)))
