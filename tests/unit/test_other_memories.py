"""Other memories as sources: the real packages, and what goes wrong with them."""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any
from zlib import crc32

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langgraph.store.memory import InMemoryStore

import foveate
from foveate import Filters, InputError, NotFound
from foveate.errors import SourceError
from foveate.integrations.memories import MAX_MEMORY_CHARS, Graphiti, LangGraphStore, Mem0
from worlds import NOW, open_engine

QUESTION = "Which tea does Ada drink?"
TEA, CAR = "Ada drinks green tea in the morning", "Bob drives an old car"


def slot(source: str, **more: Any) -> dict[str, Any]:
    """What a user writes to give a source a slot."""
    return {"slots": {source: {"source": source, "heading": "Remembered elsewhere", "share": 20, **more}}}


def vector(text: str) -> list[float]:
    """A small vector in which texts with the same words are near."""
    counts = [0.01] * 64
    for word in text.lower().replace("?", "").split():
        counts[crc32(word[:4].encode()) % 64] += 1
    length = math.sqrt(sum(part * part for part in counts))
    return [part / length for part in counts]


class Words(Embeddings):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector(text)


# --- the real packages ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mem0_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Mem0 on a local Qdrant, with a model that is never asked."""
    folder = tmp_path_factory.mktemp("mem0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEM0_TELEMETRY", "False")
        patch.setenv("MEM0_DIR", str(folder))
        # Qdrant opens a database in memory and never closes it; since Python 3.13 that is a warning.
        connections: list[sqlite3.Connection] = []
        connect = sqlite3.connect
        patch.setattr(
            sqlite3, "connect", lambda *args, **options: connections.append(connect(*args, **options)) or connections[-1]
        )
        from mem0 import Memory

        memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": {"path": str(folder / "q"), "embedding_model_dims": 64}},
                "embedder": {"provider": "langchain", "config": {"model": Words()}},
                "llm": {"provider": "langchain", "config": {"model": FakeListChatModel(responses=["{}"])}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        for text, user in ((TEA, "ada"), (CAR, "ada"), ("Eve drinks black tea", "eve")):
            memory.add(text, user_id=user, infer=False)
        yield memory
        memory.close()
        memory.vector_store.client.close()
        for connection in connections:
            connection.close()


@pytest.fixture(scope="module")
def graph() -> Iterator[Any]:
    """Graphiti on Kuzu, in memory, with clients that are only as clever as the tests need."""
    with warnings.catch_warnings(action="ignore"):  # of a model of its own that is out of date
        from graphiti_core import Graphiti as Graph
    from graphiti_core.cross_encoder.client import CrossEncoderClient
    from graphiti_core.driver.kuzu_driver import KuzuDriver
    from graphiti_core.edges import EntityEdge
    from graphiti_core.embedder.client import EmbedderClient
    from graphiti_core.graph_queries import get_fulltext_indices
    from graphiti_core.llm_client.client import LLMClient
    from graphiti_core.llm_client.config import LLMConfig
    from graphiti_core.nodes import EntityNode

    class Embedder(EmbedderClient):
        async def create(self, input_data: Any) -> list[float]:
            return vector(input_data if isinstance(input_data, str) else input_data[0])

    class Model(LLMClient):
        async def _generate_response(self, *args: Any, **options: Any) -> dict[str, Any]:
            raise AssertionError("no model is asked")

    class Reranker(CrossEncoderClient):
        async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
            return [(passage, 1.0) for passage in passages]

    async def made() -> Graph:
        with pytest.warns(DeprecationWarning, match="Kuzu"):
            driver = KuzuDriver(db=":memory:")
        graph = Graph(
            graph_driver=driver, llm_client=Model(LLMConfig(model="none")), embedder=Embedder(), cross_encoder=Reranker()
        )
        await graph.build_indices_and_constraints()
        for query in get_fulltext_indices(driver.provider):
            await driver.execute_query(query)
        now = datetime.now(UTC)
        ended = now - timedelta(days=3)
        facts = (
            ("Ada", "tea", TEA, None),
            ("Ada", "coffee", "Ada drinks black coffee, no tea", ended),
            ("Bob", "car", CAR, None),
        )
        for one, other, fact, end in facts:
            ends = [EntityNode(name=name, group_id="g", labels=[], created_at=now, summary="") for name in (one, other)]
            for node in ends:
                await node.generate_name_embedding(graph.embedder)
                await node.save(driver)
            edge = EntityEdge(
                name="IS", fact=fact, group_id="g", source_node_uuid=ends[0].uuid, target_node_uuid=ends[1].uuid,
                created_at=now - timedelta(days=9), valid_at=now - timedelta(days=9), invalid_at=end,
            )  # fmt: skip
            await edge.generate_embedding(graph.embedder)
            await edge.save(driver)
        return graph

    graph = asyncio.run(made())
    yield graph
    asyncio.run(graph.close())


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore(index={"dims": 64, "embed": Words()})
    store.put(("ada", "tastes"), "a/b", {"text": TEA})
    store.put(("ada",), "car", {"text": CAR})
    store.put(("eve",), "x", {"text": "Eve drinks black tea"})
    return store


@pytest.fixture(params=["mem0", "graphiti", "langgraph"])
def source(request: pytest.FixtureRequest, store: InMemoryStore) -> Any:
    make: dict[str, Callable[[], Any]] = {
        "mem0": lambda: Mem0(
            request.getfixturevalue("mem0_memory"), user_id="ada", search_options={"threshold": 0.0}, deadline=300
        ),
        "graphiti": lambda: Graphiti(request.getfixturevalue("graph"), group_ids=["g"], deadline=300),
        "langgraph": lambda: LangGraphStore(store, ("ada",), deadline=300),
    }
    return make[request.param]()


@pytest.mark.slow
def test_what_another_memory_knows_is_shown_ranked_and_explained(source: Any) -> None:
    with foveate.open(":memory:", sources=[source]) as engine:
        context = engine.context(QUESTION, overrides=slot(source.name))
        assert "## Remembered elsewhere\n- Ada drinks green tea in the morning\n" in context.text
        assert "Eve" not in context.text
        shown = [item for item in context.items if item.candidate.source == source.name]
        first = shown[0].candidate
        assert first.record.text == TEA
        assert first.record.id.startswith(f"{source.name}:")
        assert (first.record.kind, first.record.trust) == ("fact", "agent")
        relevances = [item.candidate.features["relevance"] for item in shown]
        assert relevances == sorted(relevances, reverse=True)
        assert all(0 <= relevance <= 1 for relevance in relevances)
        assert str(engine.why(first.record.id, context)).startswith("kept in")
        assert not engine.store.stats().records, "nothing of it is kept"


def test_ids_stay_and_open_again_in_full(source: Any) -> None:
    with foveate.open(":memory:", sources=[source]) as engine:
        one, two = (engine.context(QUESTION, overrides=slot(source.name)) for _ in range(2))
        assert [item.id for item in one.items] == [item.id for item in two.items]
        id = one.items[0].id
        assert engine.expand(id) == {"role": "user", "content": f"- {TEA}\n"}
        assert engine.receipts.diff(one, two).added == ()
        replay = engine.receipts.replay(one)
        assert (replay.same, replay.missing) == (True, ())


def test_what_is_not_there_has_a_clear_answer(source: Any) -> None:
    with foveate.open(":memory:", sources=[source]) as engine:
        context = engine.context(QUESTION, overrides=slot(source.name))
        absent = f"{source.name}:00000000-0000-0000-0000-000000000000"
        answer = engine.why(absent, context)
        assert answer.reason == "not found"
        assert f"source {source.name!r} returned" in str(answer)
        assert engine.why(absent, engine.context(QUESTION)).reason == "no slot"
        with pytest.raises((NotFound, SourceError), match=source.name):
            engine.expand(absent)
        with pytest.raises(InputError, match="belongs to another memory"):
            engine.feedback(context, wrong=[context.items[0].id])
        used = engine.feedback(context, answer="Ada drinks green tea in the morning, I think.").used
        assert list(used) == [context.items[0].id]


def test_a_fact_of_a_graph_that_no_longer_holds_is_left_out(graph: Any) -> None:
    with foveate.open(":memory:", sources=[Graphiti(graph, group_ids=["g"], deadline=300)]) as engine:
        context = engine.context(QUESTION, overrides=slot("graphiti"))
        past = next(omission for omission in context.left_out if "coffee" in omission.record.text)
        assert past.reason == "not valid"
        assert engine.why(past.id, context).reason == "not valid"


def test_a_graph_can_be_asked_in_the_loop_that_it_lives_in(graph: Any) -> None:
    async def main() -> str:
        source = Graphiti(graph, group_ids=["g"], loop=asyncio.get_running_loop(), deadline=300)
        with foveate.open(":memory:", sources=[source]) as engine:
            return (await engine.acontext(QUESTION, overrides=slot("graphiti"))).text

    assert TEA in asyncio.run(main())


def test_a_slot_can_stand_in_a_projects_profile(tmp_path: Path, store: InMemoryStore) -> None:
    profiles = tmp_path / ".foveate" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "default.toml").write_text('[slots.langgraph]\nsource = "langgraph"\nheading = "Elsewhere"\nshare = 20\n')
    with foveate.open(tmp_path, sources=[LangGraphStore(store, ("ada",))], code=False) as engine:
        assert "## Elsewhere\n- Ada drinks green tea" in engine.context(QUESTION).text


