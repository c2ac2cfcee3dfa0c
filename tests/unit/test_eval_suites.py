from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate.errors import FoveateError, InputError, NotFound
from foveate.eval.datasets import suite
from foveate.eval.datasets.facts import Fact, meant
from foveate.eval.datasets.perturbed import perturbed
from foveate.eval.evidence import OneOf, Said
from foveate.eval.model import Rendered, Scene
from foveate.eval.report import scored
from foveate.eval.rows import Run
from foveate.eval.run import run
from foveate.eval.systems import system


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return path


def jsonl(path: Path, *documents: Any) -> Path:
    return write(path, "".join(f"{json.dumps(document)}\n" for document in documents))


def scenes(name: str, path: Path, **options: str) -> dict[str, Scene]:
    return {world.id: world.load() for world in suite(name).worlds(path, options)}


def asked(name: str, path: Path, out: Path, **options: str) -> Run:
    return run(suite(name), system("foveate"), path, out, budgets=[8000], options=options)


def texts(scene: Scene) -> dict[str, str]:
    return {entry.id: entry.text for entry in scene.entries}


def test_headings_in_a_quoted_text_and_hidden_characters_do_not_matter() -> None:
    said = Said("1", "First\r\n## Steps\n---\nthen\u200b on")
    assert said.stands(Rendered("- First\n  \\## Steps\n  \\---\n  then on"))
    assert not said.stands(Rendered("- First\n  Steps\n  then on"))


# --- REALTALK ------------------------------------------------------------------------------------------------------

CHAT_1 = {
    "name": {"speaker_1": "Ann", "speaker_2": "Ben"},
    "session_1": [
        {"clean_text": "I took up kickboxing.", "speaker": "Ann", "date_time": "29.12.2023, 22:42:04", "dia_id": "D1:1"},
        {"clean_text": "", "speaker": "Ben", "date_time": "29.12.2023, 22:43:00", "dia_id": "D1:2"},
    ],
    "events_session_1": {"agent_a": []},
    "session_1_date_time": "another form",
    "session_2": [{"clean_text": "The rink shut", "speaker": "Ben", "date_time": "02.01.2024, 08:00:00", "dia_id": "D2:1"}],
    "session_3": [],
    "qa": [
        {"question": "What sports does Ann do?", "evidence": ["D1:1"], "category": 1},
        {"question": "What is shut?", "evidence": ["D2:1", "D2:9"], "category": 2},
        {"question": "What else?", "category": 3},
    ],
}


def test_realtalk_tells_messages_by_session_and_asks_what_has_evidence(tmp_path: Path) -> None:
    for name in ("Chat_10_Ann_Cid", "Chat_2_Ann_Ben"):
        write(tmp_path / "data" / f"{name}.json", CHAT_1)
    write(tmp_path / "data" / "locomo" / "Chat_1_Other.json", CHAT_1)  # the folder beside it holds other data
    found = scenes("realtalk", tmp_path)
    assert list(found) == ["Chat_2_Ann_Ben", "Chat_10_Ann_Cid"]
    scene = found["Chat_2_Ann_Ben"]
    assert [(entry.id, entry.text, entry.session, entry.when) for entry in scene.entries] == [
        ("D1:1", "Ann: I took up kickboxing.", "session_1", "2023-12-29T22:42:04+00:00"),
        ("D2:1", "Ben: The rink shut", "session_2", "2024-01-02T08:00:00+00:00"),
    ]
    assert [case.query for case in scene.cases] == ["What sports does Ann do?"]
    assert scene.skipped == 2


def test_one_of_a_kind_arrives_where_the_kind_is_asked_for(tmp_path: Path) -> None:
    row = asked("realtalk", write(tmp_path / "Chat_1.json", CHAT_1), tmp_path / "out").rows[0]
    assert row.packs[8000].hits == {"turn": [True], "session": [True]}


# --- LongMemEval ---------------------------------------------------------------------------------------------------

