"""Text -> the same text without what a reader cannot see: terminal codes, control characters and characters that hide.

A model reads what a person does not: zero-width, bidirectional and tag characters can carry a whole message. Joiners and
variation selectors stay where writing needs them (Persian, Hindi, emoji, Japanese names), one at a time.
"""

from __future__ import annotations

import re

_UNSEEN = (
    "\x01-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
    "\U000e01f0-\U000e0fff"
)
_SELECTORS, _JOINERS = "\ufe00-\ufe0f\U000e0100-\U000e01ef", "\u200c\u200d"

HIDDEN = re.compile(f"[{_UNSEEN}]")
"""Characters that are never text."""

_RUN = re.compile(f"[{_SELECTORS}{_JOINERS}]+")
_SUSPECT = re.compile(f"[\x00{_UNSEEN}{_SELECTORS}{_JOINERS}]")
_LINE_ENDS = str.maketrans({"\x85": "\n", "\u2028": "\n", "\u2029": "\n"})
_TERMINAL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # titles and links; one that nothing ends takes no words with it
    r"|\x1b[@-Z\\^_]"
)


def visible(text: str) -> str:
    """The text as a person sees it."""
    # ASCII that prints is nearly every text, and is told ten times as fast as by a pattern.
    if (text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()) or _SUSPECT.search(text) is None:
        return text
    text = _TERMINAL.sub("", text.replace("\r\n", "\n").replace("\r", "\n").translate(_LINE_ENDS))
    return _RUN.sub(_needed, HIDDEN.sub("", text))


def _needed(run: re.Match[str]) -> str:
    """Of joiners and selectors, what a sign of another script needs: one selector and one joiner, and none after ASCII."""
    before = run.string[run.start() - 1 : run.start()]
    if before.isascii():  # also where nothing stands before
        return ""
    first, last = run[0][0], run[0][-1]
    return (first if first not in _JOINERS else "") + (last if last in _JOINERS else "")
