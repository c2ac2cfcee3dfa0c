"""Finds the entities that a text mentions, and proposes names that could become entities.

A known name is found in any case and with any separators, as an alias, as a possessive (`Mira's`) and in the plural
(`uploaders`). The written form wins over its singular, and a longer name over the names inside it.

Proposals are made with regular expressions: code identifiers, capitalized names, quoted terms, @mentions and the hosts of
addresses. A capital at the start of a sentence means nothing, so such a word counts only if it is known or repeated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from foveate.records.make import paths_in
from foveate.store.scoped import ScopedStore
from foveate.text import analysis
from foveate.types import Record

MAX_NAME_WORDS = 3
"""Names are looked up as runs of up to three words."""

MIN_PLURAL_CHARS = 5
"""Letters from which a final `s` may be a plural. Shorter words are mostly names of their own, such as `AWS` or `Ross`."""

FindEntities = Callable[[Sequence[str]], Mapping[str, Record]]
"""Returns the entities with these normalized names, such as `Reader.entities_by_name`."""

_WORD = re.compile(r"[^\W_](?:[\w'+#-]*[\w+#])?")
_POSSESSIVE = re.compile(r"'s$", re.IGNORECASE)

# --- known names -----------------------------------------------------------------------------------------------------


def mentioned_entities(text: str, find_entities: FindEntities) -> dict[str, Record]:
    """Return the entities that a text names, by id, in the order of the text."""
    words = _WORD.findall(text)
    spans = dict(_spans(words))
    known = find_entities(sorted({name for names in spans.values() for name in names}))
    if not known:
        return {}
    found: dict[int, Record] = {}
    covered: set[int] = set()
    for (start, size), names in spans.items():  # longest first
        record = next((known[name] for name in names if name in known), None)
        if record is not None and not covered.issuperset(range(start, start + size)):
            covered.update(range(start, start + size))
            found.setdefault(start, record)
    return {found[start].id: found[start] for start in sorted(found)}


def candidate_names(text: str) -> list[str]:
    """Return every name that a text may contain, normalized."""
    return sorted({name for _, names in _spans(_WORD.findall(text)) for name in names})


def name_of(record: Record) -> str:
    """Return the name of an entity."""
    return str(record.data.get("name") or record.text)


def _spans(words: Sequence[str]) -> Iterator[tuple[tuple[int, int], tuple[str, ...]]]:
    """Yield (first word, number of words) with the names that the run may be, likeliest first. Longest runs first."""
    for size in range(min(MAX_NAME_WORDS, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            names = tuple(dict.fromkeys(name for name in _name_variants("".join(words[start : start + size])) if name))
            if names:
                yield (start, size), names


def _name_variants(run: str) -> Iterator[str]:
    """Yield a run of words as it is written, without its possessive, and in the singular."""
    written = analysis.normalize_name(run)
    yield written
    if _POSSESSIVE.search(run):
        yield analysis.normalize_name(_POSSESSIVE.sub("", run))
    elif len(written) >= MIN_PLURAL_CHARS and written.endswith("s") and not written.endswith("ss"):
        yield written[:-1]
        if written.endswith("es"):
            yield written[:-2]
        if written.endswith("ies"):
            yield f"{written[:-3]}y"


# --- proposals -------------------------------------------------------------------------------------------------------

MAX_TEXT_CHARS = 100_000
"""Characters that are read. A longer text is a document, and has named its subjects by then."""

MAX_PROPOSALS = 100
MAX_NAME_CHARS = 60

SYMBOL = re.compile(
    r"--[a-z][\w-]+"  # flags
    r"|\b[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)+(?:\(\))?"  # a.b.c, A::b
    r"|\b(?:[a-z]+[0-9]*_\w+|_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"  # snake_case, CONSTANT_CASE
    r"|\b[a-z]+[0-9]*(?:[A-Z][a-z0-9]*)+\b"  # camelCase
    r"|\b(?:[A-Z][a-z0-9]+){2,}\b"  # PascalCase
    r"|\b[A-Z]{2,6}\s?\d{3,4}\b"  # HTTP 404
    r"|\b\w+\(\)"
)
_IDENTIFIER = re.compile(r"(?!--)[^\s]*")  # excludes flags and `HTTP 404`, which name nothing that lasts
_NAME_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("site", re.compile(r"\bhttps?://(?:[^/\s@]+@)?(?:www\.)?([\w-]+(?:\.[\w-]+)+)[^\s)>\]\"']*", re.IGNORECASE)),
    ("symbol", re.compile(r"`+([^`\s]{2,60})`+")),
    ("term", re.compile(r"[\"“]((?:[^\W_][\w+#.-]*)(?: [\w+#.-]+){0,3})[\"”]")),
    ("person", re.compile(r"(?<![\w.@/])@([A-Za-z][\w-]{1,38})\b")),
)
"""How names are marked, in the order in which the marks are read."""
PLACEHOLDER = " x "
"""Replaces a name that was read. It is a word, so that the next one does not seem to begin a sentence."""
_RUN = re.compile(r"\S+")
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w.-]+")
_CAPITALS = re.compile(rf"\b[A-Z][\w-]*(?:'s\b)?(?: [A-Z][\w-]*){{0,{MAX_NAME_WORDS - 1}}}")
_SENTENCE_START = re.compile(r"(?:^|[.!?:]|\n)[\s>*+#|\d.)-]*$")
_LOOKBEHIND_CHARS = 40
"""Characters before a word in which the start of a sentence is looked for."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A name in a text as it is first written, and how often it occurs."""

    name: str
    type: str
    count: int
    known: str | None = None
    """The id of the entity that has this name already."""


