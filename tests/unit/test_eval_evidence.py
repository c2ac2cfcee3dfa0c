"""Evidence is present only if its text is in the prompt word for word, in the right slot."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.eval.evidence import AnyEvidence, EvidenceText, PassageEvidence
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


TURN = """Here are two ways to dress the bread:

1. **Rosemary and garlic**: chop both. Mix them with 40 g of soft butter.
2. **Sea salt**: sprinkle it on last."""


@pytest.mark.parametrize(
    ("prompt", "answer", "is_present"),
    [
        (TURN, "nothing that was said", True),  # all of it is there
        ("assistant: ... Mix them with 40 g of soft butter. ...", "40 g butter", True),
        ("**Rosemary and garlic**: chop both. [...] Mix them with 40 g of soft butter.", "garlic butter", True),
        ("Mix them with 40 g of soft butter.", "garlic butter", False),  # a word of the answer was cut
        ("Mix the garlic with 40 g of butter.", "garlic butter", False),  # in other words
        ("assistant: Mix them with 40 g of soft", "40 g", False),  # not a sentence of the turn
        ("**Sea salt**: sprinkle it on last.", "It is the", False),  # no content words
        ("**Sea salt**: sprinkle it on last.", "", False),
    ],
)
def test_a_passage_counts_if_it_has_every_content_word_of_the_answer(prompt: str, answer: str, is_present: bool) -> None:
    assert PassageEvidence("x", TURN, answer).is_present_in(RenderedPrompt(f"- {prompt}")) is is_present


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
