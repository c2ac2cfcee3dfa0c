"""Request -> Signals: what the call is really about.

Comes in: the request and a look-up of names that the store knows. Goes out: keywords, search terms, paths, symbols,
entities, domains and intent and, where the request is for a task, its type and how complex it is. Rules and regular
expressions only: it must cost less than a millisecond and need no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from foveate.memory.entities import SYMBOL, FindEntities, mentioned_entities, name_of
from foveate.records.make import paths_in
from foveate.tasks.task import criteria_of
from foveate.text import analysis
from foveate.text.format import significant_path_words
from foveate.text.query_expansion import expand_query
from foveate.text.query_terms import QUESTION, weighted_query_terms
from foveate.types import Intent, Record, Request, Signals

ALIAS_WEIGHT = 0.7
"""Terms that stand for an entity of the question under its other names: nearly as good as the word itself."""

TASK_WEIGHT = 0.5
"""Terms of a task beside a question of its own: they say what it is about, and the question says what is asked."""

DOMAINS: Mapping[str, tuple[str, ...]] = {
    "api": ("endpoint", "rest", "graphql", "route", "request"),
    "auth": ("login", "token", "jwt", "session", "password"),
    "database": ("query", "schema", "migration", "model", "record"),
    "ui": ("component", "button", "form", "page", "style"),
    "testing": ("test", "spec", "mock", "assert", "coverage"),
}
"""000's domains and the words that speak of each; `[domains]` in a project's settings extends them."""

MAX_ABOUT = 100_000
"""Characters of a task that are read: more is a document."""

_PATH = re.compile(r"[~\w.+@/-]+")

EVENT_TYPES: Mapping[Intent, tuple[str, ...]] = {
    "fix": ("error", "shell_exec", "test_run", "file_write"),
    "action": ("file_write", "shell_exec", "file_read"),
    "explain": ("file_read", "message", "decision"),
    "question": ("message", "file_read", "decision"),
    "other": (),
}
"""The events that matter to each intent, the most telling first (003 asks for a mapping and gives none)."""

# What names no fault though a word of it does. "Use a fixed width" and "error-free" ask for no repair.
_NO_FAULT = re.compile(
    r"\b(?:no|zero|without(?: any)?) (?:more )?(?:errors?|bugs?|failures?|exceptions?)\b"
    r"|\b(?:error|exception)[ -](?:handl\w+|budgets?|class(?:es)?|types?|codes?|rates?)\b"
    r"|\bbug (?:bount(?:y|ies)|trackers?|reports?)\b|\b(?:a|the|of|with) fixed (?=\w)"
    r"|\bdebug (?:builds?|flags?|modes?|logs?)\b"
)

# Whole words, so that `prefix` is no fix, `terror` no error and `bug-free` no bug; the first that matches decides.
_INTENTS: tuple[tuple[Intent, re.Pattern[str]], ...] = (
    (
        "fix",
        re.compile(
            r"(?<![\w-])(?:fix(?:es|ed|ing)?|bugs?|errors?|fail(?:s|ed|ing|ures?)?|crash(?:es|ed|ing)?|broken?|breaks?"
            r"|debug(?:ging)?|exceptions?|traceback|stack ?trace|regressions?|(?:doesn'?t|does not|won'?t) work"
            r"|not working|times? out|timed out)(?![\w-])"
        ),
    ),
    (
        "explain",
        re.compile(
            r"\b(?:explain|describe|how (?:does|do|is|are|did)|what (?:is|are|does)|why (?:does|do|is|are|did)"
            r"|walk me through|understand)\b"
        ),
    ),
    ("question", QUESTION),
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
    named: FindEntities,
    embedding: tuple[float, ...] | None = None,
    domains: Mapping[str, Sequence[str]] = DOMAINS,
) -> Signals:
    """The signals of a request; `named` finds entities by normalised name."""
    query, task = request.query, request.task
    about = query if task is None else "\n".join(dict.fromkeys((query, task_text(task))))[:MAX_ABOUT]
    entities = mentioned_entities(about, named)
    symbols = tuple(dict.fromkeys(match.strip() for match in SYMBOL.findall(about)))
    paths = paths_in(about)
    known = frozenset(paths)
    spoken = analysis.words(
        _PATH.sub(lambda word: significant_path_words(word[0]) if word[0].rstrip(".") in known else word[0], about)
    )
    keywords = tuple(dict.fromkeys((*spoken, *(symbol.lower() for symbol in symbols))))
    complexity, complexity_reason = ("", "") if task is None else complexity_of(task)
    wanted = intent(query)
    return Signals(
        keywords=keywords,
        terms=_terms(query, "" if task is None else about, entities.values(), request.now),
        expansions=expand_query(query),
        paths=tuple(dict.fromkeys((*paths, *(task.paths if task else ())))),
        symbols=symbols,
        entities={id: name_of(record) for id, record in entities.items()},
        entity_types=tuple(sorted({str(r.data["type"]).casefold() for r in entities.values() if r.data.get("type")})),
        intent=wanted,
        event_types=EVENT_TYPES[wanted],
        domains=domains_of(keywords, domains),
        task_type=str(task.data.get("type", "")) if task else "",
        complexity=complexity,
        complexity_reason=complexity_reason,
        embedding=embedding,
    )


def task_text(task: Record) -> str:
    """What a task is about: its objective and its acceptance criteria."""
    return " ".join((task.text, *criteria_of(task)))


def domains_of(keywords: Iterable[str], domains: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The domains that a word of the request speaks of: a trigger in any form, or the domain's own name."""
    said = frozenset(term for word in keywords for term in analysis.terms(word))
    return tuple(
        name
        for name, triggers in domains.items()
        if any(said.issuperset(terms) for word in (*triggers, name) if (terms := analysis.terms(word)))
    )


