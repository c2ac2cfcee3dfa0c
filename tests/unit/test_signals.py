"""Request -> Signals: intent, paths, symbols, names."""

from __future__ import annotations

from typing import get_args

import pytest

from foveate.pipeline.signals import ALIAS_WEIGHT, EVENT_TYPES, MAX_TASK_CHARS, detect_intent, extract_signals
from foveate.receipts.codec import to_json
from foveate.types import Intent, Record, Request, Scope, Signals
from worlds import NOW, open_engine


def signals(query: str, *entities: Record) -> Signals:
    from foveate.store.sql.postings import entity_names

    known = {name: record for record in entities for name in entity_names(record)}
    request = Request(query=query, scope=Scope("main"), now=NOW)
    return extract_signals(request, lambda names: {name: known[name] for name in names if name in known})


def entity(name: str, *aliases: str) -> Record:
    data = {"name": name, "aliases": list(aliases)}
    return Record(id="entity_1", kind="entity", scope=Scope("main"), text=name, summary=name, micro=name, data=data)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Fix the login page", "fix"),
        ("The build crashes on Windows", "fix"),
        ("There is an error in the parser", "fix"),
        ("How do I fix the login?", "fix"),
        ("Uploads are not working", "fix"),
        ("Explain the cache", "explain"),
        ("How does the cache work?", "explain"),
        ("What is a lease?", "explain"),
        ("Should we use Redis?", "question"),
        ("which region do we run in", "question"),
        ("Really?", "question"),
        ("Add a login endpoint", "action"),
        ("please rename the module", "action"),
        ("Lisbon", "other"),
        ("", "other"),
    ],
)
def test_intent(query: str, expected: str) -> None:
    assert detect_intent(query) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Write error-free code", "action"),
        ("Make the parser bug-free", "action"),
        ("Add error handling to the upload", "action"),
        ("Use a fixed width for the table", "action"),
        ("Build it without errors", "action"),
        ("Remove the debug flag", "action"),
        ("What is an error budget?", "explain"),
        ("How does exception handling work here?", "explain"),
        ("The error handling has a bug", "fix"),
        ("The parser doesn’t work", "fix"),
        ("The upload times out", "fix"),
        ("Can this get fixed?", "fix"),
    ],
)
def test_a_word_for_a_fault_is_no_repair_where_no_fault_is_meant(query: str, expected: str) -> None:
    assert detect_intent(query) == expected


def test_each_intent_calls_for_types_of_events() -> None:
    assert set(EVENT_TYPES) == set(get_args(Intent))
    assert signals("Fix the upload").event_types[:2] == ("error", "shell_exec")
    assert signals("Add a login endpoint").event_types[0] == "file_write"
    assert signals("Lisbon").event_types == ()


def test_the_types_of_events_are_in_the_receipt() -> None:
    with open_engine() as engine:
        found = to_json(engine.receipts.get(engine.context("Fix the upload")))["signals"]
    assert (found["intent"], found["event_types"]) == ("fix", list(EVENT_TYPES["fix"]))


@pytest.mark.parametrize(
    "query", ["Add a prefix to the key", "Write fixtures", "Build a bugle", "Use the debugger", "Add terror films"]
)
def test_a_part_of_a_word_is_no_intent(query: str) -> None:
    assert detect_intent(query) == "action"


def test_a_question_mark_inside_an_address_asks_nothing() -> None:
    assert detect_intent("Add https://example.org/?page=2 to the list") == "action"


def test_keywords_are_lower_case_unique_and_without_stop_words() -> None:
    assert signals("The Cache of the cache and the REGION").keywords == ("cache", "region")


def test_negations_are_kept() -> None:
    assert "not" in signals("Why don't we cache?").keywords


def test_paths_are_found_in_order() -> None:
    found = signals("Move src/auth/login.ts next to ./tests/test_login.py, see README.md and https://example.org/a/b")
    assert found.paths == ("src/auth/login.ts", "./tests/test_login.py", "README.md")


@pytest.mark.parametrize(
    ("query", "symbol"),
    [
        ("call get_user here", "get_user"),
        ("call getUser here", "getUser"),
        ("the UserStore class", "UserStore"),
        ("raise HTTP 404 then", "HTTP 404"),
        ("use os.path.join for it", "os.path.join"),
        ("pass --dry-run to it", "--dry-run"),
        ("std::vector grows", "std::vector"),
        ("set MAX_SIZE to 3", "MAX_SIZE"),
        ("run() is slow", "run()"),
    ],
)
def test_symbols(query: str, symbol: str) -> None:
    assert signals(query).symbols == (symbol,)


def test_plain_words_are_no_symbols() -> None:
    assert signals("The cache is slow on Monday").symbols == ()


@pytest.mark.parametrize("spoken", ["pgvector", "PGVector", "pg-vector", "pg vector", "pg_vector"])
def test_a_name_is_found_however_it_is_written(spoken: str) -> None:
    assert tuple(signals(f"Does {spoken} scale?", entity("pgvector")).entities.values()) == ("pgvector",)


def test_an_alias_brings_the_name_and_its_words_at_less_weight() -> None:
    found = signals("Does k8s restart it?", entity("Kubernetes", "k8s"))
    assert tuple(found.entities.values()) == ("Kubernetes",)
    assert found.terms["kubernet"] == ALIAS_WEIGHT
    assert found.terms["restart"] == 1.0


@pytest.mark.parametrize("name", ["Kind", "Next", "Point of Sale"])
def test_a_name_that_is_said_counts_in_full_also_where_one_asks_with_such_words(name: str) -> None:
    found = signals(f"How do we deploy {name}?", entity(name))
    assert tuple(found.entities.values()) == (name,)
    assert set(found.terms.values()) == {1.0}


def test_a_name_of_three_words_is_found() -> None:
    found = signals("Ask the Data Platform Team today", entity("Data Platform Team"))
    assert tuple(found.entities.values()) == ("Data Platform Team",)


def test_names_come_from_the_store() -> None:
    with open_engine() as engine:
        engine.add("entity", "Kubernetes", data={"type": "service", "aliases": ["k8s"]})
        engine.add("fact", "Kubernetes restarts pods that fail their probes")
        context = engine.context("Why was k8s so slow?")
    assert tuple(context.signals.entities.values()) == ("Kubernetes",)
    assert "Kubernetes restarts pods" in context.text


def test_an_empty_store_gives_signals_too() -> None:
    assert signals("Où est le café 東京?").keywords[0] == "ou"


@pytest.mark.slow
def test_only_the_beginning_of_a_long_task_is_read() -> None:
    def terms_of(text: str) -> set[str]:
        task = Record(id="task_1", kind="task", scope=Scope("main"), text=text, summary="", micro="")
        request = Request(query="Continue the migration", scope=Scope("main"), now=NOW, task=task)
        return set(extract_signals(request, lambda names: {}).terms)

    room = MAX_TASK_CHARS - len("Continue the migration\n")

    def padded(length: int, word: str) -> str:
        return f"{'the ' * (length // 4)}{' ' * (length % 4)}{word}"  # stop words are no terms

    assert "walrus" in terms_of(padded(room - len("walrus"), "walrus"))
    assert "walrus" not in terms_of(padded(room, "walrus"))
    assert terms_of(padded(room, "walrus")) == {"continu", "migrat"}
