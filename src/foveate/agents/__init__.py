"""Agents: who is at work on which task, with which context. Above the engine; it adds no stage to the pipeline."""

from foveate.agents.architect import Architect, ArchitectContextStrategy
from foveate.agents.developer import Developer, DeveloperContextStrategy
from foveate.agents.lifecycle import Agents, Lease, Prepared
from foveate.agents.reviewer import Reviewer, ReviewerContextStrategy
from foveate.agents.strategy import Agent, CompiledContext, ContextStrategy, State

SHIPPED: tuple[type[ContextStrategy], ...] = (
    ArchitectContextStrategy,
    DeveloperContextStrategy,
    ReviewerContextStrategy,
)


def strategy_of(agent: str) -> ContextStrategy:
    """The strategy that ships for an agent of that name; else one that is its profile alone."""
    return next((strategy() for strategy in SHIPPED if strategy.agent == agent), None) or ContextStrategy(agent)


__all__ = [
    "Agent",
    "Agents",
    "Architect",
    "CompiledContext",
    "ContextStrategy",
    "Developer",
    "Lease",
    "Prepared",
    "Reviewer",
    "State",
    "strategy_of",
]
