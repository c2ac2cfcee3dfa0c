"""Open the code that the sources of one context read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foveate.code.records import NO_CODE_MESSAGE
from foveate.errors import FoveateError
from foveate.pipeline.request import TASK_PROFILE
from foveate.pipeline.sources.base import Source
from foveate.types import Profile, Request

if TYPE_CHECKING:
    from foveate.code.plain_folder import FolderSnapshot, PlainFolder
    from foveate.code.snapshot import CodeSnapshot, Workspace


@dataclass(frozen=True, slots=True)
class OpenCode:
    """What the sources of one context can read of the project's files."""

    snapshot: CodeSnapshot | None = None
    folder: FolderSnapshot | None = None
    """Stands in for the snapshot in a folder that is not indexed."""
    unavailable: str = ""
    """Why there is no snapshot although a source wants one."""

    @property
    def notes(self) -> Sequence[str]:
        """Warnings for the reader of the context."""
        opened = self.snapshot or self.folder
        return opened.notes if opened is not None else ()


@contextmanager
def open_snapshot(
    request: Request,
    profile: Profile,
    sources: Mapping[str, Source],
    workspace: Workspace | None,
    folder: PlainFolder | None = None,
) -> Iterator[OpenCode]:
    """Open the code for one context, if a source of the profile reads it; otherwise give the reason.

    The index is refreshed first. After that every source sees the same code, whatever happens to the files.
    """
    names = {name for slot in profile.slots for name in slot.sources}
    code = OpenCode()
    if any(sources[name].reads_code for name in names if name in sources):
        try:
            # The profile of a task that names none is for any task. Others that read code were chosen for it.
            code = _open(workspace, folder if request.profile != TASK_PROFILE else None)
        except (FoveateError, OSError) as error:
            code = OpenCode(unavailable=f"The code could not be read: {error}")
    try:
        yield code
    finally:
        if code.snapshot is not None:
            code.snapshot.close()


def _open(workspace: Workspace | None, folder: PlainFolder | None) -> OpenCode:
    if workspace is not None:
        return OpenCode(workspace.snapshot())
    return OpenCode(None, None if folder is None else folder.snapshot(), NO_CODE_MESSAGE)
