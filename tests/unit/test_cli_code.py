"""Code on the command line: a folder of files and arguments in; stdout, stderr, exit code and an index out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import foveate
from cli_kit import document, ok, refused, run
from foveate.cli import render
from foveate.cli.render import Bar
from foveate.errors import NotFound
from foveate.project import project

FILES = {
    "pyproject.toml": '[project]\nname = "shop"\n\n[tool.pytest.ini_options]\n',
    "README.md": "# Shop\n\nThe shop takes orders and sends invoices to its customers.\n",
    "shop/cart.py": (
        "from shop.prices import price_of\n\n\nclass Cart:\n"
        '    def add(self, article):\n        """Put an article into the cart."""\n        self.lines.append(article)\n\n'
        '    def total(self):\n        """What it costs, discounts included."""\n'
        "        return sum(price_of(line) for line in self.lines)\n"
    ),
    "shop/prices.py": (
        'BULK = 10\n\n\ndef price_of(article):\n    """The price, with a discount from BULK on."""\n    return 1\n'
    ),
    "notes/plan.rst": "Plan\n====\n\nSell tea.\n",
    "package-lock.json": "{}\n",
    "logo.png": "\x89PNG",
}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of code without a store, in the current directory."""
    folder = tmp_path / "shop"
    write(folder, FILES)
    monkeypatch.chdir(folder)
    return folder


# --- init --code ---------------------------------------------------------------------------------------------------


def test_init_with_code_counts_what_is_indexed_and_says_what_it_did(shop: Path) -> None:
    first = run("init", "--code")
    path, *lines = first.stdout.splitlines()
    assert path == str(shop / ".foveate")
    rows = dict(line.split(maxsplit=1) for line in lines if not line.startswith("read"))
    assert rows["files"] == "5 (28 lines)"
    assert rows["languages"] == "python 2, markdown 1, rst 1, toml 1"
    assert rows["skipped"].startswith("2: binary 1, lock file 1")
    assert "read as lines  rst 1" in first.stdout
    assert "5 parsed, 0 removed in " in first.stderr
    (shop / "shop/cart.py").rename(shop / "shop/basket.py")
    (shop / "README.md").unlink()
    again = run("init", "--code")
    assert again.stdout.startswith("files ")
    assert "1 parsed, 2 removed" in again.stderr


def test_init_with_code_as_json_holds_everything(shop: Path) -> None:
    write(shop, {"shop/broken.py": "def f(:\n", "shop/key.py": 'KEY = "AKIAIOSFODNN7EXAMPLE"\n'})
    found = document("init", "--code")
    assert (found["path"], found["created"]) == (str(shop / ".foveate"), True)
    code = found["code"]
    assert code["root"] == str(shop)
    assert (code["files"], code["broken"], code["redacted"]) == (7, 1, 1)
    assert code["update"]["parsed_files"] == 7
    assert code["read_as_lines"] == {"rst": 1}
    assert "code" not in document("init")


def test_full_index_parses_every_file_again(shop: Path) -> None:
    ok("init", "--code")
    assert document("init", "--code")["code"]["update"]["parsed_files"] == 0
    with foveate.open(shop) as engine:
        assert engine.code.index(full=True).parsed_files == 5


def test_folder_that_is_no_repository_is_looked_at_once_it_is_indexed(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    write(plain, {"tools/greet.py": "def greet(name):\n    return name\n"})
    at = ("--store", str(plain))
    for verb in (("code", "map"), ("code", "docs"), ("search", "--code", "greet")):
        assert "`foveate init --code` makes it one" in refused(run(*at, *verb), 2)
    ok("init", *at)
    ok("doctor", *at)  # no command that only lists makes later contexts read code
    assert "def greet(name)" not in ok(*at, "context", "greet somebody")
    ok("init", "--code", *at)
    assert "greet.py" in ok(*at, "code", "map")
    assert "def greet(name)" in ok(*at, "context", "greet somebody")


def test_index_of_a_folder_inside_says_what_is_indexed(shop: Path) -> None:
    ok("init", "--code")
    result = run("init", "--code", "--store", "shop", "--json")
    assert json.loads(result.stdout)["code"]["root"] == str(shop)
    assert "belongs to" in result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("init", "--code", "--store", "nowhere"), "'nowhere' is not a folder"),
        (("init", "--code", "--store", "README.md"), "'README.md' is not a folder"),
        (("init", "--code", "--personal"), "--personal takes none of"),
        (("code", "map", "--budget", "0"), "positive"),
        (("code", "map", "--budget", "many"), "not a valid integer"),
        (("code", "map", " "), "empty"),
        (("search", "--code", "--kind", "fact", "tea"), "--kind, --tag, --since and --until select records"),
        (("context", "tea", "--without", "repo_mapp"), "Did you mean 'repo_map'?"),
    ],
)
def test_what_cannot_be_meant_is_refused(args: tuple[str, ...], said: str) -> None:
    ok("init", "--code")
    assert said in refused(run(*args), 2)


