"""A plugin of the `llm` command: `llm -f foveate:"fix auth" "What should I look at?"`.

Comes in: what stands behind `foveate:`, as a question to the project of the working directory. Goes out: the computed
context, as a fragment of the prompt. Nothing is kept and no store is created. Budget and profile are the project's settings.
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
    """What this project knows about a question, within its budget: -f foveate:"fix auth" """
    with factory.open(create=False) as engine:
        return llm.Fragment(engine.context(query).text, f"foveate:{query}")  # type: ignore[no-untyped-call]
