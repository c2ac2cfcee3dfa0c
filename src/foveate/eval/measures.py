"""The names of what is measured, in one place. Imports nothing: the command line names them before anything is loaded."""

from __future__ import annotations

EVIDENCE = ("any", "all", "fraction")
"""Of one kind of evidence: some of it arrived, all of it, which part of it."""
WHOLE = ("clean", "passed")
"""Of a whole case: nothing unwanted is there; and all that is wanted, too."""
MEASURES = (*EVIDENCE, *WHOLE)
SHARES = ("any", "all", *WHOLE)
"""Measures that are 0 or 1 in each case."""
