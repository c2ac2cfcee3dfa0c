"""004's example in its own words, among records that such an agent would have: no tags, no words of the question added."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import foveate
from records import add_record
from worlds import ago

QUERY = "Should we use Redis for caching in Newton?"

CENSORS = (
    (
        "Don't add infrastructure without evaluating operational cost",
        {"action": "block", "reason": "learned from over-engineering incidents"},
    ),
    (
        "Don't decide without at least 2 alternatives",
        {"action": "warn", "reason": "architecture decisions need comparison"},
    ),
)
DECISIONS = (
    (
        "Chose Postgres + pgvector over separate ChromaDB for unified storage",
        0.85,
        '"Unification reduces operational surface. One backup, one monitor, one connection pool."',
    ),
    (
        "Built CE with SQLite first, migrated to Postgres later",
        0.80,
        '"Start simple, migrate when proven. Abstract storage layer made migration painless."',
    ),
    (
        "Rejected Qdrant in favor of pgvector",
        0.82,
        '"Operational simplicity beat raw vector performance."',
    ),
)
FACTS = (
    "PostgreSQL supports UNLOGGED tables for cache-like workloads (no WAL overhead)",
    "Redis adds a separate service to manage, monitor, and backup",
    "Newton's docker-compose currently has 3 services (newton, postgres, dashboard)",
    "pgvector query performance: 0.37s for hybrid search over 300+ records",
)
PROCEDURE = """Core patterns:
- Query similar past decisions before committing
- Evaluate at least 2 alternatives with pros/cons
- Record decision with confidence BEFORE implementing
- Consider operational cost, not just capability"""
EPISODES = (
    (
        "Newton storage architecture discussion: chose Postgres + pgvector, rejected multi-service approaches",
        {"duration": "2h", "participants": ["Tim"]},
    ),
    ("CE SQLite migration: abstracting storage layer first made backend swap painless", {"duration": "3h"}),
)
WANTED = {*(text for text, _, _ in DECISIONS), *FACTS, PROCEDURE, *(text for text, _ in EPISODES)}
"""The ten records that the document shows."""

OTHER_DECISIONS = (
    "Keep parsed settings in a cache for the lifetime of the process",
    "Cache thumbnails on the CDN for a day",
    "Postgres stays on one host until the pilot is over",
    "Nightly dumps of Postgres, no archiving of the write-ahead log",
    "Switched off the query cache of the reporting pages",
    "Pinned the Redis client of the billing prototype to 5.x",
    "Sessions live in signed cookies, not in a server-side cache",
    "Postgres migrations run by hand on release day",
    "Build artefacts are cached between CI runs",
)
OTHER_FACTS = (
    "The Postgres host has 16 GB of memory",
    "Postgres is upgraded every autumn",
    "The office printer caches jobs until midnight",
    "CI caches the package index for a week",
    "Redis changed its licence in 2024",
    "The billing prototype ran Redis 6 on a laptop",
    "Postgres logs go to the shared volume",
    "The CDN cache is purged by its API",
    "Browser caches ignore the query string of fonts",
    "The staging Postgres listens on port 5433",
    "Postgres backups are kept for 30 days",
    "Tim has used Redis at two earlier jobs",
    "The dashboard caches its charts for five minutes",
    "Autovacuum runs every ten minutes on the events table",
    "The DNS cache of the router is reset on reboot",
    "psql is installed on the jump host",
    "The mobile app keeps its cache in SQLite",
    "Postgres connections are limited to 100",
    "Redis and Valkey speak the same protocol",
    "The cache of the linter lives in .cache",
    "The Postgres password rotates every quarter",
)
OTHER_PROCEDURES = (
    ("Infrastructure Evaluation", "List what it takes to run a service, then what it saves, then ask who is on call."),
    ("Deployment", "Branch, pull request, review, CI, merge; then watch the error rate for ten minutes."),
)
OTHER_EPISODES = (
    "Moved the staging hosts to another provider over a weekend",
    "The disk of the Postgres host ran full and the night was spent deleting logs",
    "Set up the CI runners with Mira",
)
UNRELATED = (
    ("decision", "Moved the stand-up to 10:30"),
    ("decision", "Hire a second designer before summer"),
    ("decision", "Write release notes in British English"),
    ("fact", "The office plants are watered on Fridays"),
    ("fact", "Mira prefers Celsius"),
    ("fact", "The logo was drawn by an agency in Porto"),
    ("fact", "Invoices are due within 30 days"),
    ("episode", "The summer party was moved indoors because of rain"),
    ("episode", "Interviewed three candidates for the support team"),
    ("procedure", "Order lunch before eleven, and ask about allergies."),
)


def wanted() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The example's records, each as kind, text and values."""
    yield "identity", "Newton agent. Analytical, cautious, curious.", {}
    yield from (("censor", text, dict(values)) for text, values in CENSORS)
    for text, confidence, rationale in DECISIONS:
        yield (
            "decision",
            text,
            {"outcome": "success", "confidence": confidence, "rationale": rationale, "created": ago(60)},
        )
    yield from (("fact", text, {}) for text in FACTS)
    yield (
        "procedure",
        PROCEDURE,
        {"summary": PROCEDURE, "name": "Architecture Decision", "uses": 12, "wins": 10},
    )
    yield from (("episode", text, {"created": ago(30), **values}) for text, values in EPISODES)


def other_records() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The others: those with words of the question, and those about something else."""
    yield from (("decision", text, {"created": ago(40)}) for text in OTHER_DECISIONS)
    yield from (("fact", text, {}) for text in OTHER_FACTS)
    yield from (("procedure", text, {"name": name}) for name, text in OTHER_PROCEDURES)
    yield from (("episode", text, {"created": ago(90)}) for text in OTHER_EPISODES)
    yield from ((kind, text, {"name": "Lunch"} if kind == "procedure" else {}) for kind, text in UNRELATED)


def fill(engine: foveate.Engine, *, others: bool = True) -> None:
    for kind, text, values in (*wanted(), *(other_records() if others else ())):
        add_record(engine, kind, text, **values)
    engine.tasks.push("Designing Newton's storage and runtime architecture.")


def texts() -> list[str]:
    """The texts that a search for the question could find."""
    return [text for kind, text, _ in (*wanted(), *other_records()) if kind not in ("identity", "censor")]
