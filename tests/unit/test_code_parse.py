"""Languages and parsing: what each kind of file defines, refers to and imports, and what becomes of files that are none."""

from __future__ import annotations

import gc
import random
import string
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.code import languages
from foveate.code.definitions import MAX_SIGNATURE_CHARS
from foveate.code.languages import LANGUAGES, PARSED_LANGUAGES, fence_tag, grammar, language_of, unavailable_grammars
from foveate.code.model import Definition, ParsedFile
from foveate.code.parse import MAX_OUTLINE_ITEMS, parse, query

SAMPLES = Path(__file__).parent.parent / "code_samples"
NOISE = "\n".join("".join(random.Random(n).choices("abc(){}[]<>\"'`=:;,.#/*-+@$%&!?|\\ ", k=80)) for n in range(800))
GRAMMARS = [row.name for row in PARSED_LANGUAGES]


def sample(language: str) -> tuple[str, str]:
    """A realistic file, and what is expected of it."""
    source, _, expected = (SAMPLES / f"{language}.txt").read_text("utf-8").partition("===== expected\n")
    return source, expected


def outline(parsed: ParsedFile) -> str:
    """Definitions with their lines, imports, and the references of each line."""
    lines: dict[int, list[str]] = {}
    for name, line in parsed.references:
        lines.setdefault(line, []).append(name)
    return "".join(
        [
            *(f"{one.start_line}-{one.end_line} {one.kind} {one.qualified_name}\n" for one in parsed.definitions),
            f"imports {' '.join(parsed.imports)}\n",
            *(f"{line}: {' '.join(names)}\n" for line, names in lines.items()),
        ]
    )


def named(parsed: ParsedFile) -> dict[str, Definition]:
    return {one.qualified_name: one for one in parsed.definitions}


# --- languages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "head", "language"),
    [
        ("src/app.py", "", "python"),
        ("src\\App.TSX", "", "tsx"),
        ("types.d.ts", "", "typescript"),
        ("view.blade.php", "", "php"),
        ("include/a.h", "int main(void);", "c"),
        ("include/a.h", "#pragma once\nnamespace a {\n", "cpp"),
        ("Dockerfile", "", "dockerfile"),
        ("docker/Dockerfile.dev", "", "dockerfile"),
        ("Makefile", "", "makefile"),
        ("CMakeLists.txt", "", "cmake"),
        ("Gemfile", "", "ruby"),
        (".gitignore", "", "gitignore"),
        (".bashrc", "", "bash"),
        ("Cargo.lock", "", "toml"),
        ("main.tf", "", "terraform"),
        ("notes.txt", "", "text"),
        ("LICENSE", "", "text"),
        ("a.lua", "", "lua"),
        ("bin/run", "#!/usr/bin/env python3\n", "python"),
        ("bin/run", "#!/usr/bin/env -S A=1 node --x\n", "javascript"),
        ("bin/run", "\ufeff#! /bin/sh\n", "bash"),
        ("bin/run", "#!/usr/local/bin/perl5.36 -w\n", "perl"),
        ("bin/run.py", "#!/bin/sh\n", "python"),  # the name says more
        ("bin/run", "echo\n", ""),
        ("data.unknown", "", ""),
        ("", "", ""),
    ],
)
def test_a_language_is_known_by_name_then_suffix_then_shebang(path: str, head: str, language: str) -> None:
    assert language_of(path, head) == language


def test_each_file_name_belongs_to_one_language() -> None:
    files = [file for row in LANGUAGES.values() for file in row.files.split()]
    assert sorted(files) == sorted(set(files))
    assert [file for file in files if file != file.lower()] == []


@pytest.mark.parametrize(
    ("name", "tag"),
    [("python", "python"), ("tsx", "tsx"), ("starlark", "python"), ("text", ""), ("terraform", "hcl"), ("?", "")],
)
def test_a_fence_carries_the_tag_of_the_language(name: str, tag: str) -> None:
    assert fence_tag(name) == tag


@pytest.mark.parametrize("language", GRAMMARS)
def test_every_query_compiles_with_the_installed_grammar(language: str) -> None:
    assert query(language).pattern_count > 0


