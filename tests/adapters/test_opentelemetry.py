"""Spans of a real engine, as the SDK exports them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import foveate
from foveate import Engine, NotFound
from foveate.integrations.openai_messages import messages_for
from foveate.integrations.opentelemetry import instrument, uninstrument

SECRET = "Deploy number 17"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> Iterator[TracerProvider]:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider
    provider.shutdown()


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    exporter.clear()
    return span


def test_compute_leaves_a_span_with_its_figures_and_no_texts(
    memory: Engine, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    instrument(memory, tracer_provider=provider)
    context = memory.context("Which deploy took 17 minutes?", budget=300, session="s1", agent="ada")
    span = only(exporter)
    assert (span.name, span.kind) == ("compute_context", SpanKind.INTERNAL)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "compute_context",
        "gen_ai.memory.store.id": "main",
        "gen_ai.conversation.id": "s1",
        "gen_ai.agent.name": "ada",
        "foveate.context.id": context.id,
        "foveate.budget.tokens": 300,
        "foveate.used.tokens": context.tokens,
        "foveate.items.selected": len(context.items),
        "foveate.items.considered": sum(context.considered.values()),
        "foveate.truncated": context.truncated,
    }


def test_each_verb_is_an_operation_on_the_store(
    memory: Engine, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    instrument(memory, tracer_provider=provider)
    found = memory.search("deploy", limit=3)
    span = only(exporter)
    assert span.name == "search_memory main"
    assert (span.attributes or {})["gen_ai.memory.record.count"] == len(found) == 3
    id = memory.add("fact", "Tea is green").record.id
    assert only(exporter).name == "create_memory main"
    for change in (
        lambda: memory.edit(id, text="Tea is black"),
        lambda: memory.edit(id, status="retired"),
        lambda: memory.undo(id),
    ):
        change()
        assert only(exporter).name == "update_memory main"
    memory.forget(id)
    span = only(exporter)
    assert span.name == "delete_memory main"
    assert (span.attributes or {})["gen_ai.memory.record.count"] == 1


def test_texts_are_recorded_only_where_they_are_asked_for(
    memory: Engine, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    for content in (False, True):
        instrument(memory, content=content, tracer_provider=provider)
        memory.context("Which deploy took 17 minutes?")
        memory.search("17 minutes")
        memory.add("note", f"{SECRET} was late, {content}")
        recorded = "".join(str(span.attributes) for span in exporter.get_finished_spans())
        exporter.clear()
        assert (SECRET in recorded) == content
        assert ("Which deploy took 17 minutes?" in recorded) == content


def test_error_is_on_the_span_and_raised(memory: Engine, provider: TracerProvider, exporter: InMemorySpanExporter) -> None:
    instrument(memory, tracer_provider=provider)
    with pytest.raises(NotFound):
        memory.edit("fact_secret", status="retired")
    span = only(exporter)
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "NotFound"
    assert "fact_secret" not in span.to_json()


def test_async_compute_is_a_child_of_the_callers_span(
    memory: Engine, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    instrument(memory, tracer_provider=provider)
    with provider.get_tracer("test").start_as_current_span("run") as parent:
        asyncio.run(memory.acontext("Which deploy took 17 minutes?"))
    computed, _ = exporter.get_finished_spans()
    assert computed.parent is not None
    assert computed.parent.span_id == parent.get_span_context().span_id


def test_twice_is_once_and_can_be_taken_back(
    memory: Engine, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    assert instrument(instrument(memory, tracer_provider=provider), tracer_provider=provider) is memory
    memory.search("deploy")
    only(exporter)
    uninstrument(memory)
    memory.search("deploy")
    assert exporter.get_finished_spans() == ()


def test_without_an_sdk_nothing_happens(memory: Engine) -> None:
    instrument(memory)
    assert "Deploy number 17" in memory.context("Which deploy took 17 minutes?").text


def test_the_contexts_of_views_and_adapters_leave_spans_too(
    tmp_path: Path, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\n')
    with foveate.open(tmp_path) as engine:  # an adapter uses a view of an engine with code
        instrument(engine, tracer_provider=provider)
        messages_for(engine, [{"role": "user", "content": "Hello"}], session="s1")
        assert dict(only(exporter).attributes or {})["gen_ai.conversation.id"] == "s1"
        engine.scoped(user="ada").scoped(session="s2").search("Hello")
        assert only(exporter).name.startswith("search_memory")
        uninstrument(engine)
        messages_for(engine, [{"role": "user", "content": "Hello"}], session="s1")
        assert exporter.get_finished_spans() == ()