# --- what can go wrong ---------------------------------------------------------------------------------------------


class Fake:
    """Mem0's `search` and `get`, with any answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def search(self, query: str, **options: Any) -> Any:
        return self.answer(query, **options) if callable(self.answer) else self.answer

    def get(self, id: str) -> Any:
        return self.search(id)


def hit(id: Any = "1", text: Any = TEA, **more: Any) -> dict[str, Any]:
    return {"id": id, "memory": text, "score": 0.5, **more}


def asked(answer: Any, /, limit: int | None = None, filters: Filters | None = None, **options: Any) -> Any:
    """The context, and what the receipt says of the source."""
    overrides = slot("mem0", **({"max_candidates": limit} if limit else {}))
    with open_engine(sources=[Mem0(Fake(answer), user_id="ada", **options)]) as engine:
        engine.add("fact", "Ada has a tea pot")
        context = engine.context(QUESTION, overrides=overrides, filters=filters)
        report = next(r for r in engine.receipts.get(context).sources if r.source == "mem0")
        assert "Ada has a tea pot" in context.text, "the rest is there, whatever happens"
        return context, report, engine.why("mem0:gone", context)


def raising(query: str, **options: Any) -> Any:
    raise ConnectionError("no route")


async def async_raising(query: str, **options: Any) -> Any:
    raise ConnectionError("no route")


@pytest.mark.parametrize("answer", [raising, async_raising])
def test_a_backend_that_raises_is_reported(answer: Any) -> None:
    context, report, why = asked(answer)
    assert report.error == "ConnectionError: no route"
    assert any("mem0" in warning for warning in context.warnings)
    assert (why.reason, "no route" in str(why)) == ("source failed", True)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_backend_that_hangs_is_given_up_at_its_deadline(kind: str) -> None:
    release = Event()

    async def never(query: str, **options: Any) -> Any:
        await asyncio.to_thread(release.wait, 300)

    def hang(query: str, **options: Any) -> Any:
        release.wait(300)

    try:
        _, report, why = asked(hang if kind == "sync" else never, deadline=0.05)
    finally:
        release.set()
    assert report.error == "no answer within 0.05 s"
    assert why.reason == "source failed"


@pytest.mark.slow
def test_a_backend_that_hangs_does_not_keep_the_process_alive() -> None:
    program = (
        "import asyncio, foveate\n"
        "from foveate.integrations.memories import Mem0\n"
        "class Never:\n"
        "    async def search(self, *args, **options):\n"
        "        await asyncio.sleep(600)\n"
        "slots = {'slots': {'mem0': {'source': 'mem0', 'share': 9}}}\n"
        "engine = foveate.open(':memory:', sources=[Mem0(Never(), user_id='a', deadline=0.05)])\n"
        "print(engine.context('tea', overrides=slots).warnings)\n"
    )
    path = os.pathsep.join([str(Path(foveate.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert "no answer within 0.05 s" in done.stdout


@pytest.mark.parametrize("answer", ["a page of HTML", 42, {"results": 7}, {"detail": "quota"}, [1, 2], None])
def test_rubbish_is_reported_and_not_shown(answer: Any) -> None:
    context, report, _ = asked(answer)
    assert "cannot be read as memories" in report.error
    assert context.considered["mem0"] == 0


@pytest.mark.parametrize(
    "wrong", [hit(None), hit("", "x"), hit(text=None), hit(text=7), hit(text="  "), hit(text="\u200b"), {}]
)
def test_a_hit_that_cannot_be_used_is_passed_over(wrong: dict[str, Any]) -> None:
    _, report, _ = asked({"results": [wrong, hit("good")]})
    assert (report.found, report.error) == (1, "")


def test_ten_thousand_hits_are_as_many_as_were_asked_for() -> None:
    hits = [hit(str(n), f"{TEA} {n}") for n in range(10_000)]
    context, report, _ = asked({"results": [hits[0], *hits]}, limit=30)
    assert report.found == context.considered["mem0"] == 30
    assert context.tokens <= context.budget.ceiling


@pytest.mark.parametrize(
    ("score", "calibrate", "relevance"),
    [
        (0.4, None, 0.4),
        (7, None, 1.0),
        (-1, None, 0.0),
        (math.nan, None, 0.0),
        (0.25, lambda distance: 1 - distance, 0.75),
    ],
)
def test_relevance_is_the_calibrated_score(score: Any, calibrate: Any, relevance: float) -> None:
    context, _, _ = asked({"results": [hit(score=score)]}, calibrate=calibrate)
    kept = [*context.items, *context.left_out]
    assert [k.candidate.features["relevance"] for k in kept if k.candidate.source == "mem0"] == [relevance]


@pytest.mark.parametrize("score", [None, "high"])
def test_without_a_score_words_and_rank_say_how_relevant_it_is(score: Any) -> None:
    hits = [hit("1", "Something", score=score), hit("2", TEA, score=score), hit("3", "Nothing", score=score)]
    context, _, _ = asked({"results": hits})
    found = {k.id: k.candidate.features["relevance"] for k in (*context.items, *context.left_out)}
    assert found["mem0:1"] == 0.5
    assert found["mem0:2"] > 0.8
    assert found["mem0:3"] == pytest.approx(0.5 / 3, abs=1e-6)


def test_text_is_cleaned_redacted_and_shortened_like_any_other() -> None:
    text = "Ada's \x1b[31mtea\u202e shop\x00 uses password=hunter2-Tr0ub4dor. " + "Tea is good. " * 5000
    context, _, _ = asked({"results": [hit(text=text)]})
    record = next(k.record for k in (*context.items, *context.left_out) if k.candidate.source == "mem0")
    assert "Tr0ub4dor" not in record.text
    assert "[REDACTED:password:" in record.text
    assert not {"\x1b", "\u202e", "\x00"} & set(record.text)
    assert len(record.text) <= MAX_MEMORY_CHARS
    assert len(record.micro) < len(record.summary) < len(record.text)


@pytest.mark.parametrize("when", ["not a time", "9999-01-01", -5, 1e300, "2026-01-02T03:04:05Z", None, datetime(2026, 1, 1)])
def test_any_time_will_do(when: Any) -> None:
    context, report, _ = asked({"results": [hit(created_at=when)]})
    created = next(item.record.created for item in context.items if item.candidate.source == "mem0")
    assert report.error == ""
    assert 0 <= created <= NOW


@pytest.mark.parametrize(
    ("filters", "found"), [(Filters(kinds=("note",)), 0), (Filters(min_trust="user"), 0), (Filters(min_trust="agent"), 1)]
)
def test_the_requests_filters_hold_for_it(filters: Filters, found: int) -> None:
    with open_engine(sources=[Mem0(Fake({"results": [hit()]}), user_id="ada")]) as engine:
        assert engine.context(QUESTION, overrides=slot("mem0"), filters=filters).considered["mem0"] == found


def test_a_slot_for_other_kinds_gets_nothing() -> None:
    with open_engine(sources=[Mem0(Fake({"results": [hit()]}), user_id="ada", kind="episode")]) as engine:
        found = [
            engine.context(QUESTION, overrides=slot("mem0", kinds=[kind])).considered["mem0"] for kind in ("fact", "episode")
        ]
    assert found == [0, 1]


def test_a_replay_without_the_backend_says_what_is_missing() -> None:
    fake = Fake({"results": [hit()]})
    with open_engine(sources=[Mem0(fake, user_id="ada", deadline=300)]) as engine:
        context = engine.context(QUESTION, overrides=slot("mem0"))
        fake.answer = raising
        assert engine.receipts.replay(context).missing == ("mem0:1",)
        with pytest.raises(SourceError, match="failed to return 'mem0:1'"):
            engine.expand("mem0:1")
        fake.answer = hit(text="Ada drinks nothing any more")
        assert engine.receipts.replay(context).missing == ("mem0:1",), "what reads otherwise now is not what was shown"
        assert engine.expand("mem0:1")["content"] == "- Ada drinks nothing any more\n"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Mem0(None), "whose memories"),
        (lambda: Mem0(None, user_id="a", kind="censor"), "cannot have records of kind"),
        (lambda: Mem0(None, user_id="a", kind="fct"), "Did you mean 'fact'"),
        (lambda: Mem0(None, user_id="a", trust="friend"), "Unknown trust 'friend'"),
        (lambda: Mem0(None, user_id="a", name="code"), "got 'code'"),
        (lambda: Mem0(None, user_id="a", name="a:b"), "must not be empty"),
    ],
)
def test_a_wrong_option_is_named_at_once(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


@pytest.mark.slow
def test_no_package_is_imported_for_them() -> None:
    program = (
        "import sys, foveate.integrations.memories; "
        "print([m for m in ('mem0', 'graphiti_core', 'langgraph') if m in sys.modules])"
    )
    path = os.pathsep.join([str(Path(foveate.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.stdout.strip() == "[]"
