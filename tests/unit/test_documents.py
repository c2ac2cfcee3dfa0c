"""JSON documents name what they hold as the library does."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

import foveate
from foveate.clock import iso
from foveate.engine import Engine
from foveate.operations import documents
from foveate.receipts.diff import Diff
from foveate.receipts.feedback import Feedback
from foveate.tasks.claims import Claim


@pytest.fixture
def engine() -> Engine:
    engine = foveate.open(":memory:")
    engine.add("fact", "Redis runs on port 6379", subject="redis", attribute="port")
    return engine


def read_back(document: object) -> dict:
    return json.loads(json.dumps(document, default=documents.plain))


def names(value: type) -> set[str]:
    return {field.name for field in fields(value)}


def test_a_claim_has_its_fields_with_times_as_texts(engine: Engine) -> None:
    engine.tasks.add("Rotate the tokens", key="rotate")
    claimed = engine.tasks.claim("rotate", agent="coder")
    assert claimed is not None
    document = read_back(documents.claim(claimed))
    assert document.keys() == names(Claim)
    assert document["task"] == claimed.task.id
    assert (document["since"], document["expires"]) == (iso(claimed.since), iso(claimed.expires))


def test_a_diff_has_its_fields_without_the_texts(engine: Engine) -> None:
    before = engine.context("Which port has redis?")
    engine.add("fact", "Redis runs on port 6380", subject="redis", attribute="port")
    after = engine.context("Which port has redis?")
    document = read_back(documents.diff(engine.receipts.diff(before, after)))
    assert document.keys() == names(Diff) - {"texts"}
    assert document["before"] == before.id
    assert document["added"][0]["kept"] is True
    assert document["shared_prefix"].keys() == {"chars", "tokens", "share"}


def test_feedback_has_its_fields_and_the_precision(engine: Engine) -> None:
    context = engine.context("Which port has redis?")
    document = read_back(documents.feedback(engine.feedback(context, answer="It runs on port 6379, says redis.")))
    assert document.keys() == names(Feedback) | {"precision"}


def test_a_stored_change_has_its_time_and_the_record_before_it(engine: Engine) -> None:
    (found,) = engine.records()
    engine.edit(found.id, text="Redis runs on port 6381")
    history = read_back(documents.record(engine, found.id, ["history"]))["history"]
    assert history[-1]["at"] == iso(engine.history(found.id)[-1].at)
    assert history[-1]["before"]["text"] == "Redis runs on port 6379"
