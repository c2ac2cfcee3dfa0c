"""The code index beside files that change: what is parsed again, what follows a move, and that edits leave no trace."""

from __future__ import annotations

import gc
import itertools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import foveate
from foveate import testing
from foveate.code import index_reader, languages, query
from foveate.code.index import CodeIndex, CodeSettings
from foveate.code.index_reader import IndexReader
from foveate.code.postings import MAX_ID, Segment, merge_lists, pairs, remove_ids
from foveate.code.search import search
from foveate.project import project
from foveate.server import doctor

IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always")

CART = '''"""The cart of a shop."""

from shop.money import Price


class Cart:
    """What a customer wants to buy."""

    def add(self, price: Price) -> None:
        """Put one more thing into the basket."""
        self.total = self.total.plus(price)

    def checkout(self) -> Price:
        return rounded(self.total)


def rounded(price: Price) -> Price:
    return Price(round(price.cents))
'''
MONEY = '''class Price:
    """An amount with its currency."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def plus(self, other: "Price") -> "Price":
        return Price(self.cents + other.cents)
'''
TEST = """from shop.cart import Cart


def test_a_cart_adds_prices() -> None:
    Cart().add(Price(3))
"""
FILES = {"shop/cart.py": CART, "shop/money.py": MONEY, "tests/test_cart.py": TEST, "README.md": "# Shop\n\nSells things.\n"}


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode() if isinstance(text, str) else text)


def repository(root: Path, files: dict[str, Any] | None = None) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, FILES if files is None else files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "shop")


@pytest.fixture
def index(root: Path, tmp_path: Path) -> Iterator[CodeIndex]:
    with closing(CodeIndex(root, tmp_path / "code.db")) as opened:
        opened.refresh()
        yield opened


def found(index: CodeIndex, text: str) -> dict[str, float]:
    """What a question finds, and how well: `path::name~nth`."""
    hits = search(index.open_reader(), query.parse_query(text)).definitions
    return {f"{hit.symbol.path}::{hit.symbol.qualified_name}~{hit.symbol.occurrence}": hit.relevance for hit in hits}


def paths(index: CodeIndex) -> list[str]:
    return list(index.open_reader().file_table().by_path)


def reasons(index: CodeIndex) -> dict[str, str]:
    return {aside.path: aside.reason for aside in index.open_reader().exclusions()}


def known(index: CodeIndex) -> dict[str, Any]:
    """All that an index says of its files, without the numbers that it gives them itself."""
    said: dict[str, Any] = {}
    reader = index.open_reader()
    for path, file in reader.file_table().by_path.items():
        symbols = reader.symbols_in_file(path)
        names = {symbol.id: symbol.qualified_name for symbol in symbols}
        uses = reader.references_from(names)
        said[path] = (
            (file.role, file.language, file.lines, file.hash, file.size, reader.imports(path)),
            [
                (
                    s.qualified_name,
                    s.occurrence,
                    s.kind,
                    s.start_line,
                    s.end_line,
                    s.signature,
                    s.doc,
                    names.get(s.parent or 0),
                    s.role,
                    uses[s.id],
                )
                for s in symbols
            ],
        )
    return {
        "files": said,
        "aside": reasons(index),
        "used": {s.path + s.qualified_name: n for s, n in index.open_reader().most_referenced(50)},
    }


def fresh(root: Path, file: Path, **settings: Any) -> CodeIndex:
    shutil.rmtree(file.parent / "fresh", ignore_errors=True)
    (file.parent / "fresh").mkdir()
    index = CodeIndex(root, file.parent / "fresh" / "code.db", **settings)
    index.refresh()
    return index


QUESTIONS = ("How does the cart add a price?", "Price.plus", "round the cents", "basket of a customer", "alpha beta gamma")


def assert_like_fresh(index: CodeIndex, tmp_path: Path) -> None:
    with closing(fresh(index.root, tmp_path / "code.db")) as other:
        assert known(index) == known(other)
        for text in QUESTIONS:
            assert found(index, text) == pytest.approx(found(other, text), abs=2e-4), text