def test_index_warns_where_contexts_do_not_look_at_it(shop: Path) -> None:
    write(shop, {".foveate/config.toml": "[code]\nenabled = false\n"})
    assert "code.enabled = false" in run("init", "--code").stderr
    assert "def price_of" not in ok("context", "price discount")


def test_empty_repository_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init")
    for verb, said in (
        (("init", "--code"), "no files to index"),
        (("code", "map"), "the map is empty"),
        (("search", "--code", "x"), "nothing"),
    ):
        result = run("--store", str(tmp_path / "empty"), *verb)
        assert result.exit_code == 0
        assert said in result.stderr


def test_worktree_has_files_of_its_own_and_shares_the_state(shop: Path) -> None:
    write(shop, {".gitignore": "trees/\n"})
    for args in (("init",), ("add", "."), ("commit", "-m", "Begin"), ("worktree", "add", "trees/one")):
        git(shop, *args)
    ok("init")
    ok("add", "fact", "Tea is sold by weight")
    write(shop / "trees/one", {"shop/stock.py": "def restock(article):\n    return article\n"})
    inside = ("--store", str(shop / "trees/one"))
    assert "shop/stock.py:1" in ok(*inside, "search", "--code", "restock")
    assert "stock.py" not in run("search", "--code", "restock").stdout
    assert "Tea is sold by weight" in ok(*inside, "search", "tea")


# --- map -----------------------------------------------------------------------------------------------------------


def test_map_needs_no_question_and_no_store(shop: Path) -> None:
    text = ok("code", "map")
    assert text.index("shop/cart.py") < text.index("class Cart") < text.index("shop/prices.py")
    assert (shop / ".foveate/code.db").exists()


def test_map_of_the_whole_is_not_drawn_for_the_task_on_the_stack() -> None:
    whole = ok("code", "map")
    ok("task", "add", "Change the price_of function", "--push")
    assert ok("code", "map") == whole


@pytest.mark.parametrize("budget", [20, 45, 80, 400])
def test_map_stays_within_its_budget(budget: int) -> None:
    found = document("code", "map", "--budget", str(budget))
    assert 0 < found["tokens"] <= budget
    assert found["profile"] == "map"


def test_question_decides_what_the_map_shows_where_room_is_short() -> None:
    assert "price_of" in ok("code", "map", "bulk discount price", "--budget", "30")
    assert ok("code", "map", "-", "--budget", "30", stdin="bulk discount price") == ok(
        "code", "map", "bulk discount price", "--budget", "30"
    )


def test_map_that_cannot_hold_a_line_is_over_budget() -> None:
    ok("init", "--code")
    assert "3 tokens are too few" in refused(run("code", "map", "--budget", "3"), 5)


@pytest.mark.parametrize("query", [(), ("discount",)])
def test_map_can_be_replayed(query: tuple[str, ...]) -> None:
    ok("code", "map", *query)
    assert document("show", "--replay")["same"]


# --- search, docs, expand ------------------------------------------------------------------------------------------


def test_code_search_says_where_what_and_why() -> None:
    best = ok("search", "--code", "price_of").splitlines()[0].split()
    assert best[1:3] == ["shop/prices.py:4", "price_of"]
    assert "named" in best
    assert 0 < float(best[0]) <= 1


def test_code_search_as_json_holds_definitions_and_files() -> None:
    found = document("search", "--code", "article into cart", "--limit", "2")
    assert len(found["definitions"]) == 2
    best = found["definitions"][0]
    assert best["id"] == "code:shop/cart.py::Cart.add"
    assert (best["path"], best["start_line"], best["kind"], best["role"]) == ("shop/cart.py", 5, "method", "source")
    assert best["features"]["lexical"] > 0
    assert found["files"][0]["id"] == "file:shop/cart.py"
    relevance = [one["relevance"] for one in found["definitions"]]
    assert relevance == sorted(relevance, reverse=True)


