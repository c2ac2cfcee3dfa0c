"""Attack every entry point, and print how many cases were tried and which failed.

    python -m bench attack                     # everything; takes about half an hour
    python -m bench attack budgets --quick     # one family, a few cases of each sort

It exits with 1 if a case fails. The texts of the attacks are those of the tests in `tests/redteam` and `tests/injection`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from importlib import import_module

import click

from bench.attack.tally import Tally

FAMILIES = {
    "budgets": "an outside tokenizer counts what each entry point returns",
    "stores": "random stores: no crash, budget, receipt and replay hold",
    "injections": "each injection through every place where text enters",
    "secrets": "formats of secrets, and ordinary texts",
    "inputs": "all of Unicode in the arguments of the library, command line, HTTP and MCP",
    "connections": "slow connections against a real service",
}
"""Each is a module of this folder with a function `attack(tally, quick)`."""

SHOWN_FAILURES = 20


@click.command()
@click.argument("families", nargs=-1, type=click.Choice(list(FAMILIES)))
@click.option("--quick", is_flag=True, help="Try a few cases of each sort.")
def main(families: tuple[str, ...], quick: bool) -> int:
    """Attack every entry point, and print how many cases were tried and which failed."""
    logger = logging.getLogger("foveate")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # failing calls are expected, and are counted here
    try:
        return int(_run(families or tuple(FAMILIES), quick=quick) > 0)
    finally:
        logger.setLevel(level)


def _run(families: tuple[str, ...], *, quick: bool) -> int:
    """Return how many cases failed."""
    failed = 0
    for name in families:
        attack: Callable[[Tally, bool], None] = import_module(f"bench.attack.{name}").attack
        tally, began = Tally(), time.perf_counter()
        attack(tally, quick)
        seconds = time.perf_counter() - began
        click.echo(f"{name:12} {tally.tried:7,} tried  {len(tally.failures):5,} failed  {seconds:6.1f} s  {FAMILIES[name]}")
        for note in tally.notes:
            click.echo(f"  {note}")
        for failure in tally.failures[:SHOWN_FAILURES]:
            click.echo(f"  FAILED {failure}")
        if len(tally.failures) > SHOWN_FAILURES:
            click.echo(f"  and {len(tally.failures) - SHOWN_FAILURES:,} more")
        failed += len(tally.failures)
    return failed
