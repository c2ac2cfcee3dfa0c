"""`foveate serve` with a note of what it has in use: `python -m bench.watched FILE serve --port 0`.

How large a process is says little about what it needs: malloc keeps what was freed between two things that stay, and the
process grows in steps until such gaps are enough. So FILE holds, as of the last second, the kilobytes that malloc has given
out and not got back, and how many blocks of Python's own allocator are in use.
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
        found = mallinfo()
        with open(f"{file}.new", "w") as out:
            out.write(f"{(found.uordblks + found.hblkhd) // 1024} {sys.getallocatedblocks()}")
        os.replace(f"{file}.new", file)
        time.sleep(0.5)


if __name__ == "__main__":
    threading.Thread(target=note, args=(sys.argv[1],), daemon=True).start()
    from foveate.cli import cli

    cli(sys.argv[2:])
