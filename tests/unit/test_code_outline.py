"""Outlines: the parts of the repository map, one for each file, at three lengths."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from code_kit import SHOP_FILES, Code, open_code
from foveate.code.graph import rank
from foveate.code.outline import MAX_LINES, MAX_SIGNATURE_CHARS, MIN_LINES, SUMMARY_LINES, directory_outlines, outlines


@pytest.fixture(scope="module")
def shop() -> Iterator[Code]:
    with open_code(SHOP_FILES) as code:
        yield code


def test_a_class_stands_once_above_its_methods_in_order_of_lines(shop: Code) -> None:
    ranks = {shop.id("load_cart"): 1.0, shop.id("Cart.total_price"): 0.9, shop.id("Cart.add_item"): 0.5}
    (cart,) = outlines(shop.reader, ranks)
    assert cart.full.splitlines() == [
        "shop/cart.py",
        "  class Cart(Stored)",
        "    def add_item(self, item)",
        "    def total_price(self)",
        "  def load_cart(user)",
    ]
    assert [shop.symbols[id].name for id in cart.shown_ids] == ["Cart", "add_item", "total_price", "load_cart"]
    assert cart.micro == "shop/cart.py: load_cart, Cart"


def test_files_come_by_rank_and_one_definition_does_not_lose_to_many_weak_ones(shop: Code) -> None:
    weak = {symbol.id: 0.1 for symbol in shop.reader.symbols_in_file("shop/cart.py")}
    found = outlines(shop.reader, weak | {shop.id("tax_rate"): 1.0, shop.id("checkout_page"): 0.5})
    assert [outline.path for outline in found] == ["shop/prices.py", "shop/views.py", "shop/cart.py"]
    assert found[0].rank == 1.0
    assert [outline.path for outline in outlines(shop.reader, weak | {shop.id("tax_rate"): 1.0}, max_files=1)] == [
        "shop/prices.py"
    ]


def test_a_class_that_was_found_alone_shows_its_members(shop: Code) -> None:
    cart, base = outlines(shop.reader, {shop.id("Cart"): 1.0, shop.id("Stored"): 0.02})
    assert "    def total_price(self)" in cart.full
    assert "load_cart" not in cart.full
    assert base.full == "shop/base.py\n  class Stored"  # further out the name is enough


@pytest.mark.parametrize(("weight", "shown"), [(1.0, True), (0.2, False)])
def test_a_constant_is_shown_only_when_it_ranks_high(shop: Code, weight: float, shown: bool) -> None:
    (cart,) = outlines(shop.reader, {shop.id("LIMIT"): weight, shop.id("load_cart"): 1.0})
    assert ("  LIMIT = 10" in cart.full) is shown


def test_each_length_is_shorter_and_the_best_definitions_stay() -> None:
    methods = "\n".join(f"    def method_number_{n}(self):\n        pass" for n in range(60))
    with open_code({"big.py": f"class Big:\n{methods}\n"}) as code:
        ranks = {code.id(f"Big.method_number_{n}"): 1.0 - n / 100 for n in range(60)}
        (big,) = outlines(code.reader, ranks)
        assert len(big.full.splitlines()) == 1 + MAX_LINES
        assert len(big.summary.splitlines()) == 1 + SUMMARY_LINES
        assert set(big.summary.splitlines()) < set(big.full.splitlines())
        assert "method_number_0(" in big.summary
        assert big.micro == "big.py: Big"


def test_a_lighter_file_gets_fewer_lines() -> None:
    body = "\n".join(f"def function_{n}(): pass" for n in range(40))
    with open_code({"heavy.py": body, "light.py": body}) as code:
        heavy, light = outlines(
            code.reader, {symbol.id: 1.0 if symbol.path == "heavy.py" else 0.05 for symbol in code.symbols.values()}
        )
        assert (len(heavy.full.splitlines()), len(light.full.splitlines())) == (1 + MAX_LINES, 1 + MIN_LINES)


def test_long_signatures_are_cut_and_never_broken_over_lines() -> None:
    arguments = ",\n    ".join(f"argument_{n}=None" for n in range(30))
    with open_code({"wide.py": f"def wide({arguments}): pass"}) as code:
        (outline,) = outlines(code.reader, {code.id("wide"): 1.0})
        (line,) = outline.full.splitlines()[1:]
        assert line.startswith("  def wide(argument_0=None, argument_1=None")
        assert line.endswith("…")
        assert len(line.strip()) <= MAX_SIGNATURE_CHARS


def test_a_micro_line_names_as_many_as_fit() -> None:
    body = "\n".join(f"def a_rather_long_function_name_{n}(): pass" for n in range(9))
    with open_code({"pkg/module.py": body}) as code:
        (outline,) = outlines(code.reader, {symbol.id: 1.0 for symbol in code.symbols.values()})
        assert outline.micro == "pkg/module.py: a_rather_long_function_name_0, a_rather_long_function_name_1"


def test_a_named_file_appears_even_without_a_rank(shop: Code) -> None:
    ranks = {shop.id("load_cart"): 1.0}
    found = {
        outline.path: outline for outline in outlines(shop.reader, ranks, files={"README.md": 0.5, "shop/prices.py": 0.4})
    }
    assert found["README.md"].full == found["README.md"].micro == "README.md"
    assert "  def tax_rate(country)" in found["shop/prices.py"].full
    assert list(found) == ["shop/cart.py", "README.md", "shop/prices.py"]


def test_a_file_found_by_what_stands_outside_of_its_definitions_shows_them(shop: Code) -> None:
    (prices,) = outlines(shop.reader, {shop.id("", "shop/prices.py"): 1.0})
    assert prices.full.splitlines() == ["shop/prices.py", "  def price_with_tax(item)", "  def tax_rate(country)"]


def test_the_headings_of_a_document_are_one_line() -> None:
    with open_code({"GUIDE.md": "# Install\n\n# Usage\n"}) as code:
        (guide,) = outlines(code.reader, {code.id("Install"): 1.0, code.id("Usage"): 0.9})
        assert guide.full == guide.summary == guide.micro == "GUIDE.md: Install, Usage"


def test_nothing_ranked_gives_no_outlines(shop: Code) -> None:
    assert outlines(shop.reader, {}) == []


def test_the_map_of_a_question_has_the_asked_file_first_and_leaves_strangers_out(shop: Code) -> None:
    found = outlines(shop.reader, rank(shop.reader, {shop.id("Cart.total_price"): 1.0}))
    assert found[0].path == "shop/cart.py"
    assert "shop/unrelated.py" not in {outline.path for outline in found}


def test_without_definitions_folders_are_listed_with_counts() -> None:
    found = directory_outlines(["a/x.sql", "a/y.sql", "a/z.csv", "b/readme", "top.txt"])
    assert [outline.summary for outline in found] == [
        "a/ (3 files, 2 sql, 1 csv)",
        "./ (1 file, 1 txt)",
        "b/ (1 file)",
    ]
    assert found[0].full.splitlines()[1:] == ["  x.sql", "  y.sql", "  z.csv"]
    assert found[0].micro == "a/: 3 files"


def test_folders_are_folded_into_those_above_them_until_they_fit() -> None:
    paths = [f"data/{n}/part/{m}.csv" for n in range(30) for m in range(3)] + ["etc/a/x.ini", "etc/b/x.ini"]
    found = directory_outlines(paths, max_folders=10)
    assert [(outline.path, outline.micro) for outline in found] == [
        ("data/", "data/: 90 files"),
        ("etc/a/", "etc/a/: 1 file"),
        ("etc/b/", "etc/b/: 1 file"),
    ]
    assert sum(int(outline.micro.split()[-2]) for outline in found) == len(paths)
    assert found[0].full.splitlines()[-1] == "  ... 82 more"


def test_no_files_no_structure() -> None:
    assert directory_outlines([]) == []
