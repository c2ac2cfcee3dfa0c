"""What was chosen and what was not: everything that was left out of a context, and what changed between two."""

from __future__ import annotations

from foveate.front.inspector.page import Action, Page

PAGES: tuple[Page, ...] = ()
ACTIONS: tuple[Action, ...] = ()