def test_a_grammar_that_cannot_be_loaded_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unavailable_grammars() == {}
    rows = (
        languages.Language("absent", "", "absent"),
        languages.Language("odd", "", "python", grammar_function="no_such_function"),
    )
    monkeypatch.setattr(languages, "PARSED_LANGUAGES", rows)
    monkeypatch.setattr(languages, "LANGUAGES", {row.name: row for row in rows})
    found = unavailable_grammars()
    assert "pip install --upgrade tree-sitter-absent" in found["absent"]
    assert "no_such_function" in found["odd"]
    assert grammar("absent") is grammar("odd") is grammar("unheard of") is None


# --- definitions, references, imports ------------------------------------------------------------------------------


@pytest.mark.parametrize("language", [name for name in GRAMMARS if name != "starlark"])
def test_a_sample_of_each_language_is_read(language: str) -> None:
    source, expected = sample(language)
    parsed = parse(source, language)
    assert outline(parsed).splitlines() == expected.splitlines()
    assert not parsed.has_syntax_error


@pytest.mark.parametrize(
    ("language", "qualified", "signature"),
    [
        ("python", "Order", "class Order(Base, abc.Mapping)"),
        (
            "python",
            "Order.ship",
            'async def ship(self, address: Address, *, note: str | Note = "#1", retries: int = 3) -> Optional[Parcel]',
        ),
        ("python", "TAX_RATE", 'TAX_RATE = Decimal("0.19")'),
        ("javascript", "Cart", "export default class Cart extends Store"),
        ("javascript", "checkout", "export const checkout = async (cart) =>"),
        ("typescript", "OrderService", "export class OrderService extends Base implements Repository<Order>"),
        ("go", "Server.Start", "func (s *Server) Start(ctx context.Context, opts ...Option) error"),
        ("rust", "Server.start", "pub async fn start(&self, port: u16) -> Result<(), StoreError>"),
        ("java", "OrderService.find", "public Optional<Order> find(@NotNull String id) throws NotFound"),
        ("c", "find_order", "static struct order * find_order(order_id id, store_t *store)"),
        ("c", "point_t", "typedef struct … point_t"),
        ("cpp", "largest", "template <typename T> T largest(const std::vector<T>& values)"),
        ("csharp", "OrderService.Find", "public async Task<Order> Find(string id, Options options = null)"),
        ("php", "OrderService.find", "public function find(string $id, ?Options $options = null): ?Order"),
        ("kotlin", "OrderService.find", "suspend fun find(id: String, options: Options? = null): Order"),
        ("swift", "OrderService.find", "func find(id: String, options: Options? = nil) async throws -> Order"),
        ("sql", "shop.orders", "CREATE TABLE IF NOT EXISTS shop.orders"),
        ("html", "orders", '<main id="orders" class="wide">'),
        ("toml", "tool.ruff", "[tool.ruff]"),
        ("markdown", "Shop.Install", "## Install"),
    ],
)
def test_a_signature_is_the_head_on_one_line(language: str, qualified: str, signature: str) -> None:
    assert named(parse(sample(language)[0], language))[qualified].signature == signature


@pytest.mark.parametrize(
    ("language", "qualified", "doc"),
    [
        ("python", "Order", "One order of a customer."),
        ("python", "Order.total", "What is to be paid."),
        ("javascript", "Cart", "Holds what is bought."),
        ("javascript", "Cart.add", "Adds one line."),
        ("typescript", "OrderService", "Keeps orders."),
        ("go", "Server.Start", "Start listens.\n\nIt returns when ctx is done."),
        ("rust", "Server", "Answers requests."),
        ("java", "OrderService", "Answers requests.\n\n@author nobody"),
        ("c", "find_order", "Finds one order.\nNULL when there is none."),
        ("csharp", "OrderService", "Answers requests."),
        ("ruby", "Shop.Server.start", "Starts to listen."),
        ("sql", "shop.orders", "One row for each order."),
        ("yaml", "jobs", "What is run."),
        ("markdown", "Shop", "Sells things.\nCheaply."),
    ],
)
def test_a_docstring_or_the_comment_above_is_the_doc(language: str, qualified: str, doc: str) -> None:
    assert named(parse(sample(language)[0], language))[qualified].doc == doc


@pytest.mark.parametrize(
    ("language", "doc"),
    [
        ("python", "Orders and what they cost.\n\nPrices are in cents."),
        ("javascript", "The shopping cart."),
        ("go", "Package shop serves orders."),  # the licence above is not about the file
        ("rust", "Orders and their storage."),
        ("java", ""),
        ("ruby", "Orders of the shop."),
        ("php", "Orders of the shop."),
        ("bash", "Starts the shop."),
        ("html", "The start page."),
        ("markdown", "Sells things.\nCheaply."),
    ],
)
def test_a_file_says_what_it_is_for_at_its_top(language: str, doc: str) -> None:
    assert parse(sample(language)[0], language).doc == doc


