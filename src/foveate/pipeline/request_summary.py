"""The request of a context as its receipt stores it: without secrets, and without the extra texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from foveate.options import ContextOptions
from foveate.text.redact import redact
from foveate.types import NO_FILTERS, Filters, Record, Request, Scope

FORGOTTEN = "[forgotten]"
"""Replaces a query that found or quoted a record which was forgotten since."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """A past request. Texts that only the call knew are named by id."""

    query: str
    scope: Scope
    now: int
    budget: int | None = None
    profile: str = "base"
    agent: str | None = None
    complexity: str | None = None
    frame: str | None = None
    code_query: str | None = None
    task: str | None = None
    counter: str = "o200k"
    filters: Filters = NO_FILTERS
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_forgotten(self) -> bool:
        """Return whether the query was removed together with a forgotten record."""
        return self.query == FORGOTTEN

    def without_query(self) -> RequestSummary:
        """Return the request without anything that could quote a forgotten record."""
        return replace(
            self,
            query=FORGOTTEN,
            code_query=FORGOTTEN if self.code_query else self.code_query,
            filters=replace(self.filters, exclude=()),
        )

    def options(self) -> ContextOptions:
        """Return the options for computing it again, without its time and its extra texts."""
        names = ("budget", "profile", "agent", "complexity", "counter", "overrides", "frame", "code_query")
        values = {name: getattr(self, name) for name in names}
        known = {name: value for name, value in values.items() if value not in (None, FORGOTTEN)}
        return cast(ContextOptions, {**known, "filters": self.filters})

    def as_request(self, scope: Scope, task: Record | None) -> Request:
        """Return the request as a scope sees it, without the extra texts."""
        return Request(
            query=self.query,
            scope=scope,
            now=self.now,
            budget=self.budget,
            profile=self.profile,
            agent=self.agent,
            complexity=self.complexity,
            frame=self.frame,
            code_query=self.code_query,
            task=task,
            counter=self.counter,
            filters=self.filters,
            overrides=self.overrides,
        )


def summarize(request: Request) -> RequestSummary:
    """Return the summary of a request."""
    return RequestSummary(
        query=redact(request.query).text,
        scope=request.scope,
        now=request.now,
        budget=request.budget,
        profile=request.profile,
        agent=request.agent,
        complexity=request.complexity,
        frame=request.frame,
        code_query=request.code_query and redact(request.code_query).text,
        task=None if request.task is None else request.task.id,
        counter=request.counter,
        filters=request.filters,
        extra={slot: tuple(record.id for record in records) for slot, records in request.extra.items()},
        overrides=dict(request.overrides),
    )


def to_json(request: RequestSummary) -> dict[str, Any]:
    """Return a request as JSON values. The id of a context is a hash of them."""
    return {
        "query": request.query,
        "scope": scope_to_json(request.scope),
        "now": request.now,
        "budget": request.budget,
        "profile": request.profile,
        "agent": request.agent,
        "complexity": request.complexity,
        "frame": request.frame,
        "code_query": request.code_query,
        "task": request.task,
        "counter": request.counter,
        "filters": {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(request.filters).items()},
        "given": {slot: list(ids) for slot, ids in request.extra.items()},
        "overrides": dict(request.overrides),
    }


def from_json(value: Mapping[str, Any]) -> RequestSummary:
    """Return the request of a stored receipt."""
    values = dict(value)
    extra = {slot: tuple(ids) for slot, ids in values.pop("given").items()}
    parts = {"scope": Scope(**values["scope"]), "filters": Filters(**values["filters"]), "extra": extra}
    return RequestSummary(**{**values, **parts})


def scope_to_json(scope: Scope) -> dict[str, str | None]:
    """Return a scope as JSON values."""
    return {
        "project": scope.project,
        "user": scope.user,
        "agent": scope.agent,
        "session": scope.session,
        "task": scope.task,
    }
