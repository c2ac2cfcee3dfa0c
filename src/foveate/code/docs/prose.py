"""Markdown and reStructuredText -> plain paragraphs, and the sentences among them that tell someone what to do.

Comes in: a document as it is written. Goes out: blocks of words under their heading. Badges, images, HTML, tables, code and
directives are dropped, links keep their words. It reads line by line, is no parser, and takes any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARS = 40_000
"""What is considered of a document: guides say what matters early."""

_LONGEST_LINE = 2_000


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph or an item of a list."""

    heading: str
    """The nearest heading above it, in plain words; empty before the first."""
    text: str
    is_item: bool = False
    is_html: bool = False
    depth: int = 0
    """How many headings came before."""


# --- words of a line -----------------------------------------------------------------------------------------------

_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\](?:\([^()\n]{0,800}\)|\[[^\]\n]{0,100}\])")
_EMPTY_LINK = re.compile(r"\[\s*\](?:\([^()\n]{0,800}\)|\[[^\]\n]{0,100}\])")
_LINK = re.compile(r"\[([^\[\]\n]{1,300})\](?:\([^()\n]{0,800}\)|\[[^\[\]\n]{0,100}\])")
_RST_LINK = re.compile(r"`([^`<\n]{1,200}?)\s*<[^`<>\n]{1,500}>`_{0,2}")
_RST_ROLE = re.compile(r":[\w:+-]{2,40}:`~?([^`\n]{1,200})`")
_RST_REFERENCE = re.compile(r"`([^`\n]{1,200})`_{1,2}")
_RST_CODE = re.compile(r"``([^`\n]{1,300})``")
_SUBSTITUTION = re.compile(r"\|[\w .-]{1,60}\|_{0,2}")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,500}>")
_AUTOLINK = re.compile(r"<(https?://[^<>\s]{1,500})>")
_EMOJI = re.compile(r"(?<![\w:]):[a-z][a-z0-9_+-]{1,30}:(?![\w`])")
_STRONG = re.compile(r"\*\*([^*\n]{1,400})\*\*|__([^_\n]{1,400})__")
_EMPHASIS = re.compile(r"(?<![\w*\\])\*([^*\s][^*\n]{0,200})\*(?![\w*])")
_FOOTNOTE = re.compile(r"\[\^[^\]\n]{1,40}\]")


def plain(text: str) -> str:
    """The words of Markdown or reStructuredText on one line, inline code kept in its backticks."""
    if "[" in text:
        for pattern in (_IMAGE, _EMPTY_LINK, _FOOTNOTE):
            text = pattern.sub("", text)
        text = _LINK.sub(r"\1", text)
    if "`" in text:
        text = _RST_ROLE.sub(r"`\1`", _RST_LINK.sub(r"\1", _RST_CODE.sub(r"`\1`", text)))
        text = _RST_REFERENCE.sub(r"\1", text)
    if "<" in text:
        text = _TAG.sub(" ", _AUTOLINK.sub(r"\1", text))
    if "*" in text or "__" in text:
        text = _EMPHASIS.sub(r"\1", _STRONG.sub(lambda match: match[1] or match[2], text))
    if ":" in text:
        text = _EMOJI.sub("", text)
    return " ".join(text.split())


# --- blocks --------------------------------------------------------------------------------------------------------

