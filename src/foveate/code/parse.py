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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from threading import local
from time import thread_time
from typing import TYPE_CHECKING

from foveate.code.definitions import SourceText, find_definitions, shorten_signature
from foveate.code.languages import LANGUAGES, Language, grammar
from foveate.code.model import Definition, ParsedFile

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar
    from tree_sitter import Node, Query, Tree

BLOCK_LINES = 60
"""Lines of a block in a file that is not parsed."""
MAX_OUTLINE_ITEMS = 300
"""Maximum number of keys, rules or headings of one file. With more it is cut into blocks of lines."""
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

_TEXT_BYTES = bytes(range(128, 256)) + b" \t\n_" + bytes(range(48, 58)) + bytes(range(65, 91)) + bytes(range(97, 123))
_REQUIRE = re.compile(rb"(?:\b(?:require|require_relative|load|source)|(?:^|\s)\.)[ (]*[\"']?\Z")
_DEEP_YAML = re.compile(rb"^(?:[ ]{150}|\s*(?:[-?:][ \t]+){30})", re.MULTILINE)
"""The YAML scanner writes past its buffer if blocks are nested about 250 deep."""
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
                Definition("", f"lines {first + 1}-{after}", "block", first + 1, after, shorten_signature(head[:1_000]))
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


_thread = local()
"""Holds the buffer that the parser reads from, one for each thread."""


def _tree(data: bytes, grammar: Grammar) -> Tree | None:
    """Return the syntax tree, or None if parsing took too long.

    The read callback checks the time, because the parser's progress callback crashes in tree-sitter 0.26. It always returns
    the same buffer, because tree-sitter never frees a returned object.
    """
    from tree_sitter import Parser

    until, late = thread_time() + PARSE_TIMEOUT_S, False
    noise = len(data.translate(None, _TEXT_BYTES)) > len(data) / 2
    buffer: bytearray = vars(_thread).setdefault("buffer", bytearray())

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
    source = SourceText(text, data, row, captures.get("above", ()))
    definitions, doc = find_definitions(source, captures)
    if row.is_outline_only:
        definitions = _extend_sections(source.lines, _limit_outline(definitions)) or blocks(text)
        doc = doc or (definitions[0].doc if definitions[0].kind == "section" else "")
    return ParsedFile(
        row.name,
        definitions,
        _references(source, captures.get("ref", ()), captures.get("name", ())),
        _imports(source, captures),
        doc or source.file_comment(definitions[0].start_line if definitions and definitions[0].kind != "block" else 0),
        root.has_error,
    )


def _limit_outline(definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Return an outline, or its top level if it is too long, or nothing: then the file is cut into blocks."""
    if len(definitions) <= MAX_OUTLINE_ITEMS:
        return definitions
    top = tuple(one for one in definitions if one.parent is None)
    return top if len(top) <= MAX_OUTLINE_ITEMS else ()


def _extend_sections(lines: Sequence[bytes], definitions: tuple[Definition, ...]) -> tuple[Definition, ...]:
    """Extend each section to the next definition, and end other definitions before it."""
    found: list[Definition] = []
    following: dict[int | None, int] = {}  # by parent, the first line of the definition after
    for one in reversed(definitions):
        end = one.end_line
        around = len(lines) if one.parent is None else definitions[one.parent].end_line
        limit = following.get(one.parent, around + 1) - 1
        if one.start_line <= limit:
            end = limit if one.kind == "section" else min(end, limit)
        while end > one.start_line and not lines[end - 1].strip():
            end -= 1
        following[one.parent] = one.start_line
        found.append(replace(one, end_line=end))
    return tuple(reversed(found))


# --- references and imports ----------------------------------------------------------------------------------------


def _references(source: SourceText, nodes: Sequence[Node], defined: Sequence[Node]) -> tuple[tuple[str, int], ...]:
    """Return references in order, each name once a line, without the names of definitions."""
    own = {node.start_byte for node in defined}
    places = sorted((node.start_byte, node.end_byte) for node in nodes)
    found = {(source.slice(start, end), source.row(start) + 1): None for start, end in places if start not in own}
    return tuple(found)


def _imports(source: SourceText, captures: Mapping[str, Sequence[Node]]) -> tuple[str, ...]:
    """Return imports as written, without quotes: `a.b`, `./utils`. `from a import b` becomes `a.b`."""
    found: list[str] = []
    module = ""
    tags = ("import", "member", "required")
    places = sorted((node.start_byte, node.end_byte, tag) for tag in tags for node in captures.get(tag, ()))
    for start, end, tag in places:
        if tag == "required" and not _REQUIRE.search(source.data[max(0, start - 24) : start]):
            continue
        written = " ".join(source.slice(start, min(end, start + 500)).strip(_IMPORT_MARKS).split())
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
