"""A question or an issue report -> what it says about code: words by zone, named files and symbols, stack-trace frames.

Two modes. A short question is taken word for word. A report is read in zones, because its title says more than its prose,
its prose more than pasted output, and a template's own words nothing at all. Names of files, symbols and frames are kept
apart: they vote for what they name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from foveate import lexical

Mode = Literal["question", "report"]

SHORT = 60
"""Words up to which a text without fences and traces is a question."""

ZONES: Mapping[str, float] = {"title": 2.0, "prose": 1.0, "code": 0.6, "output": 0.3}
"""What a word is worth by where it stands."""

MAX_CHARS = 50_000
"""Of a longer report the rest is read no more: it is a log."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack trace: the innermost is the last."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a text asks of the code."""

    mode: Mode
    terms: Mapping[str, float]
    """Index terms with their weight."""
    paths: tuple[str, ...] = ()
    """Files that it names, as written."""
    symbols: Mapping[str, float] = field(default_factory=dict)
    """Identifiers that it names, with how plainly: in the title, in code marks, called, in running code."""
    frames: tuple[Frame, ...] = ()


_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[^\n]*\n(.*?)(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img[^>]*>", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]{0,200})\]\(([^)\s]{0,500})\)")
_URL = re.compile(r"https?://[^\s)>\]\"'`]+")
_BLOB = re.compile(r"/(?:blob|tree|src|raw)/[^/\s]+/([\w./+-]+\.\w+)(?:#L(\d+))?")
_SPAN = re.compile(r"`([^`\n]{1,200})`")
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.+-]+/)*[\w+-]+\.(?:[a-z]{1,4}|[ch]pp|scala|swift|toml|yaml|json)(?![\w/-])")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*")
_CALLED = re.compile(r"([A-Za-z_][\w.]*)\(")

# What a template asks, not what the reporter says. Its sections go with all that stands under them.
_DROPPED = re.compile(
    r"code of conduct|search before|willing to|submit a pr|checklist|environment|versions?\b|configuration|system info"
    r"|operating system|platform|package versions|installed packages|contribut|are you (?:using|sure)|prerequisites"
    r"|additional context|screenshots?|python version",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"describe (?:the|a|alternatives)|expected (?:behaviou?r|results?|output)|actual (?:behaviou?r|results?|output)"
    r"|observed behaviou?r|steps to reproduce|to reproduce|how to reproduce|reproduc\w+|what (?:happened|i did|version)"
    r"|is your feature request|solution you'?d like|alternatives you|current behaviou?r|minimal example|summary|description"
    r"|bug description|problem description|please describe|issue",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+(?P<hashed>.+?)#*|\*\*(?P<bold>[^*\n]+?):?\*\*:?|(?P<set>[^\n]{1,80})\n[-=]{3,})\s*$", re.MULTILINE
)
_CHECKBOX = re.compile(r"^\s*[-*]\s*\[[ xX]\].*$", re.MULTILINE)

_PY_FRAME = re.compile(r'File "([^"\n]{1,400})", line (\d{1,7})(?:, in ([\w<>.]+))?')
_IPY_FRAME = re.compile(r"^\s*(\S{1,300}\.py) in (\w+)\(", re.MULTILINE)
_JS_FRAME = re.compile(
    r"^\s*at (?:async )?(?:([\w.$<>\[\] ]{1,100}?) )?\(?(?:file://)?([^()\s:]{1,300}):(\d{1,7})(?::\d+)?\)?", re.MULTILINE
)
_JAVA_FRAME = re.compile(r"^\s*at ([\w.$]{1,200})\.([\w$<>]{1,100})\((\w+\.(?:java|kt|scala)):(\d{1,7})\)", re.MULTILINE)
_COLON_FRAME = re.compile(r"^\s*(?:-->\s*)?((?:[\w.@+~-]*/)*[\w.+-]+\.[a-z]{1,5}):(\d{1,7})(?::\d+)?\b", re.MULTILINE)
_TRACE = re.compile(r"Traceback \(most recent|^\s+at \S+ ?\(|^panic: |^\s*File \"[^\"]+\", line \d", re.MULTILINE)


def read(text: str) -> Question:
    """What a question or a report says about code."""
    text = text[:MAX_CHARS].replace("\r\n", "\n")
    frames = tuple(_frames(text))
    if not frames and "```" not in text and len(text.split()) <= SHORT:
        return _question(text)
    title, _, rest = text.strip().partition("\n")
    terms: dict[str, float] = {}
    symbols: dict[str, float] = {}
    paths: dict[str, None] = {}
    for zone, part in (("title", title), *_zones(rest)):
        _count(terms, part, zone)
        _name(symbols, part, zone)
        if zone != "output":
            paths.update(dict.fromkeys(_paths(part)))
    return Question("report", terms, tuple(paths), symbols, frames)


def _question(text: str) -> Question:
    terms = dict.fromkeys(lexical.terms(text), 1.0)
    symbols: dict[str, float] = {}
    _name(symbols, text, "title")
    return Question("question", terms, tuple(dict.fromkeys(_paths(text))), symbols)


# --- zones ---------------------------------------------------------------------------------------------------------


def _zones(text: str) -> Iterator[tuple[str, str]]:
    """The body of a report in parts: prose without the template's words, code, pasted output."""
    text = _IMAGE.sub(" ", _COMMENT.sub(" ", text))
    for part, fenced in _sections(text):
        if fenced:
            yield ("output" if _TRACE.search(part) else "code"), part
            continue
        prose = _CHECKBOX.sub(" ", part)
        trace = _TRACE.search(prose)
        if trace:
            yield "output", prose[trace.start() :]
            prose = prose[: trace.start()]
        yield "prose", prose


