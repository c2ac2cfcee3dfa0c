"""004's proportions: thousands are stored, a handful of each kind is in a context."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from worlds import open_engine

STORED = {"decision": 2000, "fact": 5000, "episode": 1500, "procedure": 200, "censor": 100}
TOPICS = (
    "cache", "queue", "upload", "login", "search", "billing", "report", "export", "import", "deploy", "backup", "index",
    "gateway", "session", "metric", "alert", "invoice", "profile", "webhook", "schema",
)  # fmt: skip


def rows() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for kind, number in STORED.items():
        for n in range(number):
            topic, other = TOPICS[n % len(TOPICS)], TOPICS[(n // len(TOPICS) + 7) % len(TOPICS)]
            values: dict[str, Any] = {"name": f"{topic} {n}"} if kind == "procedure" else {}
            if kind == "censor":
                values = {"domain": ("auth", "api", "database", "ui", "testing")[n % 5], "reason": "seen before"}
            text = f"The {topic} of team {n} meets the {other} and keeps rule {n * 7919 % 1009} of the house"
            yield kind, text, values


@pytest.mark.slow
def test_thousands_are_stored_and_a_handful_of_each_is_shown() -> None:
    """004-01, 004-02, 004-03, 004-04, 004-05"""
    with open_engine(profile="assistant") as engine:
        engine.store.add_many(rows())
        context = engine.context("Which rule keeps the login cache, and what did we decide on password tokens?")
        shown = Counter(item.kind for item in context.items)
        assert 1 <= shown["decision"] <= 20
        assert 1 <= shown["fact"] <= 30
        assert 1 <= shown["episode"] <= 10
        assert 1 <= shown["procedure"] <= 10
        assert shown["censor"] == 20  # those of the domain that the question speaks of, and no others
        assert context.tokens <= 8000
