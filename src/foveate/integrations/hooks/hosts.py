"""Coding agents that call hooks: their events become a few verbs of ours, and our answer takes their shape.

Comes in: an engine, the host's name and one event as the host writes it. Goes out: what the host reads, `{}` where there is
nothing to say. What is said and done becomes events under the keys of the transcript importers, so that importing the
session later adds nothing twice, as far as the host's ids allow. Unknown events and fields of the wrong form do nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveate.engine import Engine
from foveate.errors import Conflict, InputError, NotFound, near
from foveate.integrations.hooks.delivery import deliver, forget
from foveate.integrations.importers import claude_code, codex, keep
from foveate.integrations.importers.rows import Call, Row, digest, mapping, message, public, used
from foveate.receipts.timeline import COMPACTION
from foveate.store.retry import retried
from foveate.tasks.task import lookup
from foveate.types import NO_FILTERS

log = logging.getLogger("foveate.hooks")

_CLAUDE = {
    "SessionStart": "start",
    "SubagentStart": "start",
    "UserPromptSubmit": "ask",
    "PostToolUse": "used",
    "PostToolUseFailure": "used",
    "Stop": "said",
    "SubagentStop": "said",
    "PostCompact": "compacted",
}
EVENTS: Mapping[str, Mapping[str, str]] = {
    "claude": _CLAUDE,
    "codex": {event: verb for event, verb in _CLAUDE.items() if event != "PostToolUseFailure"},
    "cursor": {
        "sessionStart": "start",
        "beforeSubmitPrompt": "ask",
        "afterShellExecution": "used",
        "afterFileEdit": "used",
        "afterMCPExecution": "used",
        "afterAgentResponse": "said",
        "preCompact": "compacted",
        "sessionEnd": "ended",
    },
    "gemini": {
        "SessionStart": "start",
        "BeforeAgent": "ask",
        "AfterTool": "used",
        "AfterAgent": "said",
        "PreCompress": "compacted",
        "SessionEnd": "ended",
    },
}
"""What each host calls what we do."""

HOSTS = tuple(EVENTS)

KEYS = {"claude": claude_code.NAME, "codex": codex.NAME}
"""How the keys of events begin, where an importer reads the host's transcripts."""

LASTING = ("claude", "codex")
"""Hosts whose sessions, when they are resumed, still have all that hooks told them."""

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
"""Where a host may say it; the first that is there counts."""

TOOLS = {"afterShellExecution": "shell", "afterFileEdit": "edit"}
"""Tools that an event names by itself."""

PEOPLE = ("", "user", "sdk")
"""Who may ask. What a program asks in between (wake-ups, notices of its own) needs no context, and is nobody's word."""

COMPACTED = "The conversation was compacted."

MAX_TEXT = 200_000
"""Characters of one text that are looked at."""

_PROGRAMS = re.compile(
    r"<(system-reminder|task-notification|local-command-\w{1,40}|command-\w{1,40}|hook_context)\b[^<>]{0,500}>"
)
"""How what a program puts into a prompt begins."""
_HANDOFF = re.compile(
    r"^[ \t]*(?:```+|~~~+)[ \t]*handoff\b|schema[\"']?[ \t]{0,20}:[ \t]{0,20}[\"']?handoff/v1", re.MULTILINE
)
"""A handoff that says so: anything else with headings may be an answer like any other."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An event in our words."""

    host: str
    event: str
    verb: str
    session: str
    fields: Mapping[str, str]
    raw: Mapping[str, Any]

    @property
    def window(self) -> str:
        """Whose window it is: an agent within the session has one of its own."""
        return f"{self.session}/{self.fields['agent']}" if self.fields["agent"] else self.session


def handle(engine: Engine, host: str, event: Any) -> dict[str, Any]:
    """Keep what an event tells, and answer it."""
    if host not in EVENTS:
        raise InputError(f"There is no host {host!r}.{near(str(host), EVENTS)}")
    heard = hear(host, event)
    text = _VERBS[heard.verb](engine, heard) if heard else ""
    return _shaped(heard, text) if heard and text else {}


