"""`python -m bench attack`: every family finds nothing in a quick run, and would report what it finds."""

from __future__ import annotations

from importlib import import_module
from unittest.mock import patch

import pytest
from bench.attack import FAMILIES, main
from bench.attack.tally import Tally
from click.testing import CliRunner

from foveate.text import redact

# LlamaIndex's own
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_quick_attack_finds_nothing(family: str) -> None:
    found = Tally()
    import_module(f"bench.attack.{family}").attack(found, True)
    assert found.failures == []
    assert found.tried > 5


def test_a_failed_case_is_printed_and_sets_the_exit_status() -> None:
    with patch("bench.attack.secrets.redact", redact.RedactionResult), patch("bench.attack.secrets.PLACES", {}):
        result = CliRunner().invoke(main, ["secrets", "--quick"], standalone_mode=False)
    assert result.return_value == 1
    assert "FAILED format" in result.output
    assert "the secret stays" in result.output


def test_a_context_beyond_its_budget_is_a_failure() -> None:
    stores = import_module("bench.attack.stores")
    with patch.object(stores, "QUICK_COUNT", 3), patch.object(stores, "count", lambda text, counter="": 10**6):
        stores.attack(found := Tally(), True)
    assert found.failures
    assert "tokens of" in found.failures[0]
