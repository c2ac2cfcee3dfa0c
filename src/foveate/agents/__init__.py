"""Strategies of agents: how the context of an architect, a developer, a reviewer or your own agent is compiled."""

from typing import Any

from foveate.agents.architect import Architect, ArchitectContextStrategy
from foveate.agents.developer import Developer, DeveloperContextStrategy
from foveate.agents.reviewer import Reviewer, ReviewerContextStrategy
from foveate.agents.strategies import Agent, CompiledContext, ContextStrategy, State
from foveate.engine import Engine
from foveate.errors import InputError
from foveate.options import Extra
from foveate.receipts.history import ContextRef
from foveate.receipts.receipt import Receipt

SHIPPED: tuple[type[ContextStrategy], ...] = (
    ArchitectContextStrategy,
    DeveloperContextStrategy,
    ReviewerContextStrategy,
)


def strategy_of(agent: str) -> ContextStrategy:
    """The strategy that ships for an agent of that name; else one that is its profile alone."""
    return next((strategy() for strategy in SHIPPED if strategy.agent == agent), None) or ContextStrategy(agent)


def made_again(engine: Engine, receipt: Receipt) -> Extra:
    """What the strategy of a past context handed in, as it would now: state says it, so nobody needs to pass it again."""
    asked = receipt.document["request"]
    if not asked["given"] or asked["agent"] is None:
        return {}
    try:
        return strategy_of(asked["agent"]).given(engine, session=asked["scope"]["session"], task=asked["scope"]["task"])
    except InputError:  # what it needs is gone; the replay says that given texts are missing
        return {}


def compared(engine: Engine, one: ContextRef, other: ContextRef, *, texts: bool = False) -> dict[str, Any]:
    """`engine.diff` of two contexts, with what their strategies handed in."""
    before, after = (each if isinstance(each, Receipt) else engine.receipts.get(each) for each in (one, other))
    return engine.receipts.diff(before, after, extra=(made_again(engine, before), made_again(engine, after)), texts=texts)


__all__ = [
    "Agent",
    "Architect",
    "CompiledContext",
    "ContextStrategy",
    "Developer",
    "Reviewer",
    "State",
    "compared",
    "made_again",
    "strategy_of",
]