# --- what is parsed ----------------------------------------------------------------------------------------------------


def test_only_changed_files_are_parsed_again(root: Path, index: CodeIndex) -> None:
    before = index.open_reader().generation
    assert index.refresh().parsed_files == 0
    (root / "shop/money.py").touch()
    assert index.refresh().parsed_files == 0
    assert index.open_reader().generation == before
    write(root, {"shop/money.py": MONEY.replace("An amount", "A sum"), "shop/new.py": "def fresh_one(): pass\n"})
    done = index.refresh()
    assert (done.parsed_files, done.removed_files, done.files) == (2, 0, 5)
    assert index.open_reader().generation != before
    assert index.open_reader().symbols_in_file("shop/money.py")[1].doc == "A sum with its currency."
    assert [symbol.path for symbol in index.open_reader().symbols_by_name(["fresh_one"])["fresh_one"]] == ["shop/new.py"]


def test_a_file_with_the_size_and_time_of_long_ago_is_not_read(root: Path, index: CodeIndex) -> None:
    at = 1_700_000_000
    os.utime(root / "shop/money.py", (at, at))
    index.refresh()
    write(root, {"shop/money.py": MONEY.replace("amount", "sum of")})
    os.utime(root / "shop/money.py", (at, at))
    assert index.refresh().parsed_files == 0
    index.invalidate(["shop/money.py"])
    assert index.refresh().parsed_files == 1