_FRONT_MATTER = re.compile(r"---\n.{0,4000}?\n---\n", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TABLE = re.compile(r"<table\b.*?(?:</table>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\s{0,8}(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_RULE = re.compile(r"\s{0,3}([=\-~^\"'*#+_.])\1{2,}\s*$")
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)]|#\.)\s+(?:\[[ xX]\]\s+)?")
_DIRECTIVE = re.compile(r"\s{0,8}\.\.(?:\s|$)")
_REFERENCE = re.compile(r"\s{0,3}\[[^\]\n]{1,200}\]:\s")
_ROW = re.compile(r"\s{0,3}(?:\|[^|\n]*\||\+[-=+]{3,})")
_FIELD = re.compile(r":[\w -]{1,30}:(?:\s|$)")
_ANCHOR = re.compile(r"\[[^\[\]\n]{1,200}\]\(#[^()\n]{0,200}\)")  # a line of a table of contents
_INDENTED = re.compile(r"(?: {4}|\t|   \S)")


def blocks(text: str) -> list[Block]:
    """The paragraphs and items of a document, in order."""
    text = text[:MAX_CHARS].replace("\r\n", "\n")
    if front := _FRONT_MATTER.match(text):
        text = text[front.end() :]
    if "<" in text:
        text = _TABLE.sub("\n", _COMMENT.sub("", text))
    return _Reader().read([line[:_LONGEST_LINE] for line in text.split("\n")])


class _Reader:
    """Lines -> blocks. Holds the paragraph that is being read."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.heading = ""
        self.headings = 0
        self.lines: list[str] = []
        self.is_item = False
        self.is_html = False

    def read(self, lines: list[str]) -> list[Block]:
        for line in _without_code(lines):
            stripped = line.strip()
            if not stripped:
                self._end()
            elif _RULE.match(line):
                if stripped[0] in "=-~^\"'*#+" and len(self.lines) == 1 and not self.is_item:
                    self._head(self.lines.pop())
                self._end()
            elif match := _HEADING.match(line):
                self._end()
                self._head(match[1])
            elif _ROW.match(line) or _REFERENCE.match(line) or _FIELD.match(stripped):
                self._end()
            else:
                self._words(line, stripped)
        self._end()
        return self.blocks

    def _words(self, line: str, stripped: str) -> None:
        if item := _ITEM.match(line):
            self._end()
            self.is_item = True
            stripped = line[item.end() :].strip()
        elif stripped.startswith(">"):
            stripped = stripped.lstrip("> ")
        elif not self.lines and stripped.startswith("<") and not stripped.startswith("<http"):
            self.is_html = True
        self.lines.append(stripped)

    def _head(self, text: str) -> None:
        self.heading = plain(text)
        self.headings += 1

    def _end(self) -> None:
        written = " ".join(self.lines)
        text = "" if _ANCHOR.fullmatch(written) else plain(_SUBSTITUTION.sub("", written))
        if any(map(str.isalpha, text)):
            self.blocks.append(Block(self.heading, text, self.is_item, self.is_html, self.headings))
        self.lines, self.is_item, self.is_html = [], False, False


def _without_code(lines: list[str]) -> Iterator[str]:
    """The lines outside of fences, directives and literal blocks."""
    fence, hidden, was_blank, in_list = "", False, True, False
    for line in lines:
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        if mark:
            fence = mark[1]
            yield ""
            continue
        blank = not line.strip()
        if hidden and (blank or line[0] in " \t"):
            continue
        hidden = bool(_DIRECTIVE.match(line)) or (was_blank and not in_list and bool(_INDENTED.match(line)) and not blank)
        if hidden:
            yield ""
            continue
        if not blank:
            in_list = bool(_ITEM.match(line)) or (in_list and line[0] in " \t")
            hidden = line.rstrip().endswith("::")
        was_blank = blank
        yield line.rstrip().removesuffix("::") + ":" if hidden else line


# --- what to take --------------------------------------------------------------------------------------------------

_WANTED = re.compile(
    r"overview|about|what (?:is|it|does)|why\b|introduc|summary|description|features|architecture|how it works|design"
    r"|concept|highlights|goals|motivation|purpose",
    re.IGNORECASE,
)
_UNWANTED = re.compile(
    r"install|table of contents|^contents|badge|licen[cs]e|sponsor|backer|donat|credit|author|contribut|change ?log|getting"
    r"|quick ?start|usage|support|release|citation|citing|acknowledg|documentation|community|links|status|requirements"
    r"|setup",
    re.IGNORECASE,
)
_BLURB = re.compile(
    r"\b(?:pip|npm|brew|conda|yarn|cargo|go|gem|composer) (?:install|get|add|i)\b|click here|star us|\bsponsor|donat"
    r"|follow us|join (?:the|our|us)|(?:chat|discord|slack)\b.{0,40}https?:",
    re.IGNORECASE,
)
SHORTEST_PARAGRAPH = 30
"""Characters from which a paragraph says something; shorter ones are captions and rows of links."""


def opening(text: str, room: int = 1_200, whole: bool = False) -> list[str]:
    """What a README says first about its matter, as whole paragraphs; with `whole`, a page that is all about it."""
    found = [block for block in blocks(text) if _tells(block)]
    if whole:
        return _fitted(found, room)
    lead = [block for block in found if block.depth <= 1 and not _UNWANTED.search(block.heading)]
    wanted = [block for block in found if block.depth > 1 and _WANTED.search(block.heading)]
    rest = [block for block in found if block.depth > 1 and not _UNWANTED.search(block.heading)]
    chosen = _fitted([block for block in lead if not block.is_html] or lead, room)
    left = room - sum(map(len, chosen))
    if left > room // 4:
        more = wanted or (rest if left > room * 2 // 3 else [])
        chosen += _fitted([block for block in more if not block.is_html], left)
    return chosen


def _tells(block: Block) -> bool:
    return (len(block.text) >= SHORTEST_PARAGRAPH or block.is_item) and not _BLURB.search(block.text)


def _fitted(found: list[Block], room: int) -> list[str]:
    """The first blocks that fit: items as a list, and none after the first that does not."""
    kept: list[str] = []
    for block, after in zip(found, [*found[1:], None], strict=False):
        text = f"- {block.text}" if block.is_item else block.text
        if text.endswith(":") and (after is None or not after.is_item):  # what it announces is code
            text = " ".join(sentences(text)[:-1])
        if len(text) < SHORTEST_PARAGRAPH and not block.is_item:
            continue
        if not kept and len(text) > room:
            return [clipped(text, room)]
        room -= len(text) + 2
        if room < 0:
            break
        kept.append(text)
    return kept[:-1] if kept and kept[-1].endswith(":") else kept


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(\[])|\n\s*\n|(?<=[。！？])")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|Dr|Mr|approx|incl|no|[A-Z])\.)$")


def sentences(text: str) -> list[str]:
    """The sentences of a paragraph, each on one line."""
    found: list[str] = []
    joined = ""
    for part in _SENTENCE.split(text):
        joined = f"{joined} {part}".strip()
        if not _ABBREVIATED.search(joined):
            found.append(" ".join(joined.split()))
            joined = ""
    return [sentence for sentence in [*found, joined] if sentence]


def first_sentence(text: str, room: int = 160) -> str:
    """The first sentence of a text, in plain words and clipped; empty where it has none."""
    lines = [line for line in text.strip().split("\n\n") if not _RULE.match(line)]
    said = sentences(plain(re.sub(r"\n[=\-~^*]{3,}[^\S\n]*(?=\n|$)", ".", lines[0]))) if lines else []
    return clipped(said[0], room).rstrip(".:") if said and any(map(str.isalpha, said[0])) else ""


def clipped(text: str, room: int) -> str:
    """The text, or its beginning up to a word, with `…`."""
    if len(text) <= room:
        return text
    head = text[: room - 1]
    space = head.rfind(" ")
    return (head[:space] if space > room // 2 else head).rstrip(" ,;:-") + "…"


_MUST = re.compile(
    r"\b(?:must|never|(?:is|are) required|forbidden|mandatory|not allowed|ensure|(?<!will )make sure|always(?! welcome))\b"
    r"|(?:^|[.;:,(❌] ?|please |and )(?:do not|don't)\b",
    re.IGNORECASE,
)
_SHOULD = re.compile(r"\b(?:should|please|prefer|avoid|expected to|need to)\b", re.IGNORECASE)
_IMPERATIVE = re.compile(
    r"[\"'(]?(?:add|avoid|branch|call|check|choose|commit|create|describe|document|fix|follow|format|give|include|keep"
    r"|leave|limit|lint|make|mention|name|open|put|read|rebase|reference|remove|run|separate|sign|split|squash|start|submit"
    r"|test|update|use|validate|verify|wrap|write)\b",
    re.IGNORECASE,
)


def force(sentence: str) -> int:
    """How much a sentence asks of its reader: 2 for a rule (must, never), 1 for advice or an imperative, 0 for the rest."""
    if sentence.endswith("?"):
        return 0
    if _MUST.search(sentence):
        return 2
    return 1 if _SHOULD.search(sentence) or _IMPERATIVE.match(sentence) else 0


def rules(text: str, longest: int = 240) -> list[tuple[int, str]]:
    """The sentences that ask something of the reader, in order, each with its force."""
    found: dict[str, int] = {}
    for block in blocks(text):
        for sentence in sentences(block.text):
            telling = 15 <= len(sentence) <= longest and not sentence.endswith(":") and not sentence.startswith(("…", "..."))
            if telling and (strength := force(sentence)):
                found.setdefault(sentence, strength)
    return [(strength, sentence) for sentence, strength in found.items()]
