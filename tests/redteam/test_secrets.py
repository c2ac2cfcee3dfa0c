"""Formats of secrets that were once stored, and ordinary texts that look a little like them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from secret_formats import ALNUM, EMPTY_FORMATS, FORMATS, ORDINARY, made

import foveate
from foveate import Engine
from foveate.integrations import openai_messages
from foveate.integrations.hooks.hosts import handle
from foveate.server.tokens import Tokens
from foveate.testing import engine
from foveate.text.redact import redact


@pytest.mark.parametrize(
    ("template", "secret"), FORMATS, ids=[f"{n} {template[:30]}" for n, (template, _) in enumerate(FORMATS)]
)
def test_a_secret_is_not_stored(template: str, secret: str) -> None:
    text = template.format(secret)
    redacted = redact(text).text
    assert secret not in redacted
    assert redact(redacted).text == redacted
    before, after = (part for part in template.format("\0").split("\0"))
    assert redacted.startswith(before.rstrip("'\""))
    assert redacted.endswith(after)
    with engine() as memory:
        assert secret not in memory.add("note", text).record.text
        assert secret.split()[0] not in memory.tasks.add(text).name


@pytest.mark.slow
def test_no_handoff_keeps_a_secret() -> None:
    with engine() as memory:
        for template, secret in FORMATS:
            text = template.format(secret)
            fields = {"summary": text, "files_created": [text], "more": {"notes": [text]}}
            for handoff in (fields, json.dumps(fields), f"# Summary\nDone\n## Files\n- {text}"):
                memory.tasks.handoff(memory.tasks.add("Fetch the invoices"), handoff)
        lines = "\n".join(memory.store.export_lines())
    assert [template for template, secret in FORMATS if secret.split()[0] in lines] == []


def test_tokens_of_the_service_are_not_stored(tmp_path: Path) -> None:
    _, secret = Tokens(tmp_path / "tokens.json").create("test", ["admin"], "main")
    assert secret not in redact(f"curl -H 'X-Token: {secret}' localhost:8377").text


def test_there_are_enough_formats_and_ordinary_texts() -> None:
    assert len(set(FORMATS)) == len(FORMATS) >= 200
    assert len(set(ORDINARY)) == 62


@pytest.mark.parametrize("text", EMPTY_FORMATS)
def test_a_placeholder_stays_as_it_is(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text).text == text


NAME = "ghp_" + made(ALNUM, 36)


def leave_names(e: Engine) -> None:
    """Give a secret as every name that a call takes, and find what was stored under it."""
    who = {"user": NAME, "agent": NAME, "session": NAME}
    e.scoped(project=NAME).add("fact", "x")
    fact = e.add("fact", "Pumps run daily", tags=[NAME], paths=[f"src/{NAME}.py"], entities=[NAME], origin=NAME, **who)
    assert fact.record.id in [hit.record.id for hit in e.search("pumps", **who)]
    assert "Pumps run daily" in e.scoped(**who).context("pumps").text
    e.remember([{"role": "user", "content": "Hello", "name": NAME, "id": NAME}], session=NAME)
    assert e.remember([{"role": "user", "content": "Hello", "name": NAME, "id": NAME}], session=NAME).known == 1
    context = e.context("Which pumps?", session=NAME)
    assert [each.id for each in e.receipts.list(session=NAME)] == [context.id]
    assert e.receipts.timeline(NAME).turns
    e.link(NAME, NAME, f"{NAME}x", create=True)
    task = e.tasks.add(NAME, key=NAME, files=[NAME])
    e.tasks.claim(task, agent=NAME)
    assert [claim.task.id for claim in e.tasks.claims(agent=NAME)] == [task.id]
    e.tasks.handoff(task, {"summary": "Done", "files_created": [NAME]}, agent=NAME)
    openai_messages.messages_for(e, [{"role": "user", "content": "And now?"}], session=NAME, user=NAME)
    for name, fields in (("SessionStart", {}), ("UserPromptSubmit", {"prompt": "Which pumps run?"})):
        handle(e, "claude", {"hook_event_name": name, "session_id": NAME, "agent_id": NAME, "cwd": "/", **fields})


def test_no_name_keeps_a_secret(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False, code=False) as made_engine:
        leave_names(made_engine)
    for file in (tmp_path / ".foveate").iterdir():
        assert NAME.encode() not in file.read_bytes(), file.name