TEA = {"role": "user", "content": "I drink green tea with lemon.", "has_answer": True}
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which tea do I drink?",
        "answer": "green",
        "question_date": "2023/05/30 (Tue) 10:00",
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21", "2023/05/22 (Mon) 02:21"],
        "haystack_session_ids": ["answer_x_1", "ultra_2", "answer_x_2"],
        "haystack_sessions": [
            [TEA, {"role": "assistant", "content": "# Tea\nA fine choice."}],
            [{"role": "user", "content": "My bicycle is red."}, {"role": "assistant", "content": ""}],
            [{"role": "user", "content": "Tea again."}, {"role": "assistant", "content": "With pleasure."}],
        ],
        "answer_session_ids": ["answer_x_1", "answer_x_2"],
    },
    {"question_id": "q2_abs"},
]


def test_longmemeval_masks_its_sessions_and_asks_no_abstention(tmp_path: Path) -> None:
    found = scenes("longmemeval", write(tmp_path / "longmemeval_s.json", LONGMEMEVAL))
    assert (len(found["q1"].cases), found["q2_abs"]) == (1, Scene([], skipped=1))
    told = found["q1"].entries
    assert [(entry.session, entry.when) for entry in told][:3] == [
        ("session 1", "2023-05-20T02:21:00+00:00"),
        ("session 1", "2023-05-20T02:21:00+00:00"),
        ("session 2", "2023-05-21T02:21:00+00:00"),
    ]
    assert "answer" not in repr(told)
    assert "ultra" not in repr(told)
    assert len(told) == 5  # the empty turn is none


def test_longmemeval_wants_marked_turns_and_a_turn_of_each_session(tmp_path: Path) -> None:
    case = scenes("longmemeval", write(tmp_path / "longmemeval_s.json", LONGMEMEVAL))["q1"].cases[0]
    assert case.now == "2023-05-30T10:00:00+00:00"
    assert case.type == "single-session-user"
    assert case.wanted == (
        Said("session 1, turn 1", "user: I drink green tea with lemon."),
        OneOf("session 1", ("user: I drink green tea with lemon.",)),
        OneOf("session 3", ("user: Tea again.", "assistant: With pleasure.")),
    )


def test_longmemeval_runs_from_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "data" / "longmemeval_s.json", LONGMEMEVAL)
    row = asked("longmemeval", tmp_path / "data", tmp_path / "out").rows[0]
    assert row.packs[8000].hits == {"turn": [True], "session": [True, True]}
    assert row.ranks["session"][0] == 1


def test_longmemeval_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.eval.datasets.longmemeval.PIECE", 7)
    assert list(scenes("longmemeval", write(tmp_path / "any.json", LONGMEMEVAL))) == ["q1", "q2_abs"]


def without_marks(**changed: Any) -> list[dict[str, Any]]:
    """The first question, whose turns are not marked."""
    talks = [[{**turn, "has_answer": False} for turn in talk] for talk in LONGMEMEVAL[0]["haystack_sessions"]]  # type: ignore[attr-defined]
    return [{**LONGMEMEVAL[0], "haystack_sessions": talks, **changed}]


@pytest.mark.parametrize("gold", [[], ["answer_gone"]])
def test_longmemeval_asks_nothing_without_evidence(tmp_path: Path, gold: list[str]) -> None:
    path = write(tmp_path / "longmemeval_s.json", without_marks(answer_session_ids=gold))
    assert scenes("longmemeval", path)["q1"] == Scene([], skipped=1)


def test_longmemeval_takes_iso_dates_none_and_parts_of_messages(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "I drink"}, {"type": "image"}, {"type": "text", "text": "green tea."}]
    first = {
        **LONGMEMEVAL[0],
        "haystack_dates": ["2023-05-20T02:21", "2023/05/21", None],
        "question_date": None,
        "haystack_sessions": [
            [{"role": "user", "content": parts, "has_answer": True}],
            [{"role": "user", "content": None}],
            [{"role": "user", "content": "Tea again."}],
        ],
    }
    scene = scenes("longmemeval", write(tmp_path / "longmemeval_s.json", [first]))["q1"]
    assert [(entry.text, entry.when) for entry in scene.entries] == [
        ("user: I drink\ngreen tea.", "2023-05-20T02:21:00+00:00"),
        ("user: Tea again.", None),
    ]
    assert scene.cases[0].now is None
    assert asked("longmemeval", tmp_path, tmp_path / "out").rows[0].packs[8000].hits["turn"] == [True]