def test_a_comment_about_the_first_definition_is_not_about_the_file() -> None:
    parsed = parse("// Adds.\nfunction add() {}\n", "javascript")
    assert (parsed.doc, parsed.definitions[0].doc, parsed.definitions[0].start_line) == ("", "Adds.", 1)


def test_a_definition_points_at_what_encloses_it() -> None:
    definitions = parse(sample("python")[0], "python").definitions
    inner = named(parse(sample("python")[0], "python"))["Order.ship.inner"]
    assert inner.parent is not None
    assert definitions[inner.parent].qualified_name == "Order.ship"
    assert (inner.name, definitions[inner.parent].name) == ("inner", "ship")


def test_overloads_are_all_kept() -> None:
    source = "class A { void f(int a) {}\n void f(String a) {}\n}"
    assert [(one.qualified_name, one.start_line) for one in parse(source, "java").definitions] == [
        ("A", 1),
        ("A.f", 1),
        ("A.f", 2),
    ]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", "class Cart:\n    def total(self):\n        return 1\n"),
        ("ruby", "class Cart\n  def total(tax)\n    1\n  end\nend\n"),
    ],
)
def test_the_head_of_a_class_ends_before_its_only_method(language: str, source: str) -> None:
    cart, total = parse(source, language).definitions
    assert cart.signature == "class Cart"
    assert total.signature.startswith("def total(")


def test_a_long_signature_is_cut_between_parameters() -> None:
    source = f"def f({', '.join(f'parameter_{n}: int' for n in range(100))}):\n    pass\n"
    signature = parse(source, "python").definitions[0].signature
    assert len(signature) <= MAX_SIGNATURE_CHARS
    assert signature.endswith((",…", ":…", "int…"))


def test_a_name_is_a_reference_where_it_is_used_and_not_where_it_is_defined() -> None:
    assert parse("type Id = string;\nlet a: Id;\n", "typescript").references == (("Id", 2),)
    assert parse("x = y\ndef f(a): return a\n", "python").references == ()


def test_names_and_lines_hold_beside_letters_of_several_bytes() -> None:
    parsed = parse('s = "äöü 漢字 🎉"\n\ndef größe(): return 計算(1)\n', "python")
    assert [(one.name, one.start_line) for one in parsed.definitions] == [("größe", 3)]
    assert parsed.references == (("計算", 3),)


def test_only_the_top_level_of_a_large_outline_is_kept_and_then_blocks() -> None:
    inner = ",".join(f'"k{n}": 1\n' for n in range(MAX_OUTLINE_ITEMS + 1))
    nested = parse(f'{{"a": {{{inner}}}, "b": 2}}', "json")
    assert [one.qualified_name for one in nested.definitions] == ["a", "b"]
    assert {one.kind for one in parse(f"{{{inner}}}", "json").definitions} == {"block"}


# --- broken and strange files --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "source", "kept"),
    [
        ("python", "def f(:\n    pass\n\nclass A:\n    def g(self):\n        return 1\n", "A.g"),
        ("javascript", "function a() { return ; }}}\nclass B { c() {} }\n", "B.c"),
        ("go", "package a\nfunc f( {\n}\nfunc g() {}\n", "g"),
        ("java", "class A { void f( { } }\nclass B { void g() {} }\n", "B.g"),
        ("rust", "fn f( {}\nstruct S { a: u8 }\n", "S"),
        ("c", "int f(void) { return 1 + ; }\nint g(void) { return 1; }\n", "g"),
    ],
)
def test_a_syntax_error_is_told_and_the_rest_is_kept(language: str, source: str, kept: str) -> None:
    parsed = parse(source, language)
    assert parsed.has_syntax_error
    assert kept in named(parsed)


@pytest.mark.parametrize("language", [*GRAMMARS, "lua", ""])
@pytest.mark.parametrize(
    "text", ["", "\n\n", "\0", "\ufeff", "\ud800", "\r\n", "\0" * 5_000, "\ud800x = 1\n" * 50, "}" * 1_000, "a" * 90_000]
)
def test_nothing_makes_it_raise(language: str, text: str) -> None:
    parsed = parse(text, language)
    assert parsed.language == language
    for one in parsed.definitions:
        assert 1 <= one.start_line <= one.end_line <= text.count("\n") + 1
        (one.signature + one.name + one.doc).encode()


