"""Finds the part of an agent's answer that holds a handoff: front matter, a fenced block, bare JSON or bare YAML.

This looks only at lines and names; the readers decide whether a candidate can be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from foveate.tasks.handoff.schema import WRAPPERS, find, fold
from foveate.text.markdown import FencedBlock, fenced_blocks, parse_fence

MAX_OUTER_FENCES = 3
"""How many fences around a whole answer are removed."""

MAX_EXTRA_BLOCKS = 4
"""How many other blocks may add fields to the best one."""

_KEY_LINE = re.compile(r"[ \t]*(?:- )?[\"'“]?([A-Za-z$][\w \-$]{0,40}?)[\"'”]?[ \t]*:(?:[ \t]|$)")
_UNSPACED_KEY = re.compile(r"([a-z_]{3,40}):(?!//)")
_HEADING = re.compile(r"[ \t]{0,3}(?:#{1,6}[ \t]+|\*\*)([^*\n]{1,60})")
_STRUCTURE = re.compile(r"[\"'“]?[\w$][\w .$-]{0,40}[\"'”]?[ \t]*:(?:[ \t]|$)|-(?:[ \t]|$)|#(?!#)|[\]}]|---$|\.\.\.$")
_OTHER_KEY = re.compile(r"[\w$.-]{1,40}:(?:[ \t]|$)|<<:")
_JSON_START = re.compile(r"[ \t]*(?:\{|\[[ \t]*(?:\{|$))")
_JSON_KEY = re.compile(r"[\"'“]?([A-Za-z][\w \-]{0,40})[\"'”]?\s*:")
_WRAPPER_LANGUAGES = frozenset({"", "markdown", "md", "text", "txt", "plaintext"})


@dataclass(frozen=True, slots=True)
class Block:
    """A candidate: its form, its text, the number of lines before it, and the Markdown around it (`body`)."""

    form: str
    text: str
    line: int
    body: str = ""
    has_surrounding_prose: bool = False  # only for bare YAML or JSON
    is_unclosed: bool = False  # the fence around it is never closed
    extra_blocks: tuple[Block, ...] = ()  # other fenced blocks with fields

    @property
    def is_json(self) -> bool:
        return bool(_JSON_START.match(self.text.lstrip()[:80]))


def key_of(line: str) -> str | None:
    """Return the folded key at the start of a line, if the schema knows it."""
    match = _KEY_LINE.match(line) or _UNSPACED_KEY.match(line)
    if match and (find(match[1]) or fold(match[1]) in WRAPPERS):
        return fold(match[1])
    return None


def heading_of(line: str) -> str | None:
    """Return the field that a Markdown heading or bold label names."""
    match = _HEADING.match(line)
    if match and (field := find(match[1].strip().rstrip(":"))):
        return field.name
    return None


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def strip_outer_fence(text: str) -> tuple[str, int]:
    """Return the text inside a fence around a whole answer, and the number of lines before it."""
    line = 0
    for _ in range(MAX_OUTER_FENCES):
        lines = text.split("\n")
        blocks = fenced_blocks(lines)
        whole = max(blocks, key=lambda fence: fence.stop - fence.start, default=None)
        if whole is None or whole.fence.language not in _WRAPPER_LANGUAGES or _keys(_blank_fences(lines, blocks)):
            break
        inner = whole.code.split("\n")
        first = next((each for each in inner if each.strip()), "")
        if first.strip() != "---" and not fenced_blocks(inner) and not any(map(heading_of, inner)):
            break
        if key_of(first) or _JSON_START.match(first):
            break  # a block like any other, with fences or bold words inside
        text, line = "\n".join(inner), line + whole.start + 1
    return text, line


def candidates(text: str) -> Iterator[Block]:
    """Yield the places where a handoff may be, best first."""
    lines = text.split("\n")
    blocks = fenced_blocks(lines)
    outside = _blank_fences(lines, blocks)
    if front := _front_matter(lines, outside):
        yield front
    own_keys = len(_keys(outside))
    scores = [(_score(fence.code.split("\n")), n) for n, fence in enumerate(blocks)]
    score, best = max(scores, default=(0, 0))
    if score and score >= own_keys:
        others = [_fenced_block(lines, blocks[n]) for points, n in scores if points and n != best]
        yield _fenced_block(lines, blocks[best], others[-MAX_EXTRA_BLOCKS:])
    if bare := _json(lines):
        yield bare
    if own_keys and own_keys >= len({name for line in outside if (name := heading_of(line))}):
        yield _unfenced_block(lines, outside)
    if score and score < own_keys:
        yield _fenced_block(lines, blocks[best])


def _blank_fences(lines: Sequence[str], blocks: Sequence[FencedBlock]) -> list[str]:
    """Return the lines with everything in fences blanked."""
    out = list(lines)
    for fence in blocks:
        out[fence.start : fence.stop] = [""] * len(out[fence.start : fence.stop])
    return out


def _keys(lines: Sequence[str]) -> set[str]:
    """Return the known keys at the beginning of lines, at most as far indented as the first of them."""
    named = [(indent_of(line), name) for line in lines if (name := key_of(line))]
    return {name for indent, name in named if indent <= named[0][0]}


def _score(lines: Sequence[str]) -> int:
    """Return how many known keys a block has."""
    if _JSON_START.match(next((line for line in lines if line.strip()), "")):
        return len({fold(name) for name in _JSON_KEY.findall("\n".join(lines)) if find(name)})
    return len(_keys(lines))


def _fenced_block(lines: Sequence[str], fence: FencedBlock, extra_blocks: Sequence[Block] = ()) -> Block:
    inner = fence.code.split("\n")
    while inner and (not inner[-1].strip() or parse_fence(inner[-1])):
        inner.pop()
    body = "\n".join([*lines[: fence.start], "", *lines[fence.stop :]])
    return Block(
        "fenced block",
        "\n".join(inner),
        fence.start + 1,
        body,
        is_unclosed=not fence.is_closed,
        extra_blocks=tuple(extra_blocks),
    )


def _front_matter(lines: Sequence[str], outside: Sequence[str]) -> Block | None:
    start = next((n for n, line in enumerate(outside) if line.rstrip() == "---"), None)
    if start is None or _keys(outside[:start]):
        return None
    if not key_of(_first_nonblank(lines, start + 1)):
        return None
    end = next((n for n in range(start + 1, len(lines)) if lines[n].rstrip() in ("---", "...")), None)
    if end is None or key_of(_first_nonblank(lines, end + 1)):
        return None  # one document, or several
    body = "\n".join([*lines[:start], "", *lines[end + 1 :]])
    return Block("front matter", "\n".join(lines[start + 1 : end]), start + 1, body)


def _first_nonblank(lines: Sequence[str], start: int) -> str:
    """Return the first line from `start` that is neither blank nor a comment."""
    rest = (lines[n] for n in range(start, len(lines)))
    return next((line for line in rest if line.strip() and not line.lstrip().startswith("#")), "")


def _json(lines: Sequence[str]) -> Block | None:
    """Return the text from the first line that begins with a bracket; the reader finds its end."""
    start = next((n for n, line in enumerate(lines) if _JSON_START.match(line)), None)
    if start is None or _keys(lines[:start]) - WRAPPERS:
        return None
    text = "\n".join(lines[start:])
    before = "\n".join(lines[:start])
    if before.strip() and not any(find(name) for name in _JSON_KEY.findall(text[:20_000])):
        return None
    return Block("bare", text, start, before, has_surrounding_prose=bool(before.strip()))


def _yaml_start(lines: Sequence[str], start: int, base: int) -> int:
    """Return the line where the YAML with its first known key at `start` begins: other keys may precede it."""
    first = start
    for n in range(start - 1, -1, -1):
        line = lines[n]
        if _OTHER_KEY.match(line.lstrip()) and indent_of(line) <= base:
            first = n
        elif line.strip() and indent_of(line) <= base and not line.lstrip().startswith(("-", "#")):
            break
    return first


def _unfenced_block(lines: Sequence[str], outside: Sequence[str]) -> Block:
    """Return the text from the first known key to the first paragraph of prose that no known key follows."""
    keys = [n for n, line in enumerate(outside) if key_of(line)]
    base = indent_of(lines[keys[0]])
    start = _yaml_start(lines, keys[0], base)
    last = max(n for n in keys if indent_of(lines[n]) <= base)
    end = len(lines)
    for n in range(last + 1, len(lines)):
        text = lines[n].strip()
        if not text or indent_of(lines[n]) > base or _STRUCTURE.match(text):
            continue
        if not lines[n - 1].strip() or text.startswith(("```", "~~~", "## ", "</")):
            end = n
            break
    before, after = "\n".join(lines[:start]), "\n".join(lines[end:])
    leading = [line for line in lines[:start] if line.strip() and not line.lstrip().startswith(("#", "---", "%"))]
    has_prose = bool(leading or after.strip(" \n`~-"))
    return Block("bare", "\n".join(lines[start:end]), start, f"{before}\n\n{after}", has_prose)