# --- BEAM ----------------------------------------------------------------------------------------------------------

CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {"role": "user", "id": 0, "content": "Hello there ->-> 1,1"},
                {"role": "assistant", "id": 1, "content": "Hello!", "time_anchor": "March-15-2024"},
            ],
            [{"role": "user", "id": 2, "content": "My budget is 900 euros.\n->-> 1,2"}],
        ],
    },
    {
        "batch_number": 2,
        "turns": [[{"role": "user", "id": 3, "content": "Now my budget is 950 euros.", "time_anchor": "April-02-2024"}]],
    },
]
PROBING = {
    "abstention": [{"question": "What is my name?", "source_chat_ids": []}, {"question": "And yours?"}],
    "knowledge_update": [
        {"question": "What is my budget?", "source_chat_ids": {"old": [2], "new": [3]}},
        {"question": "What of 99?", "source_chat_ids": [99]},
    ],
    "summarization": [{"question": "Sum up the budget.", "source_chat_ids": [2, [3, 2]]}],
}


def chat(folder: Path, questions: str = "probing_questions.json") -> Path:
    write(folder / "chat.json", CHAT)
    write(folder / questions, PROBING)
    return folder


def test_beam_tells_messages_without_markers_and_dates_them(tmp_path: Path) -> None:
    scene = scenes("beam", chat(tmp_path / "7"))["7"]
    assert texts(scene)["0"] == "user: Hello there"
    assert texts(scene)["2"] == "user: My budget is 900 euros."
    assert [entry.when for entry in scene.entries] == ["2024-03-15T00:00:00+00:00"] * 3 + ["2024-04-02T00:00:00+00:00"]
    assert [entry.session for entry in scene.entries] == ["batch 1"] * 3 + ["batch 2"]


def test_beam_asks_what_has_sources(tmp_path: Path) -> None:
    cases = scenes("beam", chat(tmp_path / "7"))["7"].cases
    assert [(case.id, [piece.id for piece in case.wanted]) for case in cases] == [
        ("knowledge_update 1", ["2", "3"]),
        ("summarization 1", ["2", "3"]),
    ]
    assert cases[0].now == "2024-04-02T00:00:00+00:00"


def test_beam_reads_one_chat_chats_or_sizes_of_chats(tmp_path: Path) -> None:
    for name in ("100K/10", "100K/9", "1M/1"):
        chat(tmp_path / name, "probing_questions/probing_questions.json")
    assert list(scenes("beam", tmp_path / "100K")) == ["9", "10"]
    assert sorted(scenes("beam", tmp_path)) == ["100K/10", "100K/9", "1M/1"]
    alone = write(chat(tmp_path / "x" / "100K" / "9") / "notes.txt", "").parent
    for path in (alone, alone.parent, alone.parent.parent):  # wherever it begins, the rows are the same
        assert list(scenes("beam", path)) == ["9"]
        assert len(suite("beam").files(path)) == 2
    row = asked("beam", tmp_path / "1M" / "1", tmp_path / "out").rows[0]
    assert row.packs[8000].hits == {"turn": [True, True]}


def test_beam_passes_over_empty_messages_and_reads_iso_dates(tmp_path: Path) -> None:
    folder = chat(tmp_path / "7")
    said = [
        {"role": "user", "id": 0, "content": None},
        {"role": "user", "id": 2, "content": "My budget is 900 euros.", "time_anchor": "2024-03-15T10:00:00"},
        {"role": "user", "id": 3, "content": "Now my budget is 950 euros."},
        {"role": "user", "id": 3, "content": "Or 960 euros."},
    ]
    write(folder / "chat.json", [{"batch_number": 1, "turns": [said]}])
    scene = scenes("beam", folder)["7"]
    assert [entry.when for entry in scene.entries] == ["2024-03-15T10:00:00+00:00"] * 3
    assert list(texts(scene)) == ["2", "3 (message 2)", "3 (message 3)"]
    assert (scene.cases, scene.skipped) == ([], 5)  # nobody can tell which message 3 is meant


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
    ("question", "answers", "wanted", "overruled"),
    [
        ("What is the capital of Norland?", ["Beburg"], 3, [0]),
        ("What is the capital of Norland?", ["Oslo", "beburg"], 3, [0]),
        ("What is the capital of Sudland?", ["Cetown"], 1, []),
        ("In which country was chess created?", ["Aland"], 2, []),
        ("What is the capital of Norland?", ["Aville"], None, []),  # it was overruled
        ("What is the capital of the land of Ole Dahl?", ["Beburg"], None, []),  # a chain: no fact names its subject
        ("What is the capital of Norland?", ["Cetown"], None, []),
        ("What is the capital of Norland?", [""], None, []),
    ],
)
def test_the_latest_fact_that_answers_is_meant(question: str, answers: list[str], wanted: int, overruled: list[int]) -> None:
    found = meant(question, answers, STATED[:4])
    assert (found and found[0].number) == wanted
    assert [fact.number for fact in found[1]] == overruled if found else True


