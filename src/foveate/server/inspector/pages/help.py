"""Help: the pages and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from foveate.server.inspector.page import Asked, Page

KEYS = (
    ("Ctrl K", "the command palette: any page, record, context, task or session"),
    ("/", "find"),
    ("j k", "the next and the previous row or item; Enter opens it"),
    ("g c", "contexts"),
    ("g w", "what if"),
    ("g s", "sessions"),
    ("g r", "records"),
    ("g g", "graph"),
    ("g t", "tasks"),
    ("g d", "code"),
    ("g m", "metrics"),
    ("g h", "health"),
    ("t", "light or dark"),
    ("?", "this page"),
)

WORDS = (
    ("granted", "what a slot might spend: its own part of the budget, and what other slots lent it"),
    ("lent, borrowed", "room that one slot did not need and another used"),
    ("reserve", "tokens of the total that stay free for the model's answer"),
    ("framing", "tokens that messages cost before they say anything"),
    ("level", "at which of three lengths an item is shown: full, summary or micro"),
    ("stable", "byte-identical between calls until its content changes, so that a provider's cache can keep it"),
    ("left out", "considered, and not shown: with the reason, and with what it lacked"),
)


def page(every: Sequence[Page]) -> Page:
    """The page that tells of all the others."""
    return Page("help", "Keys and pages", partial(_shown, every), "")


def _shown(every: Sequence[Page], asked: Asked) -> dict[str, Any]:
    return {
        "pages": [{"name": page.name, "title": page.title, "hint": page.hint} for page in every if page.hint],
        "keys": [{"keys": keys, "do": what} for keys, what in KEYS],
        "words": [{"word": word, "means": means} for word, means in WORDS],
    }
