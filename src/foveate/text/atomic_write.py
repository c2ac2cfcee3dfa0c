"""Write a file so that readers see either the old content or the complete new content.

The new content goes into a temporary file in the same folder, which is renamed at the end. Standard library only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replaced_on_success(path: str | Path, *, private: bool = False, exclusive: bool = False) -> Iterator[Path]:
    """Yield a temporary file to write to. If the block ends without an error, the file is renamed to `path`.

    A symbolic link at `path` is followed, and an existing file keeps its permissions. `private`: only the owner can read
    the file, and a link is replaced. `exclusive`: raise FileExistsError instead of replacing an existing file.
    """
    # A link that came with a repository must not decide where a secret is written.
    target = Path(path) if private else Path(os.path.realpath(path))
    # Two writers may be at work at once, also in one process: a process id alone would give them the same name.
    part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666))
    try:
        yield part
        if not private:
            with suppress(FileNotFoundError):
                part.chmod(stat.S_IMODE(target.stat().st_mode))
        with open(part, "r+b") as file:
            os.fsync(file.fileno())  # else a power cut could leave an empty file under the new name
        if exclusive:
            os.link(part, target)  # unlike a rename, this fails if the target exists
        else:
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def write_file(path: str | Path, content: str | bytes, *, private: bool = False, exclusive: bool = False) -> None:
    """Write the whole content at once; text is encoded as UTF-8. The options are those of `replaced_on_success`."""
    with replaced_on_success(path, private=private, exclusive=exclusive) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