@pytest.mark.parametrize("name", ["facts.json", "facts.jsonl"])
def test_facts_are_told_in_order_and_the_later_one_is_wanted(tmp_path: Path, name: str) -> None:
    row = {
        "context": FACTS,
        "questions": ["What is the capital of Norland?", "Who sings?"],
        "answers": [["Beburg"], "Nobody"],
        "metadata": {"source": "single-hop"},
    }
    scene = scenes("facts", write(tmp_path / name, [row] if name.endswith("json") else row))["context 1"]
    whens = [entry.when for entry in scene.entries]
    assert whens == sorted(set(whens))
    assert [(case.id, case.type) for case in scene.cases] == [("1", "single-hop")]
    assert scene.skipped == 1
    case = scene.cases[0]
    assert case.wanted == (Said("3", "3. The capital of Norland is Beburg.", "fact"),)
    assert case.unwanted == (Said("0", "0. The capital of Norland is Aville.", "fact"),)
    rows = asked("facts", tmp_path / name, tmp_path / "out").rows
    assert rows[0].packs[8000].hits == {"fact": [True]}


def test_the_number_of_a_fact_may_be_huge(tmp_path: Path) -> None:
    row = {
        "context": f"{10**15}. The capital of Norland is Oslo.",
        "questions": ["Capital of Norland?"],
        "answers": ["Oslo"],
    }
    assert len(scenes("facts", write(tmp_path / "f.json", row))["context 1"].cases) == 1


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
def test_what_is_asked_for_comes_and_nothing_else(precise: Path, tmp_path: Path, options: dict[str, str]) -> None:
    rows = asked("precision", precise, tmp_path / "out", **options).rows
    assert [row.case for row in rows if not scored(row, "passed", 8000)] == []
    assert [row.world for row in rows] == ["retrieval"] * len(CASES) + ["s:0", "s:1"]


def test_a_belief_counts_in_the_section_where_it_stands(precise: Path) -> None:
    case = next(case for case in scenes("precision", precise)["retrieval"].cases if case.id == "named")
    redis, postgres = "Redis is the cache.", "Postgres holds the data."

    def judged(known: str, pinned: str) -> tuple[list[bool], list[str]]:
        rendered = Rendered(f"{pinned} {known}", {"known": known, "pinned": pinned})
        wanted = [piece.stands(rendered) for piece in case.wanted]
        return wanted, [piece.id for piece in case.unwanted if piece.stands(rendered)]

    assert judged(redis, postgres) == ([True, True], [])
    assert judged(postgres, redis) == ([False, False], ["b-pg"])
    assert judged(f"{redis} Runs on Kubernetes.", postgres) == ([True, True], ["b-kube"])


def test_what_a_turn_teaches_is_told_to_the_turns_after_it(precise: Path) -> None:
    found = scenes("precision", precise)
    aliases = {id: {e.id: e.values.get("aliases") for e in found[id].entries} for id in ("s:0", "s:1")}
    assert aliases["s:0"]["b-redis"] == ["Redis"]
    assert "b-new" not in aliases["s:0"]
    assert aliases["s:1"]["b-redis"] == ["Redis", "allkeys-lru"]
    assert aliases["s:1"]["b-new"] == ["Turborepo"]


