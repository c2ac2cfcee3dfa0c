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
from foveate.eval.overrides import together

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


def value(report: Any, measure: str, budget: int, what: str = "turn", type: str = "") -> float:
    """One figure of a report, in 0..1."""
    wanted = {"measure": measure, "budget": budget, "what": what, "type": type}
    (found,) = [one for one in report["figures"] if wanted.items() <= one.items() and one["top"] is None]
    return float(found["value"])


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([talk("first"), talk("second")]))
    return path


BASIC = ("run", "locomo", "talks.json", "--budgets", "12,400")

FORGETFUL = "[slots.memories]\nremove = true\n[slots.recent]\nremove = true\n"


# --- run -----------------------------------------------------------------------------------------------------------


def test_run_scores_foveate_and_a_baseline_alike() -> None:
    found = document(*BASIC, "--with", "fts5")
    assert [one["system"] for one in found["reports"]] == ["foveate", "fts5"]
    for one in found["reports"]:
        assert (one["cases"], one["worlds"], one["budgets"], one["headline"]) == (6, 2, [12, 400], "turn")
        assert one["types"] == {"multi-hop": 2, "single-hop": 2, "temporal": 2}
        assert value(one, "all", 400) == 1.0
        assert [spent["over"] for spent in one["spent"]] == [0, 0]
    assert {(one["measure"], one["top"]) for one in found["reports"][0]["figures"] if one["budget"] is None} == {
        ("any", 5), ("all", 5), ("any", 10), ("all", 10), ("mrr", None),
    }  # fmt: skip


def test_run_prints_a_table_for_people() -> None:
    lines = ok(*BASIC, "--measure", "all").splitlines()
    assert lines[0] == "locomo: 6 cases in 2 worlds"
    assert [lines[2], *lines[3].split()] == ["turn, all", "12", "400"]
    assert lines[4].startswith("foveate")
    assert lines[4].endswith("100.0%")
    assert lines[5].endswith("61.0-100.0")
    assert not any("fraction" in line for line in lines)


def test_second_run_asks_nothing_and_a_stopped_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    ask = running.ask
    monkeypatch.setattr(running, "ask", lambda *args: asked.append(args[1].id) or ask(*args))  # type: ignore[func-returns-value]
    first = document(*BASIC, "--limit", "1")["reports"][0]
    assert (first["cases"], len(asked)) == (3, 3)
    whole = document(*BASIC)["reports"][0]
    assert (whole["cases"], len(asked), whole["rows"]) == (6, 6, first["rows"])
    rows = Path(whole["rows"])
    *before, _end = rows.read_bytes().splitlines(keepends=True)
    rows.write_bytes(b"".join(before)[:-20])  # killed while it wrote
    again = document(*BASIC)["reports"][0]
    assert (again["figures"], len(asked)) == (whole["figures"], 9)
    assert document(*BASIC, "--limit", "1")["reports"][0]["cases"] == 3
    assert len(asked) == 9


def test_ctrl_c_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = running.ask

    def interrupted(*args: Any) -> Any:
        if args[2] == "second":
            raise KeyboardInterrupt
        return ask(*args)

    monkeypatch.setattr(running, "ask", interrupted)
    result = run(*BASIC)
    assert result.exit_code == 130
    assert "stopped. What is done is kept in 'eval-runs': the same command goes on from there." in result.stderr
    monkeypatch.setattr(running, "ask", ask)
    stopped = document("report", "eval-runs")["reports"][0]
    assert (stopped["cases"], stopped["finished"], stopped["limit"]) == (3, False, None)
    assert ok("report", "eval-runs").splitlines()[0] == "locomo: 3 cases in 1 world, not finished"
    assert "a  foveate  eval-runs  (not finished)" in ok("compare", "eval-runs", "eval-runs")
    assert document(*BASIC)["reports"][0]["cases"] == 6


def test_types_choose_the_cases_and_keep_rows_of_their_own() -> None:
    some = document(*BASIC, "--types", "temporal,single-hop")["reports"][0]
    assert some["types"] == {"single-hop": 2, "temporal": 2}
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
    assert value(few, "any", 400) < value(mine, "any", 400)


