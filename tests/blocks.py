"""Blocks of text whose token counts add up."""

from __future__ import annotations


def can_count_separately(text: str) -> bool:
    r"""Return whether a text can be counted without its neighbours: counts of joined blocks add up exactly.

    It must end in a newline, and its first character must be neither whitespace nor `/`. o200k and cl100k split a text into
    pieces first and look for tokens within a piece. A piece that has reached a newline continues over whitespace only or, in
    o200k and after punctuation, over `/` (`:\n//` is one piece). Any other character, be it a combining mark or a joiner,
    begins a piece of its own. The text between, the number of newlines at the end and the text before them do not matter.

    The first of the joined texts may begin, and the last may end, in any way.
    """
    return text.endswith("\n") and not text[0].isspace() and text[0] != "/"
