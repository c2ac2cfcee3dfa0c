"""The stages of a context: request, signals, profile, sources, scoring, budget, selection, assembly."""
