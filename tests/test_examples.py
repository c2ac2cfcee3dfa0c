"""The examples run, as `make demo` runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.mark.slow
def test_the_demo_shows_a_context_its_budget_and_why_records_are_left_out() -> None:
    done = subprocess.run([sys.executable, str(DEMO)], capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    context, _, reasons = done.stdout.partition("Left out, for example:")
    assert "## Active Constraints" in context
    assert "320 tokens: " in context
    assert reasons.count("\n- ") == 3
