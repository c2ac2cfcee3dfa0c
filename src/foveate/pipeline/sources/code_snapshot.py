"""Open the code that the sources of one context read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from foveate.code.records import NO_CODE_MESSAGE
from foveate.errors import FoveateError
from foveate.pipeline.sources.base import Source
from foveate.types import Profile

if TYPE_CHECKING:
    from foveate.code.snapshot import CodeSnapshot, Workspace


@contextmanager
def open_snapshot(
    profile: Profile, sources: Mapping[str, Source], workspace: Workspace | None
) -> Iterator[tuple[CodeSnapshot | None, str]]:
    """Open the code for one context, if a source of the profile reads it; otherwise give None and the reason.

    The index is refreshed first. After that every source sees the same code, whatever happens to the files.
    """
    names = {name for slot in profile.slots for name in slot.sources}
    snapshot, reason = None, ""
    if any(sources[name].reads_code for name in names if name in sources):
        try:
            snapshot, reason = (workspace.snapshot(), "") if workspace is not None else (None, NO_CODE_MESSAGE)
        except (FoveateError, OSError) as error:
            reason = f"The code could not be read: {error}"
    try:
        yield snapshot, reason
    finally:
        if snapshot is not None:
            snapshot.close()
