"""Variants: which session gets which, what the receipt keeps of it, and how they compare in use."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import foveate
from foveate import Context, Engine, InputError, ProfileError
from foveate.cli import cli
from foveate.eval.in_use import as_json, in_use
from foveate.eval.statistics import shuffled
from foveate.pipeline.profiles import CONTROL, assigned
from foveate.receipts.receipt import Receipt

CONFIG = "[variants]\nwide = 0.5\n"
WIDE = '[slots.facts]\nheading = "All That Is Known"\n'


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, list(args), catch_exceptions=False)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which half of the sessions get another heading."""
    (tmp_path / ".foveate" / "profiles").mkdir(parents=True)
    (tmp_path / ".foveate" / "config.toml").write_text(CONFIG, "utf-8")
    (tmp_path / ".foveate" / "profiles" / "wide.toml").write_text(WIDE, "utf-8")
    monkeypatch.chdir(tmp_path)
    with opened() as engine:
        engine.add("fact", "Redis caches sessions")
    return tmp_path


def opened() -> Engine:
    return foveate.open(".", own=False, code=False)


def session_with(variant: str) -> str:
    return next(f"s{n}" for n in range(100) if assigned({"wide": 0.5}, f"s{n}") == variant)


def variant_of(engine: Engine, context: Context) -> str | None:
    found: str | None = engine.receipt(context).document["request"].get("variant")
    return found


# --- who gets what -----------------------------------------------------------------------------------------------------


def test_sessions_divide_by_the_shares() -> None:
    counts = Counter(assigned({"wide": 0.2, "deep": 0.3}, f"session {n}") for n in range(10_000))
    assert {name: round(number / 10_000, 1) for name, number in counts.items()} == {"wide": 0.2, "deep": 0.3, CONTROL: 0.5}


@given(st.text(max_size=20), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_session_keeps_its_variant_while_the_share_grows(session: str, one: float, other: float) -> None:
    less, more = sorted((one, other))
    if assigned({"wide": less}, session) == "wide":
        assert assigned({"wide": more}, session) == "wide"


def test_another_comparison_divides_otherwise() -> None:
    names = [f"s{n}" for n in range(200)]
    both = sum(assigned({"wide": 0.5}, s) == "wide" and assigned({"deep": 0.5}, s) == "deep" for s in names)
    assert 30 < both < 70


@pytest.mark.parametrize(("variants", "session"), [({}, "s"), ({"wide": 0.5}, None)])
def test_without_a_comparison_or_a_session_there_is_no_variant(variants: dict[str, float], session: str | None) -> None:
    assert assigned(variants, session) is None


def test_another_process_gives_the_same_variant() -> None:
    code = "from foveate.pipeline.profiles import assigned; print(*[assigned({'wide': 0.5}, f's{n}') for n in range(20)])"
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert there.split() == [assigned({"wide": 0.5}, f"s{n}") for n in range(20)]


# --- contexts ----------------------------------------------------------------------------------------------------------


def test_a_variant_is_a_layer_that_the_receipt_names(project: Path) -> None:
    with opened() as engine:
        wide = engine.compute("redis", session=session_with("wide"))
        control = engine.compute("redis", session=session_with(CONTROL))
        assert ("All That Is Known" in wide.text, "All That Is Known" in control.text) == (True, False)
        assert (variant_of(engine, wide), variant_of(engine, control)) == ("wide", CONTROL)
        assert engine.receipt(wide).document["profile"]["layers"]["slots.facts.heading"] == "wide"
        assert engine.replay(wide)["identical"]
        assert wide.profile == control.profile


def test_the_call_may_name_a_variant_or_none(project: Path) -> None:
    with opened() as engine:
        assert "All That Is Known" in engine.compute("redis", variant="wide").text
        assert "All That Is Known" not in engine.compute("redis", session=session_with("wide"), variant=CONTROL).text
        with pytest.raises(ProfileError, match=r"no profile for the variant 'wid'\. Did you mean 'wide'"):
            engine.compute("redis", variant="wid")
    assert "All That Is Known" in run("context", "redis", "--variant", "wide", "--no-code").stdout


def test_what_has_no_variant_keeps_its_id_and_its_bytes(project: Path, tmp_path: Path) -> None:
    with opened() as engine:
        compared = engine.compute("redis", now="2026-05-14")
    (project / ".foveate" / "config.toml").unlink()
    with opened() as engine:
        assert engine.compute("redis", now="2026-05-14").id == compared.id


def test_a_variant_is_a_part_of_the_cache_key(project: Path) -> None:
    with opened() as engine:
        one = engine.compute("redis", cached=True, variant="wide")
        assert engine.compute("redis", cached=True, variant="wide") is one
        assert engine.compute("redis", cached=True, variant=CONTROL) is not one


def test_a_refresh_keeps_the_variant(project: Path) -> None:
    with opened() as engine:
        first = engine.compute("redis", variant="wide")
        turn = engine.refresh_if_needed("decide on redis", first, decision=True)
        assert turn.context is not None
        assert variant_of(engine, turn.context) == "wide"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("wide = 2", "wide must be a share of the sessions above 0 and up to 1, not 2"),
        ("wide = true", "wide must be a share"),
        ("a = 0.6\nb = 0.6", "the shares sum to 1.2"),
        ("control = 0.5", "'control' is what sessions without a variant are called"),
        ("widee = 0.5", "there is no profile 'widee'. Did you mean 'wide'?"),
    ],
)
def test_settings_that_do_not_add_up_are_refused(project: Path, settings: str, said: str) -> None:
    (project / ".foveate" / "config.toml").write_text(f"[variants]\n{settings}\n", "utf-8")
    with pytest.raises(InputError) as refused:
        opened()
    assert said in str(refused.value)


