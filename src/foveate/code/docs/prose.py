"""Plain text of Markdown and reStructuredText: paragraphs, sentences, and how a README introduces its project.

This reads line by line and takes any text. Badges, images, HTML, tables, code and directives are dropped; links keep their
words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from foveate.text.format import one_line, truncate
from foveate.text.markdown import split_code
from foveate.text.summarize import split_sentences

MAX_CHARS = 40_000
"""The rest of a longer document is not read: the important parts come early."""
MAX_LINE_CHARS = 2_000
"""It also bounds the time that the patterns below take."""
MAX_INTRODUCTION_CHARS = 900
MIN_PARAGRAPH_CHARS = 30
"""Shorter paragraphs are captions and rows of links."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, or an item of a list."""

    text: str
    heading: str
    """The nearest heading above it."""
    headings: int
    """How many headings come before it."""
    is_item: bool


# --- words of a line -----------------------------------------------------------------------------------------------

_TARGET = r"(?:\([^()\n]{0,800}\)|\[[^\[\]\n]{0,100}\])"
_SUBSTITUTIONS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("[", re.compile(rf"!\[[^\]\n]{{0,300}}\]{_TARGET}|\[\s*\]{_TARGET}|\[\^[^\]\n]{{1,40}}\]"), ""),  # images, footnotes
    ("[", re.compile(rf"\[([^\[\]\n]{{1,300}})\]{_TARGET}"), r"\1"),
    ("`", re.compile(r"``([^`\n]{1,300})``"), r"`\1`"),
    ("`", re.compile(r"`([^`<\n]{1,200}?)\s*<[^`<>\n]{1,500}>`_{0,2}"), r"\1"),  # reStructuredText link
    ("`", re.compile(r":[\w:+-]{2,40}:`~?([^`\n]{1,200})`"), r"`\1`"),  # reStructuredText role
    ("`", re.compile(r"`([^`\n]{1,200})`_{1,2}"), r"\1"),
    ("|", re.compile(r"\|[\w .-]{1,60}\|_{0,2}"), ""),  # reStructuredText substitution
    ("<", re.compile(r"<(https?://[^<>\s]{1,500})>"), r"\1"),
    ("<", re.compile(r"</?[A-Za-z][^<>\n]{0,500}>"), " "),
    ("*", re.compile(r"\*\*([^*\n]{1,400})\*\*"), r"\1"),
    ("*", re.compile(r"(?<![\w*\\])\*([^*\s][^*\n]{0,200})\*(?![\w*])"), r"\1"),
)
"""A character that the line must have, the pattern, and what takes its place. The check spares most lines the patterns."""


def to_plain_text(text: str) -> str:
    """Return the words of Markdown or reStructuredText on one line. Inline code keeps its backticks."""
    for character, pattern, replacement in _SUBSTITUTIONS:
        if character in text:
            text = pattern.sub(replacement, text)
    return one_line(text)


# --- paragraphs ----------------------------------------------------------------------------------------------------

_FRONT_MATTER = re.compile(r"---\n.{0,4000}?\n---\n", re.DOTALL)
_COMMENTS_AND_TABLES = re.compile(r"<!--.*?(?:-->|\Z)|<table\b.*?(?:</table>|\Z)", re.DOTALL | re.IGNORECASE)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_UNDERLINE = re.compile(r"\s{0,3}([=\-~^\"'*#+_.])\1{2,}\s*$")
_ITEM = re.compile(r"\s{0,8}(?:[-*+•]|\d{1,3}[.)]|#\.)\s+(?:\[[ xX]\]\s+)?")
_DIRECTIVE = re.compile(r"\s{0,8}\.\.(?:\s|$)")
_NOT_PROSE = re.compile(r"\s{0,3}(?:\[[^\]\n]{1,200}\]:\s|\|[^|\n]*\||\+[-=+]{3,}|:[\w -]{1,30}:(?:\s|$)|<(?!https?:))")
"""Link targets, rows of tables, fields of reStructuredText, HTML."""
_CONTENTS_ENTRY = re.compile(r"\[[^\[\]\n]{1,200}\]\(#[^()\n]{0,200}\)")


