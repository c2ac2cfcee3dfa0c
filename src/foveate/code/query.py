"""Parses a question or an issue report into terms, named files and symbols, and frames of stack traces.

Every word of a short question counts. A report is read in zones, because its title says more than its prose, its prose more
than pasted output, and the words of an issue template say nothing. Names of files, symbols and frames are separate from the
terms, because search boosts what they name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from foveate.text import analysis
from foveate.text.markdown import split_code

MAX_QUESTION_WORDS = 60
"""A text without code blocks and stack traces is a question up to this length, and a report beyond it."""

ZONES: Mapping[str, float] = {"title": 2.0, "prose": 1.0, "code": 0.6, "output": 0.3}
"""Weight of a word by the zone it occurs in."""

CHATTER_FACTOR = 0.4
"""Weight of words with which people talk about code, such as "expected" and "fix". They are rare in code, so that their
inverse document frequency would be misleadingly high."""

SOLE_WORD_WEIGHT, PLAIN_WORD_WEIGHT = 1.0, 0.4
"""Weight of an ordinary word as the name of a symbol: if it is the whole question, and if it is one of several words."""

MAX_FRAMES = 200
"""Only the innermost frames of a longer stack trace count."""

MAX_CHARS = 50_000
"""The rest of a longer report is not read: it is a log."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack trace."""

    path: str
    line: int
    function: str


@dataclass(frozen=True, slots=True)
class CodeQuery:
    """A parsed question or report."""

    terms: Mapping[str, float]
    """Index terms with their weights."""
    topic_terms: frozenset[str] = frozenset()
    """The terms of the title, or all terms of a short question. They say what is asked for."""
    paths: tuple[str, ...] = ()
    """Paths in the text, as written."""
    symbols: Mapping[str, float] = field(default_factory=dict)
    """Identifiers in the text. The weight says how sure it is that one is meant: in the title, in backticks, in running
    code."""
    frames: tuple[Frame, ...] = ()
    """Frames of stack traces, the innermost last."""


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<img[^>]*>", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]]{0,200})\]\(([^)\s]{0,500})\)")
_URL = re.compile(r"https?://[^\s)>\]\"'`]+")
_BLOB = re.compile(r"/(?:blob|tree|src|raw)/[^/\s]+/([\w./+-]+\.\w+)(?:#L(\d+))?")
_INLINE_CODE = re.compile(r"(?<!`)(`{1,2})([^`\n]{1,200})\1(?!`)")
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.+-]+/)*[\w+-]+\.(?:[a-z]{1,4}|[ch]pp|scala|swift|toml|yaml|json)(?![\w/-])")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*")
_NON_NAMES = analysis.STOP_WORDS.union("true false none null nil self this not return import else".split())  # noqa: SIM905
_CALL = re.compile(r"([A-Za-z_][\w.]{0,200}+)\(")  # bounded: a long text of dots would take quadratic time

# Headings of issue templates. The sections about the machine are ignored with everything in them; of the other sections
# only the heading is ignored, because it was not written by the reporter.
_IGNORED_SECTIONS = re.compile(
    r"code of conduct|search before|willing to|submit a pr|checklist|environment|versions?\b|configuration|system info"
    r"|operating system|platform|package versions|installed packages|contribut|are you (?:using|sure)|prerequisites"
    r"|additional context|screenshots?|python version",
    re.IGNORECASE,
)
_TEMPLATE_PROMPTS = re.compile(
    r"describe (?:the|a|alternatives)|expected (?:behaviou?r|results?|output)|actual (?:behaviou?r|results?|output)"
    r"|observed behaviou?r|steps to reproduce|to reproduce|how to reproduce|reproduc\w+|what (?:happened|i did|version)"
    r"|is your feature request|solution you'?d like|alternatives you|current behaviou?r|minimal example|summary|description"
    r"|bug description|problem description|please describe|issue",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+(?P<hashed>.+?)#*|\*\*(?P<bold>[^*\n]+?):?\*\*:?|(?P<set>[^\n]{1,80})\n[-=]{3,})[ \t]*$",
    re.MULTILINE,
)
_CHECKBOX = re.compile(r"^[ \t]*[-*][ \t]*\[[ xX]\].*$", re.MULTILINE)

