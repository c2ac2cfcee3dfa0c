"""Texts of all of Unicode, and every call of the library that takes one. Used by tests and by `python -m bench attack`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from foveate import Engine, Filters
from foveate.integrations import anthropic_messages, openai_messages

SPECIAL = (
    # Letters whose other case is ASCII or longer, digits of other scripts, numbers that are no digits.
    *("ſ", "\u212a", "İ", "ı", "ß", "ŉ", "ﬁ", "Ǆ", "ς", "½", "²", "٣", "１２", "Ⅻ", "𝟜", "①", "৩", "一", "\u0661\u0660"),
    # Texts that a pattern takes for a number with a unit, a date, a path, a reference or markup.
    *("7ſ", "laſt week", "in ſeptember", "5 daуs", "3\u00a0km", "\u0663 days ago", "mİn", "2 o\u212a", "٧d", "²d", "10 ſep"),
    *(
        "2026-11-١٥",
        "٢٠٢٦",
        "９９９９-１２-３１",
        "9" * 5000,
        "1e999",
        "-0",
        "year 0",
        "99999 years ago",
        "feb 30",
        "31/31/31",
    ),
    *("next ſunday", "to\u212ayo", "ctx_", "code:", "fact_", "\U0001f468\u200d\U0001f469", "e\u0301", "\u0301", "\u202e"),
    *("\x00", "\x85", "\u2028", "\udc80", "\ud800", "\x1b[31m", "\U000e0041", "\ufeff", "\uffff", "\n", "\r", "\t", " "),
    *(
        "# ",
        "```",
        "- ",
        "| ",
        "<",
        "</foveate-context>",
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "$",
        "%s",
        "{0}",
        "\\",
        "\\g<1>",
        "(?",
    ),
    *(
        "---\n",
        "summary: ",
        "!!python/object ",
        "&a *a",
        "token=",
        "password: ",
        "a/ſ.py",
        "src/../x",
        "C:\\x",
        "..",
        "/",
        "~",
    ),
)

TEXT = st.lists(st.sampled_from(SPECIAL) | st.text(st.characters(), max_size=6), max_size=8).map("".join)
"""All of Unicode, lone surrogates included."""


def openai(text: str) -> list[dict[str, Any]]:
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
    return [
        {"role": "system", "content": text},
        {"role": "user", "content": [{"type": "text", "text": text}, {"type": text}]},
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": text, "content": text},
        {"role": "user", "content": text, "name": text},
    ]


def anthropic(text: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": text},
        {"role": "assistant", "content": [{"type": "tool_use", "id": text, "name": text, "input": {text: text}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": text, "content": text}]},
        {"role": "user", "content": [{"type": "text", "text": text}]},
    ]


def task(engine: Engine) -> str:
    return engine.tasks.add("Ship it", key="ship").id


def fact(engine: Engine) -> str:
    return engine.add("fact", "Seven seconds").record.id


CALLS: dict[str, Callable[[Engine, str], Any]] = {
    **{f"add {kind}": lambda e, t, kind=kind: e.add(kind, t) for kind in ("fact", "event", "censor", "procedure", "entity")},
    "add to a kind": lambda e, t: e.add(t, "text"),
    "add names": lambda e, t: e.add("fact", "x", subject=t, attribute=t, tags=[t], entities=[t], paths=[t], origin=t),
    "add a key": lambda e, t: e.add("fact", "x", key=t, user=t, agent=t, session=t),
    "add data": lambda e, t: e.add("decision", "x", data={"rationale": t}),
    "add a data name": lambda e, t: e.add("event", "x", data={t: t}),
    "add times": lambda e, t: e.add("fact", "x", valid_from=t),
    "add an end": lambda e, t: e.add("fact", "x", valid_to=t),
    "add a summary": lambda e, t: e.add("fact", "x", summary=t, micro=t),
    "context": lambda e, t: e.context(t),
    "context of code": lambda e, t: e.context("x", code_query=t),
    "context now": lambda e, t: e.context("x", now=t),
    "context names": lambda e, t: e.context("x", agent=t, session=t, user=t),
    "context frame": lambda e, t: e.context("x", frame=t),
    "context profile": lambda e, t: e.context("x", profile=t),
    "context without": lambda e, t: e.context("x", without=[t]),
    "context counter": lambda e, t: e.context("x", counter=t),
    "context extra": lambda e, t: e.context("x", extra=t),
    "context extra slot": lambda e, t: e.context("x", extra={t: t}),
    "context overrides": lambda e, t: e.context("x", overrides={"slots": {t: {"heading": t, "source": "text", "text": t}}}),
    "context task": lambda e, t: e.context(task=t),
    "filters": lambda e, t: e.context("x", filters=Filters(tags=[t], kinds=[t], exclude=[t], event_types=[t])),
    "filter times": lambda e, t: e.search("x", filters=Filters(since=t)),
    "refresh": lambda e, t: e.refresh(e.context("x"), t, event=t),
    "search": lambda e, t: e.search(t),
    "search kinds": lambda e, t: e.search("x", kinds=[t]),
    "records": lambda e, t: list(e.records(kinds=[t], status=t)),
    "check": lambda e, t: e.check(t),
    "get": lambda e, t: e.get(t),
    "history": lambda e, t: e.history(t),
    "get as of": lambda e, t: e.get(fact(e), as_of=t),
    "expand": lambda e, t: e.expand(t),
    "forget": lambda e, t: e.forget(t),
    "undo": lambda e, t: e.undo(t),
    "link": lambda e, t: e.link(t, t, f"{t}x", create=True),
    "edit": lambda e, t: e.edit(fact(e), text=t, tags=[t], result=t),
    "edit an id": lambda e, t: e.edit(t, text=t),
    "why": lambda e, t: e.why(t, e.context("x")),
    "why a context": lambda e, t: e.why(fact(e), t),
    "feedback": lambda e, t: e.feedback(e.context("seven"), answer=t, useful=[t]),
    "remember": lambda e, t: e.remember(t),
    "remember names": lambda e, t: e.remember([{"role": "user", "content": t, "name": t, "id": t}]),
    "remember tool": lambda e, t: e.remember([{"role": "tool", "content": t, "name": t}]),
    "remember time": lambda e, t: e.remember([{"role": "user", "content": "x", "at": t}]),
    "remember role": lambda e, t: e.remember([{"role": t, "content": "x"}]),
    "openai": lambda e, t: openai_messages.messages_for(e, openai(t), budget=900, session="s"),
    "openai session": lambda e, t: openai_messages.remember(e, openai("x"), session=t),
    "anthropic": lambda e, t: anthropic_messages.messages_for(e, anthropic(t), budget=900, session="s"),
    "task": lambda e, t: e.tasks.add(t, objective=t, description=t, steps=[t], acceptance_criteria=[t], tags=[t], type=t),
    "task files": lambda e, t: e.tasks.add("x", files=[t]),
    "task dependencies": lambda e, t: e.tasks.add("x", depends_on=[t]),
    "task parent": lambda e, t: e.tasks.add("x", parent=t),
    "task key": lambda e, t: e.tasks.add("x", key=t),
    "task time": lambda e, t: e.tasks.add("x", estimated_time=t),
    "task list": lambda e, t: e.tasks.list(status=t),
    "task get": lambda e, t: e.tasks.get(t),
    "task complete": lambda e, t: e.tasks.complete(task(e), t),
    "task fail": lambda e, t: e.tasks.fail(task(e), t),
    "claim": lambda e, t: e.tasks.claim(task(e), agent=t),
    "handoff": lambda e, t: e.tasks.handoff(task(e), t),
    "handoff yaml": lambda e, t: e.tasks.handoff(task(e), f"summary: {t}\ngotchas:\n  - issue: {t}\n    severity: {t}\n"),
    "handoff json": lambda e, t: e.tasks.handoff(
        task(e), json.dumps({"summary": t, "open_questions": [{"question": t}], "files_created": [t], t: t})
    ),
    "handoff markdown": lambda e, t: e.tasks.handoff(task(e), f"# Summary\n{t}\n## Gotchas\n- {t}\n## {t}\n{t}"),
    "push and pop": lambda e, t: (e.tasks.push(t), e.tasks.pop(t)),
    "propose": lambda e, t: e.inbox.propose("instruction", t, tags=[t]),
    "accept": lambda e, t: e.inbox.accept(e.inbox.propose("instruction", "x").record.id, text=t, kind=t),
    "reject": lambda e, t: e.inbox.reject(t, reason=t),
    "answer": lambda e, t: e.inbox.answer(t, t),
    "import": lambda e, t: e.store.import_lines([t, json.dumps({"kind": "fact", "text": t, "id": t})]),
    "scoped": lambda e, t: e.scoped(user=t, agent=t, session=t, task=t).context(t),
    "project": lambda e, t: e.scoped(project=t).add("fact", t),
}
