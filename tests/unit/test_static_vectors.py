"""The built-in embedder: what it is made of, what it finds, and that it gives the same vectors everywhere."""

from __future__ import annotations

from hashlib import blake2b
from math import hypot, isclose
from pathlib import Path

import pytest

import foveate
from foveate.text import static_vectors
from foveate.text.static_vectors import BuiltinEmbedder
from worlds import open_engine

MADE = Path(__file__).parents[2] / "training" / "made.txt"


def similarity(one: str, other: str) -> float:
    first, second = BuiltinEmbedder().embed([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


def test_the_file_is_the_one_that_training_made() -> None:
    content = Path(static_vectors.__file__).with_name("static_vectors.bin").read_bytes()
    made = dict(line.split() for line in MADE.read_text("utf-8").splitlines())
    assert blake2b(content, digest_size=16).hexdigest() == made["file"]
    assert len(content) < 12_000_000


def test_a_text_has_the_same_vector_on_every_machine() -> None:
    vector = BuiltinEmbedder().query("The lease on the office ends in 2028")
    assert isclose(hypot(*vector), 1)
    assert blake2b(repr([x.hex() for x in vector]).encode(), digest_size=8).hexdigest() == "5b587740701f430d"


@pytest.mark.parametrize("text", ["", "   ", "12345", "日本語のテキスト", "zzxqj"])
def test_a_text_without_known_words_has_no_direction(text: str) -> None:
    assert not any(BuiltinEmbedder().query(text))


def test_a_vector_depends_on_the_words_and_how_often_they_occur() -> None:
    assert similarity("the dog bites the man", "the man bites the dog") == pytest.approx(1)
    assert similarity("cat " * 9 + "car", "cat") > similarity("cat " + "car " * 9, "cat")


@pytest.mark.parametrize(
    ("question", "answer", "other"),
    [
        (
            "How long can we stay in this building?",
            "The lease on the office ends in 2028",
            "The canteen serves soup on Mondays",
        ),
        ("What upsets her stomach?", "Ada is allergic to peanuts", "Ada plays the violin"),
        ("memory keeps growing", "def evict(cache): drop entries that nobody reads", "def parse_date(text): read a date"),
    ],
)
def test_an_answer_in_other_words_is_nearer_than_something_else(question: str, answer: str, other: str) -> None:
    assert similarity(question, answer) > similarity(question, other)


def test_a_very_long_text_stays_within_the_bits_of_its_sums() -> None:
    assert isclose(hypot(*BuiltinEmbedder().query("postgres " * 100_000)), 1)


def test_an_answer_in_other_words_is_found_with_the_embedder_and_not_without() -> None:
    for embedder, found in (("builtin", True), ("none", False)):
        with open_engine(embedder=embedder) as engine:
            engine.add("fact", "The lease on the office ends in 2028")
            engine.add("fact", "The canteen serves soup on Mondays")
            context = engine.context("How long can we stay in this building?")
            assert [each.record.text for each in context.run.candidates if "2028" in each.record.text] == (
                ["The lease on the office ends in 2028"] if found else []
            )


@pytest.mark.parametrize(("name", "message"), [("builtinn", "Did you mean 'builtin'"), ("builtin:x", "Write `builtin`")])
def test_a_wrong_name_is_an_error_that_says_the_right_one(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(foveate.InputError, match=message):
        foveate.open(tmp_path, personal=False, embedder=name)
