"""What a question finds: the right definitions and files first, tests and documents behind, nothing where nothing fits."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from foveate.code import query
from foveate.code.index import CodeIndex
from foveate.code.search import CALLER_FRAME_DECAY, CodeHits, search

FILES = {
    "shop/cart.py": '''"""What a customer wants to buy."""


class Cart:
    def __init__(self, items=()):
        self.items = list(items)

    def total(self):
        """The price of everything."""
        return sum(item.price for item in self.items)

    def checkout(self, voucher):
        """Pay, with a voucher or without."""
        return redeem(voucher, self.total())
''',
    "shop/voucher.py": '''def redeem(voucher, price):
    """Take the discount of a voucher off a price."""
    if voucher.expired:
        raise ValueError("this voucher is no longer valid")
    return price - voucher.discount


def expiry(voucher):
    return voucher.until
''',
    "shop/stock.py": '''class Shelf:
    def total(self):
        """How many pieces lie on the shelf."""
        return sum(self.pieces)


def reorder(shelf, supplier):
    """Order pieces from a supplier when few are left."""
    return supplier.order(shelf)
''',
    "shop/api/__init__.py": "from shop.cart import Cart\n",
    "shop/api/cart.py": '''def get_cart(request):
    """The cart of a session."""
    return request.session
''',
    "tests/test_voucher.py": '''def test_redeem_takes_the_discount_of_a_voucher_off_a_price():
    """Take the discount of a voucher off a price."""
    assert redeem(voucher, price)
''',
    "docs/voucher.md": "# Vouchers\n\nA voucher takes a discount off the price. An expired voucher cannot be redeemed.\n",
    "CHANGELOG.md": "# Changes\n\n- Redeem an expired voucher: the discount of a voucher off a price is refused.\n",
}

Ask = Callable[[str], CodeHits]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    root = tmp_path / "repo"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    with closing(CodeIndex(root, tmp_path / "index.db")) as index:
        index.refresh()
        yield lambda text: search(index.open_reader(), query.parse_query(text))


def names(hits: CodeHits) -> list[str]:
    return [f"{hit.symbol.path}::{hit.symbol.qualified_name}" for hit in hits.definitions]


def paths(hits: CodeHits) -> list[str]:
    return [hit.file.path for hit in hits.files]


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("how is the discount of a voucher taken off?", "shop/voucher.py::redeem"),
        ("when are pieces ordered from a supplier", "shop/stock.py::reorder"),
        ("Cart.total counts items twice", "shop/cart.py::Cart.total"),
        ("Shelf.total is off by one", "shop/stock.py::Shelf.total"),
        ("shop.stock.total is off by one", "shop/stock.py::Shelf.total"),
        ("`get_cart` raises for a new session", "shop/api/cart.py::get_cart"),
        ('raises "this voucher is no longer valid"', "shop/voucher.py::redeem"),
    ],
)
def test_the_best_definition_comes_first(ask: Ask, text: str, best: str) -> None:
    found = ask(text)
    assert names(found)[0] == best
    assert paths(found)[0] == best.partition("::")[0]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Cart.total is off by one", {"shop/cart.py::Cart.total"}),
        ("shop.stock.total is off by one", {"shop/stock.py::Shelf.total"}),
        ("Basket.total is off by one", {"shop/cart.py::Cart.total", "shop/stock.py::Shelf.total"}),
    ],
)
def test_a_dotted_name_means_the_method_of_its_class_else_that_of_its_module_else_any(
    ask: Ask, text: str, named: set[str]
) -> None:
    totals = [hit for hit in ask(text).definitions if hit.symbol.name == "total"]
    assert {f"{hit.symbol.path}::{hit.symbol.qualified_name}" for hit in totals if hit.features.get("named")} == named


def test_relevance_falls_from_the_best_to_the_worst(ask: Ask) -> None:
    found = ask("redeem a voucher")
    for hits in (found.definitions, found.files):
        worths = [hit.relevance for hit in hits]
        assert worths == sorted(worths, reverse=True)
        assert 0 < worths[-1] <= worths[0] <= 1


def test_a_question_about_something_else_finds_nothing_good(ask: Ask) -> None:
    assert names(ask("zebra migration")) == []
    weak = ask("how many pieces of bread does a hungry zebra eat on a rainy tuesday in november")
    assert max((hit.relevance for hit in weak.definitions), default=0.0) < 0.3


@pytest.mark.parametrize(
    ("text", "behind", "asked_for"),
    [
        ("discount of a voucher off a price", "tests/test_voucher.py", "test for the discount of a voucher off a price"),
        ("discount of a voucher off a price", "docs/voucher.md", "docs of the discount of a voucher off a price"),
        ("redeem an expired voucher", "CHANGELOG.md", "docs/voucher.md and CHANGELOG.md on an expired voucher to redeem"),
    ],
)
def test_tests_documents_and_changelogs_come_behind_unless_asked_for(
    ask: Ask, text: str, behind: str, asked_for: str
) -> None:
    assert paths(ask(text))[0] == "shop/voucher.py"

    def worth(text: str) -> float:
        return next(hit.relevance for hit in ask(text).files if hit.file.path == behind)

    assert worth(text) < worth(asked_for)


def test_a_report_asks_for_tests_in_its_title_only(ask: Ask) -> None:
    body = "\n\nI ran the test suite and then a test of my own.\n```python\nredeem(voucher, price)\n```\n"
    in_body, in_title = ask("discount of a voucher" + body), ask("test of the discount of a voucher" + body)

    def worth(found: CodeHits) -> float:
        return next(hit.relevance for hit in found.files if hit.file.path == "tests/test_voucher.py")

    assert worth(in_body) < worth(in_title)


def test_a_named_class_lifts_its_members_and_its_constructor_most(ask: Ask) -> None:
    found = ask("It should be impossible to make a `Cart` of nothing")
    order = names(found)
    assert order[0] == "shop/cart.py::Cart"
    assert order.index("shop/cart.py::Cart.__init__") < order.index("shop/cart.py::Cart.total")
    assert "named" in next(hit.features for hit in found.definitions if hit.symbol.qualified_name == "Cart.checkout")


def test_a_named_file_wins_over_its_namesakes(ask: Ask) -> None:
    assert paths(ask("see shop/api/cart.py"))[0] == "shop/api/cart.py"
    assert paths(ask("see shop/cart.py"))[0] == "shop/cart.py"


def test_frames_of_ours_count_the_innermost_most(ask: Ask) -> None:
    trace = """Paying fails

