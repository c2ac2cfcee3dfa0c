"""The pages, a file for each subject. Each gives a document; the template of the same name shows it."""

from foveate.server.inspector.page import Action, Page
from foveate.server.inspector.pages import (
    code,
    comparison,
    contexts,
    find,
    graph,
    health,
    help,
    metrics,
    records,
    sessions,
    tasks,
    what_if,
)

_SUBJECTS = (contexts, comparison, what_if, sessions, records, graph, tasks, code, metrics, health, find)

_PAGES = tuple(page for subject in _SUBJECTS for page in subject.PAGES)
PAGES: tuple[Page, ...] = (*_PAGES, help.page(_PAGES))
"""In the order of the navigation."""

ACTIONS: tuple[Action, ...] = tuple(action for subject in _SUBJECTS for action in subject.ACTIONS)