def test_watcher_sees_systems_worlds_and_cases(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from foveate.cli.eval_run import watched

    monkeypatch.setenv("TERM", "xterm")
    with watched(Path("out")) as progress:
        assert progress is None  # nobody looks
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with watched(Path("out")) as progress:
        assert progress is not None
        progress("fts5", 1, 1200)
    assert capsys.readouterr().err == "\rfoveate: fts5, 1 world, 1,200 cases\033[K\r\033[K"


def test_data_may_lie_in_the_current_folder_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"context": "1. The capital of Norland is Beburg.", "questions": ["Capital of Norland?"], "answers": ["Beburg"]}
    Path("facts.jsonl").write_text(json.dumps(row) + "\n")
    first = document("run", "facts", ".", "--budgets", "100")["reports"][0]
    monkeypatch.setattr(running, "ask", lambda *args: pytest.fail("it was asked already"))
    assert document("run", "facts", ".", "--budgets", "100")["reports"][0]["rows"] == first["rows"]


def test_ablation_knows_its_options_and_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ablate = ("ablate", "locomo=talks.json", "--only", "stage dates", "--budgets", "100")
    result = run(*ablate, "-o", "captoins=yes")
    assert (result.exit_code, result.stderr) == (
        2,
        "foveate: No suite here has an option 'captoins'. Did you mean 'captions'?\n",
    )

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "ask", interrupted)
    result = run(*ablate)
    assert result.exit_code == 130
    assert "stopped. What is done is kept in 'eval-runs/ablation'" in result.stderr


def test_ablation_keeps_its_rows_apart_and_explains_a_star_where_there_is_one() -> None:
    ok("run", "locomo", "talks.json", "--budgets", "100")
    result = run("ablate", "locomo=talks.json", "--only", "stage dates", "--budgets", "100")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [one["system"] for one in document("report", "eval-runs")["reports"]] == ["foveate"]
    systems = [one["system"] for one in document("report", "eval-runs/ablation")["reports"]]
    assert systems == ["foveate", "foveate without stage dates"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [(("--fail-under", "file.any@400=1"), "no such figure"), (("--types", "temporal,tempral"), "the type 'tempral'")],
)
def test_a_slip_that_shows_late_does_not_lose_the_table(bad: tuple[str, ...], said: str) -> None:
    result = run(*BASIC, *bad)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout.startswith("locomo: ")


def test_failed_runs_leave_nothing_that_a_report_reads() -> None:
    for bad in (("--types", "nope"), ("--with", "file-bm25")):
        assert run(*BASIC, *bad).exit_code == 2
    assert not list(Path().glob("eval-runs/*"))


def test_foveate_beside_itself_is_one_row() -> None:
    assert [one["system"] for one in document(*BASIC, "--with", "fts5,foveate")["reports"]] == ["foveate", "fts5"]


def test_runs_of_one_name_are_told_apart_by_their_files() -> None:
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
    ("below", "above", "expected"),
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
def test_two_sets_of_overrides_become_one(below: Any, above: Any, expected: Any) -> None:
    assert together(below, above) == expected


@pytest.mark.parametrize("slots", [5, {"facts": 5}, ["facts"]])
def test_slots_that_are_no_tables_are_refused(slots: Any) -> None:
    with pytest.raises(ProfileError, match="slots must be a table"):
        together({"slots": slots}, {})


# --- thresholds ----------------------------------------------------------------------------------------------------


def test_thresholds_that_are_reached_change_nothing() -> None:
    assert document(*BASIC, "--fail-under", "all@400=100", "--fail-under", "passed=100")["missed"] == []


def test_missed_thresholds_are_named_one_by_one_with_exit_code_1() -> None:
    bars = ("--fail-under", "fraction@12=100", "--fail-under", "session.any@400=50", "--fail-under", "turn.all@12=99.5")
    result = run(*BASIC, *bars)
    assert result.exit_code == 1
    said = [line for line in result.stderr.splitlines() if "below" in line]
    assert [line.partition(" is ")[0] for line in said] == [
        "foveate: turn.fraction at 12 tokens",
        "foveate: turn.all at 12 tokens",
    ]
    assert document(*BASIC, *bars, code=1)["missed"][0].startswith("turn.fraction at 12 tokens is")


# --- report, compare, plot -----------------------------------------------------------------------------------------


