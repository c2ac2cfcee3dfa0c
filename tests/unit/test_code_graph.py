"""Symbol graph: what matters around the seeds, and what stands beside a definition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from code_kit import SHOP_FILES, Code, open_code
from foveate.code.graph import MAX_EXPANDED, name_specificity, neighbors, rank


@pytest.fixture(scope="module")
def shop() -> Iterator[Code]:
    with open_code(SHOP_FILES) as code:
        yield code


def test_weight_flows_to_what_a_seed_uses_and_to_who_uses_it_and_no_further(shop: Code) -> None:
    ranks = rank(shop.reader, {shop.id("Cart.total_price"): 1.0})
    found = shop.names(ranks)
    assert found[0] == "Cart.total_price"
    assert {"price_with_tax", "Cart", "checkout_page", "Stored"} <= set(found)
    assert ranks[shop.id("price_with_tax")] > ranks[shop.id("tax_rate")] > 0  # one step away, two steps away
    assert ranks[shop.id("price_with_tax")] > ranks[shop.id("checkout_page")]  # callees before callers
    assert not {"rotate_logs", "compress_file"} & set(found)


def test_heavier_seeds_pull_the_ranking_towards_them(shop: Code) -> None:
    cart, logs = shop.id("load_cart"), shop.id("rotate_logs")
    mostly_cart, mostly_logs = rank(shop.reader, {cart: 9.0, logs: 1.0}), rank(shop.reader, {cart: 1.0, logs: 9.0})
    assert mostly_cart[shop.id("Cart")] > mostly_cart[shop.id("compress_file")]
    assert mostly_logs[shop.id("Cart")] < mostly_logs[shop.id("compress_file")]


def test_a_test_receives_less_than_source_that_does_the_same(shop: Code) -> None:
    ranks = rank(shop.reader, {shop.id("load_cart"): 1.0})
    assert 0 < ranks[shop.id("test_total_of_an_empty_cart")] < ranks[shop.id("checkout_page")] / 2


@pytest.mark.parametrize(("folder", "role"), [
    ("_vendor", "vendored"), ("generated", "generated"), ("examples", "example"), ("tests", "test"),
])  # fmt: skip
def test_what_a_file_is_for_decides_how_much_it_receives(folder: str, role: str) -> None:
    body = "def shared_helper():\n    return 1"
    files = {"tests/a.py": "def entry_point():\n    return shared_helper()", f"{folder}/b.py": body, "lib/c.py": body}
    with open_code(files) as code:
        ranks = rank(code.reader, {code.id("entry_point"): 1.0})
        other = code.id("shared_helper", folder)
        assert code.symbols[other].role == role
        assert 0 < ranks[other] < ranks[code.id("shared_helper", "lib/c")] / 2


def test_ranks_run_from_one_downwards_and_are_the_same_each_time(shop: Code) -> None:
    seeds = {shop.id("Cart"): 1.0, shop.id("tax_rate"): 0.5}
    ranks = rank(shop.reader, seeds)
    weights = list(ranks.values())
    assert weights[0] == 1.0
    assert weights == sorted(weights, reverse=True)
    with open_code(SHOP_FILES) as again:
        assert list(rank(again.reader, dict(reversed(seeds.items()))).items()) == list(ranks.items())


@pytest.mark.parametrize("seeds", [{}, {999: 1.0}])
def test_without_a_seed_that_exists_the_most_used_definitions_are_the_centre(shop: Code, seeds: dict[int, float]) -> None:
    top = shop.names(rank(shop.reader, seeds))[:4]
    assert "Cart" in top
    assert "rotate_logs" not in top


def test_an_empty_index_has_no_ranks() -> None:
    with open_code({}) as code:
        assert rank(code.reader, {}) == {}


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
    with open_code(files | {path: f"{imports}\n\ndef connect_peer():\n    return resolve_host()\n"}) as code:
        ranks = rank(code.reader, {code.id("connect_peer"): 1.0})
        best = max((id for id in ranks if code.symbols[id].name == "resolve_host"), key=lambda id: ranks[id])
        assert code.symbols[best].path == meant


def test_code_outside_of_definitions_leads_to_what_it_uses_but_is_no_neighbour() -> None:
    files = {"run.py": "from app import start_server\nstart_server()", "app.py": "def start_server(): pass"}
    with open_code(files) as code:
        ranks = rank(code.reader, {code.id("", "run.py"): 1.0})
        assert ranks[code.id("start_server")] > 0
        assert neighbors(code.reader, code.id("start_server")) == []


def test_a_name_that_is_defined_all_over_leads_nowhere() -> None:
    files = {f"pkg/m{n}.py": "def on_ready():\n    return 1" for n in range(20)}
    app = "def boot_system():\n    on_ready()\n    start_engine()\n\ndef start_engine(): pass"
    with open_code(files | {"app.py": app}) as code:
        assert code.names(rank(code.reader, {code.id("boot_system"): 1.0})) == ["boot_system", "start_engine"]


def test_what_only_tests_define_is_not_meant_by_source() -> None:
    doubles = {f"tests/t{n}.py": "class Gateway:\n    pass" for n in range(20)}
    files = doubles | {"pay.py": "class Gateway:\n    pass", "main.py": "def charge_card():\n    return Gateway()"}
    with open_code(files) as code:
        ranks = rank(code.reader, {code.id("charge_card"): 1.0})
        assert {code.symbols[id].path for id in ranks} == {"main.py", "pay.py"}


class CountingReader:
    """A reader that counts its lookups."""

    def __init__(self, code: Code) -> None:
        self._reader = code.reader
        self.lookups: Counter[str] = Counter()
        self.expanded: list[int] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._reader, name)

        def counted(*arguments: Any) -> Any:
            self.lookups[name] += 1
            if name == "references_from":
                self.expanded += arguments[0]
            return method(*arguments)

        return counted


@pytest.mark.slow
def test_the_index_is_asked_in_batches_and_a_limited_part_of_it_is_walked() -> None:
    chain = "\n".join(f"def step_number_{n}():\n    step_number_{n + 1}(); step_number_{n + 2}()" for n in range(3000))
    with open_code({"chain.py": chain}) as code:
        reader: Any = CountingReader(code)
        rank(reader, {code.id(f"step_number_{n}"): 1.0 for n in range(1000)})
    assert MAX_EXPANDED - 20 <= len(reader.expanded) == len(set(reader.expanded)) <= MAX_EXPANDED
    assert reader.lookups.total() <= 48


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
def test_neighbours_say_what_they_are(shop: Code, of: str, expected: set[tuple[str, str]]) -> None:
    found = neighbors(shop.reader, shop.id(of))
    assert {(neighbour.symbol.qualified_name, neighbour.relation) for neighbour in found} == expected


def test_the_kinds_of_neighbours_take_turns() -> None:
    calls = "\n".join(f"def caller_number_{n}():\n    return parse_header()" for n in range(5))
    with open_code({"a.py": f"{calls}\ndef parse_header():\n    return read_line()\n\ndef read_line(): pass"}) as code:
        found = neighbors(code.reader, code.id("parse_header"), 3)
        assert [neighbour.relation for neighbour in found] == ["caller", "callee", "caller"]


def test_an_unknown_definition_has_no_neighbours(shop: Code) -> None:
    assert neighbors(shop.reader, 999) == []
