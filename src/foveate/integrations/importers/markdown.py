"""Memory files in Markdown: CLAUDE.md, AGENTS.md, MEMORY.md.

Each bullet with its indented lines, and each paragraph, becomes a note with the headings above it as tags. Anyone may have
written a file of the repository, so its notes have trust `repo` and are never rules. A person who reads one can add it as an
instruction. The block that foveate itself wrote into the file is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from foveate.integrations.importers.rows import ImportRows, Lines
from foveate.memory.messages import RecordRow, digest
from foveate.text.markdown import Heading, fenced_blocks, headings, remove_generated_block

NAME = "markdown"
_BULLET = re.compile(r"(?:[-*+]|\d+[.)])\s+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FRONT_MATTER = re.compile(r"---[ \t]*\n.*?^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def read(lines: Lines, name: str) -> ImportRows:
    """Yield the notes of a file, with its name as their origin."""
    text = remove_generated_block("".join(line for _, line in lines))
    parents: list[Heading] = []
    seen: set[str] = set()
    for block in _blocks(_FRONT_MATTER.sub("", text, count=1) if text.startswith("---") else text):
        if isinstance(block, Heading):
            parents = [*(parent for parent in parents if parent.level < block.level), block]
            continue
        note = _COMMENT.sub("", _BULLET.sub("", block, count=1) if _BULLET.match(block) else block).strip()
        titles = [parent.title for parent in parents]
        key = f"{NAME}:{digest(*titles, ' '.join(note.split()))}"
        if any(character.isalnum() for character in note) and key not in seen:
            seen.add(key)
            tags = list(dict.fromkeys(tag for title in titles if (tag := _tag(title))))
            yield RecordRow("note", note, {"key": key, "tags": tags, "origin": name, "trust": "repo"})


def _tag(title: str) -> str:
    return "-".join(re.findall(r"\w+", title.lower()))


def _blocks(text: str) -> Iterator[Heading | str]:
    """Yield headings, bullets and paragraphs. A code block stays with the text above it."""
    lines = text.splitlines()
    code = {number for block in fenced_blocks(lines) for number in range(block.start, block.stop)}
    heading_at = {heading.line: heading for heading in headings(lines) if not _BULLET.match(lines[heading.line])}
    block: list[str] = []
    is_underlined_heading = False
    for number, line in enumerate(lines):
        if is_underlined_heading:
            is_underlined_heading = bool(line.strip("=- "))
            continue
        if number not in code and block and _starts_block(block, line, number in heading_at):
            yield _join(block)
            block = []
        if number in heading_at:
            yield heading_at[number]
            is_underlined_heading = not line.lstrip().startswith("#")
        elif block or line.strip():
            block.append(line.rstrip())
    if block:
        yield _join(block)


def _starts_block(block: Sequence[str], line: str, is_heading: bool) -> bool:
    """Return whether a line ends the block above it. After a blank line, only indented lines belong to the same bullet."""
    is_indented = line.startswith((" ", "\t"))
    return is_heading or bool(_BULLET.match(line)) or (block[-1] == "" and bool(line.strip()) and not is_indented)


def _join(block: Sequence[str]) -> str:
    return "\n".join(block).strip()
