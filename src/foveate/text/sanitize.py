"""Rendered text -> the same words, of which none can pass for a turn, a tool's call or our own fence.

Comes in: a line as a kind renders it, and whose words it holds. Goes out: the line with a backslash wherever it looked
like more than words. Nothing is deleted, and state keeps the words as they were. The less an author is trusted, the more
is looked for: a person may write of `<system>`, code stays as it is, and a web page may do neither.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from foveate.text.hidden_characters import visible
from foveate.types import Trust

_GAP = r"[^\S\n]"
_ROLE = r"(?:system|assistant|user|human|developer|tool|ai|系统|系統|用户|助手|システム|시스템)"
_NAMED = rf"{_ROLE}(?:[ _-]{{1,2}}(?:prompt|message|note|notice|instructions?|override|update|reminder|turn))?"
_LEAD = rf"(?:{_GAP}|[-*+>|#=~_/\"'`]|\d{{1,3}}[.)]|<!--)*+"
"""What may stand before the first word of a line: marks of lists, quotes, headings and comments."""

_TAGS = (
    r"system(?:[-_]\w+)?|assistant|user|human|developer|instructions?|think(?:ing)?|invoke|parameter|s|bos|eos|bos_token"
    r"|tool(?:[-_](?:calls?|code|use|results?|response|outputs?))?|function[-_](?:calls?|results?|response)"
    r"|(?:start|end)_of_turn"
)
_PLAIN_TAGS = r"system[-_]reminder|function[-_](?:calls|results)|tool[-_](?:calls?|response|results?)|(?:start|end)_of_turn"
_SPACE = r"\s{0,4}"
_ADDRESS = r"(?:https?:)?//"

# The backslash goes behind what a pattern takes, but before a quotation mark: in JSON, `"\role"` would be something else.
# Each begins with a character that is rare in text, so that the search is for that one.
_FOR_ANYONE = (
    r"<(?=[|｜][\w▁ ]{1,40}[|｜]>)",  # <|im_start|>, which stands between the turns of a chat template
    r"data-(?=\d{9})",  # our own fence
)
_FOR_FILES = (
    *_FOR_ANYONE,
    rf"<(?i:(?=/?(?:[\w.-]{{1,20}}:)?(?:{_PLAIN_TAGS})(?:[\s/>…]|$)))",
    r"<(?=/?(?:system|assistant|human|developer)>|</?SYS>>)",
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])",
)
_FOR_OTHERS = (
    *_FOR_ANYONE,
    rf"<(?i:(?=/?{_GAP}{{0,2}}(?:[\w.-]{{1,20}}:)?(?:{_TAGS})(?:[\s/>…]|$)|</?sys>>|function=|\|\w{{1,40}}>|\w{{1,40}}\|>))",
    rf"<(?i:(?={_GAP}{{0,2}}/?{_GAP}{{0,2}}data(?:[-\s>]|$)))",
    r"\[(?i:(?=/?(?:inst|system_prompt|tool_calls|tool_results|available_tools)\]))",
    rf"\"(?i:(?=role\"{_SPACE}:{_SPACE}\"(?:system|developer|assistant)\"|(?:tool_calls?|function_call)\"{_SPACE}:))",
    rf"\"(?i:(?=type\"{_SPACE}:{_SPACE}\"(?:tool_use|tool_result|function_call)\"))",
    rf"```{_GAP}*(?=tool_(?:code|calls?|outputs?)\b|function_calls?\b)",
    # An image is fetched by whoever shows it: its address could carry words away.
    rf"!(?=\[[^\]\n]{{0,300}}\]\({_SPACE}{_ADDRESS})",
    rf"<(?i:(?=img\b[^>\n]{{0,300}}\bsrc{_SPACE}={_SPACE}[\"']?{_ADDRESS}))",
)
_HEADER = (
    # System: ...; **System**: ...; --- SYSTEM ---
    rf"{_LEAD}[\[({{<]{{0,4}}{_GAP}{{0,2}}(?={_NAMED}"
    rf"(?:[\])}}>*_]{{0,4}}{_GAP}{{0,4}}[:：]|{_GAP}*[=*~#_-]{{3}}|{_GAP}*[=*~#_-]{{2}}{_GAP}*$))"
    # [SYSTEM]; (system) ...
    rf"|{_LEAD}[\[({{<]{{1,4}}{_GAP}{{0,2}}(?={_NAMED}{_GAP}{{0,2}}[\])}}>])"
    # ### Assistant
    rf"|{_GAP}*(?:[-*>]{_GAP}+)*+\#{{1,6}}{_GAP}*(?=(?:{_NAMED}|instructions?|response|input){_GAP}*:?{_GAP}*$)"
    # role: system
    rf"|{_LEAD}role{_SPACE}[:=]{_SPACE}(?=[\"']?(?:system|developer|assistant)\b)"
)
"""A line that begins like a turn of somebody else's."""


_WATCHED: Mapping[Trust, tuple[str, ...]] = {
    "user": _FOR_ANYONE,
    "agent": _FOR_OTHERS,
    "repo": _FOR_FILES,
    "tool": _FOR_OTHERS,
    "web": _FOR_OTHERS,
}


@cache
def _anywhere(trust: Trust) -> re.Pattern[str]:
    """Compiled when it is first needed: a command that shows nothing need not wait for it."""
    return re.compile("|".join(_WATCHED[trust]), re.MULTILINE)


@cache
def _at_the_beginning() -> re.Pattern[str]:
    return re.compile(_HEADER, re.IGNORECASE)


def defused(text: str, trust: Trust) -> str:
    """The text of such an author with a backslash in everything that could pass for more than words."""
    text = visible(text)
    strange = _WATCHED[trust] is _FOR_OTHERS
    matches = _anywhere(trust).finditer(_seen(text) if strange else text)
    found = [match.start() if match[0] == '"' else match.end() for match in matches]
    if found:
        text = "\\".join(text[start:end] for start, end in pairwise((0, *found, len(text))))
    return "\n".join(map(_headless, text.split("\n"))) if strange else text


def _headless(line: str) -> str:
    header = _at_the_beginning().match(_seen(line))
    return f"{line[: header.end()]}\\{line[header.end() :]}" if header else line


def _seen(text: str) -> str:
    """The text as it looks, at the same places."""
    return text if text.isascii() else text.translate(_look_alikes())


@cache
def _look_alikes() -> dict[int, str]:
    """Letters and signs that look like ASCII, by what they look like: one character each, so that places stay."""
    wide = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    fancy = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0x1D400, 0x1D800)}
    pairs = zip("АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁΑΒΕΖΗΙΚΜΝΟΡΤΥΧοα", "ABESIJKMHOPCTYXaesijopcyxhdABEZHIKMNOPTYXoa", strict=True)
    signs = {"▁": "_", "∶": ":", "꞉": ":", "ː": ":", "‹": "<", "›": ">", "〈": "<", "〉": ">", "⟨": "<", "⟩": ">", "−": "-"}
    dashes = dict.fromkeys(range(0x2010, 0x2016), "-")
    drawn = {ord(sign): plain for sign, plain in (*pairs, *signs.items())}
    return {code: plain for code, plain in (wide | fancy | dashes | drawn).items() if plain.isascii() and len(plain) == 1}
