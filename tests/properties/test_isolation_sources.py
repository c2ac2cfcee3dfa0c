"""Project, user, agent, session and task hold in every source: many owners, everything linked to everything, no leak."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from foveate import Engine, Scope
from foveate.engine.engine import view_of
from foveate.errors import InputError
from foveate.pipeline.profiles import names, resolve
from foveate.pipeline.sources import BUILTIN_SOURCES
from foveate.receipts.codec import context_to_json, to_json
from foveate.records.kinds import DEPENDS_ON, LEARNED_FROM, PART_OF
from foveate.types import Link
from records import add_record
from worlds import open_engine

PROJECTS = ("main", "other")
USERS = (None, "ana", "bob")
AGENTS = (None, "coder", "reviewer")
SESSIONS = (None, "s1", "s2")
TASKS = (None, "t1", "t2")
EVERY_SOURCE = {
    "slots": {
        "task": {"source": "task", "kinds": ["task"], "share": 5},
        "root": {"source": "stack-root", "kinds": ["task"], "share": 5},
        "path": {"source": "stack-path", "kinds": ["task"], "share": 5},
        "siblings": {"source": "stack-siblings", "kinds": ["task"], "share": 5},
        "prior": {"source": "dependencies", "share": 10},
        "earlier": {"source": "transitive", "share": 5},
        "map": {"source": "context_map", "kinds": ["component"], "share": 5},
        "domains": {"source": "domains", "share": 5},
        "entities": {"source": "entities", "kinds": ["entity"], "share": 5},
        "relations": {"source": "relations", "kinds": ["relation"], "share": 5},
        "newest": {"source": "latest", "kinds": ["issue", "change"], "share": 5},
        "focus": {"source": "working", "kinds": ["task", "question", "note"], "share": 5},
        "approach": {"source": "frame", "kinds": ["frame"], "share": 1},
        "anything": {"source": "search", "share": 10},
        "lately": {"source": "recent", "extra_sources": {"highlights": 5}, "share": 10},
        "calibration": {"source": "calibration", "share": 10},
    }
}
KINDS: dict[str, dict[str, Any]] = {
    "fact": {},
    "instruction": {},
    "censor": {},
    "identity": {},
    "episode": {},
    "event": {},
    "scratch": {},
    "pattern": {"tags": ["auth"]},
    "gotcha": {"severity": "high", "tags": ["auth"]},
    "question": {"blocking": True, "tags": ["thread"]},
    "decision": {"tags": ["auth"]},
    "component": {"component": "archive/login", "location": "src/archive/login.py"},
    "task": {"state": "completed", "result": "The archive login was done", "name": "Archive"},
    "stack": {"key": "task stack"},
    "lease": {"data": {"agent": "a", "task": "t", "context": "c", "tokens": 1, "since": 0, "expires": 1, "state": "active"}},
    "handoff": {},
    "issue": {"title": "Login"},
    "design": {},
    "change": {},
    "entity": {"aliases": ["archive"]},
}
PRIVATE = ("scratch", "stack")


def may_see(reader: Scope, owner: Scope, kind: str) -> bool:
    if owner.project != reader.project:
        return False
    if owner.user not in (None, reader.user) or owner.agent not in (None, reader.agent):
        return False
    inside = owner.session in (None, reader.session) and owner.task in (None, reader.task)
    return kind not in PRIVATE or inside


def any_scope(chance: random.Random) -> Scope:
    levels = (PROJECTS, USERS, AGENTS, SESSIONS, TASKS)
    return Scope(*(chance.choice(level) for level in levels))  # type: ignore[arg-type]


def planted(engine: Engine, chance: random.Random, mine: Scope) -> dict[str, tuple[str, Scope, str]]:
    """id -> (the word that gives it away, its owner, its kind): records of many owners, all linked to one another."""
    out: dict[str, tuple[str, Scope, str]] = {}
    for n in range(60):
        kind = chance.choice(list(KINDS))
        owner = any_scope(chance) if n % 4 else mine
        word = f"zq{n:02d}leak"
        values = dict(KINDS[kind])
        if kind == "task":
            values["result"] = f"The login token {word} of the archive was done"
        if kind == "entity":
            values["name"] = f"Archive {word}"
        if kind == "stack" and out:
            values["current"] = chance.choice(list(out))
        text = f"The login token {word} of the archive is known"
        record = add_record(engine, kind, text, scope=owner, **values).record
        out[record.id] = (word, owner, kind)
    for project in PROJECTS:
        ids = [id for id, (_, owner, _) in out.items() if owner.project == project]
        with engine.store.data.store.write(Scope(project)) as writer:
            for _ in range(3 * len(ids)):
                src, dst = chance.sample(ids, 2)
                writer.link(Link(src, chance.choice((DEPENDS_ON, PART_OF, LEARNED_FROM)), dst), any_owner=True)
            entities = [id for id in ids if out[id][2] == "entity"]
            for src, dst in product(entities, entities):
                writer.link(Link(src, "owns", dst), any_owner=True)
    return out


def test_the_profile_of_this_test_asks_every_source() -> None:
    asked = {source for slot in resolve("default", call=EVERY_SOURCE).slots for source in slot.sources}
    owned = {source.name for source in BUILTIN_SOURCES if not getattr(source, "reads_code", False)} - {"text"}
    assert asked == owned, "files, and what a profile says by itself, have no owner"


@pytest.mark.parametrize("seed", range(40))
def test_nothing_of_another_owner_comes_through_any_source(seed: int) -> None:
    chance = random.Random(seed)
    brought: set[str] = set()
    with open_engine() as engine:
        mine = any_scope(chance)
        known = planted(engine, chance, mine)
        for _ in range(6):
            reader = mine if chance.random() < 0.5 else any_scope(chance)
            visible = [id for id, (_, owner, kind) in known.items() if kind == "task" and may_see(reader, owner, kind)]
            if visible and chance.random() < 0.7:
                reader = replace(reader, task=chance.choice(visible))
            options: dict[str, Any] = {"budget": 20_000}
            if chance.random() < 0.5:
                options["overrides"] = EVERY_SOURCE
            else:
                options["profile"] = chance.choice(names())
            view = view_of(engine, reader)
            refusal = ""
            try:
                context = view.context("What is known of the login token of the archive?", **options)
            except InputError as error:  # the profile of a role needs a record that this reader does not have
                refusal = str(error)
            if refusal:
                assert not any(word in refusal for word, _, _ in known.values())
                continue
            brought |= {item.candidate.source for item in context.items}
            receipt = dict(to_json(view.receipts.get(context)))
            document = json.dumps([context_to_json(context), receipt, context.computed()], default=list)
            for id, (word, owner, kind) in known.items():
                if not may_see(reader, owner, kind):
                    assert word not in document, (kind, owner, options)
                    assert f'"{id}"' not in document, (kind, owner, options)
    assert len(brought) >= 3  # the walls were tried from several sides
