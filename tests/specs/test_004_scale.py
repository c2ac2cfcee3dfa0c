"""004's proportions: thousands are stored, a handful of each kind is in a context. Default limits, no tags."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import foveate
from foveate import Context
from foveate.eval.systems.baselines import build_fts5_index, select_fitting
from records import add_record
from worlds import ago, open_engine

STORED = {"decision": 2000, "fact": 5000, "episode": 1500, "procedure": 200, "censor": 100}
ABOUT = {"decision": 10, "fact": 15, "episode": 3, "procedure": 2, "censor": 5}
"""What the document says may be relevant to one question."""

QUESTION = "How do we restore the ledger from a backup after a failed migration?"
RELEVANT = {
    "decision": (
        "Ledger backups are kept in a second region",
        "A failed migration is rolled back by restoring, never by a hand-written undo script",
        "Take a snapshot of the ledger before each migration",
        "Restores are rehearsed once a quarter",
        "The ledger is restored to a new database, and traffic is switched afterwards",
        "Migrations of the ledger run outside business hours",
        "Point-in-time recovery is switched on for the ledger",
        "Backups are encrypted with a key that two people hold",
        "The finance team signs off a restored ledger before it takes writes",
        "Old ledger backups are deleted after seven years",
    ),
    "fact": (
        "A full restore of the ledger takes fifty minutes",
        "Ledger backups run every six hours",
        "The restore script is scripts/restore_ledger.sh",
        "The last backup is listed on the operations page",
        "A migration writes its state to the table schema_versions",
        "The ledger database has 40 GB",
        "Snapshots are in the bucket ledger-snapshots",
        "Only the role recovery may restore a database",
        "The backup of Sunday is the only one with indexes",
        "A failed migration leaves a lock that must be cleared",
        "Restoring needs twice the disk space of the ledger",
        "The replica of the ledger is five minutes behind",
        "Backups older than 90 days are in cold storage",
        "The checksum of each backup is stored beside it",
        "The pager of the database team is 4471",
    ),
    "episode": (
        "In March a migration failed halfway and the ledger was restored from the backup of six hours before",
        "A rehearsal of the restore showed that the key of the backups had expired",
        "The ledger migration to bigint was stopped because the snapshot was missing",
    ),
    "procedure": (
        "Stop writes, pick the newest backup with a valid checksum, restore it to a new database, compare balances, switch.",
        "Clear the migration lock, read schema_versions, and run the pending migrations one at a time.",
    ),
    "censor": (
        "Restoring over the live database",
        "Editing schema_versions by hand",
        "Running a migration without a fresh backup",
        "Dropping a table of the ledger",
        "Sharing a database dump by mail",
    ),
}
AREAS = (
    "checkout", "catalogue", "search page", "invoice service", "mobile app", "support desk", "login form", "warehouse feed",
    "price list", "mail gateway", "survey tool", "partner portal", "image store", "chat widget", "tax report",
    "returns desk", "loyalty scheme", "address book", "gift cards", "delivery tracker",
)  # fmt: skip
SAYINGS = (
    "keeps {n} days of history", "was redrawn by the agency", "answers within {n} ms", "needs a second reviewer",
    "has a backup contact in Porto", "is tested on {n} devices", "failed its audit of room {n}", "moved to team {n}",
    "shows prices without tax", "waits for the migration of its icons", "is restored to the old colours", "logs every click",
    "uses the font of release {n}", "has {n} open tickets", "is written in Kotlin", "takes the ledger's currency codes",
    "goes live in week {n}", "is paid for by marketing", "asks for a phone number", "sends {n} mails a day",
)  # fmt: skip


def rows() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Records about other things, most of them with one word of the question or none."""
    pairs = list(product(AREAS, SAYINGS))
    for kind, number in STORED.items():
        for n in range(number - ABOUT[kind]):
            area, saying = pairs[n * 7 % len(pairs)]
            values: dict[str, Any] = {"created": ago(n % 400)}
            if kind == "procedure":
                values["name"] = f"{area} {n}"
            if kind == "censor":
                values |= {"domain": area, "reason": "seen before"}
            yield kind, f"The {area} {saying.format(n=n + 3)}, case {n}", values


def all_shown(context: Context) -> dict[str, list[str]]:
    shown: dict[str, list[str]] = {kind: [] for kind in STORED}
    for item in context.items:
        if item.kind in shown:
            shown[item.kind].append(item.record.text)
    return shown


@pytest.fixture(scope="module")
def engine() -> Iterator[foveate.Engine]:
    with open_engine(profile="assistant") as engine:
        engine.store.add_many(rows())
        for kind, texts in RELEVANT.items():
            for n, text in enumerate(texts):
                values: dict[str, Any] = {"domain": "database"} if kind == "censor" else {}
                values |= {"name": f"Recovery {n}"} if kind == "procedure" else {}
                add_record(engine, kind, text, created=ago(100), **values)
        yield engine


@pytest.fixture(scope="module")
def context(engine: foveate.Engine) -> Context:
    return engine.context(QUESTION)


@pytest.fixture(scope="module")
def related(engine: foveate.Engine) -> Context:
    slots = ("decisions", "facts", "procedures", "episodes")
    return engine.context(QUESTION, overrides={"slots": {slot: {"fill": "related"} for slot in slots}})


def searched(shown: dict[str, list[str]]) -> list[str]:
    return [text for kind in ("decision", "fact", "episode", "procedure") for text in shown[kind]]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "found"), [("decision", 7), ("fact", 1), ("episode", 2), ("procedure", 0), ("censor", 5)])
def test_thousands_are_stored_and_those_about_the_question_are_shown(context: Context, kind: str, found: int) -> None:
    """004-01, 004-02, 004-03, 004-04, 004-05: the document shows 10, 15, 3, 2 and 5; so many of them are shown today."""
    shown = set(all_shown(context)[kind])
    assert len(shown & set(RELEVANT[kind])) >= found
    assert shown <= set(RELEVANT[kind]), "shown, but not about the question"


@pytest.mark.slow
def test_with_fill_related_the_best_of_thousands_are_shown_with_some_noise(related: Context) -> None:
    """Beside 004-01 to 004-04: the search finds 28 of the 30 within its limits, and the floors leave them out."""
    found = [len(set(texts) & set(RELEVANT[kind])) for kind, texts in all_shown(related).items()]
    assert all(n >= least for n, least in zip(found, (10, 13, 3, 2, 5), strict=True))


@pytest.mark.slow
def test_full_text_search_finds_as_many_for_the_same_tokens(context: Context) -> None:
    """Beside 004-01 to 004-04: SQLite FTS5 over the same records, for the tokens of the same items."""
    stored = [(kind, text) for kind, text, _ in rows()] + [(kind, text) for kind, all in RELEVANT.items() for text in all]
    texts = [text for kind, text in stored if kind != "censor"]
    wanted = {text for kind, all in RELEVANT.items() if kind != "censor" for text in all}
    spent = sum(item.tokens for item in context.items if item.kind in ("decision", "fact", "episode", "procedure"))
    best = select_fitting((texts[n] for n in build_fts5_index(texts)(QUESTION)), spent)
    by_search = len({line.strip() for line in best} & wanted)
    assert by_search - 1 <= len(wanted & set(searched(all_shown(context)))), "FTS5 is ahead by more than one record"