def propose_entities(data: ScopedStore, text: str) -> list[Proposal]:
    """Return the names in a text that could be entities, the most frequent first. Nothing is stored."""
    with data.reader() as reader:
        return propose(text, reader.entities_by_name)


def propose(text: str, find_entities: FindEntities) -> list[Proposal]:
    """Return the names in a text, the most frequent first."""
    proposals: dict[str, Proposal] = {}
    for name, type in _names(text[:MAX_TEXT_CHARS], find_entities):
        key = analysis.normalize_name(name)
        if len(key) > 1 and len(name) <= MAX_NAME_CHARS and not key.isdigit():
            first = proposals.setdefault(key, Proposal(name, type, 0))
            proposals[key] = replace(first, count=first.count + 1)
    known = find_entities(sorted(proposals))
    listed = [replace(proposal, known=known[key].id) if key in known else proposal for key, proposal in proposals.items()]
    return sorted(listed, key=lambda proposal: -proposal.count)[:MAX_PROPOSALS]


def _names(text: str, find_entities: FindEntities) -> Iterator[tuple[str, str]]:
    """Yield (name, type) for every use of a name. Each sort of name is removed before the next one is looked for."""
    for type, pattern in _NAME_PATTERNS:
        yield from ((match[1].rstrip(".,;:"), type) for match in pattern.finditer(text))
        text = pattern.sub(PLACEHOLDER, text)
    text = _ADDRESS.sub(PLACEHOLDER, _RUN.sub(lambda run: PLACEHOLDER if paths_in(run[0]) else run[0], text))
    for match in SYMBOL.finditer(text):
        if _IDENTIFIER.fullmatch(match[0]):
            yield match[0], "symbol"
    yield from ((name, "name") for name in _capitalized_names(SYMBOL.sub(PLACEHOLDER, text), find_entities))


def _capitalized_names(text: str, find_entities: FindEntities) -> Iterator[str]:
    certain: list[str] = []
    doubtful: list[tuple[str, str]] = []  # at the start of a sentence: the whole run, and without its first word
    for match in _CAPITALS.finditer(text):
        words = match[0].removesuffix("'s").replace("'s ", " ").split()
        begins_sentence = bool(_SENTENCE_START.search(text, max(0, match.start() - _LOOKBEHIND_CHARS), match.start()))
        while words and words[0].lower() in analysis.STOP_WORDS:
            words, begins_sentence = words[1:], False
        if words and begins_sentence:
            doubtful.append((" ".join(words), " ".join(words[1:])))
        elif words:
            certain.append(" ".join(words))
    yield from certain
    known: dict[str, Record] = dict(find_entities(sorted({analysis.normalize_name(whole) for whole, _ in doubtful})))
    uses = Counter([*certain, *(name for pair in doubtful for name in pair)])
    lower = frozenset(re.findall(r"\b[a-z][\w-]*", text))
    for whole, rest in doubtful:
        is_repeated = uses[whole] > 1 and whole.lower() not in lower
        if is_repeated or analysis.normalize_name(whole) in known:
            yield whole
        elif rest:
            yield rest
