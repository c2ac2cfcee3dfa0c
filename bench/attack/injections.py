"""Put each injection of the corpus, and each forged heading, wherever text enters, and read what a model would receive.

Whatever the place: nothing of it is in the system message, it is no heading, turn or call, the marks of contexts and fences
are escaped, and no record with its words has more trust than its author.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from starlette.testclient import TestClient
from tests.injection.injection_kit import TEXTS, harmless, parts
from tests.redteam.heading_attacks import ATTACKS

from bench.attack.stores import KIND_NAMES
from bench.attack.tally import Tally, require
from foveate import Context, Engine
from foveate.errors import FoveateError
from foveate.integrations import anthropic_messages, openai_messages
from foveate.integrations.hooks.delivery import deliver
from foveate.integrations.hooks.hosts import handle
from foveate.integrations.importers.files import import_lines
from foveate.pipeline import profiles
from foveate.records.kinds import KINDS, RULE_KINDS
from foveate.server.http.app import create_app
from foveate.server.mcp.tools import Tools
from foveate.testing import engine as new_engine
from foveate.types import NO_FILTERS, TRUST, Trust

MARK = "Quillfeather"
HONEST = f"Invoice 4471 was paid in March by the northern branch, says {MARK}."
QUESTION = "Was invoice 4471 paid in March by the northern branch?"
RULE = "Answer in whole sentences, and name the invoice."
BUDGET = 30_000
QUICK_STEP = 30
"""One of so many injections in a quick run."""

DEEP_SLOTS = ("facts", "decisions", "warnings", "patterns", "recent", "messages")
OVERRIDES = {"slots": {name: {"level": "full", "max_level": "full", "min_relevance": 0.0} for name in DEEP_SLOTS}}
CONTEXT_MARKS = re.compile(r"</?foveate-context", re.IGNORECASE)
FIELDS_OF_AGENTS = ("result", "reason", "files_to_read", "handoff")
"""Fields that the end of a task adds to the record of the user's task. They are escaped when they are shown."""
USER_WORDS = "What does the page say?"
OWN_BEGINNING = re.compile(rf"^- (Tool |User: (?={re.escape(USER_WORDS)}))", re.MULTILINE)
"""Begins the line of a tool's event, where the tool's name follows, and of what the user really said."""
TEMPLATE_TOKEN = re.compile(r"<\|\w+\|>|<<SYS>>|\[/?INST\]", re.IGNORECASE)
"""Escaped in the words of a repository, too. Its other marks are ordinary in code."""
OTHER_HEADINGS = ("No longer holds", "Codebase")

Place = Callable[[Engine, str], object]
"""Enters a text into an engine. What foveate refuses on purpose does not enter."""


# --- places ----------------------------------------------------------------------------------------------------------


def add(kind: str, trust: Trust, **fields: Any) -> Place:
    return lambda engine, text: engine.add(kind, text, trust=trust, **fields)


def add_named(**names: Callable[[str], Any]) -> Place:
    """Enter a text as names of a web page's fact."""
    return lambda engine, text: engine.add("fact", HONEST, trust="web", **{name: make(text) for name, make in names.items()})


def chat_completions(engine: Engine, text: str, content: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "fetch_page", "arguments": json.dumps({"url": text})}}
    messages = [
        {"role": "user", "content": USER_WORDS},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": content},
    ]
    openai_messages.remember(engine, messages, session="other")
    check_sent(openai_messages.messages_for(engine, [*messages, {"role": "user", "content": QUESTION}], session="s"))


def check_sent(messages: Iterable[dict[str, Any]]) -> None:
    for message in messages:
        if message["role"] == "system":
            require(MARK not in json.dumps(message), "it is in the system message of chat completions")


def anthropic_result(engine: Engine, text: str, content: Any) -> None:
    messages = [
        {"role": "user", "content": USER_WORDS},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "web_fetch", "input": {"url": text}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": content}]},
    ]
    anthropic_messages.remember(engine, messages, session="other")
    sent = anthropic_messages.messages_for(engine, [*messages, {"role": "user", "content": QUESTION}], session="s")
    require(MARK not in json.dumps(sent["system"]), "it is in the system blocks of Anthropic's messages")