def test_files_follow_the_definitions_where_they_are_asked_for() -> None:
    assert "\nfiles\n" not in ok("search", "--code", "cart")
    assert "  shop/cart.py  " in ok("search", "--files", "cart").partition("\nfiles\n")[2]


def test_search_among_records_points_to_the_code_where_it_finds_nothing() -> None:
    ok("init")
    assert "--code searches the files" in run("search", "tea").stderr


def test_docs_name_where_each_value_comes_from(shop: Path) -> None:
    write(shop, {".foveate/config.toml": '[project]\nlanguage = "py"\n'})
    found = document("code", "docs")
    assert found["project"]["name"] == {"value": "shop", "from": "pyproject.toml"}
    assert found["project"]["language"] == {"value": "py", "from": ".foveate/config.toml"}
    assert "architecture" in [section["name"] for section in found["sections"]]
    text = ok("code", "docs")
    assert "name            shop  (pyproject.toml)" in text
    assert "sends invoices" in text


def test_one_section_of_the_docs_is_printed_alone() -> None:
    assert ok("code", "docs", "commands").startswith("Commands (commands) from pyproject.toml\n")
    assert "Did you mean 'commands'?" in refused(run("code", "docs", "comands"), 3)


@pytest.mark.parametrize(
    ("id", "holds"),
    [
        ("code:shop/prices.py::price_of", "    return 1"),
        ("file:shop/prices.py", "BULK = 10"),
        ("map:shop/prices.py", "BULK = 10"),
        ("docs:project", "Name: shop"),
        ("docs:architecture", "sends invoices"),
    ],
)
def test_every_kind_of_code_can_be_expanded(id: str, holds: str) -> None:
    ok("init", "--code")
    assert holds in ok("show", id)


@pytest.mark.parametrize("id", ["code:shop/prices.py::price", "code:shop/gone.py::f", "file:gone.py", "docs:gone"])
def test_code_that_is_not_there_cannot_be_expanded(id: str) -> None:
    ok("init", "--code")
    refused(run("show", id), 3)


# --- contexts ------------------------------------------------------------------------------------------------------


def test_context_in_a_repository_needs_no_configuration() -> None:
    result = run("context", "How is the discount priced?")
    assert "def price_of(article)" in result.stdout
    assert "Name: shop" in result.stdout
    assert "foveate: created" in result.stderr


def test_context_can_leave_the_code_out() -> None:
    ok("init", "--code")
    assert "price_of" not in ok("context", "price discount", "--no-code")
    text = ok("context", "price discount", "--without", "repo_map", "--without", "codebase")
    assert "## Repository Map" not in text
    assert "Name: shop" not in text
    assert "price_of" in text


def test_code_query_is_what_the_code_is_searched_for() -> None:
    assert "price_of" not in ok("context", "customers complain", "--without", "repo_map")
    assert "price_of" in ok("context", "customers complain", "--without", "repo_map", "--code-query", "price discount")


def test_no_code_does_not_make_a_store(shop: Path) -> None:
    assert "no store here" in refused(run("context", "price", "--no-code"), 2)
    assert not (shop / ".foveate").exists()


# --- why not -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("id", "reason", "said"),
    [
        ("code:shop/cart.py::Cart.add", "no shared term", "shares no word"),
        ("file:package-lock.json", "skipped", "lock file; add it to `include` in [code]"),
        ("file:logo.png", "skipped", "skipped: binary"),
        ("file:drafts/out.py", "skipped", "excluded by `exclude` in [code]"),
        ("file:local.py", "not indexed", ".gitignore"),
        ("file:README.md", "unrelated", "neither the task nor the query names"),
        ("map:notes/plan.rst", "limit", "files with the most weight"),
    ],
)
def test_code_that_was_no_candidate_has_a_reason(shop: Path, id: str, reason: str, said: str) -> None:
    write(shop, {".foveate/config.toml": '[code]\nexclude = ["drafts/"]\n', "drafts/out.py": "x = 1\n"})
    write(shop, {".gitignore": "local.py\n", "local.py": "x = 1\n"})
    ok("context", "How is the discount priced?")
    found = document("why", id)
    assert found["reason"] == reason
    assert said in found["sentence"]
    assert not found["kept"]


def test_definition_that_its_file_shows_says_so() -> None:
    ok("context", "What does shop/prices.py do about the discount?")
    found = document("why", "code:shop/prices.py::price_of")
    assert found["reason"] == "in its file"
    assert "file:shop/prices.py" in found["sentence"]


