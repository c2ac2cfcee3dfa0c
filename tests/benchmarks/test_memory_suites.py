"""The suites of bench for memories: fact consolidation and PrecisionMemBench."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench.datasets.facts import Fact, find_answer
from bench.datasets.perturbed import perturb

from eval_kit import load_datasets, load_suite, run_foveate, write, write_jsonl
from foveate.errors import FoveateError, InputError, NotFound
from foveate.eval.evidence import EvidenceText
from foveate.eval.model import RenderedPrompt
from foveate.eval.report import case_score

# --- facts ---------------------------------------------------------------------------------------------------------

FACTS = """Here is a list of facts:
0. The capital of Norland is Aville.
1. The capital of Sudland is Cetown.
2. chess was created in the country of Aland.
3. The capital of Norland is Beburg.
4. Beburg is the home of Ole Dahl.
"""
STATED = [Fact(n, line[3:]) for n, line in enumerate(FACTS.splitlines()[1:])]


@pytest.mark.parametrize(
    ("question", "answers", "expected", "replaced"),
    [
        ("What is the capital of Norland?", ["Beburg"], 3, [0]),
        ("What is the capital of Norland?", ["Oslo", "beburg"], 3, [0]),
        ("What is the capital of Sudland?", ["Cetown"], 1, []),
        ("In which country was chess created?", ["Aland"], 2, []),
        ("What is the capital of Norland?", ["Aville"], None, []),  # it was replaced
        ("What is the capital of the land of Ole Dahl?", ["Beburg"], None, []),  # a chain: no fact names its subject
        ("What is the capital of Norland?", ["Cetown"], None, []),
        ("What is the capital of Norland?", [""], None, []),
    ],
)
def test_the_latest_fact_with_the_answer_is_expected(
    question: str, answers: list[str], expected: int, replaced: list[int]
) -> None:
    found = find_answer(question, answers, STATED[:4])
    assert (found and found[0].number) == expected
    assert [fact.number for fact in found[1]] == replaced if found else True


@pytest.mark.parametrize("name", ["facts.json", "facts.jsonl"])
def test_facts_are_stored_in_order_and_the_later_one_is_expected(tmp_path: Path, name: str) -> None:
    row = {
        "context": FACTS,
        "questions": ["What is the capital of Norland?", "Who sings?"],
        "answers": [["Beburg"], "Nobody"],
        "metadata": {"source": "single-hop"},
    }
    dataset = load_datasets("facts", write(tmp_path / name, [row] if name.endswith("json") else row))["context 1"]
    whens = [document.timestamp for document in dataset.documents]
    assert whens == sorted(set(whens))
    assert [(case.id, case.question_type) for case in dataset.cases] == [("1", "single-hop")]
    assert dataset.skipped_cases == 1
    case = dataset.cases[0]
    assert case.expected == (EvidenceText("3", "3. The capital of Norland is Beburg.", "fact"),)
    assert case.forbidden == (EvidenceText("0", "0. The capital of Norland is Aville.", "fact"),)
    rows = run_foveate("facts", tmp_path / name, tmp_path / "out").results
    assert rows[0].by_budget[8000].hits == {"fact": [True]}


def test_the_number_of_a_fact_may_be_huge(tmp_path: Path) -> None:
    row = {
        "context": f"{10**15}. The capital of Norland is Oslo.",
        "questions": ["Capital of Norland?"],
        "answers": ["Oslo"],
    }
    assert len(load_datasets("facts", write(tmp_path / "f.json", row))["context 1"].cases) == 1


# --- PrecisionMemBench ---------------------------------------------------------------------------------------------


def belief(id: str, name: str, content: str, **more: Any) -> dict[str, Any]:
    return {
        "_id": id, "user_id": "test-user", "type": "entity", "canonical_name": name, "aliases": [], "content": content,
        "scope": ["domain:code"], "confidence": 0.9, "pinned": False, "superseded_by": None, "resolved_at": None, **more,
    }  # fmt: skip


BELIEFS = [
    belief("b-style", "style", "Prefers direct answers.", scope=["user:universal"], type="preference", pinned=True),
    belief("b-redis", "redis_cache", "Redis is the cache.", aliases=["Redis"]),
    belief("b-kube", "kubernetes", "Runs on Kubernetes.", aliases=["k8s"]),
    belief("b-pg", "postgres", "Postgres holds the data.", pinned=True, aliases=["Postgres"]),
    belief("b-old", "sqlite_old", "SQLite held the data.", superseded_by="b-pg", aliases=["SQLite"]),
    belief("b-auth", "auth_strategy", "JWT or sessions? Not decided.", type="open_question", pinned=True, aliases=["JWT"]),
    belief("b-poem", "redis_poem", "Redis is a poem.", aliases=["Redis"], scope=["domain:writing"]),
]


def retrieval(id: str, query: str, expect: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"caseId": id, "category": "any", "scope": ["domain:code"], "query": query, "expect": expect, **more}


def only(*ids: str) -> dict[str, Any]:
    return {"relevantBeliefs": {"shouldOnlyInclude": list(ids)}}


CASES = [
    retrieval("named", "what is Redis for?", {**only("b-redis"), "pinnedFacts": {"mustInclude": ["b-pg"]}}),
    retrieval("both", "what is Redis?", only("b-redis", "b-poem"), scope=["domain:code", "domain:writing"]),
    retrieval("gone", "is SQLite there?", {**only(), "pinnedFacts": {"mustExclude": ["b-old"]}}),
    retrieval("empty", "", {**only(), "personaPrelude": {"nonEmpty": True, "contains": ["DIRECT"]}}),
    retrieval("asks", "JWT?", {**only(), "openQuestions": {"mustInclude": ["b-auth"]}}),
    retrieval("full", "Redis on k8s", only(), budget={"maxBeliefs": 1}),
    retrieval("stranger", "Redis?", {**only(), "personaPrelude": {"isNull": True}}, userId="somebody-else"),
]
SESSION = {
    "caseId": "s",
    "turns": [
        {
            "turnIndex": 0, "scope": ["domain:code"], "userMessage": "What about allkeys-lru?", "expect": only(),
            "updateBeliefAtTurn": {"beliefId": "b-redis", "addAliases": ["allkeys-lru"]},
            "createBeliefAtTurn": belief("b-new", "turborepo", "Turborepo builds it.", aliases=["Turborepo"]),
        },
        {
            "turnIndex": 1, "scope": ["domain:code"], "userMessage": "And allkeys-lru now?",
            "expect": {**only("b-redis"), "noiseCheck": {"mustNotSurface": ["b-kube", "b-new", "b-unheard-of"]}},
        },
    ],
}  # fmt: skip


@pytest.fixture
def precise(tmp_path: Path) -> Path:
    write(tmp_path / "pmb" / "beliefs.seed.json", BELIEFS)
    write(tmp_path / "pmb" / "retrieval.cases.json", CASES)
    write(tmp_path / "pmb" / "session-retrieval.cases.json", [SESSION])
    return tmp_path / "pmb"


@pytest.mark.parametrize("options", [{}, {"perturb": "1"}, {"perturb": "2"}])
def test_only_what_is_asked_for_is_in_the_prompt(precise: Path, tmp_path: Path, options: dict[str, str]) -> None:
    rows = run_foveate("precision", precise, tmp_path / "out", **options).results
    assert [row.case for row in rows if not case_score(row, "passed", 8000)] == []
    assert [row.subset for row in rows] == ["retrieval"] * len(CASES) + ["s:0", "s:1"]


def test_a_belief_counts_in_its_section(precise: Path) -> None:
    case = next(case for case in load_datasets("precision", precise)["retrieval"].cases if case.id == "named")
    redis, postgres = "Redis is the cache.", "Postgres holds the data."

    def hits(known: str, pinned: str) -> tuple[list[bool], list[str]]:
        rendered = RenderedPrompt(f"{pinned} {known}", {"known": known, "pinned": pinned})
        wanted = [piece.is_present_in(rendered) for piece in case.expected]
        return wanted, [piece.id for piece in case.forbidden if piece.is_present_in(rendered)]

    assert hits(redis, postgres) == ([True, True], [])
    assert hits(postgres, redis) == ([False, False], ["b-pg"])
    assert hits(f"{redis} Runs on Kubernetes.", postgres) == ([True, True], ["b-kube"])


def test_later_turns_know_what_a_turn_teaches(precise: Path) -> None:
    found = load_datasets("precision", precise)
    aliases = {id: {e.id: e.values.get("aliases") for e in found[id].documents} for id in ("s:0", "s:1")}
    assert aliases["s:0"]["b-redis"] == ["Redis"]
    assert "b-new" not in aliases["s:0"]
    assert aliases["s:1"]["b-redis"] == ["Redis", "allkeys-lru"]
    assert aliases["s:1"]["b-new"] == ["Turborepo"]


def test_a_perturbed_copy_has_other_names_and_is_the_same_each_time() -> None:
    one, again, other = (perturb(BELIEFS, CASES, [SESSION], seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    said = json.dumps(one).lower()
    assert not any(name in said for name in ("redis", "kubernetes", "postgres", "b-auth", "domain:code"))
    assert sorted(len(b["aliases"]) for b in one[0]) == sorted(len(b["aliases"]) for b in BELIEFS)


def test_results_of_precision_depend_on_its_three_files(precise: Path) -> None:
    write(precise / "notes.txt", "mine")
    found = load_suite("precision").files(precise)
    assert (len(found), all(file.suffix == ".json" for file in found)) == (3, True)


def test_a_seed_is_a_number_and_beliefs_have_their_fields(precise: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whole number"):
        run_foveate("precision", precise, tmp_path / "out", perturb="x")
    write(precise / "beliefs.seed.json", [{"_id": "b"}])
    with pytest.raises(InputError, match="is missing"):
        run_foveate("precision", precise, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "make", "error", "message"),
    [
        (
            "facts",
            lambda at: write(at / "f.json", [{"context": FACTS, "questions": ["q"], "answers": []}]),
            InputError,
            "context 1, is not data of 'facts': questions and answers differ in number",
        ),
        ("facts", lambda at: at, NotFound, "*.jsonl"),
        (
            "facts",
            lambda at: write(at / "f.json", [{"context": "no facts"}]),
            InputError,
            "context 1, is not data",
        ),
        ("facts", lambda at: write(at / "f.json", [{"context": FACTS}]), InputError, "'questions' is missing"),
        ("facts", lambda at: write(at / "f.json", "x"), InputError, "is not JSON"),
        ("precision", lambda at: at, NotFound, "beliefs.seed.json"),
    ],
)
def test_errors_explain_the_expected_format(
    tmp_path: Path, name: str, make: Callable[[Path], Path], error: type[FoveateError], message: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(error) as raised:
        run_foveate(name, path, tmp_path / "out")
    assert message in str(raised.value)


def test_facts_may_have_a_byte_order_mark_and_must_be_utf_8(tmp_path: Path) -> None:
    rows = [{"context": FACTS, "questions": [], "answers": []}]
    assert load_datasets("facts", write(tmp_path / "f.json", "\ufeff" + json.dumps(rows)))
    (tmp_path / "x.json").write_bytes('[{"question": "Wo ist das Gerät?"}]'.encode("latin-1"))
    with pytest.raises(InputError, match="is not UTF-8"):
        run_foveate("facts", tmp_path / "x.json", tmp_path / "out")


def test_results_of_facts_depend_on_their_file(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "facts.jsonl", {})
    write(tmp_path / "eval-runs" / "rows.jsonl", "{}")
    write(tmp_path / "notes.txt", "mine")
    assert {file.name for file in load_suite("facts").files(tmp_path)} == {"facts.jsonl"}