def test_report_of_a_folder_is_of_the_latest_runs() -> None:
    shown = document(*BASIC, "--with", "fts5")["reports"]
    document("run", "locomo", "talks.json", "--budgets", "400")
    found = document("report", "eval-runs")["reports"]
    assert [(one["system"], one["budgets"]) for one in found] == [("foveate", [400]), ("fts5", [12, 400])]
    assert document("report", shown[0]["rows"], shown[1]["rows"])["reports"] == shown


def test_compare_shows_what_changed_and_which_cases() -> None:
    Path("few.toml").write_text(FORGETFUL)
    document(*BASIC, "--out", "before")
    document(*BASIC, "--out", "after", "--overrides", "few.toml")
    found = document("compare", "before", "after")
    (at_400,) = [
        one for one in found["differences"] if one["measure"] == "all" and one["budget"] == 400 and one["what"] == "turn"
    ]
    assert (at_400["difference"], len(at_400["lost"]), at_400["won"]) == (-1.0, 6, [])
    assert at_400["p"] == pytest.approx(2 / 2**6)
    text = ok("compare", "before", "after", "--measure", "all", "--cases")
    assert text.splitlines()[:3] == [
        "locomo: 6 cases that both have",
        "a  foveate  before",
        "b  foveate:overrides=few  after",
    ]
    assert "turn, all, 400: lost first/1, first/2, first/3, second/1, second/2, second/3" in text
    assert "fraction" not in text


