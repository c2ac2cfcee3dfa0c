"""The systems for memories: each finds and fills a budget on a small data set, and refuses what it cannot do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from foveate.errors import InputError, NotFound
from foveate.eval.evidence import EvidenceText
from foveate.eval.model import Case, Dataset, Document, Suite
from foveate.eval.run import check
from foveate.eval.systems import SYSTEMS, missing_requirement, open_system, split_specs, system_type_of
from foveate.text import tokens

MEMORIES = ("foveate", "fts5", "bm25", "recency", "dense:hash:64", "foveate:embedder=hash:64")
TURNS = (
    ("t1", "one", "Ana: the walrus sleeps on the harbour wall"),
    ("t2", "one", "Ben: my sister bought a red bicycle"),
    ("t3", "two", "Ana: lunch is at noon"),
)
DOCUMENTS = [Document(id=id, session=session, text=text) for id, session, text in TURNS]
RETIRED = Document(id="t4", session="two", text="Ben: the walrus is gone", is_retired=True)
CASE = Case("1", "Where do walruses sleep?", (EvidenceText("t1", TURNS[0][2]),))
SUITE = Suite(name="talks", description="", subsets=lambda path, options: iter(()), files=lambda path: [path])


@pytest.mark.parametrize("name", MEMORIES)
def test_a_memory_shows_documents_within_its_budget_and_no_retired_ones(name):
    opened = open_system(name).open(Dataset([CASE], [*DOCUMENTS, RETIRED]), SUITE)
    try:
        prompt = opened.render(CASE, 1000)
        assert CASE.expected[0].is_present_in(prompt)
        assert RETIRED.text not in prompt.normalized_text
        for budget in (5, 12, 30):
            assert tokens.count(opened.render(CASE, budget).text) <= budget
    finally:
        opened.close()


@pytest.mark.parametrize("name", [name for name in MEMORIES if name != "recency"])
def test_a_memory_ranks_the_answer_and_its_session_first(name):
    opened = open_system(name).open(Dataset([CASE], DOCUMENTS), SUITE)
    try:
        ranking = opened.ranking(CASE)
        assert (ranking["turn"][0], ranking["session"][0]) == ("t1", "one")
    finally:
        opened.close()


def test_foveate_ranks_sessions_as_wholes():
    words = ("walrus", "harbour", "winter", "sleep")
    scattered = [line for word in words for line in (word, *(f"{word[0]} {n}" for n in "1234"))]
    sessions = {"one": ["walrus, harbour, winter"], "two": scattered}
    documents = [
        Document(id=f"{name}{n}", session=name, text=text)
        for name, texts in sessions.items()
        for n, text in enumerate(texts)
    ]
    case = Case("1", "Does the walrus sleep in the harbour in winter?", ())
    opened = open_system("foveate").open(Dataset([case], documents), replace(SUITE, profile="chat"))
    try:
        assert opened.ranking(case)["session"] == ["two", "one"]
    finally:
        opened.close()


@pytest.mark.parametrize("name", ["fts5", "bm25", "dense:hash:64", "recency"])
@pytest.mark.parametrize(
    ("documents", "query"),
    [((), "walrus"), (DOCUMENTS, "?!"), (DOCUMENTS, "zebra"), ([Document(id="a", text="?")], "the")],
)
def test_a_baseline_answers_if_there_is_nothing_to_find(name, documents, query):
    case = Case("1", query, ())
    opened = open_system(name).open(Dataset([case], documents), SUITE)
    assert isinstance(opened.render(case, 100).text, str)
    assert isinstance(opened.ranking(case), dict)


def test_bm25_stems_and_leaves_out_documents_without_a_shared_word():
    opened = open_system("bm25").open(Dataset([CASE], DOCUMENTS), SUITE)
    assert opened.ranking(CASE)["turn"] == ["t1"]


def test_recency_shows_the_newest_documents_in_their_order_without_a_ranking():
    opened = open_system("recency").open(Dataset([CASE], DOCUMENTS), SUITE)
    text = opened.render(CASE, 1000).text
    assert [text.index(turn) for _, _, turn in TURNS] == sorted(text.index(turn) for _, _, turn in TURNS)
    newest = opened.render(CASE, tokens.count(f"- {TURNS[2][2]}\n")).text
    assert newest == f"- {TURNS[2][2]}\n"
    assert opened.ranking(CASE) == {}


@pytest.mark.parametrize("name", ["fts5", "bm25", "recency", "dense:hash:64"])
def test_a_baseline_for_memories_refuses_code(name):
    with pytest.raises(InputError, match=f"{name!r} works on memories"):
        check(replace(SUITE, is_code=True), open_system(name), Path(), {})
    check(SUITE, open_system(name), Path(), {})


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("fts", NotFound, "Did you mean 'fts5'"),
        ("", NotFound, "Known: "),
        ("fts5:porter", InputError, "takes no argument"),
        ("dense", InputError, "dense:PROVIDER:MODEL"),
        ("dense:", InputError, "dense:PROVIDER:MODEL"),
        ("dense:model3vec:x", InputError, "Did you mean 'model2vec'"),
        ("foveate:", InputError, "foveate:embedder=PROVIDER:MODEL"),
        ("foveate:speed=3", InputError, "foveate:embedder=PROVIDER:MODEL"),
        ("no.such.module", InputError, "'no.such.module' cannot be imported"),
        ("foveate.eval.rows", InputError, "has no foveate.eval.model.SystemType named SYSTEM"),
    ],
)
def test_a_system_that_cannot_be_made_says_what_to_write(spec, error, message):
    with pytest.raises(error, match=message):
        open_system(spec)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["fts5, bm25", "fts5"], ["fts5", "bm25"]),
        (["my.system:model=P,whole,fts5"], ["my.system:model=P,whole", "fts5"]),
        (["dense:model2vec:a/b,my.system:whole,model=P"], ["dense:model2vec:a/b", "my.system:whole,model=P"]),
        (["dense:x,my.system"], ["dense:x", "my.system"]),
        (["fts5,bm26"], ["fts5", "bm26"]),
        ([""], []),
    ],
)
def test_a_comma_may_be_part_of_an_argument(values, expected):
    assert split_specs(values) == expected


def test_every_system_has_a_short_description_and_says_what_is_missing():
    assert all(0 < len(system_type_of(name).description) < 70 for name in SYSTEMS)
    assert all(isinstance(missing_requirement(name), str) for name in SYSTEMS)
    assert [missing_requirement(name) for name in ("foveate", "fts5", "recency")] == [""] * 3
    assert missing_requirement("dense") == "write dense:PROVIDER:MODEL"
    assert missing_requirement("dense:hash:64") == ""
    with pytest.raises(NotFound):
        missing_requirement("elastic")


def test_a_missing_package_is_named(monkeypatch):
    from foveate.eval.systems import baselines

    monkeypatch.setattr(baselines, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="'bm25' cannot run: pip install bm25s"):
        open_system("bm25")


@pytest.mark.parametrize("name", ["fts5", "bm25", "dense:hash:64", "foveate:embedder=hash:64"])
def test_a_fingerprint_names_the_versions_that_results_depend_on(name):
    assert any(letter.isdigit() for letter in open_system(name).fingerprint)
    assert open_system(name).fingerprint == open_system(name).fingerprint
    assert open_system("foveate").fingerprint != open_system("foveate:embedder=hash:64").fingerprint