def paragraphs(text: str) -> list[Paragraph]:
    """Return the paragraphs and list items of a document, in order."""
    text = text[:MAX_CHARS].replace("\r\n", "\n")
    if front_matter := _FRONT_MATTER.match(text):
        text = text[front_matter.end() :]
    reader = _ParagraphReader()
    for part, code in split_code(_COMMENTS_AND_TABLES.sub("", text)):
        for line in _prose_lines(part) if code is None else ("",):
            reader.add(line[:MAX_LINE_CHARS])
    reader.end_paragraph()
    return reader.paragraphs


class _ParagraphReader:
    def __init__(self) -> None:
        self.paragraphs: list[Paragraph] = []
        self.heading, self.headings = "", 0
        self.lines: list[str] = []
        self.is_item = False

    def add(self, line: str) -> None:
        stripped = line.strip()
        if not stripped or _NOT_PROSE.match(line):
            self.end_paragraph()
        elif _UNDERLINE.match(line):
            if len(self.lines) == 1 and not self.is_item:  # the line above it is a heading
                self.set_heading(self.lines.pop())
            self.end_paragraph()
        elif heading := _HEADING.match(line):
            self.end_paragraph()
            self.set_heading(heading[1])
        elif item := _ITEM.match(line):
            self.end_paragraph()
            self.is_item = True
            self.lines.append(line[item.end() :].strip())
        else:
            self.lines.append(stripped.lstrip("> ") if stripped.startswith(">") else stripped)

    def set_heading(self, text: str) -> None:
        self.heading = to_plain_text(text)
        self.headings += 1

    def end_paragraph(self) -> None:
        written = " ".join(self.lines)
        text = "" if _CONTENTS_ENTRY.fullmatch(written) else to_plain_text(written)
        if any(map(str.isalpha, text)):
            self.paragraphs.append(Paragraph(text, self.heading, self.headings, self.is_item))
        self.lines, self.is_item = [], False


def _prose_lines(text: str) -> Iterator[str]:
    """Yield the lines outside of directives, literal blocks and indented code; an empty line for each of these."""
    is_hidden, in_list = False, False
    for line in text.split("\n"):
        is_indented = line[:1] in (" ", "\t")
        if is_hidden and (is_indented or not line.strip()):
            continue
        is_hidden = bool(_DIRECTIVE.match(line)) or (line.startswith(("    ", "\t")) and not in_list)
        if is_hidden:
            yield ""
            continue
        in_list = bool(_ITEM.match(line)) or (in_list and (is_indented or not line.strip()))
        is_hidden = line.rstrip().endswith("::")  # what follows is literal
        yield line


# --- sentences -----------------------------------------------------------------------------------------------------

_OBLIGATION = re.compile(
    r"\b(?:must|never|always|required|forbidden|not allowed|make sure)\b|(?:^|[.;:,(] ?|and )(?:do not|don't)\b",
    re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph, each on one line."""
    return [one_line(sentence) for sentence in split_sentences(text) if any(map(str.isalpha, sentence))]


def obligations(text: str) -> list[str]:
    """Return the sentences of a document that say what its reader must or must not do."""
    every = [sentence for paragraph in paragraphs(text) for sentence in sentences(paragraph.text)]
    return [sentence for sentence in dict.fromkeys(every) if len(sentence) <= 240 and _OBLIGATION.search(sentence)]


# --- introductions -------------------------------------------------------------------------------------------------

_RELEVANT = re.compile(
    r"overview|about|what (?:is|it|does)|why\b|introduc|summary|description|features|architecture|how it works|design"
    r"|concept|goals|motivation|purpose",
    re.IGNORECASE,
)


def introduction(text: str) -> list[str]:
    """Return what a README says about its project: its first paragraphs, then those under headings such as "Overview"."""
    found = [one for one in paragraphs(text) if len(one.text) >= MIN_PARAGRAPH_CHARS or one.is_item]
    lead = [paragraph for paragraph in found if paragraph.headings <= 1]
    relevant = [paragraph for paragraph in found if paragraph.headings > 1 and _RELEVANT.search(paragraph.heading)]
    kept: list[str] = []
    for paragraph in [*lead, *relevant] or found:
        shown = f"- {paragraph.text}" if paragraph.is_item else paragraph.text
        if sum(map(len, kept)) + len(shown) > MAX_INTRODUCTION_CHARS:
            return kept or [truncate(shown, MAX_INTRODUCTION_CHARS)]
        kept.append(shown)
    return kept
