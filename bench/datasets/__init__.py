"""Suites that need a checkout of foveate: `foveate eval run bench.datasets.swebench:SWEBENCH PATH`."""
