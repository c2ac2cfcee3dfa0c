"""What foveate is measured beside: each finds and packs on a small scene, and refuses what it is not for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from foveate.errors import FoveateError, InputError, NotFound
from foveate.eval.evidence import File, Said
from foveate.eval.model import Case, Entry, Scene, Suite
from foveate.eval.run import check
from foveate.eval.systems import MODULES, about, needs, peers, specs, system
from foveate.eval.systems.file_bm25 import Index
from foveate.text import tokens

PEERS = os.environ.get(peers.VARIABLE)
"""Read here: a test has an environment of its own."""
MEMORIES = ("foveate", "fts5", "bm25", "last", "static:hash:64", "foveate:embedder=hash:64")
ON_CODE = ("foveate", "file-bm25", "semble", "semble:whole", "aider")
TURNS = (
    ("t1", "one", "Ana: the walrus sleeps on the harbour wall"),
    ("t2", "one", "Ben: my sister bought a red bicycle"),
    ("t3", "two", "Ana: lunch is at noon"),
)
ENTRIES = [Entry(id=id, session=session, text=text) for id, session, text in TURNS]
RETIRED = Entry(id="t4", session="two", text="Ben: the walrus is gone", retired=True)
ASKED = Case("1", "Where do walruses sleep?", (Said("t1", TURNS[0][2]),))

BOX = """class Box:
    def capacity(self, unit):
        area = self.width * self.height
        return area * unit

    def unrelated(self):
        return 1