# --- in use ------------------------------------------------------------------------------------------------------------


def receipt(session: str, variant: str | None, used: int, *, notes: Any = None) -> Receipt:
    entry = {"kept": True, "source": "search"}
    return Receipt(
        {
            "request": {"scope": {"session": session}, **({"variant": variant} if variant else {})},
            "budget": {"used": used},
            "candidates": [{"id": "a", **entry}, {"id": "b", **entry}, {"id": "rule", "kept": True, "source": "always"}],
            "notes": notes or {},
        }
    )


def test_variants_are_compared_over_sessions() -> None:
    kept = [receipt(f"c{n}", CONTROL, 1000 + n, notes={"used": ["a"], "turns": 2}) for n in range(8)]
    kept += [receipt(f"w{n}", "wide", 500 + n, notes={"used": ["a", "b"], "turns": 2, "refresh": {}}) for n in range(8)]
    kept += [receipt("w0", "wide", 500, notes={"marks": {"b": "wrong"}})]
    kept += [receipt("mixed", "wide", 1), receipt("mixed", CONTROL, 1), receipt("none", None, 1)]
    found = as_json(in_use(kept))
    control, wide = found["variants"]
    assert found["mixed"] == 1
    assert (control["name"], control["sessions"], control["contexts"]) == (CONTROL, 8, 8)
    assert (wide["name"], wide["sessions"], wide["contexts"]) == ("wide", 8, 9)
    assert control["figures"]["precision"] == {"mean": 0.5, "sessions": 8, "p": None}
    assert wide["figures"]["precision"]["mean"] == 0.9375
    assert wide["figures"]["refresh_rate"]["mean"] == 0.5
    assert wide["marks"] == {"useful": 0, "wrong": 1, "outdated": 0}
    assert all(wide["figures"][name]["p"] < 0.01 for name in ("tokens", "precision", "refresh_rate"))


def test_eval_variants_reads_the_receipts_of_the_store(project: Path) -> None:
    assert "no session had a variant yet" in run("eval", "variants").stderr
    with opened() as engine:
        for variant in ("wide", CONTROL):
            context = engine.compute("redis", session=session_with(variant))
            engine.feedback(context, "Redis caches sessions, as is known.")
    found = json.loads(run("eval", "variants", "--json").stdout)["variants"]
    assert [(one["name"], one["contexts"], one["figures"]["precision"]["mean"]) for one in found] == [
        (CONTROL, 1, 1.0), ("wide", 1, 1.0),
    ]  # fmt: skip
    lines = run("eval", "variants").stdout.splitlines()
    assert lines[0].split()[:4] == ["variant", "sessions", "contexts", "tokens"]
    assert [line.split()[0] for line in lines[1:]] == [CONTROL, "wide"]


# --- the test of a difference ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "p"),
    [
        ([1, 2, 3], [4, 5, 6], 2 / 20),  # the two extremes of the 20 ways
        ([1, 1], [1, 1], 1.0),
        ([0.1] * 3, [0.1] * 3, 1.0),
        ([], [1], 1.0),
        ([1], [2], 1.0),
    ],
)
def test_few_values_are_divided_in_every_way(one: list[float], other: list[float], p: float) -> None:
    assert shuffled(one, other) == pytest.approx(p)
    assert shuffled(other, one) == pytest.approx(p)


def test_many_values_are_shuffled_the_same_each_time() -> None:
    one, other = list(range(40)), list(range(1, 41))
    assert shuffled(one, other) == shuffled(one, other) > 0.5
    assert shuffled(one, [value + 30 for value in one]) == pytest.approx(1 / 10_001)
