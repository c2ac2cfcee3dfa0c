"""Evidence is present only if its text is in the prompt word for word, in the right slot."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.eval.evidence import AnyEvidence, EvidenceText
from foveate.eval.model import RenderedPrompt
from foveate.eval.systems.engine import FoveateSystem

TEXT = "- Anna: Yes, I moved\n  to Lyon\n- Ben: Great #stuff"


@pytest.mark.parametrize(
    ("text", "is_present"),
    [
        ("Anna: Yes, I moved to Lyon", True),
        ("Ben: Great #stuff", True),
        ("Ben: Great", True),
        ("Anna: Ye", False),
        ("nna: Yes", False),
        ("Anna: No", False),
        ("", False),
        ("  ", False),
    ],
)
def test_a_text_is_present_word_for_word(text: str, is_present: bool) -> None:
    assert EvidenceText("x", text).is_present_in(RenderedPrompt(TEXT)) is is_present
    assert AnyEvidence("x", ("Nobody: Nothing", text)).is_present_in(RenderedPrompt(TEXT)) is is_present


def test_evidence_of_a_slot_is_searched_in_that_slot() -> None:
    rendered = RenderedPrompt("One two three", {"facts": "One two", "rules": "three"})
    assert EvidenceText("x", "two", slot="facts").is_present_in(rendered)
    assert not EvidenceText("x", "three", slot="facts").is_present_in(rendered)
    assert not EvidenceText("x", "two", slot="missing").is_present_in(rendered)
    assert EvidenceText("x", "three", slot="facts").is_present_in(RenderedPrompt("One two three"))


def test_results_depend_on_the_users_own_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from foveate.pipeline import profiles

    own = tmp_path / "profiles"
    monkeypatch.setattr(profiles, "profile_dirs", lambda root: (Path(root) / "profiles", own))
    before = FoveateSystem().fingerprint
    own.mkdir()
    (own / "chat.toml").write_text("expansion_weight = 0\n", "utf-8")
    assert FoveateSystem().fingerprint != before
