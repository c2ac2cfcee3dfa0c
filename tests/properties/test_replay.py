"""A context can be had again: in another process, and after what it was made from has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapes import facts_of_life, few_rules, sentences, texts

from foveate import BudgetError, Conflict, Engine, InputError
from foveate.pipeline.request_summary import FORGOTTEN
from foveate.receipts.codec import context_to_json, to_json
from property_settings import examples
from worlds import WORLDS, open_engine

Rows = list[tuple[str, str]]
HERE = Path(__file__).parents[1]
CHILD = """
import json, sys
from worlds import WORLDS, open_engine
from foveate.receipts.codec import context_to_json
out = {}
for name, world in WORLDS.items():
    with world.open() as engine:
        out[name] = json.dumps(context_to_json(world.context(engine)), ensure_ascii=False)
json.dump(out, sys.stdout)
"""


def in_another_process(hash_seed: str) -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", CHILD], env=env, capture_output=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_another_process_gives_the_same_bytes(hash_seed: str) -> None:
    there = in_another_process(hash_seed)
    for name, world in WORLDS.items():
        with world.open() as engine:
            assert json.dumps(context_to_json(world.context(engine)), ensure_ascii=False) == there[name]


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_every_world_replays_to_the_same_bytes(world: object) -> None:
    with world.open() as engine:  # type: ignore[attr-defined]
        context = world.context(engine)  # type: ignore[attr-defined]
        again = engine.receipts.replay(context, extra=world.options.get("extra", ()))  # type: ignore[attr-defined]
        assert again.text == context.text
        assert (again.same, again.missing, again.tokens) == (True, (), context.tokens)


verbs = st.sampled_from(("edit", "retire", "confirm", "outcome", "pin", "undo", "supersede"))
changes = st.lists(st.tuples(verbs, st.integers(0, 30), texts), max_size=8)


def change(engine: Engine, verb: str, id: str, text: str) -> None:
    """What may happen to a record after it was shown."""
    if verb == "edit":
        if not id.startswith("event"):
            engine.edit(id, text=text)
    elif verb == "supersede":
        engine.add("fact", text, subject="thing", attribute="value")
    elif verb == "outcome":
        engine.edit(id, outcome="failure")
    elif verb == "undo":
        with suppress(Conflict):
            engine.undo(id)
    else:
        match verb:
            case "retire":
                engine.edit(id, status="retired")
            case "pin":
                engine.edit(id, pinned=True)
            case _:
                engine.feedback(confirmed=[id])


@examples(150)
@given(
    facts_of_life,
    few_rules,
    st.lists(sentences, min_size=1, max_size=3),
    sentences,
    changes,
    st.sampled_from(("o200k", "chars4", "bytes")),
    st.integers(100, 2000),
)
def test_a_replay_is_identical_whatever_happened_to_the_records_since(
    rows: Rows, rules: Rows, values: list[str], query: str, later: list[tuple[str, int, str]], counter: str, budget: int
) -> None:
    with open_engine(counter=counter) as engine:
        ids = [engine.add(kind, text).record.id for kind, text in rows + rules]
        ids += [engine.add("fact", value, subject="thing", attribute="value").record.id for value in values]
        try:
            context = engine.context(query, budget=budget)
        except BudgetError:
            return
        for verb, n, text in later:
            change(engine, verb, ids[n % len(ids)], text)
        again = engine.receipts.replay(context)
        assert again.text == context.text
        assert (again.same, again.missing) == (True, ())


@examples(60)
@given(facts_of_life.filter(bool), sentences, st.integers(0, 30))
def test_a_replay_says_what_was_forgotten(rows: Rows, query: str, which: int) -> None:
    with open_engine() as engine:
        ids = list(dict.fromkeys(engine.add(kind, text).record.id for kind, text in rows))
        context = engine.context(query)
        considered = {entry.id for entry in engine.receipts.get(context).candidates}
        engine.receipts.flush()
        gone = ids[which % len(ids)]
        engine.forget(gone)
        again = engine.receipts.replay(context)
        receipt = engine.receipts.get(context)
        if gone in considered:
            assert FORGOTTEN in again.missing
            assert receipt.request.query == FORGOTTEN
            assert gone not in json.dumps(to_json(receipt))
        else:
            assert (again.same, again.missing) == (True, ())


def test_given_texts_are_missing_from_a_replay_unless_they_are_given_again() -> None:
    with open_engine() as engine:
        context = engine.context("upload", extra=["The nightly upload failed"])
        assert engine.receipts.replay(context).missing == (context.items[0].id,)
        assert engine.receipts.replay(context).same is False
        assert engine.receipts.replay(context, extra=["The nightly upload failed"]).same is True


def test_an_append_only_record_cannot_be_rewritten_under_a_context() -> None:
    with open_engine() as engine:
        id = engine.add("event", "deploy started").record.id
        with pytest.raises(InputError, match="append-only"):
            engine.edit(id, text="deploy finished")
