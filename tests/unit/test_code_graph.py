"""Symbol graph: what matters around the seeds, and what stands beside a definition."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

import pytest

from foveate.code.graph import MAX_EXPANDED, name_specificity, neighbors, rank
from foveate.code.model import Role, Symbol


class Memory:
    """An index of a few Python files, held in memory; it counts what it is asked."""

    def __init__(self, files: Mapping[str, str], roles: Mapping[str, Role] | None = None) -> None:
        self.all: dict[int, Symbol] = {}
        self.used: dict[int, Counter[str]] = {}
        self.imported: dict[str, tuple[str, ...]] = {}
        self.asked: Counter[str] = Counter()
        self.expanded: list[int] = []
        for path, text in files.items():
            role: Role = (roles or {}).get(path) or ("test" if path.startswith("tests/") else "source")
            tree = ast.parse(text)
            self.imported[path] = tuple(
                "." * node.level + (node.module or "") for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
            )
            rest = self._put(path, role, 1, text.count("\n") + 1)
            self._define(tree, path, role, None, "")
            for child in tree.body:
                if not isinstance(child, ast.ClassDef | ast.FunctionDef):
                    self._refer(child, rest)

    def _put(  # what stands outside of all definitions has no name
        self, path: str, role: Role, line: int, end: int, name: str = "", prefix: str = "", kind: str = "module",
        signature: str = "", doc: str = "", parent: int | None = None,
    ) -> int:  # fmt: skip
        id = len(self.all) + 1
        self.all[id] = Symbol(id, path, name, prefix + name, kind, line, end, signature, doc, parent, role)
        self.used[id] = Counter()
        return id

    def _define(self, node: ast.AST, path: str, role: Role, parent: int | None, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if (
                isinstance(child, ast.Assign)
                and isinstance(child.targets[0], ast.Name)
                and not isinstance(node, ast.FunctionDef)
            ):
                name, kind, signature = child.targets[0].id, "constant", ast.unparse(child)
            elif isinstance(child, ast.ClassDef):
                bases = ", ".join(ast.unparse(base) for base in child.bases)
                name, kind, signature = child.name, "class", f"class {child.name}({bases})".removesuffix("()")
            elif isinstance(child, ast.FunctionDef):
                returns = f" -> {ast.unparse(child.returns)}" if child.returns else ""
                name, kind = child.name, "method" if isinstance(node, ast.ClassDef) else "function"
                signature = f"def {child.name}({ast.unparse(child.args)}){returns}"
            else:
                if parent is not None:
                    self._refer(child, parent)
                continue
            doc = ast.get_docstring(child) or "" if isinstance(child, ast.ClassDef | ast.FunctionDef) else ""
            id = self._put(path, role, child.lineno, child.end_lineno or 0, name, prefix, kind, signature, doc, parent)
            self._define(child, path, role, id, f"{prefix}{name}.")

    def _refer(self, node: ast.AST, by: int) -> None:
        if isinstance(node, ast.Name):
            self.used[by][node.id] += 1
        elif isinstance(node, ast.Attribute):
            self.used[by][node.attr] += 1
        for child in ast.iter_child_nodes(node):
            self._refer(child, by)

    def id(self, qualified: str, path: str = "") -> int:
        return next(
            id for id, symbol in self.all.items() if symbol.qualified_name == qualified and symbol.path.startswith(path)
        )

    def symbols(self, ids: Iterable[int]) -> dict[int, Symbol]:
        self.asked["symbols"] += 1
        return {id: self.all[id] for id in ids if id in self.all}

    def symbols_by_name(self, names: Iterable[str]) -> dict[str, list[Symbol]]:
        self.asked["symbols_by_name"] += 1
        found: defaultdict[str, list[Symbol]] = defaultdict(list)
        wanted = set(names)
        for symbol in self.all.values():
            if symbol.name in wanted:
                found[symbol.name].append(symbol)
        return dict(found)

    def references_from(self, ids: Iterable[int]) -> dict[int, Mapping[str, int]]:
        self.asked["references_from"] += 1
        found: dict[int, Mapping[str, int]] = {id: self.used[id] for id in ids}
        self.expanded += found
        return found

    def references_to(self, names: Iterable[str]) -> dict[str, Mapping[int, int]]:
        self.asked["references_to"] += 1
        return {name: {id: used[name] for id, used in self.used.items() if name in used} for name in names}

    def imports(self, path: str) -> tuple[str, ...]:
        return self.imported[path]

    def most_referenced(self, limit: int) -> list[tuple[Symbol, float]]:
        files = {
            symbol: len({self.all[id].path for id, used in self.used.items() if symbol.name in used} - {symbol.path})
            for symbol in self.all.values()
        }
        return sorted(((symbol, float(n)) for symbol, n in files.items() if n), key=lambda each: (-each[1], each[0].id))[
            :limit
        ]

    def symbols_in_file(self, path: str) -> list[Symbol]:
        return sorted((symbol for symbol in self.all.values() if symbol.path == path), key=lambda symbol: symbol.start_line)


SHOP = {
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


@pytest.fixture
def shop() -> Memory:
    return Memory(SHOP)


def names(symbols: Memory, ranks: Mapping[int, float]) -> list[str]:
    return [symbols.all[id].qualified_name for id in ranks]


def test_weight_flows_to_what_a_seed_uses_and_to_who_uses_it_and_no_further(shop: Memory) -> None:
    ranks = rank(shop, {shop.id("Cart.total_price"): 1.0})
    found = names(shop, ranks)
    assert found[0] == "Cart.total_price"
    assert {"price_with_tax", "Cart", "checkout_page", "Stored"} <= set(found)
    assert ranks[shop.id("price_with_tax")] > ranks[shop.id("tax_rate")] > 0  # one step away, two steps away
    assert ranks[shop.id("price_with_tax")] > ranks[shop.id("checkout_page")]  # callees before callers
    assert not {"rotate_logs", "compress_file"} & set(found)


def test_heavier_seeds_pull_the_ranking_towards_them(shop: Memory) -> None:
    cart, logs = shop.id("load_cart"), shop.id("rotate_logs")
    mostly_cart, mostly_logs = rank(shop, {cart: 9.0, logs: 1.0}), rank(shop, {cart: 1.0, logs: 9.0})
    assert mostly_cart[shop.id("Cart")] > mostly_cart[shop.id("compress_file")]
    assert mostly_logs[shop.id("Cart")] < mostly_logs[shop.id("compress_file")]


def test_a_test_receives_less_than_source_that_does_the_same(shop: Memory) -> None:
    ranks = rank(shop, {shop.id("load_cart"): 1.0})
    assert 0 < ranks[shop.id("test_total_of_an_empty_cart")] < ranks[shop.id("checkout_page")] / 2


@pytest.mark.parametrize("role", ["vendored", "generated", "example", "test"])
def test_what_a_file_is_for_decides_how_much_it_receives(role: Role) -> None:
    body = "def shared_helper():\n    return 1"
    files = {"app/a.py": "def entry_point():\n    return shared_helper()", "lib/b.py": body, "lib/c.py": body}
    symbols = Memory(files, roles={"app/a.py": "test", "lib/b.py": role})
    ranks = rank(symbols, {symbols.id("entry_point"): 1.0})
    assert 0 < ranks[symbols.id("shared_helper", "lib/b")] < ranks[symbols.id("shared_helper", "lib/c")] / 2


def test_ranks_run_from_one_downwards_and_are_the_same_each_time(shop: Memory) -> None:
    seeds = {shop.id("Cart"): 1.0, shop.id("tax_rate"): 0.5}
    ranks = rank(shop, seeds)
    weights = list(ranks.values())
    assert weights[0] == 1.0
    assert weights == sorted(weights, reverse=True)
    assert list(rank(Memory(SHOP), dict(reversed(seeds.items()))).items()) == list(ranks.items())


@pytest.mark.parametrize("seeds", [{}, {999: 1.0}])
def test_without_a_seed_that_exists_the_most_used_definitions_are_the_centre(shop: Memory, seeds: dict[int, float]) -> None:
    top = names(shop, rank(shop, seeds))[:4]
    assert "Cart" in top
    assert "rotate_logs" not in top


def test_an_empty_index_has_no_ranks() -> None:
    assert rank(Memory({}), {}) == {}


@pytest.mark.parametrize(
    ("path", "imports", "meant"),
    [
        ("app/main.py", "from app.b import resolve_host", "app/b.py"),
        ("app/main.py", "from .b import resolve_host", "app/b.py"),
        ("app/deep/main.py", "from ..b import resolve_host", "app/b.py"),
        ("app/main.py", "def resolve_host(): pass", "app/main.py"),
        ("app/main.py", "", "app/b.py"),  # its neighbour, rather than one in another folder
    ],
)
def test_of_several_namesakes_the_one_in_the_file_then_imported_then_near_is_meant(
    path: str, imports: str, meant: str
) -> None:
    files = {f"{folder}.py": "def resolve_host():\n    return 1" for folder in ("app/b", "net/dns", "net/hosts")}
    symbols = Memory(files | {path: f"{imports}\n\ndef connect_peer():\n    return resolve_host()\n"})
    ranks = rank(symbols, {symbols.id("connect_peer"): 1.0})
    best = max((id for id in ranks if symbols.all[id].name == "resolve_host"), key=lambda id: ranks[id])
    assert symbols.all[best].path == meant


def test_code_outside_of_definitions_leads_to_what_it_uses_but_is_no_neighbour() -> None:
    symbols = Memory({"run.py": "from app import start_server\nstart_server()", "app.py": "def start_server(): pass"})
    ranks = rank(symbols, {symbols.id("", "run.py"): 1.0})
    assert ranks[symbols.id("start_server")] > 0
    assert neighbors(symbols, symbols.id("start_server")) == []


def test_a_name_that_is_defined_all_over_leads_nowhere() -> None:
    files = {f"pkg/m{n}.py": "def on_ready():\n    return 1" for n in range(20)}
    symbols = Memory(
        files | {"app.py": "def boot_system():\n    on_ready()\n    start_engine()\n\ndef start_engine(): pass"}
    )
    assert names(symbols, rank(symbols, {symbols.id("boot_system"): 1.0})) == ["boot_system", "start_engine"]


def test_what_only_tests_define_is_not_meant_by_source() -> None:
    doubles = {f"tests/t{n}.py": "class Gateway:\n    pass" for n in range(20)}
    files = doubles | {"pay.py": "class Gateway:\n    pass", "main.py": "def charge_card():\n    return Gateway()"}
    symbols = Memory(files)
    ranks = rank(symbols, {symbols.id("charge_card"): 1.0})
    assert {symbols.all[id].path for id in ranks} == {"main.py", "pay.py"}


@pytest.mark.slow
def test_the_index_is_asked_in_batches_and_a_limited_part_of_it_is_walked() -> None:
    chain = "\n".join(f"def step_number_{n}():\n    step_number_{n + 1}(); step_number_{n + 2}()" for n in range(3000))
    symbols = Memory({"chain.py": chain})
    rank(symbols, dict.fromkeys(range(2, 1002), 1.0))
    assert MAX_EXPANDED - 20 <= len(symbols.expanded) == len(set(symbols.expanded)) <= MAX_EXPANDED
    assert symbols.asked.total() <= 48


@pytest.mark.parametrize(
    ("clear", "vague"),
    [
        ("SessionMiddleware", "get"),
        ("resolve_host", "_resolve_host"),
        ("resolve", "__init__"),
        ("checkout", "run"),
        ("total", "x"),
        ("price_with_tax", "price"),
    ],
)
def test_a_long_public_name_says_more_than_a_short_private_or_common_one(clear: str, vague: str) -> None:
    assert name_specificity(clear) > name_specificity(vague)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        ("load_cart", {("checkout_page", "caller"), ("Cart", "callee"), ("test_total_of_an_empty_cart", "test")}),
        ("Cart", {("Stored", "base"), ("load_cart", "caller")}),
        ("Stored", {("Cart", "subclass")}),
        ("tax_rate", {("price_with_tax", "caller")}),
    ],
)
def test_neighbours_say_what_they_are(shop: Memory, of: str, expected: set[tuple[str, str]]) -> None:
    found = neighbors(shop, shop.id(of))
    assert {(neighbour.symbol.qualified_name, neighbour.relation) for neighbour in found} == expected


def test_the_kinds_of_neighbours_take_turns() -> None:
    calls = "\n".join(f"def caller_number_{n}():\n    return parse_header()" for n in range(5))
    symbols = Memory({"a.py": f"{calls}\ndef parse_header():\n    return read_line()\n\ndef read_line(): pass"})
    assert [neighbour.relation for neighbour in neighbors(symbols, symbols.id("parse_header"), 3)] == [
        "caller",
        "callee",
        "caller",
    ]


def test_an_unknown_definition_has_no_neighbours(shop: Memory) -> None:
    assert neighbors(shop, 999) == []
