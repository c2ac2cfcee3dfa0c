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
    "context-given": "/ui/context?id={given}",
    "context-forgotten": "/ui/context?id={forgotten}",
    "context-hostile": "/ui/context?id={hostile_context}",
    "left-out": "/ui/left-out?id={tight}",
    "compare": "/ui/compare?id={tight}&from={context}",
    "try": "/ui/try?id={context}&budget=1200",
    "session": "/ui/session?name={session}",
    "session-hooked": "/ui/session?name={hooked}",
    "session-hostile": "/ui/session?name={hostile_session}",
    "memory": "/ui/memory",
    "record": "/ui/record?id={redis}",
    "record-history": "/ui/record?id={port}&tab=history",
    "record-links": "/ui/record?id={entity_checkout}&tab=links",
    "record-used": "/ui/record?id={redis}&tab=used",
    "record-script": "/ui/record?id={hostile_script}",
    "record-textarea": "/ui/record?id={hostile_textarea}",
    "record-long": "/ui/record?id={hostile_long}",
    "record-awkward": "/ui/record?id={awkward}",
    "forget": "/ui/forget?id={redis}",
    "inbox": "/ui/inbox",
    "tasks": "/ui/tasks",
    "task": "/ui/task?id={task}",
    "task-unreadable": "/ui/task?id={task_store}",
    "code": "/ui/code?q=checkout",
    "health": "/ui/health",
}
"""Each page by name; the words in braces are names of the seeded project."""

PICTURED = ("context", "left-out", "compare", "session", "record", "tasks", "code", "health")
"""Pages of which the docs show a picture."""

WIDTHS = (360, 768, 1440)
"""A telephone, a tablet, a desk."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_fits_and_is_accessible(page: Page, seeded: Seeded, pictures: Path | None, name: str) -> None:
    answer = page.goto(seeded.path(PAGES[name]))
    assert answer is not None
    assert answer.status == 200, answer.text()
    for width in WIDTHS:  # the page is loaded once: what depends on the width is its style sheet alone
        page.set_viewport_size({"width": width, "height": 900})
        fits(page)
        axe(page)
    if pictures and name in PICTURED:
        page.screenshot(path=pictures / f"{name}.png")
    page.emulate_media(color_scheme="dark")
    axe(page, colours_only=True)  # nothing else depends on the scheme


def test_every_page_reads_without_scripts(browser: Browser, site: Site, seeded: Seeded, troubles: Troubles) -> None:
    with opened(browser, site.url, troubles, java_script_enabled=False) as page:
        for name, path in PAGES.items():
            page.goto(seeded.path(path))
            expect(page.get_by_role("heading", level=1), name).to_be_visible()
            assert len(page.locator("main").inner_text()) > 100, f"{name} says nothing"
            assert not any(each.is_visible() for each in page.locator(".for-script").all()), f"{name} shows dead buttons"
