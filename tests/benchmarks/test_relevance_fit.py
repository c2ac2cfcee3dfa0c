"""`python -m bench relevance`: what it fits, what it judges, and the file that it writes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from bench import relevance as bench
from bench.__main__ import run_tool
from bench.relevance import FITTED, Asked, Question, asked, fit, relevances, with_coefficients

import foveate
from foveate.pipeline import relevance

TRUE = {
    "strength": {"match": 6.0, "neighbour": 2.0, "overlap": -2.0, "session": 3.0, "speaker": 1.0, "length": 2.5},
    "answerable": {"intercept": -9.0, "strength": 0.5, "coverage": 4.0, "terms": 1.5},
    "evidence": {"intercept": -8.0, "strength": 1.0, "best_strength": -0.6},
}
"""With an evidence.strength of 1, a single piece of evidence is drawn by a softmax over strengths. So it must be rare."""
CANDIDATES = 40
BY_HAND = -2.0


def synthetic_questions(count: int, seed: int) -> list[Asked]:
    """Draw questions and evidence by the model with the true coefficients."""
    chance = np.random.default_rng(seed)
    pool = relevance.model()["evidence"]["pool"]
    true = {step: np.array([TRUE[step][name] for name in names]) for step, names in FITTED.items()}
    questions = []
    for _ in range(count):
        features = chance.random((CANDIDATES, len(FITTED["strength"]))) ** 2
        by_hand = BY_HAND * (chance.random(CANDIDATES) < 0.5)
        strengths = features @ true["strength"] + by_hand
        best, coverage, terms = strengths.max(), chance.random(), np.log1p(chance.integers(1, 12))
        is_own = chance.random() < bench.sigmoid(np.array([1, best, coverage, terms]) @ true["answerable"])
        rows = np.column_stack([np.ones(CANDIDATES), strengths, np.full(CANDIDATES, best)])
        likely = bench.sigmoid(rows @ true["evidence"] - np.log(CANDIDATES / pool))
        evidence = (chance.random(CANDIDATES) < likely) & is_own
        questions.append(Asked("own" if is_own else "other", features, by_hand, evidence.astype(float), coverage, terms))
    return questions


@pytest.mark.slow
def test_the_fit_finds_the_coefficients_that_data_were_drawn_with() -> None:
    sets = [synthetic_questions(4000, seed) for seed in (1, 2)]
    found = fit(sets, relevance.model())
    own = np.mean([each.kind == "own" for one in sets for each in one])
    assert 0.3 < own < 0.7
    # Both classes have the same weight, so the intercept is that of as many own questions as others.
    found["answerable"]["intercept"] += float(np.log(own / (1 - own)))
    for step, values in TRUE.items():
        for name, value in values.items():
            assert found[step][name] == pytest.approx(value, abs=0.35 if name != "intercept" else 0.7), (step, name)


def test_the_fit_changes_no_coefficient_that_is_set_by_hand() -> None:
    found = fit([synthetic_questions(200, 3)], relevance.model())
    shipped = relevance.model()
    assert found["at_least"] == shipped["at_least"]
    assert found["evidence"]["pool"] == shipped["evidence"]["pool"]
    for name in ("curated", "assistant", "assistant_asked"):
        assert found["strength"][name] == shipped["strength"][name]


def test_it_estimates_the_same_relevance_as_a_context(tmp_path: Path) -> None:
    with foveate.open(tmp_path, personal=False, code=False) as engine:
        engine.remember(
            [
                {"role": "user", "name": "Ada", "content": "My sister keeps bees on her roof in Lyon.", "id": "bees"},
                {"role": "assistant", "content": "Bees on a roof in Lyon, how lovely! What do they fly to?", "id": "answer"},
                {"role": "user", "name": "Ada", "content": "Mostly lime trees.", "id": "trees"},
            ],
            session="one",
        )
        engine.add("fact", "Honey from bees in Lyon tastes of lime.")
        for query in ("Where does Ada's sister keep her bees?", "What did you say about bees?"):
            context = engine.context(query, budget=bench.BUDGET, session="two", dry_run=True)
            estimated = [each for each in context.run.candidates if relevance.is_estimated(each)]
            question = asked(context.run, Question("own", query, None, frozenset({"bees"})))
            assert len(estimated) == 4
            assert question.is_evidence.sum() == 1
            in_context = [each.features["relevance"] for each in estimated]
            assert relevances(question, relevance.model()) == pytest.approx(in_context, abs=1e-5)


def test_writing_changes_the_numbers_and_keeps_the_comments() -> None:
    text = bench.COEFFICIENTS_FILE.read_text("utf-8")
    model = {step: dict(values) for step, values in relevance.model().items()}
    for step, names in FITTED.items():
        model[step] |= {name: n + 0.25 for n, name in enumerate(names)}
    written = with_coefficients(text, model)
    assert tomllib.loads(written) == model
    assert [line.partition("#")[2] for line in written.splitlines()] == [
        line.partition("#")[2] for line in text.splitlines()
    ]


def locomo_file(path: Path, names: tuple[str, str], facts: list[tuple[str, str]]) -> Path:
    """Write a conversation in which each fact is told in a session of its own, with its question."""
    conversation: dict[str, object] = {}
    questions = []
    for n, (text, question) in enumerate(facts, 1):
        conversation[f"session_{n}_date_time"] = f"1:56 pm on {n} May, 2023"
        conversation[f"session_{n}"] = [
            {"dia_id": f"D{n}:1", "speaker": names[0], "text": text},
            {"dia_id": f"D{n}:2", "speaker": names[1], "text": "That is good to hear, tell me more."},
        ]
        questions.append({"question": question, "answer": "", "evidence": [f"D{n}:1"], "category": 4})
    path.write_text(json.dumps([{"conversation": conversation, "qa": questions}]))
    return path


@pytest.mark.slow
def test_the_command_judges_each_set_by_the_others_and_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = [("My boat is called Sula.", "What is Ada's boat called?"), ("We moved to Lyon.", "Where did Ada move?")]
    second = [("I sold the red bicycle.", "Which bicycle did Cleo sell?"), ("Our cat is old.", "How old is the cat?")]
    file = tmp_path / "relevance.toml"
    file.write_text(bench.COEFFICIENTS_FILE.read_text("utf-8"))
    before = tomllib.loads(file.read_text())
    monkeypatch.setattr(bench, "COEFFICIENTS_FILE", file)
    monkeypatch.setattr(bench, "DATA", tmp_path / "nothing")
    data = [
        f"locomo={locomo_file(tmp_path / 'locomo.json', ('Ada', 'Ben'), first)}",
        f"friendsqa={locomo_file(tmp_path / 'friends.json', ('Cleo', 'Dan'), second)}",
    ]
    with pytest.raises(SystemExit) as failed:
        run_tool("relevance", data[:1])
    assert failed.value.code
    assert "At least 2 sets are needed" in capsys.readouterr().err
    with pytest.raises(SystemExit) as done:
        run_tool("relevance", [*data, "--sample", "20", "--write"])
    assert not done.value.code
    captured = capsys.readouterr()
    assert "realtalk is skipped" in captured.err
    assert "without locomo" in captured.out
    assert "friendsqa, held out" in captured.out
    written = tomllib.loads(file.read_text())
    assert written["strength"]["match"] != before["strength"]["match"]
    assert written["strength"]["assistant"] == before["strength"]["assistant"]