def test_plots_are_written(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ok(*BASIC, "--with", "fts5", "--plot", "curve.svg", "--plot", "sub/curve.png")
    assert "fts5" in Path("curve.svg").read_text()
    assert Path("sub/curve.png").read_bytes().startswith(b"\x89PNG")
    assert ok("plot", "eval-runs", "--to", "types.svg", "--by-type") == "types.svg\n"
    assert "temporal (n = 2)" in Path("types.svg").read_text()
    assert document("plot", "eval-runs", "--to", "session.svg", "--what", "session") == {
        "schema_version": 1,
        "plot": "session.svg",
    }
    assert "all sessions" in Path("session.svg").read_text()


# --- list, record --------------------------------------------------------------------------------------------------


def test_list_names_suites_and_systems_with_what_they_need() -> None:
    found = document("list")
    assert {"locomo", "own"} <= {one["name"] for one in found["suites"]}
    by = {one["name"]: one for one in found["systems"]}
    assert by["foveate"]["needs"] == by["fts5"]["needs"] == ""
    assert all(one["about"] for one in (*found["suites"], *found["systems"]))
    text = ok("list")
    assert "fts5" in text
    assert "ready" in text
    assert by["static"]["needs"] == "write static:PROVIDER:MODEL"


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
    assert ok("record", "--to", "cases.jsonl", "--unwanted", other) == "cases.jsonl: 1 wanted, 1 unwanted, 2 records\n"
    found = document("run", "own", "cases.jsonl", "--budgets", "400")["reports"][0]
    assert (found["cases"], value(found, "all", 400, found["headline"])) == (1, 1.0)
    assert value(found, "clean", 400, "") == 0.0
    assert ok("record", "--to", "one.jsonl").endswith("2 records\n")
    Path("other.jsonl").write_bytes(b'{"question": "\xe4"}\n')
    result = run("record", "--to", "other.jsonl")
    assert (result.exit_code, result.stderr) == (2, "foveate: 'other.jsonl' is not UTF-8; save it as such.\n")


# --- what is wrong with the input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("run", "locomoo", "talks.json"), 3, "There is no suite 'locomoo'. Did you mean 'locomo'?"),
        (("run", "locomo", "gone.json"), 3, "'gone.json' does not exist"),
        (("run", "locomo", "broken.json"), 2, "'broken.json' is not JSON"),
        (("run", "locomo", "shape.json"), 2, "'shape.json'"),
        (("run", "locomo", "empty.json"), 2, "holds no case that can be asked"),
        (("run", "locomo", "empty"), 3, "holds no data of 'locomo'"),
        ((*BASIC, "--with", "fts6"), 3, "There is no system 'fts6'"),
        ((*BASIC, "-o", "split"), 2, "'split' is no NAME=VALUE"),
        ((*BASIC, "-o", "split=s"), 2, "has no option 'split'"),
        (("run", "locomo", "talks.json", "--budgets", "much"), 2, "'much' is no number of tokens"),
        (("run", "locomo", "talks.json", "--budgets", "0"), 2, "'0' is no number of tokens"),
        (("run", "locomo", "talks.json", "--budgets", "-5"), 2, "'-5' is no number of tokens"),
        ((*BASIC, "--limit", "0"), 2, "limit"),
        ((*BASIC, "--types", "tempral"), 2, "holds no case of the type 'tempral' that can be asked"),
        ((*BASIC, "--profile", "chatt"), 2, "There is no profile 'chatt'. Did you mean 'chat'?"),
        ((*BASIC, "--overrides", "gone.toml"), 3, "There is no file 'gone.toml'"),
        ((*BASIC, "--overrides", "broken.json"), 2, "is not valid TOML"),
        ((*BASIC, "--overrides", "wrong.toml"), 2, "reserv"),
        ((*BASIC, "--overrides", "slots.toml"), 2, "slots"),
        ((*BASIC, "--measure", "some"), 2, "some"),
        ((*BASIC, "--plot", "a.pdf"), 2, "ends in .png or .svg"),
        ((*BASIC, "--fail-under", "fraction@4000=90"), 2, "the budget 4000 is not run"),
        ((*BASIC, "--fail-under", "recall@400=90"), 2, "no measure 'recall'"),
        ((*BASIC, "--fail-under", "file.any@400=90"), 2, "no such figure"),
        (("report", "gone.jsonl"), 3, "There is no run 'gone.jsonl'"),
        (("ablate", "own=gone.jsonl"), 3, "'gone.jsonl' does not exist"),
        (("ablate", "locomo"), 2, "'locomo' is no SUITE=PATH"),
        (("ablate", "locomo=talks.json", "locomo=empty.json"), 2, "'locomo' is given twice"),
        (("ablate", "locomo=talks.json", "--only", "stage dates", "--only", "bogus"), 3, "is called 'bogus'"),
        (("ablate", "locomo=talks.json", "--only", "stage dates", "--measure", "clean"), 2, "No case has a figure 'clean'"),
        ((*BASIC, "--with", "file-bm25"), 2, "'file-bm25' is for code, and 'locomo' is about memories"),
        (("report", "talks.json"), 2, "is not a run"),
        (("report", "head.jsonl"), 2, "is not a run"),
        (("report", "empty"), 3, "holds no runs"),
        (("report",), 2, "RUN"),
        (("compare", "empty", "empty"), 3, "holds no runs"),
        (("plot", "talks.json", "--to", "a.svg"), 2, "is not a run"),
        (("plot", "talks.json"), 2, "--to"),
        (("record", "--to", "cases.jsonl"), 2, "no store here"),
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


def test_runs_that_cannot_be_compared_are_refused() -> None:
    document(*BASIC, "--with", "fts5", "--out", "before")
    Path("talks.json").write_text(json.dumps([talk("first")]))
    document(*BASIC, "--out", "after")
    assert "holds several runs" in run("compare", "before", "after").stderr
    (before,) = Path("before").glob("*.foveate.*")
    result = run("compare", str(before), "after")
    assert result.exit_code == 2
    assert "Only runs with the same data can be compared" in result.stderr


def test_damaged_rows_are_not_taken_for_a_run() -> None:
    rows = Path(document(*BASIC)["reports"][0]["rows"])
    rows.write_text(rows.read_text().replace('"rows"', '"raws"', 1))
    result = run(*BASIC)
    assert result.exit_code == 2
    assert "is damaged at line 2; delete it to begin again" in result.stderr


def test_help_imports_neither_the_kit_nor_matplotlib() -> None:
    code = "import sys; from foveate.cli import cli; cli.main(sys.argv[1:], standalone_mode=False); "
    code += "print([m for m in sys.modules if m.startswith(('foveate.eval.', 'foveate.engine', 'matplotlib')) "
    code += "and m != 'foveate.eval.measures'])"  # the names of measures, which help shows
    for args in (["--help"], ["eval", "--help"], ["eval", "run", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.strip().endswith("[]")
