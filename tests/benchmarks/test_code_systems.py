"""The systems for code in bench: each finds and fills a budget in a small repository; tools in other environments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.datasets.python_files import EvidenceFile
from bench.systems import peers
from bench.systems.file_bm25 import Index

from foveate.errors import FoveateError, InputError
from foveate.eval.model import Case, Dataset, Suite
from foveate.eval.run import check
from foveate.eval.systems import missing_requirement, open_system, system_type_of
from foveate.text import tokens

PEERS = os.environ.get(peers.PEERS_ENV_VAR)
"""Read at import: tests run in an environment without it."""
FILE_BM25, SEMBLE, AIDER = (f"bench.systems.{name}" for name in ("file_bm25", "semble", "aider"))
BOX = """class Box:
    def capacity(self, unit):
        area = self.width * self.height
        return area * unit

    def unrelated(self):
        return 1
"""
CASE = Case("1", "capacity of a Box in box.py is wrong for a unit", (EvidenceFile("pkg/box.py"),))


def make_suite(*, is_code: bool) -> Suite:
    return Suite(
        name="code" if is_code else "talks",
        description="",
        subsets=lambda path, options: iter(()),
        files=lambda path: [path],
        is_code=is_code,
    )


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    if PEERS:
        monkeypatch.setenv(peers.PEERS_ENV_VAR, PEERS)
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
    return Dataset([CASE], root=root, answer_files=["pkg/box.py", "pkg/other.py"])


@pytest.mark.parametrize("name", ["foveate", FILE_BM25, SEMBLE, f"{SEMBLE}:whole", AIDER])
def test_a_code_search_shows_the_file_within_its_budget(name, repository):
    if missing := missing_requirement(name):
        pytest.skip(f"{name} is not installed: {missing}")
    opened = open_system(name).open(repository, make_suite(is_code=True))
    try:
        prompt = opened.render(CASE, 1000)
        assert EvidenceFile("pkg/box.py").is_present_in(prompt)
        assert tokens.count(prompt.text) <= 1000
        assert tokens.count(opened.render(CASE, 40).text) <= 40
        ranking = opened.ranking(CASE)
        if name != AIDER:  # a map has no order
            assert ranking["file"][0] == "pkg/box.py"
            assert ranking["function"][0] == "pkg/box.py::Box.capacity"
            assert not any(found.startswith("test_box.py") for found in (*ranking["file"], *ranking["function"]))
    finally:
        opened.close()


def test_file_bm25_prefers_rare_words_and_leaves_out_files_without_a_shared_word():
    texts = {"a": "the walrus and the sea", "b": "the sea the sea", "c": "mountain"}
    assert Index(texts).search("the walrus") == ["a", "b"]


def test_a_baseline_for_code_refuses_memories():
    with pytest.raises(InputError, match="'file-bm25' works on code"):
        check(make_suite(is_code=False), open_system(FILE_BM25), Path(), {})
    check(make_suite(is_code=True), open_system(FILE_BM25), Path(), {})


@pytest.mark.parametrize("argument", ["quick", "model=/nowhere"])
def test_an_argument_of_semble_is_checked(argument, monkeypatch):
    with pytest.raises(InputError, match=r"whole or model=PATH|There is no folder"):
        system_type_of(SEMBLE).make(argument)


def test_aider_takes_no_argument():
    with pytest.raises(InputError, match="takes no argument"):
        open_system(f"{AIDER}:big")


# --- other environments --------------------------------------------------------------------------------------------


def test_the_environment_is_a_folder_or_an_interpreter(tmp_path, monkeypatch):
    monkeypatch.setenv(peers.PEERS_ENV_VAR, sys.executable)
    assert peers.package_version("pytest") == pytest.__version__
    assert "pip install no-such-package" in peers.missing_requirement("no-such-package")
    for value in (tmp_path, tmp_path / "nowhere"):
        monkeypatch.setenv(peers.PEERS_ENV_VAR, str(value))
        assert "has no interpreter" in missing_requirement(SEMBLE)
        with pytest.raises(InputError, match="cannot run"):
            open_system(AIDER)


def test_a_peer_answers_line_by_line_and_its_end_is_an_error(tmp_path, monkeypatch):
    script = tmp_path / "peer.py"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    request = json.loads(line)\n"
        "    if request.get('end'):\n"
        "        break\n"
        "    print(json.dumps([sys.argv[1], request['root']]), flush=True)\n"
    )
    monkeypatch.delenv(peers.PEERS_ENV_VAR, raising=False)
    monkeypatch.setattr(peers, "SCRIPT", script)
    peer = peers.Peer("pytest", "echo")
    assert peer.ask(root="here") == ["echo", "here"]
    assert peer.ask(root="there") == ["echo", "there"]
    with pytest.raises(FoveateError, match="has ended"):
        peer.ask(root="", end=True)


def test_the_script_for_other_environments_needs_nothing_of_foveate():
    """It runs without foveate, and beside it are modules with the names of the tools."""
    script = "import json, sys; sys.path = [p for p in sys.path if 'foveate' not in p]; import runpy\n"
    script += f"print(json.dumps(sorted(runpy.run_path({str(peers.SCRIPT)!r}))))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True)
    assert {"semble", "aider", "main"} <= set(json.loads(done.stdout))
