"""What counts as present: the text itself, word for word, where it should stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from foveate.eval.datasets import suite
from foveate.eval.evidence import File, Lines, OneOf, Said
from foveate.eval.model import Case, Rendered, Scene
from foveate.eval.systems.engine import Foveate

TEXT = "- Anna: Yes, I moved\n  to Lyon\n- Ben: Great #stuff"


@pytest.mark.parametrize(
    ("text", "stands"),
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
def test_a_text_stands_word_for_word(text: str, stands: bool) -> None:
    assert Said("x", text).stands(Rendered(TEXT)) is stands
    assert OneOf("x", ("Nobody: Nothing", text)).stands(Rendered(TEXT)) is stands


def test_a_slot_is_looked_at_alone_where_there_are_slots() -> None:
    rendered = Rendered("One two three", {"facts": "One two", "rules": "three"})
    assert Said("x", "two", slot="facts").stands(rendered)
    assert not Said("x", "three", slot="facts").stands(rendered)
    assert not Said("x", "two", slot="missing").stands(rendered)
    assert Said("x", "three", slot="facts").stands(Rendered("One two three"))


@pytest.mark.parametrize(("path", "stands"), [("a/b.py", True), ("b.py", False), ("a/b.p", False), ("x/a/b.py", False)])
def test_a_file_stands_by_its_whole_path(path: str, stands: bool) -> None:
    assert File(path).stands(Rendered("see a/b.py:12")) is stands


def test_lines_stand_in_any_order_and_with_numbers_but_all_of_them() -> None:
    piece = Lines("a.py::f", "a.py", ("def f():\n    x = 1\n\n    return x",))
    assert piece.stands(Rendered("a.py\n 12 | def f():\n 13 |     x = 1\n 15 |     return x"))
    assert not piece.stands(Rendered("a.py\ndef f():\n    return x"))
    assert not piece.stands(Rendered("b.py\ndef f():\n    x = 1\n    return x"))


def test_code_that_quotes_the_question_is_found(tmp_path: Path) -> None:
    source = 'def words(text):\n    """Count the words of a text."""\n    return len(text.split())\n'
    (tmp_path / "count.py").write_text(source, "utf-8")
    case = Case("c", "Count the words of a text.", (Lines("count.py::words", "count.py", (source,)),))
    asked = Foveate().open(Scene([case], root=tmp_path), suite("cosqa"))
    assert case.wanted[0].stands(asked.render(case, 2000))
    asked.close()


def test_a_profile_of_the_users_own_is_part_of_what_rows_depend_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from foveate.pipeline import profiles

    own = tmp_path / "profiles"
    monkeypatch.setattr(profiles, "places", lambda root: (Path(root) / "profiles", own))
    before = Foveate().fingerprint
    own.mkdir()
    (own / "chat.toml").write_text("related_weight = 0\n", "utf-8")
    assert Foveate().fingerprint != before
