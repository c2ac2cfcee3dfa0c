"""Each check of the harness can fail: a page with one thing wrong, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from browser_kit import Site, Troubles, axe, fits, opened, overflow, quiet, served, violations
from playwright.sync_api import Browser, Page

from inspector_store import Seeded

GOOD = "<h1>Contexts</h1><p>There is nothing here yet.</p>"
BODIES = {
    "good": GOOD,
    "console": f"{GOOD}<script>console.error('oh no')</script>",
    "thrown": f"{GOOD}<script>throw new Error('oh dear')</script>",
    "missing": f"{GOOD}<script src='/missing.js'></script>",
    "foreign": f"{GOOD}<img alt='' src='https://example.com/spy.png'>",
    "wide": f"{GOOD}<table><tr><td>{'x' * 400}</td></tr></table>",
    "unlabelled": f"{GOOD}<form><input name='q'></form>",
    "pale": f"{GOOD}<p style='color: #ccc'>You can hardly read this.</p>",
}


async def tiny(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A page for each of the names above."""
    if scope["type"] != "http":
        return
    body = BODIES.get(scope["path"].strip("/"))
    head = "<!doctype html><html lang=en><meta name=viewport content=width=device-width><title>Tiny</title>"
    headers = [(b"content-type", b"text/html; charset=utf-8")]
    await send({"type": "http.response.start", "status": 404 if body is None else 200, "headers": headers})
    await send({"type": "http.response.body", "body": f"{head}<main>{body or GOOD}</main></html>".encode()})


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(tiny) as url:
        yield url


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("console", "console error: oh no"),
        ("thrown", "page error: oh dear"),
        ("missing", "console error: Failed to load resource: the server responded with a status of 404"),
        ("foreign", "foreign request: https://example.com/spy.png"),
        ("foreign", "failed request: GET https://example.com/spy.png"),
    ],
)
def test_what_goes_wrong_on_a_page_fails_its_test(browser: Browser, url: str, name: str, said: str) -> None:
    told = pytest.raises(AssertionError, match=f"(?m)^{re.escape(said)}")
    with told, quiet() as troubles, opened(browser, url, troubles) as page:
        page.goto(f"/{name}")


def test_a_page_wider_than_its_window_is_told_with_what_makes_it_so(browser: Browser, url: str, troubles: Troubles) -> None:
    with opened(browser, url, troubles, viewport={"width": 360, "height": 800}) as page:
        page.goto("/wide")
        assert any(line.startswith("<td") for line in overflow(page))
        with pytest.raises(AssertionError, match="scrolls sideways"):
            fits(page)


@pytest.mark.parametrize(("name", "rule", "where"), [("unlabelled", "label", "input"), ("pale", "color-contrast", "p")])
def test_axe_names_the_rule_and_the_element(
    browser: Browser, url: str, troubles: Troubles, name: str, rule: str, where: str
) -> None:
    with opened(browser, url, troubles) as page:
        page.goto(f"/{name}")
        (found,) = violations(page)
        assert found.startswith(f"{rule} ")
        assert where in found
        assert violations(page, colours_only=True) == ([found] if rule == "color-contrast" else [])
        with pytest.raises(AssertionError, match=rule):
            axe(page)


def test_a_good_page_passes_everything(browser: Browser, url: str, troubles: Troubles) -> None:
    with opened(browser, url, troubles, viewport={"width": 360, "height": 800}) as page:
        answer = page.goto("/good")
        assert answer is not None
        assert answer.status == 200
        fits(page)
        axe(page)


def test_a_test_that_writes_has_the_project_for_itself(own_page: Page, own_site: Site, site: Site, seeded: Seeded) -> None:
    id = seeded.names["redis"]
    own_site.engine.inbox.reject(id)
    assert (own_site.engine.get(id).status, site.engine.get(id).status) == ("retired", "active")
    answer = own_page.goto("/healthz")
    assert answer is not None
    assert answer.status == 200
