"""Code blocks and headings of Markdown, read as CommonMark 0.31 defines them.

A prompt is Markdown, and so are most texts in it. If two readers disagree about where a code block ends, a text can hide a
heading in what one of them takes for code. So every module that looks for fences or headings asks this one.

The reader knows block quotes, lists, paragraphs with lazy lines, indented code and HTML blocks, because all of them decide
whether a fence or a heading counts. It does not read link definitions, tables or anything inside a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

Role = Literal["blank", "code", "fence end", "fence start", "heading", "html", "text", "underline"]
"""The part that a line plays. `code` is inside a fence; an `underline` makes the paragraph above it a heading."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A line that can open or close a code block. `indent` is in columns."""

    mark: str
    info: str = ""
    indent: int = 0

    @property
    def language(self) -> str:
        return self.info.split(maxsplit=1)[0].lower() if self.info else ""

    def closes(self, opening: Fence) -> bool:
        return not self.info and self.mark.startswith(opening.mark)


@dataclass(frozen=True, slots=True)
class FencedBlock:
    """A fenced code block: `lines[start:stop]`, fences included."""

    start: int
    stop: int
    fence: Fence
    code: str
    """The lines between the fences, without indentation and marks that belong to the lists and quotes around them."""
    is_closed: bool


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading. `line` is the index of the line on which it begins."""

    line: int
    level: int
    title: str


def parse_fence(line: str) -> Fence | None:
    """Return the fence on a line, however far it is indented."""
    indent, rest = _split_indent(line, column=0)
    return _match_fence(rest, indent)


def fenced_blocks(lines: Sequence[str]) -> list[FencedBlock]:
    """Return the fenced code blocks in order. Only the last one can be open to the end of the text."""
    blocks: list[FencedBlock] = []
    start, fence = 0, None
    code: list[str] = []
    state = _START
    for number, line in enumerate(lines):
        role, content, state = _read(line, state)
        if fence and role not in ("code", "fence end"):  # the list or quote around the block has ended
            blocks.append(FencedBlock(start, number, fence, "\n".join(code), is_closed=False))
            fence = None
        if role == "fence start":
            start, fence, code = number, state.fence, []
        elif role == "code":
            code.append(content)
        elif role == "fence end" and fence:
            blocks.append(FencedBlock(start, number + 1, fence, "\n".join(code), is_closed=True))
            fence = None
    if fence:
        blocks.append(FencedBlock(start, len(lines), fence, "\n".join(code), is_closed=False))
    return blocks


def headings(lines: Sequence[str]) -> list[Heading]:
    """Return the headings in order, those inside lists and quotes included."""
    found: list[Heading] = []
    paragraph: list[str] = []
    state = _START
    for number, line in enumerate(lines):
        role, content, state = _read(line, state)
        if role == "heading":
            title = content.lstrip("#")
            found.append(Heading(number, len(content) - len(title), _without_closing_marks(title).strip()))
        elif role == "underline":
            level = 1 if content.startswith("=") else 2
            found.append(Heading(number - len(paragraph), level, " ".join(map(str.strip, paragraph))))
        if role != "text" or not state.continues_paragraph:
            paragraph = []
        if role == "text":
            paragraph.append(content)
    return found


def split_code(text: str) -> Iterator[tuple[str, FencedBlock | None]]:
    """Split a text into prose and fenced code blocks. The parts joined are the text."""
    lines = text.split("\n")
    blocks = fenced_blocks(lines)
    ends = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    done = 0
    for block in blocks:
        if prose := "".join(ends[done : block.start]):
            yield prose, None
        yield "".join(ends[block.start : block.stop]), block
        done = block.stop
    if prose := "".join(ends[done:]):
        yield prose, None


def escape_headings(lines: Sequence[str]) -> list[str]:
    """Return the lines with a backslash before every heading outside of code, and with a fence left open closed.

    A prompt is read by a model, not by a CommonMark parser. So a line that only looks like a heading is escaped too, and a
    line counts as code only if it also does for a reader who ignores lists and quotes.
    """
    if not any(map(_SUSPECT.match, lines)):
        return list(lines)
    escaped: list[str] = []
    state, naive_mark = _START, ""
    for line in lines:
        role, _, after = _read(line, state)
        is_code = role in ("code", "fence end") and naive_mark
        safe = line if is_code else _escape_heading(line, role)
        # An escaped heading is a paragraph, which decides how the next line is read.
        state = after if safe is line else _read(safe, state)[2]
        escaped.append(safe)
        if fence := _FENCE_LIKE.match(line):
            closes = fence[1].startswith(naive_mark) and not fence[2].strip()
            naive_mark = fence[1] if not naive_mark else "" if closes else naive_mark
    return [*escaped, *_closing_fence(state)]


def escape_headings_after_tag(text: str) -> str:
    """Return a text with a backslash before every heading that it has between the tags of a quote.

    CommonMark reads a tag alone on its line as HTML up to the next blank line. The list items in it are no lists then, and
    a fence that is indented for its item is indented code.
    """
    if "#" not in text and "-\n" not in text and "=\n" not in text:
        return text
    escaped: list[str] = []
    state = replace(_START, html_end=_BLANK)
    for line in text.split("\n"):
        role, _, after = _read(line, state)
        safe = _escape_heading(line, role) if role in ("heading", "underline") else line
        state = after if safe is line else _read(safe, state)[2]
        escaped.append(safe)
    return "\n".join(escaped)


def close_fence(lines: Sequence[str]) -> list[str]:
    """Return the lines and, where a code block is open at their end, the fence that closes it."""
    state = _START
    for line in lines:
        state = _read(line, state)[2]
    return [*lines, *_closing_fence(state)]


def code_block(code: str, language: str = "") -> str:
    """Return the code between fences that are longer than any in it."""
    longest = max(map(len, _TICKS.findall(code)), default=2)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{code}\n{mark}"


# --- the reader ------------------------------------------------------------------------------------------------------

_BLOCK_QUOTE = 0
"""A block quote among the open containers; any other number is the indentation of a list item's lines."""


