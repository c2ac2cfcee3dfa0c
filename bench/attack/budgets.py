"""Count with an outside tokenizer what every entry point returns for a budget, over random stores.

Entry points with no budget of their own are measured against the one that they promise: hooks and MCP's claims. Not measured
are the memory tool of Anthropic, LangGraph's store and the session of the OpenAI Agents SDK, which return what was stored.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

from click.testing import CliRunner
from mcp import Client
from starlette.testclient import TestClient

import foveate
from bench.attack.stores import count, count_request, fill, prose, text
from bench.attack.tally import Tally, require
from foveate import Engine
from foveate.cli import cli
from foveate.errors import BudgetError
from foveate.integrations import llm_fragments
from foveate.integrations.hooks import delivery
from foveate.integrations.hooks.hosts import EVENTS, handle
from foveate.server.http.app import create_app
from foveate.server.mcp import create_server
from foveate.server.mcp.tools import CLAIM_BUDGET, MIN_BUDGET
from foveate.testing import engine as new_engine

FULL_STORES, QUICK_STORES = 12, 1
FULL_QUERIES, QUICK_QUERIES = 5, 2
BUDGETS = (60, 100, 150, 300, 700, 1500, 2000, 5000)
QUICK_BUDGETS = (100, 700)
FRAMEWORK_BUDGETS = (100, 300, 1000)
EXIT_BUDGET = BudgetError.exit_code

_BLOCK_TAGS = re.compile(r"</?(memory|computed_context)>")
"""LlamaIndex puts them around a block."""

Measure = Callable[[Engine, str, int], int]
"""Returns the tokens that an entry point gives for a query and a budget."""


# --- the library -----------------------------------------------------------------------------------------------------


def library_anthropic(engine: Engine, query: str, budget: int) -> int:
    sent = engine.context(query, budget=budget).anthropic()
    return sum(count(block["text"]) for block in sent["system"]) + count_request(list(sent["messages"]))


def library_refresh(engine: Engine, query: str, budget: int) -> int:
    before = engine.context("Something else entirely", budget=budget)
    refreshed = engine.refresh(before, query, event="The pump failed", budget=budget)
    require(refreshed, "an event leads to a new context")
    return count_request(refreshed.context.messages())


def library_expand(engine: Engine, query: str, budget: int) -> int:
    hits = engine.search(query, limit=5)
    return max((count(engine.expand(hit.record.id, max_tokens=budget)["content"]) for hit in hits), default=0)


def library_claim(engine: Engine, query: str, budget: int) -> int:
    task = engine.tasks.add(query[:200] or "x", objective=query)
    claim = engine.tasks.claim(task.id, agent="ada", budget=budget)
    assert claim is not None
    return count_request(claim.context.messages())


def library_delivery(engine: Engine, query: str, budget: int) -> int:
    return count(delivery.deliver(engine, query, session="d", is_new_window=True, budget=budget).text)


LIBRARY: dict[str, Measure] = {
    "context": lambda e, q, b: count_request(e.context(q, budget=b).messages()),
    "context.text": lambda e, q, b: count(e.context(q, budget=b).text),
    "context of anthropic": library_anthropic,
    "refresh": library_refresh,
    "expand": library_expand,
    "claim": library_claim,
}


# --- command line and HTTP -------------------------------------------------------------------------------------------


def run_cli(*arguments: str) -> str:
    result = CliRunner().invoke(cli, arguments)
    if result.exit_code == EXIT_BUDGET:
        raise BudgetError(result.stderr, short=1)
    require(result.exit_code == 0, f"exit code {result.exit_code}: {result.stderr}")
    return result.stdout


def cli_anthropic(engine: Engine, query: str, budget: int) -> int:
    sent = json.loads(run_cli("context", "--budget", str(budget), "--messages", "anthropic", "--", query))
    return sum(count(block["text"]) for block in sent["system"]) + count_request(sent["messages"])


CLI: dict[str, Measure] = {
    "context": lambda e, q, b: count(run_cli("context", "--budget", str(b), "--", q)),
    "context of openai": lambda e, q, b: count_request(
        json.loads(run_cli("context", "--budget", str(b), "--messages", "openai", "--", q))
    ),
    "context of anthropic": cli_anthropic,
    "task claim": lambda e, q, b: count(run_cli("task", "claim", "--agent", "ada", "--budget", str(b))),
}


def post(client: TestClient, path: str, body: dict[str, Any]) -> Any:
    answer = client.post(path, json=body)
    if answer.status_code == BudgetError.status:
        raise BudgetError(answer.text, short=1)
    require(answer.status_code == 200, f"status {answer.status_code}: {answer.text}")
    return answer.json()


def over_http(client: TestClient) -> dict[str, Measure]:
    def context(_: Engine, query: str, budget: int) -> int:
        return count_request(post(client, "/v1/contexts", {"query": query, "budget": budget})["messages"])

    def anthropic(_: Engine, query: str, budget: int) -> int:
        body = {"query": query, "budget": budget, "include": ["anthropic"]}
        sent = post(client, "/v1/contexts", body)["anthropic"]
        return sum(count(block["text"]) for block in sent["system"]) + count_request(sent["messages"])

    def expand(engine: Engine, query: str, budget: int) -> int:
        hits = engine.search(query, limit=3)
        bodies = ({"id": hit.record.id, "max_tokens": budget} for hit in hits)
        return max((count(post(client, "/v1/expand", body)["message"]["content"]) for body in bodies), default=0)

    def claim(engine: Engine, query: str, budget: int) -> int:
        task = engine.tasks.add(query[:200] or "x", objective=query)
        answer = post(client, "/v1/claims", {"task": task.id, "agent": "ada", "budget": budget})
        return count_request(answer["context"]["messages"])

    return {"contexts": context, "contexts of anthropic": anthropic, "expand": expand, "claims": claim}


# --- MCP -------------------------------------------------------------------------------------------------------------


async def attack_mcp(tally: Tally, engine: Engine, queries: list[str], budgets: tuple[int, ...]) -> None:
    async with Client(create_server(engine)) as client:

        async def measure(tool: str, at_most: int, /, **arguments: Any) -> None:
            with tally.case(f"mcp {tool} {at_most} {arguments}"):
                found = await client.call_tool(tool, arguments)
                texts = [part.text for part in found.content]
                if found.is_error and "need" in texts[0] and "budget" in texts[0]:
                    return  # the rules alone exceed the budget
                require(not found.is_error, str(texts))
                counted = sum(map(count, texts))
                require(counted <= at_most, f"{counted} tokens of {at_most}")

        ids = [record.id for record in engine.records(limit=5)]
        for budget in budgets:
            for query in queries:
                await measure("get_context", max(budget, MIN_BUDGET), query=query, budget=max(budget, MIN_BUDGET))
            for id in ids:
                await measure("expand", budget, id=id, max_tokens=budget)
        for query in filter(str.strip, queries):
            micro = [count(engine.store.data.render(hit.record, "micro")) for hit in engine.search(query, limit=10)]
            await measure("search", sum(micro) + 40 * len(micro) + 40, query=query, limit=10)
        await measure("claim_task", CLAIM_BUDGET)


# --- hooks and frameworks --------------------------------------------------------------------------------------------

PROMPT_FIELDS = {"session_id": "h", "conversation_id": "h", "cwd": "/", "source": "startup"}


def hook_cases(query: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for host, events in EVENTS.items():
        for name, action in events.items():
            if action in ("session_start", "prompt"):
                yield host, {**PROMPT_FIELDS, "hook_event_name": name, "prompt": query}


def hook_text(answer: dict[str, Any]) -> str:
    output = answer.get("hookSpecificOutput", answer)
    return str(output.get("additionalContext") or output.get("additional_context") or "")


def attack_hooks(tally: Tally, engine: Engine, queries: list[str]) -> None:
    for query in queries:
        for host, event in hook_cases(query):
            with tally.case(f"hook {host} {event['hook_event_name']} {query!r:.40}"):
                sent = hook_text(handle(engine, host, event))
                require(count(sent) <= delivery.MAX_TOKENS, f"{count(sent)} tokens of {delivery.MAX_TOKENS}")
                require(len(sent) <= delivery.MAX_CHARS, f"{len(sent)} characters of {delivery.MAX_CHARS}")


def attack_frameworks(tally: Tally, engine: Engine, queries: list[str]) -> None:
    from tests.adapters.frameworks import FRAMEWORKS, INSTRUCTIONS, talk

    for framework in FRAMEWORKS:
        for budget in FRAMEWORK_BUDGETS:
            asked = [query.replace("\x00", "") for query in queries if query.strip() and query.isprintable()]
            with tally.case(f"{framework.__name__} {budget}"):
                try:
                    requests = talk(framework(engine, session=f"{framework.__name__}{budget}", budget=budget), *asked)
                except Exception as error:  # a framework wraps the error in its own
                    causes = (error, error.__cause__, error.__context__)
                    if any(isinstance(cause, BudgetError) for cause in causes):
                        continue
                    raise
                for request in requests:
                    added = request.instructions.removeprefix(INSTRUCTIONS), _BLOCK_TAGS.sub("", request.context)
                    counted = sum(map(count, added))
                    require(counted <= budget, f"{counted} tokens of {budget}")


# --- everything ------------------------------------------------------------------------------------------------------


def measure_all(tally: Tally, name: str, measures: dict[str, Measure], engine: Engine, query: str, budget: int) -> None:
    for entry, measure in measures.items():
        with tally.case(f"{name} {entry} {budget} {query!r:.40}"):
            try:
                counted = measure(engine, query, budget)
            except BudgetError:
                continue  # the rules alone exceed the budget
            require(counted <= budget, f"{counted} tokens of {budget}")


def readable_query(chance: random.Random) -> str:
    """Return a query that every entry point accepts. The family `inputs` has the others."""
    query = text(chance) if chance.random() < 0.5 else prose(chance)
    query = "".join(char for char in query[:2000] if char.isprintable() or char == "\n")
    return query if any(map(str.isalnum, query)) else prose(chance)


def attack_fragments(tally: Tally, folder: Path, queries: list[str]) -> None:
    """The fragments of `llm` take the project's budget."""
    for budget in (100, 700):
        (folder / ".foveate" / "config.toml").write_text(f"budget = {budget}\n")
        measure: dict[str, Measure] = {"fragment": lambda e, q, b: count(str(llm_fragments.load(q)))}
        with foveate.open(folder, personal=False) as engine:
            for query in queries:
                measure_all(tally, "llm", measure, engine, query, budget)
    (folder / ".foveate" / "config.toml").unlink()


