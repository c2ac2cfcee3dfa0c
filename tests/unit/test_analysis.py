"""The analyser: which terms a text gives, and that a record and a question give the same."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.errors import FoveateError
from foveate.text import analysis
from foveate.text.analysis import MAX_TERM_CHARS, STOP_WORDS, normalize_name, terms, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Caching responses", ["cach", "respons"]),
        ("cached response", ["cach", "respons"]),
        ("The cache of the server", ["cach", "server"]),
        ("", []),
        ("the of and", []),
        ("... --- !!!", []),
        ("repeat repeat repeat", ["repeat"] * 3),
    ],
)
def test_plain_words_are_stemmed_without_stop_words_and_with_repeats(text: str, expected: list[str]) -> None:
    assert list(terms(text)) == expected


@pytest.fixture
def no_pystemmer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Python that PyStemmer has no wheel for."""
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    for forget in (analysis._stemmer.cache_clear, analysis._term_cache.clear, analysis.terms.cache_clear):
        forget()
    yield
    analysis._stemmer.cache_clear()


def test_without_pystemmer_the_terms_are_the_same(no_pystemmer: None) -> None:
    text = files("foveate").joinpath("text", "synonyms.txt").read_text("utf-8")
    without = terms(text)
    assert "snowballstemmer" in type(analysis._stemmer()).__module__
    del sys.modules["Stemmer"]
    for forget in (analysis._stemmer.cache_clear, analysis._term_cache.clear, analysis.terms.cache_clear):
        forget()
    assert terms(text) == without
    assert len(set(without)) > 500


def test_without_any_stemmer_the_error_says_what_to_install(no_pystemmer: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snowballstemmer.english_stemmer", None)
    with pytest.raises(FoveateError, match="pip install PyStemmer"):
        terms("caching")


@pytest.mark.parametrize("word", ["not", "no", "never", "nor", "without", "against"])
def test_negations_are_no_stop_words(word: str) -> None:
    assert word not in STOP_WORDS
    assert terms(f"{word} push to main") != terms("push to main")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't deploy", ["not", "deploy"]),
        ("isn’t ready", ["not", "ready"]),
        ("can't fail", ["not", "fail"]),
        ("won't fail", ["not", "fail"]),
        ("haven't tested", ["not", "tested"]),
        ("we're the server's owner, it'll run, I'd say they've won", ["server", "owner", "run", "say", "won"]),
    ],
)
def test_contractions_are_undone_and_their_negation_stays(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("get_user_name", ["getusername", "get", "user", "name"]),
        ("GetUserName", ["getusername", "get", "user", "name"]),
        ("GET_USER_NAME", ["getusername", "get", "user", "name"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("parseJSONFast", ["parsejsonfast", "parse", "json", "fast"]),
        ("__init__", ["init"]),
        ("_private", ["private"]),
        ("___", []),
        ("user.name", ["user", "name"]),
        ("src/pay/gateway.py", ["src", "pay", "gateway", "py"]),
        ("foo-bar", ["foo", "bar"]),
    ],
)
def test_identifiers_are_there_whole_and_in_parts(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize("identifier", ["getUserName", "get_user_name", "GetUserName", "getusername"])
def test_every_style_of_an_identifier_has_the_whole_form(identifier: str) -> None:
    assert terms("getusername")[0] in terms(identifier)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("port 8080", ["port", "8080"]),
        ("sha256", ["sha256", "sha", "256"]),
        ("v2", ["v2", "v", "2"]),
        ("3.14", ["3", "14"]),
        ("2026-01-05", ["2026", "01", "05"]),
    ],
)
def test_digits_are_terms(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_accents_and_widths_are_folded() -> None:
    assert terms("café") == terms("cafe") == terms("cafe\u0301")
    assert terms("Größe") == terms("große")
    assert terms("ＨＴＴＰ") == terms("http")
    assert terms("Ångström") == terms("angstrom")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("東京都", ["東京", "京都"]),
        ("猫", ["猫"]),
        ("ガード", ["ガー", "ード"]),
        ("한국어", ["한국", "국어"]),
        ("Python入門", ["python", "入門"]),
    ],
)
def test_scripts_without_spaces_give_pairs(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_cyrillic_and_greek_words_stay_whole() -> None:
    assert words("Привет мир") == ["привет", "мир"]
    assert words("καλημέρα κόσμε") == ["καλημερα", "κοσμε"]


def test_long_runs_are_cut_the_same_way_in_every_company() -> None:
    run = "x" * 200
    assert terms(run) == (("x" * MAX_TERM_CHARS),)
    assert set(terms(run)) <= set(terms(f"someIdentifier {run} and more"))
    assert max(map(len, terms(f"{'ab' * 100}_{'cd' * 100}"))) <= MAX_TERM_CHARS


def test_names_meet_in_one_form() -> None:
    assert (
        normalize_name("Foo-Bar")
        == normalize_name("foo_bar")
        == normalize_name("fooBar")
        == normalize_name("FOO BAR")
        == "foobar"
    )
    assert normalize_name("Straße") == normalize_name("STRASSE")
    assert normalize_name("!!!") == ""


@given(st.text(max_size=200))
def test_terms_are_deterministic_and_bounded(text: str) -> None:
    found = terms(text)
    analysis.terms.cache_clear()
    analysis._term_cache.clear()
    assert terms(text) == found
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in found)
    assert not STOP_WORDS.intersection(words(text))


@given(st.lists(st.text(alphabet="abcXYZ019_é東'", min_size=1, max_size=12), max_size=8))
def test_terms_of_words_are_the_terms_of_the_text(parts: list[str]) -> None:
    assert terms(" ".join(parts)) == tuple(term for part in parts for term in terms(part))