def test_rank_beyond_the_limit_is_told(shop: Path) -> None:
    write(shop, {"shop/many.py": "".join(f"def discount_{n}(price):\n    return price\n\n\n" for n in range(120))})
    with foveate.open(shop) as engine:
        engine.context("discount price", budget=4000)
        reasons = [engine.why(f"code:shop/many.py::discount_{n}") for n in range(120)]
        beyond = [found for found in reasons if found.reason == "limit"]
        assert beyond
        assert "beyond the limit of 100; shares discount" in str(beyond[-1])


def test_profile_without_a_slot_for_code_is_the_reason(shop: Path) -> None:
    with foveate.open(shop) as engine:
        engine.context("discount", profile="default")
        found = engine.why("code:shop/prices.py::price_of")
        assert found.reason == "no slot"


@pytest.mark.parametrize("id", ["code:shop/prices.py::price", "code:price.py::price_of", "file:gone.py", "docs:gone"])
def test_what_is_not_in_the_code_is_not_found(shop: Path, id: str) -> None:
    with foveate.open(shop) as engine:
        engine.context("discount")
        with pytest.raises(NotFound):
            engine.why(id)


def test_near_names_are_suggested(shop: Path) -> None:
    with foveate.open(shop) as engine:
        engine.context("discount")
        with pytest.raises(NotFound, match=r"Did you mean 'price_of'\?"):
            engine.why("code:shop/prices.py::price")
        with pytest.raises(NotFound, match=r"Did you mean 'shop/prices.py'\?"):
            engine.why("file:shop/price.py")


# --- doctor --------------------------------------------------------------------------------------------------------


def test_doctor_tells_how_the_index_stands_without_touching_it(shop: Path) -> None:
    ok("init")
    assert document("doctor")["facts"]["code"].startswith("not indexed yet")
    assert not (shop / ".foveate/code.db").exists()
    past = time.time() - 60
    for name in FILES:
        os.utime(shop / name, (past, past))
    ok("init", "--code")
    assert document("doctor")["facts"]["code"].endswith("definitions, up to date")
    write(shop, {"shop/prices.py": "BULK = 11\n"})
    assert "1 files have changed" in document("doctor")["facts"]["code"]


def test_doctor_lists_the_files_that_are_skipped(shop: Path) -> None:
    ok("init")
    assert document("doctor")["skipped"] == []
    ok("init", "--code")
    skipped = [{"path": "logo.png", "reason": "binary"}, {"path": "package-lock.json", "reason": "lock file"}]
    assert document("doctor")["skipped"] == skipped
    assert "logo.png  binary\n" in ok("doctor")
    write(shop, {f"data/{n:02}.bin": "\0" for n in range(30)})
    ok("init", "--code")
    assert "and 12 more; --json lists all" in ok("doctor")


def test_doctor_misses_git_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ok("init")
    monkeypatch.setenv("PATH", "")
    found = document("doctor")
    assert found["ok"]
    assert any("git was not found" in warning for warning in found["warnings"])


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_doctor_names_git() -> None:
    ok("init")
    assert document("doctor")["facts"]["git"][0].isdigit()


# --- progress ------------------------------------------------------------------------------------------------------


def test_the_progress_of_long_work_is_counted_and_leaves_the_line_empty(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(render, "DRAW_AFTER_S", -1.0)
    bar = Bar("indexing", "files")
    bar(1200, 5000)
    bar(5000, 5000)
    said = capsys.readouterr()
    assert said.out == ""
    assert "\rfoveate: indexing 1,200 of 5,000 files" in said.err
    assert said.err.endswith("\r\x1b[K")


def test_short_work_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bar = Bar("indexing", "files")
    bar(1, 5)
    bar(5, 5)
    bar.close()
    assert capsys.readouterr().err == ""


def test_nothing_is_drawn_into_a_pipe() -> None:
    assert "\r" not in run("init", "--code").stderr


def test_a_git_file_that_names_another_repository_is_no_worktree_of_it(tmp_path: Path) -> None:
    victim, spoof = tmp_path / "victim", tmp_path / "spoof"
    for folder in (victim / ".git" / "worktrees" / "x", spoof):
        folder.mkdir(parents=True)
    (spoof / ".git").write_text(f"gitdir: {victim}/.git/worktrees/x\n", encoding="utf-8")
    assert project.locate_project(spoof).root == spoof
    (victim / ".git" / "worktrees" / "x" / "gitdir").write_text(f"{spoof}/.git\n", encoding="utf-8")
    assert project.locate_project(spoof).root == victim