def attack_store(tally: Tally, seed: int, quick: bool) -> None:
    chance = random.Random(seed)
    budgets = QUICK_BUDGETS if quick else BUDGETS
    queries = [readable_query(chance) for _ in range(QUICK_QUERIES if quick else FULL_QUERIES)]
    with tempfile.TemporaryDirectory() as name, chdir(name), new_engine(name, session="s") as engine:
        fill(engine, chance, 60)
        for number in range(30):
            engine.add("fact", f"Pump {number}: {prose(chance)}", trust=("user", "web", "tool", "agent")[number % 4])
        engine.tasks.add("Check the pump", objective=text(chance)[:3000].replace("\x00", ""))
        with TestClient(create_app(engine), base_url="http://127.0.0.1") as client:
            entry_points = {"library": LIBRARY, "cli": CLI, "http": over_http(client)}
            for query in queries:
                for budget in budgets:
                    for group, measures in entry_points.items():
                        measure_all(tally, group, measures, engine, query, budget)
                    measure_all(tally, "hooks", {"deliver": library_delivery}, engine, query, budget)
        asyncio.run(attack_mcp(tally, engine, queries, budgets))
        attack_hooks(tally, engine, queries)
        attack_frameworks(tally, engine, queries)
        attack_fragments(tally, Path(name), queries)


def attack(tally: Tally, quick: bool) -> None:
    unwanted = [name for name in os.environ if name.startswith(("FOVEATE_", "XDG_"))]
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, {"HOME": home}):
        for name in unwanted:
            del os.environ[name]
        for seed in range(QUICK_STORES if quick else FULL_STORES):
            with tally.case(f"store {seed}"):
                attack_store(tally, seed, quick)