MAX_NESTING = 100
"""Quotes and lists in one another. What is nested deeper is text: with no limit, a line of nothing but marks would take time
that grows with the square of its length."""


@dataclass(frozen=True, slots=True)
class _State:
    """The open blocks after a line: containers from the outside in, and a paragraph, code block or HTML block in them."""

    containers: tuple[int, ...] = ()
    paragraph: bool = False
    continues_paragraph: bool = False
    fence: Fence | None = None
    html_end: re.Pattern[str] | None = None
    is_empty_item: bool = False


_START = _State()

_TICKS = re.compile(r"`+")
_FENCE = re.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
_HEADING = re.compile(r"#{1,6}(?:[ \t\r]|$)")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t\r]*$")
_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})\r?$")
_ITEM = re.compile(r"(?:[-*+]|([0-9]{1,9})[.)])(?=[ \t\r]|$)")

_PREFIX = r"(?:\s|>|[-*+](?=\s)|\d{1,9}[.)](?=\s))*"
_HEADING_LIKE = re.compile(rf"({_PREFIX})(#{{1,6}}(?:\s|$)|={{2,}}\s*$|-{{3,}}\s*$)")
_FENCE_LIKE = re.compile(rf"{_PREFIX}(`{{3,}}|~{{3,}})(.*)")
_UNDERLINE_IN_QUOTE = re.compile(r"([\s>]*)([=-])")
_SUSPECT = re.compile(rf"{_PREFIX}(?:#{{1,6}}(?:\s|$)|=+\s*$|-+\s*$|`{{3}}|~{{3}})")
"""A line that can be a heading or a fence. Most texts have none, and need no reader."""