def test_a_perturbed_copy_has_other_names_and_is_the_same_each_time() -> None:
    one, again, other = (perturbed(BELIEFS, CASES, [SESSION], seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    said = json.dumps(one).lower()
    assert not any(name in said for name in ("redis", "kubernetes", "postgres", "b-auth", "domain:code"))
    assert sorted(len(b["aliases"]) for b in one[0]) == sorted(len(b["aliases"]) for b in BELIEFS)


# --- your own ------------------------------------------------------------------------------------------------------

PORTS = [
    {"id": "r1", "text": "The port is 80.", "kind": "fact", "subject": "port", "attribute": "number", "when": "2024-01-01"},
    {
        "id": "r2",
        "text": "The port is 8080 now.",
        "kind": "fact",
        "subject": "port",
        "attribute": "number",
        "when": "2024-02-01",
    },
    {"id": "r3", "text": "Ports of ships are elsewhere.", "tags": ["ships"], "links": [["about", "r1"]], "session": "s"},
    {"id": "r4", "text": "The port of the cellar was closed.", "retired": True},
]
PORT = {"question": "Which port?", "wanted": ["r2"], "unwanted": ["r1", "r4"]}


def test_records_may_stand_in_the_case_before_it_or_beside_it(tmp_path: Path) -> None:
    inline = jsonl(tmp_path / "a" / "cases.jsonl", {**PORT, "id": "p", "records": PORTS, "type": "t", "now": "2024-03-01"})
    shared = jsonl(tmp_path / "b" / "cases.jsonl", {"records": PORTS}, PORT, {**PORT, "wanted": ["r3"]})
    beside = jsonl(tmp_path / "c" / "cases.jsonl", PORT)
    jsonl(tmp_path / "c" / "records.jsonl", *PORTS)
    assert list(scenes("own", inline)) == ["line 1"]
    assert [len(scene.cases) for scene in scenes("own", shared).values()] == [2]
    assert list(scenes("own", beside.parent)) == ["records.jsonl"]
    for n, path in enumerate((inline, shared, beside)):
        row = asked("own", path, tmp_path / f"out{n}").rows[0]
        assert row.packs[8000].hits == {"record": [True]}
        assert row.packs[8000].unwanted == [False, False]


def test_a_summary_that_a_record_brings_counts_as_the_record(tmp_path: Path) -> None:
    records = [{"id": "r", "text": "Long words. " * 200, "summary": "Short words."}]
    scene = scenes("own", jsonl(tmp_path / "c.jsonl", {"question": "words?", "wanted": ["r"], "records": records}))
    piece = scene["line 1"].cases[0].wanted[0]
    assert piece.stands(Rendered("- Short words.\n"))
    assert not piece.stands(Rendered("- Long words.\n"))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[foveate.Engine, list[str]]]:
    with foveate.open(tmp_path / "mine", own=False, code=False) as engine:
        ids = [engine.add("note", text).record.id for text in ("The port is 8080.", "The port was 80.")]
        engine.retire(ids[1])
        yield engine, ids


def test_a_store_is_asked_as_it_is_and_stays_as_it_was(kept: tuple[foveate.Engine, list[str]], tmp_path: Path) -> None:
    engine, (now, then) = kept
    path = jsonl(
        tmp_path / "cases.jsonl", {"store": "mine"}, {"question": "Which port?", "wanted": [now], "unwanted": [then]}
    )
    before = list(engine.export())
    first = asked("own", path, tmp_path / "out")
    assert first.rows[0].packs[8000].hits == {"record": [True]}
    assert first.rows[0].packs[8000].unwanted == [False]
    baseline = run(suite("own"), system("fts5"), path, tmp_path / "out", budgets=[8000])
    assert baseline.rows[0].packs[8000].unwanted == [False]
    assert list(engine.export()) == before
    with pytest.raises(NotFound, match="No context"):
        engine.receipt()


def test_a_change_of_a_store_or_of_the_records_beside_begins_a_new_run(
    kept: tuple[foveate.Engine, list[str]], tmp_path: Path
) -> None:
    engine, (now, _) = kept
    path = jsonl(tmp_path / "cases.jsonl", {"question": "Which port?", "wanted": [now], "store": "mine"})
    first = asked("own", path, tmp_path / "out")
    engine.retire(now)
    second = asked("own", path, tmp_path / "out")
    assert (first.rows[0].packs[8000].hits, second.rows[0].packs[8000].hits) == ({"record": [True]}, {"record": [False]})
    beside = jsonl(tmp_path / "d" / "cases.jsonl", PORT)
    jsonl(tmp_path / "d" / "records.jsonl", *PORTS)
    one = asked("own", beside, tmp_path / "out")
    jsonl(tmp_path / "d" / "records.jsonl", *PORTS, {"id": "r5", "text": "More."})
    assert asked("own", beside, tmp_path / "out").path != one.path


def test_a_change_of_what_a_store_allows_begins_a_new_run(kept: tuple[foveate.Engine, list[str]], tmp_path: Path) -> None:
    path = jsonl(tmp_path / "cases.jsonl", {"question": "Which port?", "wanted": [kept[1][0]], "store": "mine"})
    before = suite("own").files(path)
    (allow,) = {write(file.with_name("allow"), "x") for file in before if file.name == "state.db"}
    assert allow in suite("own").files(path)


def test_a_case_that_is_called_like_the_line_of_another_is_refused(tmp_path: Path) -> None:
    unnamed = {**PORT, "records": PORTS}
    for lines in ([{**unnamed, "id": "line 2"}, unnamed], [unnamed, {**PORT, "id": "line 1", "records": PORTS[:3]}]):
        with pytest.raises(InputError, match=r"there is a case 'line [12]' already"):
            scenes("own", jsonl(tmp_path / "c.jsonl", *lines))


def test_a_case_that_is_called_like_what_others_ask_keeps_its_own_records(tmp_path: Path) -> None:
    own = {"question": "Which?", "wanted": ["o"], "records": [{"id": "o", "text": "Only this."}]}
    path = jsonl(
        tmp_path / "c.jsonl", {"records": PORTS}, PORT, *({**own, "id": id} for id in ("records of line 1", "line 9"))
    )
    assert [len(scene.entries) for scene in scenes("own", path).values()] == [4, 1, 1]


# --- what is read --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make", "read"),
    [
        ("longmemeval", lambda at: write(at / "longmemeval_s.json", LONGMEMEVAL), {"longmemeval_s.json"}),
        ("beam", chat, {"chat.json", "probing_questions.json"}),
        ("facts", lambda at: jsonl(at / "facts.jsonl", {}), {"facts.jsonl"}),
        ("own", lambda at: jsonl(at / "cases.jsonl", PORT), {"cases.jsonl"}),
    ],
)
def test_rows_depend_on_what_a_suite_reads_and_not_on_what_lies_beside(
    tmp_path: Path, name: str, make: Callable[[Path], Path], read: set[str]
) -> None:
    make(tmp_path)
    write(tmp_path / "eval-runs" / "rows.jsonl", "{}")
    write(tmp_path / "notes.txt", "mine")
    assert {file.name for file in suite(name).files(tmp_path)} == read