_PY_FRAME = re.compile(r'File "([^"\n]{1,400})", line (\d{1,7})(?:, in ([\w<>.]+))?')
_IPY_FRAME = re.compile(r"^[ \t]*(\S{1,300}\.py) in (\w+)\(", re.MULTILINE)
_JS_FRAME = re.compile(
    r"^[ \t]*at (?:async )?(?:([\w.$<>\[\] ]{1,100}?) )?\(?(?:file://)?([^()\s:]{1,300}):(\d{1,7})(?::\d+)?\)?", re.MULTILINE
)
_JAVA_FRAME = re.compile(r"^[ \t]*at ([\w.$]{1,200})\.([\w$<>]{1,100})\((\w+\.(?:java|kt|scala)):(\d{1,7})\)", re.MULTILINE)
_COLON_FRAME = re.compile(r"^[ \t]*(?:-->[ \t]*)?((?:[\w.@+~-]*/)*[\w.+-]+\.[a-z]{1,5}):(\d{1,7})(?::\d+)?\b", re.MULTILINE)
_PANIC_FRAME = re.compile(r"panicked at [^\n]{0,300}?((?:[\w.+-]+/)*[\w.+-]+\.rs):(\d{1,7})")
_INNER_FIRST = re.compile(r"^(?:panic: |goroutine \d)", re.MULTILINE)
"""Go prints `path:line` with the innermost frame first, others last."""
_TRACE = re.compile(r"Traceback \(most recent|^[ \t]+at \S+ ?\(|^panic: |^[ \t]*File \"[^\"]+\", line \d", re.MULTILINE)


def parse_query(text: str) -> CodeQuery:
    """Parse a question or a report."""
    text = text[:MAX_CHARS].replace("\r\n", "\n")
    frames = tuple(_frames(text))
    if not frames and "```" not in text and len(text.split()) <= MAX_QUESTION_WORDS:
        return _question(text)
    title, rest = _title(text)
    terms: dict[str, float] = {}
    symbols: dict[str, float] = {}
    paths: dict[str, None] = {}
    for zone, part in (("title", title), *_zones(rest)):
        _add_terms(terms, part, zone)
        _add_symbols(symbols, part, zone)
        if zone != "output":
            paths.update(dict.fromkeys(_paths(part)))
    return CodeQuery(_weigh_terms(terms, symbols), frozenset(analysis.terms(title)), tuple(paths), symbols, frames)


def _question(text: str) -> CodeQuery:
    terms = dict.fromkeys(analysis.terms(_URL.sub(" ", text)), 1.0)
    symbols: dict[str, float] = {}
    _add_symbols(symbols, text, "title")
    words = [
        word for word in _IDENTIFIER.findall(text) if len(word) > 2 and word.lower() not in _NON_NAMES | _chatter_terms()
    ]
    for word in words:  # an ordinary word of a short question can be the name of a symbol; alone it almost certainly is
        symbols.setdefault(word, SOLE_WORD_WEIGHT if len(words) == 1 else PLAIN_WORD_WEIGHT)
    return CodeQuery(_weigh_terms(terms, symbols), frozenset(terms), tuple(dict.fromkeys(_paths(text))), symbols)


def _title(text: str) -> tuple[str, str]:
    """Split a report into its first line and the rest. A heading of a template is not a title."""
    lines = text.strip().split("\n")
    while len(lines) > 1 and (not lines[0].strip() or (_HEADING.match(lines[0]) and _TEMPLATE_PROMPTS.search(lines[0]))):
        del lines[0]
    return lines[0], "\n".join(lines[1:])


# --- zones ---------------------------------------------------------------------------------------------------------


