"""Request -> Signals: what the call is really about.

Comes in: the request and a look-up of names that the store knows. Goes out: keywords, search terms, paths, symbols,
entities and intent. Rules and regular expressions only: it must cost less than a millisecond and need no model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from foveate import lexical
from foveate.state.records import paths_in
from foveate.types import Intent, Record, Request, Signals

ALIAS_WEIGHT = 0.7
"""Terms that stand for an entity of the question under its other names: nearly as good as the word itself."""

MAX_NAME_WORDS = 3
"""Names are looked up as runs of up to three words."""

_SYMBOL = re.compile(
    r"--[a-z][\w-]+"  # flags
    r"|\b[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)+(?:\(\))?"  # a.b.c, A::b
    r"|\b(?:[a-z]+[0-9]*_\w+|_\w+|[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"  # snake_case, CONSTANT_CASE
    r"|\b[a-z]+[0-9]*(?:[A-Z][a-z0-9]*)+\b"  # camelCase
    r"|\b(?:[A-Z][a-z0-9]+){2,}\b"  # PascalCase
    r"|\b[A-Z]{2,6}\s?\d{3,4}\b"  # HTTP 404
    r"|\b\w+\(\)"
)
_WORD = re.compile(r"[^\W_](?:[\w'+#-]*[\w+#])?")

# Whole words, so that `prefix` is no fix and `terror` no error; the first that matches decides.
_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        "fix",
        re.compile(
            r"\b(?:fix(?:es|ed|ing)?|bugs?|errors?|fail(?:s|ed|ing|ures?)?|crash(?:es|ed|ing)?|broken?|breaks?"
            r"|debug(?:ging)?|exceptions?|traceback|regressions?|doesn'?t work|not working)\b"
        ),
    ),
    (
        "explain",
        re.compile(
            r"\b(?:explain|describe|how (?:does|do|is|are|did)|what (?:is|are|does)|why (?:does|do|is|are|did)"
            r"|walk me through|understand)\b"
        ),
    ),
    (
        "question",
        re.compile(
            r"\?(?:\s|$)|^(?:who|what|when|where|which|why|how|should|can|could|do|does|did|is|are|was|were|will"
            r"|would|has|have)\b"
        ),
    ),
    (
        "action",
        re.compile(
            r"^(?:please\s+)?(?:add|build|change|clean|configure|convert|create|delete|deploy|design|document|enable"
            r"|extend|extract|implement|improve|install|integrate|make|migrate|move|optimi[sz]e|port|publish|refactor"
            r"|release|remove|rename|replace|restore|rewrite|run|set|ship|split|support|switch|test|tune|update|upgrade"
            r"|use|wire|write)\b"
        ),
    ),
)


def extract(
    request: Request,
    named: Callable[[Sequence[str]], Mapping[str, Record]],
    embedding: tuple[float, ...] | None = None,
) -> Signals:
    """The signals of a request; `named` finds entities by normalised name."""
    query = request.query
    entities = named(_possible_names(query))
    return Signals(
        keywords=tuple(dict.fromkeys(lexical.words(query))),
        terms=_terms(query, entities.values()),
        paths=paths_in(query),
        symbols=tuple(dict.fromkeys(match.strip() for match in _SYMBOL.findall(query))),
        entities={record.id: str(record.data.get("name", record.text)) for record in entities.values()},
        intent=intent(query),
        embedding=embedding,
    )


def intent(query: str) -> Intent:
    """What the asker wants: a repair, an explanation, an answer, a deed."""
    lowered = query.strip().lower()
    return next((name for name, pattern in _INTENTS if pattern.search(lowered)), "other")


def _possible_names(query: str) -> list[str]:
    """Every run of up to three words, in the form in which names are kept."""
    spoken = _WORD.findall(query)
    runs = {
        lexical.names("".join(spoken[i : i + size]))
        for size in range(1, MAX_NAME_WORDS + 1)
        for i in range(len(spoken) - size + 1)
    }
    return sorted(runs - {""})


def _terms(query: str, entities: Iterable[Record]) -> dict[str, float]:
    terms = dict.fromkeys(lexical.terms(query), 1.0)
    for record in entities:
        names = (str(record.data.get("name", record.text)), *(record.data.get("aliases") or ()))
        for term in lexical.terms(" ".join(names)):
            terms.setdefault(term, ALIAS_WEIGHT)
    return terms