@given(st.sampled_from(GRAMMARS), st.randoms(use_true_random=False))
def test_a_damaged_file_gives_definitions_in_order_within_its_lines(language: str, chance: random.Random) -> None:
    text = sample("python" if language == "starlark" else language)[0]
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(text))
        text = (
            text[:place]
            + chance.choice(["", "\n", "{", ")", '"', "é", "#", "*/", "<", "\\"])
            + text[place + chance.randrange(20) :]
        )
    parsed = parse(text, language)
    assert parsed == parse(text, language)
    for place, one in enumerate(parsed.definitions):
        assert 1 <= one.start_line <= one.end_line <= text.count("\n") + 1
        assert one.parent is None or one.parent < place
    assert [one.start_line for one in parsed.definitions] == sorted(one.start_line for one in parsed.definitions)
    assert all(1 <= line <= text.count("\n") + 1 for _, line in parsed.references)


@pytest.mark.parametrize("language", [name for name in GRAMMARS if name != "starlark"])
def test_line_ends_and_a_byte_order_mark_change_nothing(language: str) -> None:
    source = sample(language)[0]
    plain, windows = parse(source, language), parse("\ufeff" + source.replace("\n", "\r\n"), language)
    assert outline(windows) == outline(plain)
    assert [(one.signature, one.doc) for one in windows.definitions] == [
        (one.signature, one.doc) for one in plain.definitions
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("java", "f<\n" * 30_000),  # gigabytes, when it is parsed
        ("yaml", "".join(" " * n + "a:\n" for n in range(400))),  # a crash of the process, when it is parsed
        ("yaml", "- " * 5_000),
        ("rust", "a, " * 15_000),
        ("go", "`\n" * 20_000),
        ("ruby", "a.\n" * 10_000),
        ("bash", "`\n" * 50_000),
        ("python", "- \\\n" * 10_000),
        ("json", "[" * 100_000),
        ("html", "<div id='a'>\n" * 3_000),
        ("tsx", NOISE),
    ],
)
def test_a_hostile_file_is_read_in_bounded_time(language: str, text: str) -> None:
    before = time.thread_time()
    parse(text, language)
    assert time.thread_time() - before < 15  # three seconds, and room for a slow machine


@pytest.mark.slow
def test_what_is_read_is_freed() -> None:
    source = sample("python")[0]
    parse(source, "python")
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            parse(source, "python")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000  # less than a fifth of what was read
    finally:
        tracemalloc.stop()


def test_files_are_read_in_several_threads_at_once() -> None:
    names = [name for name in GRAMMARS if name != "starlark"] * 4
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda name: parse(sample(name)[0], name), names))
    assert found == [parse(sample(name)[0], name) for name in names]


@pytest.mark.slow
def test_a_file_of_100_000_lines_is_read() -> None:
    text = "".join(f"def f{n}(a):\n    return g(a)\n\n\n" for n in range(25_000))
    parsed = parse(text, "python")
    assert len(parsed.definitions) == len(parsed.references) == 25_000
    assert (parsed.definitions[-1].start_line, parsed.definitions[-1].end_line) == (99_997, 99_998)


def test_definitions_nest_only_as_deep_as_people_write() -> None:
    parsed = parse("".join(" " * n + "class A:\n" for n in range(90)) + " " * 90 + "x = 1\n", "python")
    assert max(one.qualified_name.count(".") for one in parsed.definitions) < 40


# --- blocks of lines -----------------------------------------------------------------------------------------------


def test_a_file_without_a_grammar_is_cut_at_blank_lines() -> None:
    paragraphs = "\n\n".join("\n".join(f"line {n} {letter}" for n in range(24)) for letter in string.ascii_lowercase[:6])
    definitions = parse(paragraphs + "\n", "lua").definitions
    assert [(one.qualified_name, one.start_line, one.end_line) for one in definitions] == [
        ("lines 1-50", 1, 50),
        ("lines 51-100", 51, 100),
        ("lines 101-149", 101, 149),
    ]
    assert {(one.name, one.kind) for one in definitions} == {("", "block")}
    assert definitions[1].signature == "line 0 c"


def test_blocks_cover_every_line_that_says_something() -> None:
    text = "x\n" * 150
    assert [(one.start_line, one.end_line) for one in parse(text, "").definitions] == [(1, 60), (61, 120), (121, 150)]
    assert parse(text, "text").references == ()