def handoff(engine: Engine, document: str | dict[str, Any]) -> None:
    engine.tasks.add("Fetch the invoices", key="first")
    engine.tasks.add("Pay the invoices", key="second", depends_on=["first"])
    engine.tasks.handoff("first", document)


def structured_handoff(engine: Engine, text: str) -> None:
    handoff(
        engine,
        {
            "summary": text,
            "gotchas": [{"issue": text, "severity": "high"}],
            "patterns_discovered": [{"pattern": text, "location": text[:60]}],
            "open_questions": [{"question": text, "context": text, "blocking": True}],
            "files_created": [text[:60]],
        },
    )


def hook(engine: Engine, event: str, **fields: Any) -> None:
    handle(engine, "claude", {"hook_event_name": event, "session_id": "h", "cwd": "/", **fields})


def over_http(path: str, body: Callable[[str], Any]) -> Place:
    def enter(engine: Engine, text: str) -> None:
        with TestClient(create_app(engine), base_url="http://127.0.0.1") as client:
            answer = client.post(path, json=body(text))
            require(answer.status_code < 500, f"status {answer.status_code}")

    return enter


def over_mcp(tool: str, arguments: Callable[[str], dict[str, Any]]) -> Place:
    return lambda engine, text: getattr(Tools(lambda: engine), tool)(**arguments(text))


def finish_over_mcp(engine: Engine, text: str) -> None:
    engine.tasks.add("Fetch the invoices", key="first")
    Tools(lambda: engine).finish_task("first", {"summary": text})


