"""003, context assembly: what of it works. Each docstring names the rows of docs/concepts/specs.md that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from threading import Barrier

import pytest

import foveate
from foveate import Candidate, Context, Filters, Record, Scope
from foveate.pipeline.budget import base_sizes
from foveate.pipeline.profiles import resolve
from foveate.pipeline.scoring import features, weigh
from foveate.pipeline.signals import detect_intent
from foveate.receipts.codec import to_json
from foveate.records.kinds import KINDS
from foveate.text import tokens
from foveate.text.embed import open_embedder
from foveate.types import Budget, Item, Slot
from worlds import RECENT, ago, open_engine


@pytest.fixture
def engine() -> Iterator[foveate.Engine]:
    with open_engine() as engine:
        yield engine


def many(engine: foveate.Engine, number: int = 30) -> None:
    for n in range(number):
        engine.add(
            "fact", f"The upload of host{chr(97 + n % 26)}{n} needs {n} minutes. It runs at night, before the backup."
        )


def test_stored_memory_becomes_a_prompt(engine: foveate.Engine) -> None:
    """003-01, 003-06, 003-09, 003-19, 003-24"""
    engine.add("fact", "The upload runs at night")
    context = engine.context("When does the upload run?")
    assert context.text == "## Known Information\n- The upload runs at night\n"
    assert engine.receipts.get(context).request.query == "When does the upload run?"


def test_the_request_has_its_options(engine: foveate.Engine) -> None:
    """003-10, 003-11, 003-12, 003-13, 003-14, 003-39, 003-89"""
    many(engine)
    context = engine.context(
        "upload",
        session="s1",
        budget=400,
        overrides={"slots": {"facts": {"max_items": 2}}},
        extra=["The upload failed again"],
        filters=Filters(exclude=("fact_1",)),
    )
    assert context.budget.total == 400
    assert context.text.startswith("## Additional Context\n- The upload failed again\n\n## Known Information\n")
    assert len(context.items) == 3
    assert engine.receipts.get(context).request.scope.session == "s1"


def test_filters(engine: foveate.Engine) -> None:
    """003-15, 003-18"""
    old = engine.add("fact", "The upload ran on Monday", created=ago(9)).record.id
    new = engine.add("fact", "The upload needs a token", created=ago(1)).record.id
    other = engine.add("fact", "The upload host is full", created=ago(1)).record.id
    context = engine.context("upload", filters=Filters(since=ago(5), exclude=(other,)))
    assert [item.id for item in context.items] == [new]
    assert engine.why(old, context).reason == "filtered"
    assert engine.why(other, context).reason == "excluded"


def test_the_result_has_its_parts(engine: foveate.Engine) -> None:
    """003-20, 003-21, 003-22, 003-23, 003-25, 003-27, 003-28, 003-29, 003-30, 003-31, 003-32, 003-33"""
    many(engine)
    engine.add("event", "upload started")
    context = engine.context("upload", budget=250)
    item = context.items[-1]
    assert item.id.startswith("fact_")
    assert (item.section, item.candidate.source) == ("facts", "search")
    assert item.tokens > 0
    assert 0 <= item.candidate.features["relevance"] <= 1
    assert context.tokens == tokens.count_messages(context.messages()) <= 250
    assert context.truncated
    assert (context.profile, context.considered["recent"]) == ("default", 1)
    assert context.considered["search"] == 31  # thirty facts and, as an earlier message, the event
    document = to_json(engine.receipts.get(context))
    assert document["ms"] > 0
    assert all(report["ms"] >= 0 for report in document["sources"])
    assert not engine.context("upload", budget=250, overrides={"slots": {"facts": {"max_items": 1}}}).truncated
    assert {field.name for field in fields(Item)} == {"candidate", "level", "tokens", "rank", "text"}


def test_several_sources_make_one_context() -> None:
    """003-04, 003-38, 003-83, 003-84, 003-90, 003-131, 003-132, 003-133, 003-136"""
    with RECENT.open() as engine:
        context = RECENT.context(engine)
    assert [section.name for section in context.sections] == [
        "rules", "root_goal", "path", "siblings", "recent", "semantic", "entities", "patterns",
    ]  # fmt: skip
    assert {item.candidate.source for item in context.items} == {"always", "entities", "given", "recent", "search"}
    assert (
        "## Recent Activity\n[2026-09-20]\n- git switch -c fix/checkout-flake\n[2026-09-21]\n"
        "- pytest tests/checkout -x: 1 failed of 40\n"
    ) in context.text


def test_quality_comes_before_quantity(engine: foveate.Engine) -> None:
    """003-03: what does not belong to the question stays out although there is room."""
    wanted = engine.add("fact", "The upload of photos runs at night").record.id
    for subject in ("lunch", "printer", "garden", "garage", "kitchen", "lobby", "lift", "roof", "cellar", "fence"):
        engine.add("fact", f"The {subject} is cleaned at night")
        engine.add("decision", f"The {subject} gets a new door")
    context = engine.context("When does the upload of photos run?")
    assert [item.id for item in context.items] == [wanted]
    assert context.tokens < 0.01 * context.budget.ceiling


def test_each_archetype_has_a_strategy_of_its_own(tmp_path: Path) -> None:
    """003-05: weights, sources and shares are a file."""
    folder = tmp_path / ".foveate" / "profiles"
    folder.mkdir(parents=True)
    (folder / "companion.toml").write_text("[weights]\nrecency = 0.9\n[slots.decisions]\nremove = true\n", "utf-8")
    (folder / "archivist.toml").write_text("total = 4000\n[slots.facts]\nremove = true\n", "utf-8")
    with foveate.open(str(tmp_path), personal=False) as engine:
        engine.add("fact", "The upload host is full")
        engine.add("decision", "The upload host gets a larger disk")
        companion, archivist = (engine.context("upload host", profile=name) for name in ("companion", "archivist"))
        assert [item.kind for item in companion.items] == ["fact"]
        assert [item.kind for item in archivist.items] == ["decision"]
        assert (companion.budget.total, archivist.budget.total) == (8000, 4000)
        assert engine.receipts.get(companion).profile.weights["recency"] == 0.9


def test_the_twenty_chunks_nearest_to_the_embedding_are_searched() -> None:
    """003-59: no fact shares a word with the question, so that the vector alone decides."""
    embedder = open_embedder("hash:256")
    ends = ("master", "side", "wards", "light", "front", "mouth", "works", "boat")
    texts = [f"A harbour{end} of {colour}" for end in ends for colour in ("amber", "brass", "clay", "slate", "oak", "tin")]
    with open_engine(profile="subtask", embedder=embedder) as engine:
        for text in texts:
            engine.add("fact", text)
        receipt = engine.receipts.get(engine.context("harbour"))
        found = [engine.get(entry.id).text for entry in receipt.candidates if entry.slot == "semantic"]
    query = embedder.query("harbour")
    vectors = zip(texts, embedder.embed(texts), strict=True)
    nearness = {text: sum(a * b for a, b in zip(vector, query, strict=True)) for text, vector in vectors}
    nearest = sorted(nearness.values(), reverse=True)
    assert len(found) == 20
    assert min(nearness[text] for text in found) >= nearest[19] - 0.02  # vectors are stored as bytes
    assert nearest[19] - 0.02 > nearest[-1]


def test_shares_of_the_stack() -> None:
    """003-40, 003-101, 003-131, 003-132, 003-133"""
    own = base_sizes(resolve("subtask"), 8000)
    assert [own[name] for name in ("root_goal", "path", "siblings")] == [400, 1200, 800]
    assert sum(own.values()) == pytest.approx(8000)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("fix the login", "fix"),
        ("there is an error", "fix"),
        ("a bug in it", "fix"),
        ("explain the cache", "explain"),
        ("how does it work?", "explain"),
        ("what is a lease?", "explain"),
        ("should we?", "question"),
        ("add a test", "action"),
        ("prefix keys", "other"),
    ],
)
def test_intents(query: str, expected: str) -> None:
    """003-46, 003-49, 003-50, 003-51, 003-52"""
    assert detect_intent(query) == expected


def test_signals_of_a_query() -> None:
    """003-34, 003-44, 003-45, 003-48, 003-64"""
    with open_engine(embedder=open_embedder("hash:64")) as engine:
        engine.add("entity", "Uploader", data={"type": "service", "properties": {"owner": "Mira"}})
        context = engine.context("Who owns the uploader?")
    signals = context.signals
    assert signals.keywords == ("owns", "uploader")
    assert tuple(signals.entities.values()) == ("Uploader",)
    assert signals.intent == "question"
    assert signals.embedding is not None
    assert len(signals.embedding) == 64
    assert "- **service**: Uploader (owner: Mira)\n" in context.text


def test_the_latest_events_are_shown_in_their_order() -> None:
    """003-56, 003-57, 003-115"""
    with open_engine(profile="subtask") as engine:
        for n in range(60):
            engine.add("event", f"step {n}", created=ago((n + 1) / 24))
        all_that_fit = [item.record.text for item in engine.context("anything", budget=900).items]
        steps = [item.record.text for item in engine.context("anything", budget=200).items]
        engine.add("event", "the very newest")
        again = [item.record.text for item in engine.context("anything", budget=200).items]
    assert all_that_fit == [f"step {n}" for n in reversed(range(50))]  # 50 are looked at
    assert steps == [f"step {n}" for n in reversed(range(len(steps)))]
    assert 10 < len(steps) < 50
    assert again[-2:] == ["step 0", "the very newest"]


def test_messages_of_one_millisecond_keep_their_order(engine: foveate.Engine) -> None:
    """003-56"""
    for text in ("first the parser", "then the linter", "last the printer"):
        engine.add("event", text)
    assert [item.record.text.split()[0] for item in engine.context("anything").items] == ["first", "then", "last"]


def test_an_old_event_that_the_question_is_about_comes_before_the_latest() -> None:
    """003-55: `calculateRelevance(event, signals)` beside recency."""
    with open_engine(profile="subtask") as engine:
        engine.add("event", "Redis refused the connection on port 6380", data={"type": "error"}, created=ago(2))
        for n in range(40):
            engine.add("event", f"It rained in town number {n} and nobody minded at all", created=ago(n / 24))
        context = engine.context("Why does Redis refuse the connection?", budget=120)
    assert "Redis refused the connection on port 6380" in context.text


def test_recency_halves_every_24_hours() -> None:
    """003-58"""
    with open_engine(profile="subtask") as engine:
        engine.add("fact", "The upload runs at night", created=ago(1))
        assert engine.context("upload").items[0].candidate.features["recency"] == 0.5


def test_scores_are_weighted_sums_and_best_comes_first() -> None:
    """003-36, 003-76, 003-78, 003-79, 003-80, 003-81"""
    with open_engine(profile="subtask") as engine:
        engine.add("fact", "The door of the hall was shut", salience=0.9, created=ago(2))
        engine.add("fact", "The host of the upload was full", created=ago(1))
        engine.add("fact", "The host of the backup was full", created=ago(1))
        engine.add("event", "upload started")
        context = engine.context("Was the upload host full?")
        weights = engine.receipts.get(context).profile.weights
    assert set(weights) - {"success", "applies", "stage"} == {"relevance", "recency", "salience"}
    for item in context.items:
        features = item.candidate.features
        expected = sum(weight * features.get(name, 0.0) for name, weight in weights.items())
        assert item.score == pytest.approx(expected, abs=1e-5)
    event = next(item for item in context.items if item.kind == "event")
    assert event.candidate.features["salience"] == 0.5
    facts = [item for item in context.items if item.section == "semantic"]
    assert [item.record.text.split()[4] for item in facts] == ["upload", "backup"]
    assert facts[0].score > facts[1].score
    assert len({item.tokens for item in facts}) == 1  # a longer one of the same score would come later


def test_greedy_selection_goes_on_past_a_misfit(engine: foveate.Engine) -> None:
    """003-37, 003-82"""
    # One word of six hundred characters: no level of it is short.
    engine.add("fact", "upload " + "uploadx" * 90, summary="upload " + "uploadx" * 90, micro="upload " + "uploadx" * 90)
    small = engine.add("fact", "The upload host is full today").record.id
    context = engine.context("upload", budget=60)
    assert [item.id for item in context.items] == [small]
    assert [omission.reason for omission in context.left_out] == ["budget"]


@pytest.mark.parametrize(
    ("recency_weight", "relevance_weight", "salience_weight"), [(0.3, 0.5, 0.2), (1.0, 0.0, 0.0), (0.2, 0.7, 0.1)]
)
@pytest.mark.parametrize(
    ("hours", "relevance", "salience"),
    [(0, 1.0, 0.5), (24, 0.8, 0.5), (48, 0.6, 0.9), (240, 0.4, 0.1), (1, 0.0, 1.0), (10_000, 0.0, 0.0)],
)
def test_the_final_score_is_the_documents_weighted_sum(
    recency_weight: float, relevance_weight: float, salience_weight: float, hours: int, relevance: float, salience: float
) -> None:
    """003-36"""
    weights = {"recency": recency_weight, "relevance": relevance_weight, "salience": salience_weight}
    now = 1_790_000_000_000
    record = Record(
        id="r", kind="fact", scope=Scope("p"), text="t", summary="t", micro="t", salience=salience,
        created=now - hours * 3_600_000,
    )  # fmt: skip
    found = features(record, Slot(name="s", source="search"), resolve("subtask").half_life_hours, now)
    recency = 0.5 ** (hours / 24)  # "score halves every 24 hours"
    expected = recency * recency_weight + relevance * relevance_weight + salience * salience_weight
    assert weigh({**found, "relevance": relevance}, weights) == pytest.approx(expected, abs=1e-6)


def test_the_weights_of_the_three_are_the_profiles() -> None:
    """003-36"""
    weights = resolve("subtask").weights
    assert (weights["relevance"], weights["recency"], weights["salience"]) == (0.5, 0.3, 0.2)


def test_what_does_not_fit_is_shortened_lowest_score_first(engine: foveate.Engine) -> None:
    """003-106, 003-107, 003-108"""
    for host in ("ash", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple"):
        engine.add("fact", f"The upload of {host} runs at night. " + f"Nobody knows why {host} is slow then. " * 9)
    levels = [item.level for item in engine.context("upload runs at night", budget=420).items]
    assert levels == sorted(levels, key=("full", "summary", "micro").index)
    assert levels[0] != "micro"
    assert levels[-1] == "micro"


def test_entities_show_their_type_and_properties(engine: foveate.Engine) -> None:
    """003-98"""
    engine.add("entity", "Uploader", data={"type": "service", "properties": {"owner": "Mira", "tier": 1}})
    assert "- **service**: Uploader (owner: Mira, tier: 1)\n" in engine.context("uploader").text
    engine.add("entity", "Archiver", data={"type": "service"})
    assert "- **service**: Archiver\n" in engine.context("archiver").text


def test_the_budget_is_never_exceeded_and_says_what_is_used(engine: foveate.Engine) -> None:
    """003-02, 003-43, 003-63, 003-68, 003-100, 003-102, 003-103, 003-104, 003-118"""
    many(engine)
    for total in (50, 200, 800, 3000):
        budget = engine.context("upload", budget=total).budget
        assert budget.used <= budget.ceiling == total
    assert {"total", "reserve", "used", "slots"} <= {field.name for field in fields(Budget)}


def test_the_estimate_of_four_characters_a_token_has_a_name() -> None:
    """003-07, 003-105"""
    assert [tokens.count("x" * n, "chars4") for n in (1, 4, 5)] == [1, 1, 2]


def test_sources_that_are_slow_run_in_parallel() -> None:
    """003-113"""
    meet = Barrier(2, timeout=300)

    class Slow(foveate.Source):
        slow = True
        deadline = 300.0

        def __init__(self, name: str) -> None:
            self.name = name

        def find(self, asks: object, around: object) -> list[Candidate]:
            meet.wait()  # passes only if both are here at once
            return []

    slots = {name: {"source": name, "share": 1} for name in ("one", "two")}
    with open_engine(sources=[Slow("one"), Slow("two")]) as engine:
        context = engine.context("upload", overrides={"slots": slots})
    assert context.warnings == ()


def test_a_new_event_joins_and_nothing_else_changes_where_it_fits(engine: foveate.Engine) -> None:
    """003-114, 003-116"""
    engine.add("fact", "The upload runs at night")
    before = engine.context("upload")
    engine.add("event", "backup started")
    delta = engine.context("upload").delta(before)
    assert [item.record.text for item in delta.added] == ["backup started"]
    assert (delta.changed, delta.withdrawn) == ((), ())


def test_where_it_does_not_fit_the_lowest_makes_room(engine: foveate.Engine) -> None:
    """003-117"""
    hosts = ("ash", "cedar", "oak", "pine", "fir", "palm", "rose", "corn")  # one token each
    for n, host in enumerate(hosts):
        engine.add("fact", f"The upload of the {host} host is slow", salience=0.9 - n / 20)
    before = engine.context("Which upload host is slow?", budget=70)
    shown = [item.record.text.split()[4] for item in before.items]
    assert shown == [*hosts[: len(shown)]]
    assert 3 <= len(shown) < len(hosts)
    engine.add("fact", "The upload of the lime host is slow", salience=1.0)
    after = engine.context("Which upload host is slow?", budget=70)
    assert [item.record.text.split()[4] for item in after.items] == ["lime", *shown[:-1]]
    assert [item.record.text.split()[4] for item in after.delta(before).withdrawn] == [shown[-1]]
    assert after.truncated


def test_records_have_the_common_form() -> None:
    """003-76, 003-79"""
    assert {"id", "kind", "text", "salience"} <= {field.name for field in fields(Record)}
    assert {"record", "slot", "source", "features", "score"} <= {field.name for field in fields(Candidate)}
    assert Record(id="x", kind="event", scope=Scope("p"), text="t", summary="t", micro="t").salience == 0.5
    assert Context.__name__ == "Context"


def test_the_profile_asks_the_documents_sources_in_one_go() -> None:
    """003-35, 003-42"""
    slots = {slot.name: slot for slot in resolve("subtask").slots}
    asked = {name: slots[name].source for name in ("recent", "semantic", "entities", "relations", "patterns")}
    assert asked == {
        "recent": "recent", "semantic": "search", "entities": "entities", "relations": "relations", "patterns": "search",
    }  # fmt: skip
    assert slots["semantic"].max_candidates == 20
    assert slots["patterns"].share
    with open_engine(profile="subtask") as engine:
        engine.add("fact", "The uploader retries three times")
        reports = to_json(engine.receipts.get(engine.context("uploader retries")))["sources"]
        assert {report["source"] for report in reports} >= set(asked.values())


def test_the_headings_and_kinds_of_the_document() -> None:
    """003-77, 003-85, 003-86, 003-87, 003-88"""
    headings = {slot.name: slot.heading for slot in resolve("subtask").slots}
    assert headings["semantic"] == "Relevant Content"
    assert headings["entities"] == "Known Entities"
    assert headings["relations"] == "Relationships"
    assert headings["patterns"] == "Applicable Patterns"
    assert {"event", "note", "entity", "relation", "pattern"} <= set(KINDS)


def test_what_is_a_day_old_weighs_half_of_what_is_new() -> None:
    """003-62"""
    now = 1_790_000_000_000
    made = {"kind": "fact", "scope": Scope("p"), "text": "t", "summary": "t", "micro": "t"}
    slot, half_life = Slot(name="s", source="search"), resolve("subtask").half_life_hours
    new, old = (features(Record(id="r", created=now - age, **made), slot, half_life, now) for age in (0, 86_400_000))  # type: ignore[arg-type]
    assert (new["recency"], old["recency"]) == (1.0, 0.5)
