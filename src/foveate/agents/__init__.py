"""Agents: who is at work on which task, with which context. Above the engine; it adds no stage to the pipeline."""

from foveate.agents.lifecycle import Agents, Lease, Prepared

__all__ = ["Agents", "Lease", "Prepared"]
