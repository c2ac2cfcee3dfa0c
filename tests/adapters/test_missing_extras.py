"""An adapter without its framework says what to install."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("langchain", "langchain.agents.middleware", "langchain"),
        ("langgraph_store", "langgraph.store.base", "langchain"),
        ("llama_index", "llama_index.core.memory", "llama-index"),
        ("agent_framework", "agent_framework", "agent-framework"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai"),
        ("openai_agents", "agents", "openai-agents"),
        ("anthropic_memory", "anthropic.lib.tools", "anthropic"),
        ("llm_fragments", "llm", "llm"),
        ("opentelemetry", "opentelemetry.trace", "otel"),
    ],
)
def test_the_extra_is_named(adapter: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"foveate.integrations.{adapter}", raising=False)
    with pytest.raises(ImportError, match=rf"pip install foveate\[{extra}\]"):
        import_module(f"foveate.integrations.{adapter}")