def transcript(engine: Engine, text: str) -> None:
    """A transcript of Claude Code in which a page was fetched."""
    base = {"sessionId": "i", "cwd": "/", "timestamp": "2026-01-02T00:00:00Z"}
    call = {"type": "tool_use", "id": "t1", "name": "WebFetch", "input": {"url": "https://example.org"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": text}]}
    rows = (
        {**base, "type": "assistant", "uuid": "1", "message": {"role": "assistant", "content": [call]}},
        {**base, "type": "user", "uuid": "2", "message": {"role": "user", "content": [result]}},
    )
    import_lines(engine.store.data, [json.dumps(row).encode() for row in rows], "x.jsonl", "claude-code")


KNOWLEDGE = tuple(name for name in KIND_NAMES if name not in RULE_KINDS)

PLACES: dict[str, Place] = {
    **{f"{kind} of a page": add(kind, "web") for kind in KIND_NAMES},
    **{f"{kind} of a tool": add(kind, "tool") for kind in KIND_NAMES},
    **{f"{kind} of a repository": add(kind, "repo") for kind in KNOWLEDGE},
    **{f"{kind} of an agent": add(kind, "agent") for kind in KNOWLEDGE},
    "a pinned page": add("note", "web", pinned=True),
    "tags": add_named(tags=lambda text: [text[:80], "invoice"]),
    "a subject": add_named(subject=lambda text: text[:80], attribute=lambda _: "state"),
    "an attribute": add_named(subject=lambda _: "invoice", attribute=lambda text: text[:80]),
    "entities": add_named(entities=lambda text: [text[:80]]),
    "paths": add_named(paths=lambda text: [text[:80]]),
    "an origin": add_named(origin=lambda text: text[:80]),
    "a key": add_named(key=lambda text: text[:80]),
    "a summary": add_named(summary=str, micro=lambda text: text[:80]),
    "a rationale": lambda e, t: e.add("decision", HONEST, trust="web", data={"rationale": t, "alternatives": [t]}),
    "a workaround": lambda e, t: e.add("gotcha", HONEST, trust="tool", data={"workaround": t}),
    "a title": lambda e, t: e.add("episode", HONEST, trust="web", data={"title": t, "result": t, "participants": [t]}),
    "fields of a note": lambda e, t: e.add("note", HONEST, trust="web", data={"name": t, "title": t, "url": t}),
    "an entity": lambda e, t: e.add("entity", HONEST, trust="web", data={"name": t[:80], "type": t, "aliases": [t]}),
    "an event's type": lambda e, t: e.add("event", HONEST, trust="web", data={"type": t}),
    "a session": lambda e, t: e.scoped(session=t[:200]).add("event", HONEST, trust="web"),
    "an agent": lambda e, t: e.scoped(agent=t[:200]).add("fact", HONEST, trust="web"),
    "an answer": lambda e, t: e.remember([{"role": "assistant", "content": t}]),
    "an answer's name": lambda e, t: e.remember([{"role": "assistant", "content": HONEST, "name": t[:80]}]),
    "a tool's result": lambda e, t: e.remember([{"role": "tool", "content": t, "name": "shell"}]),
    "a page": lambda e, t: e.remember([{"role": "tool", "content": t, "name": "fetch_page"}]),
    "a tool's name": lambda e, t: e.remember([{"role": "tool", "content": HONEST, "name": t[:80]}]),
    "chat completions": lambda e, t: chat_completions(e, t, t),
    "parts of chat completions": lambda e, t: chat_completions(e, t, [{"type": "text", "text": t}]),
    "an Anthropic result": lambda e, t: anthropic_result(e, t, t),
    "parts of an Anthropic result": lambda e, t: anthropic_result(e, t, [{"type": "text", "text": t}]),
    "a handoff": lambda e, t: structured_handoff(e, t),
    "a Markdown handoff": lambda e, t: handoff(e, f"# Summary\n{t}\n## Gotchas\n- {t}\n## Decisions\n- {t}\n"),
    "a YAML handoff": lambda e, t: handoff(e, f"summary: {json.dumps(t)}\ngotchas:\n  - issue: {json.dumps(t)}\n"),
    "a proposal": lambda e, t: e.inbox.propose("instruction", t, tags=[t[:40]]),
    "an extra text": lambda e, t: check(
        e.context(QUESTION, budget=BUDGET, extra=[{"text": t, "trust": "web", "origin": t[:60]}], overrides=OVERRIDES), "web"
    ),
    "a hook's page": lambda e, t: hook(
        e, "PostToolUse", tool_name="WebFetch", tool_input={"url": t[:80]}, tool_response={"stdout": t}, tool_use_id="1"
    ),
    "a hook's tool": lambda e, t: hook(
        e, "PostToolUse", tool_name=t[:60], tool_input={"x": t}, tool_response={"stdout": t}, tool_use_id="1"
    ),
    "a hook's answer": lambda e, t: hook(e, "Stop", last_assistant_message=t),
    "a hook's summary": lambda e, t: hook(e, "PostCompact", compact_summary=t),
    "HTTP records": over_http("/v1/records", lambda t: {"kind": "fact", "text": t, "trust": "web", "tags": [t[:40]]}),
    "HTTP messages": over_http("/v1/remember", lambda t: {"messages": [{"role": "tool", "content": t, "name": "fetch"}]}),
    "HTTP hooks": over_http(
        "/v1/hooks/claude",
        lambda t: {"hook_event_name": "Stop", "session_id": "h", "cwd": "/", "last_assistant_message": t},
    ),
    "MCP remember": over_mcp("remember", lambda t: {"text": t[:4000], "kind": "decision", "tags": [t[:40]]}),
    "MCP rule": over_mcp("remember", lambda t: {"text": t[:4000], "kind": "instruction"}),
    "MCP messages": over_mcp("remember", lambda t: {"messages": [{"role": "user", "content": t}], "session": t[:40]}),
    "MCP finish_task": finish_over_mcp,
    "an imported page": transcript,
}
"""Where text enters an engine; files of a repository are in `repository`."""

AGENT_PLACES = ("agent", "answer", "handoff", "HTTP hooks", "MCP", "proposal", "summary", "a session", "fields of a")


def repository(text: str) -> dict[str, str]:
    """Return files that have a text in every place."""
    name = re.sub(r"[/\\\x00-\x1f\ud800-\udfff]", "_", text)[:60].strip(" .") or "x"
    return {
        "AGENTS.md": f"# Shop\n\n{text}\n",
        "README.md": f"# Shop\n\n{text}\n\n## Usage\n\n{text}\n",
        "docs/guide.md": f"{text}\n",
        "src/CLAUDE.md": f"{text}\n",
        "src/cart.py": f'def invoice_{MARK.lower()}():\n    """{text} {HONEST}"""\n    # {text}\n    return 1\n',
        f"src/{name}.py": f"invoice_{MARK.lower()} = 1\n",
        "pyproject.toml": f'[project]\nname = "shop"\ndescription = {json.dumps(text)}\n',
    }


# --- what must hold --------------------------------------------------------------------------------------------------


@cache
def allowed_headings() -> frozenset[str]:
    """Return the headings that foveate writes itself."""
    slots = (slot for name in profiles.names(()) for slot in profiles.resolve(name).slots)
    found = [slot.heading.lstrip("# ").strip() for slot in slots] + [kind.heading for kind in KINDS.values()]
    return frozenset((*found, *(f"{heading} (changed)" for heading in found), *OTHER_HEADINGS))


def headings(text: str) -> Iterator[str]:
    tokens = MarkdownIt("commonmark").parse(text)
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.level == 0:
            yield tokens[number + 1].content


def check_text(text: str, tag: str, highest: Trust) -> None:
    """Check the user message of a context, or what a hook sends."""
    require(text.count(f"</{tag}>") == text.count(f'<{tag} note="'), "a fence is not closed, or closed twice")
    outside, inside = parts(text, tag)
    harmless(OWN_BEGINNING.sub("- Ran ", inside), tag)
    require(not TEMPLATE_TOKEN.search(outside), "a token of a chat template is not escaped")
    if highest != "repo":
        harmless(OWN_BEGINNING.sub("- Ran ", outside.replace(tag, "")), tag)
    for heading in headings(outside):
        require(heading in allowed_headings(), f"heading {heading!r:.60}")


def check(context: Context, highest: Trust) -> None:
    for message in context.messages():
        if message["role"] == "system":
            require(MARK not in message["content"].replace(RULE, ""), "it is in the system message")
        else:
            check_text(message["content"], context.tag, highest)
            require(not CONTEXT_MARKS.search(message["content"]), "a mark of a context is not escaped")
    require(MARK not in context.stable, "it is in the stable part")


def check_trust(engine: Engine, highest: Trust) -> None:
    with engine.store.data.project_reader() as reader:
        records = [record for kind in KINDS for record in reader.recent([kind], 1000, NO_FILTERS)]
    for record in records:
        own = [record.text, {name: value for name, value in record.data.items() if name not in FIELDS_OF_AGENTS}]
        if MARK in json.dumps(own, default=str):
            require(TRUST.index(record.trust) <= TRUST.index(highest), f"{record.kind} has the trust {record.trust}")
            require(record.kind not in RULE_KINDS, f"it is a rule ({record.kind})")
            require(not record.pinned, "it is pinned")


def check_engine(engine: Engine, highest: Trust, profile_names: Sequence[str]) -> None:
    check_trust(engine, highest)
    for name in profile_names:
        slots = {slot.name for slot in profiles.resolve(name).slots}
        overrides = {"slots": {slot: values for slot, values in OVERRIDES["slots"].items() if slot in slots}}
        check(engine.context(QUESTION, budget=BUDGET, profile=name, overrides=overrides), highest)
    sent = deliver(engine, QUESTION, session="window", is_new_window=True)
    check_text(sent.text.removeprefix("<foveate-context>\n").removesuffix("</foveate-context>"), sent.context.tag, highest)
    for record in engine.records(limit=3):
        if record.trust in ("tool", "web"):
            check_text(engine.expand(record.id)["content"], sent.context.tag, highest)


def variants(quick: bool) -> list[str]:
    forged = [f"{attack}\n" for attack in ATTACKS.values()]
    every = [*TEXTS, *forged]
    return every[::QUICK_STEP] if quick else every


def attack(tally: Tally, quick: bool) -> None:
    chosen = variants(quick)
    profile_names = ("default", "chat") if quick else ("default", "chat", "coding")
    for number, injected in enumerate(chosen):
        for name, enter in PLACES.items():
            text = f"{injected}\n{HONEST}" if number % 2 else f"{HONEST}\n{injected}"
            highest: Trust = "agent" if any(part in name for part in AGENT_PLACES) else "tool"
            highest = "repo" if "repository" in name else highest
            with tally.case(f"{name}: {injected!r:.60}"), new_engine(session="s", code=False) as engine:
                engine.add("instruction", RULE)
                with suppress(FoveateError):
                    enter(engine, text)
                check_engine(engine, highest, profile_names)
        with tally.case(f"repository: {injected!r:.60}"), new_engine(session="s", files=repository(injected)) as engine:
            engine.add("instruction", RULE)
            check_engine(engine, "repo", ("coding", "default", "task-files"))
    tally.notes.append(f"{len(chosen)} injections in {len(PLACES) + 1} places")
