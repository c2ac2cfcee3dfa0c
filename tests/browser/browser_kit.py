"""What the browser tests share: a server in a thread, pages that are watched, and what every page is checked for.

A server is a real one, on a socket of loopback. It runs in this process, so that a test can give it a clock that stands
still and look at its engine. No request of the browser leaves the machine.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from foveate.engine import Engine

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
"""A browser that needs no screen, keeps to itself and knows no host but this one."""

RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice")
"""What axe checks for."""

STARTS_IN = 300.0
"""Seconds that a server has to start: more means that it never will."""

Troubles = list[str]
"""What went wrong on a page, a line each."""


@dataclass(frozen=True, slots=True)
class Site:
    """The service at work, and the engine behind it."""

    url: str
    engine: Engine


@contextmanager
def served(app: Any) -> Iterator[str]:
    """An ASGI app on a free port, until the block ends; its address."""
    config = uvicorn.Config(app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="site")
        thread.start()
        try:
            end = time.monotonic() + STARTS_IN
            while not server.started:
                assert thread.is_alive(), "the server did not start; its log says why"
                assert time.monotonic() < end, "the server did not start in time"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def quiet() -> Iterator[Troubles]:
    """A list for troubles that must be empty in the end."""
    found: Troubles = []
    yield found
    assert not found, "\n".join(found)


@contextmanager
def opened(browser: Browser, url: str, troubles: Troubles, **options: Any) -> Iterator[Page]:
    """A page of its own, without history and cookies, whose troubles are noted. It looks the same on every machine."""
    same = {"locale": "en-GB", "timezone_id": "UTC", "reduced_motion": "reduce", "color_scheme": "light"}
    context = browser.new_context(base_url=url, **{**same, "viewport": {"width": 1440, "height": 900}, **options})
    try:
        page = context.new_page()
        watch(page, url, troubles)
        yield page
    finally:
        context.close()


def watch(page: Page, url: str, troubles: Troubles) -> None:
    """Note every error of the page, every request that failed and every request to somebody else."""

    def said(message: ConsoleMessage) -> None:
        where = message.location.get("url", "")
        if message.type == "error" and not where.endswith("/favicon.ico"):  # the browser's own idea, also for JSON
            troubles.append(f"console error: {message.text} ({where})")

    def asked(request: Request) -> None:
        if request.url.startswith("http") and urlsplit(request.url).netloc != urlsplit(url).netloc:
            troubles.append(f"foreign request: {request.url}")

    def failed(request: Request) -> None:
        if request.failure == "net::ERR_ABORTED":  # the page was left, or its script asked for something newer
            return
        troubles.append(f"failed request: {request.method} {request.url}: {request.failure}")

    page.on("console", said)
    page.on("pageerror", lambda error: troubles.append(f"page error: {error}"))
    page.on("request", asked)
    page.on("requestfailed", failed)


# --- what every page is checked for ------------------------------------------------------------------------------------


def overflow(page: Page) -> list[str]:
    """What makes a page scroll sideways: the elements that reach beyond it, the narrowest first; [] where it does not."""
    return page.evaluate(
        """() => {
            const root = document.documentElement, width = root.clientWidth;
            if (root.scrollWidth <= width) return [];
            const beyond = [...document.querySelectorAll("body *")].map(each => [each.getBoundingClientRect(), each])
                .filter(([box]) => box.right > width + 0.5 && box.width > 0).sort(([a], [b]) => a.width - b.width);
            const named = ([box, each]) => `<${each.tagName.toLowerCase()} class="${each.getAttribute("class") ?? ""}"> `
                + `ends at ${Math.round(box.right)} of ${width}: ${each.textContent.trim().slice(0, 60)}`;
            return [`the page is ${root.scrollWidth} wide, its window ${width}`, ...beyond.slice(0, 5).map(named)];
        }"""
    )


def violations(page: Page, *, colours_only: bool = False) -> list[str]:
    """What axe has against a page: rule, what to do about it, and where."""
    only = {"type": "rule", "values": ["color-contrast"]} if colours_only else {"type": "tag", "values": list(RULES)}
    options = {"runOnly": only, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}\n    {' '.join(map(str, node['target']))}\n    {_why(node)}"
        for rule in found
        for node in rule["nodes"]
    ]


def _why(node: dict[str, Any]) -> str:
    """What axe says of an element, in one line."""
    return "; ".join(part["message"] for group in ("any", "all", "none") for part in node[group])


def axe(page: Page, *, colours_only: bool = False) -> None:
    """Fail where axe finds something."""
    found = violations(page, colours_only=colours_only)
    assert not found, f"axe finds {len(found)} on {page.url}:\n" + "\n".join(found)


def fits(page: Page) -> None:
    """Fail where the page scrolls sideways."""
    found = overflow(page)
    assert not found, f"{page.url} scrolls sideways:\n" + "\n".join(found)