_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu"
    "|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr"
    "|track|ul"
)
_ATTRIBUTE = r"\s++[A-Za-z_:][\w.:-]*+(?:\s*+=\s*+(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?"
_BLANK = re.compile(r"(?!)")
"""The end of the HTML blocks that last until a blank line: no line with text ends them."""


@cache
def _html_blocks() -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    """Return how the seven sorts of HTML blocks begin and end. The last, a tag alone on its line, interrupts no paragraph.

    They are compiled on first use, which takes as long as importing the rest of this module.
    """
    return (
        (
            re.compile(r"<(?:pre|script|style|textarea)(?:[\s>]|$)", re.I),
            re.compile(r"</(?:pre|script|style|textarea)>", re.I),
        ),
        (re.compile(r"<!--"), re.compile(r"-->")),
        (re.compile(r"<\?"), re.compile(r"\?>")),
        (re.compile(r"<![A-Za-z]"), re.compile(r">")),
        (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
        (re.compile(rf"</?(?:{_BLOCK_TAGS})(?:\s|/?>|$)", re.IGNORECASE), _BLANK),
        (re.compile(rf"(?:<[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+\s*+/?>|</[A-Za-z][A-Za-z0-9-]*+\s*+>)\s*$"), _BLANK),
    )


def _read(line: str, state: _State) -> tuple[Role, str, _State]:
    """Return the role of a line, its text without the marks of containers, and what is open after it."""
    matched, column, indent, rest = _match_containers(line, state)
    is_inside = matched == len(state.containers)
    if is_inside and state.fence:
        return _read_code(line, column, indent, rest, state)
    if is_inside and state.html_end:
        ended = not rest if state.html_end is _BLANK else state.html_end.search(rest)
        after = replace(state, html_end=None) if ended else state
        return "html" if rest else "blank", rest, after
    interrupts = state.paragraph and is_inside
    containers, column, indent, rest = _open_containers(state.containers[:matched], column, indent, rest, interrupts)
    opened = len(containers) > matched
    paragraph = state.paragraph and not opened
    if not rest:
        return "blank", "", _State(containers, is_empty_item=opened and containers[-1] != _BLOCK_QUOTE)
    role, after = _read_block(indent, rest, containers, paragraph, interrupts and not opened)
    if role != "text" or not after.paragraph:
        return role, rest, after
    # A paragraph goes on without the marks of its containers: a lazy line closes none of them.
    return (
        "text",
        rest,
        replace(after, containers=state.containers if paragraph else containers, continues_paragraph=paragraph),
    )


def _match_containers(line: str, state: _State) -> tuple[int, int, int, str]:
    """Return how many open containers a line belongs to, and the column, indentation and text that follow their marks."""
    column = 0
    indent, rest = _split_indent(line, column)
    matched = 0
    for number, width in enumerate(state.containers, 1):
        if width == _BLOCK_QUOTE:
            if indent > 3 or not rest.startswith(">"):
                break
            column, indent, rest = _after_quote_mark(column, indent, rest)
        elif not rest:
            if state.is_empty_item and number == len(state.containers):  # an item may begin with one blank line only
                break
        elif indent >= width:
            column, indent = column + width, indent - width
        else:
            break
        matched = number
    return matched, column, indent, rest


def _open_containers(
    containers: tuple[int, ...], column: int, indent: int, rest: str, interrupts: bool
) -> tuple[tuple[int, ...], int, int, str]:
    """Return the containers with those that a line opens, and what follows their marks."""
    while rest and indent <= 3 and len(containers) < MAX_NESTING:
        if rest[0] == ">":
            containers += (_BLOCK_QUOTE,)
            column, indent, rest = _after_quote_mark(column, indent, rest)
        elif (item := _ITEM.match(rest)) and not _RULE.match(rest) and not (interrupts and _UNDERLINE.match(rest)):
            start = column + indent + item.end()
            space, text = _split_indent(rest[item.end() :], start)
            if interrupts and (not text or int(item[1] or 1) != 1):
                break
            padding = space if text and space <= 4 else 1
            containers += (indent + item.end() + padding,)
            column, indent, rest = start + padding, space - padding, text
        else:
            break
        interrupts = False
    return containers, column, indent, rest


def _after_quote_mark(column: int, indent: int, rest: str) -> tuple[int, int, str]:
    column += indent + 1
    indent, rest = _split_indent(rest[1:], column)
    return (column + 1, indent - 1, rest) if indent else (column, 0, rest)


def _read_code(line: str, column: int, indent: int, rest: str, state: _State) -> tuple[Role, str, _State]:
    """Read a line inside a code block."""
    assert state.fence
    fence = _match_fence(rest, indent) if indent <= 3 else None
    if fence and fence.closes(state.fence):
        return "fence end", "", _State(state.containers)
    content = line.rstrip("\r") if column == 0 and not state.fence.indent else " " * (indent - state.fence.indent) + rest
    return "code", content, state


def _read_block(
    indent: int, rest: str, containers: tuple[int, ...], paragraph: bool, interrupts: bool
) -> tuple[Role, _State]:
    """Return the role of the text after the containers' marks, and what is open after it."""
    if indent > 3:
        return "text", _State(containers, paragraph=paragraph)  # indented code, unless it continues a paragraph
    if _HEADING.match(rest):
        return "heading", _State(containers)
    if fence := _match_fence(rest, indent):
        return "fence start", _State(containers, fence=fence)
    blocks = _html_blocks() if rest[0] == "<" else ()
    for number, (start, end) in enumerate(blocks, 1):
        if start.match(rest) and not (paragraph and number == len(blocks)):
            return "html", _State(containers, html_end=None if end.search(rest) else end)
    if interrupts and _UNDERLINE.match(rest):
        return "underline", _State(containers)
    return "text", _State(containers, paragraph=not _RULE.match(rest))


def _match_fence(rest: str, indent: int) -> Fence | None:
    match = _FENCE.match(rest) if rest[:3] in ("```", "~~~") else None
    return Fence(match[1] or match[3], (match[2] or match[4] or "").strip(), indent) if match else None


def _without_closing_marks(title: str) -> str:
    """Return the text of a heading without the number signs at its end, if a blank precedes them."""
    title = title.rstrip(" \t\r")
    text = title.rstrip("#")
    return text if not text or text[-1] in " \t" else title


def _split_indent(text: str, column: int) -> tuple[int, str]:
    """Return the width of the leading blanks, where tabs go to every fourth column, and the text after them."""
    rest = text.lstrip(" \t")
    width = column
    for character in text[: len(text) - len(rest)]:
        width += 1 if character == " " else 4 - width % 4
    return width - column, rest.rstrip("\r")


# --- writing ---------------------------------------------------------------------------------------------------------


def _escape_heading(line: str, role: Role) -> str:
    match = _UNDERLINE_IN_QUOTE.match(line) if role == "underline" else _HEADING_LIKE.match(line)
    return f"{line[: match.start(2)]}\\{line[match.start(2) :]}" if match else line


def _closing_fence(state: _State) -> list[str]:
    """Return the line that closes the open code block. One inside a quote ends with the quote."""
    if not state.fence or _BLOCK_QUOTE in state.containers:
        return []
    return [" " * sum(state.containers) + state.fence.mark]


# --- the block of `foveate store export --agents-md` --------------------------------------------------------------------

BEGIN, END = "<!-- BEGIN foveate -->", "<!-- END foveate -->"

_BLOCK = re.compile(rf"^{re.escape(BEGIN)}[ \t\r]*$.*?^{re.escape(END)}[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def remove_generated_block(text: str) -> str:
    """Return a text without the block that foveate wrote into it, so that foveate does not read its own records back."""
    return _BLOCK.sub("", text) if BEGIN in text else text