def test_rows_of_precision_depend_on_its_three_files(precise: Path) -> None:
    write(precise / "notes.txt", "mine")
    found = suite("precision").files(precise)
    assert (len(found), all(file.suffix == ".json" for file in found)) == (3, True)


# --- bad input -----------------------------------------------------------------------------------------------------

R = {"id": "r", "text": "x"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "holds no case"),
        (["[]"], "line 1: it is no object"),
        (["{"], "line 1, is not JSON"),
        ([{"wanted": ["r"]}], "line 1: question is missing"),
        ([{"records": [R]}, {"question": "q"}], "line 2: wanted is missing"),
        ([{"question": "q", "wanted": ["r"]}], "line 1: there are no records"),
        ([{"question": "q", "wanted": "r", "records": [R]}], "line 1: wanted must be a list"),
        ([{"question": " ", "wanted": ["r"], "records": [R]}], "question must be a text that is not empty"),
        ([{"question": "q", "wanted": ["r"], "unwanted": ["r"], "records": [R]}], "cannot be wanted and unwanted"),
        ([{"wanted": ["r"], "records": [R]}, {"question": "q", "wanted": ["r"]}], "line 1: question is missing"),
        ([{"id": "a", "question": "q" * 2_000_000, "wanted": ["r"], "records": [R]}], "c.jsonl', case 'a': "),
        ([{"question": "q", "wanted": ["r"], "records": [{**R, "kind": "code"}]}], "c.jsonl', line 1"),
        ([{"question": "q", "wanted": ["r"], "records": [R], "profile": "nope"}], "case 'line 1': There is no profile"),
        ([{"question": "q", "wanted": ["r"], "records": [R], "overrides": {"slots": 5}}], "case 'line 1': slots must be"),
        ([{"question": "q", "wanted": ["r"], "records": [R], "overrides": {"weights": 5}}], "case 'line 1': "),
        ([{"question": "q", "wanted": ["r"], "records": [R], "frame": "nope"}], "case 'line 1': "),
        ([{"question": "q", "wantd": ["r"], "records": [R]}], "'wantd' is no field. Did you mean 'wanted'"),
        ([{"question": "q", "wanted": ["s"], "records": [R]}], "line 1: there is no record 's'"),
        ([{"question": "q", "unwanted": [3], "records": [R]}], "there is no record 3"),
        ([{"question": "q", "wanted": ["r"], "now": "soon", "records": [R]}], "now must be a time"),
        ([{"question": "q", "wanted": ["r"], "records": [R], "store": "x"}], "two things to ask"),
        ([{"question": "q", "wanted": ["r"], "records": [{"id": "r"}]}], "record 1: text is missing"),
        ([{"question": "q", "wanted": ["r"], "records": [R, R]}], "record 2: there is a record 'r' already"),
        ([{"question": "q", "wanted": ["r"], "records": [{**R, "kind": "nte"}]}], "record 1: There is no kind 'nte'"),
        ([{"question": "q", "wanted": ["r"], "records": [{**R, "kind": "fact", "tag": 1}]}], "no field 'tag'"),
        ([{"question": "q", "wanted": ["r"], "records": [{**R, "when": "soon"}]}], "when must be a time"),
        ([{"question": "q", "wanted": ["r"], "records": [{**R, "links": ["r"]}]}], "links are pairs"),
        ([{"question": "q", "wanted": ["r"], "records": [{**R, "links": [["a", "z"]]}]}], "linked to 'z'"),
        ([{"id": "a", "question": "q", "wanted": ["r"], "records": [R]}] * 2, "line 2: there is a case 'a' already"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, lines: list[Any], said: str) -> None:
    path = write(tmp_path / "c.jsonl", "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    with pytest.raises(InputError) as error:
        asked("own", path, tmp_path / "out")
    assert said in str(error.value)


@pytest.mark.parametrize("store", ["typo/nothere", "app.py", "mine/src"])
def test_a_store_that_is_named_is_not_looked_for_above(
    kept: tuple[foveate.Engine, list[str]], tmp_path: Path, store: str
) -> None:
    write(tmp_path / "mine" / "app.py", "")
    (tmp_path / "mine" / "src").mkdir()
    path = tmp_path / "mine" / "cases.jsonl"
    for at in (path, tmp_path / "cases.jsonl"):
        jsonl(at, {"store": store}, {"question": "Which port?", "wanted": [kept[1][0]]})
        with pytest.raises(NotFound, match=f"line 1: There is no store in '{store}'"):
            asked("own", at, tmp_path / "out")


def test_the_folder_of_a_store_may_be_named_itself(kept: tuple[foveate.Engine, list[str]], tmp_path: Path) -> None:
    path = jsonl(tmp_path / "cases.jsonl", {"question": "Which port?", "wanted": [kept[1][0]], "store": "mine/.foveate"})
    assert asked("own", path, tmp_path / "out").rows[0].packs[8000].hits == {"record": [True]}


def test_a_mark_of_the_encoding_is_no_part_of_the_data(tmp_path: Path) -> None:
    case = {**PORT, "id": "p", "records": PORTS}
    marked = write(tmp_path / "c.jsonl", "\ufeff" + json.dumps(case))
    assert list(scenes("own", marked)) == ["line 1"]
    assert "q1" in scenes("longmemeval", write(tmp_path / "l.json", "\ufeff" + json.dumps(LONGMEMEVAL)))
    assert scenes(
        "facts", write(tmp_path / "f.json", "\ufeff" + json.dumps([{"context": FACTS, "questions": [], "answers": []}]))
    )


@pytest.mark.parametrize("name", ["own", "longmemeval", "facts", "locomo", "realtalk"])
def test_data_in_another_encoding_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes('[{"question": "Wo ist das Gerät?"}]'.encode("latin-1"))
    with pytest.raises(InputError, match="is not UTF-8"):
        asked(name, path, tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"answer_session_ids": "answer_x_1"}, "answer_session_ids must be a list of ids, not 'answer_x_1'. Wanted: a list"),
        ({"haystack_dates": []}, "are not equally many"),
        ({"haystack_sessions": None}, "something in it is of another type"),
        ({"question": ""}, "case 'q1'"),
        ({"haystack_dates": ["1950/01/01"] * 3}, "q1: "),
        ({"haystack_sessions": [[{"role": "user", "content": "x" * 1_000_001}], [], []]}, "q1: "),
        ({"haystack_sessions": [[{"role": "user", "content": 7}], [], []]}, "a message says 7"),
    ],
)
def test_what_is_wrong_with_a_question_is_said_with_its_id(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    path = write(tmp_path / "x.json", [{**LONGMEMEVAL[0], "answer_session_ids": ["answer_x_1"], **changed}])
    with pytest.raises(InputError) as error:
        asked("longmemeval", path, tmp_path / "out")
    assert str(error.value).startswith(f"{str(path)!r}, ")
    assert "q1" in str(error.value)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "make", "error", "said"),
    [
        (
            "locomo",
            lambda at: write(at / "x.json", [{"conversation": {}, "qa": []}]),
            InputError,
            "holds no turns. Wanted",
        ),
        ("locomo", lambda at: write(at / "x.json", [3]), InputError, "Wanted: a list of talks with conversation"),
        (
            "facts",
            lambda at: write(at / "f.json", [{"context": FACTS, "questions": ["q"], "answers": []}]),
            InputError,
            "context 1, is not data of 'facts': it has more questions than answers, or fewer",
        ),
        ("realtalk", lambda at: at, NotFound, "Chat_*.json is looked for"),
        ("realtalk", lambda at: write(at / "c.json", {"session_1": [{}], "qa": []}), InputError, "'clean_text' is missing"),
        (
            "realtalk",
            lambda at: write(at / "c.json", {"session_1": [{"clean_text": "x", "date_time": "soon"}], "qa": []}),
            InputError,
            "'soon' is no date such as",
        ),
        ("longmemeval", lambda at: write(at / "x.json", LONGMEMEVAL[:1] * 2), InputError, "holds 'q1' twice"),
        ("longmemeval", lambda at: write(at / "longmemeval.json", {}), InputError, "Wanted: a list of questions"),
        ("longmemeval", lambda at: write(at / "longmemeval.json", "[{"), InputError, "is not JSON"),
        ("longmemeval", lambda at: write(at / "longmemeval.json", [{}]), InputError, "'question_id' is missing"),
        ("longmemeval", lambda at: write(at / "x.json", [{"question_id": "1"}]), InputError, "x.json', 1, is not data"),
        ("longmemeval", lambda at: write(at / "x.json", [{**LONGMEMEVAL[0], "question_date": "x"}]), InputError, "no date"),
        ("longmemeval", lambda at: at, NotFound, "longmemeval*.json"),
        ("beam", lambda at: at, NotFound, "chat.json"),
        ("beam", lambda at: write(at / "chat.json", CHAT).parent, NotFound, "no probing_questions.json"),
        ("beam", lambda at: write(chat(at) / "chat.json", [{}]).parent, InputError, "'turns' is missing"),
        ("beam", lambda at: write(chat(at) / "probing_questions.json", []).parent, InputError, "Wanted: chat.json"),
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
        ("own", lambda at: at, NotFound, "cases*.jsonl"),
    ],
)
def test_data_of_another_shape_is_explained(
    tmp_path: Path, name: str, make: Callable[[Path], Path], error: type[FoveateError], said: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(error) as raised:
        asked(name, path, tmp_path / "out")
    assert said in str(raised.value)


def test_a_seed_is_a_number_and_beliefs_have_their_fields(precise: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whole number"):
        asked("precision", precise, tmp_path / "out", perturb="x")
    write(precise / "beliefs.seed.json", [{"_id": "b"}])
    with pytest.raises(InputError, match="is missing"):
        asked("precision", precise, tmp_path / "out")
