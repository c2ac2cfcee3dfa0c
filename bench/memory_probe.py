"""Runs `foveate serve` and writes its memory in use to a file: `python -m bench.memory_probe FILE serve --port 0`.

The size of a process says little about its needs: malloc keeps freed memory between allocated blocks, and the process grows
in steps until the gaps suffice. So FILE has, as of the last second, the kilobytes that malloc has allocated, and the number
of blocks of Python's own allocator in use.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time


class _Info(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()  # noqa: SIM905
    ]


def note(file: str) -> None:
    mallinfo = ctypes.CDLL(None).mallinfo2  # glibc 2.33
    mallinfo.restype = _Info
    while True:
        info = mallinfo()
        with open(f"{file}.new", "w") as out:
            out.write(f"{(info.uordblks + info.hblkhd) // 1024} {sys.getallocatedblocks()}")
        os.replace(f"{file}.new", file)
        time.sleep(0.5)


if __name__ == "__main__":
    threading.Thread(target=note, args=(sys.argv[1],), daemon=True).start()
    from foveate.cli import cli

    cli(sys.argv[2:])