def test_an_edit_of_the_same_size_in_the_same_instant_is_noticed(root: Path, index: CodeIndex) -> None:
    path = root / "shop/money.py"
    for word in ("sum of", "lot of"):
        status = path.stat()
        path.write_text(MONEY.replace("amount", word), encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert path.stat().st_size == len(MONEY)
        assert index.refresh().parsed_files == 1
        assert word in index.open_reader().symbols_in_file("shop/money.py")[1].doc


def test_generations_change_with_what_the_index_says_and_only_then(root: Path, index: CodeIndex) -> None:
    seen = [index.open_reader().generation]

    def changed(*, is_new: bool) -> None:
        index.refresh()
        assert (index.open_reader().generation != seen[-1]) == is_new
        seen.append(index.open_reader().generation)

    changed(is_new=False)
    write(root, {"shop/cart.py": CART})
    changed(is_new=False)
    write(root, {"shop/data.js": "var x=1;" * 2000})
    changed(is_new=True)
    (root / "shop/data.js").touch()
    changed(is_new=False)
    (root / "shop/data.js").unlink()
    changed(is_new=True)
    (root / "shop/cart.py").rename(root / "shop/basket.py")
    changed(is_new=True)
    git(root, "commit", "-q", "-a", "-m", "second")
    changed(is_new=False)
    assert len(set(seen)) == 4


# --- moves -------------------------------------------------------------------------------------------------------------


def test_a_renamed_file_is_found_under_its_new_name(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    (root / "shop/cart.py").rename(root / "shop/basket.py")
    done = index.refresh()
    assert (done.parsed_files, done.removed_files) == (1, 1)
    assert found(index, "checkout") == {"shop/basket.py::Cart.checkout~1": 1.0}
    assert index.open_reader().symbols_in_file("shop/cart.py") == []
    assert_like_fresh(index, tmp_path)


def test_files_of_a_moved_folder_have_the_role_of_their_new_place(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    write(root, {"pkg/extern.py": "def helper(): pass\n"})
    index.refresh()
    (root / "shop").rename(root / "third")
    (root / "_vendor").mkdir()
    (root / "pkg").rename(root / "_vendor/pkg")
    index.refresh()
    assert paths(index) == ["README.md", "_vendor/pkg/extern.py", "tests/test_cart.py", "third/cart.py", "third/money.py"]
    assert index.open_reader().symbols_by_name(["helper"])["helper"][0].role == "vendored"
    assert_like_fresh(index, tmp_path)


def test_copies_swaps_and_a_move_onto_another_file_end_like_a_fresh_index(
    root: Path, index: CodeIndex, tmp_path: Path
) -> None:
    shutil.copy(root / "shop/cart.py", root / "shop/copy.py")
    assert index.refresh().parsed_files == 1
    for one, other in (("cart", "spare"), ("money", "cart"), ("spare", "money")):
        (root / f"shop/{one}.py").rename(root / f"shop/{other}.py")
    index.refresh()
    assert_like_fresh(index, tmp_path)
    (root / "shop/copy.py").replace(root / "shop/cart.py")
    index.refresh()
    assert_like_fresh(index, tmp_path)


# --- files that come and go ----------------------------------------------------------------------------------------------


def test_a_deleted_file_is_found_no_more(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    (root / "shop/cart.py").unlink()
    done = index.refresh()
    assert (done.parsed_files, done.removed_files, done.files) == (0, 1, 3)
    assert not index.open_reader().symbols_by_name(["checkout", "rounded"])
    assert all(not hit.startswith("shop/cart.py") for hit in found(index, "cart checkout rounded"))
    assert_like_fresh(index, tmp_path)


def test_a_file_that_becomes_a_folder_and_one_again(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    (root / "shop/cart.py").unlink()
    write(root, {"shop/cart.py/inner.py": MONEY, "shop/cart.py/other.py": "def other(): pass\n"})
    index.refresh()
    assert [path for path in paths(index) if path.startswith("shop/c")] == ["shop/cart.py/inner.py", "shop/cart.py/other.py"]
    assert_like_fresh(index, tmp_path)
    shutil.rmtree(root / "shop/cart.py")
    write(root, {"shop/cart.py": CART})
    index.refresh()
    assert paths(index) == sorted(FILES)
    assert_like_fresh(index, tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x00\x01\x02" * 500, "binary"),
        (b"x = 1\n" * 200_000, "larger than 1,000,000 bytes"),
        (b"x=1;" * 2000, "minified"),
        (b"# Code generated by a tool. DO NOT EDIT.\n" + CART.encode(), "generated"),
    ],
)
def test_a_file_leaves_the_index_with_a_reason_and_comes_back(
    root: Path, index: CodeIndex, tmp_path: Path, content: bytes, reason: str
) -> None:
    write(root, {"shop/cart.py": content})
    index.refresh()
    assert reasons(index) == {"shop/cart.py": reason}
    assert "shop/cart.py" not in paths(index)
    assert not index.open_reader().symbols_by_name(["Cart"])
    assert_like_fresh(index, tmp_path)
    write(root, {"shop/cart.py": CART})
    index.refresh()
    assert reasons(index) == {}
    assert_like_fresh(index, tmp_path)


def test_what_is_set_aside_is_judged_again_in_the_same_instant_and_when_only_the_reason_changes(
    root: Path, index: CodeIndex
) -> None:
    path = root / "shop/data.js"
    minified, written = "var x=1;" * 400, "var y = 1;\n"
    path.write_text(minified, encoding="utf-8")
    index.refresh()
    assert reasons(index) == {"shop/data.js": "minified"}
    at = path.stat().st_mtime_ns
    path.write_text((written * 400)[: len(minified)], encoding="utf-8")
    os.utime(path, ns=(at, at))
    assert index.refresh().parsed_files == 1
    assert reasons(index) == {}
    path.unlink()
    os.mkfifo(path)
    index.refresh()
    assert list(reasons(index).values()) == []  # git does not list a pipe
    path.unlink()
    path.symlink_to("cart.py")
    index.refresh()
    assert reasons(index) == {"shop/data.js": "symbolic link"}
    path.unlink()
    with path.open("wb") as file:
        file.truncate(2_000_000)
    index.refresh()
    assert reasons(index) == {"shop/data.js": "larger than 1,000,000 bytes"}


def test_a_set_aside_file_from_1970_is_forgotten_when_it_is_gone(root: Path, index: CodeIndex) -> None:
    write(root, {"shop/data.js": "var x=1;" * 400})
    os.utime(root / "shop/data.js", ns=(0, 0))
    index.refresh()
    assert reasons(index) == {"shop/data.js": "minified"}
    (root / "shop/data.js").unlink()
    index.refresh()
    assert reasons(index) == {}


# --- git under our feet ------------------------------------------------------------------------------------------------


def test_a_branch_switch_there_and_back_and_a_rebase_end_like_a_fresh_index(
    root: Path, index: CodeIndex, tmp_path: Path
) -> None:
    git(root, "checkout", "-q", "-b", "side")
    write(root, {"shop/cart.py": CART.replace("basket", "trolley"), "shop/tax.py": "def tax(price): return price\n"})
    git(root, "mv", "shop/money.py", "shop/coins.py")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "side")
    index.refresh()
    assert_like_fresh(index, tmp_path)
    git(root, "checkout", "-q", "main")
    index.refresh()
    assert paths(index) == sorted(FILES)
    assert_like_fresh(index, tmp_path)
    write(root, {"shop/late.py": "def late(): pass\n"})
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "main goes on")
    git(root, "checkout", "-q", "side")
    git(root, "rebase", "-q", "main")
    index.refresh()
    assert [path for path in paths(index) if path.startswith("shop/")] == [
        f"shop/{name}.py" for name in ("cart", "coins", "late", "tax")
    ]
    assert_like_fresh(index, tmp_path)
    git(root, "reset", "-q", "--hard", "HEAD~2")
    index.refresh()
    assert paths(index) == sorted(FILES)
    assert_like_fresh(index, tmp_path)


@pytest.mark.parametrize("place", ["side", "shop/trees/side"])
def test_worktrees_share_the_state_but_not_the_index(root: Path, tmp_path: Path, place: str) -> None:
    tree = tmp_path / place
    git(root, "worktree", "add", "-q", "-b", "side", str(tree))
    write(tree, {"shop/only_here.py": "def only_here(): pass\n"})
    with foveate.open(root) as main, foveate.open(tree) as side:
        note = main.add("note", "Prices are in cents.").record
        assert side.get(note.id).text == "Prices are in cents."
        for engine, is_there in ((main, False), (side, True)):
            engine.code.workspace.refresh()
            assert ("shop/only_here.py" in paths(engine.code.workspace.index)) == is_there
            assert ("only_here" in engine.context("where is `only_here`?").text.replace("`only_here`", "")) == is_there
        files = {engine.code.workspace.index._db.file for engine in (main, side)}
    assert {Path(file).parent for file in files} == {root / ".foveate"}
    assert len(files) == 2
    assert not (tree / ".foveate").exists()
    assert project.locate_project(tree / "shop").code_root == tree


def test_files_of_a_submodule_belong_to_the_repository(root: Path, tmp_path: Path) -> None:
    repository(tmp_path / "lib", {"lib.py": "def shared(): pass\n"})
    git(root, "submodule", "add", "-q", str(tmp_path / "lib"), "libs/lib")
    with closing(CodeIndex(root, tmp_path / "code.db")) as index:
        index.refresh()
        assert index.open_reader().symbols_by_name(["shared"])["shared"][0].path == "libs/lib/lib.py"
        write(root, {"libs/lib/lib.py": "def renamed(): pass\n"})
        assert index.refresh().parsed_files == 1
        assert list(index.open_reader().symbols_by_name(["shared", "renamed"])) == ["renamed"]


# --- many edits --------------------------------------------------------------------------------------------------------

WORDS = [
    "alpha",
    "beta",
    "gamma",
    "delta",
    "cart",
    "price",
    "basket",
    "round",
    "cents",
    "plus",
    "customer",
    "total",
    "order",
    "invoice",
]


def _source(random: random.Random) -> str:
    """A small module: classes and functions that use one another."""
    parts = []
    for _ in range(random.randint(0, 4)):
        one, other, third = random.choices(WORDS, k=3)
        parts.append(f"def {one}_{other}({third}):\n    return {other}_{third}({third}, {one!r})\n")
    names = random.sample(WORDS, k=random.randint(0, 2))
    parts += [
        f"class {name.title()}:\n    def {random.choice(WORDS)}(self):\n        return {name}_alpha(self)\n"
        for name in names
    ]
    return "\n\n".join(parts)


def _edit(root: Path, random: random.Random) -> None:
    """One thing that people do to files."""
    here = sorted(path for path in root.rglob("*.py") if path.is_file())
    folder = root / random.choice(("shop", "tests", "lib/deep", "."))
    target = folder / f"{random.choice(('', 'test_'))}{random.choice(WORDS)}.py"
    what = random.choice(("write", "write", "write", "move", "delete", "copy", "append"))
    target.parent.mkdir(parents=True, exist_ok=True)
    if what == "write" or not here:
        target.write_text(_source(random), encoding="utf-8")
    elif what == "move":
        random.choice(here).replace(target)
    elif what == "delete":
        random.choice(here).unlink()
    elif what == "copy":
        target.write_bytes(random.choice(here).read_bytes())
    else:
        with random.choice(here).open("a", encoding="utf-8") as file:
            file.write(f"\n\n{_source(random)}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_after_many_edits_an_index_says_what_a_fresh_one_says(tmp_path: Path, seed: int) -> None:
    """Merges fall in between: more than a dozen refreshes, each a segment of its own."""
    chance = random.Random(seed)
    root = repository(tmp_path / "shop")
    with closing(CodeIndex(root, tmp_path / "code.db")) as index:
        index.refresh()
        for turn in range(24):
            for _ in range(chance.randint(1, 4)):
                _edit(root, chance)
            index.refresh()
            if turn % 8 == 7:
                assert_like_fresh(index, tmp_path)
        assert len(index._db.fetch_all("SELECT id FROM segments")) < 16


@pytest.mark.slow
def test_a_merge_changes_no_answer(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    before = []
    for n in range(12):
        write(
            root, {f"lib/m{n}.py": f"def cart_{n}(price):\n    return price_{n % 3}(price)\n", "lib/same.py": f"x = {n}\n"}
        )
        index.refresh()
        assert_like_fresh(index, tmp_path)
        before.append(len(index._db.fetch_all("SELECT id FROM segments")))
    assert any(later < earlier for earlier, later in itertools.pairwise(before))


def test_a_list_loses_what_is_gone_whatever_segments_it_was_merged_from() -> None:
    lists = []
    for ids in (range(20, 90), range(1, 20)):
        segment = Segment()
        for id in ids:
            segment.add_references(id, {"price": id})
        lists += [blob for _, _, blob in segment.rows()]
    blob = merge_lists(lists, frozenset(range(1, 90)) - {30})
    for gone in (frozenset[int](), frozenset((3, 89, 500)), frozenset(range(1, 60))):
        left = dict(pairs([remove_ids(blob, gone)]))
        assert left == {id: id for id in range(1, 90) if id != 30 and id not in gone}


# --- what is asked -----------------------------------------------------------------------------------------------------


def test_definitions_names_and_uses_on_a_small_tree(index: CodeIndex) -> None:
    reader = index.open_reader()
    names = [
        (symbol.qualified_name, symbol.kind, symbol.start_line, symbol.end_line)
        for symbol in reader.symbols_in_file("shop/cart.py")
    ]
    assert names == [
        ("", "top level", 1, 18),
        ("Cart", "class", 6, 14),
        ("Cart.add", "method", 9, 11),
        ("Cart.checkout", "method", 13, 14),
        ("rounded", "function", 17, 18),
    ]
    by_name = {symbol.qualified_name: symbol for symbol in reader.symbols_in_file("shop/cart.py")}
    assert reader.symbols([by_name["Cart"].id, 10**6]) == {by_name["Cart"].id: by_name["Cart"]}
    assert by_name["Cart.add"].parent == by_name["Cart"].id
    assert [symbol.qualified_name for symbol in reader.symbols_by_name(["add", "Price", "nothing"])["Price"]] == ["Price"]
    assert reader.references_from([by_name["rounded"].id])[by_name["rounded"].id] == {
        "Price": 2,
        "round": 1,
    }  # once a line
    users = reader.symbols(reader.references_to(["plus", "rounded"])["rounded"])
    assert [symbol.qualified_name for symbol in users.values()] == ["Cart.checkout"]
    assert reader.imports("shop/cart.py") == ("shop.money.Price",)
    assert reader.imports("nowhere.py") == ()
    assert reader.stats() | {"roles": None, "languages": None} == {
        "files": 4,
        "definitions": 9,
        "lines": 18 + 8 + 5 + 3,
        "broken": 0,
        "redacted": 0,
        "languages": None,
        "roles": None,
        "aside": {},
    }


def test_most_used_counts_other_files_and_any_limit_may_be_asked_for(root: Path, index: CodeIndex) -> None:
    def ranked(limit: int) -> list[tuple[str, float]]:
        return [(symbol.qualified_name, used) for symbol, used in index.open_reader().most_referenced(limit)]

    assert ranked(1) == [("Price", 5.0)]
    assert ranked(10) == [("Price", 5.0), ("Price.plus", 4.0), ("Cart", 1.0), ("Cart.add", 1.0)]
    write(root, {"shop/cart.py": "x = 1\n"})
    index.refresh()
    assert ranked(10) == [("Price", 1.0)]


def test_namesakes_in_one_file_are_numbered(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    twice = (
        "class Box:\n    @property\n    def size(self): return 1\n\n    @size.setter\n    def size(self, to): self.to = to\n"
    )
    write(root, {"shop/box.py": twice})
    index.refresh()
    sizes = [symbol for symbol in index.open_reader().symbols_in_file("shop/box.py") if symbol.qualified_name == "Box.size"]
    assert [(symbol.occurrence, symbol.start_line, symbol.end_line) for symbol in sizes] == [(1, 2, 3), (2, 5, 6)]
    with foveate.open(root) as engine:
        assert "self.to = to" in engine.expand("code:shop/box.py::Box.size~2")["content"]
        assert "return 1" in engine.expand("code:shop/box.py::Box.size")["content"]
        with pytest.raises(foveate.NotFound):
            engine.expand("code:shop/box.py::Box.size~3")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.rb", "module Shop\n  class Cart\n    def add(x)\n      x\n    end\n  end\nend\n"),
        ("a.rs", "mod shop {\n  pub fn add() {}\n}\n"),
        ("a.ts", "namespace Shop {\n  export function add() {}\n}\n"),
    ],
)
def test_a_module_of_the_language_is_a_definition_and_not_the_rest_of_its_file(tmp_path: Path, path: str, text: str) -> None:
    root = repository(tmp_path / "r", {path: text})
    with closing(CodeIndex(root, tmp_path / "code.db")) as index:
        index.refresh()
        rest, module, *_ = index.open_reader().symbols_in_file(path)
        assert (rest.name, module.name.lower(), module.kind) == ("", "shop", "module")
        assert rest.kind != module.kind


def test_what_the_settings_say_of_reading_is_taken_in_at_once(root: Path, tmp_path: Path) -> None:
    """A generated file that is asked for from now on, a string that is no secret from now on: no file changed."""
    write(root, {"gen.py": "# Code generated by a tool. DO NOT EDIT.\ndef generated_one(): pass\n"})
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(root, {"shop/keys.py": f'def {"sample"}(key="{token}"): pass\n'})
    for include, is_there in (((), False), (("gen.py",), True), ((), False)):
        with closing(CodeIndex(root, tmp_path / "code.db", CodeSettings(include))) as index:
            index.refresh()
            assert ("gen.py" in paths(index)) == is_there
    for allow, is_there in ((frozenset([token]), True), (None, False)):
        with closing(CodeIndex(root, tmp_path / "code.db", allow=allow)) as index:
            index.refresh()
            assert (token in index.open_reader().symbols_by_name(["sample"])["sample"][0].signature) == is_there


def test_what_another_process_takes_in_is_answered_at_once(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    """Everything was asked for before, so that everything is in memory."""
    known(index)
    (before,) = index.open_reader().symbols_by_name(["rounded"])["rounded"]
    with closing(CodeIndex(root, tmp_path / "code.db")) as other:
        write(
            root,
            {"shop/cart.py": "import os\n\n\n" + CART.replace("rounded", "floored"), "shop/new.py": "class New: pass\n"},
        )
        git(root, "rm", "-q", "--cached", "README.md")
        (root / "README.md").unlink()
        other.refresh()
        assert known(index) == known(other)
    assert (index.open_reader().symbols([before.id]), index.open_reader().symbols_by_name(["rounded"])) == ({}, {})
    assert_like_fresh(index, tmp_path)


def test_a_reader_answers_from_one_generation_whatever_is_written_meanwhile(
    root: Path, index: CodeIndex, tmp_path: Path
) -> None:
    """One of two names is in memory; the other is looked up after a write."""
    with index.open_reader() as reader, closing(CodeIndex(root, tmp_path / "code.db")) as other:
        before = reader.symbols_by_name(["rounded"])
        write(root, {"shop/cart.py": f"import os\n{CART}", "shop/money.py": f"import os\n{MONEY}"})
        other.refresh()
        both = reader.symbols_by_name(["rounded", "Price"])
        assert both["rounded"] == before["rounded"]
        assert both["Price"][0].start_line == 1
        with index.open_reader() as later:
            assert later.generation != reader.generation
            assert later.symbols_by_name(["Price"])["Price"][0].start_line == 2
        assert reader.symbols_by_name(["Price"]) == {"Price": both["Price"]}


def test_a_closed_reader_says_so_and_one_that_nobody_closed_is_closed_when_it_goes(index: CodeIndex) -> None:
    reader = index.open_reader()
    reader.close()
    with pytest.raises(foveate.StoreError, match="is closed"):
        reader.exclusions()
    for _ in range(20):
        index.open_reader().exclusions()
    assert len(index._db._idle) == 1


def test_a_full_memory_lets_go_of_what_was_looked_up_and_not_of_what_is_known_of_the_whole(
    index: CodeIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = index.open_reader()
    before, table, central = known(index), reader.file_table(), reader.most_referenced(50)
    monkeypatch.setattr(index_reader, "MAX_CACHED_VALUES", 3)
    assert known(index) == before
    assert reader.file_table() is table
    assert reader.most_referenced(50) is central


ASKED: dict[str, Callable[[IndexReader], object]] = {
    "ids": lambda reader: reader.symbols(range(1000, 1100)),
    "names": lambda reader: reader.symbols_by_name(f"name_{n}" for n in range(100)),
    "what ids use": lambda reader: reader.references_from(range(1000, 1100)),
    "who uses names": lambda reader: reader.references_to(f"name_{n}" for n in range(100)),
    "files": lambda reader: [reader.symbols_in_file(f"{n}.py") for n in range(100)],
    "imports": lambda reader: [reader.imports(f"{n}.py") for n in range(100)],
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_whatever_is_looked_up_fills_the_memory(
    index: CodeIndex, asked: Callable[[IndexReader], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_reader, "MAX_CACHED_VALUES", 12)
    with index.open_reader() as reader:
        asked(reader)
        assert sum(map(len, reader.cache.results.values())) <= 12


def test_what_is_in_an_answer_counts_too(index: CodeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_reader, "MAX_CACHED_VALUES", 12)
    with index.open_reader() as reader:  # that many ids, and two files
        assert len(reader.symbols_in_file("shop/cart.py") + reader.symbols_in_file("shop/money.py")) == 9
        assert sum(map(len, reader.cache.results.values())) < 9


def test_a_file_that_was_written_or_removed_is_noticed_without_a_walk_and_a_new_one_is_not(
    root: Path, index: CodeIndex
) -> None:
    assert not index.has_changed_files()
    write(root, {"shop/new.py": "x = 1\n"})
    assert not index.has_changed_files()
    write(root, {"shop/cart.py": CART + "\n"})
    assert index.has_changed_files()
    index.refresh()
    assert not index.has_changed_files()
    (root / "shop/cart.py").unlink()
    assert index.has_changed_files()


def test_the_garbage_collector_rests_for_a_round_and_not_for_the_walks(
    root: Path, index: CodeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process takes a file in after the first walk, so that there is a second one."""
    walk, read = index._walk, index.read
    walks, reads = [], []

    def walked() -> Any:
        walks.append(gc.isenabled())
        found = walk()
        if len(walks) == 1:
            with closing(CodeIndex(root, tmp_path / "code.db")) as other:
                other.refresh()
            write(root, {"shop/second.py": "def second(): pass\n"})
        return found

    def taken(path: str) -> Any:
        reads.append(gc.isenabled())
        return read(path)

    monkeypatch.setattr(index, "_walk", walked)
    monkeypatch.setattr(index, "read", taken)
    write(root, {"shop/first.py": "def first(): pass\n"})
    assert index.refresh().parsed_files == 1
    assert (walks, set(reads), gc.isenabled()) == ([True, True], {False}, True)


def test_what_was_clean_by_the_rules_of_others_is_not_clean_by_ours(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write(root, {"shop/keys.py": f'KEY = "{token}"\n', "shop/plain.py": "KEY = None\n"})
    with closing(CodeIndex(root, tmp_path / "code.db", allow=frozenset([token]))) as trusting:
        trusting.refresh()
        assert "shop/keys.py" in paths(index)  # its table is what the other one found
        texts = {path: index.read(path) for path in ("shop/keys.py", "shop/plain.py")}
        assert [token in getattr(text, "text", token) for text in texts.values()] == [False, False]
        assert token in getattr(trusting.read("shop/keys.py"), "text", "")


def test_an_index_that_has_given_out_most_of_its_numbers_begins_again(root: Path, index: CodeIndex, tmp_path: Path) -> None:
    index.close()
    with closing(apsw.Connection(index._db.file)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'definition'", (MAX_ID - 3,))
    write(root, {"shop/more.py": "def alpha_beta(): pass\n" * 3})
    with closing(CodeIndex(root, index._db.file)) as again:
        again.refresh()
        assert_like_fresh(again, tmp_path)


def test_an_update_through_the_engine_lists_the_skipped_files() -> None:
    files = {"shop.py": "def price():\n    return 1\n", "app.min.js": "a=1;" * 2000, "logo.png": "\x89PNG\x00"}
    with testing.engine(files=files) as engine:
        update = engine.code.index()
        assert [(each.path, each.reason) for each in update.skipped] == [("app.min.js", "minified"), ("logo.png", "binary")]
        assert (update.files, engine.code.index(full=True).parsed_files) == (1, 1)


# --- without tree-sitter -------------------------------------------------------------------------------------------


@pytest.fixture
def hide_tree_sitter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bool], None]]:
    """Hide the module, as on a Python that it has no wheel for, or show it again."""

    def hide(hidden: bool) -> None:
        if hidden:
            monkeypatch.setitem(sys.modules, "tree_sitter", None)
        else:
            monkeypatch.undo()
        languages.has_parser.cache_clear()
        languages._load.cache_clear()

    yield hide
    hide(False)


def test_without_tree_sitter_files_are_found_as_lines_until_it_is_installed(
    tmp_path: Path, hide_tree_sitter: Callable[[bool], None]
) -> None:
    (tmp_path / "cart.py").write_text(CART, "utf-8")
    hide_tree_sitter(True)
    with foveate.open(tmp_path, code=True, personal=False) as engine:
        assert languages.OUTLINES_OFF in engine.code.index().notes
        assert {hit.symbol.kind for hit in engine.code.search("rounded checkout").definitions} == {"block"}
        assert doctor.code(engine)[2] == [languages.OUTLINES_OFF]
    hide_tree_sitter(False)
    with foveate.open(tmp_path, code=True, personal=False) as engine:
        assert not engine.code.index().notes
        assert "function" in {hit.symbol.kind for hit in engine.code.search("rounded checkout").definitions}