```
Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in main
  File "/srv/lib/site-packages/shop/cart.py", line 14, in checkout
  File "/srv/lib/site-packages/shop/voucher.py", line 999, in expiry
  File "/usr/lib/python3/datetime.py", line 1, in now
```
"""
    found = ask(trace)
    traced = {hit.symbol.qualified_name: hit.features.get("traced") for hit in found.definitions[:2]}
    assert traced == {"expiry": 1.0, "Cart.checkout": CALLER_FRAME_DECAY}
    assert {hit.file.path for hit in found.files if "traced" in hit.features} == {"shop/voucher.py", "shop/cart.py"}


def test_a_frame_without_a_name_is_found_by_its_line(ask: Ask) -> None:
    found = ask("it stops there:\nshop/stock.py:9: no supplier")
    assert names(found)[0] == "shop/stock.py::reorder"


def test_an_empty_index_and_an_empty_question_find_nothing(ask: Ask, tmp_path: Path) -> None:
    assert ask("") == CodeHits()
    (tmp_path / "empty").mkdir()
    with closing(CodeIndex(tmp_path / "empty", tmp_path / "empty.db")) as index:
        index.refresh()
        assert search(index.open_reader(), query.parse_query("voucher")) == CodeHits()


def test_no_more_is_given_than_asked_for(ask: Ask, tmp_path: Path) -> None:
    with closing(CodeIndex(tmp_path / "repo", tmp_path / "again.db")) as index:
        index.refresh()
        found = search(index.open_reader(), query.parse_query("redeem a voucher for a price"), files=1, definitions=2)
    assert (len(found.files), len(found.definitions)) == (1, 2)
    everything = ask("redeem a voucher for a price")
    assert found.definitions == everything.definitions[:2]


# --- ties, and names that several definitions share ---------------------------------------------------------

VOUCHER = "def expiry(voucher):\n    return voucher.until\n"
"""The same definition in several files: what remains to tell them apart is where they stand."""


def write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    root.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def find(root: Path, text: str) -> CodeHits:
    with closing(CodeIndex(root, root.with_suffix(".db"))) as index:
        index.refresh()
        with index.open_reader() as reader:
            return search(reader, query.parse_query(text))


def test_equals_come_in_order_of_their_paths_and_not_in_the_order_in_which_they_were_indexed(root: Path) -> None:
    for path in ("shop/b.py", "shop/c.py", "shop/a.py"):
        write(root, {path: VOUCHER})
        find(root, "")
    hits = find(root, "when does a voucher expire: expiry")
    assert paths(hits) == ["shop/a.py", "shop/b.py", "shop/c.py"]
    assert names(hits) == [f"shop/{name}.py::expiry" for name in "abc"]


def test_equals_in_one_file_come_in_order_of_their_lines(root: Path) -> None:
    write(root, {"shop/a.py": f"{VOUCHER}\n\n{VOUCHER}\n\n{VOUCHER}"})
    lines = [hit.symbol.start_line for hit in find(root, "voucher until").definitions if hit.symbol.name]
    assert lines == [1, 5, 9]


@pytest.mark.parametrize(("number", "vote"), [(1, 1.0), (4, 0.5), (15, 0.2582), (16, 0.0)])
def test_a_name_that_several_definitions_share_votes_less_for_each_and_for_none_of_very_many(
    root: Path, number: int, vote: float
) -> None:
    write(root, {f"shop/part_{n}.py": VOUCHER for n in range(number)})
    votes = [hit.features.get("named", 0.0) for hit in find(root, "expiry").definitions]
    assert votes == [vote] * number


def test_a_name_of_forty_definitions_is_looked_up_and_one_of_more_is_not(root: Path) -> None:
    for number in (40, 41):
        write(root, {f"shop/part_{n}.py": VOUCHER for n in range(number)})
        with closing(CodeIndex(root, root.with_suffix(".db"))) as index:
            index.refresh()
            found = index.open_reader().symbols_by_name(["expiry"])
        assert len(found.get("expiry", ())) == (40 if number == 40 else 0)
