"""Metrics: is context management working, and how has that changed?"""

from __future__ import annotations

from foveate.front.inspector.page import Action, Page

PAGES: tuple[Page, ...] = ()
ACTIONS: tuple[Action, ...] = ()
