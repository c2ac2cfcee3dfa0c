"""What if: a context computed live from what a form says, to be kept as a profile or as a case of an evaluation."""

from __future__ import annotations

from foveate.front.inspector.page import Action, Page

PAGES: tuple[Page, ...] = ()
ACTIONS: tuple[Action, ...] = ()
