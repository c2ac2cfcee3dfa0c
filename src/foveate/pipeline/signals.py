"""Extract the signals of a request: keywords, search terms, paths, symbols, entities, domains and intent.

A request for a task also has the task's type and complexity. Everything is done by rules and regular expressions, because it
runs on every call: it must take less than a millisecond and need no model.
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
"""Weight of an entity's other names. They are nearly as good as the name in the question."""

TASK_WEIGHT = 0.5
"""Weight of a task's terms. The terms of the question itself count more."""

DOMAINS: Mapping[str, tuple[str, ...]] = {
    "api": ("endpoint", "rest", "graphql", "route", "request"),
    "auth": ("login", "token", "jwt", "session", "password"),
    "database": ("query", "schema", "migration", "model", "record"),
    "ui": ("component", "button", "form", "page", "style"),
    "testing": ("test", "spec", "mock", "assert", "coverage"),
}
"""The domains of spec 000 with their trigger words. `[domains]` in a project's settings extends them."""

MAX_TASK_CHARS = 100_000
"""Characters of a task that are read. A longer one contains a document."""

_PATH = re.compile(r"[~\w.+@/-]+")

EVENT_TYPES: Mapping[Intent, tuple[str, ...]] = {
    "fix": ("error", "shell_exec", "test_run", "file_write"),
    "action": ("file_write", "shell_exec", "file_read"),
    "explain": ("file_read", "message", "decision"),
    "question": ("message", "file_read", "decision"),
    "other": (),
}
"""The types of events that matter for each intent, most important first. Spec 003 asks for such a table."""

# Phrases with a word of the intent `fix` that ask for no repair, such as "use a fixed width" or "add an error class".
_NO_FIX = re.compile(
    r"\b(?:no|zero|without(?: any)?) (?:more )?(?:errors?|bugs?|failures?|exceptions?)\b"
    r"|\b(?:error|exception)[ -](?:handl\w+|budgets?|class(?:es)?|types?|codes?|rates?)\b"
    r"|\bbug (?:bount(?:y|ies)|trackers?|reports?)\b|\b(?:a|the|of|with) fixed (?=\w)"
    r"|\bdebug (?:builds?|flags?|modes?|logs?)\b"
)

# The first pattern that matches decides. They match whole words only: `prefix` is not `fix`, `bug-free` is not `bug`.
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


def extract_signals(
    request: Request,
    find_entities: FindEntities,
    embedding: tuple[float, ...] | None = None,
    domains: Mapping[str, Sequence[str]] = DOMAINS,
) -> Signals:
    """Return the signals of a request. `find_entities` looks up entities by normalized name."""
    query, task = request.query, request.task
    text = query if task is None else "\n".join(dict.fromkeys((query, task_text(task))))[:MAX_TASK_CHARS]
    entities = mentioned_entities(text, find_entities)
    symbols = tuple(dict.fromkeys(match.strip() for match in SYMBOL.findall(text)))
    paths = paths_in(text)
    keywords = tuple(dict.fromkeys((*_words(text, paths), *(symbol.lower() for symbol in symbols))))
    complexity, complexity_reason = ("", "") if task is None else complexity_of(task)
    intent = detect_intent(query)
    return Signals(
        keywords=keywords,
        terms=_search_terms(query, "" if task is None else text, entities.values(), request.now),
        expansions=expand_query(query),
        paths=tuple(dict.fromkeys((*paths, *(task.paths if task else ())))),
        symbols=symbols,
        entities={id: name_of(record) for id, record in entities.items()},
        entity_types=tuple(sorted({str(r.data["type"]).casefold() for r in entities.values() if r.data.get("type")})),
        intent=intent,
        event_types=EVENT_TYPES[intent],
        domains=domains_of(keywords, domains),
        task_type=str(task.data.get("type", "")) if task else "",
        complexity=complexity,
        complexity_reason=complexity_reason,
        embedding=embedding,
    )


def _words(text: str, paths: Sequence[str]) -> list[str]:
    """Return the words of a text. A path contributes its significant words only: not `src`, and not the extension."""

    def replace_path(match: re.Match[str]) -> str:
        return significant_path_words(match[0]) if match[0].rstrip(".") in paths else match[0]

    return analysis.words(_PATH.sub(replace_path, text))


