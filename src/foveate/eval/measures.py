"""The names of what is measured, and of where it is kept. Imports nothing: the command line has them before all else."""

from __future__ import annotations

EVIDENCE = ("any", "all", "fraction")
"""Of one kind of evidence: some of it arrived, all of it, which part of it."""
WHOLE = ("clean", "passed")
"""Of a whole case: nothing unwanted is there; and all that is wanted, too."""
MEASURES = (*EVIDENCE, *WHOLE)
SHARES = ("any", "all", *WHOLE)
"""Measures that are 0 or 1 in each case."""

RUNS = "eval-runs"
"""The folder that runs are kept in, unless told."""
