"""The events of coding agents: each host's events become a few actions, and the answer takes the host's form.

Messages and calls of tools become events under the keys of the transcript importers, so that importing the session later
adds nothing twice, as far as the host's ids allow. Unknown events, and fields of an unexpected form, have no effect.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from foveate.engine import Engine
from foveate.errors import Conflict, InputError, NotFound, near
from foveate.integrations.hooks.delivery import deliver, forget_window
from foveate.integrations.importers import claude_code, codex, save_rows
from foveate.integrations.importers.rows import as_mapping, strip_injected
from foveate.memory.messages import ConversationMessage, RecordRow, digest, message_key, remember, text_id
from foveate.memory.tool_events import without_private_parts
from foveate.receipts.timeline import COMPACTION_EVENT_TYPE
from foveate.records.make import clean_name
from foveate.store.retry import retry_interrupted
from foveate.tasks.task import lookup
from foveate.text.redact import AllowList
from foveate.types import NO_FILTERS

log = logging.getLogger("foveate.hooks")

_CLAUDE = {
    "SessionStart": "session_start",
    "SubagentStart": "session_start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool_use",
    "PostToolUseFailure": "tool_use",
    "Stop": "response",
    "SubagentStop": "response",
    "PostCompact": "compaction",
}
EVENTS: Mapping[str, Mapping[str, str]] = {
    "claude": _CLAUDE,
    "codex": {event: action for event, action in _CLAUDE.items() if event != "PostToolUseFailure"},
    "cursor": {
        "sessionStart": "session_start",
        "beforeSubmitPrompt": "prompt",
        "afterShellExecution": "tool_use",
        "afterFileEdit": "tool_use",
        "afterMCPExecution": "tool_use",
        "afterAgentResponse": "response",
        "preCompact": "compaction",
        "sessionEnd": "session_end",
    },
    "gemini": {
        "SessionStart": "session_start",
        "BeforeAgent": "prompt",
        "AfterTool": "tool_use",
        "AfterAgent": "response",
        "PreCompress": "compaction",
        "SessionEnd": "session_end",
    },
}
"""By host: the action for each of its events."""

HOSTS = tuple(EVENTS)

KEY_PREFIXES = {"claude": claude_code.NAME, "codex": codex.NAME}
"""By host with an importer: how the keys of its events begin."""

HOSTS_KEEPING_CONTEXT = ("claude", "codex")
"""Hosts whose sessions still contain earlier contexts after a resume."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "session": ("session_id", "conversation_id"),
    "agent": ("agent_id",),
    "prompt": ("prompt",),
    "answer": ("last_assistant_message", "prompt_response", "text"),
    "summary": ("compact_summary",),
    "tool": ("tool_name",),
    "id": ("tool_use_id",),
    "turn": ("prompt_id", "generation_id", "turn_id", "timestamp"),
    "source": ("source",),
}
"""Names of each field in the events of the hosts; the first that is present counts."""

EVENT_TOOLS = {"afterShellExecution": "shell", "afterFileEdit": "edit"}
"""Tools of events that do not name one."""

HUMAN_SOURCES = ("", "user", "sdk")
"""Sources of a prompt by a person. Prompts of a program, such as wake-ups, get no context and are not stored."""

COMPACTED_TEXT = "The conversation was compacted."

MAX_TEXT_CHARS = 200_000
"""A longer text is cut before it is read."""

_HANDOFF = re.compile(
    r"^[ \t]*(?:```+|~~~+)[ \t]*handoff\b|schema[\"']?[ \t]{0,20}:[ \t]{0,20}[\"']?handoff/v1", re.MULTILINE
)
"""A handoff must be marked as one: any answer may have headings."""


@dataclass(frozen=True, slots=True)
class HookEvent:
    """An event of a host. `name` is the host's name for it, `action` ours."""

    host: str
    name: str
    action: str
    session: str
    fields: Mapping[str, str]
    raw: Mapping[str, Any]

    @property
    def window(self) -> str:
        """The context window that the event belongs to. A subagent has a window of its own."""
        return f"{self.session}/{self.fields['agent']}" if self.fields["agent"] else self.session

    @property
    def key_prefix(self) -> str:
        return f"{KEY_PREFIXES.get(self.host, self.host)}:{self.session}"


