"""Programs that are killed at a moment of our choosing, in the middle of whatever SQLite does, on a machine of any speed."""

from __future__ import annotations

import signal
import subprocess
import sys

DYING = """
import os, signal, sys
import apsw

left = ticks = int(sys.argv[1])

def tick():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return False

apsw.connection_hooks.append(lambda connection: connection.set_progress_handler(tick, 50))
"""
"""Counts the steps of SQLite's own machine, in fifties, and dies at one of them. What follows prints how many it took."""


COPY = """
from foveate.store.copy import copy_store
from foveate.store.open import open_store

source, target = open_store(sys.argv[2], create=False), open_store(sys.argv[3])
copy_store(source, target, replace=len(sys.argv) > 4)
source.close()
target.close()
print(ticks - left)
"""
"""Copies one store into another."""


def ran(script: str, ticks: int, *arguments: object) -> int | None:
    """How many steps it took; None where it died on the way."""
    command = [sys.executable, "-c", DYING + script, str(ticks), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode in (0, -signal.SIGKILL)
    return int(done.stdout) if done.returncode == 0 else None


def steps_of(script: str, *arguments: object) -> int:
    steps = ran(script, 10**12, *arguments)
    assert steps
    return steps
