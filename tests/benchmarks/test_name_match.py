"""The source of PrecisionMemBench: only what the query names."""

from __future__ import annotations

import pytest
from bench.datasets.name_match import NameMatch, is_misspelt

from foveate import Engine
from worlds import open_engine

ONLY_NAMED = {
    "weights": {"relevance": 1.0},
    "slots": {
        "known": {"source": "named", "kinds": ["entity"], "heading": "Known", "share": 20, "order": 70},
        **{name: {"remove": True} for name in ("decisions", "facts", "warnings", "patterns", "procedures", "episodes")},
    },
}


def named(engine: Engine, query: str) -> dict[str, float]:
    context = engine.context(query, overrides=ONLY_NAMED)
    items = [item for section in context.sections if section.name == "known" for item in section.items]
    return {str(item.record.data["name"]): item.candidate.features["relevance"] for item in items}


def known() -> Engine:
    engine = open_engine(sources=[NameMatch()])
    engine.add("entity", "Runs on three nodes.", data={"name": "kubernetes", "aliases": ["k8s"]})
    engine.add("entity", "Holds sessions and rate limits.", data={"name": "redis_cache", "aliases": ["Redis"]})
    engine.add("entity", "A jazz pianist.", data={"name": "redis_character", "aliases": ["Redis"]})
    engine.add("entity", "Only the raw driver.", data={"name": "mongo_driver", "aliases": ["Mongo", "dead letter"]})
    return engine


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("what is our K8S deploy story?", {"kubernetes": 1.0}),
        ("the dead letter messages", {"mongo_driver": 1.0}),
        ("Reddis eviction", {"redis_cache": 0.9, "redis_character": 0.9}),
        ("how is Redis doing?", {"redis_cache": 1.0, "redis_character": 1.0}),
        ("kuberentes pods", {"kubernetes": 0.9}),
        ("mango chutney", {}),
        ("sessions and rate limits on three nodes", {}),  # similar words are no names
    ],
)
def test_only_named_entities_are_found(query: str, names: dict[str, float]) -> None:
    assert named(known(), query) == names


def test_linked_entities_are_found_and_retired_ones_are_not() -> None:
    engine = known()
    auth = engine.add("entity", "Sessions live in the cache.", data={"name": "auth"}).record
    (cache,) = (hit.record for hit in engine.search("rate limits"))
    engine.link(auth.id, "involves", cache.id)
    assert named(engine, "is auth down?") == {"auth": 1.0, "redis_cache": 0.8}
    engine.edit(cache.id, status="retired")
    assert named(engine, "is auth down?") == {"auth": 1.0}


@pytest.mark.parametrize(
    ("written", "name", "is_mistake"),
    [
        ("typscript", "typescript", True),  # lost
        ("typsecript", "typescript", True),  # swapped
        ("mongod", "mongo", True),  # one too many
        ("kubernetas", "kubernetes", True),  # wrong, in a long word
        ("reach", "react", False),  # wrong, in a short one
        ("k9s", "k8s", False),
        ("chapter", "chapter7", False),  # digits are no mistakes
        ("ongoose", "mongoose", False),  # the beginning must be right
        ("tpyescript", "typescript", False),
        ("typesrcitp", "typescript", False),  # two mistakes
    ],
)
def test_one_typing_mistake_is_accepted(written: str, name: str, is_mistake: bool) -> None:
    assert is_misspelt(written, name) is is_mistake