def handle(engine: Engine, host: str, event: Any) -> dict[str, Any]:
    """Store what an event contains and return the host's answer; `{}` if there is nothing to tell."""
    if host not in EVENTS:
        raise InputError(f"Unknown host {host!r}.{near(str(host), EVENTS)} Known: {', '.join(EVENTS)}.")
    parsed = parse_event(host, event, engine.store.data.rules.allow)
    text = _HANDLERS[parsed.action](engine, parsed) if parsed else ""
    return _format_response(parsed, text) if parsed and text else {}


def parse_event(host: str, event: Any, allow: AllowList | None = None) -> HookEvent | None:
    """Return an event with its fields, names without secrets; None for an unknown one, or one without a session."""
    raw = as_mapping(event)
    name = raw.get("hook_event_name")
    action = EVENTS[host].get(name) if isinstance(name, str) else None
    fields = {field: _first_field(raw, names) for field, names in FIELDS.items()}
    fields |= {name: clean_name(fields[name], allow) for name in ("session", "agent")}
    if action is None or not fields["session"]:
        return None
    return HookEvent(host, str(name), action, fields["session"], fields, raw)


def _first_field(raw: Mapping[str, Any], names: Sequence[str]) -> str:
    texts = (raw[name] for name in names if isinstance(raw.get(name), str) and raw[name].strip())
    text = next(texts, "")[:MAX_TEXT_CHARS]
    return text.encode("utf-8", "replace").decode().replace("\x00", "")


