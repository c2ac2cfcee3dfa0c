"""The inbox of the inspector: what waits for a person's decision, and the decisions."""

from __future__ import annotations

import pytest
from inspector_kit import ESCAPED, HOSTILE, page, post, refused
from service_kit import Guarded
from starlette.testclient import TestClient

from foveate.engine import Engine


def test_the_inbox_lists_what_needs_a_decision(engine: Engine, client: TestClient) -> None:
    rule = engine.inbox.propose("instruction", HOSTILE).record.id
    keyed = {"subject": "redis", "attribute": "port"}
    disputed = engine.add("fact", "Redis runs on port 1", trust="web", valid_from="2099-01-01", **keyed).record.id
    question = engine.add("question", "Which region?").record.id
    failing = engine.add("procedure", "Restart Redis by hand", data={"steps": ["ssh"], "review": True}).record.id
    shown, html = page(client, "/ui/inbox")
    assert {review.id: reason for review, reason in shown["rows"]} == {
        rule: "proposed instruction",
        disputed: "disputed by a more trusted record",
        failing: "mostly fails",
        question: "open question",
    }
    assert html.count("inbox-accept") == 1, "only a proposal can be accepted"
    assert ESCAPED in html
    assert "<script>alert" not in html


def test_an_accepted_rule_is_a_persons_and_in_every_prompt(engine: Engine, client: TestClient) -> None:
    id = engine.inbox.propose("instruction", "Always use tabs", tags=("style",)).record.id
    assert "Standing Instructions" not in engine.context("How do we indent?").text
    answer = post(client, "/ui/inbox", "inbox-accept", id=id)
    assert "Accepted" in client.get(answer.headers["location"]).text
    (rule,) = [record for record in engine.records() if record.kind == "instruction"]
    assert (rule.text, rule.trust, rule.tags) == ("Always use tabs", "user", ("style",))
    assert engine.get(id).status == "retired"
    assert "Always use tabs" in engine.context("What is for lunch?").text
    assert page(client, "/ui/inbox")[0]["rows"] == []


def test_a_rejected_rule_is_retired(engine: Engine, client: TestClient) -> None:
    id = engine.inbox.propose("censor", "Never deploy").record.id
    post(client, "/ui/inbox", "inbox-reject", id=id)
    assert engine.get(id).status == "retired"
    assert page(client, "/ui/inbox")[0]["rows"] == []


def test_a_rule_is_accepted_with_another_text(engine: Engine, client: TestClient) -> None:
    id = engine.inbox.propose("instruction", "Always use tabs").record.id
    assert "Edit" in page(client, "/ui/inbox")[1]
    post(client, "/ui/inbox", "inbox-edit", id=id, text="Use tabs in Makefiles")
    assert [record.text for record in engine.records() if record.kind == "instruction"] == ["Use tabs in Makefiles"]
    assert page(client, "/ui/inbox")[0]["rows"] == []


def test_an_answered_question_becomes_a_decision(engine: Engine, client: TestClient) -> None:
    id = engine.add("question", "Which region?").record.id
    assert 'name="answer"' in page(client, "/ui/inbox")[1]
    post(client, "/ui/inbox", "inbox-answer", id=id, answer="Frankfurt, for latency")
    (decision,) = [record for record in engine.records(kinds=["decision"]) if "Frankfurt" in record.text]
    assert decision.text == "Which region? Frankfurt, for latency"
    assert engine.get(id).status == "retired"
    assert page(client, "/ui/inbox")[0]["rows"] == []


@pytest.mark.parametrize(
    ("action", "needs"),
    [("inbox-accept", "admin"), ("inbox-edit", "admin"), ("inbox-answer", "memory:write"), ("inbox-reject", "memory:write")],
)
def test_a_decision_needs_a_form_of_ours_and_its_scope(guarded: Guarded, action: str, needs: str) -> None:
    id = guarded.engine.inbox.propose("instruction", "Always use tabs").record.id
    refused(guarded, "/ui/inbox", action, needs, id=id)
    assert guarded.engine.get(id).version == 1
