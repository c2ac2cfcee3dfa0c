"""A small software team's memory: what a platform team of five wrote down over a year, as records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DAYS = 86_400_000
Row = tuple[str, str, dict[str, Any]]


def world(now: int) -> Iterator[Row]:
    """Records for `Engine.add_many`, dated backwards from now."""
    for age, kind, text, values in ROWS:
        yield kind, text, {**values, "created": now - age * DAYS}


ROWS: tuple[tuple[int, str, str, dict[str, Any]], ...] = (
    # Who, and what to respect: always in, whatever the question.
    (400, "identity", "Newton, the platform team's agent. Analytical, cautious, curious. Prefers boring technology.", {}),
    (210, "censor", "Adding infrastructure without an estimate of what it costs to run",
     {"action": "block", "reason": "two services were added in spring and one person now babysits both"}),
    (190, "censor", "Deciding on architecture with fewer than two alternatives on the table",
     {"action": "warn", "reason": "the message bus was chosen against nothing"}),
    (120, "instruction", "Give temperatures in Celsius and times in UTC.", {}),
    # Decisions, with how they turned out.
    (310, "decision", "Chose Postgres with pgvector over a separate ChromaDB for unified storage",
     {"outcome": "success", "confidence": 0.85, "tags": ["storage", "postgres"],
      "rationale": "one backup, one monitor, one connection pool",
      "alternatives": ["ChromaDB beside Postgres", "Qdrant"]}),
    (355, "decision", "Started the context engine on SQLite and moved to Postgres once it was proven",
     {"outcome": "success", "confidence": 0.8, "tags": ["storage", "migration"],
      "rationale": "a storage layer behind one protocol made the move painless"}),
    (240, "decision", "Rejected Qdrant in favour of pgvector: fewer services to run beat raw vector speed",
     {"outcome": "success", "confidence": 0.82, "tags": ["vectors"]}),
    (150, "decision", "Cached rendered dashboards in process memory instead of Redis",
     {"outcome": "partial", "confidence": 0.6, "tags": ["cache", "dashboard"],
      "rationale": "no new service, but every deploy starts cold"}),
    (95, "decision", "Tried Memcached for session caching and took it out again",
     {"outcome": "failure", "confidence": 0.7, "tags": ["cache", "sessions"],
      "rationale": "evictions logged people out at peak"}),
    (60, "decision", "Moved the weekly report from cron to a queue worker",
     {"outcome": "success", "confidence": 0.9, "tags": ["jobs"]}),
    (30, "decision", "Pinned the API to semantic versioning with a six-month deprecation window",
     {"outcome": "pending", "confidence": 0.75, "tags": ["api"]}),
    # Facts; the keyed one was corrected, and the correction holds.
    (200, "fact", "Postgres UNLOGGED tables skip the write-ahead log and suit cache-like data", {"tags": ["postgres", "cache"]}),
    (180, "fact", "Redis would be a separate service to run, monitor and back up", {"tags": ["redis", "operations"]}),
    (90, "fact", "Newton's compose file has three services: newton, postgres and dashboard", {"tags": ["operations"]}),
    (75, "fact", "Hybrid search over 300 records takes 0.37 seconds on pgvector", {"tags": ["vectors", "performance"]}),
    (140, "fact", "The dashboard cache has a time to live of 30 seconds", {"subject": "dashboard cache", "attribute": "ttl"}),
    (20, "fact", "The dashboard cache has a time to live of 300 seconds", {"subject": "dashboard cache", "attribute": "ttl"}),
    (170, "fact", "Peak traffic is 40 requests a second, on Monday mornings", {"tags": ["traffic"]}),
    (15, "fact", "Read latency of the catalogue endpoint is 210 ms at the 95th percentile", {"tags": ["performance"]}),
    (44, "fact", "The staging database is restored from production every night at 02:00 UTC", {"tags": ["operations"]}),
    (300, "fact", "Tim prefers Celsius", {"subject": "Tim", "attribute": "temperature unit"}),
    # How things are done, and what bit us.
    (220, "procedure",
     "Look up similar past decisions first.\nCompare at least two alternatives with what each costs to run.\n"
     "Write the decision down with a confidence before building.\nSet a date to look at the outcome.",
     {"name": "Architecture decision", "tags": ["architecture", "decision"], "uses": 14, "wins": 12}),
    (130, "procedure",
     "Branch, open a pull request, wait for review and CI, merge, watch the error rate for ten minutes.",
     {"name": "Deploy", "tags": ["deploy"], "uses": 61, "wins": 58}),
    (85, "procedure",
     "Measure the miss rate for a week before caching anything.\nName who invalidates the cache, and when.\n"
     "Put a ceiling on its size.",
     {"name": "Introduce a cache", "tags": ["cache", "performance"], "uses": 3, "wins": 3}),
    (100, "gotcha", "Invalidation by time alone served stale prices for five minutes after an update",
     {"severity": "high", "tags": ["cache"]}),
    (65, "gotcha", "pgvector needs `SET LOCAL` for its search settings inside a pool, or they leak to the next caller",
     {"severity": "medium", "tags": ["postgres", "vectors"]}),
    (50, "pattern", "Reads go through a repository class; only it knows where a value comes from",
     {"location": "src/newton/storage/repository.py", "applies_to": ["storage", "cache"]}),
    # What happened.
    (310, "episode", "Storage architecture discussion, two hours with Tim: settled on Postgres and pgvector, turned down "
     "every proposal with a second service.", {"participants": ["Tim"], "tags": ["storage"]}),
    (355, "episode", "Migration from SQLite to Postgres, three hours. Abstracting the storage layer first made swapping the "
     "backend a matter of configuration.", {"tags": ["migration"]}),
    (95, "episode", "Session cache incident on a Monday: Memcached evicted live sessions at peak and 400 people had to log in "
     "again. Rolled back within the hour.", {"tags": ["cache", "incident"]}),
    (12, "episode", "Load test of the catalogue endpoint: 70 % of its time goes into two queries that the same page repeats.",
     {"tags": ["performance"]}),
    (5, "episode", "Planning: the catalogue has to answer in under 100 ms before the autumn launch.", {"tags": ["planning"]}),
)  # fmt: skip
