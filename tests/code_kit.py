"""A small repository for tests of the code graph and of outlines, and its index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from foveate.code.index import CodeIndex
from foveate.code.index_reader import IndexReader
from foveate.code.model import MODULE, Symbol

SHOP_FILES = {
    "shop/base.py": """
class Stored:
    def persist(self):
        return write_row(self)

def write_row(row):
    return row
""",
    "shop/cart.py": """
from .base import Stored
from .prices import price_with_tax

LIMIT = 10

class Cart(Stored):
    def add_item(self, item):
        self.items.append(item)

    def total_price(self):
        return sum(price_with_tax(item) for item in self.items)

def load_cart(user):
    return Cart()
""",
    "shop/prices.py": """
def price_with_tax(item):
    return item.price * tax_rate(item.country)

def tax_rate(country):
    return 1
""",
    "shop/views.py": """
from .cart import load_cart

def checkout_page(request):
    return load_cart(request.user).total_price()
""",
    "shop/unrelated.py": """
def rotate_logs(folder):
    return compress_file(folder)

def compress_file(path):
    return path
""",
    "tests/test_cart.py": """
from shop.cart import load_cart

def test_total_of_an_empty_cart():
    assert load_cart(None).total_price() == 0
""",
}


class Code:
    """The index of a few files, and their definitions by qualified name."""

    def __init__(self, reader: IndexReader) -> None:
        self.reader = reader
        self.symbols: dict[int, Symbol] = {
            symbol.id: symbol for path in reader.file_table().by_path for symbol in reader.symbols_in_file(path)
        }

    def id(self, qualified_name: str, path: str = "") -> int:
        return next(
            id
            for id, symbol in self.symbols.items()
            if symbol.qualified_name == qualified_name and symbol.path.startswith(path)
        )

    def names(self, ids: Mapping[int, float]) -> list[str]:
        return [self.symbols[id].qualified_name for id in ids if self.symbols[id].kind != MODULE]


@contextmanager
def open_code(files: Mapping[str, str]) -> Iterator[Code]:
    """Index files in a temporary folder."""
    with TemporaryDirectory() as folder:
        root = Path(folder, "code")
        root.mkdir()
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")
        with closing(CodeIndex(root, Path(folder, "code.db"))) as index:
            index.refresh()
            with index.open_reader() as reader:
                yield Code(reader)
