"""Text -> entities that it may be about, for a person to accept. Rules and regular expressions; nothing is stored here.

Comes in: a text, and a look-up of the names that are known already. Goes out: proposals, the most frequent first: code
identifiers, capitalised names, quoted terms, @mentions and the hosts of addresses. A capital at the start of a sentence
says nothing, so such a word counts only where it is known, or repeated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from foveate.memory.mentions import MAX_NAME_WORDS, Named
from foveate.records.make import paths_in
from foveate.store.scoped import ScopedStore
from foveate.text import analysis
from foveate.types import Record

MAX_TEXT = 100_000
"""Characters that are read: more is a document, and what it is about has been named by then."""

MOST = 100
"""Proposals that are given: nobody reads a longer list."""

LONGEST = 60
"""Characters of a name."""

SYMBOL = re.compile(
    r"--[a-z][\w-]+"  # flags
    r"|\b[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)+(?:\(\))?"  # a.b.c, A::b
    r"|\b(?:[a-z]+[0-9]*_\w+|_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"  # snake_case, CONSTANT_CASE
    r"|\b[a-z]+[0-9]*(?:[A-Z][a-z0-9]*)+\b"  # camelCase
    r"|\b(?:[A-Z][a-z0-9]+){2,}\b"  # PascalCase
    r"|\b[A-Z]{2,6}\s?\d{3,4}\b"  # HTTP 404
    r"|\b\w+\(\)"
)
_IDENTIFIER = re.compile(r"(?!--)[^\s]*")  # no flag, and no `HTTP 404`: they name nothing that lasts
_MARKED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("site", re.compile(r"\bhttps?://(?:[^/\s@]+@)?(?:www\.)?([\w-]+(?:\.[\w-]+)+)[^\s)>\]\"']*", re.IGNORECASE)),
    ("symbol", re.compile(r"`+([^`\s]{2,60})`+")),
    ("term", re.compile(r"[\"“]((?:[^\W_][\w+#.-]*)(?: [\w+#.-]+){0,3})[\"”]")),
    ("person", re.compile(r"(?<![\w.@/])@([A-Za-z][\w-]{1,38})\b")),
)
"""What is marked as a name by how it is written, in the order in which the marks are read."""
TAKEN = " x "
"""Stands where a name was taken out: a word, so that what follows does not begin a sentence."""
_RUN = re.compile(r"\S+")
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w.-]+")
_CAPITALS = re.compile(rf"\b[A-Z][\w-]*(?:'s\b)?(?: [A-Z][\w-]*){{0,{MAX_NAME_WORDS - 1}}}")
_STARTS = re.compile(r"(?:^|[.!?:]|\n)[\s>*+#|\d.)-]*$")
_BEFORE = 40
"""Characters before a word that say whether a sentence starts with it."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A name that a text uses, as it is first written, and how often."""

    name: str
    type: str
    count: int
    known: str | None = None
    """The id of the entity of that name, where there is one."""


def propose_entities(data: ScopedStore, text: str) -> list[Proposal]:
    """Return the names in a text that could be entities, the most frequent first. Nothing is stored."""
    with data.reader() as reader:
        return propose(text, reader.entities_by_name)


def propose(text: str, named: Named) -> list[Proposal]:
    """The names of a text, the most frequent first."""
    found: dict[str, Proposal] = {}
    for name, type in _names(text[:MAX_TEXT], named):
        key = analysis.normalize_name(name)
        if len(key) > 1 and len(name) <= LONGEST and not key.isdigit():
            first = found.setdefault(key, Proposal(name, type, 0))
            found[key] = replace(first, count=first.count + 1)
    known = named(sorted(found))
    listed = [replace(one, known=known[key].id) if key in known else one for key, one in found.items()]
    return sorted(listed, key=lambda one: -one.count)[:MOST]


def _names(text: str, named: Named) -> Iterator[tuple[str, str]]:
    """(name, type) for every use of a name; each kind of mark is taken out before the next is looked for."""
    for type, pattern in _MARKED:
        yield from ((match[1].rstrip(".,;:"), type) for match in pattern.finditer(text))
        text = pattern.sub(TAKEN, text)
    text = _ADDRESS.sub(TAKEN, _RUN.sub(lambda run: TAKEN if paths_in(run[0]) else run[0], text))
    for match in SYMBOL.finditer(text):
        if _IDENTIFIER.fullmatch(match[0]):
            yield match[0], "symbol"
    yield from ((name, "name") for name in _capitalised(SYMBOL.sub(TAKEN, text), named))


def _capitalised(text: str, named: Named) -> Iterator[str]:
    sure: list[str] = []
    doubtful: list[tuple[str, str]] = []
    for match in _CAPITALS.finditer(text):
        words = match[0].removesuffix("'s").replace("'s ", " ").split()
        starts = bool(_STARTS.search(text, max(0, match.start() - _BEFORE), match.start()))
        while words and words[0].lower() in analysis.STOP_WORDS:
            words, starts = words[1:], False
        if words and starts:
            doubtful.append((" ".join(words), " ".join(words[1:])))
        elif words:
            sure.append(" ".join(words))
    yield from sure
    known: dict[str, Record] = dict(named(sorted({analysis.normalize_name(whole) for whole, _ in doubtful})))
    times = Counter([*sure, *(name for pair in doubtful for name in pair)])
    lower = frozenset(re.findall(r"\b[a-z][\w-]*", text))
    for whole, rest in doubtful:
        repeated = times[whole] > 1 and whole.lower() not in lower
        if repeated or analysis.normalize_name(whole) in known:
            yield whole
        elif rest:
            yield rest