def extended(own: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The shipped domains with a project's own: words are added, and an empty list switches a domain off."""
    merged = {name: tuple(dict.fromkeys((*DOMAINS.get(name, ()), *words))) for name, words in own.items() if words}
    return {name: words for name, words in {**DOMAINS, **merged}.items() if own.get(name, True)}


# --- how complex a task is -----------------------------------------------------------------------------------------

HARD = frozenset(
    """architecture concurrency distributed migrate migration performance race redesign refactor rewrite
    security""".split()  # noqa: SIM905
)
_SLIGHT = frozenset("bump comment docs docstring format formatting readme rename reword typo".split())  # noqa: SIM905
_COUNTED = (("files", 3, 6), ("steps", 4, 8), ("acceptance_criteria", 4, 8))
"""What is counted, and from how many on it gives one point and two."""
_NORMAL, _COMPLEX = 0, 3
"""Points from which a task is normal, and from which it is complex."""


def complexity_of(task: Record) -> tuple[str, str]:
    """How complex a task is and why: what it says itself, else an estimate from its size and its words."""
    said = task.data.get("complexity")
    if said:
        return str(said), "the task says so"
    points = dict(_points(task))
    total = sum(points.values())
    level = "complex" if total >= _COMPLEX else "normal" if total >= _NORMAL else "easy"
    reasons = ", ".join(f"{what} ({number:+d})" for what, number in points.items()) or "nothing speaks for more or less"
    return level, f"estimated: {reasons}"


def _points(task: Record) -> Iterable[tuple[str, int]]:
    for name, some, many in _COUNTED:
        number = len(task.data.get(name) or ())
        if number >= some:
            yield f"{number} {name.replace('_', ' ')}", 2 if number >= many else 1
    words = frozenset(analysis.words(f"{task.data.get('name', '')} {task_text(task)}"))
    for word in sorted(words & HARD)[:2]:
        yield f"{word!r}", 1
    for word in sorted(words & _SLIGHT)[:1]:
        yield f"{word!r}", -1


def intent(query: str) -> Intent:
    """What the asker wants: a repair, an explanation, an answer, a deed."""
    lowered = query.strip().lower().replace("’", "'")
    spoken = {"fix": _NO_FAULT.sub(" ", lowered)}
    return next((name for name, pattern in _INTENTS if pattern.search(spoken.get(name, lowered))), "other")


def _terms(query: str, about: str, entities: Iterable[Record], now: int) -> dict[str, float]:
    said = weighted_query_terms(query, now)
    terms = said | {term: max(TASK_WEIGHT, said.get(term, 0.0)) for term in analysis.terms(about)}
    for record in entities:
        names = (name_of(record), *(record.data.get("aliases") or ()))
        for term in analysis.terms(" ".join(names)):
            terms[term] = 1.0 if term in said else terms.get(term, ALIAS_WEIGHT)  # who says a name asks for it
    return terms
