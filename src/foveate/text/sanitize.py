"""Makes text safe to show to a model: without invisible characters, and unable to pass for another turn of a conversation.

A model reads what a person does not see: zero-width, bidirectional and tag characters can carry a whole message.
`strip_invisible` removes them before text is stored. `sanitize` does the same when a record is rendered and puts a backslash
into everything that looks like a chat template, a tool call or our own fence. It deletes no words.

The less an author is trusted, the more is escaped: a person may write about `<system>`, code stays as it is, and a web page
may do neither.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from foveate.types import Trust

# --- invisible characters --------------------------------------------------------------------------------------------

# Unicode's Default_Ignorable_Code_Point, control characters, bidirectional marks and noncharacters.
_INVISIBLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_SELECTORS, _JOINERS = "\ufe00-\ufe0f\U000e0100-\U000e01ef", "\u200c\u200d"

_INVISIBLE_CHAR = re.compile(f"[{_INVISIBLE}]")
_JOINER_RUN = re.compile(f"[{_SELECTORS}{_JOINERS}]+")
_MAYBE_INVISIBLE = re.compile(f"[{_INVISIBLE}{_SELECTORS}{_JOINERS}]")
_RARE_LINE_ENDS = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
"""Line ends for `str.splitlines` and some editors, and for no other program."""
_TERMINAL_CODE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles and links. One without an end must not swallow the words after it.
    r"|\x1b[@-Z\\^_]"
)


def strip_invisible(text: str, rare_line_end: str = "\n") -> str:
    """Return the text as a person sees it, with `\\n` as its line end.

    Joiners and variation selectors stay where writing needs them (Persian, Hindi, emoji, Japanese names), one at a time.

    `rare_line_end` replaces characters that only some programs take for a line end, such as a form feed. Give a space where
    line numbers must stay as an editor counts them.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Nearly every text is printable ASCII, and this test is ten times as fast as a pattern.
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    if _MAYBE_INVISIBLE.search(text) is None:
        return text
    text = _TERMINAL_CODE.sub("", text)
    text = text.translate(dict.fromkeys(map(ord, _RARE_LINE_ENDS), rare_line_end))
    return _JOINER_RUN.sub(_keep_needed_joiners, _INVISIBLE_CHAR.sub("", text))


def _keep_needed_joiners(run: re.Match[str]) -> str:
    """Return the one selector and the one joiner that may follow a character beyond ASCII."""
    before = run.string[run.start() - 1 : run.start()]
    if before.isascii():  # also at the beginning of the text, where `before` is empty
        return ""
    first, last = run[0][0], run[0][-1]
    return (first if first not in _JOINERS else "") + (last if last in _JOINERS else "")


# --- forged turns ----------------------------------------------------------------------------------------------------

_GAP = r"[^\S\n]"
_SPACE = r"\s{0,4}"
_ADDRESS = r"(?:https?:)?//"
_ROLE = r"(?:system|assistant|user|human|developer|tool|ai|系统|系統|用户|助手|システム|시스템)"
_ROLE_LABEL = rf"{_ROLE}(?:[ _-]{{1,2}}(?:prompt|message|note|notice|instructions?|override|update|reminder|turn))?"
_LINE_PREFIX = rf"(?:{_GAP}|[-*+>|#=~_/\"'`]|\d{{1,3}}[.)]|<!--)*+"
"""Marks of lists, quotes, headings and comments, which may come before the first word of a line."""

_TAGS = (
    r"system(?:[-_]\w+)?|assistant|user|human|developer|instructions?|think(?:ing)?|invoke|parameter|s|bos|eos|bos_token"
    r"|tool(?:[-_](?:calls?|code|use|results?|response|outputs?))?|function[-_](?:calls?|results?|response)"
    r"|(?:start|end)_of_turn"
)
_PLAIN_TAGS = r"system[-_]reminder|function[-_](?:calls|results)|tool[-_](?:calls?|response|results?)|(?:start|end)_of_turn"

