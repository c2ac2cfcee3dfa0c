"""How many examples a property is tried with: a few in the quick profile, many in the thorough one.

pytest tests/properties                                 # as many as each test says
pytest tests/properties --hypothesis-profile quick      # a tenth of that
pytest tests/properties --hypothesis-profile thorough   # ten times as many
"""

from __future__ import annotations

import os

from hypothesis import settings

DEFAULT_EXAMPLES = 100
MIN_EXAMPLES = 5


def register_profiles() -> None:
    """Register the profiles and load the default one. No deadlines: a busy machine is no failure."""
    in_ci = os.environ.get("CI") == "true"
    for name, count in (("quick", 10), ("default", DEFAULT_EXAMPLES), ("thorough", 1000)):
        settings.register_profile(name, max_examples=count, deadline=None, derandomize=in_ci)
    settings.load_profile("default")


def examples(count: int) -> settings:
    """Try a property `count` times in the default profile, and in proportion in the others."""
    return settings(max_examples=max(MIN_EXAMPLES, count * settings.default.max_examples // DEFAULT_EXAMPLES))
