"""A real Chromium on a real service, which shows the project of `inspector_store`.

`pytest tests/browser --update-pictures` writes the pictures of the docs anew.

`page` is for reading and shares one service; a test that writes takes `own_page` and has a copy of the project for itself.
Both fail the test on any error of the console, failed request or request to another host; a test that means to cause one
takes `troubles` and clears it. The browser lives as long as a module: Playwright marks the thread as one with a running
event loop, and tests of other folders may want to run their own there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser_kit import ARGUMENTS, Site, Troubles, opened, quiet, served
from playwright.sync_api import Browser, Page, sync_playwright

import inspector_store
from foveate.server.http import create_app
from inspector_store import Seeded

NAMES = ("chromium", "chromium-browser", "google-chrome")
NAME = "orchard"
"""The project's folder: contexts name it."""

PICTURES = Path(__file__).parents[2] / "docs" / "img" / "inspector"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-pictures", action="store_true", default=False, help="write the pictures of the docs anew")


@pytest.fixture
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """Where pictures go; None where none are wanted."""
    return PICTURES if request.config.getoption("--update-pictures", default=False) else None


# --- the service -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Seeded:
    """The project; it is never written again."""
    return inspector_store.make(tmp_path_factory.mktemp("seeded") / NAME)


@contextmanager
def at_work(seeded: Seeded, folder: Path) -> Iterator[Site]:
    """The service on a copy of the project."""
    shutil.copytree(seeded.root, folder / NAME)
    with inspector_store.open_seeded(seeded, folder / NAME) as engine, served(create_app(engine)) as url:
        yield Site(url, engine)


@pytest.fixture(scope="session")
def site(seeded: Seeded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """For reading, shared by all tests of a process."""
    with at_work(seeded, tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def own_site(seeded: Seeded, tmp_path: Path) -> Iterator[Site]:
    """For one test, which may write."""
    with at_work(seeded, tmp_path) as site:
        yield site


# --- the browser -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    home = str(tmp_path_factory.mktemp("browser"))
    with sync_playwright() as playwright:
        given = os.environ.get("FOVEATE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
        path = given or playwright.chromium.executable_path
        if not Path(path).is_file():
            pytest.fail(
                f"There is no Chromium {f'at {path!r}' if given else 'here'}. Install it (`apt-get install chromium`, or "
                "`python -m playwright install chromium`), or set FOVEATE_CHROMIUM to the path of one."
            )
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS, env={**os.environ, "HOME": home})
        yield browser
        browser.close()


@pytest.fixture
def troubles() -> Iterator[Troubles]:
    """What went wrong on the pages of a test; it fails where anything is left in it."""
    with quiet() as found:
        yield found


@pytest.fixture
def page(browser: Browser, site: Site, troubles: Troubles) -> Iterator[Page]:
    with opened(browser, site.url, troubles) as page:
        yield page


@pytest.fixture
def own_page(browser: Browser, own_site: Site, troubles: Troubles) -> Iterator[Page]:
    with opened(browser, own_site.url, troubles) as page:
        yield page