# The backslash goes after the match, but before a quotation mark: in JSON, `"\role"` would mean something else.
# Each pattern begins with a character that is rare in text, so that the search runs over that one.
_PATTERNS_ALL = (
    r"<(?=[|｜][\w▁ ]{1,40}[|｜]>)",  # <|im_start|>, which separates the turns of a chat template
    r"data-(?=\d{9})",  # the tag of our own fence
    r"<(?i:(?=/?foveate-context\b))",  # the marks around a context: after a forged end, the rest would be the user's words
)
_PATTERNS_REPO = (
    *_PATTERNS_ALL,
    rf"<(?i:(?=/?(?:[\w.-]{{1,20}}:)?(?:{_PLAIN_TAGS})(?:[\s/>…]|$)))",
    r"<(?=/?(?:system|assistant|human|developer)>|</?SYS>>)",
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])",
)
_PATTERNS_UNTRUSTED = (
    *_PATTERNS_ALL,
    rf"<(?i:(?=/?{_GAP}{{0,2}}(?:[\w.-]{{1,20}}:)?(?:{_TAGS})(?:[\s/>…]|$)|</?sys>>|function=|\|\w{{1,40}}>|\w{{1,40}}\|>))",
    rf"<(?i:(?={_GAP}{{0,2}}/?{_GAP}{{0,2}}data(?:[-\s>]|$)))",
    r"\[(?i:(?=/?(?:inst|system_prompt|tool_calls|tool_results|available_tools)\]))",
    rf"\"(?i:(?=role\"{_SPACE}:{_SPACE}\"(?:system|developer|assistant)\"|(?:tool_calls?|function_call)\"{_SPACE}:))",
    rf"\"(?i:(?=type\"{_SPACE}:{_SPACE}\"(?:tool_use|tool_result|function_call)\"))",
    rf"```{_GAP}*(?=tool_(?:code|calls?|outputs?)\b|function_calls?\b)",
    # Displaying an image fetches its address, which could carry words of the prompt to a stranger.
    rf"!(?=\[[^\]\n]{{0,300}}\]\({_SPACE}{_ADDRESS})",
    rf"<(?i:(?=img\b[^>\n]{{0,300}}\bsrc{_SPACE}={_SPACE}[\"']?{_ADDRESS}))",
)
_PATTERNS_BY_TRUST: Mapping[Trust, tuple[str, ...]] = {
    "user": _PATTERNS_ALL,
    "agent": _PATTERNS_UNTRUSTED,
    "repo": _PATTERNS_REPO,
    "tool": _PATTERNS_UNTRUSTED,
    "web": _PATTERNS_UNTRUSTED,
}
_ROLE_HEADER = (
    # System: ...; **System**: ...; --- SYSTEM ---
    rf"{_LINE_PREFIX}[\[({{<]{{0,4}}{_GAP}{{0,2}}(?={_ROLE_LABEL}"
    rf"(?:[\])}}>*_]{{0,4}}{_GAP}{{0,4}}[:：]|{_GAP}*[=*~#_-]{{3}}|{_GAP}*[=*~#_-]{{2}}{_GAP}*$))"
    # [SYSTEM]; (system) ...
    rf"|{_LINE_PREFIX}[\[({{<]{{1,4}}{_GAP}{{0,2}}(?={_ROLE_LABEL}{_GAP}{{0,2}}[\])}}>])"
    # ### Assistant, also in the bold name of an entity
    rf"|{_GAP}*(?:[-*>]{_GAP}+)*+\*{{0,2}}\#{{1,6}}{_GAP}*(?=(?:{_ROLE_LABEL}|instructions?|response|input){_GAP}*:?{_GAP}*$)"
    # role: system
    rf"|{_LINE_PREFIX}role{_SPACE}[:=]{_SPACE}(?=[\"']?(?:system|developer|assistant)\b)"
)
"""A line that begins like another author's turn."""


def sanitize(text: str, trust: Trust) -> str:
    """Return the text with a backslash in everything that a model could take for more than words of that author."""
    text = strip_invisible(text)
    is_untrusted = _PATTERNS_BY_TRUST[trust] is _PATTERNS_UNTRUSTED
    matches = _inline_pattern(trust).finditer(_visual_form(text) if is_untrusted else text)
    places = [match.start() if match[0] == '"' else match.end() for match in matches]
    if places:
        text = "\\".join(text[start:end] for start, end in pairwise((0, *places, len(text))))
    return "\n".join(map(_escape_role_header, text.split("\n"))) if is_untrusted else text


def _escape_role_header(line: str) -> str:
    header = _line_start_pattern().match(_visual_form(line))
    return f"{line[: header.end()]}\\{line[header.end() :]}" if header else line


# Compiled at the first use: a command that renders nothing need not wait for it.
@cache
def _inline_pattern(trust: Trust) -> re.Pattern[str]:
    return re.compile("|".join(_PATTERNS_BY_TRUST[trust]), re.MULTILINE)


@cache
def _line_start_pattern() -> re.Pattern[str]:
    return re.compile(_ROLE_HEADER, re.IGNORECASE)


def _visual_form(text: str) -> str:
    """Return the text with ASCII for each character that looks like it. Offsets stay the same."""
    return text if text.isascii() else text.translate(_homoglyphs())


@cache
def _homoglyphs() -> dict[int, str]:
    wide = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    mathematical = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0x1D400, 0x1D800)}
    letters = zip("АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁΑΒΕΖΗΙΚΜΝΟΡΤΥΧοα", "ABESIJKMHOPCTYXaesijopcyxhdABEZHIKMNOPTYXoa", strict=True)
    signs = {"▁": "_", "∶": ":", "꞉": ":", "ː": ":", "‹": "<", "›": ">", "〈": "<", "〉": ">", "⟨": "<", "⟩": ">", "−": "-"}
    dashes = dict.fromkeys(range(0x2010, 0x2016), "-")
    drawn = {ord(character): ascii_form for character, ascii_form in (*letters, *signs.items())}
    all_forms = wide | mathematical | dashes | drawn
    # One character each, because offsets must stay the same.
    return {code: form for code, form in all_forms.items() if form.isascii() and len(form) == 1}
