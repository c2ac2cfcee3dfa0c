"""The suites of the package read their data, and explain what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import foveate
from eval_kit import load_datasets, run_foveate, write, write_jsonl
from foveate.errors import FoveateError, InputError, NotFound
from foveate.eval.datasets import load_suite
from foveate.eval.evidence import AnyEvidence, EvidenceText, PassageEvidence
from foveate.eval.model import Dataset, RenderedPrompt
from foveate.eval.run import run
from foveate.eval.systems import open_system


def texts(dataset: Dataset) -> dict[str, str]:
    return {document.id: document.text for document in dataset.documents}


def test_escaped_headings_and_invisible_characters_do_not_matter() -> None:
    said = EvidenceText("1", "First\r\n## Steps\n---\nthen\u200b on")
    assert said.is_present_in(RenderedPrompt("- First\n  \\## Steps\n  \\---\n  then on"))
    assert not said.is_present_in(RenderedPrompt("- First\n  Steps\n  then on"))


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


def test_realtalk_stores_messages_by_session_and_runs_questions_with_evidence(tmp_path: Path) -> None:
    for name in ("Chat_10_Ann_Cid", "Chat_2_Ann_Ben"):
        write(tmp_path / "data" / f"{name}.json", CHAT_1)
    write(tmp_path / "data" / "locomo" / "Chat_1_Other.json", CHAT_1)  # a subfolder with other data
    found = load_datasets("realtalk", tmp_path)
    assert list(found) == ["Chat_2_Ann_Ben", "Chat_10_Ann_Cid"]
    dataset = found["Chat_2_Ann_Ben"]
    assert [(document.id, document.text, document.session, document.timestamp) for document in dataset.documents] == [
        ("D1:1", "Ann: I took up kickboxing.", "session_1", "2023-12-29T22:42:04+00:00"),
        ("D2:1", "Ben: The rink shut", "session_2", "2024-01-02T08:00:00+00:00"),
    ]
    assert [case.query for case in dataset.cases] == ["What sports does Ann do?"]
    assert dataset.skipped_cases == 2


def test_realtalk_finds_a_kind_of_sport(tmp_path: Path) -> None:
    result = run_foveate("realtalk", write(tmp_path / "Chat_1.json", CHAT_1), tmp_path / "out").results[0]
    assert result.by_budget[8000].hits == {"turn": [True], "passage": [True], "session": [True]}


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


def test_longmemeval_hides_session_ids_and_skips_abstentions(tmp_path: Path) -> None:
    found = load_datasets("longmemeval", write(tmp_path / "longmemeval_s.json", LONGMEMEVAL))
    assert (len(found["q1"].cases), found["q2_abs"]) == (1, Dataset([], skipped_cases=1))
    told = found["q1"].documents
    assert [(document.session, document.timestamp) for document in told][:3] == [
        ("session 1", "2023-05-20T02:21:00+00:00"),
        ("session 1", "2023-05-20T02:21:00+00:00"),
        ("session 2", "2023-05-21T02:21:00+00:00"),
    ]
    assert "answer" not in repr(told)
    assert "ultra" not in repr(told)
    assert len(told) == 5  # the empty turn is none


def test_longmemeval_expects_marked_turns_and_a_turn_of_each_session(tmp_path: Path) -> None:
    case = load_datasets("longmemeval", write(tmp_path / "longmemeval_s.json", LONGMEMEVAL))["q1"].cases[0]
    assert case.now == "2023-05-30T10:00:00+00:00"
    assert case.question_type == "single-session-user"
    assert case.expected == (
        EvidenceText("session 1, turn 1", "user: I drink green tea with lemon."),
        PassageEvidence("session 1, turn 1", "user: I drink green tea with lemon.", "green"),
        AnyEvidence("session 1", ("user: I drink green tea with lemon.",)),
        AnyEvidence("session 3", ("user: Tea again.", "assistant: With pleasure.")),
    )


def test_longmemeval_runs_from_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "data" / "longmemeval_s.json", LONGMEMEVAL)
    result = run_foveate("longmemeval", tmp_path / "data", tmp_path / "out").results[0]
    assert result.by_budget[8000].hits == {"turn": [True], "passage": [True], "session": [True, True]}
    assert result.ranks["session"][0] == 1


def test_longmemeval_is_read_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.eval.datasets.conversations.READ_CHUNK_CHARS", 7)
    assert list(load_datasets("longmemeval", write(tmp_path / "any.json", LONGMEMEVAL))) == ["q1", "q2_abs"]


def without_marks(**changed: Any) -> list[dict[str, Any]]:
    """The first question, whose turns are not marked."""
    talks = [[{**turn, "has_answer": False} for turn in talk] for talk in LONGMEMEVAL[0]["haystack_sessions"]]  # type: ignore[attr-defined]
    return [{**LONGMEMEVAL[0], "haystack_sessions": talks, **changed}]


@pytest.mark.parametrize("gold", [[], ["answer_gone"]])
def test_longmemeval_skips_questions_without_evidence(tmp_path: Path, gold: list[str]) -> None:
    path = write(tmp_path / "longmemeval_s.json", without_marks(answer_session_ids=gold))
    assert load_datasets("longmemeval", path)["q1"] == Dataset([], skipped_cases=1)


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
    dataset = load_datasets("longmemeval", write(tmp_path / "longmemeval_s.json", [first]))["q1"]
    assert [(document.text, document.timestamp) for document in dataset.documents] == [
        ("user: I drink\ngreen tea.", "2023-05-20T02:21:00+00:00"),
        ("user: Tea again.", None),
    ]
    assert dataset.cases[0].now is None
    assert run_foveate("longmemeval", tmp_path, tmp_path / "out").results[0].by_budget[8000].hits["turn"] == [True]


# --- LongMemEval turns, pooled -------------------------------------------------------------------------------------

POOL = [
    {
        "session": "session-1",
        "date": "2023/05/20 (Sat) 02:21",
        "turns": [
            {"role": "user", "content": "My staging database is called larkspur."},
            {"role": "assistant", "content": "Noted. It is larkspur."},
        ],
    },
    {"session": "session-2", "date": "2023/05/21 (Sun) 08:00", "turns": [{"role": "user", "content": "It rains."}]},
]
POOLED_QUESTION = {
    "id": "q1",
    "type": "single-session-user",
    "question": "What is the staging database called?",
    "date": "2023/05/30 (Tue) 10:00",
    "answer": "larkspur",
    "evidence": [["session-1", 0]],
}


def pool(folder: Path, *questions: dict[str, Any]) -> Path:
    write_jsonl(folder / "sessions.jsonl", *POOL)
    write_jsonl(folder / "questions.jsonl", *(questions or (POOLED_QUESTION,)))
    return folder


def test_pooled_turns_are_remembered_as_messages_and_asked_about_in_a_new_session(tmp_path: Path) -> None:
    dataset = load_datasets("longmemeval-turns", pool(tmp_path))["pool"]
    opened = open_system("foveate").open(dataset, load_suite("longmemeval-turns"))
    try:
        (engine,) = opened.engines.values()  # type: ignore[attr-defined]
        events = [json.loads(line) for line in engine.store.export_lines()]
        stored = [(event["text"], event["scope"]["session"], event["data"]["type"]) for event in events if "text" in event]
        assert stored == [
            ("My staging database is called larkspur.", "session-1", "user_message"),
            ("Noted. It is larkspur.", "session-1", "assistant_message"),
            ("It rains.", "session-2", "user_message"),
        ]
        assert [event["created"][:16] for event in events if "text" in event][-1] == "2023-05-21T08:00"
        opened.render(dataset.cases[0], 1000)
        request = engine.receipts.get().request
        assert (request.scope.session, request.profile) == ("question q1", "default")
    finally:
        opened.close()


def test_pooled_questions_without_their_turns_are_skipped_and_a_sample_is_spread(tmp_path: Path) -> None:
    questions = [{**POOLED_QUESTION, "id": f"q{n}"} for n in range(10)]
    gone = {**POOLED_QUESTION, "id": "gone", "evidence": [["session-1", 9]]}
    path = pool(tmp_path / "longmemeval", *questions, gone).parent
    dataset = load_datasets("longmemeval-turns", path)["pool"]
    assert (len(dataset.cases), dataset.skipped_cases) == (10, 1)
    sample = load_datasets("longmemeval-turns", path, sample="3")["pool"]
    assert [case.id for case in sample.cases] == ["q0", "q3", "q7"]
    with pytest.raises(InputError, match="sample must be a number of questions, got 'few'"):
        load_datasets("longmemeval-turns", path, sample="few")


@pytest.mark.parametrize("name", ["foveate", "fts5", "bm25", "recency"])
def test_pooled_turns_run_with_every_system(tmp_path: Path, name: str) -> None:
    found = run(load_suite("longmemeval-turns"), open_system(name), pool(tmp_path), tmp_path / "out", budgets=[50, 1000])
    assert sorted(found.results[0].by_budget) == [50, 1000]
    assert list(found.results[0].by_budget[1000].hits) == ["turn", "passage", "session"]


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


def test_beam_stores_messages_without_markers_and_with_dates(tmp_path: Path) -> None:
    dataset = load_datasets("beam", chat(tmp_path / "7"))["7"]
    assert texts(dataset)["0"] == "user: Hello there"
    assert texts(dataset)["2"] == "user: My budget is 900 euros."
    assert [document.timestamp for document in dataset.documents] == ["2024-03-15T00:00:00+00:00"] * 3 + [
        "2024-04-02T00:00:00+00:00"
    ]
    assert [document.session for document in dataset.documents] == ["batch 1"] * 3 + ["batch 2"]


def test_beam_runs_questions_with_sources(tmp_path: Path) -> None:
    cases = load_datasets("beam", chat(tmp_path / "7"))["7"].cases
    assert [(case.id, [piece.id for piece in case.expected]) for case in cases] == [
        ("knowledge_update 1", ["2", "3"]),
        ("summarization 1", ["2", "3"]),
    ]
    assert cases[0].now == "2024-04-02T00:00:00+00:00"


def test_beam_reads_one_chat_chats_or_sizes_of_chats(tmp_path: Path) -> None:
    for name in ("100K/10", "100K/9", "1M/1"):
        chat(tmp_path / name, "probing_questions/probing_questions.json")
    assert list(load_datasets("beam", tmp_path / "100K")) == ["9", "10"]
    assert sorted(load_datasets("beam", tmp_path)) == ["100K/10", "100K/9", "1M/1"]
    alone = write(chat(tmp_path / "x" / "100K" / "9") / "notes.txt", "").parent
    for path in (alone, alone.parent, alone.parent.parent):  # the names are the same for every path
        assert list(load_datasets("beam", path)) == ["9"]
        assert len(load_suite("beam").files(path)) == 2
    result = run_foveate("beam", tmp_path / "1M" / "1", tmp_path / "out").results[0]
    assert result.by_budget[8000].hits == {"turn": [True, True]}


def test_beam_skips_empty_messages_and_reads_iso_dates(tmp_path: Path) -> None:
    folder = chat(tmp_path / "7")
    messages = [
        {"role": "user", "id": 0, "content": None},
        {"role": "user", "id": 2, "content": "My budget is 900 euros.", "time_anchor": "2024-03-15T10:00:00"},
        {"role": "user", "id": 3, "content": "Now my budget is 950 euros."},
        {"role": "user", "id": 3, "content": "Or 960 euros."},
    ]
    write(folder / "chat.json", [{"batch_number": 1, "turns": [messages]}])
    dataset = load_datasets("beam", folder)["7"]
    assert [document.timestamp for document in dataset.documents] == ["2024-03-15T10:00:00+00:00"] * 3
    assert list(texts(dataset)) == ["2", "3 (message 2)", "3 (message 3)"]
    assert (dataset.cases, dataset.skipped_cases) == ([], 5)  # nobody can tell which message 3 the question means


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
PORT = {"question": "Which port?", "expected": ["r2"], "forbidden": ["r1", "r4"]}


def test_records_may_be_in_the_case_before_it_or_beside_it(tmp_path: Path) -> None:
    inline = write_jsonl(
        tmp_path / "a" / "cases.jsonl", {**PORT, "id": "p", "records": PORTS, "type": "t", "now": "2024-03-01"}
    )
    shared = write_jsonl(tmp_path / "b" / "cases.jsonl", {"records": PORTS}, PORT, {**PORT, "expected": ["r3"]})
    beside = write_jsonl(tmp_path / "c" / "cases.jsonl", PORT)
    write_jsonl(tmp_path / "c" / "records.jsonl", *PORTS)
    assert list(load_datasets("own", inline)) == ["line 1"]
    assert [len(dataset.cases) for dataset in load_datasets("own", shared).values()] == [2]
    assert list(load_datasets("own", beside.parent)) == ["records.jsonl"]
    for n, path in enumerate((inline, shared, beside)):
        result = run_foveate("own", path, tmp_path / f"out{n}").results[0]
        assert result.by_budget[8000].hits == {"record": [True]}
        assert result.by_budget[8000].forbidden_hits == [False, False]


def test_a_records_own_summary_counts_as_the_record(tmp_path: Path) -> None:
    records = [{"id": "r", "text": "Long words. " * 200, "summary": "Short words."}]
    dataset = load_datasets(
        "own", write_jsonl(tmp_path / "c.jsonl", {"question": "words?", "expected": ["r"], "records": records})
    )
    piece = dataset["line 1"].cases[0].expected[0]
    assert piece.is_present_in(RenderedPrompt("- Short words.\n"))
    assert not piece.is_present_in(RenderedPrompt("- Long words.\n"))


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[foveate.Engine, list[str]]]:
    with foveate.open(tmp_path / "mine", personal=False, code=False) as engine:
        ids = [engine.add("note", text).record.id for text in ("The port is 8080.", "The port was 80.")]
        engine.edit(ids[1], status="retired")
        yield engine, ids


def test_a_store_is_used_as_it_is_and_not_changed(kept: tuple[foveate.Engine, list[str]], tmp_path: Path) -> None:
    engine, (now, then) = kept
    path = write_jsonl(
        tmp_path / "cases.jsonl", {"store": "mine"}, {"question": "Which port?", "expected": [now], "forbidden": [then]}
    )
    before = list(engine.store.export_lines())
    first = run_foveate("own", path, tmp_path / "out")
    assert first.results[0].by_budget[8000].hits == {"record": [True]}
    assert first.results[0].by_budget[8000].forbidden_hits == [False]
    baseline = run(load_suite("own"), open_system("fts5"), path, tmp_path / "out", budgets=[8000])
    assert baseline.results[0].by_budget[8000].forbidden_hits == [False]
    assert list(engine.store.export_lines()) == before
    with pytest.raises(NotFound, match="No context"):
        engine.receipts.get()


def test_a_change_of_a_store_or_of_the_records_file_starts_a_new_run(
    kept: tuple[foveate.Engine, list[str]], tmp_path: Path
) -> None:
    engine, (now, _) = kept
    path = write_jsonl(tmp_path / "cases.jsonl", {"question": "Which port?", "expected": [now], "store": "mine"})
    first = run_foveate("own", path, tmp_path / "out")
    engine.edit(now, status="retired")
    second = run_foveate("own", path, tmp_path / "out")
    assert (first.results[0].by_budget[8000].hits, second.results[0].by_budget[8000].hits) == (
        {"record": [True]},
        {"record": [False]},
    )
    beside = write_jsonl(tmp_path / "d" / "cases.jsonl", PORT)
    write_jsonl(tmp_path / "d" / "records.jsonl", *PORTS)
    one = run_foveate("own", beside, tmp_path / "out")
    write_jsonl(tmp_path / "d" / "records.jsonl", *PORTS, {"id": "r5", "text": "More."})
    assert run_foveate("own", beside, tmp_path / "out").path != one.path


def test_a_change_of_a_stores_allow_list_starts_a_new_run(kept: tuple[foveate.Engine, list[str]], tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "cases.jsonl", {"question": "Which port?", "expected": [kept[1][0]], "store": "mine"})
    before = load_suite("own").files(path)
    (allow,) = {write(file.with_name("allow"), "x") for file in before if file.name == "state.db"}
    assert allow in load_suite("own").files(path)


def test_a_case_with_the_line_of_another_as_its_id_is_refused(tmp_path: Path) -> None:
    unnamed = {**PORT, "records": PORTS}
    for lines in ([{**unnamed, "id": "line 2"}, unnamed], [unnamed, {**PORT, "id": "line 1", "records": PORTS[:3]}]):
        with pytest.raises(InputError, match=r"there is a case 'line [12]' already"):
            load_datasets("own", write_jsonl(tmp_path / "c.jsonl", *lines))


def test_a_case_with_the_name_of_a_corpus_keeps_its_own_records(tmp_path: Path) -> None:
    own = {"question": "Which?", "expected": ["o"], "records": [{"id": "o", "text": "Only this."}]}
    path = write_jsonl(
        tmp_path / "c.jsonl", {"records": PORTS}, PORT, *({**own, "id": id} for id in ("records of line 1", "line 9"))
    )
    assert [len(dataset.documents) for dataset in load_datasets("own", path).values()] == [4, 1, 1]


# --- what is read --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make", "read"),
    [
        ("longmemeval", lambda at: write(at / "longmemeval_s.json", LONGMEMEVAL), {"longmemeval_s.json"}),
        ("beam", chat, {"chat.json", "probing_questions.json"}),
        ("own", lambda at: write_jsonl(at / "cases.jsonl", PORT), {"cases.jsonl"}),
    ],
)
def test_results_depend_on_the_files_that_a_suite_reads_only(
    tmp_path: Path, name: str, make: Callable[[Path], Path], read: set[str]
) -> None:
    make(tmp_path)
    write(tmp_path / "eval-runs" / "rows.jsonl", "{}")
    write(tmp_path / "notes.txt", "mine")
    assert {file.name for file in load_suite(name).files(tmp_path)} == read


# --- bad input -----------------------------------------------------------------------------------------------------

R = {"id": "r", "text": "x"}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "contains no case"),
        (["[]"], "line 1: the line is not an object"),
        (["{"], "line 1, is not JSON"),
        ([{"expected": ["r"]}], "line 1: question is missing"),
        ([{"records": [R]}, {"question": "q"}], "line 2: expected is missing"),
        ([{"question": "q", "expected": ["r"]}], "line 1: there are no records"),
        ([{"question": "q", "expected": "r", "records": [R]}], "line 1: expected must be a list"),
        ([{"question": " ", "expected": ["r"], "records": [R]}], "question must be a text that is not empty"),
        (
            [{"question": "q", "expected": ["r"], "forbidden": ["r"], "records": [R]}],
            "cannot be both expected and forbidden",
        ),
        ([{"expected": ["r"], "records": [R]}, {"question": "q", "expected": ["r"]}], "line 1: question is missing"),
        ([{"id": "a", "question": "q" * 2_000_000, "expected": ["r"], "records": [R]}], "c.jsonl', case 'a': "),
        ([{"question": "q", "expected": ["r"], "records": [{**R, "kind": "code"}]}], "c.jsonl', line 1"),
        (
            [{"question": "q", "expected": ["r"], "records": [R], "profile": "nope"}],
            "case 'line 1': Profile 'nope' does not exist",
        ),
        ([{"question": "q", "expected": ["r"], "records": [R], "overrides": {"slots": 5}}], "case 'line 1': slots must be"),
        ([{"question": "q", "expected": ["r"], "records": [R], "overrides": {"weights": 5}}], "case 'line 1': "),
        ([{"question": "q", "expected": ["r"], "records": [R], "frame": "nope"}], "case 'line 1': "),
        ([{"question": "q", "expectd": ["r"], "records": [R]}], "there is no field 'expectd'. Did you mean 'expected'"),
        ([{"question": "q", "expected": ["s"], "records": [R]}], "line 1: there is no record 's'"),
        ([{"question": "q", "forbidden": [3], "records": [R]}], "there is no record 3"),
        ([{"question": "q", "expected": ["r"], "now": "soon", "records": [R]}], "now must be a time"),
        ([{"question": "q", "expected": ["r"], "records": [R], "store": "x"}], "either records or a store"),
        ([{"question": "q", "expected": ["r"], "records": [{"id": "r"}]}], "record 1: text is missing"),
        ([{"question": "q", "expected": ["r"], "records": [R, R]}], "record 2: there is a record 'r' already"),
        ([{"question": "q", "expected": ["r"], "records": [{**R, "kind": "nte"}]}], "record 1: Unknown kind 'nte'"),
        ([{"question": "q", "expected": ["r"], "records": [{**R, "kind": "fact", "tag": 1}]}], "no field 'tag'"),
        ([{"question": "q", "expected": ["r"], "records": [{**R, "when": "soon"}]}], "when must be a time"),
        ([{"question": "q", "expected": ["r"], "records": [{**R, "links": ["r"]}]}], "links must be pairs"),
        ([{"question": "q", "expected": ["r"], "records": [{**R, "links": [["a", "z"]]}]}], "linked to 'z'"),
        ([{"id": "a", "question": "q", "expected": ["r"], "records": [R]}] * 2, "line 2: there is a case 'a' already"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, lines: list[Any], message: str) -> None:
    path = write(tmp_path / "c.jsonl", "".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    with pytest.raises(InputError) as error:
        run_foveate("own", path, tmp_path / "out")
    assert message in str(error.value)


@pytest.mark.parametrize("store", ["typo/nothere", "app.py", "mine/src"])
def test_a_named_store_is_not_searched_in_parent_folders(
    kept: tuple[foveate.Engine, list[str]], tmp_path: Path, store: str
) -> None:
    write(tmp_path / "mine" / "app.py", "")
    (tmp_path / "mine" / "src").mkdir()
    path = tmp_path / "mine" / "cases.jsonl"
    for at in (path, tmp_path / "cases.jsonl"):
        write_jsonl(at, {"store": store}, {"question": "Which port?", "expected": [kept[1][0]]})
        with pytest.raises(NotFound, match=f"line 1: There is no store in '{store}'"):
            run_foveate("own", at, tmp_path / "out")


@pytest.mark.slow
def test_the_folder_of_a_store_may_be_named(kept: tuple[foveate.Engine, list[str]], tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "cases.jsonl", {"question": "Which port?", "expected": [kept[1][0]], "store": "mine/.foveate"}
    )
    assert run_foveate("own", path, tmp_path / "out").results[0].by_budget[8000].hits == {"record": [True]}


def test_a_byte_order_mark_is_not_part_of_the_data(tmp_path: Path) -> None:
    case = {**PORT, "id": "p", "records": PORTS}
    marked = write(tmp_path / "c.jsonl", "\ufeff" + json.dumps(case))
    assert list(load_datasets("own", marked)) == ["line 1"]
    assert "q1" in load_datasets("longmemeval", write(tmp_path / "l.json", "\ufeff" + json.dumps(LONGMEMEVAL)))


@pytest.mark.parametrize("name", ["own", "longmemeval", "locomo", "realtalk"])
def test_data_in_another_encoding_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes('[{"question": "Wo ist das Gerät?"}]'.encode("latin-1"))
    with pytest.raises(InputError, match="is not UTF-8"):
        run_foveate(name, path, tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"answer_session_ids": "answer_x_1"},
            "answer_session_ids must be a list of ids, got 'answer_x_1'. Expected: a list",
        ),
        ({"haystack_dates": []}, "differ in length"),
        ({"haystack_sessions": None}, "a value has the wrong type"),
        ({"question": ""}, "case 'q1'"),
        ({"haystack_dates": ["1950/01/01"] * 3}, "q1: "),
        ({"haystack_sessions": [[{"role": "user", "content": "x" * 1_000_001}], [], []]}, "q1: "),
        ({"haystack_sessions": [[{"role": "user", "content": 7}], [], []]}, "the content of a message must be text, got 7"),
    ],
)
def test_errors_of_a_question_name_its_id(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "x.json", [{**LONGMEMEVAL[0], "answer_session_ids": ["answer_x_1"], **changed}])
    with pytest.raises(InputError) as error:
        run_foveate("longmemeval", path, tmp_path / "out")
    assert str(error.value).startswith(f"{str(path)!r}, ")
    assert "q1" in str(error.value)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("name", "make", "error", "message"),
    [
        (
            "locomo",
            lambda at: write(at / "x.json", [{"conversation": {}, "qa": []}]),
            InputError,
            "has no turns. Expected",
        ),
        ("locomo", lambda at: write(at / "x.json", [3]), InputError, "Expected: a list of conversations with conversation"),
        ("realtalk", lambda at: at, NotFound, "no file matches Chat_*.json"),
        ("realtalk", lambda at: write(at / "c.json", {"session_1": [{}], "qa": []}), InputError, "'clean_text' is missing"),
        (
            "realtalk",
            lambda at: write(at / "c.json", {"session_1": [{"clean_text": "x", "date_time": "soon"}], "qa": []}),
            InputError,
            "'soon' is not a date such as",
        ),
        ("longmemeval", lambda at: write(at / "x.json", LONGMEMEVAL[:1] * 2), InputError, "contains 'q1' twice"),
        ("longmemeval", lambda at: write(at / "longmemeval.json", {}), InputError, "Expected: a list of questions"),
        ("longmemeval", lambda at: write(at / "longmemeval.json", "[{"), InputError, "is not JSON"),
        ("longmemeval", lambda at: write(at / "longmemeval.json", [{}]), InputError, "'question_id' is missing"),
        ("longmemeval", lambda at: write(at / "x.json", [{"question_id": "1"}]), InputError, "x.json', 1, is not data"),
        (
            "longmemeval",
            lambda at: write(at / "x.json", [{**LONGMEMEVAL[0], "question_date": "x"}]),
            InputError,
            "not a date",
        ),
        ("longmemeval", lambda at: at, NotFound, "longmemeval*.json"),
        ("beam", lambda at: at, NotFound, "chat.json"),
        ("beam", lambda at: write(at / "chat.json", CHAT).parent, NotFound, "no probing_questions.json"),
        ("beam", lambda at: write(chat(at) / "chat.json", [{}]).parent, InputError, "'turns' is missing"),
        ("beam", lambda at: write(chat(at) / "probing_questions.json", []).parent, InputError, "Expected: chat.json"),
        ("own", lambda at: at, NotFound, "cases*.jsonl"),
    ],
)
def test_errors_explain_the_expected_format(
    tmp_path: Path, name: str, make: Callable[[Path], Path], error: type[FoveateError], message: str
) -> None:
    path = make(tmp_path)
    with pytest.raises(error) as raised:
        run_foveate(name, path, tmp_path / "out")
    assert message in str(raised.value)
