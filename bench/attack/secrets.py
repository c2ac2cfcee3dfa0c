"""Formats of secrets in every place where text is stored, and ordinary texts that must stay as they are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.redteam.secret_formats import EMPTY_FORMATS, FORMATS, ORDINARY

import foveate
from bench.attack.tally import Tally, require
from foveate import Engine
from foveate.errors import FoveateError
from foveate.text.redact import redact

QUICK_STEP = 10

Place = Callable[[Engine, str], Any]

PLACES: dict[str, Place] = {
    "a record": lambda e, t: e.add("note", t),
    "fields": lambda e, t: e.add("decision", "x", data={"rationale": t}, summary=t, origin=t),
    "names": lambda e, t: e.add("fact", "x", subject=t, tags=[t], entities=[t], paths=[t], user=t, agent=t, session=t),
    "a project": lambda e, t: e.scoped(project=t).add("fact", "x"),
    "a link": lambda e, t: e.link(t, t, "other", create=True),
    "a message": lambda e, t: e.remember([{"role": "user", "content": t, "name": t, "id": t}]),
    "a tool's result": lambda e, t: e.remember([{"role": "tool", "content": t, "name": "shell"}]),
    "a task": lambda e, t: e.tasks.add(t, objective=t, key=t, files=[t], steps=[t]),
    "a handoff": lambda e, t: e.tasks.handoff(e.tasks.add("x").id, {"summary": t, "files_created": [t], "more": t}),
    "a request": lambda e, t: e.context(t, code_query=t, extra=[t], session=t),
    "a refresh": lambda e, t: e.refresh(e.context("x"), t, event=t),
    "a proposal": lambda e, t: e.inbox.reject(e.inbox.propose("instruction", t).record.id, reason=t),
}


def attack(tally: Tally, quick: bool) -> None:
    step = QUICK_STEP if quick else 1
    for template, secret in FORMATS[::step]:
        text = template.format(secret)
        with tally.case(f"format {template!r:.60}"):
            redacted = redact(text).text
            require(secret not in redacted, "the secret stays")
            require(redact(redacted).text == redacted, "redacting again changes the text")
    for text in (*ORDINARY, *EMPTY_FORMATS[::step]):
        with tally.case(f"ordinary {text!r:.60}"):
            require(redact(text).text == text, "it was changed")
    for name, enter in PLACES.items():
        attack_place(tally, name, enter, step)
    tally.notes.append(
        f"{len(FORMATS[::step])} formats, {len(ORDINARY)} ordinary texts, {len(EMPTY_FORMATS[::step])} placeholders"
    )


def attack_place(tally: Tally, name: str, enter: Place, step: int) -> None:
    """Enter all formats in one place, and search the bytes of the files for the secrets."""
    chosen = FORMATS[::step]
    with tempfile.TemporaryDirectory() as folder:
        with foveate.open(folder, personal=False, code=False) as engine:
            for template, secret in chosen:
                with suppress(FoveateError):
                    enter(engine, template.format(secret))
        files = [Path(folder, ".foveate", file).read_bytes() for file in os.listdir(Path(folder, ".foveate"))]
    for template, secret in chosen:
        with tally.case(f"{name}: {template!r:.60}"):
            require(not any(secret.encode() in content for content in files), "the secret is in the store's files")
