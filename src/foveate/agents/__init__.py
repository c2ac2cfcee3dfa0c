"""Strategies of agents: how the context of an architect, a developer, a reviewer or your own agent is compiled."""

from foveate.agents.strategies import (
    BUILTIN_STRATEGIES,
    Agent,
    Architect,
    ArchitectContextStrategy,
    CompiledContext,
    ContextStrategy,
    Developer,
    DeveloperContextStrategy,
    Reviewer,
    ReviewerContextStrategy,
    State,
    strategy_of,
)

__all__ = [
    "BUILTIN_STRATEGIES",
    "Agent",
    "Architect",
    "ArchitectContextStrategy",
    "CompiledContext",
    "ContextStrategy",
    "Developer",
    "DeveloperContextStrategy",
    "Reviewer",
    "ReviewerContextStrategy",
    "State",
    "strategy_of",
]
