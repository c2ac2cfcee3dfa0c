"""Every page of the inspector in a real browser, from a telephone to a desk: it loads, fits, is accessible and quiet."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_kit import Site, Troubles, axe, fits, opened
from playwright.sync_api import Browser, Page, expect

from inspector_store import Seeded

PAGES = {
    "contexts": "/ui/",
    "context": "/ui/context?id={context}",
    "context-tight": "/ui/context?id={tight}",
    "context-given": "/ui/context?id={given}",
    "context-forgotten": "/ui/context?id={forgotten}",
    "context-hostile": "/ui/context?id={hostile_context}",
    "left-out": "/ui/left-out?id={tight}",
    "diff": "/ui/diff?from={context}&to={tight}",
    "diff-session": "/ui/diff?from={turn_0}&to={turn_4}",
    "what-if": "/ui/what-if?context={context}&budget=1200",
    "sessions": "/ui/sessions",
    "session": "/ui/session?name={session}",
    "session-hooked": "/ui/session?name={hooked}",
    "session-hostile": "/ui/session?name={hostile_session}",
    "records": "/ui/records",
    "record": "/ui/record?id={redis}",
    "record-chain": "/ui/record?id={port}",
    "record-script": "/ui/record?id={hostile_script}",
    "record-textarea": "/ui/record?id={hostile_textarea}",
    "record-long": "/ui/record?id={hostile_long}",
    "record-awkward": "/ui/record?id={awkward}",
    "forget": "/ui/forget?id={redis}",
    "graph": "/ui/graph?id={entity_checkout}",
    "graph-task": "/ui/graph?id={task}",
    "tasks": "/ui/tasks",
    "task": "/ui/task?id={task}",
    "task-unreadable": "/ui/task?id={task_store}",
    "code": "/ui/code?q=checkout",
    "metrics": "/ui/metrics",
    "health": "/ui/health",
    "find": "/ui/find?q=checkout",
    "help": "/ui/help",
}
"""Each page by name; what stands in braces is a name of the seeded project."""

SHOTS = ("context", "left-out", "diff", "what-if", "session", "record", "graph", "tasks", "code", "metrics")
"""Those of which the docs show a picture."""

WIDTHS = (360, 768, 1440)
"""A telephone, a tablet, a desk."""

WIDEST = max(WIDTHS)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_fits_and_is_accessible(
    page: Page, seeded: Seeded, pictures: Path | None, name: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    answer = page.goto(seeded.path(PAGES[name]))
    assert answer is not None
    assert answer.status == 200, answer.text()
    fits(page)
    axe(page)
    if width == WIDEST:
        if pictures and name in SHOTS:
            page.screenshot(path=pictures / f"{name}.png")
        page.emulate_media(color_scheme="dark")
        axe(page)


def test_every_page_reads_without_scripts(browser: Browser, site: Site, seeded: Seeded, troubles: Troubles) -> None:
    with opened(browser, site.url, troubles, java_script_enabled=False) as page:
        for name, path in PAGES.items():
            page.goto(seeded.path(path))
            expect(page.get_by_role("heading", level=1), name).to_be_visible()
            assert len(page.locator("main").inner_text()) > 100, f"{name} says nothing"
            assert not any(each.is_visible() for each in page.locator(".for-script").all()), f"{name} shows dead buttons"
