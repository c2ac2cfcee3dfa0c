"""Hooks of coding agents: the events of each host and what is delivered to it."""
