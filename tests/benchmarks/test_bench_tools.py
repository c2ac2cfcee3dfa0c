"""`python -m bench ablate` and `plot`, run on a tiny file of the user's own cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench.__main__ import run_tool

from foveate.eval import run as running

RECORDS = [
    {"id": "port", "text": "The gateway listens on port 8123", "when": "2026-01-05"},
    {"id": "chess", "text": "Her daughter joined the chess club", "when": "2026-01-06"},
]
CASES = [
    {"question": "Which port does the gateway use?", "expected": ["port"], "type": "fact", "records": RECORDS},
    {"question": "What did her daughter join?", "expected": ["chess"], "type": "talk", "records": RECORDS},
]
ABLATE = ("own=cases.jsonl", "--only", "stage dates", "--budgets", "100")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    (tmp_path / "empty.jsonl").write_text("")


def tool(name: str, *arguments: str) -> int:
    with pytest.raises(SystemExit) as exit:
        run_tool(name, list(arguments))
    return int(exit.value.code or 0)


def cli(*arguments: str) -> str:
    from click.testing import CliRunner

    from foveate.cli import cli

    result = CliRunner().invoke(cli, ["eval", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_ablation_has_its_own_results_and_explains_a_star_only_if_there_is_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli("run", "own", "cases.jsonl", "--budgets", "100")
    assert tool("ablate", *ABLATE) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("\nrecall without it, in points\n")
    assert captured.err == ""
    assert [one["system"] for one in json.loads(cli("report", "eval-runs", "--json"))["reports"]] == ["foveate"]
    reports = json.loads(cli("report", "eval-runs/ablation", "--json"))["reports"]
    assert [one["system"] for one in reports] == ["foveate", "foveate without stage dates"]


def test_ablation_resumes_after_ctrl_c(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run_case", interrupted)
    assert tool("ablate", *ABLATE) == 130
    assert "stopped. Finished subsets are stored in 'eval-runs/ablation'" in capsys.readouterr().err


def test_plots_are_written() -> None:
    pytest.importorskip("matplotlib")
    cli("run", "own", "cases.jsonl", "--budgets", "12,400", "--with", "fts5")
    assert tool("plot", "eval-runs", "--to", "curve.svg") == 0
    assert "fts5" in Path("curve.svg").read_text()
    assert tool("plot", "eval-runs", "--to", "sub/curve.png") == 0
    assert Path("sub/curve.png").read_bytes().startswith(b"\x89PNG")
    assert tool("plot", "eval-runs", "--to", "types.svg", "--by-type") == 0
    assert "talk (n = 1)" in Path("types.svg").read_text()
    assert tool("plot", "eval-runs", "--to", "record.svg", "--evidence-type", "record") == 0
    assert "all records" in Path("record.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ablate", "own=gone.jsonl"), 3, "'gone.jsonl' does not exist"),
        (("ablate", "own"), 2, "'own' must have the form SUITE=PATH"),
        (("ablate", "own=cases.jsonl", "own=empty.jsonl"), 2, "'own' is given twice"),
        (("ablate", "own=cases.jsonl", "--only", "stage dates", "--only", "bogus"), 3, "no component 'bogus'"),
        (("ablate", *ABLATE, "--metric", "no_forbidden"), 2, "No case has the metric 'no_forbidden'"),
        (("ablate", "precision=x", "-o", "pertrub=1"), 2, "has an option 'pertrub'. Did you mean 'perturb'?"),
        (("plot", "cases.jsonl", "--to", "a.svg"), 2, "is not a run"),
        (("plot", "cases.jsonl"), 2, "--to"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: tuple[str, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool(*arguments) == code
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