def hear(host: str, event: Any) -> Heard | None:
    """What an event says; None where it is not one of ours."""
    raw = mapping(event)
    name = raw.get("hook_event_name")
    verb = EVENTS[host].get(name) if isinstance(name, str) else None
    fields = {field: _first(raw, names) for field, names in FIELDS.items()}
    if verb is None or not fields["session"]:
        return None
    return Heard(host, str(name), verb, fields["session"], fields, raw)


def _first(raw: Mapping[str, Any], names: Sequence[str]) -> str:
    found = (raw[name] for name in names if isinstance(raw.get(name), str) and raw[name].strip())
    text = next(found, "")[:MAX_TEXT]
    return text.encode("utf-8", "replace").decode().replace("\x00", "")


def _shaped(heard: Heard, text: str) -> dict[str, Any]:
    if heard.host == "cursor":
        goes_on = {"continue": True} if heard.verb == "ask" else {}
        return {**goes_on, "additional_context": text}
    return {"hookSpecificOutput": {"hookEventName": heard.event, "additionalContext": text}}


# --- the verbs -----------------------------------------------------------------------------------------------------


def _start(engine: Engine, heard: Heard) -> str:
    """A new window, maybe of a session that goes on: then it is told what its last prompt asked for.

    One that still has all it was told needs nothing: its next prompt brings what it lacks.
    """
    if heard.host in LASTING and heard.fields["source"] == "resume":
        return ""
    known = None if heard.fields["agent"] else _last_prompt(engine, heard.session)
    return deliver(engine, known, session=heard.session, window=heard.window, fresh=True).text


def _ask(engine: Engine, heard: Heard) -> str:
    prompt = public(_by_people(heard.fields["prompt"]))
    if not prompt or heard.fields["source"] not in PEOPLE:
        return ""
    _keep_words(engine, heard, "user", prompt)
    return deliver(engine, prompt, session=heard.session, window=heard.window).text


def _used(engine: Engine, heard: Heard) -> str:
    tool = TOOLS.get(heard.event) or heard.fields["tool"]
    if not tool or "foveate" in tool.split("__"):  # what foveate told is no news
        return ""
    given = heard.raw if heard.event in TOOLS else heard.raw.get("tool_input")
    answer = next((heard.raw[name] for name in _ANSWERS if name in heard.raw), None)
    output, failed = _answered(answer)
    failed = failed or heard.event == "PostToolUseFailure"
    id = heard.fields["id"] or digest(heard.fields["turn"], tool, str(given), output)
    key = f"{KEYS.get(heard.host, heard.host)}:{heard.session}:{id}"
    call = Call(0, tool, given, key, heard.session, None)
    outcome = "failure" if failed else "success"
    keep(engine.store.data, (replace(row, text=public(row.text) or tool) for row in used(call, output, outcome)), heard.host)
    return ""


def _said(engine: Engine, heard: Heard) -> str:
    text = heard.fields["answer"]
    _keep_words(engine, heard, "assistant", text)
    if _HANDOFF.search(text):
        _learn(engine, heard, text)
    if heard.fields["agent"]:
        forget(engine, heard.window)
    return ""


def _compacted(engine: Engine, heard: Heard) -> str:
    at = engine.store.data.clock()
    values: dict[str, Any] = {"type": COMPACTION, "status": "archived", "created": at, "trust": "tool"}  # for no prompt
    values["key"] = f"{KEYS.get(heard.host, heard.host)}:{heard.session}:{COMPACTION}:{at}"
    keep(engine.store.data, iter([Row("event", COMPACTED, values, heard.session)]), heard.host)
    summary = public(heard.fields["summary"])
    if summary:
        values = {"title": f"Session {heard.session[:8]} so far", "trust": "agent"}
        values["key"] = f"{KEYS.get(heard.host, heard.host)}:{heard.session}:summary:{digest(summary)}"
        keep(engine.store.data, iter([Row("episode", summary, values, heard.session)]), heard.host)
    forget(engine, heard.window)
    return ""