def _sections(text: str) -> Iterator[tuple[str, bool]]:
    """Running text and fenced blocks in order; sections that a template asks for about the machine are left out."""
    dropped = False
    for part, fenced in _fences(text):
        if fenced:
            if not dropped:
                yield part, True
            continue
        for said, dropped in _kept(part, dropped):  # noqa: B020  # each part goes on as the one before it ended
            if not dropped:
                yield said, False


def _fences(text: str) -> Iterator[tuple[str, bool]]:
    """Running text and fenced blocks, in order."""
    at = 0
    for fence in _FENCE.finditer(text):
        yield text[at : fence.start()], False
        yield fence[2], True
        at = fence.end()
    yield text[at:], False


def _kept(text: str, dropped: bool) -> Iterator[tuple[str, bool]]:
    """Parts of running text between headings, each with whether it is to be dropped; template headings themselves go."""
    at = 0
    for heading in _HEADING.finditer(text):
        yield text[at : heading.start()], dropped
        said = heading["hashed"] or heading["bold"] or heading["set"]
        dropped = bool(_DROPPED.search(said)) and len(said) < 80
        if not dropped and not (_ASKED.search(said) and len(said) < 60):
            yield said, False
        at = heading.end()
    yield text[at:], dropped


# --- names ---------------------------------------------------------------------------------------------------------


def _count(terms: dict[str, float], text: str, zone: str) -> None:
    """Words count by the best zone that they stand in; said again, they count a little more."""
    weight = ZONES[zone]
    spoken = _URL.sub(" ", _LINK.sub(r"\1", text))
    for term, times in Counter(lexical.terms(spoken)).items():
        terms[term] = max(terms.get(term, 0.0), weight) + 0.1 * weight * (min(times, 4) - 1)


def _name(symbols: dict[str, float], text: str, zone: str) -> None:
    """Identifiers that look like code: plain English words count only where somebody marked them as code."""
    worth = {"title": 1.0, "prose": 0.8, "code": 0.4, "output": 0.2}[zone]
    for span in _SPAN.findall(text):
        for name in _IDENTIFIER.findall(span):
            _put(symbols, name, 1.0 if zone in ("title", "prose") else worth)
    for name in _CALLED.findall(text):
        _put(symbols, name, worth)
    for name in _IDENTIFIER.findall(_URL.sub(" ", text)):
        if _looks_like_code(name):
            _put(symbols, name, worth)


def _put(symbols: dict[str, float], name: str, worth: float) -> None:
    name = name.replace("::", ".").replace("#", ".").strip(".")
    symbols[name] = max(symbols.get(name, 0.0), worth)


def _looks_like_code(name: str) -> bool:
    bare = name.strip("_")
    return "." in name or "_" in bare or (name != name.lower() and name[1:] != name[1:].lower() and not bare.isupper())


def _paths(text: str) -> Iterator[str]:
    for url in _URL.findall(text):
        for path, _ in _BLOB.findall(url):
            yield path
    yield from _PATH.findall(_URL.sub(" ", text))


def _frames(text: str) -> Iterator[Frame]:
    """Frames of the traces in a text, in order: Python, IPython, JavaScript, Java, and `path:line` as others print it."""
    found = [(m.start(), Frame(m[1], int(m[2]), m[3] or "")) for m in _PY_FRAME.finditer(text)]
    found += [(m.start(), Frame(m[1], 0, m[2])) for m in _IPY_FRAME.finditer(text)]
    found += [(m.start(), Frame(m[3], int(m[4]), m[2])) for m in _JAVA_FRAME.finditer(text)]
    if "    at " in text or "\tat " in text:
        found += [(m.start(), Frame(m[2], int(m[3]), (m[1] or "").rsplit(".", 1)[-1])) for m in _JS_FRAME.finditer(text)]
    found += [(m.start(), Frame(m[1], int(m[2]), "")) for m in _COLON_FRAME.finditer(text)]
    for _, frame in sorted(found, key=lambda one: one[0])[:200]:
        yield Frame(frame.path.replace("\\", "/"), frame.line, frame.function)
