"""FoveateStore beside LangGraph's own InMemoryStore: the same operations, the same answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage
from langchain.tools import ToolRuntime, tool
from langchain_core.language_models import FakeMessagesListChatModel
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import foveate
from foveate import testing
from foveate.integrations.langgraph_store import FoveateStore
from worlds import NOW

NAMES = [("users",), ("users", "ada"), ("users", "ada", "a/b c"), ("users", "bob"), ("docs", "ada"), ("docs", "é ")]
KEYS = ["a", "b", " a", "a/b", "Ä.x", "c" * 40]
EVERY = 10_000


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    ticks = count(NOW)
    with testing.engine(":memory:", clock=lambda: next(ticks)) as engine:
        yield engine


@pytest.fixture
def store(engine: foveate.Engine) -> FoveateStore:
    return FoveateStore(engine)


def value(chance: random.Random) -> dict[str, Any]:
    texts = ["tea is green", " two  spaces ", "line\r\nline", "\u200bhidden", "🙂", ""]
    return {
        "text": chance.choice(texts),
        "n": chance.choice([0, -1, 2.5, 10**20, True, None]),
        "tags": chance.choice([[], ["x"], ["x", {"y": [1]}]]),
        "who": {"name": chance.choice(["Ada", "Bob"]), "age": chance.randrange(5)},
    }


def search(chance: random.Random, **more: Any) -> SearchOp:
    filters: list[Any] = [
        None,
        {"who": {"name": "Ada"}},
        {"who": {"age": {"$gt": 1, "$lte": 3}}},
        {"text": {"$ne": "🙂"}},
        {"tags": ["x"]},
        {"n": None},
        {"absent": 1},
    ]
    prefix = chance.choice([(), ("users",), ("users", "ada"), ("docs", "é "), ("user",)])
    return SearchOp(prefix, chance.choice(filters), **{"limit": EVERY, **more})


def seen(items: Any) -> set[Any]:
    return {(item.namespace, item.key, repr(item.value)) for item in items}


def live(memory: InMemoryStore) -> InMemoryStore:
    """The same items alone: InMemoryStore goes on listing namespaces that were emptied, or only ever read."""
    fresh = InMemoryStore()
    for item in memory.search((), limit=EVERY):
        fresh.put(item.namespace, item.key, item.value)
    return fresh


@pytest.mark.parametrize("seed", range(6))
def test_random_operations_have_the_answers_of_the_in_memory_store(store: FoveateStore, seed: int) -> None:
    chance, memory = random.Random(seed), InMemoryStore()
    for _ in range(60):
        puts = [
            PutOp(chance.choice(NAMES), chance.choice(KEYS), value(chance) if chance.random() < 0.7 else None)
            for _ in range(chance.randrange(4))
        ]
        get = GetOp(chance.choice(NAMES), chance.choice(KEYS))
        ours, theirs = (each.batch([*puts, get, search(random.Random(seed))]) for each in (store, memory))
        assert ours[: len(puts)] == theirs[: len(puts)] == [None] * len(puts)
        assert seen(filter(None, [ours[-2]])) == seen(filter(None, [theirs[-2]])), "a get sees what was there before"
        asked = search(chance)
        assert seen(store.batch([asked])[0]) == seen(memory.batch([asked])[0])
        page = search(chance, limit=chance.randrange(1, 5), offset=chance.randrange(4))
        assert len(store.batch([page])[0]) == len(memory.batch([page])[0])
    conditions = [
        MatchCondition("prefix", ("users",)),
        MatchCondition("suffix", ("ada",)),
        MatchCondition("prefix", ("*", "ada")),
    ]
    for depth in (None, 1, 2):
        for chosen in (None, *([each] for each in conditions), tuple(conditions[:2])):
            for offset, limit in ((0, 100), (1, 2)):
                op = ListNamespacesOp(chosen, depth, limit, offset)  # type: ignore[arg-type]
                assert store.batch([op]) == live(memory).batch([op])


def test_pages_make_up_the_whole_in_the_order_of_writing(store: FoveateStore) -> None:
    for n in (3, 1, 2):
        store.put(("n",), str(n), {"n": n})
    store.put(("n",), "3", {"n": 33})
    pages = [store.search(("n",), limit=1, offset=offset) for offset in range(4)]
    assert [[item.value["n"] for item in page] for page in pages] == [[33], [1], [2], []]
    item = store.get(("n",), "3")
    assert item is not None
    assert item.created_at < item.updated_at


def test_words_of_the_query_come_first_with_a_score_and_the_rest_follows_without(store: FoveateStore) -> None:
    for n, text in enumerate(("Boats are blue", "Tea is green", "Green tea is hot")):
        store.put(("t",), str(n), {"text": text, "n": n})
    store.put(("other",), "x", {"text": "Green tea elsewhere"})
    found = store.search(("t",), query="hot green tea")
    assert [item.key for item in found] == ["2", "1", "0"]
    first, second, third = (item.score for item in found)
    assert first is not None
    assert second is not None
    assert 1 >= first > second > 0
    assert third is None
    assert [item.key for item in store.search(("t",), query="hot green tea", limit=1, offset=1)] == ["1"]
    assert [item.key for item in store.search(("t",), query="green", filter={"n": {"$lt": 2}}, limit=1)] == ["1"]


def test_index_says_by_which_fields_an_item_is_found(store: FoveateStore) -> None:
    store.put(("t",), "named", {"a": {"b": "zebra"}, "c": "lion"}, index=["a.b"])
    store.put(("t",), "none", {"text": "zebra lion"}, index=False)
    scored = {word: [i.key for i in store.search(("t",), query=word) if i.score] for word in ("zebra", "lion")}
    assert scored == {"zebra": ["named"], "lion": []}


def test_the_same_words_under_two_keys_are_two_items(store: FoveateStore) -> None:
    store.put(("t",), "a", {"text": "Tea"})
    store.put(("t",), "b", {"text": "Tea"})
    store.delete(("t",), "a")
    assert [item.key for item in store.search(("t",))] == ["b"]


def test_deleting_leaves_nothing_and_an_item_is_there_in_the_next_process(tmp_path: Path) -> None:
    with foveate.open(tmp_path) as engine:
        store = FoveateStore(engine)
        store.put(("t",), "gone", {"text": "quetzalcoatl"})
        store.put(("t",), "stays", {"text": "Tea"})
        store.delete(("t",), "gone")
        assert not [line for line in engine.store.export_lines() if "quetzalcoatl" in line]
    with foveate.open(tmp_path) as engine:
        assert [item.value for item in FoveateStore(engine).search(("t",))] == [{"text": "Tea"}]


def test_what_is_put_is_shown_in_contexts_and_secrets_are_not_kept(engine: foveate.Engine, store: FoveateStore) -> None:
    store.put(("users", "ada"), "prefs", {"text": "Ada drinks green tea", "login": {"password": "hunter2-Tr0ub4dor"}})
    assert "Ada drinks green tea" in engine.context("Which tea does Ada drink?").text
    item = store.get(("users", "ada"), "prefs")
    assert item is not None
    assert item.value["login"]["password"].startswith("[REDACTED:")
    assert not [line for line in engine.store.export_lines() if "Tr0ub4dor" in line]


@pytest.mark.parametrize("wrong", [{"x": float("nan")}, {"x": datetime(2026, 1, 1)}, {"x": "\ud800"}, {"x": {1, 2}}])
def test_what_json_cannot_say_is_refused_and_nothing_of_its_batch_is_written(store: FoveateStore, wrong: Any) -> None:
    with pytest.raises(foveate.InputError, match=r"JSON|surrogate"):
        store.batch([PutOp(("t",), "good", {"x": 1}), PutOp(("t",), "bad", wrong)])
    assert store.search(()) == []


def test_a_label_that_langgraph_forbids_is_refused_here_too(store: FoveateStore) -> None:
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a.b",), "x", {})])
    store.put(("a",), "x", {"n": 1})
    with pytest.raises(ValueError, match=r"Unknown filter '\$in'"):
        store.search((), filter={"n": {"$in": [1]}})


def test_users_do_not_see_each_others_items(tmp_path: Path) -> None:
    stores = {}
    with foveate.open(tmp_path, user="ada") as ada, foveate.open(tmp_path, user="bob") as bob:
        stores = {"ada": FoveateStore(ada), "bob": FoveateStore(bob)}
        for name, each in stores.items():
            each.put(("prefs",), "tea", {"of": name})
        assert [[i.value["of"] for i in each.search(())] for each in stores.values()] == [["ada"], ["bob"]]


def test_an_agents_tool_reads_and_writes_it_in_both_ways(store: FoveateStore) -> None:
    @tool
    def remember(text: str, runtime: ToolRuntime) -> str:
        """Remember something."""
        assert runtime.store is not None
        runtime.store.put(("memories",), "m1", {"text": text})
        return "kept"

    class Model(FakeMessagesListChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Model:
            return self

    call = AIMessage("", tool_calls=[{"name": "remember", "args": {"text": "Tea"}, "id": "c1"}])
    agent = create_agent(Model(responses=[call, AIMessage("Done.")]), [remember], store=store)
    asyncio.run(agent.ainvoke({"messages": [HumanMessage("Remember tea")]}))
    found = asyncio.run(store.asearch(("memories",), query="tea"))
    assert [item.value for item in found] == [{"text": "Tea"}]
