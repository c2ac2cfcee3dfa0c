"""Words that were forgotten: where they may still be is said, and not left to be found."""

from __future__ import annotations

from pathlib import Path

import pytest
from redteam_kit import foveate

import foveate as library

pytestmark = pytest.mark.slow


def test_a_repair_says_that_the_damaged_file_still_holds_forgotten_words(tmp_path: Path) -> None:
    with library.open(tmp_path, personal=False, code=False) as engine:
        for number in range(200):
            engine.add("fact", f"Fact {number} about tea and its {number} sorts")
    store = tmp_path / ".foveate" / "state.db"
    raw = bytearray(store.read_bytes())
    raw[40_000:44_096] = bytes(4096)
    store.write_bytes(raw)
    fixed = foveate(tmp_path, "doctor", "--fix")
    damaged = f"{store}.damaged"
    assert Path(damaged).exists(), fixed.stderr
    assert f"{damaged!r}, where forgotten words may still be readable: delete it" in fixed.stderr
    assert f"{damaged!r} is left from a repair or a restored backup" in foveate(tmp_path, "doctor").stdout
    Path(damaged).unlink()
    assert "is left from" not in foveate(tmp_path, "doctor").stdout
