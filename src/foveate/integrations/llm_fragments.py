"""A plugin of the `llm` command: `llm -f foveate:"fix auth" "What should I look at?"`.

The text after `foveate:` is a query to the project of the working directory, and its context becomes a fragment of the
prompt. The plugin stores no messages and creates no store. Budget and profile are the project's settings.
"""

from __future__ import annotations

from collections.abc import Callable

from foveate import factory
from foveate.integrations import requires_extra

with requires_extra("llm"):
    import llm

Loader = Callable[[str], llm.Fragment]


@llm.hookimpl
def register_fragment_loaders(register: Callable[[str, Loader], None]) -> None:
    register("foveate", load)


def load(query: str) -> llm.Fragment:
    """Load the context that this project has for a query: -f foveate:"fix auth" """
    with factory.open(create=False) as engine:
        return llm.Fragment(engine.context(query).text, f"foveate:{query}")  # type: ignore[no-untyped-call]
