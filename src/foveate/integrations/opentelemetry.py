"""Spans of an engine's methods, by OpenTelemetry's GenAI conventions: `instrument(engine)`.

Each call of `context`, `search` or a method that writes makes a span. Without an SDK nothing is recorded, at almost no cost.
Texts are recorded only with `content=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from foveate.engine import Engine
from foveate.engine.engine import observe_views
from foveate.integrations import requires_extra
from foveate.receipts.context import Context

with requires_extra("otel"):
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider, get_tracer

# The conventions are in development, and no package contains their names yet.
ATTR_OPERATION, ATTR_STORE, ATTR_RECORDS = "gen_ai.operation.name", "gen_ai.memory.store.id", "gen_ai.memory.records"
ATTR_RECORD_COUNT, ATTR_QUERY = "gen_ai.memory.record.count", "gen_ai.memory.query.text"
ATTR_SESSION, ATTR_AGENT, ATTR_ERROR = "gen_ai.conversation.id", "gen_ai.agent.name", "error.type"

Options = ParamSpec("Options")
Result = TypeVar("Result")

OPERATIONS: Mapping[str, str] = {
    "context": "compute_context",
    "search": "search_memory",
    "add": "create_memory",
    "edit": "update_memory",
    "feedback": "update_memory",
    "undo": "update_memory",
    "forget": "delete_memory",
}
"""By method: the operation of the conventions. Only `forget` deletes; a retired record stays in the store."""


def instrument(engine: Engine, *, content: bool = False, tracer_provider: TracerProvider | None = None) -> Engine:
    """Make a span for each call of the methods of the engine and its later views, and return the engine.

    A second call replaces the first.
    """
    uninstrument(engine)
    observe_views(engine, partial(instrument, content=content, tracer_provider=tracer_provider))
    tracer = get_tracer("foveate", tracer_provider=tracer_provider)
    for method, operation in OPERATIONS.items():
        setattr(engine, method, _trace_method(engine, getattr(engine, method), operation, tracer, content))
    return engine


def uninstrument(engine: Engine) -> None:
    """Stop making spans."""
    observe_views(engine, None)
    for method in OPERATIONS:
        vars(engine).pop(method, None)


def _trace_method(
    engine: Engine, method: Callable[Options, Result], operation: str, tracer: Tracer, content: bool
) -> Callable[Options, Result]:
    store = engine.scope.project
    name = operation if operation == "compute_context" else f"{operation} {store}"

    @wraps(method)
    def wrapper(*args: Options.args, **options: Options.kwargs) -> Result:
        with tracer.start_as_current_span(
            name,
            kind=SpanKind.INTERNAL,
            record_exception=content,  # the error may quote the query
            set_status_on_exception=False,
        ) as span:
            span.set_attributes(
                {
                    ATTR_OPERATION: operation,
                    ATTR_STORE: store,
                    **_request_attributes(engine, operation, args, options, content),
                }
            )
            try:
                result = method(*args, **options)
            except Exception as error:
                span.set_attribute(ATTR_ERROR, type(error).__qualname__)
                span.set_status(Status(StatusCode.ERROR, str(error) if content else None))
                raise
            if span.is_recording():
                _set_result_attributes(span, result, content)
            return result

    return wrapper


def _request_attributes(
    engine: Engine, operation: str, args: tuple[Any, ...], options: Mapping[str, Any], content: bool
) -> dict[str, str]:
    about = {
        ATTR_SESSION: options.get("session") or engine.scope.session,
        ATTR_AGENT: options.get("agent") or engine.scope.agent,
    }
    if content and operation in ("compute_context", "search_memory"):
        about[ATTR_QUERY] = args[0] if args else options.get("query")
    return {name: str(value) for name, value in about.items() if value}


def _set_result_attributes(span: Span, result: Any, content: bool) -> None:
    if isinstance(result, Context):
        span.set_attributes(
            {
                "foveate.context.id": result.id,
                "foveate.budget.tokens": result.budget.total,
                "foveate.used.tokens": result.tokens,
                "foveate.items.selected": len(result.items),
                "foveate.items.considered": sum(result.considered.values()),
                "foveate.truncated": result.truncated,
            }
        )
        records: list[Any] = [item.record for item in result.items]
    else:
        several = result if isinstance(result, list) else [result]
        records = [getattr(each, "record", each) for each in several]
        span.set_attribute(ATTR_RECORD_COUNT, getattr(result, "counts", {}).get("records", len(records)))
    if content:
        span.set_attribute(ATTR_RECORDS, [str(getattr(record, "text", record)) for record in records])
