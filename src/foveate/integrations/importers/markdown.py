"""Memory files in Markdown (CLAUDE.md, AGENTS.md, MEMORY.md) -> notes.

Each bullet with what is indented under it, and each paragraph, is a note, tagged with the headings above it. The file lies
in the repository, where anybody may write: its words are notes of trust `repo`, never rules. Read one and add it as an
instruction where it should be one. What `foveate export agents-md` wrote into it is known already and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foveate.integrations.importers.rows import Given, Lines, Row, digest
from foveate.text.markdown import BEGIN, END

NAME = "markdown"
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*\s*$")
_BULLET = re.compile(r"(?:[-*+]|\d+[.)])\s+")
_FENCE = re.compile(r"\s*(```|~~~)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def read(lines: Lines, name: str) -> Given:
    """The notes of a file. `name`: what it is called."""
    above: list[tuple[int, str]] = []
    seen: set[str] = set()
    for part in _parts(lines):
        heading = _HEADING.match(part)
        if heading:
            depth = len(heading[1])
            above = [*(entry for entry in above if entry[0] < depth), (depth, heading[2])]
            continue
        text = _BULLET.sub("", part, count=1) if _BULLET.match(part) else part
        text = _COMMENT.sub("", text).strip()
        titles = [title for _, title in above]
        key = f"{NAME}:{digest(*titles, ' '.join(text.split()))}"
        if any(character.isalnum() for character in text) and key not in seen:
            seen.add(key)
            tags = list(dict.fromkeys(tag for title in titles if (tag := _tag(title))))
            yield Row("note", text, {"key": key, "tags": tags, "origin": name, "trust": "repo"})


def _tag(title: str) -> str:
    return "-".join(re.findall(r"\w+", title.lower()))


def _parts(lines: Lines) -> Iterator[str]:
    """Headings, bullets and paragraphs; a fenced block stays with what it follows."""
    part: list[str] = []
    fence = ""
    for line in _after_front_matter(lines):
        mark = _FENCE.match(line)
        if fence or mark:
            fence = fence if mark is None or (fence and mark[1] != fence) else "" if fence else mark[1]
            part.append(line)
            continue
        blank = not line.strip()
        begins = bool(_HEADING.match(line) or _BULLET.match(line))
        under = bool(part) and line.startswith((" ", "\t"))
        ended = bool(part) and (bool(_HEADING.match(part[0])) or (part[-1] == "" and not under and not blank))
        if (begins or ended) and part:
            yield "\n".join(part).strip()
            part = []
        if not blank or part:
            part.append(line.rstrip())
    if part:
        yield "\n".join(part).strip()


def _after_front_matter(lines: Lines) -> Iterator[str]:
    inside = ours = False
    for number, line in lines:
        ours = line.rstrip() == BEGIN or ours
        if ours:
            ours = line.rstrip() != END
            continue
        if line.rstrip() == "---" and (inside or number == 1):
            inside = not inside and number == 1
            continue
        if not inside:
            yield line.rstrip("\n")