def _zones(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a report's body with their zones: prose without the template's words, code, pasted output."""
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
    """Yield prose and code blocks in order, without the sections of a template that describe the machine."""
    skip = False
    for part, block in split_code(text):
        if block is not None:
            if not skip:
                yield block.code, True
            continue
        for content, skip in _split_by_headings(part, skip):  # noqa: B020  # a section ends at the next heading
            if not skip:
                yield content, False


def _split_by_headings(text: str, skip: bool) -> Iterator[tuple[str, bool]]:
    """Yield the text between headings, each part with whether it is in an ignored section. Template headings are removed."""
    start = 0
    for heading in _HEADING.finditer(text):
        yield text[start : heading.start()], skip
        title = heading["hashed"] or heading["bold"] or heading["set"]
        skip = bool(_IGNORED_SECTIONS.search(title)) and len(title) < 80
        if not skip and not (_TEMPLATE_PROMPTS.search(title) and len(title) < 60):
            yield title, False
        start = heading.end()
    yield text[start:], skip


# --- names ---------------------------------------------------------------------------------------------------------


def _add_terms(terms: dict[str, float], text: str, zone: str) -> None:
    """Add the terms of a text. A term has the weight of its best zone, and slightly more if it is repeated."""
    weight = ZONES[zone]
    prose = _URL.sub(" ", _LINK.sub(r"\1", text))
    for term, count in Counter(analysis.terms(prose)).items():
        terms[term] = max(terms.get(term, 0.0), weight) + 0.1 * weight * (min(count, 4) - 1)


def _weigh_terms(terms: Mapping[str, float], symbols: Mapping[str, float]) -> dict[str, float]:
    """Reduce the weight of words with which people talk about code, unless the text also uses them as names."""
    talk = _chatter_terms() - symbols.keys()
    return {term: weight * CHATTER_FACTOR if term in talk else weight for term, weight in terms.items()}


@cache
def _chatter_terms() -> frozenset[str]:
    return frozenset(analysis.terms(_CHATTER_WORDS))


_CHATTER_WORDS = """
fix fixes fixed fixing bug issue problem feature request behaviour behavior enhancement improve improvement suggestion
expect expected unexpected unexpectedly actual actually current currently instead seem appear like want would need try tried
work worked working use used using make made think thought believe know known get getting got give given go going come see
seen look looking find found happen happened occur cause caused allow help please thank thanks hello hi sure maybe perhaps
possible possibly able unable still already even ever always often sometimes usually however although though since whereas
therefore thus hence whether yet else rather quite really simply probably clearly obviously recently previously later soon
now today good better best bad wrong wrongly incorrect incorrectly correct correctly properly right nice great new old recent
latest several many much lot couple thing something anything everything nothing someone anyone way case point fact reason
instance certain specific particular various different similar following follow below above within without among around along
across upon via per etc ie eg say said tell mean meant ask show shown note notice noticed report reported reproduce
reproducible reproduction steps describe description suggest solution consider implement implemented implementation support
supported add added adding addition change changed remove removed break broke broken crash fail failed failing unlike another
first second third one two three every least less lead keep put take ran python javascript typescript java
"""
"""Words that are frequent in issue reports and say little about the code."""


def _add_symbols(symbols: dict[str, float], text: str, zone: str) -> None:
    """Add the identifiers of a text. An English word counts only if it is marked as code or called."""
    worth = {"title": 1.0, "prose": 0.8, "code": 0.4, "output": 0.2}[zone]
    for _, span in _INLINE_CODE.findall(text):
        for name in _IDENTIFIER.findall(span):
            if name.lower() not in _NON_NAMES:
                _add_symbol(symbols, name, 1.0 if zone in ("title", "prose") else worth)
    for name in _CALL.findall(text):
        _add_symbol(symbols, name, worth)
    for name in _IDENTIFIER.findall(_URL.sub(" ", text)):
        if _looks_like_code(name):
            _add_symbol(symbols, name, worth)


def _add_symbol(symbols: dict[str, float], name: str, weight: float) -> None:
    name = name.replace("::", ".").replace("#", ".").strip(".")
    symbols[name] = max(symbols.get(name, 0.0), weight)


def _looks_like_code(name: str) -> bool:
    bare = name.strip("_")
    return (
        any(mark in name for mark in ".:#")
        or "_" in bare
        or (name != name.lower() and name[1:] != name[1:].lower() and not bare.isupper())
    )


def _paths(text: str) -> Iterator[str]:
    for url in _URL.findall(text):
        for path, _ in _BLOB.findall(url):
            yield path
    yield from _PATH.findall(_URL.sub(" ", text))


def _frames(text: str) -> list[Frame]:
    """Return the frames of all stack traces, the innermost last. Python prints that order, most others the reverse."""
    outer_first = [(m.start(), Frame(m[1], int(m[2]), m[3] or "")) for m in _PY_FRAME.finditer(text)]
    outer_first += [(m.start(), Frame(m[1], 0, m[2])) for m in _IPY_FRAME.finditer(text)]
    inner_first = [(m.start(), Frame(_java_path(m[1], m[3]), int(m[4]), m[2])) for m in _JAVA_FRAME.finditer(text)]
    if "    at " in text or "\tat " in text:
        inner_first += [
            (m.start(), Frame(m[2], int(m[3]), (m[1] or "").rsplit(".", 1)[-1])) for m in _JS_FRAME.finditer(text)
        ]
    colon_frames = [(m.start(), Frame(m[1], int(m[2]), "")) for m in _COLON_FRAME.finditer(text)]
    colon_frames += [(m.start(1), Frame(m[1], int(m[2]), "")) for m in _PANIC_FRAME.finditer(text)]
    (inner_first if _INNER_FIRST.search(text) else outer_first).extend(colon_frames)
    frames = [*sorted(outer_first, key=_frame_position), *sorted(inner_first, key=_frame_position, reverse=True)]
    return [Frame(frame.path.replace("\\", "/"), frame.line, frame.function) for _, frame in frames[-MAX_FRAMES:]]


def _frame_position(match: tuple[int, Frame]) -> int:
    return match[0]


def _java_path(qualified: str, file: str) -> str:
    """Return the path `com/acme/Invoice.java` of a frame in `com.acme.Invoice` that only names `Invoice.java`."""
    return "/".join((*qualified.split(".")[:-1], file))