def _ended(engine: Engine, heard: Heard) -> str:
    forget(engine, heard.window)
    return ""


_VERBS: Mapping[str, Callable[[Engine, Heard], str]] = {
    "start": _start,
    "ask": _ask,
    "used": _used,
    "said": _said,
    "compacted": _compacted,
    "ended": _ended,
}


# --- what they need ------------------------------------------------------------------------------------------------

_ANSWERS = ("tool_response", "tool_output", "result_json", "output", "error")
_TEXTS = ("stdout", "stderr", "output", "llmContent", "content", "text", "error")
_ERRORS = ("is_error", "isError", "interrupted", "error")


def _answered(answer: Any) -> tuple[str, bool]:
    """What a tool answered, in words, and whether that is a failure."""
    if isinstance(answer, list):
        return "\n".join(_answered(part)[0] for part in answer[:100]), False
    if not isinstance(answer, Mapping):
        text, code = codex.answered(answer)
        return text[:MAX_TEXT], bool(code)
    code = mapping(answer.get("metadata")).get("exit_code", answer.get("exit_code", 0))
    parts = [part if isinstance(part, str) else _answered(part)[0] for name in _TEXTS if (part := answer.get(name))]
    failed = any(answer.get(name) for name in _ERRORS) or answer.get("success") is False or code not in (0, None)
    return "\n".join(parts)[:MAX_TEXT], failed


def _by_people(prompt: str) -> str:
    """A prompt without what programs put into it. A tag that is never closed is text."""
    kept, at = [], 0
    unclosed: set[str] = set()
    while match := _PROGRAMS.search(prompt, at):
        name = match[1]
        end = -1 if name in unclosed else prompt.find(f"</{name}>", match.end())
        kept.append(prompt[at : match.start() if end >= 0 else match.end()])
        at = end + len(name) + 3 if end >= 0 else match.end()
        if end < 0:
            unclosed.add(name)
    return "".join([*kept, prompt[at:]])


def _keep_words(engine: Engine, heard: Heard, role: str, text: str) -> None:
    """Somebody's words. The same in another turn are said again; without a turn's id, or in the same one, they are known."""
    turn = heard.fields["turn"]
    for row in message(role, text, key="", session=heard.session, at=None):
        with engine.store.data.reader() as reader:
            before = reader.by_key(row.alias)
        again = before is not None and turn and before.data.get("turn") not in (None, turn)
        values = {**row.values, "key": f"{row.alias}:{turn}" if again else row.alias, **({"turn": turn} if turn else {})}
        keep(engine.store.data, iter([replace(row, values=values, alias="")]), heard.host)


@retried
def _last_prompt(engine: Engine, session: str) -> str | None:
    scope = replace(engine.scope, session=session)
    asked = replace(NO_FILTERS, event_types=("user_message",))
    with engine.store.data.store.read(scope) as reader:
        found = reader.recent(["event"], 1, asked, session=session)
    return found[0].text if found else None


def _learn(engine: Engine, heard: Heard, text: str) -> None:
    """Learn from a handoff, where it is clear of which task it is. What is wrong with it is told in the log."""
    try:
        task = _task_of(engine, heard, text)
        if task is None:
            log.warning("a handoff in session %s names no task, and none is current", heard.session)
            return
        engine.tasks.handoff(task, public(text))
    except (Conflict, InputError, NotFound) as error:
        log.warning("a handoff in session %s was not learned: %s", heard.session, error)


@retried
def _task_of(engine: Engine, heard: Heard, text: str) -> str | None:
    """The task that a handoff names, else the session's current goal, else the only one at work."""
    from foveate.tasks.handoff import parse

    named = parse(text).handoff.get("task_id")
    with engine.store.data.store.read(engine.scope) as reader:
        record = lookup(reader, named)
    if record is not None and record.kind == "task":
        return record.id
    for tasks in (engine.scoped(session=heard.session).tasks, engine.tasks):
        goal = tasks.current()
        if goal is not None:
            return goal.id
    active = engine.tasks.list(status="active")
    return active[0].id if len(active) == 1 else None
