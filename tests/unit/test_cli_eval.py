"""`foveate eval`, driven through the command line on a tiny file in LoCoMo's shape."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foveate.cli import cli
from foveate.errors import ProfileError
from foveate.eval import run as running
from foveate.eval.systems.engine import merge_overrides

QUESTIONS = (
    ("Where did Ada put the spare key?", ["D1:1"], 4),
    ("When did Bert visit Lisbon?", ["D2:2"], 2),
    ("What do Ada and Bert grow on the balcony?", ["D1:3", "D2:1"], 1),
)


def talk(name: str) -> dict[str, Any]:
    def turn(session: int, n: int, speaker: str, text: str) -> dict[str, str]:
        return {"dia_id": f"D{session}:{n}", "speaker": speaker, "text": text}

    return {
        "sample_id": name,
        "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn(1, 1, "Ada", "I put the spare key under the blue flower pot."),
                turn(1, 2, "Bert", "The weather was dreadful all week."),
                turn(1, 3, "Ada", "On the balcony I grow basil this year."),
            ],
            "session_2_date_time": "9:10 am on 2 June, 2023",
            "session_2": [
                turn(2, 1, "Bert", "I grow tomatoes on the balcony myself."),
                turn(2, 2, "Bert", "Last weekend I visited Lisbon with my sister."),
            ],
        },
        "qa": [{"question": question, "evidence": found, "category": sort} for question, found, sort in QUESTIONS],
    }


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["eval", *args], catch_exceptions=False)


def ok(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def document(*args: str, code: int = 0) -> Any:
    result = run(*args, "--json")
    assert result.exit_code == code, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def value(report: Any, metric: str, budget: int, evidence_type: str = "turn") -> float:
    """Return a metric of a report, in 0..1."""
    key = {"metric": metric, "budget": budget, "evidence_type": evidence_type, "question_type": "", "rank_cutoff": None}
    (found,) = [one for one in report["metrics"] if key.items() <= one.items()]
    return float(found["value"])


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([talk("first"), talk("second")]))
    return path


BASIC = ("run", "locomo", "talks.json", "--budgets", "12,400")

FORGETFUL = "[slots.facts]\nremove = true\n[slots.recent]\nremove = true\n"


# --- run -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_run_scores_foveate_and_a_baseline_alike() -> None:
    found = document(*BASIC, "--with", "fts5")
    assert [one["system"] for one in found["reports"]] == ["foveate", "fts5"]
    for one in found["reports"]:
        assert (one["cases"], one["subsets"], one["budgets"], one["headline"]) == (6, 2, [12, 400], "turn")
        assert one["question_types"] == {"multi-hop": 2, "single-hop": 2, "temporal": 2}
        assert value(one, "complete", 400) == 1.0
        assert [usage["over_budget"] for usage in one["usage"]] == [0, 0]
    assert {(one["metric"], one["rank_cutoff"]) for one in found["reports"][0]["metrics"] if one["budget"] is None} == {
        ("hit_rate", 5), ("complete", 5), ("hit_rate", 10), ("complete", 10), ("mrr", None),
    }  # fmt: skip


def test_run_prints_a_table_for_people() -> None:
    lines = ok(*BASIC, "--metric", "complete").splitlines()
    assert lines[0] == "locomo: 6 cases in 2 subsets"
    assert [lines[2], *lines[3].split()] == ["turn, complete", "12", "400"]
    assert lines[4].startswith("foveate")
    assert lines[4].endswith("100.0%")
    assert lines[5].endswith("61.0-100.0")
    assert not any("recall" in line for line in lines)


def test_a_second_run_repeats_nothing_and_a_stopped_one_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    run_case = running.run_case
    monkeypatch.setattr(running, "run_case", lambda *args: ran.append(args[1].id) or run_case(*args))  # type: ignore[func-returns-value]
    first = document(*BASIC, "--limit", "1")["reports"][0]
    assert (first["cases"], len(ran)) == (3, 3)
    whole = document(*BASIC)["reports"][0]
    assert (whole["cases"], len(ran), whole["path"]) == (6, 6, first["path"])
    file = Path(whole["path"])
    *before, _end = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(before)[:-20])  # killed while it wrote
    again = document(*BASIC)["reports"][0]
    assert (again["metrics"], len(ran)) == (whole["metrics"], 9)
    assert document(*BASIC, "--limit", "1")["reports"][0]["cases"] == 3
    assert len(ran) == 9


@pytest.mark.slow
def test_ctrl_c_says_how_to_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    run_case = running.run_case

    def interrupted(*args: Any) -> Any:
        if args[2] == "second":
            raise KeyboardInterrupt
        return run_case(*args)

    monkeypatch.setattr(running, "run_case", interrupted)
    result = run(*BASIC)
    assert result.exit_code == 130
    assert "stopped. Finished subsets are stored in 'eval-runs'; the same command resumes the run." in result.stderr
    monkeypatch.setattr(running, "run_case", run_case)
    stopped = document("report", "eval-runs")["reports"][0]
    assert (stopped["cases"], stopped["is_finished"], stopped["limit"]) == (3, False, None)
    assert ok("report", "eval-runs").splitlines()[0] == "locomo: 3 cases in 1 subset, not finished"
    ok(*BASIC, "--out", "whole")
    assert "a  foveate  eval-runs  (not finished)" in ok("report", "eval-runs", "whole")
    assert document(*BASIC)["reports"][0]["cases"] == 6


def test_profile_of_the_project_and_overrides_are_laid_over_the_shipped_one(tmp_path: Path) -> None:
    own = tmp_path / ".foveate" / "profiles" / "mine.toml"
    own.parent.mkdir(parents=True)
    own.write_text('extends = "chat"\n[weights]\nrelevance = 0.9\n')
    Path("few.toml").write_text(FORGETFUL)
    mine = document(*BASIC, "--profile", "mine")["reports"][0]
    assert mine["system"] == "foveate:profile=mine"
    assert "relevance" in mine["fingerprint"]
    few = document(*BASIC, "--overrides", "few.toml")["reports"][0]
    assert few["system"] == "foveate:overrides=few"
    assert value(few, "hit_rate", 400) < value(mine, "hit_rate", 400)


def test_a_terminal_shows_systems_subsets_and_cases(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from foveate.cli.eval import progress_line

    monkeypatch.setenv("TERM", "xterm")
    with progress_line(Path("out")) as progress:
        assert progress is None  # not a terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_line(Path("out")) as progress:
        assert progress is not None
        progress("fts5", 1, 1200)
    assert capsys.readouterr().err == "\rfoveate: fts5, 1 subset, 1,200 cases\033[K\r\033[K"


def test_data_and_results_may_be_in_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {"question": "Capital of Norland?", "expected": ["r"], "records": [{"id": "r", "text": "Norland: Beburg"}]}
    Path("cases.jsonl").write_text(json.dumps(case) + "\n")
    first = document("run", "own", ".", "--budgets", "100")["reports"][0]
    monkeypatch.setattr(running, "run_case", lambda *args: pytest.fail("the case is run again"))
    assert document("run", "own", ".", "--budgets", "100")["reports"][0]["path"] == first["path"]


def test_a_suite_and_a_system_of_your_own_are_python_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("my_suite.py").write_text(
        "from dataclasses import replace\n"
        "from foveate.eval.datasets.conversations import LOCOMO\n"
        "MINE = replace(LOCOMO, name='mine', budgets=(400,))\n"
    )
    (Path("my_package") / "newest.py").parent.mkdir()
    (Path("my_package") / "newest.py").write_text("from foveate.eval.systems.baselines import RECENCY as SYSTEM\n")
    try:
        found = document("run", "my_suite:MINE", "talks.json", "--with", "my_package.newest")["reports"]
        assert [(one["suite"], one["system"], one["cases"]) for one in found] == [
            ("mine", "foveate", 6),
            ("mine", "recency", 6),
        ]
        assert "'my_suite:OTHER' does not refer to a foveate.eval.model.Suite" in run("run", "my_suite:OTHER", ".").stderr
        assert "'no_suite:X' cannot be imported" in run("run", "no_suite:X", ".").stderr
    finally:
        for name in ("my_suite", "my_package", "my_package.newest"):
            sys.modules.pop(name, None)


def test_a_mistake_that_is_found_late_does_not_hide_the_report() -> None:
    result = run(*BASIC, "--fail-under", "file.hit_rate@400=1")
    assert result.exit_code == 2
    assert "no such metric" in result.stderr
    assert result.stdout.startswith("locomo: ")


def test_failed_runs_leave_nothing_that_a_report_reads() -> None:
    assert run(*BASIC, "--with", "bench.systems.file_bm25").exit_code == 2
    assert not list(Path().glob("eval-runs/*"))


def test_foveate_with_itself_is_run_once() -> None:
    assert [one["system"] for one in document(*BASIC, "--with", "fts5,foveate")["reports"]] == ["foveate", "fts5"]


def test_runs_of_one_system_are_labelled_with_their_files() -> None:
    ok(*BASIC, "--out", "before")
    Path("talks.json").write_text(json.dumps([talk("first")]))
    ok(*BASIC, "--out", "after")
    lines = ok("report", "before", "after").splitlines()
    assert [line.split()[0] + " " + line.split()[1][:7] for line in lines if line.startswith("foveate")][:2] == [
        "foveate (before",
        "foveate (after/",
    ]
    assert [one["system"] for one in document("report", "before", "after")["reports"]] == ["foveate", "foveate"]


@pytest.mark.parametrize(
    ("base", "override", "expected"),
    [
        ({}, {"slots": {"a": {"remove": True}}}, {"slots": {"a": {"remove": True}}}),
        ({"slots": {"a": {"remove": True}}}, {"reserve": 1}, {"reserve": 1, "slots": {"a": {"remove": True}}}),
        ({"slots": {"a": {"share": 1}}}, {"slots": {"a": {"remove": True}}}, {"slots": {"a": {"remove": True}}}),
        ({"slots": {"a": {"remove": True}}}, {"slots": {"a": {"order": 2}}}, {"slots": {"a": {"order": 2}}}),
        (
            {"slots": {"a": {"share": 1, "order": 2}, "b": {"order": 1}}},
            {"slots": {"a": {"tokens": 9}}},
            {"slots": {"a": {"order": 2, "tokens": 9}, "b": {"order": 1}}},
        ),
        ({"weights": {"a": 1}}, {"weights": {"b": 2}}, {"weights": {"a": 1, "b": 2}}),
        ({}, {}, {}),
    ],
)
def test_two_sets_of_overrides_become_one(base: Any, override: Any, expected: Any) -> None:
    assert merge_overrides(base, override) == expected


@pytest.mark.parametrize("slots", [5, {"facts": 5}, ["facts"]])
def test_slots_that_are_no_tables_are_refused(slots: Any) -> None:
    with pytest.raises(ProfileError, match="slots must be a table"):
        merge_overrides({"slots": slots}, {})


# --- thresholds ----------------------------------------------------------------------------------------------------


def test_reached_thresholds_change_nothing() -> None:
    assert document(*BASIC, "--fail-under", "complete@400=100", "--fail-under", "passed=100")["failed"] == []


def test_failed_thresholds_are_named_with_exit_code_1() -> None:
    bars = (
        "--fail-under",
        "recall@12=100",
        "--fail-under",
        "session.hit_rate@400=50",
        "--fail-under",
        "turn.complete@12=99.5",
    )
    result = run(*BASIC, *bars)
    assert result.exit_code == 1
    said = [line for line in result.stderr.splitlines() if "below" in line]
    assert [line.partition(" is ")[0] for line in said] == [
        "foveate: turn.recall at 12 tokens",
        "foveate: turn.complete at 12 tokens",
    ]
    assert document(*BASIC, *bars, code=1)["failed"][0].startswith("turn.recall at 12 tokens is")


# --- report -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_report_of_a_folder_is_of_the_latest_runs() -> None:
    shown = document(*BASIC, "--with", "fts5")["reports"]
    document("run", "locomo", "talks.json", "--budgets", "400")
    found = document("report", "eval-runs")["reports"]
    assert [(one["system"], one["budgets"]) for one in found] == [("foveate", [400]), ("fts5", [12, 400])]
    assert document("report", shown[0]["path"], shown[1]["path"])["reports"] == shown


@pytest.mark.slow
def test_report_of_two_runs_shows_what_changed_and_which_cases() -> None:
    Path("few.toml").write_text(FORGETFUL)
    document(*BASIC, "--out", "before")
    document(*BASIC, "--out", "after", "--overrides", "few.toml")
    found = document("report", "before", "after")["comparison"]
    key = {"metric": "complete", "budget": 400, "evidence_type": "turn"}
    (at_400,) = [one for one in found["differences"] if key.items() <= one.items()]
    assert (at_400["difference"], len(at_400["worsened_cases"]), at_400["improved_cases"]) == (-1.0, 6, [])
    assert at_400["p"] == pytest.approx(2 / 2**6)
    text = ok("report", "before", "after", "--metric", "complete", "--cases")
    assert "6 cases in both runs\na  foveate  before\nb  foveate:overrides=few  after\n" in text
    table = text[text.index("turn, complete, compared") :].splitlines()
    assert [line.split() for line in table[2:7]] == [
        ["a", *table[2].split()[1:2], "100.0%"],
        ["b", *table[3].split()[1:2], "0.0%"],
        ["difference", *table[4].split()[1:2], "-100.0"],
        ["better,", "worse", *table[5].split()[2:4], "0,", "6"],
        ["p", *table[6].split()[1:2], "0.031"],
    ]
    assert "turn, complete, 400: worse first/1, first/2, first/3, second/1, second/2, second/3" in text
    assert "recall" not in text
    assert document("report", "before")["comparison"] is None


def test_runs_that_cannot_be_compared_are_reported_with_the_reason() -> None:
    document(*BASIC, "--with", "fts5", "--out", "before")
    Path("talks.json").write_text(json.dumps([talk("first")]))
    document(*BASIC, "--out", "after")
    assert document("report", "before", "after")["comparison"] is None
    assert "--cases compares two runs, got 3" in run("report", "before", "after", "--cases").stderr
    (before,) = Path("before").glob("*.foveate.*")
    result = run("report", str(before), "after")
    assert result.exit_code == 0
    assert "the runs are not compared. Only runs with the same data can be compared" in result.stderr
    result = run("report", str(before), "after", "--cases")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Only runs with the same data can be compared" in result.stderr


# --- catalog, record -----------------------------------------------------------------------------------------------


def test_run_without_a_suite_lists_suites_and_systems() -> None:
    found = document("run")
    assert {"locomo", "own"} <= {one["name"] for one in found["suites"]}
    missing = {one["name"]: one["missing"] for one in found["systems"]}
    assert missing["foveate"] == missing["fts5"] == ""
    assert missing["dense"] == "write dense:PROVIDER:MODEL"
    assert all(one["description"] for one in (*found["suites"], *found["systems"]))
    text = ok("run")
    assert "fts5" in text
    assert "ready" in text


def test_recorded_context_becomes_a_case_that_can_be_run() -> None:
    def call(*args: str) -> str:
        result = CliRunner().invoke(cli, list(args), catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        return result.stdout.strip()

    call("init")
    key = call("add", "fact", "The spare key is under the blue flower pot")
    other = call("add", "fact", "The spare key was under the doormat last year")
    call("context", "Where is the spare key?")
    call("feedback", "last", "--useful", key)
    assert ok("record", "--output", "cases.jsonl", "--forbidden", other) == (
        "cases.jsonl: 1 expected, 1 forbidden, 2 records\n"
    )
    found = document("run", "own", "cases.jsonl", "--budgets", "400")["reports"][0]
    assert (found["cases"], value(found, "complete", 400, found["headline"])) == (1, 1.0)
    assert value(found, "no_forbidden", 400, "") == 0.0
    assert ok("record", "--output", "one.jsonl").endswith("2 records\n")
    Path("other.jsonl").write_bytes(b'{"question": "\xe4"}\n')
    result = run("record", "--output", "other.jsonl")
    assert (result.exit_code, result.stderr) == (2, "foveate: 'other.jsonl' is not UTF-8; convert it to UTF-8.\n")


# --- errors in the input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("run", "locomoo", "talks.json"), 3, "There is no suite 'locomoo'. Did you mean 'locomo'?"),
        (("run", "locomo", "gone.json"), 3, "'gone.json' does not exist"),
        (("run", "locomo", "broken.json"), 2, "'broken.json' is not JSON"),
        (("run", "locomo", "shape.json"), 2, "'shape.json'"),
        (("run", "locomo", "empty.json"), 2, "contains no case that can be run"),
        (("run", "locomo", "empty"), 3, "contains no data of 'locomo'"),
        ((*BASIC, "--with", "fts6"), 3, "There is no system 'fts6'"),
        ((*BASIC, "-o", "split"), 2, "'split' must have the form NAME=VALUE"),
        ((*BASIC, "-o", "split=s"), 2, "has no option 'split'"),
        (("run", "locomo", "talks.json", "--budgets", "much"), 2, "'much' is not a number of tokens"),
        (("run", "locomo", "talks.json", "--budgets", "0"), 2, "'0' is not a number of tokens"),
        (("run", "locomo", "talks.json", "--budgets", "-5"), 2, "'-5' is not a number of tokens"),
        ((*BASIC, "--limit", "0"), 2, "limit"),
        ((*BASIC, "--profile", "chatt"), 2, "Profile 'chatt' does not exist. Did you mean 'chat'?"),
        ((*BASIC, "--overrides", "gone.toml"), 3, "There is no file 'gone.toml'"),
        ((*BASIC, "--overrides", "broken.json"), 2, "is not valid TOML"),
        ((*BASIC, "--overrides", "wrong.toml"), 2, "reserv"),
        ((*BASIC, "--overrides", "slots.toml"), 2, "slots"),
        ((*BASIC, "--metric", "some"), 2, "some"),
        ((*BASIC, "--fail-under", "recall@4000=90"), 2, "the budget 4000 is not in the run"),
        ((*BASIC, "--fail-under", "recal@400=90"), 2, "no metric 'recal'"),
        ((*BASIC, "--fail-under", "file.hit_rate@400=90"), 2, "no such metric"),
        (("report", "gone.jsonl"), 3, "There is no run 'gone.jsonl'"),
        ((*BASIC, "--with", "bench.systems.file_bm25"), 2, "'file-bm25' works on code, and the suite 'locomo' is about mem"),
        (("report", "talks.json"), 2, "is not a run"),
        (("report", "head.jsonl"), 2, "is not a run"),
        (("report", "empty"), 3, "contains no runs"),
        (("report",), 2, "RUN"),
        (("report", "empty", "empty"), 3, "contains no runs"),
        (("run", "locomo"), 2, "PATH is missing"),
        (("record", "--output", "cases.jsonl"), 2, "no store here"),
        (("runn",), 2, "runn"),
    ],
)
def test_bad_input_is_one_clear_line(args: tuple[str, ...], code: int, message: str) -> None:
    Path("broken.json").write_text("[{")
    Path("shape.json").write_text('[{"conversation": {}}]')
    Path("empty.json").write_text("[]")
    Path("wrong.toml").write_text("reserv = 3\n")
    Path("slots.toml").write_text("slots = 3\n")
    Path("head.jsonl").write_text('{"format": 1}\n')
    Path("empty").mkdir()
    result = run(*args)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_damaged_run_file_is_an_error() -> None:
    file = Path(document(*BASIC)["reports"][0]["path"])
    file.write_text(file.read_text().replace('"results"', '"result"', 1))
    result = run(*BASIC)
    assert result.exit_code == 2
    assert "is damaged at line 2; delete the file to start again" in result.stderr


@pytest.mark.slow
def test_help_imports_neither_the_evaluation_nor_the_engine() -> None:
    code = "import sys; from foveate.cli import cli; cli.main(sys.argv[1:], standalone_mode=False); "
    code += "print([m for m in sys.modules if m.startswith(('foveate.eval.', 'foveate.engine')) "
    code += "and m != 'foveate.eval.model'])"  # the names of metrics, which help shows
    for args in (["--help"], ["eval", "--help"], ["eval", "run", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
        assert done.stdout.strip().endswith("[]")
