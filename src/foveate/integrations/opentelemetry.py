"""Spans of an engine's work, by OpenTelemetry's GenAI conventions: `instrument(engine)`.

Comes in: an engine. Goes out: the same engine, whose `compute`, `search` and writing verbs leave a span each. Without an SDK
nothing is recorded and next to nothing is spent. Texts are recorded only where `content=True` asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from foveate.engine import Engine
from foveate.integrations import requires_extra
from foveate.pipeline.context import Context

with requires_extra("otel"):
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer

# The conventions have no package of their own yet, and are in development: the names stand here.
OPERATION, STORE, RECORDS = "gen_ai.operation.name", "gen_ai.memory.store.id", "gen_ai.memory.records"
COUNT, QUERY = "gen_ai.memory.record.count", "gen_ai.memory.query.text"
SESSION, AGENT, ERROR = "gen_ai.conversation.id", "gen_ai.agent.name", "error.type"

OPERATIONS: Mapping[str, str] = {
    "context": "compute_context",
    "search": "search_memory",
    "add": "create_memory",
    "edit": "update_memory",
    "feedback": "update_memory",
    "undo": "update_memory",
    "forget": "delete_memory",
}
"""Which operation each verb is. What is retired stays on record; only `forget` deletes."""


def instrument(engine: Engine, *, content: bool = False, tracer_provider: TracerProvider | None = None) -> Engine:
    """Have each of the engine's verbs leave a span; a second call replaces the first."""
    uninstrument(engine)
    tracer = get_tracer("foveate", tracer_provider=tracer_provider)
    for verb, operation in OPERATIONS.items():
        setattr(engine, verb, _traced(engine, getattr(engine, verb), operation, tracer, content))
    return engine


def uninstrument(engine: Engine) -> None:
    """Leave no spans any more."""
    for verb in OPERATIONS:
        vars(engine).pop(verb, None)


def _traced(engine: Engine, verb: Callable[..., Any], operation: str, tracer: Any, content: bool) -> Callable[..., Any]:
    store = engine.scope.project
    name = operation if operation == "compute_context" else f"{operation} {store}"

    @wraps(verb)
    def traced(*args: Any, **options: Any) -> Any:
        quiet = {"record_exception": content, "set_status_on_exception": False}  # a message may quote what was asked
        with tracer.start_as_current_span(name, kind=SpanKind.INTERNAL, **quiet) as span:
            span.set_attributes({OPERATION: operation, STORE: store, **_asked(engine, operation, args, options, content)})
            try:
                done = verb(*args, **options)
            except Exception as error:
                span.set_attribute(ERROR, type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR, str(error) if content else None))
                raise
            if span.is_recording():
                _found(span, done, content)
            return done

    return traced


def _asked(
    engine: Engine, operation: str, args: tuple[Any, ...], options: Mapping[str, Any], content: bool
) -> dict[str, str]:
    about = {
        SESSION: options.get("session") or engine.scope.session,
        AGENT: options.get("agent") or engine.scope.agent,
        QUERY: (args[0] if args else options.get("query")) if content and operation in _QUESTIONS else None,
    }
    return {name: str(value) for name, value in about.items() if value}


_QUESTIONS = ("compute_context", "search_memory")


def _found(span: Span, done: Any, content: bool) -> None:
    """What came of it, whatever the verb gives back."""
    if isinstance(done, Context):
        span.set_attributes(
            {
                "foveate.context.id": done.id,
                "foveate.budget.tokens": done.budget.total,
                "foveate.used.tokens": done.tokens,
                "foveate.items.selected": len(done.items),
                "foveate.items.considered": sum(done.considered.values()),
                "foveate.truncated": done.truncated,
            }
        )
        records: list[Any] = [item.record for item in done.items]
    else:
        several = done if isinstance(done, list) else [done]
        records = [getattr(each, "record", each) for each in several]
        span.set_attribute(COUNT, getattr(done, "counts", {}).get("records", len(records)))
    if content:
        span.set_attribute(RECORDS, [str(getattr(record, "text", record)) for record in records])
