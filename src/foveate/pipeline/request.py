"""Resolve the options of a call into a checked `Request`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from foveate.clock import parse_time
from foveate.errors import InputError, NotFound
from foveate.options import CONTEXT_OPTIONS, Text, check_text, refuse_text, refuse_unknown, scope_of
from foveate.pipeline.signals import task_text
from foveate.pipeline.sources.tasks import newest_record
from foveate.records import make
from foveate.records.kinds import kind_of
from foveate.records.make import Rules
from foveate.records.render import title_of
from foveate.store.retry import retry_interrupted
from foveate.store.scoped import ScopedStore
from foveate.tasks.task import CURRENT, current, lookup
from foveate.text import tokens
from foveate.text.summarize import ExtractiveSummarizer
from foveate.types import Filters, Record, Request, Scope

MAX_QUERY_CHARS = 100_000
"""A longer query is a document, which belongs into `extra`."""

DEFAULT_PROFILE, TASK_PROFILE, CODE_PROFILE = "default", "task", "coding"
"""The profile of a request that names none: in general, for a task, and in a project with code."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """The values of options that a call does not set."""

    profile: str | None = None
    budget: int | None = None
    has_code: bool = False

    def profile_for(self, task: Record | None) -> str:
        """Return the profile of a request that names none."""
        return self.profile or (TASK_PROFILE if task else CODE_PROFILE if self.has_code else DEFAULT_PROFILE)


def resolve_request(
    query: str | None, options: Mapping[str, Any], data: ScopedStore, defaults: Defaults, scope: Scope | None = None
) -> Request:
    """Return the request of a call.

    Without a query, the query is the text of the named task, else of the goal on top of the stack, else the title of the
    latest issue. If there is a query, a `task` that the store does not have only restricts the scope.
    """
    refuse_unknown(options, CONTEXT_OPTIONS, "context")
    budget = options.get("budget")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or budget <= 0):
        raise InputError(f"budget must be a positive number of tokens, got {budget!r}.")
    text = "" if query is None else clean_query(query)
    scope = scope_of(scope or data.scope, options)
    if problems := make.scope_problems(scope):
        raise InputError(problems)
    scope = data.clean_scope(scope)
    task = _task_of(data, scope, text)
    if task is not None:
        scope = replace(scope, task=task.id)
    elif not text:
        text = _title_of_latest_issue(data, scope)
    at = options.get("now")
    now = data.clock() if at is None else parse_time(at, "now", current=data.clock())
    return Request(
        query=text or task_text(task)[:MAX_QUERY_CHARS],  # type: ignore[arg-type]
        scope=scope,
        now=now,
        budget=budget if budget is not None else defaults.budget,
        profile=options.get("profile") or defaults.profile_for(task),
        agent=options.get("agent"),
        complexity=options.get("complexity"),
        frame=options.get("frame"),
        task=task,
        code_query=_code_query(text, task, options.get("code_query")),
        counter=tokens.counter(options.get("counter") or data.rules.counter).name,
        filters=_check_kinds(options.get("filters") or Filters()),
        extra=extra_records(options.get("extra"), scope, now, data.rules),
        overrides=_overrides(options),
    )


def _overrides(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the overrides of a call; a slot in `without` is removed."""
    overrides = dict(options.get("overrides") or {})
    without = options.get("without") or ()
    refuse_text(without, "without")
    if without:
        slots = overrides.get("slots", {})
        if not isinstance(slots, Mapping):
            raise InputError(f"overrides['slots'] must be a table of slots, got {slots!r}.")
        overrides["slots"] = {**slots, **{slot: {"remove": True} for slot in without}}
    return overrides


@retry_interrupted
def _title_of_latest_issue(data: ScopedStore, scope: Scope) -> str:
    with data.store.read(scope) as reader:
        issue = newest_record(reader, "issue")
    if issue is None:
        raise InputError("The query is empty. Pass a query or a task, or start a goal: `foveate task add GOAL --push`.")
    return title_of(issue) or issue.text[:MAX_QUERY_CHARS]


@retry_interrupted
def _task_of(data: ScopedStore, scope: Scope, text: str) -> Record | None:
    """Return the task of a request: the one that it names or, without a query, the top of the stack."""
    if scope.task is None and text:
        return None
    with data.store.read(scope) as reader:
        if scope.task is None:
            return current(reader)
        record = lookup(reader, scope.task)
    if record is not None and record.kind == "task":
        return record
    if scope.task == CURRENT:
        raise NotFound("No task is current: push a goal first, or name a task.")
    if not text or scope.task.startswith("task_"):
        raise NotFound(f"No task {scope.task!r} in this scope. `foveate task list` shows them.")
    return None


def clean_query(query: Any, name: str = "query") -> str:
    """Return a query without secrets and without characters that cannot be encoded."""
    check_text(query, name)
    if not query.strip():
        raise InputError("The query is empty. Pass the question or request that the context is for.")
    if len(query) > MAX_QUERY_CHARS:
        raise InputError(
            f"The query has {len(query):,} characters, more than {MAX_QUERY_CHARS:,}. Pass long texts as `extra`."
        )
    return make.clean(replace_unencodable(query))


def replace_unencodable(text: str) -> str:
    """Replace characters that cannot be encoded. A query is not stored, so there is no need to reject it."""
    return text.encode("utf-8", "replace").decode().replace("\x00", " ")


def _code_query(query: str, task: Record | None, code_query: str | None) -> str | None:
    """Return the text for the code search: that of the call, else the query with the task's description.

    None stands for the query, which is the text of the task, with its description, if the call has none.
    """
    if code_query:
        return clean_query(code_query, "code_query")
    description = str(task.data.get("description") or "") if task else ""
    if code_query is not None or not query or not description:
        return code_query
    return "\n".join(dict.fromkeys((query, description)))[:MAX_QUERY_CHARS]


def _check_kinds(filters: Filters) -> Filters:
    """Return the filters if all their kinds exist."""
    for kind in filters.kinds:
        kind_of(kind)
    return filters


def extra_records(extra: Any, scope: Scope, at: int, rules: Rules) -> dict[str, tuple[Record, ...]]:
    """Return the extra texts of a call as records, by the slot that shows them."""
    if not extra:
        return {}
    if _is_text(extra):
        extra = [extra]
    groups = extra if isinstance(extra, Mapping) else {"given": extra}
    return {
        slot: tuple(_extra_record(text, scope, at, rules) for text in _extra_texts(texts)) for slot, texts in groups.items()
    }


def _extra_texts(texts: Any) -> Iterable[Any]:
    """Return the extra texts of one slot, of which there may be only one."""
    return texts if isinstance(texts, Iterable) and not _is_text(texts) else [texts]


def _extra_record(text: Text, scope: Scope, at: int, rules: Rules) -> Record:
    if not isinstance(text, str | Mapping):
        raise InputError(f"extra must hold texts, or mappings with a `text`, got {text!r:.80}.")
    values = {"text": text} if isinstance(text, str) else dict(text)
    kind, content = values.pop("kind", "note"), values.pop("text", "")
    # A context is computed without a language model, even if the store's summarizer uses one.
    offline = replace(rules, summarizer=ExtractiveSummarizer())
    record = make.make(kind, content, scope=scope, id="given", now=at, rules=offline, **values)
    return replace(record, id=f"given_{record.hash[:16]}")


def _is_text(extra: Any) -> bool:
    return isinstance(extra, str) or (isinstance(extra, Mapping) and isinstance(extra.get("text"), str))