"""
CODE = Case("1", "capacity of a Box in box.py is wrong for a unit", (File("pkg/box.py"),))


def suite(*, on_code: bool = False) -> Suite:
    return Suite(
        name="code" if on_code else "talks",
        about="",
        worlds=lambda path, options: iter(()),
        files=lambda path: [path],
        on_code=on_code,
    )


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    if PEERS:
        monkeypatch.setenv(peers.VARIABLE, PEERS)
    root = tmp_path / "repository"
    files = {
        "pkg/box.py": BOX,
        "pkg/other.py": "def open_door(key):\n    return key\n",
        "test_box.py": "def test_box(): ...\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    return Scene([CODE], root=root, files=["pkg/box.py", "pkg/other.py"])


@pytest.mark.parametrize("name", MEMORIES)
def test_a_memory_shows_what_was_said_within_its_budget_and_nothing_that_was_retired(name):
    asked = system(name).open(Scene([ASKED], [*ENTRIES, RETIRED]), suite())
    try:
        shown = asked.render(ASKED, 1000)
        assert ASKED.wanted[0].stands(shown)
        assert RETIRED.text not in shown.flat
        for budget in (5, 12, 30):
            assert tokens.count(asked.render(ASKED, budget).text) <= budget
    finally:
        asked.close()


@pytest.mark.parametrize("name", [name for name in MEMORIES if name != "last"])
def test_a_memory_ranks_the_turn_that_answers_first_and_its_session(name):
    asked = system(name).open(Scene([ASKED], ENTRIES), suite())
    try:
        ranked = asked.ranked(ASKED)
        assert (ranked["turn"][0], ranked["session"][0]) == ("t1", "one")
    finally:
        asked.close()


def test_foveate_ranks_sessions_as_wholes():
    words = ("walrus", "harbour", "winter", "sleep")
    scattered = [line for word in words for line in (word, *(f"{word[0]} {n}" for n in "1234"))]
    told = {"one": ["walrus, harbour, winter"], "two": scattered}
    entries = [Entry(id=f"{name}{n}", session=name, text=text) for name, said in told.items() for n, text in enumerate(said)]
    case = Case("1", "Does the walrus sleep in the harbour in winter?", ())
    asked = system("foveate").open(Scene([case], entries), replace(suite(), profile="chat"))
    try:
        assert asked.ranked(case)["session"] == ["two", "one"]
    finally:
        asked.close()


@pytest.mark.parametrize("name", ["fts5", "bm25", "static:hash:64", "last"])
@pytest.mark.parametrize(
    ("entries", "query"), [((), "walrus"), (ENTRIES, "?!"), (ENTRIES, "zebra"), ([Entry(id="a", text="?")], "the")]
)
def test_a_baseline_has_an_answer_where_there_is_nothing_to_find(name, entries, query):
    case = Case("1", query, ())
    asked = system(name).open(Scene([case], entries), suite())
    assert isinstance(asked.render(case, 100).text, str)
    assert isinstance(asked.ranked(case), dict)


def test_bm25_stems_and_leaves_out_what_shares_no_word():
    asked = system("bm25").open(Scene([ASKED], ENTRIES), suite())
    assert asked.ranked(ASKED)["turn"] == ["t1"]


def test_the_last_entries_are_shown_in_their_order_and_none_is_ranked():
    asked = system("last").open(Scene([ASKED], ENTRIES), suite())
    text = asked.render(ASKED, 1000).text
    assert [text.index(said) for _, _, said in TURNS] == sorted(text.index(said) for _, _, said in TURNS)
    newest = asked.render(ASKED, tokens.count(f"- {TURNS[2][2]}\n")).text
    assert newest == f"- {TURNS[2][2]}\n"
    assert asked.ranked(ASKED) == {}


@pytest.mark.parametrize("name", ON_CODE)
def test_a_code_search_shows_the_file_within_its_budget(name, repository):
    if said := needs(name):
        pytest.skip(f"{name} is not installed: {said}")
    asked = system(name).open(repository, suite(on_code=True))
    try:
        shown = asked.render(CODE, 1000)
        assert File("pkg/box.py").stands(shown)
        assert tokens.count(shown.text) <= 1000
        assert tokens.count(asked.render(CODE, 40).text) <= 40
        ranked = asked.ranked(CODE)
        if name != "aider":  # a map has no order
            assert ranked["file"][0] == "pkg/box.py"
            assert ranked["function"][0] == "pkg/box.py::Box.capacity"
            assert not any(found.startswith("test_box.py") for found in (*ranked["file"], *ranked["function"]))
    finally:
        asked.close()


def test_file_bm25_prefers_rare_words_and_leaves_out_what_shares_none():
    texts = {"a": "the walrus and the sea", "b": "the sea the sea", "c": "mountain"}
    assert Index(texts).search("the walrus") == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "on_code"), [*((name, True) for name in ("fts5", "bm25", "last", "static:hash:64")), ("file-bm25", False)]
)
def test_a_baseline_for_memories_refuses_code_and_the_other_way_round(name, on_code):
    with pytest.raises(InputError, match=f"{name!r} is for"):
        check(suite(on_code=on_code), system(name), Path(), {})
    check(suite(on_code=not on_code), system(name), Path(), {})


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        ("fts", NotFound, "Did you mean 'fts5'"),
        ("", NotFound, "Known: "),
        ("fts5:porter", InputError, "takes no argument"),
        ("static", InputError, "static:PROVIDER:MODEL"),
        ("static:", InputError, "static:PROVIDER:MODEL"),
        ("static:model3vec:x", InputError, "Did you mean 'model2vec'"),
        ("foveate:", InputError, "foveate:embedder=PROVIDER:MODEL"),
        ("foveate:speed=3", InputError, "foveate:embedder=PROVIDER:MODEL"),
        ("semble:quick", InputError, "semble:whole"),
        ("semble:model=/nowhere", InputError, "no folder"),
        ("aider:big", InputError, "takes no argument"),
    ],
)
def test_a_system_that_cannot_be_made_says_what_to_write(spec, error, said):
    with pytest.raises(error, match=said):
        system(spec)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (["fts5, bm25", "fts5"], ["fts5", "bm25"]),
        (["semble:model=P,whole,fts5"], ["semble:model=P,whole", "fts5"]),
        (["static:model2vec:a/b,semble:whole,model=P"], ["static:model2vec:a/b", "semble:whole,model=P"]),
        (["fts5,bm26"], ["fts5", "bm26"]),
        ([""], []),
    ],
)
def test_a_comma_may_stand_inside_what_a_system_is_told(named, expected):
    assert specs(named) == expected


def test_every_system_says_what_it_is():
    assert all(0 < len(about(name)) < 70 for name in MODULES)


def test_every_system_says_what_it_needs():
    assert all(isinstance(needs(name), str) for name in MODULES)
    assert [needs(name) for name in ("foveate", "fts5", "last", "file-bm25")] == [""] * 4
    assert needs("static") == "write static:PROVIDER:MODEL"
    assert needs("static:hash:64") == ""
    with pytest.raises(NotFound):
        needs("elastic")


@pytest.mark.parametrize("name", ["fts5", "bm25", "static:hash:64", "foveate:embedder=hash:64"])
def test_a_fingerprint_names_the_versions_that_rows_depend_on(name):
    assert any(letter.isdigit() for letter in system(name).fingerprint)
    assert system(name).fingerprint == system(name).fingerprint
    assert system("foveate").fingerprint != system("foveate:embedder=hash:64").fingerprint


# --- other environments --------------------------------------------------------------------------------------------


def test_an_environment_of_others_is_a_folder_or_an_interpreter(tmp_path, monkeypatch):
    monkeypatch.setenv(peers.VARIABLE, sys.executable)
    assert peers.version("pytest") == pytest.__version__
    assert "pip install 'foveate[semble]'" in peers.missing("no-such-package", "semble")
    for named in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv(peers.VARIABLE, str(named))
        assert "there is no interpreter" in needs("semble")
        with pytest.raises(InputError, match="cannot run"):
            system("aider")


def test_a_peer_is_asked_line_by_line_and_its_end_is_an_error(tmp_path, monkeypatch):
    script = tmp_path / "peer.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if asked.get('end'):\n"
        "        break\n"
        "    print(json.dumps([sys.argv[1], asked['root']]), flush=True)\n"
    )
    monkeypatch.delenv(peers.VARIABLE, raising=False)
    monkeypatch.setattr(peers, "SCRIPT", script)
    peer = peers.Peer("pytest", "echo")
    assert peer.ask(root="here") == ["echo", "here"]
    assert peer.ask(root="there") == ["echo", "there"]
    with pytest.raises(FoveateError, match="has ended"):
        peer.ask(root="", end=True)


def test_the_script_for_other_environments_needs_nothing_of_foveate():
    """It runs where foveate is not installed, and beside it lie modules that are named like the tools."""
    asked = "import json, sys; sys.path = [p for p in sys.path if 'foveate' not in p]; import runpy\n"
    asked += f"print(json.dumps(sorted(runpy.run_path({str(peers.SCRIPT)!r}))))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", asked], capture_output=True, text=True, check=True)
    assert {"semble", "aider", "main"} <= set(json.loads(done.stdout))
