"""Graph: the neighbourhood of a record, one or two hops."""

from __future__ import annotations

from foveate.front.inspector.page import Action, Page

PAGES: tuple[Page, ...] = ()
ACTIONS: tuple[Action, ...] = ()
