"""Find: records, contexts and tasks by their words; the palette asks it too."""

from __future__ import annotations

from foveate.front.inspector.page import Action, Page

PAGES: tuple[Page, ...] = ()
ACTIONS: tuple[Action, ...] = ()
