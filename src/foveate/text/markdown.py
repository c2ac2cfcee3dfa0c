"""The block that `foveate export agents-md` writes into a repository's instructions, so that it is not read back as news."""

from __future__ import annotations

import re

BEGIN, END = "<!-- BEGIN foveate -->", "<!-- END foveate -->"

_BLOCK = re.compile(rf"^{re.escape(BEGIN)}[ \t\r]*$.*?^{re.escape(END)}[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def without_ours(text: str) -> str:
    """A text without that block."""
    return _BLOCK.sub("", text) if BEGIN in text else text
