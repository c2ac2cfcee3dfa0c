"""Find the entities that a text mentions, and propose names that could become entities.

A known name is found in any case and with any separators, as an alias, as a possessive (`Mira's`) and in the plural
(`uploaders`). The written form takes precedence over its singular, and a longer name over the names inside it.

Proposals are made with regular expressions: code identifiers, capitalized names, quoted terms, @mentions and the hosts of
URLs. Every sentence begins with a capital, so a word there counts only if it is known or repeated.
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
"""Longest name that is looked up. Each further word would add as many lookups as the text has words."""

MIN_PLURAL_CHARS = 5
"""Shortest word whose final `s` may be a plural. Shorter words are mostly names themselves, such as `AWS` or `Ross`."""

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
    # The longest spans come first, so "Redis Cluster" covers its words before "Redis" is tried.
    for (start, size), names in spans.items():
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
    """Yield (first word, number of words) and the names that these words may be, likeliest first. Longest runs first."""
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
"""Characters that are read. A longer text is a document, which names its subjects early."""

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
_IDENTIFIER = re.compile(r"(?!--)[^\s]*")  # excludes flags and `HTTP 404`, which are not entities
_NAME_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("site", re.compile(r"\bhttps?://(?:[^/\s@]+@)?(?:www\.)?([\w-]+(?:\.[\w-]+)+)[^\s)>\]\"']*", re.IGNORECASE)),
    ("symbol", re.compile(r"`+([^`\s]{2,60})`+")),
    ("term", re.compile(r"[\"“]((?:[^\W_][\w+#.-]*)(?: [\w+#.-]+){0,3})[\"”]")),
    ("person", re.compile(r"(?<![\w.@/])@([A-Za-z][\w-]{1,38})\b")),
)
"""Patterns of marked names by type, in the order in which they are applied."""
PLACEHOLDER = " x "
"""Replaces a name that was found. It is a word, so that the next word does not seem to begin a sentence."""
_RUN = re.compile(r"\S+")
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w.-]+")
_CAPITALS = re.compile(rf"\b[A-Z][\w-]*(?:'s\b)?(?: [A-Z][\w-]*){{0,{MAX_NAME_WORDS - 1}}}")
_SENTENCE_START = re.compile(r"(?:^|[.!?:]|\n)[\s>*+#|\d.)-]*$")
_LOOKBEHIND_CHARS = 40
"""Characters before a word that are searched for the start of a sentence."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A name in a text in its first spelling, and the number of its occurrences."""

    name: str
    type: str
    count: int
    known: str | None = None
    """Id of the entity that has this name already."""


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
    """Yield (name, type) for every occurrence of a name. The names of one pattern are removed before the next is applied."""
    for type, pattern in _NAME_PATTERNS:
        yield from ((match[1].rstrip(".,;:"), type) for match in pattern.finditer(text))
        text = pattern.sub(PLACEHOLDER, text)
    text = _ADDRESS.sub(PLACEHOLDER, _RUN.sub(lambda run: PLACEHOLDER if paths_in(run[0]) else run[0], text))
    for match in SYMBOL.finditer(text):
        if _IDENTIFIER.fullmatch(match[0]):
            yield match[0], "symbol"
    yield from ((name, "name") for name in _capitalized_names(SYMBOL.sub(PLACEHOLDER, text), find_entities))


def _capitalized_names(text: str, find_entities: FindEntities) -> Iterator[str]:
    """Yield runs of capitalized words. The first word of a sentence belongs to a name only if that is likely."""
    certain: list[str] = []
    doubtful: list[tuple[str, str]] = []  # (whole run, run without its first word), at the start of a sentence
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
    # A word that also occurs in lower case is an ordinary word.
    lower = frozenset(re.findall(r"\b[a-z][\w-]*", text))
    for whole, rest in doubtful:
        is_repeated = uses[whole] > 1 and whole.lower() not in lower
        if is_repeated or analysis.normalize_name(whole) in known:
            yield whole
        elif rest:
            yield rest