def _format_response(event: HookEvent, text: str) -> dict[str, Any]:
    if event.host == "cursor":
        permission = {"continue": True} if event.action == "prompt" else {}
        return {**permission, "additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


# --- the actions ---------------------------------------------------------------------------------------------------


def _on_session_start(engine: Engine, event: HookEvent) -> str:
    """Deliver to an empty window: the context of the session's last prompt, or without one what every prompt receives.

    A resumed window that still contains its contexts gets nothing: its next prompt brings what is missing.
    """
    if event.host in HOSTS_KEEPING_CONTEXT and event.fields["source"] == "resume":
        return ""
    query = None if event.fields["agent"] else _last_prompt(engine, event.session)
    return deliver(engine, query, session=event.session, window=event.window, is_new_window=True).text


def _on_prompt(engine: Engine, event: HookEvent) -> str:
    prompt = without_private_parts(strip_injected(event.fields["prompt"]))
    if not prompt or event.fields["source"] not in HUMAN_SOURCES:
        return ""
    _save_words(engine, event, "user", prompt)
    return deliver(engine, prompt, session=event.session, window=event.window).text


def _on_tool_use(engine: Engine, event: HookEvent) -> str:
    tool = EVENT_TOOLS.get(event.name) or event.fields["tool"]
    if not tool or "foveate" in tool.split("__"):  # foveate's own answers are in the store already
        return ""
    arguments = event.raw if event.name in EVENT_TOOLS else event.raw.get("tool_input")
    output, failed = _tool_output(next((event.raw[key] for key in _OUTPUT_KEYS if key in event.raw), None))
    failed = failed or event.name == "PostToolUseFailure"
    id = event.fields["id"] or digest(event.fields["turn"], tool, str(arguments), output)
    outcome = "failure" if failed else "success"
    result = ConversationMessage(role="tool", text=output, name=tool, id=id, tool_input=arguments, outcome=outcome)
    _save_message(engine, event, result)
    return ""


def _on_response(engine: Engine, event: HookEvent) -> str:
    text = event.fields["answer"]
    _save_words(engine, event, "assistant", text)
    if _HANDOFF.search(text):
        _learn_from_handoff(engine, event, text)
    if event.fields["agent"]:
        forget_window(engine, event.window)
    return ""


def _on_compaction(engine: Engine, event: HookEvent) -> str:
    now = engine.store.data.clock()
    key = f"{event.key_prefix}:{COMPACTION_EVENT_TYPE}:{now}"
    values: dict[str, Any] = {"type": COMPACTION_EVENT_TYPE, "created": now, "trust": "tool", "key": key}
    values["status"] = "archived"  # so that no context shows it
    _save_row(engine, event, RecordRow("event", COMPACTED_TEXT, values, event.session))
    summary = without_private_parts(event.fields["summary"])
    if summary:
        key = f"{event.key_prefix}:summary:{digest(summary)}"
        values = {"title": f"Session {event.session[:8]} so far", "trust": "agent", "key": key}
        _save_row(engine, event, RecordRow("episode", summary, values, event.session))
    forget_window(engine, event.window)
    return ""


def _on_session_end(engine: Engine, event: HookEvent) -> str:
    forget_window(engine, event.window)
    return ""


_HANDLERS: Mapping[str, Callable[[Engine, HookEvent], str]] = {
    "session_start": _on_session_start,
    "prompt": _on_prompt,
    "tool_use": _on_tool_use,
    "response": _on_response,
    "compaction": _on_compaction,
    "session_end": _on_session_end,
}


# --- reading and storing -------------------------------------------------------------------------------------------

_OUTPUT_KEYS = ("tool_response", "tool_output", "result_json", "output", "error")
_TEXT_KEYS = ("stdout", "stderr", "output", "llmContent", "content", "text", "error")
_ERROR_KEYS = ("is_error", "isError", "interrupted", "error")


def _tool_output(output: Any) -> tuple[str, bool]:
    """Return the text of a tool's output, and whether the tool failed."""
    if isinstance(output, list):
        return "\n".join(_tool_output(part)[0] for part in output[:100]), False
    if not isinstance(output, Mapping):
        text, exit_code = codex.parse_output(output)
        return text[:MAX_TEXT_CHARS], bool(exit_code)
    exit_code = as_mapping(output.get("metadata")).get("exit_code", output.get("exit_code", 0))
    parts = [part if isinstance(part, str) else _tool_output(part)[0] for key in _TEXT_KEYS if (part := output.get(key))]
    failed = any(output.get(key) for key in _ERROR_KEYS) or output.get("success") is False or exit_code not in (0, None)
    return "\n".join(parts)[:MAX_TEXT_CHARS], failed


def _save_row(engine: Engine, event: HookEvent, row: RecordRow) -> None:
    save_rows(engine.store.data, iter([row]), event.host)


def _save_message(engine: Engine, event: HookEvent, message: ConversationMessage) -> None:
    remember(engine.store.data, [message], replace(engine.scope, session=event.session), strict=False)


def _save_words(engine: Engine, event: HookEvent, role: Literal["user", "assistant"], text: str) -> None:
    """Store a message without an id. The same text is another message if it comes in another turn."""
    turn = event.fields["turn"]
    id, data = text_id(role, text), {"turn": turn} if turn else {}
    message = ConversationMessage(role=role, text=text, id=id, session=event.session, data=data)
    with engine.store.data.reader() as reader:
        earlier = reader.by_key(str(message_key(message, engine.scope)))
    is_repeated = earlier is not None and turn and earlier.data.get("turn") not in (None, turn)
    _save_message(engine, event, replace(message, id=f"{id}:{turn}") if is_repeated else message)


@retry_interrupted
def _last_prompt(engine: Engine, session: str) -> str | None:
    scope = replace(engine.scope, session=session)
    prompts = replace(NO_FILTERS, event_types=("user_message",))
    with engine.store.data.project_reader(scope) as reader:
        latest = reader.recent(["event"], 1, prompts, session=session)
    return latest[0].text if latest else None


def _learn_from_handoff(engine: Engine, event: HookEvent, text: str) -> None:
    """Learn from a handoff if its task is clear. Problems are logged, because a hook must not fail."""
    try:
        task = _find_task(engine, event, text)
        if task is None:
            log.warning("a handoff in session %s names no task, and none is current", event.session)
            return
        engine.tasks.handoff(task, without_private_parts(text))
    except (Conflict, InputError, NotFound) as error:
        log.warning("a handoff in session %s was not learned: %s", event.session, error)


@retry_interrupted
def _find_task(engine: Engine, event: HookEvent, text: str) -> str | None:
    """Return the task that a handoff names, else the session's current goal, else the only active task."""
    from foveate.tasks.handoff import parse

    named = parse(text).handoff.get("task_id")
    with engine.store.data.project_reader() as reader:
        record = lookup(reader, named)
    if record is not None and record.kind == "task":
        return record.id
    for tasks in (engine.scoped(session=event.session).tasks, engine.tasks):
        goal = tasks.current()
        if goal is not None:
            return goal.id
    active = engine.tasks.list(status="active")
    return active[0].id if len(active) == 1 else None
