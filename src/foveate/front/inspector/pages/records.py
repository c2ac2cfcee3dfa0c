"""Records: lists, one of them with its whole life, and the verbs on it."""

from __future__ import annotations

from foveate.front.inspector.page import Action, Page

PAGES: tuple[Page, ...] = ()
ACTIONS: tuple[Action, ...] = ()