def task_text(task: Record) -> str:
    """Return the objective, the description and the acceptance criteria of a task as one text."""
    return " ".join(filter(None, (task.text, str(task.data.get("description") or ""), *criteria_of(task))))


def domains_of(keywords: Iterable[str], domains: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the domains whose name or one of whose triggers is among the keywords, in any inflection."""
    terms = frozenset(term for word in keywords for term in analysis.terms(word))
    return tuple(
        name
        for name, triggers in domains.items()
        if any(terms.issuperset(parts) for trigger in (*triggers, name) if (parts := analysis.terms(trigger)))
    )


def merge_domains(project_domains: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the built-in domains with those of a project. Words are added, and an empty list switches a domain off."""
    added = {name: (*DOMAINS.get(name, ()), *words) for name, words in project_domains.items() if words}
    merged = {name: tuple(dict.fromkeys(words)) for name, words in {**DOMAINS, **added}.items()}
    return {name: words for name, words in merged.items() if project_domains.get(name, True)}


# --- complexity of a task ------------------------------------------------------------------------------------------

COMPLEX_WORDS = frozenset(
    """architecture concurrency distributed migrate migration performance race redesign refactor rewrite
    security""".split()  # noqa: SIM905
)
_SIMPLE_WORDS = frozenset("bump comment docs docstring format formatting readme rename reword typo".split())  # noqa: SIM905
_COUNT_THRESHOLDS = (("files", 3, 6), ("steps", 4, 8), ("acceptance_criteria", 4, 8))
"""Fields whose length gives points, and the numbers from which it gives one point and two."""
_MIN_NORMAL_POINTS, _MIN_COMPLEX_POINTS = 0, 3


def complexity_of(task: Record) -> tuple[str, str]:
    """Return the complexity of a task and the reason: the task says it, or it is estimated from its size and words."""
    if stated := task.data.get("complexity"):
        return str(stated), "the task says so"
    points = dict(_points(task))
    total = sum(points.values())
    level = "complex" if total >= _MIN_COMPLEX_POINTS else "normal" if total >= _MIN_NORMAL_POINTS else "easy"
    reasons = ", ".join(f"{what} ({number:+d})" for what, number in points.items()) or "nothing indicates more or less"
    return level, f"estimated: {reasons}"


def _points(task: Record) -> Iterable[tuple[str, int]]:
    for name, one_point, two_points in _COUNT_THRESHOLDS:
        number = len(task.data.get(name) or ())
        if number >= one_point:
            yield f"{number} {name.replace('_', ' ')}", 2 if number >= two_points else 1
    words = frozenset(analysis.words(f"{task.data.get('name', '')} {task_text(task)}"))
    for word in sorted(words & COMPLEX_WORDS)[:2]:
        yield f"{word!r}", 1
    for word in sorted(words & _SIMPLE_WORDS)[:1]:
        yield f"{word!r}", -1


def detect_intent(query: str) -> Intent:
    """Return what a query asks for: a repair, an explanation, an answer or an action."""
    lowered = query.strip().lower().replace("’", "'")
    texts = {"fix": _NO_FIX.sub(" ", lowered)}
    return next((intent for intent, pattern in _INTENTS if pattern.search(texts.get(intent, lowered))), "other")


def _search_terms(query: str, task_query: str, entities: Iterable[Record], now: int) -> dict[str, float]:
    """Return the terms to search for with their weights: those of the query, of its task, and of the names of entities."""
    query_terms = weighted_query_terms(query, now)
    terms = query_terms | {term: max(TASK_WEIGHT, query_terms.get(term, 0.0)) for term in analysis.terms(task_query)}
    for record in entities:
        names = (name_of(record), *(record.data.get("aliases") or ()))
        for term in analysis.terms(" ".join(names)):
            # A name in the query has full weight, even if it is also a word that only introduces questions.
            terms[term] = 1.0 if term in query_terms else terms.get(term, ALIAS_WEIGHT)
    return terms
