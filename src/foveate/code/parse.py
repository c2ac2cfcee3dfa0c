"""Parses a file into definitions, references and imports.

A query file for each language (`queries/*.scm`) captures only what is needed. Captures are combined by their byte ranges; no
tree is walked. The captures:

    @def.<kind>   a whole definition; @def.CONSTANT counts only when its name is written like a constant
    @scope        encloses definitions and qualifies their names without being one: an `impl` block
    @outer        begins earlier than the definition in it and belongs to its head: `export`, `template <...>`
    @decorated    begins earlier than the definition in it and does not belong to its head: decorators
    @above        stands right above a definition and belongs to it: attributes
    @name @body @doc   parts of the innermost definition around them; @owner is the type that a method is for
    @ref          a name that is called, constructed, inherited from or used as a type
    @import       what is imported; @member, a name imported from it; @required, imported where `require` stands before it
    @element      of HTML; those with an id and headings count

The queries have no predicates, because these take longer than everything else.

Files without a grammar, and those that a parser cannot read in reasonable time, are cut into blocks of lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from inspect import cleandoc
from itertools import accumulate, pairwise
from threading import local
from time import thread_time
from typing import TYPE_CHECKING

from foveate.code.languages import LANGUAGES, Language, grammar
from foveate.code.model import Definition, ParsedFile

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Query, Tree

BLOCK_LINES = 60
"""Lines of a block in a file that is not parsed."""
MAX_OUTLINE_ITEMS = 300
"""Maximum number of keys, rules or headings of one file. With more it is cut into blocks of lines."""
MAX_SIGNATURE_CHARS = 200
MAX_NAME_CHARS = 200
MAX_DOC_CHARS = 2_000
MAX_DEPTH = 30
"""Maximum nesting of definitions. Code written by people has less than ten levels."""
MAX_COMMENT_LINES = 300
"""Maximum length of a comment above a definition. It also limits the work if many definitions share a line."""
PARSE_TIMEOUT_S = 3.0
"""CPU time for one file. A parser reads about 10 MB per second, so that only malicious or broken files take longer."""
MAX_LINE_BYTES = 50_000
"""A longer line was not written by a person, and error recovery takes time quadratic in its length."""
MAX_UNCLOSED_BRACKETS = 2_000
"""Maximum number of unclosed brackets. Some parsers need gigabytes at the end of a file with 20,000 of them."""
MAX_ERROR_NODES = 10_000
MAX_MATCHES = 100_000
"""Maximum number of unfinished matches, so that memory stays proportional to the size of the file."""
MAX_TREE_DEPTH = 500
"""A query takes time proportional to the depth of every node. 200 chained calls are within this limit."""
READ_BYTES = 4_096
"""Size of the pieces given to the parser. The time is checked between them. A file of mostly punctuation is given byte by
byte, because a parser can loop within a few bytes."""

TYPES = frozenset(
    {"class", "struct", "interface", "trait", "enum", "union", "record", "object", "protocol", "type", "scope"}
)
"""A function inside one of these is a method."""
_OUTLINES = frozenset({"section", "element", "rule", "key"})
_PARTS = frozenset({"name", "body", "doc", "owner"})
_SEPARATE_CAPTURES = frozenset({"ref", "import", "member", "required", "above", "element"})
_CAPTURE_PRIORITY = {
    "outer": 0, "decorated": 0, "body": 1, "def.class": 3, "def.constant": 3, "def.CONSTANT": 3, "name": 4, "owner": 4,
    "doc": 4,
}  # fmt: skip
"""Order of captures of the same range; other definitions have 2. A body comes before the only definition in it, since it
belongs to the enclosing one. A constant that is also a function counts as a function."""

_CONSTANT = re.compile(r"_*[A-Z]")
_TAG = re.compile(r"<[^<>]*>")
_TEXT_BYTES = bytes(range(128, 256)) + b" \t\n_" + bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123))
_REQUIRE = re.compile(rb"(?:\b(?:require|require_relative|load|source)|(?:^|\s)\.)[ (]*[\"']?\Z")
_HTML_NAME = re.compile(rb"<(?:h[1-6]\b|[^<>]*?\sid\s*=\s*[\"']?([^\"'<>\s]+))", re.IGNORECASE)
_DEEP_YAML = re.compile(rb"^(?:[ ]{150}|\s*(?:[-?:][ \t]+){30})", re.MULTILINE)
"""The YAML scanner writes past its buffer if blocks are nested about 250 deep."""
_DOC_TAG = re.compile(r"</?(?:summary|remarks|returns|para)>")
_PLAIN_NAME = re.compile(r"\s*(?:::|\\)\s*")
_STRING = re.compile(r"[A-Za-z]{0,2}(\"\"\"|'''|\"|')(.*)\1\Z", re.DOTALL)
_ANNOTATIONS = re.compile(r"(?:@[\w.:]+(?:\((?:[^()]|\([^()]*\))*\))?\s+|\[[^\]]*\]\s*|#\[[^\]]*\]\s*)+(?=\w)")
_COMMENT_LINE = re.compile(r"\s*(?:/\*+!?|\*+/|\*(?!\*)|//+!?|#+|--+|<!--+|=begin\b|=end\b)?(.*?)\s*(?:\*+/|--+>)?\s*\Z")
_LICENSE = re.compile(
    r"\b(?:copyright|licen[sc]ed?|SPDX|all rights reserved|coding[:=]|eslint|jshint|frozen_string_literal)\b", re.IGNORECASE
)
_IMPORT_MARKS = " \t\r\n\"'`<>;"


def parse(text: str, language: str) -> ParsedFile:
    """Parse one file. It never raises, whatever the text contains."""
    text = text.encode("utf-8", "replace").decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\0", " ")
    row = LANGUAGES.get(language)
    known = grammar(language)
    if not text.strip():
        return ParsedFile(language)
    if row is None or known is None:
        return ParsedFile(language, blocks(text))
    data = text.encode()
    tree = None if _is_too_complex(data, row) else _tree(data, known)
    if tree is None:
        return ParsedFile(language, blocks(text), has_syntax_error=True)
    return _to_parsed_file(text, data, row, tree)


def blocks(text: str) -> tuple[Definition, ...]:
    """Cut a text into blocks of lines, at a blank line if there is one in the last third of a block."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    found, first = [], 0
    while first < len(lines):
        after = min(first + BLOCK_LINES, len(lines))
        if after < len(lines):
            after = next((n for n in range(after, after - BLOCK_LINES // 3, -1) if not lines[n - 1].strip()), after)
        head = next((line.strip() for line in lines[first:after] if line.strip()), "")
        if head:
            found.append(
                Definition("", f"lines {first + 1}-{after}", "block", first + 1, after, _shorten_signature(head[:1_000]))
            )
        first = after
    return tuple(found)


# --- the tree ------------------------------------------------------------------------------------------------------


def _is_too_complex(data: bytes, row: Language) -> bool:
    """Return whether a parser would need gigabytes or crash. This only counts characters."""
    if any(data.count(a) - data.count(b) > MAX_UNCLOSED_BRACKETS for a, b in ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))):
        return True
    if data.count(b"<") - data.count(b">") > max(MAX_UNCLOSED_BRACKETS, len(data) // 50):  # `<<` is common in honest code
        return True
    if row.name == "yaml" and _DEEP_YAML.search(data):
        return True
    return len(data) > MAX_LINE_BYTES and max(map(len, data.split(b"\n"))) > MAX_LINE_BYTES


class _ParserInput(local):
    """The buffer that the parser reads from, one for each thread."""

    def __init__(self) -> None:
        self.buffer = bytearray()


_parser_input = _ParserInput()


def _tree(data: bytes, grammar: Grammar) -> Tree | None:
    """Return the syntax tree, or None if parsing took too long.

    The read callback checks the time, because the parser's progress callback crashes in tree-sitter 0.26. It always returns
    the same buffer, because tree-sitter never frees a returned object.
    """
    from tree_sitter import Parser

    until, late = thread_time() + PARSE_TIMEOUT_S, False
    noise = len(data.translate(None, _TEXT_BYTES)) > len(data) / 2
    buffer = _parser_input.buffer

    def read(offset: int, _: object) -> bytearray:
        nonlocal late
        late = late or thread_time() > until
        step = 1 if noise and data[offset : offset + 1].isascii() else READ_BYTES
        buffer[:] = b"" if late else data[offset : offset + step]
        return buffer

    tree = Parser(grammar).parse(read)
    return None if late or _is_mostly_errors(tree.root_node) else tree


def _is_mostly_errors(root: Node) -> bool:
    """Return whether the tree is nearly one error. A query would take very long on its unordered parts."""
    if not root.has_error:
        return False
    if root.is_error:
        return root.child_count > MAX_ERROR_NODES
    return any(node.is_error and node.child_count > MAX_ERROR_NODES for node in root.children)


@cache
def query(language: str) -> Query:
    """Return the compiled query of a language that has a grammar."""
    from tree_sitter import Query

    known = grammar(language)
    assert known is not None, language
    folder = files("foveate.code").joinpath("queries")
    names = (LANGUAGES[language].queries or language).split()
    return Query(known, "\n".join(folder.joinpath(f"{name}.scm").read_text("utf-8") for name in names))


def _to_parsed_file(text: str, data: bytes, row: Language, tree: Tree) -> ParsedFile:
    from tree_sitter import QueryCursor

    root = tree.root_node
    cursor = QueryCursor(query(row.name), match_limit=MAX_MATCHES)
    cursor.set_max_start_depth(MAX_TREE_DEPTH)
    captures = cursor.captures(root)
    source = _Source(text, data, row, captures.get("above", ()))
    definitions, doc = _definitions(source, captures)
    if row.is_outline_only:
        definitions = source.extend_sections(_limit_outline(definitions)) or blocks(text)
        doc = doc or (definitions[0].doc if definitions[0].kind == "section" else "")
    return ParsedFile(
        row.name,
        definitions,
        source.references(captures.get("ref", ()), captures.get("name", ())),
        source.imports(captures),
        doc or source.file_comment(definitions[0].start_line if definitions and definitions[0].kind != "block" else 0),
        root.has_error,
    )


def _limit_outline(definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return an outline, or its top level if it is too long, or nothing: then the file is cut into blocks."""
    if len(definitions) <= MAX_OUTLINE_ITEMS:
        return definitions
    top = tuple(one for one in definitions if one.parent is None)
    return top if len(top) <= MAX_OUTLINE_ITEMS else ()


# --- definitions ---------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _PartialDefinition:
    """A definition whose parts are being collected."""

    kind: str
    start: int
    end: int
    start_with_decorators: int
    """Start including decorators."""
    signature_start: int
    """Start of its signature."""
    parent: _PartialDefinition | None
    name: str = ""
    qualified_name: str = ""
    body: int = 0
    doc: str = ""
    owner: str = ""
    index: int | None = None


@dataclass(frozen=True, slots=True)
class _EnclosingRange:
    """A range that begins before a definition and belongs to it."""

    start: int
    end: int
    head: int | None
    """Start of the signature, or None if the definition decides."""


def _definitions(source: _Source, captures: dict[str, list[Node]]) -> tuple[tuple[Definition, ...], str]:
    """Return the definitions in order, and the docstring of the file."""
    found: list[Definition] = []
    seen, doc = _collect(source, captures)
    for one in seen:
        parent = one.parent
        while parent is not None and not parent.qualified_name:
            parent = parent.parent
        name = one.name
        if not name.isidentifier() and one.kind not in _OUTLINES:
            name = _PLAIN_NAME.sub(".", name).strip(".")
        if not name or (one.kind == "CONSTANT" and not _CONSTANT.match(name)):
            continue
        around = one.owner or (parent.qualified_name if parent else "")
        one.qualified_name = f"{around}.{name}" if around else name
        if one.kind == "scope":
            one.index = parent.index if parent else None
            continue
        one.index = len(found)
        found.append(_definition(source, one, name, parent))
    if any(a.start_line > b.start_line for a, b in pairwise(found)):
        found = _sort_by_line(found)
    return tuple(found), doc


def _definition(source: _Source, definition: _PartialDefinition, name: str, parent: _PartialDefinition | None) -> Definition:
    kind = definition.kind.lower()
    if kind == "function" and (definition.owner or "." in name or (parent and parent.kind in TYPES)):
        kind = "method"
    row = source.row(definition.start_with_decorators)
    first = source.comment_start_above(row)
    doc = definition.doc or source.comment(first, row)
    end = source.row(source.last_nonblank(definition.start, definition.end))
    place = parent.index if parent else None
    short = name if kind in _OUTLINES else name.rpartition(".")[2]
    return Definition(short, definition.qualified_name, kind, first + 1, end + 1, source.signature(definition), doc, place)


def _sort_by_line(definitions: list[Definition]) -> list[Definition]:
    """Sort by first line, which a comment above may have moved before a neighbor that shares the line.

    In damaged code a comment can move a definition before the one that contains it; then it has no parent.
    """
    order = sorted(range(len(definitions)), key=lambda n: (definitions[n].start_line, n))
    place = {old: new for new, old in enumerate(order)}
    parents = [None if (parent := definitions[n].parent) is None else place[parent] for n in order]
    return [
        replace(definitions[n], parent=parent if parent is not None and parent < new else None)
        for new, (n, parent) in enumerate(zip(order, parents, strict=True))
    ]


def _collect(source: _Source, captures: dict[str, list[Node]]) -> tuple[list[_PartialDefinition], str]:
    """Assign each capture to the innermost definition around it. Ranges are sorted, the wider first."""
    seen: list[_PartialDefinition] = []
    stack: list[_PartialDefinition] = []
    doc = ""
    outer: _EnclosingRange | None = None
    for start, end, tag in _events(source, captures):
        while stack and stack[-1].end <= start:
            stack.pop()
        if tag in _PARTS:
            if stack:
                _apply_capture(source, stack[-1], tag, start, end)
            elif tag == "doc" and not doc:
                doc = _strip_quotes(source.slice(start, end))
        elif tag in ("outer", "decorated"):
            head = start if tag == "outer" else None
            if outer and outer.end >= end:
                outer = replace(outer, head=head if outer.head is None else outer.head)
            else:
                outer = _EnclosingRange(start, end, head)
        else:
            while stack and stack[-1].end < end:  # a heading may end inside an element that begins in it
                stack.pop()
            if len(stack) >= MAX_DEPTH or (stack and (stack[-1].start, stack[-1].end) == (start, end)):
                continue
            first, head = source.definition_start(outer, start, end)
            outer = None
            one = _PartialDefinition(tag.removeprefix("def."), start, end, first, head, stack[-1] if stack else None)
            seen.append(one)
            stack.append(one)
    return seen, doc


def _events(source: _Source, captures: dict[str, list[Node]]) -> Iterator[tuple[int, int, str]]:
    """Return all captures by position. If two begin together, the wider one comes first."""
    found = [
        (node.start_byte, -node.end_byte, _CAPTURE_PRIORITY.get(tag, 2), tag)
        for tag, nodes in captures.items()
        if tag not in _SEPARATE_CAPTURES
        for node in nodes
    ]
    found += source.elements(captures.get("element", ()))
    found.sort()
    return ((start, -end, tag) for start, end, _, tag in found)


def _apply_capture(source: _Source, definition: _PartialDefinition, tag: str, start: int, end: int) -> None:
    """Set a part of a definition. The first one counts, because a second pattern may match the same definition."""
    if tag == "name" and not definition.name:
        definition.name = _clean_name(source.slice(start, min(end, start + 10 * MAX_NAME_CHARS)))
    elif tag == "owner" and not definition.owner:
        owner = source.slice(start, end).removesuffix(".prototype")
        definition.owner = "" if "." in owner else _clean_name(owner)  # not `module.exports`
    elif tag == "body" and not definition.body:
        definition.body = start
    elif tag == "doc" and not definition.doc:
        definition.doc = _strip_quotes(source.slice(start, end))


def _clean_name(raw: str) -> str:
    if raw.isidentifier():
        return raw
    return " ".join(_TAG.sub(" ", raw).split()).strip("\"'`")[:MAX_NAME_CHARS].strip()


def _strip_quotes(raw: str) -> str:
    match = _STRING.match(raw[: 4 * MAX_DOC_CHARS])
    doc = match[2] if match else raw.strip("\"' \n")
    return (cleandoc(doc) if "\n" in doc else doc.strip())[:MAX_DOC_CHARS]


_OPENING_BRACKET_SPACE, _CLOSING_BRACKET_SPACE = re.compile(r"([(\[{]) "), re.compile(r",? ([)\]])")
"""Spaces inside the brackets of a signature that was written on several lines."""


def _shorten_signature(head: str) -> str:
    """Return a signature on one line, cut after a comma or a space if it is too long."""
    head = head.strip()
    line = " ".join(head.split())
    if "\n" in head:
        line = _CLOSING_BRACKET_SPACE.sub(r"\1", _OPENING_BRACKET_SPACE.sub(r"\1", line))
    if len(line) <= MAX_SIGNATURE_CHARS:
        return line
    room = line[: MAX_SIGNATURE_CHARS - 1]
    cut = max(room.rfind(", ") + 1, room.rfind(" "))
    return room[: cut if cut > MAX_SIGNATURE_CHARS // 2 else None].rstrip() + "…"


# --- the text ------------------------------------------------------------------------------------------------------


class _Source:
    """The text of a file by byte ranges and by lines. Lines count from 0."""

    def __init__(self, text: str, data: bytes, row: Language, comment_nodes: Sequence[Node]) -> None:
        self._text = text if text.isascii() else ""  # in ASCII, byte and character offsets are the same
        self._data = data
        self._lines = data.split(b"\n")
        self._starts = list(accumulate(map((1).__add__, map(len, self._lines)), initial=0))
        self._comments = row.line_comments
        self._marks = tuple(mark.encode() for mark in row.line_comments)
        self._block = row.block_comment.encode().split()
        self._attached = {self.row(node.end_byte - 1): node.start_point[0] for node in comment_nodes}
        self._trailing = (
            re.compile(rf"(?:^|\s)(?:{'|'.join(map(re.escape, row.line_comments))})\s.*$", re.M)
            if row.line_comments
            else None
        )

    def slice(self, start: int, end: int) -> str:
        return self._text[start:end] if self._text else self._data[start:end].decode("utf-8", "replace")

    def row(self, offset: int) -> int:
        return bisect_right(self._starts, offset) - 1

    def definition_start(self, outer: _EnclosingRange | None, start: int, end: int) -> tuple[int, int]:
        """Return the start of a definition including decorators, and the start of its signature."""
        if (
            outer is None or outer.end < end or self._data[outer.start : start].rstrip()[-1:] == b"("
        ):  # one of a group of definitions
            return start, start
        return outer.start, start if outer.head is None else outer.head

    def elements(self, nodes: Sequence[Node]) -> Iterator[tuple[int, int, int, str]]:
        """Yield definitions and names from the first tags of HTML elements."""
        for node in nodes:
            start, end = node.start_byte, node.end_byte
            match = _HTML_NAME.match(self._data, start, min(end, start + 1_000))
            if match is None:
                continue
            identified = match[1] is not None
            yield start, -end, 2, "def.element" if identified else "def.section"
            yield (*((match.start(1), -match.end(1)) if identified else (start, -end)), 4, "name")

    def extend_sections(self, definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
        """Extend each section to the next definition, and end other definitions before it."""
        found: list[Definition] = []
        following: dict[int | None, int] = {}  # by parent, the first line of the definition after
        for one in reversed(definitions):
            end = one.end_line
            around = len(self._lines) if one.parent is None else definitions[one.parent].end_line
            limit = following.get(one.parent, around + 1) - 1
            if one.start_line <= limit:
                end = limit if one.kind == "section" else min(end, limit)
            while end > one.start_line and not self._lines[end - 1].strip():
                end -= 1
            following[one.parent] = one.start_line
            found.append(replace(one, end_line=end))
        return tuple(reversed(found))

    def last_nonblank(self, start: int, end: int) -> int:
        """Return the last byte that is not blank, because some nodes include the following line break."""
        end -= 1
        while end > start and self._data[end] in b" \t\r\n":
            end -= 1
        return end

    def references(self, nodes: Sequence[Node], defined: Sequence[Node]) -> tuple[tuple[str, int], ...]:
        """Return references in order, each name once a line, without the names of definitions."""
        own = {node.start_byte for node in defined}
        places = [place for place in sorted((node.start_byte, node.end_byte) for node in nodes) if place[0] not in own]
        starts, text = self._starts, self._text
        if text:
            found = {(text[start:end], bisect_right(starts, start)): None for start, end in places}
        else:
            found = {(self.slice(start, end), bisect_right(starts, start)): None for start, end in places}
        return tuple(found)

    def imports(self, captures: dict[str, list[Node]]) -> tuple[str, ...]:
        """Return imports as written, without quotes: `a.b`, `./utils`. `from a import b` becomes `a.b`."""
        found: list[str] = []
        module = ""
        tags = ("import", "member", "required")
        places = sorted((node.start_byte, node.end_byte, tag) for tag in tags for node in captures.get(tag, ()))
        for start, end, tag in places:
            if tag == "required" and not _REQUIRE.search(self._data[max(0, start - 24) : start]):
                continue
            written = " ".join(self.slice(start, min(end, start + 500)).strip(_IMPORT_MARKS).split())
            if tag != "member":
                # Several names in braces are shortened to their common part, by which a path can be found.
                common, several, _ = written.removeprefix("import ").partition("{")
                module = common.rstrip(":\\. ") if several else common
                found.append(module)
            elif module:
                if found[-1] == module:
                    found.pop()
                found.append(module + written if module.endswith(".") else f"{module}.{written}")
        return tuple(filter(None, dict.fromkeys(found)))

    def signature(self, definition: _PartialDefinition) -> str:
        head = self.slice(
            definition.signature_start,
            min(definition.body or definition.end, definition.signature_start + 10 * MAX_SIGNATURE_CHARS),
        )
        if definition.kind in _OUTLINES:
            return _shorten_signature(head if definition.body else head.partition("\n")[0])
        if self._trailing and any(mark in head for mark in self._comments):
            head = self._trailing.sub("", head)
        line = _shorten_signature(_ANNOTATIONS.sub("", head, count=1) if head[:1] in "@[#" else head)
        line = line.rstrip(" {:=") if definition.body else line.rstrip(" ;{,")
        return line if definition.name in line else f"{line} … {definition.name}"  # typedef struct {...} name

    # --- comments

    def comment_start_above(self, row: int) -> int:
        """Return the first of the comment lines and attributes directly above a line."""
        first = row
        while first > 0 and row - first < MAX_COMMENT_LINES:
            if first - 1 in self._attached:
                first = self._attached[first - 1]
            elif (before := self._comment_start(first - 1)) is not None:
                first = before
            else:
                break
        return first

    def _comment_start(self, row: int) -> int | None:
        """Return the first line of the comment that ends with this line, or None."""
        line = self._lines[row].strip()
        if self._marks and line.startswith(self._marks):
            return row if row or not line.startswith(b"#!") else None
        if self._block and line.endswith(self._block[1]):
            for start in range(row, max(-1, row - MAX_COMMENT_LINES), -1):
                if self._block[0] in self._lines[start]:
                    return start if self._lines[start].lstrip().startswith(self._block[0]) else None
        return None

    def _comment_end(self, row: int) -> int:
        """Return the line after the comment that begins with this line, or the same line."""
        line = self._lines[row].strip()
        if self._block and line.startswith(self._block[0]):
            for end in range(row, min(len(self._lines), row + MAX_COMMENT_LINES)):
                if self._block[1] in self._lines[end]:
                    return end + 1
            return row
        while self._marks and row < len(self._lines) and self._lines[row].lstrip().startswith(self._marks):
            row += 1
        return row

    def comment(self, first: int, after: int) -> str:
        """Return the text of comment lines without their marks."""
        if first == after:
            return ""
        found = []
        for line in self._lines[first : min(after, first + MAX_COMMENT_LINES)]:
            text = line.decode("utf-8", "replace")
            match = _COMMENT_LINE.match(text[:1_000]) if not text.lstrip().startswith(("#[", "@")) else None
            if match and any(map(str.isalnum, match[1])):
                found.append(_DOC_TAG.sub("", match[1]).removeprefix(" "))
            elif found and found[-1]:
                found.append("")
        return "\n".join(found).strip()[:MAX_DOC_CHARS]

    def file_comment(self, first_definition: int) -> str:
        """Return the comment at the top of the file, unless it is a licence or belongs to the first definition."""
        row = 0
        while row < min(len(self._lines), MAX_COMMENT_LINES):
            line = self._lines[row].strip()
            if not line or line.startswith((b"#!", b"<?", b"<!DOCTYPE", b"<!doctype", b"---", b"'use ", b'"use ')):
                row += 1
                continue
            after = self._comment_end(row)
            if after == row or row + 1 == first_definition:
                return ""
            if not _LICENSE.search(text := self.comment(row, after)):
                return text
            row = after
        return ""
